"""The exact sum: of two terms with a sticky bit below the bits needed, of more terms in fixed point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.alignment import magnitude_of, place_all, total_of
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term
from mmaprobe.smtmodel.arithmetic.formats import Interval
from mmaprobe.smtmodel.arithmetic.ieee import sum_two
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.nodes.element import Literal
from mmaprobe.smtmodel.nodes.known import (
    Known,
    all_known,
    common,
    grid_of,
    lies_in,
    magnitude,
    plus,
    power,
    rounded,
    top_of,
    turns_of,
)
from mmaprobe.smtmodel.nodes.node import Changed, Context, Knowledge, Node, Total, Value
from mmaprobe.smtmodel.nodes.product import Product
from mmaprobe.smtmodel.nodes.repeat import Each
from mmaprobe.smtmodel.nodes.round import Round
from mmaprobe.smtmodel.nodes.sums import Sum, named_terms
from mmaprobe.smtmodel.nodes.trace import Part, Stage, Trace


@dataclass(frozen=True, eq=False)
class ExactSum(Sum):
    """The exact sum of its terms. As a term of a fused sum an exact sum counts with the exponent 0 of its fixed point
    (Xie et al. 2026, Algorithm 9, line 3)."""

    kind: ClassVar[str] = "exact"
    source: ClassVar[str] = "IEEE 754-2019, 5.4.1 (two terms); Xie et al. 2026, Algorithm 6"
    items: tuple[Node, ...]

    def __post_init__(self) -> None:
        self.check_items()

    @property
    def summands(self) -> tuple[Node, ...]:
        return self.items

    @property
    def flat(self) -> ExactSum:
        """The sum with nested exact sums, at any depth, replaced by their terms. Both have the same value on every
        input, since no bit is lost in between, and infinities, NaNs and the sign of a zero depend on all terms."""
        return replace(self, items=tuple(_terms(self))) if any(map(_has_sum, self.items)) else self

    def place(self, context: Context) -> str:
        places = [place for item in self.items for place in item.places_of_terms(context)]
        if not all(place.replace("-", "").isdigit() for place in places):
            return ""
        first, last = places[0].partition("-")[0], places[-1].rpartition("-")[2]
        return first if first == last else f"{first}-{last}"

    def evaluate(self, context: Context, keep: int | None) -> Value:
        names, values = named_terms(self.items, context)
        if len(values) == 1 and keep is not None:
            return values[0]
        trace = context.trace
        with context.within(context.prefix(self)):
            if trace.keeps:
                trace.enter(names, [value.item for value in values])
            sum_of = partial(self._sum, trace, names, keep)
            term = context.formed((self.own, keep), sum_of, *(value.term for value in values))
        if len(values) == 1:  # a single zero keeps its sign; a zero sum's sign depends on the terms
            return Changed(values[0], replace(term, sign=values[0].sign))
        return Total(term, values)

    @staticmethod
    def _sum(trace: Trace, names: Sequence[str], keep: int | None, *terms: Term) -> Term:
        if len(terms) == 2 and keep is not None:
            negative, magnitude, unit = sum_two(terms[0], terms[1], keep)
            term = Term(negative, magnitude, unit, 0)
        else:
            placed, low = place_all(terms)
            nought = constant(placed[0].carrier, 0, 1)
            unit = Exponent(nought, low, low)
            for name, part in zip(names, placed, strict=True):
                trace.number(Stage.PLACED, part, unit, name)
            total = total_of([term.sign for term in terms], placed, None)
            trace.number(Stage.SUM, total, unit, is_signed=True)
            negative, magnitude = magnitude_of(total)
            term = Term(negative, magnitude, Exponent(nought, 0, 0), -low)
        trace.flag(Stage.SUM, negative, part=Part.NEGATIVE)
        trace.number(Stage.SUM, magnitude, unit, part=Part.MAGNITUDE)
        return term

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of the sum, which counts in an alignment with the exponent 0, whatever its size."""
        terms = tuple(one for known in operands for one in (known.terms or (known,)))
        intervals = all_known(known.interval for known in operands)
        interval = None if intervals is None else reduce(plus, intervals)
        if interval is not None and (left := self._left(operands[0])) is not None:
            interval = common(interval, left)
        top, grid, head, digits = top_of(interval), grid_of(operands), None, None
        others = [known for known in operands if not known.zero]  # if there is one such term, the sum has its bits
        bits = others[0].bits if len(others) == 1 else None
        if grid is not None and top is not None and grid <= top:
            head, digits, bits = power(top) - power(grid), -grid, top - grid if bits is None else min(bits, top - grid)
        return Known(
            0, 0, head, digits, grid, bits, interval, zero=all(known.zero for known in operands),
            finite=all(known.finite for known in operands), terms=terms,
            adds=len(operands) > 1 or operands[0].adds, agrees=all(known.agrees for known in operands),
            positive=is_positive(operands), turns=turns_of(operands),
        )  # fmt: skip

    def _left(self, x: Known) -> Interval | None:
        """The interval of the remainder x - r(x) of a rounding r; None for other sums. The remainder is less than a
        unit in the last place, or the excess over the largest number. If r rounds x toward zero to an integer format
        whose range contains x, the remainder has the sign of x and a magnitude of at most 1 less a last place of x."""
        match self.items:
            case (first, Product(left=Literal() as factor, right=Round(term=term, rounding=how))) if first == term:
                fmt, whole = how.format, rounded(x.interval, how.format.precision, how.format.emin, how.mode)
                if x.interval is None or whole is None or factor.value != -1 or not fmt.subnormals:
                    return None
                if fmt.is_integer and how.mode == "toward_zero" and lies_in(whole, fmt.interval):
                    places = [place for place in (x.grid and min(x.grid, 0), x.bits and -x.bits) if place is not None]
                    below = 1 - power(max(places)) if places else Fraction(1)
                    return common(x.interval, (-below, below))
                largest = magnitude(x.interval)
                least = fmt.unit if how.subnormals == "keep" else fmt.emin
                most = max(largest * power(1 - fmt.precision), power(least), largest - fmt.most)
                return -most, most
        return None

    def sentence(self) -> str:
        return "the exact sum"


def is_positive(terms: Sequence[Known]) -> bool:
    """Whether every zero sum has a number added that is neither negative nor -0. For if all numbers added are negative
    or -0, no term is above zero, so a term that is never -0 is below zero, and so is the sum."""
    own = any(known.never_minus or known.positive for known in terms)
    return any(known.zero and known.never_minus for known in terms) or (own and all(known.agrees for known in terms))


def _terms(node: Node) -> Iterator[Node]:
    """The terms that a node contributes to an exact sum; a range of terms stays one node."""
    if isinstance(node, ExactSum):
        for item in node.items:
            yield from _terms(item)
    elif isinstance(node, Each):
        for item in _terms(node.body):
            yield node if item is node.body else replace(node, body=item)
    else:
        yield node


def _has_sum(item: Node) -> bool:
    """Whether a term, or the body of a range of terms, is an exact sum."""
    return _has_sum(item.body) if isinstance(item, Each) else isinstance(item, ExactSum)
