"""Properties of unit files, and the way of an operand through an expression on which proofs of monotonicity go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hypotheses.schema import Inputs
from queries.proof.records import Proof
from queries.properties.monotone.ledger import NamedFacts, UnprovedError
from queries.properties.monotone.path import path_of
from queries.properties.statements import problems_of
from queries.search.distinguish import Options
from smtmodel.nodes.node import structure
from smtmodel.reference import parse_reference
from tests.test_cli import run

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


def ways(reference: str, raised: int | None) -> list[tuple[str, str, int]]:
    """Prefixes of the rounding and of the sum entered, and the place in that."""
    [problem] = [
        found for found in problems_of("monotonic", parse_reference(reference), Inputs())
        if getattr(found, "raised", None) == raised
    ]  # fmt: skip
    trace = NamedFacts(problem, Options(), Proof(problem), None).left.trace
    return [(passage.prefix, passage.inner.prefix, passage.place) for passage in path_of(trace, raised)]


@pytest.mark.parametrize(
    ("reference", "raised", "found"),
    [
        ("ieee/fma/f32@length=3", None, [(f"block{k}.", f"block{k}.", 1) for k in range(3)]),
        ("ieee/fma/f32@length=3", 1, [("block1.", "block1.", 0), ("block2.", "block2.", 1)]),
        ("volta/mma/m8n8k4.f32.f16.f16.f32", 2, [("", "", 2)]),
        ("volta/mma/m8n8k4.f32.f16.f16.f32", None, [("", "", 4)]),
        ("hopper/mma/m16n8k32.f32.e4m3.e4m3.f32@length=8,block=4", None, [("after.", "after.", 1)]),
        ("hopper/mma/m16n8k32.f32.e4m3.e4m3.f32@length=8,block=4", 3,
         [("block1.", "block1.", 1), ("after.", "after.", 0)]),
        ("cdna3/mfma/f32_32x32x16_fp8_fp8", 5, [("", "odd.", 2)]),
        ("cdna3/mfma/f32_32x32x16_fp8_fp8", None, [("", "late.", 1)]),
        ("blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3", 17, [("", "", 1)]),
        ("blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0", 17, [("", "", 17)]),
        ("x86/avx512/vdpbf16ps", None, [("odd.", "odd.", 1), ("", "", 1)]),
    ],
)  # fmt: skip
def test_the_way_of_an_operand(reference: str, raised: int | None, found: list[tuple[str, str, int]]) -> None:
    assert ways(reference, raised) == found


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("r(exact(c, c, a[0] * b[0]))", "c enters 2 sums"),
        ("r(exact(r(exact(c, a[0] * b[0])), c))", "c enters 2 sums"),
    ],
)
def test_an_operand_without_one_way(tmp_path: Path, step: str, why: str) -> None:
    path = written(tmp_path, ONCE.replace("length: 2", "length: 1") + step + "\n")
    with pytest.raises(UnprovedError, match=why):
        ways(str(path), None)


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
        assert prove(path, wanted, 0)["verdict"] == "equal"
    assert "it has one length" in run("prove", "--property", "zero-padding", str(path), code=2).stderr


def test_a_unit_file_that_is_not_monotonic(tmp_path: Path) -> None:
    """Terms truncated toward zero at the largest exponent: one that grows past a power of two cuts the others."""
    found = prove(written(tmp_path, FALSE), "monotonic", 1)
    assert found["verdict"] == "different"


def test_a_unit_that_does_not_read_c_has_no_exact_sum(tmp_path: Path) -> None:
    path = written(tmp_path, ONCE + "r(exact(a[0] * b[0], a[1] * b[1]))\n")
    said = run("prove", "--property", "exact", str(path), code=2).stderr
    assert "does not read each of a, b and c" in said


def test_a_file_that_has_changed_is_asked_anew(tmp_path: Path) -> None:
    """What the store keeps is of what the file said, not of its name."""
    sums = ("exact(c, a[0] * b[0], a[1] * b[1])", "exact(c, exact(a[0] * b[0]), a[0] * b[1])")
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
