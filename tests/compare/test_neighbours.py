"""Where two evaluations diverge is named right, and so is the neighbour of a mutated model that gives what was seen."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.compare.neighbours import Neighbour, divergence, neighbours, reproducing_neighbours
from mmaprobe.queries.compare.observed import Report, evaluate_vectors, explained_by
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import parse_row
from mmaprobe.smtmodel.nodes import Element, FusedSum
from mmaprobe.smtmodel.nodes.chains import chain_of
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests import records
from tests.explain.test_explain import (
    AMPERE,
    CDNA2,
    CDNA3,
    CDNA3_FP8,
    EQUATION_10,
    HOPPER,
    NVFP4,
    VOLTA,
    operands_of,
    run,
)

# -- where two evaluations diverge


@pytest.mark.parametrize(
    ("left", "right", "row", "stage", "signal"),
    [
        (VOLTA, AMPERE, EQUATION_10, "alignment", "aligned[1]"),
        (AMPERE, HOPPER, EQUATION_10, "alignment", "block0.aligned[2]"),
        (AMPERE, f"{AMPERE}@product=normalised", {"a": ["3fff"], "b": ["3fff"], "c": "0"}, "products",
         "product[0].exponent"),
        (VOLTA, f"{VOLTA}@carry_bits=1", {"a": ["3fff"] * 4, "b": ["3fff"] * 4, "c": "407fffff"}, "sum",
         "sum.magnitude"),
        (VOLTA, f"{VOLTA}@exponent_floor=40", {"a": ["3c00"], "b": ["3c00"], "c": "0"}, "exponents", "max_exponent"),
        (VOLTA, f"{VOLTA}@output_rounding=up", {"a": ["3c00"], "b": ["3c00"], "c": "3fffffff"}, "rounding",
         "rounded"),
        (VOLTA, f"{VOLTA}@nan=7fc00000", {"a": ["7e00"], "b": ["3c00"], "c": "0"}, "result", "result"),
        (VOLTA, f"{VOLTA}@flush_inputs=true", {"a": ["0001"], "b": ["3c00"], "c": "0"}, "products",
         "product[0].significand"),
        (VOLTA, f"{VOLTA}@fraction_bits=exact", EQUATION_10, "sum", "sum.negative"),
        (VOLTA, f"{VOLTA}@zero_sign=ieee", {"a": ["8000"] * 4, "b": ["3c00"] * 4, "c": "80000000"}, "sum",
         "sign"),
    ],
)  # fmt: skip
def test_the_first_difference(left: str, right: str, row: dict[str, Any], stage: str, signal: str) -> None:
    one, other = parse_reference(left), parse_reference(right)
    operands = parse_row({"model": left, **row}).operands
    found = divergence(one, other, operands)
    assert found is not None
    assert (found.stage, str(found.signal)) == (stage, signal)
    back = divergence(other, one, operands)
    assert back is not None
    assert back.stage == stage


def test_models_that_agree_on_every_signal_that_counts() -> None:
    row = {"a": ["7e00"], "b": ["3c00"], "c": "3f800000"}  # a NaN: no number on the way counts
    operands = parse_row({"model": VOLTA, **row}).operands
    assert divergence(parse_reference(VOLTA), parse_reference(f"{VOLTA}@fraction_bits=3"), operands) is None
    zero = parse_row({"model": VOLTA, "a": ["0"], "b": ["0"], "c": "00000000"}).operands
    assert divergence(parse_reference(VOLTA), parse_reference(f"{VOLTA}@exponent_floor=7"), zero) is None
    assert divergence(parse_reference(AMPERE), parse_reference(HOPPER), zero) is None


def test_wherever_results_differ_a_signal_differs() -> None:
    rng = np.random.default_rng(8)
    for base in (VOLTA, CDNA3, CDNA2, "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32"):
        model = parse_reference(base)
        for operands in operands_of(model, rng):
            mine = evaluate_row(model, operands)
            for _, _, near in neighbours(model):
                differ = evaluate_row(near, operands) != mine
                assert not differ or divergence(model, near, operands), near.reference


# -- neighbours


def near_of(reference: str, wrong: str, row: dict[str, Any]) -> list[Neighbour]:
    """The neighbours of a wrong model that give what the right one gives."""
    model, operands = parse_reference(wrong), parse_row({"model": reference, **row}).operands
    observed = evaluate_row(parse_reference(reference), operands)
    assert evaluate_row(model, operands) != observed
    return reproducing_neighbours(model, operands, lambda near, result: result == observed)


@pytest.mark.parametrize(
    ("change", "right", "row", "stage"),
    [
        ("fraction_bits=22", "fraction_bits=23", {"a": ["3c00"], "b": ["0010"], "c": "bf800001"}, "alignment"),
        ("output_rounding=up", "output_rounding=toward_zero",
         {"a": ["3c00"], "b": ["3c00"], "c": "3fffffff"}, "rounding"),
        ("carry_bits=1", "carry_bits=exact", {"a": ["3fff"] * 4, "b": ["3fff"] * 4, "c": "407fffff"}, "sum"),
        ("flush_inputs=true", "flush_inputs=false", {"a": ["0001"], "b": ["3c00"], "c": "0"}, "products"),
        ("exponent_floor=-124", "exponent_floor=-126", {"a": ["0"], "b": ["0"], "c": "00000001"}, "exponents"),
    ],
)  # fmt: skip
def test_the_neighbour_that_gives_the_observed_result(change: str, right: str, row: dict[str, Any], stage: str) -> None:
    found = near_of(f"{VOLTA}@{right}", f"{VOLTA}@{change}", row)
    match = next(one for one in found if one.change == right)
    assert match.divergence is not None
    assert match.divergence.stage == stage


def test_no_neighbour_is_the_model_itself_and_impossible_ones_are_left_out() -> None:
    for reference in (VOLTA, NVFP4, CDNA2, CDNA3_FP8, "ieee/fma/f32", "x86/amx/tdpbf16ps"):
        model = parse_reference(reference)
        near = list(neighbours(model))
        assert near
        assert all(other.unit != model.unit for _, _, other in near)
        assert len({other.unit for _, _, other in near}) == len(near)


def test_the_same_steps_again_are_the_same_expression() -> None:
    """And one step of all products is, where c is fused, what the parameter of the family gives."""
    found = 0
    for reference in [*INSTRUCTIONS, *units(), "ieee/fma/f32@length=4"]:
        result = parse_reference(reference).unit.result
        if (chain := chain_of(result)) is not None:
            found += 1
            assert chain.in_blocks(chain.blocks) == result, reference
    assert found > 150
    ampere = parse_reference(AMPERE)
    changes = {f"{name}={value}" for name, value, near in neighbours(ampere) if near.reference.startswith(f"{AMPERE}@")}
    steps = {"block=16", "block=4", "block=1", "block_order=interleaved_pairs", "family=emulated-fp8", "family=tr-fdpa",
             "partials=normalised"}  # fmt: skip
    assert steps <= changes
    emulated = parse_reference("hopper/mma/m16n8k32.f32.e4m3.e4m3.f32")
    assert "family=t-fdpa" in {f"{name}={value}" for name, value, _ in neighbours(emulated)}


PARTS = """unit: parts
formats: {a: bf16, b: bf16, c: f32, d: f32}
length: 4
roundings: {h: "round(bf16, toward_zero)", r: "round(f32, nearest_even)"}
steps: {d: "repeat(i in range(4), c, r(exact(h(cut(a[i], 4, toward_zero)) * b[i], a[i] * b[i], acc)))"}
"""


def test_products_of_parts_are_in_no_other_steps() -> None:
    """A chain has one range of products: others beside it would stay where they are."""
    unit = parse_unit(PARTS, "parts.yaml")
    assert chain_of(unit.result) is None
    assert list(neighbours(Model("parts", unit)))


def test_nodes_that_differ_are_changed_together_and_each_alone() -> None:
    """CDNA3's FP8: F is in three kinds of sums, with the reach of the addend; where a sum is named, it is named."""
    changes = {f"{name}={value}": near for name, value, near in neighbours(parse_reference(CDNA3_FP8))}
    together = changes["fraction_bits=23"]
    assert together.reference == f"{CDNA3_FP8}@fraction_bits=23"
    alone = changes["late fraction_bits=23"].unit
    assert {node.fraction_bits for node in walk(alone.result) if isinstance(node, FusedSum)} == {24, (32, 23)}
    amx = {f"{name}={value}" for name, value, _ in neighbours(parse_reference("x86/amx/tdpbf16ps"))}
    assert {"mode=toward_zero", "subnormals=keep", "input_subnormals=keep", "bits=25", "cut=false"} <= amx


def test_recorded_results_against_a_mutated_model() -> None:
    """Ampere has F = 24: of a model with 23, one change explains every recorded mismatch."""
    rows = [row for row in records.rows("recorded.jsonl.gz")[AMPERE] if row["gpu"] == "A100"][:30]
    mutated = f"{AMPERE}@fraction_bits=23"
    report = Report()
    report.take(evaluate_vectors(parse_row({**row, "model": mutated}, n) for n, row in enumerate(rows, start=1)))
    assert len(report.mismatches) > 5
    for mismatch in report.mismatches[:5]:
        changes = {one.change: one for one in explained_by(mismatch)}
        diverged = changes["fraction_bits=24"].divergence
        assert diverged is not None
        assert diverged.stage == "alignment"
    text = "".join(json.dumps({**row, "model": mutated}) + "\n" for row in rows)
    result = run("evaluate", "-", "--json", code=1, stdin=text)
    first = json.loads(result.stdout)["first_mismatches"]
    assert ["neighbours" in row for row in first[:4]] == [True, True, True, False]
    near = next(one for one in first[0]["neighbours"] if one["parameter"] == "fraction_bits")
    assert (near["value"], near["model"], near["first_divergence"]["stage"]) == (
        "24",
        f"{AMPERE}@fraction_bits=24",
        "alignment",
    )
    assert "fraction_bits=24 gives the observed result; first divergence: alignment: block0.aligned[" in result.stderr
    lines = ", ".join(str(one.vector.line) for one in report.mismatches[:3])
    assert f"one change that gives the results of lines {lines}: fraction_bits=24" in result.stderr
    assert result.stderr.count("maximum exponent") == 3


def test_a_unit_of_integers_and_other_numbers_has_neighbours_that_flush_the_others() -> None:
    text = """unit: mixed
formats: {a: int8, b: int8, c: %s, d: f32}
length: 2
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(exact(a[0:2] * b[0:2], c))"}
"""
    mixed, whole = (Model("mixed", parse_unit(text % c, "mixed.yaml")) for c in ("f32", "int32"))
    changes = {f"{name}={value}": near for name, value, near in neighbours(mixed)}
    flushed = changes["input_subnormals=zero"].unit.result
    read = {element.operand: element.subnormals for element in of_kind(flushed, Element)}
    assert read == {"a": "keep", "b": "keep", "c": "zero"}
    operands = Operands((0, 0), (0, 0), 0x807FFFFF)
    assert [evaluate_row(one, operands) for one in (mixed, changes["input_subnormals=zero"])] == [0x807FFFFF, 0]
    assert not any(name.startswith("input_") and name != "input_format" for name, _, _ in neighbours(whole))


# -- sums with parameters of their own for each operand


def own_unit(steps: str) -> Model:
    text = """unit: own
formats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3}
length: 2
roundings: {r: "round(e4m3, nearest_even)"}
steps: {d: "%s"}
"""
    return Model(steps, parse_unit(text % steps, "own.yaml"))


CHAINED = "repeat(s in range(2), c, r(fused(a[s] * b[s], acc, %s)))"
ONE_STEP = "r(fused(a[0:2] * b[0:2], c, %s))"
LATE_C = "r(fused(fused(a[0] * b[0], a[1] * b[1], %s), c, F=[9, 4], floors=[none, -2], reach=[none, 5]))"
OWN = ["F=2, floors=[none, 0]", "F=2, floors=[-3, none], reach=[4, 2]", "F=[2, 3]", "F=[3, 2], floors=[1, 0]"]


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("shape", [CHAINED, ONE_STEP, LATE_C])
def test_units_with_parameters_of_each_operand_have_neighbours(shape: str, own: str) -> None:
    for _, _, near in neighbours(own_unit(shape % own)):
        evaluate_row(near, Operands((3, 9), (5, 2), 41))


@pytest.mark.parametrize(
    ("steps", "change", "wanted"),
    [
        (ONE_STEP % "F=[2, 3], floors=[-3, 1]", "normalised",
         "r(fused(r(fused(a[0] * b[0], a[1] * b[1], F=[2, 2], floors=[-3, -3])), c, F=[3, 3], floors=[1, 1]))"),
        (ONE_STEP % "F=2, floors=[-3, none], reach=[4, 2]", "late",
         "r(fused(fused(a[0:2] * b[0:2], F=2, floors=[-3], reach=[4]), c, F=[31, 2], rounding=down, reach=[none, 2]))"),
        (ONE_STEP % "F=2, floors=[none, 0]", "late",
         "r(fused(fused(a[0:2] * b[0:2], F=2, floors=[none]), c, F=[31, 2], rounding=down, floors=[none, 0]))"),
        (CHAINED % "F=2, floors=[-3, 1]", "fused",
         "r(fused(a[0:2] * b[0:2], c, F=2, floors=[-3, 1]))"),
        (LATE_C % "F=2", "fused",
         "r(fused(a[0] * b[0], a[1] * b[1], c, F=2, floors=[none, none, -2], reach=[none, none, 5]))"),
        (LATE_C % "F=[2, 3], floors=[-3, 1]", "fused",
         "r(fused(a[0] * b[0], a[1] * b[1], c, F=[2, 3, 4], floors=[-3, 1, -2], reach=[none, none, 5]))"),
    ],
)  # fmt: skip
def test_an_operand_takes_its_parameters_along(steps: str, change: str, wanted: str) -> None:
    """Into sums of two, into a late sum and out of one."""
    made = {near.unit.result for _, value, near in neighbours(own_unit(steps)) if value == change or change == "fused"}
    assert own_unit(wanted).unit.result in made
