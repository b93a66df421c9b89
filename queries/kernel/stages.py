"""Two stages agree: rules of congruence, and of induction over K.

A stage is a partition of its products and a join of the sums of its parts. Two stages with one partition and one join,
whose bodies agree for every number of products that the partition gives them, agree. Two stages that repeat a step
agree if their steps do, from any sum so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from hashlib import sha256

from queries.kernel.closed import is_own
from queries.kernel.merged import SameAfterZero
from queries.kernel.problem import Problem
from queries.kernel.same import SidesAgree
from queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from smtmodel.dot import Model
from smtmodel.errors import ParameterError
from smtmodel.nodes.node import structure
from smtmodel.nodes.normal import normal
from smtmodel.plans.loop import step_of, unit_of_step
from smtmodel.plans.plan import Plan
from smtmodel.plans.stages import (
    Halves,
    Interleaved,
    Lanes,
    Promoted,
    Rounded,
    Split,
    Stage,
    Swizzled,
    Turns,
    Uneven,
    Whole,
)
from smtmodel.unit import Unit

#: stages around bodies, which they give parts of their products
Around = Rounded | Split | Uneven | Lanes | Interleaved | Swizzled | Promoted | Turns | Whole | Halves
#: fields that do not matter for the numbers of products that `same_parts` is about: they fill whole turns
UNUSED = {Split: {"grain"}, Interleaved: {"tail"}, Lanes: {"head", "tail"}, Promoted: {"even", "tail", "share"},
          Turns: {"tail"}}  # fmt: skip
#: up to how many sums are added in this order as in any other: rounded additions of two numbers commute
IN_ORDER = {"pairwise": 3, "backwards": 2}


@dataclass(frozen=True)
class StagesAgree:
    """A stage of one plan and a stage of another one, each with the conversions of its plan, give the same from any sum
    so far (`zero`: from +0) for every multiple of `multiples` products that both take. The same means the same bits, or
    NaN both, unless both name the pattern of a NaN."""

    left: Plan
    right: Plan
    one: Stage
    other: Stage
    multiples: int
    zero: bool = False

    def statement(self) -> str:
        start = "+0" if self.zero else "any sum so far"
        sides = [f"stage {digest(repr(stage))} of {plan_key(plan)}"
                 for stage, plan in ((self.one, self.left), (self.other, self.right))]  # fmt: skip
        return f"{sides[0]} = {sides[1]} from {start} for {multiples_text(self.multiples)}"


def digest(text: str) -> str:
    """The hash of a text that says what is computed, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def plan_key(plan: Plan) -> str:
    """The name of a plan, and the hash of all that it computes with."""
    parts = (plan.a, plan.b, plan.c, plan.convert_a, plan.convert_b, structure(plan.result))
    return f"{plan.reference or 'the plan'} ({digest(repr(parts))})"


def multiples_text(multiples: int) -> str:
    """For which K, in words."""
    return "every K" if multiples == 1 else f"every K that is a multiple of {multiples}"


def check_plans(name: str, left: Plan, right: Plan, *stages: Stage) -> None:
    """Raises RuleError for plans that take other inputs, or scale factors, and for plans and stages that can still be
    changed, or are not the project's own."""
    for plan in (left, right):
        if plan.scale is not None:
            raise RuleError(f"{name}: plans with scale factors are not compared")
        stages = (*stages, *(product.stage for product in plan.sums))
    if (left.a, left.b) != (right.a, right.b):
        raise RuleError(f"{name}: the plans take other formats")
    try:
        hash((left, right, stages))
    except TypeError:
        raise RuleError(f"{name}: a plan can still be changed") from None
    for part in (inner for stage in stages for inner in _within(stage)):
        if not is_own(type(part)) or any(type(model) is not Model for model in part.models):
            raise RuleError(f"{name}: a {type(part).__name__} is none of the project's stages")


def _within(stage: Stage) -> list[Stage]:
    return [stage, *(inner for part in stage.parts for inner in _within(part))]


def read_alike(left: Plan, right: Plan) -> bool:
    """Whether both plans convert their inputs alike, so that one stage is the same in both."""
    return (left.convert_a, left.convert_b) == (right.convert_a, right.convert_b)


def units_agree(name: str, alike: Theorem, one: Unit, other: Unit) -> bool:
    """Whether two units agree for every c; else for +0 alone, as one of them does not read c. Raises RuleError for a
    theorem that says less, or says it of other units."""
    problem: Problem = goal_of(alike, SidesAgree, name).problem
    sides = problem.left, problem.right
    if type(problem) is not Problem or any(type(side) is not Model for side in sides):
        raise RuleError(f"{name}: the premise is about something else than two units")
    if (sides[0].unit, sides[1].unit) != (one, other):
        raise RuleError(f"{name}: the premise is about other units")
    if problem != Problem(*sides):
        raise RuleError(f"{name}: the premise is about some inputs alone, or compares values")
    return one.addend == other.addend


# -- congruence


@rule
def same_parts(left: Plan, right: Plan, one: Stage, other: Stage, bodies: Theorem | None) -> Made:
    """A stage agrees with itself for every K, where both plans convert inputs alike (no `bodies`). Two stages that do
    the same around their bodies agree, if these agree for every multiple of n, for every multiple of the number m that
    `partition` gives: both stages divide a multiple of m products alike, and give each body a multiple of n. If the
    bodies agree from +0 alone, so do the stages where a body begins with their start or +0; promoted sums always begin
    with +0."""
    check_plans("same_parts", left, right, one, other)
    if bodies is None:
        if one != other or not read_alike(left, right):
            raise RuleError("same_parts: the stages are two, or read inputs otherwise")
        return Made(StagesAgree(left, right, one, other, 1))
    if not same_around(left, right, one, other):
        raise RuleError("same_parts: the stages do other things around their bodies")
    assert isinstance(one, Around)
    assert isinstance(other, Around)
    inner: StagesAgree = goal_of(bodies, StagesAgree, "same_parts")
    if (inner.left, inner.right, inner.one, inner.other) != (left, right, one.body, other.body):
        raise RuleError("same_parts: the premise is not about the bodies")
    follows_others = isinstance(one, Turns | Swizzled | Lanes) or (isinstance(one, Whole) and one.head is not None)
    if inner.zero and follows_others:
        raise RuleError("same_parts: the bodies begin with other sums than +0")
    multiples = partition(one, other, inner.multiples)
    zero = inner.zero and not isinstance(one, Promoted)
    return Made(StagesAgree(left, right, one, other, multiples, zero), (bodies,))


def same_around(left: Plan, right: Plan, one: Stage, other: Stage) -> bool:
    """Whether two stages do the same around their bodies, for products that fill whole turns."""
    if type(one) is not type(other) or not isinstance(one, Around):
        return False
    apart = {"body"} | UNUSED.get(type(one), set()) | ({"order"} if _in_order(one) and _in_order(other) else set())
    same = all(getattr(one, field.name) == getattr(other, field.name)
               for field in fields(one) if field.name not in apart)  # fmt: skip
    headed = isinstance(one, Whole) and one.head is not None  # the head takes products of any K
    return same and (read_alike(left, right) or not headed)


def _in_order(stage: Stage) -> bool:
    """Whether a stage adds its sums in order, or has too few for another order to make a difference."""
    sums = len(stage.at) + 1 if isinstance(stage, Uneven) else getattr(stage, "ways", 0)
    return isinstance(stage, Split | Uneven | Interleaved) and sums <= IN_ORDER.get(stage.order, sums)


def partition(one: Around, other: Around, number: int) -> int:
    """Products of which any multiple is divided alike by two stages that do the same around their bodies, and gives
    each body a multiple of `number`. Raises RuleError where there is none."""
    match one:
        case Rounded():
            return number
        case Split():  # equal runs, if they are multiples of both grains
            assert isinstance(other, Split)
            return one.ways * math.lcm(number, *(stage.grain or stage.body.period for stage in (one, other)))
        case Uneven():  # no K ends before the last place
            return _fitting(number, number, *one.at)
        case Lanes(order="backwards"):  # a body takes one product at a time
            return _fitting(number, one.unroll, 1)
        case Lanes():
            return one.multiples(number)
        case Interleaved() | Swizzled():
            return one.ways * math.lcm(number, one.grain)
        case Promoted() | Turns():
            return _fitting(number, one.every, one.every)
        case Whole():
            return _fitting(number, one.number, one.number)
        case Halves():
            return _fitting(number, one.grain, one.grain)


def _fitting(number: int, multiples: int, *counts: int) -> int:
    if any(count % number for count in counts):
        raise RuleError(f"same_parts: the bodies agree for multiples of {number}, which parts are not")
    return multiples


# -- induction


@rule
def same_steps(left: Plan, right: Plan, one: Stage, other: Stage, step: Theorem) -> Made:
    """By induction on the number of steps: two stages that each repeat a step from their start, and round the last sum
    alike, agree for every multiple of a step's products if the steps agree from any sum so far. If one step does not
    read the sum so far, its stage takes one step alone, and both agree from +0."""
    count, units = steps_of("same_steps", left, right, one, other)
    every = units_agree("same_steps", step, *units)
    return Made(StagesAgree(left, right, one, other, count, not every), (step,))


@rule
def same_steps_from_zero(left: Plan, right: Plan, one: Stage, other: Stage, first: Theorem, second: Theorem) -> Made:
    """The same from +0, if the steps compute the same (their expressions, `first` and `second`, have one normal form)
    from any sum so far other than -0, and make no sum -0."""
    count, units = steps_of("same_steps_from_zero", left, right, one, other)
    goals: list[SameAfterZero] = [goal_of(side, SameAfterZero, "same_steps_from_zero") for side in (first, second)]
    if (goals[0].unit, goals[1].unit) != units:
        raise RuleError("same_steps_from_zero: a premise is about another unit")
    if units[0].operands != units[1].operands or normal(goals[0].other) != normal(goals[1].other):
        raise RuleError("same_steps_from_zero: the normal forms are two")
    return Made(StagesAgree(left, right, one, other, count, zero=True), (first, second))


def steps_of(name: str, left: Plan, right: Plan, one: Stage, other: Stage) -> tuple[int, tuple[Unit, Unit]]:
    """The number of products that both stages take in whole steps, and the units of these steps, whose c is any sum so
    far. Raises RuleError where a stage repeats no step, or the last sums are rounded otherwise."""
    check_plans(name, left, right, one, other)
    first, second = step_of(one), step_of(other)
    if first is None or second is None or (first.sums, first.last) != (second.sums, second.last):
        raise RuleError(f"{name}: the stages do not repeat steps from sums of one format, rounded alike at last")
    count = math.lcm(first.period, second.period)
    with fitting(name):
        units = [unit_of_step(plan, step.stage, step.sums, count) for plan, step in ((left, first), (right, second))]
    return count, (units[0], units[1])


@contextmanager
def fitting(name: str) -> Iterator[None]:
    """Within this context, a number of products that does not fit raises RuleError."""
    try:
        yield
    except ParameterError as error:
        raise RuleError(f"{name}: {error}") from None
