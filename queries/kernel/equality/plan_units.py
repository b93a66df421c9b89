"""Units of two plans: of all products for one K, of whole steps of their stages, and of the products left over.

Two such units agree if solvers prove it, or if their expressions have one normal form. The rule for normal forms is
here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from mmaprobe.queries.kernel.closed import is_own
from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.expressions import terms_written_out
from mmaprobe.queries.kernel.equality.rewriting import form_of
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.identity import identity_text
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Each, Element, FusedSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.node import structure
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.loop import step_of, unit_of_step
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Stage
from mmaprobe.smtmodel.units.unit import Unit

Form = Literal["plain", "read", "joined", "positive"]


def read(unit: Unit) -> Node:
    """The result of a unit, rewritten by the rules of rewriting; loops stay."""
    return form_of(Scope.of(unit), unit.result)


def joined(unit: Unit) -> Node:
    """As `read`, with loops and the terms of sums written out."""
    return form_of(Scope.of(unit), terms_written_out(unit.result))


def joined_after_zero(unit: Unit) -> Node | None:
    """As `joined`, for every c other than -0; None if the result may still be -0."""
    scope = replace(Scope.of(unit), unsigned=frozenset({"c"}))
    form = form_of(scope, terms_written_out(unit.result))
    return form if scope.known(form).never_minus else None


#: the expressions that compute the same as a unit
FORMS: Mapping[Form, Callable[[Unit], Node | None]] = {
    "plain": lambda unit: unit.result, "read": read, "joined": joined, "positive": joined_after_zero,
}  # fmt: skip
PER_TERM = ("fraction_bits", "floors", "reach")  # parameters that a fused sum may have for each of its terms


@dataclass(frozen=True)
class AtLength:
    """All products of both plans, for one K."""

    length: int

    def __str__(self) -> str:
        return f"for K = {self.length}"


@dataclass(frozen=True)
class Steps:
    """Whole steps of a stage of one plan, and of a stage of the other plan, with any running sum as c."""

    one: Stage
    other: Stage

    def __str__(self) -> str:
        return f"in steps of stage {digest(identity_text(self.one))} and stage {digest(identity_text(self.other))}"


@dataclass(frozen=True)
class Tails:
    """The products that both plans leave over at one K, with any possible sum of tiles as c."""

    length: int

    def __str__(self) -> str:
        return f"in what tiles leave over for K = {self.length}"


Part = AtLength | Steps | Tails


@dataclass(frozen=True)
class FormsAgree:
    """The units of a part of two plans give the same results for every c; if `positive`, for every c other than -0,
    and none of the results is -0."""

    left: Plan
    right: Plan
    part: Part
    positive: bool

    def statement(self) -> str:
        about = ", never -0, for every c other than -0" if self.positive else ""
        return f"{plan_key(self.left)} = {plan_key(self.right)} {self.part}{about}"


@rule
def same_forms(left: Plan, right: Plan, part: AtLength | Steps | Tails, form: Form) -> Made:
    """Two units compute the same if both compute the same as their forms (`FORMS`), and these have one normal form."""
    check_plans("same_forms", left, right)
    one, other = units_of("same_forms", left, right, part)
    if one.operands != other.operands:
        raise RuleError("same_forms: the units have different operands")
    try:
        forms = [FORMS[form](unit) for unit in (one, other)]
        first, second = (None if node is None else normal(node) for node in forms)
    except RecursionError:
        raise RuleError("same_forms: too many steps are within one another") from None
    if first is None or second is None:
        raise RuleError("same_forms: a result may be -0")
    if first != second:
        raise RuleError("same_forms: the normal forms differ")
    return Made(FormsAgree(left, right, part, form == "positive"))


def units_agree(name: str, alike: Theorem, left: Plan, right: Plan, part: Part) -> Literal["every", "positive", "none"]:
    """The c for which the units of a part agree. "every": every c; "positive": every c other than -0, with no result of
    -0; "none": +0 alone, as one of the units does not read c. Raises RuleError for a theorem that says less, or is
    about other units."""
    if type(alike.goal) is FormsAgree:
        goal: FormsAgree = goal_of(alike, FormsAgree, name)
        if (goal.left, goal.right, goal.part) != (left, right, part):
            raise RuleError(f"{name}: the premise is about another part")
        return "positive" if goal.positive else "every"
    problem: Problem = goal_of(alike, SidesAgree, name).problem
    sides = problem.left, problem.right
    if type(problem) is not Problem or any(type(side) is not Model for side in sides):
        raise RuleError(f"{name}: the premise is about something else than two units")
    one, other = units_of(name, left, right, part)
    if (sides[0].unit, sides[1].unit) != (one, other):
        raise RuleError(f"{name}: the premise is about other units")
    if problem != Problem(*sides):
        raise RuleError(f"{name}: the premise is about some inputs alone, or compares values")
    return "every" if one.addend == other.addend else "none"


# -- the units


def units_of(name: str, left: Plan, right: Plan, part: Part) -> tuple[Unit, Unit]:
    """The units of a part of two plans. Raises RuleError where there are none."""
    with fitting(name):
        match part:
            case AtLength():
                return unit_of_plan(left, part.length), unit_of_plan(right, part.length)
            case Steps():
                return _steps(name, left, right, part)
            case Tails():
                return _tails(name, left, right, part.length)


def _steps(name: str, left: Plan, right: Plan, part: Steps) -> tuple[Unit, Unit]:
    """The units of the products that both stages take in whole steps."""
    check_plans(name, left, right, part.one, part.other)
    _check_apart(name, left, right)
    first, second = step_of(part.one), step_of(part.other)
    if first is None or second is None or (first.sums, first.last) != (second.sums, second.last):
        raise RuleError(f"{name}: the stages do not repeat steps with one format of sums and the same last roundings")
    count = math.lcm(first.period, second.period)
    return (unit_of_step(left, first.stage, first.sums, count), unit_of_step(right, second.stage, second.sums, count))


def _check_apart(name: str, *plans: Plan) -> None:
    """Raises RuleError for a plan that reads numbers found from several elements of a row or a block, which would be
    other numbers if some of its products were computed alone."""
    if any(plan.gathered for plan in plans):
        raise RuleError(f"{name}: a plan reads numbers found from several elements, which differ for fewer products")


def _tails(name: str, left: Plan, right: Plan, length: int) -> tuple[Unit, Unit]:
    """The units of the products left over by the same tiles of one sum."""
    _check_apart(name, left, right)
    one, other = left.sums[0].stage, right.sums[0].stage
    sums = len(left.sums), len(right.sums)
    if sums != (1, 1) or not isinstance(one, Chain) or not isinstance(other, Chain) or one.model != other.model:
        raise RuleError(f"{name}: the plans are not one sum each, in tiles of the same unit")
    whole, rest = divmod(length, one.model.length)
    if length < 1 or not whole or not rest or not read_alike(left, right):
        raise RuleError(f"{name}: no products are left over by the same tiles")
    how = _read_without_change(one.model.unit)
    start = Element("c") if how is None else Round(Element("c"), how)
    sides = [(plan, Products(stage.tail or Chain(stage.model), start)) for plan, stage in ((left, one), (right, other))]
    first, second = (unit_of_plan(plan.with_result(result, c=one.d), rest) for plan, result in sides)
    return _with_one_zero(first), _with_one_zero(second)


def _read_without_change(unit: Unit) -> Rounding | None:
    """A rounding that changes no result of a unit: to the format of its results, with zeros as +0, and with subnormal
    numbers as zero if no result is subnormal. None if a result may be -0."""
    known = Scope.of(unit).known(unit.result)
    flushed = Rounding(unit.d, subnormals="flush_after", zero="positive")
    hows = (flushed, replace(flushed, subnormals="keep"))
    fits = known.never_minus and known.formats == frozenset({unit.d})
    return next((how for how in hows if fits and how.keeps(known)), None)


def _with_one_zero(unit: Unit) -> Unit:
    """The unit whose fused sums have only one of the products of zeros with which a tile is filled up. The other
    products of zeros have the same exponent and add nothing."""
    return unit.with_result(replaced(unit.result, _one_zero))


def _one_zero(node: Node) -> Node | None:
    if not isinstance(node, FusedSum) or any(
        isinstance(getattr(node, name), tuple) for name in PER_TERM if getattr(node, name)
    ):
        return None
    terms: list[tuple[int, Node]] = []
    zeros = 0
    for at, item in enumerate(node.items):
        term = item.body if isinstance(item, Each) else item
        if isinstance(term, Product) and term.left == term.right == Constant():
            zeros += 1
            if zeros == 1:
                terms.append((at, term))
        else:
            terms.append((at, replaced(item, _one_zero)))
    return node.of_terms(terms) if zeros else None


# -- plans


def digest(text: str) -> str:
    """The SHA-256 hash of a text, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def plan_key(plan: Plan) -> str:
    """The name of a plan, with a hash of its arithmetic."""
    parts = (plan.a, plan.b, plan.c, plan.convert_a, plan.convert_b, structure(plan.result, identity_text))
    return f"{plan.reference or 'the plan'} ({digest(repr(parts))})"


def multiples_text(multiples: int) -> str:
    """The K of a statement about all multiples of a number, in words."""
    return "every K" if multiples == 1 else f"every K that is a multiple of {multiples}"


def check_plans(name: str, left: Plan, right: Plan, *stages: Stage) -> None:
    """Raises RuleError for plans with scale factors or with different inputs, and for plans and stages that are mutable
    or not of the project's own classes."""
    for plan in (left, right):
        if plan.scale is not None:
            raise RuleError(f"{name}: plans with scale factors are not compared")
        stages = (*stages, *(product.stage for product in plan.sums))
    if (left.a, left.b) != (right.a, right.b):
        raise RuleError(f"{name}: the plans take different formats")
    try:
        hash((left, right, stages))
    except TypeError:
        raise RuleError(f"{name}: a plan can still be changed") from None
    for part in (inner for stage in stages for inner in _within(stage)):
        if not is_own(type(part)) or any(type(model) is not Model for model in part.models):
            raise RuleError(f"{name}: a {type(part).__name__} is none of the project's stages")


def _within(stage: Stage) -> list[Stage]:
    """The stage and all its parts. `Stage.walk` is not used, as a foreign stage could leave itself out of its walk."""
    return [stage, *(inner for part in stage.parts for inner in _within(part))]


def read_alike(left: Plan, right: Plan) -> bool:
    """Whether both plans convert their inputs alike, so that one stage is the same in both."""
    return (left.convert_a, left.convert_b) == (right.convert_a, right.convert_b)


@contextmanager
def fitting(name: str) -> Iterator[None]:
    """Within this context, a number of products that does not fit raises RuleError."""
    try:
        yield
    except ParameterError as error:
        raise RuleError(f"{name}: {error}") from None
