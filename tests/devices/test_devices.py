"""Devices: models, programs good and bad, recorded results. A device that fails says where, and loses nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.queries.compare.observed import evaluate_vectors
from mmaprobe.runner import command, process
from mmaprobe.runner.devices import Device, DeviceError, DeviceUnavailableError, open_device
from mmaprobe.runner.model_device import ModelDevice
from mmaprobe.runner.recorded import RecordedDevice
from mmaprobe.runner.rtl import DesignDevice
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, UnknownNameError
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_batch
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector, open_text, read_vectors
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.inputs import mixture, scale_factors
from tests.places import DATA

pytestmark = pytest.mark.programs

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
REFERENCES = (
    VOLTA,
    "volta/mma/m8n8k4.f16.f16.f16.f16",
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
    "ada-lovelace/mma/m16n8k32.f32.e4m3.e5m2.f32",
    "blackwell/tcgen05mma/m64n8k32.f16.e2m1.e2m3",
    "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3",
    "hopper/mma/m16n8k4.f64.f64.f64.f64",
    "ieee/fma/f32@length=3",
)
PRELUDE = """import json, os, random, signal, subprocess, sys, time
def say(row, **changes):
    print(json.dumps({"id": row["id"], "d": row["c"], **changes}), flush=True)
def rows():
    for line in sys.stdin:
        yield json.loads(line)
"""
HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # even in a background job
ECHO = "for row in rows(): say(row)\n"  # a device whose result is the addend


def program(folder: Path, body: str, name: str = "device.py") -> str:
    """A program on the disk, as a device of the command line."""
    path = folder / name
    path.write_text(PRELUDE + body, encoding="utf-8")
    return "command:" + shlex.join([sys.executable, "-I", "-S", str(path)])


def addends(count: int, reference: str = VOLTA, named: bool = True) -> list[Vector]:
    """Vectors 0 * 0 + c, c = 0, 1, 2, ..."""
    model = parse_reference(reference)
    return [Vector(model, Operands((0,), (0,), c), id=f"v{c}" if named else None, line=c + 1) for c in range(count)]


def random_vectors(reference: str, count: int) -> list[Vector]:
    """Inputs of every kind; some lack products at the end."""
    model, rng = parse_reference(reference), np.random.default_rng(7)
    a, b, c = (side.tolist() for side in mixture(model, count, rng))
    scales = [side.tolist() for side in scale_factors(model, len(c), rng)] or [[()] * len(c)] * 2
    found = []
    for k in range(len(c)):
        length = model.length - k % 3
        parts = Operands(tuple(a[k][:length]), tuple(b[k][:length]), c[k], tuple(tuple(side[k]) for side in scales))
        found.append(Vector(model, parts, id=k))
    return found


def answered(device: Device, vectors: Iterable[Vector]) -> tuple[list[int | None], DeviceError | None]:
    """The answers received, and the error that ended them."""
    found: list[int | None] = []
    try:
        found.extend(d for _, d in device.answers(vectors))
    except DeviceError as error:
        return found, error
    return found, None


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pids_of(path: Path) -> list[int]:
    """The process numbers that a program wrote to a file, once they are there."""
    for _ in range(500):
        if path.exists() and path.read_text(encoding="utf-8").endswith("\n"):
            return [int(word) for word in path.read_text(encoding="utf-8").split()]
        time.sleep(0.01)
    raise AssertionError("the program did not start")


def gone(pids: list[int], seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(alive, pids))


# --- models -------------------------------------------------------------------------------------------------------


def test_a_model_answers_what_evaluate_gives() -> None:
    for reference in REFERENCES:
        vectors = random_vectors(reference, 60)
        expected = [row.predicted for row in evaluate_vectors(vectors)]
        with open_device(f"model:{reference}") as device:
            assert answered(device, vectors) == (expected, None)
            assert device.every([vectors[3]])[0] == expected[3]
            assert device.description["model"] == reference
        assert len(set(expected)) > 10


def test_a_slow_device_answers_few_vectors_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that answers are there before all of a long file is answered; then twice as many each time."""
    asked = list[int]()

    def patterns(self: ModelDevice, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> Patterns:
        asked.append(len(a))
        return evaluate_batch(self.model, a, b, c, *rest)

    monkeypatch.setattr(ModelDevice, "patterns", patterns)
    zero, model = Operands((0,) * 4, (0,) * 4, 0), parse_reference(VOLTA)
    device, vectors = ModelDevice(VOLTA), [Vector(model, zero) for _ in range(20)]
    device.batch, device.first = 8, 2
    assert [d for _, d in device.answers(vectors)] == [0] * 20
    assert asked == [2, 4, 8, 6]
    assert DesignDevice.first < DesignDevice.batch


def test_the_models_of_vectors_do_not_count_but_their_formats() -> None:
    changed = [replace(vector, model=parse_reference(VOLTA + "@fraction_bits=10")) for vector in addends(3)]
    with ModelDevice(VOLTA) as device:
        assert answered(device, changed) == ([0, 1, 2], None)
        long = Vector(parse_reference(VOLTA + "@length=8"), Operands((1,) * 5, (1,) * 5, 0), line=7)
        for vector, words in (
            (addends(1, "turing/mma/m16n8k8.f32.bf16.bf16.f32".replace("turing", "ampere"))[0], "other formats"),
            (addends(1, VOLTA + "@output=f16,nan=none")[0], "results of 32 bits"),
            (long, "7: .*takes 4 products, not 5"),
        ):
            with pytest.raises(InputError, match=words):
                device.every([vector])


# --- programs that do as they should ------------------------------------------------------------------------------


def test_many_vectors_and_single_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "WINDOW", 100)
    header = 'print(json.dumps({"device": {"name": "echo", "driver": 5}}), flush=True)\n'
    with open_device(program(tmp_path, header + ECHO), 20) as device:
        assert [device.every([vector])[0] for vector in addends(3)] == [0, 1, 2]
        assert device.description == {"name": "echo", "driver": 5}
        assert answered(device, addends(1000)) == (list(range(1000)), None)
        assert answered(device, addends(10, named=False)) == (list(range(10)), None)
        assert answered(device, [addends(1)[0]] * 3) == ([0, 0, 0], None)
    with pytest.raises(DeviceError, match="is closed"):
        device.every([addends(1)[0]])
    device.close()
    with open_device(program(tmp_path, "for row in rows(): say(row), say(row)"), 20) as device:
        assert answered(device, [replace(vector, id="one") for vector in addends(3)])[0] == [0]  # each answer twice


def test_only_the_input_is_sent(tmp_path: Path) -> None:
    body = f"for row in rows():\n  open({str(tmp_path / 'seen')!r}, 'a').write(json.dumps(row)); say(row)\n"
    vector = replace(addends(1)[0], d=5, extra={"predictions": {"x": "0"}, "question": "q"})
    with open_device(program(tmp_path, body)) as device:
        assert device.every([vector])[0] == 0
        device.every([replace(vector, id=None)])
    first, second = (tmp_path / "seen").read_text(encoding="utf-8").replace("}{", "}\n{").splitlines()
    assert json.loads(first).keys() == {"schema", "id", "model", "a", "b", "c"}
    assert json.loads(second)["id"]


def test_slow_start_and_blank_lines(tmp_path: Path) -> None:
    body = "time.sleep(0.5)\nfor row in rows(): print(); say(row); print('  ', flush=True)\n"
    with open_device(program(tmp_path, body), 5) as device:
        assert answered(device, addends(3)) == ([0, 1, 2], None)


def test_a_flood_on_standard_error_and_large_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much more than any pipe holds, on both sides at once."""
    body = "for row in rows():\n  sys.stderr.write('x' * 4000 + chr(10)); say(row)\n"
    monkeypatch.setattr(process, "CHUNK", 4096)
    with open_device(program(tmp_path, body), 20) as device:
        assert answered(device, addends(3000)) == (list(range(3000)), None)
        assert len(device._process._errors) <= process.TAIL  # type: ignore[attr-defined]
    late = "for row in rows():\n  say(row)\nsys.stderr.write('x' * 5000000)\n"
    with open_device(program(tmp_path, late), 20) as device:
        assert device.every([addends(1)[0]])[0] == 0
        start = time.monotonic()
    assert time.monotonic() - start < process.GRACE


# --- programs that do not -----------------------------------------------------------------------------------------

THREE = "\nfor _, row in zip(range(3), rows()): say(row)\n"  # answers three, then what follows
NEXT = "row = next(rows())\n"
BAD = {
    "dies": (THREE + "sys.exit(7)", "ended with exit status 7"),
    "ends": (THREE, "ended with exit status 0"),
    "crashes": (THREE + "os.kill(os.getpid(), signal.SIGSEGV)", "was ended by signal SIGSEGV"),
    "dies within an answer": (THREE + 'print(\'{"id": "v3", "d": "3\', end="", flush=True)', "exit status 0"),
    "raises": (THREE + "sys.stderr.write('x' * 3000000 + '\\n'); sys.exit('no memory left')", "no memory left"),
    "closes its output": (THREE + "os.close(1); time.sleep(60)", "closed its standard output"),
    "closes its input and dies": (THREE + "os.close(0); time.sleep(0.2); sys.exit(9)", "exit status 9"),
    "says what is not JSON": (THREE + NEXT + "print('ready', flush=True); time.sleep(60)", "garbage .*'ready'"),
    "is not even text": (THREE + NEXT + "os.write(1, bytes(range(128, 255)) + b'\\n'); time.sleep(60)", "garbage"),
    "says too much": (THREE + NEXT + "print('9' * 3000000, flush=True); time.sleep(60)", "garbage .*999"),
    "nests": (THREE + NEXT + "print('[' * 100000, flush=True); time.sleep(60)", "garbage"),
    "describes itself late": (THREE + NEXT + "print('{\"device\": {}}', flush=True)", "without `d`"),
    "gives no hex": (THREE + NEXT + "say(row, d='0x12')", "'0x12' is not hexadecimal"),
    "gives a number": (THREE + NEXT + "say(row, d=12)", "12 is not a string"),
    "is too wide": (
        THREE + NEXT + "say(row, d='00000003f')",
        r"\(f32\) has 8 hexadecimal digits, found 9: '00000003f'",
    ),
    "is far too wide": (THREE + NEXT + "say(row, d='3' * 5000)", "8 hexadecimal digits, found 5000"),
    "has no id": (THREE + NEXT + "say(row, id=None)", 'the id null, expected "v3"'),
    "repeats itself": (THREE + NEXT + "say(row, id='v2')", 'the id "v2", expected "v3"'),
    "is out of order": (THREE + "r = rows(); x = next(r); say(next(r)); say(x)", 'the id "v4", expected "v3"'),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_program_that_fails(tmp_path: Path, kind: str) -> None:
    body, words = BAD[kind]
    start = time.monotonic()
    with open_device(program(tmp_path, body), 30) as device:
        got, error = answered(device, addends(50))
        assert error is not None
        assert got == [0, 1, 2]
        assert (error.exit_code, error.number, error.vector.id) == (3, 4, "v3")
        for text in (words, r"vector 4 \(id 'v3'\)"):
            assert re.search(text, str(error)), str(error)
        assert len(str(error)) < 4000
        with pytest.raises(DeviceError, match="has failed before"):
            device.every([addends(1)[0]])
    assert time.monotonic() - start < 10


CHILD = """p = subprocess.Popen(['sleep', '60'])
open({!r}, 'w').write(f'{{os.getpid()}} {{p.pid}}\\n')
"""


@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("close", ["hangs", "is left", "is interrupted"])
def test_nothing_is_left_of_a_program(tmp_path: Path, stubborn: bool, close: str) -> None:
    """Neither the program nor what it started, though it hears no signal, even where its end was asked for politely."""
    ignore = "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n" * stubborn
    tell = CHILD.format(str(tmp_path / "pids"))
    device = open_device(program(tmp_path, ignore + tell + THREE + "time.sleep(60)"), 0.3)
    pids = pids_of(tmp_path / "pids")
    assert all(map(alive, pids))
    start = time.monotonic()
    if close == "hangs":
        got, error = answered(device, addends(9))
        assert got == [0, 1, 2]
        assert "no answer within 0.3 s (6 outstanding)" in str(error)
    elif close == "is interrupted":
        with pytest.raises(KeyboardInterrupt), device:
            raise KeyboardInterrupt
    else:
        device.close()
    took = time.monotonic() - start
    assert gone(pids, 1)
    device.close()
    assert took < process.GRACE * (2 if close == "is left" else 1)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_is_left_when_we_die(tmp_path: Path, name: str) -> None:
    tell = CHILD.format(str(tmp_path / "pids"))
    text = f"""{HEARS_CTRL_C}
import tests.devices.test_devices as t
with t.open_device({program(tmp_path, tell + "time.sleep(60)")!r}) as device: device.every([t.addends(1)[0]])"""
    with subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL) as ours:
        pids = pids_of(tmp_path / "pids")
        ours.send_signal(signal.Signals[name])
        ours.wait(10)
    assert gone(pids)


def test_answers_left_over_do_not_reach_the_next_question(tmp_path: Path) -> None:
    with open_device(program(tmp_path, ECHO)) as device:
        assert [d for _, d in islice(device.answers(addends(1)), 1)] == [0]
        answers = device.answers(addends(50))
        assert next(answers)[1] == 0
        answers.close()  # type: ignore[attr-defined]
        with pytest.raises(DeviceError, match="abandoned"):
            device.every([addends(1)[0]])


def test_a_silent_program_gets_a_hint(tmp_path: Path) -> None:
    body = "for row in rows(): print(json.dumps({'id': row['id'], 'd': '0'}))\n"  # not flushed
    with open_device(program(tmp_path, body), 0.4) as device, pytest.raises(DeviceError, match="does it flush"):
        device.every([addends(1)[0]])


# --- names of devices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", InputError, "model:REFERENCE, command:CMDLINE"),
        ("model", InputError, "a device is written"),
        ("command: ", InputError, "a device is written"),
        ("modle:x", UnknownNameError, "did you mean 'model'"),
        ("model:vlta/mma/m8n8k4.f32.f16.f16.f32", UnknownNameError, "did you mean 'volta"),
        ("command:'x", InputError, "No closing quotation"),
        ("command:/no/such/program x", DeviceUnavailableError, "'/no/such/program' cannot be started: No such file"),
        ("command:/dev/null", DeviceUnavailableError, "cannot be started: Permission denied"),
        ("recorded:/no/such/file", InputError, "no such file"),
        (__file__, InputError, f"for a function in a file write python:{__file__}:FUNCTION"),
        ("mine.py:matmul", UnknownNameError, "for a function in a file write python:mine.py:matmul"),
        (str(DATA / "README-hardware.md"), InputError, "for answers in a file write recorded:"),
    ],
)
def test_devices_that_cannot_be_had(text: str, kind: type[MmaprobeError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        open_device(text)
    assert caught.value.exit_code == 2


# --- recorded results ---------------------------------------------------------------------------------------------


def write(path: Path, *vectors: Vector) -> str:
    path.write_text("".join(json.dumps(vector.to_json()) + "\n" for vector in vectors), encoding="utf-8")
    return str(path)


def test_recorded_hardware_answers_its_own_vectors() -> None:
    path = DATA / "recorded.jsonl.gz"
    with open_text(path) as stream:
        every = list(islice(read_vectors(stream, str(path)), 0, None, 50))
    with open_device(f"recorded:{path}") as device:
        assert answered(device, every) == ([vector.d for vector in every], None)
        assert isinstance(device, RecordedDevice)
        assert {vector.id for vector in device.vectors} == {None}
        assert len(device.vectors) == 17_800  # some inputs were given to two GPUs
        assert "H100" in device.description["name"]
    with open_device(f"model:{every[0].model.reference}") as model:
        same = [vector for vector in every if vector.model == every[0].model]
        assert answered(model, same)[0] == [vector.d for vector in same]


def test_recorded_matches_by_instruction_and_operands(tmp_path: Path) -> None:
    model, half = parse_reference(VOLTA), parse_reference("volta/mma/m8n8k4.f16.f16.f16.f16")
    known = [Vector(model, Operands((5, 6, 0), (7, 8, 0), 9), d=3), Vector(half, Operands((5,), (7,), 9), d=4)]
    with RecordedDevice(write(tmp_path / "rows.jsonl", *known, Vector(model, Operands((1,), (1,), 1)))) as device:
        assert len(device.vectors) == 2
        assert device.every([known[1]])[0] == 4
        for zeros in ((), (0, 0)):
            other = parse_reference(VOLTA + "@carry_bits=3")  # a hypothesis about the same instruction
            assert device.every([Vector(other, Operands((5, 6, *zeros), (7, 8, *zeros), 9))])[0] == 3
        for a, b, c in (((5, 6), (7, 8), 8), ((5, 6), (7, 9), 9), ((6, 5), (8, 7), 9), ((5, 6, 0x8000), (7, 8, 0), 9)):
            absent = Vector(model, Operands(tuple(a), tuple(b), c), id="q")
            assert device.every([absent]) == [None]
        assert device.every([known[0]])[0] == 3
        assert answered(device, [known[0], Vector(model, Operands((1,), (1,), 1)), known[1]]) == ([3, None, 4], None)
        assert device.every([Vector(parse_reference("turing/mma/m16n8k8.f32.f16.f16.f32"), known[0].operands)]) == [
            None
        ]


def test_a_recorded_device_that_contradicts_itself(tmp_path: Path) -> None:
    first, other, *_ = addends(3)
    rows = [replace(first, d=1), replace(other, d=7), replace(first, d=1, id="again"), replace(first, d=2, id="other")]
    path = write(tmp_path / "rows.jsonl", *rows)
    with pytest.raises(InputError, match=r":4: d: .*contradicts itself: line 1 has 00000001 .* 00000002") as caught:
        RecordedDevice(path)
    assert caught.value.line == 4
    with RecordedDevice(write(tmp_path / "rows.jsonl", *rows[:3])) as device:
        assert [vector.id for vector in device.vectors] == ["v0", "v1"]


def test_recorded_files_without_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row has an observed result"):
        RecordedDevice(write(tmp_path / "rows.jsonl", *addends(3)))


def test_no_descriptors_are_left(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for body in (ECHO, "sys.exit(1)", "os.close(1); time.sleep(60)"):
        with contextlib.suppress(DeviceError), open_device(program(tmp_path, body), 5) as device:
            device.every([addends(1)[0]])
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("name", ["plan:cublas/plain", "plan:cublas/plain@length=64"])
def test_a_plan_is_a_device_at_one_length(name: str) -> None:
    with pytest.raises(InputError, match=r"a plan at one K is a model: model:plan:cublas/plain@length=64$"):
        open_device(name)
