"""Recorded results of GPUs: which instructions have them, what they decide and what they leave open."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.recorded_rows import DECISIONS, ROOT, TABLE, counted, decided, recorded_rows
from mmaprobe.reports.datasheet import Unasked, sheets_of
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.recordings import DECIDED, RECORDED
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units
from tests.records import Row, recorded, rows
from tests.reports.test_report import run
from tests.tables.test_models import H100, H200, mismatches, results
from tests.tables.test_models import RECORDED as ROWS

pytestmark = pytest.mark.records

PUBLISHED = sorted(rows(ROWS))  # instructions of MATLAB-tensor-core's rows; the others are of an H200 and an H100
GPUS = {"V100", "A100", "A2", "Ada", "L40S", "H100", "H200", "B200"}


def by_gpu(reference: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows(ROWS)[reference]:
        found.setdefault(row["gpu"], []).append(row)
    return found


# --- marks of evidence --------------------------------------------------------------------------------------------


F16 = "hopper/mma/m16n8k16.f32.f16.f16.f32"


def test_the_shipped_table_counts_the_rows() -> None:
    assert counted() == RECORDED, "to count them again: python -m benchmarks.recorded_rows"
    assert {gpu for gpus in RECORDED.values() for gpu in gpus} == GPUS
    assert set(RECORDED) == set(PUBLISHED) | set(rows(H200))
    assert (len(PUBLISHED), len(rows(H200)), sum(map(len, RECORDED.values()))) == (30, 32, 96)
    more = sum(map(len, rows(H100).values()))
    assert sum(count for gpus in RECORDED.values() for count in gpus.values()) == 21_000 + 2 * 35_816 + more


def test_the_table_is_installed_with_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert TABLE.parent.name == DECISIONS.parent.name == "tables"
    assert "tables/*.json" in project["tool"]["setuptools"]["package-data"]["mmaprobe.smtmodel"]


def test_recorded_is_said_of_the_instructions_that_have_rows() -> None:
    """Of these and of no other: the rows of an instruction say nothing firm about its neighbours."""
    document = {row["id"]: row for row in json.loads(run("list", "models", "--json", code=0).stdout)}
    assert {name for name, row in document.items() if row["evidence"].startswith("recorded:")} == set(RECORDED)
    assert set(units()) <= set(document)
    for name in INSTRUCTIONS:
        row = document[name]
        gpus = RECORDED.get(name, {})
        assert row["recorded"] == gpus
        assert all(f"{gpu} {count} rows" in row["evidence"] for gpu, count in gpus.items())
        assert gpus or row["evidence"] in ("published model", "simulator's routine", "inferred")
    lines = run("list", "models", code=0).stdout.splitlines()
    assert {line.split()[0] for line in lines if "[recorded: " in line} == set(RECORDED)
    assert any(f"{F16} " in x and f"[{recorded(F16)}]" in x for x in lines)


def test_a_data_sheet_names_the_instructions_that_are_recorded() -> None:
    sheets = sheets_of("hopper", Unasked(), Pieces(lambda text: None, "sheets"))
    (wgmma,) = (sheet for sheet in sheets if "hopper/wgmma/m64n8k32.f32.e4m3.e4m3" in sheet.instructions)
    for b in ("e4m3", "e5m2"):
        name = f"m64n8k32.f32.e4m3.{b}"
        assert f"{recorded(f'hopper/wgmma/{name}')} ({name})" in wgmma.basis
    for sheet in sheets:
        assert ("recorded: " in sheet.basis) == any(name in RECORDED for name in sheet.instructions)


# --- what they decide ---------------------------------------------------------------------------------------------


def changes(reference: str) -> Iterator[str]:
    """Nearby parameters that the rows of each GPU refute."""
    row = INSTRUCTIONS[reference]
    values = row.member.values
    yield f"output_rounding={'toward_zero' if row.c == 'f16' else 'nearest_even'}"
    if not reference.startswith("hopper/wgmma"):  # its addend was always zero
        yield f"family={'t-fdpa' if row.emulated else 'emulated-fp8'}"
    if row.c == "f32" or values["fraction_bits"] == 13:
        yield from (f"fraction_bits={values['fraction_bits'] + one}" for one in (-1, 1))
        yield from ("product=normalised", "align_rounding=nearest_even")
    if row.c == "f32":
        yield f"output={'f32' if row.d.name == 'e8m13' else 'e8m13'}"
    if row.emulated:
        yield "block_order=contiguous"
    elif values["block"] > 4:
        yield f"block={values['block'] // 2}"


def settled(reference: str) -> list[str]:
    return [change for change in changes(reference) if change not in LEFT_OPEN.get(reference, ())]


ONE_STEP = ("block=16",)  # eight products: nothing enters the second step
UNSEEN = ("product=normalised", "align_rounding=nearest_even")
EMULATED_F32 = (*UNSEEN, "output_rounding=nearest_even", "block_order=contiguous",
                *(f"fraction_bits={bits}" for bits in (24, 26)))  # fmt: skip
#: what the rows of an instruction leave open beside the exponent floor, which no row shows
LEFT_OPEN = {
    "volta/mma/m8n8k4.f16.f16.f16.f16": UNSEEN,
    **{f"{arch}/mma/m16n8k16.f16.f16.f16.f16": (*UNSEEN, *ONE_STEP)
       for arch in ("ampere", "ada-lovelace")},
    **{f"{arch}/mma/m16n8k16.f16.f16.f16.f16": UNSEEN
       for arch in ("hopper", "blackwell")},
    **{f"{arch}/mma/m16n8k16.f32.{x}.{x}.f32": ONE_STEP
       for arch in ("ampere", "ada-lovelace") for x in ("f16", "bf16")},
    **{f"{arch}/mma/m16n8k8.f32.tf32.tf32.f32": ("block=8",) for arch in ("ampere", "ada-lovelace")},
    **{f"{arch}/mma/m16n8k8.f32.tf32.tf32.f32": ("block=4",) for arch in ("hopper", "blackwell")},
    **{f"{arch}/mma/m16n8k32.f16.{x}.{x}.f16": UNSEEN
       for arch in ("hopper", "blackwell") for x in ("e4m3", "e5m2")},
    **{f"blackwell/mma/m16n8k32.f32.{x}.{x}.f32": EMULATED_F32 for x in ("e4m3", "e5m2")},
    **{f"hopper/wgmma/m64n8k32.f32.{x}.{x}": ("family=emulated-fp8",) for x in ("e4m3", "e5m2")},
}  # fmt: skip


@pytest.mark.parametrize("reference", PUBLISHED)
def test_the_rows_of_each_gpu_refute_nearby_parameters(reference: str) -> None:
    assert len(settled(reference)) >= 2
    for gpu, data in by_gpu(reference).items():
        for change in settled(reference):
            assert mismatches(parse_reference(f"{reference}@{change}"), data), f"{gpu}: {change}"


@pytest.mark.parametrize("reference", PUBLISHED)
def test_what_the_rows_leave_open(reference: str) -> None:
    for change in ("exponent_floor=none", *LEFT_OPEN.get(reference, ())):
        assert not mismatches(parse_reference(f"{reference}@{change}"), rows(ROWS)[reference]), change


def test_the_shipped_decisions_are_of_the_recorded_instructions() -> None:
    assert {name: set(gpus) for name, gpus in DECIDED.items()} == {name: set(gpus) for name, gpus in RECORDED.items()}


@pytest.mark.parametrize("reference", PUBLISHED)
def test_the_shipped_decisions_agree_with_what_the_rows_refute(reference: str) -> None:
    """`changes` and `LEFT_OPEN`, which were written by hand."""
    for change in changes(reference):
        name, _, value = change.partition("=")
        stands = change in LEFT_OPEN.get(reference, ())
        for gpu, one in DECIDED[reference].items():
            if reference in rows(H200) and gpu in ("H100", "H200"):
                continue  # which have other rows as well
            near = one["open"].get(name, [])
            known = name in one["decided"] or name in one["open"]
            assert not known or (value in near) == stands or (value == "contiguous" and near), f"{gpu}: {change}"


ALL = [pytest.param(name, marks=[] if name.startswith("volta") else pytest.mark.slow) for name in sorted(RECORDED)]


@pytest.mark.parametrize("reference", ALL)
def test_the_shipped_decisions_follow_from_the_rows(reference: str) -> None:
    assert decided(reference, recorded_rows()[reference]) == DECIDED[reference]


#: the least number of fraction bits that fits the rows, where these leave it open; every larger one fits as well
LEAST_BITS = {
    "volta/mma/m8n8k4.f16.f16.f16.f16": 21,
    "ampere/mma/m16n8k16.f16.f16.f16.f16": 20,
    "ada-lovelace/mma/m16n8k16.f16.f16.f16.f16": 22,
    "hopper/mma/m16n8k16.f16.f16.f16.f16": 22,
    "blackwell/mma/m16n8k16.f16.f16.f16.f16": 22,
    "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16": 16,
    "hopper/mma/m16n8k32.f16.e5m2.e5m2.f16": 18,
    "blackwell/mma/m16n8k32.f16.e4m3.e4m3.f16": 16,
    "blackwell/mma/m16n8k32.f16.e5m2.e5m2.f16": 18,
    "blackwell/mma/m16n8k32.f32.e4m3.e4m3.f32": 20,
    "blackwell/mma/m16n8k32.f32.e5m2.e5m2.f32": 23,
}


@pytest.mark.parametrize(("reference", "least"), LEAST_BITS.items())
def test_how_many_fraction_bits_the_rows_need(reference: str, least: int) -> None:
    assert mismatches(parse_reference(f"{reference}@fraction_bits={least - 1}"), rows(ROWS)[reference])
    for bits in (least, 35):
        assert not mismatches(parse_reference(f"{reference}@fraction_bits={bits}"), rows(ROWS)[reference])


WORDS = {
    "block=16": "steps of 8 or 16",
    "block=8": "steps of 4 or 8",
    "block=4": "steps of 4 or 8",
    "product=normalised": "normalised products",
    "align_rounding=nearest_even": "bits truncated or rounded",
    "output_rounding=nearest_even": "rounding of the result",
    "block_order=contiguous": "order of the products",
    "family=emulated-fp8": "where the addend enters (it is always zero)",
}


def left_open(reference: str) -> str:
    """In words, beside the exponent floor and the sign of a zero, which no row shows."""
    least = [f"F ({LEAST_BITS[reference]} or more)"] if reference in LEAST_BITS else []
    return ", ".join(least + [WORDS[change] for change in LEFT_OPEN.get(reference, ()) if change in WORDS])


def test_the_rows_show_three_carry_bits_and_no_fourth() -> None:
    small = {"ada-lovelace/mma/m16n8k16.f32.bf16.bf16.f32", "hopper/mma/m16n8k8.f32.tf32.tf32.f32",
             "blackwell/mma/m16n8k8.f32.tf32.tf32.f32"}  # fmt: skip
    for reference in PUBLISHED:
        two, three = (parse_reference(f"{reference}@carry_bits={bits}") for bits in (2, 3))
        assert not mismatches(three, rows(ROWS)[reference])
        assert bool(mismatches(two, rows(ROWS)[reference])) == (reference not in small), reference
    assert {gpu for name, gpus in RECORDED.items() if name not in small for gpu in gpus} == GPUS


def test_no_result_is_zero() -> None:
    assert all(int(row["d"], 16) for data in rows(ROWS).values() for row in data)


def test_one_row_shows_that_b200_rounds_to_f16_once() -> None:
    """Valpey's Algorithm 1, lines 6 to 8, cuts the sum to f32 before it is rounded to f16. Among the rows of f16 with
    f16 results one tells this from a single rounding."""
    refuting, seen = [], 0
    for reference in (name for name in PUBLISHED if name.endswith(".f16.f16.f16.f16")):
        data = rows(ROWS)[reference]
        cut = results(parse_reference(f"{reference}@output=f32,output_rounding=toward_zero"), data)
        twice = np.array(cut, dtype=np.uint32).view(np.float32).astype(np.float16).view(np.uint16)
        refuting += [(row, f"{d:04x}") for row, d in zip(data, twice, strict=True) if int(row["d"], 16) != d]
        seen += len(data)
    assert seen == 3_600
    ((row, d),) = refuting
    assert (row["gpu"], row["instruction"], row["a"][:2]) == ("B200", "m16n8k16.f16.f16.f16.f16", ["b399", "bc06"])
    assert (row["d"], d) == ("c0c3", "c0c2")


def test_what_users_saw_of_the_addend_of_fp8() -> None:
    """With A = B = 0 `wgmma` gives the addend with its low 10 bits truncated (SageAttention2, quoted in issue 287 of
    thu-ml/SageAttention), and `mma` on Hopper, an emulation, all of it (deepseek-ai/DeepGEMM, issue 37)."""
    row = {"a": ["00"], "b": ["00"], "c": "40403017"}
    cut, whole = (
        results(parse_reference(f"hopper/{name}"), [row])[0]
        for name in ("wgmma/m64n8k32.f32.e4m3.e4m3", "mma/m16n8k32.f32.e4m3.e4m3.f32")
    )
    assert (cut, whole) == (0x40403000, 0x40403017)
    ada = parse_reference("ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32")
    assert results(ada, [row])[0] == 0x40403000
