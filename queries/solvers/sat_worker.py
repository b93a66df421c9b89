"""The program of a SAT solver's process: it reads formulas on standard input, and answers each with a proof or "sat".

Run as `python -P sat_worker.py SOLVER MEMORY_MIB PARENT`, by its path. Formulas follow one another, each as a line with
the number of its literals, terminating zeros included, and these literals as integers (4 bytes each, in the machine's
order). An answer is a line "unsat N" followed by N bytes of DRAT, or a line "sat". This program is apart from
worker.py, whose engines read SMT-LIB, because formulas and proofs are large and are sent as numbers and bytes.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from array import array
from typing import BinaryIO

PR_SET_PDEATHSIG = 1  # Linux's prctl; defined in worker.py too, as neither program imports the other


def answer(solver: str, literals: array[int]) -> str | None:
    """A DRAT proof that the clauses contradict each other; None if the clauses can be satisfied. `literals`: the
    clauses one after another, each ended by a 0."""
    from pysat.solvers import Solver

    clauses: list[list[int]] = [[]]
    for literal in literals:
        if literal:
            clauses[-1].append(literal)
        else:
            clauses.append([])
    with Solver(name=solver, with_proof=True) as engine:
        for clause in clauses[:-1]:
            if not clause:
                return "0\n"
            engine.add_clause(clause)
        if engine.solve():
            return None
        lines = [line.strip() for line in engine.get_proof()]
    if "0" not in lines[-1:]:
        lines.append("0")
    return "\n".join(lines) + "\n"


def serve(solver: str, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer each formula until the input ends."""
    while head := source.readline():
        literals = array("i")
        literals.frombytes(source.read(int(head) * literals.itemsize))
        proof = answer(solver, literals)
        if proof is None:
            sink.write(b"sat\n")
        else:
            data = proof.encode("ascii")
            sink.write(b"unsat %d\n" % len(data) + data)
        sink.flush()


def allowed() -> int:
    """The bytes of memory that this process may be given; in worker.py too."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def main() -> None:
    solver, memory, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if sys.platform == "linux":  # die with the parent, even if the parent is killed
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if memory:
        most = min(memory << 20, allowed())
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    serve(solver, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
