"""Several engines on one query, on this machine: the first decided answer counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mmaprobe.queries.solvers.contract import ENGINE_NAMES, Answer, Reason, SolverProcess
from mmaprobe.queries.solvers.worker import version_of
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.interrupts import Latch, held_back, unwanted

AUTO = "auto"
POLL = 0.01  # seconds between looks at the running engines
HEAD_START = 1.0  # seconds before the second engine starts; the third starts after four times as many

Keep = Callable[[Answer], Answer]
Group = TypeVar("Group")


def engines_of(choice: str) -> tuple[str, ...]:
    """The engines of a `--solver` choice, the likeliest first. Raises UnknownNameError."""
    if choice not in (AUTO, *ENGINE_NAMES):
        raise UnknownNameError("solver", choice, (*ENGINE_NAMES, AUTO))
    return ENGINE_NAMES if choice == AUTO else (choice,)


def race(
    engines: Sequence[str],
    text: str,
    timeout: float | None,
    memory: int,
    keep: Keep = lambda answer: answer,
    processor: float | None = None,
) -> list[Answer]:
    """The answers of engines that run on this machine to the query `text`, the decisive answer first. `timeout`:
    seconds in all; `processor`: processor seconds for each engine; `memory`: MiB for each engine; `keep`: each answer
    is replaced by what `keep` returns for it, as soon as the answer comes."""
    deadline = None if timeout is None else time.monotonic() + timeout
    answers, never = first_of(engines, lambda engine: SolverProcess(engine, text, memory), deadline, keep, processor)
    return [*answers, *(Answer("unknown", engine, version_of(engine), 0.0, why=Reason.NOT_ASKED) for engine in never)]


class Entrant(Protocol):
    """A process, or a group of processes elsewhere, that takes part in a race."""

    finished: Latch

    @property
    def used(self) -> float:
        """The processor seconds that the entrant has used."""

    def answers(self) -> list[Answer]:
        """The entrant's answers, the decisive answer first. An entrant that has not finished is ended, and answers
        "unknown"."""

    def stop(self) -> None:
        """Tell the entrant to end, without waiting."""

    def kill(self) -> None:
        """End the entrant, and wait until it has ended."""


def first_of(
    groups: Sequence[Group],
    begin: Callable[[Group], Entrant],
    deadline: float | None,
    keep: Keep,
    processor: float | None = None,
) -> tuple[list[Answer], list[Group]]:
    """The answers, the decisive answer first, and the groups of engines that never started before the deadline (of
    time.monotonic). Raises KeyboardInterrupt if the race is no longer wanted.

    The likeliest engine has a head start: most queries need no other, and engines that share cores slow each other.
    """
    waiting, running, answers = list(groups), list[Entrant](), list[Answer]()
    start, started = time.monotonic(), 0
    try:
        while waiting or running:
            now = time.monotonic()
            late = deadline is not None and now >= deadline
            while waiting and not late and (not running or now >= start + HEAD_START * 4 ** (started - 1)):
                running.append(begin(waiting.pop(0)))
                started += 1
            done = [
                entrant
                for entrant in running
                if late or entrant.finished.is_set() or (processor is not None and entrant.used >= processor)
            ]
            fresh = [keep(answer) for entrant in done for answer in entrant.answers()]
            running = [entrant for entrant in running if entrant not in done]
            decided = [answer for answer in fresh if answer.status != "unknown"]
            answers += [answer for answer in fresh if answer.status == "unknown"]
            if decided:
                return [decided[0], *answers], []
            if late:
                return answers, waiting
            if unwanted.get()():
                raise KeyboardInterrupt
            if running and not done:
                running[0].finished.wait(POLL)
        return answers, []
    finally:
        with held_back:
            for entrant in running:
                entrant.stop()
        for entrant in running:
            entrant.kill()
