"""Instances of the rules about shares of sums of magnitudes: of small units, words of small numbers, in small windows.

What a value is, is written here from the docstrings of what is recorded (queries/kernel/questions/recorded.py); words
are those of tests/oracles/algorithm_oracle.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.enclosures import Deriving
from benchmarks.rules.lemmas import Truths, tallied
from benchmarks.rules.meanings import SLACK, is_whole
from benchmarks.rules.numbers import Evaluation, Flags, Lanes, Patterns, Value, exact_sum, number, rounded, zeros
from benchmarks.rules.units import Small
from mmaprobe.queries.kernel.bounds.forms import magnitude
from mmaprobe.queries.kernel.bounds.shares import Apart, Near, Space, WordIsSmall
from mmaprobe.queries.kernel.bounds.unit_shares import Errs
from mmaprobe.queries.kernel.questions import recorded
from mmaprobe.queries.kernel.questions.recorded import Added, Addend, Instruction, Nothing, Word, Words, recorded_part
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.algorithms.exact import Window
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, Index, Node, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles import algorithm_oracle, oracle

ROWS = 2048  # inputs of one statement, at most
WIDE = (*("e4m3_ieee",) * 8, "e3m3_ieee", "e4m1_ieee", "e3m2_ieee", "e2m3")
FACTORS = ("e2m1", "e3m2", "e2m3", "e2m2_none", "e2m1_ieee", "e3m1_ieee", "e1m2_none")


# -- numbers and their words


@cache
def words_of(how: Words, number: int) -> Patterns:
    """The word with this index of every pattern; of what is no number, that of +0."""
    given, source = how.given.name, how.source.name
    finite = [
        pattern if oracle.decode(given, pattern).kind == "finite" else 0 for pattern in range(1 << how.given.width)
    ]
    every = [pattern if given == source else algorithm_oracle.convert(pattern, given, source, "nearest_even")
             for pattern in finite]  # fmt: skip
    found = algorithm_oracle.words(every, source, how.into.name, how.rounding, how.count, 0)
    return np.array(found[number], dtype=np.uint64)


def admitted(fmt: Format, window: tuple[int, int]) -> Patterns:
    """Zeros, and normal numbers with exponents in a window."""
    every = [oracle.decode(fmt.name, pattern) for pattern in range(1 << fmt.width)]
    low = max(window[0], oracle.FORMATS[fmt.name].emin)
    finite = [(pattern, abs(x.value)) for pattern, x in enumerate(every) if x.kind == "finite"]
    found = [pattern for pattern, size in finite if not size or low <= oracle.floor_log2(size) <= window[1]]
    return np.array(found, dtype=np.uint64)


def in_window(how: Words, window: tuple[int, int]) -> list[tuple[Fraction, list[Fraction | None]]]:
    """The numbers of a window, each with its words; None: a word that is not finite."""

    def of(fmt: Format, pattern: int) -> Fraction | None:
        x = oracle.decode(fmt.name, pattern)
        return Fraction(int(x.value.numerator), int(x.value.denominator)) if x.kind == "finite" else None

    found = []
    for pattern in admitted(how.given, window).tolist():
        x = of(how.given, pattern)
        assert x is not None
        found.append((x, [of(how.into, int(words_of(how, k)[pattern])) for k in range(how.count)]))
    return found


def word_is_small(own: WordIsSmall) -> bool:
    unit = Fraction(2) ** (own.window[0] - own.words.given.fraction)
    return all((w := words[own.number]) is not None and abs(w) <= own.share * abs(x) and (w / unit).denominator == 1
               for x, words in in_window(own.words, own.window))  # fmt: skip


def least_share(how: Words, window: tuple[int, int], number: int) -> Fraction:
    """The largest share of a word."""
    found = Fraction(0)
    for x, words in in_window(how, window):
        found = max(found, abs(words[number] or Fraction(0)) / abs(x) if x else Fraction(0))
    return found


# -- values


@dataclass
class Inputs:
    """Some inputs of a space, or all."""

    space: Space
    a: list[Patterns]
    b: list[Patterns]
    c: Patterns

    @staticmethod
    def of(space: Space, rng: random.Random) -> Inputs:
        a, b = (admitted(space.factors, window) for window in (space.window.a, space.window.b))
        c = np.zeros(1, dtype=np.uint64) if space.no_addend else admitted(space.addend, space.window.c)
        every = [a] * space.terms + [b] * space.terms + [c]
        sizes = [len(side) for side in every]
        total = int(np.prod([float(size) for size in sizes]))
        if total <= ROWS:
            places = [np.asarray(one) for one in np.unravel_index(np.arange(total), sizes)]
        else:
            drawn = np.random.default_rng(rng.getrandbits(32))
            places = [drawn.integers(0, size, ROWS) for size in sizes]
        columns = [side[place] for side, place in zip(every, places, strict=True)]
        return Inputs(space, columns[: space.terms], columns[space.terms : -1], columns[-1])

    def exact(self, side: str, k: int) -> Lanes:
        patterns, fmt = (self.c, self.space.addend) if side == "c" else (getattr(self, side)[k], self.space.factors)
        return number(fmt, patterns).exact

    @property
    def sizes(self) -> list[Lanes]:
        """|c|, and every |a_k b_k|."""
        terms = range(self.space.terms)
        return [np.abs(self.exact("c", 0)), *(np.abs(self.exact("a", k) * self.exact("b", k)) for k in terms)]

    @property
    def sum(self) -> Lanes:
        terms = range(self.space.terms)
        return self.exact("c", 0) + np.sum([self.exact("a", k) * self.exact("b", k) for k in terms], axis=0)

    def value(self, value: recorded.Value) -> Value:
        count = len(self.c)
        match value:
            case Addend():
                return number(self.space.addend, self.c)
            case Nothing():
                return zeros(count, False)
            case Added():
                return rounded(exact_sum([self.value(value.first), self.value(value.second)]), Rounding(value.format))
            case Instruction():
                unit = value.model.unit
                addend = rounded(self.value(value.addend), Rounding(unit.c)).patterns
                assert addend is not None
                given = {("c", 0): addend}
                for k in range(unit.length):
                    there = value.start + k < value.stop
                    for name, word, side in (("a", value.a, self.a), ("b", value.b, self.b)):
                        of = words_of(word.words, word.number)
                        given[name, k] = of[side[value.start + k]] if there else np.zeros(count, dtype=np.uint64)
                formats = {"a": unit.a, "b": unit.b, "c": unit.c}
                return Evaluation(formats, given, count).value(unit.result, {})
        raise TypeError(type(value).__name__)

    def product(self, a: Word, b: Word, k: int) -> Lanes:
        one, two = (number(word.words.into, words_of(word.words, word.number)[side[k]]).exact
                    for word, side in ((a, self.a), (b, self.b)))  # fmt: skip
        return one * two


def _no_numbers(value: Value, unit: int, most: Lanes, counts: Flags) -> Iterator[str]:
    if (counts & ~value.finite).any():
        yield "a value is not finite"
    if (counts & ~is_whole(np.ldexp(value.exact, -unit))).any():
        yield "a value is no multiple of the unit"
    if (counts & (np.abs(value.exact) > most * (1 + SLACK))).any():
        yield "a value is larger than is said"


def near(goal: Near, rng: random.Random) -> Iterator[str]:
    given = Inputs.of(goal.space, rng)
    sizes = given.sizes
    total = np.sum(sizes, axis=0)
    value, base = given.value(goal.value), given.value(goal.base)
    most = sum((float(weight) * size for weight, size in zip((goal.weight, *goal.weights), sizes, strict=True)),
               float(goal.off) * total)  # fmt: skip
    yield from _no_numbers(value, goal.space.unit, most, total != 0)
    wanted = base.exact
    for a, b, start, stop in goal.products:
        wanted = wanted + sum(given.product(a, b, k) for k in range(start, stop))
    off = np.abs(value.exact - wanted) > float(goal.distance) * total * (1 + SLACK)
    if ((total != 0) & value.finite & off).any():
        yield "a value lies further away"


def apart(goal: Apart, rng: random.Random) -> Iterator[str]:
    given = Inputs.of(goal.space, rng)
    total = np.sum(given.sizes, axis=0)
    values = [given.value(one) for one in goal.values]
    for value in values:
        yield from _no_numbers(value, goal.space.unit, float(goal.size) * total, total != 0)
    if ((total != 0) & (np.abs(values[0].exact - values[1].exact) > float(goal.share) * total * (1 + SLACK))).any():
        yield "they are further apart"


def errs(goal: Errs, rng: random.Random) -> Iterator[str]:
    given = Inputs.of(goal.space, rng)
    total = np.sum(given.sizes, axis=0)
    value = given.value(recorded_part(goal.part, goal.space.factors, goal.space.terms))
    yield from _no_numbers(value, goal.space.unit, float(goal.size) * total, total != 0)
    if ((total != 0) & (np.abs(value.exact - given.sum) > float(goal.share) * total * (1 + SLACK))).any():
        yield "the error is larger"


MEANINGS = {Near: near, Apart: apart, Errs: errs}


# -- instances


def some_words(rng: random.Random) -> Words:
    given = format_named(rng.choice(FACTORS))
    if rng.random() < 0.4:
        return Words(given, given, given, "nearest_even", 1)
    into = format_named(rng.choice(("e2m1", "e2m1_ieee", "e3m1_ieee", "e3m2_ieee", "e1m2_none")))
    modes: Any = ("nearest_even", "nearest_even", "toward_zero", "toward_zero", "up", "nearest_away")
    return Words(given, format_named("f16"), into, rng.choice(modes), rng.choice((1, 2, 2, 3)))


def some_window(fmt: Format, rng: random.Random) -> tuple[int, int]:
    low = min(fmt.emin + rng.choice((0, 0, 1)), fmt.emax)
    return low, min(low + rng.choice((0, 1)), fmt.emax)


def sums_unit(rng: random.Random, factors: Format) -> Unit | None:
    """A unit that adds every product and c once, mostly."""
    length, addend = rng.choice((1, 1, 2)), format_named(rng.choice(WIDE))
    maker = Small(rng, length, {"a": factors, "b": factors, "c": addend}, None)
    items: list[Node] = [
        Element("c"),
        *(Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(length)),
    ]
    if rng.random() < 0.08:
        items.append(rng.choice(items))
    try:
        if rng.random() < 0.25:
            own = Index(0, ((9, 1),))
            body = Round(maker.sum_of((Running(9), Product(Element("a", own), Element("b", own)))),
                         maker.rounding(addend))  # fmt: skip
            return Unit(factors, factors, addend, length, Repeat(9, range(length), Element("c"), body))
        return Unit(factors, factors, addend, length, Round(maker.sum_of(tuple(items)), maker.rounding(addend)))
    except ParameterError:
        return None


class Sharing:
    """Theorems about the values of one space, with a unit and words of its numbers."""

    def __init__(self, campaign: Campaign, truths: Truths, rng: random.Random, how: Words, unit: Unit) -> None:
        self.campaign, self.rng, self.how, self.unit = campaign, rng, how, unit
        windows = [some_window(how.given, rng) for _ in "ab"]
        self.space = Space(how.given, unit.c, Window(windows[0], windows[1], some_window(unit.c, rng)),
                           unit.length * rng.choice((1, 1, 2)), rng.random() < 0.3)  # fmt: skip
        deriving = Deriving(campaign, truths, unit, rng, chain=rng.random() < 0.05)
        deriving.mixing = False
        self.bound = deriving.node(unit.result, ())
        self.words = self._lemmas()
        self.known: list[Theorem] = []

    def _lemmas(self) -> list[Theorem]:
        """What is true of the words, mostly the least share."""
        window, how, rng, found = self.space.window, self.how, self.rng, list[Theorem]()
        for side in dict.fromkeys((window.a, window.b)):
            for k in range(how.count):
                share = least_share(how, side, k) * rng.choice((1, 1, 1, Fraction(9, 8), Fraction(9, 10)))
                share += rng.choice((0, 0, 0, 1)) * Fraction(1, 64)
                theorem = tallied(self.campaign, WordIsSmall(how, side, share, k), word_is_small)
                found += [] if theorem is None else [theorem]
        return found

    def call(self, name: str, *arguments: Any) -> Theorem | None:
        found = self.campaign.call(name, *arguments)
        self.known += [] if found is None or not isinstance(found.goal, Near) else [found]
        return found

    def either(self, theorem: Theorem) -> Theorem:
        return self.rng.choice(self.known) if self.rng.random() < 0.05 else theorem

    def chain(self, start: Theorem, pairs: list[tuple[int, int]]) -> Theorem | None:
        """The products of some words, in the unit, from a value on."""
        found: Theorem | None = start
        for i, j in pairs:
            for first in range(0, self.space.terms, self.unit.length):
                if found is None or self.bound is None:
                    return None
                goal: Any = found.goal
                stop = min(first + self.unit.length, self.space.terms)
                value = Instruction(
                    Model("unit", self.unit), Word(self.how, i), Word(self.how, j), first, stop, goal.value
                )
                words = self.words if self.rng.random() < 0.95 else self.words[1:]
                found = self.call("after_instruction", value, self.either(found), self.bound, words)
        return found

    def pairs(self) -> list[tuple[int, int]]:
        every = [(i, j) for i in range(self.how.count) for j in range(self.how.count)]
        if self.rng.random() < 0.4:
            return every
        every = every if self.rng.random() < 0.95 else [*every, (self.how.count, 0)]
        return self.rng.sample(every, self.rng.randint(1, min(4, len(every))))


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Values of one space, their errors, and how far they lie apart."""
    for _ in range(6):  # mostly words and a unit of which all is known
        how = some_words(rng)
        unit = sums_unit(rng, how.into)
        if unit is None:
            continue
        own = Sharing(campaign, truths, rng, how, unit)
        if own.bound is not None and len(own.words) >= how.count:
            break
    else:
        return
    space, call, nears = own.space, own.call, list[Theorem]()
    pairs = own.pairs()
    plain = call("begins", space, Addend())
    assert plain is not None
    none = call("begins", space, Nothing())
    assert none is not None
    call("after_addition", Added(space.addend, Addend(), Nothing()), plain, none)
    if own.bound is not None and rng.random() < 0.2:  # a bound in a magnitude that the unit does not read
        error = own.bound.goal.facts.error + magnitude("scale_a", Index(0))  # type: ignore[attr-defined]
        weaker = call("weakened", own.bound, error)
        words = Word(how, 0), Word(how, 0), 0, min(unit.length, space.terms)
        if weaker is not None:
            call("after_instruction", Instruction(Model("unit", unit), *words, Addend()), plain, weaker, own.words)
    every = [(i, j) for i in range(how.count) for j in range(how.count)]
    if (found := own.chain(plain, every[: rng.choice((3, 9))])) is not None:
        nears.append(found)
    for _ in range(2):
        start = call("begins", space, rng.choice((Addend(), Addend(), Nothing())))
        assert start is not None
        found = own.chain(start, pairs if rng.random() < 0.6 else own.pairs())
        if found is not None and rng.random() < 0.5:
            fmt, other = unit.c if rng.random() < 0.95 else space.factors, none if rng.random() < 0.4 else start
            if rng.random() < 0.6:
                other = own.chain(none, own.pairs()[:2]) or other
            sides = [found, other] if rng.random() < 0.7 else [other, found]
            value = Added(fmt, sides[0].goal.value, sides[1].goal.value)  # type: ignore[attr-defined]
            found = call("after_addition", value, sides[0], own.either(sides[1]))
        nears += [] if found is None else [found]
    if own.known:
        one = rng.choice(own.known)
        call("begins", space, one.goal.value)  # type: ignore[attr-defined]
        common = call("from_here", one)
        if common is not None and (further := own.chain(common, own.pairs())) is not None:
            nears += [common, further]
    for _ in range(4 if nears else 0):
        _apart(own, *(rng.sample(nears, 2) if len(nears) > 1 and rng.random() < 0.9 else nears[:1] * 2))
    if len(nears) > 1:
        first, second = rng.sample(nears, 2)
        value = Added(unit.c, first.goal.value, second.goal.value)  # type: ignore[attr-defined]
        call("after_addition", value, first, second)


def _apart(own: Sharing, one: Theorem, two: Theorem) -> None:
    own.call("near_each_other", [one, two], own.words if own.rng.random() < 0.95 else own.words[1:])
