"""A tree from what masks hide: levels above one leaf, then the branches that join at each level."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise

from queries.summation_probe import Probe, sorted_leaves
from queries.summation_tree import Leaf, Node, leaves_of, losses, nodes_of, order, pair_of


class MisfitError(Exception):
    """The answers fit no tree of the kind tried."""


class Builder:
    """Builds the tree of a probe's device. `thorough` asks every pair; else the pairs that decide, and a sample."""

    def __init__(self, probe: Probe, thorough: bool = False) -> None:
        self.probe, self.thorough = probe, thorough

    def tree(self) -> Node | Leaf:
        """The tree, validated. Raises UnrevealedError."""
        leaves = self.probe.leaves
        if self.thorough:
            self._ask_all()
        try:
            root = self.build(leaves)
            for one, other in self._sample():
                self.probe.lost(one, other)
            self._check(root)
        except MisfitError as error:
            if self.thorough:
                raise self.probe.fail(f"the answers fit no tree: {error}") from None
            self.thorough = True
            return self.tree()
        self._confirm_span(root)
        return root

    def _ask_all(self) -> None:
        leaves = self.probe.leaves
        for position, one in enumerate(leaves):
            for other in leaves[position + 1 :]:
                self.probe.lost(one, other)

    def _sample(self) -> list[tuple[Leaf, Leaf]]:
        leaves = self.probe.leaves
        pairs = [pair_of(x, y) for position, x in enumerate(leaves) for y in leaves[position + 1 :]]
        return random.Random(0).sample(pairs, min(len(pairs), len(leaves)))

    def _confirm_span(self, root: Node | Leaf) -> None:
        """Larger units must be hidden alike: otherwise the mask hides them in part, and counts mean nothing."""
        chosen = {lost: pair for pair, lost in self.probe.asked.items()}
        for pair in list(chosen.values())[:6]:
            for raised in (1, 2):
                if self.probe.measure(pair, raised) != self.probe.lost(*pair):
                    bits = self.probe.span.bits
                    raise self.probe.fail(
                        "the formats' range is too narrow: units of another size are hidden otherwise under a mask "
                        f"at {pair[0]} and {pair[1]}, so the unit keeps some of the {bits} places between them"
                    )

    # -- construction

    def build(self, leaves: list[Leaf]) -> Node | Leaf:
        """The tree of leaves that are known to be added up before they meet others."""
        first, *rest = leaves
        levels: dict[int, list[Leaf]] = {}
        for leaf in rest:
            levels.setdefault(self.probe.lost(first, leaf), []).append(leaf)
        return self._grow(first, sorted(levels.items()))

    def _grow(self, current: Node | Leaf, levels: list[tuple[int, list[Leaf]]]) -> Node | Leaf:
        """Add what joins a branch, level by level. A level may be a step of its own, or a larger branch that joins
        the exact step before it; of two readings the first that fits counts."""
        if not levels:
            return current
        (lost, group), *rest = levels
        readings: list[tuple[Node | Leaf, tuple[Node | Leaf, ...]]] = [(current, ())]
        if isinstance(current, Node) and current.kind != "fused":
            readings.append((current.children[0], current.children[1:]))
        problem = MisfitError(f"a mask hides {lost} leaves")
        for base, siblings in readings:
            try:
                return self._grow(self._attach(base, siblings, lost, group), rest)
            except MisfitError as error:
                problem = error
        raise problem

    def _attach(self, base: Node | Leaf, siblings: tuple[Node | Leaf, ...], lost: int, group: list[Leaf]) -> Node:
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
        children = (base, *siblings, *(self.build(part) for part in parts))
        node = Node("binary" if len(children) == 2 else "exact" if exact else "fused", children)
        self._check(node)
        return node

    def _check(self, branch: Node | Leaf) -> None:
        expected, asked = losses(branch), self.probe.asked
        for pair in expected.keys() & asked.keys():
            if expected[pair] != asked[pair]:
                raise MisfitError(f"a mask at {pair[0]} and {pair[1]} hides {asked[pair]}, not {expected[pair]}")

    def _split(self, group: list[Leaf], same: Callable[[int], bool]) -> list[list[Leaf]]:
        """The branches that a group of leaves consists of. `same` judges what a mask on two leaves of one hides."""
        rest = sorted_leaves(group)
        for one, other in self._telling_pairs(rest):
            self.probe.lost(one, other)
        parts: list[list[Leaf]] = []
        while rest:
            inside = (pair for pair, lost in self.probe.asked.items() if same(lost) and {*pair} <= {*rest})
            seed = next(inside, None)
            if seed is None:  # single leaves are left
                return sorted([*parts, *([leaf] for leaf in rest)], key=lambda part: order(part[0]))
            part = [leaf for leaf in rest if leaf == seed[0] or same(self.probe.lost(seed[0], leaf))]
            parts.append(part)
            rest = [leaf for leaf in rest if leaf not in part]
        return sorted(parts, key=lambda part: order(part[0]))

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
