"""`order` on random trees with mixed roundings in narrow formats: what is revealed is the tree as it is written."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from mmaprobe.queries.order.reveal import reveal
from mmaprobe.queries.order.tree import Kind, Leaf, Node, in_order, nodes_of
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from tests.oracles.exact_numbers import N, add, aligned, mul, pattern, read, to

FORMATS = (
    "bf16,bf16,bf16,bf16", "bf16,bf16,f32,bf16", "f16,f16,f16,f16", "f16,f16,f32,f16", "e5m2,e5m2,f16,f16",
    "bf16,bf16,f32,f32", "e5m2,e5m2,bf16,bf16", "e4m3,e4m3,f32,f16",
)  # fmt: skip
MODES = (["rtz"], ["odd"], ["rtz", "odd"], ["rtz", "rne", "odd"], ["rup"], ["rdn", "rup", "rtz"], ["rne"],
         ["rna", "rtz"])  # fmt: skip


def grown(chance: random.Random, leaves: Sequence[Leaf]) -> Node | Leaf:
    """A tree of leaves in this order, with two to four branches at each step."""
    if len(leaves) == 1:
        return leaves[0]
    count = min(chance.choice([2, 2, 2, 2, 3, 4]), len(leaves))
    cuts = sorted(chance.sample(range(1, len(leaves)), count - 1))
    kinds: tuple[Kind, ...] = ("fused", "exact")
    kind: Kind = "binary" if count == 2 else chance.choice(kinds)
    parts = [leaves[start:end] for start, end in zip([0, *cuts], [*cuts, len(leaves)], strict=True)]
    return Node(kind, tuple(grown(chance, part) for part in parts))


def made(seed: int) -> tuple[str, int, Node | Leaf, Callable[[Vector], int]]:
    """Formats, products, the tree, and the device: every step has its own format, rounding and places kept."""
    chance = random.Random(seed)
    formats, length = chance.choice(FORMATS), chance.randrange(3, 14)
    leaves: list[Leaf] = ["c", *range(length)]
    if chance.random() < 0.4:
        chance.shuffle(leaves)
    root = grown(chance, leaves)
    names = formats.split(",")
    inner, modes = chance.choice([names[3], "f32"]), chance.choice(MODES)
    does = {
        id(node): (
            chance.choice([inner, inner, names[3]]),
            chance.choice(modes),
            chance.choice([20, 24, 26, 30]),
            chance.choice(["rtz", "rdn", "rne"]),
            chance.random() < 0.3,
        )
        for node in nodes_of(root)
    }
    rounded = chance.choice([False, True])

    def value(branch: Node | Leaf, given: tuple[list[N], list[N], N]) -> N:
        if branch == "c":
            return given[2]
        if not isinstance(branch, Node):
            exact = mul(given[0][int(branch)], given[1][int(branch)])
            return to(inner, exact, modes[0]) if rounded else exact
        terms = [value(child, given) for child in branch.children]
        fmt, mode, places, cut, sticky = does[id(branch)]
        total = aligned(terms, places, cut, sticky) if branch.kind == "fused" else add(terms, mode)
        return to(fmt, total, mode)

    def answer(vector: Vector) -> int:
        operands = vector.operands
        a, b = ([read(name, x) for x in side] for name, side in zip(names[:2], (operands.a, operands.b), strict=True))
        return pattern(names[3], to(names[3], value(root, (a, b, read(names[2], operands.c))), modes[0]))

    return formats, length, root, answer


@pytest.mark.parametrize("seed", [2, 6, 13, 17, 24, 33, 35, 40, 53])
def test_random_trees(seed: int) -> None:
    formats, length, root, answer = made(seed)
    tree = reveal(lambda vectors: list(map(answer, vectors)), parse_signature(formats, length))
    assert tree.root == in_order(root)
