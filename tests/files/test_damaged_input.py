"""Input that is damaged, endless or of another shape, and machines that give no more: exit code 2 or 3 with the name of
the file, never a fault of the program."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe.cli.faults import fault_text, shortage
from mmaprobe.cli.main import main
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.store import Store, _checksum, answer_key, result_key
from mmaprobe.queries.solvers.worker import version_of
from mmaprobe.smtmodel.base.errors import FaultError, InputError, MmaprobeError
from mmaprobe.smtmodel.base.jsontext import BrokenJsonError, parse_json
from mmaprobe.smtmodel.inputs import vectors
from tests.command_line.test_cli import VOLTA, run
from tests.command_line.test_output import ENTRY
from tests.devices.test_devices import program
from tests.solvers.test_store import TEXT, sql

ROW = {"model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "3f800000"}


def file_of(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r'{"id": "\ud800"}', r"id: '\\ud800' holds half of a surrogate pair"),
        (r'{"a": [{"b": ["\udc00\ud800"]}]}', r"b: .* holds half of a surrogate pair"),
        (r'{"\ud83d": 1}', r"holds half of a surrogate pair"),
        (b'{"id": "\xed\xa0\x80"}', "not JSON: not text in UTF-8"),
        ('{"a": NaN}', "not JSON: NaN is no number"),
        ('{"a": -Infinity}', "not JSON: -Infinity is no number"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_json_that_no_file_can_hold(text: str | bytes, message: str) -> None:
    with pytest.raises((ValueError, BrokenJsonError), match=message):
        parse_json(text)


def test_json_as_others_write_it() -> None:
    assert parse_json(r'"\ud83d\ude00"') == "😀"
    assert parse_json(r'"caf\udce9"') == "caf\udce9"  # a file name that is no UTF-8
    assert parse_json("\ufeff1".encode()) == 1


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")
    file_of(Path(path), ROW | {"id": "x"})
    run("report", path, "-o", str(tmp_path / "r.html"), code=0)
    assert "caf\\udce9.jsonl" in (tmp_path / "r.html").read_text(encoding="utf-8")
    for wanted in ("csv", "c", "smt2", "junit"):
        run("export", path, "--format", wanted, "-o", str(tmp_path / "out"), code=0)


@pytest.mark.parametrize("arguments", [("report", "-o", "r.html"), ("export", "--format", "csv")])
def test_an_id_that_is_no_text(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path / "x.jsonl", ROW | {"id": "\ud800"})
    result = run(arguments[0], "x.jsonl", *arguments[1:], code=2)
    assert r"x.jsonl:1: id: '\ud800' holds half of a surrogate pair" in result.stderr


def test_brackets_without_end(tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.jsonl", ROW | {"model": "ieee/turn/f32/c+" + "(" * 5000})
    result = run("evaluate", path, code=2)
    assert "x.jsonl:1: model: order" in result.stderr
    assert "brackets are at most 64 deep" in result.stderr
    assert len(result.stderr) < 1000


def test_documents_with_other_values(tmp_path: Path) -> None:
    text = run("evaluate", file_of(tmp_path / "x.jsonl", ROW | {"d": "0"}), "--json", code=1).stdout
    whole = json.loads(text)
    for value in (None, 1, [], {}):
        document = whole | {"models": [whole["models"][0] | {"model": value}]}
        file_of(tmp_path / "d.json", document)
        run("report", str(tmp_path / "d.json"), "-o", str(tmp_path / "r.html"), code=2)
    explained = json.loads(
        run("compare", f"model:{VOLTA}", f"model:{VOLTA}@fraction_bits=10", "-n", "1", "--json", code=0).stdout
    )
    explained["devices"][0]["description"]["model"] = 1
    file_of(tmp_path / "d.json", explained)
    result = run("report", str(tmp_path / "d.json"), "-o", str(tmp_path / "r.html"), code=2)
    assert "d.json:1: not as a command wrote it" in result.stderr


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("command", ["evaluate", "report", "export", "run"])
def test_a_line_without_end(command: str, zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "LONGEST", 5000)
    monkeypatch.setattr("mmaprobe.reports.report.LONGEST", 5000)
    path = tmp_path / ("x.jsonl.gz" if zipped else "x.jsonl")
    text = (json.dumps(ROW) + "\n" + " " * 20_000).encode()
    path.write_bytes(gzip.compress(text) if zipped else text)
    more = {
        "report": ["-o", str(tmp_path / "r.html")],
        "export": ["--format", "csv"],
        "run": ["--device", f"model:{VOLTA}"],
    }
    result = run(command, str(path), *more.get(command, []), code=2)
    assert f"{path}:2: a line of more than 5,000" in result.stderr or f"{path}: more than 5,000" in result.stderr


def npy(shape: tuple[int, ...], header: int | None = None) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_2_0(stream, {"descr": "<f2", "fortran_order": False, "shape": shape})
    text = bytearray(stream.getvalue())
    if header is not None:
        text[8:12] = header.to_bytes(4, "little")
    return bytes(text)


@pytest.mark.parametrize("archive", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (npy((10**6, 10**6)), "its header promises 2,000,000,000,000 bytes, but 0 follow"),
        (npy((2, 2)), "its header promises 8 bytes, but 0 follow"),
        (npy((2, 2), 0xFFFFFFF0), "its header is said to have 4,294,967,280 bytes"),
        (npy((2, 2)) + bytes(9), "its header promises 8 bytes, but 9 follow"),
        (npy((2, 2)) + bytes(8) + npy((2, 2)), "its header promises 8 bytes, but "),
    ],
)
def test_arrays_that_promise_more_or_less_than_there_is(
    text: bytes, message: str, archive: bool, tmp_path: Path
) -> None:
    path = tmp_path / ("a.npz" if archive else "a.npy")
    if archive:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.npy", text)
    else:
        path.write_bytes(text)
    result = run("simulate", str(path), str(path), "--model", VOLTA, "-o", str(tmp_path / "d.npy"), code=2)
    assert message in result.stderr
    assert str(path) in result.stderr


@pytest.mark.parametrize("comment", [b"", b"made by hand"])
def test_bytes_after_an_archive(comment: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones((4, 4), np.float16))
    with zipfile.ZipFile(path, "a") as file:
        file.comment = comment
    given = ["simulate", str(path), str(path), "--model", VOLTA, "-o", str(tmp_path / "d.npz")]
    run(*given, code=0)
    path.write_bytes(path.read_bytes() + b"more")
    assert f"{path}: more bytes follow the archive" in run(*given, code=2).stderr


LONG, SPACED = "x" * 100_000, "a b " * 25_000


@pytest.mark.parametrize("long", [LONG, SPACED], ids=["word", "words"])
@pytest.mark.parametrize(
    "key", ["model", "arch", "id", "a", "b", "c", "d", "schema", "predictions", "question", "Model"]
)
def test_long_text_of_a_row_is_not_printed_whole(key: str, long: str, tmp_path: Path) -> None:
    row = ROW | {key: [long] if key in "ab" else {long: "z"} if key == "predictions" else long}
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps(row)}\n" * 2)
    assert len(CliRunner().invoke(main, ["evaluate", str(path)]).stderr) < 5000


@pytest.mark.parametrize("arguments", [
    ["show", LONG], ["list", LONG], ["prove", VOLTA, VOLTA, "--inputs", LONG], ["order", "--device", f"cpu:{LONG}"],
    ["prove", VOLTA, VOLTA, "--solver", LONG], ["verify", LONG], ["study", "valero-tf32", "--sizes", LONG], [LONG],
    ["simulate", LONG, LONG, "--model", VOLTA, "-o", "o.npy"], ["show", f"ieee/turn/f32/c+{SPACED}"],
], ids=range(10))  # fmt: skip
def test_long_text_of_a_command_line_is_not_printed_whole(arguments: list[str]) -> None:
    result = run(*arguments, code=2)
    assert len(result.stderr) < 5000
    assert "characters)..." in result.stderr or LONG[:500] not in result.stderr


def test_a_message_keeps_what_can_be_read() -> None:
    path = "/".join(["folder"] * 40) + "/rows.jsonl"
    assert str(InputError("no such file", path)) == f"{path}: no such file"
    message = str(InputError(f"unknown model {LONG!r}; did you mean 'that'?", "rows.jsonl", 3))
    assert re.fullmatch(
        r"rows.jsonl:3: unknown model 'x+\.\.\.\(100,003 characters\)\.\.\.x+'; did you mean 'that'\?", message
    )
    assert len(str(FaultError(LONG))) == len(LONG)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('print(\'{"device": {"clock": NaN}}\', flush=True)', "NaN is no number"),
        ('rows = lambda: iter([])\nprint(\'{"id": "mmaprobe-1", "d": "00000000", "d": "00000001"}\', flush=True)',
         "d: this key is given twice"),
    ],
)  # fmt: skip
def test_answers_that_are_no_json(body: str, message: str, tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.jsonl", ROW)
    result = run("run", path, "--device", program(tmp_path, body + "\ntime.sleep(9)\n"), code=3)
    assert "garbage instead of an answer (" in result.stderr
    assert message in result.stderr


# --- the store --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"),
    [("status", "maybe"), ("why", "NOSUCH"), ('"values"', "{"), ('"values"', "[]"), ('"values"', '{"a": "b"}'),
     ("seconds", "soon"), ("memory", "all"), ("timeout", "none")],
)  # fmt: skip
def test_rows_that_nobody_writes_are_asked_again(column: str, value: str, tmp_path: Path) -> None:
    path, warnings = tmp_path / "store.sqlite", list[str]()
    answer = Answer("unsat", "z3", version_of("z3"), 1.0)
    with Store(path) as store:
        store._record(TEXT, answer, 1.0, 100)
    sql(path, f"UPDATE answers SET {column} = ?", value)
    [row] = sql(path, "SELECT * FROM answers")
    key, query, engine, version, status, seconds, values, why, detail, timeout, memory, recorded, name, _ = row
    columns = (engine, version, status, seconds, values, why, detail, timeout, memory, query, recorded, name)
    assert key == answer_key(TEXT, "z3", version_of("z3"))
    sql(path, "UPDATE answers SET checksum = ?", _checksum(key, *columns))
    with Store(path, warnings.append) as store:
        assert store.find(TEXT, "z3", 1.0, 100) is None
        assert "has a row that mmaprobe does not write" in warnings[0]
        store._record(TEXT, answer, 1.0, 100)
        assert store.find(TEXT, "z3", 1.0, 100) is not None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"verdict": "maybe"}'])
def test_results_that_nobody_writes_are_asked_again(text: str, tmp_path: Path) -> None:
    path, warnings, key = tmp_path / "store.sqlite", list[str](), result_key("x")
    with Store(path) as store:
        store.record_result(key, {"verdict": "equal"})
        assert store.find_result(key) == {"verdict": "equal"}
    [(recorded,)] = sql(path, "SELECT recorded FROM results")
    sql(path, "UPDATE results SET document = ?, checksum = ?", text, _checksum(key, text, recorded))
    with Store(path, warnings.append) as store:
        assert store.find_result(key) is None
    assert "has a row that mmaprobe does not write" in warnings[0]


def test_the_version_of_a_store_in_words(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    Store(path).close()
    sql(path, "PRAGMA user_version = -1")
    result = run("prove", VOLTA, VOLTA, "--store", str(path), code=2)
    assert "is of another version (schema -1" in result.stderr


def test_an_array_that_memory_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object, **__: object) -> None:
        raise MemoryError

    path = tmp_path / "a.npy"
    np.save(path, np.ones((2, 2), np.float16))
    monkeypatch.setattr(np, "load", load)
    result = run("simulate", str(path), str(path), "--model", VOLTA, "-o", str(tmp_path / "d.npy"), code=3)
    assert f"{path}: memory ran out" in result.stderr


# --- the machine ------------------------------------------------------------------------------------------------------


def test_few_descriptors(tmp_path: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))

    words = ["prove", VOLTA, f"{VOLTA}@carry_bits=4", "--fresh"]
    command = [sys.executable, "-c", ENTRY, *words]
    result = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, timeout=120, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (3, 1)
    assert "Too many open files" in result.stderr


def test_what_ran_out() -> None:
    assert shortage(MemoryError()) == "memory ran out"
    assert "Too many open files" in shortage(OSError(24, "Too many open files"))
    assert "failed to map segment" in shortage(ImportError("x.so: failed to map segment from shared object"))
    assert "start new thread" in shortage(RuntimeError("can't start new thread"))
    assert not any(map(shortage, (OSError(2, "No such file"), ImportError("no module"), RuntimeError("x"))))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_after_the_result_keeps_the_exit_code(number: int) -> None:
    late = f"""
import os, sys, types
from mmaprobe.cli import entry, main

def leave(code):
    os.kill(os.getpid(), {int(number)})
    sys.exit(code)

main.sys = types.SimpleNamespace(exit=leave, modules=sys.modules)
sys.argv = ["mmaprobe", "list", "formats"]
entry.main()
"""
    result = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, "bf16" in result.stdout) == (0, True)


def test_a_fault_keeps_a_command_that_is_no_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["mmaprobe", "report", "caf\udce9.jsonl"])
    try:
        raise ZeroDivisionError
    except ZeroDivisionError as error:
        text = fault_text(error)
    assert "fault.txt, which holds the command" in text
    assert "caf\\udce9.jsonl" in (tmp_path / "mmaprobe" / "fault.txt").read_text(encoding="utf-8")


def test_no_traceback_of_a_client_without_certificates() -> None:
    pytest.importorskip("distributed")
    words = ["prove", VOLTA, VOLTA, "--cluster", "tls://127.0.0.1:1"]
    command = [sys.executable, "-c", ENTRY, *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "no dask scheduler at 'tls://127.0.0.1:1'" in result.stderr


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_reference
model, rng = parse_reference({model!r}), np.random.default_rng(1)
a, b = (rng.integers(0, 0x4000, shape, dtype=np.uint16) for shape in ((16, 4096), (4096, 4096)))
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    simulate(a, b, None, model, engine="numpy", threads=1)
except KeyboardInterrupt:
    print(time.monotonic() - started)
"""


@pytest.mark.programs
def test_an_interrupted_product_does_not_finish_its_strips() -> None:
    """One strip takes many seconds: 16 rows, 4,096 columns, 1,024 tiles. In a process of its own: what others have
    recorded would be played in one piece."""
    code = [sys.executable, "-c", INTERRUPTED.format(model=VOLTA)]
    done = subprocess.run(code, capture_output=True, text=True, timeout=300, check=True)
    assert float(done.stdout) < 8


@pytest.mark.parametrize("predicted", [{"x": 5}, {"x": None}, {"x": "zz"}, {"": ""}])
def test_predictions_that_are_no_patterns(predicted: dict[str, Any], tmp_path: Path) -> None:
    vectors = file_of(tmp_path / "vectors.jsonl", {**ROW, "predictions": predicted})
    for command in (["evaluate", vectors], ["run", vectors, "--device", f"model:{VOLTA}"]):
        assert "vectors.jsonl:1: predictions: " in run(*command, code=2).stderr


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("./a\0b.yaml", "./\ud800.yaml"):
        with pytest.raises(MmaprobeError, match=r"no file can have this name|no such file"):
            mmaprobe.unit(name)


def test_matrices_are_of_regular_files(tmp_path: Path) -> None:
    result = run("simulate", "/dev/zero", "/dev/zero", "-o", str(tmp_path / "d.npy"), "--model", VOLTA, code=2)
    assert "/dev/zero: is no regular file" in result.stderr
