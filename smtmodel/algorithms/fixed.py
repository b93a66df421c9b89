"""Arithmetic on fixed-point numbers of static widths, over any carrier, without overflow and without rounding."""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.smtmodel.algorithms.exact import Fixed
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select
from mmaprobe.smtmodel.carriers.carrier import Carrier


def number(carrier: Carrier, value: Fraction | int) -> Fixed:
    """A constant. Raises ParameterError for a number whose denominator is not a power of two."""
    value = Fraction(value)
    if value.denominator & (value.denominator - 1):
        raise ParameterError(str(value), "a constant is a sum of powers of two; of y / 3 compare 3 * x with y")
    top, unit = value.numerator, 1 - value.denominator.bit_length()
    while top and not top & 1:
        top, unit = top >> 1, unit + 1
    return Fixed(constant(carrier, top, top.bit_length() + 1), unit)


def unsigned(bits: Bits) -> Fixed:
    """Bits as an unsigned integer."""
    return Fixed(bits.zext(bits.width + 1), 0)


def aligned(x: Fixed, y: Fixed) -> tuple[Bits, Bits, int]:
    """Both numbers in the smaller of their units and in one width, with room for their sum; and the exponent of this
    unit."""
    unit = min(x.unit, y.unit)
    padded = [side.bits.pad(side.unit - unit) for side in (x, y)]
    width = max(side.width for side in padded) + 1
    return padded[0].sext(width), padded[1].sext(width), unit


def add(x: Fixed, y: Fixed) -> Fixed:
    left, right, unit = aligned(x, y)
    return Fixed(left + right, unit)


def subtract(x: Fixed, y: Fixed) -> Fixed:
    left, right, unit = aligned(x, y)
    return Fixed(left - right, unit)


def multiply(x: Fixed, y: Fixed) -> Fixed:
    """The product. A factor whose bits are the constant 1, as of every power of two, needs no multiplication."""
    unit = x.unit + y.unit
    for unity, other in ((x, y), (y, x)):
        if unity.bits.value == 1 and unity.bits.width > 1:
            return Fixed(other.bits, unit)
    width = x.bits.width + y.bits.width
    return Fixed(x.bits.sext(width) * y.bits.sext(width), unit)


def less(x: Fixed, y: Fixed) -> Bit:
    left, right, _ = aligned(x, y)
    return left.slt(right)


def equal(x: Fixed, y: Fixed) -> Bit:
    left, right, _ = aligned(x, y)
    return left.eq(right)


def larger(x: Fixed, y: Fixed) -> Fixed:
    left, right, unit = aligned(x, y)
    return Fixed(select(left.slt(right), right, left), unit)
