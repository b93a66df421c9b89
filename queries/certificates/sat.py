"""Proofs from a SAT solver in a separate process, which can be killed at any time."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from mmaprobe.queries.certificates.gates import Clause
from mmaprobe.queries.solvers import sat_worker
from mmaprobe.queries.solvers.children import FOLDER, environment, python_command
from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY
from mmaprobe.smtmodel.base.errors import FaultError, IncompleteError

SOLVER = "cadical195"  # its proofs have RUP steps alone: implied clauses, no new variables


class CertificateError(IncompleteError):
    """A certificate that could not be made, or was rejected by the checker."""

    def __init__(self, message: str = "only what is proved has a certificate") -> None:
        super().__init__(message)


class FaultyProofError(CertificateError):
    """A proof rejected by the checker, or a satisfiable formula that a solver calls unsatisfiable: a fault."""

    exit_code = FaultError.exit_code


class OutOfTimeError(CertificateError):
    """Time or memory ran out."""


def time_left(deadline: float | None, what: str) -> float | None:
    """The seconds until a deadline (of time.monotonic); None without a deadline. Raises OutOfTimeError, which names
    `what`."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTimeError(f"time ran out for {what}")
    return left


def solver_version() -> str:
    """The name of the solver, and its distribution with the version."""
    return f"{SOLVER} of python-sat {version('python-sat')}"


class SatSolver:
    """A process that refutes one formula after another. It is started at the first formula and ended by `close`.
    `memory`: the limit of its memory, as `DEFAULT_MEMORY` is."""

    def __init__(self, solver: str = SOLVER, memory: int = DEFAULT_MEMORY) -> None:
        self.solver, self.memory = solver, memory
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> SatSolver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # nobody reads the rest of the buffer
                        pipe.close()
            self.process = None

    def refute(
        self, clauses: Iterable[Sequence[int]], timeout: float | None = None
    ) -> list[tuple[bool, Clause]] | None:
        """The steps of a proof of unsatisfiability, as pairs (whether the step is a deletion, clause); the last clause
        is empty. None if the clauses are satisfiable. `timeout` is in seconds. Raises OutOfTimeError."""
        literals = array("i")
        for clause in clauses:
            literals.extend(clause)
            literals.append(0)
        proof = self._ask(literals, timeout)
        return None if proof is None else list(_steps(proof))

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            python_command(Path(sat_worker.__file__), self.solver, str(self.memory), str(os.getpid())),
            cwd=FOLDER,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C on the terminal reaches the parent alone
        )

    def _ask(self, literals: array[int], timeout: float | None) -> str | None:
        if self.process is None:
            self.process = self._start()
        process = self.process
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop) if timeout is not None else None
        if timer:
            timer.start()
        try:
            return _exchange(process, literals)
        except (OSError, ValueError) as error:  # the process died
            self.close()
            reason = "time ran out" if late.is_set() else "the SAT solver died, or memory ran out"
            raise OutOfTimeError(reason) from error
        except BaseException:
            self.close()
            raise
        finally:
            if timer:
                timer.cancel()


def _exchange(process: subprocess.Popen[bytes], literals: array[int]) -> str | None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"%d\n" % len(literals) + literals.tobytes())
    process.stdin.flush()
    status, _, size = process.stdout.readline().decode().partition(" ")
    if status == "sat\n":
        return None
    if status != "unsat":
        raise ValueError(status)
    proof = process.stdout.read(int(size))
    if len(proof) != int(size):
        raise ValueError("cut short")
    return proof.decode("ascii")


def _steps(proof: str) -> Iterable[tuple[bool, Clause]]:
    for line in proof.splitlines():
        words = line.split()
        deletion = words[0] == "d"
        yield deletion, tuple(map(int, words[deletion:-1]))
