"""An addend that a unit, a plan or a device does not read is an error wherever it is given, and left out where vectors
are made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import mmaprobe
from mmaprobe import MmaprobeError
from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.search.samples import sample_rows, subnormal_rows, tie_rows
from mmaprobe.runner.device_plans import mapper_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import parse_row
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text

PLAN = "plan:cublas/plain"
AT_16 = f"{PLAN}@length=16"
ONES = np.ones((2, 16), np.float16)
HUNDREDS = np.full((2, 2), 100, np.float16)
UNIT = """unit: none
formats: {{a: f16, b: f16, c: {c}, d: f32}}
length: 2
roundings:
  r: round(f32, nearest_even)
steps:
  d: r(exact(a[0:2] * b[0:2]))
"""
PLAN_FILE = """plan: mine
formats: {a: f16, b: f16, c: f32, d: f32}
units: {none: none.yaml, fma: ieee/fma/f32.f16.f16.f32}
roundings: {r: "round(f32, nearest_even)"}
steps:
  d: """
KERNEL = """import numpy as np
def f(a, b):
    with np.errstate(all="ignore"):
        return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
"""
ROW = {"model": AT_16, "a": ["3c00"], "b": ["3c00"], "c": "0000"}


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(args), input=text)


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    for word in words:
        assert word in result.output


@pytest.fixture
def unit(tmp_path: Path) -> str:
    path = tmp_path / "none.yaml"
    path.write_text(UNIT.format(c="f32"))
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    names = tuple(str(tmp_path / f"{name}.npy") for name in "abc")
    for name, array in zip(names, (ONES, ONES.T, HUNDREDS), strict=True):
        np.save(name, array)
    return names[0], names[1], names[2]


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    """A vector whose second row has an addend, of a model that reads none."""
    path = tmp_path / "vectors.jsonl"
    rows = [{"id": 1, **ROW, "d": "3c00"}, {"id": 2, **ROW, "c": "3c00", "d": "3c00"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    return f"python:{path}:f"


# -- Python


@pytest.mark.parametrize("c", [HUNDREDS, np.zeros((2, 2), np.float16), np.zeros((1, 2), np.float16)])
def test_matmul_refuses_an_addend_that_the_plan_does_not_read(c: Any) -> None:
    assert mmaprobe.matmul(ONES, ONES.T, plan=PLAN)[0, 0] == 16
    with pytest.raises(MmaprobeError, match="c: cublas/plain does not read c: leave it out"):
        mmaprobe.matmul(ONES, ONES.T, c, plan=PLAN)


@pytest.mark.parametrize("how", [{"plan": PLAN}, {"unit": AT_16}])
def test_dot_refuses_an_addend(how: Any) -> None:
    assert mmaprobe.dot(ONES[0], ONES[0], **how) == 16
    with pytest.raises(MmaprobeError, match="does not read c"):
        mmaprobe.dot(ONES[0], ONES[0], 0.0, **how)


def test_explain_refuses_an_addend() -> None:
    assert mmaprobe.explain(AT_16, ONES[0], ONES[0]).d == 16
    with pytest.raises(MmaprobeError, match="does not read c"):
        mmaprobe.explain(AT_16, ONES[0], ONES[0], 1.0)


def test_the_document_of_explain_lists_no_addend() -> None:
    found = json.loads(run("explain", AT_16, json.dumps(ROW), "--json").stdout)
    names = [given["name"] for given in found["evaluations"][0]["inputs"]]
    assert names == [f"{side}{k}" for side in "ab" for k in range(16)]


def test_explain_refuses_an_addend_that_the_second_unit_does_not_read() -> None:
    reads = "ieee/fma/f16@length=16"
    assert mmaprobe.explain(reads, ONES[0], ONES[0], against=AT_16).other == 16
    with pytest.raises(MmaprobeError, match=f"{AT_16} does not read c"):
        mmaprobe.explain(reads, ONES[0], ONES[0], 1.0, against=AT_16)


def test_a_bound_refuses_an_addend() -> None:
    bound = mmaprobe.bound(PLAN, length=16)
    assert bound.at(ONES[0], ONES[0]) > 0
    with pytest.raises(MmaprobeError, match="does not read c"):
        bound.at(ONES[0], ONES[0], 1.0)


def test_patterns_that_are_not_zero_are_refused_at_the_lowest_level() -> None:
    one = np.full((1, 1), 0x3C00, np.uint16)
    plan = parse_plan_path(PLAN)
    assert simulate(one, one, np.zeros_like(one), plan) == one
    for c in (one, np.full((1, 1), 0x8000, np.uint16)):  # -0 is not what a missing addend is
        with pytest.raises(ParameterError, match="C: cublas/plain does not read c"):
            simulate(one, one, c, plan)


# -- units that lose sums


def test_a_unit_without_an_addend_takes_one_tile_alone(unit: str) -> None:
    two = np.ones((1, 2), np.float16)
    assert mmaprobe.matmul(two, two.T, unit=unit) == 2
    with pytest.raises(MmaprobeError, match="does not read c, and an earlier sum would be lost"):
        mmaprobe.matmul(ONES, ONES.T, unit=unit)
    message = run("show", f"plan:{unit}@length=3").stderr
    assert message == f"error: {unit} does not read c, and an earlier sum would be lost\n"
    with pytest.raises(MmaprobeError, match="does not read c"):
        mmaprobe.matmul(two, two.T, np.zeros((1, 1), np.float32), unit=unit)


@pytest.mark.parametrize(
    ("sum_", "reason"),
    [
        ("sum(none, c)", "does not read c"),
        ("sum(none, -0)", "does not read c"),
        ("sum(turns(4, none), +0)", "earlier sum would be lost"),
        ("sum(lanes(none, r, 2, fold(2, 1)), +0)", "earlier sum would be lost"),
        ("sum(promote(4, fma, r, tail=none), +0)", "earlier sum would be lost"),
    ],
)
def test_a_plan_loses_no_sum_in_a_unit_without_an_addend(unit: str, tmp_path: Path, sum_: str, reason: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"{PLAN_FILE}{sum_}\n")
    with pytest.raises(MmaprobeError, match=reason):
        mmaprobe.matmul(ONES, ONES.T, plan=path)


def test_a_plan_that_adds_the_sums_of_such_a_unit_itself(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"{PLAN_FILE}sum(promote(2, none, r), c)\n")
    c = np.ones((2, 2), np.float32)
    assert mmaprobe.matmul(ONES, ONES.T, c, plan=path).tolist() == [[17, 17], [17, 17]]


# -- commands


def test_commands_of_matrices(files: tuple[str, str, str], tmp_path: Path) -> None:
    out = str(tmp_path / "d.npy")
    for option in ("--plan", PLAN), ("--model", AT_16):
        assert run("simulate", *files[:2], "-o", out, *option).exit_code == 0
        refused(run("simulate", *files, "-o", out, *option), files[2], "does not read c")
    assert run("explain", PLAN, *files[:2], "--element", "0,0").exit_code == 0
    refused(run("explain", PLAN, *files, "--element", "0,0"), files[2], "does not read c")


@pytest.mark.parametrize("command", ["evaluate", "export", "run", "compare", "explain"])
def test_commands_of_vectors(command: str, vectors: str, tmp_path: Path) -> None:
    device = f"model:{AT_16}"
    rest = {
        "evaluate": ["evaluate", vectors],
        "export": ["export", vectors, "--format", "csv"],
        "run": ["run", vectors, "--device", device],
        "compare": ["compare", device, f"recorded:{vectors}"],
        "explain": ["explain", AT_16, f"{vectors}:2"],
    }[command]
    refused(run(*rest), "c: ", "does not read c: write 0000, which is +0")


def test_a_model_that_is_served(vectors: str) -> None:
    command = [sys.executable, "-m", "mmaprobe.cli.main", "device", AT_16]
    given = Path(vectors).read_text()
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.count("\n") == 2
    assert "standard input:2: c: " in done.stderr
    assert "does not read c" in done.stderr


@pytest.mark.parametrize("c", ["8000", "7c00", "7e00"])
def test_no_addend_but_plus_zero_is_left_out(c: str) -> None:
    assert parse_row(ROW).operands.c == 0
    with pytest.raises(ParameterError, match="write 0000, which is"):
        parse_row({**ROW, "c": c})


def test_another_model_that_reads_no_addend(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps({**ROW, "model": "ieee/fma/f16@length=16", "c": "3c00", "d": "4000"}) + "\n")
    assert run("evaluate", str(path)).exit_code == 0
    refused(run("evaluate", str(path), "--model", AT_16), f"{path}:1", "does not read c")
    refused(run("run", str(path), "--device", f"model:{AT_16}"), f"{path}:1", "takes no addend")
    refused(run("explain", AT_16, str(path)), "does not read c")
    refused(
        run("compare", "model:ieee/fma/f16@length=16", f"model:{AT_16}", "--vectors", str(path)),
        f"{path}:1", "takes no addend",
    )  # fmt: skip


def test_a_function_without_an_addend(kernel: str, tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps({**ROW, "model": "ieee/fma/f16@length=16", "c": "3c00"}) + "\n")
    refused(run("run", str(path), "--device", kernel), f"{path}:1", "takes no addend")
    refused(
        run("order", "--device", kernel, "--formats", "f16,f16,f16,f16", "--length", "4"), "--formats", "a,b,d"
    )  # fmt: skip
    refused(run("identify", "nvidia-f16", "--device", kernel), "--device", "takes no addend")


# -- vectors that are made


def test_samples_leave_the_addend_out() -> None:
    layout = layout_of(parse_reference(AT_16))
    for rows in sample_rows(layout, 500), tie_rows(layout, parse_reference(AT_16).d, 100), subnormal_rows(layout, 100):
        assert not rows[:, 32].any()
    assert sample_rows(layout_of(parse_reference("ieee/fma/f16@length=16")), 500)[:, 32].any()


def test_cover_leaves_the_addend_out(unit: str, tmp_path: Path) -> None:
    out = tmp_path / "cover.jsonl"
    assert run("cover", unit, "--no-pairs", "--timeout", "5", "-o", str(out)).exit_code in (0, 3)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows
    assert {row["c"] for row in rows} == {"00000000"}
    assert not [reached for row in rows for reached in row["reaches"] if reached.startswith("c: ")]
    assert run("evaluate", str(out)).exit_code == 0


def test_compare_leaves_the_addend_out_of_a_function_and_of_a_plan(kernel: str) -> None:
    result = run("compare", kernel, f"model:{AT_16}", "--samples", "200", "--json")
    assert result.exit_code in (0, 1), result.output
    text = result.output[result.output.index("{") :]
    assert {one["vector"]["c"] for one in json.loads(text)["differences"]} <= {"0000"}
    result = run("compare", kernel, "model:ieee/fma/f16@length=16", "--samples", "200")
    assert result.exit_code in (0, 1), result.output


def test_two_models_of_which_one_reads_the_addend() -> None:
    """Both are compared where c is +0, and the statement says so."""
    reads = parse_reference("ieee/fma/f16@length=16")
    problem = Problem(reads, parse_reference(AT_16))
    assert problem.zeros == {"c": f"{AT_16} does not read c"}
    assert problem.inputs.zero_terms == (16,)
    assert Problem(reads, parse_reference(AT_16), problem.inputs) == problem
    assert Problem(reads, reads).zeros == {}
    result = run("distinguish", "ieee/fma/f16@length=16", AT_16, "--timeout", "60")
    assert result.exit_code == 0, result.output
    assert f"of c only zeros are admitted: {AT_16} does not read c" in result.output
    assert '"c": "0000"' in result.output


def test_a_proof_says_that_the_addend_is_zero(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(
        UNIT.format(c="e4m3").replace("f16", "e2m1").replace("f32", "e4m3").replace(": 2", ": 1").replace("0:2", "0:1")
    )
    other.write_text(one.read_text().replace("none", "other").replace("exact(", "exact(c, "))
    folder = str(tmp_path / "certificate")
    result = run("prove", str(one), str(other), "--compare", "value", "--certificate", folder)
    assert result.exit_code == 0, result.output
    assert "where only zeros of c are admitted: proved" in result.output
    assert run("check", folder).exit_code == 0
    stated = (tmp_path / "certificate" / "README.md").read_text()
    assert "left.yaml: none: 1 product of e2m1 and e2m1, without c, d in e4m3;" in stated
    assert "right.yaml: other: 1 product of e2m1 and e2m1, c in e4m3, d in e4m3;" in stated


@pytest.mark.parametrize("kind", ["verilog", "coverage", "btor2", "cpp"])
def test_an_export_has_no_port_for_it(kind: str, unit: str, tmp_path: Path) -> None:
    reads, out = tmp_path / "reads.yaml", tmp_path / "exported"
    reads.write_text(Path(unit).read_text().replace("exact(", "exact(c, "))
    ports = {"btor2": " input [0-9]+ ([abc])\n", "cpp": r"uint[0-9]+_t ([abc])[,)\[]"}
    for path, read in ((unit, ["a", "b"]), (str(reads), ["a", "b", "c"])):
        assert run("export", path, "--format", kind, "-o", str(out)).exit_code == 0
        assert re.findall(ports.get(kind, r"(?m)^  input .*\b([abc]),$"), out.read_text()) == read


def test_a_vector_may_leave_it_out(unit: str) -> None:
    vector = {"a": ["3c00"], "b": ["3c00"]}
    explained = run("explain", unit, json.dumps(vector))
    assert explained.exit_code == 0, explained.output
    assert "c  0000" not in explained.stdout
    refused(run("explain", "ieee/fma/f16", json.dumps(vector)), "c: this field is missing")


def test_a_function_that_takes_c_is_said_to_be_asked_without(kernel: str, tmp_path: Path) -> None:
    path = tmp_path / "three.py"
    path.write_text(KERNEL.replace("f(a, b)", "f(a, b, c)"))
    three, hint = f"python:{path}:f", "takes c: it is zero wherever a, b, d are the formats"
    for device, formats, message in (
        (kernel, "f16,f16,f16", 0),
        (three, "f16,f16,f16", 1),
        (three, "f16,f16,f16,f16", 0),
    ):
        mapped = list[str]()
        mapper_of(device, parse_signature(formats, 2), (1, 1), None, say=mapped.append)
        assert "".join(mapped).count(hint) == message
    assert hint in run("order", "--device", three, "--formats", "f16,f16,f16", "--length", "1").stderr


def test_restrictions_are_not_about_an_addend_that_nobody_reads(unit: str) -> None:
    model = parse_reference(unit)
    for inputs in (Inputs(nonzero=True), Inputs(special=True)):
        problem = Problem(model, model, inputs)
        assert problem.layout.unread == (4,)
    with pytest.raises(ParameterError, match="it has no addend that could rise"):
        problems_of("monotonic-addend", model, Inputs())
    assert len(problems_of("monotonic", model, Inputs())) == 2


def test_plans_of_which_one_reads_the_addend_are_compared_at_one_length() -> None:
    refused(run("prove", PLAN, "ieee/fma/f16"), "reads c", "models of one K")


def test_plans_and_units_know_whether_they_read_the_addend(unit: str) -> None:
    assert not parse_plan_path(PLAN).addend
    assert not parse_reference(AT_16).addend
    assert not Plan.chained(parse_reference(unit)).addend
    assert parse_plan_path("openblas/sgemm").addend
    assert parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32").addend


def test_list_show_and_explain_say_it(files: tuple[str, str, str]) -> None:
    assert "plan:cublas/plain" in (text := run("list", "plans", "plain").output)
    assert ", without c  [" in text
    assert "without c" not in run("list", "plans", "openblas/sgemm").output
    vector = json.dumps(ROW)
    for args in (
        ("show", PLAN),
        ("show", AT_16),
        ("explain", AT_16, vector),
    ):
        result = run(*args)
        assert (result.exit_code, "does not read c" in result.stderr) == (0, True), result.output
    assert "does not read c" not in run("show", "plan:openblas/sgemm").stderr
    element = run("explain", PLAN, *files[:2], "--element", "0,0").stdout
    assert element.startswith("plan:cublas/plain: element 0,0, K = 16, c is not read\n")


@pytest.mark.parametrize(
    ("changes", "place", "reason"),
    [
        (("length: 2", "length: 2\ninputs: {c: zero}"), ":4: inputs.c", "no step reads c"),
        (("length: 2", "length: 2\nscale_block: 2"), ":4: scale_block", "there are no scale factors"),
        (("d: f32", "d: f32, scale: ue8m0"), ":2: formats.scale", "no step reads scale_a[0]"),
    ],
)
def test_keys_of_a_unit_file_about_what_no_step_reads(
    unit: str, changes: tuple[str, str], place: str, reason: str
) -> None:
    path = Path(unit)
    text = path.read_text().replace(*changes)
    path.write_text(text.replace("length: 2", "length: 2\nscale_block: 2") if "ue8m0" in text else text)
    refused(run("show", unit), f"{unit}{place}", reason)


CLAIM = """id: mine
about: a claim of one's own
source: none
says: nothing
expect: holds
quantifier: all
terms: {terms}
inputs: {{format: f16, a: [0, 0], b: [0, 0]{c}}}
parts: {{p: {unit}}}
claim: value(p) >= -8
"""


@pytest.mark.parametrize(
    ("terms", "c", "reason"),
    [(2, ", c: [0, 0]", "write `c: zero` under inputs"), (3, ", c: zero", "an earlier sum would be lost")],
)
def test_a_part_of_a_claim(unit: str, tmp_path: Path, terms: int, c: str, reason: str) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM.format(terms=terms, c=c, unit=unit))
    refused(run("verify", str(path)), f"{path}:9: parts.p", "does not read c", reason)


def test_a_part_of_a_claim_without_an_addend(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM.format(terms=1, c=", c: zero", unit=unit))
    assert run("verify", str(path), "--timeout", "60").exit_code == 0


def test_an_algorithm_loses_no_sum(unit: str) -> None:
    with pytest.raises(ParameterError, match="does not read c: an earlier sum would be lost"):
        parse_plan_path(f"multiword@unit={unit}")


def test_recorded_rows_with_an_addend_are_passed_over(kernel: str, tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    rows = [{**ROW, "model": "ieee/fma/f16@length=16", "c": c, "d": d} for c, d in (("3c00", "4000"), ("0000", "3c00"))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for device in kernel, f"model:{AT_16}":
        result = run("compare", f"recorded:{path}", device)
        assert result.exit_code == 1, result.output
        assert f"1 of 2 recorded rows passed over: {device} takes no addend" in result.output
    path.write_text(json.dumps(rows[0]) + "\n")
    assert run("compare", f"recorded:{path}", kernel).exit_code == 3  # nothing was compared


def test_plans_that_differ_in_the_sign_of_zeros(tmp_path: Path) -> None:
    files = [tmp_path / "plus.yaml", tmp_path / "minus.yaml"]
    for path, start in zip(files, ("+0", "-0"), strict=True):
        path.write_text(PLAN_FILE.replace("none: none.yaml, ", "") + f"sum(fma, {start})\n")
    result = run("prove", *map(str, files), "--length", "4", "--json")
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["vector"]["c"] == "00000000"


def test_a_claim_says_that_only_zeros_are_admitted(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "claim.yaml"
    text = "id: mine\nabout: two units\nsource: none\nsays: nothing\nexpect: refuted\nproperty: equal\n"
    path.write_text(f"{text}model: {unit}\nother: ieee/fma/f32.f16.f16.f32@length=2\n")
    result = run("verify", str(path), "--timeout", "60")
    assert result.exit_code == 0, result.output
    assert f"of c only zeros are admitted: {unit} does not read c" in result.output


# -- `c: none`


@pytest.fixture
def alone(tmp_path: Path) -> str:
    path = tmp_path / "alone.yaml"
    path.write_text(UNIT.format(c="none"))
    return str(path)


def test_a_file_says_that_there_is_no_addend(alone: str, tmp_path: Path) -> None:
    model = parse_reference(alone)
    assert (model.addend, model.c) == (False, model.d)
    text = unit_text(model.unit)
    assert "formats: {a: f16, b: f16, c: none, d: f32}" in text
    assert parse_unit(text, "again") == model.unit
    path = tmp_path / "reads.yaml"
    path.write_text(UNIT.format(c="none").replace("exact(", "exact(c, "))
    refused(run("show", str(path)), f"{path}:7: steps.d: column 9 of", "c is read, but formats says that there is no c")
    path.write_text(UNIT.format(c="none").replace(", d: f32", ""))
    refused(run("show", str(path)), f"{path}:2: formats", "the format of d is missing")


def test_a_plan_file_says_so_too(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    text = PLAN_FILE.replace(", c: f32", ", c: none").replace(", fma: ieee/fma/f32.f16.f16.f32", "")
    path.write_text(f"{text}sum(promote(2, none, r))\n")
    plan = parse_plan_path(f"plan:{path}")
    assert (plan.addend, plan.c) == (False, plan.d)
    assert "c: none" in plan_text(plan)


def test_units_without_an_addend_are_compared_whatever_the_format_of_c(alone: str, tmp_path: Path) -> None:
    """c is +0 for both, in the format of the one that reads it."""
    other = tmp_path / "other.yaml"
    for c, sum_ in (("f16", "exact("), ("bf16", "exact(c, ")):
        other.write_text(UNIT.format(c=c).replace("exact(", sum_))
        result = run("compare", f"model:{alone}", f"model:{other}", "--samples", "100", "--compare", "value")
        assert (result.exit_code, "no difference" in result.output) == (1, True), result.output
        if c == "f16":
            assert "the expressions are the same" in run("prove", alone, str(other)).output
    problem = Problem(parse_reference(alone), parse_reference(str(other)))
    assert [model.c.name for model in problem.models] == ["bf16", "bf16"]
    assert problem.inputs.zero_terms == (2,)


def test_formats_say_that_there_is_no_addend() -> None:
    assert parse_signature("f16,f16,none,f32", 4) == parse_signature("f16,f16,f32", 4)


# -- what is said of units that read no c


DOWN = "r: round(f32, down)"


def test_a_property_says_nothing_of_a_c_that_is_not_read(unit: str, tmp_path: Path) -> None:
    other = tmp_path / "down.yaml"
    other.write_text(UNIT.format(c="none").replace("r: round(f32, nearest_even)", DOWN))
    for path, code, stated in ((unit, 0, "sign-symmetric: negating every a negates the result"),
                               (str(other), 1, "of left.yaml, -d(-a, b) is d(a, b)")):  # fmt: skip
        folder = str(tmp_path / f"proof {code}")
        done = run("prove", "--property", "sign-symmetric", path, "--certificate", folder)
        assert (done.exit_code, "(negating every a negates the result)" in done.stderr) == (code, True), done.output
        assert stated in run("check", folder).output
    assert "(the result does not fall when one product rises)" in run("prove", "--property", "monotonic", unit).stderr
    assert "(the result is the exact sum of all products, rounded" in run("prove", "--property", "exact", unit).stderr


def test_an_input_in_python_has_no_c_that_is_not_read(unit: str, tmp_path: Path) -> None:
    other = tmp_path / "down.yaml"
    other.write_text(UNIT.format(c="none").replace("r: round(f32, nearest_even)", DOWN))
    found = mmaprobe.prove(unit, str(other)).difference
    assert found is not None
    assert (found.left.c, found.right.c, "c = " in repr(found), ">c<" in found._repr_html_()) == (
        None,
        None,
        False,
        False,
    )
    assert mmaprobe.dot(found.left.a, found.left.b, found.left.c, unit=unit) == found.left.d
    found = mmaprobe.prove(str(other), "ieee/fma/f32.f16.f16.f32@length=2").difference
    assert found is not None
    assert (found.left.c, found.right.c, repr(found).count("c = 0.0"), repr(found).count("|")) == (None, 0, 1, 1)
    near = mmaprobe.bound(PLAN, length=64, confirm=False).nearest
    assert near is not None
    assert near.c is None
