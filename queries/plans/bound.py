"""A tactic for error bounds of plans: it composes the error bounds of units by rules of `mmaprobe.queries.kernel`."""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.queries.kernel.bounds import enclosures, parts, sums, transformations
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.bounds.sums import START, Summed
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.questions.steps import (
    Added,
    Begin,
    Compensated,
    Halved,
    Loop,
    PlanAt,
    SoFar,
    Step,
    Tile,
    Zero,
    recorded,
)
from mmaprobe.queries.kernel.questions.windows import Windowed
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.bound import Settle, chain_of, formats_of, from_terms, from_zero, is_zero, proved
from mmaprobe.queries.tactics.settling import result_or_none
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Cut, Element, ExactSum, Literal, Node, Product, Relu, Round
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Stage

Windows = tuple[tuple[str, tuple[int, int]], ...]  # exponents by operand
Formats = tuple[tuple[int, frozenset[Format]], ...]  # by level, the formats assumed for the start and for sums so far


def bound_of_plan(plan: Plan, length: int | None, settle: Settle, windows: Windows = ()) -> Theorem:
    """A theorem that bounds |d - exact| for K = `length`, or, if `length` is None, for every multiple of the plan's
    period. `settle`: proves a lemma, or returns None; `windows`: the exponents that operands are assumed to have.
    Raises RuleError if no rule gives a bound, and ParameterError if the plan does not take `length` products."""
    with plan.named():
        return _Composer(plan, length, settle, windows).result()


class _Composer:
    def __init__(self, plan: Plan, length: int | None, settle: Settle, windows: Windows = ()) -> None:
        self.plan, self.length, self.settle, self.windows = plan, length, settle, windows
        self.chains: dict[tuple[Model, bool], Theorem | None] = {}
        self.steps: dict[tuple[Step, Formats], Theorem] = {}
        self.sums: dict[Stage, Theorem] = {}
        #: the nodes at which words are joined into numbers; nodes above these only round or rectify
        self.whole = _rejoined_at(plan)
        self.residuals = transformations.residuals(plan.result)

    def result(self) -> Theorem:
        node, top = self.plan.result, set[Node]()
        while isinstance(node, (Round, Cut)):
            node = node.term
            top.add(node)
        for products in self.plan.sums:
            self.sums[products.stage] = self._sum(products.stage)
        goals = [theorem.goal for theorem in self.sums.values() if isinstance(theorem.goal, Summed)]
        growth = max(goal.growth or Fraction(1) for goal in goals)
        loops = max(1, *(goal.loops for goal in goals))
        at = PlanAt(self.plan, self.length, growth, loops)
        return self._node(self.plan.result, Windowed(at, self.windows) if self.windows else at, top)

    # -- the expression around the sums

    def _node(self, node: Node, at: PlanAt | Windowed, top: set[Node]) -> Theorem:
        theorem = self._made(node, at, top)
        if node in self.whole and isinstance(theorem.goal, Enclosed) and theorem.goal.assuming:
            theorem = parts.rejoined(theorem)
        return enclosures.whole(theorem) if node in top else theorem

    def _made(self, node: Node, at: PlanAt | Windowed, top: set[Node]) -> Theorem:
        match node:
            case Element():
                return enclosures.element(at, node)
            case Constant():
                return enclosures.constant(at, node)
            case Literal():
                return enclosures.literal(at, node)
            case Products():
                start, lemmas = self._node(node.start, at, top), proved(sums.word_lemmas(self.plan), self.settle)
                return sums.of_all_products(at, node, self.sums[node.stage], start, lemmas)
            case ExactSum() if not self.residuals.isdisjoint(transformations.followed_nodes(node)):
                premises = [self._node(leaf, at, top) for leaf in transformations.leaves(node)]
                return transformations.error_free(node, (), premises, proved(transformations.losses(node), self.settle))
        if not isinstance(node, (Product, ExactSum, Relu, Cut, Round)):
            raise RuleError(f"no rule says what {node.kind} loses in a plan")
        return from_terms(node, (), lambda: [self._node(one, at, top) for one in node.operands], self.settle)

    # -- the sums of products

    def _sum(self, stage: Stage) -> Theorem:
        starts = [product.start for product in self.plan.sums if product.stage == stage]
        zero = all(isinstance(start, Constant) for start in starts)
        formats = frozenset[Format]() if zero else frozenset({stage.accumulator})
        return self._step(recorded(self.plan, stage, self.length), {START: formats})

    def _step(self, step: Step, formats: dict[int, frozenset[Format]]) -> Theorem:
        every = tuple(sorted(formats.items()))
        waiting = [step]  # the first value of a long sum nests deeply: the innermost step comes first
        while isinstance(last := waiting[-1], Added) and (last, every) not in self.steps:
            waiting.append(last.values[0])
        for one in reversed(waiting):
            if (one, every) not in self.steps:
                self.steps[one, every] = self._step_made(one, formats)
        return self.steps[step, every]

    def _step_made(self, step: Step, formats: dict[int, frozenset[Format]]) -> Theorem:
        match step:
            case Begin():
                return sums.begun(self.plan, step, formats[START])
            case SoFar():
                return sums.held(self.plan, step, formats[step.level])
            case Zero():
                return sums.nothing(self.plan, step)
            case Tile():
                start = self._step(step.start, formats)
                zero = self._from_zero(step.model) if is_zero(start) else None
                return sums.tile(step, zero or self._chain(step.model), start)
            case Added():
                values = [self._step(value, formats) for value in step.values]
                return sums.added(step, values, self._lemma(step.rounding))
            case Compensated():
                own, parts = self._step(step.start, formats), [self._step(part, formats) for part in step.parts]
                return sums.compensated(step, own, parts, self._lemma(step.rounding))
            case Halved():
                leaves = [self._step(leaf, formats) for leaf in step.leaves]
                return sums.halved(step, leaves, self._lemma(step.rounding))
            case Loop():
                start = self._step(step.start, formats)
                both = formats_of(start) | _results(step.body)
                body, zero = self._step(step.body, {**formats, step.level: both}), None
                if is_zero(start):
                    zero = self._step(step.body, {**formats, step.level: frozenset()})
                return sums.iterated(step, start, body, zero)
        raise RuleError(f"no rule about {type(step).__name__}")

    def _lemma(self, how: Rounding) -> list[Theorem]:
        return proved([RoundingLoses(how.format, how.fixed)], self.settle)

    def _chain(self, model: Model) -> Theorem:
        if (theorem := self.chains.get((model, False))) is None:
            if any(of_kind(model.unit.result, Relu)):  # the exact result is then no sum
                raise RuleError("no rule bounds sums of a unit that rectifies")
            theorem = self.chains[model, False] = chain_of(model.unit, self.settle)
        return theorem

    def _from_zero(self, model: Model) -> Theorem | None:
        """The theorem about an instruction from zero; None if no rule says more of this than of an instruction from any
        sum."""
        if (model, True) not in self.chains:
            self._chain(model)
            self.chains[model, True] = result_or_none(lambda: sums.from_zero(from_zero(model.unit, self.settle)))
        return self.chains[model, True]


def _rejoined_at(plan: Plan) -> set[Node]:
    node = plan.result
    while isinstance(node, (Round, Cut, Relu)):
        node = node.term
    return set(plan.sums) if any(of_kind(node, Relu)) else {node}


def _results(step: Step) -> frozenset[Format]:
    """The formats of a step's results; empty for a start, a zero and a sum so far."""
    match step:
        case Tile():
            return frozenset({step.model.d})
        case Added() | Compensated() | Halved():
            return frozenset({step.rounding.format})
        case Loop():
            return _results(step.start) | _results(step.body)
    return frozenset()
