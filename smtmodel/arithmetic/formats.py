"""Number formats as data: one row for each encoding.

A bit pattern is sign, exponent field, fraction field and padding, from the top; unsigned formats have no sign field
but may be stored in a wider byte. The integers of N bits are a format too: with one exponent bit every number is a
multiple of the smallest number, and the exponent and fraction fields together are the integer; a negative integer is
stored in two's complement. Sources: IEEE 754-2019 (f64, f32, f16), OCP 8-bit floating point 1.0 (e4m3, e5m2), OCP
microscaling 1.0 (e3m2, e2m3, e2m1, ue8m0), the FNUZ forms of AMD CDNA3, NVIDIA PTX ISA (tf32, ue4m3), and Xie et al.
2026, Table 2 (e8m13).

A format that has no row is spelled by its fields, or as in the interim report of IEEE P3109 (`format_named`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Literal, get_args

from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError

OwnSpecials = Literal["ieee", "all_ones", "negative_zero", "none", "extended"]
Specials = OwnSpecials | Literal["unused", "complement"]
WIDEST = 64  # bits of a pattern
#: the least and the largest of some numbers, with 0 in the interval
Interval = tuple[Fraction, Fraction]
SPELLINGS = {
    "binaryKpP[se|sf|ue|uf]": "IEEE P3109, K bits of precision P: signed or unsigned, extended (infinities) or finite",
    "[u]intN": "integers of N bits, two's complement or unsigned",
    "[u]eEmM[bBIAS]_SPECIALS": f"E exponent and M fraction bits; SPECIALS: {', '.join(get_args(OwnSpecials))}",
}


@dataclass(frozen=True)
class Format:
    """A binary floating-point encoding.

    `fraction` is the number of stored significand bits, `padding` the number of ignored low bits of the pattern.
    `specials`: ieee = infinities and NaNs under the top exponent; all_ones = one NaN of all ones for each sign, no
    infinity; negative_zero = the pattern of -0 is the only NaN; extended = the largest patterns are infinities, and the
    only NaN is the pattern of -0, or in an unsigned format the pattern above infinity; none = every pattern is finite;
    unused = no number has the top exponent (see `finite`); complement = every pattern is finite, and negative numbers
    are in two's complement, so that there is one negative number more than positive numbers, and no -0.
    """

    name: str
    exponent: int
    fraction: int
    bias: int
    specials: Specials
    signed: bool = True
    subnormals: bool = True
    padding: int = 0
    storage: int = 0

    def __hash__(self) -> int:
        return hash(self.name)  # a hash of every field takes as long as some of the results that are cached by format

    @cached_property
    def width(self) -> int:
        """Bits of a stored pattern."""
        return self.storage or self.field_width + int(self.signed)

    @cached_property
    def field_width(self) -> int:
        """Bits of exponent, fraction and padding."""
        return self.exponent + self.fraction + self.padding

    @cached_property
    def precision(self) -> int:
        """Significand bits, the hidden one included."""
        return self.fraction + 1

    @cached_property
    def word(self) -> int:
        """Bits of the smallest unsigned integer type that holds a pattern."""
        return next(size for size in (8, 16, 32, 64) if size >= self.width)

    @cached_property
    def digits(self) -> int:
        """Hexadecimal digits of a pattern."""
        return (self.width + 3) // 4

    @cached_property
    def emin(self) -> int:
        """The smallest exponent of a normal number, which subnormal numbers have too."""
        return (1 if self.subnormals else 0) - self.bias

    @cached_property
    def unit(self) -> int:
        """The exponent of the last place of the smallest numbers; all numbers are multiples of 2^`unit`."""
        return self.emin - self.fraction

    def takes(self, other: Format) -> bool:
        """Whether every pattern of the other format, with zeros as its padding, is the same number in this format."""
        keys = ("exponent", "bias", "specials", "signed", "width")
        return self.name == other.name or (
            0 == self.padding <= other.padding and all(getattr(self, key) == getattr(other, key) for key in keys)
        )

    def is_within(self, other: Format) -> bool:
        """Whether conversion to the other format only adds fraction bits: numbers keep their values and exponents, and
        subnormal numbers stay subnormal."""
        keys = ("exponent", "bias", "specials", "signed", "subnormals")
        return all(getattr(self, key) == getattr(other, key) for key in keys) and self.fraction <= other.fraction

    def holds(self, other: Format) -> bool:
        """True only if every number of the other format is a number of this format; False proves nothing. A format
        without subnormal numbers has no zero."""
        signed = self.signed or not other.signed
        kinds = ("has_nan", "has_infinity", "has_negative_zero", "subnormals")
        special = all(getattr(self, kind) or not getattr(other, kind) for kind in kinds)
        small = self.emin <= other.emin
        if self.subnormals:
            small = self.unit <= other.unit
        large = other.largest_number <= self.largest_number
        if other.complement and not self.complement:
            large = (other.emax, Fraction(1)) <= self.largest_number
        return self == other or (small and large and self.fraction >= other.fraction and signed and special)

    @cached_property
    def largest_number(self) -> tuple[int, Fraction]:
        """The exponent of the largest number, and its significand, at least 1 and below 2. (In two's complement the
        least number, -2^emax, is one step further from zero.)"""
        exponent, fraction = divmod(self.largest_field, 1 << self.fraction)
        return exponent - self.bias, 1 + Fraction(fraction, 1 << self.fraction)

    @cached_property
    def most(self) -> Fraction:
        """The largest number."""
        exponent, significand = self.largest_number
        return significand * Fraction(2) ** exponent

    @cached_property
    def interval(self) -> Interval:
        """The least and the largest finite number."""
        return Fraction(0) if not self.signed else -self.most - self.complement * Fraction(2) ** self.unit, self.most

    @cached_property
    def integers(self) -> Interval | None:
        """An interval of integers, each of which is 0 or a normal number of the format; None where 1 is not normal, or
        the format has no zero."""
        if self.is_integer:
            return self.interval
        if self.emin > 0 or not self.subnormals:
            return None
        top = Fraction(1 << self.precision)
        return max(self.interval[0], -top), min(self.interval[1], top)

    @cached_property
    def has_nan(self) -> bool:
        return self.specials not in ("none", "unused", "complement")

    @cached_property
    def complement(self) -> bool:
        """Whether negative numbers are in two's complement."""
        return self.specials == "complement"

    @cached_property
    def has_infinity(self) -> bool:
        return self.specials in ("ieee", "extended")

    @cached_property
    def has_negative_zero(self) -> bool:
        return self.signed and not self.complement and self.specials not in ("negative_zero", "extended")

    @cached_property
    def nan_for_negative_zero(self) -> bool:
        """Whether the pattern of -0 is the only NaN."""
        return self.signed and self.has_nan and not self.has_negative_zero

    @cached_property
    def largest_field(self) -> int:
        """Exponent and fraction fields of the largest finite number, without padding."""
        everything = (1 << (self.exponent + self.fraction)) - 1
        if self.specials in ("ieee", "unused"):
            return everything - (1 << self.fraction)
        if self.specials == "extended":
            return everything - (1 if self.signed else 2)
        return everything - 1 if self.specials == "all_ones" else everything

    @cached_property
    def finite(self) -> Format:
        """The same format without infinities and NaNs."""
        return self if self.complement else replace(self, specials="unused" if self.specials == "ieee" else "none")

    @cached_property
    def infinity_field(self) -> int:
        """The fields of infinity; in a format without infinity, of NaN if its pattern is all ones, else of the largest
        number."""
        return self.largest_field + (self.has_infinity or self.specials == "all_ones")

    @cached_property
    def last_field(self) -> int:
        """Fields of the largest pattern that is not a NaN."""
        return self.infinity_field if self.has_infinity else self.largest_field

    @cached_property
    def emax(self) -> int:
        """The exponent of the finite number of the largest magnitude."""
        return (self.largest_field >> self.fraction) - self.bias + self.complement

    @cached_property
    def is_integer(self) -> bool:
        """Whether the numbers of the format are the integers of some width."""
        return self == integer(self.name, self.width, self.signed)

    @cached_property
    def nan(self) -> int:
        """The pattern of a quiet NaN, positive if possible; 0 in a format without NaN."""
        if self.specials == "ieee":
            return (self.infinity_field | 1 << (self.fraction - 1)) << self.padding
        if self.nan_for_negative_zero:
            return self.sign_bit
        return (self.last_field + 1) << self.padding if self.has_nan else 0

    @cached_property
    def sign_bit(self) -> int:
        return 1 << self.field_width if self.signed else 0

    @cached_property
    def infinity(self) -> int:
        """The pattern of +infinity (see `infinity_field`)."""
        return self.infinity_field << self.padding

    @cached_property
    def one_exponent(self) -> int:
        """The exponent field of 1; in a format whose bias leaves no 1, of the nearest power of two."""
        return min(max(self.bias, int(self.subnormals)), self.largest_field >> self.fraction)

    @cached_property
    def one(self) -> int:
        """The pattern of 1, or of the nearest power of two (see `one_exponent`)."""
        return self.one_exponent << self.fraction << self.padding

    @cached_property
    def largest(self) -> int:
        """The pattern of the largest finite number."""
        return self.largest_field << self.padding


def integer(name: str, bits: int, signed: bool) -> Format:
    """The format of the integers of `bits` bits."""
    fraction = bits - 1 - signed
    return Format(name, 1, fraction, 1 - fraction, "complement" if signed else "none", signed)


_ROWS = (
    Format("f64", 11, 52, 1023, "ieee"),
    Format("f32", 8, 23, 127, "ieee"),
    Format("tf32", 8, 10, 127, "ieee", padding=13),
    Format("bf16", 8, 7, 127, "ieee"),
    Format("f16", 5, 10, 15, "ieee"),
    Format("e4m3", 4, 3, 7, "all_ones"),
    Format("e5m2", 5, 2, 15, "ieee"),
    Format("e4m3fnuz", 4, 3, 8, "negative_zero"),
    Format("e5m2fnuz", 5, 2, 16, "negative_zero"),
    Format("e3m2", 3, 2, 3, "none"),
    Format("e2m3", 2, 3, 1, "none"),
    Format("e2m1", 2, 1, 1, "none"),
    Format("ue8m0", 8, 0, 127, "all_ones", signed=False, subnormals=False),
    Format("ue4m3", 4, 3, 7, "all_ones", signed=False, storage=8),
    Format("e8m13", 8, 13, 127, "ieee", padding=10),
    *(integer(f"{'' if signed else 'u'}int{bits}", bits, signed) for bits in (4, 8, 32) for signed in (True, False)),
)

FORMATS = {row.name: row for row in _ROWS}


_FIELDS = re.compile(rf"(u?)e([0-9]{{1,9}})m([0-9]{{1,9}})(?:b([0-9]{{1,9}}))?_({'|'.join(get_args(OwnSpecials))})")
_INTEGER = re.compile("(u?)int([0-9]{1,9})")
_P3109 = re.compile("binary([0-9]{1,9})p([0-9]{1,9})(?:([su])([ef]))?")
_FINITE: dict[bool, OwnSpecials] = {True: "negative_zero", False: "all_ones"}  # P3109's, by whether there is a sign


def own_format(
    name: str, exponent: int, fraction: int, bias: int | None, specials: OwnSpecials, signed: bool = True
) -> Format:
    """A format without a row; the default `bias` is IEEE's. Raises ParameterError if there is no such format."""
    least = {"ieee": (2, 1), "none": (1, 1)}.get(specials, (1, 0))
    if not least[0] <= exponent <= 15 or not least[1] <= fraction <= 52:
        ranges = f"{least[0]} to 15 exponent and {least[1]} to 52 fraction bits"
        raise ParameterError(
            name, f"{exponent} exponent and {fraction} fraction bits are impossible; it takes {ranges}"
        )
    bias = (1 << (exponent - 1)) - 1 if bias is None else bias
    if abs(bias) > 1 << 15:
        raise ParameterError(name, f"the bias {bias} is impossible; it takes a whole number of at most 32768")
    fmt = Format(name, exponent, fraction, bias, specials, signed)
    if fmt.width > WIDEST:
        raise ParameterError(name, f"{fmt.width} bits are too many; a pattern has at most {WIDEST}")
    if fmt.largest_field < 1 << fraction:
        raise ParameterError(name, "no pattern is left for a normal number")
    if not signed and specials == "negative_zero":
        raise ParameterError(name, "an unsigned format has no -0 whose pattern could be its NaN")
    return fmt


def is_spelling(name: str) -> bool:
    """Whether a name is a spelling of a format's fields."""
    return any(pattern.fullmatch(name) for pattern in (_FIELDS, _P3109, _INTEGER))


def format_named(name: str, own: Iterable[str] = ()) -> Format:
    """The format of a row's name or of a spelling: `e4m3_ieee` (exponent and fraction bits, a bias after `b`,
    specials), or P3109's `binary8p4se`. All spellings of one format give a format of the same name, the row's if there
    is a row. Raises UnknownNameError, which suggests the nearest name, also of the names `own`, or ParameterError for
    an impossible format."""
    if name in FORMATS:
        return FORMATS[name]
    if is_spelling(name):
        return _spelled(name)
    raise UnknownNameError("format", name, [*FORMATS, *own], hint=" (your own are written as e4m3_ieee or binary8p4se)")


@cache
def _spelled(name: str) -> Format:
    if match := _FIELDS.fullmatch(name):
        sign, exponent, fraction, bias, specials = match.groups()
        fmt = own_format(name, int(exponent), int(fraction), int(bias) if bias else None, specials, not sign)  # type: ignore[arg-type]
    elif match := _INTEGER.fullmatch(name):
        signed, bits = not match[1], int(match[2])
        if not 2 + signed <= bits <= WIDEST:
            raise ParameterError(name, f"{bits} bits are impossible; it takes {2 + signed} to {WIDEST}")
        return integer(f"{match[1]}int{bits}", bits, signed)
    else:
        match = _P3109.fullmatch(name)
        assert match is not None
        fmt = _p3109(name, int(match[1]), int(match[2]), match[3] != "u", match[4] != "f")
    return with_common_name(fmt)


def with_common_name(fmt: Format) -> Format:
    """The same format under the name of its row, else under its canonical spelling, so that files agree on it. A format
    with a negative bias, which cannot be spelled, keeps its name."""
    common = next((row.name for row in _ROWS if replace(fmt, name=row.name) == row), _spelling(fmt))
    return replace(fmt, name=common) if common in FORMATS or is_spelling(common) else fmt


def _p3109(name: str, bits: int, precision: int, signed: bool, extended: bool) -> Format:
    """A binary format of IEEE P3109's interim report, with one zero and one NaN, and half of its positive numbers below
    1."""
    if not 3 <= bits <= WIDEST or not 1 <= precision <= bits - signed:
        most = "K - 1" if signed else "K"
        raise ParameterError(name, f"impossible; K is from 3 to {WIDEST}, and the precision from 1 to {most}")
    exponent = bits - precision + (not signed)
    specials: OwnSpecials = "extended" if extended else _FINITE[signed]
    return own_format(name, exponent, precision - 1, 1 << (exponent - 1), specials, signed)


def p3109_name(fmt: Format) -> str:
    """The name of a format in IEEE P3109's interim report; empty if it has none."""
    like = fmt.bias == 1 << max(fmt.exponent - 1, 0) and fmt.specials in (_FINITE[fmt.signed], "extended")
    kind = ("s" if fmt.signed else "u") + ("e" if fmt.has_infinity else "f")
    return f"binary{fmt.width}p{fmt.precision}{kind}" if like and fmt.width >= 3 else ""


def _spelling(fmt: Format) -> str:
    """The canonical name of a format without a row."""
    if name := p3109_name(fmt):
        return name
    sign = "" if fmt.signed else "u"
    bias = "" if fmt.bias == (1 << (fmt.exponent - 1)) - 1 else f"b{fmt.bias}"
    return f"{sign}e{fmt.exponent}m{fmt.fraction}{bias}_{fmt.specials}"
