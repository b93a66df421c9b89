"""Python functions as devices: each runs in a process of its own, which it may end, block or write to; time limits hold
for every kind of device."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.runner import callable as calling
from mmaprobe.runner.callable import open_callable
from mmaprobe.runner.devices import DeviceError, DeviceUnavailableError, open_device
from mmaprobe.runner.process import LineProcess
from mmaprobe.smtmodel.base.errors import InputError, UnknownNameError
from tests.devices.test_devices import addends, gone

pytestmark = pytest.mark.programs

FAR = 25.0  # seconds, at most, of what takes 2 on a machine without other work
FUNCTIONS = """
import ctypes, os, sys, time
import numpy as np
def matmul(a, b, c):
    print("hello")
    return (a.astype(np.float32) @ b.astype(np.float32) + c).astype(np.float32)
def transposed(a, b, c): return matmul(a, b, c).T
def first(a, b): return a[:, :1]
def hang(a, b, c): time.sleep(600)
def loops(a, b, c):
    while True: pass
def deaf(a, b, c): ctypes.PyDLL(None).sleep(600)
def leaves(a, b, c): sys.exit(0)
def ends(a, b, c): os._exit(0)
def own(a, b, c): raise GeneratorExit("own")
def crashes(a, b, c):
    print("last words", file=sys.stderr, flush=True)
    ctypes.string_at(0)
def none(a, b, c): return None
def slow(a, b, c):
    time.sleep(0.3)
    return c
number = 4
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return str(path)


def asked(device: str, timeout: float = 60.0, until: float | None = None) -> list[int | None]:
    with open_device(device, timeout, until=until) as opened:
        return opened.every(addends(3))


def test_a_function_answers(file: str) -> None:
    assert asked(f"python:{file}:matmul") == [0, 1, 2]


def test_modules_beside_the_file_are_imported(tmp_path: Path) -> None:
    (tmp_path / "beside_kernel.py").write_text("def product(a, b):\n    return a @ b\n")
    (tmp_path / "kernel.py").write_text(
        "from beside_kernel import product\ndef f(a, b, c):\n    return product(a, b) + c\n"
    )
    assert asked(f"python:{tmp_path / 'kernel.py'}:f") == [0, 1, 2]


def test_a_transposed_product_is_called_that(file: str) -> None:
    """Its places give other results for one question, which looked like a device that contradicts itself."""
    with pytest.raises(DeviceError, match=r"transposed: d\[j, i\] where d\[i, j\] is asked for"):
        asked(f"python:{file}:transposed")


@pytest.mark.parametrize("name", ["hang", "loops", "deaf"])
def test_a_function_that_hangs_is_left(file: str, name: str) -> None:
    start = time.monotonic()
    with pytest.raises(DeviceError, match=r"no answer within 2 s, on vector 1 "):
        asked(f"python:{file}:{name}", 2)
    assert time.monotonic() - start < FAR


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leaves", "SystemExit: 0 (it was called with arrays of shapes (64, 4) and (4, 64) and (64, 64))"),
        ("ends", "ended with exit status 0, without an answer"),
        ("own", "GeneratorExit: own"),
        ("crashes", "was ended by signal SIGSEGV, without an answer"),
        ("none", "it gives a NoneType, not an array of numbers"),
    ],
)
def test_a_function_that_ends_its_process_ends_no_other(file: str, name: str, message: str) -> None:
    with open_device(f"python:{file}:{name}") as device:
        with pytest.raises(DeviceError) as caught:
            device.every(addends(1))
        assert message in str(caught.value)
        assert name != "crashes" or "last words" in str(caught.value)
        with pytest.raises(DeviceError):
            device.every(addends(1))


@pytest.mark.parametrize(
    "command", [["order", "--formats", "f16,f16,f32,f32", "--length", "4"], ["identify", "nvidia-f16"]]
)
def test_what_a_function_prints_or_ends_is_no_answer(file: str, command: list[str]) -> None:
    done = CliRunner().invoke(main, [*command, "--device", f"python:{file}:leaves"])
    assert done.exit_code == 3, done.output
    assert "SystemExit: 0" in done.stderr


def test_what_a_function_prints_is_not_in_a_document(file: str) -> None:
    words = ["order", "--formats", "f16,f16,f32,f32", "--length", "4", "--json", "--device", f"python:{file}:matmul"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["revealed"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("import sys; sys.exit(0)", DeviceUnavailableError, "fails: SystemExit: 0"),
        ("import os; os._exit(0)", DeviceUnavailableError, "ended with exit status 0"),
        ("raise ValueError('x')", DeviceUnavailableError, "fails: ValueError: x"),
        ("import time; time.sleep(600)", DeviceUnavailableError, "no answer within 2 s"),
        ("x = 1", InputError, "defines no function"),
        ("def g(a, b): pass", UnknownNameError, "known: g"),
        ("def f(a): pass", InputError, r"a function of \(a, b, c\)"),
    ],
)
def test_a_file_that_cannot_be_loaded(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        open_device(f"python:{path}:f", 2)


@pytest.mark.parametrize("kind", [np.float16, np.uint8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float64])
def test_arrays_travel_as_they_are(file: str, kind: type[np.generic]) -> None:
    given = np.arange(6).reshape(3, 2).astype(kind)
    with calling.open_callable(f"{file}:first") as device:
        found = device.function(given.T, given)
        empty = device.function(given[:0], given)
    assert found.dtype == given.dtype
    assert (found == given.T[:, :1]).all()
    assert empty.shape == (0, 1)


def test_no_process_is_left_of_a_function(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = LineProcess.__init__

    def noted(self: LineProcess, *rest: object, **named: object) -> None:
        original(self, *rest, **named)  # type: ignore[arg-type]
        made.append(self._process.pid)

    monkeypatch.setattr(LineProcess, "__init__", noted)
    device = open_device(f"python:{file}:matmul")
    device.close()
    device.close()
    open_device(f"python:{file}:matmul")  # and nobody closes it
    assert len(made) == 2
    assert gone(made)


#: programs that answer late, or by drips, or at once
DRIPS = "import sys, time\nfor x in 'no answer':\n    time.sleep(0.3); print(x, end='', flush=True)\ntime.sleep(600)"
LATE = (
    "import json, sys, time\nfor line in sys.stdin:\n    time.sleep(0.3)\n"
    "    row = json.loads(line); print(json.dumps({'id': row['id'], 'd': row['c']}), flush=True)"
)


@pytest.mark.parametrize("kind", ["drips", "late", "slow", "hang", "model"])
def test_no_answer_is_awaited_after_the_time_for_all(tmp_path: Path, file: str, kind: str) -> None:
    name, seconds = f"python:{file}:{kind}", 3.0
    if kind in ("drips", "late"):
        path = tmp_path / "device.py"
        path.write_text(DRIPS if kind == "drips" else LATE, encoding="utf-8")
        name, seconds = "command:" + shlex.join([sys.executable, str(path)]), 2.0
    elif kind == "model":
        name, seconds = "model:volta/mma/m8n8k4.f32.f16.f16.f32", 0.01
    start = time.monotonic()
    questions = addends(2_000)
    with (
        open_device(name, until=start + seconds) as device,
        pytest.raises(DeviceError, match="the time ran out before its answer"),
    ):
        [device.every([vector])[0] for vector in questions]
    assert time.monotonic() - start < FAR


ASYNC = """
async def waits(a, b): return a @ b
async def yields(a, b): yield a @ b
def gives(a, b): return waits(a, b)
"""


@pytest.mark.parametrize("name", ["waits", "yields"])
def test_an_async_function_is_called_that(tmp_path: Path, name: str) -> None:
    file = tmp_path / "device.py"
    file.write_text(ASYNC)
    with pytest.raises(InputError, match=f"{name} is an async function: .* by asyncio.run"):
        open_callable(f"{file}:{name}")


def test_a_coroutine_is_no_product_and_nothing_else_is_said_of_it(tmp_path: Path) -> None:
    file, vectors = tmp_path / "device.py", tmp_path / "vectors.jsonl"
    file.write_text(ASYNC)
    row = {"model": "volta/mma/m8n8k4.f32.f16.f16.f32", "a": ["3c00"], "b": ["3c00"], "c": "00000000"}
    vectors.write_text(json.dumps(row) + "\n")
    command = [sys.executable, "-m", "mmaprobe.cli.main", "run", str(vectors), "--device", f"python:{file}:gives"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "TypeError: its result is a coroutine: give a function that returns the product itself" in line


@pytest.mark.parametrize(
    ("name", "message"),
    [("fifo", "is no regular file"), ("/dev/null", "is no regular file"), ("gone", "no such file"),
     ("x" * 5000, "no such file"), (".", "is a folder")],
)  # fmt: skip
def test_what_is_no_file_is_called_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with pytest.raises(InputError, match=message):
        open_callable(f"{name}:f")
