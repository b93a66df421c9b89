"""Lemmas that rounding in the datapath is monotonic, and does not depend on the unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Exponent
from mmaprobe.smtmodel.arithmetic.ordering import pattern_key
from mmaprobe.smtmodel.arithmetic.rounding import Target, round_and_pack
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose, constant


def rounding_text(target: Target, bits: int) -> str:
    """The rounding for a target, by a number of random bits, in words."""
    drawn = f" by {counted(bits, 'random bit')}" if bits else ""
    return f"rounding to {target.format.name}, {target.rounding}{drawn}"


@dataclass(frozen=True)
class OfTarget:
    """A lemma about rounding a magnitude for a target. The magnitude has `spare` bits more than the format's precision,
    and lies at any place in the format's range or just outside it. `bits`: the number of random bits of the rounding;
    the magnitude has as many further bits."""

    target: Target
    bits: int = 0
    spare: ClassVar[int] = 3

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        fmt, drawn = self.target.format, [symbol("random", self.bits)] if self.bits else []
        magnitude = symbol("magnitude", fmt.precision + self.spare + self.bits)
        return magnitude, symbol("place", (fmt.emax + 4 - self._low).bit_length()), *drawn

    def unit_at(self, place: Bits) -> Exponent:
        """The unit of a magnitude at a place."""
        return Exponent(place, self._low, self._low + (1 << place.width) - 1)

    @property
    def _low(self) -> int:
        return self.target.format.unit - 2 - self.spare - self.bits


@dataclass(frozen=True)
class _OfSigned(OfTarget):
    """A lemma about rounding a magnitude with either sign for a target."""

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        return symbol("sign", 1), *super().inputs(symbol)

    def _opened(self, given: tuple[Bits, ...]) -> tuple[Bits, Exponent, Callable[[Bits, Exponent], Bits]]:
        """The magnitude, one bit wider; its unit; and a function that rounds a magnitude in some unit to a key that
        increases with the number."""
        sign, magnitude, place, *drawn = given
        unit = self.unit_at(place)

        def rounded(value: Bits, at: Exponent) -> Bits:
            return pattern_key(round_and_pack(sign.bit(0), value, at, self.target, *drawn), self.target.format)

        return magnitude.zext(magnitude.width + 1), unit, rounded


@dataclass(frozen=True)
class RoundingRises(_OfSigned):
    """The next larger magnitude does not give a smaller number or, with the sign set, a larger one."""

    def statement(self) -> str:
        return f"{rounding_text(self.target, self.bits)}, does not fall where a number rises"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        first, second = rounded(wide, unit), rounded(wide + constant(wide.carrier, 1, wide.width), unit)
        return choose(given[0].bit(0), second.sle(first), first.sle(second))


@dataclass(frozen=True)
class RoundingScales(_OfSigned):
    """Twice the magnitude in units half as large gives the same number."""

    def statement(self) -> str:
        return f"{rounding_text(self.target, self.bits)}, does not depend on the unit"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        return rounded(wide.shl(1), unit).eq(rounded(wide, unit.offset(1)))
