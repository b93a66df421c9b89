"""Lemmas about the datapath: the loss of one rounding of a magnitude."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from mmaprobe.queries.kernel.lemmas import off_by
from mmaprobe.smtmodel.arithmetic.decode import Exponent, is_largest, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode, Target, round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select

SPARE = 3  # bits of a magnitude before rounding beyond the result's


@dataclass(frozen=True)
class OfMagnitudes(ABC):
    """A lemma about signed magnitudes of some bits in units of a range of powers of two (`span`)."""

    @property
    @abstractmethod
    def span(self) -> tuple[int, int, int]:
        """The width in bits, and the least and the largest exponent of the last bit."""

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        width, low, high = self.span
        return symbol("sign", 1), symbol("magnitude", width), symbol("place", (high - low).bit_length())

    def given(self, given: tuple[Bits, ...]) -> tuple[Bit, Bits, Exponent, Bit]:
        """Sign, magnitude and unit, and whether the unit is in its range."""
        sign, magnitude, place = given
        _, low, high = self.span
        within = place.ule(constant(place.carrier, high - low, place.width))
        return sign.bit(0), magnitude, Exponent(place, low, high), within


@dataclass(frozen=True)
class _OfRounding(OfMagnitudes):
    """A lemma about a magnitude y of f + 4 bits, at any place from below the smallest number of a format with f
    fraction bits (its last bit two places below that of the smallest subnormal number) up to its largest number."""

    format: Format

    @property
    def span(self) -> tuple[int, int, int]:
        width, low = self.format.precision + SPARE, self.format.unit - 2
        return width, low, low + (1 << max(1, self.format.emax - width + 1 - low).bit_length()) - 1

    def _rounded(self, given: tuple[Bits, ...], mode: Mode) -> tuple[Bit, Bits, Bits, Bits, Bit]:
        """Whether the result is NaN, infinite or the largest number (as after an overflow); the result, the magnitude
        and one unit of the result's last place, all in one common unit; and whether the result's last place is finer
        than the magnitude's."""
        sign, magnitude, unit, _ = self.given(given)
        fmt, carrier, place = self.format, magnitude.carrier, unit.bits
        value = unpack(round_and_pack(sign, magnitude, unit, Target(fmt, mode)), fmt)
        room = max(value.term.exponent.bits.width, place.width) + 3
        offset = value.term.exponent.low - fmt.fraction - unit.low
        amount = value.term.exponent.bits.zext(room) + constant(carrier, offset, room) - place.zext(room)
        width = magnitude.width + 2 * fmt.precision + 6
        digits, exact = value.term.significand.zext(width), magnitude.zext(width)
        finer = amount.msb()
        result, exact = select(finer, digits, digits.shl(amount)), select(finer, exact.shl(-amount), exact)
        one = constant(carrier, 1, width)
        overflows = value.is_nan | value.is_infinite | is_largest(value, fmt)
        return overflows, result, exact, select(finer, one, one.shl(amount)), finer


@dataclass(frozen=True)
class RoundingLoses(_OfRounding):
    """A magnitude y of f + 4 bits, at any place from below the smallest number of a format with f fraction bits up to
    its largest number, whose rounding is finite and below the largest number, loses at most 2^-f |y|, or 2^(emin - f)
    if |y| < 2^emin; half of that to nearest. Rounded down it does not rise, rounded up it does not fall.

    If the result is the largest number, no solver is needed: the loss is below one unit (at most half of one to
    nearest) by the definition of a rounding that does not overflow."""

    mode: Mode

    def statement(self) -> str:
        return f"rounding to {self.format.name}, {self.mode}, loses less than one unit of the last place"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        sign, _, place = given
        fmt, carrier = self.format, place.carrier
        overflows, result, exact, _, finer = self._rounded(given, self.mode)
        room, width = place.width + 3, exact.width
        least = constant(carrier, fmt.unit - self.span[1], room) - place.zext(room)
        fixed = select(least.msb() | finer, constant(carrier, 0, width), constant(carrier, 1, width).shl(least))

        def whole(off: Bits) -> Bit:
            return off.shl(fmt.fraction).ule(exact) | off.ule(fixed)

        def half(off: Bits) -> Bit:
            return off.shl(fmt.fraction + 1).ule(exact) | (off + off).ule(fixed)

        return overflows | off_by(result, exact, self.mode, sign.bit(0), whole, half)


@dataclass(frozen=True)
class TruncationKeeps(_OfRounding):
    """A magnitude y as in `RoundingLoses`, rounded toward zero to a number d below the largest: |d| <= y < |d| +
    ulp(d), where ulp(d) is 2^(max(e, emin) - f) for d's exponent e."""

    def statement(self) -> str:
        return f"rounding to {self.format.name}, toward_zero, cuts off less than the last place of the result"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        overflows, result, exact, last, _ = self._rounded(given, "toward_zero")
        return overflows | (result.ule(exact) & exact.ult(result + last))
