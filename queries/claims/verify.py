"""Claims about algorithms: verified, refuted by a replayed input, or left unknown with what was tried.

A claim for all inputs is refuted, and a claim that there are some is verified, by one input: the search for it
begins by simulation, then asks small questions, with most products zero and narrow windows, then the whole one, whose
"unsat" decides the other way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from hypotheses.claim import Claim
from hypotheses.claim_file import located
from queries.claims.maximise import climb
from queries.claims.outcome import BATCH, SHRINK, Asked, Outcome, Verdict
from queries.claims.samples import claim_rows
from queries.claims.scene import build_query, look, row_of
from queries.claims.stages import Stages
from queries.equality.confirm import confirm
from queries.equality.lemmas import Lemma
from queries.search.distinguish import Options, SolverFaultError
from queries.search.witness import Row, shrink_rows
from queries.solvers.contract import Answer
from queries.solvers.engines import engines_of
from queries.solvers.smtlib import Query
from smtmodel.algebra import all_of, any_of, constant
from smtmodel.algorithms.exact import Window, admitted
from smtmodel.algorithms.parts import Part
from smtmodel.carriers.terms import TermCarrier
from smtmodel.decode import unpack
from smtmodel.dot import Model, evaluate
from smtmodel.errors import IncompleteError, InputError
from smtmodel.progress import Share, Wait

SAMPLE_SHARE, SAMPLE_LEAST = 0.05, 2.0  # share of the time for simulation, and its least seconds
SMALL_SHARE = 0.1  # of the time, at most, for one small question
CLIMB_SHARE, CLIMB_MOST = 0.4, 100.0  # share of the time, and most seconds, for climbing to the worst input
BRIEF = 10.0  # seconds for a lemma that makes questions smaller


def verify(claim: Claim, options: Options | None = None) -> Outcome:
    """Decide a claim within the time.

    An interrupt ends the work. Raises InputError for a claim that admits no input, or a quantity of which is not a
    number on an admitted input, and SolverFaultError.
    """
    return _Verifier(claim, options or Options()).run()


class _Verifier:
    def __init__(self, claim: Claim, options: Options) -> None:
        self.claim, self.options = claim, options
        self.start = time.monotonic()
        self.outcome = Outcome(claim)
        self.admitted = False
        self.found: Verdict = "refuted" if claim.quantifier == "all" else "holds"

    def run(self) -> Outcome:
        outcome = self.outcome
        with located(self.claim.file, ("claim",)):
            try:
                if not self._simulate() and not self._climb():
                    self._solve()
            except KeyboardInterrupt:
                outcome.interrupted = True
        outcome.seconds = time.monotonic() - self.start
        return outcome

    def remaining(self, share: float = 1.0) -> float | None:
        limit = self.options.timeout
        return None if limit is None else max(0.0, limit - (time.monotonic() - self.start)) * share

    def _simulate(self) -> bool:
        """Whether simulation alone decides."""
        claim, count = self.claim, 0
        limit = SAMPLE_LEAST if self.options.timeout is None else max(SAMPLE_LEAST, SAMPLE_SHARE * self.options.timeout)
        limit, began = min(limit, 30.0), time.monotonic()
        while count < 4 * BATCH or time.monotonic() - began < limit:
            spent = min(time.monotonic() - began, limit)
            self.options.progress(Share(f"simulated {count} inputs", spent, limit, "inputs"))
            table = claim_rows(claim, BATCH, 1 + count // BATCH)
            sight = look(claim, table)
            count += BATCH
            self.admitted |= bool(sight.admitted.any())
            if sight.unfit.any():
                self._unfit(tuple(map(int, table[int(np.flatnonzero(sight.unfit)[0])])))
            hits = np.flatnonzero(sight.deciding)
            if len(hits):
                self.outcome.asked.append(Asked(f"{count} simulated inputs", (), time.monotonic() - began))
                self._decide(tuple(map(int, table[int(hits[0])])))
                return True
            if count >= 4 * BATCH and not self.admitted:
                break
        self.outcome.asked.append(Asked(f"{count} simulated inputs", (), time.monotonic() - began))
        return False

    def _climb(self) -> bool:
        """Whether the search for the worst input, of claims that name a quantity, decides."""
        claim, limit = self.claim, self.remaining(CLIMB_SHARE)
        if claim.maximise is None or claim.expect != self.found:
            return False
        began = time.monotonic()
        limit = CLIMB_MOST if limit is None else min(limit, CLIMB_MOST)
        self.options.progress(Wait("climbing to the worst input", limit))
        row = climb(claim, limit, self._decides)
        self.outcome.asked.append(Asked("climbing to the worst input", (), time.monotonic() - began))
        if row is not None:
            self._decide(row)
        return row is not None

    def _decides(self, row: Row) -> bool:
        return bool(look(self.claim, np.array([row], dtype=np.uint64)).deciding[0])

    def _decide(self, row: Row) -> None:
        claim, limit = self.claim, self.remaining()
        limit = SHRINK if limit is None else min(SHRINK, max(SAMPLE_LEAST, limit))
        small = shrink_rows(
            claim.layout, row, lambda rows: look(claim, np.array(rows, dtype=np.uint64)).deciding, limit
        )
        self.outcome.row, self.outcome.verdict = small, self.found

    def _unfit(self, row: Row) -> None:
        claim = self.claim
        small = shrink_rows(claim.layout, row, lambda rows: look(claim, np.array(rows, dtype=np.uint64)).unfit)
        shown = ", ".join(f"{name} = {x:#x}" for name, x in zip(claim.layout.names, small, strict=True) if x)
        raise claim.file.error(
            ("claim",), f"a quantity overflows: a result is outside the sum's finite range for {shown}; "
            "narrow the exponents, or ask for finite(...) alone",
        )  # fmt: skip

    def _solve(self) -> None:
        self.options.progress("building the questions")
        if self._nothing_admitted():
            raise InputError("no input meets all conditions", *self._place())
        self._first_words()
        *small, (what, query) = self._questions()
        if self.claim.expect == self.found:
            for name, question in small:
                if self._ask(name, question, self.remaining(SMALL_SHARE)).status == "sat":
                    return
        if self._staged() or self._prove(what, query, self.remaining(), decides=True):
            self._check_fit()
            self.outcome.verdict = "holds" if self.found == "refuted" else "refuted"
            self.outcome.lemmas = confirm(self.outcome.lemmas, self.options, time.monotonic() - self.start)

    def _prove(
        self, what: str, query: Query, limit: float | None, cuts: int = 0, decides: bool = False,
        solver: str | None = None,
    ) -> bool:  # fmt: skip
        """Whether a question is answered "unsat": a lemma."""
        answer = self._ask(what, query, limit, decides, solver)
        if answer.status == "unsat":
            self.outcome.lemmas.append(Lemma(what, cuts, query, answer))
        return answer.status == "unsat"

    def _staged(self) -> bool:
        """Whether one of the ways in stages proves the claim; the lemmas of the others are left out."""
        return any(map(self._whole_way, self.stages.ways))

    @cached_property
    def stages(self) -> Stages:
        solver = engines_of(self.options.solver)[0]  # the others slow it down

        def prove(what: str, query: Query, share: float, cuts: int) -> bool:
            return self._prove(what, query, self.remaining(share), cuts, solver=solver)

        return Stages(self.claim, prove)

    def _whole_way(self, way: Callable[[], bool]) -> bool:
        """Whether a way leads to its end; the lemmas of others are left out."""
        kept = len(self.outcome.lemmas)
        self.stages.asked.clear()  # a lemma of another way that is used here is one of this way
        if way():
            return True
        del self.outcome.lemmas[kept:]
        return False

    def _first_words(self) -> None:
        """Find out which parts need no more than the first word of every factor: the others fold away."""
        claim = self.claim
        for name, part in claim.shape.parts.items():
            query = _rest_query(claim, part)
            if query is None or not self._prove(f"first words of {name} are whole", query, BRIEF):
                continue
            if self._prove(f"the unit of {name} makes +0 of products with zeros", _zero_query(claim, part), BRIEF):
                shape = replace(claim.shape, whole=claim.shape.whole | {name})
                claim = replace(claim, shape=shape)
        self.claim = claim

    def _place(self) -> tuple[str, int, str]:
        file = self.claim.file
        key = ("inputs", "where") if ("inputs", "where") in file.lines else ("inputs",)
        return file.name, file.lines.get(key, 1), ".".join(key)

    def _nothing_admitted(self) -> bool:
        if self.admitted:
            return False
        answer = self._ask("is any input admitted?", build_query(self.claim, "admitted"), self.remaining(0.5), False)
        return answer.status == "unsat"

    def _check_fit(self) -> None:
        """Raises InputError where a value is not a number on an admitted input."""
        if self._whole_way(self.stages.sizes.numbers):
            return
        query = build_query(self.claim, "unfit")
        if self._prove("every value is a number", query, self.remaining()):
            return
        answer = self.outcome.asked[-1].answers[0]
        if answer.status == "sat":
            self._unfit(row_of(self.claim, answer))
        raise IncompleteError("whether every value is a finite number stayed open: the time ran out")

    def _questions(self) -> list[tuple[str, Query]]:
        """Small ones first: few products, one sign, c zero; the whole question is the last."""
        claim, found = self.claim, list[tuple[str, Query]]()
        for count in (1, 2):
            if count < claim.terms:
                found.append((f"{count} of {claim.terms} products free", build_query(claim, "deciding", count)))
        if claim.shape.window != (narrow := _narrowed(claim.shape.window)):
            slim = replace(claim, shape=replace(claim.shape, window=narrow))
            found.append(("narrow exponents", build_query(slim, "deciding")))
        return [*found, ("the whole question", build_query(claim, "deciding"))]

    def _ask(
        self, what: str, query: Query, limit: float | None, decides: bool = True, solver: str | None = None
    ) -> Answer:
        answers = self.options.ask(query, limit, what, solver)
        self.outcome.asked.append(Asked(what, tuple(answers)))
        answer = answers[0]
        if answer.status == "sat" and decides:
            row = row_of(self.claim, answer)
            if not self._decides(row):
                raise SolverFaultError(f"{answer.engine} {answer.version} gave an input that decides nothing: {row}")
            self._decide(row)
        return answer


def _zero_query(claim: Claim, part: Part) -> Query:
    """Is what the unit makes of finite first words, zeros and +0 ever anything but +0?"""
    model = part.what if isinstance(part.what, Model) else part.what.model
    carrier = TermCarrier()
    count = min(claim.terms, model.length)
    wrong, finite, symbols = [], [], []
    for side, fmt in enumerate((model.a, model.b)):
        numbers = [carrier.symbol(f"x{side}_{k}", fmt.width) for k in range(count)]
        zeros = [constant(carrier, 0, (model.b, model.a)[side].width)] * count
        operands = (numbers, zeros) if side == 0 else (zeros, numbers)
        wrong.append(evaluate(model, *operands, constant(carrier, 0, model.c.width)).d.any())
        values = [unpack(number, fmt) for number in numbers]
        finite += [~(value.is_nan | value.is_infinite) for value in values]
        symbols += [number.node for number in numbers]
    return Query(tuple(symbols), (all_of(finite).node, *carrier.definitions, any_of(wrong).node))


def _rest_query(claim: Claim, part: Part) -> Query | None:
    """Is a first word ever another number than its factor, or another word anything but +0? Asked of one factor of any
    admitted input; None where the format of the factors alone says yes, or there are no words."""
    fmt, window = claim.shape.factors, claim.shape.window
    what = part.what
    if isinstance(what, Model) or what.words == 1 or fmt.fraction > what.model.a.fraction:
        return None
    carrier = TermCarrier()
    number = carrier.symbol("x", fmt.width)
    inside = any_of([admitted(number, fmt, bounds) for bounds in (window.a, window.b)])
    return Query((number.node,), (inside.node, *carrier.definitions, (~part.whole(number, fmt)).node))


def _narrowed(window: Window) -> Window:
    """The middle of every window."""

    def middle(bounds: tuple[int, int]) -> tuple[int, int]:
        low, high = bounds
        centre = min(max(0, low), high)
        return max(low, centre - 2), min(high, centre + 2)

    return Window(middle(window.a), middle(window.b), middle(window.c))
