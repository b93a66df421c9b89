"""`mmaprobe compare`: two devices distinguished, by small vectors that say why; matrices down to a few terms."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import mmaprobe
from mmaprobe.queries.compare.asked_rows import all_rows, row_of, special_value_rows
from mmaprobe.queries.compare.devices import REPEATS, ComparedDevice, Comparison, Pair, compared_model
from mmaprobe.queries.compare.gemm import Matrices, _narrow, differing_elements, traced
from mmaprobe.queries.covering.cover import Change, Covering
from mmaprobe.queries.covering.neighbour_rows import NeighbourRows
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.plans import results as plan_results
from mmaprobe.queries.plans.candidates import Candidates
from mmaprobe.queries.plans.forms import forms_of
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Row, replay
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import IncompleteError, OutOfTimeError
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import in_f64, to_numbers
from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import Vector, open_text, read_vectors
from mmaprobe.smtmodel.nodes import Constant
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Plan, Products
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.joins import Promote
from mmaprobe.smtmodel.plans.named import in_runs, interleaved, promoted
from mmaprobe.smtmodel.plans.partitions import Runs
from mmaprobe.smtmodel.plans.stages import parts_of
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.command_line.test_cli import json_lines, run
from tests.devices.test_devices import ECHO, VOLTA, program, write
from tests.places import DATA, ROOT

pytestmark = pytest.mark.solvers

COARSE = f"{VOLTA}@fraction_bits=24"
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
TURING = "turing/mma/m16n8k8.f32.f16.f16.f32"
FMA16 = "ieee/fma/f32.f16.f16.f32"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two instructions of the recordings, which take the same formats."""
    path, gpus = tmp_path_factory.mktemp("recorded") / "two.jsonl", re.compile('"(A100|H100)"')
    with open_text(DATA / "recorded.jsonl.gz") as stream:
        rows = [line for line in stream if '"m16n8k16.f32.f16.f16.f32"' in line and gpus.search(line)]
    path.write_text("".join(rows), encoding="utf-8")
    return f"recorded:{path}"


def served(reference: str) -> str:
    return "command:" + shlex.join([sys.executable, "-m", "mmaprobe.cli.main", "device", reference])


def compared(*arguments: str, code: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("compare", *arguments, "--json", code=code).stdout)
    return document


def questions(document: dict[str, Any]) -> dict[str, tuple[set[str], set[str]]]:
    """The questions that explain everything: the hypotheses that agree with all answers of each device."""
    found = {}
    for one in document["questions"]:
        if one["complete"]:
            sides = [{h["hypothesis"] for h in one[s] if h["agree"] == h["answers"]} for s in ("first", "second")]
            found[one["id"]] = (sides[0], sides[1])
    return found


def best(document: dict[str, Any], side: str) -> list[str]:
    """The changes that give every difference, and every other answer."""
    return [one["change"] for one in document["common_changes"][side] if one["agree"] == one["answers"]]


def replayed(document: dict[str, Any], first: str, second: str) -> None:
    """Every difference, computed again here."""
    for one in document["differences"]:
        parts = one["operands"]
        operands = Operands(*(tuple(int(x, 16) for x in parts[side]) for side in "ab"), int(parts["c"], 16))
        found = [f"{evaluate_row(parse_reference(reference), operands):08x}" for reference in (first, second)]
        assert found == [one["results"]["first"], one["results"]["second"]]
        assert found[0] != found[1]


# --- devices ------------------------------------------------------------------------------------------------------


def test_two_models_one_parameter_apart(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    document = compared(f"model:{VOLTA}", f"model:{COARSE}", "-o", str(path), code=0)
    assert document["verdict"] == "different"
    assert len(document["differences"]) == 3
    replayed(document, VOLTA, COARSE)
    terms = [one["terms"] for one in document["differences"]]
    assert (min(terms), max(terms) <= 3) == (2, True), terms  # some kinds of difference need a third term
    assert len({json.dumps(one["exercises"]) for one in document["differences"]}) > 1
    assert (best(document, "first"), best(document, "second")) == (["fraction_bits=24"], ["fraction_bits=23"])
    assert questions(document)["alignment-bits"] == ({"f23"}, {"f24"})
    near = document["differences"][0]["neighbours"]["first"][0]
    assert (near["parameter"], near["value"], near["first_divergence"]["stage"]) == ("fraction_bits", "24", "alignment")
    rows = json_lines(path.read_text(encoding="utf-8"))
    assert [row["predictions"].keys() for row in rows] == [{f"model:{VOLTA}", f"model:{COARSE}"}] * 3
    assert all(row["question"] in questions(document) for row in rows)
    answers = run("run", str(path), "--device", f"model:{COARSE}", code=0)
    assert f"'model:{COARSE}' is consistent with 3 of 3 answers" in answers.stderr
    assert f"'model:{VOLTA}' ruled out" in answers.stderr


def test_text_and_vectors_on_standard_output() -> None:
    result = run("compare", f"model:{VOLTA}", f"model:{COARSE}", "-n", "1", code=0)
    [row] = json_lines(result.stdout)
    assert row["a"][0] != "0000"
    assert "fraction_bits=24 in the first model gives the second's result; first divergence: alignment" in result.stderr
    assert "that explain the difference above (answers reproduced): fraction_bits=24 (" in result.stderr
    assert "alignment-bits (1 of 1): How many bits" in result.stderr


def test_the_reason_in_one_sentence(recorded: str) -> None:
    """One change of a model, one question of the library, or what comes nearest; it is before everything else."""
    first, second = f"model:{VOLTA}", f"model:{COARSE}"
    answers = compared(first, second, code=0)
    sentence = (
        r"the devices differ by fraction_bits=24: with this change the first model gives all \d+ answers of the second"
    )
    assert re.fullmatch(sentence, answers["reason"])
    assert run("compare", first, second, code=0).stderr.startswith(answers["reason"])
    assert compared(first, first, code=1)["reason"] is None
    other = compared(f"model:{AMPERE}", f"model:{HOPPER}", code=0)["reason"]
    assert other.startswith(
        "the first has fraction_bits=24, the second fraction_bits=25: the devices agree with 'f24' and 'f25' of "
        "alignment-bits"
    )
    odd = compared(f"model:{VOLTA}@output_rounding=up,product=normalised,fraction_bits=21", first, code=0)["reason"]
    assert odd.startswith("no single change that was tried")


def test_few_answers_name_no_reason_that_others_give_too(tmp_path: Path) -> None:
    """Recordings of one input, which rounding down on CDNA3 would explain as well as a bit of alignment."""
    row = {"a": ["4c00"], "b": ["3c00"], "c": "b7080000"}
    files = []
    for name, model in (("one", AMPERE), ("other", HOPPER)):
        vectors, answers = tmp_path / f"{name}-in.jsonl", tmp_path / f"{name}.jsonl"
        vectors.write_text(json.dumps({"model": AMPERE, **row}) + "\n", encoding="utf-8")
        run("run", str(vectors), "--device", f"model:{model}", "-o", str(answers), code=0)
        files.append(f"recorded:{answers}")
    reason = compared(*files, code=0)["reason"]
    assert reason.startswith("too few answers to say why the devices differ: ")
    assert {"alignment-bits", "xie-asymmetry"} <= set(re.findall(r"[\w-]+", reason))


def test_recordings_that_name_no_instruction_take_the_one_asked_for(tmp_path: Path) -> None:
    names = []
    for name, d in (("one", "3f800001"), ("other", "3f800002")):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps({"a": ["3c00", "3c00"], "b": ["3c00", "0003"], "c": "00000000", "d": d}))
        names.append(f"recorded:{path}")
    assert "one.jsonl:1: model: this field is missing" in run("compare", *names, code=2).stderr
    document = compared(*names, "--model", HOPPER, code=0)
    assert (document["compared"], document["different"]) == (1, 1)
    document = compared(names[0], f"model:{HOPPER}", code=1)  # that of the other device
    assert (document["compared"], document["different"]) == (1, 0)


def test_a_change_is_the_reason_only_if_no_other_one_is(tmp_path: Path) -> None:
    """One answer: all changes that give it are named."""
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"a": ["3c00", "3c00"], "b": ["3c00", "0003"], "c": "00000000", "d": "3f800002"}))
    reason = compared(f"recorded:{path}", f"model:{HOPPER}", code=0)["reason"]
    start, _, rest = reason.partition(": with any of these changes the second model gives the one answer of the first")
    assert rest == ""
    changes = [f"output_rounding={mode}" for mode in ("nearest_even", "nearest_away", "up")]
    assert start.removeprefix("the devices differ by ").split(" or ") == changes


def test_every_difference_counts_for_the_reason(tmp_path: Path) -> None:
    """The first difference looks like a zero of the other sign; the rest of the batch, beyond the answers that are
    kept, shows rounded products."""
    path = tmp_path / "rounded.py"
    path.write_text(
        "import numpy as np\n"
        "def matmul(a, b, c):\n"
        "    with np.errstate(all='ignore'):\n"
        "        for k in range(a.shape[1]):\n"
        "            c = c + a[:, k : k + 1] * b[k : k + 1]\n"
        "    return c\n"
    )
    sides = f"python:{path}:matmul", "model:ieee/fma/f32@length=4"
    document = compared(*sides, "-n", "200", "--samples", "200", code=0)
    whole = [one for one in document["common_changes"]["second"] if one["agree"] == one["answers"]]
    assert [one["change"] for one in whole] == ["product=rounded_f32"]
    assert document["compared"] > whole[0]["answers"] > 512 + document["different"] // 2


def test_every_row_of_two_recordings_counts_for_the_reason(tmp_path: Path) -> None:
    """The last rows of the second recording are of another unit, which the rows before them do not show."""
    rng, vectors = np.random.default_rng(5), tmp_path / "vectors.jsonl"
    sides = rng.standard_normal((200, 2, 16)).astype(np.float16).view(np.uint16).tolist()
    rows = [{"a": [f"{x:04x}" for x in a], "b": [f"{x:04x}" for x in b], "c": "42c80000"} for a, b in sides]
    vectors.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    answers = {}
    for name, model in (("first", AMPERE), ("second", HOPPER), ("last", "cdna1/mfma/f32_16x16x16f16")):
        path = tmp_path / f"{name}.jsonl"
        run("run", str(vectors), "--device", f"model:{model}", "-o", str(path), code=0)
        answers[name] = path.read_text(encoding="utf-8").splitlines(keepends=True)
    alone = f"recorded:{tmp_path / 'first.jsonl'}", f"recorded:{tmp_path / 'second.jsonl'}"
    found = compared(*alone, "-n", "1", code=0)
    apart = "the first has block=8, fraction_bits=24, exponent_floor=-132, the second block=16, fraction_bits=25"
    assert found["reason"].startswith(apart)
    assert re.search(
        r": the devices agree with 'ada' and 'hopper' of f16-ada-hopper \(.*\) in all 200 answers$", found["reason"]
    )
    last = [json.dumps(json.loads(line) | {"model": HOPPER}) + "\n" for line in answers["last"][150:]]
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("".join([*answers["second"][:150], *last]), encoding="utf-8")
    found = compared(alone[0], f"recorded:{mixed}", "-n", "1", code=0)
    assert found["compared"] == 200
    assert (
        found["reason"]
        == "no single change that was tried, and no question of the library, explains the differences below"
    )


def test_without_a_vector_answered_by_both_nothing_is_compared(recorded: str, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"model": HOPPER, "a": ["3c00"], "b": ["3c00"], "c": "00000001", "d": "3f800000"}))
    assert "nothing was compared" in run("compare", recorded, f"recorded:{path}", "--model", AMPERE, code=3).stderr


def test_recordings_without_a_common_vector_are_told_apart_by_hypotheses() -> None:
    both = [f"recorded:{DATA / 'recorded.jsonl.gz'}@{gpu}" for gpu in ("A100", "H100")]
    document = compared(*both, "--model", AMPERE, code=3)
    assert (document["verdict"], document["compared"]) == ("not compared", 0)
    assert "'one_less' (" in document["reason"]
    assert "predicts all 500 answers of the first and not those of the second" in document["reason"]
    assert "no vector was answered by both; the reason above" in document["error"]
    back = compared(*reversed(both), "--model", HOPPER, code=3)
    assert [one["id"] for one in back["questions"]] == [one["id"] for one in document["questions"]]
    for one in document["questions"]:
        (found,) = (other for other in back["questions"] if other["id"] == one["id"])
        assert (found["first"], found["second"]) == (one["second"], one["first"])
    alike = [f"recorded:{DATA / 'recorded.jsonl.gz'}@{gpu}" for gpu in ("H100", "B200")]
    assert "no question of the library" in compared(*alike, "--model", HOPPER, code=3)["reason"]
    absent = run("compare", both[0], both[1] + "0", "--model", AMPERE, code=2)
    assert "no row has an observed result `d` of H1000" in absent.stderr


def test_a_file_of_vectors_that_is_not_there() -> None:
    result = run("compare", f"model:{VOLTA}", f"model:{COARSE}", "--vectors", "none.jsonl", code=2)
    assert result.stderr == "error: none.jsonl: no such file\n"


def test_a_program_against_a_model() -> None:
    document = compared(served(COARSE), f"model:{VOLTA}", "-n", "1", code=0)
    replayed(document, COARSE, VOLTA)
    assert best(document, "second") == ["fraction_bits=24"]
    assert document["common_changes"]["first"] == []
    assert document["devices"][0]["description"]["model"] == COARSE
    assert document["devices"][0]["asked"] < 3000


def test_programs_need_a_model_and_agree() -> None:
    names = [served(VOLTA), served(f"{VOLTA}@product=normalised")]
    without = run("compare", *names, code=2).stderr
    assert "neither device says the formats and the length of its vectors: compare DEVICE DEVICE --formats" in without
    document = compared(*names, "--model", VOLTA, "-n", "1", code=0)
    assert questions(document)["products-normalised"] == ({"unnormalised"}, {"normalised"})
    same = run("compare", names[0], names[0], "--model", VOLTA, "--samples", "0", code=1)
    assert "vectors answered by both; this is not a proof" in same.stderr
    assert "mmaprobe prove" not in same.stderr
    one = run("compare", f"model:{VOLTA}", names[0], "--samples", "0", code=1)
    assert f"vectors that reach every case: mmaprobe cover {VOLTA}, " in one.stderr
    assert same.stdout == ""


FUNCTIONS = """import numpy as np

def one(a, b):
    with np.errstate(all="ignore"):
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for k in range(a.shape[1]):
            total += np.multiply.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
        return total

def halves(a, b):
    with np.errstate(all="ignore"):
        half = a.shape[1] // 2
        return one(a[:, :half], b[:half]) + one(a[:, half:], b[half:])

def added(a, b, c):
    return one(a, b) + c
"""


@pytest.fixture
def functions(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "runs.py"
    file.write_text(FUNCTIONS)
    return {name: f"python:{file}:{name}" for name in ("one", "halves", "added")}


@pytest.mark.parametrize("length", [24, 5])
def test_two_functions_need_formats_and_a_length_alone(functions: dict[str, str], length: int) -> None:
    asked = ("--formats", "f16,f16,f32", "--length", str(length), "-n", "1")
    document = compared(functions["one"], functions["halves"], *asked, code=0)
    (found,) = document["differences"]
    assert (len(found["operands"]["a"]), found["operands"]["c"]) == (length, "00000000")
    first, second = (int(found["results"][side], 16) for side in ("first", "second"))
    a, b = (np.array([int(x, 16) for x in found["operands"][side]], np.uint16).view(np.float16) for side in "ab")
    scope: dict[str, Any] = {}
    exec(FUNCTIONS, scope)
    again = [scope[name](a[None], b[:, None]).view(np.uint32).item() for name in ("one", "halves")]
    assert again == [first, second]
    assert first != second
    same = run("compare", functions["one"], functions["one"], *asked, "--samples", "50", "--expect", "same", code=0)
    assert "vectors answered by both; this is not a proof" in same.stderr
    four = ("--formats", "f16,f16,f32,f32", "--length", str(length), "-n", "1")
    document = compared(functions["added"], functions["added"], *four, "--samples", "50", code=1)
    assert document["differences"] == []


@pytest.mark.parametrize(("arguments", "message"), [
    (["one", "halves", "--formats", "f16,f16,f32"], "Missing option '--length': compare DEVICE DEVICE --formats A,B,D"),
    (["one", "halves", "--length", "8"], "Missing option '--formats': compare DEVICE DEVICE --formats A,B,D"),
    (["--gemm", "one", "halves", "--formats", "f16,f16,f32"], "is a device. --gemm takes four files, before devices"),
    (["--gemm", "a.npy", "b.npy", "one", "halves"], "without files: compare DEVICE DEVICE --formats A,B,D --length K"),
    (["one", f"model:{VOLTA}", "--formats", "f16,f16,f32,f32", "--length", "4"], "leave out --formats"),
    (["one", "halves", "--model", VOLTA, "--length", "4", "--formats", "f16,f16,f32"], "leave out --formats"),
    (["--gemm", "a.npy", "b.npy", "d.npy", "d2.npy", "--length", "4"], "the matrices have their products"),
])  # fmt: skip
def test_other_ways_to_compare_two_functions_name_the_one(
    functions: dict[str, str], arguments: list[str], message: str
) -> None:
    assert message in run("compare", *(functions.get(one, one) for one in arguments), code=2).stderr


def test_equal_models_are_no_proof() -> None:
    result = run("compare", f"model:{AMPERE}", f"model:{AMPERE}", "--samples", "100", code=1)
    assert "no difference in " in result.stderr
    assert f"mmaprobe prove {AMPERE} {AMPERE}" in result.stderr


def test_a_recording_against_the_right_and_a_wrong_model(recorded: str) -> None:
    right = compared(recorded, f"model:{AMPERE}", code=1)
    assert (right["compared"], right["verdict"]) == (500, "no difference")
    wrong = compared(f"model:{AMPERE}@fraction_bits=23", recorded, "-n", "2", code=0)
    assert best(wrong, "first") == ["fraction_bits=24"]
    with open_text(DATA / "recorded.jsonl.gz") as stream:
        known = {v.operands.a for v in read_vectors(stream, "recorded") if v.model.reference == AMPERE}
    for one in wrong["differences"]:
        assert tuple(int(x, 16) for x in one["operands"]["a"][:8]) in known


def test_a_recording_of_several_instructions_needs_one(recorded: str) -> None:
    other = f"model:{AMPERE}".replace("ampere", "blackwell")
    assert "holds several instructions: " in run("compare", recorded, other, code=2).stderr
    listed = f"holds several instructions ({AMPERE}, {HOPPER}): choose one"
    assert listed in run("identify", "nvidia-f16", "--device", recorded, code=2).stderr
    assert compared(recorded, other, "--model", HOPPER, code=1)["compared"] == 500
    assert "no result for the formats" in run("compare", recorded, "model:cdna1/mfma/f32_16x16x4f32", code=2).stderr


NOISE = f"""sys.path.insert(0, {str(ROOT)!r})
random.seed(3)
for row in rows(): say(row, d=f'{{int(row["c"], 16) ^ random.getrandbits(1):08x}}')
"""


def test_noise_is_no_difference(tmp_path: Path) -> None:
    noisy, quiet = program(tmp_path, NOISE), program(tmp_path, ECHO, "quiet.py")
    result = run("compare", noisy, quiet, "--model", VOLTA, "--samples", "0", "--json", code=3)
    document = json.loads(result.stdout)
    assert (document["verdict"], document["differences"]) == ("unstable", [])
    assert document["different"] > 100
    assert {one["device"] for one in document["contradictions"]} == {noisy}
    assert f"{noisy} contradicts itself" in result.stderr


def test_a_rare_glitch_does_not_hide_a_difference(tmp_path: Path) -> None:
    glitch = "for n, row in enumerate(rows()): say(row, d='7f000000' if n == 5 else f'{int(row[\"c\"], 16) ^ 2:08x}')\n"
    names = [program(tmp_path, glitch), program(tmp_path, ECHO, "quiet.py")]
    document = compared(*names, "--model", VOLTA, "-n", "1", "--samples", "0", code=0)
    [one] = document["differences"]
    assert int(one["results"]["first"], 16) ^ int(one["results"]["second"], 16) == 2
    assert one["terms"] == 0


@pytest.mark.parametrize("after", [10, 500])
def test_a_device_that_fails_keeps_what_was_found(tmp_path: Path, after: int) -> None:
    dies = f"for n, row in enumerate(rows()):\n    if n == {after}: sys.exit('out of order')\n    say(row)\n"
    path = tmp_path / "found.jsonl"
    result = run("compare", program(tmp_path, dies), f"model:{VOLTA}", "-n", "50", "-o", str(path), "--json", code=3)
    document = json.loads(result.stdout)
    assert "out of order" in document["error"]
    assert bool(document["differences"]) == (after > 128)
    assert path.exists() == (after > 128)


def test_nan_and_zero_are_compared_as_elsewhere() -> None:
    names = f"model:{VOLTA}", f"model:{VOLTA}@zero_sign=ieee"
    document = compared(*names, "-n", "1", code=0)
    assert {one["results"]["second"] for one in document["differences"]} == {"80000000"}
    assert compared(*names, "--compare", "value", "--samples", "0", code=1)["compare"] == "value"
    quiet = f"model:{VOLTA}@nan=7fc00000"
    assert compared(names[0], quiet, "-n", "1", code=0)["differences"][0]["results"]["second"] == "7fc00000"
    assert compared(names[0], f"model:{VOLTA}@nan=none", "--samples", "0", code=1)["differences"] == []


def test_lengths_and_formats(tmp_path: Path) -> None:
    document = compared(f"model:{VOLTA}", f"model:{TURING}", "-n", "1", code=0)
    assert questions(document)["f16-volta-turing"] == ({"volta"}, {"turing"})
    for bad in ("model:ampere/mma/m16n8k8.f32.tf32.tf32.f32", f"model:{VOLTA}@output=f16"):
        run("compare", f"model:{VOLTA}", bad, code=2)
    for words in ([VOLTA], ["model:a/b/c", "model:" + VOLTA], ["model:" + VOLTA], []):
        run("compare", *words, code=2)


def test_vectors_of_a_file_come_first(tmp_path: Path) -> None:
    vector = Vector(parse_reference(VOLTA), Operands((0x3C00,), (0x8001,), 0x3F800000))
    path = write(tmp_path / "mine.jsonl", vector)
    document = compared(f"model:{VOLTA}", f"model:{COARSE}", "--vectors", path, "-n", "1", code=0)
    assert document["differences"][0]["operands"]["b"][0] == "8001"
    odd = write(tmp_path / "odd.jsonl", Vector(parse_reference("ieee/fma/f32"), Operands((0,), (0,), 0)))
    assert f"{odd}:1: " in run("compare", f"model:{VOLTA}", f"model:{COARSE}", "--vectors", odd, code=2).stderr


def test_scale_factors() -> None:
    reference = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
    document = compared(f"model:{reference}", f"model:{reference}@fraction_bits=34", "-n", "1", code=0)
    assert questions(document)["nvfp4-fraction-bits"][1] == {"f34"}
    assert len(document["differences"][0]["vector"]["scale_a"]) == 4


def counted(reference: str, most: int) -> tuple[ComparedDevice, list[int]]:
    """A device that is asked again, how often it was called, and fails after that many calls."""
    model, calls = parse_reference(reference), [0]
    inner = compared_model(model)

    def ask(vectors: Sequence[Vector]) -> Sequence[int | None]:
        calls[0] += 1
        if calls[0] > most:
            raise IncompleteError("worn out")
        return inner.ask(vectors)

    return ComparedDevice("counted", model, ask), calls


def test_a_slow_device_is_asked_in_few_batches() -> None:
    side, calls = counted(COARSE, 1000)
    pair = Pair(compared_model(parse_reference(VOLTA)), side)
    comparison = Comparison(6)
    comparison.run(pair, all_rows(pair.layout, side.model, 500), 500)
    assert comparison.done
    assert len({one.kind for one in comparison.differences}) == 6
    assert calls[0] < 250


DOT6 = """unit: dot6
formats: {a: e3m2, b: e3m2, c: none, d: f16}
length: 4
roundings: {r: "round(f16, nearest_even, zero=positive)"}
steps: {d: "r(fused(a[0:4] * b[0:4], F=8))"}
"""


def test_a_device_beside_a_model_is_asked_what_shows_each_change_of_one_parameter(tmp_path: Path) -> None:
    """Here that zeros count in the alignment, which few random vectors show."""
    own, other = tmp_path / "own.yaml", tmp_path / "other.yaml"
    own.write_text(DOT6)
    other.write_text(DOT6.replace("a[0:4] * b[0:4]", "counting(a[0:4] * b[0:4])"))
    result = run("compare", f"model:{own}", f"model:{other}", code=0)
    assert "by zeros_count=products: with this change the first model" in result.stderr
    words = f"show {own} --change zeros_count=products"
    assert f"for unit files alone, not for references: zeros_count=products, as in `mmaprobe {words}`" in result.stderr
    changed = tmp_path / "changed.yaml"
    changed.write_text(run(*words.split(), code=0).stdout)
    run("prove", str(changed), str(other), code=0)


def test_changes_that_no_reference_expresses_lead_to_a_unit_file(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(DOT6)
    said = run("prove", f"{own}@zeros_count=products", str(own), code=2).stderr
    assert f"change its text, or save what `mmaprobe show {own} --change zeros_count=products` prints" in said
    said = run("prove", f"{AMPERE}@zeros_count=products", AMPERE, code=2).stderr
    assert "`mmaprobe show MODEL --change NAME=VALUE` prints its unit file" in said
    assert "--change" not in run("prove", f"{AMPERE}@cary_bits=3", AMPERE, code=2).stderr
    said = run("show", str(own), "--change", "zeros_counts=products", code=2).stderr
    assert "did you mean 'zeros_count=products'?" in said
    assert "counting(a[i + j] * b[i + j])" in run("show", AMPERE, "--change", "zeros_count=products", code=0).stdout
    assert "change its text" in run("show", "plan:cublas/split-k", "--change", "x=1", code=2).stderr


def test_solvers_are_asked_for_changes_that_no_sample_shows() -> None:
    """Whatever `cover` can tell from a model, what `compare` asks tells from it."""
    model = Model("own.yaml", parse_unit(DOT6, "own.yaml"))
    pair = Pair(compared_model(model), compared_model(model))
    near = NeighbourRows([model], pair.layout, time.monotonic() + 120, lambda text: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Covering, "samples", lambda self: iter(()))
        assert not list(near.sampled())
        rows = np.array(list(near.solved()), dtype=np.uint64)
    assert not near.open
    cover = Covering(model, False, cases=False).run(Options(timeout=60))
    shown = [change for change in cover.counts if isinstance(change, Change) and cover.counts[change]]
    assert len(shown) > 20
    for change in shown:
        assert replay(Problem(model, change.model), rows).differs.any(), change.name


def test_vectors_that_are_chosen_again_are_counted(tmp_path: Path) -> None:
    """Of 4000 random vectors of narrow formats, many are the same; what is asked, and what is not, adds up."""
    own = tmp_path / "own.yaml"
    own.write_text(DOT6)
    numbers = []
    for count in ("0", "4000"):
        said = run("compare", f"model:{own}", f"model:{own}", "--samples", count, code=1).stderr
        numbers.append([int(number) for words in ("in ([0-9]+) vectors answered", "\n([0-9]+) of those chosen")
                        for number in re.findall(words, said)])  # fmt: skip
    assert sum(numbers[1]) - sum(numbers[0]) == 4000


def test_changes_that_stay_open_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaprobe.queries.covering.neighbour_rows.UNLIMITED_SECONDS", 0.0)
    result = run("compare", f"model:{AMPERE}", f"model:{AMPERE}", "--samples", "10", code=1)
    assert "nor a proof that none does: carry_bits=5, " in result.stderr


def test_a_device_that_fails_while_a_difference_is_made_small() -> None:
    side, _ = counted(COARSE, 2 + REPEATS)  # the batch, and every question asked again
    pair, comparison = Pair(side, compared_model(parse_reference(VOLTA))), Comparison(1)
    with pytest.raises(IncompleteError, match="worn out"):
        comparison.run(pair, all_rows(pair.layout, side.model, 500), 500)
    [one] = comparison.differences
    assert one.row == one.first


def test_what_was_found_when_the_time_ends_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a difference is made small, the larger one stays; before, the vectors that were asked are counted."""
    pair = Pair(compared_model(parse_reference(COARSE)), compared_model(parse_reference(VOLTA)))
    comparison, now = Comparison(1, until=10.0), [0.0]
    monkeypatch.setattr("mmaprobe.queries.compare.devices.time.monotonic", lambda: now[0])
    shrunk = Comparison._smaller

    def late(self: Comparison, *rest: Any) -> Row | None:
        now[0] = 11.0
        return shrunk(self, *rest)

    monkeypatch.setattr(Comparison, "_smaller", late)
    with pytest.raises(OutOfTimeError, match="the time ran out while a difference was minimised"):
        comparison.run(pair, all_rows(pair.layout, pair.left.model, 500), 500)
    [one] = comparison.differences
    assert one.row == one.first
    with pytest.raises(OutOfTimeError, match="ran out after 0 of about 500 vectors"):
        Comparison(1, until=10.0).run(pair, all_rows(pair.layout, pair.left.model, 500), 500)
    monkeypatch.undo()
    message = run("compare", f"model:{VOLTA}", f"model:{COARSE}", "--timeout", "1e-9", code=3).stderr
    assert "the time ran out after 0 of about" in message


def test_rows_of_shorter_and_longer_inputs() -> None:
    layout = layout_of(parse_reference(VOLTA))
    assert row_of(Operands((1,), (2,), 3), layout) == (1, 0, 0, 0, 2, 0, 0, 0, 3)
    assert row_of(Operands((1,) * 5, (0,) * 5, 3), layout) is None
    assert row_of(Operands((1, 0, 0, 0, 0), (0,) * 5, 3), layout) is not None


# --- matrices -----------------------------------------------------------------------------------------------------

K = 200


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A, B, C, and D as three models have it."""
    rng = np.random.default_rng(5)
    sides: dict[str, NDArray[Any]] = {
        "a": rng.standard_normal((6, K)).astype(np.float16),
        "b": rng.standard_normal((K, 5)).astype(np.float16),
        "c": rng.standard_normal((6, 5)).astype(np.float32),
    }
    patterns = [sides[name].view(f"u{sides[name].dtype.itemsize}") for name in "abc"]
    for name, reference in (("hopper", HOPPER), ("coarse", f"{HOPPER}@fraction_bits=23"), ("turing", TURING)):
        model = parse_reference(reference)
        sides[name] = to_numbers(simulate(*patterns, model), model.d)
    for name, matrix in sides.items():
        np.save(tmp_path / f"{name}.npy", matrix)
    return {name: str(tmp_path / f"{name}.npy") for name in sides}


def gemm(files: dict[str, str], one: str, two: str) -> list[str]:
    return ["--gemm", files["a"], files["b"], files[one], files[two], "--c", files["c"]]


def test_two_functions_have_the_formats_of_the_files(tmp_path: Path) -> None:
    """Without a model the types of the files, or --formats, say the formats; each dot product is asked whole."""
    (tmp_path / "two.py").write_text(
        "import numpy as np\n\n\ndef up(a, b, c):\n    s = c\n    for k in range(a.shape[1]):\n"
        "        s = s + np.outer(a[:, k], b[k])\n    return s\n\n\n"
        "def down(a, b, c):\n    return up(a[:, ::-1], b[::-1], c)\n"
    )
    rng, names = np.random.default_rng(4), ("a", "b", "up", "down", "c")
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((8, 40), (40, 8), (8, 8)))
    functions: dict[str, Any] = {}
    exec((tmp_path / "two.py").read_text(), functions)
    for name, matrix in zip(names, (a, b, functions["up"](a, b, c), functions["down"](a, b, c), c), strict=True):
        np.save(tmp_path / f"{name}.npy", matrix)
    *sides, addend = (str(tmp_path / f"{name}.npy") for name in names)
    devices = [f"python:{tmp_path}/two.py:{name}" for name in ("up", "down")]
    document = compared("--gemm", *sides, "--c", addend, *devices, code=0)
    again = document["gemm"]["computed_again"]
    assert again["first"] == again["second"] == again["elements"] > 0
    assert document["gemm"]["products"] == [0, 40]
    [one] = document["differences"]
    assert one["results"]["first"] != one["results"]["second"]
    formats = ["--formats", "f16,f16,f16,f16"]
    assert compared("--gemm", *sides, "--c", addend, *devices, *formats, code=0)["differences"] == [one]
    words = ["--gemm", *sides, "--c", addend, devices[0], "model:ieee/fma/f16", *formats]
    assert "leave out --formats" in run("compare", *words, code=2).stderr


def test_matrices_of_two_devices(files: dict[str, str]) -> None:
    coarse = f"{HOPPER}@fraction_bits=23"
    document = compared(*gemm(files, "hopper", "coarse"), f"model:{HOPPER}", served(coarse), code=0)
    found, [one] = document["gemm"], document["differences"]
    d = [np.load(files[name]) for name in ("hopper", "coarse")]
    assert (found["differing"], found["elements"]) == (int((d[0] != d[1]).sum()), 30)
    ulps = np.abs(d[0].view(np.int32).astype(np.int64) - d[1].view(np.int32))[np.sign(d[0]) == np.sign(d[1])]
    assert found["largest"]["ulps"] == ulps.max()
    assert found["computed_again"]["first"] == found["computed_again"]["second"] == found["computed_again"]["elements"]
    assert found["products"] == [found["tile"] * 16, min(found["tile"] * 16 + 16, K)]
    assert len(found["dot_product"]["a"]) == K
    assert one["terms"] <= 3 < one["terms_found"]
    replayed(document, HOPPER, coarse)
    assert best(document, "first") == ["fraction_bits=23"]
    assert questions(document)["alignment-bits"][1] == {"f23"}


def test_matrices_and_one_model(files: dict[str, str]) -> None:
    document = compared(*gemm(files, "coarse", "hopper"), "--model", HOPPER, code=0)
    found = document["gemm"]["model"]
    assert (found["D1"]["agree"], found["D2"]["agree"]) == (0, found["elements"])
    assert found["D1"]["changes"] == ["fraction_bits=23"]
    replayed(document, f"{HOPPER}@fraction_bits=23", HOPPER)
    assert document["differences"][0]["terms"] <= 3


def test_plans_of_two_results_are_saved(files: dict[str, str], tmp_path: Path) -> None:
    run("compare", *gemm(files, "turing", "hopper"), "--save", str(tmp_path / "found.yaml"), code=0)
    for name, plan in (("turing", "found-D1.yaml"), ("hopper", "found-D2.yaml")):
        computed = tmp_path / "computed.npy"
        sides = [files["a"], files["b"], files["c"]]
        run("simulate", *sides, "-o", str(computed), "--plan", str(tmp_path / plan), code=0)
        assert np.array_equal(np.load(computed), np.load(files[name]))
    wrong = run("compare", *gemm(files, "turing", "hopper"), "--save", str(tmp_path / "found.json"), code=2)
    assert "the name of a plan file ends in .yaml" in wrong.stderr


def test_matrices_that_no_neighbour_explains(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_results, "SECONDS", 0.5)
    a, b, c = (np.load(files[name]) for name in "abc")
    np.save(files["a"], a[:, :20])
    np.save(files["b"], b[:20])
    model = parse_reference(HOPPER)
    d = simulate(a[:, :20].view(np.uint16), b[:20].view(np.uint16), c.view(np.uint32), model)
    np.save(files["hopper"], d)
    d[2, 3] += 1 << 20
    np.save(files["coarse"], d)
    result = run("compare", *gemm(files, "hopper", "coarse"), "--model", HOPPER, "--json", code=3)
    assert "D2: no plan was found before the time was over" in result.stderr
    found = json.loads(result.stdout)["gemm"]
    assert "no single change that was tried gives both results" in result.stderr
    assert (found["differing"], found["dot_product"]["row"], found["dot_product"]["column"]) == (1, 2, 3)
    result = run("compare", *gemm(files, "hopper", "coarse"), f"model:{HOPPER}", f"model:{HOPPER}", code=1)
    assert "reproduces D2 in 0 of 1 elements: its matrix was not computed this way" in result.stderr
    run("compare", *gemm(files, "hopper", "hopper"), "--model", HOPPER, code=1)


def test_matrices_of_instructions_of_two_lengths(files: dict[str, str]) -> None:
    document = compared(*gemm(files, "hopper", "turing"), f"model:{HOPPER}", f"model:{TURING}", code=0)
    again = document["gemm"]["computed_again"]
    assert again["first"] == again["second"] == again["elements"]
    [one] = document["differences"]
    assert one["terms"] <= 4
    matrices = [np.array([[int(x, 16) for x in one["operands"][side]]], dtype=np.uint16) for side in "ab"]
    c = np.array([[int(one["operands"]["c"], 16)]], dtype=np.uint32)
    for word, reference in (("first", HOPPER), ("second", TURING)):
        d = simulate(matrices[0], matrices[1].T, c, parse_reference(reference))
        assert f"{d[0, 0]:08x}" == one["results"][word]


def test_distances_of_f64_are_whole_numbers() -> None:
    """Patterns of 64 bits do not fit a floating-point number; a NaN is no distance away, and no least one."""
    model = parse_reference("ieee/fma/f64")
    one = np.array([[float("nan"), 1.0, 0.0]]), np.array([[2.0, 1.0 + 2**-52, -0.0]])
    d = [side.view(np.uint64) for side in one]
    factors = np.zeros((1, 1), np.uint64), np.zeros((1, 3), np.uint64)
    found = differing_elements(Problem(model, model), Matrices(*factors, None, (d[0], d[1])))
    assert found.largest is not None
    assert found.first is not None
    assert [found.first.ulps, found.largest.ulps] == [None, 1]


def test_traces_end_where_the_matrices_do() -> None:
    """Tiles that one side chains more of than the other, and a last tile cut short: as `simulate` has it."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 2**16, shape, dtype=np.uint16) for shape in ((4, 45), (45, 4)))
    models = [parse_reference(reference) for reference in (VOLTA, TURING, HOPPER)]
    for left, right in ((0, 2), (1, 0)):
        pair = models[left], models[right]
        d = [simulate(a, b, None, model) for model in pair]
        problem = Problem(*pair)
        matrices = Matrices(a, b, None, (d[0], d[1]))
        found = differing_elements(problem, matrices)
        assert found.count == int((d[0] != d[1]).sum())
        for trace in traced(compared_model(pair[0]), compared_model(pair[1]), problem, matrices, found.chosen):
            assert (trace.results[0][-1], trace.results[1][-1]) == trace.element.d


def test_matrices_that_do_not_fit(files: dict[str, str], recorded: str) -> None:
    both = [f"model:{HOPPER}", f"model:{TURING}"]
    words = gemm(files, "hopper", "turing")
    assert "cannot be multiplied" in run("compare", *both, *[*words[:2], words[1], *words[3:]], code=2).stderr
    assert "not that of the product" in run("compare", *both, *words[:4], files["b"], *words[5:], code=2).stderr
    assert "a recording cannot recompute" in run("compare", recorded, both[0], *words, code=2).stderr
    np.save(files["a"], np.load(files["a"]).view(np.uint16))
    assert "has no format: give --formats a,b,c,d, or --model" in run("compare", *words, code=2).stderr
    run("compare", *both, "--c", files["c"], code=2)
    run("compare", *both, *words, "--vectors", "x", code=2)


def test_two_results_without_a_model_have_plans_and_a_reason(tmp_path: Path) -> None:
    """Formats are those of the files; K split in two around an instruction is found, and said to be the difference."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((4, 96), (96, 4)))
    chain = parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32")
    how = Rounding(chain.d)
    stages = Chain(chain), in_runs(2, Chain(chain), how)
    plans = [Plan(chain.a, chain.b, chain.c, Products(stage, Constant())) for stage in stages]
    results = [simulate(a.view(np.uint16), b.view(np.uint16), None, plan).view(np.float32) for plan in plans]
    words = [str(tmp_path / f"{name}.npy") for name in ("a", "b", "d1", "d2")]
    for path, matrix in zip(words, (a, b, *results), strict=True):
        np.save(path, matrix)
    np.save(tmp_path / "bias.npy", np.zeros((1, 4), np.float32))
    bias = ["--c", str(tmp_path / "bias.npy")]
    document = json.loads(run("compare", "--json", "--gemm", *words, *bias, code=0).stdout)
    found = document["gemm"]["plans"]
    assert found["D1"]["plans"][0].startswith("sum(hopper/")
    assert found["D2"]["plans"][0].startswith("sum(split(2, hopper/")
    (why,) = found["why"]
    assert "(D1); 2 runs of K, added as f32, nearest even" in why


def test_instructions_of_one_expression_are_evaluated_once(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated, real = [], Candidates.results
    monkeypatch.setattr(Candidates, "results", lambda *given: (evaluated.append(given[1:]), real(*given))[1])
    document = compared(*gemm(files, "hopper", "turing"), "--model", HOPPER, code=0)
    found = document["gemm"]["plans"]
    assert {"sum(hopper/wgmma/m64n8k16.f32.f16.f16, c)", "sum(blackwell/mma/m16n8k16.f32.f16.f16.f32, c)"} <= set(
        found["D1"]["plans"]
    )
    assert found["D1"]["complete"]
    units = Counter((*(model.unit.result for model in plan.models), plan.sums[0].start) for plan, sample in evaluated
                    if isinstance(plan.sums[0].stage, Chain) and sample.d.any())  # fmt: skip
    assert max(units.values()) <= 2  # of the first elements, and where it gives those of all; many have four names


def test_plans_that_time_did_not_allow_are_said(files: dict[str, str]) -> None:
    words = [*gemm(files, "hopper", "turing"), "--model", HOPPER, "--timeout", "0.000001", "--json"]
    result = run("compare", *words, code=3)
    assert "error: D1 and D2: no plan was found before the time was over" in result.stderr
    said = " ".join(result.stderr.split())
    assert "D1: no plan was compared with the results: the time was over before the first one" in said
    assert "the time was over; not tried, or not wholly: shipped plans, and units that take K in tiles" in said
    assert "; to go on, give more than --timeout 1e-06" in said
    assert all(len(line) <= 120 for line in result.stderr.splitlines())
    untried = json.loads(result.stdout)["gemm"]["plans"]["D1"]["untried"]
    assert any(words.startswith("K cut at one to three places") for words in untried)
    both = [f"model:{HOPPER}", f"model:{TURING}"]
    assert "goes with --gemm, without devices" in run("compare", *both, "--save", "x.yaml", code=2).stderr


def test_kernels_around_an_instruction_are_candidates() -> None:
    """Several uses of an instruction in turn, a shorter instruction for what is left over, promotion into the format of
    the addend: of FP8 the instruction's own results are shorter."""
    model = parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32")
    short, one = Chain(parse_reference("hopper/mma/m16n8k8.f32.f16.f16.f32")), Chain(parse_reference(FMA16))
    chain, how = Chain(model), Rounding(model.d)
    found = set(Candidates(parse_signature("f16,f16,f32", 1000)).stages(model, 1000))
    wanted = {interleaved(2, chain, how, "sequential", 32, chain), Chain(model, replace(short, tail=one))}
    assert wanted <= found
    assert Chain(model, one) in found
    fp8 = parse_reference("hopper/wgmma/m64n8k32.f32.e4m3.e4m3")
    for formats in ("e4m3,e4m3,f32", "e4m3,e4m3,bf16"):
        found = set(Candidates(parse_signature(formats, 2048)).stages(fp8, 2048))
        assert promoted(256, Chain(fp8), Rounding(fp8.c)) in found
        assert not any(parts_of(stage, Runs, Promote) and stage.d == fp8.d for stage in found)


def sample_of(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Sample:
    return Sample(*(np.ascontiguousarray(side).view(f"u{side.itemsize}")[None] for side in (a, b, c, d)))


@pytest.mark.parametrize("mode", ["nearest_away", "nearest_even", "toward_zero"])
@pytest.mark.parametrize("sides", ["ab", "a", "b"])
@pytest.mark.parametrize("name", ["tf32", "bf16", "e8m5_ieee"])
def test_conversions_of_inputs_are_seen_from_numbers(name: str, sides: str, mode: Mode) -> None:
    """Of all forms those come first whose inputs, or one of them, are converted so, or equally near: ties are rare."""
    rng, asked = np.random.default_rng(3), parse_signature("f32,f32,f32", 64)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 64), (64, 24)))
    how = Rounding(format_named(name), mode)
    convert = how if "a" in sides else None, how if "b" in sides else None
    unit = f"ieee/fma/f32.{name}.{name}.f32" if sides == "ab" and name in FORMATS else "ieee/fma/f32"
    plan = Plan(asked.a, asked.b, asked.c, Products(Chain(parse_reference(unit)), Constant()), *convert)
    d = simulate(a.view(np.uint32), b.view(np.uint32), None, plan)
    forms = forms_of(asked, sample_of(a, b, np.zeros_like(d), d))
    assert convert in [form.convert for form in forms]
    others = {one.format.name for form in forms for one in form.convert if one is not None} - {name}
    assert others <= ({"f16"} if name == "tf32" else set())  # both keep 11 bits
    assert {tuple(one is None for one in form.convert) for form in forms} == {tuple(one is None for one in convert)}
    own = next(form for form in forms if form.convert == convert and form.format.name == "f32")
    made = own.plan(plan.sums[0].stage)
    assert made == plan
    assert made is not None
    assert made.reference.endswith(f"{'inputs' if sides == 'ab' else sides} rounded to {name}, {mode}")


@pytest.mark.parametrize(
    ("alpha", "beta"), [(1.0, 0.5), (0.3, 0.0), (1.5, -0.25), (1.0, 1.0), (96**-0.5, 0.0), (0.125, 0.125), (1.0001, 0)]
)
def test_alpha_and_beta_are_estimated_and_have_plans(alpha: float, beta: float) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 40), (40, 16)))
    c = rng.standard_normal((16, 16)).astype(np.float32)
    chain = Chain(parse_reference("ampere/mma/m16n8k16.f32.f16.f16.f32"))
    plan = Plan(chain.model.a, chain.model.b, chain.model.c, Products(chain, Constant()))
    sums = simulate(a.view(np.uint16), b.view(np.uint16), None, plan).view(np.float32)
    d = (alpha * sums.astype(float) + beta * c).astype(np.float32)
    asked = parse_signature("f16,f16,f32,f32" if beta else "f16,f16,f32", 40)
    forms = forms_of(asked, sample_of(a, b, c if beta else np.zeros_like(c), d))
    texts = [plan.reference for form in forms if (plan := form.plan(chain)) is not None]
    powers = {0.5: "2**-1", 0.125: "2**-3"}
    first, second = (powers.get(x, f"number(0x{int(np.float32(x).view(np.uint32)):08x}, f32)") for x in (alpha, beta))
    total = f"sum({chain.model.reference}, +0)"
    wanted = {
        (1.0, 0.5): f"r(exact({total}, product({second}, c)))",
        (1.0, 1.0): f"r(exact({total}, c))",
    }.get((alpha, beta), f"r(product({first}, {total}))")
    if (alpha, beta) in ((1.5, -0.25), (0.125, 0.125)):
        wanted = f"r(exact(product({first}, {total}), product({second}, c)))"
    assert len(texts) == len(set(texts))
    assert wanted in texts


@pytest.mark.parametrize("seed", [0, 4])
def test_forms_that_narrow_results_do_not_part_are_tried_in_their_order(seed: int) -> None:
    """A truncated sum differs from the exact one more than forms do, in a few of 100 elements in bf16."""
    rng, asked = np.random.default_rng(seed), parse_signature("e5m2,e4m3,bf16,bf16", 896)
    sizes = ((10, 896), ml_dtypes.float8_e5m2), ((896, 10), ml_dtypes.float8_e4m3fn), ((10, 10), ml_dtypes.bfloat16)
    a, b, c = (
        np.ldexp(rng.standard_normal(size), rng.integers(-2, 3, size)).astype(kind) for size, kind in sizes
    )  # fmt: skip
    unit = Chain(parse_reference("ada-lovelace/mma/m16n8k32.f32.e5m2.e4m3.f32"))
    stage = in_runs(8, unit, Rounding(FORMATS["f32"]), "backwards")
    plan = Plan(asked.a, asked.b, asked.c, Products(stage, Constant()))
    sums = simulate(a.view(np.uint8), b.view(np.uint8), None, plan).view(np.float32)
    d = (1.7 * sums.astype(float) + 0.3 * c.astype(float)).astype(np.float32).astype(ml_dtypes.bfloat16)
    first = forms_of(asked, sample_of(a, b, c, d))[0].plan(stage)
    assert first is not None
    total = f"product(number(0x3fd9999a, f32), sum(split(8, {unit.model.reference}, r2, order=backwards), +0))"
    assert first.reference == f"r(exact({total}, product(number(0x3e99999a, f32), c)))"


def test_what_numbers_do_not_show_is_not_tried() -> None:
    """A sum that is stored in f16 before c is added lies apart from one that is not; a rectified one has no sign."""
    rng, asked = np.random.default_rng(4), parse_signature("f16,f16,f32,f32", 64)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((24, 64), (64, 24)))
    c = rng.standard_normal((24, 24)).astype(np.float32)
    chain = Chain(parse_reference("ampere/mma/m16n8k16.f32.f16.f16.f32"))
    plan = Plan(chain.model.a, chain.model.b, chain.model.c, Products(chain, Constant()))
    exact = simulate(a.view(np.uint16), b.view(np.uint16), None, plan).view(np.float32)

    def names(d: Matrix) -> list[str]:
        forms = forms_of(asked, sample_of(a, b, c, d.astype(np.float32)))
        return [plan.reference for form in forms if (plan := form.plan(chain)) is not None]

    total = f"sum({chain.model.reference}, +0)"
    stored, whole = names(exact.astype(np.float16) + c), names(exact + c)
    assert f"r2(exact(r({total}), c))" in stored
    assert all("exact(r(" in name for name in stored)
    assert f"r(exact({total}, c))" in whole
    assert not any("exact(r(" in name for name in whole)
    assert all("relu(" in name for name in names(np.maximum(exact + c, 0)))


def test_formats_are_said_where_types_do_not(tmp_path: Path) -> None:
    """NumPy's files keep the bytes of ml_dtypes' types alone: pairs are bf16, single ones may be of several formats."""
    rng = np.random.default_rng(1)
    words = [str(tmp_path / f"{name}.npy") for name in ("a", "b", "d1", "d2")]

    def save(kind: Any) -> None:
        a, b = (rng.standard_normal(shape).astype(kind) for shape in ((4, 64), (64, 4)))
        for path, matrix in zip(words, (a, b, a[:, :4], b[:4]), strict=True):
            np.save(path, matrix)

    save(ml_dtypes.float8_e4m3fn)
    same = words[:3] + words[2:3]
    assert "has no format: give --formats" in run("compare", "--gemm", *words, code=2).stderr
    assert "one for each matrix" in run("compare", "--gemm", *words, "--formats", "e4m3,e4m3,f32,f32", code=2).stderr
    given = ["--formats", "e4m3,e4m3,e4m3"]
    assert (
        "--formats: devices and --model have their formats"
        in run("compare", "--gemm", *words, *given, "--model", HOPPER, code=2).stderr
    )
    assert run("compare", "--gemm", *same, *given, code=1).stderr.startswith("0 of 16")
    save(ml_dtypes.bfloat16)
    assert run("compare", "--gemm", *same, code=1).stderr.startswith("0 of 16")


@pytest.mark.usefixtures("few_new_elements")
def test_where_c_is_added_is_said_beside_the_roundings(tmp_path: Path) -> None:
    """Stored in f16 before c is added, or not; and results of two formats are refused by name."""
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 32), (32, 16), (16, 16)))
    total = mmaprobe.matmul(a, b, unit=HOPPER)
    stored = (total.astype(np.float16).astype(np.float32) + c).astype(np.float16)
    names = [str(tmp_path / f"{name}.npy") for name in ("a", "b", "d1", "d2", "c")]
    for name, matrix in zip(names, (a, b, stored, (total + c).astype(np.float16), c), strict=True):
        np.save(name, matrix)
    message = " ".join(run("compare", "--gemm", *names[:4], "--c", names[4], code=0).stderr.split())
    assert (
        "the sum, rounded to f16, nearest even, and c, then rounded to f16, nearest even (D1); "
        "the sum and c, rounded to f16, nearest even (D2)"
    ) in message
    np.save(names[3], total)
    message = run("compare", "--gemm", *names[:4], code=2).stderr
    assert "its numbers are f32" in message
    assert "identify --gemm --device recorded:A,B,D" in message
    message = run("compare", "--gemm", *names[:2], "-n", "1", code=2).stderr
    assert "-n stands where 4 names are needed, A B D1 D2" in message


def test_equal_plans_are_named_in_one_order(tmp_path: Path) -> None:
    """The likeliest unit on both sides, no word of a C that was not given, each name once."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 128), (128, 8)))

    def fused(low: int, high: int) -> Any:
        total = np.zeros((8, 8), np.float32)
        for k in range(low, high):
            total = (np.outer(a[:, k].astype(np.float64), b[k]) + total).astype(np.float32)
        return total

    names = [str(tmp_path / f"{name}.npy") for name in ("a", "b", "d1", "d2")]
    for name, matrix in zip(names, (a, b, fused(0, 128), fused(0, 64) + fused(64, 128)), strict=True):
        np.save(name, matrix)
    message = run("compare", "--gemm", *names, code=0).stderr.splitlines()
    assert [line.split(" gives all")[0] for line in message if "gives all" in line] == [
        "  D1: loop/fma", "  D2: sum(split(2, fma, r), +0)",
    ]  # fmt: skip
    assert not any("why: C" in line for line in message)
    assert all(line.count("sum(split(2, fma, r), +0)") <= 1 for line in message)


FAR = """unit: far
formats: {{a: f16, b: f16, c: f16, d: f16}}
length: 1
roundings: {{r: "round(f16, nearest_even)"}}
steps: {{d: "r({})"}}
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_samples_show_bits_far_below_a_result(seed: int) -> None:
    """What is cut 24 places below the largest term decides few results, of which samples of all sizes have one in
    16,000."""
    exact, cut = (Model("far.yaml", parse_unit(FAR.format(text), "far.yaml"))
                  for text in ("exact(a[0] * b[0], c)", "fused(a[0] * b[0], c, F=24)"))  # fmt: skip
    problem = Problem(exact, cut)
    rows = np.array(list(all_rows(problem.layout, exact, 4096, seed)), dtype=np.uint64)
    assert replay(problem, rows).differs.any()


def test_a_long_input_takes_a_screen(tmp_path: Path) -> None:
    """All of it is in the JSON; `evaluate` names the command that prints the long evaluation."""
    rng, model = np.random.default_rng(3), "plan:loop/fma@length=256"
    a, b = ([f"{x:08x}" for x in rng.standard_normal(256).astype(np.float32).view(np.uint32)] for _ in "ab")
    for name, d in (("one", "3f800000"), ("other", "40000000")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"model": model, "a": a, "b": b, "c": "00000000", "d": d}))
    names = [f"recorded:{tmp_path / name}.jsonl" for name in ("one", "other")]
    result = run("compare", *names, "--json", code=0)
    lines = result.stderr.splitlines()
    assert "   and 472 operands more, which --json lists" in lines
    assert any(line.startswith("     c = 00000000") for line in lines)
    assert len(lines) < 60
    assert json.loads(result.stdout)["differences"][0]["vector"]["b"] == b
    path = tmp_path / "one.jsonl"
    found = run("evaluate", str(path), code=1).stderr
    assert f" lines: mmaprobe explain {model} {path}:1\n" in found
    assert len(found.splitlines()) < 20


@pytest.mark.parametrize(
    "unit",
    ["cdna3/mfma/f32_16x16x32_fp8_fp8", "ampere/mma/m16n8k16.f32.f16.f16.f32", "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32"],
)
def test_every_product_is_a_negative_zero_once(unit: str) -> None:
    """Also where the pattern of -0 is NaN."""
    model = parse_reference(unit)
    layout, n = layout_of(model), model.length
    for row in list(special_value_rows(layout))[-2:]:
        a, b = (in_f64(np.array(side, np.uint64), fmt) for side, fmt in ((row[:n], model.a), (row[n : 2 * n], model.b)))
        products = a * b
        assert ((products == 0) & np.signbit(products)).all()


@pytest.mark.parametrize("end", [KeyboardInterrupt, OutOfTimeError])
@pytest.mark.parametrize("shortened", [False, True])
def test_a_difference_found_is_kept_at_an_interrupt(end: type[BaseException], shortened: bool) -> None:
    """While it is minimised, or asked again of the shorter instruction."""
    unit = "turing/mma/m16n8k8.f32.f16.f16.f32"
    left, right = (compared_model(parse_reference(name)) for name in (unit, f"{unit}@fraction_bits=20"))
    pair = Pair(left, right, length=16 if shortened else 8)
    comparison, ask, calls = Comparison(), right.ask, 0
    rest = (0,) * (pair.length - 3)
    row = (0x3C00, 1, 0xBC00, *rest, 0x3C00, 0x3C00, 0x3C00, *rest, 0)  # 1 + 2^-24 - 1

    def ended(vectors: Sequence[Vector]) -> Any:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise end("over")
        return ask(vectors)

    if shortened:
        comparison.run(pair, [row], 1)
        assert len(comparison.differences) == 1
        calls = 2
    right.ask = ended
    with pytest.raises(end):
        _narrow(comparison) if shortened else comparison.run(pair, [row], 1)
    assert len(comparison.differences) == 1
