"""The operands of a unit, one row each: what a unit file, a vector, an evaluation and a device know of them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Operand:
    """`name`: in steps, in vectors, and for devices; `per`: what has one element (product, block of products, or the
    whole sum); `key`: of its format, in a unit file. An operand of the whole sum has no index; in a vector it is a
    pattern, not a list."""

    name: str
    per: Literal["product", "block", "sum"]
    key: str

    @property
    def is_factor(self) -> bool:
        """Whether it is a scale factor of several products: its format has no sign, and it keeps subnormals."""
        return self.per == "block"

    @property
    def called(self) -> str:
        """Its name in messages, where it is missing or superfluous."""
        return "scale factors" if self.is_factor else self.name

    def count(self, length: int, blocks: int) -> int:
        """The number of its elements for `length` products in `blocks` blocks."""
        return {"product": length, "block": blocks, "sum": 1}[self.per]

    def at(self, place: int) -> str:
        """The name of the element at a place."""
        return self.name if self.per == "sum" else f"{self.name}{place}"


#: in the order in which a row gives them; every unit has formats of the first three
OPERANDS = (
    Operand("a", "product", "a"),
    Operand("b", "product", "b"),
    Operand("c", "sum", "c"),
    Operand("scale_a", "block", "scale"),
    Operand("scale_b", "block", "scale"),
)
NAMED = {row.name: row for row in OPERANDS}
FURTHER = OPERANDS[3:]  # operands that a unit has if it has a format of them
KEYS = tuple(dict.fromkeys(row.key for row in OPERANDS))
READ = tuple(row.name for row in OPERANDS if not row.is_factor)  # operands whose subnormals and zeros a unit may change


def counts_of(given: Container[str], length: int, blocks: int) -> tuple[int, ...]:
    """The number of elements of each operand that is given, in the order of OPERANDS, for `length` products in `blocks`
    blocks."""
    return tuple(row.count(length, blocks) if row.name in given else 0 for row in OPERANDS)
