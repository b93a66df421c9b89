"""Two sides of a problem agree: the rule that derives this from a fact about their terms."""

from __future__ import annotations

from dataclasses import dataclass

from pysmt.fnode import FNode

from queries.kernel.closed import is_own
from queries.kernel.facts import Basis, Fact
from queries.kernel.problem import Problem, symbolic_operands
from queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from smtmodel.carriers.terms import Maximum, TermCarrier


class Compared(Basis):
    """A problem as terms: both sides on the same `inputs`, and in `differ` whether they differ;
    `never`: they do not. Raises OutOfTimeError at the deadline (of time.monotonic)."""

    def __init__(self, problem: Problem, maximum: Maximum = "relational", deadline: float | None = None) -> None:
        if not is_own(type(problem)):
            raise RuleError(f"a {type(problem).__name__} is none of the problems that the project states")
        carrier = TermCarrier(maximum=maximum, signs_apart=maximum == "relational" and problem.signs_apart)
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
        """What is admitted, and what defines the symbols of maxima."""
        return self.assumed, *self.carrier.definitions


@dataclass(frozen=True)
class SidesAgree:
    """On no admitted input do the two sides of a problem differ."""

    problem: Problem

    def statement(self) -> str:
        left, right = self.problem.sides
        return f"{left} of {self.problem.left.reference} = {right} of {self.problem.right.reference}"


@rule
def agreed(compared: Compared, fact: Theorem) -> Made:
    """The sides of a problem agree if it is a fact that their terms do not differ for any admitted values of the
    symbols."""
    if goal_of(fact, Fact, "agreed") != Fact(compared, compared.never):
        raise RuleError("agreed: the fact says something else, or of another problem")
    return Made(SidesAgree(compared.problem), (fact,))
