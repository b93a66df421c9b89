"""Validation of `identify`: special values in every pair of places, so that a rule about two of them is not missed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.building.axes import product_tiers
from mmaprobe.queries.building.steps import StepAxes
from mmaprobe.queries.candidates.identify import Identifier
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.specials import special_rows, special_values
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.batch import evaluate_rows
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference

pytestmark = pytest.mark.solvers

UNIT = "volta/mma/m8n8k4.f32.f16.f16.f32"
#: an infinity in place of NaN where c is a signalling NaN and the infinite products have one sign
DEVICE = f"""
import numpy as np
from mmaprobe import matmul


def odd(a, b, c):
    d = np.array(matmul(a, b, c, unit="{UNIT}"))
    bits = c.view(np.uint32) & 0x7FFFFFFF
    signalling = (bits > 0x7F800000) & (bits < 0x7FC00000)
    with np.errstate(all="ignore"):
        products = a.astype(np.float64)[:, :, None] * b.astype(np.float64)[None]
    above, below = (products == np.inf).any(axis=1), (products == -np.inf).any(axis=1)
    return np.where(signalling & (above ^ below), np.where(above, np.inf, -np.inf), d).astype(np.float32)
"""


def test_a_rule_about_a_signalling_nan_and_an_infinite_product_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiers = StepAxes.tiers  # where no unit is right, all are tried again, which takes long
    monkeypatch.setattr(StepAxes, "tiers", lambda self, quick=False: tiers(self)[:2])
    monkeypatch.setattr("mmaprobe.queries.building.stages.product_tiers", lambda *given: product_tiers(*given)[:1])
    (tmp_path / "odd.py").write_text(DEVICE)
    device = ["--device", f"python:{tmp_path}/odd.py:odd", "--formats", "f16,f16,f32,f32", "--length", "4"]
    done = CliRunner().invoke(main, ["identify", *device, "--timeout", "150", "--json"])
    assert done.exit_code != 0, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] != "built"


def test_the_proof_is_said_of_the_unit_and_the_sample_of_the_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    device = ["--device", "model:ieee/fma/f16", "--formats", "f16,f16,f16,f16", "--length", "1"]
    done = CliRunner().invoke(main, ["identify", *device, "--save", str(path), "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    about = "This unit equals ieee/fma/f16, by proof; the device that it was built from was sampled."
    assert about in path.read_text()
    assert "this is " not in done.stderr
    assert "the unit found is ieee/fma/f16" in done.stderr
    wanted = (
        f"the device was sampled: {found['validated']} vectors of validation without a difference from the unit found"
    )
    assert wanted in done.stderr


def test_a_family_does_not_have_it_either() -> None:
    model = parse_reference(UNIT)

    def ask(vectors: Sequence[Vector]) -> list[int | None]:
        found: list[int | None] = []
        operands = [vector.operands for vector in vectors]
        for one, d in zip(operands, evaluate_rows(model, operands), strict=True):
            signs = {(x ^ y) >> 15 for x, y in zip(one.a, one.b, strict=True) if infinite(x, y)}
            odd = 0x7F800000 < one.c & 0x7FFFFFFF < 0x7FC00000 and len(signs) == 1
            found.append(0x7F800000 | signs.pop() << 31 if odd else d)
        return found

    result = Identifier([model], ask, Options(timeout=60)).run()
    assert result.verdict == "no candidate"
    assert Identifier([model], lambda vectors: evaluate_rows(model, [x.operands for x in vectors]),
                      Options(timeout=60)).run().verdict == "identified"  # fmt: skip


def infinite(x: int, y: int) -> bool:
    one, other = sorted((x & 0x7FFF, y & 0x7FFF))
    return other == 0x7C00 and 0 < one <= 0x7C00


@pytest.mark.parametrize(("formats", "length", "scale"), [
    ("f16,f16,f32,f32", 4, None), ("bf16,bf16,f32,f32", 1, None), ("e4m3,e4m3,f32,f32", 32, None),
    ("f16,f16,f32", 2, None), ("e2m1,e2m1,f32,f32", 64, "ue8m0/32"),
])  # fmt: skip
def test_every_pair_of_special_values_stands_in_every_pair_of_places(
    formats: str, length: int, scale: str | None
) -> None:
    asked = parse_signature(formats, length, scale)
    layout = layout_of(asked)
    rows = special_rows(layout, 2)
    assert 500 < len(rows) < 10_000
    ends = sorted({0, length // 2, length - 1})
    columns = [*ends, *(length + end for end in ends), *([2 * length] if asked.addend else [])]
    sides = {"a": set(ends), "b": {length + end for end in ends}, "c": {2 * length}}
    for one, other in combinations("abc", 2) if asked.addend else [("a", "b")]:
        seen = {(int(row[x]), int(row[y])) for row in rows for x in sides[one] for y in sides[other]}
        wanted = product(*(special_values(getattr(asked, side)) for side in (one, other)))
        assert set(wanted) <= seen
    if length > 1:
        for x, y in combinations(ends, 2):
            assert ((rows[:, x] != 0) & (rows[:, y] != 0)).any()
    if not asked.addend:
        assert not rows[:, 2 * length].any()
    assert len(columns) == len(set(columns))
    assert len(special_rows(layout, 2, 100)) == 100


def test_nans_of_both_kinds_are_special() -> None:
    values = special_values(FORMATS["f16"])
    assert {0x7C01, 0xFC01, 0x7E00, 0xFE00, 0x7FFF, 0x7C00, 0xFC00, 0x0001, 0x83FF, 0x7BFF, 0x8000} <= set(values)
    assert set(special_values(FORMATS["e4m3"])) >= {0x7F, 0xFF, 0x7E, 0x80}
