"""Reference results much more exact than f64, and the papers' measures of error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


def slices(matrix: Floats, bits: int) -> list[Floats]:
    """The matrix as a sum of matrices whose rows hold whole multiples, below 2^bits, of one power of two; nothing is
    lost (Ozaki et al. 2012)."""
    found, rest = [], matrix
    while rest.any():
        largest = np.abs(rest).max(axis=1, keepdims=True)
        exponent = np.where(largest > 0, np.frexp(largest)[1], 0)
        anchor = np.ldexp(1.5, exponent + 53 - bits)  # adding it rounds to the multiples
        part = (rest + anchor) - anchor
        found.append(part)
        rest = rest - part
    return found


def exact_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """A * B as an unevaluated sum of two f64 matrices, good to about 2^-100 of the largest part.

    Products of slices are exact in f64 in whatever order the matrix product adds, and their sum is kept in double
    words. The numbers may be of any size that keeps clear of overflow and of subnormals.
    """
    bits = (53 - math.ceil(math.log2(a.shape[1] + 1))) // 2 - 1
    left, right = slices(a, bits), [part.T for part in slices(np.ascontiguousarray(b.T), bits)]
    high = np.zeros((a.shape[0], b.shape[1]))
    low = np.zeros_like(high)
    for level in range(len(left) + len(right) - 1):
        for i in range(max(0, level - len(right) + 1), min(level + 1, len(left))):
            high, error = _two_sum(high, left[i] @ right[level - i])
            low = low + error
    return _two_sum(high, low)


def _two_sum(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and its error (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def relative_error(error: Floats, a: Floats, b: Floats, norm: str) -> float:
    """The norm of an error of A * B over the norms of A and of B (Valero-Lara et al. 2023, section 3.1); infinite if
    any element is not finite."""
    if not np.isfinite(error).all():
        return math.inf
    largest = float(np.abs(error).max())
    if not largest:
        return 0.0
    order = _ORDERS[norm]
    size = float(np.linalg.norm(error / largest, order)) * largest  # clear of underflow
    return size / float(np.linalg.norm(a, order)) / float(np.linalg.norm(b, order))


def percent_error(result: float, numbers: Floats) -> float:
    """Percent of the sum of the numbers, which is exact but for one rounding to f64; infinite if it overflowed."""
    exact = math.fsum(numbers)
    if not math.isfinite(result) or not exact:
        return math.inf
    return 100 * abs(result - exact) / abs(exact)
