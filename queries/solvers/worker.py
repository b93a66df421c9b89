"""The program that runs a solver's processes: each query that it reads gets a child process of its own.

Run as `python -P worker.py ENGINE`, by its path. It loads one solver, once, since loading takes longer than most
queries do, and nothing else of the project. A query is a line "MEMORY_MIB BYTES", followed by these bytes of SMT-LIB;
an empty line ends the running query, and the end of the input ends everything. The answer is two lines of JSON: first
the child's `pid`; and, when the child has ended, its exit `code` (negative: a signal's number) with its output, `out`
and `err`, and the processor `seconds` that the child used. Every engine reads the text by its own parser and prints its
own answers; `err` ends with one JSON line: the solver's version and the processor seconds that the solver took.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import FileIO

PR_SET_PDEATHSIG = 1  # Linux's prctl; defined in sat_worker.py too, as neither program imports the other


def run_bitwuzla(text: str) -> str:
    import bitwuzla

    parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
    parser.parse(text, False, False)  # the parser prints the answers itself
    return ""


def run_z3(text: str) -> str:
    import z3

    # asking for values where there are none is an error, which would hide the answer
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
    if "(set-logic QF_BV)" in text:  # else cvc5 searches among terms first, which is hard for datapaths
        solver.setOption("bitblast", "eager")
    symbols = cvc5.SymbolManager(manager)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    answers = []
    while not (command := parser.nextCommand()).isNull():
        answers.append(str(command.invoke(solver, symbols)))
    return "".join(answers)


ENGINES: dict[str, Callable[[str], str]] = {"bitwuzla": run_bitwuzla, "z3": run_z3, "cvc5": run_cvc5}


@cache
def version_of(engine: str) -> str:
    """The version of an engine, from its installed distribution (so that nothing is imported)."""
    name = {"z3": "z3_solver"}.get(engine, engine)
    for folder in sys.path:
        with suppress(OSError, StopIteration):
            found = [entry for entry in os.listdir(folder) if entry.lower().startswith(f"{name}-")]
            if len(found) == 1 and found[0].endswith(".dist-info"):
                with open(f"{folder}/{found[0]}/METADATA", encoding="utf-8") as lines:
                    return next(line for line in lines if line.startswith("Version: "))[9:].strip()
            if found:
                break
    # the module knows every kind of installation, but loading it takes longer than an engine does
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def answer(engine: str, memory: int, text: str) -> None:
    """Print an engine's answer, with a memory limit in MiB (0: no limit), or the system's if that is less."""
    if memory:
        most = min(memory << 20, allowed())
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    start = time.process_time()
    output = ENGINES[engine](text)
    seconds = time.process_time() - start
    sys.stdout.write(output)
    sys.stdout.flush()
    print(json.dumps({"version": version_of(engine), "seconds": round(seconds, 4)}), file=sys.stderr)


def allowed() -> int:
    """The bytes of memory that this process may be given; in sat_worker.py too."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def next_query(source: FileIO) -> tuple[int, str] | None:
    """The memory and the text of a query; None at the end of the input."""
    while head := source.readline():
        if head == b"\n":  # meant to end a query that had ended already
            continue
        memory, size = map(int, head.split())
        text = bytearray()
        while len(text) < size and (part := source.read(size - len(text))):
            text += part
        return memory, text.decode()
    return None


def become_child(parent: int, outputs: tuple[int, int]) -> None:
    """Write to these pipes, and die with the parent, even if the parent is killed."""
    for number, output in enumerate(outputs, 1):
        os.dup2(output, number)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before prctl was called
            os._exit(1)


def attend(child: int, outputs: tuple[int, int]) -> dict[str, float | str]:
    """A child's outputs, seconds and exit code, once it ends; a line on standard input, or its end, ends the child."""
    written, left = dict.fromkeys(outputs, b""), set(outputs)
    while left:
        for ready in select.select([0, *left], [], [])[0]:
            data = os.read(ready, 65536)
            if ready in left and data:
                written[ready] += data
            elif ready in left:
                left.discard(ready)
            else:
                os.kill(child, signal.SIGKILL)
                if not data:
                    sys.exit()
    _, status, used = os.wait4(child, 0)
    code, seconds = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
    out, err = (written[output].decode(errors="replace") for output in outputs)
    return {"code": code, "out": out, "err": err, "seconds": seconds}


def main() -> None:
    engine = sys.argv[1]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    version_of(engine)  # looked up once here, as every child writes it
    with suppress(ImportError):  # a child will report it
        import_module(engine)
    parent, source = os.getpid(), FileIO(0)
    while (query := next_query(source)) is not None:
        (read_out, out), (read_err, err) = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            become_child(parent, (out, err))
            answer(engine, *query)
            ctypes.CDLL(None).fflush(None)  # engines print through C
            sys.stderr.flush()
            os._exit(0)  # the interpreter's own end takes longer than most queries
        os.close(out)
        os.close(err)
        print(json.dumps({"pid": child}), flush=True)
        print(json.dumps(attend(child, (read_out, read_err))), flush=True)
        os.close(read_out)
        os.close(read_err)


if __name__ == "__main__":
    main()
