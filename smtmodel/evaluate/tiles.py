"""Evaluation of a unit on a tile of outputs, and of elementwise expressions on arrays, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.evaluate.model import Model, evaluate, pattern_of
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.operand import FACTORS, OPERANDS

Matrix = NDArray[Any]

COLUMNS = 256  # columns that are evaluated at a time


def kind_of(fmt: Format) -> Any:
    """The unsigned integer type that holds a format's patterns."""
    return getattr(np, f"uint{fmt.word}")


def is_wider(patterns: Matrix, fmt: Format) -> bool:
    """Whether some pattern has more bits than a format."""
    return bool(patterns.size and patterns.dtype.itemsize * 8 > fmt.width and int(patterns.max()) >> fmt.width)


def numpy_tile(model: Model, a: Matrix, b: Matrix, c: Matrix, *scales: Matrix) -> Matrix:
    """d (rows x columns) for patterns a (rows x length), b (length x columns), c (rows x columns), and, if the model
    takes these, scale factors (rows x scales, scales x columns). Rows and columns are broadcast, so that each element
    is decoded once."""
    out = np.empty(c.shape, dtype=np.uint64)
    sides = list(zip((*OPERANDS[:2], *FACTORS), (a, b, *scales), strict=False))

    def lanes(side: Matrix, fmt: Format) -> Any:
        return ARRAYS.lanes(side.astype(np.uint64), fmt.width)

    for start in range(0, c.shape[1], COLUMNS):
        part = slice(start, start + COLUMNS)
        left, right, *factors = (
            [lanes(side[:, k : k + 1], model.formats[row.name]) for k in range(side.shape[1])] if row.of == "row" else
            [lanes(side[k : k + 1, part], model.formats[row.name]) for k in range(side.shape[0])]
            for row, side in sides
        )  # fmt: skip
        with np.errstate(over="ignore"):
            result = evaluate(model, left, right, lanes(c[:, part], model.c), *factors, traced=False).d
        out[:, part] = result.node
    return out


@dataclass(frozen=True)
class Elementwise:
    """An expression over `Given` nodes whose last node is a rounding: a function of arrays of patterns."""

    node: Node
    formats: tuple[Format, ...]

    def __call__(self, *patterns: Bits) -> Sequence[Bits]:
        """The result for bit vectors of any carrier."""
        return (pattern_of(self.node, *patterns),)

    def of(self, arrays: Sequence[Matrix]) -> Matrix:
        """The results for arrays of one shape, by NumPy."""
        widths = tuple(fmt.width for fmt in self.formats)
        with np.errstate(over="ignore"):
            patterns = [ARRAYS.lanes(x, width) for x, width in zip(arrays, widths, strict=True)]
            (elements,) = ARRAYS.formed(self, self, *patterns)
        return np.broadcast_to(elements.node, arrays[0].shape)


def product_shape(a: Matrix, b: Matrix, least: int = 0) -> tuple[int, int]:
    """The numbers of rows and columns of A * B. Raises ParameterError if A and B cannot be multiplied, or K is below
    `least`."""
    shapes = f"shapes {a.shape} and {b.shape} cannot be multiplied"
    if a.ndim != 2 or b.ndim != 2:
        raise ParameterError("A and B", f"{shapes}: each needs rows and columns")
    if a.shape[1] != b.shape[0]:
        turned = "; B transposed has as many rows (B.T)" if a.shape[1] == b.shape[1] else ""
        raise ParameterError("A and B", f"{shapes}: A has {a.shape[1]} columns, and B {b.shape[0]} rows{turned}")
    if a.shape[1] < least:
        raise ParameterError("A and B", f"{shapes}: K = {a.shape[1]}, without a product")
    return a.shape[0], b.shape[1]
