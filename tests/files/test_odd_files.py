"""Files, names of files and devices that are not what they seem: refused with the place, never a fault."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import claims_named
from mmaprobe.queries.certificates.bitblast import cnf_of_text
from mmaprobe.queries.checking.finding import reason
from mmaprobe.reports.report import BUILDERS
from mmaprobe.smtmodel.base.errors import InputError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.inputs.vectors import read_vectors
from tests.places import ROOT

V = "volta/mma/m8n8k4.f32.f16.f16.f32"
ROW: dict[str, Any] = {"model": V, "a": ["3c00"], "b": ["3c00"], "c": "00000000"}
FAMILY = """id: mine
about: two units
formats: {{a: f16, b: f16, c: f32, d: f32}}
length: {length}
candidates:
  - {{family: t-fdpa, fraction_bits: [23, 24], output_rounding: toward_zero}}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, code: int, message: str = "", stdin: str | bytes | None = None) -> Any:
    done = CliRunner().invoke(main, list(arguments), input=stdin)
    assert done.exit_code == code, (done.exit_code, done.stderr, done.exception)
    assert message in done.stderr, done.stderr
    assert "a fault of mmaprobe" not in done.stderr
    return done


def rows(*given: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in given)


# --- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "-", "-o", "x.html"),
        ("compare", "recorded:-", f"model:{V}"),
        ("run", "v.jsonl", "--device", "recorded:-"),
        ("simulate", "-", "b.npy", "-o", "d.npy", "--model", V),
        ("order", "--device", "python:-:f", "--formats", "f32,f32,f32", "--length", "4"),
    ],
    ids=" ".join,
)
def test_standard_input_where_it_is_not_read(arguments: tuple[str, ...]) -> None:
    Path("v.jsonl").write_text(rows(ROW))
    run(*arguments, code=2, message="-: standard input is not read here: name a file", stdin=rows(ROW))


@pytest.mark.parametrize("command", ["run v.jsonl --device model:x", "export v.jsonl --format csv", "evaluate v.jsonl"])
def test_an_output_without_a_name(command: str) -> None:
    Path("v.jsonl").write_text(rows(ROW))
    run(*command.split(), "-o", "", code=2, message="a name is missing: '' names no file")


def test_vectors_are_not_written_into_a_table() -> None:
    Path("v.jsonl").write_text(rows(ROW | {"d": "3f800000"}))
    for command in ("evaluate v.jsonl -o x.csv", f"run v.jsonl --device model:{V} -o x.csv"):
        run(*command.split(), code=2, message="x.csv: vectors are written as JSONL")


def test_a_recording_of_no_gpu() -> None:
    Path("d.jsonl").write_text(rows(ROW | {"d": "3f800000"}))
    run("run", "d.jsonl", "--device", "recorded:d.jsonl@", code=2, message="recorded:d.jsonl@: after @ stands a GPU")


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        run("distinguish", "carry-bits-volta", "-o", "x.jsonl", code=2, message="x.jsonl: the current folder is gone")
    finally:
        monkeypatch.chdir(tmp_path)


# --- vectors ----------------------------------------------------------------------------------------------------


def test_numbers_that_would_be_written_as_infinity() -> None:
    """What `run` writes it reads again: 1e999 became Infinity, which is no JSON."""
    Path("v.jsonl").write_text(rows(ROW)[:-2] + ', "x": 1e999}\n')
    run(
        "run",
        "v.jsonl",
        "--device",
        f"model:{V}",
        "-o",
        "o.jsonl",
        code=2,
        message="v.jsonl:1: 1e999 is larger than any",
    )
    assert not Path("o.jsonl").exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW | {"arch": "ampere"}, "arch: 'ampere', but the row's model is volta"),
        (ROW | {"arch": "volta", "unit": "wgmma"}, "unit: 'wgmma', but the row's model is volta"),
        (ROW | {"instruction": "m16n8k8.f32.f16.f16.f32"}, "instruction: 'm16n8k8"),
        (ROW | {"schema": True}, "schema: version true is not known"),
        (ROW | {"c": None}, "c: null is not a string of hexadecimal digits"),
        (ROW | {"model": None}, "model: null is not a string"),
        (ROW | {"predictions": {"two": None}}, "predictions: two: null is not a string of hexadecimal digits"),
        (ROW | {"exercises": "tie"}, "exercises: a list of strings is needed"),
        (ROW | {"reaches": 7}, "reaches: a list of strings is needed"),
        (ROW | {"exercises_alone": ["tie"]}, "exercises_alone: an object of lists of strings is needed"),
        (ROW | {"exercises_alone": {"two": 5}}, "exercises_alone: an object of lists of strings is needed"),
    ],
)
def test_what_a_row_says_and_nothing_reads(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(read_vectors([json.dumps(row)], "rows.jsonl"))


def test_a_row_may_say_its_model_twice() -> None:
    parts = {"arch": "Volta", "unit": "MMA", "instruction": "m8n8k4.f32.f16.f16.f32"}
    assert len(list(read_vectors([json.dumps(ROW | parts), json.dumps(ROW | {"instruction": V})], "rows.jsonl"))) == 2


def of_process(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own, with pipes."""
    asked = [sys.executable, "-P", "-m", "mmaprobe.cli.main", *arguments]
    return subprocess.run(asked, input=stdin, capture_output=True, env={"PYTHONPATH": str(ROOT)}, check=False)


def test_compressed_files_need_no_ending() -> None:
    packed = gzip.compress(rows(ROW | {"d": "3f800000"}).encode())
    Path("v.jsonl").write_bytes(packed)
    run("evaluate", "v.jsonl", code=0, message="1 row, 0 mismatches")
    whole, cut = (of_process("evaluate", "-", stdin=given) for given in (packed, packed[:40]))
    assert (whole.returncode, cut.returncode) == (0, 2), (whole.stderr, cut.stderr)
    assert b"1 row, 0 mismatches" in whole.stderr
    assert b"standard input:1: cannot be read" in cut.stderr


# --- matrices ---------------------------------------------------------------------------------------------------


def test_archives_of_something_else() -> None:
    np.savez("b.npz", x=np.ones((4, 4), np.float16))
    for name in ("x", "x.npy"):
        with zipfile.ZipFile("a.npz", "w") as archive:
            archive.writestr(name, "hello")
        asked = ("simulate", "a.npz", "b.npz", "-o", "d.npz", "--model", V)
        run(*asked, code=2, message="a.npz: x: not an array of numbers")


def test_an_archive_and_an_array() -> None:
    np.save("a.npy", np.ones((4, 4), np.float16))
    np.savez("b.npz", x=np.ones((4, 4), np.float16))
    Path("b.npz").rename("b.npy")
    for files in (("a.npy", "b.npy"), ("b.npy", "a.npy")):
        message = "b.npy: an archive, as .npz files are; a.npy is one array"
        run("simulate", *files, "-o", "d.npy", "--model", V, code=2, message=message)


def test_arrays_of_objects_and_of_less_than_nothing() -> None:
    np.save("b.npy", np.ones((4, 4), np.float16))
    np.save("a.npy", np.array([[1, "x"]], dtype=object), allow_pickle=True)
    run("simulate", "a.npy", "b.npy", "-o", "d.npy", "--model", V, code=2, message="a.npy: it holds objects of Python")
    Path("a.npy").write_bytes(Path("b.npy").read_bytes().replace(b"(4, 4)", b"(-4,4)"))
    run(
        "simulate",
        "a.npy",
        "b.npy",
        "-o",
        "d.npy",
        "--model",
        V,
        code=2,
        message="a.npy: its header promises the shape",
    )


def test_a_product_into_a_pipe() -> None:
    for name in "ab":
        np.save(f"{name}.npy", np.ones((4, 4), np.float16))
    done = of_process("simulate", "a.npy", "b.npy", "-o", "/dev/stdout", "--model", V, "--engine", "numpy")
    assert done.returncode == 0, done.stderr
    assert (np.load(io.BytesIO(done.stdout)) == 4).all()


# --- documents --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"questions": None}, "1: questions: not as a command wrote it: a list is needed"),
        ({"questions": 3}, "1: questions: not as a command wrote it: a list is needed"),
        ({"questions": [3]}, "1: questions.0: not as a command wrote it: an object is needed"),
        ({"claims": [None]}, "1: claims.0: not as a command wrote it: an object is needed"),
        ({"rows": 1, "mismatches": 0, "models": [{"model": None}]}, "models.0.model: not as a command wrote it: text"),
        ({"property": "equal", "proofs": None}, "1: proofs: not as a command wrote it: a list is needed"),
        ({"property": "equal", "verdict": 3, "proofs": []}, "1: verdict: not as a command wrote it: 'equal', "),
        ({"schema": None, "questions": []}, "1: schema: null is not known"),
    ],
    ids=str,
)
def test_a_document_with_another_value(document: dict[str, Any], message: str) -> None:
    Path("d.json").write_text(json.dumps(document))
    run("report", "d.json", "-o", "x.html", code=2, message=f"d.json:{message}" if message[0] == "1" else message)


def test_every_document_has_its_schema() -> None:
    from mmaprobe.documents.commands import DOCUMENTS

    printed = {one for kind in DOCUMENTS.values() for one in get_args(kind) or [kind]}
    assert {kind for _, kind, _ in BUILDERS} <= printed


@pytest.mark.parametrize("key", ["undecided", "device", "classes", "why_undecided"])
def test_a_sheet_of_a_document_with_another_value(key: str) -> None:
    Path("f.yaml").write_text(FAMILY.format(length=4))
    found = json.loads(run("identify", "f.yaml", "--device", f"model:{V}", "--json", code=0).stdout)
    Path("d.json").write_text(json.dumps(found | {key: None}))
    run(
        "datasheet",
        "d.json",
        "--limit",
        "0",
        "-o",
        "x.html",
        code=2,
        message=f"d.json: {key}: not as a command wrote it",
    )


# --- devices ----------------------------------------------------------------------------------------------------

COUNTS = """import json, sys

for number, line in enumerate(sys.stdin):
    print(json.dumps({"id": json.loads(line)["id"], "d": f"{number:08x}"}), flush=True)
"""


def test_a_device_whose_answers_are_numbers_in_turn() -> None:
    """Its terms seem to count 2^-149 times, and more: no number makes up for that."""
    Path("p.py").write_text(COUNTS)
    device = f"command:{sys.executable} p.py"
    formats = ["--formats", "f16,f16,f32,f32", "--length", "4"]
    assert "contradicts itself" in run("order", "--device", device, *formats, code=3).stderr
    Path("f.yaml").write_text(FAMILY.format(length=8))
    run("identify", "f.yaml", "--device", device, "--timeout", "20", code=3, message="contradicts itself")


def test_the_time_of_one_call_counts_in_maps_as_well() -> None:
    Path("f.py").write_text("import time\ndef f(a, b): time.sleep(1000)\n")
    asked = ("--device", "python:f.py:f", "--formats", "f32,f32,f32", "--length", "4", "--shape", "2,2")
    start = time.monotonic()
    run(
        "identify", "--gemm", *asked, "--device-timeout", "1", "--timeout", "60", code=3, message="no answer within 1 s"
    )
    assert time.monotonic() - start < 30


def test_a_function_takes_no_scale_factors() -> None:
    Path("f.py").write_text("def f(a, b): return a @ b\n")
    asked = ("--device", "python:f.py:f", "--formats", "e4m3,e4m3,f32", "--length", "8")
    run(
        "identify",
        *asked,
        "--scale",
        "ue8m0/4",
        code=2,
        message="python:f.py:f takes no scale factors: leave out --scale",
    )


# --- certificates, claims, names ----------------------------------------------------------------------------------


def test_a_query_that_is_cut_short() -> None:
    """pysmt's parser goes round for ever at the end of an open bracket."""
    constant = "; a comment (\n(declare-const |a (| (_ BitVec 4))\n"
    whole = f"(set-logic QF_BV)\n{constant}(assert (= |a (| #x3))\n(get-value (|a (|))\n"
    assert cnf_of_text(whole).text
    for cut in (whole[:-2], whole[:-4], whole[:70]):
        with pytest.raises(ValueError, match="a bracket is not closed"):
            cnf_of_text(cut)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file", "/far/away/left.yaml"), "left.yaml: No such file"),
        (OSError(22, "is not a regular file"), "is not a regular file"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "not text in UTF-8"),
        (KeyError("schema"), "schema: this key is missing"),
        (ValueError("not JSON"), "not JSON"),
        (InputError("the file is empty", "left.yaml", 1), "left.yaml:1: the file is empty"),
        (RuntimeError("odd"), "RuntimeError: odd"),
    ],
)
def test_why_a_file_of_a_certificate_cannot_be_read(error: Exception, message: str) -> None:
    assert reason(error) == message


CLAIM = """id: mine
about: x
source: y
says: nothing
expect: refuted
cases: {terms: [2, 4]}
terms: "{terms}"
inputs: {format: f16, a: [-2, 2], b: [-2, 2], c: zero}
parts:
  one: hopper/mma/m16n8k16.f32.f16.f16.f32
  two: hopper/mma/m16n8k16.f32.f16.f16.f32@block=2
claim: error(one) <= error(two)
"""


def test_one_case_of_a_claim_file() -> None:
    for name in ("c.yaml", "c@1.yaml"):
        Path(name).write_text(CLAIM)
        assert [claim.case["terms"] for claim in claims_named(name)] == [2, 4]
    assert [claim.case["terms"] for claim in claims_named("c.yaml@terms=4")] == [4]
    with pytest.raises(UnknownNameError, match=r"unknown case 'c\.yaml@terms=5'"):
        claims_named("c.yaml@terms=5")
    for name in ("c.yaml@", "ootomo-not-worse-f16@"):
        with pytest.raises(ParameterError, match="a parameter is written name=value"):
            claims_named(name)


def test_names_that_say_what_is_wanted() -> None:
    Path("c.yaml").write_text(CLAIM.replace("c: zero", "c: zer0"))
    run(
        "verify",
        "c.yaml",
        code=2,
        message="c.yaml:8: inputs.c: 'zer0': a window of exponents, [LOW, HIGH], or the word",
    )
    for name in ("ieee/fma", "ieee/fma/", "ieee/fma/f32.f16", "ieee/fma/f32.f16.f16.f32.f32"):
        run("show", name, code=2, message=f"{name}: it is written ieee/fma/FORMAT, or ieee/fma/D.A.B.C")
    name = "ieee/muladd/f32.bf16.bf16.f32"
    run("show", name, code=2, message=f"{name}: of these there are ieee/muladd/f16, ieee/muladd/f32, ieee/muladd/f64, ")
    run("explain", V, "", code=2, message="VECTOR '': no such file; a vector is a JSON object")
    assert "`mmaprobe list models `" not in run("list", "", code=2).stderr
    assert run("list", "Hopper", "fp8", code=0).stdout == run("list", "hopper", "fp8", code=0).stdout
    for name in "ab":
        np.save(f"{name}.npy", np.full((4, 4), 1 << 17, np.uint32))
    asked = ("simulate", "a.npy", "b.npy", "-o", "d.npy")
    run(*asked, "--model", V, code=2, message="a.npy: a pattern is wider than the 16 bits of f16")
    run(*asked, "--plan", "plan:cublas/plain@length=4", code=2, message="the matrices say K: plan:cublas/plain")
