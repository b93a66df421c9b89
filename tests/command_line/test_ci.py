"""Exit codes and files for continuous integration: a test that fails when a kernel's bits change."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.runner.device_vectors import VectorRun

AMPERE, HOPPER = "ampere/mma/m16n8k16.f32.f16.f16.f32", "hopper/mma/m16n8k16.f32.f16.f16.f32"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An input on which the two units differ, named as one of the first."""
    path = tmp_path_factory.mktemp("ci") / "vectors.jsonl"
    assert run("distinguish", AMPERE, HOPPER, "-o", path).exit_code == 0
    rows = [json.loads(line) | {"model": AMPERE} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_answer_is_checked(vectors: Path, tmp_path: Path) -> None:
    right = run("run", vectors, "--device", f"model:{AMPERE}", "--check", "-o", tmp_path / "right.jsonl")
    assert right.exit_code == 0, right.output
    assert "every answer is its model's" in right.output
    wrong = run("run", vectors, "--device", f"model:{HOPPER}", "--check", "-o", tmp_path / "wrong.jsonl")
    assert wrong.exit_code == 1
    assert "1 answer not the model's" in wrong.output
    assert f"vectors.jsonl:1: {AMPERE}: observed " in wrong.output
    plain = run("run", vectors, "--device", f"model:{HOPPER}", "-o", tmp_path / "plain.jsonl")
    assert plain.exit_code == 0
    document = json.loads(run("run", vectors, "--device", f"model:{HOPPER}", "--check", "--json").stdout)
    assert document["wrong"] == 1


def test_answers_before_a_fault_are_not_every_answer(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the vectors before a line that is none, or before an interrupt."""
    cut, row = tmp_path / "cut.jsonl", vectors.read_text().splitlines()[0]
    cut.write_text(f"{row}\n{row[:20]}")
    asked = ("run", cut, "--device", f"model:{AMPERE}", "--check")
    found = run(*asked)
    assert found.exit_code == 2, found.output
    assert "cut.jsonl:2: not JSON" in found.output
    assert "1 vector answered by" in found.output
    assert "every answer so far is its model's" in found.output
    assert "every answer is" not in found.output
    cut.write_text(f"{row}\n")
    answered = VectorRun._ask

    def interrupted(session: VectorRun, *given: Any, **named: Any) -> Any:
        answered(session, *given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(VectorRun, "_ask", interrupted)
    assert "every answer is" not in run(*asked).output
    found = run("run", vectors, "--device", f"model:{AMPERE}", "--json")
    assert found.exit_code == 3
    document = json.loads(found.stdout)
    assert (document["answered"], len(document["vectors"]), document["error"]) == (1, 1, "interrupted")


def test_the_shape_that_a_function_was_asked_is_said(tmp_path: Path) -> None:
    file, vectors = tmp_path / "products.py", tmp_path / "vectors.jsonl"
    file.write_text("def product(a, b):\n    return a @ b\n")
    vectors.write_text(json.dumps({"model": "ieee/fma/f64", "a": ["0"], "b": ["0"], "c": "0"}) + "\n")
    asked = run("run", vectors, "--device", f"python:{file}:product", "--check")
    assert asked.exit_code == 0, asked.output
    assert (
        "asked as products of 64 x K and K x 64 alone: mmaprobe identify --gemm asks for other shapes" in asked.output
    )
    other = run("run", vectors, "--device", "model:ieee/fma/f64", "--check")
    assert "every answer is its model's" in other.output
    assert "other shapes" not in other.output


def test_answers_of_an_earlier_run_are_checked_too(vectors: Path, tmp_path: Path) -> None:
    arguments = ("run", vectors, "--device", f"model:{HOPPER}", "-o", tmp_path / "answers.jsonl")
    assert run(*arguments).exit_code == 0
    again = run(*arguments, "--check")
    assert again.exit_code == 1, again.output
    assert "1 answer not the model's" in again.output


@pytest.mark.parametrize(("other", "expect", "code"), [
    (HOPPER, "same", 1), (HOPPER, "different", 0), (AMPERE, "same", 0), (AMPERE, "different", 1),
])  # fmt: skip
def test_what_a_comparison_expects(other: str, expect: str, code: int, vectors: Path) -> None:
    result = run("compare", f"model:{AMPERE}", f"model:{other}", "--vectors", vectors, "--samples", "20", "-n", "1",
                 "--expect", expect)  # fmt: skip
    assert result.exit_code == code, result.output


def test_junit(vectors: Path, tmp_path: Path) -> None:
    """A test for each row: one passes, one fails, one has nothing to compare."""
    answers, report = tmp_path / "answers.jsonl", tmp_path / "report.xml"
    assert run("run", vectors, "--device", f"model:{AMPERE}", "-o", answers).exit_code == 0
    row = json.loads(answers.read_text().splitlines()[0])
    third = "turing/mma/m16n8k8.f32.f16.f16.f32"
    zeros = {"schema": 1, "id": "zeros", "model": third, "a": ["0000"] * 8, "b": ["0000"] * 8, "c": "00000000"}
    rows = (row, row | {"model": HOPPER, "id": "other"}, zeros)
    answers.write_text("".join(json.dumps(one) + "\n" for one in rows))
    result = run("evaluate", answers, "--junit", report)
    assert result.exit_code == 1, result.output
    tests = {test.get("name"): test for test in ElementTree.parse(report).getroot().iter("testcase")}
    assert [len(tests[name]) for name in (row["id"], "other", "zeros")] == [0, 1, 1]
    assert tests["other"].find("failure") is not None
    assert tests["zeros"].find("skipped") is not None


@pytest.mark.parametrize("file", ["rows of a kernel.jsonl", "-"])
def test_a_failed_test_says_the_command_that_explains_it(tmp_path: Path, file: str) -> None:
    """Names are quoted as a shell wants them, and what came on standard input has no line to name."""
    path, report = tmp_path / file, tmp_path / "report.xml"
    text = json.dumps({"model": AMPERE, "id": "it's", "a": ["3c00"], "b": ["3c00"], "c": "00000000", "d": "40000000"})
    if file != "-":
        path.write_text(text)
    words = [str(one) for one in ("evaluate", "-" if file == "-" else path, "--junit", report)]
    assert CliRunner().invoke(main, words, input=text).exit_code == 1
    [failure] = ElementTree.parse(report).getroot().iter("failure")
    program, *explain = shlex.split(failure.text or "")
    assert program == "mmaprobe"
    [found] = json.loads(run(*explain, "--json").stdout)["evaluations"]
    assert (found["observed"], found["d"]) == ("40000000", "3f800000")


@pytest.mark.parametrize(("change", "message"), [({}, "nothing was compared"), ({"model": 1}, "model")])
def test_junit_of_a_file_that_tests_nothing(tmp_path: Path, change: dict[str, object], message: str) -> None:
    """What is no success is none in the report either: no row has a result, or the file is at fault."""
    rows, report = tmp_path / "rows.jsonl", tmp_path / "report.xml"
    row = {"schema": 1, "model": AMPERE, "a": ["0000"], "b": ["0000"], "c": "00000000"}
    rows.write_text(json.dumps(row | change) + "\n")
    assert run("evaluate", rows, "--junit", report).exit_code == (2 if change else 3)
    root = ElementTree.parse(report).getroot()
    assert (root.get("errors"), root.get("failures")) == ("1", "0")
    assert message in str([error.get("message") for error in root.iter("error")])


def test_a_check_asks_every_vector_again(vectors: Path, tmp_path: Path) -> None:
    """A kernel that was changed in one vector passed, since its answers of before were gone on with."""
    kernel, answers = tmp_path / "kernel.py", tmp_path / "answers.jsonl"
    command = ("run", vectors, "--device", f"python:{kernel}:f", "--check", "-o", answers)
    right = f"import mmaprobe\ndef f(a, b, c):\n    return mmaprobe.matmul(a, b, c, unit={AMPERE!r})\n"
    kernel.write_text(right)
    assert run(*command).exit_code == 0
    kernel.write_text(right.replace(AMPERE, HOPPER))
    changed = run(*command)
    assert changed.exit_code == 1, changed.output
    assert "1 answer of an earlier run replaced: every vector is asked" in changed.output
    assert run("evaluate", answers).exit_code == 1
    kernel.write_text(right)
    assert run(*command).exit_code == 0
    assert len(answers.read_text().splitlines()) == 1
