"""Two plans agree: rules over their sums of products, and over the units that they are for one K."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from queries.kernel.addends import reading_that_changes_nothing
from queries.kernel.stages import StagesAgree, check_plans, fitting, multiples_text, plan_key, read_alike, units_agree
from queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from smtmodel.nodes import Constant, Each, Element, FusedSum, Node, Product, Round
from smtmodel.nodes.normal import normal
from smtmodel.nodes.rewriting import replaced
from smtmodel.plans.loop import around
from smtmodel.plans.lowering import unit_of_plan
from smtmodel.plans.plan import Plan, Products
from smtmodel.plans.stages import Chain
from smtmodel.unit import Unit

PER_TERM = ("fraction_bits", "floors", "reach")  # what a fused sum may say of each of its terms


@dataclass(frozen=True)
class PlansAgree:
    """Two plans give the same result on every input, for K = `length`, or, if that is 0, for every multiple of
    `multiples` that both take. The same means the same bits, or NaN both, unless both name the pattern of a NaN."""

    left: Plan
    right: Plan
    multiples: int
    length: int = 0

    def covers(self, length: int | None) -> bool:
        """Whether this K is one of them; without one, whether every multiple of some number is."""
        if length is None:
            return not self.length
        return length == self.length if self.length else length % self.multiples == 0

    def statement(self) -> str:
        about = f"K = {self.length}" if self.length else multiples_text(self.multiples)
        return f"{plan_key(self.left)} = {plan_key(self.right)} for {about}"


@rule
def same_sums(left: Plan, right: Plan, sums: Sequence[Theorem]) -> Made:
    """Two plans agree that do the same with their sums of products, where each sum starts from the same in both, and
    its stages agree (`sums`, in the order of the sums) from any start, or from +0, if that is the start."""
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
    """Whether two plans take the same inputs, and do the same with as many sums of products, from the same starts."""
    if (left.a, left.b, left.c, len(left.sums)) != (right.a, right.b, right.c, len(right.sums)):
        return False
    sides = zip((left.result, *(one.start for one in left.sums)),
                (right.result, *(one.start for one in right.sums)), strict=True)  # fmt: skip
    return all(normal(around(left, one)) == normal(around(right, other)) for one, other in sides)


def _check_frames(name: str, left: Plan, right: Plan) -> None:
    check_plans(name, left, right)
    if not same_frames(left, right):
        raise RuleError(f"{name}: the plans do other things with their sums, or start them from other numbers")


@rule
def same_units(left: Plan, right: Plan, length: int, alike: Theorem) -> Made:
    """Two plans agree for one K if the units agree that they are for that K."""
    check_plans("same_units", left, right)
    with fitting("same_units"):
        one, other = unit_of_plan(left, length), unit_of_plan(right, length)
    if not units_agree("same_units", alike, one, other):
        raise RuleError("same_units: one plan reads c, and the other does not")
    return Made(PlansAgree(left, right, 0, length), (alike,))


@rule
def same_tails(left: Plan, right: Plan, length: int, alike: Theorem) -> Made:
    """Two plans agree for one K if they take the same tiles with one unit, and what they make of the products left over
    agrees from any number that a sum of tiles may be."""
    _check_frames("same_tails", left, right)
    found = tails(left, right, length)
    if found is None:
        raise RuleError("same_tails: no products are left over by the same tiles")
    if not units_agree("same_tails", alike, *found):
        raise RuleError("same_tails: one tail does not read the sum of the tiles")
    return Made(PlansAgree(left, right, 0, length), (alike,))


def tails(left: Plan, right: Plan, length: int) -> tuple[Unit, Unit] | None:
    """The units of the products that two plans leave over at a K, whose c is any number that a sum of tiles may be;
    None if there are no two tails after the same tiles. The plans do the same with their one sum."""
    if not read_alike(left, right) or len(left.sums) != 1 or length < 1:
        return None
    one, other = left.sums[0].stage, right.sums[0].stage
    if not isinstance(one, Chain) or not isinstance(other, Chain) or one.model != other.model:
        return None
    whole, rest = divmod(length, one.model.length)
    if not whole or not rest:
        return None
    how = reading_that_changes_nothing(one.model.unit)
    start = Element("c") if how is None else Round(Element("c"), how)
    sides = [(plan, Products(stage.tail or Chain(stage.model), start)) for plan, stage in ((left, one), (right, other))]
    with fitting("same_tails"):
        first, second = (unit_of_plan(replace(plan, c=one.d, result=result, names={}), rest) for plan, result in sides)
    return _with_one_zero(first), _with_one_zero(second)


def _with_one_zero(unit: Unit) -> Unit:
    """A unit whose fused sums have one of the products of zeros with which a tile is filled up: the others have the
    same exponent and add nothing."""
    return replace(unit, result=replaced(unit.result, _one_zero), names={}, signals={})


def _one_zero(node: Node) -> Node | None:
    if not isinstance(node, FusedSum) or any(
        isinstance(getattr(node, name), tuple) for name in PER_TERM if getattr(node, name)
    ):
        return None
    found: list[tuple[int, Node]] = []
    zeros = 0
    for at, item in enumerate(node.items):
        term = item.body if isinstance(item, Each) else item
        if isinstance(term, Product) and term.left == term.right == Constant():
            zeros += 1
            if zeros == 1:
                found.append((at, term))
        else:
            found.append((at, replaced(item, _one_zero)))
    return node.of_terms(found) if zeros else None
