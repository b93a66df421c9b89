"""Rules that conclude a property of a model from several problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaprobe.queries.kernel.naming import model_text
from mmaprobe.queries.kernel.properties.opposite import Turns
from mmaprobe.queries.kernel.properties.rises import Rises
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Monotonic, Negated, Reordered, problems_of, reordered_groups
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs

ORDER = "order-independent"


@dataclass(frozen=True)
class HasProperty:
    """A model has a property on the admitted inputs, its results compared as `compare` says. Order-independence means
    that the result is the same in every order of the products of each step (`reordered_groups`). Any other property
    means that the sides of each of its problems (`problems_of`) agree."""

    wanted: str
    model: Model
    inputs: Inputs
    compare: Compare

    def statement(self) -> str:
        return f"{model_text(self.model)} is {self.wanted}"


@rule
def every_order(model: Model, inputs: Inputs, compare: Compare, parts: Sequence[Theorem]) -> Made:
    """Let f(x) = f(x.g) for all admitted x, where g is the exchange of the first two products of a group, or the
    rotation of the whole group. The admitted x are restricted alike in each product, so that x.g is admitted too, and
    f(x) = f(x.g) for every g that the two generate: every order of the group. Orders of several groups are composed.
    Equality of results, as patterns with all NaNs equal or as values, is transitive."""
    if inputs.zero_terms:
        raise RuleError("every_order: some products stand fixed")
    orders = _orders(model, inputs, compare, parts, "every_order")
    for group in reordered_groups(model):
        if len(group) > 1:
            exchange, rotation = (group[1], group[0], *group[2:]), (*group[1:], group[0])
            for moved in (exchange, rotation):
                places = dict(zip(group, moved, strict=True))
                if tuple(places.get(k, k) for k in range(model.length)) not in orders:
                    raise RuleError(f"every_order: it is not known that the order {moved} has no effect")
    return Made(HasProperty(ORDER, model, inputs, compare), tuple(parts))


@rule
def each_part(wanted: str, model: Model, inputs: Inputs, compare: Compare, parts: Sequence[Theorem]) -> Made:
    """A property other than order-independence means by definition that the sides of each of its problems agree."""
    if wanted == ORDER:
        raise RuleError("each_part: order-independence is about every order, not about a problem for each part")
    try:
        problems = problems_of(wanted, model, inputs, compare)
    except (KeyError, ParameterError) as error:
        raise RuleError(f"each_part: {error}") from None
    known = {goal_of(part, SidesAgree, "each_part").problem for part in parts}
    if not problems or not known.issuperset(problems):
        raise RuleError("each_part: a part is not known")
    return Made(HasProperty(wanted, model, inputs, compare), tuple(parts))


@rule
def raised_elsewhere(problem: Monotonic, known: Theorem, parts: Sequence[Theorem]) -> Made:
    """Let f not fall when product j rises, and let f(x) = f(x.g), bit by bit with all NaNs equal, for some orders g,
    and so for all orders that they generate. Let h be one of these that brings the product of place k to place j. If x'
    is x with product k raised, x'.h is x.h with product j raised, and f(x) = f(x.h) <= f(x'.h) = f(x'), or one of them
    is a NaN. The admitted inputs are restricted alike in each product."""
    proved: Problem = goal_of(known, SidesAgree, "raised_elsewhere").problem
    if type(proved) is not Monotonic or problem.left != problem.right:
        raise RuleError("raised_elsewhere: the problem or the premise is not about the rise of a product of one model")
    if problem.raised is None or proved.raised is None:
        raise RuleError("raised_elsewhere: the addend is not a product")
    same = (proved.left, proved.right, proved.inputs) == (problem.left, problem.right, problem.inputs)
    if not same or problem.inputs.zero_terms:
        raise RuleError("raised_elsewhere: the premise is about another model or other inputs, or products stand fixed")
    orders = _orders(problem.left, problem.inputs, "bits", parts, "raised_elsewhere")
    reached, waiting = {proved.raised}, [proved.raised]
    while waiting:
        place = waiting.pop()
        missing = {order[place] for order in orders} - reached
        reached |= missing
        waiting += missing
    if problem.raised not in reached:
        raise RuleError("raised_elsewhere: no order brings the product there")
    return Made(SidesAgree(problem), (known, *parts))


@rule
def negates(problem: Negated, known: Theorem) -> Made:
    """If a unit's result is negated when every a and c is negated (`Turns`), then f(a, b, c) = -f(-a, b, -c) as a
    value: both are NaN, both are zero, or they are equal numbers."""
    goal: Turns = goal_of(known, Turns, "negates")
    if problem.left != problem.right or problem.compare != "value":
        raise RuleError("negates: the problem is not about the values of one model")
    if goal.unit != problem.left.unit:
        raise RuleError("negates: the premise is about another unit")
    return Made(SidesAgree(problem), (known,))


@rule
def does_not_fall(problem: Monotonic, known: Theorem) -> Made:
    """If a unit's result does not fall when an operand rises, the two sides of the problem do not differ, whichever
    inputs are admitted. If this is known only of normal numbers, the problem must admit only normal numbers."""
    goal: Rises = goal_of(known, Rises, "does_not_fall")
    if problem.left != problem.right:
        raise RuleError("does_not_fall: the problem is not about one model")
    if (goal.unit, goal.raised) != (problem.left.unit, problem.raised):
        raise RuleError("does_not_fall: the premise is about another unit, or another operand")
    if goal.normal and not problem.inputs.normal:
        raise RuleError("does_not_fall: the premise is about normal numbers alone")
    return Made(SidesAgree(problem), (known,))


def _orders(
    model: Model, inputs: Inputs, compare: Compare, parts: Sequence[Theorem], name: str
) -> set[tuple[int, ...]]:
    """The orders that are known to have no effect. Raises RuleError for a part about anything else."""
    orders = set()
    for part in parts:
        problem = goal_of(part, SidesAgree, name).problem
        if type(problem) is not Reordered or (problem.left, problem.right) != (model, model):
            raise RuleError(f"{name}: a part is about something else than orders of the model")
        if problem.inputs != inputs or problem.compare != compare:
            raise RuleError(f"{name}: a part is about other inputs, or compares otherwise")
        if sorted(problem.order) != list(range(model.length)):
            raise RuleError(f"{name}: the order is not a permutation of the products")
        orders.add(problem.order)
    return orders
