"""Number formats as data: one row for each encoding, no class hierarchy.

A bit pattern is sign, exponent field, fraction field and padding, from the top; unsigned formats have no sign field
but may be stored in a wider byte. Sources: IEEE 754-2019 (f64, f32, f16), OCP 8-bit floating point 1.0 (e4m3, e5m2),
OCP microscaling 1.0 (e3m2, e2m3, e2m1, ue8m0), the FNUZ forms of AMD CDNA3, NVIDIA PTX ISA (tf32, ue4m3), and
e8m13 after Xie et al. 2026, Table 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from smtmodel.errors import UnknownNameError

Specials = Literal["ieee", "all_ones", "negative_zero", "none", "unused"]


@dataclass(frozen=True)
class Format:
    """A binary floating-point encoding.

    `fraction` is the number of stored significand bits, `padding` the number of ignored low bits of the pattern.
    `specials`: ieee = infinities and NaNs under the top exponent; all_ones = one NaN of all ones for each sign, no
    infinity; negative_zero = the pattern of -0 is the only NaN; none = every pattern is finite; unused =
    no number has the top exponent (see `finite`).
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

    @property
    def width(self) -> int:
        """Bits of a stored pattern."""
        return self.storage or self.field_width + int(self.signed)

    @property
    def field_width(self) -> int:
        """Bits of exponent, fraction and padding."""
        return self.exponent + self.fraction + self.padding

    @property
    def precision(self) -> int:
        """Significand bits, the hidden one included."""
        return self.fraction + 1

    @property
    def digits(self) -> int:
        """Hexadecimal digits of a pattern."""
        return (self.width + 3) // 4

    @property
    def emin(self) -> int:
        """The smallest exponent of a normal number (and that of every subnormal)."""
        return (1 if self.subnormals else 0) - self.bias

    @property
    def largest_field(self) -> int:
        """Exponent and fraction fields of the largest finite number, without padding."""
        everything = (1 << (self.exponent + self.fraction)) - 1
        if self.specials in ("ieee", "unused"):
            return everything - (1 << self.fraction)
        return everything - 1 if self.specials == "all_ones" else everything

    @property
    def finite(self) -> Format:
        """The format of the patterns that are numbers."""
        return replace(self, specials="unused" if self.specials == "ieee" else "none")

    @property
    def infinity_field(self) -> int:
        """Fields of infinity; of what stands in for it (NaN, or the largest finite) where there is none."""
        return self.largest_field + (self.specials in ("ieee", "all_ones"))

    @property
    def emax(self) -> int:
        """The exponent of the largest finite number."""
        return (self.largest_field >> self.fraction) - self.bias

    @property
    def nan(self) -> int:
        """A quiet NaN with positive sign where the format has one; 0 where it has none."""
        if self.specials == "ieee":
            return (self.infinity_field | 1 << (self.fraction - 1)) << self.padding
        if self.specials == "all_ones":
            return self.infinity_field << self.padding
        return 1 << (self.width - 1) if self.specials == "negative_zero" else 0

    @property
    def sign_bit(self) -> int:
        return 1 << self.field_width if self.signed else 0

    @property
    def infinity(self) -> int:
        """The pattern of +infinity (see `infinity_field`)."""
        return self.infinity_field << self.padding

    @property
    def largest(self) -> int:
        """The pattern of the largest finite number."""
        return self.largest_field << self.padding


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
)

FORMATS = {row.name: row for row in _ROWS}


def format_named(name: str) -> Format:
    """The format of that name. Raises UnknownNameError, which names the nearest."""
    try:
        return FORMATS[name]
    except KeyError:
        raise UnknownNameError("format", name, FORMATS) from None
