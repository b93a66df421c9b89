"""Disclosures say enough to compute the unit's results without it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.schemas import check

RVBNA = "riscv/zvbdota/vfwbdota16bf.n8"
#: unit -> its (SEW, W, lambda) and (G, psm, rnd)
ENTRIES = {
    "arm/neon/bfdot-ebf": ((32, 2, 1), (1, 0, True)),
    "arm/neon/bfmmla-ebf": ((32, 2, 2), (1, 0, True)),
    "arm/neon/fmlal": None,  # one product of f16: half a sub-dot-product
    "cdna1/mfma/f32_32x32x8f16": ((32, 2, 4), (2, 0, False)),
    "cdna1/mfma/f32_32x32x4bf16": ((32, 2, 2), (1, 0, False)),
    "ieee/fma/f64@length=3": ((64, 1, 3), (1, 0, False)),
    RVBNA: ((32, 2, 4), (4, 1, True)),
    "riscv/zvdota/vfqdota8f.e4m3.n16": ((32, 4, 4), (4, 1, True)),
    f"{RVBNA}@block=4,step_sums=kept,align_rounding=toward_zero": ((32, 2, 4), (2, 1, False)),
    "hopper/mma/m16n8k16.f32.f16.f16.f32": None,  # the addend is aligned with the products
    "cdna2/mfma/f32_32x32x8f16": None,  # rounded products
    "x86/amx/tdpbf16ps": None,  # even products first
    "cdna3/mfma/f32_32x32x8_f16": None,  # C is cut
}


def disclosed(name: str) -> dict[str, object]:
    result = CliRunner().invoke(main, ["datasheet", name, "--disclosure", "riscv-ime", "--json"])
    assert result.exit_code == 0, result.output
    check("datasheet", result.stdout)
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(("name", "entry"), ENTRIES.items())
def test_the_entry_of_a_unit(name: str, entry: tuple[object, ...] | None) -> None:
    if entry is None:
        result = CliRunner().invoke(main, ["datasheet", name, "--disclosure", "riscv-ime"])
        assert result.exit_code == 2
        assert "riscv-ime has no entry for this unit: " in result.output
        return
    found = disclosed(name)
    sizes = tuple(found[key] for key in ("sew", "widening", "sub_dot_products"))
    assert (sizes, tuple(found[key] for key in ("group", "psm", "rounded"))) == entry
    assert ("algorithm" in found) == (found["psm"] == 1)


def nearest(value: Fraction) -> np.float32:
    """The f32 nearest to a number that f64 holds."""
    assert Fraction(float(value)) == value
    return np.float32(float(value))


EXACT = [name for name, entry in ENTRIES.items() if entry and entry[0][0] == 32 and not entry[1][1]]


@pytest.mark.parametrize("name", EXACT)
def test_results_follow_from_an_exact_entry(name: str) -> None:
    """With numbers so near one another that every exact sum fits f64."""
    found, model, rng = disclosed(name), parse_reference(name), np.random.default_rng(58)
    size = found["group"] * found["widening"]  # type: ignore[operator]
    for _ in range(200):
        a = (
            rng.integers(0x3C00, 0x5000, model.length)
            if model.a.name == "f16"
            else rng.integers(0x3F00, 0x4500, model.length)
        )
        b, c = rng.permutation(a), int(rng.integers(0x3F000000, 0x48000000))
        a, b = a | (rng.integers(0, 2, model.length) << 15), b | (rng.integers(0, 2, model.length) << 15)
        d = exact_value(c, model.c)
        for start in range(0, model.length, size):
            group = sum(exact_value(int(x), model.a) * exact_value(int(y), model.b)
                        for x, y in zip(a[start:start + size], b[start:start + size], strict=True))  # fmt: skip
            group = Fraction(float(nearest(group))) if found["rounded"] else group
            d = Fraction(float(nearest(d + group)))
        got = evaluate_row(model, Operands(tuple(map(int, a)), tuple(map(int, b)), c))
        assert exact_value(got, model.d) == d


def test_results_follow_from_the_guard_bits() -> None:
    found = disclosed(RVBNA)
    assert found["parameters"] == {"guard bits g": 3, "fraction bits below the largest exponent": 26}


def test_of_what_identify_printed(tmp_path: Path) -> None:
    """The whole way: a device, its parameters found, its entry; and a document in which nothing was found."""
    family, found = tmp_path / "f.yaml", tmp_path / "found.json"
    family.write_text(
        "id: tiny\nabout: two groups\nformats: {a: bf16, b: bf16, c: f32, d: f32}\nlength: 4\ncandidates:\n"
        "  - {family: rvbna, block: [2, 4], fraction_bits: [24, 25], align_rounding: to_odd, output_rounding: to_odd,\n"
        "     zero_sign: always_positive}\n"
    )
    device = f"model:{RVBNA.replace('.n8', '.n4')}@block=2,fraction_bits=24"
    run = CliRunner().invoke(main, ["identify", str(family), "--device", device, "--json"])
    assert run.exit_code == 0, run.output
    found.write_text(run.stdout)
    entry = disclosed(str(found))
    assert (entry["group"], entry["psm"], entry["rounded"]) == (1, 1, True)
    assert entry["parameters"] == {"guard bits g": 1, "fraction bits below the largest exponent": 24}
    found.write_text(json.dumps({**json.loads(run.stdout), "verdict": "ambiguous"}))
    assert CliRunner().invoke(main, ["datasheet", str(found), "--disclosure", "riscv-ime"]).exit_code == 2


def test_a_page_is_written_and_a_disclosure_printed() -> None:
    for words in ([RVBNA, "--json", "-o", "x.html"], [RVBNA], ["--disclosure", "riscv-ime"]):
        assert CliRunner().invoke(main, ["datasheet", *words]).exit_code == 2
