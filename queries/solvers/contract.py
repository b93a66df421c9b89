"""The contract with solvers: SMT-LIB text in, an Answer out, each query in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Literal

from queries.smtlib import parse_values
from queries.solvers.worker import ENGINES, version_of
from smtmodel.errors import UnknownNameError

Status = Literal["sat", "unsat", "unknown"]

#: engines by lineage: a confirmation counts only from another lineage
ENGINE_NAMES = tuple(ENGINES)
DEFAULT_MEMORY = 8192  # MiB


@dataclass(frozen=True)
class Answer:
    """What a solver said. `values` are those of the query's inputs when it is "sat"; `reason` says why it is
    "unknown"; `seconds` is the solver's own time, or the time waited for one that did not answer; `stored`: it was
    said in an earlier run."""

    status: Status
    engine: str
    version: str
    seconds: float
    values: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    stored: bool = False

    def __str__(self) -> str:
        notes = "; ".join(note for note in (self.reason, "from the store" if self.stored else "") if note)
        tail = f" ({notes})" if notes else ""
        return f"{self.engine} {self.version}: {self.status} in {self.seconds:.2f} s{tail}"


class SolverProcess:
    """One query running in one engine. `answer` waits for it; `kill` ends it at any time."""

    def __init__(self, engine: str, text: str, memory: int = DEFAULT_MEMORY) -> None:
        if engine not in ENGINES:
            raise UnknownNameError("solver", engine, (*ENGINES, "auto"))
        self.engine = engine
        self.started = time.monotonic()
        command = [sys.executable, "-m", "queries.solvers.worker", engine, str(memory), str(os.getpid())]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # the terminal's Ctrl-C reaches the parent alone
        )
        self._out = self._err = ""
        self.finished = threading.Event()
        self._pump = threading.Thread(target=self._communicate, args=(text,), daemon=True)
        self._pump.start()

    def _communicate(self, text: str) -> None:
        try:
            self._out, self._err = self.process.communicate(text)
        except (OSError, ValueError):  # killed while it was being fed
            self.process.wait()
        self.finished.set()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._pump.join(timeout=5)

    def answer(self, timeout: float | None = None) -> Answer:
        """The answer; "unknown" if the time runs out (the process is then killed) or the process died."""
        try:
            in_time = self.finished.wait(timeout)
        except BaseException:
            self.kill()
            raise
        if not in_time:
            self.kill()
            return self._unknown("time ran out")
        return self._read()

    def answers(self) -> list[Answer]:
        """What there is to say now, in a list, as `portfolio.first_of` wants it."""
        return [self.answer(0)]

    def _unknown(self, reason: str) -> Answer:
        seconds = time.monotonic() - self.started
        return Answer("unknown", self.engine, version_of(self.engine), seconds, reason=reason)

    def _read(self) -> Answer:
        status, _, rest = self._out.strip().partition("\n")
        lines = self._err.strip().splitlines()
        if self.process.returncode != 0 or status not in ("sat", "unsat", "unknown"):
            return self._unknown(_failure(self.process.returncode, self._out, lines))
        facts = json.loads(lines[-1])
        reason = _given_up(rest) if status == "unknown" else ""
        values = parse_values(rest) if status == "sat" else {}
        return Answer(status, self.engine, facts["version"], facts["seconds"], values, reason)  # type: ignore[arg-type]


def _given_up(text: str) -> str:
    """Why a solver says that it does not know."""
    if "mem" in text:
        return "memory ran out"
    return f"the solver gave up: {' '.join(text.split())}" if text.strip() else "the solver gave up"


def _failure(code: int, out: str, errors: list[str]) -> str:
    text = "\n".join([out, *errors])
    if any(sign in text.lower() for sign in ("memoryerror", "bad_alloc", "out of memory", "cannot allocate")):
        return "memory ran out"
    if code < 0:
        return f"the solver was ended by signal {-code}"
    last = errors[-1] if errors else out.strip()[:200] or "no answer"
    return f"the solver failed: {last}"
