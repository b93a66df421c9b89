"""Reference results much more precise than f64, and measures of error from papers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
#: entrywise norms, as in the public code of Valero-Lara et al. 2023, and their orders in NumPy
_ENTRYWISE = {"entry-1": 1, "entry-2": 2, "entry-max": np.inf}


def slices(matrix: Floats, bits: int) -> list[Floats]:
    """Matrices whose exact sum is `matrix`. The elements in a row of each are multiples, with factors below 2^`bits`,
    of one power of two (Ozaki et al. 2012)."""
    slices, rest = [], matrix
    while rest.any():
        largest = np.abs(rest).max(axis=1, keepdims=True)
        exponent = np.where(largest > 0, np.frexp(largest)[1], 0)
        anchor = np.ldexp(1.5, exponent + 53 - bits)  # adding the anchor rounds to the multiples
        part = (rest + anchor) - anchor
        slices.append(part)
        rest = rest - part
    return slices


def exact_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """A * B as an unevaluated sum of two f64 matrices, with an error of about 2^-100 of the largest part.

    The matrix products of slices are exact in f64, whatever the order of the additions. Each element of their sum is a
    pair of f64 numbers. Numbers must be far from overflow and from subnormals.
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
    """The rounded sum and its exact rounding error (Knuth's TwoSum)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def size_of(matrix: Floats, norm: str) -> float:
    """A norm of a matrix: an operator norm (l1, l2 or linf), or an entrywise norm (entry-1: the sum of magnitudes;
    entry-2: the root of the sum of squares; entry-max: the largest magnitude). The computation avoids underflow."""
    largest = float(np.abs(matrix).max())
    if not largest:
        return 0.0
    scaled = matrix / largest
    size = (
        np.linalg.norm(scaled.ravel(), _ENTRYWISE[norm])
        if norm in _ENTRYWISE
        else np.linalg.norm(scaled, _ORDERS[norm])
    )
    return float(size) * largest


def relative_error(error: Floats, sizes: float, norm: str) -> float:
    """The norm of an error of A * B divided by `sizes`, the product of the norms of A and of B (Valero-Lara et al.
    2023, section 3.1); infinite if any element is not finite, and 0 without an error."""
    if not np.isfinite(error).all():
        return math.inf
    return size_of(error, norm) / sizes if error.any() else 0.0


def percent_error(result: float, exact: float) -> float:
    """The error in percent of an exact sum; infinite if the result is not finite or the exact sum is 0."""
    return 100 * abs(result - exact) / abs(exact) if math.isfinite(result) and exact else math.inf


def measures_of_bound(bound: Floats) -> dict[str, float]:
    """Bounds on the magnitudes of the `signed_measures` of errors, from bounds on the errors' magnitudes."""
    return {"mean": float(bound.mean()), "deviation": math.sqrt(float(np.square(bound).mean())), "negative": 100.0}


def signed_measures(error: Floats) -> dict[str, float]:
    """Mean and standard deviation of signed errors, and the percentage of errors below zero."""
    return {
        "mean": float(error.mean()),
        "deviation": float(error.std()),
        "negative": 100 * float((error < 0).mean()),
    }
