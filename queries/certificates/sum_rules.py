"""Rules about the sums of all products of a plan: what each of its steps does to the error of a sum so far.

A magnitude of elements of a or b stands for its sum over all products of a step, and has no place. `growth` among
magnitudes is G = 1 + r + ... + r^(n - 2) for n repetitions (of halves: for n - 1 levels), `count` is K.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from queries.certificates.document import conclude, holds, need_lemmas, operands_of
from queries.certificates.goals import Facts, Goal
from queries.certificates.loop_rules import Step, linear, need_close
from queries.certificates.magnitudes import (
    ONE,
    Factor,
    Form,
    Monomial,
    above,
    add,
    decimal_text,
    flat,
    form_text,
    lifted,
    lifts,
    most,
    need,
    plain,
    single,
    times,
)
from queries.certificates.node_rules import after_rounding, grid_of
from queries.certificates.tree import RULES, Tree, where_text

START = 0  # the level of what a sum starts from
G, COUNT = single("growth"), single("count")
ELEMENTS = {"a", "b"}
OPERANDS = {*ELEMENTS, "c", "scale_a", "scale_b"}
AROUND = ("element", "constant", "literal", "product", "exact", "cut", "unchanged", "rounded", "whole", "weakened",
          "settled", "exhausted")  # fmt: skip


@dataclass(frozen=True)
class Covered:
    """For which numbers of products: `length`; or, without one, `before` and any number of times `period`, or by
    halves, of which t levels take at most `width` * 2^t."""

    length: int | None
    before: int = 0
    period: int = 0
    width: int = 0

    @property
    def text(self) -> str:
        if self.length is not None:
            return f"K = {self.length}"
        if self.width:
            return f"every K, t levels of halves, K <= {self.width} 2^t"
        return f"K = {f'{self.before} + ' * bool(self.before)}{self.period} n, every n > 0"


class SumTree(Tree):
    """Theorems about a plan. `units`: those that it uses, as plain data, by number."""

    def __init__(self, document: Mapping[str, Any], units: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(document)
        self.steps, self.sums, self.units = document["steps"], document["sums"], units
        self.rate = Fraction(document["growth"])

    def final(self, goal: Goal) -> bool:
        return goal.kind == "Enclosed" and super().final(goal)

    def summed(self, premise: int) -> tuple[Goal, Facts]:
        goal = self.goals[premise]
        need(goal.kind == "Summed" and goal.facts is not None, "a premise about a step is needed")
        assert goal.facts is not None
        return goal, goal.facts

    def has_sum(self, node: int) -> bool:
        """Whether a node is computed from a sum of products."""
        what = self.nodes[node]
        return what["kind"] == "sum" or any(map(self.has_sum, operands_of(what)))

    def statement(self, number: int, covered: Covered) -> str:
        """A bound of the result, on one line."""
        facts = self.goals[number].facts
        assert facts is not None
        where = where_text(node for unit in self.units for node in unit["nodes"])
        last = "t-1" if covered.width else "n-2"
        grown = any(factor[0] == "growth" for atom in facts.error for item in atom for factor in item)
        rate = f", growth = 1 + r + ... + r^({last}), r = 1 + {decimal_text(self.rate - 1)}" * grown
        error = form_text(facts.error).replace("|growth|", "growth").replace("|count|", "K")
        return f"for {covered.text}: |d - exact| <= {error}, over all products{rate}{where}"


# -- forms of sums


def _sides(form: Form) -> tuple[Form, Form]:
    """What is about products, and the rest."""
    sides: tuple[Form, Form] = {}, {}
    for atom, value in flat(form).items():
        ((*item,),) = atom
        sides[ELEMENTS.isdisjoint(factor[0] for factor in item)][atom] = value
    return sides


def _apart(*forms: Form) -> Form:
    """An upper bound of the sum of forms that are about different products."""
    parts = [_sides(form) for form in forms]
    return add(most(*(own for own, _ in parts)), *(rest for _, rest in parts))


def _over_all(form: Form) -> Form:
    """An upper bound of a form about single products, each the sum over all of them."""
    found: Form = {}
    for atom, value in flat(form).items():
        (item,) = atom
        one = len({factor[1] for factor in item if factor[0] in ELEMENTS}) == 1
        need(one and all(factor[0] in OPERANDS and not factor[2] for factor in item), "it is not about single products")
        kind = frozenset({tuple(sorted((name, 0, (), raised) for name, _, _, raised in item))})
        found[kind] = max(found.get(kind, value), value)
    return found


def _exchanged(form: Form, change: Callable[[Factor], Form]) -> Form:
    """An upper bound of a form, from one of each of its magnitudes."""
    return add(*(times(reduce(times, map(change, item), plain(1)), value)
                 for atom, value in form.items() for item in atom))  # fmt: skip


def _itself(factor: Factor) -> Form:
    return {frozenset({(factor,)}): Fraction(1)}


def geometric(rate: Fraction, count: int) -> Fraction:
    """1 + rate + ... + rate^(count - 1), or slightly more: of 2 n powers it is (1 + rate^n) times that of n."""
    found, power = Fraction(0), Fraction(1)
    for bit in f"{count:b}":
        found, power = above(found * (1 + power)), above(power * power)
        if bit == "1":
            found, power = above(1 + rate * found), above(power * rate)
    return found


# -- rules


def _step(tree: SumTree, goal: Goal, kind: str) -> Mapping[str, Any]:
    need(goal.kind == "Summed", "its goal is of another kind")
    what: Mapping[str, Any] = tree.steps[goal.node]
    need(what["kind"] == kind, f"its step is {what['kind']}, not {kind}")
    return what


def _follows(goal: Goal, sources: Sequence[Goal], facts: Facts) -> None:
    """Check the conclusion about a step, which assumes and grows as its premises do."""
    assumed = frozenset[tuple[Any, frozenset[int]]]().union(*(one.assuming for one in sources))
    need(goal.assuming == assumed, "it assumes something else than its premises")
    need(len({level for level, _ in assumed}) == len(assumed), "two formats are assumed of one sum")
    rates = {one.parts["growth"] for one in sources} - {None}
    need(len(rates) <= 1 and goal.parts["growth"] == next(iter(rates), None), "it grows at another rate")
    conclude(goal, facts)


def _assumed(tree: SumTree, goal: Goal, premises: Sequence[int], level: int) -> None:
    need(not premises and len(goal.assuming) == 1 and goal.parts["growth"] is None, "it assumes one thing")
    ((own, formats),) = goal.assuming
    need(own == level, "it is about another sum")
    error = single("error", level)
    conclude(goal, tree.numbers(formats, error, error, single("size", level)))


def begun(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    _step(tree, goal, "begin")
    _assumed(tree, goal, premises, START)


def held(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    _assumed(tree, goal, premises, _step(tree, goal, "sofar")["level"])


def nothing(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    _step(tree, goal, "zero")
    need(not premises, "a zero rests on nothing")
    _follows(goal, [], tree.numbers(frozenset(), {}, {}, {}))


def instruction(tree: SumTree, goal: Goal, premises: Sequence[int], theorem: Any) -> None:
    """What one instruction does: stated by the tree of a part, which is checked separately."""
    need(goal.kind == "Chained" and not premises, "it is not about an instruction")
    need(isinstance(theorem.get("leaf"), str), "no part is named that shows it")


def tile(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = _step(tree, goal, "tile")
    does, (first, begin) = tree.goals[premises[0]], tree.summed(premises[1])
    need(does.kind == "Chained" and does.parts["model"] == what["model"], "the premise is not about its unit")
    need(first.node == what["start"], "the premise is not about its start")
    unit = tree.units[what["model"]]
    c, d = (unit["formats"][unit["unit"][name]] for name in "cd")
    need(begin.formats is not None and all(holds(c, tree.formats[fmt]) for fmt in begin.formats),
         "the start is not a number of the unit's addend")  # fmt: skip
    need(d in tree.formats, "the unit's results have another format")
    one = Step.read(does.parts["step"])
    (own, fixed), (size, none) = _sides(one.own), _sides(one.size)
    need(not none and set(fixed) <= {ONE}, "an instruction adds more than products")
    own, size = _over_all(own), _over_all(size)
    if any(what["converts"]):
        need(size == times(single("a"), single("b")), "it adds more than products of a and b")
        own, constant = _sides(_of_converted(own, _conversions(tree, what, unit)))
        fixed = add(fixed, times(constant, Fraction(unit["unit"]["length"])))
    known = [{"format": how["format"], "mode": how["mode"]} for how in what["converts"] if how is not None]
    need_lemmas(tree, premises[2:], "RoundingLoses", known)
    before = add(times(begin.error, one.growth), times(begin.size, one.part))
    error = _apart(before, add(own, fixed))
    _follows(goal, [first], tree.numbers(frozenset({tree.formats.index(d)}), error, error, _apart(begin.size, size)))


def _conversions(tree: SumTree, what: Mapping[str, Any], unit: Mapping[str, Any]) -> dict[str, Form]:
    """Bounds of the errors of an element of a and of one of b that are rounded first, in their magnitudes."""
    found: dict[str, Form] = {}
    for name, how in zip("ab", what["converts"], strict=True):
        found[name], own = {}, tree.unit[name]
        if how is not None:
            found[name] = after_rounding(tree, tree.numbers(frozenset({own}), {}, {}, single(name)), how).error
    inputs = [node for node in unit["nodes"] if node["kind"] == "element" and node["operand"] in ELEMENTS]
    need(all(node["subnormals"] == "keep" for node in inputs), "the unit reads what is rounded as zero")
    return found


def _of_converted(own: Form, moves: Mapping[str, Form]) -> Form:
    """What an instruction loses of products of rounded elements, and what the roundings change in the products."""

    def change(factor: Factor) -> Form:
        return add(_itself(factor), _exchanged(moves[factor[0]], lambda _: _itself(factor)))

    a, b = (times(single(other), moves[name]) for name, other in (("a", "b"), ("b", "a")))
    return add(_exchanged(own, change), a, b, times(moves["a"], moves["b"]))


def added(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = _step(tree, goal, "added")
    values, how = what["values"], what["rounding"]
    found = [tree.summed(premise) for premise in premises[: len(values)]]
    need([one.node for one, _ in found] == list(values), "the premises are not about its values")
    need_lemmas(tree, premises[len(values) :], "RoundingLoses", [{"format": how["format"], "mode": how["mode"]}])
    every = [facts for _, facts in found]
    error, size = (_apart(*(getattr(facts, name) for facts in every)) for name in ("error", "size"))
    some = [facts for facts in every if not facts.nothing]
    exact = Facts(error, error, size, grid=grid_of(every), bits=some[0].bits if len(some) == 1 else None)
    _follows(goal, [one for one, _ in found], after_rounding(tree, exact, how))


def iterated(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = _step(tree, goal, "loop")
    (first, begin), (body, facts) = (tree.summed(premise) for premise in premises)
    need((first.node, body.node) == (what["start"], what["body"]), "the premises are not about its start and its body")
    need(len(body.assuming) == 1 and body.parts["growth"] is None, "a round depends on more than the sum so far")
    ((level, formats),) = body.assuming
    need(level == what["level"] and all(own != level for own, _ in first.assuming), "another sum so far is assumed")
    need(all(one.formats is not None and one.formats <= formats for one in (begin, facts)),
         "a sum so far is not a number of the formats assumed")  # fmt: skip
    growth, part, rest = linear(facts.error, level)
    grown, kept, more = linear(facts.size, level)
    (own, fixed), (size, none) = _sides(rest), _sides(more)
    need(growth >= 1 and not grown and kept <= 1, "the sum so far enters a round in another way")
    need(not none and set(fixed) <= {ONE}, "a round adds more than products")
    count, rate = what["count"], first.parts["growth"]
    if count is None:
        need(rate is None, "what is repeated for any K begins with what is repeated")
        rate, powers = growth, G
    else:
        need(type(count) is int and count >= 1, "a loop has a round")
        powers = plain(geometric(growth, count - 1))
    last, every = (add(plain(1), times(powers, factor)) for factor in (growth - 1, growth))
    new = add(times(own, last), times(lifted(size, lifts(own)), times(powers, part)), times(fixed, every))
    old = add(times(begin.error, times(last, growth)), times(begin.size, times(every, part)))
    assert goal.facts is not None
    claimed = goal.facts.low
    need_close(claimed, _apart(old, new))
    known = tree.numbers(facts.formats or frozenset(), claimed, claimed, _apart(begin.size, size))
    need(goal.parts["growth"] == rate and goal.assuming == first.assuming, "it assumes something else, or grows so")
    conclude(goal, known)


def halved(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = _step(tree, goal, "halved")
    leaves, how = what["leaves"], what["rounding"]
    found = [tree.summed(premise) for premise in premises[: len(leaves)]]
    need([one.node for one, _ in found] == list(leaves), "the premises are not about its leaves")
    need_lemmas(tree, premises[len(leaves) :], "RoundingLoses", [{"format": how["format"], "mode": how["mode"]}])
    fmt, assumed = frozenset({how["format"]}), frozenset[Any]().union(*(one.assuming for one, _ in found))
    need(goal.assuming == assumed and {level for level, _ in assumed} <= {START} and len(assumed) <= 1,
         "leaves assume different things of the start")  # fmt: skip
    need(all(one.parts["growth"] is None for one, _ in found), "a leaf is of any number of products")
    grown, kept, fixed, owns, sizes = Fraction(0), Fraction(0), Fraction(0), [], []
    for count, (_, facts) in enumerate(found, 1):
        need(facts.formats is not None and facts.formats <= fmt, "leaves are not numbers of one format")
        growth, part, rest = linear(facts.error, START)
        entered, once, more = linear(facts.size, START)
        (own, constant), (size, none) = _sides(rest), _sides(more)
        need(not entered and once <= 1 and not none and set(constant) <= {ONE}, "the start enters in another way")
        grown, kept = max(grown, growth), max(kept, part)
        fixed = max(fixed, constant.get(ONE, Fraction(0)) / count)
        owns.append(own)
        sizes.append(size)
    error, old = single("error", START), single("size", START)
    both = tree.numbers(fmt, error, error, old)
    one = after_rounding(tree, Facts(error, error, old, grid=both.grid), how)
    rate, part, more = linear(one.error, START)
    last, own, size = add(plain(1), times(G, rate - 1)), most(*owns), most(*sizes)
    start = add(times(error, grown), times(old, kept), own)
    above_ = times(times(add(old, lifted(size, lifts(own))), G), part)
    lost = times(times(last, COUNT), add(plain(fixed), more))
    every = add(times(start, last), above_, lost)
    need(goal.parts["growth"] == rate, "it grows at another rate")
    conclude(goal, tree.numbers(fmt, every, every, add(old, size)))


def of_all_products(tree: SumTree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "sum")
    (total, facts), (first, begin) = tree.summed(premises[0]), tree.enclosed(premises[1])
    need(len(premises) == 2 and first.node == what["start"] and not first.assuming, "it is not about its start")
    need(total.node == tree.sums[what["stage"]], "it is not about the steps of the plan")
    need(total.parts["growth"] in (None, tree.rate), "it grows at another rate")
    known = begin.formats
    need(known is not None and all(level == START for level, _ in total.assuming), "more than its start is assumed")
    for fmt in known or ():
        kept = [any(holds(tree.formats[own], tree.formats[fmt]) for own in formats) for _, formats in total.assuming]
        need(all(kept), "the start is not a number of the format assumed")
    for node in tree.nodes:
        sides = [node[name] for name in ("left", "right", "term") if name in node]
        need(node["kind"] not in ("product", "scale") or sum(map(tree.has_sum, sides)) <= 1, "two sums are multiplied")
    starts: dict[Monomial, Form] = {}
    for name, form in (("error", begin.error), ("size", begin.size)):
        (atom,) = single(name, START)
        starts.update(dict.fromkeys(atom, form))
    error, size = (_exchanged(form, lambda factor: starts.get((factor,), _itself(factor)))
                   for form in (facts.error, facts.size))  # fmt: skip
    need(not goal.assuming, "it assumes something")
    conclude(goal, tree.numbers(facts.formats or frozenset(), error, error, size))


SumTree.rules = {name: RULES[name] for name in AROUND} | {rule.__name__: rule for rule in (
    begun, held, nothing, tile, added, iterated, halved, of_all_products)} | {"chained": instruction}  # fmt: skip
