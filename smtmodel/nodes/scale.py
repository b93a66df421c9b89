"""A term times its scale factors: exponents added, significands multiplied, nothing lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smtmodel.decode import Unpacked, multiply
from smtmodel.nodes.node import Context, Node, Value, number


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

    def place(self, context: Context) -> str:
        return self.term.place(context)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        term, left, right = (context.value(node) for node in self.operands)
        item, scale = term.item, multiply(left.item.term, right.item.term)
        zero_scale = left.item.is_zero | right.item.is_zero
        is_zero = item.is_zero | left.item.is_zero | right.item.is_zero
        is_nan = item.is_nan | left.is_nan | right.is_nan | (item.is_infinite & zero_scale)
        value = number(Unpacked(multiply(item.term, scale), is_zero, item.is_infinite, is_nan))
        return Value(value.item, term.infinities, term.negatives)

    def sentence(self) -> str:
        return "times its scale factors"
