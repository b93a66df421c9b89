"""The operands of a unit, one row each: what a unit file, a vector, an evaluation and a device know of them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Operand:
    """`name`: in steps, in vectors, and in what a device is sent; `per`: of what there is one; `key`: of its format, in
    a unit file; `of`: which elements of a matrix product share it. One for the whole sum has no index, and is a
    pattern, not a list of them."""

    name: str
    per: Literal["product", "block", "sum"]
    key: str
    of: Literal["row", "column", "element"] = "element"

    @property
    def is_factor(self) -> bool:
        """Whether it is a scale factor, of several products: its format has no sign, and it is read as it is."""
        return self.per == "block"

    @property
    def called(self) -> str:
        """What it is called where it is missing or too much."""
        return "scale factors" if self.is_factor else self.name

    def count(self, length: int, blocks: int) -> int:
        """How many there are for `length` products in `blocks` blocks."""
        return {"product": length, "block": blocks, "sum": 1}[self.per]

    def shape(self, rows: int, columns: int, count: int) -> tuple[int, int]:
        """That of its matrix in a product; `count`: how many there are along K."""
        return {"row": (rows, count), "column": (count, columns), "element": (rows, columns)}[self.of]

    def part(self, matrix: Any, rows: slice, columns: slice) -> Any:
        """What some rows and columns of a product need of its matrix."""
        return matrix[{"row": (rows,), "column": (slice(None), columns), "element": (rows, columns)}[self.of]]

    def at(self, place: int) -> str:
        """The name of one of them."""
        return self.name if self.per == "sum" else f"{self.name}{place}"


#: in the order of a row; the first three, which every unit has formats of, come first
OPERANDS = (
    Operand("a", "product", "a", "row"),
    Operand("b", "product", "b", "column"),
    Operand("c", "sum", "c"),
    Operand("scale_a", "block", "scale", "row"),
    Operand("scale_b", "block", "scale", "column"),
)
NAMED = {row.name: row for row in OPERANDS}
FURTHER = OPERANDS[3:]  # which a unit has if it has a format of them
FACTORS = tuple(row for row in OPERANDS if row.is_factor)  # which matrix products take beside A, B and C
KEYS = tuple(dict.fromkeys(row.key for row in OPERANDS))
READ = tuple(row.name for row in OPERANDS if not row.is_factor)  # whose subnormals and zeros a unit may read otherwise


def counts_of(given: Container[str], length: int, blocks: int) -> tuple[int, ...]:
    """How many there are of each operand for `length` products in `blocks` blocks, in their order; none of those that
    are not given."""
    return tuple(row.count(length, blocks) if row.name in given else 0 for row in OPERANDS)
