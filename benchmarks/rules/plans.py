"""Instances of the rules about the sums of plans: of units of small formats, for few products, step by step.

What a step computes is written here from the docstrings of the steps (queries/kernel/questions/steps.py), on random
inputs: a step of a plan has too many inputs for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.enclosures import Deriving, chained_unit
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.meanings import SLACK, Exact, Loops, any_number, carried, enclosed, facts_fail
from benchmarks.rules.numbers import (
    Evaluation,
    Flags,
    Lanes,
    Patterns,
    Unchecked,
    Value,
    exact_sum,
    number,
    rounded,
    zeros,
)
from benchmarks.rules.units import FACTORS, RESULTS, WIDE
from mmaprobe.queries.kernel.bounds.enclosures import CHAIN, Enclosed, Facts
from mmaprobe.queries.kernel.bounds.forms import Factor, Form
from mmaprobe.queries.kernel.bounds.forms import number as any_size
from mmaprobe.queries.kernel.bounds.induction import Carried
from mmaprobe.queries.kernel.bounds.largest import OfLargest
from mmaprobe.queries.kernel.bounds.sums import START, Summed, words_in
from mmaprobe.queries.kernel.bounds.wording import COUNT, GROWTH
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.questions.steps import (
    Added,
    Begin,
    Compensated,
    Halved,
    Loop,
    PlanAt,
    SoFar,
    Step,
    Tile,
    Zero,
    made,
    pair_read,
    recorded,
)
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.engine import Way
from mmaprobe.smtmodel.plans.joins import Add, Compensate, Promote, Through
from mmaprobe.smtmodel.plans.named import (
    after_first,
    in_format,
    in_halves,
    in_multiples,
    in_passes,
    in_runs,
    in_runs_at,
    in_turns,
    interleaved,
    promoted,
)  # fmt: skip
from mmaprobe.smtmodel.plans.partitions import At, Equal, Halves, Interleaved, Runs, Swizzled, Windows
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Join, Parted, Partition, Stage
from mmaprobe.smtmodel.plans.words import PLAIN
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles import oracle

ROWS = 512  # inputs of a step
Number = tuple[Value, Lanes]  # a value, and the exact one


@dataclass
class Feed:
    """The products of a plan, one after another: the patterns of a and b, on every row."""

    plan: Plan
    drawn: np.random.Generator
    taken: list[tuple[Patterns, Patterns]] = field(default_factory=list)
    read: list[dict[str, tuple[Lanes, Format]]] = field(default_factory=list)  # by a unit, of as many
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
    kept: bool = True  # whether exact values are those of what units read

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
                around = dict(self.so_far)
                for _ in range(self.rounds if step.count is None else step.count):
                    self.so_far[step.level] = found
                    found = self.of(step.body, begin)
                self.so_far = around
                return found
            case Halved():
                return self.halved(step, self.levels, step.width << self.levels, begin)
            case Compensated():
                return self.compensated(step, begin)
        raise TypeError(type(step).__name__)

    def tile(self, step: Tile, start: Number) -> Number:
        """One use of a unit, on the next products."""
        unit = step.model.unit
        addend = rounded(start[0], Rounding(unit.c)).patterns
        assert addend is not None
        given, exact = {("c", 0): addend}, dict[tuple[str, int], Lanes]()
        for k in range(unit.length):
            read = dict[str, tuple[Lanes, Format]]()
            for name, node, patterns in zip(("a", "b"), step.read, self.feed.next(), strict=True):
                fmt: Format = getattr(self.feed.plan, name)
                value = number(fmt, patterns)
                if isinstance(node, Round):
                    hows = [one.rounding for one in walk(node) if isinstance(one, Round)]  # inner ones first
                    assert len(list(walk(node))) == 1 + len(hows)  # other words: tests/plans/test_word_bounds.py
                    if not self.kept:
                        exact[name, k] = value.exact
                    for how in hows:
                        value = rounded(value, how)
                    fmt = node.rounding.format
                if fmt != getattr(unit, name):
                    raise Unchecked  # the unit of another plan
                read[name] = np.abs(value.exact), fmt
                self.counts &= ~value.fault & value.finite
                assert value.patterns is not None
                given[name, k] = value.patterns
            del self.feed.read[self.feed.at - 1 :]
            self.feed.read.append(read)
        evaluation = Evaluation({"a": unit.a, "b": unit.b, "c": unit.c}, given, ROWS)
        value = evaluation.value(unit.result, {})
        self.counts &= ~value.fault & value.finite & ~start[0].fault
        return value, _Unconverted(evaluation, {}, start[1], elements=exact).of(unit.result, {})

    def added(self, values: Sequence[Number], rounding: Rounding) -> Number:
        value = rounded(exact_sum([value for value, _ in values]), rounding)
        self.counts &= ~value.fault & value.finite
        return value, np.sum([exact for _, exact in values], axis=0)

    def compensated(self, step: Compensated, begin: Number) -> Number:
        """The parts in turn; what is lost is subtracted exactly, and rounded."""
        count = self.rounds if step.count is None else step.count
        if count < len(step.parts) or not step.parts:
            raise Unchecked  # not every part is added
        total, lost = self.of(step.start, begin), list[Number]()
        how, nothing = step.rounding, np.zeros(ROWS)

        def minus(one: Number, other: Number) -> Number:
            """What has no exact value of its own."""
            return self.added([one, (replace(other[0], exact=-other[0].exact), nothing)], how)[0], nothing

        for place in range(count) if step.by == "kahan" else ():
            part = self.of(step.parts[place % len(step.parts)], begin)
            own = self.added([part, lost[-1]], how) if lost else part
            after = self.added([total, own], how)
            lost.append(minus(own, minus(after, total)))
            total = after
        if step.by == "kahan":
            return total
        for place in range(count):
            own = self.of(step.parts[place % len(step.parts)], begin)
            after = self.added([total, own], step.rounding)
            less = replace(after[0], exact=-after[0].exact)
            lost.append(self.added([(one, np.zeros(ROWS)) for one in (total[0], own[0], less)], step.rounding))
            total = after
        beside, *others = lost
        for other in others:
            beside = self.added([beside, other], step.rounding)
        return self.added([total, beside], step.rounding)

    def halved(self, step: Halved, levels: int, count: int, begin: Number) -> Number:
        """Some products in that many levels at most."""
        if not 1 <= step.width <= len(step.leaves):
            raise Unchecked  # there is no leaf of as many products
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
    read: bool  # of what units read
    largest: bool = False  # of a and b by the largest of all elements, and no sums

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
                found = found * self.others.get((factor.name, factor.offset), 0.0)  # of a start that nothing reads
        for factor in products if self.largest else ():
            every = [self._element(factor, pair) for pair in range(self.feed.at)]
            found = found * np.max([np.zeros(ROWS), *every], axis=0)
        if products and not self.largest:
            own = [prod([self._element(factor, pair) for factor in products], start=np.ones(ROWS))
                   for pair in range(self.feed.at)]  # fmt: skip
            found = found * np.sum(own, axis=0) if own else np.zeros(ROWS)
        return found

    def _element(self, factor: Factor, place: int) -> Lanes:
        plan = self.feed.plan
        if self.read:
            size, fmt = self.feed.read[place][factor.name]
            least = 2.0 ** oracle.FORMATS[fmt.name].emin
            return np.where((size > 0) & (size < least), least, size) if factor.raised else size
        size = np.abs(number(getattr(plan, factor.name), self.feed.taken[place]["ab".index(factor.name)]).exact)
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
        case Compensated():
            return step.count is None or any(map(is_repeated, (step.start, *step.parts)))
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
            off = off * bool(formats)
            own: Number = given, np.where(given.finite, given.exact + off, 0.0)
            run.counts &= given.finite
            others |= {("error", level): np.abs(off), ("size", level): np.abs(own[1])}
            run.so_far[level] = own
            begin = own if level == START else begin
        value, exact = run.of(goal.step, begin)
        yield from facts_fail(
            goal.facts, value, exact, _sizes(run, others, goal.growth, goal.loops, rounds), run.counts
        )


def _sizes(run: Run, others: Mapping[tuple[str, int], Lanes], growth: Fraction | None, loops: int, rounds: int) -> Any:
    rate, more = float(growth or 1), max(0, loops - 1)
    found = sum(rate**k for k in range(rounds - 1)) * rate ** (more * (rounds - 1))
    return Sums(run.feed, others, found, run.kept)


def is_zero(theorem: Theorem) -> bool:
    goal = theorem.goal
    return isinstance(goal, Summed) and goal.facts.is_zero


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


def of_plan(goal: Enclosed, rng: random.Random, largest: bool = False) -> Iterator[str]:
    """A node of a plan, outside of its sums. `largest`: magnitudes of a and b are those of the largest elements."""
    at = goal.unit
    assert isinstance(at, PlanAt)
    if goal.node.free or any(isinstance(part, Element) and part.operand != "c" for part in walk(goal.node)):
        raise Unchecked  # the expression of a plan around its sums reads c alone
    for rounds in (1, 2, 3) if at.length is None else (1,):
        drawn = np.random.default_rng(rng.getrandbits(32))
        feed, counts = Feed(at.plan, drawn), np.ones(ROWS, dtype=bool)
        patterns = feed.patterns(at.plan.c)
        counts &= number(at.plan.c, patterns).finite
        values, exacts = dict[Node, Value](), dict[Node, Lanes]()
        evaluation = _Whole(at, {("c", 0): patterns}, values)
        exact = _WholeExact(evaluation, sums=exacts)
        own = [part for part in walk(goal.node) if isinstance(part, Products)]
        for node in dict.fromkeys((*at.plan.sums, *own)):  # inner ones first
            run = Run(feed, rounds, rounds - 1, counts, {}, bool(goal.assuming))
            feed.at = 0
            begin = evaluation.value(node.start, {}), exact.of(node.start, {})
            counts = counts & ~begin[0].fault & begin[0].finite
            run.counts = counts
            try:
                step = recorded(at.plan, node.stage, at.length)
            except (RuleError, ParameterError):
                raise Unchecked from None  # of no products that the stage takes
            values[node], exacts[node] = run.of(step, begin)
            counts = counts & run.counts
        others = {("exact", 0): np.abs(exact.of(at.plan.result, {})),
                  ("c", 0): np.abs(number(at.plan.c, patterns).exact)}  # fmt: skip
        found = evaluation.value(goal.node, {})
        if at.plan.c.subnormals:
            others["c", 0] = np.maximum(others["c", 0], _least(goal, others["c", 0]))
        sizes = _sizes(Run(feed, rounds, 0, counts, {}, False), others, at.growth, at.loops, rounds)
        sizes.largest = largest
        yield from facts_fail(goal.facts, found, exact.of(goal.node, {}), sizes, counts & ~found.fault & found.finite)


def of_largest(goal: OfLargest, rng: random.Random) -> Iterator[str]:
    """A bound of a plan, of a unit or of a chain of it, in the largest elements."""
    whole = Enclosed(goal.unit, goal.unit.result, (), Facts(goal.form, goal.form, any_size(1 << 200)))
    if isinstance(goal.unit, PlanAt):
        yield from of_plan(whole, rng, largest=True)
    elif goal.count is None:
        yield from enclosed(whole, rng, largest=True)
    else:
        assert isinstance(goal.unit, Unit)
        yield from carried(Carried(goal.unit, goal.count, goal.form), rng, largest=True)


def _least(goal: Enclosed, size: Lanes) -> Lanes:
    """What a subnormal c counts as where its magnitude is raised."""
    forms = [goal.facts.low, goal.facts.high, goal.facts.size, goal.facts.weight]
    raised = any(factor.raised and factor.name == "c" for form in forms if form is not None
                 for atom in form.parts for item in atom for factor in item)  # fmt: skip
    own = oracle.FORMATS[goal.unit.c.name].emin
    return np.where((size > 0) & (size < 2.0**own) & raised, 2.0**own, 0.0)


MEANINGS = {Summed: summed, OfLargest: of_largest}


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
        lambda: promoted(two * period, inner, how), lambda: in_runs(2, inner, how, rng.choice(orders)),
        lambda: interleaved(2, inner, how, rng.choice(orders), period), lambda: in_format(inner, how),
        lambda: in_turns(two * period, inner), lambda: in_passes(2, inner, period),
        lambda: after_first(period, chain, inner),
        lambda: in_halves(rng.choice((1, 2, 2, 3)) * chain.period, chain, how),
        lambda: in_runs_at((period,), inner, how),
        lambda: in_multiples(two * period, inner, tail=chain), lambda: in_multiples(two * period, inner, head=chain),
        *[lambda: _joined(rng, inner, how)] * 3,
    )  # fmt: skip
    return rng.choice(every)()


def _joined(rng: random.Random, inner: Stage, how: Rounding) -> Stage:
    """A partition with a join that is not its usual one."""
    period, two = inner.period, rng.choice((1, 2))
    cuts: list[Partition] = [Runs(two * period), Equal(2), At((period,)), Interleaved(2, period), Swizzled(2, period),
                             Halves(two * period, period), Windows(2 * two * period)]  # fmt: skip
    orders: Any = ("sequential", "pairwise", "backwards")
    by: Way = rng.choice(("neumaier", "kahan"))
    joins: list[Join] = [Through(), Promote(how), Add(how, rng.choice(orders)), Compensate(Rounding(how.format), by)]
    return Parted(rng.choice(cuts), rng.choice(joins), inner)


def some_halves(rng: random.Random, chain: Stage, fmt: Format) -> Stage:
    """Pairwise sums of a chain of one unit, by halves."""
    how = some_rounding(rng, fmt)
    body: Stage = chain if rng.random() < 0.7 else in_format(chain, some_rounding(rng, fmt))
    first: Any = rng.choice(("larger", "smaller"))
    return in_halves(rng.choice((1, 2, 2, 3, 4)), body, how, rng.choice((1, 1, 2)), first)


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
                factor = rng.choice((top, Element("c"), Product(Element("c"), top), Product(top, top)))
                own: list[Node] = [top, Round(Element("c"), some_rounding(rng, unit.c)), factor]
                own.append(Products(stage_of(rng, Chain(model), unit.c), start))  # may repeat other numbers of products
                top = Round(ExactSum(tuple(rng.sample(own, 2))), some_rounding(rng, format_named(rng.choice(WIDE))))
            return Plan(a, unit.b, unit.c, top, convert), model
        except (ParameterError, AssertionError):
            continue


class Composing:
    """Theorems about the steps of one plan."""

    def __init__(
        self, campaign: Campaign, truths: Truths, plan: Plan, model: Model, chain: Theorem | None, rng: random.Random
    ) -> None:
        self.campaign, self.truths, self.plan, self.model, self.rng = campaign, truths, plan, model, rng
        self.chains = {model: (chain, self._from_zero(model))}

    def _from_zero(self, model: Model) -> Theorem | None:
        own = Deriving(self.campaign, self.truths, model.unit, self.rng, chain=True)
        own.mixing, own.zero = False, CHAIN
        top = own.node(model.unit.result, ()) if self.rng.random() < 0.8 else None
        return None if top is None else self.call("from_zero", top)

    def known(self, model: Model) -> tuple[Theorem | None, Theorem | None]:
        """What is known of one instruction, from any addend and from zero: of the plan's unit, and of one that is
        partly filled."""
        if model not in self.chains:
            chain = chain_known(self.campaign, self.truths, model, self.rng)
            self.chains[model] = chain, self._from_zero(model)
        return self.chains[model]

    def call(self, name: str, *arguments: Any) -> Theorem | None:
        return self.campaign.call(name, *arguments)

    def proved(self, *roundings: Rounding | None) -> list[Theorem]:
        goals = dict.fromkeys(RoundingLoses(how.format, how.mode) for how in roundings if how is not None)
        found = [theorem for goal in goals if (theorem := self.truths.theorem(goal)) is not None]
        return found if self.rng.random() < 0.97 else found[1:]

    def other_stage(self) -> Stage:
        """One over the same unit; at times of more halves than are looked at."""
        chain, rng, fmt = Chain(self.model), self.rng, self.model.c
        if rng.random() < 0.1:
            return in_halves(600, chain, some_rounding(rng, fmt))
        while True:
            with suppress(ParameterError):  # of parts that are not joined so
                return rng.choice((some_stage, some_stage, some_halves))(rng, chain, fmt)

    def stage(self, stage: Stage, length: int | None) -> Theorem | None:
        """The steps of a stage, if it has any for this K."""
        try:
            step = recorded(self.plan, stage, length)
        except (RuleError, MmaprobeError):
            return None
        narrow = self.rng.random() < 0.1
        given = format_named(self.rng.choice(FACTORS)) if narrow else stage.accumulator
        zero = stage in [product.stage for product in self.plan.sums if isinstance(product.start, Constant)]
        return self.step(step, {START: frozenset() if zero and self.rng.random() < 0.8 else frozenset({given})})

    def step(self, step: Step, formats: dict[int, frozenset[Format]]) -> Theorem | None:
        rng, call = self.rng, self.call
        if rng.random() < 0.03:
            formats = {level: frozenset({format_named(rng.choice(RESULTS))}) for level in formats}
        match step:
            case Begin():
                return call("begun", self.plan, step, formats[START])
            case SoFar():
                return call("held", self.plan, step, formats.get(step.level, formats[START]))
            case Zero():
                return call("nothing", self.plan, step)
            case Tile():
                start = self.step(step.start, formats)
                chain, zero = self.known(step.model if rng.random() < 0.95 else self.model)
                if start is None or chain is None:
                    return None
                return call("tile", step, zero if zero and (is_zero(start) or rng.random() < 0.1) else chain, start)
            case Added():
                values = [self.step(value, formats) for value in step.values]
                every = [value for value in values if value is not None]
                return None if len(every) < len(values) else call("added", step, every, self.proved(step.rounding))
            case Halved():
                leaves = [self.step(leaf, formats) for leaf in step.leaves]
                every = [leaf for leaf in leaves if leaf is not None]
                return None if len(every) < len(leaves) else call("halved", step, every, self.proved(step.rounding))
            case Compensated():
                start, parts = self.step(step.start, formats), [self.step(part, formats) for part in step.parts]
                every = [part for part in parts if part is not None]
                if start is None or len(every) < len(parts):
                    return None
                return call("compensated", step, start, every, self.proved(step.rounding))
            case Loop():
                start = self.step(step.start, formats)
                both = frozenset({self.model.c, self.model.d})
                body = self.step(step.body, {**formats, step.level: both})
                if start is None or body is None:
                    return None
                zero = None
                if is_zero(start) or rng.random() < 0.1:
                    zero = self.step(step.body, {**formats, step.level: frozenset()})
                return call("iterated", step, start, body, zero)
        return None


Made = tuple[Plan, Model, Theorem | None]


def chained_plan(campaign: Campaign, truths: Truths, rng: random.Random) -> Made:
    """A plan with its unit, and what is known of a chain of this one, mostly something."""
    for _ in range(6):
        plan, model = some_plan(rng, rng.choice((some_stage, some_halves)))
        chain = chain_known(campaign, truths, model, rng)
        if chain is not None:
            break
    return plan, model, chain


def chain_known(campaign: Campaign, truths: Truths, model: Model, rng: random.Random) -> Theorem | None:
    own = Deriving(campaign, truths, model.unit, rng, chain=True)
    own.mixing = False
    top = own.node(model.unit.result, ())
    return None if top is None else campaign.call("chained", top)


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The steps of a random plan, for a given K (at times one that fills no tile) and for any; then the result."""
    plan, model, chain = chained_plan(campaign, truths, rng)
    period = plan.sums[0].stage.period
    for length in (None, period * rng.choice((1, 2)) - rng.choice((0, 0, 1)) * (period > 1)):
        composing = Composing(campaign, truths, plan, model, chain, rng)
        totals = {stage: composing.stage(stage, length) for stage in dict.fromkeys(one.stage for one in plan.sums)}
        found = {stage: total for stage, total in totals.items() if total is not None}
        if len(found) == len(totals):
            goals: list[Any] = [total.goal for total in found.values()]
            growth = max(goal.growth or Fraction(1) for goal in goals)
            _finished(composing, PlanAt(plan, length, growth, max(1, *(goal.loops for goal in goals))), found)


def steps(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Steps of all kinds, of one unit: also such as no stage makes."""
    plan, model, chain = chained_plan(campaign, truths, rng)
    own = Composing(campaign, truths, plan, model, chain, rng)
    for _ in range(6):
        own.step(some_step(rng, plan, model, 2), {START: frozenset({model.c})})
    for _ in range(6):
        own.step(some_halved(rng, plan, model), {START: frozenset({model.c})})


def some_step(rng: random.Random, plan: Plan, model: Model, depth: int) -> Step:
    """Levels of loops are counted from the inner ones; a sum so far is of one of them, or of none."""
    if not depth:
        return made(SoFar, rng.choice((1, 2))) if rng.random() < 0.5 else made(rng.choice((Begin, Begin, Zero)))
    inner, kind = some_step(rng, plan, model, depth - 1), rng.random()
    if kind < 0.35:
        return made(Tile, model, pair_read(plan, model, PLAIN), inner)
    other = some_step(rng, plan, model, depth - 1)
    if kind > 0.85:
        parts = [made(Tile, model, pair_read(plan, model, PLAIN), made(Zero)), other]
        how = rng.choice((Rounding(model.c), Rounding(model.c, "nearest_away"), some_rounding(rng, model.c)))
        own, by = tuple(parts[: rng.choice((1, 1, 2))]), rng.choice(("neumaier", "kahan"))
        return made(Compensated, rng.choice((None, None, 0, 1, 2, 3)), inner, own, how, by)
    if kind < 0.65:
        return made(Added, (inner, other)[: rng.choice((1, 2, 2))], some_rounding(rng, model.c))
    body: Step = made(Tile, model, pair_read(plan, model, PLAIN), made(SoFar, depth))
    if rng.random() < 0.6:
        body = some_step(rng, plan, model, rng.choice((depth - 1, depth)))
    return made(Loop, depth, rng.choice((None, None, 0, 1, 2, 3)), other, body)


def some_halved(rng: random.Random, plan: Plan, model: Model) -> Step:
    """Halves of one or two products, mostly added in tiles from what the sum starts from."""
    leaves, how = list[Step](), some_rounding(rng, model.c)
    fmt = model.c if rng.random() < 0.9 else format_named(rng.choice(RESULTS))
    for count in range(1, rng.choice((2, 3))):
        leaf: Step = made(Begin) if rng.random() < 0.8 else some_step(rng, plan, model, 1)
        for _ in range(-(-count // model.length)):
            leaf = made(Tile, model, pair_read(plan, model, PLAIN), leaf)
        leaves.append(made(Added, (leaf,), how) if rng.random() < 0.2 else leaf)
    return made(Halved, 1, some_rounding(rng, fmt), tuple(leaves))


def _finished(own: Composing, at: PlanAt, totals: Mapping[Stage, Theorem]) -> None:
    """From the sums of all products to the result."""
    rng, call, plan = own.rng, own.call, own.plan
    lemmas = own.proved(*(word.rounding for word in words_in(plan)))

    def node(part: Node) -> Theorem | None:
        match part:
            case Element():
                return call("element", at, part)
            case Constant():
                return call("constant", at, part)
            case Products():
                start, total = node(part.start), totals[part.stage]
                if start is None:
                    return None
                if rng.random() < 0.1:
                    call("of_all_products", PlanAt(plan, (at.length or 2) + 1, at.growth), part, total, start, lemmas)
                if rng.random() < 0.3:  # a sum that is none of the plan's
                    stage = own.other_stage()
                    other = own.stage(stage, at.length) or total
                    call("of_all_products", at, Products(stage, part.start), other, start, lemmas)
                return call("of_all_products", at, part, total, start, lemmas)
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
        call("rejoined", found)
        call("of_largest", call("whole", found) or found)
        if rng.random() < 0.1:
            call("chained", found)
