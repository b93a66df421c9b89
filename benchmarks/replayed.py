"""Are the trees of NumPy's products right? python -m benchmarks.replayed [FUNCTION...] [--lengths 1,13,100]

Each sum in f32 is revealed by `mmaprobe.order`, then its tree is evaluated step by step on random inputs and held
bit for bit against the function. Steps are FMAs where the tree says that a product is fused, else additions in f32;
where that differs, the steps of some part of the tree are tried in f64, as OpenBLAS's sdot adds (a tree does not say
formats).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import mmaprobe
from mmaprobe.queries.order.reveal import Tree
from mmaprobe.queries.order.tree import Leaf, Node, leaves_of, nodes_of
from mmaprobe.runner.callable import SIDE, CallableDevice

Array = Any
WIDE = ("no step", "all", "the way to the first product", "that without its pairs", "the rest")


def by_rows(one: Callable[[Array, Array, Array, int], Array]) -> Callable[[Array, Array], Array]:
    """A product of which the places on the diagonal alone are computed."""

    def product(a: Array, b: Array) -> Array:
        columns = np.ascontiguousarray(b.T)
        return np.diag(np.array([one(a, b, columns, k) for k in range(len(a))], dtype=a.dtype))

    return product


FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "matmul": lambda a, b: a @ b,
    "dot": by_rows(lambda a, b, columns, k: np.dot(a[k], columns[k])),
    "dot-strided": by_rows(lambda a, b, columns, k: np.dot(a[k], b[:, k])),
    "gemv": by_rows(lambda a, b, columns, k: (a @ columns[k])[k]),
    "gemv-t": by_rows(lambda a, b, columns, k: (a[k] @ b)[k]),
    "einsum": by_rows(lambda a, b, columns, k: np.einsum("i,i->", a[k], columns[k])),
    "sum": by_rows(lambda a, b, columns, k: np.sum(a[k] * columns[k])),
}


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z in f32, rounded once: the sum to odd in f64 first."""
    product, z = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + z
    part = total - product
    lost = (product - (total - part)) + (z - part)
    even = (total.view(np.int64) & 1) == 0
    odd = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
    return np.where((lost != 0) & even, odd, total).astype(np.float32)


def wide_steps(root: Node, wide: str) -> set[int]:
    """The steps that are tried in f64, by identity."""
    if wide in ("no step", "all"):
        return {id(node) for node in nodes_of(root) if wide == "all"}
    if wide == "the rest":
        last = max(leaf for leaf in leaves_of(root) if leaf != "c")
        tails = [child for child in root.children if isinstance(child, Node) and last in leaves_of(child)]
        return {id(root), *(id(node) for child in tails for node in nodes_of(child))}
    found, node = set(), root
    while isinstance(node, Node):
        below = [child for child in node.children if isinstance(child, Node)]
        if below or wide == "the way to the first product":
            found.add(id(node))
        node = below[0] if below else 0
    return found


def replayed(tree: Tree, a: Array, b: Array, wide: str) -> Array:
    """The tree's result for rows of factors."""
    fused, sums = set(tree.ends.fused if tree.ends else ()), {}
    if not isinstance(tree.root, Node):
        return a[:, 0] * b[:, 0]
    chosen = wide_steps(tree.root, wide)

    def value(branch: Node | Leaf) -> Array:
        return sums[id(branch)] if isinstance(branch, Node) else a[:, branch] * b[:, branch]

    for node in nodes_of(tree.root):
        one, other = sorted(node.children, key=lambda child: not isinstance(child, Node) and child in fused)
        if not isinstance(other, Node) and other in fused:
            sums[id(node)] = fma(a[:, other], b[:, other], value(one))
        else:
            kind = np.float64 if id(node) in chosen else np.float32
            sums[id(node)] = value(one).astype(kind) + value(other).astype(kind)
    return sums[id(tree.root)].astype(np.float32)


def check(name: str, length: int) -> str:
    function = FUNCTIONS[name]
    device = CallableDevice(function, name)
    tree = mmaprobe.order(device, "f32,f32,f32", length).tree
    [alike] = device._alike.values()
    rows, columns = np.tile(np.arange(SIDE), (2, 1)) if alike is None else alike.T
    rng = np.random.default_rng(length)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((SIDE, length), (length, SIDE)))
    right = function(a, b)[rows, columns]
    fitting = [wide for wide in WIDE if np.array_equal(replayed(tree, a[rows], b.T[columns], wide), right)]
    return f"right, in f64: {fitting[0]}" if fitting else "WRONG"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--lengths", default=",".join(map(str, [*range(1, 41), 100, 333])))
    options = parser.parse_args()
    for name in options.functions:
        found: dict[str, list[int]] = {}
        for length in map(int, options.lengths.split(",")):
            found.setdefault(check(name, length), []).append(length)
        for outcome, lengths in found.items():
            print(f"{name}: {outcome}: K = {', '.join(map(str, lengths))}", flush=True)


if __name__ == "__main__":
    main()
