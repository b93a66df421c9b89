"""Interrupts come at safe points; work that does not come back after one, or after a time limit, is ended with all that
it started."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from mmaprobe.smtmodel.base import interrupts
from mmaprobe.smtmodel.base.interrupts import Latch, held_back
from tests.places import ROOT
from tests.solvers.test_solvers import eventually, running

pytestmark = pytest.mark.programs

TIME = 30.0  # seconds, at most, of what takes 5 on a machine without other work

#: the command itself, as `mmaprobe` runs it
ENTRY = """
    import os, signal, sys, threading, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from mmaprobe.cli import entry

    given = (*sys.argv, "")[1]

    def main(words):
        sys.argv[1:] = words
        entry.main()
"""
HARD = ["distinguish", "volta/mma/m8n8k4.f32.f16.f16.f32", "volta/mma/m8n8k4.f32.f16.f16.f32@block_order=3-2-1-0",
        "--solver", "bitwuzla", "--fresh"]  # fmt: skip


def program(text: str, *words: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(ENTRY) + textwrap.dedent(text), *words]


def run(text: str, *words: str) -> tuple[int, str]:
    """Exit code and standard error. The process and what it started have ended."""
    with subprocess.Popen(
        program(text, *words), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            _, errors = process.communicate(timeout=TIME)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, errors


@pytest.mark.parametrize(("event", "place"), [("return", "__enter__"), ("call", "_acquire_restore"), ("call", "start")])
def test_no_interrupt_leaves_a_lock_taken(tmp_path: Path, event: str, place: str) -> None:
    """It comes while the main thread is in Python's own functions for locks, and waits for a solver or begins to; the
    thread that attends to the solver needs the same locks. Where the main thread is never there, it comes later."""
    text = f"""
    def interrupt(frame, event, argument):
        if event == {event!r} and frame.f_code.co_name == {place!r} and frame.f_code.co_filename == threading.__file__:
            callers = []
            while frame is not None:
                callers.append(frame.f_code.co_name)
                frame = frame.f_back
            if "first_of" in callers and {place == "start"} == ("start" in callers):
                once()

    def once():
        sys.setprofile(None)
        if not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    sent = []
    from mmaprobe.queries.solvers import engines
    first_of = engines.first_of

    def begun(*rest):
        timer = threading.Timer(3, once)
        timer.daemon = True
        timer.start()
        sys.setprofile(interrupt)
        return first_of(*rest)

    engines.first_of = begun
    main({[*HARD, "--store", str(tmp_path / "store")]!r})
    """
    code, errors = run(text)
    assert (code, errors.splitlines()[-1:]) == (3, ["interrupted"])


def test_vectors_found_before_an_interrupt_are_kept(tmp_path: Path) -> None:
    """Those of questions that are asked at the same time too; and what was not asked is unknown."""
    output = tmp_path / "vectors.jsonl"
    text = f"""
    from mmaprobe.queries.search.distinguish import WitnessSearch

    def interrupted(search):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep({TIME})

    WitnessSearch._ask_on = interrupted
    main(["distinguish", *given.split(), "-n", "2", "-o", {str(output)!r}, "--store", {str(tmp_path / "store")!r}])
    """
    for given, count in (f"{HARD[1]} {HARD[1]}@fraction_bits=20", 2), ("bf16-ada-hopper carry-bits-ampere", 4):
        code, errors = run(text, given)
        assert (code, errors.splitlines()[-1:]) == (3, ["interrupted"])
        assert 1 <= len(output.read_text().splitlines()) <= count


FUNCTION = "def product(a, b):\n    return a @ b\n"
#: what a command calls to show its findings, in which module; the command line but for the time, and a line of what it
#: shows
SHOWN = {
    "prove": ("mmaprobe.cli.commands.prove_models", "Models.show", ["prove", HARD[1], HARD[1]], "equal: proved in"),
    "compare": ("mmaprobe.reports.comparison", "Report.explain",
                ["compare", f"model:{HARD[1]}", f"model:{HARD[1]}@fraction_bits=20", "-n", "1"], "second gives"),
    "build": ("mmaprobe.cli.commands.build", "_show", ["identify", "--device", f"model:{HARD[1]}"],
              "the unit found is"),
    "family": ("mmaprobe.cli.text.identified", "show_identified",
               ["identify", "nvidia-f64", "--device", "model:ampere/mma/m8n8k4.f64.f64.f64.f64"], "the unit found is"),
    "invariant": ("mmaprobe.cli.commands.identify_invariant", "_show",
                  ["identify", "--gemm", "--invariant", "--device", "python:{folder}/own.py:product", "--formats",
                   "f32,f32,f32", "--length", "2", "--shape", "2,2"], "batch-invariant"),
    "maximise": ("mmaprobe.cli.commands.verify", "_show_worst", ["verify", "error-bound-near-4", "--maximise"],
                 "found: "),
    "distinguish": ("mmaprobe.cli.text.vectors", "show_answer",
                    ["distinguish", HARD[1], f"{HARD[1]}@fraction_bits=20", "-o", "{folder}/out.jsonl"], "different"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_findings_are_shown_however_late_they_come(tmp_path: Path, name: str) -> None:
    """The time limit is for the work: findings that come at its end are not lost while they are printed."""
    module, place, words, expected = SHOWN[name]
    (tmp_path / "own.py").write_text(FUNCTION, encoding="utf-8")
    words = [word.format(folder=tmp_path) for word in words]
    text = f"""
    import {module} as module
    from mmaprobe.smtmodel.base import interrupts

    *owner, name = {place!r}.split(".")
    owner = getattr(module, owner[0]) if owner else module
    shown = getattr(owner, name)

    def late(*rest):
        if interrupts.state.soft is not None:  # the limit holds: let it be over
            interrupts.allow(0.01)
            time.sleep(3)
        shown(*rest)

    setattr(owner, name, late)
    main({[*words, "--timeout", "15"]!r})
    """
    code, errors = run(text)
    assert code in (0, 1), errors
    assert expected in errors
    assert "time ran out" not in errors


def test_work_that_hears_no_interrupt_is_ended(tmp_path: Path) -> None:
    """With what it started, and without what it was writing."""
    text = """
    import subprocess
    from pathlib import Path
    from mmaprobe.cli.commands import listing
    from mmaprobe.smtmodel.base.files import whole_file

    def deaf(*rest, **named):
        child = subprocess.Popen(["sleep", "600"])
        with whole_file(Path(given, "out")) as stream:
            stream.write(str(child.pid).encode())
            stream.flush()
            Path(given, "child").write_text(str(child.pid))
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
            while True:
                try:
                    time.sleep(600)
                except KeyboardInterrupt:
                    pass

    listing.list_command.callback = deaf
    main(["list", "claims"])
    """
    start = time.monotonic()
    code, errors = run(text, str(tmp_path))
    assert (code, errors.strip()) == (3, "interrupted")
    assert time.monotonic() - start < TIME
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    assert eventually(lambda: not running(child))
    assert [path.name for path in tmp_path.iterdir()] == ["child"]


@pytest.mark.parametrize("hears", [True, False])
def test_work_past_its_time_is_cut_short(hears: bool) -> None:
    text = f"""
    from mmaprobe.cli.commands import order
    def work(*rest, **named):
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                if {hears}:
                    raise
    order.order.callback = work
    main(["order", "--device", "model:x", "--timeout", "0.5"])
    """
    start = time.monotonic()
    code, errors = run(text)
    assert code == 3
    assert time.monotonic() - start < TIME
    message = "the work was cut short" if hears else "the work did not end by itself"
    assert errors.strip().startswith(("time ran out", "error: time ran out"))
    assert message in errors


def test_a_command_that_its_time_cut_short_does_not_say_that_it_was_interrupted() -> None:
    """`compare` tells what it found until then itself."""
    text = """
    from mmaprobe.cli.commands import compare
    compare._Run.open = lambda *rest: time.sleep(600)
    compare._Run.finish = lambda self, failure, *rest: (_ for _ in ()).throw(failure)
    main(["compare", "model:x", "model:y", "--timeout", "0.5"])
    """
    assert run(text) == (3, "error: out of time\n")


@pytest.mark.parametrize("moment", ["atexit", "teardown"])
def test_the_exit_code_of_a_command_that_has_ended_stands(moment: str) -> None:
    text = """
    class Late:
        def __del__(self, kill=os.kill, own=os.getpid(), number=signal.SIGINT):
            kill(own, number)

    import atexit
    late = Late() if given == "teardown" else atexit.register(os.kill, os.getpid(), signal.SIGINT)
    main(["list", "claims"])
    """
    assert run(text, moment) == (0, "")


def twice(steps: list[int]) -> None:
    with held_back:
        with held_back:
            signal.raise_signal(signal.SIGUSR1)
            steps.append(1)
        steps.append(2)
    steps.append(3)


def test_an_interrupt_in_a_block_comes_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = signal.signal(signal.SIGUSR1, lambda number, frame: interrupts.interrupt(KeyboardInterrupt, frame))
    steps: list[int] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            twice(steps)
        assert steps == [1, 2]
        with held_back:
            pass  # it came once
    finally:
        signal.signal(signal.SIGUSR1, handler)


def test_the_first_limit_counts_from_where_the_program_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "state", interrupts._State())
    interrupts.state.started = time.monotonic() - 5
    interrupts.allow(20)
    assert 14 < (interrupts.left(20) or 0) <= 15
    interrupts.state.started = time.monotonic() - 5
    interrupts.allow(1)
    assert 0 < (interrupts.left(1) or 0) <= 1
    interrupts.allow(20)
    assert 19 < (interrupts.left(20) or 0) <= 20
    assert interrupts.left(None) is None


def test_time_that_does_not_count_moves_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: now)
    for name, value in (("begun", 90.0), ("soft", 110.0), ("hard", 112.0)):
        monkeypatch.setattr(interrupts.state, name, value)
    with interrupts.uncounted():
        assert (interrupts.state.soft, interrupts.state.hard) == (None, None)
        now = 140.0
    assert (interrupts.state.begun, interrupts.state.soft, interrupts.state.hard) == (130.0, 150.0, 152.0)
    assert interrupts.left(20.0) == 10.0


def test_a_latch_is_set_once_for_all() -> None:
    latch, heard = Latch(), list[bool]()
    assert not latch.wait(0.01)
    threads = [threading.Thread(target=lambda: heard.append(latch.wait(60))) for _ in range(5)]
    for thread in threads:
        thread.start()
    latch.set()
    latch.set()
    for thread in threads:
        thread.join(60)
    assert heard == [True] * 5
    assert latch.is_set()
    assert latch.wait(0)


def test_processes_that_simulate_die_with_their_parent() -> None:
    """Also the one that keeps account of their locks."""
    text = """
    from mmaprobe.queries.candidates.outcomes import _simulator, pool_rows
    from mmaprobe.smtmodel.evaluate.operands import layout_of
    from mmaprobe.smtmodel.tables.reference import parse_reference
    model = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32")
    with _simulator([model] * 128, 2) as simulated:
        next(simulated(pool_rows(layout_of(model), 10)))
        print(*open(f"/proc/self/task/{os.getpid()}/children").read().split(), flush=True)
        time.sleep(600)
    """
    with subprocess.Popen(program(text), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        children = list(map(int, process.stdout.readline().split()))
        process.kill()
    assert len(children) == 3
    assert eventually(lambda: not any(map(running, children)))
