"""Equality by stages: the named signals of two evaluations are proved equal in order, each on top of those before.

Two evaluations share one carrier, so that what is built alike is one term. Simulation finds which other signals
agree; each such pair becomes a lemma. In a lemma's query every term proved before is replaced by a fresh variable (a
cut-point) on both sides. This abstraction over-approximates: "unsat" is valid, and "sat" only means that it was too
coarse. The lemma is then asked again with fewer cut-points; the last step is the result itself, which falls back to the
whole question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from pysmt.fnode import FNode
from pysmt.formula import FormulaManager

from queries.equality.matching import Matcher
from queries.proof.confirm import confirm
from queries.proof.cutting import Cutter, conjuncts, renamed
from queries.proof.records import Basis, Lemma, Proof
from queries.search.distinguish import Options, distinguish, symbolic_operands
from queries.search.problem import Problem
from queries.search.samples import sample_rows
from queries.search.witness import confirmed, replay, shrink
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit
from smtmodel.carriers.terms import TermCarrier
from smtmodel.trace import Name, Part, Stage

RESULT = "result"
BOUNDS = "bounds of the aligned magnitudes"
SAMPLES = 4096  # random inputs by which signals are matched
ENOUGH = 256  # of them that count; with fewer, those that do not count are looked at as well
SEARCH_SHARE = 0.2  # of the time that is left, for a brief search after a lemma failed
LEMMA_SHARE = 0.25  # of the time that is left, at most, for one lemma
BRIEF, BRIEF_SHARE = 6.0, 0.1  # seconds, or share of the time, for a lemma that is not worth more


def prove(problem: Problem, options: Options | None = None, confirm: bool = True) -> Proof:
    """Prove two models equal on every admitted input, or find where they differ.

    An interrupt ends the work; what was proved until then is kept. Raises SolverFaultError.
    """
    return _Prover(problem, options or Options(), confirm).run()


class _Prover:
    def __init__(self, problem: Problem, options: Options, confirm: bool) -> None:
        self.problem, self.options, self.confirm = problem, options, confirm
        self.proof = Proof(problem)
        self.start = self.options.clock()
        self.searched = False
        self.asked: dict[str, list[Answer]] = {}

    def _build(self) -> None:
        """The terms of both sides, which a difference among samples does not need."""
        problem = self.problem
        self.carrier = TermCarrier(maximum="relational", signed_sum=problem.signed_sum)
        self.inputs = symbolic_operands(problem, self.carrier)
        self.left, self.right = problem.evaluate(self.inputs)
        self.admitted = problem.admits(self.inputs).node
        self.goal = problem.differ(self.left.d, self.right.d).node
        self.results = (self.left.d.node, self.right.d.node)
        self.pending = {signal.name: signal.value.node for signal in self.right.trace}
        self.maxima = dict(self.carrier.maxima)
        self.largest: dict[FNode, FNode] | None = None
        self.proof.basis = self._basis()

    def _basis(self) -> Basis:
        marked = [*(signal.value.node for signal in self.left.trace), *self.carrier.addends]
        cuts = tuple(node for node in dict.fromkeys(marked) if not (node.is_constant() or node.is_symbol()))
        inputs = tuple(bits.node for bits in self.inputs.every if bits.value is None)
        assertions = (self.admitted, *self.carrier.definitions)
        return Basis(self.carrier.environment, inputs, assertions, self.goal, cuts, dict(self.maxima))

    def run(self) -> Proof:
        try:
            if not self._differ_at_random():
                self._build()
                self._lemmas()
                if self.proof.verdict != "different":
                    self._conclude()
                if self.confirm and self.proof.verdict == "equal":
                    self.proof.lemmas = confirm(self.proof.lemmas, self.options, self.options.clock() - self.start)
        except KeyboardInterrupt:
            self.proof.interrupted = True
        self.proof.seconds = self.options.clock() - self.start
        return self.proof

    def _remaining(self, share: float = 1.0) -> float | None:
        limit = self.options.timeout
        return None if limit is None else max(0.0, limit - (self.options.clock() - self.start)) * share

    def _differ_at_random(self) -> bool:
        """Whether simulation alone finds a difference."""
        rows = sample_rows(self.problem.layout, SAMPLES)
        self.samples = replay(self.problem, rows, traced=True)
        counts = self.samples.admitted != 0
        self.counting = counts if np.count_nonzero(counts) >= ENOUGH else np.full(len(rows), True)
        found = np.flatnonzero(self.samples.differs)
        if len(found):
            witness = confirmed(self.problem, shrink(self.problem, tuple(map(int, rows[found[0]]))))
            self.proof.witness, self.proof.verdict = witness, "different"
        return len(found) > 0

    def _differ_when_small(self) -> bool:
        """Whether a brief search finds a difference; asked once, when a lemma has failed."""
        if self.searched:
            return False
        self.searched = True
        outcome = distinguish(self.problem, replace(self.options, timeout=self._remaining(SEARCH_SHARE)), small=True)
        self.proof.tried += [answer for step in outcome.steps for answer in step.answers]
        if outcome.witnesses:
            self.proof.verdict, self.proof.witness = "different", outcome.witnesses[0]
        return bool(outcome.witnesses)

    def _lemmas(self) -> None:
        """Prove right signals equal to left ones of the same simulated values, in the order of the stages; each
        proved one is replaced by its twin, so that what is built on the two becomes one term."""
        left, right = (evaluation.trace for evaluation in self.samples.evaluations)
        matcher = Matcher(((signal, left[signal.name]) for signal in self.left.trace), self.counting)
        original = dict(self.pending)
        manager = self.carrier.manager
        ours = {signal.value.node for signal in self.left.trace}
        for name in list(self.pending):
            node, signed = self.pending[name], right[name].is_signed
            twin = matcher.twin(right[name])
            if twin is None or node in ours or node.is_constant():
                if name.stage is Stage.ALIGNED and self.problem.signed_sum == "signs_apart":
                    self._opposite(name, original)
                continue
            sides = (twin.signal.value.node, node)
            goal = _differ(manager, *twin.goal(manager, node, signed))
            pair = twin.goal(manager, original[name], signed)
            if self._decide(f"{twin} = {name}", goal, sides, LEMMA_SHARE, pair):
                self._merge(node, twin.replacement(manager, node, signed))
            elif self._differ_when_small() or self._remaining() == 0:
                return

    def _opposite(self, aligned: Name, original: Mapping[Name, FNode]) -> None:
        """A term that is a sum itself, if the two seem to have opposite signs wherever it is not zero: that what is
        added for the one sign is what is added for the other."""
        manager, name = self.carrier.manager, aligned._replace(stage=Stage.TERM, part=Part.SIGN)
        ours, theirs = self.left.trace[name].value.node, self.pending[name]
        seen, other = (evaluation.trace for evaluation in self.samples.evaluations)
        lanes = seen[aligned].value.node
        if theirs == manager.Not(ours) or isinstance(lanes, tuple):
            return
        if np.any((lanes != 0) & (seen[name].value.node == other[name].value.node)):
            return
        magnitude = self.left.trace[aligned].bits
        fact = manager.Implies(magnitude.any().node, manager.Not(manager.Iff(original[name], ours)))
        chosen = [node for node in _subterms(self.goal) if node.is_ite() and node.arg(0) == theirs]
        chosen = sorted((node for node in chosen if node.get_type().is_bv_type()), key=FNode.node_id)
        for place, node in enumerate(chosen, 1):
            lemma = f"opposite signs of {aligned}, part {place}"
            swapped = manager.Ite(ours, node.arg(2), node.arg(1))
            cuts = self._cuts((node, swapped), self.carrier.addends)
            query = self._query(_differ(manager, node, swapped), cuts, [])
            answers = self._ask(query, self._brief(), f"lemma {lemma}")
            if answers[0].status == "unsat":
                self.proof.lemmas.append(Lemma(lemma, len(cuts), query, answers[0], fact=fact))
                self._merge(node, swapped)

    def _merge(self, right: FNode, left: FNode) -> None:
        """Put one term in the place of another; maxima that have become maxima of the same terms are one as well."""
        known: dict[frozenset[FNode], FNode] = {}
        changes = {right: left}
        while changes:
            changed = Cutter(self.carrier.environment, changes)
            self.pending = {name: changed(node) for name, node in self.pending.items()}
            self.goal = changed(self.goal)
            self.results = (self.results[0], changed(self.results[1]))
            self.maxima = {
                symbol: frozenset(map(changed, terms)) for symbol, terms in self.maxima.items() if symbol not in changes
            }
            known.clear()
            changes = {symbol: known[t] for symbol, t in self.maxima.items() if known.setdefault(t, symbol) != symbol}

    def _decide(
        self, name: str, goal: FNode, sides: tuple[FNode, FNode], share: float, pair: tuple[FNode, FNode] | None = None
    ) -> bool:
        """Whether a goal is refuted, with shared terms cut out, with fewer, with their bounds, or without cuts."""
        signals = [signal.value.node for signal in self.left.trace]
        fine = self._cuts(sides, signals)
        for kind in ("coarse", "fine", "bounded", "whole"):
            cuts = {"coarse": self._cuts(sides, [*signals, *self.carrier.addends]), "whole": {}}.get(kind, fine)
            bounds = self._bounds(cuts) if kind == "bounded" else []
            if kind == "bounded" and not bounds:
                continue
            limit = self._remaining(share)
            if limit == 0:
                return False
            if kind == "whole" and name != RESULT:
                limit = self._brief()
            query = self._query(goal, cuts, bounds)
            answers = self._ask(query, limit, f"lemma {name}: {len(cuts)} cuts")
            if answers[0].status == "unsat":
                using = BOUNDS if bounds else ""
                self.proof.lemmas.append(Lemma(name, len(cuts), query, answers[0], pair, using=using))
                return True
        return False

    def _ask(self, query: Query, limit: float | None, name: str) -> list[Answer]:
        if query.text not in self.asked:
            answers = self.options.ask(query, limit, name)
            self.proof.tried += answers
            if answers[0].status == "unknown":
                return answers
            self.asked[query.text] = answers
        return self.asked[query.text]

    def _brief(self) -> float:
        limit = self.options.timeout
        return BRIEF if limit is None else min(BRIEF, limit * BRIEF_SHARE, self._remaining() or 0.0)

    def _bounds(self, cuts: dict[FNode, FNode]) -> list[FNode]:
        """Facts about cut magnitudes that a cut loses: none is larger than any that simulation saw. Proved all at
        once, the first time that they are wanted; none if that fails."""
        if self.largest is None:
            self.largest = self._prove_bounds()
        manager = self.carrier.manager
        return [manager.BVULE(cuts[node], bound) for node, bound in self.largest.items() if node in cuts]

    def _prove_bounds(self) -> dict[FNode, FNode]:
        manager, seen = self.carrier.manager, self.samples.evaluations[0].trace
        found: dict[FNode, FNode] = {}
        for signal in self.left.trace:
            value = signal.value
            if isinstance(value, Bit) or signal.scale is None or signal.is_signed or value.node.is_constant():
                continue
            lanes = seen[signal.name].value.node
            if isinstance(lanes, tuple) or np.ndim(lanes) == 0 or not (most := int(lanes[self.counting].max())):
                continue
            if most < (1 << value.width) - 1 and signal.name.stage is Stage.ALIGNED:
                found[value.node] = manager.BV(most, value.width)
        if not found:
            return {}
        goal = manager.Or([manager.BVULT(bound, node) for node, bound in found.items()])
        query = self._query(goal, {}, [])
        answers = self._ask(query, 2 * self._brief(), f"lemma {BOUNDS}")
        if answers[0].status != "unsat":
            return {}
        fact = manager.And([manager.BVULE(node, bound) for node, bound in found.items()])
        self.proof.lemmas.append(Lemma(BOUNDS, 0, query, answers[0], fact=fact))
        return found

    def _cuts(self, sides: tuple[FNode, FNode], marked: Iterable[FNode]) -> dict[FNode, FNode]:
        """Fresh variables for those of the marked terms that both sides are built on."""
        shared = _subterms(sides[0]) & _subterms(sides[1])
        cuts = {}
        for node in marked:
            if node in shared and node not in sides and not (node.is_constant() or node.is_symbol()):
                cuts[node] = self.carrier.manager.Symbol(f"cut{node.node_id()}", node.get_type())
        return cuts

    def _query(self, goal: FNode, cuts: dict[FNode, FNode], bounds: list[FNode]) -> Query:
        """The goal with cut terms replaced, with bounds of these, with what defines the maxima still mentioned, and
        with the restrictions of the inputs that say something about what is left.

        What speaks of the goal's variables comes first, and variables are named by the order in which they occur: the
        same lemma about another product is the same text.
        """
        cut = Cutter(self.carrier.environment, cuts)
        goal = cut(goal)
        near = goal.get_free_variables()

        def far(term: FNode) -> tuple[bool, int]:
            return near.isdisjoint(term.get_free_variables()), term.node_id()

        found: dict[FNode, FNode] = {}
        waiting, seen = set(near), set()
        while waiting:
            symbol = waiting.pop()
            seen.add(symbol)
            if symbol in self.maxima:
                terms = sorted(map(cut, self.maxima[symbol]), key=far)
                found[symbol] = self.carrier.define_maximum(symbol, terms)
                waiting |= set(found[symbol].get_free_variables()) - seen
        definitions = [found[symbol] for symbol in self.maxima if symbol in found]
        admitted = [part for part in map(cut, conjuncts(self.admitted)) if seen & set(part.get_free_variables())]
        parts = [goal, *sorted([*definitions, *bounds, *admitted], key=far)]
        return Query((), renamed(self.carrier.environment, parts)[0])

    def _conclude(self) -> None:
        if self.goal.is_false():
            self.proof.verdict = "equal"
            return
        if self._decide(RESULT, self.goal, self.results, 0.5):
            self.proof.verdict = "equal"
            return
        if self._differ_when_small():
            return
        outcome = distinguish(self.problem, replace(self.options, timeout=self._remaining(), count=1))
        self.proof.tried += [answer for step in outcome.steps for answer in step.answers]
        if outcome.verdict == "different":
            self.proof.verdict, self.proof.witness = "different", outcome.witnesses[0]
        elif outcome.verdict == "equal":
            last = outcome.steps[-1]
            self.proof.verdict = "equal"
            self.proof.lemmas.append(Lemma("the whole question", 0, last.query, last.answer))


def _subterms(root: FNode) -> set[FNode]:
    found, stack = {root}, [root]
    while stack:
        for child in stack.pop().args():
            if child not in found:
                found.add(child)
                stack.append(child)
    return found


def _differ(manager: FormulaManager, left: FNode, right: FNode) -> FNode:
    same = manager.Iff(left, right) if left.get_type().is_bool_type() else manager.Equals(left, right)
    return manager.Not(same)
