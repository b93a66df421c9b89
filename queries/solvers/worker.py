"""The program inside a solver's process: reads SMT-LIB on standard input, prints the solver's own answers.

Run as `python -m queries.solvers.worker ENGINE MEMORY_MIB PARENT`. Imports one solver and nothing else of the project,
so that it starts fast. Every engine reads the text through its own parser. Standard error ends with one JSON line: the
solver's version and the seconds that it took (start-up of the process excluded).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def run_bitwuzla(text: str) -> str:
    import bitwuzla

    parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
    parser.parse(text, False, False)  # prints its answers itself
    return ""


def run_z3(text: str) -> str:
    import z3

    # asking for values where there are none is an error that would hide the answer
    question, ask, values = text.partition("(get-value")
    context = z3.main_ctx().ref()
    answer = str(z3.Z3_eval_smtlib2_string(context, question))
    if answer.startswith("unknown"):
        answer += str(z3.Z3_eval_smtlib2_string(context, "(get-info :reason-unknown)"))
    elif ask and answer.startswith("sat"):
        answer += str(z3.Z3_eval_smtlib2_string(context, ask + values))
    return answer


def run_cvc5(text: str) -> str:
    import cvc5

    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    symbols = cvc5.SymbolManager(manager)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    answers = []
    while not (command := parser.nextCommand()).isNull():
        answers.append(str(command.invoke(solver, symbols)))
    return "".join(answers)


ENGINES: dict[str, Callable[[str], str]] = {"bitwuzla": run_bitwuzla, "z3": run_z3, "cvc5": run_cvc5}


def version_of(engine: str) -> str:
    """The version of an engine, from its installed distribution (so that nothing is imported)."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version({"z3": "z3-solver"}.get(engine, engine))
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    engine, memory, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if sys.platform == "linux":  # die with the parent, even if it is killed
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before it could be watched
            return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    text = sys.stdin.read()
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))
    start = time.perf_counter()
    answer = ENGINES[engine](text)
    seconds = time.perf_counter() - start
    sys.stdout.write(answer)
    sys.stdout.flush()
    print(json.dumps({"version": version_of(engine), "seconds": round(seconds, 4)}), file=sys.stderr)


if __name__ == "__main__":
    main()
