"""Lemmas that a rounded sum of two numbers is as near to the exact sum as any number of its format.

With both exponents free the whole question is too hard for solvers. The proof follows the stages of `ieee.sum_two`:

1. Aligned at the larger exponent both terms are exact; or the larger term is exact, and the smaller term, far below it,
   is off by less than a unit and has its lowest bit set (sticky).
2. A shift distributes over the sum of the terms. So the aligned sum is the exact sum; or it is large, odd, and off by
   less than a unit.
3. Rounding finds the number nearest to an integer. For a large odd integer this number is also nearest to every value
   within a unit of the integer.
4. Stated in the unit of the exact sum, step 3 is the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.algorithms.exact import Fixed, admitted, in_units
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Target, round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, choose, constant, select, sum_of

ROOM = 4  # bits beyond an exponent field's, for differences of exponents in two's complement


class Derive(Protocol):
    """Proves a claim from facts, with the terms `cuts` replaced by free variables in both. Raises UnprovedError."""

    def __call__(self, what: str, facts: Sequence[Theorem], claim: Bit, cuts: Sequence[Bits]) -> Theorem: ...


@dataclass(frozen=True)
class Operand:
    """A number that is added, a zero or a normal number with its exponent in the window."""

    name: str
    bits: Bits
    window: tuple[int, int]


def nearest(pattern: Bits, fmt: Format, exact: Fixed) -> Bit:
    """Whether `pattern` equals `exact`, or has its sign and no number of the format is nearer to `exact`. `pattern`
    must be a zero or a normal number that is a multiple of the unit of `exact`."""
    value, place = unpack(pattern, fmt), _last_place(pattern, fmt, exact.unit)
    negative = exact.bits.msb()
    size = select(negative, -exact.bits, exact.bits)
    same = ~(negative ^ value.sign) | ~size.any()
    equal = in_units(pattern, fmt, exact)[0].bits.eq(exact.bits)
    between = same & _around(value.term.significand, size, size, place)
    return choose(place.msb() | value.is_zero, equal, between)


def _last_place(pattern: Bits, fmt: Format, unit: int) -> Bits:
    """The number of places by which the last bit of a number lies above 2^`unit`, in two's complement."""
    exponent, width = unpack(pattern, fmt).term.exponent, fmt.exponent + ROOM
    return exponent.bits.zext(width) + constant(pattern.carrier, exponent.low - fmt.fraction - unit, width)


def _around(digits: Bits, low: Bits, high: Bits, place: Bits) -> Bit:
    """Whether the magnitudes `low` and `high` lie within half a unit in the last place of a normal number with the
    significand `digits`; below a power of two, within a quarter of this unit. The last place of `digits` is `place`
    places above that of the magnitudes."""
    carrier, width = digits.carrier, low.width + digits.width + 4
    least, most, wide, one = low.zext(width), high.zext(width), digits.zext(width), constant(carrier, 1, width)
    above = most.shl(1).ule((wide.shl(1) + one).shl(place))
    half = (wide.shl(1) - one).shl(place).ule(least.shl(1))
    quarter = (wide.shl(2) - one).shl(place).ule(least.shl(2))
    return above & choose(digits.equals(1 << (digits.width - 1)), quarter, half)


class NearestSum:
    """The proof for one addition, to nearest with ties to even, of two operands in `fmt` whose exact sum is `given`.

    `result`: the pattern of the rounded sum; `exact`: the exact sum, in a unit in which the aligned sum is a whole
    number.
    """

    def __init__(self, derive: Derive, fmt: Format, operands: tuple[Operand, Operand], given: Fixed) -> None:
        self.derive, self.fmt, self.operands, self.given = derive, fmt, operands, given
        self.carrier = given.bits.carrier
        low, high = min(x.window[0] for x in operands), max(x.window[1] for x in operands)
        lowest = low - fmt.fraction - ieee.GUARD
        spare = max(given.unit - lowest, 0)
        width = given.bits.width + spare + 2
        self.exact = Fixed(given.bits.pad(spare).sext(width), given.unit - spare)
        numbers = [in_units(x.bits, fmt, given) for x in operands]
        self.numbers = [number.bits.pad(spare).sext(width) for number, _ in numbers]
        self.admitted = [admitted(x.bits, fmt, x.window) & fits for x, (_, fits) in zip(operands, numbers, strict=True)]
        # intermediate results of ieee.add
        left, right = (unpack(x.bits, fmt).term for x in operands)
        self.aligned, self.unit = ieee.align_two(left, right, fmt.precision)
        self.total = sum_of(self.carrier, [left.sign, right.sign], self.aligned, self.aligned[0].width + 2)
        sign, self.magnitude, unit = ieee.signed_sum(left, right, target := Target(fmt, "nearest_even"))
        self.rounded = round_and_pack(sign, self.magnitude, unit, target)
        self.result = ieee.add(operands[0].bits, operands[1].bits, fmt)
        # the aligned terms and their sum, shifted to the unit of the exact sum
        room = fmt.exponent + ROOM
        self.shift = self.unit.bits.zext(room) + constant(self.carrier, self.unit.low - self.exact.unit, room)
        ends = [constant(self.carrier, end - self.exact.unit, room) for end in (lowest, lowest + high - low)]
        self.inside = ends[0].ule(self.shift) & self.shift.ule(ends[1])
        wide = [x.zext(width) for x in self.aligned]
        self.signed = [select(term.sign, -x, x) for term, x in zip((left, right), wide, strict=True)]
        self.placed = [x.shl(self.shift) for x in self.signed]
        self.one = constant(self.carrier, 1, width).shl(self.shift)
        self.largest_one = constant(self.carrier, 1 << (lowest + high - low - self.exact.unit), width)
        self.sum = self.total.sext(width)
        self.placed_sum = self.sum.shl(self.shift)

    def prove(self, known: Theorem) -> Theorem:
        """The theorem that `result` is `nearest` to the given sum, if `result` is a multiple of the sum's unit;
        `known`: a fact about the inputs. Raises UnprovedError."""
        numbers = [self.derive(f"{x.name} is zero or in its window", [known], fact, [])
                   for x, fact in zip(self.operands, self.admitted, strict=True)]  # fmt: skip
        total = self.derive(
            "the exact sum is that of both terms", [known], self.exact.bits.eq(self.numbers[0] + self.numbers[1]), []
        )
        patterns = [x.bits for x in self.operands]
        finite = self.derive("their result is the rounded sum", numbers, self.result.eq(self.rounded),
                             [*patterns, self.rounded])  # fmt: skip
        inside = self.derive("the unit is in range", numbers, self.inside | ~self.total.any(), patterns)
        close = self._close(numbers, total, patterns)
        rounded = self.derive("the rounded sum is nearest to an aligned sum", [inside], self._rounding(),
                              [self.total, self.unit.bits])  # fmt: skip
        fits = in_units(self.result, self.fmt, self.given)[1]
        goal = ~fits | nearest(self.result, self.fmt, self.given)
        return self.derive("the rounded sum is nearest to the exact one", [inside, close, rounded, finite], goal,
                           [self.result, self.rounded, self.total, self.unit.bits, self.given.bits])  # fmt: skip

    @property
    def _large_odd(self) -> Bit:
        """Whether rounding cuts off at least two bits of the aligned sum, the last of which is set."""
        least = constant(self.carrier, 1 << (self.fmt.precision + 1), self.magnitude.width)
        return self.total.bit(0) & least.ule(self.magnitude)

    def _far(self, upper: int) -> Bit:
        """Whether the aligned term `upper` is larger than the other by more than the guard bits, and only the smaller
        is odd."""
        large, small = self.aligned[upper], self.aligned[1 - upper]
        most = constant(self.carrier, 1 << (small.width - ieee.GUARD - 1), small.width)
        return large.msb() & ~large.bit(0) & small.bit(0) & small.ule(most)

    def _within(self, difference: Bits) -> Bit:
        return difference.slt(self.one) & (-self.one).slt(difference)

    def _close(self, numbers: list[Theorem], total: Theorem, patterns: list[Bits]) -> Theorem:
        """The theorem that the shifted sum is the exact sum, or large, odd and off by less than its unit; and no sum
        wraps."""
        exactly = [x.eq(y) for x, y in zip(self.numbers, self.placed, strict=True)]
        sides = [exactly[k] & self._far(k) & self._within(self.numbers[1 - k] - self.placed[1 - k])
                 & self.one.ule(self.largest_one) for k in (0, 1)]  # fmt: skip
        aligned = self.derive("aligned terms are exact, or one is off by less than a unit", numbers,
                              all_of(exactly) | any_of(sides), patterns)  # fmt: skip
        width = self.exact.bits.width
        most = constant(self.carrier, 1 << (width - 4), width)
        small = [x.slt(most) & (-most).slt(x) for x in self.numbers]
        bounded = self.derive("terms are small", numbers, all_of(small), patterns)
        cuts = [*self.aligned, *patterns]
        added = self.derive("signed terms", [], self.sum.eq(self.signed[0] + self.signed[1]), cuts)
        shifted = self.derive("a shift distributes", [added], self.placed_sum.eq(self.placed[0] + self.placed[1]),
                              [*self.signed, self.sum, self.shift])  # fmt: skip
        lowest = constant(self.carrier, 1 << (self.total.width - 1), self.total.width)
        odd = self.derive("sums of far terms are large and odd", [], (~any_of([self._far(0), self._far(1)])
                          | self._large_odd) & lowest.slt(self.total), cuts)  # fmt: skip
        off = self._large_odd & self._within(self.exact.bits - self.placed_sum)
        close = (self.placed_sum.eq(self.exact.bits) | off) & lowest.slt(self.total)
        return self.derive("the aligned sum is exact, or large, odd and off by less than a unit",
                           [total, aligned, bounded, shifted, odd], close,
                           [*self.placed, self.one, self.placed_sum, *self.numbers, self.exact.bits, self.total,
                            *self.aligned])  # fmt: skip

    def _rounding(self) -> Bit:
        """In units of the aligned sum: whether the rounded number is exact, or nearest to every value within a unit of
        a large odd sum, or nearest to the sum itself."""
        value = unpack(self.rounded, self.fmt)
        digits, size = value.term.significand, self.magnitude
        place = _last_place(self.rounded, self.fmt, self.unit.low) - self.unit.bits.zext(self.fmt.exponent + ROOM)
        wide = size.zext(size.width + digits.width + 4)
        off = self._large_odd.bits(size.width + 2)
        size = size.zext(off.width)
        inside = _around(digits, size - off, size + off, place) & place.ule(self._constant(digits.width, place.width))
        longest = self._constant(wide.width - digits.width, place.width)
        exact = wide.shl(-place).eq(digits.zext(wide.width)) & (-place).ule(longest) & ~self._large_odd
        sign = ~(value.sign ^ self.total.msb()) & digits.msb()
        return choose(self.magnitude.any(), choose(place.msb(), exact, inside) & sign, value.is_zero)

    def _constant(self, value: int, width: int) -> Bits:
        return constant(self.carrier, value, width)
