"""Products of K that are missing from recorded results, as the size of what is missing shows them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.plans.candidates import Sample
from mmaprobe.smtmodel.evaluate.numbers import to_numbers
from mmaprobe.smtmodel.inputs.signature import Signature

MOST = 64  # last products of K, or first ones, that may be missing together
ELEMENTS = 8  # elements that it takes to tell
NEARER = 4.0  # times nearer to the sum without them, as root mean square, that the results have to be
SHARE = 0.5  # of a product's correlation with what is missing, from which it is suspected

Numbers = NDArray[np.float64]


def left_out(asked: Signature, sample: Sample) -> tuple[int, ...]:
    """The products that are not in the sums of a sample, whose results are then much nearer to the sums of the others
    than to those of all; none if there are no such, or too few finite elements to tell. Nothing is assumed of the
    rounding."""
    sides = ((sample.a, asked.a), (sample.b, asked.b), (sample.c, asked.c), (sample.d, asked.d))
    a, b, c, d = (to_numbers(np.ascontiguousarray(side), fmt).astype(np.float64) for side, fmt in sides)
    with np.errstate(all="ignore"):
        missing = a @ b + c - d
        finite = np.isfinite(missing)
        missing[~finite], a[~np.isfinite(a)], b[~np.isfinite(b)] = 0, 0, 0
        best, nearest = tuple[int, ...](), _size(missing) / NEARER
        if finite.sum() < ELEMENTS or not nearest:
            return ()
        for products in _suspected(a, b, missing):
            if (left := _size((missing - a[:, :, products] @ b[:, products])[finite])) < nearest:
                best, nearest = tuple(products.tolist()), left
    return best


def _suspected(a: Numbers, b: Numbers, missing: Numbers) -> Iterator[NDArray[np.int64]]:
    """Sets of products: those that correlate with what is missing, the last ones of K, and the first ones."""
    length = a.shape[2]
    alike = ((a.transpose(0, 2, 1) @ missing) * b).sum(axis=(0, 2))
    shares = alike / ((a**2).sum(axis=1) * (b**2).sum(axis=2)).sum(axis=0)
    if 0 < (suspected := np.flatnonzero(shares > SHARE)).size < length:
        yield suspected
    for count in range(1, min(MOST, length - 1) + 1):
        yield np.arange(length - count, length)
        yield np.arange(count)


def _size(numbers: Numbers) -> float:
    return float(np.sqrt(np.mean(numbers**2)))
