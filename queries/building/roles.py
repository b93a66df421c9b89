"""Roles: the steps of a summation tree with the same arithmetic, and small sets of leaves that reveal this
arithmetic."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from mmaprobe.queries.building.weights import ADDED, Weights, shift_of
from mmaprobe.queries.order.text import Outliner
from mmaprobe.queries.order.tree import Leaf, Node, compact, folded, leaves_of, nodes_of

Roles = dict[int, int]  # the role of each step, by its identity
Turns = dict[Leaf, int]  # for each leaf, the number of the step in which it joins the root's chain
LISTED = 3  # the most operands of a step that are written out as sums
OPERANDS = 5  # the most branches of a step that get a nonzero leaf


@dataclass(frozen=True)
class RoledTree:
    """A tree and the roles of its steps, numbered from the root, whose role is 0, towards the leaves. `count`: the
    number of roles. `turns`: for each leaf, the number of the step in which it joins the root's chain. `weights`: the
    weights of the leaves; `scaled`: the steps, by their identity, in which all leaves count with one power of two that
    is not 1."""

    root: Node | Leaf
    roles: Roles
    count: int
    turns: Turns
    weights: Weights = field(default_factory=dict)
    scaled: frozenset[int] = frozenset()

    def steps(self, role: int) -> list[Node]:
        """The steps of a role."""
        return [node for node in nodes_of(self.root) if self.roles[id(node)] == role]

    def adds_below(self, role: int, kept: frozenset[Leaf]) -> bool:
        """Whether two or more of these leaves are added in a step of a role further from the root than `role`."""
        few = self.of_few(kept)
        assert few is not None
        return any(len(node.children) > 1 and few.roles[id(node)] > role for node in nodes_of(few.root))

    def of_few(self, kept: frozenset[Leaf]) -> RoledTree | None:
        """The tree restricted to some leaves; None if the tree has none of these leaves. A step left with one operand
        still rounds this operand. If that operand is a step of the same role, the two steps become one."""
        roles: Roles = {}
        scaled: set[int] = set()

        def form(node: Node, given: list[Node | Leaf | None]) -> Node | Leaf | None:
            children = [child for child in given if child is not None]
            role, only = self.roles[id(node)], children[0] if len(children) == 1 else None
            alike = isinstance(only, Node) and (id(only) in scaled) == (id(node) in self.scaled)
            if not children or (isinstance(only, Node) and roles[id(only)] == role and alike):
                return only
            step = Node(node.kind, tuple(children))
            roles[id(step)] = role
            scaled.update({id(step)} if id(node) in self.scaled else ())
            return step

        root = folded(self.root, form, lambda leaf: leaf if leaf in kept else None)
        if root is None:
            return None
        return RoledTree(root, roles, self.count, self.turns, self.weights, frozenset(scaled))


def adders_of(part: RoledTree) -> dict[Leaf, int]:
    """For each leaf, the role of the step that adds it."""
    steps = ((part.roles[id(node)], node) for node in nodes_of(part.root))
    return {child: role for role, node in steps for child in node.children if not isinstance(child, Node)}


def _roled_tree(root: Node | Leaf, roles: Roles, weights: Weights | None) -> RoledTree:
    weights, count = weights or {}, 1 + max(roles.values(), default=0)
    scaled = {id(node) for node in nodes_of(root) if weights and shift_of(leaves_of(node), weights)}
    return RoledTree(root, roles, count, turns_of(root), weights, frozenset(scaled))


def roles_by_shape(root: Node | Leaf, weights: Weights | None = None) -> RoledTree:
    """Steps at corresponding places of a repeated pattern have one role: steps of a chain whose added operands have the
    same shapes and weights, and corresponding steps of branches of the same shape."""
    outliner, roles, known = Outliner(root), Roles(), dict[Hashable, int]()
    waiting: list[tuple[Node | Leaf, Hashable]] = [(root, ())]
    while waiting:
        branch, key = waiting.pop(0)
        if not isinstance(branch, Node):
            continue
        start, steps = outliner.steps(branch)
        for node, added in reversed(steps or [(branch, branch.children)]):
            weighs = [weights.get(leaf, ADDED) for branch in added for leaf in leaves_of(branch)] if weights else []
            own = key, node.kind, tuple(sorted(map(outliner.shape, added))), tuple(weighs)
            role = roles[id(node)] = known.setdefault(own, len(known))
            waiting += [(child, (role, outliner.shape(child))) for child in added]
        if start is not branch:
            waiting.append((start, (key, "start")))
    return _roled_tree(root, roles, weights)


def roles_apart(root: Node | Leaf, weights: Weights | None = None) -> RoledTree:
    """Every step has a role of its own."""
    return _roled_tree(root, {id(node): role for role, node in enumerate(reversed(nodes_of(root)))}, weights)


def one_role(root: Node | Leaf, weights: Weights | None = None) -> RoledTree:
    """All steps have one role."""
    return _roled_tree(root, {id(node): 0 for node in nodes_of(root)}, weights)


def turns_of(root: Node | Leaf) -> Turns:
    """For each leaf, the number of the step in which it joins the root's chain, which follows the largest operand of
    each step (Outliner.steps). Leaves of the chain's start have 0; the steps count from 1 if the start is a single
    product, else from 0."""
    if not isinstance(root, Node):
        return {root: 0}
    start, steps = Outliner(root).steps(root)
    first = int(isinstance(start, int))
    turns = dict.fromkeys(leaves_of(start), 0)
    for number, (_, added) in enumerate(steps, start=first):
        turns.update(dict.fromkeys((leaf for branch in added for leaf in leaves_of(branch)), number))
    return turns


def placements(part: RoledTree, role: int, chance: random.Random, count: int) -> list[frozenset[Leaf]]:
    """Up to `count` sets of leaves that reveal the arithmetic of a role. Each has one leaf below every branch of some
    step of the role (of OPERANDS branches at most), so that the steps below that step add nothing. Some sets also have
    a leaf of a neighbouring step, as results may be converted between two steps, or of any other step, as results may
    be converted now and then. Most sets have one or two leaves that are added to the result later. No such further leaf
    meets another leaf in a step of a role further from the root, as that role is decided later."""
    steps = part.steps(role)
    parents = {id(child): node for node in nodes_of(part.root) for child in node.children if isinstance(child, Node)}
    everything = leaves_of(part.root)
    sets: dict[frozenset[Leaf], None] = {}
    for number in range(4 * count):
        at = 0 if number == 0 else len(steps) - 1 if number == 1 else chance.randrange(len(steps))
        node, children = steps[at], list(steps[at].children)
        if len(children) > OPERANDS:
            first = sorted(children, key=lambda child: not (isinstance(child, Node) or child == "c"))
            children = first[:2] + chance.sample(first[2:], OPERANDS - 2)
        chosen = [chance.choice(leaves_of(child)) if isinstance(child, Node) else child for child in children]
        near: list[Sequence[Leaf]] = []
        if number % 2 and at:
            near.append([child for child in steps[at - 1].children if not isinstance(child, Node)][:1])
        if number % 3 == 2:
            near.append([child for child in chance.choice(steps).children if isinstance(child, int)][:1])
        top = node
        while number % 2 == 0 and id(top) in parents and part.roles[id(parents[id(top)])] == role:
            top = parents[id(top)]  # the result of the last step of this role may be converted
        inside = frozenset(leaves_of(node if top is part.root else top))
        outside = [leaf for leaf in everything if leaf not in inside]
        if outside:
            near.append(chance.sample(outside, min(len(outside), 1 + number % 2)))
        for more in near:
            if not part.adds_below(role, frozenset([*chosen, *more])):
                chosen += more
        sets[frozenset(chosen)] = None
        if len(sets) == count:
            break
    return list(sets)


def words_of(node: Node) -> str:
    """The operands of a step: c, sums of the steps below in brackets, products by their numbers."""
    sums = [child for child in node.children if isinstance(child, Node)]
    words = ["c"] if "c" in node.children else []
    words += [f"({_products(child)})" for child in sums[:LISTED]] + ["..."] * (len(sums) > LISTED)
    products = [child for child in node.children if isinstance(child, int)]
    return " + ".join([*words, *([compact(products)] if products else [])])


def _products(branch: Node) -> str:
    leaves = leaves_of(branch)
    return ("c," if "c" in leaves else "") + compact(leaf for leaf in leaves if leaf != "c")


def kinds_of(part: RoledTree) -> dict[int, str]:
    """The kind of sum of each role's steps."""
    return {part.roles[id(node)]: node.kind for node in nodes_of(part.root)}
