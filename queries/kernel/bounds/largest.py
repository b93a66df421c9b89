"""Bounds in the largest elements of a row of A and of a column of B, from bounds in all elements."""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.bounds.forms import EXACT, Factor, Form
from mmaprobe.queries.kernel.bounds.induction import Carried
from mmaprobe.queries.kernel.bounds.parts import OfPlan, Parted
from mmaprobe.queries.kernel.bounds.sums import put, single, times_elements
from mmaprobe.queries.kernel.bounds.wording import COUNT, GROWTH, form_text, largest_text, sum_text
from mmaprobe.queries.kernel.questions.steps import PlanAt
from mmaprobe.queries.kernel.questions.windows import Windowed, is_of_plan
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.nodes import Cut, Relu, Round
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class OfLargest:
    """A bound of |d - exact| for a unit, for a chain of `count` instructions of the unit, or for a plan, on all finite
    inputs on which nothing overflows. In `form` the magnitude of a is the largest of all elements of the row, and that
    of b the largest of the column; a raised magnitude is the largest of the raised magnitudes. K and G are magnitudes
    too, as in the bounds of plans for any K."""

    unit: Unit | PlanAt | Windowed
    count: int | None
    form: Form

    def statement(self) -> str:
        after = "" if self.count is None else f"after {self.count} instructions: "
        return f"{after}|d - exact| <= {largest_text(self.form)}, if nothing overflows"


@rule
def of_largest(bound: Theorem) -> Made:
    """No element is larger than the largest one, so that K products together are at most K times the product of both
    largest ones, and K elements together at most K times the largest. If one magnitude of an operand is raised, all
    are. The magnitude of the exact result, which a rectifier only reduces, is at most the sum of the magnitudes of all
    terms."""
    unit: Unit | PlanAt | Windowed
    count: int | None
    if type(bound.goal) is Carried:
        chain: Carried = goal_of(bound, Carried, "of_largest")
        unit, count, error, plan = chain.unit, chain.count, chain.error, False
    else:
        goal: Enclosed = goal_of(bound, Enclosed, "of_largest")
        if goal.node != goal.unit.result or goal.places or goal.assuming:
            raise RuleError("of_largest: the bound is not that of the result, or assumes something")
        unit, count, error, plan = goal.unit, None, goal.facts.error, is_of_plan(goal.unit)

    def of_any(factor: Factor) -> Factor:
        if factor.name not in ("a", "b", "c", EXACT, GROWTH, COUNT):
            raise RuleError(f"of_largest: no bound is stated in terms of the largest {factor.name}")
        return factor._replace(offset=0, factors=())

    error = error.renamed(of_any)
    form = error.lifted(error.lifts)
    if any(factor.name == EXACT for atom in form.parts for item in atom for factor in item):
        exact = _magnitude(unit).renamed(of_any).lifted(error.lifts)
        form = put(form, lambda factor: exact if factor.name == EXACT else single(factor))
    return Made(OfLargest(unit, count, times_elements(form, None) if plan else form), (bound,))


def bound_text(goal: Enclosed | Carried | OfLargest) -> str:
    """The bound of |d - exact| that a goal about the result states, as text."""
    match goal:
        case OfLargest():
            return largest_text(goal.form)
        case Enclosed():
            return (sum_text if is_of_plan(goal.unit) else form_text)(goal.facts.error)
    return form_text(goal.error)


def _magnitude(unit: Unit | PlanAt | Windowed) -> Form:
    """A bound of the magnitude of the exact result. Raises RuleError."""
    node = unit.result
    while isinstance(node, (Round, Cut, Relu)):
        node = node.term
    parted = (OfPlan if is_of_plan(unit) else Parted)(unit, frozenset())
    return parted.size(parted.of(node, ()))
