"""Results of matrix products, and the elements of recorded products that plans are held against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, in_f64, type_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of, product_shape
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.plans.gemm import addend

LOOKED = 4096  # elements that a plan has to give before it is named, or all, if there are fewer
#: the most elements that are looked at for a small K, since few do not tell short sums apart, and the products in them
MOST_ELEMENTS, WORK = 32768, 1 << 23
PART = 256  # elements that are computed together
ENDS = 8  # one of so many random integers is near an end of its format
SEED = 1  # the seed of the choice of rows and columns

Places = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Patterns of several matrix products of one shape: A (products x rows x K), B (products x K x columns), C and D
    (products x rows x columns)."""

    a: Matrix
    b: Matrix
    c: Matrix
    d: Matrix

    def numbers(self, asked: Signature) -> tuple[Numbers, ...]:
        """The numbers of A, B, C and D in f64."""
        return tuple(in_f64(getattr(self, side), getattr(asked, side)) for side in "abcd")

    @staticmethod
    def joined(parts: Sequence[Sample]) -> Sample:
        """The products of several samples of one shape."""
        return Sample(*(np.concatenate([getattr(part, side) for part in parts]) for side in "abcd"))


@dataclass(frozen=True)
class Recorded:
    """Bit patterns of A (rows x K), B (K x columns), C (None: no addend) and of one or more results `d`, with the
    formats of `asked`. Raises ParameterError for shapes that do not fit together."""

    asked: Signature
    a: Matrix
    b: Matrix
    c: Matrix | None
    d: tuple[Matrix, ...]

    def __post_init__(self) -> None:
        a, b, shape = self.a, self.b, self.d[0].shape
        fits = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and shape == (a.shape[0], b.shape[1])
        if not fits or any(side.shape != shape for side in (*self.d, *([] if self.c is None else [self.c]))):
            others = f", C {self.c.shape}" if self.c is not None else ""
            raise ParameterError("A and B", f"shapes {a.shape} and {b.shape} do not give D {shape}{others}")

    @classmethod
    def of(cls, formats: Model, a: Matrix, b: Matrix, c: Matrix | None, d: Sequence[Matrix]) -> Recorded:
        """The results for patterns in the formats of a model; `c` may be what broadcasts to M x N. Raises
        ParameterError."""
        shape = product_shape(a, b, least=1)
        asked = Signature(formats.a, formats.b, formats.c, formats.d, a.shape[1], c is not None)
        return cls(asked, a, b, None if c is None else addend(c, shape), tuple(d))

    @property
    def length(self) -> int:
        return int(self.a.shape[1])

    @property
    def about(self) -> str:
        """What a plan of these results was found for, in words."""
        return f"found for K = {self.length}: others were not asked"

    def taking(self, order: Sequence[int]) -> Recorded:
        """The same results, for a sum of the products of `order` alone, in this order."""
        asked, places = self.asked, list(order)
        other = Signature(asked.a, asked.b, asked.c, asked.d, len(places), asked.addend)
        return replace(self, asked=other, a=self.a[:, places], b=self.b[places])

    def with_zeros(self, products: Sequence[int]) -> Recorded:
        """The same results, with the factors of these products replaced by +0."""
        a, b, places = self.a.copy(), self.b.copy(), list(products)
        a[:, places], b[places] = 0, 0
        return replace(self, a=a, b=b)

    def elements(self, rows: Sequence[int], columns: Sequence[int]) -> list[Sample]:
        """The elements at some places, each as a product of its own: one sample for each result."""
        a, b = self.a[rows][:, None], self.b[:, columns].T[:, :, None]
        c = self.addends[rows, columns][:, None, None]
        return [Sample(a, b, c, d[rows, columns][:, None, None]) for d in self.d]

    def block(self, rows: Places, columns: Places) -> list[Sample]:
        """The elements of some rows and columns; a sample for each result."""
        at = np.ix_(rows, columns)
        a, b, c = self.a[None, rows], self.b[None, :, columns], self.addends[at][None]
        return [Sample(a, b, c, d[at][None]) for d in self.d]

    def parts(self) -> list[list[Sample]]:
        """LOOKED elements, or more where K is small, or all if there are fewer, in parts of about PART elements, with a
        sample of each part for each result. The elements are those of the first and last rows and columns, and of
        others at random."""
        rows, columns = self.looked(max(LOOKED, min(WORK // self.length, MOST_ELEMENTS)))
        return [self.block(some, columns) for some in _in_parts(rows, columns)]

    def every(self) -> Iterator[list[Sample]]:
        """All elements, in parts like those of `parts`."""
        rows, columns = map(np.arange, self.d[0].shape)
        return (self.block(some, columns) for some in _in_parts(rows, columns))

    def looked(self, count: int = LOOKED) -> tuple[Places, Places]:
        """The rows and columns of about `count` elements that are looked at."""
        height, width = self.d[0].shape
        rows = min(height, max(int(count**0.5), -(-count // width)))
        columns = min(width, -(-count // rows))
        chance = np.random.default_rng(SEED)
        return _chosen(height, rows, chance), _chosen(width, columns, chance)

    @property
    def addends(self) -> Matrix:
        """C, or zeros."""
        zeros = np.zeros((1, 1), dtype=kind_of(self.asked.c))
        return np.broadcast_to(zeros, self.d[0].shape) if self.c is None else self.c


def random_patterns(rng: np.random.Generator, fmt: Format, size: tuple[int, ...], low: int, high: int) -> Matrix:
    """Patterns of random numbers of several sizes, by powers of two from 2^low to 2^high; of an integer format, of
    random integers of all sizes, of which one in ENDS is near the least or the largest."""
    if fmt.is_integer:
        every = random_integers(rng, fmt, size, rng.integers(1, fmt.width + 1, size))
        return np.where(rng.integers(0, ENDS, size), every, near_ends(rng, fmt, rng.integers(0, 2, size) > 0))
    numbers = np.ldexp(rng.standard_normal(size), rng.integers(low, high + 1, size))
    return from_numbers(numbers.astype(type_of(fmt)), fmt, "nearest_even")


def random_integers(rng: np.random.Generator, fmt: Format, size: tuple[int, ...], bits: NDArray[np.int64]) -> Matrix:
    """Patterns of random integers. `bits`: of how many bits, a sign counted, for all of `size` or each row or column of
    it."""
    wide, shifts = rng.integers(0, 1 << 64, size, np.uint64), (64 - bits).astype(np.uint64)
    every = (wide.view(np.int64) >> shifts.view(np.int64)).view(np.uint64) if fmt.signed else wide >> shifts
    return (every & np.uint64((1 << fmt.width) - 1)).astype(kind_of(fmt))


def within_ends(numbers: Numbers, fmt: Format) -> NDArray[np.bool_]:
    """Which results are not an end of an integer format, which stands for all numbers beyond; all of another format."""
    if not fmt.is_integer:
        return np.ones(numbers.shape, np.bool_)
    least, most = map(float, fmt.interval)
    return np.asarray((numbers > least) & (numbers < most))


def near_ends(rng: np.random.Generator, fmt: Format, least: NDArray[np.bool_]) -> Matrix:
    """Patterns of random integers, near the least number of a format where `least` says so, near the largest elsewhere;
    as far from it as half of the bits can say."""
    near = rng.integers(0, 1 << fmt.width // 2, least.shape, np.uint64)
    first = fmt.sign_bit  # of the least number
    largest = np.uint64((first or 1 << fmt.width) - 1)
    return np.where(least, np.uint64(first) + near, largest - near).astype(kind_of(fmt))


def _in_parts(rows: Places, columns: Places) -> Iterator[Places]:
    height = max(1, PART // len(columns))
    return (rows[start : start + height] for start in range(0, len(rows), height))


def _chosen(size: int, count: int, chance: np.random.Generator) -> Places:
    """`count` places of a side, the first and the last among them."""
    if count == size:
        return np.arange(size)
    ends = [0, size - 1][:count]
    rest = 1 + chance.permutation(size - 2)[: count - len(ends)]
    return np.sort(np.concatenate([np.array(ends, dtype=np.int64), rest]))
