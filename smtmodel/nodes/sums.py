"""What every sum of terms has, however it is formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Self

from smtmodel.nodes.node import Node


class Sum(Node):
    """A sum of its operands, and of the terms that each of them stands for."""

    items: tuple[Node, ...]

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.items

    @property
    def bits_of_terms(self) -> tuple[int, ...]:
        """The bits kept of each of its terms below the largest exponent, in their order; none where all are."""
        return ()

    @property
    def raises_of_terms(self) -> tuple[int, ...]:
        """How much higher than its own exponent each of its terms counts in the alignment, in their order."""
        return (0,) * len(self.bits_of_terms)

    def of_terms(self, terms: Sequence[tuple[int, Node]]) -> Self:
        """The same sum of other terms, each with the position of the operand here whose parameters it has."""
        names = [item.name for item in fields(self) if isinstance(getattr(self, item.name), tuple)]  # type: ignore[arg-type]
        changed = {name: tuple(given[at] for at, _ in terms) for name in names if (given := getattr(self, name))}
        return replace(self, **{**changed, "items": tuple(term for _, term in terms)})  # type: ignore[type-var]

    def key_of(self, position: int) -> tuple[str, ...]:
        """What goes with the operand at a position, itself apart."""
        values = (getattr(self, item.name) for item in fields(self) if item.name != "items")  # type: ignore[arg-type]
        return tuple(str(given[position]) for given in values if isinstance(given, tuple) and given)

    def each(self, given: int | tuple[int | None, ...] | None, position: int) -> int | None:
        """The value of a parameter for the operand at a position, whether one holds for all or each has its own."""
        return given if not isinstance(given, tuple) else given[position] if given else None

    def by_term(self, given: int | tuple[int, ...]) -> tuple[int, ...]:
        """The value of a parameter for each term."""
        each = [self.each(given, position) or 0 for position in range(len(self.items))]
        return tuple(value for item, value in zip(self.items, each, strict=True) for _ in range(item.count))
