"""The oracle's formats against ml_dtypes, and its IEEE operations against MPFR."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpq

from benchmarks import odd_units as odd_units  # adds formats to the oracle's, which are tested as well
from benchmarks import statements as statements  # adds formats to the oracle's, which are tested as well
from tests.arithmetic.test_oracle import MODES
from tests.oracles.oracle import FORMATS, decode, encode, ieee_add, ieee_fma, ieee_mul

pytestmark = pytest.mark.oracle

ML_DTYPES: dict[str, Any] = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
    "e4m3_ieee": ml_dtypes.float8_e4m3,
    "e3m4_ieee": ml_dtypes.float8_e3m4,
    "e4m3b11_negative_zero": ml_dtypes.float8_e4m3b11fnuz,
}
WIDTHS = {"bf16": 16, "f16": 16, "e3m2": 6, "e2m3": 6, "e2m1": 4}


def same_number(fmt: str, bits: int, x: float) -> bool:
    """Kind, sign and value agree."""
    n = decode(fmt, bits)
    if np.isnan(x) or n.kind == "nan":
        return bool(np.isnan(x)) and n.kind == "nan"
    if bool(np.signbit(x)) != n.sign:
        return False
    return n.kind == "inf" if np.isinf(x) else n.kind == "finite" and n.value == Fraction(float(x))


@pytest.mark.parametrize("fmt", ML_DTYPES)
def test_decode_agrees_with_ml_dtypes_on_every_pattern(fmt: str) -> None:
    bits = np.arange(1 << WIDTHS.get(fmt, 8), dtype=np.uint16 if WIDTHS.get(fmt) == 16 else np.uint8)
    with np.errstate(invalid="ignore"):
        values = bits.view(ML_DTYPES[fmt]).astype(np.float64)
    for n, x in enumerate(values.tolist()):
        assert same_number(fmt, n, x), (fmt, n, x)


@pytest.mark.parametrize("fmt", ML_DTYPES)
def test_encode_agrees_with_ml_dtypes(fmt: str) -> None:
    rng = np.random.default_rng(1)
    near = decode(fmt, FORMATS[fmt].largest).exponent
    exponents = rng.integers(max(FORMATS[fmt].emin - 8, -126), min(near + 2, 127), 2000)
    xs = np.ldexp(1 + rng.integers(0, 1 << 12, 2000) / (1 << 12), exponents).astype(np.float32)
    xs = xs if fmt == "ue8m0" else np.where(rng.random(2000) < 0.5, -xs, xs)
    with np.errstate(over="ignore"):
        ys = xs.astype(ML_DTYPES[fmt]).astype(np.float64)
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        assert same_number(fmt, encode(fmt, x < 0, abs(Fraction(x)), "nearest_even"), y), (fmt, x, y)


def test_padded_and_unsigned_formats() -> None:
    for fmt, low in (("tf32", 13), ("e8m13", 10)):
        for word in (0x3FC00000, 0xC1234567, 0x00012345, 0x80400000):
            kept = word >> low << low
            assert decode(fmt, word) == decode("f32", kept)
            assert encode(fmt, word >> 31 == 1, abs(decode("f32", word).value), "toward_zero") == kept
        assert decode(fmt, 0x7FFFFFFF).kind == "nan"
    assert decode("ue4m3", 0xB8) == decode("ue4m3", 0x38) == decode("e4m3", 0x38)
    assert decode("ue4m3", 0xFF).kind == decode("ue8m0", 0xFF).kind == "nan"
    for fmt, bits in (("ue8m0", 256), ("ue4m3", 256), ("e2m1", 16), ("f16", -1), ("tf32", 1 << 32)):
        with pytest.raises(ValueError, match="pattern"):
            decode(fmt, bits)


def test_subnormals_are_not_normalised() -> None:
    x = decode("f16", 0x0001)
    assert (x.significand, x.exponent) == (Fraction(1, 1024), -14)
    assert decode("e2m1", 1).significand == Fraction(1, 2)


SMALL = [
    fmt for fmt in FORMATS if fmt not in ("f64", "f32", "tf32", "bf16", "f16", "e8m13", "ue8m0", "int32", "uint32")
]


@cache
def grid(fmt: str) -> list[mpq]:
    """Every magnitude of a small format, and the one that would follow the largest."""
    largest = FORMATS[fmt].largest
    values = [decode(fmt, n).value for n in range(largest + 1)]
    return [*values, 2 * values[-1] - values[-2]]


def neighbours(fmt: str) -> Iterator[tuple[mpq, mpq]]:
    """Neighbours in the grid; of long formats, those of the three least exponents, one in the middle and the two
    largest."""
    fraction, top = FORMATS[fmt].mantissa_bits, FORMATS[fmt].largest >> FORMATS[fmt].mantissa_bits
    kept = range(top + 2) if top << fraction < 1 << 10 else (0, 1, 2, top // 2, top - 1, top, top + 1)
    return (pair for n, pair in enumerate(pairwise(grid(fmt))) if n >> fraction in kept)


def rounded(values: list[mpq], x: mpq, sign: bool, mode: str) -> int:
    """Index of the magnitude that x rounds to, by search."""
    above = bisect_left(values, x)
    if values[above] == x:
        return above
    if mode in ("toward_zero", "up", "down"):
        return above if mode == ("down" if sign else "up") else above - 1
    low, high = x - values[above - 1], values[above] - x
    if low != high:
        return above if high < low else above - 1
    return above if mode == "nearest_away" or above % 2 == 0 else above - 1


@pytest.mark.parametrize("fmt", SMALL)
@pytest.mark.parametrize("mode", MODES)
def test_encode_picks_the_right_neighbour(fmt: str, mode: str) -> None:
    values = grid(fmt)
    for low, high in neighbours(fmt):
        for share in (mpq(0), mpq(1, 9), mpq(1, 2), mpq(8, 9)):
            for sign in (False, True) if FORMATS[fmt].signed else (False,):
                x = low + share * (high - low)
                n = rounded(values, x, sign, mode)
                if n == len(values) - 1:
                    continue
                got = decode(fmt, encode(fmt, sign, x, mode))
                assert abs(got.value) == values[n]
                assert got.sign == (sign and not (n == 0 and FORMATS[fmt].one_zero))


@pytest.mark.parametrize(
    ("fmt", "infinite", "largest"),
    [("f16", 0x7C00, 0x7BFF), ("e4m3", 0x7F, 0x7E), ("e4m3fnuz", 0x80, 0x7F), ("e2m3", 0x1F, 0x1F)],
)
def test_overflow(fmt: str, infinite: int, largest: int) -> None:
    values = [decode(fmt, largest - 1).value, decode(fmt, largest).value]
    ulp = values[1] - values[0]
    for mode in MODES:
        assert encode(fmt, False, values[1] + ulp, mode) == infinite
        assert encode(fmt, False, values[1] + ulp, mode, "saturate") == largest
        inward = mode in ("toward_zero", "down")
        assert encode(fmt, False, values[1] + ulp, mode, "ieee") == (largest if inward else infinite)
        assert encode(fmt, False, values[1] + ulp / 8, mode) == (infinite if mode == "up" else largest)
    tie = encode(fmt, False, values[1] + ulp / 2, "nearest_even")
    assert tie == (largest if fmt == "e4m3" else infinite)
    assert encode("e4m3", True, Fraction(10**6), "up", nan=0xFF) == 0xFF


# --- IEEE operations ----------------------------------------------------------------------------------------------

MPFR = {"f16": (11, -23, 16), "f32": (24, -148, 128), "f64": (53, -1073, 1024)}
NUMPY: dict[str, Any] = {
    "f16": (np.float16, np.uint16),
    "f32": (np.float32, np.uint32),
    "f64": (np.float64, np.uint64),
}
MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "up": gmpy2.RoundUp,
    "down": gmpy2.RoundDown,
}
OPERATIONS: dict[str, tuple[int, Callable[..., int], Callable[..., Any]]] = {
    "add": (2, ieee_add, gmpy2.add),
    "mul": (2, ieee_mul, gmpy2.mul),
    "fma": (3, ieee_fma, gmpy2.fma),
}


def operands(fmt: str, count: int, total: int) -> Iterator[list[int]]:
    """Patterns that meet: exponents close together, close to the ends of the range, and specials."""
    rng = random.Random(7)
    f = FORMATS[fmt]
    width = f.exponent_bits + f.mantissa_bits + 1
    centres = [0, 1, 1 << (f.exponent_bits - 1), (1 << f.exponent_bits) - 3, (1 << (f.exponent_bits - 2)) + 2]
    for _ in range(total):
        centre, values = rng.choice(centres), []
        for _ in range(count):
            field = min(max(centre + rng.randint(-3, 3), 0), (1 << f.exponent_bits) - 2)
            mantissa = rng.getrandbits(f.mantissa_bits) & -1 << rng.choice([0, f.mantissa_bits - 2])
            bits = rng.getrandbits(1) << (width - 1) | field << f.mantissa_bits | mantissa
            special = [0, 1 << (width - 1), f.largest + 1, f.nan, f.largest]
            values.append(rng.choice(special) if rng.random() < 0.06 else bits)
        yield values


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("mode", MPFR_MODES)
@pytest.mark.parametrize("fmt", MPFR)
def test_ieee_operations_agree_with_mpfr(fmt: str, mode: str, operation: str) -> None:
    count, ours, theirs = OPERATIONS[operation]
    precision, emin, emax = MPFR[fmt]
    real, word = NUMPY[fmt]
    context = gmpy2.context(precision=precision, emin=emin, emax=emax, subnormalize=True, round=MPFR_MODES[mode])
    for patterns in operands(fmt, count, 400):
        numbers = [gmpy2.mpfr(float(x), 53) for x in np.array(patterns, word).view(real)]
        with context:
            expected = theirs(*numbers)
        bits = int(np.array(float(expected), real).view(word))
        if gmpy2.is_nan(expected):
            bits = FORMATS[fmt].nan
        assert ours(fmt, mode, *patterns) == bits, (patterns, numbers, expected)


def test_nearest_away_differs_from_nearest_even_on_ties_only() -> None:
    assert ieee_add("f16", "nearest_away", 0x3C00, 0x1000) == 0x3C01
    assert ieee_add("f16", "nearest_even", 0x3C00, 0x1000) == 0x3C00
    assert ieee_add("f16", "nearest_away", 0xBC00, 0x9000) == 0xBC01
    assert ieee_add("f16", "nearest_away", 0x3C00, 0x0FFF) == 0x3C00
