"""`mmaprobe run` and `mmaprobe device`: answers that are kept, hypotheses that stand, runs that go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.queries.compare.standing import Standings, predictions_of
from mmaprobe.runner.devices import open_device
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector, open_text, read_vectors
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.command_line.test_cli import json_lines, run
from tests.devices.test_devices import ECHO, HEARS_CTRL_C, VOLTA, addends, gone, pids_of, program, write
from tests.places import DATA

pytestmark = pytest.mark.programs

ANY_NAN = VOLTA + "@nan=none"
COUNT = "import pathlib\np = pathlib.Path({!r})\np.write_text(p.read_text() + 'x' if p.exists() else 'x')\n"


def guesses(count: int) -> list[Vector]:
    """Vectors with the result c, which `same` predicts; `other` predicts one more, from the second vector on."""
    predictions = [{"same": f"{c:08x}", "other": f"{c + (c > 0):08x}"} for c in range(count)]
    return [
        replace(vector, extra={"predictions": predictions[vector.line - 1], "question": "mine"})
        for vector in addends(count)
    ]


def content(path: Path) -> list[dict[str, Any]]:
    return json_lines(path.read_text(encoding="utf-8"))


# --- what stands --------------------------------------------------------------------------------------------------


def test_a_question_from_the_solver_to_the_device(tmp_path: Path) -> None:
    vectors, answers = tmp_path / "vectors.jsonl", tmp_path / "answers.jsonl"
    run("distinguish", "truncation-or-toward-zero", "-n", "2", "-o", str(vectors), "--solver", "bitwuzla", code=0)
    result = run("run", str(vectors), "--device", f"model:{VOLTA}", "-o", str(answers), code=0)
    assert result.stdout == ""
    assert "truncation-or-toward-zero: 'truncated' is consistent with 2 of 2 answers" in result.stderr
    first = content(vectors)[0]["predictions"]
    ruled_out = "'properly_rounded' ruled out by vector truncation-or-toward-zero-0: predicted "
    assert f"{ruled_out}{first['properly_rounded']}, device gave {first['truncated']}" in result.stderr
    run("evaluate", str(answers), code=0)
    assert [row["d"] for row in content(answers)] == [row["predictions"]["truncated"] for row in content(vectors)]


def test_answers_go_to_standard_output_as_vectors(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", *guesses(3))
    rows = json_lines(run("run", path, "--device", program(tmp_path, ECHO), code=0).stdout)
    assert [(row["id"], row["d"]) for row in rows] == [(f"v{c}", f"{c:08x}") for c in range(3)]
    assert {row["schema"] for row in rows} == {1}
    assert [vector.d for vector in read_vectors(map(json.dumps, rows), "answers")] == [0, 1, 2]
    origin = rows[0]["provenance"]
    assert origin.keys() == {"device", "mmaprobe", "started", "description"}
    assert origin["device"] == program(tmp_path, ECHO)
    text = Path(path).read_text(encoding="utf-8")
    assert (
        json_lines(run("run", "-", "--device", f"recorded:{DATA / 'recorded.jsonl.gz'}", code=3, stdin=text).stdout)
        == []
    )


def test_json_holds_everything(tmp_path: Path) -> None:
    header = "print(json.dumps({'device': {'name': 'echo'}}), flush=True)\n"
    path = write(tmp_path / "in.jsonl", *guesses(3), replace(addends(1)[0], d=1, id="seen"))
    result = run("run", path, "--device", program(tmp_path, header + ECHO), "--json", code=0)
    document = json.loads(result.stdout)
    assert document["device"]["description"] == {"name": "echo"}
    assert (document["answered"], document["earlier"], document["unanswered"], document["error"]) == (4, 0, [], None)
    [question] = document["questions"]
    assert (question["id"], question["answers"], question["standing"]) == ("mine", 3, ["same"])
    assert question["hypotheses"]["same"] == {"answers": 3, "agree": 3, "ruled_out_by": None}
    seen = {"id": "v1", "line": 2, "predicted": "00000002", "observed": "00000001"}
    assert question["hypotheses"]["other"] == {"answers": 3, "agree": 1, "ruled_out_by": seen}
    assert document["observed_before"]["agree"] == 0
    assert [row["d"] for row in document["vectors"]] == ["00000000", "00000001", "00000002", "00000000"]
    assert document["vectors"][3]["provenance"]["earlier_d"] == "00000001"
    assert "0 of 1 answers agree with the result in the file" in result.stderr
    assert "vector seen: the file has 00000001, device gave 00000000" in result.stderr


def test_noise_fits_no_hypothesis(tmp_path: Path) -> None:
    noise = "for row in rows():\n    random.seed(row['c'])\n    say(row, d=f'{random.getrandbits(32) | 1 << 31:08x}')\n"
    path = write(tmp_path / "in.jsonl", *guesses(20))
    result = run("run", path, "--device", program(tmp_path, noise), "--json", code=0)
    assert (
        "mine: no hypothesis is consistent with the answers; 'same' ruled out by vector v0: predicted 00000000"
        in result.stderr
    )
    assert "no hypothesis predicted the answer to vector v2: device gave " in result.stderr
    assert "20 of 20 answers were predicted by no hypothesis" in result.stderr
    [question] = json.loads(result.stdout)["questions"]
    assert (question["standing"], question["unpredicted"]) == ([], 20)


def take(vector: Vector, d: int) -> Standings:
    standings = Standings()
    standings.take(vector, d)
    return standings


@pytest.mark.parametrize(
    ("reference", "d", "stands"),
    [(VOLTA, 0x7FC00000, False), (VOLTA, 0x7FFFFFFF, True), (ANY_NAN, 0x7FC00000, True), (ANY_NAN, 0x7F800000, False)],
)
def test_nans_are_compared_as_evaluate_does(reference: str, d: int, stands: bool) -> None:
    vector = Vector(parse_reference(reference), Operands((0x7E00,), (0,), 0), extra={"predictions": {"x": "7fffffff"}})
    [question] = take(vector, d).questions.values()
    assert (question.left == ["x"]) == stands
    assert take(replace(vector, d=0x7FFFFFFF, extra={}), d).observed_before().agree == stands


@pytest.mark.parametrize(("d", "left"), [(0x3F800000, ["half"]), (0x3F800001, ["single"]), (0x3F800002, [])])
def test_results_of_other_formats_are_compared_by_value(d: int, left: list[str]) -> None:
    vector = addends(1)[0]
    vector = replace(vector, extra={"predictions": {"half": "3c00", "single": "3f800001"}})
    assert [one.left for one in take(vector, d).questions.values()] == [left]
    zeros = replace(vector, extra={"predictions": {"half": "8000", "single": "80000000"}})
    assert [one.left for one in take(zeros, 0).questions.values()] == [["half"]]


def test_hypotheses_of_the_library_and_references() -> None:
    extra = {
        "question": "truncation-or-toward-zero",
        "predictions": {"truncated": "0", VOLTA: "0" * 8, "third": "0" * 8},
    }
    models = {one.hypothesis: one.model.reference for one in predictions_of(replace(addends(1)[0], extra=extra))}
    assert models[VOLTA] == models["third"] == VOLTA
    assert models["truncated"].startswith("volta/")


@pytest.mark.parametrize("text", [5, None, "xyz", "1000000000000000f", ""])
def test_bad_predictions_are_found_before_they_are_asked(tmp_path: Path, text: Any) -> None:
    first, second, *others = addends(5)
    vector = replace(others[0], extra={"predictions": {"x": text}})
    with pytest.raises(InputError, match="predictions: x: "):
        predictions_of(vector)
    path = write(tmp_path / "in.jsonl", first, second, vector, *others[1:])
    result = run("run", path, "--device", program(tmp_path, ECHO), code=2)
    assert f"error: {path}:3: predictions: x: " in result.stderr
    assert len(json_lines(result.stdout)) == 2


# --- failures, and going on ---------------------------------------------------------------------------------------


def test_a_device_that_dies_loses_nothing_and_the_run_goes_on(tmp_path: Path) -> None:
    """It dies after three answers each time; a line cut short is asked again."""
    asked = tmp_path / "starts"
    name = program(tmp_path, COUNT.format(str(asked)) + "for _, row in zip(range(3), rows()): say(row)\nsys.exit(4)\n")
    path, answers = write(tmp_path / "in.jsonl", *guesses(7)), tmp_path / "answers.jsonl"
    first = run("run", path, "--device", name, "-o", str(answers), "--json", code=3)
    assert "3 vectors answered" in first.stderr
    assert (
        f"error: {path}:4: {name}: ended with exit status 4, without an answer, on vector 4 (id 'v3')" in first.stderr
    )
    assert "'same' is consistent with 3 of 3 answers" in first.stderr
    assert "exit status 4" in json.loads(first.stdout)["error"]
    assert [row["id"] for row in content(answers)] == ["v0", "v1", "v2"]
    with answers.open("a", encoding="utf-8") as stream:
        stream.write('{"schema": 1, "id": "v3", "mod')
    second = run("run", path, "--device", name, "-o", str(answers), code=3)
    assert "3 of 7 vectors were answered by an earlier run" in second.stderr
    assert f"{path}:7: " in second.stderr
    assert [row["id"] for row in content(answers)] == [f"v{c}" for c in range(6)]
    third = run("run", path, "--device", name, "-o", str(answers), code=0)
    assert "6 of 7 vectors were answered" in third.stderr
    assert "'same' is consistent with 7 of 7 answers" in third.stderr
    assert [row["d"] for row in content(answers)] == [f"{c:08x}" for c in range(7)]
    before = answers.read_bytes()
    last = run("run", path, "--device", name, "-o", str(answers), "--json", code=0)
    document = json.loads(last.stdout)
    assert (document["answered"], document["earlier"]) == (7, 7)
    assert answers.read_bytes() == before
    assert asked.read_text(encoding="utf-8") == "x" + "xx" + "xx" + "x"  # one start for the questions, one to ask again


def test_vectors_without_ids_and_repeated_ones_go_on(tmp_path: Path) -> None:
    vectors = [*addends(3, named=False), *addends(2, named=False), addends(1)[0]]
    path, answers = write(tmp_path / "in.jsonl", *vectors), tmp_path / "answers.jsonl"
    name = program(tmp_path, "for _, row in zip(range(4), rows()): say(row)\n")
    run("run", path, "--device", name, "-o", str(answers), code=3)
    assert len(content(answers)) == 4
    answers.write_text(answers.read_text(encoding="utf-8")[:-1], encoding="utf-8")  # a whole line, but for its end
    assert "4 of 6 vectors" in run("run", path, "--device", name, "-o", str(answers), code=0).stderr
    assert [(row.get("id"), row["d"][-1]) for row in content(answers)] == [
        (None, "0"), (None, "1"), (None, "2"), (None, "0"), (None, "1"), ("v0", "0"),
    ]  # fmt: skip


def test_files_that_are_no_answers_stay_as_they_are(tmp_path: Path) -> None:
    path, answers = write(tmp_path / "in.jsonl", *addends(2)), tmp_path / "answers.jsonl"
    name, other = program(tmp_path, ECHO), program(tmp_path, ECHO, "other.py")
    run("run", path, "--device", name, "-o", str(answers), code=0)
    good = answers.read_text(encoding="utf-8")
    elsewhere = write(tmp_path / "else.jsonl", *addends(1))
    for text, arguments, words in (
        (good, [path, "--device", other], f"answered by {name}, not by {other}"),
        (good, [elsewhere, "--device", name], "1 of its answers are to vectors that are not asked"),
        ("notes\n", [path, "--device", name], ":1: not a file of answers"),
        ("notes", [path, "--device", name], ":1: not a file of answers"),
        (Path(path).read_text(encoding="utf-8"), [path, "--device", name], "no `d` with its `provenance`"),
        (good + "{\n" + good, [path, "--device", name], ":3: not a file of answers"),
    ):
        answers.write_text(text, encoding="utf-8")
        result = run("run", *arguments, "-o", str(answers), code=2)
        assert words in result.stderr
        assert answers.read_text(encoding="utf-8") == text
    for target, words in (
        (path, "overwrite"),
        (str(tmp_path / "no/x"), "there is no folder"),
        (str(tmp_path / "x.gz"), ".gz"),
    ):
        assert words in run("run", path, "--device", name, "-o", target, code=2).stderr
    assert "kind of device" in run("run", path, "--device", "x:y", "-o", str(tmp_path / "new"), code=2).stderr
    assert not (tmp_path / "new").exists()


def test_another_machine_behind_the_same_name(tmp_path: Path) -> None:
    path, answers = write(tmp_path / "in.jsonl", *addends(4)), tmp_path / "answers.jsonl"
    header = (
        "print(json.dumps({{'device': {{'name': {!r}}}}}), flush=True)\nfor _, row in zip(range(2), rows()): say(row)\n"
    )
    run("run", path, "--device", program(tmp_path, header.format("one")), "-o", str(answers), code=3)
    result = run("run", path, "--device", program(tmp_path, header.format("two")), "-o", str(answers), code=2)
    assert "the earlier answers are of {'name': 'one'}, now it is {'name': 'two'}" in result.stderr
    assert len(content(answers)) == 2
    run("run", path, "--device", program(tmp_path, header.format("one")), "-o", str(answers), code=0)


def test_recorded_results_as_a_device(tmp_path: Path) -> None:
    source = DATA / "recorded.jsonl.gz"
    with open_text(source) as stream:
        known = [replace(vector, id=k) for k, vector in zip(range(5), read_vectors(stream, ""), strict=False)]
    path, answers = write(tmp_path / "in.jsonl", *known[:3], *addends(1), *known[3:]), tmp_path / "answers.jsonl"
    result = run("run", path, "--device", f"recorded:{source}", "-o", str(answers), "--json", code=3)
    assert f"no answer to 1 of 6 vectors, first {path}:4" in result.stderr
    assert "5 of 5 answers agree with the result in the file" in result.stderr
    assert json.loads(result.stdout)["unanswered"] == [{"id": "v0", "line": 4}]
    again = run("run", path, "--device", f"recorded:{source}", "-o", str(answers), code=3)
    assert "5 of 6 vectors were answered by an earlier run" in again.stderr
    assert len(content(answers)) == 5


@pytest.mark.parametrize("bad", ["{", '{"model": "volta"}'])
def test_bad_input_keeps_what_was_answered(tmp_path: Path, bad: str) -> None:
    path, answers = Path(write(tmp_path / "in.jsonl", *addends(2))), tmp_path / "answers.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + bad + "\n", encoding="utf-8")
    for name in (program(tmp_path, ECHO), f"model:{VOLTA}"):
        answers.unlink(missing_ok=True)
        assert f"error: {path}:3: " in run("run", str(path), "--device", name, "-o", str(answers), code=2).stderr
        assert len(content(answers)) == 2
    odd = write(tmp_path / "odd.jsonl", *addends(1), *addends(2, "volta/mma/m8n8k4.f16.f16.f16.f16")[1:])
    assert (
        f"error: {odd}:2: {VOLTA} takes other formats" in run("run", odd, "--device", f"model:{VOLTA}", code=2).stderr
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_ctrl_c_and_kill_keep_the_answers_and_leave_nothing(tmp_path: Path, name: str) -> None:
    tell = f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}}\\n')\n"
    body = "for _, row in zip(range(3), rows()): say(row)\ntime.sleep(0.3)\n" + tell + "time.sleep(60)\n"
    path, answers = write(tmp_path / "in.jsonl", *guesses(9)), tmp_path / "answers.jsonl"
    words = ["run", path, "--device", program(tmp_path, body), "-o", str(answers)]
    code = f"{HEARS_CTRL_C}\nimport sys\nsys.argv[1:] = {words!r}\nfrom mmaprobe.cli.entry import main\nmain()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as ours:
        pids = pids_of(tmp_path / "pids")
        os.killpg(ours.pid, signal.Signals[name])
        _, predictions = ours.communicate(timeout=10)
    assert gone(pids)
    assert len(content(answers)) == 3
    if name != "SIGKILL":
        assert ours.returncode == 3
        assert "'same' is consistent with 3 of 3 answers" in predictions
        assert "interrupted" in predictions
        assert "Traceback" not in predictions


def test_an_error_of_the_vectors_comes_after_the_answers_before_it(tmp_path: Path) -> None:
    def cut() -> Iterator[Vector]:
        yield from addends(5)
        raise InputError("here")

    for name in (f"model:{VOLTA}", program(tmp_path, ECHO)):
        got: list[int | None] = []
        with open_device(name) as device, pytest.raises(InputError, match="here"):
            got.extend(d for _, d in device.answers(cut()))
        assert got == list(range(5))


def test_rows_of_two_functions_are_asked_with_their_formats(tmp_path: Path) -> None:
    """`compare` of two functions writes rows that name no model."""
    (tmp_path / "f.py").write_text(
        "import numpy as np\ndef one(a, b):\n    return np.float32(a) @ np.float32(b)\n"
        "def two(a, b):\n    return np.float32(a) @ np.float32(b) + np.float32(1)\n"
    )
    one, two = (f"python:{tmp_path}/f.py:{name}" for name in ("one", "two"))
    formats, rows, answers = (
        ["--formats", "f16,f16,f32", "--length", "3"],
        tmp_path / "rows.jsonl",
        tmp_path / "d.jsonl",
    )
    run("compare", one, two, *formats, "--samples", "16", "-o", str(rows), code=0)
    assert (
        "name in the row the instruction that it is for, or give --formats and --length"
        in run("run", str(rows), "--device", two, code=2).stderr
    )
    for earlier in ("", "vectors were answered by an earlier run"):
        done = run("run", str(rows), "--device", two, *formats, "-o", str(answers), code=0)
        assert f"'{two}' is consistent with" in done.stderr
        assert earlier in done.stderr
    assert (
        "a: 3 elements, but the model has 2 products"
        in run("run", str(rows), "--device", two, "--formats", "f16,f16,f32", "--length", "2", code=2).stderr
    )
    assert "go together" in run("run", str(rows), "--device", two, "--length", "3", code=2).stderr
    assert "have no answers of their own" in run("run", str(rows), "--device", two, *formats, "--check", code=2).stderr
