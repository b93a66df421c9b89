"""Claims about algorithms: verified, refuted by a replayed input, or left unknown with what was tried.

A claim for all inputs is refuted, and a claim that there are some is verified, by one input: the search for it
begins by simulation, then asks small questions, with most products zero and narrow windows, then the whole one, whose
"unsat" decides the other way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from hypotheses.claim import Claim, located
from queries.claim_samples import claim_rows
from queries.confirm import SECONDS
from queries.distinguish import Options, SolverFaultError
from queries.smtlib import Query
from queries.solvers.contract import Answer
from queries.witness import Row, shrink_rows
from smtmodel.algebra import Bit, Bits, all_of, constant, truth
from smtmodel.algorithms.exact import Window
from smtmodel.algorithms.scene import Scene
from smtmodel.batch import Patterns, to_integers
from smtmodel.carriers.arrays import ArrayCarrier
from smtmodel.carriers.terms import TermCarrier
from smtmodel.errors import IncompleteError, InputError

Verdict = Literal["holds", "refuted", "unknown"]
BATCH = 4096  # inputs simulated at a time
SAMPLE_SHARE, SAMPLE_LEAST = 0.1, 2.0  # of the time (at least so many seconds) that goes into simulation
SMALL_SHARE = 0.1  # of the time, at most, for one small question
CONFIRM_SHARE = 1.5  # a second engine may take so many times as long as the first

_ARRAYS = ArrayCarrier()


@dataclass(frozen=True)
class Asked:
    """One step of the search, in words, and what the engines said (nothing for a simulation)."""

    what: str
    answers: tuple[Answer, ...] = ()
    seconds: float = 0.0


@dataclass
class Outcome:
    """The verdict on one claim. `row`: the input that decided, in the order of the claim's layout; `query`: the one
    whose "unsat" did; `confirmed`: another engine's word on it."""

    claim: Claim
    verdict: Verdict = "unknown"
    row: Row | None = None
    query: Query | None = None
    answer: Answer | None = None
    confirmed: Answer | None = None
    asked: list[Asked] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.claim.expect


@dataclass(frozen=True)
class Sight:
    """A claim on a batch of inputs: which are admitted, which decide it, and on which a value is no number."""

    admitted: Patterns
    deciding: Patterns
    unfit: Patterns


def deciding(claim: Claim, scene: Scene) -> Bit:
    """Whether an input decides: it breaks a claim for all, or is one that a claim says there is."""
    held = scene.truth(claim.predicate)
    return ~held if claim.quantifier == "all" else held


def conditions(claim: Claim, scene: Scene) -> Bit:
    """Whether an input counts."""
    return all_of([scene.admits(), *(scene.truth(tree) for tree in claim.where)])


def scene_of(claim: Claim, row: Sequence[Bits]) -> Scene:
    operands = claim.layout.split(list(row))
    return Scene(claim.shape, operands.a, operands.b, operands.c)


def lanes_of(claim: Claim, table: Patterns) -> Scene:
    """The quantities of a claim on rows of patterns."""
    formats = claim.layout.formats
    columns = [_ARRAYS.lanes(np.ascontiguousarray(table[:, k]), fmt.width) for k, fmt in enumerate(formats)]
    if claim.zero_addend:
        columns[-1] = constant(_ARRAYS, 0, formats[-1].width)
    return scene_of(claim, columns)


def look(claim: Claim, table: Patterns) -> Sight:
    """Simulate a claim on rows of patterns."""
    with np.errstate(over="ignore"):
        scene = lanes_of(claim, table)
        counts = conditions(claim, scene)
        decides = deciding(claim, scene)
        fits = all_of([counts, *scene.fits.values()])
        flags = [to_integers(bit, len(table)) for bit in (counts, decides & fits, counts & ~fits)]
    if claim.zero_addend:
        keep = (table[:, -1] == 0).astype(np.uint64)
        flags = [flag & keep for flag in flags]
    return Sight(*flags)


def verify(claim: Claim, options: Options | None = None) -> Outcome:
    """Decide a claim within the time.

    An interrupt ends the work. Raises InputError for a claim that admits no input, or whose quantities are no numbers
    on an admitted one, SolverFaultError.
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
                if not self._simulate():
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
        began = time.monotonic()
        while count < 4 * BATCH or time.monotonic() - began < min(limit, 30.0):
            self.options.progress(f"simulated {count} inputs")
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

    def _decide(self, row: Row) -> None:
        claim = self.claim
        small = shrink_rows(claim.layout, row, lambda rows: look(claim, np.array(rows, dtype=np.uint64)).deciding)
        self.outcome.row, self.outcome.verdict = small, self.found

    def _unfit(self, row: Row) -> None:
        claim = self.claim
        small = shrink_rows(claim.layout, row, lambda rows: look(claim, np.array(rows, dtype=np.uint64)).unfit)
        shown = ", ".join(f"{name} = {x:#x}" for name, x in zip(claim.layout.names, small, strict=True) if x)
        raise claim.file.error(
            ("claim",), f"a quantity overflows: a result is no finite number of the sum's range for {shown}; "
            "narrow the exponents, or ask for finite(...) alone",
        )  # fmt: skip

    def _solve(self) -> None:
        if self._nothing_admitted():
            raise InputError("no input meets all conditions", *self._place())
        *small, whole = self._questions()
        for what, query in small:
            if self._ask(what, query, self.remaining(SMALL_SHARE)).status == "sat":
                return
        what, query = whole
        answer = self._ask(what, query, self.remaining())
        if answer.status == "unsat":
            self._check_fit()
            self.outcome.verdict = "holds" if self.found == "refuted" else "refuted"
            self.outcome.query, self.outcome.answer = query, answer
            self._confirm(query, answer)

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
        """Raises InputError where a value is no number on an admitted input."""
        query = build_query(self.claim, "unfit")
        answer = self._ask("is every value a number?", query, self.remaining(), False)
        if answer.status == "sat":
            self._unfit(self._row(answer))
        if answer.status == "unknown":
            raise IncompleteError("whether every value is a finite number stayed open: raise --timeout")

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

    def _ask(self, what: str, query: Query, limit: float | None, decides: bool = True) -> Answer:
        answers = self.options.ask(query, limit, what)
        self.outcome.asked.append(Asked(what, tuple(answers)))
        answer = answers[0]
        if answer.status == "sat" and decides:
            row = self._row(answer)
            if not look(self.claim, np.array([row], dtype=np.uint64)).deciding[0]:
                raise SolverFaultError(f"{answer.engine} {answer.version} gave an input that decides nothing: {row}")
            self._decide(row)
        return answer

    def _row(self, answer: Answer) -> Row:
        return tuple(answer.values.get(name, 0) for name in self.claim.layout.names)

    def _confirm(self, query: Query, answer: Answer) -> None:
        left = self.remaining()
        allowed = max(4.0, CONFIRM_SHARE * answer.seconds)
        for engine in (name for name in SECONDS if name != answer.engine):
            limit = allowed if left is None else min(allowed, left)
            second = self.options.ask(query, limit, f"{engine} is asked as well", engine)[0]
            if second.status == "sat":
                raise SolverFaultError(f"{answer} and {second} contradict each other")
            if second.status == "unsat":
                self.outcome.confirmed = second
                return


def _narrowed(window: Window) -> Window:
    """The middle of every window."""

    def middle(bounds: tuple[int, int]) -> tuple[int, int]:
        low, high = bounds
        centre = min(max(0, low), high)
        return max(low, centre - 2), min(high, centre + 2)

    return Window(middle(window.a), middle(window.b), middle(window.c))


def build_query(claim: Claim, what: Literal["deciding", "admitted", "unfit"], free: int | None = None) -> Query:
    """Is there an admitted input that decides (whose values are numbers), that is admitted at all, or on which a value
    is no number? All products but the first `free` ones are zero."""
    carrier = TermCarrier()
    count = claim.terms if free is None else free
    zero = {f"{side}{k}" for side in "ab" for k in range(count, claim.terms)} | ({"c"} if claim.zero_addend else set())
    row = [
        constant(carrier, 0, fmt.width) if name in zero else carrier.symbol(name, fmt.width)
        for name, fmt in zip(claim.layout.names, claim.layout.formats, strict=True)
    ]
    scene = scene_of(claim, row)
    counts, goal = [], conditions(claim, scene)
    if what != "admitted":
        counts, goal = [goal], deciding(claim, scene)
        fits = list(scene.fits.values())
        if what == "deciding":
            counts += fits
        else:
            goal = ~all_of([truth(carrier, True), *fits])
    assertions = (*(bit.node for bit in counts), *carrier.definitions, goal.node)
    return Query(tuple(bits.node for bits in row if bits.value is None), assertions)
