"""The contract with solvers: SMT-LIB text in, an Answer out, each query in a process of its own.

Processes that have a solver loaded wait for queries, since loading takes longer than most queries do. The pools of
concurrent.futures cannot kill one query or limit its memory.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from mmaprobe.queries.solvers import worker
from mmaprobe.queries.solvers.children import FOLDER, environment, python_command
from mmaprobe.queries.solvers.smtlib import parse_values
from mmaprobe.queries.solvers.worker import ENGINES, allowed, version_of
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.interrupts import Latch, held_back

Status = Literal["sat", "unsat", "unknown"]

#: engines by lineage: a confirmation counts only from another lineage
ENGINE_NAMES = tuple(ENGINES)
DEFAULT_MEMORY = 8192  # MiB
SENT = 0.2  # seconds in which a server must take the text of a query that is to be ended; else the server is killed
CPU_CLOCK = 2  # Linux's kind of clock for the processor time of a process, after the complement of the process's number
KILLED = 1.5  # seconds in which a server must end a query; else the server itself is killed


class Reason(Enum):
    """Why an answer is "unknown"; the value is the beginning of what people read."""

    TIME = "time ran out"
    NOT_ASKED = "time ran out before it was asked"
    MEMORY = "memory ran out"
    LESS_MEMORY = "memory ran out, of which `ulimit -v` allows less than --memory asks for"
    GAVE_UP = "the solver gave up"
    ENDED = "the solver was ended"
    FAILED = "the solver failed"

    @property
    def is_of_budget(self) -> bool:
        """Whether the limits of the query explain the answer; other reasons are accidents, which may not happen
        again."""
        return self in (Reason.TIME, Reason.NOT_ASKED, Reason.MEMORY, Reason.GAVE_UP)


@dataclass(frozen=True)
class Answer:
    """A solver's answer. `values`: the values of the query's inputs, for "sat"; `why`, with `detail`: the reason of an
    "unknown"; `seconds`: processor seconds that the solver used; `stored`: the answer is of an earlier run."""

    status: Status
    engine: str
    version: str
    seconds: float
    values: dict[str, int] = field(default_factory=dict)
    why: Reason | None = None
    detail: str = ""
    stored: bool = False

    @property
    def reason(self) -> str:
        """Why the answer is "unknown", in words; empty for other answers."""
        if self.why is None:
            return ""
        return f"{self.why.value}: {self.detail}" if self.detail else self.why.value

    def __str__(self) -> str:
        notes = "; ".join(note for note in (self.reason, "from the store" if self.stored else "") if note)
        tail = f" ({notes})" if notes else ""
        return f"{self.engine} {self.version}: {self.status} in {self.seconds:.2f} s{tail}"


_told: dict[int, tuple[weakref.ref[Answer], str]] = {}  # the answers of engines, with the digest of each query's text


def _tell(text: str, answer: Answer) -> Answer:
    """Note that an engine gave an answer to a query's text. Called only where an engine's output is read, or a kept
    copy of an answer: from the store, or from a cluster's worker."""
    key = id(answer)
    _told[key] = weakref.ref(answer, lambda _, told=_told: told.pop(key, None)), _digest(text)  # type: ignore[misc]
    return answer


def is_told(answer: Answer, text: str) -> bool:
    """Whether an engine gave this answer to a query's text."""
    known, digest = _told.get(id(answer), (None, ""))
    return known is not None and known() is answer and digest == _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class _Server:
    """A process that has a solver loaded and runs one query after another, each in a child process of its own."""

    def __init__(self, engine: str) -> None:
        self._process = subprocess.Popen(
            python_command(Path(worker.__file__), engine),
            cwd=FOLDER,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # the terminal's Ctrl-C reaches the parent alone
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, data: bytes) -> None:
        assert self._process.stdin
        with suppress(OSError, ValueError):  # the server died, as `receive` will find, or was ended since
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def receive(self) -> dict[str, Any] | None:
        """The next line of the server; None if it died."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """The server's exit code and standard error; it is killed if it still runs."""
        self.kill()
        _, error = self._process.communicate()
        return self._process.returncode, error.decode(errors="replace")


#: idle servers by engine, which wait for a query and end with this process
_idle: defaultdict[str, list[_Server]] = defaultdict(list)
os.register_at_fork(after_in_child=_idle.clear)  # a forked child must not talk to this process's servers


@atexit.register
def end_idle() -> None:
    """End the idle servers."""
    while _idle:
        for server in _idle.popitem()[1]:
            server.end()


def _server(engine: str) -> _Server:
    """An idle server, or a new one."""
    with suppress(IndexError):
        while True:
            server = _idle[engine].pop()
            if server.alive:
                return server
            server.end()
    return _Server(engine)


class SolverProcess:
    """One query running in one engine. `answer` waits for it; `kill` ends it at any time. Raises UnknownNameError.

    `pid` is the process of the query alone, None until it is known.
    """

    def __init__(self, engine: str, text: str, memory: int = DEFAULT_MEMORY) -> None:
        if engine not in ENGINES:
            raise UnknownNameError("solver", engine, (*ENGINES, "auto"))
        self.engine, self.memory, self._text = engine, memory, text
        self.pid: int | None = None
        self.started = time.monotonic()
        self._reply: dict[str, Any] | None = None
        self._reply_lock = threading.Lock()
        self._sent, self.finished = Latch(), Latch()
        data = text.encode()
        with held_back:
            self._server = _server(engine)
            question = b"%d %d\n" % (memory, len(data)) + data
            threading.Thread(target=self._attend, args=(question,), daemon=True).start()

    def _attend(self, question: bytes) -> None:
        """Ask the server, wait for its answer, and put the server back among the idle ones."""
        self._server.send(question)
        self._sent.set()
        if begun := self._server.receive():
            self.pid = begun["pid"]
        reply = self._server.receive()
        if not reply:
            code, error = self._server.end()
        with self._reply_lock:
            self._reply = reply or {"code": code, "out": "", "err": error}
        if reply:
            _idle[self.engine].append(self._server)
        self.finished.set()

    def stop(self) -> None:
        """Tell the query to end."""
        with held_back:
            sent = self._sent.wait(SENT)
            with self._reply_lock:
                if self._reply is not None:  # the server may run another query by now
                    return
                if sent:
                    self._server.send(b"\n")
                else:  # the server has not read the query yet
                    self._server.kill()

    @property
    def used(self) -> float:
        """The processor seconds that the query has used; elapsed seconds where the system does not measure these."""
        if self._reply is not None and "seconds" in self._reply:
            return float(self._reply["seconds"])
        if sys.platform != "linux":
            return time.monotonic() - self.started
        with suppress(OSError):  # the query has ended
            return 0.0 if self.pid is None else time.clock_gettime(~self.pid << 3 | CPU_CLOCK)
        return 0.0

    def kill(self) -> None:
        """End the query, and wait until it has ended."""
        self.stop()
        if not self.finished.wait(KILLED):
            with held_back:
                self._server.kill()
            self.finished.wait(KILLED)

    def answer(self, timeout: float | None = None) -> Answer:
        """The answer; "unknown" if the time runs out (the process is then killed) or the process died."""
        try:
            in_time = self.finished.wait(timeout)
        except BaseException:
            self.kill()
            raise
        if not in_time:
            self.kill()
            return self._unknown(Reason.TIME)
        return self._read()

    def answers(self) -> list[Answer]:
        """The answer so far, in a list, as `engines.first_of` wants it."""
        return [self.answer(0)]

    def _scarce(self, why: Reason, detail: str) -> tuple[Reason, str]:
        """The reason and its detail; where memory ran out below the query's limit, as the system allows less, both say
        so."""
        if why is Reason.MEMORY and self.memory << 20 > (most := allowed()):
            return Reason.LESS_MEMORY, f"{most >> 20} MiB of {self.memory}"
        return why, detail

    def _unknown(self, why: Reason, detail: str = "") -> Answer:
        return self._says("unknown", version_of(self.engine), self.used, {}, why, detail)

    def _says(
        self, status: Status, version: str, seconds: float, values: dict[str, int], why: Reason | None, detail: str
    ) -> Answer:
        return _tell(self._text, Answer(status, self.engine, version, seconds, values, why, detail))

    def _read(self) -> Answer:
        assert self._reply
        code, out, lines = self._reply["code"], self._reply["out"], self._reply["err"].strip().splitlines()
        status, _, rest = out.strip().partition("\n")
        if code != 0 or status not in ("sat", "unsat", "unknown"):
            return self._unknown(*self._scarce(*_failure(code, out, lines)))
        facts = json.loads(lines[-1])
        why, detail = self._scarce(*_given_up(rest)) if status == "unknown" else (None, "")
        values = parse_values(rest) if status == "sat" else {}
        return self._says(status, facts["version"], facts["seconds"], values, why, detail)


def _given_up(text: str) -> tuple[Reason, str]:
    """Why a solver gave up: the only place where an engine's own words are interpreted."""
    words = " ".join(text.split())
    if "mem" in text:
        return Reason.MEMORY, ""
    ended = any(word in text.lower() for word in ("interrupt", "cancel"))
    return Reason.ENDED if ended else Reason.GAVE_UP, words


def _failure(code: int, out: str, errors: list[str]) -> tuple[Reason, str]:
    text = "\n".join([out, *errors])
    if any(sign in text.lower() for sign in ("memoryerror", "bad_alloc", "out of memory", "cannot allocate")):
        return Reason.MEMORY, ""
    if code < 0:
        return Reason.ENDED, f"signal {-code}"
    return Reason.FAILED, errors[-1] if errors else out.strip()[:200] or "no answer"
