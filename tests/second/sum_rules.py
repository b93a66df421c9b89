"""The rule about sums with what their own additions lost. Each node of such a sum is a combination of leaves and of
what roundings add; the programs are found by trying everything below a node, whatever its signs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.second.document import Document, conclude, holds, largest_number, need_lemmas
from tests.second.goals import Condition, Facts, Goal, frozen
from tests.second.magnitudes import Form, add, need, plain, times, two
from tests.second.node_rules import after_rounding, finite, product_of, sum_of

Pair = dict[int, int]  # of a rounded sum of two different nodes: the sign of each
NEAREST = ("nearest_even", "nearest_away")


class Programs:
    """What the nodes of a tree add, as pairs."""

    def __init__(self, tree: Document) -> None:
        self.tree = tree
        self.pairs = {node: pair for node in range(len(tree.nodes)) if (pair := self._pair(node)) is not None}

    def _pair(self, node: int) -> Pair | None:
        what, nodes = self.tree.nodes[node], self.tree.nodes
        if what["kind"] != "round" or what["random"] is not None or nodes[what["term"]]["kind"] != "exact":
            return None
        found = []
        for item in nodes[what["term"]]["items"]:
            inner = nodes[item]
            minus = inner["kind"] == "product" and nodes[inner["left"]]["kind"] == "number"
            if minus:
                left = nodes[inner["left"]]
                if self.value(left) != -1 or inner["limit"] is not None or inner["normalised"]:
                    return None
            elif inner["kind"] == "each":
                return None
            found.append((inner["right"], -1) if minus else (item, 1))
        return dict(found) if len(found) == len(dict(found)) == 2 else None

    def value(self, number: Mapping[str, Any]) -> Fraction:
        fmt = self.tree.formats[number["format"]]
        sign = fmt["exponent"] + fmt["fraction"] + fmt["padding"]
        return finite(number["pattern"], fmt) * (-1 if number["pattern"] >> sign & 1 else 1)

    def like(self, wanted: Pair, below: frozenset[int]) -> Iterator[tuple[int, int]]:
        """The nodes that add just this, with 1, or with -1 where all signs are the other ones."""
        for node, pair in self.pairs.items():
            for sign in (1, -1):
                if node in below and pair == {one: sign * own for one, own in wanted.items()}:
                    yield node, sign

    def lost(self, node: int) -> Iterator[tuple[int, int, int, int, bool]]:
        """Additions s of x and y: s, x, y, the sign with which the node is x + y - s, and whether x has to be the
        larger one."""
        below = self.tree.below(node)
        for s, pair in self.pairs.items():
            for x, y in (tuple(pair), tuple(pair)[::-1]):
                for u, p in self.like({s: 1, x: -pair[x]}, below) if s in below else ():
                    for found, sign in self.like({y: pair[y], u: -p}, frozenset({node})):
                        if self._alike(found, u, s):
                            yield s, x, y, sign, True
                    for w, q in self.like({s: 1, u: -p}, below):
                        for dx, j in self.like({x: pair[x], w: -q}, below):
                            for dy, k in self.like({y: pair[y], u: -p}, below):
                                if dx == dy:
                                    continue
                                for found, sign in self.like({dx: j, dy: k}, frozenset({node})):
                                    if self._alike(found, dx, dy, w, u, s):
                                        yield s, x, y, sign, False

    def _alike(self, *nodes: int) -> bool:
        hows = [self.tree.nodes[node]["rounding"] for node in nodes]
        fmt = self.tree.formats[hows[0]["format"]]
        kept = fmt["subnormals"] and fmt["specials"] == "ieee" and hows[0]["subnormals"] == "keep"
        return kept and hows[0]["mode"] in NEAREST and all(how == hows[0] for how in hows)


class Sums:
    """The nodes of a sum down to its leaves."""

    def __init__(self, tree: Document, node: int) -> None:
        self.tree, self.programs = tree, Programs(tree)
        self.inside, self.leaves = list[int](), set[int]()
        self._enter(node)

    def _enter(self, node: int) -> None:
        what, nodes = self.tree.nodes[node], self.tree.nodes
        if node in self.inside:
            return
        match what["kind"]:
            case "exact" if not any(nodes[item]["kind"] == "each" for item in what["items"]):
                below = list(what["items"])
            case "round" if (
                what["random"] is None
                and nodes[what["term"]]["kind"] == "exact"
                and not any(nodes[item]["kind"] == "each" for item in nodes[what["term"]]["items"])
            ):
                below = [what["term"]]
            case "product" if nodes[what["left"]]["kind"] == "number" and what["limit"] is None:
                below = [what["left"], what["right"]]
            case _:
                self.leaves.add(node)
                return
        for one in below:
            self._enter(one)
        self.inside.append(node)

    def summed(self, facts: Mapping[int, Facts], places: Any) -> tuple[Form, Facts, set[Condition]]:
        """The error of the last node, the facts about it where nothing is lost, and what may not overflow."""
        values: dict[int, dict[int, Fraction]] = {leaf: {leaf: Fraction(1)} for leaf in facts}
        sizes, about, conditions = {leaf: one.value for leaf, one in facts.items()}, dict(facts), set()
        for node in self.inside:
            what = self.tree.nodes[node]
            if what["kind"] == "exact":
                found: dict[int, Fraction] = {}
                for item in what["items"]:
                    for one, factor in values[item].items():
                        found[one] = found.get(one, Fraction(0)) + factor
                values[node] = {one: factor for one, factor in found.items() if factor}
                about[node] = sum_of([about[item] for item in what["items"]])
                continue
            if what["kind"] == "product":
                by = self.programs.value(self.tree.nodes[what["left"]])
                values[node] = {one: factor * by for one, factor in values[what["right"]].items() if by}
                about[node] = product_of([about[what["left"]], about[what["right"]]])
                continue
            how, before = what["rounding"], values[what["term"]]
            most = self._size(before, sizes)
            top = largest_number(self.tree.formats[how["format"]])[0]
            conditions.add(Condition(node, self.tree.bound(node, places), top, frozen(most)))
            about[node] = after_rounding(self.tree, about[what["term"]], how)
            if self._fits(node, about):
                values[node] = before
                sizes[node] = {}
            elif (lost := self._lost(node, sizes, about)) is not None:
                values[node] = {lost[0]: Fraction(-lost[1])}
            else:
                term = replace(about[what["term"]], low={}, high={}, size=most)
                sizes[node] = after_rounding(self.tree, term, how).error
                values[node] = {**before, node: Fraction(1)}
        last = values[self.inside[-1]]
        errors = [times(facts[one].error if one in facts else sizes[one], abs(factor)) for one, factor in last.items()]
        size = add(*(times(facts[one].size, abs(factor)) for one, factor in last.items() if one in facts))
        return add(*errors), replace(about[self.inside[-1]], size=size), conditions

    def _size(self, value: Mapping[int, Fraction], sizes: Mapping[int, Form]) -> Form:
        return add(*(times(sizes[one], abs(factor)) for one, factor in value.items()))

    def _lost(self, node: int, sizes: Mapping[int, Form], about: Mapping[int, Facts]) -> tuple[int, int] | None:
        for s, x, y, sign, ordered in self.programs.lost(node):
            fmt = self.tree.nodes[s]["rounding"]["format"]
            numbers = s in sizes and self._is_number(about[x], fmt) and self._is_number(about[y], fmt)
            if numbers and (not ordered or self._is_above(x, about[x], about[y].top)):
                return s, sign
        return None

    def _is_above(self, node: int, facts: Facts, top: int | None) -> bool:
        """Whether it is zero, or no smaller than half of 2^top."""
        what = self.tree.nodes[node]
        if top is None or what["kind"] == "number":
            return top is not None and abs(self.programs.value(what)) >= two(top - 1)
        normal = facts.formats is not None and facts.weight == facts.value
        return normal and facts.least is not None and facts.least >= top - 1

    def _is_number(self, facts: Facts, number: int) -> bool:
        fmt = self.tree.formats[number]
        if facts.formats is not None and all(holds(fmt, self.tree.formats[one]) for one in facts.formats):
            return True
        if facts.grid is None or facts.bits is None or facts.top is None:
            return False
        fine = facts.grid >= self.tree.last(number) and facts.top <= largest_number(fmt)[0]
        return bool(fine and facts.bits <= fmt["fraction"] + 1)

    def _fits(self, node: int, about: Mapping[int, Facts]) -> bool:
        """Whether it is the difference of a number and of what that is rounded to, to nearest or toward zero."""
        how = self.tree.nodes[node]["rounding"]
        pair, fmt = self.programs.pairs.get(node), self.tree.formats[how["format"]]
        for y in pair or ():
            what = self.tree.nodes[y]
            if pair is None or what["kind"] != "round" or what["random"] is not None or what["term"] not in pair:
                continue
            mode, x = what["rounding"]["mode"], what["term"]
            wide = holds(fmt, self.tree.formats[what["rounding"]["format"]])
            if pair[x] == -pair[y] and wide and mode in (*NEAREST, "toward_zero") and x in about:
                kept = how["subnormals"] == "keep" and fmt["subnormals"]
                return bool(kept and self._is_number(about[x], how["format"]))
        return False


def error_free(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    tree.node(goal, "exact")
    sums = Sums(tree, goal.node)
    count = len(sums.leaves)
    found = [tree.enclosed(premise) for premise in premises[:count]]
    wanted = {(leaf, tree.bound(leaf, goal.places)) for leaf in sums.leaves}
    need({(one.node, one.places) for one, _ in found} == wanted and count > 0, "the premises are not about its leaves")
    goals = [one for one, _ in found]
    need(goal.assuming == tree.together(goals), "it assumes something else than its premises")
    kept = {level[1] for level, _ in goal.assuming if isinstance(level, tuple)}
    need(not kept & set(sums.inside), "a rounding that is kept is followed")
    error, facts, conditions = sums.summed({one.node: own for one, own in found}, goal.places)
    every = frozenset(conditions).union(*(one.provided for one in goals))
    need(goal.provided == every, "something else may not overflow")
    hows = [tree.nodes[node]["rounding"] for node in sums.inside if tree.nodes[node]["kind"] == "round"]
    lemmas = [{"format": how["format"], "mode": how["mode"]} for how in hows]
    need_lemmas(tree, premises[count:], "RoundingLoses", lemmas)
    conclude(goal, replace(facts, low=error, high=error, weight=plain(1)))
