"""Keys for the order of numbers: signed integers in the same order."""

from __future__ import annotations

from mmaprobe.smtmodel.arithmetic.decode import Unpacked, multiply
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.ieee import product_specials
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select


def pattern_key(pattern: Bits, fmt: Format) -> Bits:
    """An integer in two's complement of `fmt.field_width` + 1 bits that increases with the number: both zeros have the
    same integer, infinities the outermost ones. For a NaN it is arbitrary."""
    if fmt.complement:
        return pattern
    width = fmt.field_width + 1
    fields = pattern.extract(fmt.field_width - 1, 0).zext(width)
    return select(pattern.bit(fmt.field_width), -fields, fields) if fmt.signed else fields


def product_key(left: Unpacked, right: Unpacked) -> tuple[Bits, Bit]:
    """(key, is NaN) of the exact product of two numbers; the keys are in the order of the products."""
    term = multiply(left.term, right.term).normalised()
    is_nan, is_infinite = product_specials(left, right)
    magnitude = term.exponent.bits.concat(term.significand)
    carrier, width = magnitude.carrier, magnitude.width
    zero, largest = constant(carrier, 0, width), constant(carrier, -1, width)
    magnitude = select(is_infinite, largest, select(term.is_zero, zero, magnitude)).zext(width + 1)
    return select(term.sign, -magnitude, magnitude), is_nan


def negated(pattern: Bits, fmt: Format) -> Bits:
    """The number with its sign changed. Unchanged are zero and the NaN in a format without -0, and the least number in
    two's complement."""
    if fmt.complement:
        return -pattern
    fields = pattern.truncate(fmt.field_width)
    flipped = (~pattern.bit(fmt.field_width)).bits().concat(fields)
    if fmt.has_negative_zero:
        return flipped
    return select(fields.any(), flipped, pattern)
