"""The sums and roundings that an operand goes through on its way to the result, read off an evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queries.properties.monotone.ledger import UnprovedError
from smtmodel.algebra import Bits
from smtmodel.decode import Unpacked
from smtmodel.nodes import Cut, Element, ExactSum, FusedSum, Product, Round, Scale
from smtmodel.trace import Trace, Visit


@dataclass(frozen=True)
class Passage:
    """A rounded sum that the operand goes through: it enters `inner` as the term in `place`, which is `outer`, the sum
    that is rounded, or a sum within it. `prefix`: what the names of the rounding's signals begin with."""

    prefix: str
    outer: Visit
    inner: Visit
    place: int
    terms: int
    rounding: Visit


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
            found = trace[f"{visit.prefix}result"].value
            assert isinstance(found, Bits)
            return found
        if visit.value is item and isinstance(visit.node, Element) and visit.place == "c":
            return c
    return None


def rounding_at(trace: Trace, prefix: str) -> Round:
    """The rounding whose signals' names begin with a prefix."""
    return next(v.node for v in reversed(trace.visits) if v.prefix == prefix and isinstance(v.node, Round))


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
    outer, rounding = inner, _rounded(trace, inner)
    while rounding is None:
        outer, _, _ = _entered(trace, outer)
        rounding = _rounded(trace, outer)
    return Passage(rounding.prefix, outer, inner, place, terms, rounding)


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
