"""The least increase of a term whose exponent changes: for numbers of a format, and for products, value by value.

Gains and losses are whole numbers of 2^-ONE: a gain is rounded down, a loss up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.arithmetic.formats import Format

ONE = 1300  # gains are whole numbers of 2^-ONE
ZERO, NONE = -(10**6), -(10**7)  # the exponents of a zero, and of a zero that does not count
LARGEST = 1 << 16  # the most products of significands compared one by one, with subnormal numbers
Gains = Mapping[tuple[int, int], int]  # the least increase, by the exponents (before, after), which differ


def power(exponent: int) -> int:
    """2^exponent as a gain: 0 if it is below 2^-ONE."""
    return 1 << ONE + exponent if ONE + exponent >= 0 else 0


def loss(exponent: int) -> int:
    """2^exponent as a loss: at least 2^-ONE."""
    return 1 << max(0, ONE + exponent)


# -- the values of a term


@dataclass(frozen=True)
class Values:
    """Magnitudes p * 2^(e - fraction) for each p of `significands` and each e with low <= e <= high. `fraction` is not
    stored here."""

    significands: tuple[int, ...] | range
    low: int
    high: int


def numbers_of(fmt: Format, subnormals: bool) -> tuple[Values, ...]:
    """Magnitudes that include those of all finite nonzero numbers of a format; without `subnormals`, those of all
    normal numbers."""
    if fmt.complement:
        raise RuleError(f"gains: the least number of {fmt.name} has one bit more than the others")
    one = 1 << fmt.fraction
    values = [Values(range(one, 2 * one), fmt.emin, fmt.emax)]
    if subnormals and fmt.subnormals and fmt.fraction:
        values.append(Values(range(1, one), fmt.emin, fmt.emin))
    return tuple(values)


@dataclass(frozen=True)
class Factor:
    """The reading of a factor: as a number of its format, or `converted` to a format in which all these numbers are
    normal."""

    format: Format
    converted: bool = False

    @property
    def least(self) -> int:
        """The smallest exponent of a number."""
        return self.format.emin - (self.format.fraction if self.converted else 0)

    @property
    def grid(self) -> int:
        """The exponent of the last place of the smallest numbers."""
        return self.format.unit

    def numbers(self, subnormals: bool) -> tuple[Values, ...]:
        """The numbers of the format, as `numbers_of` gives them, with the exponents with which they are multiplied."""
        one = 1 << self.format.fraction
        if not self.converted:
            return numbers_of(self.format, subnormals)
        return (Values(range(one, 2 * one), self.least if subnormals else self.format.emin, self.format.emax),)


def products_of(a: Factor, b: Factor, subnormals: bool) -> tuple[Values, ...]:
    """Magnitudes that include those of all finite nonzero products of two factors. `subnormals`: as for `numbers_of`.
    Raises RuleError if there are too many products to compare."""
    left_bits, right_bits = a.format.fraction, b.format.fraction
    if left_bits + right_bits > (LARGEST.bit_length() - 1 if subnormals else 22):
        raise RuleError(
            f"rises: products of numbers with {left_bits} and {right_bits} fraction bits are too many to compare"
        )
    values = []
    for x in a.numbers(subnormals):
        for y in b.numbers(subnormals):
            left, right = (np.array(side.significands, dtype=np.int64) for side in (x, y))
            every = np.unique(np.multiply.outer(left, right))
            values.append(Values(tuple(every.tolist()), x.low + y.low, x.high + y.high))
    return tuple(values)


def gains_of(every: Sequence[Values], fraction: int) -> dict[tuple[int, int], int]:
    """The least increase from a value to a larger one, for each pair of different exponents: values of both signs, and
    zero."""
    gains: dict[tuple[int, int], int] = {}

    def least(e: int, f: int, gain: int) -> None:
        known = gains.get((e, f))
        if known is None or gain < known:
            gains[e, f] = gains[f, e] = gain

    for low in every:
        smallest = low.significands[0]
        for e in range(low.low, low.high + 1):
            unit = power(e - fraction)
            least(ZERO, e, smallest * unit)
            for high in every:
                for f in range(max(high.low, e + 1), high.high + 1):
                    least(e, f, _apart(high.significands, low.significands, f - e) * unit)
    return gains


def _apart(high: tuple[int, ...] | range, low: tuple[int, ...] | range, places: int) -> int:
    """The least nonzero difference of p * 2^places and q, or their least sum if that is smaller."""
    first, last = high[0] << places, low[-1]
    total = first + low[0]
    if first > last:
        return min(first - last, total)
    return min(_least_difference(high, low, places), total)


@cache
def _least_difference(high: tuple[int, ...] | range, low: tuple[int, ...] | range, places: int) -> int:
    if isinstance(high, range) and isinstance(low, range):
        return 1  # one of two neighbours is not a multiple of 2^places, and both lie in the range
    x, y = _array(high) << places, _array(low)
    at = np.searchsorted(y, x)
    nearest = []
    for offset in (-1, 0, 1):
        inside = (at + offset >= 0) & (at + offset < len(y))
        off = np.abs(x[inside] - y[(at + offset)[inside]])
        nearest += [int(off[off > 0].min())] if (off > 0).any() else []
    return min(nearest, default=1)


@cache
def _array(values: tuple[int, ...] | range) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)
