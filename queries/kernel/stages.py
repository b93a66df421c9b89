"""Two stages agree: rules of congruence, and of induction over K.

A stage is a partition of its products and a join of the sums of its parts. Two stages with one partition and one join,
whose bodies agree for every number of products that the partition gives them, agree. Two stages that repeat a step
agree if their steps do, from any sum so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from mmaprobe.queries.kernel.plan_units import (
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
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.stages import (
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
    alike, agree for every multiple of a step's products if the steps agree from any sum so far. They agree from +0 if
    the steps do from any sum so far other than -0, and make no sum -0; or if a step does not read the sum so far, as
    its stage takes one step alone."""
    part = Steps(one, other)
    units = units_of("same_steps", left, right, part)
    every = units_agree("same_steps", step, left, right, part) == "every"
    return Made(StagesAgree(left, right, one, other, units[0].length, not every), (step,))
