"""The subterms that two terms share, and the choice of cut-points among them for a lemma about both terms."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush
from math import inf

import pysmt.operators as op
from pysmt.fnode import FNode

from mmaprobe.queries.equality.simulated import in_order

LEVELS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)  # operations between a claim and its cut-points
WIRING = {op.BV_EXTRACT, op.BV_CONCAT, op.BV_ZEXT, op.BV_SEXT, op.NOT, op.BV_NOT}


class Shared:
    """The set of subterms of each term, as the bits of a number. The terms of many lemmas share subterms, so that each
    set is computed once."""

    def __init__(self) -> None:
        self.places: dict[FNode, int] = {}
        self.subterms: dict[FNode, int] = {}

    def of(self, term: FNode) -> int:
        """The subterms of a term, including the term itself."""
        for one in in_order([term], self.subterms):
            if one not in self.subterms:
                parts = 1 << self.places.setdefault(one, len(self.places))
                for below in one.args():
                    parts |= self.subterms[below]
                self.subterms[one] = parts
        return self.subterms[term]

    def common(self, one: FNode, other: FNode) -> _Common:
        """The subterms that two terms share."""
        return _Common(self.places, self.of(one) & self.of(other))

    def cuts(self, sides: Sequence[FNode], products: Collection[FNode]) -> Iterator[list[FNode]]:
        """Lists of cut-points to try for a claim about two terms, chosen from their shared subterms. The first list has
        the first shared subterms on the way from the claim to the inputs, later lists those further and further from
        the claim, and the last list is empty. Shared subterms in `products`, which are hard for solvers, are always
        cut."""
        shared, before = self.common(*sides), list[FNode]()
        for level in (*LEVELS, inf):
            cuts = _first(sides, shared, products, level)
            if cuts and cuts != before:
                yield cuts
            before = cuts
        yield []


class _Common:
    def __init__(self, places: dict[FNode, int], bits: int) -> None:
        self.places, self.bits = places, bits

    def __contains__(self, term: object) -> bool:
        place = self.places.get(term)
        return place is not None and bool(self.bits >> place & 1)


def _first(sides: Sequence[FNode], shared: _Common, products: Collection[FNode], level: float) -> list[FNode]:
    """The first shared terms on the way from two terms to the inputs that are in `products`, or have at least `level`
    shared operations before them. A term is newer than its operands, so that the newest waiting term is the next."""
    depth = dict.fromkeys(sides, 0)
    waiting = sorted((-term.node_id(), term) for term in depth)
    cuts = list[FNode]()
    while waiting:
        _, term = heappop(waiting)
        common = term not in sides and term in shared
        if common and (depth[term] >= level or term in products):
            cuts += [term] if term.args() else []
            continue
        step = depth[term] + (term.node_type() not in WIRING) if common else 0
        for below in term.args():
            if below not in depth:
                heappush(waiting, (-below.node_id(), below))
            depth[below] = min(depth.get(below, step), step)
    return cuts
