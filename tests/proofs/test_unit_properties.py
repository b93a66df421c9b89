"""Properties of unit files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.queries.kernel.properties.rises import needed
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.nodes.node import structure
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.command_line.test_cli import run

pytestmark = pytest.mark.solvers

CHAIN = """\
unit: my/chain
about: two products, one after another
formats: {a: e5m2, b: e5m2, c: f16, d: f16}
length: 2
roundings:
  r: round(f16, nearest_even)
  low: round(f16, down)
steps:
  d: repeat(k in range(0, 2), c, r(exact(acc, a[k] * b[k])))
"""
ONCE = CHAIN.partition("steps:")[0] + "steps:\n  d: "
FALSE = ONCE + "low(fused(a[0] * b[0], a[1] * b[1], c, F=4))\n"


def prove(path: Path, wanted: str, code: int, *options: str) -> dict[str, Any]:
    found = run("prove", "--property", wanted, str(path), "--json", "--timeout", "60", *options, code=code)
    document: dict[str, Any] = json.loads(found.stdout)
    return document


def written(folder: Path, text: str) -> Path:
    path = folder / "unit.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("step", ["r(exact(c, c, a[0] * b[0]))", "r(exact(r(exact(c, a[0] * b[0])), c))"])
def test_an_operand_that_rises_in_several_places(tmp_path: Path, step: str) -> None:
    path = written(tmp_path, ONCE.replace("length: 2", "length: 1") + step + "\n")
    with pytest.raises(RuleError, match="several terms"):
        needed(parse_reference(str(path)).unit, None, False)


def test_properties_of_a_unit_file(tmp_path: Path) -> None:
    path = written(tmp_path, ONCE.replace("length: 2", "length: 1") + "r(exact(a[0] * b[0], c))\n")
    proved = prove(path, "monotonic-product", 0, "--no-confirm")
    lemmas = [lemma["answer"] for proof in proved["proofs"] for lemma in proof["lemmas"]]
    assert lemmas
    assert all("unsat" in answer for answer in lemmas)
    path = written(tmp_path, CHAIN)
    assert prove(path, "order-independent", 1)["proofs"][0]["vector"]["a"]
    refuted = prove(path, "exact", 1)["proofs"][0]
    assert refuted["sides"] == ["the unit", "the exact sum"]
    path = written(tmp_path, ONCE + "r(exact(c, a[0] * b[0], a[1] * b[1]))\n")
    for wanted in ("order-independent", "exact"):
        assert prove(path, wanted, 0)["verdict"] == "holds"
    assert "has one length" in run("prove", "--property", "zero-padding", str(path), code=2).stderr


def test_a_unit_file_that_is_not_monotonic(tmp_path: Path) -> None:
    """Terms truncated toward zero at the largest exponent: one that grows past a power of two cuts the others."""
    found = prove(written(tmp_path, FALSE), "monotonic", 1)
    assert found["verdict"] == "refuted"


def test_the_exact_sum_of_a_unit_without_an_addend_is_that_of_its_products(tmp_path: Path) -> None:
    once, twice = ("exact(a[0] * b[0], a[1] * b[1])", "exact(r(a[0] * b[0]), a[1] * b[1])")
    for text, code in ((once, 0), (twice, 1)):
        path = written(tmp_path, ONCE + f"r({text})\n")
        assert prove(path, "exact", code)["verdict"] == ("refuted" if code else "holds")
    path = written(tmp_path, ONCE.replace("length: 2", "length: 2\nignored: [0, 1]") + "r(exact(c, a[0] * a[1]))\n")
    assert "does not read each of a and b" in run("prove", "--property", "exact", str(path), code=2).stderr


def test_a_file_that_has_changed_is_asked_anew(tmp_path: Path) -> None:
    """What the store keeps is of what the file said, not of its name."""
    sums = ("exact(c, a[0] * b[0], a[1] * b[1])", "exact(c, exact(a[0] * b[1]), a[1] * b[0])")
    one = written(tmp_path, ONCE + f"r({sums[0]})\n")
    other = tmp_path / "other.yaml"
    for text, code in ((sums[0], 0), (sums[1], 1), (sums[0], 0)):
        other.write_text(ONCE + f"r({text})\n", encoding="utf-8")
        assert run("prove", str(one), str(other), code=code).exit_code == code


def test_structure_tells_nodes_apart() -> None:
    """Equal expressions, and those alone, have one text."""
    names = ["x86/avx512/vdpbf16ps", "arm/neon/bfdot", "arm/neon/bfmmla", "volta/mma/m8n8k4.f32.f16.f16.f32"]
    units = [parse_reference(name).unit for name in (*names, f"{names[3]}@fraction_bits=24")]
    assert len({structure(unit.result) for unit in units}) == len({unit.result for unit in units}) == len(units)
    assert structure(units[0].result) == structure(parse_reference(names[0]).unit.result)
