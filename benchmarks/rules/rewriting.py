"""Instances of the rules of rewriting, and of those that carry a replacement to the whole: on nodes of random units."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.units import ADDENDS, FACTORS, RESULTS, WIDE, Small, small_unit
from mmaprobe.queries.kernel.datapath.ranges import Held, Scope
from mmaprobe.queries.kernel.equality.rewriting import REWRITES, kind_of
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Index,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
    SortedSum,
)
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit


class Plain(Small):
    """Makes expressions to which rules of rewriting often apply: few parameters, loops from +0, sums within sums."""

    def rounding(self, fmt: Any = None) -> Rounding:
        rng = self.rng
        how = super().rounding(format_named(rng.choice(WIDE)) if fmt is None and rng.random() < 0.4 else fmt)
        if rng.random() < 0.6:
            how = replace(how, nan=None, subnormals="keep")
        if rng.random() < 0.3:
            how = replace(how, mode="nearest_even", zero=rng.choice(("ieee", "positive")))
        return how

    def simple(self, level: int | None = None) -> Node:
        """A term: a product or what was made of one, a number, or a zero."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.35:
            return self.product(0, level)
        if kind < 0.5:  # a product held by a format
            term = Product(self.element("a", level), self.element("b", level))
            return Round(term, self.rounding(format_named(rng.choice(WIDE))))
        if kind < 0.65:
            c = self.element("c")
            return Round(c, replace(self.rounding(self.formats["c"]), zero="positive")) if rng.random() < 0.1 else c
        if kind < 0.75:
            zero = Constant(rng.random() < 0.4)
            return Product(zero, Constant(rng.random() < 0.4)) if rng.random() < 0.1 else zero
        if kind < 0.85:
            return ExactSum((self.product(0, level), self.element("c")))
        return Round(self.total((self.product(0, level), self.element("c"))), self.rounding())

    def total(self, items: tuple[Node, ...]) -> Node:
        rng = self.rng
        if rng.random() < 0.5:
            return ExactSum(items)
        choose: Any = rng.choice
        mode = choose(("toward_zero", "toward_zero", "nearest_even", "up", "down", "to_odd"))
        carry = rng.choice((None, None, None, 0, 1, 2))
        if carry is not None and any(isinstance(item, ExactSum) for item in items):
            carry = None
        low = rng.choice((None, None, None, rng.randint(-8, 2)))
        fields: dict[str, Any] = {"zeros": low} if rng.random() < 0.5 else {"least": low}
        bits = rng.choice((1, 2, 3, 4, 6, 8, 14))
        if rng.random() < 0.15:
            bits = tuple(rng.randint(1, 8) for _ in items)
        return FusedSum(items, bits, mode, carry_bits=carry, **fields)

    def loop(self) -> Node:
        rng, level = self.rng, self.levels
        self.levels += 1
        start = Constant() if rng.random() < 0.6 else rng.choice((self.element("c"), Constant(True)))
        so_far: Node = Running(level)
        how: Rounding | None = None
        if rng.random() < 0.3:  # which reads the result so far in its own way
            how = self.rounding(format_named(rng.choice(RESULTS)))
            so_far = Round(so_far, replace(how, zero="positive", nan=None) if rng.random() < 0.7 else how)
        items = [so_far, self.product(0, level), *(self.simple(level) for _ in range(rng.choice((0, 0, 1))))]
        rng.shuffle(items)
        return Repeat(level, self.places(), start, Round(self.total(tuple(items)), how or self.rounding()))

    def top(self) -> Node:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.35:
            node = self.loop()
        else:
            items = [self.simple() for _ in range(rng.choice((1, 2, 2, 3)))]
            if rng.random() < 0.2:
                level = self.levels
                self.levels += 1
                items.append(Each(level, self.places(), self.product(0, level)))
            if rng.random() < 0.2:
                items.append(self.loop())
            node = Round(self.total(tuple(items)), self.rounding())
        if kind > 0.7:
            if isinstance(node, Round) and rng.random() < 0.4:  # one that the next makes needless, perhaps
                wide = format_named(rng.choice(WIDE))
                node = replace(node, rounding=replace(self.rounding(wide), mode="to_odd", nan=None))
            elif rng.random() < 0.2:  # one that its number needs not, perhaps
                held = format_named(rng.choice(("e3m3_ieee", "e4m3_ieee")))
                node = Round(rng.choice((self.product(0), ExactSum((self.simple(),)))), self.rounding(held))
            inner = node.rounding if isinstance(node, Round) else None
            if inner is not None and rng.random() < 0.1:  # with +0, rounded again
                return Round(ExactSum((node, Constant())), replace(self.rounding(inner.format), nan=inner.nan))
            fmt = inner.format if inner is not None and rng.random() < 0.7 else None
            node = Round(Cut(node, rng.randint(2, 5)) if rng.random() < 0.1 else node, self.rounding(fmt))
        return node


def plain_unit(rng: random.Random) -> Unit:
    while True:
        a, b, c = (format_named(rng.choice(names)) for names in (FACTORS, FACTORS, (*ADDENDS, *RESULTS, *WIDE)))
        length = rng.choice((1, 2, 2, 3))
        maker = Plain(rng, length, {"a": a, "b": b, "c": c}, None, gates=0.3 if rng.random() < 0.3 else 0.0)
        try:
            return Unit(a, b, c, length, maker.top())
        except ParameterError:
            continue


def scaled_unit(rng: random.Random) -> Unit:
    """A unit that adds an exact sum times scale factors to others, which `plain_unit` never does."""
    while True:
        a, b, c = (format_named(rng.choice(names)) for names in (FACTORS, FACTORS, RESULTS))
        scale = format_named(rng.choice(("ue1m1_none", "ue2m1_none", "ue1m1_all_ones", "ue2m1_ieee")))
        x, y = Element("a", Index(0)), Element("b", Index(0))
        terms: list[Node] = [x, y, Element("c"), Product(x, y)]
        inner = Scale(ExactSum(tuple(rng.sample(terms, rng.randint(1, 3)))), *map(_factor, ("scale_a", "scale_b")))
        total = inner if rng.random() < 0.2 else ExactSum((inner, *rng.sample(terms, rng.randint(0, 1))))
        try:
            return Unit(a, b, c, 1, Round(total, Rounding(format_named(rng.choice(RESULTS)))), scale, 1)
        except ParameterError:
            continue


def _factor(name: str) -> Element:
    return Element(name, Index(0))


Placed = tuple[Scope, Node]


def scoped(scope: Scope, node: Node, rng: random.Random) -> Iterator[Placed]:
    """A node and all below it, with what is known there of results so far."""
    yield scope, node
    for operand in node.operands:
        inner = scope
        if isinstance(node, Repeat) and operand is node.body:
            held = kind_of(scope, node)
            if held is None or rng.random() < 0.03:
                held = Held(frozenset((format_named(rng.choice(RESULTS)),)))
            inner = scope.within(node.level, held)
        yield from scoped(inner, operand, rng)


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Every rule of rewriting on every node of a random unit; then the rules that carry what they give further."""
    unit = rng.choices((plain_unit, small_unit, scaled_unit), (16, 4, 1))[0](rng)
    scope = Scope.of(unit)
    known: list[Theorem] = []
    seen = set[Placed]()
    for place, node in scoped(scope, unit.result, rng):
        if (place, node) in seen:
            continue
        seen.add((place, node))
        for name in REWRITES:
            theorem = rewritten(campaign, truths, place, node, name, rng)
            if theorem is not None:
                known.append(theorem)
    for _ in range(2):
        known += _carried(campaign, truths, unit, sorted(seen, key=str), known, rng)
    _chosen(campaign, known, unit, rng)


def sorted_unit(rng: random.Random) -> Unit:
    """A unit that adds three terms in the order of their exponents, about the bits at which nothing is lost."""
    a, b, c, d = (format_named(rng.choice(names)) for names in (FACTORS, FACTORS, ADDENDS, RESULTS))
    maker = Plain(rng, 2, {"a": a, "b": b, "c": c}, None)
    terms = [*(Product(maker.element("a"), maker.element("b")) for _ in range(2)), maker.element("c")]
    first = rng.randint(4, 14)
    how = maker.rounding(d)
    return Unit(a, b, c, 2, Round(SortedSum(tuple(rng.sample(terms, 3)), (first, first + rng.randint(0, 3))), how))


def rectified_unit(rng: random.Random) -> Unit:
    """A unit that rectifies a rounded number, and rounds it again."""
    while True:
        a, b, c = (format_named(rng.choice(names)) for names in (FACTORS, FACTORS, ADDENDS))
        maker = Plain(rng, 1, {"a": a, "b": b, "c": c}, None)
        nan: Any = rng.choice(("keep", "keep", "zero"))
        zero: Any = rng.choice(("positive", "positive", "keep"))
        try:
            term = maker.simple()
            first = Round(Relu(term) if rng.random() < 0.3 else term, maker.rounding())
            return Unit(a, b, c, 1, Round(Relu(first, nan, zero), maker.rounding()))
        except ParameterError:
            continue


#: rule of rewriting -> what makes units to which it applies, where units of other rules hardly do
MAKERS: dict[str, Callable[[random.Random], Unit]] = {
    "scaled_sum": scaled_unit, "lossless_sorted": sorted_unit, "rectified": rectified_unit,
}  # fmt: skip


def focused(campaign: Campaign, truths: Truths, rng: random.Random, tries: int = 40) -> None:
    """For each rule of rewriting a unit to which it applies, where one is found."""
    for name, rule in REWRITES.items():
        for _ in range(tries):
            unit = MAKERS.get(getattr(rule, "__name__", ""), plain_unit)(rng)
            every = list(scoped(Scope.of(unit), unit.result, rng))
            useful = [one for one in every if rule(*one) is not None]
            if useful:
                rewritten(campaign, truths, *rng.choice(useful), name, rng)
                break


def rewritten(
    campaign: Campaign, truths: Truths, scope: Scope, node: Node, name: str, rng: random.Random
) -> Theorem | None:
    """What a rule of rewriting gives with all its lemmas; it is refused if one of them is false."""
    own = campaign.tally(REWRITES[name].__name__)
    found = campaign.rewrite(name, scope, node)
    if found is None:
        if rng.random() < 0.002:
            campaign.call("rewritten", scope, node, name, ())
        return None
    lemmas = [truths.theorem(lemma) for lemma in found.lemmas]
    proved = [lemma for lemma in lemmas if lemma is not None]
    if rng.random() < 0.03 and proved:
        campaign.call("rewritten", scope, node, name, proved[1:])
        campaign.call("rewritten", scope, node, name, [*proved, proved[0]])
    if len(proved) < len(lemmas):
        false = lemmas.index(None)
        own.refused[type(found.lemmas[false]).__name__, 0] += 1
        campaign.call("rewritten", scope, node, name, proved)
        return None
    before = len(campaign.tally("rewritten").false)
    theorem = campaign.call("rewritten", scope, node, name, proved)
    if theorem is not None:
        own.theorems += 1
        own.false += [f"{text} [{name}]" for text in campaign.tally("rewritten").false[before:]]
    return theorem


def _carried(
    campaign: Campaign, truths: Truths, unit: Unit, seen: Sequence[Placed], known: Sequence[Theorem], rng: random.Random
) -> list[Theorem]:
    """The theorems of nodes whose operands compute alike, and of loops whose bodies do."""
    found: list[Theorem | None] = []
    by_node: dict[Placed, list[Theorem]] = {}
    for theorem in known:
        goal: Any = theorem.goal
        by_node.setdefault((goal.scope, goal.node), []).append(theorem)
    for scope, node in seen:
        if isinstance(node, Repeat):
            for (place, part), theorems in by_node.items():
                if part == node.body and place.held[:-1] == scope.held:
                    body = rng.choice(theorems)
                    found.append(campaign.call("looped", scope, node, body))
            if known and rng.random() < 0.1:
                found.append(campaign.call("looped", scope, node, rng.choice(known)))
        given = [rng.choice(own) if (own := by_node.get((scope, operand), [])) else None for operand in node.operands]
        if any(one is not None for one in given):
            found.append(campaign.call("congruent", scope, node, given))
            if rng.random() < 0.05:
                strange = [rng.choice(known) for _ in given]
                found.append(campaign.call("congruent", scope, node, strange))
                found.append(campaign.call("congruent", scope, Relu(node), [rng.choice(known)]))
    for theorem in rng.sample(list(known), min(6, len(known))):
        goal = theorem.goal
        assert hasattr(goal, "other")
        following = by_node.get((goal.scope, goal.other), [])
        if following or rng.random() < 0.2:
            found.append(campaign.call("followed", theorem, rng.choice(following or list(known))))
        for name in rng.sample(list(REWRITES), 4):  # of what was put in its place
            theorem_ = rewritten(campaign, truths, goal.scope, goal.other, name, rng)
            if theorem_ is not None:
                found.append(campaign.call("followed", theorem, theorem_))
    return [one for one in found if one is not None]


def _chosen(campaign: Campaign, known: Sequence[Theorem], unit: Unit, rng: random.Random) -> None:
    """What follows for the unit's results."""
    top = [theorem for theorem in known if theorem.goal.node == unit.result]  # type: ignore[attr-defined]
    for theorem in [*rng.sample(top, min(3, len(top))), *rng.sample(list(known), min(1, len(known)))]:
        campaign.call("results_alike", unit, theorem)
