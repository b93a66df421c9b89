"""The product of two numbers: exact and unnormalised, or normalised; perhaps infinite beyond a limit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.alignment import reaches
from mmaprobe.smtmodel.arithmetic.decode import Unpacked, multiply, unpacked_row
from mmaprobe.smtmodel.arithmetic.ieee import product_specials
from mmaprobe.smtmodel.base.errors import EXPONENTS, ParameterError, check_number
from mmaprobe.smtmodel.nodes.element import Element
from mmaprobe.smtmodel.nodes.known import Known, power, total
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Number, Value, Variant, near, others
from mmaprobe.smtmodel.nodes.trace import Stage


@dataclass(frozen=True, eq=False)
class Product(Node):
    """Significands multiplied, exponents added. `limit`: a magnitude of 2^limit or more is infinite."""

    kind: ClassVar[str] = "product"
    source: ClassVar[str] = "Xie et al. 2026, Algorithm 7, lines 2 to 5; the limit of CDNA3: section 4.2"
    left: Node
    right: Node
    normalised: bool = False
    limit: int | None = None
    without_loss = "product"

    def __post_init__(self) -> None:
        check_number("limit", self.limit, EXPONENTS)
        for operand in (self.left, self.right):
            if not operand.is_number:
                raise ParameterError("product", f"its operands are inputs or rounded results, not a {operand.kind}")

    @property
    def factors(self) -> tuple[Node, Node] | None:
        return (self.left, self.right) if self.limit is None else None

    @property
    def never_below_zero(self) -> bool:
        return self.left.never_below_zero and self.right.never_below_zero

    def place(self, context: Context) -> str:
        at = [x.index for x in (self.left, self.right) if isinstance(x, Element) and x.index is not None]
        places = {context.at(index) for index in at}
        return str(places.pop()) if len(at) == 2 and len(places) == 1 else ""

    def key(self, context: Context) -> Hashable:
        left, right = self.left.key(context), self.right.key(context)
        return None if left is None or right is None else (self.kind, left, right, self.normalised, self.limit)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        item = None if context.trace.keeps else self._with_all(context)
        if item is None:
            item = context.formed(self.own, self._of, context.value(self.left).item, context.value(self.right).item)
        if context.trace.keeps:
            place = self.place(context)
            with context.within("" if place else context.prefix(self)):
                context.trace.term(Stage.PRODUCT if place else Stage.STEP, item.term, place)
        return Number(item)

    def _with_all(self, context: Context) -> Unpacked | None:
        """The product as a row of the products of all elements of a and b, formed at once; None if that is
        impossible."""
        left, right = self.left, self.right
        if not isinstance(left, Element) or not isinstance(right, Element):
            return None
        if left.index is None or left.index != right.index:
            return None
        a, b = left.whole(context), right.whole(context)
        if a is None or b is None or len(context.patterns[left.operand]) != len(context.patterns[right.operand]):
            return None
        way = left.way, right.way, self.normalised, self.limit
        whole = context.wholes[way] = context.wholes.get(way) or self._of(a, b)
        return unpacked_row(whole, context.at(left.index))

    def _of(self, left: Unpacked, right: Unpacked) -> Unpacked:
        formed = multiply(left.term, right.term)
        is_nan, is_infinite = product_specials(left, right)
        is_zero = left.is_zero | right.is_zero
        if self.normalised:
            formed = formed.normalised()
        if self.limit is not None:
            is_infinite = is_infinite | (reaches(formed, self.limit) & ~(is_zero | is_nan))
        return Unpacked(formed, is_zero, is_infinite, is_nan)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """Unnormalised, the product has the sum of the factors' exponents. Normalised, 2^e <= |v| < 2 * 2^e; if |v| < 4
        * 2^(sum of the exponents), as for two numbers or segments of numbers, v has at most one more digit below
        2^e."""
        left, right = operands
        facts = left.times(right)
        if facts.zero and all(known.zero and known.never_minus for known in operands):
            facts = replace(facts, never_minus=True)
        if self.limit is not None:
            facts = replace(facts, finite=knowledge.fits and facts.finite)
        if not self.normalised:
            return facts
        if None in (left.formats, right.formats) and (facts.head is None or facts.head >= 4):
            return replace(facts, least=facts.grid, most=total(facts.top, -1), head=None, digits=None)
        digits = total(facts.digits, 1)
        return replace(facts, least=facts.grid, most=total(facts.top, -1),
                       head=Fraction(2) if digits is None else 2 - power(-digits), digits=digits)  # fmt: skip

    def variants(self) -> Iterator[Variant]:
        yield from others("normalised", self.normalised, (False, True))
        yield from others("limit", self.limit, (128,) if self.limit is None else (None, *near(self.limit)[:2]))

    def sentence(self) -> str:
        formed = "normalised" if self.normalised else "exact"
        return f"the {formed} product" + ("" if self.limit is None else f", infinite from 2^{self.limit} on")
