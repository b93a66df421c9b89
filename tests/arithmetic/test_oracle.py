"""The exact-rational oracle against published vectors, recorded hardware, ml_dtypes and gmpy2."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from tests.oracles.oracle import decode, encode, evaluate
from tests.records import Records, Row

pytestmark = pytest.mark.oracle

MODES = ["nearest_even", "nearest_away", "toward_zero", "up", "down"]
Params = dict[str, Any]
Class = tuple[str, Params]  # formats of a, b, c and d; parameters

RNE: Params = {"output_rounding": "nearest_even"}
FP16_FP32, FP16, BF16, TF32 = "f16 f16 f32 f32", "f16 f16 f16 f16", "bf16 bf16 f32 f32", "tf32 tf32 f32 f32"
FP32, FP64 = "f32 f32 f32 f32", "f64 f64 f64 f64"


def fdpa(length: int, block: int, fraction_bits: int, exponent_floor: int | None, **more: Any) -> Params:
    """T-FDPA and its scaled forms: Tables 4 and 5; exponents of zeros and zero signs from MMA-Sim 2.1.1."""
    return {
        "length": length,
        "block": block,
        "fraction_bits": fraction_bits,
        "exponent_floor": exponent_floor,
        "zero_sign": "always_positive",
        **more,
    }


def fma(length: int) -> Params:
    return {"operation": "fma_chain", "length": length, **RNE}


def exact(length: int, block: int) -> Params:
    """E-FDPA: Table 6."""
    return {"operation": "exact_dot", "length": length, "block": block, **RNE}


def add_mul(length: int, group: int) -> Params:
    """FTZ-AddMul: Table 6."""
    flush = {"flush_inputs": True, "input_zeros": "positive", "flush_outputs": True}
    return {"operation": "add_mul", "grouping": "pairwise", "length": length, "group": group, **flush, **RNE}


def late(length: int, block: int, **more: Any) -> Params:
    """TR-FDPA and GTR-FDPA: Table 7, with the two cuts of MMA-Sim 2.1.1."""
    cuts = {"late_fraction_bits": 32, "late_sum_bits": 31, "late_rounding": "down", "zero_sign": "positive"}
    return fdpa(length, block, 24, None, addend="late", **cuts, **RNE, **more)


MX8 = {"scale_format": "ue8m0", "scale_block": 32}
MX4 = {"grouping": "scale_blocks", "group": 16, **MX8}
NV4 = {"grouping": "scale_blocks", "group": 16, "scale_format": "ue4m3", "scale_block": 16}
TR: Params = {"product_overflow": 128}
GTR: Params = {"grouping": "even_odd", "late_small_addend": "cut"}

CLASSES: dict[str, Class] = {
    "volta/mma/m8n8k4.f32.f16.f16.f32": (FP16_FP32, fdpa(4, 4, 23, -131)),
    "volta/mma/m8n8k4.f16.f16.f16.f16": (FP16, fdpa(4, 4, 23, -19, **RNE)),
    "turing/mma/m16n8k8.f32.f16.f16.f32": (FP16_FP32, fdpa(8, 8, 24, -132)),
    "turing/mma/m16n8k8.f16.f16.f16.f16": (FP16, fdpa(8, 8, 24, -20, **RNE)),
    "ampere/mma/m16n8k16.f32.f16.f16.f32": (FP16_FP32, fdpa(16, 8, 24, -132)),
    "ampere/mma/m16n8k16.f16.f16.f16.f16": (FP16, fdpa(16, 8, 24, -20, **RNE)),
    "ampere/mma/m16n8k16.f32.bf16.bf16.f32": (BF16, fdpa(16, 8, 24, -132)),
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32": (TF32, fdpa(8, 4, 24, -132)),
    "ampere/mma/m8n8k4.f64.f64.f64.f64": (FP64, fma(4)),
    "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32": ("e4m3 e4m3 f32 e8m13", fdpa(32, 16, 13, -132)),
    "ada-lovelace/mma/m16n8k32.f16.e4m3.e4m3.f16": ("e4m3 e4m3 f16 f16", fdpa(32, 16, 13, -20, **RNE)),
    "ada-lovelace/mma/m16n8k32.f32.e5m2.e5m2.f32": ("e5m2 e5m2 f32 e8m13", fdpa(32, 16, 13, -132)),
    "ada-lovelace/mma/m16n8k32.f16.e5m2.e5m2.f16": ("e5m2 e5m2 f16 f16", fdpa(32, 16, 13, -20, **RNE)),
    "hopper/mma/m16n8k16.f32.f16.f16.f32": (FP16_FP32, fdpa(16, 16, 25, -133)),
    "hopper/mma/m16n8k16.f16.f16.f16.f16": (FP16, fdpa(16, 16, 25, -21, **RNE)),
    "hopper/mma/m16n8k16.f32.bf16.bf16.f32": (BF16, fdpa(16, 16, 25, -133)),
    "hopper/mma/m16n8k8.f32.tf32.tf32.f32": (TF32, fdpa(8, 8, 25, -133)),
    "hopper/wgmma/m64n8k16.f32.f16.f16": (FP16_FP32, fdpa(16, 16, 25, -133)),
    "hopper/wgmma/m64n8k16.f16.f16.f16": (FP16, fdpa(16, 16, 25, -21, **RNE)),
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3": ("e4m3 e4m3 f32 e8m13", fdpa(32, 32, 13, -133)),
    "hopper/wgmma/m64n8k32.f16.e4m3.e4m3": ("e4m3 e4m3 f16 f16", fdpa(32, 32, 13, -21, **RNE)),
    "hopper/wgmma/m64n8k32.f32.e5m2.e5m2": ("e5m2 e5m2 f32 e8m13", fdpa(32, 32, 13, -133)),
    "hopper/wgmma/m64n8k32.f16.e5m2.e5m2": ("e5m2 e5m2 f16 f16", fdpa(32, 32, 13, -21, **RNE)),
    "blackwell/tcgen05mma/m64n8k32.f32.e4m3.e4m3": ("e4m3 e4m3 f32 f32", fdpa(32, 32, 25, -133)),
    "blackwell/tcgen05mma/m64n8k32.f32.e5m2.e5m2": ("e5m2 e5m2 f32 f32", fdpa(32, 32, 25, -133)),
    "rtx-blackwell/mma_block_scale/m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0": (
        "e4m3 e4m3 f32 f32",
        fdpa(32, 32, 25, -133, **MX8),
    ),
    "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3": (
        "e2m1 e2m1 f32 f32",
        fdpa(64, 64, 35, -139, **NV4),
    ),
    "rtx-blackwell/mma_block_scale/m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0": (
        "e2m1 e2m1 f32 f32",
        fdpa(64, 64, 35, -139, **MX4),
    ),
    "cdna1/mfma/f32_32x32x8f16": (FP16_FP32, exact(8, 4)),
    "cdna1/mfma/f32_32x32x4bf16": (BF16, exact(4, 2)),
    "cdna1/mfma/f32_16x16x4f32": (FP32, fma(4)),
    "cdna2/mfma/f32_32x32x8f16": (FP16_FP32, add_mul(8, 4)),
    "cdna2/mfma/f32_32x32x4bf16": (BF16, add_mul(4, 2)),
    "cdna2/mfma/f32_32x32x8bf16_1k": (BF16, add_mul(8, 4)),
    "cdna3/mfma/f32_16x16x16_f16": (FP16_FP32, late(16, 8, **TR)),
    "cdna3/mfma/f32_16x16x16_bf16": (BF16, late(16, 8, **TR)),
    "cdna3/mfma/f32_16x16x8_xf32": (TF32, late(8, 4, **TR)),
    "cdna3/mfma/f32_16x16x32_fp8_fp8": ("e4m3fnuz e4m3fnuz f32 f32", late(32, 16, **GTR)),
    "cdna3/mfma/f32_16x16x4_f32": (FP32, fma(4)),
}


def emulated(factors: str, result: str, floor: int, **output: Any) -> Class:
    """FP8 by steps of the f16 unit, from zero, the addend at the end."""
    steps = fdpa(32, 16, 25, floor, addend="after", block_order="interleaved_pairs", **output)
    return (f"{factors} {factors} {result} {result}", steps)


# Instructions with recorded results but no published vectors.
RECORDED_ONLY: dict[str, Class] = {
    "ada-lovelace/mma/m16n8k16.f32.f16.f16.f32": (FP16_FP32, fdpa(16, 8, 24, -132)),
    "ada-lovelace/mma/m16n8k16.f16.f16.f16.f16": (FP16, fdpa(16, 8, 24, -20, **RNE)),
    "ada-lovelace/mma/m16n8k16.f32.bf16.bf16.f32": (BF16, fdpa(16, 8, 24, -132)),
    "ada-lovelace/mma/m16n8k8.f32.tf32.tf32.f32": (TF32, fdpa(8, 4, 24, -132)),
    "blackwell/mma/m16n8k16.f32.f16.f16.f32": (FP16_FP32, fdpa(16, 16, 25, -133)),
    "blackwell/mma/m16n8k16.f16.f16.f16.f16": (FP16, fdpa(16, 16, 25, -21, **RNE)),
    "blackwell/mma/m16n8k16.f32.bf16.bf16.f32": (BF16, fdpa(16, 16, 25, -133)),
    "blackwell/mma/m16n8k8.f32.tf32.tf32.f32": (TF32, fdpa(8, 8, 25, -133)),
    **{f"{arch}/mma/m16n8k32.f16.{x}.{x}.f16": emulated(x, "f16", -21, **RNE)
       for arch in ("hopper", "blackwell") for x in ("e4m3", "e5m2")},
    **{f"blackwell/mma/m16n8k32.f32.{x}.{x}.f32": emulated(x, "f32", -133) for x in ("e4m3", "e5m2")},
}  # fmt: skip


@cache
def rows(name: str) -> Records:
    """The rows of a data file by instruction, bit patterns as integers."""
    return Records(name, _numbers)


def _numbers(row: Row) -> Row:
    lists = {field: [int(x, 16) for x in row[field]] for field in ("a", "b", "scale_a", "scale_b") if field in row}
    return {**row, **lists, "c": int(row["c"], 16), "d": int(row["d"], 16)}


def dot(entry: Class, a: list[int], b: list[int], c: int, **changed: Any) -> int:
    formats, params = entry
    return evaluate(dict(zip("abcd", formats.split(), strict=True)), {**params, **changed}, a, b, c)


def mismatches(key: str, entry: Class, data: list[Row], **changed: Any) -> list[Row]:
    """Rows whose result differs; NaN patterns count on the families that define them."""
    formats = dict(zip("abcd", entry[0].split(), strict=True))
    any_nan = key.startswith("cdna") or formats["d"] == "f64"
    wrong = []
    for r in data:
        params = {**entry[1], **changed}
        d = evaluate(formats, params, r["a"], r["b"], r["c"], r.get("scale_a"), r.get("scale_b"))
        nans = {decode(formats["d"], d).kind, decode(formats["d"], r["d"]).kind} == {"nan"}
        if d != r["d"] and not (any_nan and nans):
            wrong.append({**r, "got": f"{d:x}"})
    return wrong


GOLDEN, RECORDED = "mma_sim_public.jsonl.gz", "recorded.jsonl.gz"


def test_every_class_has_its_rows() -> None:
    assert len(CLASSES) == 39
    assert {key: len(data) for key, data in rows(GOLDEN).items()} == dict.fromkeys(CLASSES, 60)
    assert set(rows(RECORDED)) == set(RECORDED_ONLY) | set(CLASSES) & set(rows(RECORDED))
    assert {len(data) for data in rows(RECORDED).values()} <= {400, 500, 800, 900}
    assert len(rows(RECORDED)) == 30


@pytest.mark.parametrize("key", CLASSES)
def test_golden_vectors(key: str) -> None:
    assert not mismatches(key, CLASSES[key], rows(GOLDEN)[key])


@pytest.mark.parametrize("key", CLASSES)
def test_golden_vectors_notice_a_wrong_parameter(key: str) -> None:
    entry = CLASSES[key]
    changed: Params = {
        "fused_dot": {"fraction_bits": entry[1].get("fraction_bits", 0) + 1},
        "exact_dot": {"operation": "fused_dot", "fraction_bits": 24},
        "fma_chain": {"operation": "exact_dot"},
        "add_mul": {"group": 1},
    }[entry[1].get("operation", "fused_dot")]
    assert mismatches(key, entry, rows(GOLDEN)[key], **changed)


def test_alternative_results_are_saturation() -> None:
    seen = 0
    for key, data in rows(GOLDEN).items():
        for r in (r for r in data if r.get("alt")):
            assert r["alt"].keys() == {"rz_saturate"}
            alternative = {**r, "d": int(r["alt"]["rz_saturate"], 16)}
            for rule in ("saturate", "ieee"):
                assert not mismatches(key, CLASSES[key], [alternative], overflow=rule)
            seen += 1
    assert seen == 23


@pytest.mark.parametrize("key", sorted(rows(RECORDED)))
def test_recorded_hardware(key: str) -> None:
    """500 of each, for time; tests/tables/test_models.py evaluates every one."""
    assert not mismatches(key, (CLASSES | RECORDED_ONLY)[key], rows(RECORDED)[key][:500])


@pytest.mark.parametrize(
    "changed", [{"block_order": "contiguous"}, {"addend": "fused"}, {"fraction_bits": 13}], ids=str
)
def test_emulated_fp8_is_none_of_these(changed: Params) -> None:
    key = "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16"
    assert mismatches(key, RECORDED_ONLY[key], rows(RECORDED)[key], **changed)


TABLE_8 = {
    "volta/mma/m8n8k4.f32.f16.f16.f32": 0.0,
    "turing/mma/m16n8k8.f32.f16.f16.f32": -0.5,
    "ampere/mma/m16n8k16.f32.bf16.bf16.f32": -0.5,
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32": -0.5,
    "ada-lovelace/mma/m16n8k32.f32.e5m2.e5m2.f32": 0.0,
    "hopper/mma/m16n8k16.f32.bf16.bf16.f32": -0.75,
    "hopper/wgmma/m64n8k16.f32.f16.f16": -0.75,
    "hopper/wgmma/m64n8k32.f32.e5m2.e5m2": 0.0,
    "blackwell/tcgen05mma/m64n8k32.f32.e5m2.e5m2": -0.75,
    "cdna1/mfma/f32_32x32x8f16": -0.875,
    "cdna1/mfma/f32_32x32x4bf16": -0.875,
    "cdna1/mfma/f32_16x16x4f32": -0.875,
    "cdna2/mfma/f32_32x32x8f16": 0.0,
    "cdna2/mfma/f32_32x32x4bf16": -0.375,
    "cdna2/mfma/f32_32x32x8bf16_1k": 0.0,
    "cdna3/mfma/f32_16x16x16_f16": -0.5,
    "cdna3/mfma/f32_16x16x8_xf32": -0.5,
    "cdna3/mfma/f32_16x16x32_fp8_fp8": -1.0,
}


def pattern(fmt: str, x: float) -> int:
    bits = encode(fmt, x < 0, abs(Fraction(x)), "nearest_even")
    assert decode(fmt, bits).value == x
    return bits


@pytest.mark.parametrize("key", TABLE_8)
def test_table_8(key: str) -> None:
    """Equation 10; e4m3 cannot hold 2^13, e5m2 of the same unit can."""
    formats, params = CLASSES[key]
    formats = formats.replace("e4m3fnuz", "e5m2fnuz")
    a, b, c, _ = formats.split()
    xs = [pattern(a, x) for x in (-(2.0**13), -0.5, -0.25, -0.125)]
    ys = [pattern(b, y) for y in (2.0**10, 1.0, 1.0, 1.0)]
    assert dot((formats, params), xs, ys, pattern(c, 2.0**23)) == pattern("f32", TABLE_8[key])


# --- the parameters one by one ------------------------------------------------------------------------------------


def run(a: list[float], b: list[float], c: float, formats: str = FP16_FP32, **params: Any) -> float:
    """A dot product of plain numbers."""
    fa, fb, fc, fd = formats.split()
    xs, ys = [pattern(fa, x) for x in a], [pattern(fb, y) for y in b]
    d = decode(fd, dot((formats, params), xs, ys, pattern(fc, c)))
    return {"nan": float("nan"), "inf": float("-inf" if d.sign else "inf")}.get(d.kind, float(d.value))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("toward_zero", 1.0), ("down", 0.75), ("nearest_even", 0.75), ("sticky", 0.8125)],
)
def test_alignment_rounding(mode: str, expected: float) -> None:
    assert run([1.0, -0.1875], [1.0, 1.0], 0.0, fraction_bits=2, align_rounding=mode) == expected


def test_carry_bits_wrap() -> None:
    ones = [1.75] * 4
    assert run(ones, ones, 0.0, fraction_bits=10) == 12.25
    assert run(ones, ones, 0.0, fraction_bits=10, carry_bits=3) == 12.25
    assert run(ones, ones, 0.0, fraction_bits=10, carry_bits=2) == 12.25 - 16
    assert run([-1.0] * 4, [1.0] * 4, 0.0, fraction_bits=10, carry_bits=1) == -4.0
    assert run([1.0] * 4, [1.0] * 4, 0.0, fraction_bits=10, carry_bits=1) == -4.0
    with pytest.raises(ValueError, match="go together"):
        run(ones, ones, 0.0, carry_bits=2)


def test_products() -> None:
    """1.5 * 1.5 = 2.25 has exponent 0 as it stands and 1 when normalised, which costs c its last bit."""
    assert run([1.5], [1.5], 0.25, fraction_bits=2) == 2.5
    assert run([1.5], [1.5], 0.25, fraction_bits=2, product="normalised") == 2.0
    assert run([1.5], [1.5], 0.0, fraction_bits=9, product="rounded_e2m1") == 2.0
    late_one = {"product": "rounded_e2m1", "product_rounding": "up"}
    assert run([1.5], [1.5], 0.0, fraction_bits=9, **late_one) == 3.0
    assert run([2.0**14], [2.0**14], 0.0, product_overflow=28) == float("inf")
    assert run([2.0**14], [2.0**14], 0.0, product_overflow=29) == 2.0**28
    rounded = {"product": "rounded_e5m2", "product_rounding": "up"}  # to 1; the limit is that of the exact product
    assert run([1.25], [0.75], 0.0, product_overflow=0, **rounded) == 1.0
    assert run([1.25], [0.75], 0.0, product_overflow=-1, **rounded) == float("inf")


def test_exponent_floor_readings() -> None:
    """A product 2^-20 and, where there is a zero term, the floor, with four fraction bits."""
    x, tiny = 2.0**-10, 2.0**-20
    for floor, zero_terms, maximum in ((None, tiny, tiny), (-16, tiny, tiny), (-15, 0.0, 0.0)):
        params: Params = {"fraction_bits": 4, "exponent_floor": floor}
        assert run([x], [x], 0.0, **params) == zero_terms
        assert run([x], [x], tiny, **params) == 2 * tiny
        assert run([x, 0.0], [x, 1.0], tiny, **params) == 2 * zero_terms
        assert run([x], [x], tiny, **params, floor_applies_to="maximum") == 2 * maximum


def test_partials_round_after_every_addition() -> None:
    a = [2.0**12, 2.0**-12, 2.0**-12]
    params: Params = {"fraction_bits": 40, **RNE}
    formats = "f32 f32 f32 f32"
    assert run(a, [2.0**12, 2.0**12, 2.0**12], 1.0, formats, **params) == 2.0**24 + 4
    assert run(a, [2.0**12, 2.0**12, 2.0**12], 1.0, formats, **params, partials="normalised") == 2.0**24
    huge = [2.0**127, 2.0**127, -(2.0**127)]
    assert run(huge, [1.0] * 3, 0.0, formats, **params) == 2.0**127
    assert run(huge, [1.0] * 3, 0.0, formats, **params, partials="normalised") == float("inf")


def test_zero_signs() -> None:
    minus, plus = 0x8000, 0x0000

    def zero(a: int, b: int, c: int, **params: Any) -> int:
        return dot((FP16, params), [a], [b], c)

    assert zero(minus, 0x3C00, minus) == plus
    assert zero(minus, 0x3C00, minus, zero_sign="ieee") == minus
    assert zero(minus, 0xBC00, minus, zero_sign="ieee") == plus
    assert zero(minus, 0xBC00, minus, zero_sign="ieee", output_rounding="down") == minus
    assert zero(plus, 0x3C00, plus, zero_sign="ieee", output_rounding="down") == plus
    assert zero(0x0001, 0x8001, plus) == minus, "a nonzero sum that rounds to zero keeps its sign"
    assert zero(0x0001, 0x8001, plus, zero_sign="always_positive") == plus, "but where every zero is +0"
    assert zero(0x0001, 0x8001, plus, exponent_floor=-14, fraction_bits=20) == plus
    assert zero(minus, 0x3C00, minus, zero_sign="ieee", input_zeros="positive") == plus
    assert zero(minus, 0xBC00, plus, zero_sign="ieee", output_rounding="down", input_zeros="positive") == minus


def test_block_orders() -> None:
    a = [2.0**11, 1.0, -(2.0**11), 1.0, 1.0, 1.0, 1.0, 1.0]
    interleaved = [[0, 1, 4, 5], [2, 3, 6, 7]]
    params: Params = {"fraction_bits": 30}
    results = {
        str(order): run(a, [1.0] * 8, 0.0, "f16 f16 f16 f16", block=4, block_order=order, **params)
        for order in ("contiguous", "interleaved_pairs", interleaved, [[0, 1], [2, 3], [4, 5, 6, 7]])
    }
    assert list(results.values()) == [6.0, 5.0, 5.0, 5.0]
    with pytest.raises(ValueError, match="block_order"):
        run(a, [1.0] * 8, 0.0, block_order=[[0, 1]])


def test_addend_after() -> None:
    """The addend meets the finished sum in an addition to nearest, whatever the unit's own rounding."""
    params: Params = {"fraction_bits": 10, "addend": "after"}
    assert run([1.0, 2.0**-10], [1.0, 1.0], -1.0, "f16 f16 f16 f16", **params) == 2.0**-10
    assert run([3 * 2.0**-11], [1.0], 1.0, "f16 f16 f16 f16", **params) == 1.0 + 2.0**-9
    assert run([3 * 2.0**-11], [1.0], 1.0, "f16 f16 f16 f16", fraction_bits=20) == 1.0 + 2.0**-10
    assert dot((FP16, params), [0x7C00], [0x3C00], 0xFC00) == 0x7FFF


def test_scales() -> None:
    one = pattern("e4m3", 1.0)
    formats = {"a": "e4m3", "b": "e4m3", "c": "f32", "d": "f32"}
    assert evaluate(formats, MX8, [one] * 32, [one] * 32, 0, [128], [129]) == pattern("f32", 256.0)
    assert evaluate(formats, MX8, [0] * 32, [one] * 32, 0, [128], [255]) == 0x7FFFFFFF
    four = dict(zip("abcd", ["e2m1", "e2m1", "f32", "f32"], strict=True))
    scales = [pattern("ue4m3", x) for x in (1.0, 0.5, 3.0, 0.0)]
    d = evaluate(four, NV4, [2] * 64, [2] * 64, 0, scales, [pattern("ue4m3", 1.0)] * 4)
    assert d == pattern("f32", 16 * 4.5)


def test_flushing() -> None:
    tiny = 2.0**-20
    assert run([tiny], [1.0], 0.0) == tiny
    assert run([tiny], [1.0], 0.0, flush_inputs=True) == 0.0
    assert run([0.5], [2.0**-14], 0.0, FP16, flush_outputs=True) == 0.0
    assert dot((FP16, {"flush_outputs": True}), [0x3800], [0x8400], 0) == 0x8000
    assert dot((FP16, {"flush_inputs": True, **fma(1)}), [0x8000], [0x3C00], 0x8000) == 0x8000


def test_missing_products_are_zero_and_nan_patterns() -> None:
    assert run([1.0], [1.0], 1.0, length=8, block=4, fraction_bits=20) == 2.0
    assert dot((FP16_FP32, {}), [0x7C00], [0], 0) == 0x7FFFFFFF
    assert dot((FP16, {}), [0x7C00, 0xFC00], [0x3C00, 0x3C00], 0) == 0x7FFF
    assert dot(("f16 f16 f32 f64", {}), [0x7E00], [0], 0) == 0x7FF8000000000000
    assert dot((FP16, {"nan": 0x7E00}), [0x7E00], [0], 0) == 0x7E00
    assert dot((FP16, {}), [0x7C00], [0xBC00], 0) == 0xFC00


@pytest.mark.parametrize(
    "params",
    [
        {"grouping": "even_odd"},
        {"addend": "late", "partials": "normalised"},
        {"operation": "add_mul"},
        {"zero_sign": "negative"},
        {"overflow": "wrap"},
        {"length": 1},
    ],
    ids=str,
)
def test_bad_parameters(params: Params) -> None:
    with pytest.raises(ValueError, match=r"unknown|together|encoding|elements"):
        run([1.0, 1.0], [1.0, 1.0], 0.0, **params)
