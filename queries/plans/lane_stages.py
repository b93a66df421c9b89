"""Candidate stages for the summation tree of a sum over the lanes of vectors.

With W lanes, each lane adds every W-th product. At the end the lanes are folded: groups of lanes are added until one
lane remains. A kernel may fold first and then add more products with the remaining lanes; a tree shows this only at
some K, so that such stages are guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, combinations, islice

from mmaprobe.queries.order.tree import Leaf, Node, leaf_order, leaves_of, pruned
from mmaprobe.queries.plans.tree_stages import Extent, extent_of, extents_of, ranked, scalars
from mmaprobe.queries.plans.turn_stages import turn_unit
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Stage
from mmaprobe.smtmodel.plans.named import (
    after_first,
    in_format,
    in_multiples,
    in_runs,
    in_turns,
    in_vectors,
    interleaved,
    promoted,
)  # fmt: skip
from mmaprobe.smtmodel.plans.partitions import Lanes
from mmaprobe.smtmodel.plans.stages import Parted, parts_of
from mmaprobe.smtmodel.tables.reference import parse_reference

Key = int | tuple["Key", "Key"]
WAYS = (16, 8, 4, 3, 2)  # numbers of lanes that one fold adds
MOST_LANES = 256
MOST_TAILS = 64  # the most guesses of tails, in which fewer lanes sum the remaining products
ALL = 1 << 20  # more products than any K that is asked
UNROLLS = (4, 8, 16, 32)  # products of one turn of an unrolled loop, of which each lane takes several


def lanes_of(root: Node | Leaf, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages with lanes that have this tree over the products 0, 1, ..., the simplest first. `model`: the unit of one
    product; `rounding`: the rounding of the folds."""
    yield from _all_in_lanes(root, model, rounding)
    if isinstance(root, Node) and 0 in root.children and len(root.children) == 2:  # the first product is added last
        (rest,) = (child for child in root.children if child != 0)
        for stage in _all_in_lanes(ranked(rest), model, rounding):
            yield after_first(1, Chain(model), promoted(ALL, stage, rounding))


def _all_in_lanes(root: Node | Leaf, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """The stages of `lanes_of` in which the first product is not added last."""
    count = extent_of(extents_of(root), root).count
    for head, own in _heads(root):
        if not 2 <= own.lanes <= MOST_LANES:
            continue
        first = sorted(_first_products(head))
        for guesses in (_after_the_rest, _backwards, _with_grain, _in_turn):
            for stage in guesses(head, first, own, model, rounding):
                yield from _unrolled(stage, own.count, count - own.count)
                yield stage


def epilogues_of(root: Node | Leaf, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages of the vectors of a loop, and of shorter vectors that a compiler puts after the loop: products that fill
    no whole turn go to fewer lanes, the first of which begins with the sum of the loop."""
    extents, node = extents_of(root), root
    while isinstance(node, Node):
        node = min(node.children, key=lambda child: extent_of(extents, child).lowest)
        own, count = extent_of(extents, node), extent_of(extents, root).count
        if not isinstance(node, Node) or own.highest + 1 != own.count or not 0 < count - own.count < own.lanes:
            continue
        left = pruned(root, frozenset(leaf for leaf in leaves_of(root) if leaf_order(leaf) >= own.count))
        assert left is not None
        rest = ranked(left)
        every = (stage for guesses in (lanes_of, epilogues_of) for stage in guesses(rest, model, rounding))
        tails = list(islice(every, MOST_TAILS))
        whole = (
            stage
            for stage in lanes_of(node, model, rounding)
            if isinstance(stage, Parted) and parts_of(stage, Lanes) and not stage.tail
        )
        for stage in islice(whole if tails else (), 2):
            yield from (replace(stage, tail=tail) for tail in tails)


def _in_turn(head: Node, first: Sequence[int], own: Extent, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages whose lanes take one product each in turn, perhaps after a short first turn."""
    lanes = own.lanes
    short = next((n for n, product in enumerate(first) if n != product), 0)
    begins = [lane if lane < short or not short else lane + short for lane in range(lanes)]
    if first != begins:
        return
    if (folds := _folds(_key(head, lambda k: k if k < short else (k - short) % lanes), lanes)) is None:
        return
    for steps in _widths(lanes, folds):
        takes_all = any(step == 1 for step in steps)  # the first lane takes the remaining products: no tail
        tails = [None] if takes_all else [*_tails(lanes, model, rounding), *_narrower(lanes, folds, model, rounding)]
        for tail in tails:
            for length in dict.fromkeys((short, folds[0].stride) if tail is not None else (short,)):
                try:
                    yield in_vectors(Chain(model), rounding, steps, length, tail)
                except ParameterError:
                    continue
        for unroll in UNROLLS if takes_all and not short else ():
            if unroll > lanes and unroll % lanes == 0:
                yield in_vectors(Chain(model), rounding, steps, unroll=unroll)


def _unrolled(stage: Stage, taken: int, left: int) -> Iterator[Stage]:
    """The stages of an unrolled loop like `stage`, if this has lanes and a tail. The loop took `taken` products and
    left `left`, with which the lanes could have taken another turn."""
    if (
        isinstance(stage, Parted)
        and (own := parts_of(stage, Lanes)) is not None
        and stage.tail is not None
        and own.head == 0
        and own.grain == 1 <= own.lanes <= left
    ):
        for unroll in UNROLLS:
            if unroll > left and taken % unroll == unroll % own.lanes == 0:
                yield replace(stage, partition=replace(own, unroll=unroll))


def _after_the_rest(head: Node, first: Sequence[int], own: Extent, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages in which the first lane starts with the products that fill no whole turn, or with the first few, before
    all lanes take whole turns."""
    lanes = own.lanes
    left = first[1] - 1 if len(first) > 1 else 0
    if not 1 <= left <= lanes or list(first) != [0, *range(left + 1, left + lanes)]:
        return
    chain = Chain(model)
    if (folds := _folds(_key(head, lambda k: 0 if k < left else (k - left) % lanes), lanes)) is not None:
        for steps in _widths(lanes, folds):
            if 1 not in steps:
                yield in_multiples(lanes, in_vectors(chain, rounding, steps), head=chain)
        whole = in_vectors(chain, rounding, (lanes, *folds))
        for tail in (whole, *_tails(lanes, model, rounding)):  # the first tail: a vector of which a part is masked
            yield after_first(left, chain, replace(whole, tail=tail))


def _backwards(head: Node, first: Sequence[int], own: Extent, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages of an unrolled loop whose lanes take each turn from its end: a lane begins with its last two products."""
    lanes = own.lanes
    turns = first[0] // lanes + 2
    if turns < 3 or first[0] % lanes or list(first) != list(range(first[0], first[0] + lanes)):
        return
    if (folds := _folds(_key(head, lambda k: k % lanes), lanes)) is not None:
        yield in_vectors(Chain(model), rounding, (lanes, lanes, *folds), unroll=turns * lanes, order="backwards")


def _with_grain(head: Node, first: Sequence[int], own: Extent, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages whose lanes take several products of a turn, one after another. If there is only one turn, some lanes may
    have taken no products."""
    grain, present, count = first[1] if len(first) > 1 else 0, own.lanes, own.count
    if grain < 2 or list(first) != list(range(0, grain * present, grain)):
        return
    several, one_more = count > grain * present, count == grain * present + 1  # the last one may be a lane
    if several and (folds := _folds(_key(head, lambda k: k // grain % present), present)) is not None:
        for tail in _tails(present * grain, model, rounding):
            yield in_vectors(Chain(model), rounding, (present, *folds), tail=tail, grain=grain)
    if not several or one_more:
        taking = present + one_more
        key, whole = _key(head, lambda k: k // grain, count - 1 if one_more else -1), 1 << taking.bit_length()
        for lanes in dict.fromkeys((taking, whole // 2, whole, 2 * whole)):
            folds = _folds(key, lanes, taking) if taking <= lanes <= MOST_LANES else None
            if folds is not None and folds != [Fold(lanes, 1)]:  # that fold alone sums runs, one after another
                yield in_vectors(Chain(model), rounding, (lanes, *folds), grain=grain)


def blocks_of(root: Node | Leaf, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages that sum blocks of products separately and add each to the running sum; the remaining products are summed
    in blocks of half the size, and so on."""
    chain: Stage = Chain(model)
    node, sizes, extents = root, set[int](), extents_of(root)
    while isinstance(node, Node) and len(node.children) == 2:
        one, other = sorted(node.children, key=lambda x: extent_of(extents, x).lowest)
        if isinstance(other, Node):
            sizes.add(extent_of(extents, other).count)
        node = one
    bodies = [chain, *_pairs(model), interleaved(2, chain, rounding, tail=chain)]
    for size in sorted(sizes, reverse=True)[:2]:
        block = 1 << (size - 1).bit_length()
        yield from (promoted(block, body, rounding) for body in (*bodies, *_compiled_loops(model)))
        for body in bodies:
            for smallest in dict.fromkeys((body, *bodies[:2])):
                for last in (None, chain):
                    tail, half = last, 2
                    while half < block:
                        tail = promoted(half, smallest if half == 2 else body, rounding, tail=tail)
                        half *= 2
                    yield promoted(block, body, rounding, tail=tail)
            yield promoted(block, body, rounding, tail=chain)
            yield in_turns(2 * block, in_runs(2, body, rounding, grain=block), tail=chain)
            yield in_multiples(2 * block, promoted(block, body, rounding), tail=chain)


def _pairs(model: Model) -> list[Stage]:
    """Chains of units that take two products, and four, in the order in which compilers add a0*b0 + a1*b1 + ...; empty
    unless `model` is a fused multiply-add with one format for all operands."""
    two, four = (turn_unit(model, order) for order in ("c+1+0", "c+1+0+2+3"))
    if two is None or four is None:
        return []
    pairs = Chain(two, Chain(model))
    return [pairs, Chain(four, pairs)]


def _heads(root: Node | Leaf) -> Iterator[tuple[Node, Extent]]:
    """The subtrees that may be the sum of all lanes, each with its extent: the whole tree, then the rest of the tree
    without some last products."""
    node, extents = root, extents_of(root)
    while isinstance(node, Node) and len(node.children) == 2:
        own = extent_of(extents, node)
        if own.highest + 1 == own.lowest + own.count:
            yield node, own
        node = min(node.children, key=lambda child: extent_of(extents, child).lowest)


def _first_products(head: Node) -> list[int]:
    """The first product of each lane: the lower of two products that are added to each other. Later products are added
    to a sum."""
    firsts, waiting = [], [head]
    while waiting:
        node = waiting.pop()
        leaves = [leaf_order(child) for child in node.children if not isinstance(child, Node)]
        if len(leaves) == 2:
            firsts.append(min(leaves))
        waiting += [child for child in node.children if isinstance(child, Node)]
    return firsts


def _key(node: Node | Leaf, lane_of: Callable[[int], int], alone: int = -1) -> Key:
    """The tree over lanes, in which the chain of each lane is replaced by the number of the lane. `lane_of`: gives the
    lane of a product; `alone`: a product that is a lane by itself (-1: no product is)."""
    while isinstance(node, Node):
        sums = [child for child in node.children if isinstance(child, Node)]
        if len(sums) != 1 or alone in node.children:
            break
        node = sums[0]  # the other child is one more product of the lane or of folded lanes
    if not isinstance(node, Node):
        return lane_of(leaf_order(node))
    one, other = sorted((_key(child, lane_of, alone) for child in node.children), key=_lowest)
    return one if one == other else (one, other)


def _lowest(key: Key) -> int:
    while not isinstance(key, int):
        key = key[0]
    return key


def _folds(key: Key, lanes: int, present: int | None = None) -> list[Fold] | None:
    """Folds that add the lanes to one sum in the order of the tree; None if no folds do. `present`: the number of lanes
    that took products (None: all)."""
    sums, folds = set[Key](), list[Fold]()
    waiting = [key]
    while waiting:
        part = waiting.pop()
        sums.add(part)
        waiting += [] if isinstance(part, int) else list(part)
    taking = lanes if present is None else present
    current: list[Key | None] = [lane if lane < taking else None for lane in range(lanes)]
    while len(current) > 1:
        for fold in _possible_folds(len(current)):
            if (joined := _joined_by(fold, current, sums)) is not None:
                break
        else:
            return None
        current = joined
        folds.append(fold)
    return folds


def _joined_by(fold: Fold, lanes: Sequence[Key | None], sums: set[Key]) -> list[Key | None] | None:
    """The lanes after a fold; None if a sum that the fold makes is not in the tree."""
    keys: list[Key | None] = []
    for group in fold.groups(len(lanes)):
        one = _added([lanes[lane] for lane in group])
        if one is not None and one not in sums:
            return None
        keys.append(one)
    return keys


@cache
def _possible_folds(lanes: int) -> tuple[Fold, ...]:
    """The folds of `lanes` lanes; folds of groups that are not all whole come last."""
    every = (Fold(ways, stride) for ways in WAYS for stride in range(1, lanes))
    folds = dict.fromkeys(fold for fold in (*every, Fold(lanes, 1)) if fold.takes(lanes))
    return tuple(sorted(folds, key=lambda fold: lanes % (fold.ways * fold.stride) > 0))


def _added(keys: Sequence[Key | None]) -> Key | None:
    """The sum of lanes; None if no lane has products. Lanes without products add nothing."""
    taking = [key for key in keys if key is not None]
    if not taking:
        return None
    whole, *rest = taking
    for key in rest:
        whole = (whole, key) if _lowest(whole) < _lowest(key) else (key, whole)
    return whole


def _widths(lanes: int, folds: list[Fold]) -> Iterator[tuple[int | Fold, ...]]:
    """The steps of stages: all folds at the end, or with more products for the lanes that remain after one or two of
    the folds, or after each fold except the last."""
    yield (lanes, *folds)
    yield (lanes, 1, *folds)  # the remaining products go to the first lane
    left = list(accumulate(folds[:-1], lambda count, fold: fold.left(count), initial=lanes))
    places = range(1, len(folds))
    for taken in dict.fromkeys([*combinations(places, 1), *combinations(places, 2), tuple(places)]):
        yield tuple(step for n, fold in enumerate(folds) for step in ((left[n], fold) if n in (0, *taken) else (fold,)))


def _tails(lanes: int, model: Model, rounding: Rounding) -> Iterator[Stage | None]:
    """The tails to try for the products that fill no turn: products added one after another, or summed separately, also
    in f64; None: no tail."""
    fused, unfused = scalars(model)
    chain = Chain(fused)
    for pairs in _pairs(fused)[:1]:  # the most specific tails first
        for body in (pairs, interleaved(2, chain, rounding, tail=chain)):
            yield promoted(3, pairs, rounding, tail=promoted(2, body, rounding, tail=chain))
        yield promoted(lanes, pairs, rounding)
    yield None
    for each in dict.fromkeys((model, fused, unfused)):
        yield from (Chain(each), promoted(lanes, Chain(each), rounding))
    yield from _compiled_loops(model)
    if model.a.name == model.b.name == rounding.format.name == "f32":
        wide = Chain(parse_reference("ieee/muladd/f64.f32.f32.f64"))
        yield in_format(promoted(lanes, wide, Rounding(FORMATS["f64"])), rounding)


def _compiled_loops(model: Model) -> Iterator[Stage]:
    """Loops in which a compiler rounds the products of a whole vector, then adds them in order, and fuses the remaining
    products. There is no such loop for a unit whose fused and unfused forms are the same."""
    fused, unfused = scalars(model)
    if fused != unfused:
        for width in (8, 4):
            yield in_multiples(width, Chain(unfused), tail=Chain(fused))


def _narrower(lanes: int, folds: Sequence[Fold], model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Tails in which vectors, each half as wide as the vector before, separately sum the products that fill them. The
    last products are added one after another."""
    widths: list[Parted] = []
    while lanes >= 4 and folds[0] == Fold(2, lanes // 2):
        lanes, folds = lanes // 2, folds[1:]
        widths.append(promoted(lanes, in_vectors(Chain(model), rounding, (lanes, *folds)), rounding))
        for last in dict.fromkeys((model, *scalars(model))):
            tail: Stage = Chain(last)
            for stage in reversed(widths):
                tail = replace(stage, tail=tail)
            yield tail
