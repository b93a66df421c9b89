"""Places in an operand, as functions of the variables of the loops around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Index:
    """A place in an operand: `offset` plus, for each (level, factor) of `factors`, factor times the level's loop
    variable."""

    offset: int = 0
    factors: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(sorted((k, x) for k, x in self.factors if x)))

    def plus(self, other: Index, times: int = 1) -> Index:
        """The sum of this place and `times` the other one."""
        factors = dict(self.factors)
        for level, factor in other.factors:
            factors[level] = factors.get(level, 0) + times * factor
        return Index(self.offset + times * other.offset, tuple(factors.items()))

    def at(self, places: Mapping[int, int]) -> int:
        """The place for values of the loop variables, by level."""
        place = self.offset
        for level, factor in self.factors:
            place += factor * places[level]
        return place
