"""Which of the K products recorded results contain. Products may be missing, added twice, or have factors of another
row or column; the results' values show this whatever their roundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.tree import not_added_once
from mmaprobe.queries.plans.recorded import Recorded, Sample, within_ends
from mmaprobe.smtmodel.inputs.signature import Signature

MOST_MISSING = 64  # the most products at the end or the beginning of K that may be missing together
LONGEST = 2048  # the largest K for which the weights of all products are solved for; twice as many results are needed
ELEMENTS = 8  # the fewest finite elements from which a change is inferred
NEARER = 4.0  # the factor by which results must be nearer to the changed sums, in root mean square
SHARE = 0.5  # the least correlation of a suspected product with the missing part of the results
UNSURE = 0.5  # the most by which the weight of a product may differ from an integer

Numbers = NDArray[np.float64]
Products = NDArray[np.int64]
Side = NDArray[Any]
Factors = Callable[[Side, Side, Products], tuple[Side, Side]]

#: wrong factors that products may have been computed from, in words -> the function that takes them from A and B
MOVED: dict[str, Factors] = {
    "the next row of A": lambda a, b, k: (np.roll(a, -1, 1)[:, :, k], b[:, k]),
    "the row of A before": lambda a, b, k: (np.roll(a, 1, 1)[:, :, k], b[:, k]),
    "the next column of B": lambda a, b, k: (a[:, :, k], np.roll(b, -1, 2)[:, k]),
    "the column of B before": lambda a, b, k: (a[:, :, k], np.roll(b, 1, 2)[:, k]),
    "the next product's factor of A": lambda a, b, k: (np.roll(a, -1, 2)[:, :, k], b[:, k]),
    "the factor of A of the product before": lambda a, b, k: (np.roll(a, 1, 2)[:, :, k], b[:, k]),
    "the next product's factor of B": lambda a, b, k: (a[:, :, k], np.roll(b, -1, 1)[:, k]),
    "the factor of B of the product before": lambda a, b, k: (a[:, :, k], np.roll(b, 1, 1)[:, k]),
}


@dataclass(frozen=True)
class Summed:
    """The products that are not added exactly once. `left_out`: the products that the sums lack; `twice`: the products
    added twice; `instead`: the factors from which the products in `left_out` were computed (a key of `MOVED`), or empty
    if nothing was added for these products."""

    left_out: tuple[int, ...] = ()
    twice: tuple[int, ...] = ()
    instead: str = ""

    def __bool__(self) -> bool:
        return bool(self.left_out or self.twice)

    def sentences(self) -> list[str]:
        """Sentences about the products that are not added exactly once."""
        return not_added_once(self.left_out, self.twice, self.instead)

    def of(self, recorded: Recorded) -> Iterator[Recorded]:
        """The same results, with inputs changed so that each product is added once, in each way that is possible."""
        if self.instead:
            yield self._moved(recorded)
            return
        length, twice, order = recorded.length, list(self.twice), list(range(recorded.length))
        if self.left_out:
            if not twice and self.left_out[0] == length - len(self.left_out):
                yield recorded.taking(order[: self.left_out[0]])
            recorded = recorded.with_zeros(self.left_out)
        if twice:
            yield recorded.taking([*order[: twice[-1] + 1], *twice, *order[twice[-1] + 1 :]])
            yield recorded.taking([*order, *twice])
        else:
            yield recorded

    def _moved(self, recorded: Recorded) -> Recorded:
        a, b, products = recorded.a.copy(), recorded.b.copy(), np.array(self.left_out)
        left, right = MOVED[self.instead](a[None], b[None], products)
        a[:, products], b[products] = left[0], right[0]
        return replace(recorded, a=a, b=b)


WHOLE = Summed()


def summed(asked: Signature, sample: Sample) -> Summed:
    """The products that the sums of a sample lack, or contain twice. The sample's results must be much nearer to a
    multiple of the changed sums than to a multiple of the sums of all products. `WHOLE` if no change is so near, if too
    few elements are finite, or if every product is zero."""
    a, b, c, d = sample.numbers(asked)
    with np.errstate(all="ignore"):
        finite = np.isfinite(np.square(a @ b) + np.square(c) + np.square(d))
        finite &= within_ends(d, asked.d)
        if finite.sum() < ELEMENTS:
            return WHOLE
        a[~np.isfinite(a)], b[~np.isfinite(b)], c[~finite], d[~finite] = 0, 0, 0, 0
        if not (np.abs(a) @ np.abs(b)).any():
            return WHOLE
        size = 1.0 if asked.d.is_integer else float(np.abs(d).max()) * 2.0**-asked.d.fraction
        return _Sums(a, b, c, d, finite, size if asked.of_integers else np.inf).change()


class _Sums:
    """The numbers of a sample, with zeros in the place of infinities and NaNs, and the sums of some products. Axes: `a`
    is samples x rows x K, `b` samples x K x columns; `c`, `d` and `finite` are samples x rows x columns. `most`: the
    largest distance of the results from a multiple of the true sums; of integers, which few numbers fit by chance."""

    def __init__(
        self, a: Numbers, b: Numbers, c: Numbers, d: Numbers, finite: NDArray[np.bool_], most: float = np.inf
    ) -> None:
        self.a, self.b, self.c, self.d, self.finite, self.most = a, b, c, d, finite, most
        self.whole = a @ b

    def change(self) -> Summed:
        best, nearest = WHOLE, min(self._apart(self.whole) / NEARER, self.most)
        if not nearest:
            return best
        for number, changed in enumerate(self._suspected()):
            if number == 0 and changed.left_out and not changed.twice and (moved := self._moved(changed)):
                return moved
            if (distance := self._apart(self._of(changed))) < nearest:
                best, nearest = changed, distance
        return best

    def _moved(self, gone: Summed) -> Summed | None:
        """The products in `gone` with the factors that they were computed from; None if no factors of `MOVED` fit. The
        comparison leaves elements at the edges out, whose next row or column is not in the matrices. Elements that are
        each a matrix product of one row and one column have no edges."""
        left, products, inner = self._of(gone), np.array(gone.left_out), np.zeros_like(self.finite)
        single = self.finite.shape[1:] == (1, 1)
        edge = slice(None) if single else slice(1, -1)
        inner[:, edge, edge] = self.finite[:, edge, edge]
        if inner.sum() < ELEMENTS:
            return None
        most = min(self.most, *(self._apart(one, inner) / NEARER for one in (self.whole, left)))
        for words, factors in MOVED.items():
            first, second = factors(self.a, self.b, products)
            if self._apart(left + first @ second, inner) < most:
                return Summed(self._with_others(gone, factors, inner), (), words)
        return None

    def _with_others(self, gone: Summed, factors: Factors, inner: NDArray[np.bool_]) -> tuple[int, ...]:
        """The products that have other factors: the products in `gone`, and all others whose change of factors
        correlates with the part of the results that is still unexplained."""
        first, second = factors(self.a, self.b, np.arange(self.a.shape[2]))
        moved = np.isin(np.arange(self.a.shape[2]), gone.left_out)
        left = self.d - self.c - self._of(gone) - first[:, :, moved] @ second[:, moved]
        left[~inner] = 0
        shares = np.zeros(len(moved))
        for k in np.flatnonzero(~moved):
            change = first[:, :, k : k + 1] @ second[:, k : k + 1] - self.a[:, :, k : k + 1] @ self.b[:, k : k + 1]
            shares[k] = (left * change).sum() / max((change[inner] ** 2).sum(), np.finfo(np.float64).tiny)
        return tuple(np.flatnonzero(moved | (shares > SHARE)).tolist())

    def _of(self, which: Summed) -> Numbers:
        total = self.whole
        for sign, products in ((-1, which.left_out), (1, which.twice)):
            if products:
                total = total + sign * (self.a[:, :, list(products)] @ self.b[:, list(products)])
        return total

    def _apart(self, sums: Numbers, where: NDArray[np.bool_] | None = None) -> float:
        """The distance, in root mean square, of the results from the nearest linear combination of some sums and c."""
        where = self.finite if where is None else where
        terms = np.stack([one[where] for one in (sums, self.c) if one.any()] or [sums[where]], axis=1)
        d = self.d[where]
        factors, *_ = np.linalg.lstsq(terms, d, rcond=None)
        return float(np.sqrt(np.mean((d - terms @ factors) ** 2)))

    def _suspected(self) -> Iterator[Summed]:
        """Suspected changes: products with a weight of about 0 or 2 in the results, or, for a long K, products that
        correlate with the missing part of the results; then the last and the first products, missing or twice."""
        length = self.a.shape[2]
        if length <= min(LONGEST, self.finite.sum() // 2):
            weights = self._weights()
            usual = np.median(weights)
            times = weights / usual if usual else np.ones(length)
            seen = (self.a.any(axis=1) & self.b.any(axis=2)).any(axis=0)  # a product that is 0 throughout has no weight
            near = (seen & (np.abs(times - count) < UNSURE) for count in (0, 2))
            gone, twice = (tuple(np.flatnonzero(some).tolist()) for some in near)
            if 0 < len(gone) + len(twice) < length:
                yield Summed(gone, twice)
        else:
            missing = self.whole + self.c - self.d
            alike = ((self.a.transpose(0, 2, 1) @ missing) * self.b).sum(axis=(0, 2))
            shares = alike / ((self.a**2).sum(axis=1) * (self.b**2).sum(axis=2)).sum(axis=0)
            if 0 < (suspected := np.flatnonzero(shares > SHARE)).size < length:
                yield Summed(tuple(suspected.tolist()))
        for count in range(1, min(MOST_MISSING, length - 1) + 1):
            last, first = tuple(range(length - count, length)), tuple(range(count))
            yield from (Summed(last), Summed(first), Summed((), last), Summed((), first))

    def _weights(self) -> Numbers:
        """The weight of each product in the results, by least squares."""
        left = self.d - (self.c if self.c.any() else 0)
        gram = np.einsum("nik,nil->nkl", self.a, self.a, optimize=True) * (self.b @ self.b.transpose(0, 2, 1))
        right = ((self.a.transpose(0, 2, 1) @ left) * self.b).sum(axis=(0, 2))
        square = gram.sum(axis=0)
        square[np.diag_indices_from(square)] += np.trace(square) / len(square) * np.finfo(np.float64).eps
        return np.asarray(np.linalg.solve(square, right))
