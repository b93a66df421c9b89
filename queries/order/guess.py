"""Likely orders, for units whose answers do not reveal their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mmaprobe.queries.order.tree import Kind, Leaf, Node, binary_trees, chain_of, joined

FEW = 5  # up to so many terms, every order is tried
SIZES = (2, 4, 8, 16, 32)  # products of a block, and numbers of lanes


def orders(length: int, addend: bool) -> list[Node | Leaf]:
    """Every order of few terms; of more terms the orders of published units and libraries: all at once, one after
    another, in pairs, by blocks, in lanes; with c first, in the first block, or last."""
    leaves: list[Leaf] = ["c", *range(length)] if addend else [*range(length)]
    found = list(binary_trees(leaves)) if len(leaves) <= FEW else []
    kinds: tuple[Kind, ...] = ("fused", "exact")
    if len(leaves) > 2:
        found += [joined(kind, leaves) for kind in kinds]
    if len(leaves) > FEW:
        found += _of_many(length, addend)
    elif length > 2 and addend:
        found += [Node("binary", (joined(kind, range(length)), "c")) for kind in kinds]
    return found


def _of_many(length: int, addend: bool) -> Iterator[Node | Leaf]:
    products: list[Node | Leaf] = [*range(length)]
    if addend:
        yield chain_of(["c", *products])
    for total in _sums(products):
        yield Node("binary", (total, "c")) if addend else total
    for size in (size for size in SIZES if size < length and length % size == 0):
        blocks = [range(start, start + size) for start in range(0, length, size)]
        kinds: tuple[Kind, ...] = ("fused", "exact") if size > 2 else ("fused",)
        for kind in kinds:
            if addend:
                yield _blocks("c", blocks, kind)
            total = _blocks(joined(kind, blocks[0]), blocks[1:], kind)
            yield Node("binary", (total, "c")) if addend else total
            parts: list[Node | Leaf] = [joined(kind, block) for block in blocks]
            if addend:
                yield chain_of(["c", *parts])
            for way in (chain_of, _pairs):
                yield Node("binary", (way(parts), "c")) if addend else way(parts)
        lanes: list[Node | Leaf] = [chain_of([*range(lane, length, size)]) for lane in range(size)]
        for way in (chain_of, _pairs, _halves):
            total = way(lanes)
            yield Node("binary", (total, "c")) if addend else total


def _sums(products: Sequence[Node | Leaf]) -> Iterator[Node | Leaf]:
    kinds: tuple[Kind, ...] = ("fused", "exact")
    yield from (joined(kind, products) for kind in kinds)
    yield chain_of(products)
    yield _pairs(products)


def _blocks(start: Node | Leaf, blocks: Sequence[Sequence[int]], kind: Kind) -> Node | Leaf:
    """A tree that adds all products of a block to the running sum in one step."""
    for block in blocks:
        start = joined(kind, (start, *block))
    return start


def _pairs(parts: Sequence[Node | Leaf]) -> Node | Leaf:
    """A tree that adds neighbours first, then the sums of neighbouring pairs."""
    while len(parts) > 1:
        pairs = [joined("binary", parts[k : k + 2]) for k in range(0, len(parts), 2)]
        parts = pairs
    return parts[0]


def _halves(parts: Sequence[Node | Leaf]) -> Node | Leaf:
    """A tree that adds the second half to the first, place by place, until one sum is left."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [Node("binary", pair) for pair in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]
