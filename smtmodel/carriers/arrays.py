"""The executable carrier: operations on NumPy (or CuPy) arrays, one lane for each vector evaluated.

Vectors of at most 64 bits are uint64 lanes. Wider ones are tuples of such lanes, lowest 64 bits first (a tuple and
not a trailing axis, so that each limb stays contiguous); limbs.py has their operations. Bits above the width are
kept zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smtmodel.algebra import Bit, Bits
from smtmodel.carriers.carrier import Carrier
from smtmodel.carriers.limbs import LIMB, Limbs

Lanes = Any  # an array of uint64, or a tuple of them


class ArrayCarrier(Carrier):
    """Lowers to arrays of the namespace `xp`: numpy, or cupy."""

    def __init__(self, xp: Any = np) -> None:
        self.xp = xp
        self.limbs = Limbs(xp)
        self._ops = {
            "add": xp.add,
            "sub": xp.subtract,
            "mul": xp.multiply,
            "and": xp.bitwise_and,
            "or": xp.bitwise_or,
            "xor": xp.bitwise_xor,
        }
        self._logic = {"and": xp.logical_and, "or": xp.logical_or, "xor": xp.logical_xor}

    def lanes(self, patterns: Any, width: int) -> Bits:
        """An input of at most 64 bits; `patterns` is an array of unsigned integers below 2^width."""
        return Bits(self, width, self.xp.asarray(patterns, dtype=self.xp.uint64))

    def _trim(self, value: Lanes, width: int) -> Lanes:
        return value if width == LIMB else value & np.uint64((1 << width) - 1)

    def constant(self, value: int, width: int) -> Lanes:
        return np.uint64(value) if width <= LIMB else self.limbs.constant(value, width)

    def truth(self, value: bool) -> Any:
        return np.bool_(value)

    def binary(self, operation: str, left: Lanes, right: Lanes, width: int) -> Lanes:
        if width > LIMB:
            return self.limbs.binary(operation, left, right, width)
        result = self._ops[operation](left, right)
        return self._trim(result, width) if operation in ("add", "sub", "mul") else result

    def invert(self, value: Lanes, width: int) -> Lanes:
        if width > LIMB:
            return self.limbs.invert(value, width)
        return value ^ np.uint64((1 << width) - 1)

    def negate(self, value: Lanes, width: int) -> Lanes:
        return self.binary("sub", self.constant(0, width), value, width)

    def shift(self, operation: str, value: Lanes, amount: Lanes, width: int) -> Lanes:
        if width > LIMB:
            return self.limbs.shift(operation, value, amount, width)
        if operation == "ashr":
            signed = self._sign_extended(value, width).view(np.int64)
            places = self.xp.minimum(amount, np.uint64(LIMB - 1)).astype(np.int64)
            return self._trim((signed >> places).view(np.uint64), width)
        # NumPy gives 0 for amounts of 64 and more; other namespaces leave that to the machine
        move = self.xp.left_shift if operation == "shl" else self.xp.right_shift
        if self.xp is np:
            result = move(value, amount)
        else:
            result = self.xp.where(amount < LIMB, move(value, amount & np.uint64(LIMB - 1)), np.uint64(0))
        return self._trim(result, width) if operation == "shl" else result

    def shift_constant(self, operation: str, value: Lanes, amount: int, width: int) -> Lanes:
        return self.shift(operation, value, self.constant(amount, width), width)

    def _sign_extended(self, value: Lanes, width: int) -> Any:
        sign = np.uint64(1 << (width - 1))
        return self.xp.asarray((value ^ sign) - sign)

    def extract(self, value: Lanes, high: int, low: int, width: int) -> Lanes:
        if width > LIMB:
            return self.limbs.extract(value, high, low)
        shifted = value >> np.uint64(low) if low else value
        return shifted if high == width - 1 else self._trim(shifted, high - low + 1)

    def concat(self, high: Lanes, low: Lanes, high_width: int, low_width: int) -> Lanes:
        width = high_width + low_width
        if width > LIMB:
            above = self.limbs.shift_left(self.zext(high, high_width, width), low_width, width)
            return self.limbs.binary("or", above, self.zext(low, low_width, width), width)
        return (high << np.uint64(low_width)) | low

    def zext(self, value: Lanes, width: int, to: int) -> Lanes:
        return value if to <= LIMB else self.limbs.zext(value, width, to)

    def sext(self, value: Lanes, width: int, to: int) -> Lanes:
        if to > LIMB:
            return self.limbs.sext(value, width, to)
        return self._trim(self._sign_extended(value, width), to)

    def compare(self, operation: str, left: Lanes, right: Lanes, width: int) -> Any:
        if width > LIMB:
            return self.limbs.compare(operation, left, right, width)
        if operation in ("slt", "sle"):
            sign = np.uint64(1 << (width - 1))
            left, right = left ^ sign, right ^ sign
        if operation == "eq":
            return self.xp.equal(left, right)
        return self.xp.less(left, right) if operation in ("ult", "slt") else self.xp.less_equal(left, right)

    def select(self, condition: Any, then: Lanes, otherwise: Lanes, width: int) -> Lanes:
        if width > LIMB:
            return self.limbs.select(condition, then, otherwise)
        return self.xp.where(condition, then, otherwise)

    def logic(self, operation: str, left: Any, right: Any) -> Any:
        return self._logic[operation](left, right)

    def logic_not(self, value: Any) -> Any:
        return self.xp.logical_not(value)

    def uniform(self, value: Any) -> bool | None:
        """False where no lane is true: most inputs hold no NaN, infinity or zero, and need no care for them."""
        return None if self.xp.any(value) else False

    def test_bit(self, value: Lanes, index: int, width: int) -> Any:
        if width > LIMB:
            value, index = value[index // LIMB], index % LIMB
        return (value & np.uint64(1 << index)) != 0

    def leading_zeros(self, value: Lanes, width: int, result_width: int) -> Lanes:
        if width > LIMB:
            return self.limbs.leading_zeros(value, width)
        return np.uint64(width) - self.limbs.bit_length(value, width)

    def max_of(self, values: Sequence[Lanes], width: int) -> Lanes:
        if width > LIMB:
            return self.limbs.maximum(values, width)
        largest = values[0]
        for value in values[1:]:
            largest = self.xp.maximum(largest, value)
        return largest

    def sum_of(self, signs: Sequence[Bit], magnitudes: Sequence[Bits], width: int) -> Lanes:
        if width > LIMB:
            total = Bits(self, width, value=0)
            for sign, magnitude in zip(signs, magnitudes, strict=True):
                mask = sign.bits(1).sext(width)
                total = total + ((magnitude.zext(width) ^ mask) + sign.bits(width))
            return total.node
        lanes = np.uint64(0)
        for sign, magnitude in zip(signs, magnitudes, strict=True):
            lanes = lanes + self.xp.where(sign.node, np.uint64(0) - magnitude.node, magnitude.node)
        return self._trim(lanes, width)
