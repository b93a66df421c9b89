"""Units that are documented and were never run here, against their pseudo-code written out: Arm's FP8 (FP8DotAddFP) in
integers, Intel's AMX-FP8, AMX-TF32 and AVX10.2 in the processor's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import FOLDER
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.cpu import Inputs, Patterns, Vectors, differing

pytestmark = pytest.mark.oracle

COUNT = 100_000
Floats = NDArray[Any]

# -- Arm, J1.3: FP8Unpack, FP8DotAddFP, FPRound_FP8, in whole multiples of 2^-200

ARM = sorted(name for name in INSTRUCTIONS if name.startswith("arm/"))
UNIT = 200
#: exponent bits, fraction bits, bias, whether the top exponent is one of numbers (E4M3)
FIELDS = {"e4m3": (4, 3, 7, True), "e5m2": (5, 2, 15, False), "f16": (5, 10, 15, False), "f32": (8, 23, 127, False)}
SETTINGS = ["", "overflow=saturate", "downscale=5", "downscale=15,overflow=saturate", "downscale=127"]


def unpacked(pattern: int, fmt: str) -> tuple[str, int, int]:
    """(type, sign, value)"""
    exponents, fraction, bias, small = FIELDS[fmt]
    sign, field = pattern >> (exponents + fraction), (pattern >> fraction) & ((1 << exponents) - 1)
    digits = pattern & ((1 << fraction) - 1)
    if field == (1 << exponents) - 1:
        if small and digits == (1 << fraction) - 1:
            return "nan", sign, 0
        if not small:
            return "nan" if digits else "infinity", sign, 0
    if field == 0:
        value = digits << UNIT + 1 - bias - fraction
    else:
        value = (digits | 1 << fraction) << UNIT + field - bias - fraction
    return "number" if value else "zero", sign, -value if sign else value


def rounded(value: int, fmt: str, saturates: bool) -> int:
    exponents, fraction, bias, _ = FIELDS[fmt]
    sign, size = (1, -value) if value < 0 else (0, value)
    last = max(size.bit_length() - 1 - UNIT, 1 - bias) - fraction + UNIT  # the place of the result's last bit
    kept, rest = (size >> last, size & ((1 << last) - 1)) if last > 0 else (size << -last, 0)
    half = 1 << last - 1 if last > 0 else 1
    kept += rest > half or (rest == half and kept & 1)
    packed = kept + (max(last - UNIT + fraction + bias, 1) - 1 << fraction)
    largest = ((1 << exponents) - 1 << fraction) - 1
    if packed > largest:
        packed = largest if saturates else largest + 1
    return sign << (exponents + fraction) | packed


def arm(row: str, a: list[int], b: list[int], c: int, scale: int, saturates: bool) -> int:
    instruction = INSTRUCTIONS[row]
    fmt = instruction.c
    exponents, fraction, *_ = FIELDS[fmt]
    infinity, signs = (1 << exponents) - 1 << fraction, 1 << (exponents + fraction)
    nan = infinity | 1 << fraction - 1
    kind, sign, total = unpacked(c, fmt)
    left, right = ([unpacked(x, own) for x in side] for side, own in ((a, instruction.a), (b, instruction.b)))
    if "nan" in (kind, *(one[0] for one in left + right)):
        return nan
    infinities, zeros, dot = {sign} if kind == "infinity" else set(), {sign} if kind == "zero" else {2}, 0
    for (k1, s1, x), (k2, s2, y) in zip(left, right, strict=True):
        if {k1, k2} == {"infinity", "zero"}:
            return nan
        if "infinity" in (k1, k2):
            infinities.add(s1 ^ s2)
        zeros.add(s1 ^ s2 if "zero" in (k1, k2) else 2)
        dot += x * y
    if infinities:
        return nan if len(infinities) == 2 else infinity | (signs if infinities == {1} else 0)
    if zeros in ({0}, {1}):
        return signs if zeros == {1} else 0
    assert dot % (1 << UNIT + scale) == 0
    total += dot >> UNIT + scale
    return rounded(total, fmt, saturates) if total else 0


def arm_agrees(row: str, count: int, settings: str) -> None:
    model = parse_reference(row + (f"@{settings}" if settings else ""))
    scale = int(dict(part.split("=") for part in settings.split(",") if part).get("downscale", 0))
    vectors = Inputs(model, seed=len(settings) + ARM.index(row)).vectors(count)
    found = evaluate_batch(model, *vectors)
    rows = zip(*(side.tolist() for side in vectors), strict=True)
    wanted = [arm(row, a, b, c, scale, "saturate" in settings) for a, b, c in rows]
    assert found.tolist() == wanted


@pytest.mark.parametrize("row", ARM)
def test_arm_as_its_pseudo_code_has_it(row: str) -> None:
    for settings in SETTINGS:
        if settings != "downscale=127" or ".f32." in row:
            arm_agrees(row, 300, settings)


@pytest.mark.slow
@pytest.mark.parametrize("row", ARM)
def test_arm_on_many_vectors(row: str) -> None:
    arm_agrees(row, COUNT, "")
    arm_agrees(row, COUNT // 4, "downscale=5,overflow=saturate")


@pytest.mark.parametrize("settings", ["output_rounding=to_odd", "downscale=1", "overflow=saturate", "nan=7fff"])
def test_arm_is_not_what_is_near(settings: str) -> None:
    row = "arm/neon/fdot.f16.e5m2.e5m2"
    vectors = Inputs(parse_reference(row), seed=3).vectors(2000)
    rows = zip(*(side.tolist() for side in vectors), strict=True)
    found = evaluate_batch(parse_reference(f"{row}@{settings}"), *vectors)
    assert found.tolist() != [arm(row, a, b, c, 0, False) for a, b, c in rows]


# -- Intel


def f32(patterns: Patterns) -> Floats:
    return patterns.astype(np.uint32).view(np.float32)


def of_f8(patterns: Patterns, fmt: str, zeros: bool) -> Floats:
    """FP8 by way of f16; `zeros`: subnormal numbers of f16 count as zero."""
    if fmt == "e5m2":
        half = (patterns << 8).astype(np.uint16).view(np.float16)
        return np.where(zeros & (np.abs(half) < 2.0**-14), half * 0, half).astype(np.float32)
    wide = ((patterns & 0x7F) << 7).astype(np.uint16).view(np.float16).astype(np.float32) * np.float32(256)
    wide = np.where((patterns & 0x7F) == 0x7F, np.float32(np.nan), wide)
    return np.where(patterns & 0x80, -wide, wide).astype(np.float32)


def without_subnormals(x: Floats) -> Floats:
    return np.where(np.abs(x) < np.float32(2.0**-126), x * np.float32(0), x).astype(np.float32)


def fused(x: Floats, y: Floats, z: Floats, bits: int, flush: bool) -> Floats:
    """x * y + z of f32 numbers whose product f64 holds, rounded once to `bits` bits; zero where tiny after rounding."""
    product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)  # exact, by two additions
    finite = np.isfinite(total)
    whole = np.where(finite, total, 0.0).view(np.int64)
    inexact = finite & (np.where(finite, error, 0.0) != 0)
    away = (error > 0) == (total > 0)
    odd = np.where(inexact & (whole & 1 == 0), np.where(away, whole + 1, whole - 1), whole).view(np.float64)

    def cut(value: Floats, least: int | None) -> Floats:
        """To nearest even, with a last place of 2^least or more."""
        exponent = np.frexp(value)[1] - bits
        place = exponent if least is None else np.maximum(exponent, least)
        return np.ldexp(np.rint(np.ldexp(value, -place)), place)

    tiny = np.abs(cut(odd, None)) < 2.0**-126
    result = np.where(flush & tiny, odd * 0, cut(odd, -125 - bits))
    limit = 2.0**128
    result = np.where(np.abs(result) >= limit, np.sign(odd) * np.inf, result)
    return np.where(finite, result, total).astype(np.float32)


def amx_fp8(a: Floats, b: Floats, c: Floats) -> Floats:
    low = high = np.zeros(len(c), np.float32)
    for k in range(0, 64, 4):
        p = [a[:, k + i] * b[:, k + i] for i in range(4)]
        low, high = low + (p[0] + p[1]), high + (p[2] + p[3])
    return without_subnormals(c) + (low + high)


def intel(name: str, a: Patterns, b: Patterns, c: Patterns) -> Patterns:
    """The results of an instruction as f32 patterns, of bf16 in the upper half."""
    instruction = name.rpartition("/")[2]
    with np.errstate(all="ignore"):
        if instruction.endswith("f8ps"):
            formats = {"tdpbf8ps": "bb", "tdpbhf8ps": "bh", "tdphbf8ps": "hb", "tdphf8ps": "hh"}[instruction]
            x, y = (of_f8(side, {"b": "e5m2", "h": "e4m3"}[own], True)
                    for side, own in zip((a, b), formats, strict=True))  # fmt: skip
            found = amx_fp8(x, y, f32(c))
        elif instruction == "tmmultf32ps":
            x, y = (without_subnormals(f32(side & 0xFFFFE000)) for side in (a, b))
            found = np.zeros(len(c), np.float32)
            for k in range(16):
                found = fused(x[:, k], y[:, k], found, 24, True)
            found = fused(found, np.float32(1), without_subnormals(f32(c)), 24, True)
        elif instruction == "vdpphps":
            x, y = (side.astype(np.uint16).view(np.float16).astype(np.float32) for side in (a, b))
            found = without_subnormals(f32(c))
            for k in (1, 0):
                found = fused(x[:, k], y[:, k], found, 24, True)
        else:
            x, y, z = (without_subnormals(f32(side << 16)) for side in (a[:, 0], b[:, 0], c))
            found = fused(x, y, z, 8, True)
    patterns = found.view(np.uint32).astype(np.uint64)
    return patterns >> 16 if instruction == "vfmadd-bf16" else patterns


INTEL = [f"x86/amx/{name}" for name in ("tdpbf8ps", "tdpbhf8ps", "tdphbf8ps", "tdphf8ps", "tmmultf32ps")]
INTEL += ["x86/avx10.2/vdpphps", "x86/avx10.2/vfmadd-bf16"]
NEARBY = [
    ("x86/amx/tdpbf8ps", "range(2, 64, 4)", "range(62, -2, -4)"),
    ("x86/amx/tdpbf8ps", "{a: zero, b: zero, c: zero}", "{c: zero}"),
    ("x86/amx/tdphf8ps", "r(exact(low, high))", "exact(low, high)"),
    ("x86/amx/tdphf8ps", "r(exact(a[k] * b[k], a[k + 1] * b[k + 1]))", "a[k] * b[k], a[k + 1] * b[k + 1]"),
    ("x86/amx/tmmultf32ps", "{subnormals: zero}", "{subnormals: keep}"),
    ("x86/amx/tmmultf32ps", "range(16)", "range(15, -1, -1)"),
    ("x86/avx10.2/vdpphps", "{c: zero}", "{subnormals: zero}"),
    ("x86/avx10.2/vfmadd-bf16", "8, nearest_even", "24, nearest_even"),
]


def vectors_of(model: Model, count: int) -> Vectors:
    return Inputs(model, seed=sum(map(ord, model.reference))).vectors(count)


@pytest.mark.parametrize("name", INTEL)
def test_intel_as_the_sources_have_it(name: str) -> None:
    model = parse_reference(name)
    vectors = vectors_of(model, 5_000)
    assert not differing(model, evaluate_batch(model, *vectors), intel(name, *vectors)).size


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEL)
def test_intel_on_many_vectors(name: str) -> None:
    model = parse_reference(name)
    vectors = vectors_of(model, COUNT)
    assert not differing(model, evaluate_batch(model, *vectors), intel(name, *vectors)).size


@pytest.mark.parametrize(("name", "old", "new"), NEARBY)
def test_intel_is_not_what_is_near(name: str, old: str, new: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    assert old in text
    near = Model("nearby.yaml", parse_unit(text.replace(old, new, 1), "nearby.yaml"))
    vectors = vectors_of(parse_reference(name), 5_000)
    assert differing(near, evaluate_batch(near, *vectors), intel(name, *vectors)).size


def nearest(fmt: str) -> Callable[[float], int]:
    """The pattern nearest to a magnitude among all of a format, on a tie the even one; beyond the largest by half a
    place, what follows it."""
    exponents, fraction, bias, small = FIELDS[fmt]
    largest = (1 << exponents + fraction) - 2 if small else ((1 << exponents) - 1 << fraction) - 1
    values = []
    for pattern in range(largest + 2):
        field, digits = pattern >> fraction, pattern & ((1 << fraction) - 1)
        values.append(np.ldexp(digits + (1 << fraction if field else 0), max(field, 1) - bias - fraction))

    def found(x: float) -> int:
        return min(range(len(values)), key=lambda p: (abs(values[p] - x), p & 1)) if x < values[-1] else largest + 1

    return found


@pytest.mark.parametrize(("name", "fmt"), [("vcvtph2bf8", "e5m2"), ("vcvtph2hf8", "e4m3")])
def test_conversions_of_every_number(name: str, fmt: str) -> None:
    """Every seventh pattern, and all that are no numbers or near an end."""
    patterns = np.unique(np.concatenate([np.arange(0, 0x8000, 7), np.arange(64), np.arange(0x5F00, 0x6000),
                                         np.arange(0x7B00, 0x7C02)])).astype(np.uint64)  # fmt: skip
    values, near = patterns.astype(np.uint16).view(np.float16), nearest(fmt)
    model = parse_reference(f"x86/avx10.2/{name}")
    one = np.full((len(patterns), 1), 0x3C00, np.uint64)
    for sign in (0, 1):
        found = evaluate_batch(model, one, one, patterns | sign << 15)
        for value, got in zip(values, found.tolist(), strict=True):
            if np.isnan(value):
                assert got & 0x7F > (0x7C if fmt == "e5m2" else 0x7E)
            else:
                assert got == (sign << 7 | near(float(value))), value
