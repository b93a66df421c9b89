"""Equality by stages: the named signals of two evaluations are proved equal in order, each on top of those before.

Two evaluations share one carrier, so that what is built alike is one term. Simulation finds which other signals
agree; each such pair becomes a lemma. In a lemma's query everything proved before stands as a fresh variable on both
sides: an over-approximation, so that "unsat" stands and "sat" only means that the cut was too coarse. A lemma then is
asked again with fewer cuts; the last step is the result itself, which falls back to the whole question.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from pysmt.fnode import FNode
from pysmt.substituter import MGSubstituter

from queries.distinguish import Options, SolverFaultError, build_query, distinguish, symbolic_operands
from queries.problem import Problem
from queries.smtlib import Query
from queries.solvers.contract import Answer
from queries.solvers.portfolio import solve
from queries.witness import Row, Witness, confirmed, replay, shrink
from smtmodel.algebra import Bit, Bits
from smtmodel.carriers.terms import TermCarrier
from smtmodel.trace import Signal

Verdict = Literal["equal", "different", "unknown"]
SAMPLES = 2048  # random inputs by which signals are matched
LEMMA_SHARE = 0.25  # of the time that is left, at most, for one lemma
BRIEF = 3.0  # seconds for a lemma without cuts
MIN_PATIENCE, PATIENCE = 10.0, 30.0  # a confirmation may take so many seconds, or times the first engine's time


@dataclass(frozen=True)
class Lemma:
    """Two signals proved equal: `cuts` earlier ones stood as fresh variables. `confirmed` is another engine's word."""

    left: str
    right: str
    cuts: int
    query: Query
    answer: Answer
    confirmed: Answer | None = None


@dataclass
class Proof:
    """What came of the question: the lemmas in order, and a replayed witness where the two differ."""

    problem: Problem
    verdict: Verdict = "unknown"
    lemmas: list[Lemma] = field(default_factory=list)
    witness: Witness | None = None
    tried: list[Answer] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def engines(self) -> list[str]:
        """The engines on whose word the verdict rests."""
        return sorted({f"{lemma.answer.engine} {lemma.answer.version}" for lemma in self.lemmas})

    @property
    def confirmations(self) -> list[str]:
        """The engines that confirmed every lemma; empty if one lemma has no second word."""
        if not self.lemmas or any(lemma.confirmed is None for lemma in self.lemmas):
            return []
        return sorted({f"{c.engine} {c.version}" for lemma in self.lemmas if (c := lemma.confirmed) is not None})


def prove(problem: Problem, options: Options | None = None, confirm: bool = True) -> Proof:
    """Prove two models equal on every admitted input, or find where they differ. Raises SolverFaultError."""
    return _Prover(problem, options or Options(), confirm).run()


class _Prover:
    def __init__(self, problem: Problem, options: Options, confirm: bool) -> None:
        self.problem, self.options, self.confirm = problem, options, confirm
        self.proof = Proof(problem)
        self.start = time.monotonic()
        self.carrier = TermCarrier(maximum="relational")
        self.inputs = symbolic_operands(problem, self.carrier)
        self.left, self.right = problem.evaluate(self.inputs)
        self.admitted = problem.admits(self.inputs).node
        self.goal = problem.differ(self.left.d, self.right.d).node
        self.pending = {signal.name: signal.value.node for signal in self.right.trace}
        self.maxima = dict(self.carrier.maxima)

    def run(self) -> Proof:
        if not self._differ_at_random():
            self._lemmas()
            self._conclude()
        self.proof.seconds = time.monotonic() - self.start
        return self.proof

    def _remaining(self, share: float = 1.0) -> float | None:
        limit = self.options.timeout
        return None if limit is None else max(0.0, limit - (time.monotonic() - self.start)) * share

    def _differ_at_random(self) -> bool:
        """Whether simulation alone finds a difference."""
        rows = random_rows(self.problem, SAMPLES)
        self.samples = replay(self.problem, rows)
        found = np.flatnonzero(self.samples.differs)
        if len(found):
            witness = confirmed(self.problem, shrink(self.problem, rows[int(found[0])]))
            self.proof.witness, self.proof.verdict = witness, "different"
        return len(found) > 0

    def _lemmas(self) -> None:
        """Prove right signals equal to left ones of the same simulated values, in the order of the stages; each
        proved one is replaced by its twin, so that what is built on the two becomes one term."""
        left, right = (evaluation.trace for evaluation in self.samples.evaluations)
        known: dict[bytes, Signal] = {}
        for signal in self.left.trace:
            if (key := _fingerprint(left[signal.name], SAMPLES)) is not None:
                known.setdefault(key, signal)
        ours = {signal.value.node for signal in self.left.trace}
        for name in list(self.pending):
            node = self.pending[name]
            key = _fingerprint(right[name], SAMPLES)
            twin = None if key is None else known.get(key)
            if twin is None or node in ours or node.is_constant():
                continue
            lemma = self._decide(twin.name, name, self._not_equal(twin.value.node, node), LEMMA_SHARE)
            if lemma is not None:
                self.proof.lemmas.append(lemma)
                self._merge(node, twin.value.node)

    def _merge(self, right: FNode, left: FNode) -> None:
        """Put one term in the place of another; maxima that have become maxima of the same terms are one as well."""
        substitute = MGSubstituter(self.carrier.environment).substitute
        known: dict[frozenset[FNode], FNode] = {}
        changes = {right: left}
        while changes:
            self.pending = {name: substitute(node, changes) for name, node in self.pending.items()}
            self.goal = substitute(self.goal, changes)
            self.maxima = {
                symbol: frozenset(substitute(term, changes) for term in terms)
                for symbol, terms in self.maxima.items()
                if symbol not in changes
            }
            known.clear()
            changes = {symbol: known[t] for symbol, t in self.maxima.items() if known.setdefault(t, symbol) != symbol}

    def _not_equal(self, left: FNode, right: FNode) -> FNode:
        manager = self.carrier.manager
        same = manager.Iff(left, right) if left.get_type().is_bool_type() else manager.Equals(left, right)
        return manager.Not(same)

    def _decide(self, left: str, right: str, goal: FNode, share: float) -> Lemma | None:
        """Refute a goal with shared terms cut out, with fewer, or none; None if that fails or takes too long."""
        limit = self._remaining(share)
        brief = BRIEF if limit is None else min(BRIEF, limit)
        fine, coarse = self._cuts(goal, []), self._cuts(goal, self.carrier.addends)
        for cuts, seconds in ((coarse, limit), (fine, limit), ({}, brief)):
            query = self._query(goal, cuts)
            self.options.progress(f"lemma {left} = {right}: {len(cuts)} cuts")
            answers = solve(query, self.options.solver, seconds, self.options.memory)
            self.proof.tried += answers
            if answers[0].status == "unsat":
                return Lemma(left, right, len(cuts), query, answers[0], self._second(query, answers[0]))
        return None

    def _second(self, query: Query, first: Answer) -> Answer | None:
        """Another engine's word on a query, within the time left."""
        if not self.confirm:
            return None
        engine = "z3" if first.engine != "z3" else "bitwuzla"
        patience = max(MIN_PATIENCE, PATIENCE * first.seconds)
        limit = self._remaining(LEMMA_SHARE)
        limit = patience if limit is None else min(limit, patience)
        answer = solve(query, engine, limit, self.options.memory)[0]
        if answer.status == "sat":
            raise SolverFaultError(f"{first} and {answer} contradict each other")
        return answer if answer.status == "unsat" else None

    def _cuts(self, goal: FNode, addends: Sequence[FNode]) -> dict[FNode, FNode]:
        """Fresh variables for the terms that both sides of a goal share: signals, and the addends of sums."""
        roots = _sides(goal)
        marked = [*(signal.value.node for signal in self.left.trace), *addends]
        cuts = {}
        for node in marked:
            if not (node.is_constant() or node.is_symbol() or node in roots):
                cuts[node] = self.carrier.manager.Symbol(f"cut{node.node_id()}", node.get_type())
        return cuts

    def _query(self, goal: FNode, cuts: dict[FNode, FNode]) -> Query:
        """The goal with cut terms replaced, and with what defines the maxima that it still mentions."""
        substituter = MGSubstituter(self.carrier.environment)
        changed = substituter.substitute(goal, cuts)
        found: dict[FNode, FNode] = {}
        waiting, seen = set(changed.get_free_variables()), set()
        while waiting:
            symbol = waiting.pop()
            seen.add(symbol)
            if symbol in self.maxima:
                terms = [substituter.substitute(term, cuts) for term in self.maxima[symbol]]
                found[symbol] = self.carrier.define_maximum(symbol, terms)
                waiting |= set(found[symbol].get_free_variables()) - seen
        definitions = [found[symbol] for symbol in self.maxima if symbol in found]
        inputs = () if cuts else tuple(bits.node for bits in self.inputs.every if bits.value is None)
        return Query(inputs, (*(() if cuts else (self.admitted,)), *definitions, changed))

    def _conclude(self) -> None:
        if self.goal.is_false():
            self.proof.verdict = "equal"
            return
        lemma = self._decide("result", "result", self.goal, 0.5)
        if lemma is not None:
            self.proof.lemmas.append(lemma)
            self.proof.verdict = "equal"
            return
        outcome = distinguish(self.problem, replace(self.options, timeout=self._remaining(), count=1))
        self.proof.tried += [answer for step in outcome.steps for answer in step.answers]
        if outcome.verdict == "different":
            self.proof.verdict, self.proof.witness = "different", outcome.witnesses[0]
        elif outcome.verdict == "equal":
            query, answer = build_query(self.problem), outcome.steps[-1].answer
            self.proof.verdict = "equal"
            self.proof.lemmas.append(Lemma("whole", "whole", 0, query, answer, self._second(query, answer)))


def _sides(goal: FNode) -> set[FNode]:
    """The two terms whose inequality a lemma states."""
    if goal.is_not() and (goal.arg(0).is_equals() or goal.arg(0).is_iff()):
        return set(goal.arg(0).args())
    return set()


def _fingerprint(signal: Signal, count: int) -> bytes | None:
    """The simulated values of a signal; None for a constant one."""
    value: Bits | Bit = signal.value
    limbs = value.node if isinstance(value.node, tuple) else (value.node,)
    if all(np.ndim(limb) == 0 for limb in limbs):
        return None
    kind = b"t" if isinstance(value, Bit) else str(value.width).encode()
    return kind + b"".join(np.ascontiguousarray(np.broadcast_to(limb, (count,))).tobytes() for limb in limbs)


def random_rows(problem: Problem, count: int, seed: int = 1) -> list[Row]:
    """Inputs for simulation: random bits, near and far exponents, few and many zeros; seeded."""
    rng = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for fmt in problem.layout.formats:
        bits = rng.integers(0, 1 << fmt.width, count, dtype=np.uint64) if fmt.width < 64 else _wide(rng, count)
        centre = fmt.bias + rng.integers(-2, 3, count)
        near = rng.integers(0, 1 << fmt.fraction, count) | (np.clip(centre, 0, (1 << fmt.exponent) - 2) << fmt.fraction)
        sign = rng.integers(0, 1 + fmt.signed, count).astype(np.uint64) << np.uint64(fmt.field_width)
        tidy = (near.astype(np.uint64) << np.uint64(fmt.padding)) | sign
        chance = rng.random(count)
        values = np.where(chance < 0.5, bits, tidy)
        values = np.where(chance > 0.85, np.uint64(0), values)
        values = np.where(chance > 0.98, np.uint64(fmt.infinity) | sign, values)
        columns.append(np.where(chance > 0.99, np.uint64(fmt.largest) | sign, values))
    return [tuple(int(value) for value in row) for row in np.stack(columns, axis=1)]


def _wide(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 1 << 63, count, dtype=np.uint64) << np.uint64(1) | rng.integers(0, 2, count, dtype=np.uint64)
