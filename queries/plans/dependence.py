"""Asks a function that multiplies matrices whether a result depends on the shape of its product: on M, N, the number of
stacked products, or the places of its row and its column.

The rows of A are copies of a few rows, and the columns of B copies of a few columns: results of the same row and column
are compared in every place of every shape. From two results that differ, the products that the difference does not need
are then left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mmaprobe.queries.compare.observed import is_nan
from mmaprobe.queries.plans.invariant import At, Fixed
from mmaprobe.queries.plans.recorded import random_patterns
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import IncompleteError, MmaprobeError
from mmaprobe.smtmodel.base.wording import runs_of
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, type_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.signature import Signature

OWN = 3  # the number of rows, and of columns, that are repeated: a prime, no period of a kernel's blocks
SHAPES, DRAWN = 72, 24  # the most shapes of each K, and the number of shapes drawn at random
SIDES = (1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 64, 65, 128, 256, 512, 1024, 2048, 4096)
LENGTHS = 10  # the number of K that are asked, apart from the last K but one
ALIKE = 64  # the most values of M, and of N, that are grouped by the bits of their results
STACKS = (1, 2, 3, 8)
SHRINKING = 600  # the most matrix products that are asked to leave out products of a result
SEED = 1

#: gives the patterns of D for those of A, B and C, each a matrix or a stack of matrices
Multiply = Callable[[Matrix, Matrix, Matrix], Matrix]


@dataclass(frozen=True)
class PlacedResult:
    """A result. `stack`: the number of products that were computed at once, 0 without a stack; `block`: the number of
    the result's product in the stack."""

    at: At
    stack: int
    block: int
    d: int

    def __str__(self) -> str:
        return f"{self.at}" + (f", product {self.block} of {self.stack}" if self.stack else "")


def _size(result: PlacedResult) -> tuple[int, ...]:
    """The sizes of an example, the most important first: examples with smaller sizes are preferred."""
    shape = result.at.shape
    return result.stack, shape.rows * shape.columns, result.at.row + result.at.column + result.block


@dataclass(frozen=True)
class Depends:
    """Two results of the same row `a` and the same column `b` that differ, also when asked again. `filled`: whether the
    other rows and columns hold random numbers, as the results do not differ if these hold zeros."""

    one: PlacedResult
    other: PlacedResult
    a: tuple[int, ...]
    b: tuple[int, ...]
    filled: bool


@dataclass
class DependenceFindings:
    """The findings about a function. `lengths`: the K asked; `products`: the number of products computed; `compared`:
    the number of results compared; `alike`: at the K of the difference, with the largest other side, the values of M
    and of N that give row 0, or column 0, the same bits; `unstacked`: why stacks were not asked, None if they were."""

    lengths: list[int] = field(default_factory=list)
    products: int = 0
    compared: int = 0
    unstacked: str | None = None
    depends: Depends | None = None
    alike: dict[str, list[list[tuple[int, int]]]] = field(default_factory=dict)
    error: str | None = None


class Dependence:
    """Compares the results of one function. `multiply`: gives the patterns of D for those of A, B and C; `top`: the
    largest shape; `fixed`: the side that is the same in compared shapes. After `deadline` (of time.monotonic) nothing
    more is asked."""

    def __init__(
        self, asked: Signature, multiply: Multiply, top: Shape, fixed: Fixed | None = None,
        deadline: float | None = None, progress: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self.asked, self.multiply, self.top, self.fixed = asked, multiply, top, fixed
        self.deadline, self.progress = deadline, progress
        self.rng = np.random.default_rng(SEED)
        self.findings = DependenceFindings()

    def run(self) -> DependenceFindings:
        """Ask until two results differ, or all shapes are asked."""
        try:
            self._stacks()
            for length in self._lengths():
                self.findings.lengths.append(length)
                if (pair := self._compared(length)) is not None:
                    self.findings.depends = self._smaller(*pair)
                    self._alike(*pair[2:])
                    break
        except IncompleteError as error:
            self.findings.error = str(error)
        return self.findings

    def _lengths(self) -> Iterator[int]:
        """Some K, the smallest first: a difference at a smaller K has fewer products."""
        top = self.top.length
        yield from sorted({max(1, round(top ** ((n + 1) / LENGTHS))) for n in range(LENGTHS)} | {max(1, top - 1)})

    def _stacks(self) -> None:
        """Ask the function for a stack; if it refuses, note the reason."""
        try:
            self._product(*(np.zeros(side, kind_of(fmt)) for side, fmt in
                            (((2, 1, 1), self.asked.a), ((2, 1, 1), self.asked.b))))  # fmt: skip
        except MmaprobeError as error:
            self.findings.unstacked = str(error).splitlines()[0]

    def _shapes(self, length: int) -> Iterator[tuple[Shape, int]]:
        """The shapes of a K, each with the number of stacked products (0: no stack): usual and random sizes of the
        sides."""
        rows, columns = ([side for side in (*SIDES, top - 1, top) if 0 < side <= top]
                         for top in (self.top.rows, self.top.columns))  # fmt: skip
        pairs = dict.fromkeys([(1, 1), *((m, columns[-1]) for m in rows), *((rows[-1], n) for n in columns)])
        drawn = self.rng.integers(1, (self.top.rows + 1, self.top.columns + 1), (DRAWN, 2)).tolist()
        both = dict.fromkeys((*pairs, *map(tuple, drawn), *((m, n) for m in rows[:8] for n in columns[:3])))
        for number, (m, n) in enumerate(list(both)[:SHAPES]):
            yield Shape(m, n, length), 0
            if self.findings.unstacked is None and number % 4 == 0:
                yield Shape(m, n, length), STACKS[number // 4 % len(STACKS)]

    def _compared(self, length: int) -> tuple[PlacedResult, PlacedResult, Matrix, Matrix] | None:
        """Two different results of one row and one column, in the smallest shapes, and this row and column; None if no
        results differ."""
        a, b = self._drawn(length)
        seen: dict[tuple[int, ...], dict[int, PlacedResult]] = {}
        for number, (shape, stack) in enumerate(self._shapes(length)):
            self.progress(f"K = {length}, {shape}, {number + 1}")
            x, y = np.arange(shape.rows) % OWN, np.arange(shape.columns) % OWN
            sides = [np.tile(side, (stack or 1, 1, 1)) for side in (a[x], b[y].T)]
            d = self._product(*(sides if stack else (side[0] for side in sides)))
            d = d.reshape(stack or 1, shape.rows, shape.columns)
            self.findings.compared += d.size
            # a fixed side has one matrix in all shapes: its rows, or columns, are compared in their own places alone
            down, along = (1 if self.fixed == "M" else OWN), (1 if self.fixed == "N" else OWN)
            rows, columns = (side if step == 1 else min(OWN, side) for side, step in
                             ((shape.rows, down), (shape.columns, along)))  # fmt: skip
            kept = {None: 0, "M": shape.rows, "N": shape.columns}[self.fixed]
            for i, j in np.ndindex(rows, columns):
                same = d[:, i : i + 1 if down == 1 else None : OWN, j : j + 1 if along == 1 else None : OWN]
                known = seen.setdefault((i, j, kept), {})
                for pattern in [same.flat[0]] if (same == same.flat[0]).all() else np.unique(same):
                    block, row, column = (int(where[0]) for where in np.nonzero(same == pattern))
                    one = PlacedResult(At(shape, i + row * OWN, j + column * OWN), stack, block, int(pattern))
                    known[one.d] = min(known.get(one.d, one), one, key=_size)
        pairs: list[tuple[PlacedResult, PlacedResult, tuple[int, ...]]] = []
        for place, known in seen.items():
            some = sorted((one for one in known.values() if not is_nan(one.d, self.asked.d)), key=_size)
            pairs += [(some[0], some[1], place)] if len(some) > 1 else []
        if not pairs:
            return None
        one, other, place = min(pairs, key=lambda pair: (_size(pair[0]), _size(pair[1])))
        return one, other, a[place[0] % OWN], b[place[1] % OWN]

    def _drawn(self, length: int) -> tuple[Matrix, Matrix]:
        """OWN rows (OWN x K) and as many columns (OWN x K). The products of all columns but one come in pairs whose
        exact sum is zero, if b has negative numbers: the results then consist of rounding errors, which a narrow format
        of d otherwise hides."""
        a, b = self._vectors(OWN, length, self.asked.a), self._vectors(OWN, length, self.asked.b)
        order, half = self.rng.permutation(length), length // 2
        one, other = order[:half], order[half : 2 * half]
        a[:, other] = a[:, one]
        if length > 1 and self.asked.b.signed:
            b[1:, one], b[1:, other] = with_negatives(b[1:, one], self.asked.b)
            b[1:, order[2 * half :]] = 0
        return a, b

    def _vectors(self, count: int, length: int, fmt: Format) -> Matrix:
        """Random vectors (count x K) with numbers of several sizes, so that the order of a sum shows."""
        return random_patterns(self.rng, fmt, (count, length), -3, 3)

    def _product(self, a: Matrix, b: Matrix) -> Matrix:
        """The patterns of the function's D for A and B, with zeros as C. Raises IncompleteError after the deadline."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise IncompleteError("the time ran out")
        self.findings.products += 1
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)  # NumPy has another kernel for a transposed matrix
        return self.multiply(a, b, np.zeros((*a.shape[:-1], b.shape[-1]), kind_of(self.asked.c)))

    # -- a small example

    def _result(self, result: PlacedResult, a: Matrix, b: Matrix, filled: bool) -> int:
        """The result of a row and a column in the place of `result`; all other rows and columns hold zeros
        or, if `filled`, random numbers."""
        shape, count = result.at.shape, result.stack or 1
        sides = (count, shape.rows, shape.length), (count, shape.length, shape.columns)
        rng = np.random.default_rng(SEED)
        x, y = (
            from_numbers(rng.standard_normal(side).astype(type_of(fmt)), fmt, "nearest_even")
            if filled
            else np.zeros(side, kind_of(fmt))
            for side, fmt in zip(sides, (self.asked.a, self.asked.b), strict=True)
        )
        x[result.block, result.at.row], y[result.block, :, result.at.column] = a, b
        d = self._product(x, y) if result.stack else self._product(x[0], y[0])
        return int(d.reshape(count, shape.rows, shape.columns)[result.block, result.at.row, result.at.column])

    def _results(
        self, one: PlacedResult, other: PlacedResult, a: Matrix, b: Matrix, filled: bool
    ) -> tuple[int, int] | None:
        """The two results; None if they are the same, or if one of them is NaN."""
        both = self._result(one, a, b, filled), self._result(other, a, b, filled)
        return None if both[0] == both[1] or any(is_nan(d, self.asked.d) for d in both) else both

    def _smaller(self, one: PlacedResult, other: PlacedResult, a: Matrix, b: Matrix) -> Depends:
        """The same difference with as few nonzero products as possible. Raises IncompleteError if the function does not
        show the difference again."""
        filled = next((filled for filled in (False, True) if self._results(one, other, a, b, filled)), None)
        if filled is None:
            raise IncompleteError(f"results that differ do not differ when asked again: {one} and {other}")
        end = self.findings.products + SHRINKING
        size = 1 << max(0, (len(a) - 1).bit_length() - 1)
        while size:
            for start in range(0, len(a), size):
                part = slice(start, start + size)
                if self.findings.products > end or not (a[part].any() or b[part].any()):
                    continue
                x, y = a.copy(), b.copy()
                x[part], y[part] = 0, 0
                if self._results(one, other, x, y, filled):
                    a, b = x, y
            size //= 2
        both = self._results(one, other, a, b, filled)
        if both is None:
            raise IncompleteError(f"results that differ do not differ when asked again: {one} and {other}")
        sides = [
            PlacedResult(result.at, result.stack, result.block, d) for result, d in zip((one, other), both, strict=True)
        ]
        return Depends(sides[0], sides[1], tuple(a.tolist()), tuple(b.tolist()), filled)

    def _alike(self, x: Matrix, y: Matrix) -> None:
        """Group the values of M, and those of N, that give row 0, or column 0, the same bits. Row 0 of A is `x` and
        column 0 of B is `y`, whose result depends on the shape."""
        most = {"M": self.top.rows, "N": self.top.columns}
        a, b = (self._vectors(most[side], len(x), fmt) for side, fmt in (("M", self.asked.a), ("N", self.asked.b)))
        a[0], b[0] = x, y
        for side, top in most.items():
            groups: dict[bytes, list[int]] = {}
            for value in range(1, min(top, ALIKE) + 1) if side != self.fixed else ():
                d = self._product(a[:value], b.T) if side == "M" else self._product(a, b[:value].T)
                groups.setdefault((d[0] if side == "M" else d[:, 0]).tobytes(), []).append(value)
            if len(groups) > 1:
                self.findings.alike[side] = [runs_of(values) for values in groups.values()]


def with_negatives(patterns: Matrix, fmt: Format) -> tuple[Matrix, Matrix]:
    """Patterns of a signed format, and those of the negative numbers. The least number in two's complement, whose
    negative the format lacks, is replaced by the largest one; +0 is its own negative where the format has no -0."""
    sign = patterns.dtype.type(fmt.sign_bit)
    if fmt.complement:
        patterns = np.where(patterns == sign, sign - patterns.dtype.type(1), patterns)
        return patterns, (-patterns) & patterns.dtype.type((1 << fmt.width) - 1)
    return patterns, np.where((patterns == 0) & (not fmt.has_negative_zero), patterns, patterns ^ sign)
