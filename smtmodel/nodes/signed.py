"""A sum that keeps its sign if its terms are cut to zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.values import kept_property
from mmaprobe.smtmodel.carriers.algebra import Bit, choose
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.fused import FusedSum
from mmaprobe.smtmodel.nodes.grid import GridSum
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Changed, Context, Knowledge, Node, Unary, Value, Variant


class _Kept(Changed):
    """A sum that is a zero with the sign `sign` where `kept` is set, whatever the signs of the numbers added."""

    def __init__(self, value: Value, kept: Bit, sign: Bit) -> None:
        super().__init__(value, replace(value.term, sign=choose(kept, sign, value.sign)))
        self._kept, self._own = kept, sign

    @kept_property
    def negatives(self) -> tuple[Bit, Bit]:
        every, some = self._value.negatives
        return choose(self._kept, self._own, every), choose(self._kept, self._own, some)


@dataclass(frozen=True, eq=False)
class Signed(Unary):
    """An aligned sum with the sign of its terms' exact sum, even if the alignment cuts a nonzero exact sum to zero.
    Without this node, a sum cut to zero has the sign of an exact zero sum."""

    kind: ClassVar[str] = "signed"
    source: ClassVar[str] = "adders that compare magnitudes before they align, as vector units have"
    without_loss = "operand"
    passes_specials = True

    def __post_init__(self) -> None:
        if not isinstance(self.term, (FusedSum, GridSum)):
            raise ParameterError("signed", f"it takes a sum that aligns its terms, and this is none: {self.term.kind}")

    def evaluate(self, context: Context, keep: int | None) -> Value:
        value = context.value(self.term)
        with context.within(context.prefix(self.term)):  # so that the exact sums of several have signals of their own
            exact = context.value(ExactSum(self.term.operands)).term
        return _Kept(value, value.term.is_zero & ~exact.is_zero, exact.sign)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The sum's facts, apart from the sign of a zero."""
        return replace(operands[0], never_minus=False, terms=(), adds=False, positive=False, agrees=False)

    @classmethod
    def nodes_around(cls, node: Node) -> Iterator[Node]:
        if isinstance(node, (FusedSum, GridSum)):
            yield cls(node)

    def variants(self) -> Iterator[Variant]:
        yield Variant("signed", True, False)

    def sentence(self) -> str:
        return "the sum, with the sign of the exact sum where it is cut to zero"
