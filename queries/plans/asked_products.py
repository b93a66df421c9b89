"""The matrix products that are asked of a library when its plans are sought: which shapes are allowed, and numbers that
show the order of a sum, its roundings and the steps after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.plans.dependence import Multiply, with_negatives
from mmaprobe.queries.plans.first_questions import FirstQuestions
from mmaprobe.queries.plans.recorded import Sample, near_ends, random_integers, random_patterns
from mmaprobe.queries.plans.rules import Feature, Shape
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.signature import Signature

LOOKED = 10  # rows, and columns, recomputed of each result: the first, the last and some between
ROWS = 8  # rows of the first products, at least where there are so many
LEAST = 40  # elements recomputed of each shape; a small shape is multiplied several times
TILE = 16  # products of one use of a matrix unit, or a multiple of them
SMALL = 32  # powers of two by which an addend may be smaller than the sum of the products
TIED = 8  # the exponent of sums half way between two results
DEEP = 32  # powers of two by which a product that decides may be smaller than half a unit of these results
CHOICES = 1 << 17  # numbers among which a c, or the sums, that distinguish plans are sought
POOL = 1 << 20  # the most random numbers of a matrix; a larger matrix repeats them


class AskedProducts:
    """Products asked of one library, with random numbers of `seed`. `multiply`: gives the patterns of D for those of A,
    B and C (zeros if the library takes no C); `top`: the largest shape; `least`: the smallest M, N and K; `multiple`: a
    number of which M, N and K are multiples. Every product is returned at some rows and columns of D, as a Sample of
    one product. Raises ParameterError if no shape is allowed."""

    def __init__(
        self, asked: Signature, multiply: Multiply, top: Shape, least: tuple[int, int, int], multiple: int, seed: int
    ) -> None:  # fmt: skip
        self.asked, self.multiply, self.multiple = asked, multiply, multiple
        self.least = tuple(-(-side // multiple) * multiple for side in least)
        self.most = tuple(side - side % multiple for side in top.sides)
        if any(low > high for low, high in zip(self.least, self.most, strict=True)):
            raise ParameterError("--multiple", f"no shape up to {top} has sides that are multiples of {multiple}")
        self.top = Shape(*self.most)
        self.rng = np.random.default_rng(seed)

    @cached_property
    def first(self) -> FirstQuestions:
        """What is asked first, of small products."""
        height = min(self.top.rows, max(self.least[0], -(-ROWS // self.multiple) * self.multiple))
        length = min(self.top.length, max(self.least[2], TILE))
        return FirstQuestions(self.asked, self.multiply, (height, self.top.columns, length))

    def sample(self, shape: Shape) -> tuple[Sample, NDArray[np.int64]]:
        """Several matrix products of one shape, and the rows and columns (n x 2) of the elements to compare."""
        rows, columns = self.places(shape.rows), self.places(shape.columns)
        times = -(-LEAST // (len(rows) * len(columns)))
        parts = [self.drawn(shape, rows, columns, cancels) for _ in range(times) for cancels in (False, True)]
        return Sample.joined(parts), crossed(rows, columns)

    def drawn(
        self, shape: Shape, rows: NDArray[np.int64], columns: NDArray[np.int64], cancels: bool,
        chosen: Callable[[Matrix, Matrix, Matrix], Matrix] | None = None,
        powers: Sequence[tuple[int, int]] | None = None,
    ) -> Sample:  # fmt: skip
        """One product of random matrices: A, B, C and D at some rows and columns. With `cancels`, products come in
        pairs whose exact sum is zero, and c is small: the result then consists of rounding errors, which a narrow
        format of d otherwise hides, and shows the step at which c is added; of integers, which are summed without
        error, all products of an element are large and have one sign instead. `chosen`: the function that chooses c at
        these rows and columns from A, B and a random c. `powers`: other powers of two for the sizes of A, B and C."""
        sizes = (shape.rows, shape.length), (shape.length, shape.columns), (shape.rows, shape.columns)
        formats, spread = (self.asked.a, self.asked.b, self.asked.c), 5 if cancels else 2
        powers = powers or [(-spread, spread), (-spread, spread), (-SMALL, 0) if cancels else (-spread, spread)]
        a, b, c = (self.patterns(*each) for each in zip(formats, sizes, powers, strict=True))
        if self.asked.of_integers:
            a, b, positive = self._integers(shape, large=cancels)
            if cancels and self.asked.c.is_integer:  # most sums are beyond an end, or near it
                c = near_ends(self.rng, self.asked.c, positive ^ (self.rng.integers(0, 4, c.shape) > 0))
        elif cancels and self.asked.b.signed:
            order = self.rng.permutation(shape.length)
            half = shape.length // 2
            one, other, rest = order[:half], order[half : 2 * half], order[2 * half :]
            a[:, other] = a[:, one]
            b[one], b[other] = with_negatives(b[one], self.asked.b)
            b[rest] = 0
        c, at = c if self.asked.addend else np.zeros_like(c), np.ix_(rows, columns)
        if chosen is not None:
            c[at] = chosen(a[rows], b[:, columns], c[at])
        return self._asked(a, b, c, rows, columns)

    def _integers(self, shape: Shape, *, large: bool) -> tuple[Matrix, Matrix, NDArray[np.bool_]]:
        """Random integers as A and B: of as many bits in all of a row, or column; or, with `large`, near one end of the
        format, in half of the rows near the other end from some place on; and, for each element, whether its first
        products are positive then."""
        ends, places = ((shape.rows, 1), (1, shape.columns)), np.arange(shape.length)
        rows, columns = (self.rng.integers(0, 2, size) > 0 for size in ends)
        turned = places >= self.rng.integers(1, 2 * shape.length + 1, ends[0])

        def side(fmt: Format, least: NDArray[np.bool_], size: tuple[int, int]) -> Matrix:
            if large:
                return near_ends(self.rng, fmt, least)
            return random_integers(self.rng, fmt, least.shape, self.rng.integers(1, fmt.width + 1, size))

        a = side(self.asked.a, rows ^ turned, ends[0])
        b = side(self.asked.b, np.broadcast_to(columns, (shape.length, shape.columns)), ends[1])
        return a, b, (rows & self.asked.a.signed) == (columns & self.asked.b.signed)

    def tied(self, shape: Shape, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Sample:
        """A, B, C and D at some rows and columns of a product whose sums lie half way between two numbers of the format
        of d, but for a far smaller c or, without c, a far smaller product. Two roundings after the sum then often give
        another number than one."""
        asked, sizes = self.asked, (shape.rows, shape.columns)
        top = min(TIED, asked.b.emax - 1, asked.d.emax - 2)
        half = top - asked.d.fraction - 1  # the exponent of half a unit in the last place of the sums
        bits = min(asked.a.fraction, asked.d.fraction)
        a, b = np.zeros((shape.rows, shape.length)), np.zeros((shape.length, shape.columns))
        a[:, 0], b[0] = 1 + self.rng.integers(0, 1 << bits, shape.rows) / (1 << bits), 2.0**top
        a[:, 1:2], b[1:2] = 2.0 ** (half // 2), 2.0 ** (half - half // 2)
        least = asked.c.unit if asked.addend else max(asked.a.unit + asked.b.unit, half - DEEP)
        below = self.rng.integers(1, max(2, half - least + 1), sizes)
        c = np.where(self.rng.integers(0, 2, sizes), 1, -1) * 2.0 ** (half - below)
        if not asked.addend:
            b[2:3] = 2.0 ** max(asked.b.unit, least // 2)
            a[:, 2:3], c = c[:, :1] / b[2:3, :1], np.zeros(sizes)
        sides = ((a, asked.a), (b, asked.b), (c, asked.c))
        x, y, z = (from_numbers(side, fmt, "toward_zero").astype(kind_of(fmt)) for side, fmt in sides)
        return self._asked(x, y, z, rows, columns)

    def near_smallest(self, shape: Shape, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Sample:
        """A product in which the numbers of A, and so the products, are near the smallest normal ones."""
        low = self.asked.a.emin
        powers = (low - self.asked.a.fraction, low + 2), (0, SMALL // 4), (low - self.asked.a.fraction, low + 2)
        return self.drawn(shape, rows, columns, False, powers=powers)

    def sums(self, shape: Shape) -> NDArray[np.int64]:
        """Sums that `of_sums` can make, small ones and random ones."""
        places = shape.length - 1
        top = self._base * int(self.asked.a.most) * places + self._base - 1 if places else int(self.asked.a.most)
        least = -top if self.asked.a.signed else 0
        wide = self.rng.integers(least, top, CHOICES, endpoint=True) >> self.rng.integers(0, top.bit_length(), CHOICES)
        return np.append(np.arange(max(least, -CHOICES), min(top, CHOICES) + 1), wide)

    @property
    def _base(self) -> int:
        """The base of the digits of `of_sums`: a power of two that B holds."""
        return 1 << min(self.asked.a.fraction, self.asked.b.fraction)

    def of_sums(
        self, sums: NDArray[np.int64], shape: Shape, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> Sample:
        """A, B, C (zeros) and D at some rows and columns of a product of integers, with one of some sums in each row,
        chosen at random: its digits to the base that B holds."""
        asked, places, base = self.asked, shape.length - 1, self._base
        chosen = np.resize(self.rng.permutation(sums), (shape.rows, 1))
        a, b = np.zeros((shape.rows, shape.length)), np.full((shape.length, shape.columns), float(base))
        a[:, :1], b[:1] = chosen % base if places else chosen, 1
        a[:, 1:] = chosen // base // max(places, 1) + (np.arange(places) < chosen // base % max(places, 1))
        x, y = (from_numbers(side, fmt).astype(kind_of(fmt)) for side, fmt in ((a, asked.a), (b, asked.b)))
        zeros = np.zeros((shape.rows, shape.columns), kind_of(asked.c))
        return self._asked(x, y, zeros, rows, columns)

    def _asked(self, a: Matrix, b: Matrix, c: Matrix, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Sample:
        """A, B, C and the library's D at some rows and columns."""
        at = np.ix_(rows, columns)
        d = self.multiply(a, b, c)
        return Sample(a[None, rows], b[None, :, columns], c[at][None], d[at][None])

    def places(self, side: int) -> NDArray[np.int64]:
        """At most `LOOKED` places of a side: the first, the last ones and some between."""
        if side <= LOOKED:
            return np.arange(side)
        ends = {0, side - 1, side - 2, side - 1 - int(self.rng.integers(2, 9))}
        between = self.rng.choice(np.setdiff1d(np.arange(side), list(ends)), LOOKED - len(ends), replace=False)
        return np.sort(np.append(between, sorted(ends)))

    def patterns(self, fmt: Format, size: tuple[int, int], powers: tuple[int, int]) -> Matrix:
        """A matrix of random numbers whose exponents lie between two powers of two."""
        drawn, (low, high) = min(math.prod(size), POOL), powers
        return np.resize(random_patterns(self.rng, fmt, (drawn,), low, high), size)

    def shapes(self) -> int:
        """The number of allowed shapes."""
        sides = zip(self.least, self.most, strict=True)
        return math.prod((most - least) // self.multiple + 1 for least, most in sides)

    def random_shape(self, number: int = 3) -> Shape:
        """A random shape from the smallest to the largest; for some values of `number`, with the smallest M or N. About
        half of the sides are drawn log-uniformly."""
        logarithmic = self.rng.random(3) < 0.5
        sides = [
            int(np.exp(self.rng.uniform(np.log(least), np.log(side + 1))))
            if small
            else int(self.rng.integers(least, side + 1))
            for side, small, least in zip(self.top.sides, logarithmic, self.least, strict=True)
        ]
        rows, columns, length = sides
        m, n, _ = self.least
        return self.allowed(m if number % 8 in (0, 2) else rows, n if number % 8 in (0, 1) else columns, length)

    def changed(self, base: Shape, feature: Feature, wanted: int) -> list[Shape]:
        """Shapes like `base`, within the smallest and the largest shape, whose feature is about `wanted`."""
        m, n, k = base.sides
        by_rows, by_columns, by_length = (_about(wanted, m * n * k // side) for side in (m, n, k))
        match feature.kind, feature.of:
            case "rest", "M":
                shapes = [(m - m % feature.step + wanted, n, k)]
            case "rest", _:
                shapes = [(m, n - n % feature.step + wanted, k)]
            case _, "M":
                shapes = [(wanted, n, k)]
            case _, "N":
                shapes = [(m, wanted, k)]
            case _, "K":
                shapes = [(m, n, wanted)]
            case _, "M * N":
                shapes = [*((x, n, k) for x in _about(wanted, n)), *((m, x, k) for x in _about(wanted, m))]
            case _:
                shapes = [(m, n, x) for x in by_length] + [(x, n, k) for x in by_rows] + [(m, x, k) for x in by_columns]
                side = 1 << (wanted & -wanted).bit_length() // 3
                shapes.append((side, side, wanted // side**2))
        return [self.allowed(*sides) for sides in shapes if sides[0] and sides[1]]

    def allowed(self, *sides: int) -> Shape:
        """The allowed shape nearest to some sides."""
        step = self.multiple
        rounded = ((side + step // 2) // step * step for side in sides)
        ends = zip(self.least, rounded, self.most, strict=True)
        return Shape(*(max(low, min(side, high)) for low, side, high in ends))


def _about(wanted: int, factor: int) -> list[int]:
    """The sides whose products with `factor` are nearest to `wanted`, from below and from above."""
    return list(dict.fromkeys(max(1, side) for side in (wanted // factor, -(-wanted // factor))))


def cost(shape: Shape) -> tuple[int, int]:
    """About how many matrix products it takes to observe a shape, and their size: a sort key."""
    return -(-LEAST // (min(shape.rows, LOOKED) * min(shape.columns, LOOKED))), shape.rows * shape.columns


def crossed(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """All pairs of a row and a column (n x 2)."""
    return np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
