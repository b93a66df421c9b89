"""Equality by stages: named signals of two evaluations are proved equal in order, each from the equalities before.

Two evaluations share one carrier, so that equal constructions are one term. Simulation finds which other signals agree;
each such pair becomes a lemma. In a lemma's query, terms proved equal before are replaced by a fresh variable (a
cut-point) on both sides. This abstraction over-approximates: "unsat" is valid, and "sat" only means that the
abstraction was too coarse; the lemma is then asked again with fewer cut-points. The last lemma is about the result
itself, and falls back to the whole question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import numpy as np
from pysmt.fnode import FNode

from mmaprobe.queries.equality.attempt import Attempt
from mmaprobe.queries.equality.matching import Matcher
from mmaprobe.queries.equality.simulated import in_order
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.terms.cutting import Abstraction
from mmaprobe.queries.kernel.terms.facts import Alike, Fact, defined, equal, never, one_maximum, replaced, themselves
from mmaprobe.queries.kernel.terms.same import Compared, agreed
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.search.distinguish import Options, admitted_difference, cut_difference, distinguish
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.stored import store_witness, stored_witness
from mmaprobe.queries.search.witness import answered_row, confirmed_witness, differs_on, replay, shrink, shrunk_witness
from mmaprobe.queries.solvers.asking import SolverFaultError
from mmaprobe.queries.tactics.ledger import Ledger, UnprovedError
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.wording import counted

RESULT, WHOLE = "result", "the whole question"
SAMPLES = 4096  # random inputs by which signals are matched
ENOUGH = 256  # with fewer admitted samples, signals are matched on samples that are not admitted, too
SEARCH_SHARE = 0.2  # share of the remaining time for a brief search after a lemma failed
LEMMA_SHARE = 0.25  # the largest share of the remaining time for one lemma
BRIEF, BRIEF_SHARE = 6.0, 0.1  # seconds, or share of the remaining time, for a less important lemma


def prove(problem: Problem, options: Options | None = None, confirm: bool = True) -> Proof:
    """Prove two models equal on every admitted input, or find where they differ.

    An interrupt ends the work; lemmas proved until then are kept. Raises SolverFaultError.
    """
    return _Prover(problem, options or Options(), confirm).run()


class _Prover(Attempt[Problem]):
    searched = False  # whether a brief search followed the first lemma that failed

    def _build(self) -> None:
        """Build the terms of both sides. This is left out if samples show a difference."""
        self.compared = compared = Compared(self.problem, deadline=self.options.deadline)
        self.ledger = Ledger(compared)
        self.carrier, self.left, self.right = compared.carrier, compared.left, compared.right
        self.pending = {signal.name: signal.value.node for signal in self.right.trace}
        self.maxima = dict(self.carrier.maxima)  # maxima that have not been proved equal to another maximum
        every = [compared.differ.node, self.right.d.node, *self.pending.values(), *chain(*self.maxima.values())]
        self.alike = themselves(compared, list(dict.fromkeys(every)))
        self.known: dict[FNode, FNode] = {}
        self.proof.compared = compared

    def _now(self, term: FNode) -> FNode:
        """The term that stands for a term, with the equalities proved so far applied to it and to its subterms."""
        return self.known.get(term, term)

    def _work(self) -> None:
        if not self._differ_at_random():
            self._build()
            with self.carrier.until(self.options.deadline):
                if not self.options.answerless:
                    self._lemmas()
                if self.proof.verdict != "different":
                    self._conclude()

    def _differ_at_random(self) -> bool:
        """Whether simulation alone finds a difference, now or in an earlier run that the store has kept."""
        self.proof.witness = stored_witness(self.problem, self.options)
        if self.proof.witness is not None:
            return True
        rows = sample_rows(self.problem.layout, SAMPLES)
        self.samples = replay(self.problem, rows, traced=True)
        counts = self.samples.admitted != 0
        self.counting = counts if np.count_nonzero(counts) >= ENOUGH else np.full(len(rows), True)
        self.proof.witness = shrunk_witness(self.problem, rows, self.samples.differs)
        if self.proof.witness is None:
            row = cut_difference(self.problem) or admitted_difference(self.problem, self._remaining())
            self.proof.witness = None if row is None else confirmed_witness(self.problem, shrink(self.problem, row))
        store_witness(self.problem, self.proof.witness, self.options)
        return self.proof.witness is not None

    def _differ_when_small(self) -> bool:
        """Whether a brief search finds a difference. It is made once, after the first lemma that failed."""
        if self.searched or self._remaining() == 0:
            return False
        self.searched = True
        outcome = distinguish(self.problem, replace(self.options, timeout=self._remaining(SEARCH_SHARE)), small=True)
        self.proof.tried += [answer for step in outcome.steps for answer in step.answers]
        if outcome.witnesses:
            self.proof.witness = outcome.witnesses[0]
        return bool(outcome.witnesses)

    def _lemmas(self) -> None:
        """Prove signals of the right model equal to signals of the left model with the same simulated values, in the
        order of the stages. A signal that is proved equal is replaced by its twin, so that equal operations of both
        models on the signal become one term."""
        left, right = (evaluation.trace for evaluation in self.samples.evaluations)
        matcher = Matcher(((signal, left[signal.name]) for signal in self.left.trace), self.counting)
        manager = self.carrier.manager
        ours = {signal.value.node for signal in self.left.trace}
        for name, original in self.pending.items():
            node, signed = self._now(original), right[name].is_signed
            twin = matcher.twin(right[name])
            if twin is None or node in ours or node.is_constant():
                continue
            sides = (twin.signal.value.node, node)
            claim = equal(self.compared, *twin.goal(manager, node, signed))
            pair = twin.goal(manager, original, signed)
            proved = self._decide(f"{twin} = {name}", claim, sides, LEMMA_SHARE, pair)
            if proved is not None:
                self._merge(proved, node, twin.replacement(manager, node, signed), sides, str(name))
            elif self._differ_when_small() or self._remaining() == 0:
                return

    def _merge(self, proved: Theorem, right: FNode, left: FNode, sides: Sequence[FNode], name: str) -> None:
        """Replace the term `right` by `left` in all terms. Maxima whose terms are then the same are merged as well."""
        same = equal(self.compared, left, right)
        if proved.goal != Fact(self.compared, same):  # the goal was about terms at another scale
            try:
                proved = self._prove(f"{name} at its own scale", same, sides, [proved], self._brief())
            except UnprovedError:
                return
        changes = [(proved, right, left)]
        while changes:
            self.alike = replaced(self.alike, changes)
            goal = self.alike.goal
            assert isinstance(goal, Alike)
            self.known = dict(zip(goal.terms, goal.others, strict=True))
            first: dict[frozenset[FNode], FNode] = {}
            changes = []
            for symbol, terms in list(self.maxima.items()):
                one = first.setdefault(frozenset(map(self._now, terms)), symbol)
                if one != symbol:
                    changes.append((one_maximum(self.compared, one, symbol, self.alike), symbol, one))
                    del self.maxima[symbol]

    def _decide(
        self, name: str, claim: FNode, sides: tuple[FNode, FNode], share: float, pair: tuple[FNode, FNode] | None = None
    ) -> Theorem | None:
        """The theorem of a claim. All shared signals are cut-points first, then fewer signals, then none. Returns None
        if all these attempts fail."""
        signals = [signal.value.node for signal in self.left.trace]
        shared = set(in_order(sides[:1])) & set(in_order(sides[1:]))
        for marked in ([*signals, *self.carrier.addends], signals, []):
            limit = self._remaining(share)
            if limit == 0:
                return None
            if not marked and name != RESULT:
                limit = self._brief()
            with suppress(UnprovedError):
                return self._prove(name, claim, _cuts(sides, shared, marked), [], limit, pair)
        return None

    def _prove(
        self, name: str, claim: FNode, cuts: Sequence[FNode], facts: Sequence[Theorem], limit: float | None,
        pair: tuple[FNode, FNode] | None = None,
    ) -> Theorem:  # fmt: skip
        """The theorem of a claim, from facts, its maxima's definitions and the admitted inputs. Raises
        UnprovedError."""
        known = [*self._definitions(claim, cuts), *facts, self.ledger.admitted]
        engines = self.options.engines(limit, f"lemma {name}: {counted(len(set(cuts)), 'cut-point')}")
        try:
            theorem = self.ledger.prove(name, claim, known, cuts, engines)
        finally:
            self.proof.tried += [answer for one in engines.answered_queries for answer in one.answers]
        self.proof.lemmas.append(replace(self.ledger.lemma_of(theorem), name=name, pair=pair))
        return theorem

    def _definitions(self, claim: FNode, cuts: Sequence[FNode]) -> list[Theorem]:
        """The definitions of the maxima in a claim, and of the maxima in their terms. In each definition, terms with
        variables of the claim come first, so that the same lemma about another product has the same text."""
        manager = self.carrier.manager
        cut = Abstraction(self.carrier.environment, {node: manager.Symbol(f"cut{node.node_id()}", node.get_type())
                                                for node in cuts})  # fmt: skip
        near = cut(claim).get_free_variables()

        def far(term: FNode) -> tuple[bool, int]:
            seen = cut(term)
            return near.isdisjoint(seen.get_free_variables()), seen.node_id()

        theorems: dict[FNode, Theorem] = {}
        waiting, seen = set(near), set[FNode]()
        while waiting:
            symbol = waiting.pop()
            seen.add(symbol)
            if symbol in self.maxima:
                terms = sorted(map(self._now, self.maxima[symbol]), key=far)
                theorems[symbol] = defined(self.compared, symbol, terms, self.alike)
                waiting |= {free for term in terms for free in cut(term).get_free_variables()} - seen
        return [theorems[symbol] for symbol in self.maxima if symbol in theorems]

    def _brief(self) -> float:
        """The seconds for a less important lemma."""
        limit = self.options.timeout
        return BRIEF if limit is None else min(BRIEF, limit * BRIEF_SHARE, self._remaining() or 0.0)

    def _conclude(self) -> None:
        differ = self.compared.differ.node
        if (goal := self._now(differ)).is_false():
            self._agreed(self.compared, never(self.compared, differ, self.alike))
            return
        if self.options.answerless:
            self._differ_when_small()
            return
        sides = (self.left.d.node, self._now(self.right.d.node))
        proved = self._decide(RESULT, self.carrier.manager.Not(goal), sides, 0.5)
        if proved is not None:
            self._agreed(self.compared, never(self.compared, differ, self.alike, proved))
        elif not self._differ_when_small():
            self._decide_whole()

    def _decide_whole(self) -> None:
        """Asks whether the sides differ, without cut-points and without facts."""
        if (limit := self._remaining()) == 0:
            return
        compared = Compared(self.problem, "select", self.options.deadline)
        ledger = Ledger(compared)
        engines = self.options.engines(limit, WHOLE)
        try:
            fact = ledger.prove(WHOLE, compared.never, [ledger.admitted], [], engines, compared.symbols)
        except UnprovedError:
            answer = engines.answered_queries[-1].answer
            if answer.status != "sat":
                return
        else:
            self.proof.lemmas += ledger.lemmas(fact)
            self._agreed(compared, fact)
            return
        finally:
            self.proof.tried += [answer for one in engines.answered_queries for answer in one.answers]
        row = answered_row(self.problem.layout, answer)
        if not differs_on(self.problem, row):
            raise SolverFaultError(f"{answer} gave an input on which the two do not differ: {row}")
        self.proof.witness = confirmed_witness(self.problem, shrink(self.problem, row))

    def _agreed(self, compared: Compared, fact: Theorem) -> None:
        self.proof.theorem = agreed(compared, fact)


def _cuts(sides: tuple[FNode, FNode], shared: set[FNode], marked: Iterable[FNode]) -> list[FNode]:
    """The terms of `marked` that are proper subterms of both sides (in `shared`) and not atomic."""
    return [node for node in dict.fromkeys(marked)
            if node in shared and node not in sides and not (node.is_constant() or node.is_symbol())]  # fmt: skip
