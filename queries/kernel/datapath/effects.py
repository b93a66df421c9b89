"""Lemmas about the effect of a parameter of the datapath on one alignment, one product or one rounding.

A lemma is about every nonzero number of a range (`ranges.Range`), or about every magnitude that can be rounded, and its
claim calls the code that evaluates units. A lemma about magnitudes with `SPARE` bits more than a result holds for any
width: of all lower bits, rounding depends only on whether all are zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.queries.kernel.datapath.ranges import Range, Symbol
from mmaprobe.queries.kernel.datapath.rounding_losses import SPARE, OfMagnitudes
from mmaprobe.smtmodel.arithmetic.alignment import align, reaches
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, unpack
from mmaprobe.smtmodel.arithmetic.rounding import Mode, Target, round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose, constant


def _text(target: Target) -> str:
    zeros = f"{', subnormals flushed' if target.flush else ''}{', no -0' if target.positive_zero else ''}"
    return f"{target.format.name} ({target.rounding}, overflow {target.overflow}{zeros})"


@dataclass(frozen=True)
class BoundKeeps:
    """For every m with e <= m < `bound`: a number with the exponent e has the same value aligned at m as aligned at
    `bound`, with `bits` bits kept below."""

    range: Range
    bits: int
    mode: Mode
    bound: int

    def statement(self) -> str:
        kept = f"{self.bits} bits are kept, {self.mode}"
        return f"a least exponent {self.bound} changes no term of {self.range} where {kept}"

    def inputs(self, symbol: Symbol) -> tuple[Bits, ...]:
        return *self.range.inputs(symbol), symbol("maximum", (self.bound - self.range.low).bit_length())

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        term, low, own, admitted = _below_maximum(self.range, given, self.bound - 1)
        bound = constant(own.carrier, self.bound - low, own.width)
        kept, raised = (align(term, Exponent(m, low, self.bound), self.bits, self.mode) for m in (own, bound))
        distance = bound - own
        whole = raised.shl(distance).lshr(distance).eq(raised)
        return ~admitted | (whole & raised.shl(distance).eq(kept))


def _below_maximum(one: Range, given: tuple[Bits, ...], top: int) -> tuple[Term, int, Bits, Bit]:
    """The term; the least exponent of the range; m, counted from this exponent; and whether both are admitted: the term
    is in the range, and m is at least its exponent and at most `top`."""
    *_, exponent, maximum = given
    width = max(exponent.width, maximum.width)
    own = maximum.zext(width)
    within = exponent.zext(width).ule(own) & own.ule(constant(own.carrier, top - one.low, width))
    return one.term(given), one.low, own, one.admits(given) & within


@dataclass(frozen=True)
class _OfRange:
    """A lemma about the numbers of a range."""

    range: Range

    def inputs(self, symbol: Symbol) -> tuple[Bits, ...]:
        return self.range.inputs(symbol)


@dataclass(frozen=True)
class NeverReaches(_OfRange):
    """No number of the range has a magnitude of 2^limit or more."""

    limit: int

    def statement(self) -> str:
        return f"no term of {self.range} reaches 2^{self.limit}"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        return ~self.range.admits(given) | ~reaches(self.range.term(given), self.limit)


@dataclass(frozen=True)
class Normalises(_OfRange):
    """A number of the range, normalised, is the same number."""

    def statement(self) -> str:
        return f"a term of {self.range} is the same number when normalised"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        term = self.range.term(given)
        other = term.normalised()
        width = max(term.exponent.bits.width, other.exponent.bits.width, (2 * self.range.width).bit_length()) + 2
        low = min(term.exponent.low - term.fraction, other.exponent.low - other.fraction)
        own, moved = (one.exponent.offset(-one.fraction).rebased(low, width) for one in (term, other))
        room = 2 * self.range.width
        same = other.significand.zext(room).eq(term.significand.zext(room).shl(own - moved))
        return ~self.range.admits(given) | (same & moved.ule(own))


@dataclass(frozen=True)
class FormatHolds(_OfRange):
    """A number of the range, or a zero, rounded for a target, is the same number, finite, of the same sign, with the
    exponent that it has when normalised."""

    target: Target

    def statement(self) -> str:
        return f"rounded to {_text(self.target)}, a term of {self.range} equals the normalised term"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        term = self.range.term(given)
        plain = term.normalised()
        unit = term.exponent.offset(-term.fraction)
        packed = round_and_pack(term.sign, term.significand, unit, self.target)
        rounded = unpack(packed, self.target.format)
        own = rounded.term
        low = min(own.exponent.low, plain.exponent.low)
        width = (max(own.exponent.high, plain.exponent.high) - low).bit_length() + 1
        fraction = max(own.fraction, plain.fraction)
        digits = [one.significand.pad(fraction - one.fraction) for one in (own, plain)]
        room = max(one.width for one in digits)
        same = own.exponent.rebased(low, width).eq(plain.exponent.rebased(low, width))
        same = same & digits[0].zext(room).eq(digits[1].zext(room)) & ~rounded.is_zero
        finite = ~rounded.is_nan & ~rounded.is_infinite & ~(own.sign ^ term.sign)
        return finite & (~self.range.admits(given) | same) & (term.significand.any() | rounded.is_zero)


@dataclass(frozen=True)
class RoundsAlike(OfMagnitudes):
    """A magnitude has one pattern, rounded for either of two targets of one format. `fitting`: about magnitudes of at
    most 2^p units, where p is the format's precision and a unit is at least the smallest subnormal number; else about
    any magnitude."""

    left: Target
    right: Target
    fitting: bool = False

    def statement(self) -> str:
        what = "a magnitude that fits the result" if self.fitting else "any magnitude"
        return f"{what} gives the same pattern rounded to {_text(self.left)} and to {_text(self.right)}"

    @property
    def span(self) -> tuple[int, int, int]:
        fmt = self.left.format
        least = fmt.unit
        width = fmt.precision + (1 if self.fitting else SPARE)
        return width, least if self.fitting else least - width - 1, fmt.emax + 2

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        sign, magnitude, unit, admitted = self.given(given)
        if self.fitting:
            most = constant(sign.carrier, 1 << self.left.format.precision, magnitude.width)
            admitted = admitted & magnitude.ule(most)
        left, right = (round_and_pack(sign, magnitude, unit, target) for target in (self.left, self.right))
        return ~admitted | left.eq(right)


@dataclass(frozen=True)
class RoundsTwice(OfMagnitudes):
    """A magnitude whose first bit is set, rounded for `first` and then for `then`, gives the same as rounded for
    `once`, a target of the same format as `then`. If the first rounding overflows to infinity, so does the rounding for
    `once`."""

    first: Target
    then: Target
    once: Target

    def statement(self) -> str:
        twice = f"rounded to {_text(self.first)}, then to {_text(self.then)}"
        return f"a normalised magnitude, {twice}, gives the same as rounded to {_text(self.once)}"

    @property
    def span(self) -> tuple[int, int, int]:
        formats = self.first.format, self.then.format
        width = max(fmt.precision for fmt in formats) + SPARE
        return width, min(fmt.unit for fmt in formats) - width - 1, max(fmt.emax for fmt in formats) + 2

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        sign, magnitude, unit, admitted = self.given(given)
        between = unpack(round_and_pack(sign, magnitude, unit, self.first), self.first.format)
        term = between.term
        then = round_and_pack(term.sign, term.significand, term.exponent.offset(-term.fraction), self.then)
        once = round_and_pack(sign, magnitude, unit, self.once)
        found = unpack(once, self.once.format)
        infinite = found.is_infinite & ~(found.sign ^ between.sign)
        admitted = admitted & magnitude.msb()
        return ~admitted | (~between.is_nan & choose(between.is_infinite, infinite, then.eq(once)))
