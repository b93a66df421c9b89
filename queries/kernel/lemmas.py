"""Lemmas about the datapath itself, settled by a solver or exhaustively; and the lemma on what an alignment loses.

Lemmas connect the rules about nodes with the code that evaluates nodes: the query is built here from the goal, by
running that code on symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mmaprobe.queries.kernel.theorem import Goal, Made, RuleError, rule
from mmaprobe.queries.solvers.asking import AnsweredQuery, Engines, confirmation
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.arithmetic.alignment import align
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, Mode
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose, constant, truth
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier

DISTANCE = 13  # bits of the distance between two exponents: enough for any two terms
EVERY = 20  # the most bits of all inputs together for which a lemma is evaluated on every input


class Lemma(Goal, Protocol):
    """A goal about all values of some bits."""

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        """The bits that the claim is about, made by `symbol` from a name and a width in bits."""

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        """The claim: a bit that is true for all values of the inputs if the lemma holds."""


@dataclass(frozen=True)
class AlignmentLoses:
    """A term of `width` significand bits, `fraction` of them below its exponent, is aligned so that `bits` bits are
    kept below the largest exponent m. It changes by less than one unit 2^(m - bits), and by at most half a unit if
    rounded to nearest. Rounded down, it does not rise; rounded up, it does not fall. It loses nothing if its exponent
    is m and `fraction` <= `bits`."""

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
        near = off_by(
            result, value, self.mode, sign.bit(0), lambda off: off.ult(unit), lambda off: (off + off).ule(unit)
        )
        beyond = {"up": ~sign.bit(0), "down": sign.bit(0), "to_odd": truth(carrier, True)}
        raised = beyond.get(self.mode, truth(carrier, False))
        far = kept.equals(0) | (kept.equals(1) & raised & significand.any())
        same = ~distance.equals(0) | kept.zext(width).eq(value) if self.fraction <= self.bits else truth(carrier, True)
        return choose(amount.ule(limit), near, far) & same


def off_by(
    result: Bits, exact: Bits, mode: Mode, sign: Bit, whole: Callable[[Bits], Bit], half: Callable[[Bits], Bit]
) -> Bit:
    """Whether a magnitude differs from the exact magnitude by no more than a mode of rounding allows, and in the
    direction that the mode allows. `whole`, `half`: whether a difference is within one unit, or within half a unit."""
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
    """The query whether there is an input on which the goal fails."""
    carrier = TermCarrier()
    given = goal.inputs(carrier.symbol)
    return Query(tuple(bits.node for bits in given), (*carrier.definitions, (~goal.claim(given)).node))


@rule
def settled(goal: Lemma, engines: Engines, others: Sequence[Engines] = ()) -> Made:
    """A goal about all inputs of some bits holds if an engine finds that its negation has no model; one of the others
    may confirm it. The query is made from the goal, with nothing abstracted."""
    return Made(goal, (), *answered(query_of(goal), goal.statement(), engines, others))


def answered(
    query: Query, statement: str, engines: Engines, others: Sequence[Engines] = ()
) -> tuple[str, AnsweredQuery]:
    """The engines' answers that a query has no model, in words and with the query. Raises RuleError if the query may
    have a model, and SolverFaultError if engines contradict each other."""
    answer = engines.answers(query)[0]
    if answer.status != "unsat":
        raise RuleError(f"{statement}: {answer.status}")
    second = confirmation(query, answer, others)
    if second is None:
        return f"{answer}, not confirmed", AnsweredQuery(query, (answer,))
    return f"{answer}, confirmed by {second}", AnsweredQuery(query, (answer, second))


@rule
def exhausted(goal: Lemma) -> Made:
    """A goal about all inputs of some bits holds if its claim, evaluated on each input, is true."""
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
