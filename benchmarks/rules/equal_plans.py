"""Instances of the rules that two plans agree: of the plans of benchmarks/plan_statements.py, which are of small units.

The truth is that of products of matrices of random bits through both, many of them zeros.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import plan_statements
from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.numbers import Patterns
from mmaprobe.queries.kernel.equality.plan_units import FORMS, AtLength, FormsAgree, Part, Steps, Tails, units_of
from mmaprobe.queries.kernel.equality.plans import PlansAgree
from mmaprobe.queries.kernel.equality.stages import StagesAgree
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Stage, Then

SIDE = 40  # rows and columns of the matrices
MANY = 32  # products of one of them, at most
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12)
Runs = Plan | Model


# -- meanings


def results(sides: Sequence[Runs], fmt: Format, length: int, rng: random.Random, c: str) -> list[Patterns] | None:
    """What each makes of the same matrices of bits; `c`: of any bits, without -0, or +0. None: one takes another K."""
    drawn, one = np.random.default_rng(rng.getrandbits(32)), sides[0]
    shapes = (SIDE, length), (length, SIDE), (SIDE, SIDE)
    a, b, start = (drawn.integers(0, 1 << own.width, shape).astype(np.uint64)
                   for shape, own in zip(shapes, (one.a, one.b, fmt), strict=True))  # fmt: skip
    a[drawn.random(a.shape) < rng.choice((0.0, 0.3, 0.6))] = 0
    start[drawn.random(start.shape) < 0.1] = fmt.sign_bit
    if c != "any":
        start[(start == fmt.sign_bit) | (c == "zero")] = 0
    try:
        return [simulate(a, b, start, side, engine="numpy") for side in sides]
    except ParameterError:
        return None


def unlike(sides: Sequence[Runs], fmt: Format, length: int, rng: random.Random, c: str = "any") -> Iterator[str]:
    """Why two do not give the same bits, or NaN both."""
    found = results(sides, fmt, length, rng, c)
    if found is None:
        return
    one, two = found
    nans = [value & np.uint64(side.d.sign_bit - 1) >= side.d.nan & (side.d.sign_bit - 1)
            for value, side in zip(found, sides, strict=True)]  # fmt: skip
    if ((one != two) & ~(nans[0] & nans[1])).any():
        yield f"they differ at K = {length}"


def multiples_of(number: int) -> Iterator[int]:
    yield from (number * n for n in (1, 2, 3) if number * n <= MANY or n == 1)


def plans_agree(goal: PlansAgree, rng: random.Random) -> Iterator[str]:
    for length in [goal.length] if goal.length else multiples_of(goal.multiples):
        c = "any" if goal.left.addend else "zero"
        yield from unlike((goal.left, goal.right), goal.left.c, length, rng, c)


def summing(plan: Plan, stage: Stage, zero: bool) -> Plan:
    """The plan of one stage alone, from any sum so far."""
    start = Constant() if zero else Element("c")
    return plan.with_result(Products(stage, start), c=stage.accumulator)


def stages_agree(goal: StagesAgree, rng: random.Random) -> Iterator[str]:
    sides = summing(goal.left, goal.one, goal.zero), summing(goal.right, goal.other, goal.zero)
    for length in multiples_of(goal.multiples):
        yield from unlike(sides, sides[0].c, length, rng)


def forms_agree(goal: FormsAgree, rng: random.Random) -> Iterator[str]:
    units = units_of("meaning", goal.left, goal.right, goal.part)
    sides: list[Runs] = [Model(f"side {k}", unit) for k, unit in enumerate(units)]
    c, length = "positive" if goal.positive else "any", units[0].length
    every = [sides, *([(goal.left, goal.right)] if isinstance(goal.part, AtLength) else [])]
    for own in every:
        yield from unlike(own, units[0].c, length, rng, c)
    if goal.positive:
        found = results(sides, units[0].c, length, rng, c)
        if found is not None and (found[0] == units[0].d.sign_bit).any():
            yield "a result is -0"


MEANINGS = {PlansAgree: plans_agree, StagesAgree: stages_agree, FormsAgree: forms_agree}


# -- instances


def two_plans(rng: random.Random) -> tuple[Plan, Plan]:
    """Two plans that are alike in most of what they do."""
    while True:
        number = rng.randrange(1 << 30)
        asked = plan_statements.statement(number, odd=rng.random() < 0.5)
        left, right = asked.left, asked.right
        if rng.random() < 0.5:  # what is left over by tiles
            name = rng.choice(("two", "short", "late", "four"))
            tails = ["", *(f", tail={own}" for own in ("fma", "two", "flush", name))]
            left, right = (f"sum(chain({name}{rng.choice(tails)}), c)" for _ in range(2))
        elif rng.random() < 0.3:
            several = [rng.choice(("fma", "two", "flush", "four", "short")) for _ in range(3)]
            left, right = (f"sum(then({', '.join(rng.choice((one, rng.choice(several))) for one in several)}), +0)"
                           for _ in range(2))  # fmt: skip
        try:
            return plan_statements.plan(left), plan_statements.plan(right)
        except (InputError, ParameterError):
            continue


class Agreeing:
    """Theorems about the stages of two plans."""

    def __init__(self, campaign: Campaign, left: Plan, right: Plan, rng: random.Random) -> None:
        self.campaign, self.left, self.right, self.rng = campaign, left, right, rng
        self.known: list[Theorem] = []

    def call(self, name: str, *arguments: Any) -> Theorem | None:
        found = self.campaign.call(name, *arguments)
        self.known += [] if found is None else [found]
        return found

    def either(self, theorem: Theorem) -> Theorem:
        """The theorem; at times one about something else."""
        return self.rng.choice(self.known) if self.rng.random() < 0.07 else theorem

    def stages(self, one: Stage, other: Stage, depth: int = 3) -> Theorem | None:
        """That two stages agree, as they do the same around others or repeat steps that agree."""
        sides, found = (self.left, self.right), []
        found.append(self.call("same_parts", *sides, one, other, None))
        inner = [getattr(stage, "body", None) for stage in (one, other)]
        if depth and None not in inner:
            bodies = self.stages(*inner, depth - 1)
            if bodies is not None:
                found.append(self.call("same_parts", *sides, one, other, self.either(bodies)))
        if isinstance(one, Then) and isinstance(other, Then):
            bodies = [self.stages(*pair, depth - 1) for pair in zip(one.bodies, other.bodies, strict=False)]
            found.append(
                self.call("same_bodies", *sides, one, other, [self.either(x) for x in bodies if x is not None])
            )
        if found[0] is None or self.rng.random() < 0.7:
            step = self.units(Steps(one, other))
            if step is not None:
                found.append(self.call("same_steps", *sides, one, other, self.either(step)))
        made = [one for one in found if one is not None]
        return self.rng.choice(made) if made else None

    def units(self, part: Part) -> Theorem | None:
        """That the units of a part agree: by their forms, or as they are."""
        found = [self.call("same_forms", self.left, self.right, part, form)
                 for form in self.rng.sample(list(FORMS), self.rng.choice((1, 2, 4)))]  # fmt: skip
        if self.rng.random() < 0.4:
            found.append(self.expressions(part))
        made = [one for one in found if one is not None]
        return self.rng.choice(made) if made else None

    def expressions(self, part: Part) -> Theorem | None:
        try:
            one, other = units_of("instance", self.left, self.right, part)
            return self.campaign.call("one_expression", Problem(Model("one", one), Model("other", other)), check=False)
        except (RuleError, MmaprobeError):
            return None


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The stages of two plans, their sums, and what they are for a few K."""
    left, right = two_plans(rng)
    own = Agreeing(campaign, left, right, rng)
    sums = [own.stages(one.stage, other.stage) for one, other in zip(left.sums, right.sums, strict=False)]
    made = [own.either(one) for one in sums if one is not None]
    own.call("same_sums", left, right, made)
    own.call("same_sums", left, right, rng.sample(own.known, min(len(own.known), len(left.sums))))
    for length in rng.sample(LENGTHS, 3):
        if (alike := own.units(AtLength(length))) is not None:
            own.call("same_units", left, right, length if rng.random() < 0.9 else length + 1, own.either(alike))
    period = left.sums[0].stage.period
    for rest in range(1, min(period, 4)):
        length = period * rng.choice((1, 2)) + rest
        if own.known:
            own.call("same_tails", left, right, length, rng.choice(own.known))
        if (alike := own.units(Tails(length))) is not None:
            own.call("same_tails", left, right, length, own.either(alike))
    for name in ("same_units", "same_tails"):
        if own.known:
            own.call(name, left, right, rng.choice(LENGTHS), rng.choice(own.known))
