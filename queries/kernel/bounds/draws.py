"""The rule of stochastic rounding, and its lemma: for all random bits the result is one of two numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mmaprobe.queries.kernel.bounds.enclosures import (
    NoOverflow,
    Places,
    after_rounding,
    enclosed,
    goals_about,
    operands_at,
    with_lemmas,
)
from mmaprobe.queries.kernel.datapath.rounding_losses import SPARE, OfMagnitudes, RoundingLoses
from mmaprobe.queries.kernel.lemmas import Lemma
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, rule
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode, Stochastic, Target, is_stochastic, round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose
from mmaprobe.smtmodel.nodes import Element, Round

NEXT: tuple[Mode, ...] = ("toward_zero", "up", "down")


@dataclass(frozen=True)
class DrawIsNextTo(OfMagnitudes):
    """A magnitude of f + N + 4 bits, at any place as in `RoundingLoses` or up to N places below, rounded by N = `bits`
    random bits to a format with f fraction bits, gives the pattern of rounding toward zero, or the pattern of rounding
    away from zero (up if it is positive, else down). Further bits of a magnitude count as one bit."""

    format: Format
    mode: Stochastic
    bits: int

    @property
    def span(self) -> tuple[int, int, int]:
        width, low = self.format.precision + SPARE + self.bits, self.format.unit - 2 - self.bits
        return width, low, low + (1 << max(1, self.format.emax - width + 1 - low).bit_length()) - 1

    def statement(self) -> str:
        what = f"what rounding to {self.format.name} toward zero, or away from zero, gives"
        return f"{self.mode} by {self.bits} random bits gives {what}"

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        return *super().inputs(symbol), symbol("random", self.bits)

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        *number, random = given
        sign, magnitude, unit, _ = self.given(tuple(number))
        found = round_and_pack(sign, magnitude, unit, Target(self.format, self.mode), random)
        zero, up, down = (round_and_pack(sign, magnitude, unit, Target(self.format, mode)) for mode in NEXT)
        return found.eq(zero) | choose(sign, found.eq(down), found.eq(up))


def draw_lemmas(node: Round, formats: Mapping[str, Format]) -> list[Lemma]:
    """The lemmas that `drawn` needs of a unit with operands of these formats. Raises RuleError without random bits."""
    how, given = node.rounding, node.random
    if not is_stochastic(how.mode) or (isinstance(given, Element) and given.operand not in formats):
        raise RuleError(f"drawn: {how.mode}, without random bits")
    next_to: Lemma = DrawIsNextTo(how.format, how.mode, node.count_of_bits(formats))
    return [next_to, *(RoundingLoses(how.format, mode) for mode in NEXT)]


@rule
def drawn(node: Round, places: Places, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """A term y (the first premise), rounded without overflow by random bits (the second premise), loses at most one
    unit of the last place for all random bits: y is rounded toward zero or away from zero, and the rule `rounded`
    bounds the loss in both modes by that of a rounding in either direction (to_odd)."""
    goals = goals_about("drawn", node, places, operands_at(node, places), premises)
    unit, y = goals[0].unit, goals[0].facts
    facts = after_rounding(y, replace(node.rounding, mode="to_odd"))
    bound = NoOverflow(node, places, node.rounding.format.emax, y.value)
    made = enclosed(node, places, facts, goals, premises, bound)
    return with_lemmas(made, lemmas, draw_lemmas(node, unit.formats))
