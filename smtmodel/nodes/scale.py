"""A term times its scale factors: exponents added, significands multiplied, nothing lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import multiply
from mmaprobe.smtmodel.carriers.algebra import any_of
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Changed, Context, Knowledge, Node, Value, walk
from mmaprobe.smtmodel.nodes.repeat import Each


@dataclass(frozen=True, eq=False)
class Scale(Node):
    """A term times two scale factors."""

    kind: ClassVar[str] = "scale"
    source: ClassVar[str] = "Xie et al. 2026, Algorithms 8 and 9"
    term: Node
    left: Node
    right: Node

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.term, self.left, self.right

    @property
    def spread(self) -> Node:
        """Of an exact sum, the exact sum of its terms, each scaled: the same number. The node itself of others, and
        where a factor depends on the place of terms over a range."""
        if not isinstance(self.term, ExactSum):
            return self
        levels = {part.level for part in walk(self.term) if isinstance(part, Each)}
        if levels & (self.left.free | self.right.free):
            return self
        return ExactSum(tuple(map(self._of, self.term.items)))

    def _of(self, term: Node) -> Node:
        """A term, or each of those over a range, with these factors."""
        return replace(term, body=self._of(term.body)) if isinstance(term, Each) else replace(self, term=term)

    def place(self, context: Context) -> str:
        return self.term.place(context)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        term, left, right = (context.value(node) for node in self.operands)
        scale, zeros = multiply(left.term, right.term), (left.is_zero, right.is_zero)
        infinite = any_of(term.infinities)
        beyond = any_of([*left.infinities, *right.infinities])
        nothing = any_of([*zeros, ~term.term.significand.any() & ~infinite])
        nans = left.is_nan, right.is_nan, infinite & any_of(zeros), beyond & nothing
        return Changed(term, multiply(term.term, scale), zeros, nans, beyond)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        term, left, right = operands
        return term.times(left).times(right)

    def sentence(self) -> str:
        return "times its scale factors"
