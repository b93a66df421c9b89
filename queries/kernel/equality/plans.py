"""Rules that two plans agree: by their sums of products, or by their units for one K."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.plan_units import (
    AtLength,
    Tails,
    check_plans,
    multiples_text,
    plan_key,
    units_agree,
)
from mmaprobe.queries.kernel.equality.rewriting import form_of
from mmaprobe.queries.kernel.equality.stages import StagesAgree
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.nodes import Constant, Node
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.plans.loop import around
from mmaprobe.smtmodel.plans.plan import Plan


@dataclass(frozen=True)
class PlansAgree:
    """Two plans give the same result on every input for K = `length`. If `length` is 0, they do for every K that both
    take and that is a multiple of `multiples`. Two NaNs are the same result, unless both plans name the pattern of a
    NaN; other results must have the same bits."""

    left: Plan
    right: Plan
    multiples: int
    length: int = 0

    def covers(self, length: int | None) -> bool:
        """Whether the statement is about a K; for None, whether it is about every multiple of some number."""
        if length is None:
            return not self.length
        return length == self.length if self.length else length % self.multiples == 0

    def statement(self) -> str:
        about = f"K = {self.length}" if self.length else multiples_text(self.multiples)
        return f"{plan_key(self.left)} = {plan_key(self.right)} for {about}"


@rule
def same_sums(left: Plan, right: Plan, sums: Sequence[Theorem]) -> Made:
    """Two plans agree if they compute the result from their sums of products in the same way, each sum starts from the
    same number in both plans, and the two stages of each sum agree (`sums`, in the order of the sums): from any start,
    or from +0 for a sum that starts from +0."""
    _check_frames("same_sums", left, right)
    goals: list[StagesAgree] = [goal_of(one, StagesAgree, "same_sums") for one in sums]
    wanted = [(left, right, one.stage, other.stage) for one, other in zip(left.sums, right.sums, strict=True)]
    if [(goal.left, goal.right, goal.one, goal.other) for goal in goals] != wanted:
        raise RuleError("same_sums: the premises are not about the sums, one about each")
    if any(goal.zero and product.start != Constant() for goal, product in zip(goals, left.sums, strict=True)):
        raise RuleError("same_sums: a sum starts from another number than +0")
    multiples = math.lcm(*(goal.multiples for goal in goals))
    return Made(PlansAgree(left, right, multiples), tuple(sums))


def same_frames(left: Plan, right: Plan) -> bool:
    """Whether two plans take the same inputs, have equally many sums of products with the same starts, and compute the
    result from their sums in the same way, or in ways that have one form by the rules of rewriting."""
    if (left.a, left.b, left.c, len(left.sums)) != (right.a, right.b, right.c, len(right.sums)):
        return False
    sides = zip((left.result, *(one.start for one in left.sums)),
                (right.result, *(one.start for one in right.sums)), strict=True)  # fmt: skip
    return all(_alike(left, one, right, other) for one, other in sides)


def _alike(left: Plan, one: Node, right: Plan, other: Node) -> bool:
    """Whether parts of two plans' results compute the same from the plans' sums."""
    first, second = around(left, one), around(right, other)
    return normal(first) == normal(second) or normal(_form(left, first)) == normal(_form(right, second))


def _form(plan: Plan, node: Node) -> Node:
    """A part of a plan's result, over its sums, rewritten; as it is, where the rules do not hold (`Scope.of`)."""
    try:
        return form_of(Scope.of(plan), node)
    except RuleError:
        return node


def _check_frames(name: str, left: Plan, right: Plan) -> None:
    check_plans(name, left, right)
    if not same_frames(left, right):
        raise RuleError(f"{name}: the plans do other things with their sums, or start them from other numbers")


@rule
def same_units(left: Plan, right: Plan, length: int, alike: Theorem) -> Made:
    """Two plans agree for one K if their units for that K agree."""
    check_plans("same_units", left, right)
    if units_agree("same_units", alike, left, right, AtLength(length)) != "every":
        raise RuleError("same_units: the units agree for some c alone")
    return Made(PlansAgree(left, right, 0, length), (alike,))


@rule
def same_tails(left: Plan, right: Plan, length: int, alike: Theorem) -> Made:
    """Two plans agree for one K if they take the same tiles with one unit, and their results for the products left over
    agree from any possible sum of tiles."""
    _check_frames("same_tails", left, right)
    if units_agree("same_tails", alike, left, right, Tails(length)) != "every":
        raise RuleError("same_tails: the tails agree for some sums of tiles alone")
    return Made(PlansAgree(left, right, 0, length), (alike,))
