"""Bit vectors wider than a machine word, as limbs: every operation, written once over bit vectors that fit a word.

Limbs are values of the algebra: constant limbs fold on every carrier of words, as do most limbs of a term in a long
sum, which are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, any_of, constant, minimum, select, truth
from mmaprobe.smtmodel.carriers.carrier import Carrier, Node

LIMB = 64
_ALL = (1 << LIMB) - 1
_HALF = LIMB // 2

Wide = tuple[Bits, ...]  # limbs, the lowest first: LIMB bits each, and the rest of the width in the last


def limbs_of(value: Bits) -> Wide:
    """The limbs of a vector; a vector that fits a word is its only limb."""
    return value.node if value.width > LIMB else (value,)


def _widths(width: int) -> list[int]:
    return [min(LIMB, width - low) for low in range(0, width, LIMB)]


Operation = TypeVar("Operation", bound=Callable[..., Any])
_ON_LIMBS: dict[str, Callable[..., Any]] = {}
_ON_WORDS: list[str] = []


def of_limbs(operation: Operation) -> Operation:
    """Decorates an operation of the wide carrier that is written on limbs. If the last operand, the largest width, fits
    a word, the word carrier's operation of the same name is called instead (`WideCarrier.__init__`)."""
    _ON_LIMBS[operation.__name__] = operation
    return operation


def of_words(name: str) -> Callable[..., Any]:
    """The word carrier's operation `name`, for operands that always fit a word."""
    _ON_WORDS.append(name)
    return lambda carrier, *operands: getattr(carrier.words, name)(*operands)


def _chosen(narrow: Callable[..., Any], wide: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that calls `narrow` or `wide`, depending on the largest width."""
    return lambda *operands: narrow(*operands) if operands[-1] <= LIMB else wide(*operands)


class WideCarrier(Carrier):
    """Bit vectors of any width over a carrier of words: vectors wider than a word are limbs."""

    truth = of_words("truth")
    logic, logic_not, uniform = of_words("logic"), of_words("logic_not"), of_words("uniform")
    stacked = of_words("stacked")  # inputs fit a word
    fuses, multiply_and_add, widened = of_words("fuses"), of_words("multiply_and_add"), of_words("widened")

    def __init__(self, words: Carrier) -> None:
        """`words`: a carrier of words. Its operations are looked up only here, so they must not be replaced later."""
        self.words = words
        for name in _ON_WORDS:
            setattr(self, name, getattr(words, name))
        for name, operation in _ON_LIMBS.items():
            setattr(self, name, _chosen(getattr(words, name), operation.__get__(self)))

    def _limbs(self, node: Node, width: int) -> Wide:
        return node if width > LIMB else (Bits(self, width, node),)

    def _cut(self, limbs: Sequence[Bits], width: int) -> Wide:
        """The low `width` bits of limbs of LIMB bits (the last may have fewer), filled up with zeros."""
        nought, cut = constant(self, 0, LIMB), []
        for place, size in enumerate(_widths(width)):
            limb = limbs[place] if place < len(limbs) else nought
            cut.append(limb.zext(size) if limb.width < size else limb.truncate(size))
        return tuple(cut)

    def _full(self, limbs: Wide) -> list[Bits]:
        """The limbs with LIMB bits each, the last filled up with zeros."""
        return [limb.zext(LIMB) for limb in limbs]

    def _mask(self, sign: Bit, width: int) -> Bits:
        """`width` copies of a bit."""
        return select(sign, constant(self, _ALL, width), constant(self, 0, width))

    @of_limbs
    def constant(self, value: int, width: int) -> Node:
        return tuple(constant(self, value >> (LIMB * k), size) for k, size in enumerate(_widths(width)))

    @of_limbs
    def binary(self, operation: str, left: Node, right: Node, width: int) -> Node:
        if operation == "mul":
            return self._multiply(left, right, width)
        if operation in ("add", "sub"):
            subtracts = operation == "sub"
            return self._add(left, self._inverted(right) if subtracts else right, subtracts)
        pairs = zip(left, right, strict=True)
        if operation == "and":
            return tuple(x & y for x, y in pairs)
        return tuple(x | y if operation == "or" else x ^ y for x, y in pairs)

    def _add(self, left: Wide, right: Wide, carries: bool) -> Wide:
        carry, limbs = truth(self, carries), []
        for x, y in zip(left, right, strict=True):
            partial = x + y
            total = partial + carry.bits(x.width)
            idle = truth(self, False)
            carry = idle if carry.value is False else total.ult(partial)
            if 0 not in (x.value, y.value):
                carry = carry | partial.ult(x)
            limbs.append(total)
        return tuple(limbs)

    def _multiply(self, left: Wide, right: Wide, width: int) -> Wide:
        """Schoolbook multiplication on digits of half a limb."""
        x, y = (
            [half for limb in self._full(side) for half in (limb.truncate(_HALF).zext(LIMB), limb.lshr(_HALF))]
            for side in (left, right)
        )
        nought = constant(self, 0, LIMB)
        digits = [nought] * len(x)
        for i, low in enumerate(x):
            carry = nought
            for j in range(len(x) - i):
                total = digits[i + j] + low * y[j] + carry
                digits[i + j], carry = total.truncate(_HALF).zext(LIMB), total.lshr(_HALF)
        return self._cut([low | high.shl(_HALF) for low, high in zip(digits[::2], digits[1::2], strict=True)], width)

    def _inverted(self, value: Wide) -> Wide:
        return tuple(~limb for limb in value)

    @of_limbs
    def invert(self, value: Node, width: int) -> Node:
        return self._inverted(value)

    @of_limbs
    def negate(self, value: Node, width: int) -> Node:
        return self._add(self.constant(0, width), self._inverted(value), True)

    @of_limbs
    def zext(self, value: Node, width: int, to: int) -> Node:
        return self._cut(self._limbs(value, width), to)

    @of_limbs
    def sext(self, value: Node, width: int, to: int) -> Node:
        limbs, sizes = self._limbs(value, width), _widths(to)
        last, fill = limbs[-1].sext(sizes[len(limbs) - 1]), self._mask(limbs[-1].msb(), LIMB)
        return self._cut([*limbs[:-1], last, *[fill] * (len(sizes) - len(limbs))], to)

    def _shifted(self, operation: str, value: Wide, amount: Wide, width: int) -> Wide:
        """The value shifted, first within limbs, then by whole limbs. An amount of at least the width shifts every bit
        out."""
        most = constant(self, width, LIMB)
        places = select(any_of([limb.any() for limb in amount[1:]]), most, minimum(amount[0], most))
        fill, limbs = constant(self, 0, LIMB), self._full(value)
        if operation == "ashr":
            fill, limbs = self._mask(value[-1].msb(), LIMB), list(self.sext(value, width, LIMB * len(value)))
        left = operation == "shl"
        limbs = limbs if left else limbs[::-1]
        # from here on both directions move towards higher indices
        within = places & constant(self, LIMB - 1, LIMB)
        rest = within ^ constant(self, LIMB - 1, LIMB)
        moved = []
        for limb, neighbour in zip(limbs, [fill, *limbs], strict=False):
            if left:
                moved.append(limb.shl(within) | neighbour.lshr(rest).lshr(1))
            else:
                moved.append(limb.lshr(within) | neighbour.shl(rest).shl(1))
        for step in range(len(limbs).bit_length()):
            before = [fill] * (1 << step) + moved
            moves = places.bit(LIMB.bit_length() - 1 + step)
            moved = [select(moves, there, here) for there, here in zip(before, moved, strict=False)]
        return self._cut(moved if left else moved[::-1], width)

    @of_limbs
    def shift(self, operation: str, value: Node, amount: Node, width: int) -> Node:
        return self._shifted(operation, value, amount, width)

    @of_limbs
    def shift_constant(self, operation: str, value: Node, amount: int, width: int) -> Node:
        return self._shifted(operation, value, self.constant(amount, width), width)

    @of_limbs
    def shift_right_jam(self, value: Node, amount: Node, width: int) -> Node | None:
        return None

    @of_limbs
    def extract(self, value: Node, high: int, low: int, width: int) -> Node:
        kept, (first, bits) = high - low + 1, divmod(low, LIMB)
        limbs = self._full(value)[first:]
        above = [*limbs[1:], constant(self, 0, LIMB)]
        if bits:
            limbs = [limb.lshr(bits) | over.shl(LIMB - bits) for limb, over in zip(limbs, above, strict=True)]
        places = self._cut(limbs, kept)
        return places if kept > LIMB else places[0].node

    def concat(self, high: Node, low: Node, high_width: int, low_width: int) -> Node:
        width = high_width + low_width
        if width <= LIMB:
            return self.words.concat(high, low, high_width, low_width)
        above = self.shift_constant("shl", self.zext(high, high_width, width), low_width, width)
        return self.binary("or", above, self.zext(low, low_width, width), width)

    @of_limbs
    def compare(self, operation: str, left: Node, right: Node, width: int) -> Node:
        if operation in ("slt", "sle"):
            sign = self.constant(1 << (width - 1), width)
            left, right = self.binary("xor", left, sign, width), self.binary("xor", right, sign, width)
        equal, below = truth(self, True), truth(self, False)
        for x, y in zip(left[::-1], right[::-1], strict=True):
            below = below | (equal & x.ult(y))
            equal = equal & x.eq(y)
        return {"eq": equal, "ult": below, "slt": below}.get(operation, below | equal).node

    @of_limbs
    def select(self, condition: Node, then: Node, otherwise: Node, width: int) -> Node:
        return tuple(select(Bit(self, condition), x, y) for x, y in zip(then, otherwise, strict=True))

    @of_limbs
    def number(self, value: Node, width: int) -> Node:
        return self._cut([Bit(self, value).bits(LIMB)], width)

    @of_limbs
    def nonzero(self, value: Node, width: int) -> Node:
        return any_of([limb.any() for limb in value]).node

    @of_limbs
    def row(self, value: Node, index: int, width: int) -> Node:
        return tuple(limb.row(index) for limb in value)

    @of_limbs
    def test_bit(self, value: Node, index: int, width: int) -> Node:
        return value[index // LIMB].bit(index % LIMB).node

    def leading_zeros(self, value: Node, width: int, result_width: int) -> Node:
        if width <= LIMB:
            return self.words.leading_zeros(value, width, result_width)
        count, low = constant(self, width, result_width), 0
        for limb in value:
            above = constant(self, width - low - limb.width, result_width)
            count = select(limb.any(), limb.leading_zeros().zext(result_width) + above, count)
            low += limb.width
        return count.node

    @of_limbs
    def max_of(self, values: Sequence[Node], width: int) -> Node:
        return Carrier.max_of(self, values, width)

    @of_limbs
    def sum_of(self, signs: Sequence[Node], magnitudes: Sequence[Node], widths: Sequence[int], width: int) -> Node:
        total = self.constant(0, width)
        for node, magnitude, size in zip(signs, magnitudes, widths, strict=True):
            sign, wide = Bit(self, node), self._cut(self._limbs(magnitude, size), width)
            flipped = tuple(limb ^ self._mask(sign, limb.width) for limb in wide)
            total = self._add(total, self._add(flipped, self._cut([sign.bits(LIMB)], width), False), False)
        return total
