"""Some bits of a significand, with the exponent of the whole number."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Unpacked, fit
from mmaprobe.smtmodel.base.errors import ParameterError, check_number
from mmaprobe.smtmodel.carriers.algebra import constant, truth
from mmaprobe.smtmodel.nodes.element import Element
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Number, Unary, Value, Variant, near, others
from mmaprobe.smtmodel.nodes.sums import BITS


@dataclass(frozen=True, eq=False)
class Segment(Unary):
    """Some bits of an input's significand, from `first` up to before `end`; bit 0 is the bit before the binary point,
    clear in a subnormal number. In an alignment the segment counts with the exponent of the whole number. If all its
    bits are clear the segment is a zero with the number's sign, or +0 if `positive`. The segment from bit 0 has the
    number's infinities and NaNs; other segments are +0 for these. `leading`: bits are counted from the leading 1, in
    subnormal numbers too."""

    kind: ClassVar[str] = "segment"
    source: ClassVar[str] = "multipliers that take their factors in phases, as Tenstorrent's math fidelity"
    passes_specials = True
    first: int
    end: int
    positive: bool = False
    leading: bool = False
    is_number = True

    def __post_init__(self) -> None:
        if not isinstance(self.term, Element):
            raise ParameterError("segment", "it takes an input: an element of a, b or c")
        check_number("segment", self.end, BITS)
        if not 0 <= self.first < self.end:
            raise ParameterError("segment", f"{self.first} to {self.end} is no range of bits, counted from 0")

    @property
    def element(self) -> Element:
        """The input."""
        assert isinstance(self.term, Element)
        return self.term

    def key(self, context: Context) -> Hashable:
        return self.kind, self.term.key(context), self.first, self.end, self.positive, self.leading

    def evaluate(self, context: Context, keep: int | None) -> Value:
        return Number(context.formed(self.own, self._of, context.value(self.term).item))

    def _of(self, item: Unpacked) -> Unpacked:
        term, carrier = item.term, item.sign.carrier
        width = term.significand.width
        mask = sum(1 << (term.fraction - bit) for bit in range(self.first, self.end) if bit <= term.fraction)
        read, special = constant(carrier, mask, width), item.is_infinite | item.is_nan
        if self.leading:
            read = read.lshr(fit(term.significand.leading_zeros(), width))
        kept = term.significand & read
        is_infinite, is_nan, sign = item.is_infinite, item.is_nan, item.sign
        if self.first:
            is_infinite = is_nan = truth(carrier, False)
            kept, sign = kept & (~special).bits(1).sext(width), sign & ~special
            is_zero = ~kept.any()
        else:
            is_zero = ~special & ~kept.any()
        if self.positive:
            sign = sign & ~is_zero
        return Unpacked(replace(term, sign=sign, significand=kept), is_zero, is_infinite, is_nan)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of the input, whose exponent the segment has, and whose digits include the segment's; but the
        segment, which is not normalised, need not be a number of the format."""
        return replace(operands[0], formats=None, never_minus=False, never_tiny=False, agrees=False)

    def variants(self) -> Iterator[Variant]:
        yield from others("end", self.end, near(self.end))
        if self.first:
            yield from others("first", self.first, near(self.first))
        yield from others("positive", self.positive, (False, True))
        yield from others("leading", self.leading, (False, True))
        yield Variant("segment", True, False)

    def sentence(self) -> str:
        zero = ", +0 if they are clear" if self.positive else ""
        start = " from the leading one on" if self.leading else ""
        return f"bits {self.first} to {self.end - 1}{start} of {self.term.sentence()}, with its exponent{zero}"
