"""Cases that no input reaches: a theorem from a solver's answer to a question that is made of the unit's own
evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pysmt.fnode import FNode

from mmaprobe.queries.kernel.arguments import remembered
from mmaprobe.queries.kernel.cases.conditions import Condition, Met, conditions_of, flaws_of, hangs
from mmaprobe.queries.kernel.lemmas import answered
from mmaprobe.queries.kernel.naming import model_text
from mmaprobe.queries.kernel.questions.problem import Problem, evaluate_on, symbolic_operands
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, truth
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.nodes.node import Flaw

Case = tuple[Condition, ...]  # conditions that hold together


@dataclass(frozen=True)
class Unreachable:
    """No input of a unit reaches any of some cases."""

    model: Model
    cases: tuple[Case, ...]

    def statement(self) -> str:
        return f"no input of {model_text(self.model)} reaches: {'; '.join(map(text_of, self.cases))}"


def text_of(case: Case) -> str:
    """A case in words."""
    return " and ".join(map(str, case))


@dataclass(frozen=True)
class Datapath:
    """A unit evaluated over solver terms, with its conditions. `result`: its result; `own`: what defines the terms of
    the unit without flaws; `hung`: whether the result is another one with a flaw, where this was asked."""

    model: Model
    carrier: TermCarrier
    operands: Operands[Bits]
    result: Bits
    flags: Met
    own: tuple[FNode, ...]
    hung: dict[Flaw, Bit] = field(default_factory=dict)

    def query(self, cases: Sequence[Case]) -> Query:
        """Is there an input that reaches one of the cases? Raises RuleError for a condition that the unit has not."""
        if any(condition not in self.flags for case in cases for condition in case):
            raise RuleError("a case of another unit")
        wanted = any_of([all_of(self._reached(case)) for case in cases])
        symbols = tuple(bits.node for bits in self.operands.every if bits.value is None)
        return Query(symbols, (*self.own, *self._others(wanted), wanted.node))

    def hangs(self, flaw: Flaw) -> Bit:
        """Whether the result is another one with a flaw; formed once."""
        if flaw not in self.hung:
            self.hung[flaw] = hangs(self.model, self.operands, self.result, {flaw: truth(self.carrier, True)})
        return self.hung[flaw]

    def _reached(self, case: Case) -> list[Bit]:
        """The truth values that hold where a case is reached."""
        met = [self.flags[condition] for condition in case]
        return met if any(flag.value is False for flag in met) else [*met, *map(self.hangs, flaws_of(case))]

    def _others(self, wanted: Bit) -> list[FNode]:
        """The definitions of the maxima of units with flaws on which a truth value depends."""
        found, read = list[FNode](), set(wanted.node.get_free_variables())
        for symbol, terms in reversed(list(self.carrier.maxima.items())[len(self.own) :]):
            if symbol in read:
                found.append(self.carrier.define_maximum(symbol, sorted(terms, key=FNode.node_id)))
                read.update(*(term.get_free_variables() for term in terms))
        return found


@remembered(8)
def datapath(model: Model, free: tuple[int, ...] | None = None) -> Datapath:
    """The datapath of a unit; made once. `free`: the products that are not zero; None: any."""
    carrier = TermCarrier(maximum="relational")
    problem = Problem(model, model)
    operands = symbolic_operands(problem, carrier, free)
    evaluation = evaluate_on(model, operands)
    flags, own = conditions_of(model, problem.layout, operands, evaluation), tuple(carrier.definitions)
    path = Datapath(model, carrier, operands, evaluation.d, flags, own)
    for flaw in flaws_of(flags) if free is None else ():  # in one order, so that a question has one text
        path.hangs(flaw)
    return path


@rule
def refuted(goal: Unreachable, engines: Engines, others: Sequence[Engines] = ()) -> Made:
    """No input reaches any of the cases if an engine finds that the question whether one does has no model; one of the
    others may confirm it. The query is made here, of the unit's own evaluation over every input, with nothing
    abstracted."""
    return Made(goal, (), *answered(datapath(goal.model).query(goal.cases), goal.statement(), engines, others))


@rule
def implied(goal: Unreachable, premise: Theorem) -> Made:
    """No input reaches cases each of which has every condition of a case that no input reaches."""
    known: Unreachable = goal_of(premise, Unreachable, "implied")
    if known.model != goal.model:
        raise RuleError("implied: the premise is about another unit")
    for case in goal.cases:
        if not any(set(part) <= set(case) for part in known.cases):
            raise RuleError(f"implied: the premise does not speak of {text_of(case)}")
    return Made(goal, (premise,))


def unreachable_by(theorems: Mapping[Case, Theorem], model: Model, case: Case) -> Theorem | None:
    """The theorem that a case is not reached, from a theorem about one of its conditions."""
    for part in ((condition,) for condition in case):
        if part in theorems:
            return implied(Unreachable(model, (case,)), theorems[part])
    return None
