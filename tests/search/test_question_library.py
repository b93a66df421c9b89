"""The questions of the papers: values relative to a model, questions moved to other models, published probes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.family import parameters_of
from mmaprobe.hypotheses.library import library, question_named
from mmaprobe.hypotheses.retarget import SYMBOLS, RetargetError, enough_carry_bits, hypothesis_model
from mmaprobe.hypotheses.schema import Question, build_question, retarget, same_arithmetic
from mmaprobe.queries.compare.observed import agrees
from mmaprobe.queries.search.answer import answer
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.yamlfile import YamlFile, read_yaml
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.inputs.vectors import Vector, open_text, read_vectors, to_hex
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.files.test_hypotheses import text_with
from tests.places import DATA, DOCS

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
TURING = "turing/mma/m16n8k8.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
BF16 = "ampere/mma/m16n8k16.f32.bf16.bf16.f32"
TF32 = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
F64 = "ampere/mma/m8n8k4.f64.f64.f64.f64"
WGMMA = "hopper/wgmma/m64n8k16.f32.f16.f16"
FP8 = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
CDNA1 = "cdna1/mfma/f32_32x32x8f16"
CDNA3 = "cdna3/mfma/f32_32x32x8_f16"
NVFP4 = "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"
TARGETS = (VOLTA, TURING, AMPERE, WGMMA, TF32, BF16, FP8, CDNA3)
PAPERS = [name for name in library() if name.startswith(("fasi-", "xie-"))]
OF_FP8_ON_CDNA3 = ("xie-even-odd", "xie-small-addend")  # lines of Algorithm 11 that no other unit has


def file_with(**changes: str) -> YamlFile:
    return read_yaml(text_with(**changes), "mine.yaml")


def parameters(question: Question, name: str) -> dict[str, Any]:
    return {key: parameters_of(model)[name] for key, model in question.models.items()}


# --- values relative to the model ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "name", "text", "value"),
    [
        (VOLTA, "fraction_bits", "F", 23),
        (VOLTA, "fraction_bits", "F+1", 24),
        (WGMMA, "fraction_bits", "F-1", 24),
        (VOLTA, "fraction_bits", "F*2", 46),
        (FP8, "fraction_bits", "D", 13),
        (FP8, "fraction_bits", "D+2", 15),
        (AMPERE, "block", "L/2", 4),
        (AMPERE, "block", "L*2", 16),
        (AMPERE, "block", "K", 16),
        (AMPERE, "length", "K/2", 8),
        (VOLTA, "exponent_floor", "floor+1", -130),
        (CDNA3, "late_fraction_bits", "F2-3", 29),
        (VOLTA, "carry_bits", "enough", 4),
        (VOLTA, "carry_bits", "enough-1", 3),
        (AMPERE, "carry_bits", "enough", 5),
        (FP8, "carry_bits", "enough", 6),
        (VOLTA, "fraction_bits", "exact", "exact"),
        (VOLTA, "fraction_bits", "24", 24),
        (VOLTA, "exponent_floor", "none", None),
        (BF16, "product", "rounded_input", "rounded_bf16"),
        (AMPERE, "block_order", "ascending", "contiguous"),
        (AMPERE, "block_order", "descending", (tuple(range(15, 7, -1)), tuple(range(7, -1, -1)))),
        (AMPERE, "block_order", "strided", (tuple(range(0, 16, 2)), tuple(range(1, 16, 2)))),
    ],
)
def test_relative_values(reference: str, name: str, text: str, value: Any) -> None:
    model = hypothesis_model(parse_reference(reference), {name: text})
    assert parameters_of(model)[name] == value
    assert parse_reference(model.reference) == model


@pytest.mark.parametrize(
    ("reference", "enough"),
    [(VOLTA, 4), (f"{VOLTA}@product=normalised", 3), (f"{AMPERE}@product=normalised", 4), (AMPERE, 5), (WGMMA, 6)],
)
def test_enough_carry_bits(reference: str, enough: int) -> None:
    assert enough_carry_bits(parse_reference(reference)) == enough


def test_enough_sees_the_other_parameters() -> None:
    base = parse_reference(VOLTA)
    values = {"product": "normalised", "carry_bits": "enough"}
    assert parameters_of(hypothesis_model(base, values))["carry_bits"] == 3
    assert parameters_of(hypothesis_model(base, {"carry_bits": "enough", "block": 1}))["carry_bits"] == 2


def test_enough_counts_groups_and_scales() -> None:
    """Four groups of sixteen products of at most 36, scaled by less than 4 each, and an addend below 2."""
    assert 4 * 576 * 1.875**2 + 2 < 1 << (enough_carry_bits(parse_reference(NVFP4)) + 1) <= 2 * 4 * 576 * 1.875**2


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("fraction_bits: G+1", "unknown symbol 'G'"),
        ("carry_bits: enogh-1", "did you mean 'enough'"),
        ("fraction_bits: F +1", "without blanks"),
        ("fraction_bits: F+1+1", "at most one"),
        ("fraction_bits: 1+F", "at most one"),
        ("fraction_bits: F/2", "23 is not a multiple of 2"),
        ("fraction_bits: F/0", "not a multiple of 0"),
        ("fraction_bits: F-30", "F-30: -7 is impossible"),
        ("late_fraction_bits: F2", "no late addend"),
        ("product: rounded_inputs", "did you mean"),
        ("block_order: descendin", ""),
        ("output: D", "unknown value"),
    ],
)
def test_faults_of_relative_values(parameter: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        build_question(file_with(three=f"  three:\n    {parameter}"))
    error = caught.value
    assert (error.file, error.line, error.key) == ("mine.yaml", 9, f"hypotheses.three.{parameter.partition(':')[0]}")
    assert words in str(error)


def test_symbols_that_a_model_lacks() -> None:
    for reference, value in ((CDNA1, "F"), (F64, "F+1")):
        with pytest.raises(ParameterError, match="keep every bit"):
            hypothesis_model(parse_reference(reference), {"fraction_bits": value})
    with pytest.raises(ParameterError, match="no exponent_floor"):
        hypothesis_model(parse_reference(CDNA3), {"exponent_floor": "floor"})


def test_models_that_say_the_same() -> None:
    same = [
        (CDNA1, f"{CDNA1}@family=t-fdpa"),
        (VOLTA, f"{VOLTA}@product_rounding=down,scale_block=2"),
        (VOLTA, f"{VOLTA}@block_order=3-2-1-0"),
        (AMPERE, f"{AMPERE}@block_order=3-2-1-0-7-6-5-4:11-10-9-8-15-14-13-12"),
        (f"{VOLTA}@align_rounding=sticky", f"{VOLTA}@fraction_bits=exact"),
    ]
    for one, other in same:
        assert same_arithmetic(parse_reference(one), parse_reference(other))
    for change in ("fraction_bits=24", "output_rounding=down", "partials=normalised", "family=emulated-fp8"):
        assert not same_arithmetic(parse_reference(VOLTA), parse_reference(f"{VOLTA}@{change}"))


# --- questions moved to another model -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "bits"), [(VOLTA, [4, 3, 2]), (TURING, [5, 4, 3]), (WGMMA, [6, 5, 4]), (TF32, [4, 3, 2])]
)
def test_what_was_adjusted_by_hand_is_computed(reference: str, bits: list[int]) -> None:
    question = question_named("fasi-carry-bits", reference)
    assert list(parameters(question, "carry_bits").values()) == bits


def test_what_stays_and_what_is_dropped() -> None:
    file = file_with(observed="observed: {V100: two}", note="note: text")
    moved = retarget(file, TF32)
    assert (moved.expect, moved.observed, moved.note, moved.dropped) == (None, {}, "", {})
    assert moved.id == f"mine@{TF32}"
    assert moved.inputs == build_question(file).inputs
    assert {model.a.name for model in moved.models.values()} == {"tf32"}
    expected = retarget(file_with(note="expect_any: different"), TF32)
    assert expected.expect == "different"


def test_parameters_of_the_new_model_hold() -> None:
    moved = question_named("fasi-alignment-bits", f"{VOLTA}@carry_bits=3")
    assert set(parameters(moved, "carry_bits").values()) == {3}


def test_hypotheses_that_make_no_sense_are_dropped() -> None:
    moved = question_named("xie-block", VOLTA)
    assert list(moved.models) == ["as_modelled", "half"]
    assert "does not divide" in moved.dropped["double"]
    moved = question_named("xie-summation-tree", VOLTA)
    assert moved.dropped == {"one_step": "the same as 'as_modelled' for this model"}


@pytest.mark.parametrize(
    ("name", "reference", "words"),
    [
        ("fasi-sum-precision", VOLTA, "the same as 'wider'"),
        ("xie-late-precision", VOLTA, "no late addend"),
        ("xie-asymmetry", AMPERE, "tr-fdpa, gtr-fdpa, grid-fdpa take it"),
        ("fasi-carry-bits", CDNA3, "carry_bits: tr-fdpa does not take it"),
        ("fasi-exact-products", FP8, "rounding to e4m3 is not modelled"),
        ("xie-summation-precision", CDNA1, "keep every bit"),
        ("f16-ampere-cdna3", VOLTA, "names an instruction of its own"),
        ("accumulation-order", f"{VOLTA}@length=2", "does not divide the length 2"),
    ],
)
def test_questions_that_make_no_sense(name: str, reference: str, words: str) -> None:
    with pytest.raises(RetargetError, match="makes no sense for") as caught:
        question_named(name, reference)
    assert caught.value.exit_code == 2
    assert name in str(caught.value)
    assert words in str(caught.value)


def test_restrictions_move_with_the_model() -> None:
    assert question_named("fasi-subnormal-inputs", AMPERE).inputs.zero_terms == (16,)
    beyond = file_with(inputs="inputs: {zero_terms: [3]}")
    with pytest.raises(RetargetError, match="zero_terms names the product 3"):
        retarget(beyond, f"{VOLTA}@length=2")
    window = file_with(inputs="inputs: {exponents: {min: -40, max: -30}}")
    assert retarget(file_with(inputs="inputs: {exponents: {min: -40, max: 0}}"), VOLTA).inputs.exponents is not None
    with pytest.raises(RetargetError, match="no f16 has an exponent"):
        retarget(window, VOLTA)


def test_named_with_its_model() -> None:
    assert question_named(f"fasi-order@{TURING}") == question_named("fasi-order", TURING)
    with pytest.raises(UnknownNameError, match="did you mean"):
        question_named("fasi-order", VOLTA.replace("volta", "vlta"))


@pytest.mark.parametrize("reference", TARGETS)
def test_every_question_moves_or_says_why_not(reference: str) -> None:
    moved, wanted = 0, [name for name in PAPERS if name not in OF_FP8_ON_CDNA3]
    for name in wanted:
        try:
            question = question_named(name, reference)
        except RetargetError:
            continue
        moved += 1
        assert len(question.models) > 1
        for model in question.models.values():
            assert parse_reference(model.reference) == model
    assert moved >= len(wanted) - 9


@pytest.mark.parametrize("name", OF_FP8_ON_CDNA3)
def test_lines_of_algorithm_11(name: str) -> None:
    moved = question_named(name, "cdna3/mfma/f32_32x32x16_fp8_bf8")
    assert list(moved.models) == list(library()[name].models)
    with pytest.raises(RetargetError):
        question_named(name, "ieee/fma/f32")


def test_table_8_decides_between_even_and_odd_groups() -> None:
    """The row of FP8 on CDNA3, -1.0, for the input of equation 10."""
    row = next(vector for vector in rows("equation-10.jsonl") if vector.id == "cdna3-e5m2fnuz")
    models = question_named("xie-even-odd", "cdna3/mfma/f32_32x32x16_bf8_bf8").models
    assert row.d == 0xBF800000
    found = {name: to_hex(evaluate_row(model, row.operands), model.d) for name, model in models.items()}
    assert found == {"even_and_odd": "bf800000", "halves": "bf000000", "all_at_once": "bf000000"}


# --- answers ------------------------------------------------------------------------------------------------------

SAMPLE = [
    ("fasi-alignment-bits", FP8),
    ("fasi-normalisation-addition", TURING),
    ("fasi-subnormals-from-normal", BF16),
    ("fasi-exact-products", TF32),
    ("fasi-addend-place", WGMMA),
    ("fasi-carry-bits-enough", TF32),
    ("xie-summation-precision", BF16),
    ("xie-tie-rule", AMPERE),
]


@pytest.mark.parametrize(("name", "reference"), SAMPLE)
def test_moved_questions_are_answered(name: str, reference: str) -> None:
    question = question_named(name, reference)
    answered = answer(question, Options(timeout=120))
    assert answered.exit_code == 0
    assert answered.verdict == (question.expect or "different")


def test_command_line() -> None:
    run = CliRunner().invoke
    result = run(main, ["distinguish", "xie-block", "--model", VOLTA, "--json", "--timeout", "60"])
    assert result.exit_code == 0
    (document,) = json.loads(result.stdout)["questions"]
    assert document["id"] == f"xie-block@{VOLTA}"
    assert list(document["dropped"]) == ["double"]
    assert "dropped double: " in result.stderr
    assert document["vectors"][0]["question"] == document["id"]
    failed = run(main, ["distinguish", "xie-late-precision", "--model", VOLTA])
    assert failed.exit_code == 2
    assert "makes no sense" in failed.stderr
    assert run(main, ["distinguish", VOLTA, TURING, "--model", AMPERE]).exit_code == 2
    assert run(main, ["distinguish", "xie-block", "--model", "nowhere"]).exit_code == 2


# --- published probes ---------------------------------------------------------------------------------------------


COUNTS = {"fasi-2021.jsonl": 159, "valpey-2025.jsonl": 20, "xie-2026.jsonl": 54, "mma-sim.jsonl": 16}
OF_ALGORITHMS = ("valpey.t5_printed", "valpey.t5_corrected")  # Table 5: no question about a unit
#: probes of Valpey et al. whose printed results are not evidence (tests/tables/test_models.py says why)
NOT_OBSERVED = {*OF_ALGORITHMS, "valpey.site.interm_0", "valpey.site.interm_5"}


def rows(name: str) -> Iterator[Vector]:
    path = Path(str(files("mmaprobe.hypotheses"))) / "vectors" / name
    with open_text(path) as stream:
        yield from read_vectors(stream, name)


def sentences_of(name: str, key: str) -> dict[str, str]:
    """What the rows of a file say under a key that is for people, by id."""
    text = (Path(str(files("mmaprobe.hypotheses"))) / "vectors" / name).read_text(encoding="utf-8")
    found = {row["id"]: row for row in map(json.loads, text.splitlines())}
    return {name: row[key] for name, row in found.items() if key in row}


@pytest.mark.parametrize("name", COUNTS)
def test_probes_hold_what_the_models_predict(name: str) -> None:
    identifiers = set()
    for vector in rows(name):
        identifiers.add(vector.id)
        if vector.id in OF_ALGORITHMS:
            continue
        question = question_named(vector.extra["question"])
        expected = {
            key: to_hex(evaluate_row(model, vector.operands), model.d)
            for key, model in question.models.items()
            if model.length >= len(vector.operands.a)
        }
        assert vector.extra["predictions"] == expected, vector.id
        assert vector.model.reference in {model.reference.partition("@")[0] for model in question.models.values()}
    assert (
        len(identifiers)
        == {"fasi-2021.jsonl": 159, "valpey-2025.jsonl": 20, "xie-2026.jsonl": 54, "mma-sim.jsonl": 16}[name]
    )


def test_vectors_of_mma_sim_decide() -> None:
    """Its result is what the table gives; every two hypotheses of a question have a vector that distinguishes them, and
    the first is the one shipped."""
    predictions: dict[str, list[dict[str, str]]] = {}
    for vector in rows("mma-sim.jsonl"):
        assert vector.d == evaluate_row(vector.model, vector.operands), vector.id
        predictions.setdefault(vector.extra["question"], []).append(vector.extra["predictions"])
    asked = {name for name, q in library().items() if "MMA-Sim 2.1.1" in q.source}
    assert asked == set(predictions)
    for name, found in predictions.items():
        models = question_named(name).models
        first = next(iter(models))
        assert same_arithmetic(models[first], parse_reference(models[first].reference.partition("@")[0]))
        for other in models.keys() - {first}:
            assert any(row[first] != row[other] for row in found), (name, other)


@pytest.mark.parametrize(("name", "count"), [("fasi-2021.jsonl", 147), ("valpey-2025.jsonl", 16)])
def test_every_observation_agrees_with_the_table(name: str, count: int) -> None:
    observed = 0
    for vector in rows(name):
        observed += vector.d is not None
        assert agrees(vector.model, evaluate_row(vector.model, vector.operands), vector) is not False, vector.id
    assert observed == count


def test_every_published_probe_of_valpey_is_a_vector() -> None:
    """Input, format and result as in the table of probes; what is not to be relied upon has no result, and says why."""
    document = json.loads((DATA / "published_probes.json").read_text(encoding="utf-8"))
    probes = {probe["id"]: probe for probe in document["probes"] if probe["id"].startswith("valpey.")}
    assert len(probes) == 18
    found, notes = set(), sentences_of("valpey-2025.jsonl", "note")
    for vector in rows("valpey-2025.jsonl"):
        name = re.sub(r"\.(Turing|Volta|four)$", "", str(vector.id))
        found.add(name)
        probe, length = probes[name], len(vector.operands.a)
        for side, patterns in (("a", vector.operands.a), ("b", vector.operands.b)):
            numbers = [int(x["hex"], 16) for x in probe[side]]
            assert (numbers[:length], any(numbers[length:])) == (list(patterns), False)
        assert vector.operands.c == int(probe["c"]["hex"], 16)
        assert (vector.d is None) == (name in NOT_OBSERVED)
        assert vector.d is None or vector.d in {int(seen["hex"], 16) for seen in probe["observed"].values()}
        assert vector.d is not None or vector.id in notes
    assert found == set(probes)


RELATIONS = {
    "above": lambda x, y: x > y, "below": lambda x, y: x < y,
    "not above": lambda x, y: x <= y, "not below": lambda x, y: x >= y,
}  # fmt: skip


def test_pairs_of_monotonicity() -> None:
    """Six pairs, one input each with the smaller and the larger addend: the models obey the relation that was seen, and
    normalised partial sums do not."""
    every = {str(vector.id): vector for vector in rows("fasi-2021.jsonl")}
    seen: dict[str, set[str]] = {}
    for name, text in sentences_of("fasi-2021.jsonl", "relation").items():
        relation, _, other = text.rpartition(" ")
        pair = every[name], every[other]
        holds = RELATIONS[relation]
        assert holds(*(exact_value(evaluate_row(vector.model, vector.operands), vector.model.d) for vector in pair))
        for hypothesis in pair[0].extra["predictions"]:
            patterns = [int(vector.extra["predictions"][hypothesis], 16) for vector in pair]
            refuted = seen.setdefault(str(pair[0].extra["question"]), set())
            if not holds(*(exact_value(pattern, pair[0].model.d) for pattern in patterns)):
                refuted.add(hypothesis)
    assert len(seen) == 6
    assert seen.pop("fasi-double-precision") == set()
    assert all(refuted == {"each"} for refuted in seen.values())


@pytest.mark.parametrize(
    ("question", "device", "left"),
    [
        ("fasi-alignment-bits", "V100", {"none"}),
        ("fasi-alignment-bits", "T4", {"one", "two", "three"}),
        ("fasi-roundings", "V100", {"cut"}),
        ("fasi-exact-products", "A100", {"exact"}),
        ("fasi-rounding-of-sums", "V100", {"toward_zero"}),
        ("fasi-normalisation-addition", "V100", {"final"}),
        ("fasi-normalisation-subtraction", "V100", {"final", "each"}),
        ("fasi-carry-bits", "V100", {"enough", "one_less"}),
        ("fasi-carry-bits", "T4", {"enough", "one_less", "two_less"}),
        ("fasi-double-precision", "A100", {"chain"}),
    ],
)
def test_hypotheses_that_the_probes_leave(question: str, device: str, left: set[str]) -> None:
    found = (vector for vector in rows("fasi-2021.jsonl") if str(vector.id).endswith(f".{device}"))
    assert standing(question, found) == left


def standing(question: str, vectors: Iterable[Vector]) -> set[str]:
    """The hypotheses of a question that predict every observed result."""
    left: set[str] | None = None
    for vector in vectors:
        if str(vector.extra.get("question")).partition("@")[0] == question and vector.d is not None:
            fits = {name for name, text in vector.extra["predictions"].items() if int(text, 16) == vector.d}
            left = fits if left is None else left & fits
    assert left is not None
    return left


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("exact-products", {"exact"}),
        ("exact-products-four-roundings", {"exact"}),
        ("truncation-or-toward-zero", {"truncated"}),
        ("exact-sum-f16", {"single", "half"}),
        ("final-rounding-f16", {"nearest_even", "nearest_away"}),
        ("accumulator-rounding", {"truncated"}),
        ("accumulation-order", {"independent"}),
        ("normalisation", {"unnormalised"}),
        ("carry-bits-volta", {"three"}),
    ],
)
def test_hypotheses_that_the_probes_of_valpey_leave(question: str, left: set[str]) -> None:
    assert standing(question, rows("valpey-2025.jsonl")) == left


def test_what_probes_of_one_unit_say_of_another() -> None:
    """Table 4 of Xie et al.: the term kept on Hopper's f16 unit is lost with one fraction bit less, as on Ampere."""
    kept = next(vector for vector in rows("xie-2026.jsonl") if vector.id == "precision-hopper-f16-kept")
    assert evaluate_row(parse_reference(WGMMA), kept.operands) != 0
    assert evaluate_row(parse_reference(f"{WGMMA}@fraction_bits=24"), kept.operands) == 0
    assert evaluate_row(parse_reference(AMPERE), kept.operands) == 0


def test_every_symbol_is_in_the_page() -> None:
    page = (DOCS / "questions.md").read_text(encoding="utf-8")
    assert all(f"`{symbol}`" in page for symbol in SYMBOLS)
    assert all(f"`{name}`" in page for name in PAPERS)
    assert isinstance(RetargetError("x"), MmaprobeError)
