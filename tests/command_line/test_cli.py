"""The command line: exit codes, what stands on standard output, and errors without a traceback."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.family import parameters_of
from mmaprobe.hypotheses.library import library
from mmaprobe.queries.search import distinguish as search
from mmaprobe.queries.solvers import asking
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.smtmodel.algorithms import reductions
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, SPELLINGS
from mmaprobe.smtmodel.families.parameters import PARAMETERS
from mmaprobe.smtmodel.plans import multiword
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.tables.sparse import sparse_rows
from mmaprobe.smtmodel.units.unit_files import units
from tests.devices.test_devices import HEARS_CTRL_C
from tests.places import ROOT
from tests.said import planted

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
SMALL = f"{VOLTA}@length=1,fraction_bits=4,output=f16"
BITWUZLA = ["--solver", "bitwuzla"]
ROW = {"model": VOLTA, "a": ["3c00", "4000"], "b": ["3c00", "3c00"], "c": "3f800000", "d": "40800000"}
OTHER = {**ROW, "id": "wrong", "d": "40800001"}
QUESTION = """id: mine
question: How many carry bits?
source: a paper
model: {model},product=normalised
inputs: {{finite: true, nonnegative: true, exponents: {{min: -1, max: 1}}}}
hypotheses:
  few: {{carry_bits: {few}}}
  many: {{carry_bits: {many}}}
expect: {expect}
"""


def run(*arguments: str, code: int, stdin: str | None = None) -> Result:
    """Run the command. Whatever happens, it ends by itself and with this exit code."""
    result = CliRunner().invoke(main, list(arguments), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert result.exit_code == code, result.output
    return result


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def question_file(folder: Path, few: int, many: int, expect: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(QUESTION.format(model=SMALL, few=few, many=many, expect=expect), encoding="utf-8")
    return str(path)


def vector_file(folder: Path, *rows: dict[str, Any] | str) -> str:
    path = folder / "rows.jsonl"
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return str(path)


# --- distinguish --------------------------------------------------------------------------------------------------


def test_distinguish_questions_of_the_library(tmp_path: Path) -> None:
    asked, file = ("exact-products", "truncation-or-toward-zero", *BITWUZLA), tmp_path / "v.jsonl"
    file.write_text("of an earlier run\n")
    run("distinguish", *asked, "-o", str(file), code=0)
    result = run("distinguish", *asked, "-o", "-", code=0)
    assert file.read_text() == result.stdout
    vectors = json_lines(result.stdout)
    assert [vector["question"] for vector in vectors] == ["exact-products", "truncation-or-toward-zero"]
    assert sorted(vectors[0]["predictions"]) == ["exact", "half"]
    assert len(set(vectors[0]["predictions"].values())) == 2
    assert "2 of 2 questions answered as expected" in result.stderr
    for words in ("exact-products: ", "as expected", "observed on Titan V: exact", vectors[0]["c"]):
        assert words in result.stderr


@pytest.mark.parametrize(
    ("few", "many", "expect", "code"),
    [(0, 1, "different", 0), (0, 1, "equal", 1), (1, 2, "equal", 0), (1, 2, "different", 1)],
)
def test_distinguish_an_own_file(tmp_path: Path, few: int, many: int, expect: str, code: int) -> None:
    result = run("distinguish", question_file(tmp_path, few, many, expect), *BITWUZLA, code=code)
    assert ("as expected" in result.stderr) == (code == 0)
    assert (f"EXPECTED {expect}" in result.stderr) == (code == 1)
    assert len(json_lines(result.stdout)) == (few == 0)


def test_distinguish_two_models() -> None:
    different = run("distinguish", SMALL, f"{SMALL},fraction_bits=6".replace("fraction_bits=4,", ""), code=0)
    [vector] = json_lines(different.stdout)
    assert parameters_of(parse_reference(vector["model"]))["fraction_bits"] == 4
    assert len(set(vector["predictions"].values())) == 2
    equal = run("distinguish", SMALL, f"{SMALL},carry_bits=4", *BITWUZLA, code=1)
    assert equal.stdout == ""
    assert "equal" in equal.stderr
    assert "different" not in equal.stderr


def test_distinguish_says_how_a_plan_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "plan: own\nformats: {a: f16, b: f16, c: f32, d: f32}\nk: fma\n"
    Path("own.yaml").write_text(text, encoding="utf-8")
    own = "own.yaml@length=4"
    assert "plan:own.yaml@length=64" in run("distinguish", own, own, code=2).stderr


@pytest.mark.parametrize("solver", ["auto", "z3"])
def test_distinguish_without_time(solver: str) -> None:
    result = run("distinguish", "carry-bits-ampere-enough", "--timeout", "0.001", "--solver", solver, code=3)
    assert result.stdout == ""
    for words in ("unknown", "tried", "z3", "time ran out"):
        assert words in result.stderr
    assert "as expected" not in result.stderr


def test_distinguish_with_one_unknown_among_several() -> None:
    run("distinguish", "exact-products", "carry-bits-ampere-enough", "--timeout", "0.001", code=3)


def test_distinguish_with_a_lying_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search.WitnessSearch, "_simulate", lambda self: None)
    monkeypatch.setattr(asking, "solve", lambda query, *rest: planted(query, Answer("sat", "liar", "1.0", 0.0)))
    result = run("distinguish", "exact-products", code=4)
    assert "liar 1.0" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("few", "many", "timeout", "code", "verdict"),
    [(0, 1, "60", 0, "different"), (1, 2, "60", 1, "equal"), (1, 2, "0.001", 3, "unknown")],
)
def test_distinguish_json(tmp_path: Path, few: int, many: int, timeout: str, code: int, verdict: str) -> None:
    name = question_file(tmp_path, few, many, "different")
    result = run("distinguish", name, "--json", "--timeout", timeout, *BITWUZLA, code=code)
    [question] = json.loads(result.stdout)["questions"]
    assert result.stdout == json.dumps(json.loads(result.stdout)) + "\n"
    assert (question["id"], question["verdict"], question["expect"]) == ("mine", verdict, "different")
    assert len(question["vectors"]) == (verdict == "different")
    [pair] = question["pairs"]
    assert (pair["left"], pair["right"], pair["verdict"]) == ("few", "many", verdict)
    assert pair["found_by_simulation"] == (verdict == "different")
    if verdict == "different":  # no solver was asked
        assert pair["asked"] == []
        return
    [answer] = pair["asked"][-1]["answers"]
    assert (answer["solver"], answer["status"]) == ("bitwuzla", {1: "unsat", 3: "unknown"}[code])
    assert answer["version"]


def test_vectors_written_are_read_by_evaluate(tmp_path: Path) -> None:
    path = tmp_path / "vectors.jsonl"
    result = run("distinguish", "truncation-or-toward-zero", "-n", "3", "-o", str(path), *BITWUZLA, code=0)
    assert result.stdout == ""
    vectors = json_lines(path.read_text(encoding="utf-8"))
    assert len({json.dumps([vector["a"], vector["b"], vector["c"]]) for vector in vectors}) == 3
    unobserved = run("evaluate", str(path), code=3).stderr
    assert "3 rows, 0 mismatches, 3 without d" in unobserved
    assert f"error: {path}: nothing was compared" in unobserved
    for name, code in (("truncated", 0), ("properly_rounded", 1)):
        observed = [{**vector, "d": vector["predictions"][name]} for vector in vectors]
        run("evaluate", vector_file(tmp_path, *observed), code=code)
        run("evaluate", vector_file(tmp_path, *observed), "--model", f"{VOLTA}@align_rounding=sticky", code=1 - code)


def test_smt2_is_written(tmp_path: Path) -> None:
    path = tmp_path / "query.smt2"
    run("distinguish", question_file(tmp_path, 0, 1, "different"), "--smt2", str(path), *BITWUZLA, code=0)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("(set-logic QF_BV)\n")
    assert "(check-sat)" in text
    run("distinguish", "alignment-bits", "--smt2", str(tmp_path / "three.smt2"), *BITWUZLA, code=0)
    written = sorted(file.name for file in tmp_path.glob("three*"))
    assert written == ["three-f23-f24.smt2", "three-f23-f25.smt2", "three-f24-f25.smt2"]


def test_all_products_but_one_are_zero_in_a_query(tmp_path: Path) -> None:
    for count, names in ((1, "a0 b0 c"), (2, "a0 a1 b0 b1 c")):
        path = tmp_path / f"{count}.smt2"
        run("distinguish", "exact-products", "--smt2", str(path), "--free", str(count), *BITWUZLA, code=0)
        declared = re.findall(r"declare-const (\w+)", path.read_text(encoding="utf-8"))
        assert declared == names.split()


def test_restrictions_and_comparison_of_two_models() -> None:
    zeros = [SMALL, f"{SMALL},zero_sign=ieee", *BITWUZLA]
    run("distinguish", *zeros, code=0)
    run("distinguish", *zeros, "--compare", "value", code=1)
    run("distinguish", *zeros, "--inputs", "finite, nonnegative", code=1)


# --- evaluate -----------------------------------------------------------------------------------------------------


def test_evaluate_without_mismatches(tmp_path: Path) -> None:
    result = run("evaluate", vector_file(tmp_path, ROW, {**ROW, "d": None}), code=0)
    assert result.stdout == ""
    verdict, of_model = result.stderr.splitlines()
    assert (verdict, of_model) == ("2 rows, 0 mismatches, 1 without d", f"  {VOLTA}: {verdict}")


@pytest.mark.parametrize("rows", [1, 3])
def test_evaluate_with_nothing_to_compare(tmp_path: Path, rows: int) -> None:
    result = run("evaluate", vector_file(tmp_path, *[{**ROW, "d": None}] * rows), "--json", code=3)
    assert "nothing was compared: no row has an observed result `d`" in result.stderr
    document = json.loads(result.stdout)
    assert (document["rows"], document["compared"], document["mismatches"]) == (rows, 0, 0)
    assert "nothing was compared" in document["error"]


def test_evaluate_with_a_mismatch(tmp_path: Path) -> None:
    path = vector_file(tmp_path, ROW, OTHER, ROW)
    result = run("evaluate", path, code=1)
    assert f"{path}:2: {VOLTA}: observed 40800001" in result.stderr
    assert "the model gives 40800000 (4)" in result.stderr
    assert result.stderr.startswith("3 rows, 1 mismatch\n")
    document = json.loads(run("evaluate", path, "--json", code=1).stdout)
    assert (document["rows"], document["mismatches"], document["error"]) == (3, 1, None)
    assert document["first_mismatches"][0]["id"] == "wrong"


@pytest.mark.parametrize("bad", ["{", json.dumps({**ROW, "a": ["xyz", "0"]}), json.dumps({**ROW, "model": "volta"})])
def test_evaluate_reports_the_rows_before_a_bad_one(tmp_path: Path, bad: str) -> None:
    path = vector_file(tmp_path, ROW, OTHER, bad, ROW, OTHER)
    result = run("evaluate", path, code=2)
    assert "2 rows, 1 mismatch" in result.stderr
    assert f"error: {path}:3: " in result.stderr
    document = json.loads(run("evaluate", path, "--json", code=2).stdout)
    assert (document["rows"], document["mismatches"]) == (2, 1)
    assert document["error"].startswith(f"{path}:3: ")


def test_evaluate_under_another_model(tmp_path: Path) -> None:
    small = {**ROW, "a": ["3c00"], "b": ["3c00"], "c": "b3000000", "d": "3f7fffff"}  # 1 - 2^-25
    path = vector_file(tmp_path, small)
    run("evaluate", path, code=1)
    result = run("evaluate", path, "--model", f"{VOLTA}@align_rounding=sticky", code=0)
    assert "@align_rounding=sticky: 1 row, 0 mismatches" in result.stderr


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("ampere/mma/m16n8k16.f32.bf16.bf16.f32", "bf16"),
        ("volta/mma/m8n8k4.f16.f16.f16.f16", "f16"),
        (f"{VOLTA}@length=1", "2"),
    ],
)
def test_evaluate_under_a_model_that_does_not_fit(tmp_path: Path, model: str, words: str) -> None:
    """Patterns of other formats would be read as other numbers."""
    assert words in run("evaluate", vector_file(tmp_path, ROW), "--model", model, code=2).stderr.partition("error: ")[2]


def test_evaluate_standard_input_and_compressed_files(tmp_path: Path) -> None:
    text = json.dumps(ROW) + "\n" + json.dumps(OTHER) + "\n"
    assert "standard input:2: " in run("evaluate", "-", code=1, stdin=text).stderr
    assert "standard input:3: " in run("evaluate", "-", code=2, stdin=text + "{").stderr
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert "2 rows, 1 mismatch" in run("evaluate", str(path), code=1).stderr


def test_evaluate_writes_predictions(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    run("evaluate", vector_file(tmp_path, ROW, {**OTHER, "predictions": {"mine": "0"}}), "-o", str(target), code=1)
    first, second = json_lines(target.read_text(encoding="utf-8"))
    assert first["predictions"] == {VOLTA: "40800000"}
    assert second["predictions"] == {"mine": "0", VOLTA: "40800000"}
    assert (second["id"], second["d"]) == ("wrong", "40800001")
    assert "2 rows, 1 mismatch" in run("evaluate", str(target), code=1).stderr


def test_evaluate_with_odd_predictions(tmp_path: Path) -> None:
    path = vector_file(tmp_path, {**ROW, "predictions": 5})
    assert "predictions" in run("evaluate", path, "-o", str(tmp_path / "out.jsonl"), code=2).stderr


# --- list ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("models", [*INSTRUCTIONS, *sparse_rows(), *units()]),
        ("hypotheses", library()),
        ("parameters", [*PARAMETERS, *multiword.PARAMETERS, *reductions.PARAMETERS]),
        ("formats", [*FORMATS, *SPELLINGS]),
    ],
)
def test_list(kind: str, known: dict[str, Any]) -> None:
    text = run("list", kind, code=0).stdout
    assert [line.split()[0] for line in text.splitlines()] == list(known)
    result = run("list", kind, "--json", code=0)
    rows = json.loads(result.stdout)
    assert [row["id"] for row in rows] == list(known)
    assert result.stdout == json.dumps(rows) + "\n"


# --- bad input ----------------------------------------------------------------------------------------------------

BAD: list[tuple[list[str], str]] = [
    (["distingush", "exact-products"], "distinguish"),
    (["distinguish"], "Missing argument"),
    (["distinguish", "exact-product"], "did you mean 'exact-products'"),
    (["distinguish", VOLTA], "two models"),
    (["distinguish", VOLTA, VOLTA, VOLTA], "two models"),
    (["distinguish", VOLTA, VOLTA.replace("volta", "vlta")], f"did you mean '{VOLTA}'"),
    (["distinguish", VOLTA, f"{VOLTA}@cary_bits=2"], "did you mean 'carry_bits'"),
    (["distinguish", VOLTA, f"{VOLTA}@carry_bits=40"], "carry_bits: 40 is impossible"),
    (["distinguish", VOLTA, f"{VOLTA}@carry_bits"], "name=value"),
    (["distinguish", VOLTA, f"{VOLTA}@carry_bits=2,carry_bits=3"], "twice"),
    (["distinguish", VOLTA, f"{VOLTA}@block=3"], "does not divide"),
    (["distinguish", VOLTA, f"{VOLTA}@product=normalized"], "did you mean 'normalised'"),
    (["distinguish", VOLTA, "ampere/mma/m16n8k8.f32.bf16.bf16.f32"], "f16 and bf16"),
    (["distinguish", VOLTA, f"{VOLTA}@output=f16"], "choose to compare by value"),
    (["distinguish", VOLTA, VOLTA, "--inputs", "finit"], "did you mean 'finite'"),
    (["distinguish", "exact-products", "--inputs", "finite"], "--inputs"),
    (["distinguish", "exact-products", VOLTA], VOLTA),
    (["distinguish", "none.yaml"], "none.yaml: no such file"),
    (["distinguish", "plan:cublas/plain", VOLTA], "a given number of products: plan:cublas/plain@length=64"),
    (["distinguish", "plan:none.yaml@length=4", VOLTA], "none.yaml: no such file"),
    (["distinguish", "."], "."),
    (["distinguish", "a" * 5000], "unknown hypothesis"),
    (["distinguish", "exact-products", "--solver", "bitwuzzla"], "bitwuzla"),
    (["distinguish", "exact-products", "--solvr", "z3"], "--solver"),
    (["distinguish", "exact-products", "--timeout", "0"], "--timeout"),
    (["distinguish", "exact-products", "--timeout", "soon"], "--timeout"),
    (["distinguish", "exact-products", "-n", "0"], "-n"),
    (["distinguish", "exact-products", "--memory", "1"], "--memory"),
    (["distinguish", "exact-products", *BITWUZLA, "-o", "none/such/file"], "there is no folder none/such"),
    (["distinguish", "exact-products", *BITWUZLA, "--smt2", "none/such/file"], "none/such/file"),
    (["evaluate"], "Missing argument"),
    (["evaluate", "none.jsonl"], "none.jsonl: no such file"),
    (["evaluate", "."], "cannot be read"),
    (["evaluate", "-", "--model", VOLTA.replace("volta", "vlta")], f"did you mean '{VOLTA}'"),
    (["evaluate", "-", "-o", "none/such/file"], "there is no folder none/such"),
    (["list"], "Missing argument"),
    (["list", "modls"], "'models'"),
    (["list", "models", "--jsn"], "--json"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(row[0])[:60] for row in BAD])
def test_bad_input(arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, code=2, stdin=json.dumps(ROW) + "\n")
    assert words in result.stderr
    assert "rror: " in result.stderr
    assert result.stdout == ""


def test_a_fault_of_a_file_names_the_line(tmp_path: Path) -> None:
    name = question_file(tmp_path, 1, 99, "different")
    assert f"error: {name}:8: hypotheses.many.carry_bits: 99" in run("distinguish", name, code=2).stderr


# --- the program itself -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["distinguish"], ["evaluate"], ["list"]])
def test_help(command: list[str]) -> None:
    assert f"Usage: main {command[0] if command else ''}".strip() in run(*command, "--help", code=0).stdout
    assert run(*command, "-h", code=0).stdout == run(*command, "--help", code=0).stdout


def test_help_as_a_word() -> None:
    assert run("help", "prove", code=0).stdout == run("prove", "--help", code=0).stdout
    assert run("help", code=0).stdout == run("--help", code=0).stdout
    assert "No such command 'prov'" in run("help", "prov", code=2).stderr


@pytest.mark.parametrize(("words", "loaded", "more"), [
    (["list", "models", "--json"], "mmaprobe.smtmodel.tables.catalogue",
     ("numpy", "pydantic", "yaml", "mmaprobe.smtmodel.tables.instructions")),
    (["list", "plans", "--json"], "mmaprobe.smtmodel.tables.instructions", ()),
    (["explain", VOLTA, f"{ROOT}/hypotheses/vectors/valpey-2025.jsonl:1", "--json"],
     "mmaprobe.smtmodel.explain.explaining",
     ("pydantic", "ml_dtypes", "mmaprobe.hypotheses", "mmaprobe.smtmodel.units.fpcore")),
    (["--help"], "mmaprobe.cli.commands.build", ("numpy", "pydantic", "mmaprobe.smtmodel.nodes")),
])  # fmt: skip
def test_nothing_is_loaded_before_it_is_needed(words: list[str], loaded: str, more: tuple[str, ...]) -> None:
    program = (
        "import sys, mmaprobe.cli.main\n"
        f"try: mmaprobe.cli.main.main({words})\n"
        "except SystemExit as end: print(end.code, sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("0 ")
    assert f"'{loaded}'" in done.stderr
    assert not [name for name in ("pysmt", "z3", "bitwuzla", "cvc5", "cupy", *more) if f"'{name}'" in done.stderr]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_interrupt_leaves_no_solver(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store.sqlite")]
    words = ["distinguish", VOLTA, f"{VOLTA}@block_order=3-2-1-0", *BITWUZLA, *store]
    command = [sys.executable, "-c", f"{HEARS_CTRL_C}\nfrom mmaprobe.cli.main import main\nmain({words!r})"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + 60
        while not (found := children.read_text(encoding="utf-8").split()) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "")
    assert "interrupted" in err
    assert "Traceback" not in err
    assert found
    while any(alive(pid) for pid in found) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(alive(pid) for pid in found)


def alive(pid: str) -> bool:
    """Whether a process runs (one that only waits to be collected does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
