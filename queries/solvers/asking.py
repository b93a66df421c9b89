"""How rules of inference ask engines.

A rule asks for every "unsat" on which its theorem rests through this module. A search for proofs chooses engines and
limits, and cannot change a query or its answer. Answers are made only where an engine's output, or a stored answer, is
read (contract.py); an `Answer` made elsewhere is refused.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY, Answer, _tell, is_told
from mmaprobe.queries.solvers.engines import AUTO
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.solvers.portfolio import solve, stored_answers
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.solvers.store import Store
from mmaprobe.smtmodel.base.errors import FaultError, OutOfTimeError
from mmaprobe.smtmodel.base.progress import Wait

NOBODYS = Answer("unknown", "nobody", "", 0.0)  # the answer where no engine is asked
#: the modules whose pools may be asked
POOLS = ("mmaprobe.queries.solvers.pool", "mmaprobe.queries.solvers.cluster")


class SolverFaultError(FaultError):
    """A solver's model does not replay, or two solvers contradict each other: no verdict may rest on either."""


class Heard:
    """The decided answers to queries, by text and engine, so that no query is asked twice."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Answer]] = {}

    def find(self, text: str, solver: str) -> Answer | None:
        """The kept answer of an engine, of any engine where `solver` is AUTO; None if there is none."""
        known = self._answers.get(text, {})
        return next(iter(known.values()), None) if solver == AUTO else known.get(solver)

    @classmethod
    def of(cls, queries: Iterable[AnsweredQuery]) -> Heard:
        """The answers of several queries. `Engines.answers` refuses an answer that no engine gave to its query."""
        heard = cls()
        for answered in queries:
            heard._keep(answered.query.text, answered.answer)
        return heard

    def _keep(self, text: str, answer: Answer) -> None:
        """Keep an answer if it is decided."""
        if answer.status != "unknown":
            self._answers.setdefault(text, {})[answer.engine] = answer


@dataclass(frozen=True)
class AnsweredQuery:
    """A query, and the answers of the engines asked, the decisive answer first."""

    query: Query
    answers: tuple[Answer, ...]

    @property
    def answer(self) -> Answer:
        return self.answers[0]


@dataclass(frozen=True)
class Engines:
    """The engines that are asked, the place where they run, and their limits.

    `solver`: a choice of `--solver`. Limits: `seconds` for a query (None: no limit), `processor` seconds of processor
    time for each engine on a query, `memory` in MiB, and `until`, the time of time.monotonic after which no query is
    asked. Known answers: `heard` holds decided ones and is shared with other objects; `store` is the file of answers;
    `fresh`: stored answers are ignored. `stored`: only stored answers are used. `asks` = False: only the answers in
    `heard` are used. `name`: the text shown to users who wait. `answered_queries`: the queries with their answers, in
    order.
    """

    solver: str = AUTO
    seconds: float | None = None
    name: str = ""
    memory: int = DEFAULT_MEMORY
    store: Store | None = None
    fresh: bool = False
    pool: Pool = field(default_factory=Pool)
    until: float | None = None
    progress: Callable[[str], None] = lambda text: None
    heard: Heard = field(default_factory=Heard)
    answered_queries: list[AnsweredQuery] = field(default_factory=list)
    asks: bool = True
    stored: bool = False
    processor: float | None = None

    def __post_init__(self) -> None:
        """Raises TypeError for a `heard`, `store` or `pool` of a class outside this package: such a class could make up
        answers."""
        if not all(map(asks_solvers, (self.heard, self.store, self.pool))):
            raise TypeError("engines: of another class than those that ask solvers")

    def answers(self, query: Query) -> list[Answer]:
        """The answers of the engines asked, in the order of `portfolio.solve`. Raises OutOfTimeError after `until`, and
        SolverFaultError for a decided answer that no engine gave to this query's text."""
        known = self.heard.find(query.text, self.solver)
        if known is None and not self.asks:
            known = NOBODYS
        answers = self._ask(query) if known is None else [known]
        for answer in answers:
            if answer.status != "unknown" and not is_told(answer, query.text):
                raise SolverFaultError(f"{answer}: no engine gave this answer to this question")
        self.heard._keep(query.text, answers[0])
        self.answered_queries.append(AnsweredQuery(query, tuple(answers)))
        return answers

    def _ask(self, query: Query) -> list[Answer]:
        if self.stored:
            answers = (
                [] if self.store is None else stored_answers(query, self.solver, self.seconds, self.memory, self.store)
            )
            return answers or [NOBODYS]
        seconds = self.seconds
        if self.until is not None:
            left = self.until - time.monotonic()
            if left <= 0:
                raise OutOfTimeError(f"the time ran out before this was asked: {self.name}")
            seconds = left if seconds is None else min(seconds, left)
        self.progress(Wait(self.name, seconds))
        repeated = self.store is not None and not self.fresh  # the answer to another thread's query can be used
        with self.pool.alone_with(query.text) if repeated else nullcontext():
            return solve(query, self.solver, seconds, self.memory, self.store, self.fresh, self.name, self.pool,
                         self.processor)  # fmt: skip


def _certified(texts: Iterable[str]) -> Heard:
    """Answers "unsat" to the queries of a certificate, whose proofs are checked separately. Only the check of
    certificates calls this function."""
    heard = Heard()
    for text in texts:
        heard._keep(text, _tell(text, Answer("unsat", "certificate", "", 0.0)))
    return heard


def confirmation(query: Query, answer: Answer, others: Sequence[Engines]) -> Answer | None:
    """The first "unsat" of an engine other than the engine of `answer`; None if no such answer comes in time. Raises
    SolverFaultError for a "sat"."""
    for engines in others:
        if engines.solver == answer.engine:
            continue
        try:
            second = engines.answers(query)[0]
        except OutOfTimeError:  # the first answer is still valid
            return None
        if second.status == "sat":
            raise SolverFaultError(f"{answer} and {second} contradict each other")
        if second.status == "unsat" and second.engine != answer.engine:
            return second
    return None


def asks_solvers(part: Heard | Store | Pool | None) -> bool:
    """Whether a part is of a class of this package, whose answers come from solvers alone."""
    kind = type(part)
    module = sys.modules.get(kind.__module__)
    if isinstance(part, Pool):
        return kind.__module__ in POOLS and getattr(module, kind.__name__, None) is kind
    return kind in (Heard, Store, type(None))
