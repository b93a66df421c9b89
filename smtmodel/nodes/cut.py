"""A sum normalised and rounded to fewer bits, with unbounded exponents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Term, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.ieee import round_term
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, SIGNLESS, Mode, Target
from mmaprobe.smtmodel.base.errors import EXPONENTS, ParameterError, check_number
from mmaprobe.smtmodel.base.values import kept_property
from mmaprobe.smtmodel.base.wording import as_words
from mmaprobe.smtmodel.carriers.algebra import Bit, choose, constant, select
from mmaprobe.smtmodel.nodes.known import Known, power, rounded, top_of, total, turned
from mmaprobe.smtmodel.nodes.node import Changed, Context, Knowledge, Node, Unary, Value, Variant, near, others
from mmaprobe.smtmodel.nodes.trace import Stage


@dataclass(frozen=True, eq=False)
class Cut(Unary):
    """A sum normalised and rounded to `bits` significant bits: not yet a number of a format.

    A sum that is cut to zero keeps its sign. `least`: the exponent below which a leading one does not count, so that
    smaller sums are rounded at one fixed place, and with which a zero counts in an alignment; None: every leading one
    counts, and a zero counts with an exponent below those of all terms.
    """

    kind: ClassVar[str] = "cut"
    source: ClassVar[str] = "MMA-Sim 2.1.1, TR-FDPA and GTR-FDPA (CDNA3)"
    bits: int
    mode: Mode = "toward_zero"
    least: int | None = None
    without_loss = "operand"
    passes_specials = True

    def __post_init__(self) -> None:
        if not 2 <= self.bits <= 256:
            raise ParameterError("cut", f"{self.bits} bits are impossible; it takes a whole number from 2 to 256")
        check_number("least", self.least, EXPONENTS)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        fraction = self.bits - 1
        (y,) = operands
        interval = rounded(y.interval, self.bits, self.least, self.mode)
        most = total(top_of(interval), -1)
        most = most if most is None or self.least is None else max(most, self.least)
        return Known(self.least, most, 2 - power(-fraction), fraction, y.grid, self.bits, interval, zero=y.zero,
                     finite=y.finite, agrees=y.agrees and self.least is None,
                     turns=turned(y.turns, self.mode in SIGNLESS))  # fmt: skip

    def evaluate(self, context: Context, keep: int | None) -> Value:
        value = context.value(self.term, self.bits)
        cut = context.formed((self.own, keep is None), partial(self._cut, keep is None), value.term)
        with context.within(context.prefix(self)):
            context.trace.number(Stage.CUT, cut.significand, cut.exponent.offset(-cut.fraction))
        return _CutSum(value, cut)

    def _cut(self, aligned: bool, term: Term) -> Term:
        """A term after the cut. `aligned`: the value may be a term of an alignment."""
        target = self.target(term)
        cut = unpack(round_term(term, target), target.format).term
        exponent = cut.exponent
        if aligned and self.least is None:
            bits = select(cut.significand.any(), exponent.bits, constant(term.sign.carrier, 0, exponent.bits.width))
            exponent = replace(exponent, bits=bits, spare=0, floats=True)
        return Term(term.sign, cut.significand, exponent, target.format.fraction)

    def target(self, term: Term) -> Target:
        """A format whose largest exponent is above every sum's, and whose smallest is `least` or below every sum's."""
        unit = term.exponent.offset(-term.fraction)
        least = unit.low if self.least is None else self.least
        highest = unit.high + term.significand.width - least
        wide = Format("sum", max(2, (highest + 1).bit_length()), self.bits - 1, 1 - least, "none")
        return Target(wide, self.mode)

    def variants(self) -> Iterator[Variant]:
        yield from others("bits", self.bits, near(self.bits))
        yield from others("rounding", self.mode, ROUNDINGS)
        yield Variant("cut", True, False)

    def varied(self, variant: Variant) -> Node:
        if variant.parameter == "cut":
            return self.term
        if variant.parameter == "rounding":  # fused sums have a field of this name
            return super().varied(replace(variant, parameter="mode"))
        return super().varied(variant) if variant.parameter == "bits" else self

    def sentence(self) -> str:
        least = (
            "" if self.least is None else f"; below 2^{self.least}, at the last place that is kept at 2^{self.least}"
        )
        return f"normalised and cut to {self.bits} bits, {as_words(self.mode)}{least}"


class _CutSum(Changed):
    """The value of a cut: a sum that is cut to zero keeps its sign."""

    @kept_property
    def negatives(self) -> tuple[Bit, Bit]:
        nonzero, sign = self._value.term.significand.any(), self._value.sign
        every, some = self._value.negatives
        return choose(nonzero, sign, every), choose(nonzero, sign, some)
