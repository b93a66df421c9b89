"""Lemmas: rounding in the datapath is monotonic, and does not depend on the unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mmaprobe.smtmodel.arithmetic.decode import Exponent
from mmaprobe.smtmodel.arithmetic.ordering import pattern_key
from mmaprobe.smtmodel.arithmetic.rounding import Target, round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose, constant


@dataclass(frozen=True)
class _OfRounding:
    """A lemma about a magnitude with three bits more than the format's precision, at any place in the format's range or
    just outside it, rounded for a target with either sign."""

    target: Target

    @property
    def _low(self) -> int:
        return self.target.format.unit - 5

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        fmt = self.target.format
        width = (fmt.emax + 4 - self._low).bit_length()
        return symbol("sign", 1), symbol("magnitude", fmt.precision + 3), symbol("place", width)

    def _opened(self, given: tuple[Bits, ...]) -> tuple[Bits, Exponent, Callable[[Bits, Exponent], Bits]]:
        """The magnitude, one bit wider; its unit; and a function that rounds a magnitude in some unit to a key that
        increases with the number."""
        sign, magnitude, place = given
        unit = Exponent(place, self._low, self._low + (1 << place.width) - 1)

        def rounded(value: Bits, at: Exponent) -> Bits:
            return pattern_key(round_and_pack(sign.bit(0), value, at, self.target), self.target.format)

        return magnitude.zext(magnitude.width + 1), unit, rounded


@dataclass(frozen=True)
class RoundingRises(_OfRounding):
    """The next larger magnitude does not give a smaller number or, with the sign set, a larger one."""

    def statement(self) -> str:
        return f"rounding to {self.target.format.name}, {self.target.rounding}, does not fall where a number rises"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        first, second = rounded(wide, unit), rounded(wide + constant(wide.carrier, 1, wide.width), unit)
        return choose(given[0].bit(0), second.sle(first), first.sle(second))


@dataclass(frozen=True)
class RoundingScales(_OfRounding):
    """Twice the magnitude in units half as large gives the same number."""

    def statement(self) -> str:
        return f"rounding to {self.target.format.name}, {self.target.rounding}, does not depend on the unit"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        return rounded(wide.shl(1), unit).eq(rounded(wide, unit.offset(1)))
