"""Lemmas: the datapath's rounding does not fall where a number rises, at any unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smtmodel.algebra import Bit, Bits, choose, constant
from smtmodel.decode import Exponent
from smtmodel.ordering import pattern_key
from smtmodel.rounding import Target, round_and_pack


@dataclass(frozen=True)
class _OfRounding:
    """About a magnitude of three bits more than a result has, anywhere about the numbers of a format, rounded for a
    target with either sign."""

    target: Target

    @property
    def _low(self) -> int:
        return self.target.format.emin - self.target.format.fraction - 5

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        fmt = self.target.format
        width = (fmt.emax + 4 - self._low).bit_length()
        return symbol("sign", 1), symbol("magnitude", fmt.precision + 3), symbol("place", width)

    def _opened(self, given: tuple[Bits, ...]) -> tuple[Bits, Exponent, Callable[[Bits, Exponent], Bits]]:
        """The magnitude with a bit more, its unit, and what rounds another to a key that grows with the number."""
        sign, magnitude, place = given
        unit = Exponent(place, self._low, self._low + (1 << place.width) - 1)

        def rounded(value: Bits, at: Exponent) -> Bits:
            return pattern_key(round_and_pack(sign.bit(0), value, at, self.target), self.target.format)

        return magnitude.zext(magnitude.width + 1), unit, rounded


@dataclass(frozen=True)
class RoundingRises(_OfRounding):
    """The next larger magnitude gives no smaller number."""

    def statement(self) -> str:
        return f"rounding to {self.target.format.name}, {self.target.rounding}, does not fall where a number rises"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        first, second = rounded(wide, unit), rounded(wide + constant(wide.carrier, 1, wide.width), unit)
        return choose(given[0].bit(0), second.sle(first), first.sle(second))


@dataclass(frozen=True)
class RoundingScales(_OfRounding):
    """It gives the same in units half as large."""

    def statement(self) -> str:
        return f"rounding to {self.target.format.name}, {self.target.rounding}, does not depend on the unit"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        return rounded(wide.shl(1), unit).eq(rounded(wide, unit.offset(1)))
