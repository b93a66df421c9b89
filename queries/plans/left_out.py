"""Products of K that are missing from recorded results, as the size of what is missing shows them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from queries.plans.recorded import Recorded
from smtmodel.numbers import to_numbers

MOST = 64  # last products of K, or first ones, that may be missing together
ELEMENTS = 8  # elements that it takes to tell
NEARER = 4.0  # times nearer to the sum without them, as root mean square, that the results have to be
SHARE = 0.5  # of a product's correlation with what is missing, from which it is suspected

Numbers = NDArray[np.float64]


def left_out(recorded: Recorded, side: int) -> tuple[int, ...]:
    """The products that are not in the sums of one result, which is then much nearer to the sum of the others than to
    that of all; none if there are no such, or too few finite elements to tell. Nothing is assumed of the rounding."""
    rows, columns = recorded.looked()
    [sample] = recorded.block(rows, columns)[side : side + 1]
    asked = recorded.asked
    a, b, c, d = (
        to_numbers(np.ascontiguousarray(part[0]), fmt).astype(np.float64)
        for part, fmt in ((sample.a, asked.a), (sample.b, asked.b), (sample.c, asked.c), (sample.d, asked.d))
    )
    finite = np.isfinite(a).all(axis=1), np.isfinite(b).all(axis=0)
    a, b, c, d = a[finite[0]], b[:, finite[1]], c[np.ix_(*finite)], d[np.ix_(*finite)]
    with np.errstate(all="ignore"):
        missing = a @ b + c - d
        missing[~np.isfinite(missing)] = 0
        best, nearest = (), _size(missing) / NEARER
        if missing.size < ELEMENTS or not nearest:
            return ()
        for products in _suspected(a, b, missing):
            if (left := _size(missing - a[:, products] @ b[products])) < nearest:
                best, nearest = tuple(products.tolist()), left
    return best


def _suspected(a: Numbers, b: Numbers, missing: Numbers) -> Iterator[NDArray[np.int64]]:
    """Sets of products: those that correlate with what is missing, the last ones of K, and the first ones."""
    length = a.shape[1]
    shares = ((a.T @ missing) * b).sum(axis=1) / ((a**2).sum(axis=0) * (b**2).sum(axis=1))
    if 0 < (alike := np.flatnonzero(shares > SHARE)).size < length:
        yield alike
    for count in range(1, min(MOST, length - 1) + 1):
        yield np.arange(length - count, length)
        yield np.arange(count)


def _size(numbers: Numbers) -> float:
    return float(np.sqrt(np.mean(numbers**2)))
