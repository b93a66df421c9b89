"""A sum that counts as a zero in an alignment if its terms cancel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes.cut import Cut
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Changed, Context, Knowledge, Unary, Value, Variant
from mmaprobe.smtmodel.nodes.sums import Sum


@dataclass(frozen=True, eq=False)
class Cancelling(Unary):
    """A sum, perhaps cut, that counts as a zero in the alignment of another sum whenever its value is zero, even if its
    terms cancel or are cut off. Without this node, a sum of value zero still counts with its exponent. The value, the
    sign of a zero, infinities and NaNs are unchanged."""

    kind: ClassVar[str] = "cancelling"
    source: ClassVar[str] = "adders of two alignments that detect a zero between them, as of a normalising stage"
    without_loss = "operand"
    passes_specials = True

    def __post_init__(self) -> None:
        if not isinstance(self.term, (Sum, Cut)):
            raise ParameterError("cancelling", f"it takes a sum, and this is none: {self.term.kind}")

    def evaluate(self, context: Context, keep: int | None) -> Value:
        value = context.value(self.term)
        return Changed(value, value.term, [value.term.is_zero])

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The sum's facts: the value is the same, and the exponent too if the node counts in an alignment."""
        return replace(operands[0], never_minus=False, terms=(), adds=False, positive=False)

    def variants(self) -> Iterator[Variant]:
        yield Variant("cancelling", True, False)

    def sentence(self) -> str:
        return "the sum, which counts as zero where it cancels"
