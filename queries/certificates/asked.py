"""The subject of a certificate and the goals that its log must state, made from the certificate's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.hypotheses.unit_claims import BoundClaim, ClassicalClaim, OverflowClaim, WrapClaim
from mmaprobe.queries.certificates.claim_files import read_claim
from mmaprobe.queries.certificates.names import (
    CLAIM,
    COVER,
    LEFT_PLAN,
    LOG,
    PLAN,
    PLANS,
    PROPERTY,
    QUESTION,
    RIGHT_PLAN,
    UNIT,
)  # fmt: skip
from mmaprobe.queries.certificates.plan_files import read_plan
from mmaprobe.queries.certificates.questions import read_document, read_model, read_property, read_question
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.bounds.induction import Carried, Closed
from mmaprobe.queries.kernel.bounds.largest import OfLargest, bound_text
from mmaprobe.queries.kernel.bounds.table9 import BoundInUnits
from mmaprobe.queries.kernel.bounds.wording import up_text
from mmaprobe.queries.kernel.cases.unreachable import Unreachable, datapath
from mmaprobe.queries.kernel.equality.plan_units import AtLength, Part, Steps, Tails, units_of
from mmaprobe.queries.kernel.equality.plans import PlansAgree
from mmaprobe.queries.kernel.integers.blocks import InLargest
from mmaprobe.queries.kernel.integers.rows import NeverOverflows, largest_counts, models_of, recorded
from mmaprobe.queries.kernel.integers.slices import WithinClassical, WithinSpan
from mmaprobe.queries.kernel.integers.wraps import NeverWraps
from mmaprobe.queries.kernel.log import Subject
from mmaprobe.queries.kernel.properties.together import HasProperty
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import exchangeable, problems_of, symmetries_of
from mmaprobe.queries.kernel.questions.steps import MOST_PRODUCTS, PlanAt
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.terms.undecided import NoInputDecides, NoLengthDecides
from mmaprobe.queries.kernel.theorem import Goal, Theorem
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs
from mmaprobe.smtmodel.plans import Plan

MOST_LENGTHS = 64  # the most K for which one certificate has bounds


@dataclass(frozen=True)
class RequiredGoals:
    """The goals that the log of a certificate must state, in order, and the subject of the log. If `goals` is empty,
    the log may state any bounds of the subject, and also has these in words."""

    subject: Subject
    goals: tuple[Goal, ...] = ()

    def accepts(self, goals: Sequence[Goal]) -> bool:
        """Whether a log states the right goals: `goals`, or, if these are empty, bounds of this unit or plan."""
        if self.goals:
            return tuple(goals) == self.goals
        lengths = [length_of(goal) for goal in goals if isinstance(goal, InLargest) or (
            isinstance(goal, Enclosed | OfLargest) and isinstance(goal.unit, PlanAt))]  # fmt: skip
        return bool(goals) and all(map(self._is_bound, goals)) and tuple(lengths) == self.subject.lengths

    def _is_bound(self, goal: Goal) -> bool:
        """Whether a goal bounds, without assumptions about earlier results, the result of the unit, of a chain of the
        unit, or of the plan at one of the subject's K."""
        if isinstance(goal, InLargest):
            return goal.plan in self.subject.plans and goal.length in self.subject.lengths
        if isinstance(goal, Enclosed):
            if goal.node != goal.unit.result or goal.assuming:
                return False
        elif not isinstance(goal, Carried | Closed | BoundInUnits | OfLargest):
            return False
        if self.subject.plans:  # bounds of a plan's units would have the same words
            at = goal.unit
            return isinstance(at, PlanAt) and at.plan in self.subject.plans and at.length in self.subject.lengths
        return goal.unit in self.subject.units


def length_of(goal: Any) -> int | None:
    """The K of a plan's bound; None: any K."""
    length: int | None = goal.length if isinstance(goal, InLargest) else goal.unit.length
    return length


def bound_words(goal: Goal) -> str:
    """A bound in words."""
    if not isinstance(goal, Enclosed | OfLargest) or (isinstance(goal, Enclosed) and goal.node != goal.unit.result):
        return goal.statement()
    if not isinstance(goal.unit, PlanAt):
        return goal.statement() if isinstance(goal, OfLargest) else f"|d - exact| <= {bound_text(goal)}"
    return f"{_which(goal.unit)}: |d - exact| <= {bound_text(goal)}"


def _which(at: PlanAt) -> str:
    """The K of a statement about a plan, in words."""
    if at.length is not None:
        return f"for K = {at.length}"
    repeats = at.repeats
    powers = "G = 1 + r + ... + r^(n - 2)"
    powers = f"G = (1 + r + ... + r^(n - 2)) * r^({at.loops - 1} (n - 1))" if at.loops > 1 else powers
    powers += f", r = 1 + {up_text(at.growth - 1)}" if at.growth > 1 else ", r = 1"
    if repeats.width:
        return f"for any K from 1 to {repeats.width} * 2^(n - 1), {powers}"
    before = f"{repeats.before} + " if repeats.before else ""
    return f"for any n from 1 on, K = {before}{repeats.period} n, {powers}"


def of_problem(problem: Problem) -> RequiredGoals:
    """The goal that the two sides of a problem agree."""
    return RequiredGoals(Subject(tuple(problem.models), problems=(problem,)), (SidesAgree(problem),))


def of_property(wanted: str, model: Model, inputs: Inputs, compare: Compare) -> RequiredGoals:
    """The goal that a model has a property. The proof may use the problems of the property, and problems about
    reordered products."""
    orders = [replace(order, inputs=inputs) for group in exchangeable(model) for order in symmetries_of(model, group)]
    problems = tuple(dict.fromkeys([*problems_of(wanted, model, inputs, compare), *orders]))
    models = dict.fromkeys([model, *(side for problem in problems for side in problem.models)])
    return RequiredGoals(Subject(tuple(models), problems=problems), (HasProperty(wanted, model, inputs, compare),))


def of_claim(claim: Statement, lengths: Sequence[int | None] = ()) -> RequiredGoals:
    """The goal of a claim that one theorem proves. `lengths`: of a claim about one number of products, this number if
    the proof is also about the plans of its parts at this K; else none. Raises TypeError for a claim of a property, and
    CertificateError for another number."""
    goal: Goal
    match claim:
        case Claim(assertion=assertion):
            plans = tuple(part.plan for part in assertion.shape.parts.values())
            if assertion.most is not None:
                about = Subject(plans=plans, lengths=(None,), assertions=(assertion,))
                return RequiredGoals(about, (NoLengthDecides(assertion),))
            used = dict.fromkeys(model for plan in plans for model in plan.models)
            if lengths and tuple(lengths) != (assertion.terms,):
                raise CertificateError(f"the claim is about K = {assertion.terms}, and its proof about others")
            about = Subject(tuple(used), plans if lengths else (), tuple(lengths), assertions=(assertion,))
            return RequiredGoals(about, (NoInputDecides(assertion),))
        case BoundClaim(model=model):
            return replace(of_unit(model), goals=(BoundInUnits(model.unit, *claim.units),))
        case OverflowClaim(reduction=reduction):
            models = {model for count in largest_counts(reduction, claim.proved).values()
                      for model in models_of(recorded(reduction, count))}  # fmt: skip
            about = Subject(tuple(sorted(models, key=lambda model: model.reference)), reductions=(reduction,))
            return RequiredGoals(about, (NeverOverflows(reduction, claim.proved),))
        case WrapClaim():
            goal = NeverWraps(claim.plan, claim.proved, claim.most_a, claim.most_b)
        case ClassicalClaim(plan=plan, count=count, reach=reach, span=int(span)):
            goal = WithinSpan(plan, count, reach, span, Fraction(claim.classical))
        case ClassicalClaim(plan=plan, count=count, reach=reach):
            goal = WithinClassical(plan, count, reach, claim.spread, Fraction(claim.classical))
        case _:
            raise TypeError("a property is proved by theorems about each of its problems")
    return RequiredGoals(Subject(plans=(claim.plan,)), (goal,))


def lengths_of(claim: Statement, proof: Theorem) -> tuple[int, ...]:
    """The `lengths` of `of_claim` for a proof: K, if the claim is about one K and the proof about plans."""
    if not isinstance(claim, Claim) or claim.assertion.most is not None:
        return ()
    named = any(isinstance(value, Plan) for one in proof.walk() for value in one.arguments.values())
    return (claim.assertion.terms,) if named else ()


def of_unit(model: Model) -> RequiredGoals:
    """Any bounds of a unit."""
    return RequiredGoals(Subject((model,)))


def of_bounded_plan(plan: Plan, lengths: Sequence[int | None]) -> RequiredGoals:
    """Bounds of a plan, one at each K of `lengths` (None: for any K). Raises CertificateError if there are more K, or
    larger K, than a certificate may have, so that every check ends soon."""
    if len(lengths) > MOST_LENGTHS or not all(one is None or (type(one) is int and 0 < one <= MOST_PRODUCTS)
                                              for one in lengths):  # fmt: skip
        raise CertificateError(
            f"a certificate is about at most {MOST_LENGTHS} K, each of at most {MOST_PRODUCTS} products"
        )
    return RequiredGoals(Subject(plans=(plan,), lengths=tuple(lengths)))


def of_plans(goal: PlansAgree, solved: Sequence[Problem]) -> RequiredGoals:
    """The goal that two plans agree. `solved`: the problems that solvers answered, about units of parts of the
    plans."""
    models = dict.fromkeys(side for problem in solved for side in problem.models)
    return RequiredGoals(Subject(tuple(models), plans=(goal.left, goal.right), problems=tuple(solved)), (goal,))


def part_data(left: Plan, right: Plan, part: Part) -> dict[str, Any]:
    """A part of two plans as JSON data, with stages by their numbers."""
    if isinstance(part, Steps):
        stages = Subject(plans=(left, right)).stages
        return {"is": Steps.__name__, "one": stages.index(part.one), "other": stages.index(part.other)}
    return {"is": type(part).__name__, "length": part.length}


def _read_part(left: Plan, right: Plan, data: Mapping[str, Any]) -> Part:
    stages = Subject(plans=(left, right)).stages
    match data:
        case {"is": "Steps", "one": int(one), "other": int(other)} if min(one, other) >= 0:
            return Steps(stages[one], stages[other])
        case {"is": "AtLength" | "Tails", "length": int(length)}:
            return AtLength(length) if data["is"] == "AtLength" else Tails(length)
    raise ValueError(f"{data} is no part of two plans")


def of_cover(model: Model, cases: Sequence[Sequence[str]], changed: Sequence[Model]) -> RequiredGoals:
    """The goals that no input of a unit meets some cases, and that changed units give the same results as the unit.
    Raises CertificateError for a changed unit with other operands, as only some of its inputs would be compared."""
    known = {str(condition): condition for condition in datapath(model).flags}
    problems = tuple(Problem(model, other) for other in changed)
    if any(problem.inputs != Inputs() for problem in problems):
        raise CertificateError("a change reads other operands than the unit")
    goals = [Unreachable(model, (tuple(known[name] for name in case),)) for case in cases]
    return RequiredGoals(Subject((model, *changed), problems=problems), (*goals, *map(SidesAgree, problems)))


def required_goals(texts: Mapping[str, str]) -> RequiredGoals:
    """The goals that a certificate's log must state, and its subject. `texts`: the texts of the certificate's files, by
    name. Raises the errors of reading the files."""
    for name, read in _READ.items():
        if name in texts:
            return read(texts)
    raise ValueError("nothing in the folder says what was proved")


def _cover(texts: Mapping[str, str]) -> RequiredGoals:
    document = read_document(texts, COVER)
    changed = [read_model(texts, change["unit"]) for change in document["changes"]]
    return of_cover(read_model(texts, UNIT), document["cases"], changed)


def _plans(texts: Mapping[str, str]) -> RequiredGoals:
    document = read_document(texts, PLANS)
    left, right = (read_plan(texts, name) for name in (LEFT_PLAN, RIGHT_PLAN))
    solved = []
    for data in document["parts"]:
        one, other = units_of(PLANS, left, right, _read_part(left, right, data))
        solved.append(Problem(Model(f"left {data['is']}", one), Model(f"right {data['is']}", other)))
    return of_plans(PlansAgree(left, right, document["multiples"], document["length"]), solved)


_READ: Mapping[str, Callable[[Mapping[str, str]], RequiredGoals]] = {
    CLAIM: lambda texts: of_claim(read_claim(texts), read_document(texts, LOG)["lengths"]),
    QUESTION: lambda texts: of_problem(read_question(texts)),
    PROPERTY: lambda texts: of_property(*read_property(texts)),
    COVER: _cover,
    PLANS: _plans,
    PLAN: lambda texts: of_bounded_plan(read_plan(texts, PLAN), read_document(texts, LOG)["lengths"]),
    UNIT: lambda texts: of_unit(read_model(texts, UNIT)),
}
