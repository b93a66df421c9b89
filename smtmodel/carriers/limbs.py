"""Vectors wider than a machine word, as limbs: every operation on them, written once over vectors that fit.

A carrier whose values are machine words hands wider vectors to this. Limbs are values of the algebra, so that those
which are known to be zero, as most are of a term in a long sum, fold away on every carrier.
"""

from __future__ import annotations

from collections.abc import Sequence

from smtmodel.algebra import Bit, Bits, any_of, constant, minimum, select, truth
from smtmodel.carriers.carrier import Carrier, Node

LIMB = 64
_ALL = (1 << LIMB) - 1
_HALF = LIMB // 2

Wide = tuple[Bits, ...]  # the lowest first; LIMB bits each, the last one what is left of the width


def limbs_of(value: Bits) -> Wide:
    """The limbs of a vector of a carrier of words; a narrow one is its only limb."""
    return value.node if value.width > LIMB else (value,)


def _widths(width: int) -> list[int]:
    return [min(LIMB, width - low) for low in range(0, width, LIMB)]


class Limbs:
    """Arithmetic on the limbs of a carrier. What is at most LIMB bits wide is a node of that carrier."""

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier

    def _limbs(self, node: Node, width: int) -> Wide:
        return node if width > LIMB else (Bits(self.carrier, width, node),)

    def _cut(self, limbs: Sequence[Bits], width: int) -> Wide:
        """The low bits of limbs that are LIMB bits each, the last perhaps fewer; zeros above them."""
        nought, found = constant(self.carrier, 0, LIMB), []
        for place, size in enumerate(_widths(width)):
            limb = limbs[place] if place < len(limbs) else nought
            found.append(limb.zext(size) if limb.width < size else limb.truncate(size))
        return tuple(found)

    def _full(self, limbs: Wide) -> list[Bits]:
        """With zeros above, in limbs that are all of LIMB bits."""
        return [limb.zext(LIMB) for limb in limbs]

    def _mask(self, sign: Bit, width: int) -> Bits:
        """Copies of a bit."""
        return select(sign, constant(self.carrier, _ALL, width), constant(self.carrier, 0, width))

    def constant(self, value: int, width: int) -> Wide:
        return tuple(constant(self.carrier, value >> (LIMB * k), size) for k, size in enumerate(_widths(width)))

    def binary(self, operation: str, left: Wide, right: Wide, width: int) -> Wide:
        if operation == "mul":
            return self._multiply(left, right, width)
        if operation in ("add", "sub"):
            subtracts = operation == "sub"
            return self._add(left, self.invert(right) if subtracts else right, subtracts)
        pairs = zip(left, right, strict=True)
        if operation == "and":
            return tuple(x & y for x, y in pairs)
        return tuple(x | y if operation == "or" else x ^ y for x, y in pairs)

    def _add(self, left: Wide, right: Wide, carries: bool) -> Wide:
        carry, found = truth(self.carrier, carries), []
        for x, y in zip(left, right, strict=True):
            partial = x + y
            total = partial + carry.bits(x.width)
            idle = truth(self.carrier, False)
            carry = idle if carry.value is False else total.ult(partial)
            if 0 not in (x.value, y.value):
                carry = carry | partial.ult(x)
            found.append(total)
        return tuple(found)

    def _multiply(self, left: Wide, right: Wide, width: int) -> Wide:
        """Schoolbook on digits of half a limb."""
        x, y = (
            [half for limb in self._full(side) for half in (limb.truncate(_HALF).zext(LIMB), limb.lshr(_HALF))]
            for side in (left, right)
        )
        nought = constant(self.carrier, 0, LIMB)
        digits = [nought] * len(x)
        for i, low in enumerate(x):
            carry = nought
            for j in range(len(x) - i):
                total = digits[i + j] + low * y[j] + carry
                digits[i + j], carry = total.truncate(_HALF).zext(LIMB), total.lshr(_HALF)
        return self._cut([low | high.shl(_HALF) for low, high in zip(digits[::2], digits[1::2], strict=True)], width)

    def invert(self, value: Wide) -> Wide:
        return tuple(~limb for limb in value)

    def negate(self, value: Wide, width: int) -> Wide:
        return self._add(self.constant(0, width), self.invert(value), True)

    def zext(self, value: Node, width: int, to: int) -> Wide:
        return self._cut(self._limbs(value, width), to)

    def sext(self, value: Node, width: int, to: int) -> Wide:
        limbs, sizes = self._limbs(value, width), _widths(to)
        last, fill = limbs[-1].sext(sizes[len(limbs) - 1]), self._mask(limbs[-1].msb(), LIMB)
        return self._cut([*limbs[:-1], last, *[fill] * (len(sizes) - len(limbs))], to)

    def shift(self, operation: str, value: Wide, amount: Wide, width: int) -> Wide:
        """Within limbs first, then by whole limbs; by the width or more, everything is shifted out."""
        most = constant(self.carrier, width, LIMB)
        places = select(any_of([limb.any() for limb in amount[1:]]), most, minimum(amount[0], most))
        fill, limbs = constant(self.carrier, 0, LIMB), self._full(value)
        if operation == "ashr":
            fill, limbs = self._mask(value[-1].msb(), LIMB), list(self.sext(value, width, LIMB * len(value)))
        left = operation == "shl"
        limbs = limbs if left else limbs[::-1]
        # from here on both directions move towards higher indices
        within = places & constant(self.carrier, LIMB - 1, LIMB)
        rest = within ^ constant(self.carrier, LIMB - 1, LIMB)
        found = []
        for limb, neighbour in zip(limbs, [fill, *limbs], strict=False):
            if left:
                found.append(limb.shl(within) | neighbour.lshr(rest).lshr(1))
            else:
                found.append(limb.lshr(within) | neighbour.shl(rest).shl(1))
        for step in range(len(limbs).bit_length()):
            before = [fill] * (1 << step) + found
            moves = places.bit(LIMB.bit_length() - 1 + step)
            found = [select(moves, there, here) for there, here in zip(before, found, strict=False)]
        return self._cut(found if left else found[::-1], width)

    def extract(self, value: Wide, high: int, low: int) -> Node:
        width, (first, bits) = high - low + 1, divmod(low, LIMB)
        limbs = self._full(value)[first:]
        above = [*limbs[1:], constant(self.carrier, 0, LIMB)]
        if bits:
            limbs = [limb.lshr(bits) | over.shl(LIMB - bits) for limb, over in zip(limbs, above, strict=True)]
        kept = self._cut(limbs, width)
        return kept if width > LIMB else kept[0].node

    def concat(self, high: Node, low: Node, high_width: int, low_width: int) -> Wide:
        width = high_width + low_width
        above = self.shift("shl", self.zext(high, high_width, width), self.constant(low_width, width), width)
        return self.binary("or", above, self.zext(low, low_width, width), width)

    def compare(self, operation: str, left: Wide, right: Wide, width: int) -> Node:
        if operation in ("slt", "sle"):
            sign = self.constant(1 << (width - 1), width)
            left, right = self.binary("xor", left, sign, width), self.binary("xor", right, sign, width)
        equal, below = truth(self.carrier, True), truth(self.carrier, False)
        for x, y in zip(left[::-1], right[::-1], strict=True):
            below = below | (equal & x.ult(y))
            equal = equal & x.eq(y)
        return {"eq": equal, "ult": below, "slt": below}.get(operation, below | equal).node

    def select(self, condition: Node, then: Wide, otherwise: Wide) -> Wide:
        return self._selected(Bit(self.carrier, condition), then, otherwise)

    def _selected(self, condition: Bit, then: Wide, otherwise: Wide) -> Wide:
        return tuple(select(condition, x, y) for x, y in zip(then, otherwise, strict=True))

    def test_bit(self, value: Wide, index: int) -> Node:
        return value[index // LIMB].bit(index % LIMB).node

    def max_of(self, values: Sequence[Wide], width: int) -> Wide:
        largest = values[0]
        for value in values[1:]:
            largest = self.select(self.compare("ult", largest, value, width), value, largest)
        return largest

    def sum_of(self, signs: Sequence[Bit], magnitudes: Sequence[Bits], width: int) -> Wide:
        total = self.constant(0, width)
        for sign, magnitude in zip(signs, magnitudes, strict=True):
            wide = self.zext(magnitude.node, magnitude.width, width)
            flipped = tuple(limb ^ self._mask(sign, limb.width) for limb in wide)
            total = self._add(total, self._add(flipped, self._cut([sign.bits(LIMB)], width), False), False)
        return total

    def leading_zeros(self, value: Wide, width: int, result_width: int) -> Node:
        found = constant(self.carrier, width, result_width)
        low = 0
        for limb in value:
            above = constant(self.carrier, width - low - limb.width, result_width)
            found = select(limb.any(), limb.leading_zeros().zext(result_width) + above, found)
            low += limb.width
        return found.node
