"""The summation trees that a matrix unit's answers to masks may show. A mask is a large term that may hide smaller
terms, called units, in a sum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mmaprobe.queries.order.tree import Branch, Kind, joined_branch
from mmaprobe.smtmodel import nodes
from mmaprobe.smtmodel.nodes.fold import Fold
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.units.unit import Unit


def trees_of(unit: Unit, bits: int, leaves: int) -> Iterator[Branch]:
    """The trees that a unit's answers may show when mask and unit are `bits` places apart: two trees if it depends on
    the operands whether a mask hides the units. `leaves`: the number of leaves."""
    for fused in dict.fromkeys(_hiding_sums(list(walk(unit.result)), bits, leaves)):
        tree = _Trees(fused).of(unit.result)
        assert tree is not None
        yield tree


def tree_of(unit: Unit, aligned_apart: bool = False) -> Branch:
    """The tree of the expression, whatever masks show. A truncated sum and the unrounded sums among its terms are one
    step; with `aligned_apart`, a truncated sum among its terms is a step of its own, with its own alignment."""
    fused = frozenset(of_kind(unit.result, nodes.FusedSum))
    tree = _Trees(fused, aligned_apart).of(unit.result)
    assert tree is not None
    return tree


def _hiding_sums(
    every: Sequence[nodes.Node], bits: int, leaves: int
) -> tuple[frozenset[nodes.Node], frozenset[nodes.Node]]:
    """The sums in which a mask may hide units, and the sums in which a mask surely hides them. A sum of groups has one
    exponent whatever the values of the groups are, so that the operands decide which units a mask hides there."""
    kept = {node: min(node.bits_of_terms) for node in every if isinstance(node, nodes.Sum) and node.bits_of_terms}
    groups = has_groups(every)
    surely = bits - leaves.bit_length() - 2
    may = frozenset(node for node, below in kept.items() if below < bits)
    return may, frozenset(node for node in may if kept[node] < surely and not groups)


def has_groups(every: Iterable[nodes.Node]) -> bool:
    """Whether products are summed in groups that are scaled. `every`: the nodes of a unit."""
    return any(isinstance(node, nodes.Scale) and isinstance(node.term, nodes.ExactSum) for node in every)


def starts_at_zero(unit: Unit) -> bool:
    """Whether steps start from zero, so that c is added after them."""
    return any(of_kind(unit.result, nodes.Constant))


def bits_of_late_products(unit: Unit) -> int | None:
    """The number of bits kept of the finished sum of products that the incoming sum joins unrounded; None for a unit
    without such a sum."""
    for node in walk(unit.result):
        if isinstance(node, (nodes.FusedSum, nodes.GridSum)):
            late = [bits for item, bits in zip(node.items, node.bits_of_terms, strict=False)
                    if isinstance(item, nodes.FusedSum)]  # fmt: skip
            if late and any(isinstance(item, (nodes.Running, nodes.Element)) for item in node.items):
                return late[0]
    return None


class _Trees(Fold[Branch | None]):
    """The tree of an expression. `fused`: the sums in which a mask hides all units that it meets; `aligned_apart`:
    whether such a sum within another such sum is a step of its own."""

    def __init__(self, fused: frozenset[nodes.Node], aligned_apart: bool = False) -> None:
        super().__init__()
        self.fused, self.aligned_apart = fused, aligned_apart

    def formed(self, node: nodes.Node) -> Branch | None:
        """The tree of a node; None for a node that is no part of the sum."""
        match node:
            case nodes.Element():
                return "c" if node.operand == "c" else None
            case nodes.Product():  # one leaf, however its factors are read or converted
                inputs = (part for factor in node.operands for part in of_kind(factor, nodes.Element))
                return next((part.index.at(self.places) for part in inputs if part.index is not None), None)
            case nodes.Sum():
                children = list(self._children(node, node))
                return joined_branch(self._kind(node), children) if children else None
        return self.of(node.operands[0]) if node.operands else None

    def _kind(self, node: nodes.Node) -> Kind:
        return "fused" if node in self.fused else "exact"

    def _children(self, node: nodes.Node, around: nodes.Node) -> Iterator[Branch]:
        """The trees of a sum's terms. The terms of an unrounded sum within the sum are listed one by one: such an inner
        sum keeps its exponent when it cancels, and so hides the terms that it joins. A sum without loss is not a step
        of its own in another sum without loss."""
        for term in self.terms(node.operands):
            inner = term.term if isinstance(term, nodes.Scale) else term
            alike = self._kind(inner) == self._kind(around)
            if isinstance(inner, nodes.Sum) and alike and not (self.aligned_apart and inner in self.fused):
                yield from self._children(inner, around)
            elif (tree := self.of(term)) is not None:
                yield tree
