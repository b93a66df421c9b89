"""The instruction table, its errors, and the published divergence of Equation 10."""

from __future__ import annotations

from importlib.resources import files

import pytest

from mmaprobe.queries.compare.observed import evaluate_vectors
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import NotModelledError, UnknownNameError
from mmaprobe.smtmodel.inputs.vectors import read_vectors
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference


def test_every_row_is_a_model_with_its_source() -> None:
    assert len(INSTRUCTIONS) > 300
    for reference, row in INSTRUCTIONS.items():
        model = parse_reference(reference)
        assert model.reference == reference
        assert (model.a.name, model.b.name, model.length) == (row.a, row.b, row.shape[2])
        assert row.source
        assert row.origin in ("published model", "simulator's routine", "inferred")


def test_every_architecture_of_the_paper_is_there() -> None:
    architectures = {row.arch for row in INSTRUCTIONS.values()}
    nvidia = {"volta", "turing", "ampere", "ada-lovelace", "hopper", "blackwell", "rtx-blackwell"}
    assert architectures == nvidia | {"cdna1", "cdna2", "cdna3"} | {"arm", "riscv"}


def test_emulated_instructions_are_marked() -> None:
    emulated = {row.reference for row in INSTRUCTIONS.values() if row.emulated}
    assert "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16" in emulated
    assert all("e4m3" in name or "e5m2" in name for name in emulated)
    assert not any("wgmma" in name for name in emulated)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("turing/mma/m8n8k32.s32.s4.s4.s32", "integer"),
        ("blackwell/tcgen05mma_sp/m64n8k32.f32.f16.f16", "sparse"),
        ("ampere/mma/m8n8k4.f32.f16.f16.f32", "Volta and Turing alone"),
        ("blackwell/wgmma/m64n8k16.f32.f16.f16", "no wgmma"),
        ("cdna3/mfma/i32_4x4x4_16b_i8", "integer"),
        ("cdna4/mfma/f32_16x16x32_f16", "no published"),
        ("rdna3.5/wmma/f32_32x32x8_f16", "those of f16 and bf16"),
        ("rdna4/wmma/f32_16x16x16_fp8_fp8", "how FP8 is added is not published"),
    ],
)
def test_what_hardware_has_and_the_table_lacks(reference: str, words: str) -> None:
    with pytest.raises(NotModelledError, match=words):
        parse_reference(reference)


def test_a_misspelt_name_is_another_error() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'volta/mma/m8n8k4\.f32\.f16\.f16\.f32'"):
        parse_reference("volta/mma/m8n8k4.f32.f16.f16.f23")


def test_columns_of_wgmma_do_not_matter() -> None:
    wide, narrow = (parse_reference(f"hopper/wgmma/m64n{n}k16.f32.f16.f16") for n in (256, 8))
    assert wide == narrow
    with pytest.raises(UnknownNameError):
        parse_reference("hopper/wgmma/m64n12k16.f32.f16.f16")


def test_equation_10() -> None:
    """Table 8 of Xie et al. 2026: six different results of one input."""
    source = files("mmaprobe.hypotheses") / "vectors" / "equation-10.jsonl"
    rows = list(evaluate_vectors(read_vectors(source.read_text(encoding="utf-8").splitlines(), "equation-10")))
    assert len(rows) == 38
    assert [row.agrees for row in rows] == [True] * 38
    values = {float(value) for row in rows if not isinstance(value := exact_value(row.predicted, row.model.d), str)}
    assert values == {0.0, -0.375, -0.5, -0.75, -0.875, -1.0}


def test_m8n8k4_on_turing_is_volta_s_arithmetic() -> None:
    """Valpey et al. 2025, section 3.1: HMMA.884 runs on Volta and Turing, multiply-adds from Ampere on."""
    for formats in ("f32.f16.f16.f32", "f32.f16.f16.f16", "f16.f16.f16.f16"):
        volta, turing = (parse_reference(f"{arch}/mma/m8n8k4.{formats}") for arch in ("volta", "turing"))
        assert (turing.a, turing.c, turing.d) == (volta.a, volta.c, volta.d)
        assert turing.member == volta.member
        assert turing.c.name == formats.rpartition(".")[2]
    for arch in ("ampere", "ada-lovelace", "hopper", "blackwell", "rtx-blackwell"):
        with pytest.raises(NotModelledError, match="Volta and Turing alone"):
            parse_reference(f"{arch}/mma/m8n8k4.f32.f16.f16.f32")


def test_the_size_of_the_tile_does_not_matter() -> None:
    """MMA-Sim names tcgen05's block-scaled instructions m128n8 and wider; wgmma has 64 rows alone."""
    scaled = "blackwell/tcgen05mma_block_scale/m{}k64.block16.f32.e2m1.e2m1.ue8m0"
    assert parse_reference(scaled.format("128n256")) == parse_reference(scaled.format("64n8"))
    plain = "blackwell/tcgen05mma/m{}k16.f32.f16.f16"
    assert parse_reference(plain.format("128n16")) == parse_reference(plain.format("64n8"))
    for wrong in ("hopper/wgmma/m128n8k16.f32.f16.f16", plain.format("128n12"), plain.format("256n8")):
        with pytest.raises(UnknownNameError):
            parse_reference(wrong)
