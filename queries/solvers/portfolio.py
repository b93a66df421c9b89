"""Several engines on one query: the first to answer decides."""

from __future__ import annotations

import time

from queries.smtlib import Query
from queries.solvers.contract import DEFAULT_MEMORY, ENGINE_NAMES, Answer, SolverProcess

AUTO = "auto"
POLL = 0.01  # seconds between looks at the running engines


def engines_of(choice: str) -> tuple[str, ...]:
    """The engines that a `--solver` choice stands for, the likeliest first."""
    return ENGINE_NAMES if choice == AUTO else (choice,)


def solve(query: Query, solver: str = AUTO, timeout: float | None = None, memory: int = DEFAULT_MEMORY) -> list[Answer]:
    """The answers of the engines asked, the decisive one first; if nobody decides, all are "unknown".

    `timeout` in seconds (None: no limit) holds for the whole call. No process outlives it.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    running = [SolverProcess(engine, query.text, memory) for engine in engines_of(solver)]
    answers: list[Answer] = []
    try:
        while running:
            done = [process for process in running if process.finished.is_set()]
            if not done and deadline is not None and time.monotonic() >= deadline:
                return answers + [process.answer(0) for process in running]
            for process in done:
                running.remove(process)
                answer = process.answer()
                if answer.status != "unknown":
                    return [answer, *answers]
                answers.append(answer)
            if running and not done:
                running[0].finished.wait(POLL)
        return answers
    finally:
        for process in running:
            process.kill()
