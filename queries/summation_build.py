"""A tree from what masks hide: levels above one leaf, then the branches that join at each level."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise

from queries.steady import AGAIN_IN_DOUBT
from queries.summation_probe import Probe, sorted_leaves
from queries.summation_tree import Leaf, Node, in_order, leaves_of, losses, nodes_of, order


class MisfitError(Exception):
    """The answers fit no tree of the kind tried."""


_Reading = tuple[Node | Leaf, tuple[Node | Leaf, ...]]  # what a level joins, and what joined in the same step


def _readings(current: Node | Leaf) -> Iterator[_Reading]:
    yield current, ()
    if isinstance(current, Node) and current.kind != "fused":
        yield current.children[0], current.children[1:]


class Builder:
    """Builds the tree of a probe's device. `thorough` asks every pair; else the pairs that decide, and a sample."""

    def __init__(self, probe: Probe, thorough: bool = False) -> None:
        self.probe, self.thorough = probe, thorough

    def tree(self) -> Node | Leaf:
        """The tree, validated. Raises UnrevealedError."""
        leaves = self.probe.leaves
        if self.thorough:
            self.probe.ask_pairs(combinations(leaves, 2))
        try:
            root = in_order(self.build(leaves))
            self.probe.ask_pairs(self._sample())
            self._check_all(root)
        except MisfitError as error:
            self.probe.stand_by(AGAIN_IN_DOUBT)
            if self.thorough:
                raise self.probe.fail(f"the answers fit no tree: {error}") from None
            self.thorough = True
            return self.tree()
        self._confirm_span(root)
        return root

    def _sample(self) -> list[tuple[Leaf, Leaf]]:
        leaves = self.probe.leaves
        pairs = list(combinations(leaves, 2))
        return random.Random(0).sample(pairs, min(len(pairs), len(leaves)))

    def _confirm_span(self, root: Node | Leaf) -> None:
        """Larger units must be hidden alike: otherwise the mask hides them in part, and counts mean nothing."""
        chosen = {lost: pair for pair, lost in self.probe.asked.items()}
        pairs = list(chosen.values())[:6]
        for raised in (1, 2):
            for pair, lost in zip(pairs, self.probe.measure(pairs, raised), strict=True):
                if lost != self.probe.lost(*pair):
                    bits = self.probe.span.bits
                    raise self.probe.fail(
                        "the formats' range is too narrow: units of another size are hidden otherwise under a mask "
                        f"at {pair[0]} and {pair[1]}, so the unit keeps some of the {bits} places between them"
                    )

    # -- construction

    def build(self, leaves: list[Leaf], turn: int = 0) -> Node | Leaf:
        """The tree of leaves that are known to be added up before they meet others.

        It grows from one of them: the first, which most orders begin with. `turn` counts how often the leaf before it
        came last of all and told nothing: then the last one is tried, then any, so that trees nest a few times only,
        however long a chain is and in whatever order.
        """
        pivot = leaves[0] if turn < 2 else leaves[-1] if turn == 2 else random.Random(len(leaves)).choice(leaves)
        rest = [leaf for leaf in leaves if leaf != pivot]
        self.probe.ask_pairs((pivot, leaf) for leaf in rest)
        levels: dict[int, list[Leaf]] = {}
        for leaf in rest:
            levels.setdefault(self.probe.lost(pivot, leaf), []).append(leaf)
        return self._grow(pivot, sorted(levels.items()), turn)

    def _grow(self, pivot: Leaf, levels: list[tuple[int, list[Leaf]]], turn: int) -> Node | Leaf:
        """Add what joins a leaf, level by level. A level may be a step of its own, or a larger branch that joins
        the exact step before it; the first readings that fit together count."""
        grown: list[tuple[Node | Leaf, Iterator[_Reading]]] = [(pivot, _readings(pivot))]  # one more for each level
        problem = MisfitError("no leaf")
        while len(grown) <= len(levels):
            lost, group = levels[len(grown) - 1]
            reading = next(grown[-1][1], None)
            if reading is None:
                grown.pop()
                if not grown:
                    raise problem
                continue
            try:
                node = self._attach(*reading, lost, group, turn)
            except MisfitError as error:
                problem = error
            else:
                grown.append((node, _readings(node)))
        return grown[-1][0]

    def _attach(
        self, base: Node | Leaf, siblings: tuple[Node | Leaf, ...], lost: int, group: list[Leaf], turn: int
    ) -> Node:
        size = len(leaves_of(base))
        width = lost - size
        if width < 1 or len(group) % width:
            raise MisfitError(f"a mask that meets {size} + {len(group)} leaves hides {lost}")
        if width < len(group):
            parts = self._split(group, lambda seen: seen <= width)
            exact = True
        elif siblings:
            parts, exact = [group], True
        else:
            parts = self._split(group, lambda seen: seen < lost)
            exact = False
        if exact and any(len(part) != width for part in parts):
            raise MisfitError(f"branches of {sorted(map(len, parts))} leaves join where each should have {width}")
        told_nothing = len(parts) == 1 and not isinstance(base, Node)
        children = (base, *siblings, *(self.build(part, turn + told_nothing) for part in parts))
        node = Node("binary" if len(children) == 2 else "exact" if exact else "fused", children)
        self._check(node)
        return node

    def _check(self, node: Node) -> None:
        """The masks whose leaves meet in this step; those within its children were checked with these."""
        parts = [leaves_of(child) for child in node.children]
        where = {leaf: number for number, part in enumerate(parts) for leaf in part}
        for number, part in enumerate(parts[1:], 1):
            for leaf in part:
                for other in self.probe.met(leaf):
                    there = where.get(other, number)
                    if there != number:
                        exact = len(part) + len(parts[there])
                        self._expect(leaf, other, exact if node.kind == "exact" else len(where))

    def _check_all(self, root: Node | Leaf) -> None:
        table = losses(root)
        place = {leaf: number for number, leaf in enumerate(sorted_leaves(list(leaves_of(root))))}
        for one, other in self.probe.asked:
            self._expect(one, other, int(table[place[one], place[other]]))

    def _expect(self, one: Leaf, other: Leaf, hidden: int) -> None:
        found = self.probe.lost(one, other)
        if found != hidden:
            raise MisfitError(f"a mask at {one} and {other} hides {found}, not {hidden}")

    def _split(self, group: list[Leaf], same: Callable[[int], bool]) -> list[list[Leaf]]:
        """The branches that a group of leaves consists of. `same` judges what a mask on two leaves of one hides."""
        rest = sorted_leaves(group)
        if len(rest) == 1:
            return [rest]
        self.probe.ask_pairs(self._telling_pairs(rest))
        inside = {*rest}
        close = [pair for pair, lost in self.probe.asked.items() if same(lost) and inside.issuperset(pair)]
        parts: list[list[Leaf]] = []
        for seed, other in close:
            if seed in inside and other in inside:
                self.probe.ask_pairs((seed, leaf) for leaf in rest if leaf != seed)
                part = [leaf for leaf in rest if leaf == seed or same(self.probe.lost(seed, leaf))]
                parts.append(part)
                inside -= {*part}
                rest = [leaf for leaf in rest if leaf in inside]
        return sorted([*parts, *([leaf] for leaf in rest)], key=lambda part: order(part[0]))  # single leaves are left

    def _telling_pairs(self, group: list[Leaf]) -> Iterator[tuple[Leaf, Leaf]]:
        """Pairs that join any branch a unit is likely to have: neighbours, and numbers that differ in one bit."""
        yield from ((one, other) for one, other in pairwise(group))
        numbers = {leaf for leaf in group if leaf != "c"}
        for k in sorted(numbers):
            for place in range((self.probe.model.length - 1).bit_length()):
                other = k ^ (1 << place)
                if other > k and other in numbers:
                    yield k, other


# -- inside a fused step


class Inside:
    """Looks into fused steps with units that are cut off one by one, but not when they are added up first."""

    def __init__(self, probe: Probe, root: Node | Leaf) -> None:
        self.probe = probe
        self.steps = [node for node in nodes_of(root) if node.kind == "fused"]
        self.apart: bool | None = None
        self.places = 0
        self.parts: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = {}

    def look(self) -> None:
        """Find the groups that are summed first, and whether the addend joins the finished sum of the products."""
        for step in self.steps:
            products = tuple(sorted(child for child in step.children if isinstance(child, int)))
            if len(products) < 3:
                continue
            unit = self._cut(products)
            if unit is None:
                continue
            if len(products) > 3:
                self._find_groups(products, unit)
            if "c" in step.children:
                self._find_addend(products, unit)

    def _cut(self, products: tuple[int, ...]) -> int | None:
        """The exponent of the largest unit that is cut off when it meets a mask."""
        low, high = self.probe.span.unit, self.probe.span.mask - 1
        while high - low > 1:  # low is cut off, high is not
            middle = (low + high) // 2
            text = f"whether 2^{middle} at {products[2]} is cut off by a mask at {products[0]} and {products[1]}"
            left = self.probe.survivors((products[0], products[1]), [products[2]], middle, text)
            if left not in (0, 1):
                return None
            low, high = (middle, high) if left == 0 else (low, middle)
        return low

    def _survive(self, pair: tuple[int, int], others: list[int], unit: int) -> bool:
        text = f"whether units of 2^{unit} are added up before they meet a mask at {pair[0]} and {pair[1]}"
        return bool(self.probe.survivors(pair, list(others), unit, text))

    def _find_groups(self, products: tuple[int, ...], unit: int) -> None:
        """Two of the first three products share a group if there are at most two: a mask there spares the others."""
        first, second, third = products[:3]
        self.parts[products] = (products,)
        for pair in ((first, second), (first, third), (second, third)):
            others = [k for k in products if k not in pair]
            if self._survive(pair, others, unit):
                parts = self._groups(pair, others, unit)
                if self._hold(parts, unit):
                    self.parts[products] = parts
                else:
                    del self.parts[products]
                return

    def _groups(self, pair: tuple[int, int], others: list[int], unit: int) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = []
        rest = list(others)
        while rest:
            seed, *rest = rest
            group = [seed, *(k for k in rest if self._survive(pair, [seed, k], unit))]
            rest = [k for k in rest if k not in group]
            found.append(group)
        large = [group for group in found if len(group) > 1]
        left = sorted(k for k in (*pair, *others) if not any(k in group for group in large))
        mask = (large[0][0], large[0][1])
        group = [left[0], *(k for k in left[1:] if self._survive(mask, [left[0], k], unit))]
        single = [[k] for k in left if k not in group]
        return tuple(sorted(tuple(sorted(part)) for part in (*large, group, *single)))

    def _hold(self, parts: tuple[tuple[int, ...], ...], unit: int) -> bool:
        """Whether a mask in a group hides the rest of that group. If not, units are lost one by one in a later step
        that keeps fewer bits than this one, and nothing is known of groups."""
        tests = [((part[0], part[1]), list(part[2:])) for part in parts if len(part) > 3]
        for one, other in combinations(parts, 2):
            tests.append(((one[0], other[0]), [*one[1:], *other[1:]]))
        return not any(others and self._survive(pair, others, unit) for pair, others in tests)

    def _find_addend(self, products: tuple[int, ...], unit: int) -> None:
        """The mask at c alone: a finished sum of units shows beside it where single units do not."""
        probe = self.probe
        places = probe.span.mask - unit - (len(products).bit_length() - 1)
        if places > probe.model.d.precision - 1:
            return  # the sum of the units is below the last place of the result as well
        sign = probe.signs[1]
        terms: dict[Leaf, tuple[int, int]] = dict.fromkeys(products, (sign, unit))
        text = f"whether units of 2^{unit} at the products are added up before they meet 2^{probe.span.mask} at c"
        value = probe.value(terms | {"c": (sign, probe.span.mask)}, text)
        if value is not None:
            self.places = places
            self.apart = value != sign * 2**probe.span.mask
