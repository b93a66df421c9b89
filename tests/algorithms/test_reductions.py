"""Sums of numbers by matrix instructions: against exact rationals, at scale."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms import parse_reduction, reference_of, sum_of_array
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.reductions import Chained, Reduction, Split
from mmaprobe.smtmodel.base.errors import MmaprobeError
from tests.oracles import algorithm_oracle as oracle
from tests.oracles.family_oracle import parameters_of
from tests.oracles.oracle import decode, evaluate

pytestmark = pytest.mark.oracle

AMPERE = "ampere/mma/m16n8k8.f32.f16.f16.f32"
TF32 = "ampere/mma/m16n8k4.f32.tf32.tf32.f32"


def narrowed(numbers: list[int], fmt: str) -> list[int]:
    return [x if fmt == "f32" else oracle.convert(x, "f32", fmt, "nearest_even") for x in numbers]


def expected(algorithm: Reduction, numbers: list[int]) -> int:
    """The oracle of an algorithm."""
    if isinstance(algorithm, Chained):
        params = parameters_of(algorithm.model)
        fmt = algorithm.model.a.name
        unit = partial(evaluate, {"a": fmt, "b": fmt, "c": "f32", "d": "f32"}, params)
        size, outside = algorithm.chain * algorithm.side**2, algorithm.columns == "outside"

        def warps(values: list[int]) -> list[int]:
            shape = (algorithm.side, algorithm.chain, outside)
            return [oracle.warp(unit, algorithm.model.length, fmt, x, *shape) for x in oracle.in_blocks(values, size)]

    def blocks(fmt: str, results: list[int], count: int) -> list[int]:
        return [oracle.shuffled(fmt, block, count) for block in oracle.in_blocks(results, count)]

    def threads(fmt: str, values: list[int], count: int) -> list[int]:
        lanes = [oracle.shuffled(fmt, lane, 32) for lane in oracle.in_blocks(narrowed(values, fmt), 32)]
        return blocks(fmt, lanes, count)

    if algorithm.name == "warp-shuffle":
        fmt = algorithm.result_format.name
        return oracle.added(fmt, threads(fmt, numbers, algorithm.warps))  # type: ignore[attr-defined]
    if algorithm.name == "recurrence":
        values = narrowed(numbers, fmt)
        while True:
            values = narrowed(warps(values), fmt)
            if len(values) == 1:
                return values[0]
    cut = len(numbers)
    if isinstance(algorithm, Split):
        cut = max(1, cut * algorithm.share // 100)
    results = blocks("f32", warps(narrowed(numbers[:cut], fmt)), algorithm.warps)  # type: ignore[attr-defined]
    if cut < len(numbers):
        results += threads("f32", numbers[cut:], algorithm.warps)  # type: ignore[attr-defined]
    return oracle.added("f32", results)


CASES = [
    "single-pass@side=4,chain=2,warps=3",
    "single-pass@side=4,chain=3,columns=outside",
    f"single-pass@side=5,chain=1,unit={AMPERE}",
    f"single-pass@side=4,chain=2,unit={TF32}",
    "recurrence@side=4,chain=2",
    "split@side=4,share=30,warps=2",
    "warp-shuffle@warps=2",
    "warp-shuffle@format=f16,warps=3",
]


def drawn(count: int, kind: str, seed: int = 0) -> NDArray[np.uint32]:
    rng = np.random.default_rng(seed)
    if kind == "bits":
        return rng.integers(0, 1 << 32, count, dtype=np.uint32)
    scale = {"normal": 1.0, "uniform": 1.0, "large": 3000.0, "wide": np.exp2(rng.integers(-30, 16, count))}[kind]
    x = rng.random(count) if kind == "uniform" else rng.standard_normal(count)
    x[rng.random(count) < 0.05] = -0.0
    return (x * scale).astype(np.float32).view(np.uint32)


KINDS = ("normal", "large", "wide", "bits")


@pytest.mark.parametrize("text", CASES)
def test_exact_rationals(text: str) -> None:
    algorithm, results = parse_reduction(text), {kind: set[int]() for kind in KINDS}
    for count in (1, 37, 100):
        rows = np.array([drawn(count, kind, count) for kind in KINDS])
        rows[KINDS.index("bits"), 1:] &= 0xC6FFFFFF  # no NaN, and no overflow of f16, but in the first
        for kind, row in zip(KINDS, rows, strict=True):
            found = sum_of_array(algorithm, row)
            other = expected(algorithm, row.tolist())
            kinds = [decode(algorithm.result_format.name, x).kind for x in (found, other)]
            assert found == other or kinds == ["nan", "nan"], (kind, count)
            results[kind].add(found)
    assert all(len(seen) > 1 for seen in results.values()), results


def test_compiled_steps_give_the_same_bits() -> None:
    """Of long rows; the additions are those of the processor."""
    numbers = drawn(70_000, "normal", 9)
    layer = np.pad(numbers.view(np.float32), (0, -len(numbers) % 32)).reshape(-1, 32)
    for half in (16, 8, 4, 2, 1):
        layer = layer[:, :half] + layer[:, half:]
    last = np.add.accumulate(layer[:, 0], dtype=np.float32)[-1:]
    assert sum_of_array(parse_reduction("warp-shuffle@warps=1"), numbers) == last.view(np.uint32)[0]


def test_overflow_of_the_recurrence() -> None:
    """f16 partial sums of numbers below 1 overflow; f32 ones do not."""
    numbers = np.full(70_000, 0.99, dtype=np.float32).view(np.uint32)
    assert sum_of_array(parse_reduction("recurrence"), numbers) == 0x7C00
    assert sum_of_array(parse_reduction("recurrence"), numbers[:60_000]) < 0x7C00
    assert decode("f32", sum_of_array(parse_reduction("single-pass"), numbers)).kind == "finite"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("single-pas", "did you mean 'single-pass'"),
        ("single-pass@share=3", "unknown parameter 'share'"),
        ("split@share=100", "share: 100 is impossible"),
        ("recurrence@unit=ampere/mma/m8n8k4.f64.f64.f64.f64", "f32 sums"),
        ("markidis", "a sum of numbers is needed"),
    ],
)
def test_what_cannot_be(text: str, message: str) -> None:
    with pytest.raises(MmaprobeError, match=message):
        parse_reduction(text)


def test_products_are_no_sums() -> None:
    with pytest.raises(MmaprobeError, match="algorithm for products is needed"):
        Part("single-pass")
    with pytest.raises(MmaprobeError, match="at least one"):
        sum_of_array(parse_reduction("recurrence"), np.zeros(0, dtype=np.uint32))


def test_texts_are_read_back() -> None:
    for text in CASES:
        assert parse_reduction(reference_of(parse_reduction(text))) == parse_reduction(text)
