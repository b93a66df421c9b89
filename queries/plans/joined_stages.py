"""Candidate stages for a summation tree: the likely ones of every partition, with every join, that have this tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from mmaprobe.queries.order.tree import Leaf, Node, nodes_of, size_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.joins import ORDERS, Add, Promote, Through
from mmaprobe.smtmodel.plans.partitions import PARTITIONS
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Chain, Join, Parted, Stage
from mmaprobe.smtmodel.plans.words import Words

LONGEST = 512  # products of a tree: each of some hundred stages is run over them


class _Trees(Engine[int]):
    """Makes trees of stages with units of one product. A tree is a number, the same for equal trees; 0: no product."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, ...] | int, int] = {}

    def zero(self, fmt: Format) -> int:
        return 0

    def tile(self, model: Model, words: Words, span: Span, start: int) -> int:
        return self.tiles(model, words, span, start)

    def tiles(self, model: Model, words: Words, span: Span, start: int) -> int:
        for place in span.places:
            start = self.added((start, self.leaf(place)))
        return start

    def leaf(self, place: int) -> int:
        return self.numbers.setdefault(place, len(self.numbers) + 1)

    def added(self, parts: Sequence[int]) -> int:
        some = tuple(sorted(part for part in parts if part))
        return some[0] if len(some) == 1 else self.numbers.setdefault(some, len(self.numbers) + 1) if some else 0

    def rounded(self, values: Sequence[int], rounding: Rounding) -> int:
        return self.added(values)

    def lost(self, values: Sequence[int], total: int, rounding: Rounding) -> int:
        return 0  # no product

    def of(self, root: Node | Leaf) -> int:
        """The number of a tree over the products 0, 1, ..."""
        values: dict[int, int] = {}
        for node in nodes_of(root) if isinstance(root, Node) else ():
            values[id(node)] = self.added([values[id(child)] if isinstance(child, Node) else self.leaf(int(child))
                                          for child in node.children])  # fmt: skip
        return values[id(root)] if isinstance(root, Node) else self.leaf(int(root))


def joined_stages(root: Node | Leaf, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages with this tree over the products 0, 1, ... `model`: the unit of one product; `rounding`: the rounding of
    sums of parts."""
    trees, chain, every = _Trees(), Chain(model), Span.of(size_of(root))
    wanted = trees.of(root)
    joins: list[Join] = [Through(), Promote(rounding), *(Add(rounding, order) for order in ORDERS)]
    if every.count > LONGEST or chain.run(trees, every, 0) == wanted:
        return
    for partition in (one for kind in PARTITIONS for one in kind.likely(every.count)):
        for join in joins:
            for tail in (None, chain) if "tail" in partition.takes else (None,):
                with suppress(ParameterError):
                    stage = Parted(partition, join, chain, tail)
                    if stage.run(trees, every, 0) == wanted:
                        yield stage
