"""The summation trees that an accumulator can show to masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queries.summation_tree import Kind, Leaf, Node, joined
from smtmodel.accumulator import Accumulator

#: what a tree depends on, of all that an accumulator is
STRUCTURE = ("length", "operation", "block", "block_order", "grouping", "group", "partials", "addend", "fraction_bits")


def structure_of(accumulator: Accumulator) -> tuple[object, ...]:
    """Accumulators of one structure have the same trees."""
    return (*(getattr(accumulator, name) for name in STRUCTURE), accumulator.exact_sum)


def trees_of(accumulator: Accumulator, bits: int, leaves: int) -> Iterator[Node | Leaf]:
    """The trees whose answers an accumulator may give when mask and unit are `bits` places apart.

    Two where its fraction bits are so many that a mask may hide the units or not.
    """
    for kind in _kinds(accumulator, bits, leaves):
        yield _tree(accumulator, kind)


def _kinds(accumulator: Accumulator, bits: int, leaves: int) -> list[Kind]:
    fraction = accumulator.fraction_bits
    if accumulator.exact_sum or fraction == "exact" or fraction >= bits:
        return ["exact"]
    surely = fraction + leaves.bit_length() + 2 < bits
    # a group's fixed point has one exponent whatever it holds, so what its mask hides depends on the operands
    return ["fused"] if surely and accumulator.grouping != "scale_blocks" else ["fused", "exact"]


def _tree(accumulator: Accumulator, kind: Kind) -> Node | Leaf:
    running: Node | Leaf | None = None if accumulator.addend == "after" else "c"
    for block in accumulator.blocks:
        running = _step(accumulator, kind, block, running)
    assert running is not None
    return Node("binary", (running, "c")) if accumulator.addend == "after" else running


def _step(accumulator: Accumulator, kind: Kind, block: Sequence[int], running: Node | Leaf | None) -> Node | Leaf:
    """One block with the running sum. Even and odd products and a late addend are hidden like the rest of the block:
    a sum that cancels keeps its exponent."""
    before = [] if running is None else [running]
    if accumulator.operation == "add_mul":
        return joined("binary", [*before, _pairwise(list(block))])
    if accumulator.partials == "normalised":
        total: Node | Leaf = block[0]
        for term in [*block[1:], *before]:
            total = Node("binary", (total, term))
        return total
    if accumulator.grouping == "scale_blocks" and kind == "fused":
        size = accumulator.group
        groups = [joined("exact", block[k : k + size]) for k in range(0, len(block), size)]
        return joined(kind, [*before, *groups])
    return joined(kind, [*before, *block])


def _pairwise(layer: Sequence[Node | Leaf]) -> Node | Leaf:
    while len(layer) > 1:
        layer = [Node("binary", pair) for pair in zip(layer[::2], layer[1::2], strict=True)]
    return layer[0]
