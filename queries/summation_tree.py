"""Summation trees: which terms of d = c + sum of a_k * b_k a unit adds in one step, and what its masks cost.

A mask is a huge number at one leaf and its negative at another. `losses` says how many leaves it hides for every pair
of leaves: all that meets it before it cancels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Leaf = int | Literal["c"]  # the number of a product, or the addend
Kind = Literal["binary", "fused", "exact"]
Pair = tuple[Leaf, Leaf]

KINDS = {
    "binary": "added",
    "fused": "added in one step, cut at the largest term",
    "exact": "added in one step without loss",
}


@dataclass(frozen=True)
class Node:
    """One step that adds its children: two of them, or more at once, cut at the largest (fused) or not (exact)."""

    kind: Kind
    children: tuple[Node | Leaf, ...]


def order(leaf: Leaf) -> int:
    """The place of a leaf in lists: the addend first."""
    return -1 if leaf == "c" else leaf


def pair_of(one: Leaf, other: Leaf) -> Pair:
    return (one, other) if order(one) < order(other) else (other, one)


def leaves_of(branch: Node | Leaf) -> tuple[Leaf, ...]:
    """The leaves under a branch, from left to right."""
    if not isinstance(branch, Node):
        return (branch,)
    return tuple(leaf for child in branch.children for leaf in leaves_of(child))


def joined(kind: Kind, children: Iterable[Node | Leaf]) -> Node | Leaf:
    """A node of these children: of two, whatever the kind, a binary one; a single child stands for itself."""
    given = tuple(children)
    if len(given) == 1:
        return given[0]
    return Node("binary" if len(given) == 2 else kind, given)


def losses(branch: Node | Leaf) -> dict[Pair, int]:
    """For every pair of leaves how many leaves, both included, a mask on them takes out of the sum.

    Below the step where it cancels it hides everything that it meets; in that step a fused sum is cut at the mask,
    an exact one keeps its other children.
    """
    found: dict[Pair, int] = {}
    _collect(branch, found)
    return found


def _collect(branch: Node | Leaf, found: dict[Pair, int]) -> tuple[Leaf, ...]:
    if not isinstance(branch, Node):
        return (branch,)
    parts = [_collect(child, found) for child in branch.children]
    total = sum(len(part) for part in parts)
    for position, part in enumerate(parts):
        for other in parts[position + 1 :]:
            cost = total if branch.kind == "fused" else len(part) + len(other)
            for x in part:
                for y in other:
                    found[pair_of(x, y)] = cost
    return tuple(leaf for part in parts for leaf in part)


def pruned(branch: Node | Leaf, kept: frozenset[Leaf]) -> Node | Leaf | None:
    """The tree of some of its leaves."""
    if not isinstance(branch, Node):
        return branch if branch in kept else None
    children = [small for child in branch.children if (small := pruned(child, kept)) is not None]
    return joined(branch.kind, children) if children else None


def nodes_of(branch: Node | Leaf) -> Iterator[Node]:
    """Every step, in the order in which they are done."""
    if isinstance(branch, Node):
        for child in branch.children:
            yield from nodes_of(child)
        yield branch


def compact(numbers: Iterable[int]) -> str:
    """Numbers as ranges: 0-7, or 0,1,4,5; equal steps of at least four numbers as 0,2..14."""
    given = sorted(numbers)
    steps = {y - x for x, y in itertools.pairwise(given)}
    if len(given) > 3 and len(steps) == 1 and steps != {1}:
        return f"{given[0]},{given[1]}..{given[-1]}"
    runs: list[list[int]] = []
    for k in given:
        if runs and runs[-1][1] == k - 1:
            runs[-1][1] = k
        else:
            runs.append([k, k])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def is_chain(branch: Node | Leaf) -> bool:
    """Whether numbered products are added one after another: ((0 + 1) + 2) + 3."""
    while isinstance(branch, Node) and branch.kind == "binary":
        inner = [child for child in branch.children if isinstance(child, Node)]
        if not inner:
            return True
        if len(inner) > 1:
            return False
        branch = inner[0]
    return False


def is_pairwise(branch: Node | Leaf) -> bool:
    """Whether products are added in neighbouring pairs, their sums too, and so on."""
    if not isinstance(branch, Node):
        return False
    halves = [leaves_of(child) for child in branch.children]
    if len(halves) != 2 or len(halves[0]) != len(halves[1]):
        return False
    low, high = (sorted(order(leaf) for leaf in half) for half in sorted(halves, key=lambda h: min(map(order, h))))
    if low[-1] > high[0]:
        return False
    return len(low) == 1 or all(is_pairwise(child) for child in branch.children)
