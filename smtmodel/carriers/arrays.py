"""The executable carrier: operations on NumPy arrays, with one lane for each input evaluated.

Bit vectors of at most 32 bits are uint32 lanes, of at most 64 bits uint64 lanes; wider ones are limbs (limbs.py). Bits
above the width are always zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.carrier import Carrier
from mmaprobe.smtmodel.carriers.limbs import WideCarrier

Lanes = Any  # an array of unsigned words
_OPERATIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


class ArrayWords(Carrier):
    """Vectors of at most 64 bits as arrays."""

    def _trim(self, value: Lanes, width: int) -> Lanes:
        """An array with the bits above the width cleared. The array is changed in place: no other code may refer to
        it."""
        if width == value.dtype.itemsize * 8:
            return value
        mask = value.dtype.type((1 << width) - 1)
        return np.bitwise_and(value, mask, out=value) if value.ndim else value & mask

    def _as(self, value: Lanes, width: int) -> Lanes:
        """An array in the lane type of a width; its values must fit the width."""
        return value if value.dtype == lane_type(width) else value.astype(lane_type(width))

    def constant(self, value: int, width: int) -> Lanes:
        return lane_type(width)(value)

    def truth(self, value: bool) -> Any:
        return np.bool_(value)

    def binary(self, operation: str, left: Lanes, right: Lanes, width: int) -> Lanes:
        result = _OPERATIONS[operation](left, right)
        return self._trim(result, width) if operation in ("add", "sub", "mul") else result

    def invert(self, value: Lanes, width: int) -> Lanes:
        return value ^ lane_type(width)((1 << width) - 1)

    def negate(self, value: Lanes, width: int) -> Lanes:
        return self.binary("sub", self.constant(0, width), value, width)

    def shift(self, operation: str, value: Lanes, amount: Lanes, width: int) -> Lanes:
        if operation == "ashr":
            word = lane_type(width)
            bits = word(0).itemsize * 8
            signed = self._sign_extended(value, width).view(f"i{bits // 8}")
            places = np.minimum(amount, word(bits - 1)).astype(signed.dtype)
            return self._trim((signed >> places).view(word), width)
        # NumPy gives 0 for amounts of at least the word's bits
        return self._trim(np.left_shift(value, amount), width) if operation == "shl" else np.right_shift(value, amount)

    def shift_constant(self, operation: str, value: Lanes, amount: int, width: int) -> Lanes:
        return self.shift(operation, value, self.constant(amount, width), width)

    def _sign_extended(self, value: Lanes, width: int) -> Any:
        sign = lane_type(width)(1 << (width - 1))
        return (value ^ sign) - sign

    def extract(self, value: Lanes, high: int, low: int, width: int) -> Lanes:
        word, kept = lane_type(width), high - low + 1
        if not low:
            return self._as(value & word((1 << kept) - 1), kept)
        shifted = value >> word(low)
        return self._as(self._trim(shifted, kept) if high < width - 1 else shifted, kept)

    def concat(self, high: Lanes, low: Lanes, high_width: int, low_width: int) -> Lanes:
        width = high_width + low_width
        return (self._as(high, width) << lane_type(width)(low_width)) | self._as(low, width)

    def zext(self, value: Lanes, width: int, to: int) -> Lanes:
        return self._as(value, to)

    def sext(self, value: Lanes, width: int, to: int) -> Lanes:
        sign = lane_type(to)(1 << (width - 1))
        return self._trim((self._as(value, to) ^ sign) - sign, to)

    def compare(self, operation: str, left: Lanes, right: Lanes, width: int) -> Any:
        if operation in ("slt", "sle"):
            sign = lane_type(width)(1 << (width - 1))
            left, right = left ^ sign, right ^ sign
        if operation == "eq":
            return np.equal(left, right)
        return np.less(left, right) if operation in ("ult", "slt") else np.less_equal(left, right)

    def select(self, condition: Any, then: Lanes, otherwise: Lanes, width: int) -> Lanes:
        return np.where(condition, then, otherwise)

    def number(self, value: Any, width: int) -> Lanes:
        return value.astype(lane_type(width))

    def nonzero(self, value: Lanes, width: int) -> Any:
        return np.not_equal(value, lane_type(width)(0))

    def logic(self, operation: str, left: Any, right: Any) -> Any:
        return _OPERATIONS[operation](left, right)

    def logic_not(self, value: Any) -> Any:
        return np.invert(value)

    def uniform(self, value: Any) -> bool | None:
        """False if no lane is true, else None: in most inputs no element is NaN, infinite or zero, and operations on
        these flags then fold."""
        return None if np.count_nonzero(value) else False  # on few lanes any() takes ten times as long

    def stacked(self, values: Sequence[Lanes]) -> Lanes | None:
        shapes = {value.shape for value in values}
        return np.stack(values) if len(shapes) == 1 and shapes != {()} else None

    def row(self, value: Lanes, index: int, width: int) -> Lanes:
        return value[index]

    def test_bit(self, value: Lanes, index: int, width: int) -> Any:
        return (value & lane_type(width)(1 << index)) != 0

    def leading_zeros(self, value: Lanes, width: int, result_width: int) -> Lanes:
        return lane_type(result_width)(width) - self._bit_length(value, width)

    def _bit_length(self, value: Lanes, width: int) -> Any:
        """The number of bits up to the highest set bit, 0 for zero: from the exponent field of the conversion to
        binary64, in two halves where the conversion of the whole may round."""
        if width <= 53:
            field = value.astype(np.float64).view(np.uint64) >> np.uint64(52)
            return np.maximum(field.astype(np.uint32), np.uint32(1022)) - np.uint32(1022)
        high = self._bit_length(value >> np.uint64(32), 32)
        low = self._bit_length(value & np.uint64((1 << 32) - 1), 32)
        return np.where(high != 0, high + np.uint32(32), low)

    def max_of(self, values: Sequence[Lanes], width: int) -> Lanes:
        largest = values[0]
        for value in values[1:]:
            largest = np.maximum(largest, value)
        return largest

    def sum_of(self, signs: Sequence[Any], magnitudes: Sequence[Lanes], widths: Sequence[int], width: int) -> Lanes:
        word = lane_type(width)
        total: Any = word(0)
        for sign, magnitude in zip(signs, magnitudes, strict=True):
            term = self._as(magnitude, width)
            total = total + np.where(sign, word(0) - term, term)
        return self._trim(total, width)


class ArrayCarrier(WideCarrier):
    """Vectors of any width as arrays."""

    def __init__(self) -> None:
        super().__init__(ArrayWords())

    def lanes(self, patterns: Any, width: int) -> Bits:
        """An input of at most 64 bits. `patterns`: an array of unsigned integers below 2^width, one for each lane."""
        return Bits(self, width, np.asarray(patterns, dtype=lane_type(width)))


def lane_type(width: int) -> Any:
    """The NumPy type of the lanes of bit vectors of a width, which generated C uses too."""
    return np.uint32 if width <= 32 else np.uint64
