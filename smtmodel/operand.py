"""The operands of a unit as a table, which unit files, vectors, evaluations and devices use."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Operand:
    """An operand. `name`: its name in steps, vectors and devices; `per`: whether there is an element for each product,
    for each block of products, or for the whole sum; `key`: the key of its format in a unit file; `of`: the elements of
    a matrix product that share an element: a row, a column, or one alone. An operand of the whole sum has no index; in
    a vector it is a pattern, not a list."""

    name: str
    per: Literal["product", "block", "sum"]
    key: str
    of: Literal["row", "column", "element"] = "element"

    @property
    def is_factor(self) -> bool:
        """Whether the operand is scale factors of several products, with a format without sign, and with subnormals
        kept."""
        return self.per == "block"

    @property
    def is_drawn(self) -> bool:
        """Whether the operand is random bits, which are independent of the other operands."""
        return self.name in ("random", "draws")

    @property
    def moves(self) -> bool:
        """Whether an element moves with its product when products are exchanged; random bits stay with the steps."""
        return self.per == "product" and not self.is_drawn

    @property
    def called(self) -> str:
        """The operand's name in messages."""
        return "scale factors" if self.is_factor else self.name

    def count(self, length: int, blocks: int) -> int:
        """The number of elements for `length` products in `blocks` blocks."""
        return {"product": length, "block": blocks, "sum": 1}[self.per]

    def shape(self, rows: int, columns: int, count: int) -> tuple[int, int]:
        """The shape of the operand's matrix in a matrix product. `count`: the number of elements along K."""
        return {"row": (rows, count), "column": (count, columns), "element": (rows, columns)}[self.of]

    def part(self, matrix: Any, rows: slice, columns: slice) -> Any:
        """The part of an operand's matrix that some rows and columns of a product need."""
        return matrix[{"row": (rows,), "column": (slice(None), columns), "element": (rows, columns)}[self.of]]

    def at(self, place: int) -> str:
        """The name of the element at a place."""
        return self.name if self.per == "sum" else f"{self.name}{place}"


NO_ADDEND = "none"  # in place of the format of c

#: the operands in the order of a row; every unit has a, b and c
OPERANDS = (
    Operand("a", "product", "a", "row"),
    Operand("b", "product", "b", "column"),
    Operand("c", "sum", "c"),
    Operand("scale_a", "block", "scale", "row"),
    Operand("scale_b", "block", "scale", "column"),
    Operand("random", "sum", "random"),
    Operand("draws", "product", "draws"),
)
NAMED = {row.name: row for row in OPERANDS}
FURTHER = OPERANDS[3:]  # operands that a unit has if it has a format of them
FACTORS = tuple(row for row in OPERANDS if row.is_factor)  # operands of matrix products besides A, B and C
KEYS = tuple(dict.fromkeys(row.key for row in OPERANDS))
#: random bits of stochastic rounding, as unsigned integers: for a single rounding, and for each step that rounds
RANDOM, DRAWS = NAMED["random"], NAMED["draws"]
DRAWN = tuple(row.name for row in OPERANDS if row.is_drawn)
#: operands whose subnormals and zeros a unit may change
READ = tuple(row.name for row in OPERANDS if not row.is_factor and not row.is_drawn)


def counts_of(given: Container[str], length: int, blocks: int) -> tuple[int, ...]:
    """The number of elements of each operand, in the order of OPERANDS, for `length` products in `blocks` blocks; 0 for
    operands that are not in `given`."""
    return tuple(row.count(length, blocks) if row.name in given else 0 for row in OPERANDS)
