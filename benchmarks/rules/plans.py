"""Instances of the rules about the sums of plans: of units of small formats, for few products, step by step.

What a step computes is written here from the docstrings of the steps (queries/kernel/steps.py), on random inputs: a
step of a plan has too many inputs for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.enclosures import Deriving, chained_unit
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.meanings import SLACK, Exact, Loops, any_number, facts_fail
from benchmarks.rules.numbers import Evaluation, Flags, Lanes, Patterns, Value, exact_sum, number, rounded, zeros
from benchmarks.rules.units import RESULTS, WIDE
from mmaprobe.queries.kernel.enclosures import Enclosed
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.forms import Factor, Form
from mmaprobe.queries.kernel.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.steps import Added, Begin, Halved, Loop, PlanAt, SoFar, Step, Tile, Zero, recorded
from mmaprobe.queries.kernel.sums import START, Summed
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.kernel.wording import COUNT, GROWTH
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import (
    Chain,
    First,
    Halves,
    Interleaved,
    Promoted,
    Rounded,
    Split,
    Stage,
    Swizzled,
    Turns,
    Uneven,
    Whole,
)
from tests import oracle

ROWS = 512  # inputs of a step
Number = tuple[Value, Lanes]  # a value, and the exact one


@dataclass
class Feed:
    """The products of a plan, one after another: the patterns of a and b, on every row."""

    plan: Plan
    drawn: np.random.Generator
    taken: list[tuple[Patterns, Patterns]] = field(default_factory=list)
    at: int = 0

    def next(self) -> tuple[Patterns, Patterns]:
        if self.at == len(self.taken):
            self.taken.append(tuple(self.patterns(fmt) for fmt in (self.plan.a, self.plan.b)))  # type: ignore[arg-type]
        self.at += 1
        return self.taken[self.at - 1]

    def patterns(self, fmt: Format) -> Patterns:
        """Mostly numbers of one size, as otherwise few sums overflow nowhere."""
        found = self.drawn.integers(0, 1 << fmt.width, ROWS).astype(np.uint64)
        return np.where(self.drawn.random(ROWS) < 0.25, np.uint64(0), found)


@dataclass
class Run:
    """A step carried out. `rounds`: of loops without a count; `levels`: of halves. `counts`: where nothing
    overflows."""

    feed: Feed
    rounds: int
    levels: int
    counts: Flags
    so_far: dict[int, Number]

    def of(self, step: Step, begin: Number) -> Number:
        match step:
            case Begin():
                return begin
            case Zero():
                return zeros(ROWS, False), np.zeros(ROWS)
            case SoFar():
                return self.so_far[step.level]
            case Tile():
                return self.tile(step, self.of(step.start, begin))
            case Added():
                return self.added([self.of(value, begin) for value in step.values], step.rounding)
            case Loop():
                found = self.of(step.start, begin)
                for _ in range(self.rounds if step.count is None else step.count):
                    self.so_far[step.level] = found
                    found = self.of(step.body, begin)
                del self.so_far[step.level]
                return found
            case Halved():
                return self.halved(step, self.levels, step.width << self.levels, begin)
        raise TypeError(type(step).__name__)

    def tile(self, step: Tile, start: Number) -> Number:
        """One use of a unit, on the next products."""
        unit = step.model.unit
        addend = rounded(start[0], Rounding(unit.c)).patterns
        assert addend is not None
        given, exact = {("c", 0): addend}, dict[tuple[str, int], Lanes]()
        for k in range(unit.length):
            for name, how, patterns in zip(("a", "b"), step.converts, self.feed.next(), strict=True):
                fmt: Format = getattr(self.feed.plan, name)
                value = number(fmt, patterns)
                if how is not None:
                    exact[name, k] = value.exact
                    value = rounded(value, how)
                self.counts &= ~value.fault & value.finite
                assert value.patterns is not None
                given[name, k] = value.patterns
        evaluation = Evaluation({"a": unit.a, "b": unit.b, "c": unit.c}, given, ROWS)
        value = evaluation.value(unit.result, {})
        self.counts &= ~value.fault & value.finite & ~start[0].fault
        return value, _Unconverted(evaluation, {}, start[1], elements=exact).of(unit.result, {})

    def added(self, values: Sequence[Number], rounding: Rounding) -> Number:
        value = rounded(exact_sum([value for value, _ in values]), rounding)
        self.counts &= ~value.fault & value.finite
        return value, np.sum([exact for _, exact in values], axis=0)

    def halved(self, step: Halved, levels: int, count: int, begin: Number) -> Number:
        """Some products in that many levels at most."""
        if levels == 0 or count <= 1:
            return self.of(step.leaves[min(count, len(step.leaves)) - 1], begin)
        half = count // 2
        left = self.halved(step, levels - 1, half, begin)
        right = self.halved(step, levels - 1, count - half, (zeros(ROWS, False), np.zeros(ROWS)))
        return self.added([left, right], step.rounding)


@dataclass
class _Unconverted(Exact):
    """Exact values of a unit whose elements were rounded before: of them as they were."""

    elements: Mapping[tuple[str, int], Lanes] = field(default_factory=dict)

    def _of(self, node: Node, loops: Loops) -> Lanes:
        if isinstance(node, Element) and node.operand in ("a", "b"):
            index = node.index
            place = 0 if index is None else index.offset + sum(by * loops[level][0] for level, by in index.factors)
            if (node.operand, place) in self.elements:
                return self.elements[node.operand, place]
        return super()._of(node, loops)


@dataclass
class Sums:
    """Magnitudes of sums: `a` times `b` is that over all products that were taken."""

    feed: Feed
    others: Mapping[tuple[str, int], Lanes]
    growth: float

    def of(self, form: Form) -> Lanes:
        found = np.zeros(ROWS)
        for atom, value in form.parts.items():
            found = found + float(value) * np.max([self._monomial(item) for item in atom], axis=0)
        return found * (1 + SLACK)

    def _monomial(self, item: Sequence[Factor]) -> Lanes:
        products = [factor for factor in item if factor.name in ("a", "b")]
        found = np.ones(ROWS)
        for factor in item:
            if factor.name == GROWTH:
                found = found * self.growth
            elif factor.name == COUNT:
                found = found * self.feed.at
            elif factor.name not in ("a", "b"):
                found = found * self.others[factor.name, factor.offset]
        if products:
            own = [prod([self._element(factor, pair) for factor in products], start=np.ones(ROWS))
                   for pair in self.feed.taken[: self.feed.at]]  # fmt: skip
            found = found * np.sum(own, axis=0) if own else np.zeros(ROWS)
        return found

    def _element(self, factor: Factor, pair: tuple[Patterns, Patterns]) -> Lanes:
        plan = self.feed.plan
        size = np.abs(number(getattr(plan, factor.name), pair["ab".index(factor.name)]).exact)
        how = {"a": plan.convert_a, "b": plan.convert_b}[factor.name]
        formats = [getattr(plan, factor.name), *([] if how is None else [how.format])]
        least = 2.0 ** max(oracle.FORMATS[fmt.name].emin for fmt in formats)
        return np.where((size > 0) & (size < least), least, size) if factor.raised else size


def is_repeated(step: Step) -> bool:
    """Whether it takes any number of products."""
    match step:
        case Halved():
            return True
        case Loop():
            return step.count is None or is_repeated(step.start) or is_repeated(step.body)
        case Tile():
            return is_repeated(step.start)
        case Added():
            return any(map(is_repeated, step.values))
    return False


def summed(goal: Summed, rng: random.Random) -> Iterator[str]:
    for rounds in (1, 2, 3) if is_repeated(goal.step) else (1,):
        drawn = np.random.default_rng(rng.getrandbits(32))
        run = Run(Feed(goal.plan, drawn), rounds, rounds - 1, np.ones(ROWS, dtype=bool), {})
        others = dict[tuple[str, int], Lanes]()
        assumed = dict(goal.assuming)
        begin: Number = (zeros(ROWS, False), np.zeros(ROWS))
        for level, formats in sorted(assumed.items()):
            given = _any_of(formats, drawn)
            off = drawn.integers(-4, 5, ROWS) * 2.0 ** drawn.integers(-4, 1) * (drawn.random(ROWS) < 0.6)
            own: Number = given, np.where(given.finite, given.exact + off, 0.0)
            run.counts &= given.finite
            others |= {("error", level): np.abs(off), ("size", level): np.abs(own[1])}
            if level == START:
                begin = own
            else:
                run.so_far[level] = own
        value, exact = run.of(goal.step, begin)
        yield from facts_fail(goal.facts, value, exact, _sizes(run, others, goal.growth, rounds), run.counts)


def _sizes(run: Run, others: Mapping[tuple[str, int], Lanes], growth: Fraction | None, rounds: int) -> Any:
    return Sums(run.feed, others, sum(float(growth or 1) ** k for k in range(rounds - 1)))


def _any_of(formats: frozenset[Format], drawn: np.random.Generator) -> Value:
    own = sorted(formats, key=str)
    if not own:
        return zeros(ROWS, False)
    kinds = drawn.integers(0, len(own), ROWS)
    patterns = drawn.integers(0, [1 << fmt.width for fmt in own], (ROWS, len(own)))[np.arange(ROWS), kinds]
    return any_number(own, np.stack([kinds, patterns]))


class _Whole(Evaluation):
    """The expression of a plan around its sums, which are given."""

    def __init__(self, at: PlanAt, inputs: Any, sums: Mapping[Node, Value]) -> None:
        super().__init__({"c": at.plan.c}, inputs, ROWS)
        self.sums = sums

    def compute(self, node: Node, loops: Loops) -> Value:
        return self.sums[node] if node in self.sums else super().compute(node, loops)


@dataclass
class _WholeExact(Exact):
    sums: Mapping[Node, Lanes] = field(default_factory=dict)

    def _of(self, node: Node, loops: Loops) -> Lanes:
        return self.sums[node] if node in self.sums else super()._of(node, loops)


def of_plan(goal: Enclosed, rng: random.Random) -> Iterator[str]:
    """A node of a plan, outside of its sums."""
    at = goal.unit
    assert isinstance(at, PlanAt)
    for rounds in (1, 2, 3) if at.length is None else (1,):
        drawn = np.random.default_rng(rng.getrandbits(32))
        feed, counts = Feed(at.plan, drawn), np.ones(ROWS, dtype=bool)
        patterns = feed.patterns(at.plan.c)
        counts &= number(at.plan.c, patterns).finite
        values, exacts = dict[Node, Value](), dict[Node, Lanes]()
        evaluation = _Whole(at, {("c", 0): patterns}, values)
        exact = _WholeExact(evaluation, sums=exacts)
        for node in at.plan.sums:  # inner ones first
            run = Run(feed, rounds, rounds - 1, counts, {})
            feed.at = 0
            begin = evaluation.value(node.start, {}), exact.of(node.start, {})
            counts = counts & ~begin[0].fault & begin[0].finite
            run.counts = counts
            values[node], exacts[node] = run.of(recorded(at.plan, node.stage, at.length), begin)
            counts = counts & run.counts
        others = {("exact", 0): np.abs(exact.of(at.plan.result, {})),
                  ("c", 0): np.abs(number(at.plan.c, patterns).exact)}  # fmt: skip
        found = evaluation.value(goal.node, {})
        if at.plan.c.subnormals:
            others["c", 0] = np.maximum(others["c", 0], _least(goal, others["c", 0]))
        sizes = _sizes(Run(feed, rounds, 0, counts, {}), others, at.growth, rounds)
        yield from facts_fail(goal.facts, found, exact.of(goal.node, {}), sizes, counts & ~found.fault & found.finite)


def _least(goal: Enclosed, size: Lanes) -> Lanes:
    """What a subnormal c counts as where its magnitude is raised."""
    forms = [goal.facts.low, goal.facts.high, goal.facts.size, goal.facts.weight]
    raised = any(factor.raised and factor.name == "c" for form in forms if form is not None
                 for atom in form.parts for item in atom for factor in item)  # fmt: skip
    own = oracle.FORMATS[goal.unit.c.name].emin
    return np.where((size > 0) & (size < 2.0**own) & raised, 2.0**own, 0.0)


MEANINGS = {Summed: summed}


# -- instances


def some_rounding(rng: random.Random, fmt: Format) -> Rounding:
    modes: Any = ("nearest_even", "nearest_even", "toward_zero", "up", "to_odd")
    flush: Any = ("keep", "keep", "keep", "flush_after")
    return Rounding(fmt, rng.choice(modes), "ieee", rng.choice(flush), "ieee")


def some_stage(rng: random.Random, chain: Stage, fmt: Format, depth: int = 2) -> Stage:
    """A stage over chains of one unit, whose results have the format of its addend."""
    if depth == 0 or rng.random() < 0.25:
        return chain
    inner, how, two = some_stage(rng, chain, fmt, depth - 1), some_rounding(rng, fmt), rng.choice((1, 2))
    period = inner.period
    orders: Any = ("sequential", "pairwise", "backwards")
    every: Any = (
        lambda: Promoted(two * period, inner, how), lambda: Split(2, inner, how, rng.choice(orders)),
        lambda: Interleaved(2, inner, how, rng.choice(orders), period), lambda: Rounded(inner, how),
        lambda: Turns(two * period, inner), lambda: Swizzled(2, inner, period), lambda: First(period, chain, inner),
        lambda: Halves(rng.choice((1, 2, 2, 3)) * chain.period, chain, how), lambda: Uneven((period,), inner, how),
        lambda: Whole(two * period, inner, tail=chain), lambda: Whole(two * period, inner, head=chain),
    )  # fmt: skip
    return rng.choice(every)()


def some_halves(rng: random.Random, chain: Stage, fmt: Format) -> Stage:
    """Pairwise sums of a chain of one unit, by halves."""
    how = some_rounding(rng, fmt)
    body: Stage = chain if rng.random() < 0.7 else Rounded(chain, some_rounding(rng, fmt))
    first: Any = rng.choice(("larger", "smaller"))
    return Halves(rng.choice((1, 2, 2, 3, 4)), body, how, rng.choice((1, 1, 2)), first)


def some_plan(
    rng: random.Random, stage_of: Callable[[random.Random, Stage, Format], Stage] = some_stage
) -> tuple[Plan, Model]:
    while True:
        unit = chained_unit(rng)
        fmt = unit.d
        if fmt != unit.c and rng.random() < 0.9:
            continue
        model = Model("unit", unit)
        try:
            stage = stage_of(rng, Chain(model), unit.c)
            start: Node = Element("c") if rng.random() < 0.5 else Constant()
            convert = None
            a = unit.a
            if rng.random() < 0.2:
                a = format_named(rng.choice(("e2m2_none", "e3m2", "e1m3_none")))
                convert = some_rounding(rng, unit.a)
            top: Node = Products(stage, start)
            if rng.random() < 0.4:
                factor = rng.choice((top, Element("c"), Product(Element("c"), top)))
                own: list[Node] = [top, Round(Element("c"), some_rounding(rng, unit.c)), factor]
                top = Round(ExactSum(tuple(rng.sample(own, 2))), some_rounding(rng, format_named(rng.choice(WIDE))))
            return Plan(a, unit.b, unit.c, top, convert), model
        except (ParameterError, AssertionError):
            continue


class Composing:
    """Theorems about the steps of one plan."""

    def __init__(self, campaign: Campaign, truths: Truths, plan: Plan, chain: Theorem | None, rng: random.Random):
        self.campaign, self.truths, self.plan, self.chain, self.rng = campaign, truths, plan, chain, rng
        self.known: list[Theorem] = []

    def call(self, name: str, *arguments: Any) -> Theorem | None:
        self.wrong(name, list(arguments))
        found = self.campaign.call(name, *arguments)
        self.known += [] if found is None else [found]
        return found

    def wrong(self, name: str, arguments: list[Any]) -> None:
        """Calls with one premise that is about something else."""
        rng = self.rng
        places = [place for place, given in enumerate(arguments) if isinstance(given, Theorem | list) and given]
        for _ in range(2 if places and self.known else 0):
            given, place, other = list(arguments), rng.choice(places), rng.choice(self.known)
            if isinstance(given[place], list):
                inner = list(given[place])
                inner[rng.randrange(len(inner))] = other
                given[place] = inner
            else:
                given[place] = other
            self.campaign.call(name, *given)

    def proved(self, *roundings: Rounding | None) -> list[Theorem]:
        goals = dict.fromkeys(RoundingLoses(how.format, how.mode) for how in roundings if how is not None)
        found = [theorem for goal in goals if (theorem := self.truths.theorem(goal)) is not None]
        return found if self.rng.random() < 0.97 else found[1:]

    def step(self, step: Step, formats: dict[int, frozenset[Format]]) -> Theorem | None:
        rng, call = self.rng, self.call
        if rng.random() < 0.03:
            formats = {level: frozenset({format_named(rng.choice(RESULTS))}) for level in formats}
        match step:
            case Begin():
                return call("begun", self.plan, step, formats[START])
            case SoFar():
                return call("held", self.plan, step, formats[step.level])
            case Zero():
                return call("nothing", self.plan, step)
            case Tile():
                start = self.step(step.start, formats)
                if start is None or self.chain is None:
                    return None
                return call("tile", step, self.chain, self.other(start), self.proved(*step.converts))
            case Added():
                values = [self.step(value, formats) for value in step.values]
                every = [self.other(value) for value in values if value is not None]
                return None if len(every) < len(values) else call("added", step, every, self.proved(step.rounding))
            case Halved():
                leaves = [self.step(leaf, formats) for leaf in step.leaves]
                every = [self.other(leaf) for leaf in leaves if leaf is not None]
                return None if len(every) < len(leaves) else call("halved", step, every, self.proved(step.rounding))
            case Loop():
                start = self.step(step.start, formats)
                both = frozenset({self.plan.sums[0].stage.accumulator, self.plan.sums[0].stage.d})
                body = self.step(step.body, {**formats, step.level: both})
                if start is None or body is None:
                    return None
                return call("iterated", step, self.other(start), self.other(body))
        return None

    def other(self, theorem: Theorem) -> Theorem:
        """The theorem; at times one about another step."""
        return self.rng.choice(self.known) if self.rng.random() < 0.03 else theorem


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The steps of a random plan, for a given K and for any; then the result."""
    _composed(campaign, truths, some_plan(rng), rng)


def halves(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Plans that add up by halves."""
    _composed(campaign, truths, some_plan(rng, some_halves), rng)


def _composed(campaign: Campaign, truths: Truths, given: tuple[Plan, Model], rng: random.Random) -> None:
    plan, model = given
    own = Deriving(campaign, truths, model.unit, rng, chain=True)
    own.mixing = False
    top = own.node(model.unit.result, ())
    chain = None if top is None else campaign.call("chained", top)
    if chain is None and rng.random() < 0.9:
        return
    stage = plan.sums[0].stage
    for length in (None, stage.period * rng.choice((1, 2))):
        try:
            step = recorded(plan, stage, length)
        except (RuleError, MmaprobeError):
            continue
        composing = Composing(campaign, truths, plan, chain, rng)
        found = composing.step(step, {START: frozenset({stage.accumulator})})
        if found is not None:
            _finished(composing, PlanAt(plan, length, found.goal.growth or Fraction(1)), found)  # type: ignore[attr-defined]


def _finished(own: Composing, at: PlanAt, total: Theorem) -> None:
    """From the sum of all products to the result."""
    rng, call, plan = own.rng, own.call, own.plan

    def node(part: Node) -> Theorem | None:
        match part:
            case Element():
                return call("element", at, part)
            case Constant():
                return call("constant", at, part)
            case Products():
                start = node(part.start)
                if start is None:
                    return None
                if rng.random() < 0.05:
                    call("of_all_products", PlanAt(plan, (at.length or 2) + 1, at.growth), part, total, start)
                return call("of_all_products", at, part, own.other(total), start)
        premises = [node(operand) for operand in part.operands]
        every = [one for one in premises if one is not None]
        if len(every) < len(premises):
            return None
        if isinstance(part, Product):
            return call("product", part, (), every)
        if isinstance(part, ExactSum):
            return call("exact", part, (), every)
        assert isinstance(part, Round)
        return call("rounded", part, (), every, own.proved(part.rounding))

    found = node(plan.result)
    if found is not None:
        call("whole", found)
        if rng.random() < 0.1:
            call("chained", found)
