"""The decision of claims about algorithms: verified, refuted by a replayed input, or unknown with a list of attempts.

One input refutes a claim about all inputs, and verifies a claim that some input exists. If such an input is expected,
the search for it comes first: simulation, small questions (most products zero, or narrow windows), then the whole
question, where "unsat" decides the other way. Otherwise a brief simulation precedes the proof, and continues if the
proof stays open.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import NoReturn

import numpy as np
from pysmt.fnode import FNode

from mmaprobe.hypotheses.claim import Claim, Largest
from mmaprobe.queries.claims.algorithms import DECIDED, AlgorithmOutcome, compared_with_magnitudes
from mmaprobe.queries.claims.faults import no_number
from mmaprobe.queries.claims.long_sums import Long, LongSums
from mmaprobe.queries.claims.maximise import climb
from mmaprobe.queries.claims.outcome import SearchStep
from mmaprobe.queries.claims.samples import BATCH, SHRINK, claim_rows
from mmaprobe.queries.claims.shares import within_lengths, within_of
from mmaprobe.queries.claims.stages import Stages
from mmaprobe.queries.kernel.bounds.unit_shares import compares, for_every_length
from mmaprobe.queries.kernel.lemmas import settled
from mmaprobe.queries.kernel.questions.scene import conditions, symbolic_scene
from mmaprobe.queries.kernel.terms.undecided import (
    ConditionsReadNumbers,
    FirstWordIsWhole,
    Question,
    ZerosGiveZero,
    by_first_words,
    lemmas_of,
    undecided,
)
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.bound import Settle
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table
from mmaprobe.queries.search.scene import ClaimBatch, build_query, evaluate_claim
from mmaprobe.queries.search.witness import Row, answered_row, shrink_rows
from mmaprobe.queries.solvers.asking import Engines, SolverFaultError
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.engines import engines_of
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.tactics.confirm import confirm
from mmaprobe.queries.tactics.ledger import Ledger, UnprovedError
from mmaprobe.queries.tactics.records import Lemma
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.exact import Window
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, OutOfTimeError, ParameterError
from mmaprobe.smtmodel.base.interrupts import working_until
from mmaprobe.smtmodel.base.progress import Notice, Share, Wait
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.nodes import Literal, Node, Product
from mmaprobe.smtmodel.nodes.rewriting import rebuilt

SAMPLE_SHARE, SAMPLE_LEAST, SAMPLE_MOST = 0.05, 1.0, 30.0  # simulation: share of the time, least and most seconds
BEFORE = 64 * BATCH  # inputs, at most, simulated before a proof is tried
SMALL_SHARE = 0.1  # largest share of the time for one small question
CLIMB_SHARE, CLIMB_MOST = 0.4, 100.0  # climbing to the worst input: share of the time, most seconds
REACHED, REACHED_MOST, REACHED_SHARE = 1.0, 20.0, 0.3  # climbing: seconds if proved, if not; share of time
ALONE, ALONE_SHARE = 1.0, 0.25  # climbing with one product first: most seconds, share of the time for climbing
SEARCHED = 32  # products, at most, in a term by term search, for a claim about several numbers of products
BRIEFLY = 4.0  # seconds for the largest share with few products, if more products follow
LONGER = 12.0  # seconds, about, for the search with more products
SHRINK_SHARE = 0.5  # of the time, at most, in which an input is made small: error bounds come afterwards
LONG = 10.0  # seconds above which the whole question is announced
BRIEF = 10.0  # seconds for a lemma that makes questions smaller


def verify(claim: Claim, options: Options | None = None, known: Sequence[Row] = ()) -> AlgorithmOutcome:
    """Decide a claim within the time of the options. `known`: inputs of any number of products, perhaps with large
    shares of the sum of magnitudes.

    An interrupt ends the work. Raises InputError for a claim that admits no input, or has a quantity that is not a
    number on an admitted input, and SolverFaultError.
    """
    return _Verifier(claim, options or Options(), known).run()


class _Verifier:
    def __init__(self, claim: Claim, options: Options, known: Sequence[Row] = ()) -> None:
        self.claim, self.options, self.progress = claim, replace(options, progress=self._doing), options.progress
        self.doing = "the first inputs"
        self.start = time.monotonic()
        self.outcome = AlgorithmOutcome(claim, late=True)
        self.admitted = False
        self.batches = 0  # batches of inputs simulated
        self.apart: list[Lemma] = []  # about first words and conditions, not about the question
        self.settled: dict[FirstWordIsWhole | ZerosGiveZero, Theorem] = {}
        self.known = [*known]  # inputs of any number of products, perhaps with large shares
        self.compared = dict[int, Largest | None]()  # by number of products
        self.best = dict[int, tuple[Fraction, Row]]()  # by number of products: the largest share found, and its input

    def run(self) -> AlgorithmOutcome:
        outcome = self.outcome
        try:
            with working_until(self._end):
                self._run()
        except KeyboardInterrupt:
            outcome.interrupted = True
            if outcome.row is None:  # the last attempt is the one that found it
                outcome.asked.append(SearchStep(self.doing))
        except OutOfTimeError as late:
            if outcome.row is None:
                self._tried(f"{self.doing}: {late}", self.start)
        return outcome

    def _doing(self, text: str) -> None:
        self.doing = self.doing if isinstance(text, Notice) else text or self.doing
        self.progress(text)

    @property
    def _end(self) -> float | None:
        """The end of the time, of time.monotonic."""
        return None if self.options.timeout is None else self.start + self.options.timeout

    def _run(self) -> None:
        """Raises OutOfTimeError."""
        if self.claim.assertion.most is not None:
            self._lengths()
            return
        limits = (self._patience, math.inf) if self._expects_input else (SAMPLE_LEAST, BEFORE)
        if self._simulate(*limits) or self._climb():
            self._shares(decided=True)
        else:
            self._solve()
            if self.outcome.verdict == "unknown":
                self._missing_rules()
                if not self._expects_input:
                    self._simulate(self._patience)

    def _missing_rules(self) -> None:
        """Note the parts whose words differ only in constant factors: no rule relates such parts."""
        parts = self.claim.shape.parts
        words = {name: [part.plan.words_read(side) for side in range(2)] for name, part in parts.items()}
        bare = {
            name: [[word and _without_factors(word) for word in side] for side in read] for name, read in words.items()
        }
        for one, other in combinations(parts, 2):
            if words[one] != words[other] and bare[one] == bare[other]:
                what = f"a rule for {one} and {other}, whose words differ by factors"
                why = "units align products of subnormal words as if they were larger"
                self.outcome.asked.append(SearchStep(f"{what} ({why})"))

    def _lengths(self) -> None:
        """Decide a claim about several numbers of products: search a few of these numbers, and prove all together."""
        whole, found = self.claim, False
        least, most = whole.terms, whole.assertion.most or whole.terms
        self._bounded(whole, within_lengths, for_every_length)
        short = [whole.at(count) for count in sorted({least, max(least, min(most, SEARCHED) // least * least)})]
        for self.claim in short:
            decided = self._simulate(SAMPLE_LEAST, 4 * BATCH)
            if (largest := self._share) is not None:
                decided = self._reached(largest, decided, BRIEFLY)
            if decided:
                break
        else:
            found = self._longer(whole)
        if not self.admitted and not self.best and not found:
            for self.claim in short:
                if not self._nothing_admitted():
                    return
            raise self._no_input()

    def _longer(self, whole: Claim) -> bool:
        """Search with more and more products, up to the claim's largest number or until an input decides. Whether any
        input found counts."""
        most, found, began = whole.assertion.most, False, time.monotonic()
        sums, shared = LongSums(whole, [row for _, row in self.best.values()]), self._share is not None
        if most is None or most <= SEARCHED or not sums.compared:
            return False
        left = self.remaining(REACHED_SHARE)
        limit = LONGER if left is None else min(LONGER, left)
        self.options.progress(Wait("searching longer sums", limit))
        hit: Long | None = None
        try:
            for longs in sums.worst(limit):
                for one in longs:
                    if one.no_number is not None:
                        raise sums.no_number(one)
                shares = [one.share for one in longs if one.share is not None]
                found |= bool(shares)
                if shared:
                    self._reach(*shares)
                if hit := next((one for one in longs if one.decides), None):
                    break
        finally:  # of a search that is interrupted, too
            if shared:
                self._reach(*([sums.least] if sums.least else []))
        none = "" if found else ", of which none is found that meets the conditions"
        self._tried(f"sums of up to {most} products{none}", began)
        if hit is not None:
            self.outcome.row = hit.row
            self.outcome.row = sums.simplest(hit).row
        return found

    def _bounded(
        self, claim: Claim, within: Callable[[Claim, Settle], list[Theorem]],
        proves: Callable[[Assertion, Sequence[Theorem]], Theorem] | None,
    ) -> None:  # fmt: skip
        """Prove a share of the sum of magnitudes, with `within`; then the claim, with `proves`."""
        outcome, settle = self.outcome, Settled(replace(self.options, timeout=self.remaining()), needed=False)
        began = time.monotonic()
        self.options.progress("the error bound")
        try:
            outcome.within = within(claim, settle)
            if proves is not None:
                outcome.theorem = proves(claim.assertion, outcome.within)
                outcome.lemmas = settle.asked
        except RuleError as error:
            outcome.late = self.remaining() == 0
            if proves is not None:
                self._tried(f"error bounds ({error})", began)

    def _tried(self, what: str, began: float) -> None:
        """Record an attempt without an engine, begun at the time `began`."""
        self.outcome.asked.append(SearchStep(what, (), time.monotonic() - began))

    def remaining(self, share: float = 1.0) -> float | None:
        limit = self.options.timeout
        return None if limit is None else max(0.0, limit - (time.monotonic() - self.start)) * share

    @property
    def _expects_input(self) -> bool:
        """Whether one input is expected to decide the claim."""
        return self.claim.expect == DECIDED[self.claim.quantifier][0]

    @property
    def _patience(self) -> float:
        """The seconds for simulation."""
        limit = self.options.timeout
        return SAMPLE_LEAST if limit is None else min(max(SAMPLE_LEAST, SAMPLE_SHARE * limit), SAMPLE_MOST)

    def _simulate(self, limit: float, most: float = math.inf) -> bool:
        """Whether a simulation of new inputs decides; `limit`: in seconds; `most`: the largest number of inputs."""
        claim, share, count, began = self.claim, self._share, 0, time.monotonic()
        while count < 4 * BATCH or (count < most and time.monotonic() - began < limit):
            spent = min(time.monotonic() - began, limit)
            self.options.progress(Share(f"simulated {count} inputs", spent, limit, "inputs"))
            self.batches += 1
            table = claim_rows(claim, BATCH, self.batches)
            batch = self._looked(table, share)
            count += BATCH
            self.admitted |= bool(batch.admitted.any())
            if batch.at_fault.any():
                self._at_fault(tuple(map(int, table[int(np.flatnonzero(batch.at_fault)[0])])))
            hits = np.flatnonzero(batch.deciding)
            if len(hits):
                self._tried(f"{count} simulated inputs", began)
                self._decide(tuple(map(int, table[int(hits[0])])))
                return True
            if (count >= 4 * BATCH and not self.admitted) or self.remaining() == 0:
                break
        self._tried(f"{count} simulated inputs", began)
        return False

    def _looked(self, table: Table, share: Largest | None) -> ClaimBatch:
        """The claim evaluated on inputs, of which the largest share is kept."""
        batch = evaluate_claim(self.claim, table, share)
        if batch.largest is not None:
            value, at = batch.largest
            self._keep(value, tuple(map(int, table[at])))
        return batch

    @property
    def _share(self) -> Largest | None:
        """`compared_with_magnitudes` of the claim with its present number of products."""
        if self.claim.terms not in self.compared:
            self.compared[self.claim.terms] = compared_with_magnitudes(self.claim)
        return self.compared[self.claim.terms]

    def _keep(self, share: Fraction, row: Row) -> None:
        """Keep an input if no other has so large a share."""
        if len(row) not in self.best or share > self.best[len(row)][0]:
            self.best[len(row)] = share, row
        if self.outcome.reached is None or share > self.outcome.reached:
            self.outcome.worst = row
        self._reach(share)

    def _reach(self, *shares: Fraction) -> None:
        """Note shares that inputs have."""
        outcome = self.outcome
        outcome.reached = max([*shares, *([] if outcome.reached is None else [outcome.reached])], default=None)

    def _climb(self) -> bool:
        """Whether the search for the worst input decides; only claims with a quantity to climb have it."""
        largest, limit = self.claim.maximise, self.remaining(CLIMB_SHARE)
        if largest is None or not self._expects_input:
            return False
        began, limit = time.monotonic(), CLIMB_MOST if limit is None else min(limit, CLIMB_MOST)
        self.options.progress(Wait("climbing to the worst input", limit))
        share = self._share
        looked = None if share is None else lambda table: self._looked(table, share)
        row = climb(self.claim, largest, limit, self._decides, looked=looked).row
        self._tried("climbing to the worst input", began)
        return self._decided_by(row)

    def _decided_by(self, row: Row | None) -> bool:
        """Whether an input was found, and decides."""
        if decides := row is not None and self._decides(row):
            self._decide(row)
        return decides

    def _decides(self, row: Row) -> bool:
        return bool(self._evaluated([row]).deciding[0])

    def _evaluated(self, rows: Sequence[Row]) -> ClaimBatch:
        return evaluate_claim(self.claim, np.array(rows, dtype=np.uint64), self._share)

    def _decide(self, row: Row) -> None:
        limit = self.remaining(SHRINK_SHARE)
        limit = SHRINK if limit is None else min(SHRINK, max(SAMPLE_LEAST, limit))
        self.outcome.row = row  # also if the work ends before it is small
        self.outcome.row = shrink_rows(self.claim.layout, row, lambda rows: self._evaluated(rows).deciding, limit)

    def _at_fault(self, row: Row) -> NoReturn:
        """Raises InputError: on this input the claim, or a condition, reads a result that is no number."""
        small = shrink_rows(self.claim.layout, row, lambda rows: self._evaluated(rows).at_fault)
        raise no_number(self.claim, small)

    def _solve(self) -> None:
        self.options.progress("building the questions")
        admitted = self.admitted
        if admitted and self._shares():
            return
        asked = self._conditions()
        if self._nothing_admitted():
            raise self._no_input()
        if not admitted and self._shares():
            return
        first = self._first_words()
        question = Question(self.claim.assertion, frozenset(first))
        if self._expects_input:
            for name, query in self._small_questions(question.whole):
                if self._ask(name, query, self.remaining(SMALL_SHARE)).status == "sat":
                    return
        ledger = Ledger(question)
        with suppress(UnprovedError):
            stages = self._stages(question, ledger)
            none = self._none(stages, ledger)
            numbers = None if question.fits.node.is_true() else self._numbers(stages, ledger)
            self.outcome.theorem = undecided(question, none, numbers, list(first.values()), asked)
            facts = [fact for fact in (none, numbers) if fact is not None]
            lemmas = [*self.apart, *ledger.lemmas(*facts)]
            self.outcome.lemmas = confirm(lemmas, self.options, time.monotonic() - self.start)

    def _shares(self, decided: bool = False) -> bool:
        """Whether the least share proved, or the largest share found, decides a claim that compares with a share of the
        sum of magnitudes. `decided`: an input has decided already; both shares are computed all the same."""
        if (share := self._share) is None:
            self.outcome.late = False
            return False
        self._bounded(self.claim, within_of, None if decided else compares)
        return self._reached(share, decided) or self.outcome.theorem is not None

    def _reached(self, largest: Largest, decided: bool, most: float = REACHED_MOST) -> bool:
        """Whether an input found by climbing to the largest share decides; `most`: the seconds if no share is
        proved."""
        proved, began = decided or self.outcome.theorem is not None, time.monotonic()
        limit, left = REACHED if proved else most, self.remaining(REACHED_SHARE)
        limit = limit if left is None else min(limit, left)
        if limit == 0:
            return decided
        self.options.progress(Wait("climbing to the largest share of the sum of magnitudes", limit))
        self._alone(largest, min(ALONE, ALONE_SHARE * limit))
        known = [*self.known, *(row for _, row in self.best.values())]
        shorter = [padded for row in known if (padded := self._padded(row)) is not None]
        worst = climb(self.claim, largest, limit, self._decides, shorter, self._keep)
        if decided:
            return True
        self._tried("climbing to the largest share", began)
        return self._decided_by(worst.row)

    def _alone(self, largest: Largest, limit: float) -> None:
        """Climb with one product, whose largest share more products reach with zeros; such inputs are seldom found
        among those of many products."""
        if self.claim.terms == 1:
            return
        with suppress(ParameterError):  # an expression names more products, or a part takes no single one
            row = climb(self.claim.at(1), largest, limit, lambda row: False).row
            self.known += [] if row is None else [row]

    def _padded(self, row: Row) -> Row | None:
        """An input of fewer products with zeros for the others; None for an input of more."""
        count, terms = len(row) // 2, self.claim.terms
        zeros = (0,) * (terms - count)
        return (*row[:count], *zeros, *row[count:-1], *zeros, row[-1]) if count <= terms else None

    def _stages(self, question: Question, ledger: Ledger) -> Stages:
        solver = engines_of(self.options.solver)[0]  # several would slow each other down

        def prove(what: str, facts: Sequence[Theorem], claim: Bit, cuts: Sequence[Bits], share: float) -> Theorem:
            cut_out = [cut.node for cut in cuts]
            return self._proved(ledger, what, claim.node, facts, cut_out, self.remaining(share), solver)

        return Stages(question, ledger.admitted, prove)

    def _none(self, stages: Stages, ledger: Ledger) -> Theorem:
        """The theorem that no input whose values are numbers decides, proved in stages or by the whole question. Raises
        UnprovedError."""
        for way in stages.ways:
            with suppress(UnprovedError):
                return way()
        what, limit = "the whole question", self.remaining(1 - SAMPLE_SHARE)
        if limit is None or limit > LONG:
            most = "" if limit is None else f", for at most {limit:.0f} s"
            text = f"{self.claim.id}: neither an input nor a rule decides it; solvers are asked{most}"
            self.options.progress(Notice(text))
        try:
            return self._proved(ledger, what, stages.question.none.node, [ledger.admitted], [],
                                limit, symbols=stages.question.symbols)  # fmt: skip
        except UnprovedError:
            self._take(self.outcome.asked[-1].answers[0])
            raise

    def _proved(
        self, ledger: Ledger, what: str, claim: FNode, facts: Sequence[Theorem], cuts: Sequence[FNode],
        limit: float | None, solver: str | None = None, symbols: Sequence[FNode] = (),
    ) -> Theorem:  # fmt: skip
        """A claim proved from facts by engines. Raises UnprovedError."""
        with self._engines(what, limit, solver) as engines:
            return ledger.prove(what, claim, facts, cuts, engines, symbols)

    @contextmanager
    def _engines(self, what: str, limit: float | None, solver: str | None = None) -> Iterator[Engines]:
        """A block with engines for a question; their answers are kept."""
        engines = self.options.engines(limit, what, solver)
        try:
            yield engines
        finally:
            self.outcome.asked += [SearchStep(what, one.answers) for one in engines.answered_queries]

    def _numbers(self, stages: Stages, ledger: Ledger) -> Theorem:
        """The theorem that every value is a number on every admitted input. Raises InputError where a value is not."""
        with suppress(UnprovedError):
            return stages.numbers()
        try:
            return self._proved(ledger, "every value is a number", stages.question.fits.node, [ledger.admitted], [],
                                self.remaining(), symbols=stages.question.symbols)  # fmt: skip
        except UnprovedError:
            self._no_number("whether every value is a finite number stayed open")

    def _no_number(self, why: str) -> NoReturn:
        """Raises InputError with the input of an engine's answer to the last question; without one, IncompleteError."""
        answer = self.outcome.asked[-1].answers[0]
        if answer.status == "sat":
            self._at_fault(answered_row(self.claim.layout, answer))
        raise IncompleteError(f"{why}: the time ran out") from None

    def _conditions(self) -> Theorem | None:
        """The theorem that every value read by a condition is a number; None if conditions read no result's value.
        Raises InputError if a value is no number."""
        if conditions(self.claim.assertion, symbolic_scene(self.claim.assertion)[0]).at_fault.node.is_false():
            return None
        lemma = ConditionsReadNumbers(self.claim.assertion)
        try:
            return self._lemma(lemma, self.remaining(0.5))
        except RuleError:
            self._no_number(f"it stayed open whether {lemma.statement()}")

    def _first_words(self) -> dict[str, Theorem]:
        """By part, the theorem that it needs only the first word of every factor: the other words fold away."""
        theorems: dict[str, Theorem] = {}
        for name, part in self.claim.shape.parts.items():
            if part.words == 1 or self.claim.shape.factors.fraction > part.plan.models[0].a.fraction:
                continue  # factors are not split, or need several words
            with suppress(RuleError):
                lemmas = [self._settled(lemma) for lemma in lemmas_of(self.claim.assertion, name)]
                theorems[name] = by_first_words(self.claim.assertion, name, *lemmas)
        return theorems

    def _settled(self, lemma: FirstWordIsWhole | ZerosGiveZero) -> Theorem:
        """Raises RuleError."""
        if lemma not in self.settled:
            self.settled[lemma] = self._lemma(lemma, BRIEF)
        return self.settled[lemma]

    def _lemma(self, lemma: FirstWordIsWhole | ZerosGiveZero | ConditionsReadNumbers, limit: float | None) -> Theorem:
        """The theorem of a lemma that is no fact of the question, asked within a limit. Raises RuleError."""
        name = lemma.statement()
        with self._engines(name, limit) as engines:
            theorem = settled(lemma, engines)
        (one,) = engines.answered_queries
        self.apart.append(Lemma(name, 0, one.query, one.answer))
        return theorem

    def _no_input(self) -> InputError:
        file, key = self.claim.file, ("inputs", "where")
        return file.error(key if key in file.lines else key[:1], "no input meets all conditions")

    def _nothing_admitted(self) -> bool:
        if self.admitted:
            return False
        answer = self._ask("is any input admitted?", build_query(self.claim, "admitted"), self.remaining(0.5), False)
        return answer.status == "unsat"

    def _small_questions(self, whole: frozenset[str]) -> list[tuple[str, Query]]:
        """The names and queries of small questions: with few free products, and with narrow exponents."""
        claim, questions = self.claim.reshaped(whole=whole), list[tuple[str, Query]]()
        for count in (1, 2):
            if count < claim.terms:
                questions.append((f"{count} of {claim.terms} products free", build_query(claim, "deciding", count)))
        window = claim.shape.window
        if window != (narrow := _narrowed(window)):
            slim = claim.reshaped(window=narrow)
            questions.append(("narrow exponents", build_query(slim, "deciding")))
        return questions

    def _ask(self, what: str, query: Query, limit: float | None, decides: bool = True) -> Answer:
        answers = self.options.ask(query, limit, what)
        self.outcome.asked.append(SearchStep(what, tuple(answers)))
        if decides:
            self._take(answers[0])
        return answers[0]

    def _take(self, answer: Answer) -> None:
        """Decide the claim by an engine's input. Raises SolverFaultError for an input that decides nothing."""
        if answer.status != "sat":
            return
        row = answered_row(self.claim.layout, answer)
        if not self._decides(row):
            raise SolverFaultError(f"{answer.engine} {answer.version} gave an input that decides nothing: {row}")
        self._decide(row)


def _without_factors(word: Node) -> Node:
    """A word without its constant factors."""

    def bare(_: Node, node: Node) -> Node:
        return node.right if isinstance(node, Product) and isinstance(node.left, Literal) else node

    return rebuilt(word, bare, {})


def _narrowed(window: Window) -> Window:
    """The middle of every window."""

    def middle(bounds: tuple[int, int]) -> tuple[int, int]:
        low, high = bounds
        centre = min(max(0, low), high)
        return max(low, centre - 2), min(high, centre + 2)

    return Window(middle(window.a), middle(window.b), middle(window.c))
