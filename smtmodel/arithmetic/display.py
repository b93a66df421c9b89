"""Numbers and patterns as text: exact powers of two, decimals, and bits by field."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache

from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier

_CARRIER = ArrayCarrier()  # its operations are never called: the algebra folds constants
MAX_POWERS = 3


def exact_value(pattern: int, fmt: Format) -> Fraction | str:
    """The number of a pattern; "nan", "inf" or "-inf" for a pattern that is not finite, "-0" for negative zero."""
    value = unpack(constant(_CARRIER, pattern, fmt.width), fmt)
    sign = "-" if value.sign.value else ""
    if value.is_nan.value:
        return "nan"
    if value.is_infinite.value:
        return sign + "inf"
    if value.is_zero.value:
        return "-0" if sign else Fraction(0)
    term = value.term
    assert term.significand.value is not None
    assert term.exponent.bits.value is not None
    exponent = term.exponent.bits.value + term.exponent.low - term.fraction
    return (-1 if sign else 1) * term.significand.value * Fraction(2) ** exponent


@cache
def finite_value(pattern: int, fmt: Format) -> Fraction | None:
    """The number of a pattern, without the sign of a zero; None for a pattern that is not finite."""
    value = exact_value(pattern, fmt)
    return value if isinstance(value, Fraction) else Fraction(0) if value == "-0" else None


def exponent_of(value: Fraction) -> int:
    """The exponent of the leading bit of a positive number."""
    above, below = value.numerator, value.denominator
    exponent = above.bit_length() - below.bit_length()
    return exponent - (below << exponent > above if exponent >= 0 else below > above << -exponent)


def ulp_of(value: Fraction, fmt: Format) -> Fraction:
    """The unit in the last place of `fmt` at a number; at least the spacing of the subnormals."""
    exponent = max(exponent_of(abs(value)), fmt.emin) if value else fmt.emin
    return Fraction(2) ** (exponent - fmt.fraction)


def powers(value: Fraction) -> str:
    """The exact text of a dyadic number: an integer of one digit as a digit; other numbers as a sum of at most three
    signed powers of two if possible (2^0 is written 1), else as an odd number times a power of two."""
    if value.denominator == 1 and abs(value) < 10:
        return str(value)
    exponent = -(value.denominator.bit_length() - 1)
    number = value.numerator
    low = (number & -number).bit_length() - 1
    number, exponent = number >> low, exponent + low
    digits = _signed_digits(abs(number))
    if len(digits) <= MAX_POWERS:
        terms = [(digit * (1 if number > 0 else -1), place + exponent) for digit, place in digits]
        text = "".join(f" {'+' if digit > 0 else '-'} {f'2^{place}' if place else '1'}" for digit, place in terms)
        return text[3:] if text.startswith(" +") else "-" + text[3:]
    return f"{number}*2^{exponent}" if exponent else str(number)


def _signed_digits(number: int) -> list[tuple[int, int]]:
    """The non-adjacent form of a number, the shortest sum of signed powers of two, as digits (1 or -1) with their
    places, the highest first."""
    digits, place = [], 0
    while number:
        if number & 1:
            digit = 2 - (number & 3)
            digits.append((digit, place))
            number -= digit
        number, place = number >> 1, place + 1
    return digits[::-1]


def number_text(pattern: int, fmt: Format) -> str:
    """The value of a pattern in powers of two."""
    value = exact_value(pattern, fmt)
    return value if isinstance(value, str) else powers(value)


def value_text(pattern: int, fmt: Format) -> str:
    """The value of a pattern in powers of two and in decimals."""
    return both(number_text(pattern, fmt), decimal_text(pattern, fmt))


def decimal_text(pattern: int, fmt: Format) -> str:
    """The value of a pattern in nine decimal digits, which distinguish all numbers of f32."""
    value = exact_value(pattern, fmt)
    return value if isinstance(value, str) else decimal(value)


def both(text: str, decimals: str) -> str:
    """A number in powers of two, and in decimals where the two differ: -2^13 + 2^-8 = -8191.99609."""
    return text if text == decimals else f"{text} = {decimals}"


def decimal(value: Fraction) -> str:
    """A number in nine decimal digits, which distinguish all numbers of f32."""
    if value and not -1022 <= math.log2(abs(value.numerator)) - math.log2(value.denominator) < 1023:
        return f"{Decimal(value.numerator) / value.denominator:.9g}"  # beyond the range of f64
    return f"{float(value):.9g}"


def bit_fields(pattern: int, fmt: Format) -> str:
    """The bits of a pattern's sign, exponent and fraction, separated by blanks; of an integer, all bits together."""
    width = fmt.field_width - fmt.padding + int(fmt.signed)
    digits = f"{pattern >> fmt.padding & ((1 << width) - 1):0{width}b}"
    if fmt.is_integer:
        return digits
    cut = int(fmt.signed)
    parts = [digits[:cut], digits[cut : cut + fmt.exponent], digits[cut + fmt.exponent :]]
    return " ".join(part for part in parts if part)
