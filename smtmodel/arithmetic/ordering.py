"""Keys for the order of numbers: integers in two's complement that have the order of the numbers."""

from __future__ import annotations

from mmaprobe.smtmodel.arithmetic.decode import Unpacked, multiply
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.ieee import product_specials
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select


def pattern_key(pattern: Bits, fmt: Format) -> Bits:
    """An integer in two's complement of `fmt.field_width` + 1 bits that increases with the number. Both zeros have the
    same key, infinities have the least and the largest key of numbers, and a NaN has any key."""
    if fmt.complement:
        return pattern
    width = fmt.field_width + 1
    fields = pattern.extract(fmt.field_width - 1, 0).zext(width)
    return select(pattern.bit(fmt.field_width), -fields, fields) if fmt.signed else fields


def product_key(left: Unpacked, right: Unpacked) -> tuple[Bits, Bit]:
    """A key of the exact product of two elements, which increases with the product; and whether the product is NaN."""
    term = multiply(left.term, right.term).normalised()
    is_nan, is_infinite = product_specials(left, right)
    magnitude = term.exponent.bits.concat(term.significand)
    carrier, width = magnitude.carrier, magnitude.width
    zero, largest = constant(carrier, 0, width), constant(carrier, -1, width)
    magnitude = select(is_infinite, largest, select(term.is_zero, zero, magnitude)).zext(width + 1)
    return select(term.sign, -magnitude, magnitude), is_nan


def negated(pattern: Bits, fmt: Format) -> Bits:
    """The pattern of a number with its sign changed. Zero and NaN stay unchanged in a format without -0, and the least
    number in a format in two's complement."""
    if fmt.complement:
        return -pattern
    fields = pattern.truncate(fmt.field_width)
    flipped = (~pattern.bit(fmt.field_width)).bits().concat(fields)
    if fmt.has_negative_zero:
        return flipped
    return select(fields.any(), flipped, pattern)
