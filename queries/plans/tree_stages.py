"""Candidate stages for the summation tree of a matrix product at one K: every likely partition of its products with
every join, around the stages of the parts.

A stage says how K is divided for every K, and a tree shows one K: several stages may have the same tree. Each stage is
a guess, to be tested on results at other K.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, groupby, islice, product
from operator import xor

from mmaprobe.queries.order.tree import Branch, Leaf, Node, leaf_order, leaves_of, nodes_of, size_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Stage, partitions
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.joins import ORDERS, Add, Promote, Through, Tree
from mmaprobe.smtmodel.plans.named import after_first, in_multiples, promoted
from mmaprobe.smtmodel.plans.partitions import PARTITIONS, At
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Join, Parted, Partition, SumStructure, parts_of
from mmaprobe.smtmodel.plans.words import Words
from mmaprobe.smtmodel.tables.reference import parse_reference

MOST_GUESSES = 32  # guesses for the tree of one part
WHOLE = 160  # guesses for one tree
DEEP = 6  # nesting depth of stages
WORK = 60  # subtrees that are read for one tree
CUTS = 5  # the most places where K is cut, if there is no other reason to cut it there
SIZES = 12  # sizes of sums that one tree shows, at most
TURNS = (2, 4, 8, 16, 32)  # products of one turn of an unrolled loop; the remaining products are summed otherwise
GRAINS = ("grain", "even")  # parameters of partitions: multiples of them are parts, or the last parts
USUAL = {0, *partitions.SPLIT_GRAINS}  # the usual ones
ODD = 4  # stages of one tree that differ in an unusual grain alone, at most
HOLE = "a part"  # the name of the unit that stands for the stage of a part


def stages_of(
    root: Branch, model: Model, rounding: Rounding, bodies: Sequence[Stage] = (), *, wider: bool = False
) -> list[Stage]:
    """Candidate stages with this tree of all products. `model`: the unit of one product; `rounding`: the rounding of
    sums of parts; `bodies`: known stages that may be parts of others; `wider`: only the stages whose parts are joined
    otherwise than in most libraries."""
    found = _Reader(model, rounding, bodies, wider).stages(root, DEEP)
    return [stage for stage in found if stage.d == rounding.format]


class _OtherStepError(Exception):
    """A step that a tree does not have."""


class Steps(Engine[int]):
    """The steps of a tree over the products 0, 1, ... A sum is given by a number for the set of its products; 0: no
    product. `sums`: the sums in the tree, each with its branch; `bodies`: the sums that a unit named `HOLE` has
    given."""

    def __init__(self, root: Branch) -> None:
        chance, self.root, self.every = random.Random(1), root, Span.of(size_of(root))
        self.leaves = [chance.getrandbits(64) for _ in self.every.places]
        self.sums: dict[int, Branch] = {leaf: place for place, leaf in enumerate(self.leaves)}
        own: dict[int, int] = {}
        for node in nodes_of(root) if isinstance(root, Node) else ():
            own[id(node)] = 0
            for child in node.children:
                own[id(node)] ^= own[id(child)] if isinstance(child, Node) else self.leaves[int(child)]
            self.sums[own[id(node)]] = node
        self.whole, self.bodies = next(reversed(self.sums)), list[int]()
        self.sums[0] = "c"

    def may_be_of(self, stage: Stage) -> bool:
        """Whether the tree may be that of a stage: always if a unit takes several products, as it has steps of its
        own."""
        return any(model.length > 1 for model in stage.models) or self.has(stage)

    def has(self, stage: Stage) -> bool:
        """Whether the tree is that of a stage with units of one product."""
        self.bodies = []
        with suppress(_OtherStepError, ParameterError):
            return stage.run(self, self.every, 0) == self.whole and self.whole not in self.bodies
        return False

    def zero(self, fmt: Format) -> int:
        return 0

    def tile(self, model: Model, words: Words, span: Span, start: int) -> int:
        return self.tiles(model, words, span, start)

    def tiles(self, model: Model, words: Words, span: Span, start: int) -> int:
        firsts = range(span.start.offset, span.start.offset + span.groups * span.pitch, span.pitch)
        leaves = chain(*(self.leaves[first : first + span.size * span.step : span.step] for first in firsts))
        if model.reference != HOLE:
            return reduce(self._with, leaves, start)
        if start:
            raise _OtherStepError
        self.bodies.append(self._with(0, reduce(xor, leaves)))
        return self.bodies[-1]

    def rounded(self, values: Sequence[int], rounding: Rounding) -> int:
        return self._with(0, reduce(xor, values))

    def lost(self, values: Sequence[int], total: int, rounding: Rounding) -> int:
        return 0  # no product

    def _with(self, start: int, more: int) -> int:
        if (total := start ^ more) not in self.sums:
            raise _OtherStepError
        return total


class _Reader:
    """Reads stages from trees. `left`: how many more trees may be read; `read`: the stages of the trees that were
    read."""

    def __init__(self, model: Model, rounding: Rounding, known: Sequence[Stage], wider: bool) -> None:
        self.how, self.known, self.wider, self.left = rounding, known, wider, WORK
        self.chain, self.hole = Chain(model), Chain(replace(model, reference=HOLE))
        self.others = [one for one in map(Chain, scalars(model)) if one != self.chain]
        self.read: dict[frozenset[int], list[Stage]] = {}

    def stages(self, root: Branch, deep: int) -> list[Stage]:
        """Candidate stages for a tree, the simplest first. `deep`: how deep stages may be nested."""
        steps = Steps(ranked(root))
        if (key := frozenset(steps.sums)) not in self.read:
            self.left -= 1
            every = self._readings(steps, deep, self.wider and deep == DEEP) if deep and self.left >= 0 else ()
            self.read[key] = list(dict.fromkeys(islice(every, WHOLE if deep == DEEP else MOST_GUESSES)))
        return self.read[key]

    def _readings(self, steps: Steps, deep: int, wider: bool) -> Iterator[Stage]:
        if steps.has(self.chain):
            yield from [] if wider else [self.chain]
            for turn, other in product(TURNS if deep == DEEP and not wider else (), self.others):
                yield (whole := in_multiples(turn, self.chain, tail=other))
                yield after_first(1, self.chain, whole)  # a loop of C++ that begins with the second product
            return
        outlines = list(self._outlines(steps, wider))
        simple = [one for one in (_filled(outline, self.chain) for outline, _ in outlines) if steps.has(one)]
        yield from simple
        if any(parts_of(one, At) is None for one in simple):
            return
        for outline, ends in outlines:
            for body in dict.fromkeys((*chain(*(self.stages(end, deep - 1) for end in ends)), *self.known)):
                with suppress(ParameterError):
                    if steps.may_be_of(stage := _filled(outline, body)):
                        yield stage

    def _outlines(self, steps: Steps, wider: bool) -> Iterator[tuple[Stage, Sequence[Branch]]]:
        """The stages with this tree and holes in the place of their parts, each with the trees of its last part, which
        may have a tail, and of its first part. Of stages whose partitions differ in their grain alone, only the first
        and the last, and some of an unusual grain."""
        cuts = set[tuple[int, ...]]()
        for every in self._every(steps, wider):
            fitting = list[tuple[Parted, Sequence[Branch]]]()
            for stage in every:
                if steps.has(stage) and not _needless(stage, steps, cuts):
                    fitting.append((stage, [steps.sums[steps.bodies[at]] for at in (-1, 0) if steps.bodies]))
                    cuts |= {tuple(steps.bodies)} if stage.head is None else set()
            for _, alike in groupby(fitting, lambda one: [*_without_grain(one[0].partition)]):
                first, *others = alike
                odd = (one for one in others[-2::-1] if _grains(one[0].partition) - USUAL)
                yield from (first, *others[-1:], *islice(odd, ODD))

    def _every(self, steps: Steps, wider: bool) -> Iterator[Iterator[Parted]]:
        """Every likely partition with every join, and holes in the place of parts: the stages of one kind of partition
        and one join at a time."""
        structure = _structure_of(steps.root)
        likely = {kind: [one for one in kind.likely(structure) if self._begins(steps, one)] for kind in PARTITIONS}
        orders = [Add(self.how, order) for order in ORDERS]
        joins: list[Join] = [Promote(self.how), Tree(self.how), *orders, Through()]
        for kind, join in product(PARTITIONS, joins):
            usual = join.word == ("promote" if kind.loops else kind.usual) and join != Add(self.how, "pairwise")
            if join.word not in kind.joins or usual == wider or (kind.alone and wider):
                continue
            body = self.hole if kind.alone or join.begin != "so far" else self.chain
            tails = (self.chain, *(self.others if kind.alone else ())) if "tail" in kind.takes else ()
            for tail in (None, *tails):
                yield _parted(likely[kind], join, body, tail)
        heads = (in_multiples(size, promoted(size, self.hole, self.how), head=self.hole) for size in structure.sizes)
        yield heads if not wider else iter(())

    def _begins(self, steps: Steps, partition: Partition) -> bool:
        """Whether the tree may have the sum of the first part of a partition."""
        join = Tree(self.how) if partition.usual == "tree" else Promote(self.how)
        tail = self.chain if "tail" in partition.takes and not partition.loops else None
        with suppress(ParameterError):
            return steps.has(Parted(partition, join, self.hole, tail)) or bool(steps.bodies)
        return True


def _parted(every: Iterable[Partition], join: Join, body: Stage, tail: Stage | None) -> Iterator[Parted]:
    for partition in every:
        with suppress(ParameterError):
            yield Parted(partition, join, body, tail)


def _grains(partition: Partition) -> set[int]:
    return {value for name, value in vars(partition).items() if name in GRAINS}


def _without_grain(partition: Partition) -> Iterator[object]:
    return (value for name, value in vars(partition).items() if name not in GRAINS)


def _needless(stage: Parted, steps: Steps, cuts: Collection[tuple[int, ...]]) -> bool:
    """Whether a likelier stage has the same steps for this number of products: it adds two sums in another order than
    one after the other, or has a tail of a loop that takes no product, or cuts K at places where another stage cuts it.
    `cuts`: the parts of the other stages."""
    idle = stage.tail is not None and stage.partition.loops and stage.partition.cut(steps.every, stage).rest is None
    if isinstance(stage.join, Add) and stage.join.order != "sequential" and len(steps.bodies) == 2:
        return True
    return idle or (isinstance(stage.partition, At) and tuple(steps.bodies) in cuts)


def _filled(outline: Stage, body: Stage) -> Stage:
    """A stage with `body` in the place of its holes."""
    return outline.changed(lambda use: body if use.model.reference == HOLE else use)


def _structure_of(root: Branch) -> SumStructure:
    """The structure of a tree: the sizes of the sums added last, and of all sums before them; the places between these
    sums or, if the first runs are added last, between the first runs."""
    extents, sizes, places = extents_of(root), dict[int, None](), list[tuple[int, ...]]()
    for side in (0, -1):
        starts, branch = list[int](), root
        while isinstance(branch, Node):
            children = sorted(branch.children, key=lambda child: extent_of(extents, child).lowest)
            if isinstance(later := children[-1], Node):
                starts.append(extent_of(extents, later).lowest)
                sizes |= {later.size: None} if side == 0 else {}
            branch = children[side]
        sizes |= dict.fromkeys((*starts[:CUTS], *starts[-1:])) if side == 0 else {}
        places += [tuple(sorted(starts[:count])) for count in range(1, min(CUTS, len(starts)) + 1)]
    return SumStructure(size_of(root), list(sizes)[:SIZES], places)


def scalars(model: Model) -> tuple[Model, Model]:
    """The units of one product that loops after a loop with `model` may have: fused and unfused; `model` itself where
    its formats differ."""
    if not model.a == model.b == model.d:
        return model, model
    fused, unfused = (parse_reference(f"ieee/{step}/{model.d.name}") for step in ("fma", "muladd"))
    return fused, unfused


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
    """The extent of a node in `extents`, or of a leaf."""
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
