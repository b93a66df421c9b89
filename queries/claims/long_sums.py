"""Inputs of long sums on which the error of a plan is a large share of the sum of magnitudes.

A claim about every number of products is searched here beyond the few products that the terms of claims take: whole
matrices go through the plan, their errors are computed in long double, and the largest of them again exactly. A side of
an input is a block of numbers, repeated, with larger ones where the plan's sums begin; it can be made of any length, so
that what is bad for one number of products is tried with more of them, and with fewer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.claims.samples import fractions
from mmaprobe.queries.plans.bound_samples import begins_of
from mmaprobe.queries.search.samples import pattern_of
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.reductions import ArrayOperations
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.plans.gemm import simulate

SCOUTED = (256, 2048)  # products, about, with which inputs are searched before they are made longer
ROWS, COLUMNS, ELITE = 48, 8, 10  # sides tried at a time, and those that are kept
MEASURED = 3  # inputs of each number of products whose errors are computed exactly


@dataclass(frozen=True)
class Side:
    """The numbers of one side of an input, for any number of products: patterns."""

    block: tuple[int, ...]
    large: int | None = None  # where sums begin

    def of(self, begins: NDArray[np.bool_]) -> Matrix:
        numbers = np.resize(np.array(self.block, dtype=np.uint64), len(begins))
        return numbers if self.large is None else np.where(begins, np.uint64(self.large), numbers)


@dataclass(frozen=True)
class Long:
    """An input of the claim for one number of products, and the share of the sum of magnitudes by which the result of
    the part is wrong; None where it is no number."""

    row: Row
    share: Fraction | None

    @property
    def terms(self) -> int:
        return len(self.row) // 2


Pair = tuple[int, Side, Side]  # which beginnings, and the two sides


class LongSums:
    """Of a claim about every number of products, whose inputs meet no further condition. `known`: inputs of fewer
    products to begin with."""

    def __init__(self, claim: Claim, part: Part, known: Sequence[Row]) -> None:
        self.claim, self.part = claim, part
        self.window, self.factors = claim.shape.window, claim.shape.factors
        self.rng = np.random.default_rng(1)
        self.known = [Side(row[start : start + len(row) // 2]) for row in known for start in (0, len(row) // 2)]

    def worst(self, seconds: float) -> Iterator[list[Long]]:
        """For several numbers of products, the last one the most of the claim, the worst inputs that are found within
        about some seconds."""
        least, most = self.claim.terms, self.claim.assertion.most or self.claim.terms
        counts = sorted({max(least, min(one, most) // least * least) for one in (*SCOUTED, most)})
        began, elite = time.monotonic(), list[Pair]()
        for place, count in enumerate(counts):
            until = began + seconds * (place + 1) / len(counts)
            elite = self._searched(count, elite, until)
            yield [self._exactly(count, *pair) for pair in elite[:MEASURED]]

    def simplest(self, long: Long, decides: Callable[[Long], bool]) -> Long:
        """An input like this one, with products that are all alike, if that decides, and with half as many of them, and
        so on, as long as it decides."""
        best, count, least = long, long.terms, self.claim.terms
        place = count // 2
        alike = self._measured((*(long.row[place],) * count, *(long.row[count + place],) * count, 0))
        if decides(alike):
            best = alike
        while (count := count // 2 // least * least) >= least:
            less = self._measured((*best.row[:count], *best.row[best.terms : best.terms + count], 0))
            if not decides(less):
                break
            best = less
        return best

    def no_number(self, long: Long) -> InputError:
        """The error of a claim that reads the result for an input on which it is no number."""
        what = f"{self.part.text} gives no number for {long.terms} products, such as"
        first = " and ".join(f"{side} = {long.row[at]:#x}" for side, at in (("a0", 0), ("b0", long.terms)))
        return self.claim.file.error(("claim",), f"{what} {first}; narrow the exponents, or the number of products")

    def _searched(self, count: int, elite: Sequence[Pair], until: float) -> list[Pair]:
        """The worst pairs of sides, for one number of products; at least one round, and where it is short enough for
        further ones, changes of the best."""
        begins = begins_of(self.part.plan, count)
        ranked: dict[Pair, float] = {}
        fresh: list[tuple[list[Side], list[Side]]] = [
            (list({a: 0 for _, a, _ in elite}), list({b: 0 for _, _, b in elite}))
        ]
        if not elite:
            fresh = [(self.known[0::2], self.known[1::2])]
        while True:
            for given in fresh:
                left = [*given[0], *(self._side(0, elite) for _ in range(ROWS - len(given[0])))]
                right = [*given[1], *(self._side(1, elite) for _ in range(max(0, COLUMNS - len(given[1]))))]
                for place, mask in enumerate(begins):
                    ratios = self._ratios(*(np.stack([one.of(mask) for one in side]) for side in (left, right)))
                    for at in np.argsort(ratios, axis=None)[::-1][:ELITE]:
                        row, column = divmod(int(at), len(right))
                        ranked[place, left[row], right[column]] = float(ratios[row, column])
            elite = sorted(ranked, key=lambda pair: -ranked[pair])[:ELITE]
            ranked = {pair: ranked[pair] for pair in elite}
            if time.monotonic() >= until:
                return elite
            fresh = [([], list({b: 0 for _, _, b in elite})[: COLUMNS // 2])]

    def _side(self, which: int, elite: Sequence[Pair]) -> Side:
        """A side anew, or one of the best with another number in it."""
        bounds, choose = (self.window.a, self.window.b)[which], self.rng.integers
        if elite and choose(2):
            like = elite[int(choose(len(elite)))][1:][which]
            block = list(like.block)
            block[int(choose(len(block)))] = self._number(bounds, int(choose(8)))
            return Side((block[0],) if not choose(4) else tuple(block), like.large)
        if choose(3):  # all alike but the first ones
            number = self._number(bounds, int(choose(30)))
            return Side((number,), self._number(bounds, 0) if choose(3) else None)
        return Side(tuple(self._number(bounds, int(choose(3))) for _ in range(1 << choose(1, 6))))

    def _number(self, bounds: tuple[int, int], gap: int) -> int:
        """A number below the largest exponent by a gap."""
        exponent = np.array([max(bounds[1] - gap, bounds[0]) + self.factors.bias])
        fraction = fractions(self.factors, self.rng.integers(0, 1 << 30, 1), self.rng)
        sign = np.array([int(not self.rng.integers(6))])
        return int(pattern_of(self.factors, sign, exponent, fraction)[0])

    def _ratios(self, left: Matrix, right: Matrix) -> NDArray[np.longdouble]:
        """The errors as shares of the sums of magnitudes; infinite where a result is no number."""
        results = values_of(result_of_part(self.part, self.factors, left, right.T), self.part.result)
        x, y = (values_of(side, self.factors) for side in (left, right))
        whole = abs(x) @ abs(y.T)
        with np.errstate(invalid="ignore"):
            error = abs(results - x @ y.T)
        share = np.where(whole > 0, error / np.where(whole > 0, whole, 1), 0)
        return np.asarray(np.where(np.isfinite(results), share, np.inf), dtype=np.longdouble)

    def _exactly(self, count: int, place: int, left: Side, right: Side) -> Long:
        begins = begins_of(self.part.plan, count)
        mask = begins[min(place, len(begins) - 1)]
        return self._measured((*left.of(mask).tolist(), *right.of(mask).tolist(), 0))

    def _measured(self, row: Row) -> Long:
        """The exact share of an input; c is +0."""
        count = len(row) // 2
        a, b = np.array(row[:count], dtype=np.uint64), np.array(row[count:-1], dtype=np.uint64)
        (d,) = result_of_part(self.part, self.factors, a[None], b[:, None]).ravel()
        result = _value(int(d), self.part.result)
        if isinstance(result, str):
            return Long(row, None)
        exact, whole = Fraction(0), Fraction(0)
        for (left, right), times in Counter(zip(row[:count], row[count:-1], strict=True)).items():
            x, y = _value(left, self.factors), _value(right, self.factors)
            assert isinstance(x, Fraction)
            assert isinstance(y, Fraction)
            exact, whole = exact + x * y * times, whole + abs(x * y) * times
        return Long(row, abs(result - exact) / whole if whole else Fraction(0))


def result_of_part(part: Part, given: Format, a: Matrix, b: Matrix, c: Matrix | None = None) -> Matrix:
    """The patterns of a part's results for A and B, patterns in the format `given`, and C."""
    source, operations = part.source, ArrayOperations()

    def read(side: Matrix) -> Matrix:
        every, places = np.unique(side, return_inverse=True)
        return operations.converted(given, source, every).astype(kind_of(source))[places].reshape(side.shape)

    return simulate(read(a), read(b), c, part.plan)


def values_of(patterns: Matrix, fmt: Format) -> NDArray[np.longdouble]:
    """The numbers of patterns, which are few; infinite or NaN where they are none."""
    every, places = np.unique(patterns, return_inverse=True)
    numbers = [np.longdouble(float(_value(one, fmt))) for one in every.tolist()]
    return np.array(numbers, dtype=np.longdouble)[places].reshape(patterns.shape)


def _value(pattern: int, fmt: Format) -> Fraction | str:
    value = exact_value(pattern, fmt)
    return Fraction(0) if value == "-0" else value
