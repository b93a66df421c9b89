"""The models of the table against MMA-Sim 2.1.1, and the points in which it parts from what was read before it."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from mmaprobe.smtmodel.evaluate.batch import evaluate_rows, operand_tables
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_row
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from tests.evaluation.test_carriers import by_oracle, by_terms, disagreements
from tests.places import DATA

pytestmark = pytest.mark.oracle

GOLDEN = DATA / "mma_sim_2.1.1.jsonl.gz"
NEWER = {  # instructions of MMA-Sim 2.1.1 that the file has no rows of
    "volta/mma/m8n8k4.f32.f16.f16.f16",
    *(f"turing/mma/m8n8k4.{formats}" for formats in ("f32.f16.f16.f32", "f32.f16.f16.f16", "f16.f16.f16.f16")),
    *(f"rtx-blackwell/mma/m16n8k16.{d}.{a}.{b}.{d}" for d in ("f32", "f16") for a in ("e4m3", "e5m2")
      for b in ("e4m3", "e5m2")),
    "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue8m0",
    "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue8m0",
}  # fmt: skip


@cache
def rows() -> dict[str, list[Vector]]:
    """The vectors by model reference."""
    found: dict[str, list[Vector]] = defaultdict(list)
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        for line in lines:
            vector = parse_row(json.loads(line))
            found[vector.model.reference].append(vector)
    return found


def wrong(model: Model, vectors: list[Vector], results: list[int]) -> list[str]:
    """The first vectors with another result; any NaN will do where the model names no pattern."""
    columns = operand_tables(model, [vector.operands for vector in vectors])
    return disagreements(model, columns, results, [vector.d or 0 for vector in vectors])


def test_every_row() -> None:
    assert (len(rows()), sum(map(len, rows().values()))) == (275, 11_550)
    found = {}
    for reference, vectors in rows().items():
        model = vectors[0].model
        found[reference] = wrong(model, vectors, evaluate_rows(model, [vector.operands for vector in vectors]))
    assert not {reference: texts for reference, texts in found.items() if texts}


@pytest.mark.parametrize(("carrier", "step"), [(by_terms, 12), (by_oracle, 20)])
def test_some_rows_by_terms_and_by_the_oracle(carrier: Callable[..., list[int]], step: int) -> None:
    """A few rows of every instruction, or of every tenth by terms, which take long to build."""
    references = list(rows())[:: 10 if carrier is by_terms else 1]
    for index, reference in enumerate(references):
        vectors = rows()[reference][index % step :: step]
        model = vectors[0].model
        columns = [np.asarray(column) for column in operand_tables(model, [vector.operands for vector in vectors])]
        assert not wrong(model, vectors, carrier(model, columns)), reference


def test_the_table_has_every_instruction() -> None:
    """Those of the file, those that it leaves out (f32, f64 and emulated FP8), and those that came with 2.1.1."""
    assert set(INSTRUCTIONS) >= NEWER | set(rows())
    others = {name for name in INSTRUCTIONS if not name.startswith(("arm/", "riscv/"))} - NEWER - set(rows())
    single = {name for name in others if INSTRUCTIONS[name].a in ("f32", "f64") or INSTRUCTIONS[name].emulated}
    assert others == single


def value(reference: str, a: list[str], b: list[str], c: str, **more: list[str]) -> str:
    vector = parse_row({"model": reference, "a": a, "b": b, "c": c, **more})
    (result,) = evaluate_rows(vector.model, [vector.operands])
    columns = [np.asarray(column) for column in operand_tables(vector.model, [vector.operands])]
    assert by_oracle(vector.model, columns) == [result]
    assert by_terms(vector.model, columns) == [result]
    return f"{result:0{vector.model.d.digits}x}"


def test_every_zero_of_a_truncated_sum_is_positive() -> None:
    """2^-24 * -2^-14 rounds to zero in f16; exact zeros are +0 in all readings but IEEE 754's."""
    f16 = "ampere/mma/m16n8k8.f16.f16.f16.f16"
    assert value(f16, ["0001"], ["8400"], "0000") == "0000"
    assert value(f"{f16}@zero_sign=positive", ["0001"], ["8400"], "0000") == "8000"
    assert value(f"{f16}@zero_sign=ieee", ["8000"] * 8, ["3c00"] * 8, "8000") == "8000"
    assert value(f"{f16}@flush_outputs=true", ["8001"], ["3c00"], "0000") == "0000"
    scaled = "rtx-blackwell/mma_block_scale/m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0"
    scales = {"scale_a": ["00"], "scale_b": ["72"]}  # -2^-12 * 2^-140
    assert value(scaled, ["08"], ["88"], "00000000", **scales) == "00000000"
    assert value(f"{scaled}@zero_sign=positive", ["08"], ["88"], "00000000", **scales) == "80000000"


def test_zero_inputs_of_cdna2_have_no_sign() -> None:
    """-0 * 1 + -0 is +0 there, but a product with a negative factor is -0."""
    unit, ones = "cdna2/mfma/f32_32x32x4bf16", ["3f80"] * 4
    assert value(unit, ["8000"] * 4, ones, "80000000") == "00000000"
    assert value(f"{unit}@input_zeros=signed", ["8000"] * 4, ones, "80000000") == "80000000"
    assert value(f"{unit}@length=2,group=2", ["0000"] * 2, ["bf80"] * 2, "80000000") == "00000000"
    assert value(unit, ["8001"] * 4, ones, "80000001") == "00000000"


def test_a_group_that_cancels_keeps_its_exponent() -> None:
    """1 - 1 in the first group, with scale factors of 2^60: bits 35 places below are truncated in the second group."""
    unit = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue8m0"
    scales = {"scale_a": ["bb", "7f", "7f", "7f"], "scale_b": ["7f"] * 4}
    a, ones = ["2", "a"] + ["0"] * 14 + ["2"] + ["0"] * 47, ["2"] * 64
    assert value(unit, a, ones, "00000000", **scales) == "00000000"
    assert value(unit, ["0"] * 16 + a[16:], ones, "00000000", **scales) == "3f800000"
    zero = {**scales, "scale_a": ["00", "7f", "7f", "7f"]}
    assert value(unit, a, ones, "00000000", **zero) == "3f800000"
