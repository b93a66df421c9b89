"""Texts of progress, and the time that they tell."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.line import StatusLine
from mmaprobe.cli.main import main
from mmaprobe.smtmodel.base.progress import Count, NestedText, Pieces, TimeLeft, Wait
from tests.command_line.test_comfort import ROW, VOLTA, Terminal, run


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(left: TimeLeft, text: str) -> str:
    left.take(text)
    return left.text()


def test_the_time_left_follows_from_the_speed() -> None:
    clock = Clock()
    left = TimeLeft(clock)
    assert shown(left, Count(10, 100, "rows")) == "10 of 100 rows"
    clock.now += 1
    assert shown(left, Count(20, 100, "rows")) == "20 of 100 rows"  # too early to tell
    clock.now += 3
    assert shown(left, Count(30, 100, "rows")) == "30 of 100 rows, 14 s left"
    clock.now += 996
    assert shown(left, Count(40, 100, "rows", " (last: x)")) == "40 of 100 rows, 33 min left (last: x)"
    assert shown(left, Count(100, 100, "rows")) == "100 of 100 rows"
    assert shown(left, Count(50, 200, "rows")) == "50 of 200 rows"  # other work
    clock.now += 50
    assert left.text() == "50 of 200 rows, 50 s so far"
    assert shown(left, Count(51, 200, "rows")) == "51 of 200 rows, 2 h left"
    assert shown(left, Count(10, 200, "rows")) == "10 of 200 rows"  # the same again


def test_the_time_left_goes_by_between_two_texts() -> None:
    clock = Clock()
    left = TimeLeft(clock)
    left.take(Count(0, 10, "rows"))
    clock.now += 20
    assert shown(left, Count(5, 10, "rows")) == "5 of 10 rows, 20 s left"
    clock.now += 15
    assert left.text() == "5 of 10 rows, 5 s left"
    clock.now += 15  # slower than promised: 50 s for 5 rows
    assert left.text() == "5 of 10 rows, 50 s left"
    assert shown(left, Wait("lemma", 60.0)) == "lemma, at most 60 s"
    clock.now += 15
    assert left.text() == "lemma, at most 45 s"
    assert shown(left, Wait("lemma", 30.0)) == "lemma, at most 30 s"  # another question of the same name
    clock.now += 40
    assert left.text() == "lemma, at most 0 s"
    assert shown(left, "building") == "building"
    clock.now += 15
    assert left.text() == shown(left, "building") == "building, 15 s so far"
    assert shown(left, Wait("no limit", None)) == "no limit"


def test_pieces_of_work_have_their_own_progress() -> None:
    clock, texts = Clock(), []
    left = TimeLeft(clock)
    pieces = Pieces(lambda text: texts.append(shown(left, text)), "cases")
    for name in pieces.of(["one", "two"]):
        pieces(Wait(name, 8.0))
        clock.now += 5
        texts.append(left.text())
    assert texts == [
        "0 of 2 cases: one, at most 8 s",
        "0 of 2 cases, 5 s so far: one, at most 3 s",
        "1 of 2 cases, 5 s left",
        "1 of 2 cases, 5 s left: two, at most 8 s",
        "1 of 2 cases, 10 s left: two, at most 3 s",
        "2 of 2 cases",
    ]
    texts.clear()
    alone = Pieces(lambda text: texts.append(shown(left, text)), "cases")
    for name in alone.of(["one"]):
        alone(name)
    assert texts == ["one"]


def test_a_narrow_line_keeps_the_time() -> None:
    left = TimeLeft(Clock())
    left.take(NestedText(Count(1, 2, "cases"), Wait("a question with a long name", 8.0)))
    assert left.text(40) == "1 of 2 cases: a question w…, at most 8 s"
    assert left.text(200) == "1 of 2 cases: a question with a long name, at most 8 s"


def test_the_line_is_drawn_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, terminal = Clock(), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("mmaprobe.cli.line.TICK", 0.01)
    line = StatusLine(TimeLeft(clock))
    line.show(Wait("lemma", 60.0))
    clock.now += 20
    wait_until(lambda: "lemma, at most 40 s" in terminal.getvalue())
    line.say("a warning")
    clock.now += 10
    wait_until(lambda: "lemma, at most 30 s" in terminal.getvalue())
    line.end()
    *_, before, after = terminal.getvalue().split("a warning\n")
    assert before.endswith("\r\x1b[2K")  # the warning has its line for itself
    assert after.endswith("\r\x1b[2K")
    drawn = terminal.getvalue()
    time.sleep(0.05)
    assert terminal.getvalue() == drawn


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_no_line_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    line = StatusLine()
    line.show("lemma")
    line.end()
    assert stream.getvalue() == ""


def test_work_that_counts_says_how_long_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**6, 10))
    monkeypatch.setattr("mmaprobe.cli.options.LINE", StatusLine(TimeLeft(lambda: float(next(clock)))))
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(a, np.ones((1024, 16), np.float16))
    np.save(b, np.ones((16, 2), np.float16))
    wanted = ("-o", str(tmp_path / "d.npy"), "--model", "hopper/mma/m16n8k16.f32.f16.f16.f32", "--threads", "1")
    message = run("-v", "simulate", str(a), str(b), *wanted, "--engine", "numpy").stderr
    assert re.search(r"^\d+ of 1024 rows, \d+ s left$", message, re.M)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_a_file_says_how_far_it_is_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**6, 10))
    monkeypatch.setattr("mmaprobe.cli.options.LINE", StatusLine(TimeLeft(lambda: float(next(clock)))))
    monkeypatch.setattr("mmaprobe.cli.reading.Throttle", lambda: lambda: True)
    path = tmp_path / name
    rng = np.random.default_rng(1)
    rows = "".join(json.dumps({**ROW, "id": rng.bytes(40).hex()}) + "\n" for _ in range(2000))
    with (gzip.open if name.endswith("gz") else open)(path, "wt") as stream:
        stream.write(rows)
    message = run("-v", "evaluate", str(path)).stderr
    assert re.search(r"^1999 lines read$", message, re.M)  # all of the file
    assert re.search(r"^1000 lines read, \d+ .* left$", message, re.M)
    piped = CliRunner().invoke(main, ["-v", "evaluate", "-"], input=rows).stderr
    assert re.search(r"^1000 lines read, \d+ .* so far$", piped, re.M)


def test_a_question_says_how_long_it_may_take(tmp_path: Path) -> None:
    same = (f"{VOLTA}@length=2,block=2", f"{VOLTA}@length=2,block=2,carry_bits=4")
    message = run("-v", "distinguish", *same, "--timeout", "250", "--store", str(tmp_path / "store"), code=1).stderr
    assert re.search(r", at most 4 min$", message, re.M)
