"""Lemmas about the datapath itself: what one alignment or one rounding loses, settled by a solver, or exhaustively.

They connect the rules about nodes with the code that evaluates nodes: the query is built here from the goal, by running
that code on symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from queries.proof.kernel import Goal, Made, RuleError, Theorem, rule
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit, Bits, choose, constant, select, truth
from smtmodel.alignment import align
from smtmodel.carriers.arrays import ArrayCarrier
from smtmodel.carriers.terms import TermCarrier
from smtmodel.decode import Exponent, Term, unpack
from smtmodel.formats import Format
from smtmodel.rounding import NEAREST, Mode, Target, round_and_pack

DISTANCE = 13  # bits of the distance between two exponents: enough for any two terms
SPARE = 3  # a magnitude that is rounded has so many bits more than the result
EVERY = 20  # bits of all inputs together, up to which all of them are evaluated
AskConfirmed = Callable[[Query, str], tuple[Answer, Answer | None]]  # an engine's answer and another one's


class Lemma(Goal, Protocol):
    """A goal about all values of some bits."""

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        """The bits that the claim is about, made by `symbol` from a name and a width in bits."""

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        """The claim: a bit that is true for all their values if the lemma holds."""


@dataclass(frozen=True)
class AlignmentLoses:
    """A term of `width` significand bits, `fraction` of them below its exponent, aligned so that `bits` bits are kept
    below the largest exponent m: it loses less than one unit 2^(m - bits), at most half of one to nearest; rounded down
    it does not rise, rounded up it does not fall; and it loses nothing if its exponent is m and `fraction` <=
    `bits`."""

    width: int
    fraction: int
    bits: int
    mode: Mode

    def statement(self) -> str:
        return f"a term of {self.width} bits loses less than a unit where {self.bits} bits are kept, {self.mode}"

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        return symbol("sign", 1), symbol("significand", self.width), symbol("distance", DISTANCE)

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        sign, significand, distance = given
        carrier = significand.carrier
        zero = Exponent(constant(carrier, 0, DISTANCE), 0, 0)
        term = Term(sign.bit(0), significand, zero, self.fraction)
        kept = align(term, Exponent(distance, 0, (1 << DISTANCE) - 1), self.bits, self.mode)
        scaled = significand.pad(max(0, self.bits - self.fraction))
        room = max(scaled.width, kept.width) + 1
        spare = max(0, self.fraction - self.bits)
        amount = distance.zext(DISTANCE + 1) + constant(carrier, spare, DISTANCE + 1)
        limit = constant(carrier, room, DISTANCE + 1)
        width = 2 * room + 2
        result, value = kept.zext(width).shl(amount), scaled.zext(width)
        unit = constant(carrier, 1, width).shl(amount)
        near = _off(result, value, self.mode, sign.bit(0), lambda off: off.ult(unit), lambda off: (off + off).ule(unit))
        beyond = {"up": ~sign.bit(0), "down": sign.bit(0), "to_odd": truth(carrier, True)}
        raised = beyond.get(self.mode, truth(carrier, False))
        far = kept.equals(0) | (kept.equals(1) & raised & significand.any())
        same = ~distance.equals(0) | kept.zext(width).eq(value) if self.fraction <= self.bits else truth(carrier, True)
        return choose(amount.ule(limit), near, far) & same


@dataclass(frozen=True)
class _OfMagnitudes:
    """A lemma about a magnitude y of f + 4 bits, at any place from below the smallest number of a format with f
    fraction bits up to its largest number."""

    format: Format

    @property
    def width(self) -> int:
        return self.format.precision + SPARE

    @property
    def low(self) -> int:
        """The least exponent of y's last bit: two below that of the smallest subnormal number."""
        return self.format.emin - self.format.fraction - 2

    @property
    def places(self) -> int:
        """Bits of that exponent, counted from `low`, up to the largest number."""
        return max(1, self.format.emax - self.width + 1 - self.low).bit_length()

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        return symbol("sign", 1), symbol("magnitude", self.width), symbol("place", self.places)

    def _rounded(self, given: tuple[Bits, ...], mode: Mode) -> tuple[Bit, Bits, Bits, Bits, Bit]:
        """Whether the result is NaN, infinite or the largest number, as where it overflows; the result, the magnitude
        and one unit of the result's last place, all in the same unit; and whether that last place is finer than the
        magnitude's."""
        sign, magnitude, place = given
        fmt, carrier = self.format, magnitude.carrier
        unit = Exponent(place, self.low, self.low + (1 << self.places) - 1)
        value = unpack(round_and_pack(sign.bit(0), magnitude, unit, Target(fmt, mode)), fmt)
        room = max(value.term.exponent.bits.width, place.width) + 3
        offset = value.term.exponent.low - fmt.fraction - self.low
        amount = value.term.exponent.bits.zext(room) + constant(carrier, offset, room) - place.zext(room)
        width = self.width + 2 * fmt.precision + 6
        digits, exact = value.term.significand.zext(width), magnitude.zext(width)
        finer = amount.msb()
        result, exact = select(finer, digits, digits.shl(amount)), select(finer, exact.shl(-amount), exact)
        one = constant(carrier, 1, width)
        top = fmt.largest_field & ((1 << fmt.fraction) - 1) | 1 << fmt.fraction
        last = value.term.exponent.bits.equals((fmt.largest_field >> fmt.fraction) - value.term.exponent.low - fmt.bias)
        overflows = value.is_nan | value.is_infinite | (last & value.term.significand.equals(top))
        return overflows, result, exact, select(finer, one, one.shl(amount)), finer


@dataclass(frozen=True)
class RoundingLoses(_OfMagnitudes):
    """A magnitude y of f + 4 bits, at any place from below the smallest number of a format with f fraction bits up to
    its largest number, whose rounding is finite and below the largest number: it loses at most 2^-f |y|, or 2^(emin -
    f) if |y| < 2^emin, half of that to nearest; rounded down it does not rise, rounded up it does not fall.

    Where the result is the largest number nothing needs a solver: there the loss is below one unit (at most half of one
    to nearest) by what it means that a rounding does not overflow."""

    mode: Mode

    def statement(self) -> str:
        return f"rounding to {self.format.name}, {self.mode}, loses less than one unit of the last place"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        sign, magnitude, place = given
        fmt, carrier = self.format, magnitude.carrier
        overflows, result, exact, _, finer = self._rounded(given, self.mode)
        room, width = place.width + 3, exact.width
        least = constant(carrier, fmt.emin - fmt.fraction - self.low, room) - place.zext(room)
        fixed = select(least.msb() | finer, constant(carrier, 0, width), constant(carrier, 1, width).shl(least))

        def whole(off: Bits) -> Bit:
            return off.shl(fmt.fraction).ule(exact) | off.ule(fixed)

        def half(off: Bits) -> Bit:
            return off.shl(fmt.fraction + 1).ule(exact) | (off + off).ule(fixed)

        return overflows | _off(result, exact, self.mode, sign.bit(0), whole, half)


@dataclass(frozen=True)
class TruncationKeeps(_OfMagnitudes):
    """A magnitude y as in `RoundingLoses`, rounded toward zero to a number d below the largest: |d| <= y < |d| +
    ulp(d), where ulp(d) is 2^(max(e, emin) - f) for d's exponent e."""

    def statement(self) -> str:
        return f"rounding to {self.format.name}, toward_zero, cuts off less than the last place of the result"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        overflows, result, exact, last, _ = self._rounded(given, "toward_zero")
        return overflows | (result.ule(exact) & exact.ult(result + last))


CONFIRMED = ", confirmed by "  # between the answers of two engines

#: the lemmas about the datapath that trees of theorems rest on
LEMMAS = (AlignmentLoses, RoundingLoses, TruncationKeeps)


def _off(
    result: Bits, exact: Bits, mode: Mode, sign: Bit, whole: Callable[[Bits], Bit], half: Callable[[Bits], Bit]
) -> Bit:
    """Whether a magnitude differs from the exact one by no more than a mode allows, and in the direction that it
    allows; `whole` and `half`: whether a difference is within one unit, and within half of one."""
    falls, rises = result.ule(exact), exact.ule(result)
    less, more = exact - result, result - exact
    if mode in NEAREST:
        return choose(falls, half(less), half(more))
    if mode == "toward_zero":
        return falls & whole(less)
    if mode == "to_odd":
        return choose(falls, whole(less), whole(more))
    up = rises & whole(more)
    down = falls & whole(less)
    return choose(sign, up, down) if mode == "down" else choose(sign, down, up)


def query_of(goal: Lemma) -> Query:
    """Is there an input on which the goal fails?"""
    carrier = TermCarrier()
    given = goal.inputs(carrier.symbol)
    return Query(tuple(bits.node for bits in given), (*carrier.definitions, (~goal.claim(given)).node))


@rule
def settled(goal: Lemma, ask: AskConfirmed) -> Made:
    """A goal about all inputs of some bits holds if an engine finds that its negation has no model. The query is made
    from the goal, with nothing abstracted."""
    return Made(goal, (), word_of(query_of(goal), goal.statement(), ask))


def word_of(query: Query, statement: str, ask: AskConfirmed) -> str:
    """The engines' answers, as text, that a query has no model. Raises RuleError if it may have one."""
    answer, second = ask(query, statement)
    if answer.status != "unsat":
        raise RuleError(f"{statement}: {answer.status}")
    return f"{answer}, not confirmed" if second is None else f"{answer}{CONFIRMED}{second}"


def words_of(theorem: Theorem) -> tuple[str, ...]:
    """The engines' answers on which a theorem about a lemma rests, as texts; none if all inputs were evaluated."""
    return tuple(word for word in theorem.word.split(CONFIRMED) if "unsat" in word)


@rule
def exhausted(goal: Lemma) -> Made:
    """A goal about all inputs of some bits holds if it does on each of them, evaluated."""
    carrier = ArrayCarrier()
    widths: list[int] = []

    def count(name: str, width: int) -> Bits:
        widths.append(width)
        return constant(carrier, 0, width)

    goal.inputs(count)
    if sum(widths) > EVERY:
        raise RuleError(f"exhausted: {sum(widths)} bits are too many")
    every = np.arange(1 << sum(widths), dtype=np.uint64)
    starts = iter([sum(widths[:k]) for k in range(len(widths))])

    def lanes(name: str, width: int) -> Bits:
        return carrier.lanes(every >> np.uint64(next(starts)) & np.uint64((1 << width) - 1), width)

    holds = np.broadcast_to(np.asarray(goal.claim(goal.inputs(lanes)).node, dtype=bool), every.shape)
    if not holds.all():
        raise RuleError(f"exhausted: {goal.statement()}: input {int(every[np.argmin(holds)]):#x} shows otherwise")
    return Made(goal, (), f"all {len(every)} inputs evaluated")
