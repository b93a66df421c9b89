"""Emulations of f32 by words: the sums of XLA's against NumPy's f32, and infinities, which some lose and some keep."""

from __future__ import annotations

from fractions import Fraction
from math import floor, ldexp, log2, prod

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_path

Singles = NDArray[np.float32]


def through(plan: str, a: Singles, b: Singles) -> Singles:
    return simulate(a.view(np.uint32), b.view(np.uint32), None, parse_plan_path(plan)).view(np.float32)


def cut(x: Singles) -> Singles:
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def nearest(x: Singles) -> Singles:
    """To bf16, ties to even, of finite numbers."""
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> 16 & np.uint32(1))) & np.uint32(0xFFFF0000)).view(np.float32)


def split(x: Singles, count: int) -> list[Singles]:
    words = []
    for _ in range(count - 1):
        words.append(cut(x))
        x = x - words[-1]
    return [*words, nearest(x)]


@pytest.mark.parametrize(
    ("plan", "count", "pairs"),
    [("plan:xla/bf16x3", 2, ["10", "01", "00"]), ("plan:xla/bf16x6", 3, ["11", "02", "20", "01", "10", "00"])],
)
def test_single_products(plan: str, count: int, pairs: list[str]) -> None:
    """One product of words is a number of f32, so that d is what additions in f32 give in this order."""
    random = np.random.default_rng(1)
    a, b = (np.ldexp(random.standard_normal((60, 1)), random.integers(-30, 30, (60, 1))).astype(np.float32)
            for _ in range(2))  # fmt: skip
    x, y = split(a, count), split(np.ascontiguousarray(b.T), count)
    wanted = np.zeros((60, 60), dtype=np.float32)
    for number, (i, j) in enumerate(pairs):
        product = x[int(i)] * y[int(j)]
        wanted = wanted + product if number else product
    assert np.array_equal(through(plan, a, np.ascontiguousarray(b.T)), wanted)


@pytest.mark.parametrize(
    ("plan", "keeps"),
    [
        ("plan:xla/bf16x3", True), ("plan:xla/bf16x6", True), ("plan:loop/fma", True), ("plan:triton/bf16x3", False),
        ("plan:triton/bf16x6", False), ("plan:triton/tf32x3", False), ("plan:cutlass/tf32x3", False),
        ("plan:multiword/bf16x9", False), ("plan:multiword/ootomo-yokota", False), ("plan:hipblaslt/bf16x3", False),
    ],
)  # fmt: skip
def test_infinite_elements(plan: str, keeps: bool) -> None:
    """What is left of an infinity is a NaN, and so is the sum, unless a NaN of small products is replaced by 0."""
    a, b = np.ones((2, 4), dtype=np.float32), np.ones((4, 1), dtype=np.float32)
    a[0, 1] = np.inf
    d = through(plan, a, b)
    assert np.isinf(d[0, 0]) if keeps else np.isnan(d[0, 0])
    assert d[1, 0] == 4


def test_three_products_of_tf64() -> None:
    """Words of f32 by a mask and a conversion of NumPy's, whose products are numbers of f64, added one by one there."""
    random = np.random.default_rng(2)
    a, b = (np.ldexp(random.standard_normal((9, 6)), random.integers(-9, 9, (9, 6))) for _ in range(2))

    def halves(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        first = (x.view(np.uint64) >> np.uint64(29) << np.uint64(29)).view(np.float64)
        return first, (x - first).astype(np.float32).astype(np.float64)

    def chain(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros((len(x), len(y)))
        for k in range(x.shape[1]):
            total = total + np.outer(x[:, k], y[:, k])
        return total

    (a0, a1), (b0, b1) = halves(a), halves(b)
    wanted = chain(a0, b0) + (chain(a0, b1) + chain(a1, b0))
    plan = parse_plan_path("plan:valero-lara/tf64x3")
    found = simulate(a.view(np.uint64), np.ascontiguousarray(b.T).view(np.uint64), None, plan)
    assert np.array_equal(found.view(np.float64), wanted)


def test_single_products_of_hipblaslt() -> None:
    """Each sum of CDNA3's unit, of one product and the sum so far, is rounded to nearest."""
    random = np.random.default_rng(2)
    a, b = (np.ldexp(random.standard_normal((60, 1)), random.integers(-30, 30, (60, 1))).astype(np.float32)
            for _ in range(2))  # fmt: skip
    x, y = ([nearest(side), nearest(side - nearest(side))] for side in (a, np.ascontiguousarray(b.T)))
    wanted = np.float32(0) + x[1] * y[0] + x[0] * y[1] + x[0] * y[0]
    found = through("plan:hipblaslt/bf16x3", a, np.ascontiguousarray(b.T))
    # of a sum of three parts the unit keeps 24 bits below the largest one, f32 as many below the result
    assert np.all(np.abs(found - wanted) <= np.abs(wanted) * np.float32(2**-22))
    assert np.mean(found == wanted) > 0.5


def test_rows_that_are_scaled_do_not_overflow() -> None:
    """Of two products cuMpSGEMM's factors, words and sums in f32; a row of zeros, and one beyond the range of f16."""
    random = np.random.default_rng(3)
    a, b = (np.ldexp(random.standard_normal((20, 2)), random.integers(-8, 9, (20, 2))).astype(np.float32)
            for _ in range(2))  # fmt: skip
    a[0], a[1] = 0, a[1] * np.float32(2**40)
    b = np.ascontiguousarray(b.T)
    found = through("plan:cumpsgemm/f16x3-scaled", a, b)
    assert np.all(found[0] == 0)
    exact, sizes = a.astype(np.float64) @ b, np.abs(a.astype(np.float64)) @ np.abs(b)
    assert np.all(np.abs(found - exact) <= sizes * 2**-21)
    one, other = a[:, :1].copy(), b[:1].copy()  # of one product the scaled factors are powers of two, or next to them
    with np.errstate(all="ignore"):
        scaled = [side * (np.float32(2**14) / np.abs(side)) for side in (one, other)]
        words = [(x.astype(np.float16), ((x - x.astype(np.float16)) * np.float32(2**11)).astype(np.float16))
                 for x in scaled]  # fmt: skip
        (x, x_low), (y, y_low) = ([word.astype(np.float32) for word in side] for side in words)
        total = x * y + np.float32(2**-11) * (x * y_low + x_low * y)
        wanted = total * (np.abs(one) * np.abs(other) * np.float32(2**-28))
    got = through("plan:cumpsgemm/f16x3-scaled", one, other)
    assert np.allclose(got[1:], wanted[1:], rtol=2**-21, atol=0)


def rounded(value: Fraction) -> float:
    return float(value)  # to nearest even, as a fused multiply-add is


def test_recombination_in_two_numbers() -> None:
    """GEMMul8's constants from their definition, and its additions with exact fractions, each rounded once."""
    moduli = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199)
    whole = prod(moduli)
    high, low = float(whole), float(whole - int(float(whole)))
    random = np.random.default_rng(4)
    a, b = random.standard_normal((3, 20)), random.standard_normal((20, 3))
    a[0] *= np.exp2(random.integers(-30, 1, 20))
    plan = parse_plan_path("plan:gemmul8/int8-ii-14")
    found = simulate(a.view(np.uint64), b.view(np.uint64), None, plan, engine="numpy").view(np.float64)
    differ = 0
    for i, j in np.ndindex(3, 3):
        tops = [floor(log2(max(abs(side)))) for side in (a[i], b[:, j])]
        x, y = ([int(ldexp(v, 48 - top)) for v in side] for side, top in zip((a[i], b[:, j]), tops, strict=True))
        total = sum(p * q for p, q in zip(x, y, strict=True))
        sums = [0.0, 0.0]
        for modulus in moduli:
            residue = (total + modulus // 2) % modulus - modulus // 2
            share = pow(whole // modulus, -1, modulus) * (whole // modulus)
            first = share >> 69 << 69
            for place, part in enumerate((float(first), float(share - first))):
                sums[place] = rounded(Fraction(part) * residue + Fraction(sums[place]))
        times = round(Fraction(rounded(Fraction(1 / whole) * Fraction(sums[0]))))
        rest = rounded(Fraction(rounded(Fraction(-high) * times + Fraction(sums[0]))) + Fraction(sums[1]))
        wanted = ldexp(rounded(Fraction(-low) * times + Fraction(rest)), -96 + sum(tops))
        assert found[i, j] == wanted
        differ += wanted != ldexp(float(total), -96 + sum(tops))
    assert differ  # from the integer rounded once


def halves(x: Singles, places: int) -> tuple[Singles, Singles]:
    """Two words of f16, the second one times 2^places."""
    first = x.astype(np.float16).astype(np.float32)
    return first, ((x - first) * np.float32(2.0**places)).astype(np.float16).astype(np.float32)


def test_single_products_of_words_of_f16() -> None:
    """APE's second words are times 2^12, and its products are added in f32; Markidis et al. round one side alone."""
    random = np.random.default_rng(6)
    a, b = (np.ldexp(random.standard_normal((60, 1)), random.integers(-8, 9, (60, 1))).astype(np.float32)
            for _ in range(2))  # fmt: skip
    b = np.ascontiguousarray(b.T)
    (x, x_low), (y, y_low) = halves(a, 12), halves(b, 12)
    wanted = (x * y + np.float32(2**-12) * (x_low * y)) + np.float32(2**-12) * (x * y_low)
    assert np.array_equal(through("plan:ape/f16x3-scaled", a, b), wanted)
    (x, x_low), (y, _) = halves(a, 0), halves(b, 0)
    found = simulate(a.view(np.uint32), b.view(np.uint32), np.zeros((60, 60), np.uint32),
                     parse_plan_path("plan:multiword/markidis-f16x2")).view(np.float32)  # fmt: skip
    exact = x.astype(float) * y + x_low.astype(float) * y
    assert np.all(np.abs(found - exact) <= np.abs(exact) * 2**-21)
