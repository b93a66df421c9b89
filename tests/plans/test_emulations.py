"""Emulations of f32 by words: the sums of XLA's against NumPy's f32, and infinities, which some lose and some keep."""

from __future__ import annotations

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
        ("plan:multiword/bf16x9", False), ("plan:multiword/ootomo-yokota", False),
    ],
)  # fmt: skip
def test_infinite_elements(plan: str, keeps: bool) -> None:
    """What is left of an infinity is a NaN, and so is the sum, unless a NaN of small products is replaced by 0."""
    a, b = np.ones((2, 4), dtype=np.float32), np.ones((4, 1), dtype=np.float32)
    a[0, 1] = np.inf
    d = through(plan, a, b)
    assert np.isinf(d[0, 0]) if keeps else np.isnan(d[0, 0])
    assert d[1, 0] == 4
