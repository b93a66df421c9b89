"""RDNA's dot products and matrix instructions, and CDNA2's dot product, against recorded results and the oracle."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import GridSum
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import FOLDER, shipped_unit, units
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.cpu import Inputs, Patterns, Vectors, differing
from tests.oracles import node_oracle
from tests.records import Row, rows
from tests.units.test_nodes import oracle

pytestmark = pytest.mark.oracle

RDNA = [name for name in units() if name.startswith("rdna")]
AMD = [*RDNA, "cdna2/dot2/f32_f16"]

#: units nearby: what a unit's text says, what stands there instead
NEARBY = [
    *((f"rdna3/dot2/f32_{fmt}", *change) for fmt in ("f16", "bf16") for change in (
        (", frame=1", ""), ("[24, 26]", "[23, 26]"), ("[24, 26]", "[25, 26]"), ("[24, 26]", "[24, 25]"))),
    ("rdna3/dot2/f32_bf16", "zero=positive", "zero=ieee"),
    ("rdna3/dot2/f32_bf16", "{subnormals: zero}", "{c: zero}"),
    ("rdna3/dot2/f32_bf16", "{subnormals: zero}", "{a: zero, b: zero}"),
    ("rdna3/dot2/f32_f16", "{c: zero}", "{subnormals: zero}"),
    ("rdna3/wmma/f32_16x16x16_f16", "range(0, 16, 2)", "range(14, -2, -2)"),
    ("rdna4/dot2/f32_bf16", "[24, 26], rounding=down", "[23, 26], rounding=down"),
    ("rdna4/dot2/f32_bf16", "[24, 26], rounding=down", "[24, 26]"),
    ("rdna4/dot2/f32_bf16", "F=24, rounding=down)", "F=24)"),
    ("rdna4/dot2/f32_bf16", ", zero=positive", ", subnormals=flush_after, zero=positive"),
    ("rdna4/dot2/f32_bf16", "length: 2", "length: 2\ninputs: {subnormals: zero}"),
    ("rdna4/wmma/f32_16x16x16_f16", "[0, 8, 4, 12]", "range(0, 16, 4)"),
    ("rdna4/wmma/f32_16x16x16_bf16_wave64", "range(0, 16, 4)", "[0, 8, 4, 12]"),
    ("rdna4/wmma/f16_16x16x16_f16", "[0, 8, 4, 12]", "range(0, 16, 4)"),
    ("rdna4/wmma/f16_16x16x16_f16", "round(f16, nearest_even", "round(f16, toward_zero"),
    ("rdna4/wmma/bf16_16x16x16_bf16", "round(bf16, toward_zero", "round(bf16, nearest_even"),
    ("rdna4/wmma/bf16_16x16x16_bf16", "[0, 8, 4, 12]", "range(0, 16, 4)"),
    ("rdna3/wmma/f16_16x16x16_f16", "round(f16, nearest_even", "round(f16, toward_zero"),
    ("rdna3/wmma/f16_16x16x16_f16", "range(0, 16, 2)", "range(14, -2, -2)"),
    ("rdna3/wmma/bf16_16x16x16_bf16", "round(bf16, toward_zero", "round(bf16, nearest_even"),
]  # fmt: skip


@cache
def recorded() -> dict[str, tuple[Vectors, Patterns]]:

    def side(own: list[Row], name: str) -> Patterns:
        given = [row[name] for row in own]
        return np.array([int(x, 16) if isinstance(x, str) else [int(y, 16) for y in x] for x in given], dtype=np.uint64)

    return {reference: ((side(own, "a"), side(own, "b"), side(own, "c")), side(own, "d"))
            for reference, own in rows("rdna.jsonl.gz").items()}  # fmt: skip


def test_every_recorded_result_agrees() -> None:
    assert sum(len(d) for _, d in recorded().values()) == 892
    for reference, (vectors, d) in recorded().items():
        model = parse_reference(reference)
        assert not differing(model, evaluate_batch(model, *vectors), d).size, reference


def test_the_units_say_how_many_results_they_rest_on() -> None:
    evidence_of = {name: shipped_unit(name).evidence for name in RDNA}
    counts = Counter({reference: len(d) for reference, (_, d) in recorded().items()})
    for name, evidence in evidence_of.items():
        assert (f" {counts[name]} rows" in evidence) == evidence.startswith("recorded") == bool(counts[name]), name


@pytest.mark.parametrize(("reference", "old", "new"), NEARBY)
def test_recorded_results_refute_units_nearby(reference: str, old: str, new: str) -> None:
    text = (FOLDER / f"{reference}.yaml").read_text(encoding="utf-8")
    assert old in text
    model = Model("nearby.yaml", parse_unit(text.replace(old, new), "nearby.yaml"))
    vectors, d = recorded()[reference]
    assert differing(model, evaluate_batch(model, *vectors), d).size


@pytest.mark.parametrize("reference", AMD)
def test_the_oracle_agrees(reference: str) -> None:
    by_oracle(reference, 270)


@pytest.mark.slow
@pytest.mark.parametrize("reference", AMD)
def test_the_oracle_agrees_on_many_vectors(reference: str) -> None:
    by_oracle(reference, 100_000)


def by_oracle(reference: str, count: int) -> None:
    model = parse_reference(reference)
    vectors = Inputs(model, seed=sum(map(ord, reference))).vectors(count)
    wanted = np.array(oracle(model.unit, vectors))
    wanted = np.where(wanted == node_oracle.ANY_NAN, model.d.nan, wanted).astype(np.uint64)
    assert not differing(model, evaluate_batch(model, *vectors), wanted).size


def test_rdna3_and_rdna35_compute_alike() -> None:
    for name in RDNA:
        if name.startswith("rdna3/"):
            assert shipped_unit(name) == shipped_unit(name.replace("rdna3/", "rdna3.5/"))


def test_an_opposing_zero_counts_one_unit_unless_all_are_zero() -> None:
    model = parse_reference("rdna3/dot2/f32_f16")
    assert [node.frame for node in walk(model.unit.result) if isinstance(node, GridSum)] == [1]
    one, less = 0x3F800000, 0x3F7FFFFF
    a, b = np.array([[0xBC00, 0x3C00], [0x8000, 0x8000]], dtype=np.uint64), np.full((2, 2), 0x3C00, dtype=np.uint64)
    c = np.array([one, 0], dtype=np.uint64)
    assert evaluate_batch(model, a, b, c).tolist() == [less, 0]
