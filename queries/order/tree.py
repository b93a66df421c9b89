"""Summation trees: the terms of d = c + sum of a_k * b_k that a unit adds in each step, and the leaves that masks hide.

A mask (FPRev) is a huge number at one leaf and its negative at another. It hides the leaves that are added to either
number before the two cancel; `masked_leaves` counts these leaves for every pair. A chain is as deep as it is long, so
no function here recurses into a tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.base.wording import ranges_text

Leaf = int | Literal["c"]  # the number of a product, or the addend
Kind = Literal["binary", "fused", "exact"]
Pair = tuple[Leaf, Leaf]
Value = TypeVar("Value")

KINDS = {
    "binary": "added",
    "fused": "added in one step, aligned to the largest term",
    "exact": "added in one step without loss",
}


@dataclass(frozen=True)
class Node:
    """One step that adds its children: two (binary), or several at once, truncated at the largest (fused) or not
    (exact). `size`: the number of leaves below the step; `has_c`: whether c is among these."""

    kind: Kind
    children: tuple[Node | Leaf, ...]
    size: int = field(init=False, repr=False, compare=False)
    has_c: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", sum(map(size_of, self.children)))
        object.__setattr__(self, "has_c", any(map(has_c, self.children)))


Branch = Node | Leaf


def leaf_order(leaf: Leaf) -> int:
    """A sort key of leaves: the addend first, then products by number."""
    return -1 if leaf == "c" else leaf


def sorted_leaves(leaves: Iterable[Leaf]) -> list[Leaf]:
    return sorted(leaves, key=leaf_order)


def pair_of(one: Leaf, other: Leaf) -> Pair:
    return (one, other) if leaf_order(one) < leaf_order(other) else (other, one)


def size_of(branch: Node | Leaf) -> int:
    """The number of leaves under a branch."""
    return branch.size if isinstance(branch, Node) else 1


def has_c(branch: Node | Leaf) -> bool:
    """Whether the addend is under a branch."""
    return branch.has_c if isinstance(branch, Node) else branch == "c"


def leaves_of(branch: Node | Leaf) -> tuple[Leaf, ...]:
    """The leaves under a branch, from left to right."""
    leaves: list[Leaf] = []
    waiting = [branch]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Node):
            waiting.extend(reversed(current.children))
        else:
            leaves.append(current)
    return tuple(leaves)


def joined_branch(kind: Kind, children: Iterable[Node | Leaf]) -> Node | Leaf:
    """A step of some children. Two children make a binary step, and a single child is returned itself."""
    given = tuple(children)
    if len(given) == 1:
        return given[0]
    return Node("binary" if len(given) == 2 else kind, given)


def chain_of(parts: Sequence[Node | Leaf]) -> Node | Leaf:
    """The chain of terms, added one after another."""
    return reduce(lambda total, part: Node("binary", (total, part)), parts)


def masked_leaves(branch: Node | Leaf) -> NDArray[np.int16]:
    """The number of leaves, both included, that a mask on each pair of leaves takes out of the sum: a symmetric table
    (leaves x leaves, in `leaf_order`) with zeros on its diagonal.

    A mask hides all leaves that are added to one of its numbers below the step where the two cancel. In that step a
    fused sum is truncated at the mask, so that all its leaves are hidden; an exact sum keeps its other children.
    """
    leaves = leaves_of(branch)
    table = np.zeros((len(leaves), len(leaves)), dtype=np.int16)
    waiting = [(branch, 0)] if isinstance(branch, Node) else []
    while waiting:  # a step comes before the steps below it, which overwrite its numbers
        node, start = waiting.pop()
        parts = list(map(size_of, node.children))
        whole = slice(start, start + node.size)
        if node.kind == "exact":
            own = np.repeat(parts, parts)
            table[whole, whole] = own[:, None] + own[None, :]
        elif len(parts) == 2:
            halves = slice(start, start + parts[0]), slice(start + parts[0], start + node.size)
            table[halves] = table[halves[::-1]] = node.size
        else:
            table[whole, whole] = node.size
        for child, size in zip(node.children, parts, strict=True):
            if isinstance(child, Node):
                waiting.append((child, start))
            start += size
    np.fill_diagonal(table, 0)
    places = np.argsort([leaf_order(leaf) for leaf in leaves])
    return table[np.ix_(places, places)]


def hidden_leaves(branch: Node | Leaf, pairs: Sequence[Pair]) -> Iterator[frozenset[Leaf]]:
    """For each pair of leaves, the set of leaves, both included, that a mask on the pair takes out of the sum."""
    above_leaf: dict[Leaf, Node] = {}
    above: dict[int, Node] = {}  # the parent of each step, by identity
    for node in nodes_of(branch):
        for child in node.children:
            if isinstance(child, Node):
                above[id(child)] = node
            else:
                above_leaf[child] = node
    under: dict[int, frozenset[Leaf]] = {}

    def all_under(part: Node | Leaf) -> frozenset[Leaf]:
        if not isinstance(part, Node):
            return frozenset([part])
        if id(part) not in under:
            under[id(part)] = frozenset(leaves_of(part))
        return under[id(part)]

    def climb(leaf: Leaf) -> Iterator[tuple[Node, Node | Leaf]]:
        """The steps above a leaf, each with its child on the way."""
        below: Node | Leaf = leaf
        node = above_leaf.get(leaf)
        while node is not None:
            yield node, below
            below, node = node, above.get(id(node))

    for one, other in pairs:
        first = {id(node): below for node, below in climb(one)}
        node, below = next((node, below) for node, below in climb(other) if id(node) in first)
        yield all_under(node) if node.kind != "exact" else all_under(below) | all_under(first[id(node)])


def folded(branch: Node | Leaf, form: Callable[[Node, list[Value]], Value], leaf: Callable[[Leaf], Value]) -> Value:
    """The value of a branch: `leaf` gives the value of a leaf, and `form` the value of a step from the values of its
    children."""
    values: dict[int, Value] = {}

    def of(part: Node | Leaf) -> Value:
        return values[id(part)] if isinstance(part, Node) else leaf(part)

    for node in nodes_of(branch):
        values[id(node)] = form(node, [of(child) for child in node.children])
    return of(branch)


def pruned(branch: Node | Leaf, kept: frozenset[Leaf]) -> Node | Leaf | None:
    """The tree with only the leaves `kept`; None if the tree has none of these."""

    def form(node: Node, given: list[Node | Leaf | None]) -> Node | Leaf | None:
        children = [child for child in given if child is not None]
        return joined_branch(node.kind, children) if children else None

    return folded(branch, form, lambda leaf: leaf if leaf in kept else None)


def one_after_another(root: Node | Leaf) -> list[Node | Leaf]:
    """The other trees that answers for exact steps may stand for: chains in place of all exact steps, or of the last
    exact step, with the terms in their present order and c before or after them. The bits that a chain loses may lie
    below all bits that the formats show."""
    steps = [node for node in nodes_of(root) if node.kind == "exact" and len(node.children) > 2]
    trees: dict[Node | Leaf, None] = {}
    for chosen, late in itertools.product((steps[-1:], steps), (False, True)):
        trees[_chained(root, {id(node) for node in chosen}, late)] = None
    return [tree for tree in trees if tree != root]


def _chained(root: Node | Leaf, chosen: set[int], late: bool) -> Node | Leaf:
    def form(node: Node, children: list[Node | Leaf]) -> Node | Leaf:
        if id(node) not in chosen:
            return Node(node.kind, tuple(children))
        return chain_of(sorted(children, key=lambda child: (child == "c") == late))

    return folded(root, form, lambda leaf: leaf)


def with_products(root: Node | Leaf, width: int) -> list[Node | Leaf]:
    """The trees of products for a tree whose leaves are blocks of `width` products, named by their first product. In
    the first tree every block is an exact sum; if a step aligns blocks, there is a second tree, in which the products
    of these blocks are terms of that step."""
    apart = {leaf: joined_branch("exact", range(leaf, leaf + width)) for leaf in leaves_of(root) if leaf != "c"}
    trees = [_of_blocks(root, {leaf: [block] for leaf, block in apart.items()})]
    if any(node.kind == "fused" and {*node.children} & {*apart} for node in nodes_of(root)):
        trees.append(_of_blocks(root, {leaf: range(leaf, leaf + width) for leaf in apart}))
    return trees


def _of_blocks(root: Node | Leaf, blocks: Mapping[Leaf, Sequence[Node | Leaf]]) -> Node | Leaf:
    def form(node: Node, parts: list[Sequence[Node | Leaf]]) -> Sequence[Node | Leaf]:
        children = tuple(itertools.chain.from_iterable(parts))
        return [Node("exact" if node.kind == "binary" and len(children) > 2 else node.kind, children)]

    return folded(root, form, lambda leaf: blocks.get(leaf, [leaf]))[0]


def in_order(branch: Node | Leaf) -> Node | Leaf:
    """The same tree with the children of each step ordered by their first leaves."""

    def form(node: Node, given: list[tuple[int, Node | Leaf]]) -> tuple[int, Node | Leaf]:
        pairs = sorted(given, key=lambda pair: pair[0])
        return pairs[0][0], Node(node.kind, tuple(child for _, child in pairs))

    return folded(branch, form, lambda leaf: (leaf_order(leaf), leaf))[1]


def nodes_of(branch: Node | Leaf) -> list[Node]:
    """Every step of a tree, after the steps below it."""
    nodes: list[Node] = []
    waiting = [branch]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Node):
            nodes.append(current)
            waiting.extend(current.children)
    return nodes[::-1]


def binary_trees(leaves: Sequence[Leaf]) -> Iterator[Node | Leaf]:
    """Every tree that adds some leaves two at a time."""
    if len(leaves) == 1:
        yield leaves[0]
    first, *rest = leaves
    for count in range(len(rest)):  # the number of leaves on the side of the first leaf, besides that leaf
        for chosen in itertools.combinations(rest, count):
            others = [leaf for leaf in rest if leaf not in chosen]
            for left in binary_trees([first, *chosen]):
                yield from (Node("binary", (left, right)) for right in binary_trees(others))


def not_added_once(left_out: Sequence[int], twice: Sequence[int] = (), instead: str = "") -> list[str]:
    """The products that are not added once, in words: products that are not in the sum, or have other factors
    (`instead`), and products that are added twice."""
    gone = f"taken with {instead}" if instead else "not in the sum"
    return [f"{_these(products)} {how}" for products, how in ((left_out, gone), (twice, "added twice")) if products]


def _these(products: Sequence[int]) -> str:
    several = len(products) > 1
    return f"{'products' if several else 'product'} k = {compact(products)} {'are' if several else 'is'}"


def stride_of(numbers: Iterable[int]) -> int | None:
    """The distance of each number to the next one, if it is always the same."""
    distances = {later - earlier for earlier, later in itertools.pairwise(numbers)}
    return distances.pop() if len(distances) == 1 else None


def compact(numbers: Iterable[int]) -> str:
    """Numbers as text in ascending ranges: 0-7, or 0,1,4,5; four or more numbers at equal distances as 0,2..14."""
    given = sorted(numbers)
    if len(given) > 3 and stride_of(given) not in (None, 1):
        return f"{given[0]},{given[1]}..{given[-1]}"
    return ranges_text(given, ",")


def is_pairwise(branch: Node | Leaf) -> bool:
    """Whether products are added in neighbouring pairs, their sums in neighbouring pairs too, and so on."""
    if not isinstance(branch, Node):
        return False
    halves = [leaves_of(child) for child in branch.children]
    if len(halves) != 2 or len(halves[0]) != len(halves[1]):
        return False
    low, high = (
        sorted(leaf_order(leaf) for leaf in half) for half in sorted(halves, key=lambda h: min(map(leaf_order, h)))
    )
    if low[-1] > high[0]:
        return False
    return len(low) == 1 or all(is_pairwise(child) for child in branch.children)
