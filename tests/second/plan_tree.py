"""Checks a tree of theorems about a plan: its rules are those of units, and of steps. What a step does is unrolled, and
compared with what the stage does with as many products, operation by operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from tests.second.document import Rule
from tests.second.goals import Facts, Goal
from tests.second.magnitudes import Factor, FaultError, Form, add, covers, flat, lifted, need, plain, single, times, two
from tests.second.part_rules import Polynomials
from tests.second.step_rules import K, put_in
from tests.second.tree import RULES, Tree

Around = tuple[bool, tuple[tuple[int, Any], ...]]  # whether the sum has its start; by level, the loop and its rounds


def elsewhere(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    """A theorem about a unit, which stands in a document of its own."""
    need(goal.kind in ("Chained", "FromZero") and not premises, "it is not about a unit")


class Words:
    """The words of a plan: a magnitude of the number that a unit reads, by those of its element."""

    def __init__(self, tree: PlanTree) -> None:
        self.tree = tree
        self.kept = frozenset(node for pair in tree.pairs for word in pair for node in tree.below(word)
                              if tree.nodes[node]["kind"] == "round")  # fmt: skip
        self.known = Polynomials(tree, self.kept)

    def put(self, form: Form) -> Form:
        return put_in(form, lambda factor: self.magnitude(factor) if factor[0] in ("a", "b") else None)

    def size_of(self, node: int) -> Form:
        return self.known.bound(self.known.of(node, (), {}))

    def magnitude(self, factor: Factor) -> Form:
        name, pair, _, raised = factor
        node = self.tree.pairs[pair]["ab".index(name)]
        what, own = self.tree.nodes[node], single(name)
        if what["kind"] == "element":
            return single(name, 0, (), raised and name not in dict(self.tree.unit["windows"]))
        polynomial = self.known.of(node, (), {})
        need(() not in polynomial, "a word is not zero where its element is")
        size = self.known.bound(polynomial)
        if not raised:
            return size
        if name in dict(self.tree.unit.get("windows", ())):
            return add(size, self.known.nonzero(plain(two(self.tree.emin(what["rounding"]["format"]))), polynomial))
        return lifted(size, {name}) if covers(size, own) else add(
            size, plain(two(self.tree.emin(what["rounding"]["format"]))))  # fmt: skip


class PlanTree(Tree):
    """A document about a plan."""

    of_plan: ClassVar[bool] = True
    rules: ClassVar[Mapping[str, Rule]] = RULES | {"elsewhere": elsewhere}

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        self.units, self.steps, self.stages = (document[name] for name in ("units", "steps", "stages"))

    def check(self, first: int = 0) -> Iterator[tuple[int, str]]:
        try:
            for stage in self.stages:
                for record in stage["records"]:
                    self._need_every_product(record)
        except FaultError as fault:
            yield -1, str(fault)
        yield from super().check(first)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """What units read of an element of a and one of b, each pair once, in the order in which stages read them."""
        every = [(a, b) for a, b in self.unit["pairs"]]
        read = set[tuple[int, int]]().union(*(_pairs(record) for stage in self.stages for record in stage["records"]))
        need(len(set(every)) == len(every) and read == set(every), "units read other words")
        return every

    @cached_property
    def words(self) -> Words:
        return Words(self)

    @property
    def count(self) -> Form:
        """How many products there are."""
        length = self.unit["length"]
        return K if length is None else plain(length)

    def over_all(self, form: Form) -> Form:
        """What has no magnitude of an element of a or b counts as often as there are products."""
        every: Form = {}
        for atom, value in flat(form).items():
            one = {atom: value}
            each = any(factor[0] in ("a", "b") for item in atom for factor in item)
            every = add(every, one if each else times(one, self.count))
        return every

    def number_read(self, node: int, kept: frozenset[int]) -> Facts | None:
        what = self.nodes[node]
        if what["kind"] == "element":
            return self.read(what["operand"], {})
        return self.numbers(frozenset({what["rounding"]["format"]}), {}, {}, {}) if node in kept else None

    def pairs_of(self, stage: int) -> Sequence[tuple[int, int]]:
        every = [set(_pairs(record)) for record in self.stages[stage]["records"]]
        need(all(one == every[0] for one in every), "other words are read of other products")
        return sorted(every[0])

    def step(self, goal: Goal, kind: str) -> Mapping[str, Any]:
        need(goal.kind == "Summed", "its goal is of another kind")
        found: Mapping[str, Any] = self.steps[goal.parts["step"]]
        need(found["kind"] == kind, f"its step is {found['kind']}, not {kind}")
        return found

    def summed(self, premises: Sequence[int], steps: Sequence[int]) -> list[Facts]:
        """The facts of premises, which must be about these steps."""
        goals = [self.goals[premise] for premise in premises]
        need([(one.kind, one.parts.get("step")) for one in goals] == [("Summed", step) for step in steps],
             "the premises are not about its steps")  # fmt: skip
        return [one.facts for one in goals if one.facts is not None]

    def need_single_sums(self) -> None:
        """No product may have two sums of all products as factors."""
        for what in self.nodes:
            if what["kind"] in ("product", "scale"):
                names = ("left", "right", "term")
                sums = [any(self.nodes[below]["kind"] == "sum" for below in self.below(what[name]))
                        for name in names if name in what]  # fmt: skip
                need(sum(sums) < 2, "two sums are multiplied")

    # -- steps against what is done

    def _need_every_product(self, record: Mapping[str, Any]) -> None:
        counts, pairs = _counts(record["nodes"])[record["result"]], _pairs(record)
        wanted = {(pair, place): 1 for pair in pairs for place in range(record["count"])}
        need(bool(pairs) and {key: value for key, value in counts.items() if value} == wanted, "not every product once")

    def need_same_steps(self, step: int, stage: int) -> None:
        what = self.stages[stage]
        for turns, record in enumerate(what["records"], 1):
            unrolled = Unrolled(self, record, turns)
            need(unrolled.same(step, (True, ()), record["result"]), "the stage does something else")


def _pairs(record: Mapping[str, Any]) -> set[tuple[int, int]]:
    return {(node[2][0], node[2][1]) for node in record["nodes"] if node[0] == "tile"}


def _counts(nodes: Sequence[Any]) -> list[Counter[Any]]:
    """How often each node adds each product of a pair: what is lost is what the values have more than their total."""
    found: list[Counter[Any]] = []
    for kind, *rest in nodes:
        own = Counter[Any]()
        if kind == "tile":
            own.update(found[rest[2]])
            own.update({(tuple(rest[1]), place): 1 for place in rest[3]})
        for value in rest[0] if kind in ("rounded", "lost") else ():
            own.update(found[value])
        if kind == "lost":
            own.subtract(found[rest[1]])
        found.append(own)
    return found


def is_filled(tree: PlanTree, whole: int, partly: int, count: int) -> bool:
    """Whether a unit is another one of whose products only the first `count` are there, and the others are zeros."""
    one, other = tree.units[whole], tree.units[partly]
    if count == one["length"]:
        return whole == partly
    block = one["scale_block"] or 1
    alike = all(one[name] == other[name] for name in ("a", "b", "c", "d", "scale_block"))
    return alike and other["length"] == -(-count // block) * block and (
        Filled(tree, count, block).same(one["result"], {}, {}, other["result"], {}))  # fmt: skip


@dataclass(frozen=True)
class Filled:
    """An expression of which inputs from `count` on are zeros, its loops written out or not; `block`: how many products
    share scale factors."""

    tree: PlanTree
    count: int
    block: int

    def same(self, own: int, places: Mapping[int, int], so_far: Mapping[int, Any], other: int,
             others: Mapping[int, int]) -> bool:  # fmt: skip
        """`so_far`: by level, the loop around, after how many rounds the value is, and what was around the loop."""
        one, two_ = self.tree.nodes[own], self.tree.nodes[other]
        if one["kind"] == "repeat":
            return self.after(own, len(one["places"]), places, so_far, other, others)
        if one["kind"] == "acc":
            return self.after(*so_far[one["level"]], other, others)
        if one["kind"] == "element" and one["index"] is not None:
            place = _place(one["index"], places)
            if place * (self.block if one["operand"].startswith("scale") else 1) >= self.count:
                return bool(two_["kind"] == "zero" and not two_["negative"])
            same = {name: (value, two_.get(name)) for name, value in one.items() if name != "index"}
            return all(x == y for x, y in same.values()) and two_["index"] is not None and (
                place == _place(two_["index"], others))  # fmt: skip
        if one["kind"] != two_["kind"]:
            return False
        if "items" not in one:
            inner = [name for name in ("left", "right", "term") if name in one]
            return all(two_[name] == value for name, value in one.items() if name not in inner) and all(
                self.same(one[name], places, so_far, two_[name], others) for name in inner)  # fmt: skip
        terms = list(self._terms(one["items"], places)), list(self._terms(two_["items"], others))
        return len(terms[0]) == len(terms[1]) and all(
            self.same(x, at, so_far, y, other_at) and _given(one, k) == _given(two_, n)
            for (x, at, k), (y, other_at, n) in zip(*terms, strict=True)
        )

    def after(self, loop: int, rounds: int, places: Mapping[int, int], so_far: Mapping[int, Any], other: int,
              others: Mapping[int, int]) -> bool:  # fmt: skip
        what = self.tree.nodes[loop]
        if not rounds:
            return self.same(what["start"], places, so_far, other, others)
        level, before = what["level"], (loop, rounds - 1, places, so_far)
        inside = {**places, level: what["places"][rounds - 1]}
        return self.same(what["body"], inside, {**so_far, level: before}, other, others)

    def _terms(self, items: Sequence[int], places: Mapping[int, int]) -> Iterator[tuple[int, Mapping[int, int], int]]:
        for position, item in enumerate(items):
            what = self.tree.nodes[item]
            if what["kind"] != "each":
                yield item, places, position
                continue
            for place in what["places"]:
                inner = self._terms([what["body"]], {**places, what["level"]: place})
                yield from ((node, at, position) for node, at, _ in inner)


def _place(index: Mapping[str, Any], places: Mapping[int, int]) -> int:
    return int(index["offset"] + sum(factor * places[level] for level, factor in index["factors"]))


def _given(what: Mapping[str, Any], position: int) -> list[Any]:
    """What a sum says of the operand at a position."""
    return [(name, value[position] if isinstance(value, list) and value else value == position if name == "frame"
             and value is not None else value) for name, value in what.items() if name != "items"]  # fmt: skip


class Unrolled:
    """Steps with loops, compared with what is done one after another. `turns`: of a loop of any number of rounds."""

    def __init__(self, tree: PlanTree, record: Mapping[str, Any], turns: int) -> None:
        self.tree, self.steps, self.nodes, self.turns = tree, tree.steps, record["nodes"], turns
        self.counts = [sum(one.values()) for one in _counts(self.nodes)]
        self.known: dict[Any, bool] = {}

    def same(self, number: int, around: Around, at: int) -> bool:
        key = number, around, at
        if key not in self.known:
            self.known[key] = self._same(self.steps[number], around, at)
        return self.known[key]

    def _same(self, step: Mapping[str, Any], around: Around, at: int) -> bool:
        node, (begins, loops) = self.nodes[at], around
        match step["kind"]:
            case "Begin":
                return bool(node == ["begin" if begins else "zero"])
            case "Zero":
                return bool(node == ["zero"])
            case "SoFar":
                loop, left, outer = dict(loops)[step["level"]]
                return self._loop(loop, left, outer, at)
            case "Tile":
                if node[0] != "tile" or node[2] != step["read"] or not self.same(step["start"], around, node[3]):
                    return False
                return is_filled(self.tree, node[1], step["model"], len(node[4]))
            case "Added":
                own = self._operands(at, step["rounding"])
                pairs = list(zip(step["values"], own, strict=False))
                return len(pairs) == len(own) == len(step["values"]) and all(self.same(x, around, y) for x, y in pairs)
            case "Loop":
                count = self.turns if step["count"] is None else step["count"]
                return self._loop(self.steps.index(step), count, around, at)
            case "Compensated":
                count = self.turns if step["count"] is None else step["count"]
                return {"neumaier": self._neumaier, "kahan": self._kahan}[step["by"]](step, around, at, count)
            case "Halved":
                count, levels = self.counts[at], 0
                while step["width"] << levels < count:
                    levels += 1
                return self._halved(step, around, at, levels)
        return False

    def _loop(self, loop: int, left: int, around: Around, at: int) -> bool:
        step = self.steps[loop]
        if not left:
            return self.same(step["start"], around, at)
        others = tuple(one for one in around[1] if one[0] != step["level"])
        return self.same(step["body"], (around[0], (*others, (step["level"], (loop, left - 1, around)))), at)

    def _operands(self, at: int, how: Any, kind: str = "rounded") -> list[int]:
        """The values of a rounding, or of what it loses and then the total; none for another node."""
        node = self.nodes[at]
        if node[0] != kind or node[-1] != how:
            return []
        return [*node[1], *node[2:-1]]

    def _neumaier(self, step: Mapping[str, Any], around: Around, at: int, count: int) -> bool:
        how, operands = step["rounding"], self._operands(at, step["rounding"])
        if len(operands) != 2:
            return False
        total, beside = operands
        for left in range(count, 0, -1):
            pair = self._operands(total, how)
            if len(pair) != 2 or not any(self.same(part, around, pair[1]) for part in step["parts"]):
                return False
            rest = self._operands(beside, how) if left > 1 else [beside, beside]
            if len(rest) != 2 or self._operands(rest[1], how, "lost") != [*pair, total]:
                return False
            total, beside = pair[0], rest[0]
        return self.same(step["start"], around, total)

    def _kahan(self, step: Mapping[str, Any], around: Around, at: int, count: int) -> bool:
        how, total, carried = step["rounding"], at, None
        for left in range(count, 0, -1):
            pair = self._operands(total, how)
            if len(pair) != 2:
                return False
            before, own = pair
            if carried is not None:  # what the next part was given: y - (s' - s)
                less = self._operands(carried, how, "lost")
                if len(less) != 2 or less[0] != own or self._operands(less[1], how, "lost") != [total, before]:
                    return False
            both = self._operands(own, how) if left > 1 else [own, own]
            if len(both) != 2 or not any(self.same(part, around, both[0]) for part in step["parts"]):
                return False
            total, carried = before, both[1]
        return self.same(step["start"], around, total)

    def _halved(self, step: Mapping[str, Any], around: Around, at: int, levels: int) -> bool:
        count = self.counts[at]
        if count <= len(step["leaves"]) and self.same(step["leaves"][count - 1], around, at):
            return count <= step["width"] << levels
        pair = self._operands(at, step["rounding"])
        return levels > 0 and len(pair) == 2 and self._halved(step, around, pair[0], levels - 1) and (
            self._halved(step, (False, around[1]), pair[1], levels - 1))  # fmt: skip
