"""The tree of a sum, from the leaves that masks hide: the levels above one leaf, then the branches that join at each
level."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, pairwise

from mmaprobe.queries.compare.steady import AGAIN_IN_DOUBT
from mmaprobe.queries.order.probe import RAISED, SINGLY, NoTreeError, Probe
from mmaprobe.queries.order.tree import (
    Leaf,
    Node,
    Pair,
    hidden_leaves,
    in_order,
    leaf_order,
    leaves_of,
    masked_leaves,
    nodes_of,
    pair_of,
    size_of,
    sorted_leaves,
)

LARGE = 64  # leaves of a group from which on its first leaf is paired with all others before other pairs are asked
SMALL = 8  # leaves of a group of which every pair is asked, in sums of fewer than LARGE leaves
FIRST = 4  # pairs that are asked first, if many pairs are similar
TRIPLES = 32  # triples of leaves whose pairs are asked before every pair is
SAMPLED = 32  # the least number of further pairs by which a finished tree is checked; more for more than 64 leaves
SEEDS = 8  # branches whose first leaves are paired with each other


class MisfitError(Exception):
    """The answers fit no tree of the kind tried."""


_Reading = tuple[Node | Leaf, tuple[Node | Leaf, ...]]  # the branch that a level joins, and its step's other branches


def _readings(current: Node | Leaf) -> Iterator[_Reading]:
    yield current, ()
    if isinstance(current, Node) and current.kind != "fused":
        yield current.children[0], current.children[1:]


class Builder:
    """Builds the tree of a probe's device. `thorough`: every pair is asked; else deciding pairs and a sample."""

    def __init__(self, probe: Probe, thorough: bool = False) -> None:
        self.probe, self.thorough = probe, thorough

    def tree(self) -> Node | Leaf:
        """The tree, validated. Raises UnrevealedError, as a NoTreeError where the answers fit no tree."""
        leaves = self.probe.leaves
        if self.thorough:
            self.probe.ask_pairs(combinations(leaves, 2))
        try:
            root = in_order(self.build(leaves))
            self._ask_some(root)
            self._check_all(root)
            if self.probe.traced or self.probe.singly:
                self._check_alone(root)
        except MisfitError as error:
            if self.probe.ask_assumed() or self.probe.count_singly():
                return self.tree()
            many = not self.thorough and len(self.probe.leaves) > SINGLY  # every pair would be many more questions
            self.probe.stand_by(len(self.probe.questions) if many else AGAIN_IN_DOUBT)
            reason = str(error) if self.thorough else self._strange_triple() if many else ""
            if reason:
                raise NoTreeError(f"the answers fit no tree: {reason}", tuple(self.probe.questions)) from None
            self.thorough = True
            return self.tree()
        self._confirm_span()
        return root

    def _strange_triple(self) -> str:
        """The reason why no tree fits, from masks on the pairs of some triples of leaves; empty if there is none.

        In a tree two of three leaves meet before the third joins them, so that both masks with the third hide as many,
        or all meet in one step: in a step that loses nothing, three masks hide two of three branches each."""
        chance = random.Random(2)
        triples = [sorted_leaves(chance.sample(self.probe.leaves, 3)) for _ in range(TRIPLES)]
        self.probe.ask_pairs(pair for triple in triples for pair in combinations(triple, 2))
        for triple in triples:
            few, more, most = sorted(self.probe.lost(*pair) for pair in combinations(triple, 2))
            if more != most and (few + more <= most or (few + more + most) % 2):
                one, other, third = triple
                return (
                    f"masks on pairs of {one}, {other} and {third} hide {few}, {more} and {most} leaves, as in no "
                    "order of additions; the order may depend on the numbers that are added"
                )
        return ""

    def _ask_some(self, root: Node | Leaf) -> None:
        """Ask pairs on which the tree does not rest yet; if units are counted in groups, one group for each pair."""
        pairs, groups = self._sample(), self.probe.groups
        if len(groups) > 1:
            chance = random.Random(1)
            some = [(pair, chance.choice(groups)) for pair in pairs]
            hidden = dict(zip(pairs, hidden_leaves(root, pairs), strict=True))
            counts = self.probe.counts(some)
            for (pair, group), count in zip(some, counts, strict=True):
                spared = sum(leaf not in hidden[pair] for leaf in group)
                if count is not None and count != spared:
                    raise MisfitError(f"a mask at {pair[0]} and {pair[1]} spares {count}, not {spared}")
            pairs = [pair for (pair, _), count in zip(some, counts, strict=True) if count is None]
        self.probe.ask_pairs(pairs)

    def _sample(self) -> list[Pair]:
        leaves, chance = self.probe.leaves, random.Random(0)
        if len(leaves) <= 4:
            return list(combinations(leaves, 2))
        return [
            pair_of(one, other)
            for one, other in (chance.sample(leaves, 2) for _ in leaves[: max(SAMPLED, len(leaves) // 2)])
        ]

    def _confirm_span(self) -> None:
        """Check that masks hide as many larger units as smaller ones; otherwise a mask hides units in part, and counts
        mean nothing. Masks whose units were counted beside a trace are left out: two sizes were asked already."""
        if self.probe.tight:
            return
        chosen = {lost: pair for pair, lost in self.probe.asked.items() if pair not in self.probe.traced}
        pairs = list(chosen.values())[:6]
        for raised in range(1, RAISED + 1):
            for pair, lost in zip(pairs, self.probe.measure(pairs, raised), strict=True):
                if lost != self.probe.lost(*pair):
                    bits = self.probe.span.bits
                    raise self.probe.fail(
                        f"the formats' range is too narrow: a mask at {pair[0]} and {pair[1]} hides numbers or not by "
                        f"their size, so the device keeps some of the {bits} places between them and the mask"
                    )

    # -- construction

    def build(self, leaves: list[Leaf], turn: int = 0) -> Node | Leaf:
        """The tree of leaves that are known to be summed before they meet others.

        The tree grows from one of these leaves: the first, with which most orders begin. `turn` counts how often the
        chosen leaf came last and revealed nothing: then the last leaf is tried, then a random leaf, so that calls nest
        a few times only, however long a chain is and whatever its order.
        """
        pivot = leaves[0] if turn < 2 else leaves[-1] if turn == 2 else random.Random(len(leaves)).choice(leaves)
        rest = [leaf for leaf in leaves if leaf != pivot]
        self.probe.ask_around(pivot, rest)
        levels: dict[int, list[Leaf]] = {}
        for leaf in rest:
            levels.setdefault(self.probe.lost(pivot, leaf), []).append(leaf)
        return self._grow(_Levels(pivot, sorted(levels.items())), turn)

    def _grow(self, levels: _Levels, turn: int) -> Node | Leaf:
        """Add the branches that join a leaf, level by level. A level may be a step of its own, or a larger branch that
        joins the exact step before it; the first readings that are consistent count."""
        # one reading more for each level
        grown: list[tuple[Node | Leaf, Iterator[_Reading]]] = [(levels.pivot, _readings(levels.pivot))]
        problem = MisfitError("no leaf")
        while len(grown) <= len(levels.groups):
            reading = next(grown[-1][1], None)
            if reading is None:
                grown.pop()
                if not grown:
                    raise problem
                continue
            try:
                node = self._attach(*reading, levels, len(grown) - 1, turn)
            except MisfitError as error:
                problem = error
            else:
                grown.append((node, _readings(node)))
        return grown[-1][0]

    def _attach(
        self, base: Node | Leaf, siblings: tuple[Node | Leaf, ...], levels: _Levels, level: int, turn: int
    ) -> Node:
        lost, group = levels.groups[level]
        size = size_of(base)
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
        self._check(node, levels, level)
        if node.kind == "exact":
            self._check_parts(node)
        return node

    def _check(self, node: Node, levels: _Levels, level: int) -> None:
        """Check masks whose leaves meet in this step; masks within its children were checked with the children."""
        parts = [leaves_of(child) for child in node.children[1:]]
        where = {leaf: number for number, part in enumerate(parts, 1) for leaf in part}
        sizes = list(map(size_of, node.children))
        for number, part in enumerate(parts, 1):
            for leaf in part:
                for other in self.probe.met[leaf]:
                    there = where.get(other, 0 if levels.place.get(other, level) < level else number)
                    if there != number:
                        exact = sizes[number] + sizes[there]
                        self._expect(leaf, other, exact if node.kind == "exact" else node.size)

    def _check_parts(self, node: Node) -> None:
        """Check that the branches within a part of an exact step are hidden together with the part: masks hide as many
        leaves in a sum of 0, 1 and 2 + 3 as in a sum of 0 + 1, 2 and 3."""
        for part, other in zip(node.children, (*node.children[1:], node.children[0]), strict=True):
            if isinstance(part, Node):
                [first, *rest], [partner, *_] = leaves_of(part), leaves_of(other)
                if self.probe.spares((first, partner), rest):
                    raise MisfitError(
                        f"a mask at {first} and {partner} spares some of {len(rest)} others below {first}"
                    )

    def _check_all(self, root: Node | Leaf) -> None:
        table = masked_leaves(root)
        place = {leaf: number for number, leaf in enumerate(sorted_leaves(leaves_of(root)))}
        for one, other in self.probe.asked:
            self._expect(one, other, int(table[place[one], place[other]]))

    def _check_alone(self, root: Node | Leaf) -> None:
        """Check masks with zeros at most leaves, so that they leave no trace. Beside a trace larger units were counted,
        and a step may spare these but hide smaller units. The smallest units must come back from outside of each step,
        and the largest units that were counted from the further branches of an exact step. A unit must not come back
        alone from the branch of a mask, nor from a further branch of a fused step."""
        probe = self.probe
        asked: list[tuple[Pair, list[Leaf], int]] = []
        expected: list[bool] = []

        def expect(back: bool, pair: Pair, leaves: list[Leaf], places: int) -> None:
            asked.append((pair, leaves, places))
            expected.append(back)

        for node in nodes_of(root):
            under, parts = {*leaves_of(node)}, list(map(leaves_of, node.children))
            for place, (child, part) in enumerate(zip(node.children, parts, strict=True)):
                before = parts[place - 1]
                pair, further = (before[0], part[0]), [x for x in parts if x not in (before, part)]
                if place:
                    expect(True, pair, [leaf for leaf in probe.leaves if leaf not in under], probe.span.bits)
                if isinstance(child, Node):
                    expect(False, pair, [leaves_of(child.children[1])[0]], probe.span.bits)
                if further and node.kind == "exact":
                    expect(True, pair, [leaf for x in further for leaf in x], probe.places)
                elif further:
                    expect(False, pair, [further[0][0]], probe.span.bits)
        for (pair, leaves, _), back, came in zip(asked, expected, probe.come_back(asked), strict=True):
            if came != back:
                did = "hides some of" if back else "spares"
                raise MisfitError(f"a mask at {pair[0]} and {pair[1]} {did} {len(leaves)} other leaves alone")

    def _expect(self, one: Leaf, other: Leaf, hidden: int) -> None:
        seen = self.probe.lost(one, other)
        if seen != hidden:
            raise MisfitError(f"a mask at {one} and {other} hides {seen}, not {hidden}")

    def _split(self, group: list[Leaf], same: Callable[[int], bool]) -> list[list[Leaf]]:
        """The branches of a group. `same`: whether a mask that hides a number of leaves has both its leaves in one
        branch."""
        rest = sorted_leaves(group)
        if len(rest) == 1:
            return [rest]
        parts: list[list[Leaf]] = []
        if len(rest) >= LARGE and self._is_common(rest, same):  # often all are in the branch of the first leaf
            self.probe.ask_around(rest[0], rest[1:])
            common = [rest[0], *(leaf for leaf in rest[1:] if same(self.probe.lost(rest[0], leaf)))]
            parts, rest = [common], sorted_leaves({*rest} - {*common})
        joined = _Joined(rest)
        for pairs in self._likely_pairs(rest, joined, same):
            self.probe.ask_pairs(pairs)
            joined.take(pair for pair in pairs if same(self.probe.lost(*pair)))
        joined.take((one, other) for one in rest for other in self.probe.met[one]
                    if other in joined.part and same(self.probe.lost(one, other)))  # fmt: skip
        several = [part for part in joined.parts() if len(part) > 1]
        single = [leaf for leaf in rest if len(joined.part[leaf]) == 1]
        seeds = [part[0] for part in several]
        asked = [(seed, leaf) for seed in seeds for leaf in single]
        asked += combinations(seeds, 2) if len(seeds) <= SEEDS else []
        self.probe.ask_pairs(asked)
        joined.take(pair for pair in asked if same(self.probe.lost(*pair)))
        return sorted([*parts, *joined.parts()], key=lambda part: leaf_order(part[0]))

    def _is_common(self, leaves: list[Leaf], same: Callable[[int], bool]) -> bool:
        """Whether one of a few other leaves is in the branch of the first leaf."""
        few = [(leaves[0], leaf) for leaf in leaves[1 :: len(leaves) // FIRST]]
        self.probe.ask_pairs(few)
        return any(same(self.probe.lost(*pair)) for pair in few)

    def _likely_pairs(
        self, group: list[Leaf], joined: _Joined, same: Callable[[int], bool]
    ) -> Iterator[list[tuple[Leaf, Leaf]]]:
        """Lists of pairs that are likely to be within a branch: neighbours, then numbers that differ in one bit. Of
        many such pairs a few come first, and the others only if one of the few is in a branch."""
        if len(group) <= SMALL and len(self.probe.leaves) <= LARGE:
            yield list(combinations(group, 2))
            return
        yield list(pairwise(group))
        numbers = sorted(leaf for leaf in joined.part if leaf != "c")
        for place in range((self.probe.model.length - 1).bit_length()):
            pairs: list[tuple[Leaf, Leaf]] = [(k, k ^ (1 << place)) for k in numbers if k ^ (1 << place) > k]
            pairs = [(k, other) for k, other in pairs if other in joined.part and not joined.alike(k, other)]
            few = pairs[:: max(1, len(pairs) // FIRST)]
            yield few
            if len(few) < len(pairs) and any(same(self.probe.lost(*pair)) for pair in few):
                yield [pair for pair in pairs if not joined.alike(*pair)]


class _Joined:
    """Leaves grouped by the branches known so far."""

    def __init__(self, leaves: list[Leaf]) -> None:
        self.part: dict[Leaf, list[Leaf]] = {leaf: [leaf] for leaf in leaves}

    def alike(self, one: Leaf, other: Leaf) -> bool:
        return self.part[one] is self.part[other]

    def take(self, pairs: Iterable[tuple[Leaf, Leaf]]) -> None:
        for one, other in pairs:
            if not self.alike(one, other):
                small, large = sorted((self.part[one], self.part[other]), key=len)
                large += small
                self.part.update(dict.fromkeys(small, large))

    def parts(self) -> list[list[Leaf]]:
        """The branches, single leaves included."""
        return [sorted_leaves(part) for part in {id(part): part for part in self.part.values()}.values()]


class _Levels:
    """The levels above a leaf `pivot`. `groups`: pairs of a number of leaves that a mask hides, and the leaves whose
    mask with the pivot hides that number, in ascending order; `place`: the level of each leaf."""

    def __init__(self, pivot: Leaf, groups: list[tuple[int, list[Leaf]]]) -> None:
        self.pivot, self.groups = pivot, groups
        self.place: dict[Leaf, int] = {leaf: level for level, (_, group) in enumerate(groups) for leaf in group}
        self.place[pivot] = -1


# -- inside a fused step


class Inside:
    """Looks into fused steps, with units that are truncated if they are aligned one by one, but not if they are summed
    first. `parts`: the groups of a step's products that are summed first; `apart`: whether c joins the finished sum of
    the products (None: not known); `places`: the distance of mask and unit that shows this."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.apart: bool | None = None
        self.places = 0
        self.parts: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = {}

    def look(self, root: Node | Leaf) -> None:
        """Find groups that are summed first, and whether the addend joins the finished sum of the products."""
        for step in (node for node in nodes_of(root) if node.kind == "fused"):
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

    def unsure(self, root: Node | Leaf) -> Iterator[tuple[Pair, Leaf, int]]:
        """Pairs of products that may be added in a step of their own within a fused step, each with another leaf and
        the size of this step: two products of each group that is summed first, and all pairs of products that were not
        looked into, as far as their masks were not asked about."""
        for step in (node for node in nodes_of(root) if node.kind == "fused"):
            products = tuple(sorted(child for child in step.children if isinstance(child, int)))
            groups = self.parts.get(products)
            if groups is None:
                pairs = list(combinations(products, 2)) if len(products) <= LARGE else []
            else:
                pairs = [(group[0], group[1]) for group in groups if 1 < len(group) < len(products)]
            for pair in (pair for pair in pairs if pair not in self.probe.asked):
                yield pair, next(leaf for leaf in leaves_of(step) if leaf not in pair), step.size

    def _cut(self, products: tuple[int, ...]) -> int | None:
        """The exponent of the largest unit that alignment to a mask truncates away."""
        low, high = self.probe.span.unit, self.probe.span.mask - 1
        while high - low > 1:  # low is truncated, high is not
            middle = (low + high) // 2
            text = f"whether 2^{middle} at {products[2]} is truncated by a mask at {products[0]} and {products[1]}"
            left = self.probe.survivors((products[0], products[1]), [products[2]], middle, text)
            if left not in (0, 1):
                return None
            low, high = (middle, high) if left == 0 else (low, middle)
        return low

    def _survive(self, pair: tuple[int, int], others: list[int], unit: int) -> bool:
        text = f"whether units of 2^{unit} are added up before they meet a mask at {pair[0]} and {pair[1]}"
        return bool(self.probe.survivors(pair, list(others), unit, text))

    def _find_groups(self, products: tuple[int, ...], unit: int) -> None:
        """Of three products two share a group if there are at most two groups: a mask on these two spares the other
        group."""
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
        groups: list[list[int]] = []
        rest = list(others)
        while rest:
            seed, *rest = rest
            group = [seed, *(k for k in rest if self._survive(pair, [seed, k], unit))]
            rest = [k for k in rest if k not in group]
            groups.append(group)
        large = [group for group in groups if len(group) > 1]
        left = sorted(k for k in (*pair, *others) if not any(k in group for group in large))
        mask = (large[0][0], large[0][1])
        group = [left[0], *(k for k in left[1:] if self._survive(mask, [left[0], k], unit))]
        single = [[k] for k in left if k not in group]
        return tuple(sorted(tuple(sorted(part)) for part in (*large, group, *single)))

    def _hold(self, parts: tuple[tuple[int, ...], ...], unit: int) -> bool:
        """Whether a mask in a group hides the rest of that group. If not, units are lost one by one in a later step
        that keeps fewer bits, and nothing is known about groups."""
        tests = [((part[0], part[1]), list(part[2:])) for part in parts if len(part) > 3]
        for one, other in combinations(parts, 2):
            tests.append(((one[0], other[0]), [*one[1:], *other[1:]]))
        return not any(others and self._survive(pair, others, unit) for pair, others in tests)

    def _find_addend(self, products: tuple[int, ...], unit: int) -> None:
        """Find whether c joins the finished sum, by a mask at c alone: beside this mask, a finished sum of units is
        visible where single units are not."""
        probe = self.probe
        if probe.beyond:
            return  # the result does not show the mask
        places = probe.span.mask - unit - (len(products).bit_length() - 1)
        if places > probe.model.d.precision - 1:
            return  # the sum of the units, too, is below the last place of the result
        sign = probe.signs[1]
        terms: dict[Leaf, tuple[int, int]] = dict.fromkeys(products, (sign, unit))
        text = f"whether units of 2^{unit} at the products are added up before they meet 2^{probe.span.mask} at c"
        value = probe.value(terms | {"c": (sign, probe.span.mask)}, text)
        if value is not None:
            self.places = places
            self.apart = value != sign * 2**probe.span.mask
