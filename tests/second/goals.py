"""The statements of the theorems of a tree, read from plain data: the goal of each, and the facts about a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.second.magnitudes import Form, add, most, need, read_form

CHAIN = -1


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
class Goal:
    """The statement of a theorem: `kind`, and its parts; those that a kind does not use are empty. `node`: that of a
    unit, or the step of a plan."""

    kind: str
    node: int = -1
    places: tuple[tuple[int, int], ...] = ()
    facts: Facts | None = None
    assuming: frozenset[tuple[Any, frozenset[int]]] = frozenset()  # a level and formats; ("kept", a rounding)
    parts: Mapping[str, Any] = field(default_factory=dict)


def read_facts(given: Mapping[str, Any]) -> Facts:
    forms = {name: read_form(given[name]) for name in ("low", "high", "size", "weight") if given[name] is not None}
    numbers = {name: given[name] for name in ("least", "digits", "grid", "bits")}
    need(all(value is None or type(value) is int for value in numbers.values()), "a number is not a whole number")
    head = None if given["head"] is None else Fraction(given["head"])
    known = None if given["formats"] is None else frozenset(given["formats"])
    return Facts(**forms, **numbers, head=head, formats=known)  # type: ignore[arg-type]


def read_goal(given: Mapping[str, Any]) -> Goal:
    kind = given["is"]
    if kind == "Summed":
        growth = None if given["growth"] is None else Fraction(given["growth"])
        known = frozenset((level, frozenset(formats)) for level, formats in given["assuming"])
        return Goal(kind, given["step"], (), read_facts(given["facts"]), known, {"growth": growth})
    if kind != "Enclosed":
        parts = {name: value for name, value in given.items() if name != "is"}
        return Goal(kind, parts=parts)
    assuming = frozenset((("kept", one["node"]), frozenset[int]()) if "node" in one else
                         (one["level"], frozenset(one["formats"])) for one in given["assuming"])  # fmt: skip
    places = tuple((level, place) for level, place in given["places"])
    return Goal(kind, given["node"], places, read_facts(given["facts"]), assuming)
