"""Arguments that are nearly right: those of a call that made a theorem, with one thing exchanged.

It comes from another call, or is a number beside the one that was there: another unit, place, format, premise or lemma,
one too few, one too many. Most of these calls fail a side condition; what the others make is held against its meaning,
as any theorem is.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

from pysmt.fnode import FNode

from benchmarks.rules.units import FACTORS, RESULTS
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.reductions import Reduction
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError

KEPT = 40  # of each kind, the last ones
READ = (Reduction, Assertion)  # what is read from texts, which check more of it than it does itself


class RecentCalls:
    """What rules were called with, and what they made: the last of each kind."""

    def __init__(self) -> None:
        self._theorems: dict[type, deque[Theorem]] = {}  # by kind of goal
        self._given: dict[tuple[str, str], deque[Any]] = {}  # arguments, by rule and parameter
        self._values: dict[type, deque[Any]] = {}  # objects, by class

    def add(self, theorem: Theorem) -> None:
        for made in (*theorem.premises, theorem):
            known = self._theorems.setdefault(type(made.goal), deque(maxlen=KEPT))
            if made not in known:
                known.append(made)
        for name, value in theorem.arguments.items():
            self._given.setdefault((theorem.rule, name), deque(maxlen=KEPT)).append(value)
            for one in value if isinstance(value, tuple | frozenset) else (value,):
                if is_dataclass(one) and not isinstance(one, Theorem):
                    self._values.setdefault(type(one), deque(maxlen=KEPT)).append(one)

    def of(self, kind: type) -> list[Theorem]:
        """The last theorems with goals of a kind."""
        return list(self._theorems.get(kind, ()))

    def changed(self, theorem: Theorem, rng: random.Random) -> dict[str, Any] | None:
        """The arguments that made a theorem, one of them another; None where nothing is exchanged."""
        given = dict(theorem.arguments)
        places = [name for name, value in given.items() if not isinstance(value, Engines)]
        if not places:
            return None
        name = rng.choice(places)
        before = given[name]
        every = self._given.get((theorem.rule, name), ())
        if isinstance(before, Theorem | tuple) or rng.random() < 0.5 or not every:
            longer = isinstance(before, tuple) and rng.random() < 0.5
            given[name] = self._longer(before, rng) if longer else self.other(before, rng)
        else:
            given[name] = rng.choice(list(every))
        return None if given[name] is before else given

    def other(self, value: Any, rng: random.Random) -> Any:
        """Something of the same type."""
        if isinstance(value, Theorem):
            return self._near(value, rng)
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return rng.choice((value - 1, value + 1, value + 1, 0, -value))
        if isinstance(value, Fraction):
            return value * rng.choice((Fraction(1, 2), Fraction(63, 64), 2)) + rng.choice((0, 0, 1))
        if isinstance(value, Format):
            return format_named(rng.choice((*FACTORS, *RESULTS)))
        if isinstance(value, tuple):
            return self._sequence(value, rng)
        if isinstance(value, frozenset):
            every = sorted(value, key=repr)
            return frozenset(self._sequence(every, rng))
        if isinstance(value, FNode) or not is_dataclass(value):
            return value
        return self._object(value, rng)

    def _near(self, theorem: Theorem, rng: random.Random) -> Theorem:
        """Another theorem of the kind: mostly one whose goal differs in little."""
        every = [one for one in self.of(type(theorem.goal)) if one.goal != theorem.goal]
        if not every:
            return theorem
        if rng.random() < 0.3:
            return rng.choice(every)
        names = [field.name for field in fields(theorem.goal)]  # type: ignore[arg-type]

        def apart(other: Theorem) -> int:
            return sum(getattr(other.goal, name) != getattr(theorem.goal, name) for name in names)

        some = rng.sample(every, min(len(every), 12))
        return min(some, key=apart)

    def _sequence(self, value: Sequence[Any], rng: random.Random) -> tuple[Any, ...]:
        """One thing in it is another, or stands in another place."""
        found = list(value)
        if found and rng.random() < 0.8:
            at = rng.randrange(len(found))
            found[at] = self.other(found[at], rng)
        elif found and len({type(one) for one in found}) == 1:
            rng.shuffle(found)
        return tuple(found)

    def _longer(self, value: tuple[Any, ...], rng: random.Random) -> tuple[Any, ...]:
        """One thing less, or one more."""
        found = list(value)
        if found and rng.random() < 0.6:
            found.pop(rng.randrange(len(found)))
        else:
            found += [
                self.other(one, rng) if rng.random() < 0.5 else one for one in rng.sample(found, min(1, len(found)))
            ]
        return tuple(found)

    def _object(self, value: Any, rng: random.Random) -> Any:
        """Another of the class, or the same with a field of another one, or with one that is changed itself."""
        every = [one for one in self._values.get(type(value), ()) if one is not value]
        if every and rng.random() < 0.4:
            return rng.choice(every)
        own = [field.name for field in fields(value) if field.init]
        if not own or isinstance(value, READ):
            return value
        name = rng.choice(own)
        if every and rng.random() < 0.5:
            change = getattr(rng.choice(every), name)
        else:
            change = self.other(getattr(value, name), rng)
        try:
            return replace(value, **{name: change})
        except (
            MmaprobeError,
            RuleError,
            AssertionError,
            LookupError,
            TypeError,
            ValueError,
        ):  # there is no such object
            return value
