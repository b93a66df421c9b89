"""Candidate stages for the summation tree of a matrix product at one K.

A stage says how K is divided for every K, and a tree shows one K: several stages may have the same tree. Each stage is
a guess, to be tested on results at other K.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, product

from mmaprobe.queries.order.tree import Leaf, Node, chain_of, leaf_order, leaves_of, nodes_of, size_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Stage
from mmaprobe.smtmodel.plans.joins import Add, Order
from mmaprobe.smtmodel.plans.named import (
    after_first,
    in_halves,
    in_multiples,
    in_runs,
    in_runs_at,
    interleaved,
    promoted,
)  # fmt: skip
from mmaprobe.smtmodel.plans.partitions import At, Halves, Interleaved, Runs
from mmaprobe.smtmodel.plans.stages import Parted, parts_of
from mmaprobe.smtmodel.tables.reference import parse_reference

MOST = 32  # guesses for the tree of one part
WHOLE = 160  # guesses for one tree
DEEP = 6  # nesting depth of stages
WORK = 60  # subtrees that are read for one tree
CUTS = 6  # the largest number of last sums of a tree that are all tried as parts of one stage
GRAINS = (1, 2, 4, 8, 16, 32, 64)  # the lengths of equal parts are multiples of one of these
TURNS = (2, 4, 8, 16, 32)  # products of one turn of an unrolled loop; the remaining ones are summed otherwise
LIMITS = 24  # guesses for the largest size of a stage's sums, of those that one tree admits

Branch = Node | Leaf


def stages_of(root: Branch, model: Model, rounding: Rounding, bodies: Sequence[Stage] = ()) -> list[Stage]:
    """Candidate stages with this tree of all products. `model`: the unit of one product; `rounding`: the rounding of
    sums of parts; `bodies`: known stages that may be parts of others."""
    readings = dict.fromkeys(islice(_Guesser(model, rounding, DEEP, [WORK], bodies).readings(ranked(root)), WHOLE))
    return [stage for stage in readings if stage.d == rounding.format]


class _Guesser:
    """Reads stages from a tree. `deep`: how deep stages may still be nested; `left`: how many more subtrees may be
    read, one number shared by all parts of a tree; `known`: stages that parts may be."""

    def __init__(
        self, model: Model, rounding: Rounding, deep: int, left: list[int], known: Sequence[Stage] = ()
    ) -> None:
        self.model, self.rounding, self.deep, self.left, self.known = model, rounding, deep, left, known
        self.chain = Chain(model)

    def _bodies(self, root: Branch) -> list[Stage]:
        """Candidate stages for a subtree."""
        self.left[0] -= 1
        if not self.deep or self.left[0] < 0:
            return [*self.known]
        inner = _Guesser(self.model, self.rounding, self.deep - 1, self.left)
        read = islice(dict.fromkeys(inner.readings(ranked(root))), MOST)
        return list(dict.fromkeys((*read, *self.known)))

    def readings(self, root: Branch) -> Iterator[Stage]:
        """Candidate stages for a tree over the products 0, 1, ..., the simplest first."""
        parts = spine(root)
        if parts is None:
            return
        tail, total = len(parts), sum(leaf != "c" for leaf in leaves_of(root))
        products = total
        while tail > 1 and parts[tail - 1] == products - 1:  # the last products, one after another
            tail, products = tail - 1, products - 1
        if tail == 1:
            yield self.chain
            for turn in TURNS if self.deep == DEEP else ():
                for whole in (in_multiples(turn, self.chain, tail=other) for other in self.others):
                    yield whole
                    yield after_first(1, self.chain, whole)  # a loop of C++ that begins with the second product
            return
        yield from self._parted(parts)
        if tail < len(parts):
            for stage in self._parted(parts[:tail]):
                if isinstance(stage, Parted) and parts_of(stage, Interleaved):
                    yield Parted(stage.partition, Add(self.rounding), stage.body, self.chain)
                turns = [turn for turn in TURNS if total - total % turn == products]
                for turn, last in product(turns if parts_of(stage, At) is None else [], (self.chain, *self.others)):
                    yield in_multiples(turn, stage, tail=last)

    @property
    def others(self) -> list[Stage]:
        """Chains of the same formats with another rounding of products."""
        return [chain for chain in map(Chain, scalars(self.model)) if chain != self.chain]

    def _parted(self, parts: Sequence[Branch]) -> Iterator[Stage]:
        """Stages whose parts are the last sums of a spine and, as the first part, all that comes before them."""
        several = 0
        while several < len(parts) - 1 and isinstance(parts[-1 - several], Node):
            several += 1
        sizes = [size_of(part) for part in parts[len(parts) - several :]]
        alike = next((n for n, size in enumerate(sizes[-2::-1]) if size != sizes[-2]), len(sizes) - 1) + 1
        for count in dict.fromkeys([alike, several, *range(1, min(several, CUTS) + 1)] if several else ()):
            first = chain_of(parts[: len(parts) - count])
            given = [first, *parts[len(parts) - count :]]
            places = [sorted(map(int, (leaf for leaf in leaves_of(part) if leaf != "c"))) for part in given]
            yield from self._stage(given, places)

    def _stage(self, parts: Sequence[Branch], places: list[list[int]]) -> Iterator[Stage]:
        sizes, total = [len(side) for side in places], sum(map(len, places))
        if [k for side in places for k in side] == list(range(total)):
            first = self._bodies(parts[0])
            if len(parts) == 2:
                yield from self._backwards(parts[0], parts[1], first)
            for body in dict.fromkeys((*self._bodies(parts[-1]), *first)):  # the last may have a tail
                yield from self._runs(sizes, body)
            return
        ways = len(parts)
        grain = next((n for n, k in enumerate(places[0]) if k != n), 0)
        turn = ways * grain
        whole = total - total % turn if turn else 0
        if whole and all(
            side == [k for k in range(total) if k % turn // grain == number] for number, side in enumerate(places)
        ):
            for body in self._bodies(parts[0]):
                yield interleaved(ways, body, self.rounding, "sequential", grain)
                yield interleaved(ways, body, self.rounding, "sequential", grain, self.chain)

    def _runs(self, sizes: list[int], body: Stage) -> Iterator[Stage]:
        """Stages that divide K into consecutive runs of these sizes, each summed by `body`."""
        ways, first, last, how = len(sizes), sizes[0], sizes[-1], self.rounding
        both = sum(sizes[-2:])
        evens = [grain for grain in GRAINS if sizes[-2] == -(-((both + (grain == 1)) // 2) // grain) * grain]
        even = evens[0] if evens else 0
        if ways == 2 and first < last:
            yield from self._smaller_first(first, last, body)
        if first < last and set(sizes[1:]) == {last}:  # the products that fill no whole run come first
            yield in_multiples(last, promoted(last, body, how), head=body)
        if max(sizes[-2], last - (even > 0)) > first or set(sizes[:-2]) - {first}:
            yield from self._uneven(sizes, body)
            return
        if grain := next((grain for grain in GRAINS if sizes == _split(sum(sizes), ways, grain)), 0):
            yield in_runs(ways, body, how, "sequential", grain)
        if even and ways > 2 and sizes[-2] < first < sum(sizes[-2:]):
            yield from (promoted(first, body, how, grain) for grain in evens)
        if ways == 2 and even:  # a run may be longer than the first one here: other K decide
            if parts_of(body, Halves):
                yield body
            blocks = [block for block in range(-(-first // 64) * 64, 2 * first, 64) if block > first]
            yield from (promoted(block, body, how, grain) for grain in (evens[0], evens[-1]) for block in blocks[:12])
            longest = dict.fromkeys([first, 1 << (first - 1).bit_length()])
            yield from (
                in_halves(most, body, how, even) for most in longest if most < sum(sizes) and body == self.chain
            )
        if sizes[-2] == first:
            yield promoted(first, body, how)
            if last < first:
                yield from _shared(sizes, body, how)

    def _smaller_first(self, first: int, last: int, body: Stage) -> Iterator[Stage]:
        """Pairwise summations whose first half is the smaller one."""
        total = first + last
        grains = [grain for grain in GRAINS if first == total // (2 * grain) * grain]
        if grains and parts_of(body, Halves):
            yield body
        elif grains and (body == self.chain or body in self.known):
            most = (1 << n for n in range(1, (total - 1).bit_length()))
            yield from (in_halves(most_, body, self.rounding, grains[-1], "smaller") for most_ in most)

    def _backwards(self, first: Branch, rest: Branch, bodies: Sequence[Stage]) -> Iterator[Stage]:
        """Stages that add consecutive runs of products from the last run on: the first run is added last."""
        sizes, extents = [_products(first)], extents_of(rest)
        while isinstance(rest, Node) and len(rest.children) == 2:
            run, rest = sorted(rest.children, key=lambda child: extent_of(extents, child).lowest)
            if not isinstance(rest, Node):
                return
            sizes.append(_products(run))
            every = [*sizes, _products(rest)]
            grain = next((grain for grain in GRAINS if every == _split(sum(every), len(every), grain)), 0)
            for body in bodies:
                if grain:
                    yield in_runs(len(every), body, self.rounding, "backwards", grain)
                else:
                    yield from self._uneven(every, body, "backwards")

    def _uneven(self, sizes: list[int], body: Stage, order: Order = "sequential") -> Iterator[Stage]:
        """Stages with runs of these sizes: a worker ends one result and begins the next one between them, at this K."""
        places = tuple(accumulate(sizes[:-1]))
        if len(sizes) <= CUTS and not any(place % body.period for place in places):
            yield in_runs_at(places, body, self.rounding, order)


def scalars(model: Model) -> tuple[Model, Model]:
    """The units of one product that loops after a loop with `model` may have: fused and unfused; `model` itself where
    its formats differ."""
    if not model.a == model.b == model.d:
        return model, model
    fused, unfused = (parse_reference(f"ieee/{step}/{model.d.name}") for step in ("fma", "muladd"))
    return fused, unfused


def _products(root: Branch) -> int:
    """How many products are below a branch."""
    return sum(leaf != "c" for leaf in leaves_of(root))


def _shared(sizes: list[int], body: Stage, how: Rounding) -> Iterator[Stage]:
    """Stages with sums of equal size but for the last one; the largest size is a guess, which other K decide."""
    total, first = sum(sizes), sizes[0]
    for grain in (grain for grain in (8, 16, 4) if first % grain == 0):
        limits = [every for every in range(first, total, grain)
                  if Runs(every, share=grain).size(total) == first]  # fmt: skip
        for every in limits[:: -(-len(limits) // LIMITS) or 1]:
            yield promoted(every, body, how, share=grain)


def _split(total: int, ways: int, grain: int) -> list[int]:
    size = -(-total // (grain * ways)) * grain
    return [min(size, total - start) for start in range(0, total, size)]


def spine(root: Branch) -> list[Branch] | None:
    """The first product, then the subtrees added to it one after another; None if a node adds more than two values."""
    parts: list[Branch] = []
    extents = extents_of(root)
    while isinstance(root, Node):
        if root.kind != "binary" or len(root.children) != 2:
            return None
        root, part = sorted(root.children, key=lambda child: extent_of(extents, child).lowest)
        parts.append(part)
    return [root, *reversed(parts)]


@dataclass(frozen=True)
class Extent:
    """The products below a branch (c is -1): the lowest, the highest and their count. `lanes`: how many lanes begin
    there, as two products that are added to each other begin a lane."""

    lowest: int
    highest: int
    count: int
    lanes: int = 0


def extents_of(root: Branch) -> dict[int, Extent]:
    """The extent of every node, by `id(node)`."""
    extents: dict[int, Extent] = {}
    for node in nodes_of(root) if isinstance(root, Node) else ():
        own = [extent_of(extents, child) for child in node.children]
        begins = sum(x.lanes for x in own) + (sum(x.count == 1 for x in own) == 2)
        ends = min(x.lowest for x in own), max(x.highest for x in own)
        extents[id(node)] = Extent(*ends, sum(x.count for x in own), begins)
    return extents


def extent_of(extents: Mapping[int, Extent], branch: Branch) -> Extent:
    """The extent of a node that has one, or of a leaf."""
    return extents[id(branch)] if isinstance(branch, Node) else Extent(leaf_order(branch), leaf_order(branch), 1)


def ranked(root: Branch) -> Branch:
    """The same tree with its products renumbered 0, 1, ... in their order."""
    if not isinstance(root, Node):
        return 0
    products = sorted(leaf for leaf in leaves_of(root) if leaf != "c")
    places: dict[Leaf, int] = {leaf: rank for rank, leaf in enumerate(products)}
    ranks: dict[int, Node] = {}
    for node in nodes_of(root):
        children = tuple(ranks[id(child)] if isinstance(child, Node) else places[child] for child in node.children)
        ranks[id(node)] = Node(node.kind, children)
    return ranks[id(root)]
