"""Models on the array carrier, as solver terms, and in the exact-rational oracle: the same results, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate import batch
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.inputs import KINDS, Patterns, inputs, mixture, scale_factors
from tests.oracles import oracle
from tests.oracles.family_oracle import parameters_of
from tests.oracles.termeval import evaluate_term

pytestmark = pytest.mark.oracle

VOLTA, VOLTA_F16 = "volta/mma/m8n8k4.f32.f16.f16.f32", "volta/mma/m8n8k4.f16.f16.f16.f16"
AMPERE, AMPERE_F16 = "ampere/mma/m16n8k8.f32.f16.f16.f32", "ampere/mma/m16n8k16.f16.f16.f16.f16"
BF16, TF32 = "ampere/mma/m16n8k16.f32.bf16.bf16.f32", "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
ADA = "ada-lovelace/mma/m16n8k16.f32.e4m3.e5m2.f32"

#: the families of models, each held to at least TERM_INPUTS inputs
FAMILIES: dict[str, tuple[str, ...]] = {
    "truncated, f32": (
        VOLTA,
        AMPERE,
        BF16,
        TF32,
        "hopper/mma/m16n8k16.f32.f16.f16.f32",
        "hopper/wgmma/m64n8k8.f32.tf32.tf32",
        f"{VOLTA}@carry_bits=2",
        f"{VOLTA}@carry_bits=3,product=normalised",
        f"{AMPERE}@product=normalised",
        f"{VOLTA}@product=rounded_f16",
        f"{VOLTA}@product=rounded_f32,product_rounding=toward_zero",
        f"{VOLTA}@align_rounding=down",
        f"{VOLTA}@align_rounding=up,fraction_bits=10",
        f"{VOLTA}@align_rounding=nearest_even",
        f"{TF32}@align_rounding=nearest_away,fraction_bits=12",
        f"{VOLTA}@exponent_floor=none",
        f"{TF32}@exponent_floor=none,fraction_bits=60",
        f"{VOLTA}@exponent_floor=-20,fraction_bits=12",
        f"{VOLTA}@exponent_floor=-6,fraction_bits=12,floor_applies_to=maximum",
        f"{VOLTA_F16}@output=f32,exponent_floor=-24",  # cuts the very last bit of a product
        f"{VOLTA_F16}@output=f32,exponent_floor=-25",  # cuts nothing
        f"{BF16}@floor_applies_to=maximum",
        f"{VOLTA}@zero_sign=ieee",
        f"{AMPERE}@zero_sign=ieee,output_rounding=down",
        f"{BF16}@overflow=saturate",
        f"{BF16}@overflow=ieee,output_rounding=up",
        f"{VOLTA}@flush_inputs=true",
        f"{BF16}@flush_outputs=true",
        f"{BF16}@nan=7fc00000,output_rounding=nearest_away",
        f"{AMPERE}@block=2",
        f"{AMPERE}@block_order=0-1-4-5:2-3-6-7",
        f"{AMPERE}@length=4,block_order=3:1:2:0",
        f"{VOLTA}@output=f64,fraction_bits=50,nan=none",
        f"{TF32}@zero_sign=positive",
    ),
    "truncated, f16": (
        VOLTA_F16,
        AMPERE_F16,
        "hopper/wgmma/m64n8k16.f16.f16.f16",
        "ada-lovelace/mma/m16n8k32.f16.e4m3.e4m3.f16",
        "hopper/wgmma/m64n8k32.f16.e5m2.e4m3",
        f"{VOLTA_F16}@overflow=saturate,flush_outputs=true",
        f"{VOLTA_F16}@output_rounding=toward_zero,exponent_floor=-19",
        f"{VOLTA_F16}@carry_bits=0,fraction_bits=3",
        f"{VOLTA_F16}@zero_sign=positive,align_rounding=down",
        "volta/mma/m8n8k4.f32.f16.f16.f16",
    ),
    "truncated, e8m13": (
        "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32",
        ADA,
        "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
        "hopper/wgmma/m64n8k32.f32.e5m2.e5m2",
        f"{ADA}@fraction_bits=14,product=normalised",
        f"{ADA}@output_rounding=nearest_even,align_rounding=nearest_even",
    ),
    "exact and sticky": (
        f"{VOLTA}@fraction_bits=exact",
        f"{VOLTA_F16}@fraction_bits=exact,zero_sign=ieee",
        f"{VOLTA}@align_rounding=sticky,output_rounding=nearest_even",
        f"{BF16}@length=3,align_rounding=sticky,output_rounding=down",
        f"{ADA}@family=e-fdpa,output_rounding=nearest_away",
        "cdna1/mfma/f32_32x32x8f16",
        "cdna1/mfma/f32_32x32x4bf16",
    ),
    "normalised partials": (
        f"{VOLTA}@partials=normalised",
        f"{VOLTA}@partials=normalised,product=rounded_f16,output_rounding=nearest_even",
        f"{VOLTA_F16}@partials=normalised",
        f"{BF16}@partials=normalised,block=4,exponent_floor=none",
        f"{ADA}@partials=normalised,fraction_bits=10",
        f"{VOLTA}@partials=normalised,align_rounding=sticky",
    ),
    "fma chain": (
        "ieee/fma/f16@length=3",
        "ieee/fma/f32",
        "ieee/fma/f64",
        "ieee/fma/f64@length=4",
        "ieee/fma/f32@length=2,output_rounding=up",
        "cdna3/mfma/f32_16x16x4_f32",
    ),
    "addend after": (
        "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16",
        "hopper/mma/m16n8k32.f32.e5m2.e4m3.f32",
        f"{VOLTA}@family=emulated-fp8",
        f"{AMPERE_F16}@family=emulated-fp8,block_order=0-1-2-3-12-13-14-15:4-5-6-7-8-9-10-11",
    ),
    "addend late": (
        "cdna3/mfma/f32_32x32x4_2b_f16",
        "cdna3/mfma/f32_16x16x16_bf16",
        "cdna3/mfma/f32_16x16x8_xf32",
        "cdna3/mfma/f32_16x16x32_fp8_fp8",
        "cdna3/mfma/f32_32x32x16_bf8_fp8",
        "cdna3/mfma/f32_32x32x4_2b_bf16@late_fraction_bits=31,late_sum_bits=none",
        "cdna3/mfma/f32_32x32x4_2b_bf16@late_sum_bits=12",
        "cdna3/mfma/f32_32x32x8_f16@late_sum_bits=25,late_rounding=nearest_even,zero_sign=ieee,output_rounding=up",
        "cdna3/mfma/f32_32x32x16_fp8_bf8@late_sum_bits=23,late_rounding=toward_zero,zero_sign=always_positive",
    ),
    "pairwise": (
        "cdna2/mfma/f32_32x32x8f16",
        "cdna2/mfma/f32_32x32x4bf16",
        "cdna2/mfma/f32_32x32x8bf16_1k",
        "cdna2/mfma/f32_32x32x4bf16@input_zeros=signed",
    ),
    "scaled": (
        "rtx-blackwell/mma_block_scale/m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0",
        "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3",
        "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue8m0",
    ),
}
#: where a datapath that is right for the instructions of the table can still be wrong
CORNERS = (
    f"{ADA}@family=e-fdpa,length=1",  # a zero product whose exponent lies far above the addend
    f"{ADA}@family=fma-chain,length=2",
    "ieee/fma/f16@output=f32",  # more digits in the result than in the terms
    f"{VOLTA}@output=f16,family=emulated-fp8",  # the addend is wider than the result
    f"{VOLTA_F16}@family=emulated-fp8,flush_inputs=true,flush_outputs=true",
    f"{TF32}@partials=normalised",  # partial sums overflow before an infinite addend comes
    f"{VOLTA}@length=1,flush_inputs=true,zero_sign=ieee",  # the sign of a zero that is not subnormal
    f"{BF16}@product=normalised,product_overflow=100",
    f"{VOLTA}@length=2,product=rounded_e5m2,product_rounding=up,product_overflow=0",  # rounded up to the limit
    f"{VOLTA}@length=2,input_zeros=positive,zero_sign=ieee",
    f"{VOLTA_F16}@family=emulated-fp8,input_zeros=positive,zero_sign=ieee",
    "cdna2/mfma/f32_32x32x4bf16@flush_inputs=false",
)
TERM_INPUTS = 10_000
ORACLE_INPUTS = 300
REFERENCES = [reference for family in FAMILIES.values() for reference in family]
SHARE = {reference: -(-TERM_INPUTS // len(family)) for family in FAMILIES.values() for reference in family}
Columns = Sequence[Patterns]


def rng_for(text: str) -> np.random.Generator:
    return np.random.default_rng([ord(letter) for letter in text])


def draw(model: Model, count: int) -> list[Patterns]:
    """a, b, c and the scale factors, if there are any, of all kinds of inputs."""
    rng = rng_for(model.reference)
    a, b, c = mixture(model, count, rng)
    return [a, b, c, *scale_factors(model, len(c), rng)]


def by_terms(model: Model, columns: Columns) -> list[int]:
    """The results of the solver terms."""
    carrier, values = TermCarrier(), {}

    def symbols(name: str, table: Patterns, width: int) -> list[Bits]:
        values.update({f"{name}{k}": table[:, k] for k in range(table.shape[1])})
        return [carrier.symbol(f"{name}{k}", width) for k in range(table.shape[1])]

    a, b, c, *scales = columns
    left, right = symbols("a", a, model.a.width), symbols("b", b, model.b.width)
    (addend,) = symbols("c", c[:, None], model.c.width)
    scale_width = model.scale.width if model.scale else 0
    factors = [symbols(name, table, scale_width) for name, table in zip("st", scales, strict=False)]
    result = evaluate(model, left, right, addend, *factors)
    return [int(x) for x in evaluate_term(result.d.node, values)]


def by_oracle(model: Model, columns: Columns) -> list[int]:
    """The results in exact rationals."""
    parameters = parameters_of(model)
    formats = {side: getattr(model, side).name for side in "abcd"}
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [oracle.evaluate(formats, parameters, *row) for row in rows]


def is_nan(model: Model, pattern: int) -> bool:
    return oracle.decode(model.d.name, pattern).kind == "nan"


def disagreements(model: Model, columns: Columns, ours: Sequence[int], theirs: Sequence[int]) -> list[str]:
    """The first rows with different results; any NaN will do where the model names no pattern."""
    wrong = []
    for index, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        free = model.nan is None and is_nan(model, x) and is_nan(model, y)
        if x != y and not free:
            row = "; ".join(" ".join(f"{p:x}" for p in np.atleast_1d(column[index]).tolist()) for column in columns)
            wrong.append(f"{row} gives {x:x}, not {y:x}")
    return [f"{len(wrong)} of {len(ours)}", *wrong[:3]] if wrong else []


@pytest.mark.parametrize("reference", REFERENCES)
def test_arrays_and_terms(reference: str) -> None:
    model = parse_reference(reference)
    columns = draw(model, SHARE[reference])
    results = evaluate_batch(model, *columns).tolist()
    assert len(results) >= SHARE[reference]
    assert by_terms(model, columns) == results


@pytest.mark.parametrize("reference", [*REFERENCES, *CORNERS])
def test_arrays_and_oracle(reference: str) -> None:
    model = parse_reference(reference)
    columns = draw(model, ORACLE_INPUTS)
    results = evaluate_batch(model, *columns).tolist()
    wrong = disagreements(model, columns, results, by_oracle(model, columns))
    assert not wrong
    alone = [evaluate_batch(model, *(column[k : k + 1] for column in columns)).item() for k in range(8)]
    assert alone == results[:8]  # the algebra folds what arrays compute


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_exercised(family: str) -> None:
    """Every family sees ten thousand inputs, and among the results every kind of number but those it cannot give."""
    assert sum(SHARE[reference] for reference in FAMILIES[family]) >= TERM_INPUTS
    seen = set()
    for reference in FAMILIES[family]:
        model = parse_reference(reference)
        for pattern in evaluate_batch(model, *draw(model, 1000)).tolist():
            x = oracle.decode(model.d.name, pattern)
            finite = "zero" if not x.significand else "normal" if x.significand >= 1 else "subnormal"
            seen.add(finite if x.kind == "finite" else x.kind)
    flushed = {"subnormal"} if family == "pairwise" else set()
    assert seen == {"nan", "inf", "zero", "normal", "subnormal"} - flushed


@pytest.mark.parametrize("reference", [VOLTA, AMPERE_F16, "ieee/fma/f64", FAMILIES["scaled"][1]])
def test_chunks_do_not_matter(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse_reference(reference)
    columns = draw(model, batch.CHUNK + 5)
    whole = evaluate_batch(model, *columns)
    pieces = [slice(0, 1), slice(1, 4000), slice(4000, None)]
    parts = [evaluate_batch(model, *(column[piece] for column in columns)) for piece in pieces]
    assert np.concatenate(parts).tolist() == whole.tolist()
    monkeypatch.setattr(batch, "CHUNK", 97)
    assert evaluate_batch(model, *(column[:1000] for column in columns)).tolist() == whole[:1000].tolist()


def test_one_lane_and_no_lane() -> None:
    model = parse_reference(VOLTA)
    a, b, c = inputs("normal", model, 8, np.random.default_rng(1))
    whole = evaluate_batch(model, a, b, c).tolist()
    assert [int(evaluate_batch(model, a[k : k + 1], b[k : k + 1], c[k : k + 1])[0]) for k in range(8)] == whole
    assert evaluate_batch(model, a[:0], b[:0], c[:0]).shape == (0,)
    strided = [np.repeat(side, 2, axis=0)[::2] for side in (a, b, c)]
    assert evaluate_batch(model, *strided).tolist() == whole


@pytest.mark.parametrize(
    "reference",
    [
        AMPERE,
        AMPERE_F16,
        ADA,
        f"{AMPERE}@zero_sign=ieee",
        f"{VOLTA}@partials=normalised",
        f"{VOLTA}@fraction_bits=exact",
        "ieee/fma/f16@length=3",
        "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16",
        "cdna3/mfma/f32_16x16x32_fp8_fp8",
        "cdna2/mfma/f32_32x32x8f16",
    ],
)
def test_missing_products_are_zero(reference: str) -> None:
    """On every carrier; the terms then hold constants for what is missing."""
    model = parse_reference(reference)
    for kept in {1, 2, model.length // 2, model.length - 1}:
        a, b, c = mixture(model, 200, rng_for(reference))
        a, b = a.copy(), b.copy()
        a[:, kept:] = b[:, kept:] = 0
        expected = evaluate_batch(model, a, b, c).tolist()
        short = [a[:, :kept], b[:, :kept], c]
        assert evaluate_batch(model, *short).tolist() == expected
        assert by_terms(model, short) == expected
        some = [column[:60] for column in short]
        wrong = disagreements(model, some, expected[:60], by_oracle(model, some))
        assert not wrong


@pytest.mark.parametrize("kind", KINDS)
def test_generators(kind: str) -> None:
    """Seeded, of the promised shapes, and within the widths of the formats."""
    for reference in (VOLTA, TF32, ADA, "ieee/fma/f64"):
        model = parse_reference(reference)
        first, second = (inputs(kind, model, 50, np.random.default_rng(3)) for _ in range(2))
        assert all((x == y).all() for x, y in zip(first, second, strict=True))
        a, b, c = first
        assert a.shape == b.shape == (50, model.length)
        assert c.shape == (50,)
        for side, fmt in ((a, model.a), (b, model.b), (c, model.c)):
            assert side.dtype == np.uint64
            assert int(side.max()) >> fmt.width == 0


def test_bad_shapes() -> None:
    model = parse_reference(VOLTA)
    table, column = np.zeros((3, 4), dtype=np.uint64), np.zeros(3, dtype=np.uint64)
    for a, b, c in (
        (table, table[:, :3], column),
        (table, table, column[:2]),
        (table[0], table[0], column),
        (np.zeros((3, 5), dtype=np.uint64), np.zeros((3, 5), dtype=np.uint64), column),
    ):
        with pytest.raises(ValueError, match="shapes"):
            evaluate_batch(model, a, b, c)


def test_references_round_trip() -> None:
    for reference in [*REFERENCES, *CORNERS, *INSTRUCTIONS]:
        model = parse_reference(reference)
        again = parse_reference(model.reference)
        assert again == model
        assert again.reference == model.reference
        assert parse_reference(f" {model.reference} ") == model
        assert (model.unit == parse_reference(reference.partition("@")[0]).unit) == ("@" not in reference)


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("fraction_bits=0", "fraction_bits"),
        ("block=3", "divide"),
        ("length=0", "length"),
        ("carry_bits=17", "carry_bits"),
        ("carry_bits=2,fraction_bits=exact", "carry_bits"),
        ("block_order=0-1", "block_order"),
        ("block_order=0-1:2-2", "block_order"),
        ("nan=1ffffffff", "nan"),
        ("product=normalized", "normalised"),
        ("fraction_bit=3", "fraction_bits"),
        ("fraction_bits", "name=value"),
        ("block=2,block=4", "twice"),
    ],
)
def test_impossible_parameters(tail: str, message: str) -> None:
    with pytest.raises(MmaprobeError, match=message):
        parse_reference(f"{VOLTA}@{tail}")
