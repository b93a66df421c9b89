"""Solvers behind one contract: text in, an answer out, and no process left behind, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import build_query
from mmaprobe.queries.search.witness import confirmed_witness
from mmaprobe.queries.solvers import contract
from mmaprobe.queries.solvers.contract import ENGINE_NAMES, Reason, SolverProcess
from mmaprobe.queries.solvers.smtlib import Query, parse_values
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests import shared_answers
from tests.places import ROOT

pytestmark = [pytest.mark.solvers, pytest.mark.processes]

EACH = pytest.mark.parametrize("engine", ENGINE_NAMES)
HEAD = "(set-logic QF_BV)\n(set-option :produce-models true)\n"
SQUARE = HEAD + (
    "(declare-const x (_ BitVec 8))\n(declare-const y (_ BitVec 5))\n(declare-const free (_ BitVec 3))\n"
    "(assert (= (bvmul x x) #x{square}))\n(assert (bvult x #x0a))\n(assert (= y ((_ extract 4 0) (bvadd x x))))\n"
    "(check-sat)\n(get-value (x y free))\n"
)
SAT, UNSAT = SQUARE.format(square="31"), SQUARE.format(square="02")


def factoring(number: int, width: int) -> str:
    """Is the number a product of two factors above 1, each of half the width?"""
    bound = f"(_ bv{1 << width // 2} {width})"
    ranges = "".join(f"(assert (bvult {x} {bound}))\n(assert (bvult (_ bv1 {width}) {x}))\n" for x in "xy")
    return (
        f"{HEAD}(declare-const x (_ BitVec {width}))\n(declare-const y (_ BitVec {width}))\n{ranges}"
        f"(assert (= (bvmul x y) (_ bv{number} {width})))\n(check-sat)\n(get-value (x y))\n"
    )


HARD = factoring(2654435761 * 3267000013, 64)  # the factors are primes
LARGE = factoring(3**256, 1024)


def pid_of(process: SolverProcess) -> int:
    """The number of the process that has the query alone."""
    while process.pid is None:
        assert not process.finished.wait(0.01) or process.pid
    return process.pid


def gone(pid: int) -> bool:
    """Whether no process of that number, and none of its group, is left."""
    for probe in (os.kill, os.killpg):
        try:
            probe(pid, 0)
        except ProcessLookupError:
            continue
        return False
    return True


def text_query(text: str) -> Query:
    """A query with some SMT-LIB of its own."""
    return Query((), (), epilogue=text)


# --- one engine ---------------------------------------------------------------------------------------------------


@EACH
def test_sat_with_values(engine: str) -> None:
    process = SolverProcess(engine, SAT)
    answer = process.answer(60)
    assert (answer.status, answer.engine, answer.reason) == ("sat", engine, "")
    assert sorted(answer.values) == ["free", "x", "y"]
    assert (answer.values["x"], answer.values["y"]) == (7, 14)
    assert 0 <= answer.values["free"] < 8
    assert answer.version[0].isdigit()
    assert gone(pid_of(process))


@EACH
def test_unsat_has_no_values(engine: str) -> None:
    process = SolverProcess(engine, UNSAT)
    answer = process.answer(60)
    assert (answer.status, answer.values, answer.reason) == ("unsat", {}, "")
    assert gone(pid_of(process))


@EACH
def test_time_limit(engine: str) -> None:
    process = SolverProcess(engine, HARD)
    while process.used < 0.2:  # of a processor, by the system while it runs
        assert not process.finished.wait(0.01)
    answer = process.answer(0.1)
    assert (answer.status, answer.values) == ("unknown", {})
    assert answer.why is Reason.TIME
    assert answer.seconds == process.used >= 0.2  # by what it is found to have used in the end
    assert gone(pid_of(process))


@EACH
def test_memory_limit(engine: str) -> None:
    process = SolverProcess(engine, LARGE, memory=100)
    answer = process.answer(120)
    assert (answer.status, answer.values) == ("unknown", {})
    assert answer.why is Reason.MEMORY
    assert gone(pid_of(process))
    assert SolverProcess(engine, SAT).answer(60).status == "sat"


def test_a_hard_limit_of_memory_is_kept() -> None:
    """As of batch systems: less memory than asked for is no failure."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "from mmaprobe.queries.solvers.contract import SolverProcess\n"
        "from mmaprobe.queries.certificates.sat import SatSolver\n"
        "from tests.solvers.test_solvers import SAT\n"
        "print(*(SolverProcess(engine, SAT).answer(60).status for engine in ('bitwuzla', 'z3', 'cvc5')))\n"
        "solver = SatSolver(memory=8192)\n"
        "print(solver.refute([(1,), (-1,)])[-1])\n"
        "solver.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "sat sat sat\n(False, ())\n", done.stderr


def test_memory_that_the_system_does_not_give_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "allowed", lambda: 50 << 20)
    answer = SolverProcess("bitwuzla", LARGE, memory=100).answer(120)
    assert "`ulimit -v` allows less than --memory asks for: 50 MiB of 100" in answer.reason


@EACH
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_from_outside(engine: str, number: signal.Signals) -> None:
    process = SolverProcess(engine, HARD)
    os.kill(pid_of(process), number)
    answer = process.answer(60)
    assert (answer.status, answer.values) == ("unknown", {})
    assert (answer.why, answer.detail) == (Reason.ENDED, f"signal {number.value}")
    assert gone(pid_of(process))


@EACH
@pytest.mark.parametrize(
    "text",
    ["(assert (", "hello", SAT.replace("bvmul", "bvmool"), SAT.replace("#x31", "#x031"), SAT[:-20], HEAD, "\x00"],
    ids=["cut", "word", "operator", "width", "half a command", "no question", "NUL"],
)
def test_text_that_is_no_question(engine: str, text: str) -> None:
    process = SolverProcess(engine, text)
    answer = process.answer(60)
    assert (answer.status, answer.values) == ("unknown", {})
    assert answer.why is Reason.FAILED
    assert gone(pid_of(process))


@EACH
def test_killing_twice_and_after_the_end(engine: str) -> None:
    process = SolverProcess(engine, HARD)
    process.kill()
    process.kill()
    assert gone(pid_of(process))
    finished = SolverProcess(engine, SAT)
    answer = finished.answer(60)
    finished.kill()
    assert finished.answer(0) == answer


@EACH
def test_a_process_that_has_the_solver_serves_one_query_after_another(engine: str) -> None:
    """Each query has a process of its own all the same: the limits of one, or its end, are not those of the next."""
    contract.end_idle()
    first, *others = (SolverProcess(engine, text) for text in (HARD, SAT))
    first.kill()
    assert [process.answer(60).status for process in others] == ["sat"]
    assert len(contract._idle[engine]) == 2
    first.kill()  # of which the queries that run by now in the same processes know nothing
    later = [SolverProcess(engine, text) for text in (UNSAT, SAT)]
    first.kill()
    assert [process.answer(60).status for process in later] == ["unsat", "sat"]
    assert len({pid_of(process) for process in (first, *others, *later)}) == 4
    assert len(contract._idle[engine]) == 2


def test_an_answer_that_tests_share_is_of_one_engine_to_one_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The questions differ in two characters, their answers in all; another version is asked anew."""
    monkeypatch.setenv(shared_answers.FOLDER, str(tmp_path))
    assert len(SAT) == len(UNSAT)
    for engine in ("bitwuzla", "z3"):
        for text, status in ((SAT, "sat"), (UNSAT, "unsat")):
            process = shared_answers.ask(engine, text, contract.DEFAULT_MEMORY)
            assert isinstance(process, SolverProcess)  # nobody has answered it
            answer = process.answer(60)
            known = shared_answers.ask(engine, text, contract.DEFAULT_MEMORY)
            assert isinstance(known, shared_answers.Known)
            assert (answer.status, known.answers()) == (status, [answer])
    monkeypatch.setattr(shared_answers, "_version", lambda engine: "another")
    assert isinstance(shared_answers.ask("z3", SAT, contract.DEFAULT_MEMORY), SolverProcess)


def test_a_waiting_process_that_died_is_not_asked() -> None:
    contract.end_idle()
    assert SolverProcess("bitwuzla", SAT).answer(60).status == "sat"
    [server] = contract._idle["bitwuzla"]
    server.kill()
    assert eventually(lambda: not server.alive)
    assert SolverProcess("bitwuzla", SAT).answer(60).status == "sat"


def test_a_program_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    contract.end_idle()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    answer = SolverProcess("bitwuzla", SAT).answer(60)
    assert (answer.status, answer.reason) == ("unknown", "the solver failed: no answer")


def test_no_process_waits_longer_than_its_parent() -> None:
    program = (
        "from mmaprobe.queries.solvers import contract\n"
        "from tests.solvers.test_solvers import SAT\n"
        "assert contract.SolverProcess('bitwuzla', SAT).answer(60).status == 'sat'\n"
        "print(contract._idle['bitwuzla'][0].pid, flush=True)\n"
        "input()\n"
    )
    for ending in (subprocess.Popen.kill, subprocess.Popen.communicate):  # the second ends its input
        parent = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert running(child)
        ending(parent)
        parent.communicate()
        assert eventually(partial(ended, child))


def test_interrupt_while_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    process = SolverProcess("z3", HARD)

    wait = process.finished.wait

    def interrupted(timeout: float | None = None) -> bool:
        monkeypatch.setattr(process.finished, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(process.finished, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        process.answer(60)
    assert gone(pid_of(process))


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_a_solver_dies_with_its_parent() -> None:
    program = (
        "from mmaprobe.queries.solvers.contract import SolverProcess\n"
        "from tests.solvers.test_solvers import HARD, pid_of\n"
        "print(pid_of(SolverProcess('bitwuzla', HARD)), flush=True)\n"
        "import time; time.sleep(120)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert eventually(lambda: "bitwuzla" in Path(f"/proc/{child}/maps").read_text(encoding="utf-8"))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert eventually(partial(ended, child))


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def running(pid: int) -> bool:
    """Whether a process exists and is not merely waiting to be collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def ended(pid: int) -> bool:
    return not running(pid)


def test_unknown_engine() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'bitwuzla'"):
        SolverProcess("bitwuzzla", SAT)


def test_values_in_both_bases_and_over_lines() -> None:
    assert parse_values("((a0 #b0101)\n (b_1 #xfF)( c #b1 ))") == {"a0": 5, "b_1": 255, "c": 1}


def test_a_worker_imports_no_solver_before_it_is_asked() -> None:
    program = "import json, sys, mmaprobe.queries.solvers.worker; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    loaded = {name.partition(".")[0] for name in json.loads(out)} | set(json.loads(out))
    assert "mmaprobe.queries" in loaded
    assert not loaded & {"pysmt", "z3", "bitwuzla", "cvc5", "numpy", "pydantic", "yaml", "click", "mmaprobe.smtmodel"}


# --- queries as text ----------------------------------------------------------------------------------------------

SMALL = "volta/mma/m8n8k4.f32.f16.f16.f32@product=normalised,length=1,fraction_bits=4,output=f16"


def carry_problem(few: int, many: int) -> Problem:
    """Two carry widths for one product and an addend: one bit is enough."""
    left, right = (parse_reference(f"{SMALL},carry_bits={bits}") for bits in (few, many))
    return Problem(left, right, Inputs(finite=True, nonnegative=True, exponents=ExponentRange(min=-1, max=1)))


@EACH
@pytest.mark.parametrize(("few", "many", "status"), [(0, 1, "sat"), (1, 2, "unsat")])
def test_every_engine_reads_the_text_and_agrees(engine: str, few: int, many: int, status: str) -> None:
    problem = carry_problem(few, many)
    query = build_query(problem)
    assert query.text.startswith("(set-logic QF_BV)\n")
    answer = SolverProcess(engine, query.text).answer(120)
    assert answer.status == status
    if status == "sat":
        row = tuple(answer.values[name] for name in problem.layout.names)
        assert confirmed_witness(problem, row) is not None


def relational_text() -> str:
    """A query with symbols beside its inputs: the maxima of two steps."""
    base = "volta/mma/m8n8k4.f32.f16.f16.f32@length=2,block=1,fraction_bits="
    left, right = (parse_reference(f"{base}{bits}") for bits in (4, 5))
    text = build_query(Problem(left, right), carrier=TermCarrier(maximum="relational")).text
    assert text.count("declare-const") > 5
    return text


def test_two_builds_give_the_same_text() -> None:
    assert build_query(carry_problem(0, 1)).text == build_query(carry_problem(0, 1)).text
    assert build_query(carry_problem(0, 1)).text != build_query(carry_problem(1, 2)).text
    assert relational_text() == relational_text()


def test_the_text_does_not_depend_on_hash_seeds() -> None:
    program = (
        "from tests.solvers.test_solvers import *\nprint(build_query(carry_problem(0, 1)).text + relational_text())\n"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert texts[0] == texts[1] == build_query(carry_problem(0, 1)).text + relational_text() + "\n"
