"""Counting units beside the trace that a mask leaves, where the result's format is too short to hold both.

A step that rounds toward zero, to odd, or with a sticky bit keeps a trace of the units that a mask hides: a multiple of
the mask's last place in that step. Units just below that place are hidden as tiny units are. The fewer units are asked
about at once, the fewer bits distinguish their number from the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Protocol

from mmaprobe.queries.order.tree import Leaf, Pair
from mmaprobe.smtmodel.arithmetic.display import exponent_of

Power = tuple[int, int]  # (sign, exponent) of a power of two
VARIANTS = ((1, 1), (-1, 1), (1, -1), (-1, -1))  # signs of the mask at its first leaf, and of the units


class AskBeside(Protocol):
    """The device's sum of a mask on a pair of leaves, with signs of VARIANTS, and units of 2^unit at the other leaves
    of a group; None if it is not finite."""

    def __call__(self, pair: Pair, signs: Power, unit: int, group: Sequence[Leaf]) -> Fraction | None: ...


class TraceCounter:
    """Counts the units of `groups` that a mask spares. `least`: the exponent of units that every step hides;
    `precision`: significant bits of the result's format. `most`: the exponent of the largest units counted."""

    def __init__(self, ask: AskBeside, groups: Sequence[Sequence[Leaf]], least: int, precision: int) -> None:
        self.ask, self.least, self.precision = ask, least, precision
        self.groups = groups
        self.unit = self.most = least
        # the signs that left the smallest trace for the last pair, and the largest of these traces
        self.trace: tuple[Power, Fraction] | None = None

    def as_before(self, pair: Pair) -> int | None:
        """The number as of `spared`, with the signs of the last pair only; None if these leave a larger trace now, or
        do not show the number."""
        if self.trace is None:
            return None
        signs, trace = self.trace
        values = [self.ask(pair, signs, self.least, group) for group in self.groups]
        if any(value is None or abs(value) > trace for value in values):
            return None
        return self._total(pair, signs, self.groups)

    def spared(self, pair: Pair) -> int | None:
        """The number of leaves outside of the step in which a mask on a pair cancels; None if no answer shows it.

        The signs that leave the smallest trace come first: beside a small trace, units may be so small that every step
        hides them.
        """
        seen = {signs: [self.ask(pair, signs, self.least, group) for group in self.groups] for signs in VARIANTS}
        numbers = {signs: [abs(x) for x in values if x is not None] for signs, values in seen.items()}
        for signs in sorted(VARIANTS, key=lambda signs: (-len(numbers[signs]), max(numbers[signs], default=0))):
            groups = self.groups
            while groups:
                total = self._total(pair, signs, groups)
                if total is not None:
                    self.groups = groups
                    before = self.trace[1] if self.trace is not None and self.trace[0] == signs else Fraction(0)
                    self.trace = signs, max(before, *numbers[signs])
                    return total
                groups = [half for group in groups for half in _halves(group)] if max(map(len, groups)) > 1 else []
        return None

    def _total(self, pair: Pair, signs: Power, groups: Sequence[Sequence[Leaf]]) -> int | None:
        total = 0
        for group in groups:
            count = self.count(pair, signs, group)
            if count is None:
                return None
            total += count
        return total

    def count(self, pair: Pair, signs: Power, group: Sequence[Leaf]) -> int | None:
        """The number of units of one group that come back; None if no answer with these signs shows it."""
        most, bits = sum(leaf not in pair for leaf in group), len(group).bit_length()
        seen = self.ask(pair, signs, self.least, group)
        if seen is None:
            return None
        plain = signs[1] * seen / Fraction(2) ** self.least
        if plain.denominator == 1 and 0 <= plain <= most:
            return int(plain)
        last = Fraction(2) ** (exponent_of(abs(seen)) - self.precision + 1)
        for unit in self._units(seen, bits):
            one = Fraction(2) ** unit
            value = self.ask(pair, signs, unit, group)
            if value is None:
                continue
            count = signs[1] * value / one % (2 << bits)  # a trace is a multiple of twice the sum of all units
            trace = value - signs[1] * count * one
            # a unit of whatever size moves the trace by at most one place of the result
            if trace and count <= most and count.denominator == 1 and abs(seen - trace) <= last * len(group):
                self.unit, self.most = unit, max(self.most, unit)
                return int(count)
        return None

    def _units(self, seen: Fraction, bits: int) -> Iterator[int]:
        """Exponents to try: the exponent that worked last, then the largest exponents for which the units lie below the
        trace."""
        lowest = (seen.numerator & -seen.numerator).bit_length() - seen.denominator.bit_length()
        # the result does not hold smaller units beside the trace
        last = max(self.least, exponent_of(abs(seen)) - self.precision)
        units = dict.fromkeys((self.unit, *range(lowest - bits - 1, last, -1)))
        yield from (unit for unit in units if unit > last)


def _halves(group: Sequence[Leaf]) -> list[Sequence[Leaf]]:
    middle = (len(group) + 1) // 2
    return [half for half in (group[:middle], group[middle:]) if half]
