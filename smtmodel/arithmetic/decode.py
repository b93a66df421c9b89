"""Unpacking of bit patterns into terms with exponents, on which the rest of the datapath works."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.values import plain_value
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, max_of, product, select, truth

BELOW_ALL = -(1 << 20)  # no number has such an exponent


@plain_value(frozen=True)
class Exponent:
    """An integer as unsigned bits plus a static offset: `bits` + `low`. The integer is at most `high`, and `bits` is at
    least `spare`. `floats`: `bits` = 0 stands for an exponent below all others."""

    bits: Bits
    low: int
    high: int
    spare: int = 0
    floats: bool = False

    @property
    def least(self) -> int:
        """A static lower bound of the exponent."""
        return BELOW_ALL if self.floats else self.low + self.spare

    def __add__(self, other: Exponent) -> Exponent:
        low, high = self.low + other.low, self.high + other.high
        width = max(1, (high - low).bit_length())
        bits, spare = fit(self.bits, width) + fit(other.bits, width), self.spare + other.spare
        return Exponent(
            _unless_below_all(self, _unless_below_all(other, bits)), low, high, spare, self.floats or other.floats
        )

    def offset(self, amount: int) -> Exponent:
        """The sum of the exponent and a static number."""
        return Exponent(self.bits, self.low + amount, self.high + amount, self.spare, self.floats)

    def rebased(self, low: int, width: int) -> Bits:
        """The exponent as `width` bits with the offset `low`, which is at most the exponent's own offset."""
        return _unless_below_all(self, fit(self.bits, width) + constant(self.bits.carrier, self.low - low, width))


def _unless_below_all(exponent: Exponent, bits: Bits) -> Bits:
    """`bits`, but 0 where an exponent stands for the one below all others."""
    return select(exponent.bits.any(), bits, constant(bits.carrier, 0, bits.width)) if exponent.floats else bits


def fit(bits: Bits, width: int) -> Bits:
    """Bits, zero-extended or cut to `width` bits; the value must fit these."""
    return bits.zext(width) if bits.width <= width else bits.truncate(width)


@plain_value(frozen=True)
class Term:
    """A signed number: (-1)^sign * significand * 2^(exponent - fraction), significand below 2^(integer + fraction).

    `fraction` (static) is the position of the binary point in the significand, `integer` the bits above it.
    """

    sign: Bit
    significand: Bits
    exponent: Exponent
    fraction: int

    @property
    def integer(self) -> int:
        return self.significand.width - self.fraction

    @property
    def is_zero(self) -> Bit:
        return ~self.significand.any()

    @property
    def is_two_or_more(self) -> Bit:
        """Whether the significand, read with its binary point, is 2 or more."""
        if self.integer == 2:
            return self.significand.msb()
        if self.integer < 2:
            return truth(self.sign.carrier, False)
        return self.significand.extract(self.significand.width - 1, self.fraction + 1).any()

    def normalised(self) -> Term:
        """The same number with its leading one at the top of the significand (unless it is zero)."""
        shift = self.significand.leading_zeros()
        high = self.exponent.high + self.integer - 1
        low = self.exponent.low + self.integer - self.significand.width
        width = max(1, (high - low).bit_length())
        bits = self.exponent.offset(self.integer - 1).rebased(low, width) - fit(shift, width)
        significand = self.significand.shl(shift)
        return Term(self.sign, significand, Exponent(bits, low, high, self.exponent.spare), self.significand.width - 1)


@plain_value(frozen=True)
class Unpacked:
    """A decoded element: a term, which holds if the element is finite, and flags for zero, infinity and NaN. Subnormals
    have the exponent emin and a significand without hidden bit, as in hardware."""

    term: Term
    is_zero: Bit
    is_infinite: Bit
    is_nan: Bit

    @property
    def sign(self) -> Bit:
        return self.term.sign

    def folded(self) -> Unpacked:
        """The same element, in which flags that the carrier knows to be equal on every lane are constants."""
        return Unpacked(self.term, self.is_zero.folded(), self.is_infinite.folded(), self.is_nan.folded())


def unpacked_row(item: Unpacked, index: int) -> Unpacked:
    """The element at an index of several elements that were decoded at once."""
    term, at = item.term, item.term.exponent
    exponent = Exponent(at.bits.row(index), at.low, at.high, at.spare)
    term = Term(term.sign.row(index), term.significand.row(index), exponent, term.fraction)
    return Unpacked(term, item.is_zero.row(index), item.is_infinite.row(index), item.is_nan.row(index))


def unpack(pattern: Bits, fmt: Format, flush: bool = False, positive_zero: bool = False) -> Unpacked:
    """Decode a pattern of `fmt.width` bits. `flush` reads subnormals as +0, `positive_zero` -0 as +0."""
    carrier = pattern.carrier
    if fmt.complement:
        return _unpack_complement(pattern, fmt)
    sign = pattern.bit(fmt.field_width) if fmt.signed else truth(carrier, False)
    exponent = pattern.extract(fmt.field_width - 1, fmt.padding + fmt.fraction)
    low_bits = pattern.extract(fmt.padding + fmt.fraction - 1, fmt.padding) if fmt.fraction else None
    is_nan, is_infinite = _specials(pattern, exponent, low_bits, fmt)
    if not fmt.subnormals:
        one = constant(carrier, 1, 1)
        value = Term(sign, one, Exponent(exponent, -fmt.bias, fmt.emax), 0)
        return Unpacked(value, truth(carrier, False), is_infinite, is_nan)
    normal = exponent.any()
    significand, is_zero = normal.bits(1), ~normal
    if low_bits is not None:
        if flush:
            sign = sign & (normal | ~low_bits.any())
            low_bits = low_bits & normal.bits(1).sext(fmt.fraction)
        significand, is_zero = significand.concat(low_bits), is_zero & ~low_bits.any()
    if fmt.nan_for_negative_zero:
        is_zero = is_zero & ~is_nan  # the only NaN has the fields of zero
    at_least_one = exponent | (~normal).bits(exponent.width)
    term = Term(sign, significand, Exponent(at_least_one, -fmt.bias, fmt.emax, spare=1), fmt.fraction)
    if positive_zero:
        term = replace(term, sign=sign & ~is_zero)
    return Unpacked(term, is_zero, is_infinite, is_nan).folded()


def is_largest(item: Unpacked, fmt: Format) -> Bit:
    """Whether a finite element has the largest magnitude of its format, as after a rounding that overflowed."""
    if fmt.complement:  # the least number has the larger magnitude
        return constant(item.sign.carrier, fmt.largest, item.term.significand.width).ule(item.term.significand)
    last = (fmt.largest_field >> fmt.fraction) - item.term.exponent.low - fmt.bias
    digits = fmt.largest_field & ((1 << fmt.fraction) - 1) | 1 << fmt.fraction
    return item.term.exponent.bits.equals(last) & item.term.significand.equals(digits)


def _unpack_complement(pattern: Bits, fmt: Format) -> Unpacked:
    """An integer of `fmt.width` bits as a magnitude; all integers of a format have the same exponent."""
    sign, no = pattern.msb(), truth(pattern.carrier, False)
    magnitude = select(sign, -pattern, pattern)  # the magnitude of the least number needs all bits
    exponent = Exponent(constant(pattern.carrier, 1, 1), -fmt.bias, fmt.emin, spare=1)
    return Unpacked(Term(sign, magnitude, exponent, fmt.fraction), ~pattern.any(), no, no)


def _specials(pattern: Bits, exponent: Bits, low_bits: Bits | None, fmt: Format) -> tuple[Bit, Bit]:
    """Whether a pattern is a NaN, and whether it is infinite."""
    carrier = pattern.carrier
    no = truth(carrier, False)
    if fmt.specials == "ieee":
        assert low_bits is not None
        top = (~exponent).equals(0)
        return top & low_bits.any(), top & ~low_bits.any()
    if not fmt.has_nan:
        return no, no
    fields = exponent if low_bits is None else exponent.concat(low_bits)
    is_nan = pattern.equals(fmt.nan) if fmt.nan_for_negative_zero else (~fields).equals(0)
    return is_nan, fields.equals(fmt.infinity_field) if fmt.has_infinity else no


def is_normal(value: Unpacked, integer: bool) -> Bit:
    """Whether a finite value other than zero is normal, as every integer is. `integer`: whether its format is one of
    integers."""
    return truth(value.sign.carrier, True) if integer else value.term.significand.msb()


def multiply(left: Term, right: Term) -> Term:
    """The exact, unnormalised product: the product of the significands, with the sum of the exponents (Xie et al. 2026,
    Algorithm 7)."""
    significand = product(left.significand, right.significand)
    sign = left.sign ^ right.sign
    return Term(sign, significand, left.exponent + right.exponent, left.fraction + right.fraction)


def at_maximum(left: Term, right: Term) -> tuple[Exponent, tuple[Bits, Bits], tuple[Bits, Bits]]:
    """The exponent of the last place of two significands, which have a common binary point, at the larger exponent of
    two terms; these significands; and how many places each term's exponent is below the larger one. A zero gets the
    lowest exponent that either term can have, so that the exponent of a zero is never the larger.

    The function is symmetric, which an ordering of the terms would not be: a + b and b + a share their solver terms.
    """
    low = min(left.exponent.low, right.exponent.low)
    high = max(left.exponent.high, right.exponent.high)
    width = (high - low).bit_length()
    none = constant(left.sign.carrier, 0, width)
    x, y = (select(term.is_zero, none, term.exponent.rebased(low, width)) for term in (left, right))
    largest = max_of([x, y])
    fraction = max(left.fraction, right.fraction)
    integer = max(left.integer, right.integer)
    a, b = (t.significand.pad(fraction - t.fraction).zext(fraction + integer) for t in (left, right))
    return Exponent(largest, low, high).offset(-fraction), (a, b), (largest - x, largest - y)
