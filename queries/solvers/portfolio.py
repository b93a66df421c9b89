"""Several engines on one query: the first to answer decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from queries.smtlib import Query
from queries.solvers.contract import DEFAULT_MEMORY, ENGINE_NAMES, Answer, SolverProcess
from queries.solvers.worker import version_of
from smtmodel.errors import UnknownNameError

if TYPE_CHECKING:
    from queries.store import Store

AUTO = "auto"
POLL = 0.01  # seconds between looks at the running engines
NOT_ASKED = "time ran out before it was asked"
HEAD_START = 1.0  # seconds that the first engine has alone


def engines_of(choice: str) -> tuple[str, ...]:
    """The engines that a `--solver` choice stands for, the likeliest first. Raises UnknownNameError."""
    if choice not in (AUTO, *ENGINE_NAMES):
        raise UnknownNameError("solver", choice, (*ENGINE_NAMES, AUTO))
    return ENGINE_NAMES if choice == AUTO else (choice,)


def solve(
    query: Query,
    solver: str = AUTO,
    timeout: float | None = None,
    memory: int = DEFAULT_MEMORY,
    store: Store | None = None,
    fresh: bool = False,
    name: str = "",
) -> list[Answer]:
    """The answers of the engines asked, the decisive one first; if nobody decides, all are "unknown".

    `timeout` in seconds (None: no limit) holds for the whole call. No process outlives it. What a store knows is not
    asked again, unless `fresh`; new answers are in the store, under a `name` for people, before they are returned.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    engines = engines_of(solver)
    answers = [] if store is None or fresh else _stored(store, query.text, engines, timeout, memory)
    if answers and answers[0].status != "unknown":
        return answers[:1]
    known = {answer.engine for answer in answers}

    def keep(answer: Answer) -> Answer:
        if store is not None:
            store.record(query.text, answer, timeout, memory, name)
        return answer

    return _run([engine for engine in engines if engine not in known], query.text, deadline, memory, answers, keep)


def _stored(store: Store, text: str, engines: tuple[str, ...], timeout: float | None, memory: int) -> list[Answer]:
    """What a store knows: "sat" first, since it is replayed and "unsat" is believed, then "unsat"."""
    found = [store.find(text, engine, timeout, memory) for engine in engines]
    order = ("sat", "unsat", "unknown")
    return sorted((answer for answer in found if answer is not None), key=lambda answer: order.index(answer.status))


def _run(
    engines: list[str],
    text: str,
    deadline: float | None,
    memory: int,
    answers: list[Answer],
    keep: Callable[[Answer], Answer],
) -> list[Answer]:
    """The new answers beside those known before, the decisive one first.

    The likeliest engine has a head start: most queries need no other, and engines that share cores slow each other.
    """
    waiting, running = list(engines), list[SolverProcess]()
    start = time.monotonic()
    try:
        while waiting or running:
            now = time.monotonic()
            late = deadline is not None and now >= deadline
            while waiting and not late and (not running or now >= start + HEAD_START):
                running.append(SolverProcess(waiting.pop(0), text, memory))
            done = [process for process in running if late or process.finished.is_set()]
            fresh = [keep(process.answer(0)) for process in done]
            running = [process for process in running if process not in done]
            decided = [answer for answer in fresh if answer.status != "unknown"]
            answers += [answer for answer in fresh if answer.status == "unknown"]
            if decided:
                return [decided[0], *answers]
            if late:
                return [*answers, *(Answer("unknown", e, version_of(e), 0.0, reason=NOT_ASKED) for e in waiting)]
            if running and not done:
                running[0].finished.wait(POLL)
        return answers
    finally:
        for process in running:
            process.kill()
