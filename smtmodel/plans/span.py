"""A span: the products that a part of a plan adds, in the order in which it adds them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes.index import Index


def moved(index: Index, places: int) -> Index:
    """An index with `places` added."""
    return Index(index.offset + places, index.factors)


def added(one: Index, other: Index, factor: int = 1) -> Index:
    """One index plus `factor` times another index. No loop variable is in both."""
    factors = tuple((level, factor * own) for level, own in other.factors)
    return Index(one.offset + factor * other.offset, one.factors + factors)


@dataclass(frozen=True)
class Span:
    """`groups` groups of `size` products each: product j of group i is at place `start` + i * `pitch` + j * `step`."""

    start: Index
    groups: int
    pitch: int
    size: int
    step: int = 1

    @classmethod
    def of(cls, count: int, start: Index | None = None, step: int = 1) -> Span:
        """`count` products, `step` places apart."""
        return cls(start or Index(), 1, count * step, count, step)

    @property
    def count(self) -> int:
        return self.groups * self.size

    def __post_init__(self) -> None:
        if self.groups > 1 and (self.size == 1 or self.pitch == self.size * self.step):  # the same as one group
            step = self.pitch if self.size == 1 else self.step
            for name, value in (("size", self.count), ("step", step), ("groups", 1)):
                object.__setattr__(self, name, value)
            object.__setattr__(self, "pitch", self.count * step)

    def distance(self, number: int) -> int:
        """The number of places from the first product to the product with this number (from 0)."""
        group, within = divmod(number, self.size)
        return group * self.pitch + within * self.step

    @property
    def places(self) -> list[int]:
        """The places of all products; `start` must not depend on a loop variable."""
        return [self.start.offset + self.distance(number) for number in range(self.count)]

    def scales(self, block: int) -> Index:
        """The place of the first scale factors; `block` successive products share a pair of factors. Raises
        ParameterError for products that do not begin with a block, or do not follow one another."""
        start = self.start
        parts = (start.offset, *(factor for _, factor in start.factors))
        if (self.step != 1 and self.count > 1) or self.groups > 1 or any(part % block for part in parts):
            raise ParameterError("scale factors", f"a tile does not begin where {block} products share a pair of them")
        return Index(parts[0] // block, tuple((level, factor // block) for level, factor in start.factors))

    def cut(self, count: int) -> tuple[Span | None, Span | None]:
        """The first `count` products, and the rest; None stands for no products. Raises ParameterError where the cut
        would divide one of several groups."""
        if not 0 < count < self.count:
            return (self, None) if count else (None, self)
        if self.groups == 1:
            rest = Span.of(self.size - count, moved(self.start, count * self.step), self.step)
            return Span.of(count, self.start, self.step), rest
        groups, part = divmod(count, self.size)
        if part:
            raise self.unfit(count)
        rest = replace(self, start=moved(self.start, groups * self.pitch), groups=self.groups - groups)
        return replace(self, groups=groups), rest

    def loops(self, count: int) -> tuple[Span, tuple[tuple[int, int], ...]]:
        """The first `count` products, and the loops (number of turns, places from turn to turn), the outer loop first,
        that repeat these over all products of the span. `count` divides the span's number of products. Raises
        ParameterError where neither of `size` and `count` divides the other."""
        if self.size % count == 0:
            inner, step = self.size // count, count * self.step
            return Span.of(count, self.start, self.step), ((self.groups, self.pitch), (inner, step))
        if count % self.size == 0:
            groups = count // self.size
            return replace(self, groups=groups), ((self.groups // groups, groups * self.pitch),)
        raise self.unfit(count)

    def at(self, variable: Index, distance: int) -> Span:
        """The span moved on by a loop variable times a distance."""
        return replace(self, start=added(self.start, variable, distance))

    def unfit(self, count: int) -> ParameterError:
        return ParameterError(
            "grain", f"runs of {self.size} products and steps of {count} do not fit: one has to divide the other"
        )
