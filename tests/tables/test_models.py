"""The models of the instruction table against recorded hardware, published vectors and published probes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from mmaprobe.hypotheses.library import question_named
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.cpu import Inputs
from tests.oracles import node_oracle
from tests.oracles.oracle import decode
from tests.places import DATA
from tests.records import Row, rows
from tests.units.test_nodes import oracle

RECORDED, GOLDEN, H200, H100 = "recorded.jsonl.gz", "mma_sim_public.jsonl.gz", "h200.jsonl.gz", "h100.jsonl.gz"


def table(data: Sequence[Row], field: str) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A column of lists of patterns, zeros where a list is short."""
    width = max(len(row[field]) for row in data)
    lists = [[int(x, 16) for x in row[field]] for row in data]
    return np.array([row + [0] * (width - len(row)) for row in lists], dtype=np.uint64)


def results(model: Model, data: Sequence[Row]) -> list[int]:
    scales = [table(data, field) for field in ("scale_a", "scale_b") if model.scale is not None]
    c = np.array([int(row["c"], 16) for row in data], dtype=np.uint64)
    return [int(x) for x in evaluate_batch(model, table(data, "a"), table(data, "b"), c, *scales)]


def same(model: Model, ours: int, theirs: int) -> bool:
    """Bit for bit; any NaN will do where the model names no pattern."""
    if ours == theirs or model.nan is not None:
        return ours == theirs
    return all(decode(model.d.name, pattern).kind == "nan" for pattern in (ours, theirs))


def mismatches(model: Model, data: Sequence[Row]) -> list[Row]:
    pairs = zip(results(model, data), data, strict=True)
    return [{**row, "ours": f"{ours:x}"} for ours, row in pairs if not same(model, ours, int(row["d"], 16))]


# --- recorded hardware and published vectors ----------------------------------------------------------------------

VOLTA, AMPERE, HOPPER = (
    "volta/mma/m8n8k4.f32.f16.f16.f32",
    "ampere/mma/m16n8k16.f32.f16.f16.f32",
    "hopper/mma/m16n8k16.f32.f16.f16.f32",
)
EMULATED = "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16"


def test_every_instruction_of_the_data_is_in_the_table() -> None:
    assert set(rows(RECORDED)) | set(rows(GOLDEN)) <= set(INSTRUCTIONS)
    assert (len(rows(RECORDED)), len(rows(GOLDEN))) == (30, 39)
    assert sum(map(len, rows(RECORDED).values())) == 21_000
    assert sum(map(len, rows(GOLDEN).values())) == 2340


@pytest.mark.parametrize("reference", sorted(rows(RECORDED)))
def test_recorded_hardware(reference: str) -> None:
    wrong = mismatches(parse_reference(reference), rows(RECORDED)[reference])
    assert not wrong[:3]


@pytest.mark.parametrize("reference", sorted(rows(H200)))
def test_an_h200_on_every_condition(reference: str) -> None:
    """Special values, covering vectors, questions and random bits: `make evidence`, 2026-11-26."""
    data = rows(H200)[reference]
    assert len(data) > 400
    assert not mismatches(parse_reference(reference), data)[:3]


@pytest.mark.parametrize("reference", sorted(rows(H100)))
def test_an_h100_on_random_and_shaped_vectors(reference: str) -> None:
    data = rows(H100)[reference]
    assert len(data) > 90
    assert not mismatches(parse_reference(reference), data)[:3]


@pytest.mark.parametrize(("a", "b"), [("e4m3", "e5m2"), ("e5m2", "e4m3")])
def test_an_h200_converts_fp8_to_f16_first(a: str, b: str) -> None:
    """Through `mma`, where subnormals of e4m3 become normal numbers; `wgmma` takes them as they are."""
    own = f"hopper/mma/m16n8k32.f32.{a}.{b}.f32@input_format=own"
    assert len(mismatches(parse_reference(own), rows(H200)[own.partition("@")[0]])) >= 20
    unit = f"hopper/wgmma/m64n8k32.f32.{a}.{b}"
    assert len(mismatches(parse_reference(f"{unit}@input_format=f16"), rows(H200)[unit])) >= 20


@pytest.mark.parametrize("reference", sorted(rows(GOLDEN)))
def test_published_vectors(reference: str) -> None:
    wrong = mismatches(parse_reference(reference), rows(GOLDEN)[reference])
    assert not wrong[:3]


def test_published_alternatives_are_other_readings_of_overflow() -> None:
    """What the paper leaves open, saturation, is a value of the parameter."""
    seen = 0
    for reference, data in rows(GOLDEN).items():
        other = [{**row, "d": row["alt"]["rz_saturate"]} for row in data if row.get("alt")]
        if other:
            assert not mismatches(parse_reference(f"{reference}@overflow=saturate"), other)
            assert len(mismatches(parse_reference(reference), other)) == len(other)
            seen += len(other)
    assert seen == 23


MUTATIONS = [
    *((VOLTA, f"fraction_bits={bits}") for bits in (22, 24)),
    *((AMPERE, f"fraction_bits={bits}") for bits in (23, 25)),
    *((HOPPER, f"fraction_bits={bits}") for bits in (24, 26)),
    *((unit, "output_rounding=nearest_even") for unit in (VOLTA, AMPERE, HOPPER)),
    *((unit, "product=normalised") for unit in (VOLTA, AMPERE, HOPPER)),
    (HOPPER, "block=8"),
    (VOLTA, "carry_bits=1"),
    (VOLTA, "partials=normalised"),
    ("volta/mma/m8n8k4.f16.f16.f16.f16", "output_rounding=toward_zero"),
    ("ampere/mma/m16n8k16.f16.f16.f16.f16", "output_rounding=toward_zero"),
    ("hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "fraction_bits=14"),
    ("hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "fraction_bits=12"),
    (EMULATED, "block_order=contiguous"),
    (EMULATED, "family=t-fdpa"),
    (EMULATED, "fraction_bits=13"),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "change"), MUTATIONS)
def test_recorded_hardware_refutes_other_parameters(reference: str, change: str) -> None:
    assert mismatches(parse_reference(f"{reference}@{change}"), rows(RECORDED)[reference])


# --- published probes ---------------------------------------------------------------------------------------------

DEVICES = {
    "V100": "volta",
    "Volta": "volta",
    "hardware": "volta",  # Valpey et al.: a Titan V among others; F = 23 fits, so Volta
    "T4": "turing",
    "Turing": "turing",
    "A100": "ampere",
    "Ampere": "ampere",
    "Ada Lovelace": "ada-lovelace",
    "Hopper": "hopper",
    "H100": "hopper",
    "Blackwell": "blackwell",
    "RTX Blackwell": "rtx-blackwell",
    "CDNA1": "cdna1",
    "CDNA2": "cdna2",
    "CDNA3": "cdna3",
    # no architecture, but a format
    "Volta..RTX Blackwell (f64)": "ieee",
    "CDNA2..CDNA3 (f64)": "ieee",
    "CDNA1..CDNA3 (f32)": "ieee",
}
LEFT_OUT = {
    "valpey.t5_printed": "a misprint: the printed exponents cannot give the printed result",
    "valpey.t5_corrected": "a result of two solver models, not of hardware",
    "valpey.site.interm_0": "a misprint: the printed exponent contradicts the printed result; see its _corrected twin",
    "valpey.site.interm_5": "unresolved: no known model reproduces the printed result",
}
RELATIONS = {
    "greater than": lambda x, y: x > y,
    "less than": lambda x, y: x < y,
    "not greater than": lambda x, y: x <= y,
    "not less than": lambda x, y: x >= y,
}


@cache
def probes() -> dict[str, Row]:
    document = json.loads((DATA / "published_probes.json").read_text(encoding="utf-8"))
    return {probe["id"]: probe for probe in document["probes"]}


def models_for(probe: Row, device: str) -> list[str]:
    """Every instruction of the device's architecture that takes the probe's formats and as many products."""
    arch, length = DEVICES[device], len(probe["a"])
    inputs = str(probe["in_format"]).replace("xf32", "tf32")
    if inputs in ("f32", "f64"):
        chains = [f"ieee/fma/{inputs}@length={length}"]
        return chains if arch == "ieee" else chains + _instructions(arch, inputs, probe, length)
    return _instructions(arch, inputs, probe, length)


def _instructions(arch: str, inputs: str, probe: Row, length: int) -> list[str]:
    return [
        reference
        for reference, row in INSTRUCTIONS.items()
        if row.arch == arch
        and (row.a, row.b, row.c) == (inputs, inputs, probe["c_format"])
        and not (arch == "turing" and row.name.startswith("m8n8k4"))  # Volta's arithmetic; nobody's probes went there
        and (row.d.name == "f16") == (row.c == "f16")  # results were printed in the addend's format
        and not row.emulated
        and row.scale is None
        and row.length >= length
        and (arch != "cdna2" or inputs != "bf16" or row.name.endswith("_1k") == probe["id"].endswith("_1k"))
    ]


def answer(model: Model, probe: Row) -> int:
    data = {side: [x["hex"] for x in probe[side]] for side in "ab"}
    return results(model, [{**data, "c": probe["c"]["hex"]}])[0]


def number(model: Model, pattern: int) -> Any:
    return decode(model.d.name, pattern).value


def partner(probe: Row) -> Row:
    """The other one of a pair of probes of monotonicity."""
    swap = {"lo": "hi", "hi": "lo"}
    head, _, tail = probe["id"].rpartition("_")
    return probes()[f"{head}_{swap[tail]}"]


def as_published(model: Model, probe: Row, seen: Row) -> bool:
    ours = answer(model, probe)
    if "relation" in seen:
        relation = seen["relation"].partition(" result of")[0]
        return bool(RELATIONS[relation](number(model, ours), number(model, answer(model, partner(probe)))))
    return any(same(model, ours, int(one["hex"], 16)) for one in seen.get("one_of", [seen]))


def observations() -> Iterator[tuple[str, str]]:
    for name, probe in probes().items():
        for device in probe["observed"]:
            if name not in LEFT_OUT:
                yield name, device


@pytest.mark.parametrize("device", DEVICES)
def test_published_probes(device: str) -> None:
    wrong = []
    for name, where in observations():
        if where == device:
            probe = probes()[name]
            references = models_for(probe, device)
            assert references, name
            for reference in references:
                model = parse_reference(reference)
                if not as_published(model, probe, probe["observed"][device]):
                    wrong.append(f"{name} on {reference}: {answer(model, probe):x}")
    assert not wrong


def test_every_probe_was_asked() -> None:
    count = Counter(DEVICES[device] for _, device in observations())
    assert len(probes()) == 158
    assert {name for name, _ in observations()} == set(probes()) - set(LEFT_OUT)
    assert len(set(probes()) & set(LEFT_OUT)) == 4
    assert sum(count.values()) == 208
    assert {arch: count[arch] for arch in ("volta", "turing", "ampere", "hopper")} == {
        "volta": 46,
        "turing": 33,
        "ampere": 100,
        "hopper": 5,
    }


@pytest.mark.parametrize(
    ("name", "device", "change"),
    [
        ("valpey.site.order", "hardware", "fraction_bits=24"),
        ("valpey.site.interm_4", "hardware", "product=normalised"),
        ("valpey.site.carry3", "hardware", "carry_bits=2"),
        ("fasi.align_extra_bits", "V100", "fraction_bits=24"),
        ("fasi.align_extra_bits", "A100", "fraction_bits=23"),
        ("mmasim.t8.Hopper.f16", "Hopper", "fraction_bits=24"),
        *(
            ("matlab-tensor-core.issue-7", "H100", f"exponent_floor={floor}")
            for floor in ("none", -131, -132, -134, -135)
        ),
    ],
)
def test_probes_refute_other_parameters(name: str, device: str, change: str) -> None:
    probe = probes()[name]
    references = models_for(probe, device)
    assert references
    for reference in references:
        assert not as_published(parse_reference(f"{reference}@{change}"), probe, probe["observed"][device])


def test_the_addend_after_a_chain_is_added_to_nearest() -> None:
    """Whatever the rounding of the chain's own results: 64 + 3*2^-18 lies half way between two f32, and goes up."""
    model = parse_reference("hopper/mma/m16n8k32.f32.e4m3.e4m3.f32")
    assert model.member is not None
    assert model.member.values["output_rounding"] == "toward_zero"
    a, b = (np.array([[factor] + [0] * 31], dtype=np.uint64) for factor in (3, 1))
    assert int(evaluate_batch(model, a, b, np.array([0x42800000], dtype=np.uint64))[0]) == 0x42800002


def test_xf32_reads_f32_truncated() -> None:
    """CDNA3's row, which ignores the bits of f32 below xf32's, is the hypothesis "truncated" of its question."""
    question = question_named("xf32-input-cdna3")
    row = parse_reference("cdna3/mfma/f32_16x16x8_xf32")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 32, (4000, 8), dtype=np.uint64) for _ in "ab")
    a[:2000], b[:2000] = (side[:2000] & 0x81FFFFFF | 0x3E000000 for side in (a, b))  # of like magnitudes
    c = rng.integers(0, 1 << 32, 4000, dtype=np.uint64)
    a, b, c = (np.where((side >> np.uint64(23)) & np.uint64(255) == 255, np.uint64(0), side) for side in (a, b, c))
    wanted = evaluate_batch(row, a, b, c)
    same = {name: (evaluate_batch(model, a, b, c) == wanted) for name, model in question.models.items()}
    assert same["truncated"].all()
    assert not same["down"].all()
    assert not same["nearest"].all()


def test_dot2_of_cdna_on_a_published_input() -> None:
    """-2^-24 * 2^-14 is +0 on gfx90a, and -2^-38 on gfx950 (LLVM's pull request 205101)."""
    models = question_named("dot2-subnormals-cdna").models
    a, b, c = np.array([[0x8001, 0]]), np.array([[0x0400, 0]]), np.array([0])
    assert {name: int(evaluate_batch(model, a, b, c)[0]) for name, model in models.items()} == {
        "zero": 0, "kept": 0xAC800000
    }  # fmt: skip
    row = parse_reference("cdna2/dot2/f32_f16")
    assert int(evaluate_batch(row, a, b, c)[0]) == 0
    vectors = Inputs(row, 58).vectors(4000)
    assert evaluate_batch(row, *vectors).tolist() == [
        row.d.nan if d == node_oracle.ANY_NAN else d for d in oracle(row.unit, vectors)
    ]
