"""From the summation tree of a sum that lanes of vectors form to the stages that have this tree.

A lane adds every W-th product. At the end lanes are folded: groups of them are added, until one is left. A kernel may
fold first, and take more products with the lanes that are left: a tree shows that at some K only, and it is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from queries.order.tree import Leaf, Node, nodes_of
from smtmodel.dot import Model
from smtmodel.errors import ParameterError
from smtmodel.formats import FORMATS
from smtmodel.nodes.round import Rounding
from smtmodel.plans import Chain, Fold, Interleaved, Lanes, Promoted, Rounded, Split, Stage, Turns, Whole
from smtmodel.reference import parse_reference
from smtmodel.unit_table import units

Key = int | tuple["Key", "Key"]
WAYS = (16, 8, 4, 3, 2)  # lanes that one fold adds
MOST_LANES = 256


def lanes_of(root: Node | Leaf, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Stages of lanes with this tree over the products 0, 1, ..., the simplest first."""
    for head, lanes in _heads(root):
        if not 2 <= lanes <= MOST_LANES:
            continue
        first = sorted(_first_products(head))
        short = next((n for n, product in enumerate(first) if n != product), 0)  # a first turn that is short
        begins = [lane if lane < short or not short else lane + short for lane in range(lanes)]
        yield from _after_the_rest(head, first, lanes, model, rounding)
        if first != begins:
            continue
        if (folds := _folds(_key(head, lanes, short), lanes)) is None:
            continue
        for steps in _widths(lanes, folds):
            takes_all = any(step == 1 for step in steps)  # the first lane, of what is left
            for tail in [None] if takes_all else _tails(lanes, model, rounding):
                for length in dict.fromkeys((short, folds[0].stride) if tail is not None else (short,)):
                    try:
                        yield Lanes(Chain(model), rounding, steps, length, tail)
                    except ParameterError:
                        continue


def _after_the_rest(head: Node, first: Sequence[int], lanes: int, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Lanes that take whole turns after products that fill none, with which the first lane begins."""
    left = first[1] - 1 if len(first) > 1 else 0
    if not 1 <= left <= lanes or list(first) != [0, *range(left + 1, left + lanes)]:
        return
    if (folds := _folds(_key(head, lanes, left, after=True), lanes)) is not None:
        for steps in _widths(lanes, folds):
            if 1 not in steps:
                yield Whole(lanes, Lanes(Chain(model), rounding, steps), head=Chain(model))


def blocks_of(root: Node | Leaf, model: Model, rounding: Rounding) -> Iterator[Stage]:
    """Blocks of products, each summed apart and added to the sum so far; what is left in blocks of half as many."""
    chain: Stage = Chain(model)
    node, sizes, extents = root, set[int](), _extents(root)
    while isinstance(node, Node) and len(node.children) == 2:
        one, other = sorted(node.children, key=lambda x: _extent(extents, x).lowest)
        if isinstance(other, Node):
            sizes.add(_extent(extents, other).count)
        node = one
    bodies = [chain, *_pairs(model), Interleaved(2, chain, rounding, tail=chain)]
    for size in sorted(sizes, reverse=True)[:2]:
        block = 1 << (size - 1).bit_length()
        for body in bodies:
            for smallest in dict.fromkeys((body, *bodies[:2])):
                for last in (None, chain):
                    tail, half = last, 2
                    while half < block:
                        tail = Promoted(half, smallest if half == 2 else body, rounding, tail=tail)
                        half *= 2
                    yield Promoted(block, body, rounding, tail=tail)
            yield Promoted(block, body, rounding)
            yield Promoted(block, body, rounding, tail=chain)
            yield Turns(2 * block, Split(2, body, rounding, grain=block), tail=chain)
            yield Whole(2 * block, Promoted(block, body, rounding), tail=chain)


def _pairs(model: Model) -> list[Stage]:
    """Products one after another, of the first two the second one first: of two at a time, and of four."""
    two, four = (f"ieee/fma{count}/{model.d.name}" for count in (2, 4))
    if not (model.reference.startswith("ieee/fma/") and model.a == model.b == model.d and four in units()):
        return []
    pairs = Chain(parse_reference(two), Chain(model))
    return [pairs, Chain(parse_reference(four), pairs)]


def _heads(root: Node | Leaf) -> Iterator[tuple[Node, int]]:
    """The sums of lanes that a sum may begin with, all of it, or what its last products are added to; and how many
    lanes each has."""
    node, extents = root, _extents(root)
    while isinstance(node, Node) and len(node.children) == 2:
        yield node, _extent(extents, node).lanes
        one, other = sorted(node.children, key=lambda x: _extent(extents, x).lowest)
        last = _extent(extents, other)
        if last.highest - last.lowest + 1 != last.count or last.highest + 1 != _extent(extents, node).count:
            return
        node = one


def _first_products(head: Node) -> list[int]:
    """The first product of each lane: products that are added to another one of a chain are no lane's first."""
    found, waiting = [], [head]
    while waiting:
        node = waiting.pop()
        leaves = [_place(child) for child in node.children if not isinstance(child, Node)]
        if len(leaves) == 2:
            found.append(min(leaves))
        waiting += [child for child in node.children if isinstance(child, Node)]
    return found


def _key(node: Node | Leaf, lanes: int, short: int, after: bool = False) -> Key:
    """The tree over lanes: chains are one lane, by the place of its products in a turn, the first one of which may be
    short; or comes `after` so many products that the first lane begins with."""
    if not isinstance(node, Node):
        place = _place(node)
        return (0 if after else place) if place < short else (place - short) % lanes
    sums = [child for child in node.children if isinstance(child, Node)]
    if len(sums) == 1:
        return _key(sums[0], lanes, short, after)  # and a product more of a lane, or of lanes that were folded
    one, other = sorted((_key(child, lanes, short, after) for child in node.children), key=_lowest)
    return one if one == other else (one, other)


def _lowest(key: Key) -> int:
    while not isinstance(key, int):
        key = key[0]
    return key


def _folds(key: Key, lanes: int) -> list[Fold] | None:
    """Folds that make one sum of lanes, as the tree has it; None where none do."""
    sums, found = set[Key](), list[Fold]()
    waiting = [key]
    while waiting:
        part = waiting.pop()
        sums.add(part)
        waiting += [] if isinstance(part, int) else list(part)
    current: list[Key] = list(range(lanes))
    while len(current) > 1:
        tried = [
            Fold(ways, stride)
            for ways in WAYS
            if len(current) % ways == 0
            for stride in range(1, len(current) // ways + 1)
            if len(current) % (ways * stride) == 0
        ]
        for fold in tried:
            joined = [_added([current[lane] for lane in group]) for group in fold.groups(len(current))]
            if all(one in sums for one in joined):
                break
        else:
            return None
        current = joined
        found.append(fold)
    return found


def _added(keys: Sequence[Key]) -> Key:
    whole, *rest = keys
    for key in rest:
        whole = (whole, key) if _lowest(whole) < _lowest(key) else (key, whole)
    return whole


def _widths(lanes: int, folds: list[Fold]) -> Iterator[tuple[int | Fold, ...]]:
    """The folds at the end, and with more products for the lanes that one or two of them left."""
    yield (lanes, *folds)
    yield (lanes, 1, *folds)  # what is left goes to the first lane
    left = [lanes // math.prod(fold.ways for fold in folds[:n]) for n in range(len(folds))]
    places = range(1, len(folds))
    for taken in [*combinations(places, 1), *combinations(places, 2)]:
        yield tuple(step for n, fold in enumerate(folds) for step in ((left[n], fold) if n in (0, *taken) else (fold,)))


def _tails(lanes: int, model: Model, rounding: Rounding) -> Iterator[Stage | None]:
    """How the last products are added: one after another, or summed apart, in f64 as well."""
    fmt = model.d.name
    alike = model.a == model.b == model.d
    fused, unfused = (parse_reference(f"ieee/{step}/{fmt}") if alike else model for step in ("fma", "muladd"))
    chain = Chain(fused)
    for pairs in _pairs(fused)[:1]:  # those first that say most of what is left
        for body in (pairs, Interleaved(2, chain, rounding, tail=chain)):
            yield Promoted(3, pairs, rounding, tail=Promoted(2, body, rounding, tail=chain))
        yield Promoted(lanes, pairs, rounding)
    yield None
    for each in dict.fromkeys((model, fused, unfused)):
        yield from (Chain(each), Promoted(lanes, Chain(each), rounding))
    if model.a.name == model.b.name == rounding.format.name == "f32":
        wide = Chain(parse_reference("ieee/muladd/f64.f32.f32.f64"))
        yield Rounded(Promoted(lanes, wide, Rounding(FORMATS["f64"])), rounding)


@dataclass(frozen=True)
class _Extent:
    """The lowest and the highest product below a branch, how many there are, and how many of them begin a lane."""

    lowest: int
    highest: int
    count: int
    lanes: int = 0


def _extents(root: Node | Leaf) -> dict[int, _Extent]:
    """Of every node, by its identity."""
    found: dict[int, _Extent] = {}
    for node in nodes_of(root) if isinstance(root, Node) else ():
        own = [_extent(found, child) for child in node.children]
        begins = sum(x.lanes for x in own) + (sum(x.count == 1 for x in own) == 2)
        ends = min(x.lowest for x in own), max(x.highest for x in own)
        found[id(node)] = _Extent(*ends, sum(x.count for x in own), begins)
    return found


def _extent(extents: dict[int, _Extent], branch: Node | Leaf) -> _Extent:
    return extents[id(branch)] if isinstance(branch, Node) else _Extent(_place(branch), _place(branch), 1)


def _place(leaf: Leaf) -> int:
    return -1 if leaf == "c" else int(leaf)
