"""What solvers said in this run of the tests: each question is worked out once, whichever test and worker asks it.

As in the product's store, an answer belongs to one version of an engine and to the whole text of a question, so that
changed code asks anew. Everything around it is what it would be had the solver answered at once. Only what was decided
is kept."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from functools import cache
from pathlib import Path

from mmaprobe.queries.solvers.contract import Answer, SolverProcess, _tell
from mmaprobe.queries.solvers.worker import version_of
from mmaprobe.smtmodel.base.interrupts import Latch

FOLDER = "ANSWERS_OF_TESTS"  # the variable of the environment that names it
_version = cache(version_of)


class Known:
    """An engine that has answered."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.finished = answer, Latch()
        self.finished.set()

    def answers(self) -> list[Answer]:
        return [self.answer]

    def stop(self) -> None:
        """It has ended."""

    kill = stop


class Heard(SolverProcess):
    """A process whose answer is written to a file."""

    file: Path

    def _read(self) -> Answer:
        answer = super()._read()
        if answer.status != "unknown":
            written = self.file.with_suffix(f".{os.getpid()}-{id(self)}")
            written.write_text(json.dumps(asdict(answer)), encoding="utf-8")
            written.replace(self.file)  # at once: no other worker reads half of it
        return answer


def ask(engine: str, text: str, memory: int) -> Known | Heard:
    """Stands for `SolverProcess` in a race."""
    file = Path(os.environ[FOLDER], hashlib.sha256(f"{engine} {_version(engine)}\0{text}".encode()).hexdigest())
    if file.exists():
        return Known(_tell(text, Answer(**json.loads(file.read_text(encoding="utf-8")))))
    process = Heard(engine, text, memory)
    process.file = file
    return process
