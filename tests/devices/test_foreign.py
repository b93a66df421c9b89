"""Functions and files of users that end the program, print, or leave something behind: no answer is never a success."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.runner.protocol import DeviceError
from tests.command_line.test_cli import run
from tests.command_line.test_output import ENTRY

pytestmark = pytest.mark.programs

DEVICES = """
import ctypes, os, sys, threading, time
import numpy as np

class Own(BaseException):
    def __str__(self):
        raise Own

count = 0

def leave(a, b, c):
    sys.exit(0)

def give_up(a, b, c):
    raise GeneratorExit

def own(a, b, c):
    raise Own

def exit_at_once(a, b, c):
    os._exit(0)

def second(a, b, c):
    global count
    count += 1
    return c if count < 11 else sys.exit("bye")  # ten calls before the second vector

def prints(a, b, c):
    print("by Python")
    sys.stdout.flush()
    os.system("echo by a child")
    ctypes.CDLL(None).puts(b"by C")
    return c

def masked(a, b, c):
    return np.ma.masked_array(c, mask=np.arange(c.size).reshape(c.shape) == 0)

def thread(a, b, c):
    threading.Thread(target=time.sleep, args=(300,)).start()
    return c

def swapped(a, b, c):
    return c.astype(">f4")

def text(a, b, c):
    return "x"

def texts(a, b, c):
    return c.astype("U5")

def void(a, b, c):
    return c.view("V4")

def crash(a, b, c):
    ctypes.string_at(0)
"""
ROW = {"model": "volta/mma/m8n8k4.f32.f16.f16.f32", "a": ["0000"], "b": ["0000"], "c": "3f800000"}
ORDER = ["--formats", "f16,f16,f32,f32", "--length", "4"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(DEVICES, encoding="utf-8")
    (tmp_path / "script.py").write_text("import sys\ndef f(a, b, c): return c\nsys.exit(0)\n", encoding="utf-8")
    other = {**ROW, "model": "hopper/mma/m16n8k16.f32.f16.f16.f32", "c": "40000000"}
    rows = [json.dumps({**ROW, "id": "one"}), json.dumps({**other, "id": "two"})]
    (tmp_path / "vectors.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def outside(folder: Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    """A run in a process of its own."""
    asked = ["run", str(folder / "vectors.jsonl"), "--device", f"python:{folder}/mine.py:{name}", *more]
    command = [sys.executable, "-c", ENTRY, *asked]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("name", ["leave", "give_up", "own"])
@pytest.mark.parametrize("command", ["run", "order", "identify", "compare"])
def test_a_function_that_ends_the_program_gives_no_answer(command: str, name: str, folder: Path) -> None:
    device = ["--device", f"python:{folder}/mine.py:{name}"]
    arguments = {
        "run": [str(folder / "vectors.jsonl"), *device],
        "order": [*device, *ORDER],
        "identify": ["nvidia-f16", *device],
        "compare": [device[1], f"model:{ROW['model']}"],
    }[command]
    result = run(command, *arguments, code=3)
    message = {"leave": "SystemExit: 0", "give_up": "GeneratorExit", "own": "Own"}[name]
    assert f"{name}: {message} (it was called with" in result.stderr


def test_in_python_it_is_an_error_as_well() -> None:
    def leave(a: object, b: object) -> None:
        sys.exit(0)

    for ask in (mmaprobe.order, mmaprobe.identify):
        with pytest.raises(DeviceError, match="SystemExit: 0"):
            ask(leave, formats="f16,f16,f32", length=4)


def test_answers_before_the_end_are_kept(folder: Path) -> None:
    answers = folder / "answers.jsonl"
    arguments = ["run", str(folder / "vectors.jsonl"), "--device", f"python:{folder}/mine.py:second"]
    result = run(*arguments, "-o", str(answers), code=3)
    assert "vectors.jsonl:2:" in result.stderr
    assert "SystemExit: bye" in result.stderr
    assert [json.loads(line)["id"] for line in answers.read_text(encoding="utf-8").splitlines()] == ["one"]


@pytest.mark.parametrize("command", ["run", "order"])
def test_a_script_that_ends_in_sys_exit_is_no_device(command: str, folder: Path) -> None:
    more = [str(folder / "vectors.jsonl")] if command == "run" else ORDER
    result = run(command, *more, "--device", f"python:{folder}/script.py:f", code=2)
    assert "script.py fails: SystemExit: 0; what ends a script stands below `if __name__ ==" in result.stderr


def test_leaving_at_once_is_no_success(folder: Path) -> None:
    result = outside(folder, "exit_at_once")
    assert (result.returncode, result.stdout) == (3, "")
    assert "exit_at_once: ended with exit status 0, without an answer" in result.stderr


def test_what_a_function_prints_is_not_in_the_document(folder: Path) -> None:
    result = outside(folder, "prints", "--json")
    assert json.loads(result.stdout)["answered"] == 2
    for printed in ("by Python", "by a child", "by C"):
        assert printed in result.stderr


def test_masked_elements_have_no_value(folder: Path) -> None:
    result = run("run", str(folder / "vectors.jsonl"), "--device", f"python:{folder}/mine.py:masked", code=3)
    assert "some elements of its result are masked" in result.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [("swapped", "elements of >f4"), ("text", "gives a str"), ("texts", "gives a str"), ("void", "gives a void")],
)
def test_what_are_no_numbers_of_this_machine_is_refused(name: str, message: str, folder: Path) -> None:
    result = run("run", str(folder / "vectors.jsonl"), "--device", f"python:{folder}/mine.py:{name}", code=3)
    assert message in result.stderr


def test_a_thread_that_is_left_does_not_keep_the_command(folder: Path) -> None:
    result = outside(folder, "thread")
    assert (result.returncode, len(result.stdout.splitlines())) == (0, 2)


def test_a_library_that_crashes_is_named(folder: Path) -> None:
    result = outside(folder, "crash")
    assert result.returncode == 3
    assert "was ended by signal SIGSEGV" in result.stderr
    assert "Segmentation fault" in result.stderr
    assert "in crash" in result.stderr
