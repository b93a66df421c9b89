"""The statements of the theorems of a tree, read from plain data: the goal of each, and the facts about a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tests.second.magnitudes import Form, Monomial, Range, add, end_of, most, need, read_form, single

CHAIN = -1
Frozen = frozenset[tuple[frozenset[Monomial], Fraction]]  # a form that can be an element of a set


def frozen(form: Form) -> Frozen:
    return frozenset(form.items())


@dataclass(frozen=True)
class Facts:
    """The facts about the value v of a node and its exact value x."""

    low: Form
    high: Form
    size: Form
    weight: Form | None = None
    least: int | None = None
    head: Fraction | None = None
    digits: int | None = None
    grid: int | None = None
    bits: int | None = None
    formats: frozenset[int] | None = None
    most: int | None = None
    interval: Range | None = None

    @property
    def top(self) -> int | None:
        return None if self.interval is None else end_of(max(-self.interval[0], self.interval[1]))

    @property
    def error(self) -> Form:
        return most(self.low, self.high)

    @property
    def value(self) -> Form:
        return add(self.size, self.error)

    @property
    def nothing(self) -> bool:
        return not (self.low or self.high or self.size)


@dataclass(frozen=True)
class Condition:
    """Nothing overflows at a node: a magnitude below 2^below does not, and it is at most `most` (None: not known), in
    which `where` tells the error and the size of results so far. `each`: in magnitudes of any element of a plan."""

    node: int
    places: tuple[tuple[int, int], ...]
    below: int
    most: Frozen | None
    where: tuple[tuple[Frozen, Frozen], ...] = ()
    each: bool = False

    def bounded(self, factor: Form, form: Form) -> Condition:
        return replace(self, where=(*self.where, (frozen(factor), frozen(form))))


@dataclass(frozen=True)
class Goal:
    """The statement of a theorem: `kind`, and its parts; those that a kind does not use are empty."""

    kind: str
    node: int = -1
    places: tuple[tuple[int, int], ...] = ()
    facts: Facts | None = None
    assuming: frozenset[tuple[Any, frozenset[int]]] = frozenset()  # a level and formats; ("kept", a rounding)
    provided: frozenset[Condition] = frozenset()
    parts: Mapping[str, Any] = field(default_factory=dict)


def read_facts(given: Mapping[str, Any]) -> Facts:
    forms = {name: read_form(given[name]) for name in ("low", "high", "size", "weight") if given[name] is not None}
    numbers = {name: given[name] for name in ("least", "digits", "grid", "bits", "most")}
    need(all(value is None or type(value) is int for value in numbers.values()), "a number is not a whole number")
    head = None if given["head"] is None else Fraction(given["head"])
    interval = None if given["interval"] is None else tuple(map(Fraction, given["interval"]))
    known = None if given["formats"] is None else frozenset(given["formats"])
    return Facts(**forms, **numbers, head=head, interval=interval, formats=known)  # type: ignore[arg-type]


def read_condition(given: Mapping[str, Any]) -> Condition:
    need(type(given["each"]) is bool, "whether magnitudes are those of any element is not said")
    places = tuple((level, place) for level, place in given["places"])
    largest = None if given["most"] is None else frozen(read_form(given["most"]))
    found = Condition(given["node"], places, given["below"], largest, each=given["each"])
    for factor, form in given["where"]:
        found = found.bounded(single(factor[0], factor[1]), read_form(form))
    return found


def read_goal(given: Mapping[str, Any], conditions: Sequence[Condition] = ()) -> Goal:
    """`conditions`: those of the document, which goals have by number."""
    kind = given["is"]
    if kind == "Summed":
        parts = {name: given[name] for name in ("step", "growth", "loops")}
        levels = frozenset((level, frozenset(formats)) for level, formats in given["assuming"])
        limits = frozenset(conditions[number] for number in given["limits"])
        return Goal(kind, facts=read_facts(given["facts"]), assuming=levels, provided=limits, parts=parts)
    if kind != "Enclosed":
        parts = {name: value for name, value in given.items() if name not in ("is", "provided")}
        return Goal(kind, provided=_read_provided(given, conditions), parts=parts)
    assuming = frozenset((("kept", one["node"]), frozenset[int]()) if "node" in one else
                         (one["level"], frozenset(one["formats"])) for one in given["assuming"])  # fmt: skip
    places = tuple((level, place) for level, place in given["places"])
    return Goal(kind, given["node"], places, read_facts(given["facts"]), assuming, _read_provided(given, conditions))


def _read_provided(given: Mapping[str, Any], conditions: Sequence[Condition]) -> frozenset[Condition]:
    return frozenset(conditions[number] for number in given.get("provided", ()))
