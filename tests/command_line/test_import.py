"""Lines of hexadecimal words, as TestFloat writes them, become vectors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main

MULADD = """# f32_mulAdd, to nearest even: A B C D flags
3F800000 40000000 3F800000 40400000 00
00000001 00000001 80000000 80000000 03
7F7FFFFF 7F7FFFFF FF800000 FF800000 00 // infinity
"""


def imported(text: str, model: str, folder: Path) -> Result:
    (path := folder / "words").write_text(text)
    return CliRunner().invoke(main, ["import", str(path), "--model", model, "-o", str(folder / "out.jsonl")])


def test_a_fused_multiply_add(tmp_path: Path) -> None:
    """The second line is wrong: the exact product is positive, and the result +0."""
    run = imported(MULADD, "ieee/fma/f32", tmp_path)
    assert run.exit_code == 0, run.output
    assert "3 vectors" in run.output
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows[0] == {"id": "line-2", "model": "ieee/fma/f32", "a": ["3f800000"], "b": ["40000000"], "c": "3f800000",
                       "d": "40400000", "flags": "00"}  # fmt: skip
    found = CliRunner().invoke(main, ["evaluate", str(tmp_path / "out.jsonl")])
    assert found.exit_code == 1
    assert "3 rows, 1 mismatch" in found.output
    assert "out.jsonl:2" in found.output


def test_operands_in_the_order_of_a_plain_device(tmp_path: Path) -> None:
    unit = "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"
    line = " ".join(["38"] * 32 + ["40"] * 32 + ["3f800000", "7f", "80", "43010000"])
    assert imported(line + "\n", unit, tmp_path).exit_code == 0
    (row,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (row["a"], row["b"], row["c"]) == (["38"] * 32, ["40"] * 32, "3f800000")
    assert (row["scale_a"], row["scale_b"], row["d"]) == (["7f"], ["80"], "43010000")
    assert CliRunner().invoke(main, ["evaluate", str(tmp_path / "out.jsonl")]).exit_code == 0


def test_a_unit_without_an_addend(tmp_path: Path) -> None:
    assert imported("3c00 40000000\n", "x86/avx10.2/vcvtph2bf8", tmp_path).exit_code == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3f800000 3f800000 3f800000\n", "words:1: 3 words, where ieee/fma/f32 has 3 operands and a result"),
        ("\n0 0 0 0 0 0\n", "words:2: 6 words"),
        ("0 0 0 100000000\n", "words:1: '100000000' is no pattern of 32 bits"),
        ("0 0 -1 0\n", "'-1' is no pattern"),
        ("0 0 0_0 0\n", "is no pattern"),
    ],
)
def test_lines_that_are_wrong(text: str, words: str, tmp_path: Path) -> None:
    run = imported(text, "ieee/fma/f32", tmp_path)
    assert run.exit_code == 2
    assert words in run.output
