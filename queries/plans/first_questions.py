"""What a library is asked before its plans are looked for: whether it multiplies matrices, and whether all rows and
columns are computed alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.probe import ADDED
from mmaprobe.queries.plans.dependence import Multiply
from mmaprobe.queries.plans.recorded import random_patterns
from mmaprobe.queries.plans.zero_points import is_quantised
from mmaprobe.smtmodel.arithmetic.display import decimal_text, number_text
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.signature import Signature

SEED = 1  # of the random factors
ZERO_POINT = (
    "products with 0 are 0 in every plan, but not where {factor} has a zero point, as quantised numbers may, nor where "
    "something that depends on {other} is added: ask the function with a zero point of 0"
)
OWN_FACTORS = "no plan has a factor for each {line}, as weights that are quantised line by line have"


@dataclass(frozen=True)
class FirstQuestions:
    """The first products that a library is asked for. `shape`: M, N and K."""

    asked: Signature
    multiply: Multiply
    shape: tuple[int, int, int]

    def check_zeros(self) -> int:
        """The integer that zeros give in every element, where quantised results may have it added; else 0. Raises
        IncompleteError if a product of zeros, or with zeros for one factor, is neither zero nor this integer."""
        (a, b), zero_point = self._random(), 0
        for left, right, zeros, others in (
            (np.zeros_like(a), np.zeros_like(b), "", ""),
            (np.zeros_like(a), b, "A", "B"),
            (a, np.zeros_like(b), "B", "A"),
        ):
            d = self._product(left, right)
            zero_point = zero_point if zeros else self._zero_point_of(d)
            if len(places := np.argwhere(self._not_zero(d, zero_point))):
                row, column = map(int, places[0])
                value = number_text(int(d[row, column]), self.asked.d)
                if not zeros:
                    raise IncompleteError(f"zeros give {value} in column {column}: {ADDED}")
                given = (
                    f"zeros for {zeros}, beside other numbers for {others}, give {value} in row {row}, column {column}"
                )
                raise IncompleteError(f"{given}: {ZERO_POINT.format(factor=zeros, other=others)}")
        return zero_point

    def unlike(self) -> str:
        """Two rows or columns of the same factors with other results, in words; empty if all are alike. The factors are
        such that every sum of their products is exact, in any order."""
        a, b = self._random()
        for name, option, left, right in (
            ("column", "M,1", a, np.repeat(b[:, :1], b.shape[1], axis=1)),
            ("row", "1,N", np.repeat(a[:1], a.shape[0], axis=0), b),
        ):
            d = self._product(left, right)
            lines = d if name == "row" else d.T
            if len(places := np.argwhere(lines != lines[0])):
                other, at = map(int, places[0])
                one, another = (decimal_text(int(lines[line, at]), self.asked.d) for line in (0, other))
                apart = f"the same factors give {one} in {name} 0 and {another} in {name} {other}"
                return f"{apart}: {OWN_FACTORS.format(line=name)}; --shape {option} asks one {name} alone"
        return ""

    def _zero_point_of(self, d: Matrix) -> int:
        """The zero point of the results of zeros: of quantised results, narrower than sums, the number that all are."""
        fmt, first = self.asked.d, int(d[0, 0])
        alike = is_quantised(self.asked) and (d == first).all()
        return first - ((first & fmt.sign_bit) << 1) if alike else 0

    def _not_zero(self, d: Matrix, zero_point: int) -> NDArray[np.bool_]:
        """Which results are neither zero nor, of quantised results, the zero point."""
        zero = zero_point % (1 << self.asked.d.width)
        minus = self.asked.d.sign_bit if self.asked.d.has_negative_zero else zero
        return np.asarray((d != zero) & (d != minus))

    def _random(self) -> tuple[Matrix, Matrix]:
        """Random factors: integers of all sizes, or the numbers -1, 0 and 1 of a floating-point format."""
        rows, columns, length = self.shape
        rng = np.random.default_rng(SEED)

        def numbers(fmt: Format, size: tuple[int, int]) -> Matrix:
            if fmt.is_integer:
                return random_patterns(rng, fmt, size, 0, 0)
            return from_numbers(rng.integers(-1 if fmt.signed else 0, 2, size).astype(np.float32), fmt)

        return numbers(self.asked.a, (rows, length)), numbers(self.asked.b, (length, columns))

    def _product(self, a: Matrix, b: Matrix) -> Matrix:
        return self.multiply(a, b, np.zeros((a.shape[0], b.shape[1]), kind_of(self.asked.c)))
