"""The sums and roundings that an operand goes through on its way to the result, read off an evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queries.properties.monotone.ledger import UnprovedError
from smtmodel.algebra import Bits
from smtmodel.decode import Unpacked
from smtmodel.nodes import Cut, Element, ExactSum, FusedSum, Product, Round, Scale
from smtmodel.trace import Name, Stage, Trace, Visit


@dataclass(frozen=True)
class Passage:
    """A rounded sum that the operand goes through. `entered`: the sums, from the one that it is a term of to the one
    that is rounded, each with the place among its terms of what goes through. `prefix`: what the names of the
    rounding's signals begin with."""

    prefix: str
    entered: tuple[tuple[Visit, int], ...]
    terms: int
    rounding: Visit

    @property
    def inner(self) -> Visit:
        return self.entered[0][0]

    @property
    def outer(self) -> Visit:
        return self.entered[-1][0]

    @property
    def place(self) -> int:
        return self.entered[0][1]


def path_of(trace: Trace, raised: int | None) -> Iterator[Passage]:
    """The passages of c (None) or of a product, in order, up to the result. Raises UnprovedError where the operand is
    read twice, enters two sums, or is rounded by itself."""
    last = next(visit for visit in reversed(trace.visits) if isinstance(visit.node, Round))
    current = _start(trace, raised)
    while current is not last:
        passage = _next(trace, current)
        yield passage
        current = passage.rounding


def pattern_of(trace: Trace, item: Unpacked, c: Bits) -> Bits | None:
    """The pattern of a term that is a result or the addend; None for others."""
    for visit in trace.visits:
        if visit.value is item and isinstance(visit.node, Round):
            return trace[Name(visit.prefix, Stage.RESULT)].bits
        if visit.value is item and isinstance(visit.node, Element) and visit.place == "c":
            return c
    return None


def rounding_at(trace: Trace, prefix: str) -> Round:
    """The rounding whose signals' names begin with a prefix."""
    return next(v.node for v in reversed(trace.visits) if v.prefix == prefix and isinstance(v.node, Round))


def scaled_sum(trace: Trace, term: Unpacked) -> Visit | None:
    """The exact sum of which a term is a multiple by scale factors, if it is one."""
    for at, visit in enumerate(trace.visits):
        if visit.value is term and isinstance(visit.node, Scale) and isinstance(visit.node.term, ExactSum):
            return next(v for v in reversed(trace.visits[:at]) if v.node == visit.node.term)
    return None


def terms_below(trace: Trace, total: Visit) -> tuple[list[Visit], list[Unpacked]]:
    """The sums that a sum is made of, inner ones first and itself last, and the terms of them that are not sums."""
    sums: list[Visit] = []
    terms: list[Unpacked] = []
    for _, item in trace.entered[total.prefix][1]:
        inner = next((v for v in trace.visits if v.value is item and isinstance(v.node, FusedSum)), None)
        if inner is None:
            terms.append(item)
        else:
            found, others = terms_below(trace, inner)
            sums, terms = [*sums, *found], [*terms, *others]
    return [*sums, total], terms


def _start(trace: Trace, raised: int | None) -> Visit:
    if raised is None:
        return _only([v for v in trace.visits if isinstance(v.node, Element) and v.place == "c"], "c is read")
    products = [v for v in trace.visits if isinstance(v.node, Product) and v.place == str(raised)]
    product = _only(products, f"product {raised} is formed")
    rounded = _above(trace, product, Round)
    return product if rounded is None else rounded


def _only(found: list[Visit], what: str) -> Visit:
    if len(found) != 1:
        raise UnprovedError(f"{what} in {len(found)} places")
    return found[0]


def _above(trace: Trace, below: Visit, kind: type[Round | Cut | Scale]) -> Visit | None:
    """The next step of a kind that has this one as its term."""
    at = next(number for number, visit in enumerate(trace.visits) if visit is below)
    later = trace.visits[at + 1 :]
    return next((v for v in later if isinstance(v.node, kind) and v.node.term == below.node), None)


def _next(trace: Trace, current: Visit) -> Passage:
    inner, place, terms = _entered(trace, current)
    while isinstance(inner.node, ExactSum) and _rounded(trace, inner) is None:  # what is scaled as a whole
        inner, place, terms = _entered(trace, inner)
    entered, rounding = [(inner, place)], _rounded(trace, inner)
    while rounding is None:
        outer, place, _ = _entered(trace, entered[-1][0])
        entered.append((outer, place))
        rounding = _rounded(trace, outer)
    return Passage(rounding.prefix, tuple(entered), terms, rounding)


def _entered(trace: Trace, current: Visit) -> tuple[Visit, int, int]:
    """The sum that a step enters, its place among the terms, and their number."""
    found = [
        (prefix, place, len(terms))
        for prefix, (_, terms) in trace.entered.items()
        for place, (_, item) in enumerate(terms)
        if item is current.value
    ]
    if not found and (scaled := _above(trace, current, Scale)) is not None:
        return _entered(trace, scaled)
    if len(found) != 1:
        raise UnprovedError(f"{current.prefix}{current.place} enters {len(found)} sums")
    [(prefix, place, terms)] = found
    sums = [v for v in trace.visits if v.prefix == prefix and isinstance(v.node, (ExactSum, FusedSum))]
    return _only(sums, f"{prefix}sum is formed"), place, terms


def _rounded(trace: Trace, total: Visit) -> Visit | None:
    """Where a sum is rounded, perhaps after it is cut; None where it is a term of another."""
    cut = _above(trace, total, Cut)
    return _above(trace, total if cut is None else cut, Round)
