"""Two stages agree: rules of congruence, and of induction over K.

A stage is a partition of its products, a body that adds each part, and a join of the parts' sums. Two stages with the
same partition and join agree if their bodies agree for every number of products in a part. Two stages that repeat a
step agree if their steps agree from any sum so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from mmaprobe.queries.kernel.equality.plan_units import (
    Steps,
    check_plans,
    digest,
    multiples_text,
    plan_key,
    read_alike,
    units_agree,
    units_of,
)
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.evaluate.identity import identity_text
from mmaprobe.smtmodel.plans.joins import Add
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.stages import Join, Parted, Stage, Then

#: by order: the most sums for which every order has the same result, as a rounded addition of two numbers commutes
IN_ORDER = {"pairwise": 3, "backwards": 2}


@dataclass(frozen=True)
class StagesAgree:
    """A stage of one plan and a stage of another one, each with the conversions of its plan, give the same sum from any
    sum so far (`zero`: from +0) for every multiple of `multiples` products that both take. Two NaNs are the same sum,
    unless both name the pattern of a NaN; other sums must have the same bits."""

    left: Plan
    right: Plan
    one: Stage
    other: Stage
    multiples: int
    zero: bool = False

    def statement(self) -> str:
        start = "+0" if self.zero else "any sum so far"
        sides = [f"stage {digest(identity_text(stage))} of {plan_key(plan)}"
                 for stage, plan in ((self.one, self.left), (self.other, self.right))]  # fmt: skip
        return f"{sides[0]} = {sides[1]} from {start} for {multiples_text(self.multiples)}"


# -- congruence


@rule
def same_parts(left: Plan, right: Plan, one: Stage, other: Stage, bodies: Theorem | None) -> Made:
    """Without `bodies`: a stage agrees with itself for every K if both plans convert inputs alike. With `bodies`: if
    the bodies of two stages agree for every multiple of n, stages with the same steps around their bodies agree for
    every multiple of the number m of `partition`: both divide a multiple of m products alike, and each body gets a
    multiple of n. If the bodies agree from +0 alone, the stages agree from +0 alone where a body begins with the
    stage's start or +0; promoted sums always begin with +0."""
    check_plans("same_parts", left, right, one, other)
    if bodies is None:
        if one != other or not read_alike(left, right):
            raise RuleError("same_parts: the stages are two, or read inputs otherwise")
        return Made(StagesAgree(left, right, one, other, 1))
    if not same_around(left, right, one, other):
        raise RuleError("same_parts: the stages do other things around their bodies")
    assert isinstance(one, Parted)
    assert isinstance(other, Parted)
    inner: StagesAgree = goal_of(bodies, StagesAgree, "same_parts")
    if (inner.left, inner.right, inner.one, inner.other) != (left, right, one.body, other.body):
        raise RuleError("same_parts: the premise is not about the bodies")
    begin = one.join.begin
    so_far = begin == "so far" and not one.partition.alone
    if inner.zero and (so_far or one.partition.continues or (begin != "zero" and one.head is not None)):
        raise RuleError("same_parts: the bodies begin with other sums than +0")
    multiples = partition(one, other, inner.multiples)
    return Made(StagesAgree(left, right, one, other, multiples, inner.zero and begin != "zero"), (bodies,))


@rule
def same_bodies(left: Plan, right: Plan, one: Stage, other: Stage, bodies: Sequence[Theorem]) -> Made:
    """Let two stages take the same products with as many bodies one after another. Let each pair of bodies agree for
    the multiples of some number of products, from any sum so far; the first pair perhaps from +0 alone. Then the stages
    agree for every common multiple of these numbers; from +0 alone if the first pair does."""
    check_plans("same_bodies", left, right, one, other)
    if type(one) is not Then or type(other) is not Then or not len(one.bodies) == len(other.bodies) == len(bodies):
        raise RuleError("same_bodies: the stages are not as many, one after another")
    goals: list[StagesAgree] = [goal_of(body, StagesAgree, "same_bodies") for body in bodies]
    for goal, first, second in zip(goals, one.bodies, other.bodies, strict=True):
        if (goal.left, goal.right, goal.one, goal.other) != (left, right, first, second):
            raise RuleError("same_bodies: a premise is not about the bodies")
    if any(goal.zero for goal in goals[1:]):
        raise RuleError("same_bodies: a body begins with another sum than +0")
    multiples = math.lcm(*(goal.multiples for goal in goals))
    return Made(StagesAgree(left, right, one, other, multiples, goals[0].zero), tuple(bodies))


def same_around(left: Plan, right: Plan, one: Stage, other: Stage) -> bool:
    """Whether two stages have the same steps around their bodies, for products that fill whole parts: a tail for
    products left over does not matter."""
    if not isinstance(one, Parted) or not isinstance(other, Parted) or type(one.partition) is not type(other.partition):
        return False
    unused = one.partition.unused
    same = all(getattr(one.partition, field.name) == getattr(other.partition, field.name)
               for field in fields(one.partition) if field.name not in unused)  # fmt: skip
    heads = one.head == other.head and (one.head is None or read_alike(left, right))  # a head takes products of any K
    return same and heads and _in_order(one) == _in_order(other)


def _in_order(stage: Parted) -> Join:
    """The join of a stage; in order, if another order of its few sums makes no difference."""
    join, sums = stage.join, stage.partition.sums
    if isinstance(join, Add) and 0 < sums <= IN_ORDER.get(join.order, 0):
        return Add(join.rounding)
    return join


def partition(one: Parted, other: Parted, number: int) -> int:
    """A number m for two stages with the same steps around their bodies: both divide every multiple of m products
    alike, and each body gets a multiple of `number`. Raises RuleError where no m is known."""
    multiples = one.partition.multiple(number, (one, other))
    if not multiples:
        raise RuleError(f"same_parts: it is not known when {type(one.partition).__name__} divides alike")
    if any(count % number for count in one.partition.counts):
        raise RuleError(f"same_parts: the bodies agree for multiples of {number}, which parts are not")
    return multiples


# -- induction


@rule
def same_steps(left: Plan, right: Plan, one: Stage, other: Stage, step: Theorem) -> Made:
    """By induction on the number of steps: two stages that each repeat a step from their start, and round the last sum
    alike, agree for every multiple of a step's products if the steps agree from any sum so far. They agree from +0 if
    the steps agree from any sum so far other than -0 and no step's sum is -0; or if a step does not read the sum so
    far: its stage then consists of one step."""
    part = Steps(one, other)
    units = units_of("same_steps", left, right, part)
    every = units_agree("same_steps", step, left, right, part) == "every"
    return Made(StagesAgree(left, right, one, other, units[0].length, not every), (step,))
