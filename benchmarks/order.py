"""Questions and time to reveal the order of long sums: python -m benchmarks.order [K...]

Sums in f32 of exact products, in orders that libraries and units use; simulated with NumPy, a row for each question.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.reveal import reveal
from mmaprobe.queries.order.tree import Leaf, Node, in_order, joined_branch
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import Vector

Terms = NDArray[np.float32]  # rows of products
LENGTHS = (64, 256, 1024, 4096)


def chain(terms: Terms, start: Terms | None = None) -> Terms:
    total = terms[:, 0] if start is None else start
    for k in range(0 if start is not None else 1, terms.shape[1]):
        total = total + terms[:, k]
    return total


def pairs(terms: Terms) -> Terms:
    while terms.shape[1] > 1:
        terms = terms[:, ::2] + terms[:, 1::2]
    return terms[:, 0]


def lanes(terms: Terms) -> Terms:
    """Eight chains, their sums in pairs: a vector unit's."""
    return pairs(np.stack([chain(terms[:, lane::8]) for lane in range(8)], axis=1))


def fused(terms: Terms) -> Terms:
    """Blocks of 16 with the sum so far, each cut 25 places below its largest term."""
    total = np.zeros(len(terms))
    for start in range(0, terms.shape[1], 16):
        block = np.column_stack([total, terms[:, start : start + 16]]).astype(np.float64)
        unit = np.exp2(np.frexp(np.abs(block).max(axis=1))[1] - 26.0)
        total = (np.trunc(block / unit[:, None]).sum(axis=1) * unit).astype(np.float32)
    return np.asarray(total, dtype=np.float32)


def shuffled(length: int) -> list[int]:
    return [int(k) for k in np.random.default_rng(0).permutation(length)]


def chain_tree(branches: Sequence[Node | Leaf]) -> Node | Leaf:
    total = branches[0]
    for branch in branches[1:]:
        total = Node("binary", (total, branch))
    return total


def pair_tree(branches: Sequence[Node | Leaf]) -> Node | Leaf:
    while len(branches) > 1:
        branches = [Node("binary", pair) for pair in zip(branches[::2], branches[1::2], strict=True)]
    return branches[0]


def fused_tree(length: int) -> Node | Leaf:
    total: Node | Leaf | None = None
    for start in range(0, length, 16):
        total = joined_branch("fused", [*([] if total is None else [total]), *range(start, start + 16)])
    assert total is not None
    return total


#: each order as a sum of rows, and as the tree that it is
ORDERS: dict[str, tuple[Callable[[Terms], Terms], Callable[[int], Node | Leaf]]] = {
    "one after another": (chain, lambda n: chain_tree(range(n))),
    "the last one first": (lambda t: chain(t[:, ::-1]), lambda n: chain_tree(range(n)[::-1])),
    "in a random order": (lambda t: chain(t[:, shuffled(t.shape[1])]), lambda n: chain_tree(shuffled(n))),
    "in pairs": (pairs, lambda n: pair_tree(range(n))),
    "eight lanes, then in pairs": (
        lanes, lambda n: pair_tree([chain_tree(range(lane, n, 8)) for lane in range(8)])),
    "blocks of 16, fused": (fused, fused_tree),
    "one fused sum": (lambda t: one_sum(t), lambda n: joined_branch("fused", range(n))),
}  # fmt: skip


def one_sum(terms: Terms) -> Terms:
    unit = np.exp2(np.frexp(np.abs(terms).max(axis=1))[1] - 26.0)
    return (np.trunc(terms / unit[:, None].astype(np.float32)).astype(np.float64).sum(axis=1) * unit).astype(np.float32)


def measure(name: str, length: int) -> tuple[int, float]:
    """Questions and seconds; the tree is compared with the one that it must be."""
    total, tree = ORDERS[name]

    def ask(vectors: Sequence[Vector]) -> list[int]:
        sides: list[Any] = [
            np.array([side(vector) for vector in vectors], dtype=np.uint32).view(np.float32)
            for side in (lambda v: v.operands.a, lambda v: v.operands.b)
        ]
        return [int(d) for d in total(sides[0] * sides[1]).astype(np.float32).view(np.uint32)]

    asked, start = parse_signature("f32,f32,f32", length), time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):
        found = reveal(ask, asked, addend=False)
    seconds = time.perf_counter() - start
    assert shape(found.root) == shape(in_order(tree(length))), name
    return len(found.questions), seconds


def shape(root: Node | Leaf) -> list[object]:
    """Steps as sets, comparable however deep the tree is."""
    from mmaprobe.queries.order.tree import nodes_of

    numbers: dict[int, int] = {}
    found: list[object] = []
    for node in nodes_of(root):
        terms = {("step", numbers[id(child)]) if isinstance(child, Node) else child for child in node.children}
        numbers[id(node)] = len(found)
        found.append((node.kind, frozenset(terms)))
    return found


def main() -> None:
    lengths = [int(text) for text in sys.argv[1:]] or LENGTHS
    print("| order | " + " | ".join(f"K = {n}: questions, s" for n in lengths) + " | questions / (K log K) |")
    print("|---|" + "---|" * (len(lengths) + 1))
    for name in ORDERS:
        cells = []
        for length in lengths:
            count, seconds = measure(name, length)
            cells.append(f"{count:,}, {seconds:.1f}")
        print(f"| {name} | {' | '.join(cells)} | {count / (length * math.log2(length)):.2f} |", flush=True)


if __name__ == "__main__":
    main()
