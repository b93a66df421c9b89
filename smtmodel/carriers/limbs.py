"""Vectors wider than 64 bits as tuples of uint64 lanes, lowest limb first (exact accumulators, fp64 products)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LIMB = 64
_ALL = np.uint64((1 << LIMB) - 1)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64((1 << 32) - 1)
_ZERO = np.uint64(0)

Wide = tuple[Any, ...]


def limb_count(width: int) -> int:
    return -(-width // LIMB)


class Limbs:
    """Multi-limb arithmetic in the array namespace `xp`."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def constant(self, value: int, width: int) -> Wide:
        return tuple(np.uint64(value >> (LIMB * i) & int(_ALL)) for i in range(limb_count(width)))

    def trim(self, limbs: Sequence[Any], width: int) -> Wide:
        count = limb_count(width)
        spare = width - LIMB * (count - 1)
        kept = list(limbs[:count])
        if spare < LIMB:
            kept[-1] = kept[-1] & np.uint64((1 << spare) - 1)
        return tuple(kept)

    def binary(self, operation: str, left: Wide, right: Wide, width: int) -> Wide:
        if operation == "mul":
            return self._multiply(left, right, width)
        if operation in ("add", "sub"):
            return self._add(
                left, right if operation == "add" else self.invert(right, width), width, operation == "sub"
            )
        act = {"and": self.xp.bitwise_and, "or": self.xp.bitwise_or, "xor": self.xp.bitwise_xor}[operation]
        return tuple(act(x, y) for x, y in zip(left, right, strict=True))

    def _add(self, left: Wide, right: Wide, width: int, carry_in: bool) -> Wide:
        carry: Any = np.uint64(carry_in)
        out = []
        for x, y in zip(left, right, strict=True):
            partial = x + y
            total = partial + carry
            carry = ((partial < x) | (total < partial)).astype(np.uint64)
            out.append(total)
        return self.trim(out, width)

    def _multiply(self, left: Wide, right: Wide, width: int) -> Wide:
        """Schoolbook on 32-bit digits."""
        count = limb_count(width)
        x, y = ([d for limb in side for d in (limb & _LOW_HALF, limb >> _HALF)] for side in (left, right))
        digits: list[Any] = [_ZERO] * (2 * count)
        for i, low in enumerate(x):
            carry: Any = _ZERO
            for j in range(2 * count - i):
                total = digits[i + j] + low * y[j] + carry
                digits[i + j], carry = total & _LOW_HALF, total >> _HALF
        return self.trim([digits[2 * i] | (digits[2 * i + 1] << _HALF) for i in range(count)], width)

    def invert(self, value: Wide, width: int) -> Wide:
        return self.trim([limb ^ _ALL for limb in value], width)

    def zext(self, value: Any, width: int, to: int) -> Wide:
        limbs = [value] if width <= LIMB else list(value)
        return tuple(limbs + [self.xp.zeros_like(limbs[0])] * (limb_count(to) - len(limbs)))

    def sext(self, value: Any, width: int, to: int) -> Wide:
        wide = self.zext(value, width, to)
        sign = self.constant(1 << (width - 1), to)
        return self.binary("sub", self.binary("xor", wide, sign, to), sign, to)

    def shift_left(self, value: Wide, amount: int, width: int) -> Wide:
        """By a constant."""
        limbs, bits = divmod(amount, LIMB)
        out: list[Any] = [self.xp.zeros_like(value[0])] * limbs
        for i in range(len(value) - limbs):
            limb = value[i] << np.uint64(bits)
            if bits and i:
                limb = limb | (value[i - 1] >> np.uint64(LIMB - bits))
            out.append(limb)
        return self.trim(out, width)

    def shift(self, operation: str, value: Wide, amount: Wide, width: int) -> Wide:
        """Fine shift within limbs, then a barrel of whole limbs; beyond the width everything is shifted out."""
        count = len(value)
        places = self.xp.minimum(amount[0], np.uint64(width))
        for limb in amount[1:]:
            places = self.xp.where(limb != 0, np.uint64(width), places)
        fill: Any = _ZERO
        if operation == "ashr":
            negative = (value[-1] >> np.uint64((width - 1) % LIMB) & np.uint64(1)) != 0
            fill = self.xp.where(negative, _ALL, _ZERO)
            value = tuple(self.sext(value, width, count * LIMB))
        left = operation == "shl"
        limbs = [limb + self.xp.zeros_like(places) for limb in (value if left else value[::-1])]
        # from here on both directions move towards higher indices
        fine, rest = places & np.uint64(LIMB - 1), np.uint64(LIMB - 1) - (places & np.uint64(LIMB - 1))
        out = []
        for i, limb in enumerate(limbs):
            neighbour = limbs[i - 1] if i else fill
            if left:
                out.append((limb << fine) | ((neighbour >> rest) >> np.uint64(1)))
            else:
                out.append((limb >> fine) | ((neighbour << rest) << np.uint64(1)))
        step = 1
        while step <= count:
            move = (places >> np.uint64(6)) & np.uint64(step) != 0
            out = [self.xp.where(move, out[i - step] if i >= step else fill, out[i]) for i in range(count)]
            step *= 2
        return self.trim(out if left else out[::-1], width)

    def extract(self, value: Wide, high: int, low: int) -> Any:
        width, (limbs, bits) = high - low + 1, divmod(low, LIMB)
        out = []
        for i in range(limbs, limbs + limb_count(width)):
            limb = value[i] >> np.uint64(bits) if bits else value[i]
            if bits and i + 1 < len(value):
                limb = limb | (value[i + 1] << np.uint64(LIMB - bits))
            out.append(limb)
        trimmed = self.trim(out, width)
        return trimmed if width > LIMB else trimmed[0]

    def compare(self, operation: str, left: Wide, right: Wide, width: int) -> Any:
        if operation in ("slt", "sle"):
            sign = self.constant(1 << (width - 1), width)
            left, right = self.binary("xor", left, sign, width), self.binary("xor", right, sign, width)
        equal: Any = np.bool_(True)
        below: Any = np.bool_(False)
        for x, y in zip(left[::-1], right[::-1], strict=True):
            below = below | (equal & (x < y))
            equal = equal & (x == y)
        if operation == "eq":
            return equal
        return below if operation in ("ult", "slt") else below | equal

    def select(self, condition: Any, then: Wide, otherwise: Wide) -> Wide:
        return tuple(self.xp.where(condition, x, y) for x, y in zip(then, otherwise, strict=True))

    def maximum(self, values: Sequence[Wide], width: int) -> Wide:
        largest = values[0]
        for value in values[1:]:
            largest = self.select(self.compare("ult", largest, value, width), value, largest)
        return largest

    def bit_length(self, limb: Any, width: int = LIMB) -> Any:
        """Of one limb whose value is below 2^width: the exponent of its conversion to binary64, where that is exact."""
        if width <= 53:
            field = self.xp.asarray(limb).astype(np.float64).view(np.uint64) >> np.uint64(52)
            return self.xp.maximum(field, np.uint64(1022)) - np.uint64(1022)
        high = self.bit_length(limb >> _HALF, 32)
        return self.xp.where(high != 0, high + _HALF, self.bit_length(limb & _LOW_HALF, 32))

    def leading_zeros(self, value: Wide, width: int) -> Any:
        length: Any = _ZERO
        for i, limb in enumerate(value):
            length = self.xp.where(limb != 0, self.bit_length(limb) + np.uint64(LIMB * i), length)
        return np.uint64(width) - length
