"""Rules that the two sides of a problem agree: by a fact about their terms, or by one query."""

from __future__ import annotations

from dataclasses import dataclass

from pysmt.fnode import FNode

from mmaprobe.queries.kernel.arguments import whole
from mmaprobe.queries.kernel.closed import is_own
from mmaprobe.queries.kernel.lemmas import answered
from mmaprobe.queries.kernel.questions.problem import Problem, symbolic_operands
from mmaprobe.queries.kernel.terms.facts import Basis, Fact
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, is_theorem, rule
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.carriers.terms import Maximum, TermCarrier


class Compared(Basis):
    """A problem as terms. `left`, `right`: both sides on the same `inputs`; `differ`: the condition that the sides
    differ; `never`: its negation. Raises OutOfTimeError at the deadline (of time.monotonic)."""

    def __init__(self, problem: Problem, maximum: Maximum = "relational", deadline: float | None = None) -> None:
        if not is_own(type(problem)):
            raise RuleError(f"a {type(problem).__name__} is none of the problems that the project states")
        whole(problem)
        apart = maximum == "relational" and problem.signs_apart
        carrier = TermCarrier(maximum=maximum, signs_apart=apart, in_rows=problem.in_rows)
        self.problem = problem
        self.inputs = symbolic_operands(problem, carrier)
        with carrier.until(deadline):
            self.left, self.right = problem.evaluate(self.inputs)
        self.differ = problem.differ(self.left.d, self.right.d)
        self.never = carrier.manager.Not(self.differ.node)
        super().__init__(carrier, problem.admits(self.inputs).node)

    @property
    def symbols(self) -> tuple[FNode, ...]:
        """The free symbols of the inputs."""
        return tuple(bits.node for bits in self.inputs.every if bits.value is None)

    @property
    def assertions(self) -> tuple[FNode, ...]:
        """The condition that the inputs are admitted, and the definitions of the symbols of maxima."""
        return self.assumed, *self.carrier.definitions

    @property
    def question(self) -> Query:
        """The query whether there is an admitted input on which the sides differ."""
        return Query(self.symbols, (*self.assertions, self.differ.node))


@dataclass(frozen=True)
class SidesAgree:
    """On no admitted input do the two sides of a problem differ."""

    problem: Problem

    def statement(self) -> str:
        return self.problem.stated


def agrees(theorem: Theorem | None, problem: Problem) -> bool:
    """Whether the theorem states that the sides of a problem agree."""
    return theorem is not None and is_theorem(theorem) and theorem.goal == SidesAgree(problem)


@rule
def undiffering(problem: Problem, maximum: Maximum, engines: Engines) -> Made:
    """The sides of a problem agree if an engine finds that the query whether they differ on an admitted input has no
    model. The query is made here, from both evaluations, with nothing abstracted."""
    goal, query = SidesAgree(problem), Compared(problem, maximum, engines.until).question
    return Made(goal, (), *answered(query, goal.statement(), engines))


@rule
def agreed(compared: Compared, fact: Theorem) -> Made:
    """The sides of a problem agree if it is a fact that their terms do not differ for any admitted values of the
    symbols."""
    if goal_of(fact, Fact, "agreed") != Fact(compared, compared.never):
        raise RuleError("agreed: the fact says something else, or of another problem")
    return Made(SidesAgree(compared.problem), (fact,))
