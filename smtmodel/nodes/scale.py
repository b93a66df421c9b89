"""A term times its scale factors, exactly: exponents are added, significands multiplied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import multiply
from mmaprobe.smtmodel.carriers.algebra import any_of
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Changed, Context, Knowledge, Node, Value, of_kind
from mmaprobe.smtmodel.nodes.repeat import Each


@dataclass(frozen=True, eq=False)
class Scale(Node):
    """A term times two scale factors."""

    kind: ClassVar[str] = "scale"
    source: ClassVar[str] = "Xie et al. 2026, Algorithms 8 and 9"
    term: Node
    left: Node
    right: Node
    without_loss = "product"

    def place(self, context: Context) -> str:
        return self.term.place(context)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        term, left, right = (context.value(node) for node in self.operands)
        scale, zeros = multiply(left.term, right.term), (left.is_zero, right.is_zero)
        infinite = term.is_infinite
        beyond = left.is_infinite | right.is_infinite
        nothing = any_of([*zeros, ~term.term.significand.any() & ~infinite])
        nans = left.is_nan, right.is_nan, infinite & any_of(zeros), beyond & nothing
        scaled = multiply(term.term, scale)
        # the term of a zero sum has no sign
        if term.is_sum and any(zero.value is not False for zero in zeros):
            scaled = replace(scaled, sign=scaled.sign & scaled.significand.any())
        return Changed(term, scaled, zeros, nans, beyond)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of the product, which is a sum where the term is one: its sign is that of a sum, as in the term."""
        term, left, right = operands
        return replace(term.times(left).times(right), agrees=term.agrees)

    def sentence(self) -> str:
        return "times its scale factors"


def spread(item: Node, allowed: Callable[[Node], bool]) -> Node:
    """A term of a sum, in which a scaled exact sum is replaced by the exact sum of the scaled terms, if `allowed` holds
    for both factors, and neither factor depends on the variables of ranges in the sum. `item` may be a range of
    terms."""
    if isinstance(item, Each):
        return replace(item, body=spread(item.body, allowed))
    if not isinstance(item, Scale) or not isinstance(item.term, ExactSum):
        return item
    levels = {part.level for part in of_kind(item.term, Each)}
    if levels & (item.left.free | item.right.free) or not (allowed(item.left) and allowed(item.right)):
        return item
    return ExactSum(tuple(_scaled(item, term) for term in item.term.items))


def _scaled(node: Scale, term: Node) -> Node:
    """A term, or each term of a range, times the factors of a node."""
    return replace(term, body=_scaled(node, term.body)) if isinstance(term, Each) else replace(node, term=term)
