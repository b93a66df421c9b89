"""Likely summation orders, for units whose answers do not reveal their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mmaprobe.queries.order.tree import Kind, Leaf, Node, binary_trees, chain_of, joined_branch

EVERY_ORDER = 5  # terms up to which every order is tried
SIZES = (2, 4, 8, 16, 32)  # products of a block, and numbers of lanes
AT_ONCE: tuple[Kind, ...] = ("fused", "exact")  # steps that add many terms


def likely_orders(length: int, addend: bool) -> list[Node | Leaf]:
    """The trees of likely orders. For few terms these are all orders; for more terms, the orders of published units and
    libraries: all at once, one after another, in pairs, by blocks, in lanes; with c first, in the first block, or
    last."""
    leaves: list[Leaf] = ["c", *range(length)] if addend else [*range(length)]
    trees = list(binary_trees(leaves)) if len(leaves) <= EVERY_ORDER else []
    if len(leaves) > 2:
        trees += [joined_branch(kind, leaves) for kind in AT_ONCE]
    if len(leaves) > EVERY_ORDER:
        trees += _trees_of_many(length, addend)
    elif length > 2 and addend:
        trees += [Node("binary", (joined_branch(kind, range(length)), "c")) for kind in AT_ONCE]
    return trees


def _trees_of_many(length: int, addend: bool) -> Iterator[Node | Leaf]:
    def ended(total: Node | Leaf) -> Node | Leaf:
        return Node("binary", (total, "c")) if addend else total

    products: list[Node | Leaf] = [*range(length)]
    if addend:
        yield chain_of(["c", *products])
    yield from (ended(joined_branch(kind, products)) for kind in AT_ONCE)
    yield from (ended(way(products)) for way in (chain_of, _pairs))
    for size in (size for size in SIZES if size < length and length % size == 0):
        blocks = [range(start, start + size) for start in range(0, length, size)]
        for kind in AT_ONCE if size > 2 else AT_ONCE[:1]:
            if addend:
                yield _blocks("c", blocks, kind)
            yield ended(_blocks(joined_branch(kind, blocks[0]), blocks[1:], kind))
            parts: list[Node | Leaf] = [joined_branch(kind, block) for block in blocks]
            if addend:
                yield chain_of(["c", *parts])
            yield from (ended(way(parts)) for way in (chain_of, _pairs))
        lanes: list[Node | Leaf] = [chain_of([*range(lane, length, size)]) for lane in range(size)]
        yield from (ended(way(lanes)) for way in (chain_of, _pairs, _halves))


def _blocks(start: Node | Leaf, blocks: Sequence[Sequence[int]], kind: Kind) -> Node | Leaf:
    """A tree that adds all products of a block to the running sum in one step."""
    for block in blocks:
        start = joined_branch(kind, (start, *block))
    return start


def _pairs(parts: Sequence[Node | Leaf]) -> Node | Leaf:
    """A tree that adds neighbours first, then the sums of neighbouring pairs."""
    while len(parts) > 1:
        pairs = [joined_branch("binary", parts[k : k + 2]) for k in range(0, len(parts), 2)]
        parts = pairs
    return parts[0]


def _halves(parts: Sequence[Node | Leaf]) -> Node | Leaf:
    """A tree that adds the second half to the first, place by place, until one sum is left."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [Node("binary", pair) for pair in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]
