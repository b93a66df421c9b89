"""IEEE 754-2019 addition, multiplication and fused multiply-add, in any format and rounding mode.

The operations are built from the blocks of the datapath (decode, exact product, round and pack). Two exact terms are
summed in a width that keeps every bit on which rounding depends:

1. Both terms are normalised, so that the larger exponent belongs to the larger term, and padded to the precision of the
   result.
2. Both are shifted right to the larger exponent; bits shifted out of the width are ORed into one sticky bit. Two guard
   bits above the sticky bit keep this bit below the bits that rounding keeps: after a shift of two or more places at
   most one leading bit cancels.
3. `round_and_pack` rounds the signed sum once.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.smtmodel.arithmetic.alignment import magnitude_of
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked, at_maximum, multiply, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import ResultMode, Rounding, Target, infinity_of, round_and_pack, signed
from mmaprobe.smtmodel.carriers.algebra import (
    Bit,
    Bits,
    all_of,
    any_of,
    choose,
    constant,
    select,
    shift_right_jam,
    sum_of,
)

GUARD = 3


def zero_sign(signs: Sequence[Bit], rounding: ResultMode) -> Bit:
    """The sign of an exact zero sum: the terms' sign if all have the same sign, else + (- when rounding down)."""
    negative = all_of(signs)
    return any_of(signs) if rounding == "down" else negative


def align_two(left: Term, right: Term, precision: int) -> tuple[list[Bits], Exponent]:
    """The magnitudes of two terms at the larger exponent, exact but for a sticky lowest bit; and the exponent of their
    unit."""
    unit, significands, distances = at_maximum(left.normalised(), right.normalised())
    spare = GUARD + max(0, precision - significands[0].width)
    aligned = [shift_right_jam(x.pad(spare), n) for x, n in zip(significands, distances, strict=True)]
    return aligned, unit.offset(-spare)


def sum_two(left: Term, right: Term, precision: int) -> tuple[Bit, Bits, Exponent]:
    """The sum of two terms, exact but for a sticky lowest bit: sign (whether negative), magnitude, exponent of the
    unit. Rounding the sum to at most `precision` bits is correct; the sign is correct unless the sum is zero."""
    aligned, unit = align_two(left, right, precision)
    width = aligned[0].width + 2
    total = sum_of(left.sign.carrier, [left.sign, right.sign], aligned, width)
    return *magnitude_of(total), unit


def signed_sum(left: Term, right: Term, target: Target) -> tuple[Bit, Bits, Exponent]:
    """`sum_two` for the precision of a target, with the sign of the rounded sum: a zero's sign follows IEEE 754-2019,
    6.3."""
    negative, magnitude, unit = sum_two(left, right, target.format.precision)
    sign = choose(magnitude.any(), negative, zero_sign([left.sign, right.sign], target.rounding))
    return sign, magnitude, unit


def round_sum(left: Term, right: Term, target: Target) -> Bits:
    """The correctly rounded sum of two finite terms."""
    return round_and_pack(*signed_sum(left, right, target), target)


def with_specials(
    finite: Bits, is_nan: Bit, positive: Bit, negative: Bit, fmt: Format, nan: int, largest: bool = False
) -> Bits:
    """The result of an operation on inputs that may be NaN or infinite: `finite` unless an input is. `is_nan`: an input
    is a NaN; `positive`, `negative`: an input is an infinity of this sign (of both: NaN); `nan`: the pattern of NaN
    results; `largest`: an infinite result becomes the largest number."""
    carrier = finite.carrier
    invalid = is_nan | (positive & negative)
    infinite = signed(fmt.largest, negative, fmt) if largest else infinity_of(fmt, negative)
    result = select(positive | negative, infinite, finite)
    return select(invalid, constant(carrier, nan, fmt.width), result)


def product_specials(left: Unpacked, right: Unpacked) -> tuple[Bit, Bit]:
    """Whether a product is NaN, and whether it is infinite: NaN propagates, and infinity times zero is NaN."""
    invalid = (left.is_infinite & right.is_zero) | (left.is_zero & right.is_infinite)
    return left.is_nan | right.is_nan | invalid, left.is_infinite | right.is_infinite


def add(
    x: Bits,
    y: Bits,
    fmt: Format,
    rounding: Rounding = "nearest_even",
    nan: int | None = None,
    flush: bool = False,
) -> Bits:
    """x + y, with operands and result in `fmt`. `nan`: the pattern of NaN results, by default the format's quiet NaN;
    `flush`: subnormal results become zero."""
    left, right = unpack(x, fmt), unpack(y, fmt)
    finite = round_sum(left.term, right.term, Target(fmt, rounding, flush=flush))
    positive, negative = infinities([(left.is_infinite, left.sign), (right.is_infinite, right.sign)])
    nan = fmt.nan if nan is None else nan
    return with_specials(finite, left.is_nan | right.is_nan, positive, negative, fmt, nan)


def infinities(flags: Sequence[tuple[Bit, Bit]]) -> tuple[Bit, Bit]:
    """Whether any element is +infinity, and whether any is -infinity. `flags`: for each element, whether it is infinite
    and its sign."""
    return any_of([flag & ~sign for flag, sign in flags]), any_of([flag & sign for flag, sign in flags])


def mul(x: Bits, y: Bits, fmt: Format, rounding: Rounding = "nearest_even", nan: int | None = None) -> Bits:
    """x * y, with operands and result in `fmt`. `nan`: as of `add`."""
    left, right = unpack(x, fmt), unpack(y, fmt)
    finite = round_term(multiply(left.term, right.term), Target(fmt, rounding))
    is_nan, is_infinite = product_specials(left, right)
    sign = left.sign ^ right.sign
    nan = fmt.nan if nan is None else nan
    return with_specials(finite, is_nan, is_infinite & ~sign, is_infinite & sign, fmt, nan)


def round_term(term: Term, target: Target) -> Bits:
    """The correctly rounded pattern of one finite term; a zero keeps the term's sign."""
    return round_and_pack(term.sign, term.significand, term.exponent.offset(-term.fraction), target)


def fma(x: Bits, y: Bits, z: Bits, fmt: Format, rounding: Rounding = "nearest_even", nan: int | None = None) -> Bits:
    """x * y + z with one rounding, with operands and result in `fmt`. `nan`: as of `add`."""
    left, right, addend = (unpack(pattern, fmt) for pattern in (x, y, z))
    product = multiply(left.term, right.term)
    finite = round_sum(product, addend.term, Target(fmt, rounding))
    is_nan, is_infinite = product_specials(left, right)
    positive, negative = infinities([(is_infinite, product.sign), (addend.is_infinite, addend.sign)])
    nan = fmt.nan if nan is None else nan
    return with_specials(finite, is_nan | addend.is_nan, positive, negative, fmt, nan)


def convert(pattern: Bits, source: Format, target: Target) -> Bits:
    """A pattern of the format `source`, rounded to a target; a NaN becomes the quiet NaN of the target's format."""
    value = unpack(pattern, source)
    finite = round_term(value.term, target)
    positive, negative = infinities([(value.is_infinite, value.sign)])
    return with_specials(finite, value.is_nan, positive, negative, target.format, target.format.nan)
