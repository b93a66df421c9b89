"""How large and how fine the results of a part can be, by the nodes of its unit: for what a grid of sums has room.

It is read off the numbers of the inputs' windows, step by step. No verdict rests on it: that a result is on the grid is
proved of every claim that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.display import exact_value, exponent_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, ResultMode
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Cut,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Literal,
    Node,
    Product,
    Relu,
    Round,
    Scale,
    Segment,
)
from mmaprobe.smtmodel.nodes.element import MINUS
from mmaprobe.smtmodel.nodes.fold import Fold
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.plan import Plan

FINEST = 1 << 20  # the place of a value that is always zero


@dataclass(frozen=True)
class Reach:
    """The finite numbers that a value can be: multiples of 2^unit, at most `most` in magnitude. In an alignment a
    nonzero one counts with an exponent from `low` to `top`. `infinite`: it may be no finite number. `alone`: multiples
    of 2^alone where the frame of a grid (`GridSum`) is the only term that is not zero."""

    unit: int
    most: Fraction
    low: int
    top: int
    infinite: bool = False
    alone: int | None = None

    ZERO: ClassVar[Reach]

    @staticmethod
    def of(low: int, high: int, fraction: int) -> Reach:
        """Normal numbers with exponents in a window."""
        return Reach(low - fraction, power(high + 1) - power(high - fraction), low, high)

    def shifted(self, exponent: int) -> Reach:
        """The numbers times 2^exponent."""
        places = (self.unit, self.low, self.top)
        unit, low, top = (place + exponent for place in places)
        return replace(self, unit=unit, most=self.most * power(exponent), low=low, top=top)

    def times(self, other: Reach) -> Reach:
        """Exact products, unnormalised."""
        return Reach(self.unit + other.unit, self.most * other.most, self.low + other.low, self.top + other.top,
                     self.infinite or other.infinite)  # fmt: skip

    def rounded(self, precision: int, mode: ResultMode, emin: int | None = None) -> Reach:
        """Rounded to `precision` bits, `emin` the least exponent: no number gets finer, and the largest may be raised
        to the next one."""
        most, unit = self.most, self.unit
        if not most:
            return replace(Reach.ZERO, infinite=self.infinite)
        if self.alone is not None and (mode not in NEAREST or self.low - self.alone <= precision):
            unit = min(unit, self.alone)
        least = -FINEST if emin is None else emin
        if mode != "toward_zero":
            last = power(max(exponent_of(most), least) - precision + 1)
            most = -(-most // last) * last
        unit = max(unit, least - precision + 1)
        return Reach(unit, most, max(unit, least), max(exponent_of(most), least), self.infinite)


Reach.ZERO = Reach(FINEST, Fraction(0), FINEST, -FINEST)


def _to_format(value: Reach, how: Rounding) -> Reach:
    fmt = how.format
    exponent, significand = fmt.largest_number
    largest, last = significand * power(exponent), exponent - fmt.fraction
    reach = value.rounded(fmt.precision, how.mode, fmt.emin)
    if reach.most > largest or (reach.infinite and not fmt.has_infinity):  # the largest number may stand for it
        infinite = reach.infinite or reach.most > largest
        reach = replace(reach, most=largest, unit=min(reach.unit, last), top=exponent, infinite=infinite)
    written = exact_value(how.nan_pattern, fmt)
    if isinstance(written, Fraction) and written:  # a NaN becomes a number
        reach = _either(reach, _literal(written, fmt))
    return reach


def _literal(value: Fraction | str, fmt: Format) -> Reach:
    if isinstance(value, str):
        return replace(Reach.ZERO, infinite=value != "-0")
    if not value:
        return Reach.ZERO
    exponent, places = max(exponent_of(abs(value)), fmt.emin), value.denominator.bit_length() - 1
    last = (value.numerator & -value.numerator).bit_length() - 1
    return Reach(last - places, abs(value), exponent, exponent)


def _added(terms: Sequence[Reach]) -> Reach:
    total = sum((term.most for term in terms), Fraction(0))
    return Reach(min(term.unit for term in terms), total, min(term.low for term in terms),
                 max(term.top for term in terms), any(term.infinite for term in terms))  # fmt: skip


def _either(one: Reach, other: Reach) -> Reach:
    return Reach(min(one.unit, other.unit), max(one.most, other.most), min(one.low, other.low),
                 max(one.top, other.top), one.infinite or other.infinite)  # fmt: skip


class _Unit(Fold[Reach]):
    """One instruction on some products, zero beyond: the reach of its nodes, from those of its operands."""

    def __init__(self, operands: Mapping[str, Reach], products: int) -> None:
        super().__init__()
        self.operands, self.products = operands, products

    def formed(self, node: Node) -> Reach:
        match node:
            case Element():
                there = node.index is None or node.index.at(self.places) < self.products
                return self.operands[node.operand] if there else Reach.ZERO
            case Literal():
                return _literal(exact_value(node.pattern, node.format), node.format)
            case Gate() | Relu() | Segment() | Cancelling():
                (inner,) = node.operands
                return self.of(inner)
            case Product() | Scale():
                first, *rest = map(self.of, node.operands)
                for other in rest:
                    first = first.times(other)
                limit = node.limit if isinstance(node, Product) else None
                return replace(first, infinite=first.infinite or (limit is not None and first.most >= power(limit)))
            case Round():
                return _to_format(self.of(node.term), node.rounding)
            case Cut():
                return self.of(node.term).rounded(node.bits, node.mode, node.least)
            case ExactSum():
                reach = self._left(node) or _added(self.of_terms(node.items))
                return replace(reach, low=min(reach.low, 0), top=max(reach.top, 0))
            case FusedSum():
                reach = _added(self.of_terms(node.items))
                if not reach.most:
                    return reach
                top = max([reach.top, *node.bounds])
                exact = node.rounding == "toward_zero" and not node.sticky
                raised = Fraction(0) if exact else len(node.bits_of_terms) * power(top - min(node.bits_of_terms))
                return replace(reach, most=reach.most + raised, top=top)
            case GridSum():
                return self._on_grid(node)
        return Reach.ZERO

    def _left(self, node: ExactSum) -> Reach | None:
        """What a rounding leaves of a number, x - r(x); None for other sums."""
        match node.items:
            case (x, Product(left=Literal() as minus, right=Round(term=term) as r)) if x == term and minus == MINUS:
                reach = self.of(x)
                return replace(reach, most=reach.most * power(1 - r.rounding.format.precision), low=reach.unit)
        return None

    def _on_grid(self, node: GridSum) -> Reach:
        """A term that opposes the frame's sign adds a unit of the grid more, which may be finer than all terms."""
        terms = [_added(self.of_terms((item,))) for item in node.items]
        reach = _added(terms)
        coarsest = max([term.top - bits for term, bits in zip(terms, node.fraction_bits, strict=True)] + [*node.bounds])
        if not reach.most or (node.rounding == "toward_zero" and node.frame is None):
            return reach
        reach = replace(reach, most=reach.most + len(node.bits_of_terms) * power(coarsest))
        if node.frame is None:
            return reach
        grids = [term.low - bits for term, bits in zip(terms, node.fraction_bits, strict=True)]
        alone = grids.pop(node.frame)
        return replace(reach, unit=min([reach.unit, *grids]), alone=min(reach.unit, alone))


def reach_of(plan: Plan, terms: int, a: Reach, b: Reach, c: Reach) -> Reach:
    """The results of a plan, for factors and an addend within these."""
    return _Unit({"a": a, "b": b, "c": c}, terms).of(unit_of_plan(plan, terms).result)
