"""The gated product, which is zero wherever one of its factors is zero."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Unpacked
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import choose, truth
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Number, Unary, Value, Variant, others
from mmaprobe.smtmodel.nodes.product import Product


@dataclass(frozen=True, eq=False)
class Gate(Unary):
    """A product that is a fixed zero wherever a factor is zero, so that zero times infinity or NaN is no NaN.
    `minus_zero`: the fixed zero is -0, as if the product were left out of the sum (only a sum that rounds down
    distinguishes the two); else it is +0, as the output of a multiplier that is forced to zero."""

    kind: ClassVar[str] = "gate"
    source: ClassVar[str] = "zero gating of accelerators, as Eyeriss (Chen et al. 2017)"
    minus_zero: bool = False
    without_loss = "operand"
    passes_specials = True

    def __post_init__(self) -> None:
        if not isinstance(self.term, Product):
            raise ParameterError("gate", f"it takes a product, and this is none: {self.term.kind}")

    def key(self, context: Context) -> Hashable:
        inner = self.term.key(context)
        return None if inner is None else (self.kind, inner, self.minus_zero)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        item = context.value(self.term).item
        zero = item.is_zero  # `is_zero` of a product: a factor is zero
        sign = choose(zero, truth(zero.carrier, self.minus_zero), item.sign)
        return Number(Unpacked(replace(item.term, sign=sign), zero, item.is_infinite & ~zero, item.is_nan & ~zero))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of the product, except for the sign of a zero."""
        return replace(operands[0], never_minus=False)

    @classmethod
    def nodes_around(cls, node: Node) -> Iterator[Node]:
        if isinstance(node, Product):
            yield from (cls(node, minus_zero) for minus_zero in (True, False))

    def variants(self) -> Iterator[Variant]:
        yield from others("minus_zero", self.minus_zero, (False, True))
        yield Variant("gate", True, False)

    def sentence(self) -> str:
        return f"the product, but {'-' if self.minus_zero else '+'}0 where a factor is zero"
