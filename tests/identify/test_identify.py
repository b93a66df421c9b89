"""Families, separating sets and identification, on families small enough to check by hand."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.family import Family, build_family, families, family_named, parameters_of
from mmaprobe.hypotheses.schema import same_arithmetic
from mmaprobe.queries.candidates import classes, outcomes
from mmaprobe.queries.candidates.classes import Equality, partition
from mmaprobe.queries.candidates.identify import SPECIAL, VALIDATION, Identifier
from mmaprobe.queries.candidates.kinds import candidate_of, unique_models
from mmaprobe.queries.candidates.outcomes import Outcomes, pool_rows, simulate
from mmaprobe.queries.candidates.separate import POOL, separate, smallest_set
from mmaprobe.queries.kernel.equality.rewriting import REWRITES
from mmaprobe.queries.kernel.questions.problem import Candidates
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table, sample_rows
from mmaprobe.queries.search.specials import special_rows
from mmaprobe.queries.tactics.normalising import Normaliser, normal_form, rules_of
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.batch import evaluate_models, evaluate_row, evaluate_rows
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference, with_parameters
from tests.families import LITTLE
from tests.marks import some_slow

pytestmark = pytest.mark.solvers

SMALL = """\
id: small
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
candidates:
  - family: t-fdpa
    block: [2, 4]
    fraction_bits: {from: 22, to: 23}
    output_rounding: &roundings [toward_zero, nearest_even]
    exponent_floor: &floors [none, -132]
    zero_sign: &signs [positive, ieee]
  - {family: t-fdpa, fraction_bits: 24, output_rounding: *roundings, exponent_floor: *floors, zero_sign: *signs}
"""
ASK = Options("bitwuzla", 60.0)
NORMALISER = Normaliser(Options("bitwuzla", None))


def small(text: str = SMALL) -> Family:
    return build_family(read_yaml(text, "small.yaml"))


def answers_of(reference: str) -> Any:
    model = parse_reference(reference)
    return lambda vectors: evaluate_rows(model, [vector.operands for vector in vectors])


def form(reference: str | Model) -> object:
    """What models of one normal form have in common."""
    model = parse_reference(reference) if isinstance(reference, str) else reference
    return candidate_of(model, NORMALISER).form


def test_candidates_are_the_union_of_the_grids() -> None:
    candidates = small().candidates()
    assert len(candidates) == (2 * 3 - 1) * 2 * 2 * 2
    assert len({member_of(model).key for model in candidates}) == len(candidates)
    assert not any({"block": 2, "fraction_bits": 24}.items() <= parameters_of(m).items() for m in candidates)
    for model in candidates[::7]:
        assert parse_reference(model.reference).member == model.member


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("block: [2, 4]", "blok: [2, 4]", 6, "did you mean 'block'"),
        ("block: [2, 4]", "block: [two]", 6, "whole number"),
        ("{from: 22, to: 23}", "{from: 22}", 7, "range is written"),
        ("a: f16", "a: f17", 2, "unknown format"),
        ("id: small", "id: small\nidd: x", 2, "unknown key"),
        ("length: 4", "length: four", 3, "a whole number is needed"),
    ],
)
def test_errors_name_file_line_and_key(old: str, new: str, line: int, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        small(SMALL.replace(old, new))
    assert f"small.yaml:{line}" in str(caught.value)


def test_shipped_families() -> None:
    wanted = {"nvidia-f16", "nvidia-bf16", "nvidia-tf32", "nvidia-fp8", "nvidia-block-scaled"}
    wanted |= {"amd-cdna4", "amd-mfma", "amd-rdna4-fp8", "riscv-rvbna", "any"}
    assert wanted <= set(families())
    with pytest.raises(UnknownNameError, match="nvidia-f16"):
        family_named("nvidia-f15")


def test_a_family_s_file_needs_no_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the files of questions, claims and studies."""
    (tmp_path / "mine").write_text(SMALL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert family_named("mine").id == "small"


@cache
def retargeted(name: str, reference: str) -> list[Model]:
    """The candidates of a family for the signature of a unit."""
    return family_named(name).retargeted(parse_reference(reference)).candidates()


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("f32_16x16x16_f16", ((0, 1, 2, 3), (8, 9, 10, 11), (4, 5, 6, 7), (12, 13, 14, 15))),
        ("f32_16x16x16_f16_wave64", "contiguous"),
    ],
)
def test_what_rdna4_computes_with_f16_is_a_candidate_for_its_fp8(name: str, order: object) -> None:
    model = parse_reference(f"rdna4/wmma/{name}")
    wanted = {"block": 4, "group": 2, "late_fraction_bits": 26, "block_order": order}
    candidates = retargeted("amd-rdna4-fp8", "hopper/mma/m16n8k16.f32.f16.f16.f32")
    alike = [one for one in candidates if wanted.items() <= one.member.values.items()]
    assert sum(same_arithmetic(one, model) for one in alike) == 1


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("nvidia-f16", "volta/mma/m8n8k4.f32.f16.f16.f32"),
        pytest.param("nvidia-fp8", "hopper/wgmma/m64n8k32.f32.e4m3.e5m2", marks=pytest.mark.slow),
        ("nvidia-block-scaled", "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"),
        ("amd-mfma", "cdna3/mfma/f32_32x32x8_f16"),
        ("riscv-rvbna", "riscv/zvbdota/vfwbdota16bf.n8"),
    ],
)
def test_a_family_contains_the_table(name: str, reference: str) -> None:
    model = parse_reference(reference)
    changes = {"nan": "none"} if model.nan is not None else {}
    other = parse_reference(reference + "".join(f"@{k}={v}" for k, v in changes.items()))
    wanted, values = form(other.reference), other.member.values
    candidates = sorted(
        retargeted(name, reference),
        key=lambda candidate: sum(values.get(k) != v for k, v in candidate.member.values.items()),
    )
    assert any(form(candidate) == wanted for candidate in candidates)


def test_a_needless_floor_is_no_difference_and_a_needed_one_is() -> None:
    base = "ampere/mma/m16n8k16.f32.bf16.bf16.f32"
    f16 = "ampere/mma/m16n8k16.f32.f16.f16.f32"
    assert form(f"{f16}@exponent_floor=-132") == form(f"{f16}@exponent_floor=none")
    assert len({form(f"{base}@exponent_floor={floor}") for floor in (-131, -132, "none")}) == 3


@pytest.mark.parametrize(("bits", "equal"), [(9, True), (24, False)])
def test_candidates_are_compared_by_the_patterns_that_a_device_answers_with(bits: int, equal: bool) -> None:
    """Sums of nine fraction bits fit into e8m13, which travels as f32; of 24 they do not."""
    base = "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32@length=2,block=2,nan=none,exponent_floor=-120"
    models = [parse_reference(f"{base},fraction_bits={bits},output={output}") for output in ("f32", "e8m13")]
    found = partition(models, ASK)
    assert not found.unknown
    assert [len(members) for members in found.classes] == ([2] if equal else [1, 1])
    for row in found.witnesses:
        results = evaluate_models(models, np.array([row], dtype=np.uint64))
        assert results[0] != results[1]
    assert len(found.witnesses) == (not equal)
    with pytest.raises(ParameterError, match="different widths"):
        Candidates(models[0], with_parameters(models[0], {"output": "f16"}))


@pytest.mark.parametrize("reference", ["ampere/mma/m16n8k16.f32.bf16.bf16.f32", "ampere/mma/m16n8k8.f32.tf32.tf32.f32"])
@pytest.mark.parametrize("output", ["toward_zero", "nearest_even"])
@pytest.mark.parametrize("bits", [20, 24, 28])
def test_samples_tell_floors_of_the_exponent_apart(reference: str, output: str, bits: int) -> None:
    """Which truncated bits of sums about the smallest result alone."""
    changes = f"block=4,fraction_bits={bits},output_rounding={output}"
    models = [parse_reference(f"{reference}@{changes},exponent_floor={floor}") for floor in (-131, -132, -133)]
    results = evaluate_models(models, pool_rows(layout_of(models[0]), POOL, 1))
    assert (results[0] != results[1]).any()
    assert (results[1] != results[2]).any()


def test_zeros_and_rounding_of_chains_without_an_addend() -> None:
    """Sums that start from +0 are never -0, and of few bits never rounded."""
    base = "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32@family=emulated-fp8,exponent_floor=none,output=f32"

    def plain(changes: str) -> object:
        return form(f"{base},{changes}")

    assert plain("fraction_bits=15,zero_sign=ieee") == plain("fraction_bits=15,zero_sign=positive")
    assert plain("fraction_bits=5,zero_sign=ieee") != plain("fraction_bits=5,zero_sign=positive")  # products are cut
    for bits, same in ((15, True), (20, False)):  # 32 products below 4: 22 bits and 27
        modes = [plain(f"block=32,fraction_bits={bits},output_rounding={m}") for m in ("toward_zero", "nearest_even")]
        assert (modes[0] == modes[1]) is same


def test_separate_tells_apart_or_proves_equal() -> None:
    family = small()
    candidates = family.candidates()
    found = separate(candidates, ASK)
    assert not found.unknown
    assert sum(map(len, found.classes)) == len(candidates)
    assert len({tuple(results) for results in found.predictions}) == len(found.classes) == 20
    assert len(found.rows) <= 8
    layout = layout_of(candidates[0])
    for members, results in zip(found.classes, found.predictions, strict=True):
        for member in members:
            assert evaluate_rows(member.model, [layout.split(row) for row in found.rows]) == results
        assert {parameters_of(member.model)["exponent_floor"] for member in members} == {None, -132}


def test_a_pair_that_gets_no_time_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--each` limits a pair alone, and says which ones are open; with time all are proved equal."""
    monkeypatch.delitem(REWRITES, "carry bits that no sum needs")  # so that pairs are left for solvers
    file = tmp_path / "little.yaml"
    file.write_text(LITTLE, encoding="utf-8")
    command = ["separate", str(file), "--solver", "bitwuzla", "--json"]
    ran = [CliRunner().invoke(main, [*command, "--each", each]) for each in ("0.001", "100")]
    assert [result.exit_code for result in ran] == [3, 0]
    unknown = [json.loads(result.stdout)["unknown"] for result in ran]
    assert len(unknown[0]) > 0 == len(unknown[1])


def test_smallest_set_is_greedy() -> None:
    candidates = small().candidates()[:4]
    outcomes = Outcomes(candidates, np.zeros((3, 9), np.uint64), np.array([[1, 1, 5], [1, 2, 6], [2, 1, 7], [2, 2, 8]]))
    assert smallest_set(outcomes, range(4)) == [2]
    outcomes.results = outcomes.results[:, :2]
    assert sorted(smallest_set(outcomes, range(4))) == [0, 1]


def test_simulation_is_that_of_single_vectors() -> None:
    candidates = small().candidates()[::9]
    layout = layout_of(candidates[0])
    table = pool_rows(layout, 60)[::25]
    results = simulate(candidates, table)
    for model, row in zip(candidates, results, strict=True):
        alone = [evaluate_row(model, layout.split([int(x) for x in columns])) for columns in table]
        finite = [x for x in alone if x & 0x7FFFFFFF <= 0x7F800000]
        assert [int(x) for x, y in zip(row, alone, strict=True) if y & 0x7FFFFFFF <= 0x7F800000] == finite


@pytest.mark.parametrize("index", [33, *(pytest.param(index, marks=pytest.mark.slow) for index in (0, 7, 21))])
def test_identify_names_the_candidate(index: int) -> None:
    candidates = small().candidates()
    true = candidates[index]
    found = Identifier(candidates, answers_of(true.reference), ASK).run()
    assert found.verdict == "identified"
    assert true.member in [model.member for model in found.survivors]
    decided, undecided = found.values()
    assert set(undecided) == {"exponent_floor"}
    assert decided["fraction_bits"] == parameters_of(true)["fraction_bits"]
    assert len(found.questions) <= 8
    assert found.validated == VALIDATION + len(special_rows(layout_of(true), SPECIAL))


def test_a_device_outside_the_family_is_not_forced_into_it() -> None:
    outside = "ampere/mma/m16n8k8.f32.f16.f16.f32@length=4,fraction_bits=27,exponent_floor=none"
    found = Identifier(small().candidates(), answers_of(outside), ASK).run()
    assert found.verdict == "no candidate"
    assert found.killer is not None
    assert found.nearest


@pytest.mark.parametrize("always", [True, False])
def test_validation_sees_a_rare_departure(always: bool) -> None:
    """A device that departs from a candidate on one vector, always or once."""
    true = parse_reference(small().candidates()[0].reference)

    departed: list[Any] = []

    def answer(vectors: list[Vector]) -> list[int]:
        results = evaluate_rows(true, [vector.operands for vector in vectors])
        if len(vectors) > 1:
            departed.append(vectors[1500].operands)
        seen = departed[:1] if always or len(vectors) > 1 else []
        return [x ^ 1 if vector.operands in seen else x for vector, x in zip(vectors, results, strict=True)]

    found = Identifier(small().candidates(), answer, ASK).run()
    assert found.verdict == ("no candidate" if always else "open")
    assert bool(found.contradictions) is not always


def test_a_recording_is_not_decided_beyond_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = small().candidates()
    true = candidates[5]
    layout = layout_of(true)
    rows = pool_rows(layout, 40)[-6:]
    asked = [Vector(true, layout.split([int(x) for x in row])) for row in rows]
    vectors = [replace(vector, d=evaluate_row(true, vector.operands)) for vector in asked]
    found = Identifier(candidates, answers_of(true.reference), ASK, recorded=vectors).run()
    assert true.member in [model.member for model in found.survivors]
    assert found.verdict == "open"
    assert found.would_decide
    calls: list[Model] = []

    def interrupted(model: Model, *rest: Any) -> Any:
        calls.append(model)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return evaluate_on(model, *rest)

    evaluate_on = classes.evaluate_on
    monkeypatch.setattr(classes, "evaluate_on", interrupted)
    identifier = Identifier(candidates, answers_of(true.reference), ASK, recorded=vectors)
    with pytest.raises(KeyboardInterrupt):
        identifier.run()
    assert len(calls) == 2
    assert identifier.result.verdict == "open"  # and nothing is decided by which candidates were looked at
    assert identifier.result.values() == found.values()


def recording(path: Path, reference: str, wrong: int = -1, count: int = 40) -> str:
    """A recording that names no instruction: results of a model, that of one row changed."""
    model = parse_reference(reference)
    layout = layout_of(model)
    lines = []
    for number, row in enumerate(sample_rows(layout, count, 7)):
        vector = Vector(model, layout.split([int(x) for x in row]))
        d = evaluate_row(model, vector.operands) ^ (number == wrong)
        lines.append(json.dumps({k: v for k, v in replace(vector, d=d).to_json().items() if k in "abcd"}))
    path.write_text("\n".join(lines) + "\n")
    return f"recorded:{path}"


@pytest.mark.parametrize("wrong", [0, 17, 39])
def test_every_result_of_a_recording_counts(tmp_path: Path, wrong: int) -> None:
    """Also where there is one candidate, so that no row is needed to choose among several."""
    hopper = "hopper/mma/m16n8k16.f32.f16.f16.f32"
    command = ["identify", "H100", "--model", hopper, "--device"]
    right = CliRunner().invoke(main, [*command, recording(tmp_path / "right.jsonl", hopper)])
    assert right.exit_code == 0, right.stderr
    assert f"the unit found is {hopper}" in right.stderr
    message = CliRunner().invoke(main, [*command, recording(tmp_path / "wrong.jsonl", hopper, wrong), "--json"])
    assert message.exit_code == 1, message.stderr
    document = json.loads(message.stdout)
    assert (document["verdict"], document["units"]) == ("no candidate", [])


def test_a_recording_without_an_instruction(tmp_path: Path) -> None:
    """The family says what its rows are inputs of; what of the table gives every result is named, also of fewer
    products."""
    path, volta = tmp_path / "small.yaml", "volta/mma/m8n8k4.f32.f16.f16.f32"
    path.write_text(SMALL.replace("length: 4", "length: 8"))
    recorded = recording(tmp_path / "rows.jsonl", volta)
    command = ["identify", str(path), "--device", recorded, "--json"]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 3, found.stderr
    document = json.loads(found.stdout)
    assert volta in document["consistent"]
    assert document["validated"] == 40
    assert not any(name.startswith(("ampere", "hopper")) for name in document["consistent"])
    assert f"consistent with every answer: {volta}" in found.stderr
    assert "V100" in found.stderr
    unnamed = CliRunner().invoke(main, ["identify", "V100", "--device", recorded])
    assert unnamed.exit_code == 2
    assert "rows.jsonl:1: model: this field is missing" in unnamed.stderr
    other = CliRunner().invoke(main, ["identify", "RTX 4090", "--device", recorded, "--model", volta])
    assert other.exit_code == 2
    hopper = "hopper/mma/m16n8k16.f32.f16.f16.f32"
    ada = recording(tmp_path / "hopper.jsonl", hopper)
    other = CliRunner().invoke(main, ["identify", "RTX 4090", "--device", ada, "--model", hopper])
    assert (other.exit_code, "no candidate fits" in other.stderr) == (1, True)


def test_commands(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    engine = "--solver=bitwuzla"
    answers = tmp_path / "answers.jsonl"
    device = "volta/mma/m8n8k4.f32.f16.f16.f32"
    command = ["identify", str(path), "--device", f"model:{device}", "-o", str(answers), "--json", engine]
    run = CliRunner().invoke(main, command)
    assert run.exit_code == 0, run.stderr
    document = json.loads(run.stdout)
    assert (document["decided"]["fraction_bits"], document["decided"]["block"]) == (23, 4)
    assert document["undecided"] == {"exponent_floor": [None, -132]}
    assert device in document["units"]
    assert f"the unit found is {document['units'][0]}" in run.stderr
    assert ", proved equal by " in run.stderr
    assert "the device was sampled: " in run.stderr
    none = CliRunner().invoke(
        main, ["identify", str(path), "--device", f"model:{device}@fraction_bits=22", "--json", engine]
    )
    assert (none.exit_code, json.loads(none.stdout)["units"]) == (0, [])
    assert "no instruction of the table is proved to be this unit" in none.stderr
    again = CliRunner().invoke(main, command)
    assert "answers of an earlier run" in again.stderr
    assert json.loads(again.stdout)["decided"] == document["decided"]
    outside = CliRunner().invoke(main, ["identify", str(path), "--device", f"model:{device}@fraction_bits=26", engine])
    assert outside.exit_code == 1
    assert "no candidate fits" in outside.stderr
    vectors = CliRunner().invoke(main, ["separate", str(path), engine])
    assert vectors.exit_code == 0
    assert len(vectors.stdout.splitlines()) <= 8
    asked, given = tmp_path / "vectors.jsonl", tmp_path / "given.jsonl"
    asked.write_text(vectors.stdout)
    ran = CliRunner().invoke(main, ["run", str(asked), "--device", f"model:{device}", "-o", str(given)])
    next_step = f"mmaprobe identify {path} --device recorded:{given}"
    assert next_step in ran.stderr
    left = CliRunner().invoke(main, [*next_step.split()[1:], "--json", engine])
    assert json.loads(left.stdout)["decided"]["fraction_bits"] == 23
    one = CliRunner().invoke(main, ["separate", str(path), "--one", "--json", engine])
    assert len(json.loads(one.stdout)["vectors"]) == 1


def test_a_program_that_dies_keeps_its_answers(tmp_path: Path) -> None:
    path, answers = tmp_path / "small.yaml", tmp_path / "answers.jsonl"
    path.write_text(SMALL)
    program = tmp_path / "device.py"
    program.write_text(
        "import json, sys\n"
        "from mmaprobe.smtmodel.tables.reference import parse_reference\n"
        "from mmaprobe.smtmodel.evaluate.batch import evaluate_row\n"
        "from mmaprobe.smtmodel.inputs.vectors import parse_row\n"
        "model = parse_reference('volta/mma/m8n8k4.f32.f16.f16.f32')\n"
        "for n, line in enumerate(sys.stdin):\n"
        "    if n == 12: sys.exit('gone')\n"
        "    row = json.loads(line)\n"
        "    d = f'{evaluate_row(model, parse_row(row).operands):08x}'\n"
        "    print(json.dumps({'id': row['id'], 'd': d}), flush=True)\n"
    )
    command = ["identify", str(path), "--device", f"command:{sys.executable} {program}", "-o", str(answers)]
    run = CliRunner().invoke(main, command)
    assert run.exit_code == 3
    assert "gone" in run.stderr
    assert len(answers.read_text().splitlines()) == 12


@pytest.mark.parametrize("name", some_slow(["any", "nvidia-fp8", "amd-mfma"], "any", "nvidia-fp8"))
def test_normal_forms_compute_as_the_candidates(name: str) -> None:
    """Candidates of every set of rules that leads to a normal form, against that, zeros and infinities included."""
    changed: dict[tuple[str, ...], list[tuple[Model, Model]]] = {}
    for candidate in family_named(name).candidates()[::7]:
        proof = NORMALISER.proof(candidate.unit)
        if proof is not None:
            plain = replace(candidate.unit, result=normal_form(candidate.unit, proof), signals={}, titles={})
            changed.setdefault(tuple(rules_of([proof])), []).append((candidate, Model("its normal form", plain)))
    assert len(changed) > 3
    for names, pairs in changed.items():
        for candidate, plain_model in pairs[:: max(1, len(pairs) // 2)]:
            rows = pool_rows(layout_of(candidate), 300, seed=3)
            first, second = evaluate_models([candidate, plain_model], rows)
            assert (first == second).all(), (candidate.reference, names)


def test_candidates_say_by_which_rules_they_are_equal(tmp_path: Path) -> None:
    """ "Alike by construction" is said of expressions that are one, and of no others."""
    path = tmp_path / "small.yaml"
    path.write_text(
        SMALL.replace("zero_sign: &signs [positive, ieee]", "zero_sign: &signs [positive, always_positive]")
    )
    message = CliRunner().invoke(main, ["separate", str(path), "--solver=bitwuzla", "--json"])
    members = [member for members in json.loads(message.stdout)["classes"] for member in members["members"]]
    whys = {member["why"] for member in members}
    assert whys == {
        None,
        "by rewriting: floor below every term",
        "by rewriting: no sum rounded to zero",
        "by rewriting: floor below every term, no sum rounded to zero",
    }
    expressions = {member["model"]: parse_reference(member["model"]).unit.result for member in members}
    assert len(set(expressions.values())) == len(expressions)
    sums = "ampere/mma/m16n8k16.f32.f16.f16.f32@exponent_floor=none,fraction_bits"
    one, other = (parse_reference(f"{sums}={bits}") for bits in ("exact", "23,align_rounding=sticky"))
    assert one.reference != other.reference
    assert unique_models([one, other], ASK) == {one: [Equality(other, "alike by construction")]}


def test_a_candidate_is_named_as_what_it_is() -> None:
    """Its reference, read again, gives its parameters, whatever instruction the family was re-targeted to."""
    ampere = "ampere/mma/m16n8k16.f32.f16.f16.f32"
    for reference in ("volta/mma/m8n8k4.f32.f16.f16.f32", f"{ampere}@length=8,fraction_bits=26,zero_sign=ieee"):
        candidates = retargeted("nvidia-f16", reference)
        for candidate in candidates[:: len(candidates) // 20]:
            assert parse_reference(candidate.reference).member == candidate.member


@pytest.mark.parametrize("revealed", [True, False])
def test_the_time_ends_the_work_before_the_first_question(revealed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of the candidates, or of the order revealed, looks at the clock too."""
    candidates = small().candidates()
    monkeypatch.setattr(outcomes, "PART", 8)
    structure: Any = SimpleNamespace(admits=lambda unit: True) if revealed else None
    late = time.monotonic() - 61
    message = "0 of 40 candidates were compared with the order" if revealed else "8 of 40 candidates were simulated"
    with pytest.raises(IncompleteError, match=message):
        Identifier(candidates, answers_of(candidates[0].reference), ASK, structure, start=late).run()


def test_the_timeout_of_separate_counts_its_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = small().candidates()
    table = pool_rows(layout_of(candidates[0]), 1000)
    monkeypatch.setattr(outcomes, "PART", 8)
    monkeypatch.setattr(outcomes, "FIRST", 100)
    with pytest.raises(IncompleteError, match="candidates were simulated on 100 vectors"):
        Outcomes.until(candidates, table, 0.0, lambda text: None)
    whole, interrupted = Outcomes.until(candidates, table, None, lambda text: None)
    assert (len(whole.table), interrupted) == (len(table), False)
    assert np.array_equal(whole.results, simulate(candidates, table))
    done = CliRunner().invoke(main, ["separate", "nvidia-f16", "--timeout", "0.01"])
    assert (done.exit_code, done.stdout) == (3, "")
    assert "error: time ran out when" in done.stderr


@pytest.mark.parametrize("end", [KeyboardInterrupt, IncompleteError])
def test_an_end_while_simulating_keeps_what_was_simulated(
    end: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = small().candidates()
    calls = []
    monkeypatch.setattr(outcomes, "FIRST", 100)

    def ends(models: Sequence[Model], table: Table) -> outcomes.Results:
        calls.append(len(table))
        if len(table) > outcomes.FIRST:
            raise end
        return evaluated(models, table)

    evaluated = outcomes.results_of
    monkeypatch.setattr(outcomes, "results_of", ends)
    found = separate(candidates, ASK)
    assert calls[0] == outcomes.FIRST
    assert any(count > outcomes.FIRST for count in calls)
    assert found.interrupted is (end is KeyboardInterrupt)
    assert len(found.rows) > 0
    assert sum(map(len, found.classes)) == len(candidates)
    if found.interrupted:
        assert len(found.unknown) > 0


def test_separate_keeps_what_it_has_at_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, output = tmp_path / "little.yaml", tmp_path / "vectors.jsonl"
    file.write_text(LITTLE, encoding="utf-8")

    def interrupted(*rest: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("mmaprobe.queries.candidates.classes.prove", interrupted)
    monkeypatch.delitem(REWRITES, "carry bits that no sum needs")  # so that pairs are left for solvers
    done = CliRunner().invoke(main, ["separate", str(file), "--json", "-o", str(output)])
    assert done.exit_code == 3
    assert "interrupted: pairs not yet decided are open" in done.stderr
    document = json.loads(done.stdout)
    assert len(document["unknown"]) > 0
    assert len(document["vectors"]) == len(output.read_text(encoding="utf-8").splitlines()) > 0
