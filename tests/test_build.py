"""`identify` without a family: units are built from answers, or it is said that none was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from queries.build import commuted
from queries.draft import Choices, Drafter
from queries.shapes import Shapes
from queries.summation_tree import Node, binary_trees, joined
from runner.batches import BatchDevice
from smtmodel.batch import Patterns, evaluate_batch
from smtmodel.dot import UnitModel
from smtmodel.reference import parse_reference
from smtmodel.signature import parse_signature
from smtmodel.unitfile import parse_unit
from tests.cpu import differing

PAIR = """unit: pair
formats: {a: bf16, b: bf16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, MODE)"}
steps: {d: "r(exact(c, r(exact(a[0] * b[0], a[1] * b[1]))))"}
"""
ODD = """unit: odd
formats: {a: bf16, b: bf16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(exact(c, cut(exact(a[0] * b[0], a[1] * b[1]), 17, nearest_away)))"}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["identify", *arguments])


def built(device: str, formats: str, length: int, *more: str, code: int = 0) -> dict[str, Any]:
    result = run("--device", device, "--formats", formats, "--length", str(length), "--json", *more)
    assert result.exit_code == code, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("reference", "formats", "length"),
    [
        ("ieee/fma/f32", "f32,f32,f32,f32", 1),
        ("x86/avx512/vdpbf16ps", "bf16,bf16,f32,f32", 2),
        ("arm/neon/bfdot", "bf16,bf16,f32,f32", 2),
        ("arm/neon/bfdot-ebf", "bf16,bf16,f32,f32", 2),
        ("x86/avx512/vfmadd-ph", "f16,f16,f16,f16", 1),
    ],
)
def test_units_of_processors(reference: str, formats: str, length: int, tmp_path: Path) -> None:
    """Built, saved, read again, and equal to the unit by proof."""
    file = tmp_path / "mine.yaml"
    found = built(f"model:{reference}", formats, length, "--save", str(file))
    assert found["verdict"] == "built"
    assert reference in [row["model"] for row in found["equal"]]
    assert not found["undecided"]
    saved = parse_unit(file.read_text(encoding="utf-8"), str(file))
    assert found["unit"] == file.read_text(encoding="utf-8")
    assert saved.reference == "mine"
    assert "vectors of validation" in saved.evidence
    model, rows = parse_reference(reference), Shapes(parse_signature(formats, length), seed=99).anything(2000)
    operands = rows[:, :length], rows[:, length : 2 * length], rows[:, -1]
    results = evaluate_batch(parse_reference(str(file)), *operands)
    assert not differing(model, evaluate_batch(model, *operands), results).size


def test_a_unit_that_nobody_knows_is_built(tmp_path: Path) -> None:
    for mode in ("up", "to_odd"):
        file = tmp_path / f"{mode}.yaml"
        file.write_text(PAIR.replace("MODE", mode))
        found = built(f"model:{file}", "bf16,bf16,f32,f32", 2)
        assert f"round(f32, {mode}" in found["unit"]
        assert "exact(a[0] * b[0], a[1] * b[1])" in found["unit"]


def test_what_no_candidate_explains_is_said(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(ODD)
    found = built(f"model:{file}", "bf16,bf16,f32,f32", 2, code=1)
    assert (found["verdict"], found["unit"]) == ("unexplained", None)
    assert found["nearest"]
    for row in found["unexplained"]:
        assert row["d"] != row["candidate"]
    said = run("--device", f"model:{file}", "--formats", "bf16,bf16,f32,f32", "--length", "2")
    assert said.exit_code == 1
    assert "no unit found" in said.stderr
    assert "the device gives" in said.stderr


class Broken(BatchDevice):
    """A unit that is wrong where c is zero and the product lies below the smallest number."""

    batch = 512
    name = "broken"

    def __init__(self) -> None:
        self.model = parse_reference("ieee/fma/f32")
        self.description: dict[str, Any] = {"name": "broken"}

    def patterns(
        self, a: Patterns, b: Patterns, c: Patterns, scale_a: Patterns | None = None, scale_b: Patterns | None = None
    ) -> Patterns:
        found = evaluate_batch(self.model, a, b, c)
        found[(found == 1) & (c == 0)] = 0
        return found


def test_a_defect_at_the_smallest_number_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.devices.open_device", lambda *rest: Broken())
    found = built("model:x", "f32,f32,f32,f32", 1, code=1)
    assert found["verdict"] == "unexplained"


def test_options_belong_to_one_way_or_the_other() -> None:
    device = ("--device", "model:ieee/fma/f32")
    for rest in ((), ("--formats", "f32,f32,f32,f32"), ("--length", "1", "--formats", "f32,f32,f32,f32", "-o", "x")):
        assert run(*device, *rest).exit_code == 2
    assert run("nvidia-f16", *device, "--length", "1").exit_code == 2


# -- drafts


def chain(leaves: list[Any]) -> Any:
    total = leaves[0]
    for leaf in leaves[1:]:
        total = Node("binary", (total, leaf))
    return total


def test_drafts_of_long_chains_are_loops() -> None:
    asked = parse_signature("f32,f32,f32,f32", 600)
    unit = Drafter(chain(["c", *range(600)]), asked).unit(Choices())
    assert unit.result == parse_reference("ieee/fma/f32@length=600").unit.result
    blocks = chain([chain(list(range(k, k + 8))) for k in range(0, 600, 8)])
    unit = Drafter(Node("binary", (blocks, "c")), asked).unit(Choices(start="zero"))
    rows = Shapes(asked).middle(20)
    d = evaluate_batch(UnitModel(unit, "x"), rows[:, :600], rows[:, 600:1200], rows[:, 1200])
    assert len(d) == 20
    places = {k for block in unit.blocks for k in block}
    assert places <= {*range(600)}


def test_fused_steps_are_the_tables() -> None:
    asked = parse_signature("f16,f16,f32,f32", 16)
    tree = joined("fused", ["c", *range(16)])
    choices = Choices(mode="toward_zero", inner="toward_zero", overflow="infinity", zero="positive", fraction_bits=25,
                      zeros=-133, nan=0x7FFFFFFF)  # fmt: skip
    unit = Drafter(tree, asked).unit(choices)
    assert unit.result == parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32").unit.result


def test_terms_of_exact_sums_commute_and_nothing_else_does() -> None:
    text = PAIR.replace("MODE", "up")
    one = parse_unit(text, "x").result
    other = parse_unit(text.replace("a[0] * b[0], a[1] * b[1]", "a[1] * b[1], a[0] * b[0]"), "x").result
    assert (commuted(one) == commuted(other), one == other) == (True, False)
    assert commuted(one) != commuted(parse_unit(text.replace("b[1]", "b[0]"), "x").result)
    assert commuted(one) != commuted(parse_unit(text.replace("up", "down"), "x").result)


def test_orders_of_few_terms() -> None:
    assert [len(list(binary_trees(["c", *range(count)]))) for count in range(5)] == [1, 1, 3, 15, 105]
