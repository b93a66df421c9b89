"""docs/disagreements.md: what it says of the papers, computed."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.hypotheses.claim import build_claims, claims_named
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.places import DOCS
from tests.tables.test_models import answer, probes

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.bf16.bf16.f32"


def text(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def section(heading: str) -> str:
    page = (DOCS / "disagreements.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##)", page, re.M | re.S)
    assert found, heading
    return " ".join(found[1].split())


def test_a_sum_in_two_steps_is_not_monotonic_in_a_product_for_normal_inputs() -> None:
    """With a product of 2^-7 in place of a zero the result falls; all other inputs are normal numbers."""
    a = [0, 0x45FF, 0x3FFF, 0x3F7F, 0, 0, 0, 0, 0, 0x3F80, 0, 0, 0x3F80, 0x3F80, 0x3F80, 0x3F80]
    b = [0, 0x4100, 0x4300, 0x3F80, 0, 0, 0, 0, 0, 0x3B80, 0, 0, 0x3B00, 0x3B00, 0x3B00, 0x3B00]
    model = parse_reference(AMPERE)
    before = evaluate_row(model, Operands(tuple(a), tuple(b), 0))
    raised = evaluate_row(model, Operands((0x3F80, *a[1:]), (0x3C00, *b[1:]), 0))
    assert (before, raised) == (0x47800001, 0x47800000)
    section_text = section("Is a sum monotonic?")
    assert f"{before:08x} into {raised:08x}" in section_text
    assert AMPERE in section_text


def test_three_carry_bits_are_shown() -> None:
    """Fasi's test of section 3.1.4 whose result is 8 needs three carry bits; with two the sum wraps."""
    probe = probes()["fasi.carry3"]
    found = {bits: answer(parse_reference(f"{VOLTA}@carry_bits={bits}"), probe) for bits in (2, 3, 4)}
    seen = int(probe["observed"]["V100"]["hex"], 16)
    assert [d == seen == 0x41000000 for d in found.values()] == [False, True, True]
    assert "the carry probes show at least three carry bits" in text("questions.md")


def test_one_product_of_f16_numbers_is_settled() -> None:
    assert {claim.expect for claim in claims_named("ootomo-not-worse-one-f16")} == {"holds"}
    section_text = section("Is Ootomo and Yokota's product more accurate than Markidis's?")
    assert "ootomo-not-worse-one-f16" in section_text
    assert "no input, no proof" not in section_text


@pytest.mark.parametrize(
    "model",
    [
        "ampere/mma/m16n8k16.f32.f16.f16.f32",
        "turing/mma/m16n8k8.f16.f16.f16.f16",
        "cdna1/mfma/f32_32x32x8f16",
        "cdna3/mfma/f32_16x16x16_f16",
        "rtx-blackwell/mma_block_scale/m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0",
        "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3",
    ],
)
def test_what_of_table_9_is_not_claimed(model: str) -> None:
    """Whoever makes `error_bound` take one of these mends the section about Table 9."""
    lines = ("id: t", "about: t", "source: t", "says: holds", "expect: holds", f"model: {model}", "error_bound: loose")
    (claim,) = build_claims(read_yaml("\n".join(lines) + "\n", "t.yaml"))
    with pytest.raises(MmaprobeError, match="one truncating sum"):
        decide(claim, Options(timeout=1))
    assert "Open: the rest of Table 9" in section("Is Table 9 of Xie the error?")


# --- misprints ----------------------------------------------------------------------------------------------------


def test_fasi_normalised_subtraction() -> None:
    """(1 + (-1 + 2^-24)) - 2^-24 is 2^-23 in one sum of V100; if the first sum is normalised, 2^-23 - 2^-24, not 0."""
    probe, model = probes()["fasi.norm_sub"], parse_reference(VOLTA)
    assert answer(model, probe) == _pattern(2.0**-23)
    one, small = (Operands((int(a["hex"], 16),), (int(b["hex"], 16),), 0)
                  for a, b in zip(probe["a"][:2], probe["b"][:2], strict=True))  # fmt: skip
    first = evaluate_row(model, replace(one, c=int(probe["c"]["hex"], 16)))
    assert first == _pattern(2.0**-23)
    assert evaluate_row(model, replace(small, c=first)) == _pattern(2.0**-23 - 2.0**-24)


def _pattern(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def test_navarro_equation_10() -> None:
    """Ones times X has the sums of columns, and each row of it holds all of them."""
    x = np.arange(16).reshape(4, 4)
    d = np.ones((4, 4), dtype=int) @ x
    assert (d == x.sum(axis=0)).all()
    assert not (d == x.sum(axis=1)[:, None]).all()


def test_misprints_are_in_the_table() -> None:
    table = text("disagreements.md").partition("## Misprints")[2]
    for place in (
        "Valpey, equation (1)",
        "Valpey, section 6",
        "Valero, Figure 2",
        "Fasi, section 3.1.4",
        "Navarro, equations (10)",
    ):
        assert place in table
