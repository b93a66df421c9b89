"""Errors that Valero-Lara et al. 2023 and Navarro et al. 2020 published, computed as their public code does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.navarro import BLOCK, cost, errors, single_pass_plan, warp_shuffle_plan
from benchmarks.published_bounds import share
from benchmarks.valero import PUBLISHED_TF64, tf64_errors
from mmaprobe.queries.kernel.bounds.wording import GROWTH
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.smtmodel.algorithms.reductions import F32, ArrayOperations, SinglePass, WarpShuffle
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.studies.file import studies
from mmaprobe.studies.run import points, values_of
from mmaprobe.studies.study import Series
from tests.said import believed

#: n -> errors of three TF32 products on an A100, entrywise: by magnitudes, by squares (data/gemm_cuda_test_*-norm)
PUBLISHED_TF32 = {128: (3.5222e-10, 3.9998e-08), 256: (9.4483e-11, 2.0966e-08)}


def test_tf64_gives_the_published_digits() -> None:
    assert tf64_errors(128, seed=1) == pytest.approx(PUBLISHED_TF64[128], rel=1e-12)


def test_tf32_on_an_a100(tmp_path: Path) -> None:
    """Three calls of cuBLAS as published for n = 128 and 256: K in one run and in three; four products at a time, not
    eight."""
    study = replace(studies()["valero-a100"], repeats=2)
    three = [one for one in points(study, tuple(PUBLISHED_TF32), 0) if one[1].label.startswith("3xTF32")]
    found = {(point.size, series.label): values_of(study, series, point) for point, series in three}
    for size, runs in ((128, "one run"), (256, "three runs")):
        near = [label for (at, label), values in found.items()
                if at == size and values == pytest.approx(PUBLISHED_TF32[size], rel=0.03)]  # fmt: skip
        assert near == [f"3xTF32, {runs}"]
    plan = Path(next(one.algorithm for one in study.series if one.label == "3xTF32, one run"))
    eight = tmp_path / "eight.yaml"
    eight.write_text(plan.read_text().replace("m16n8k8.f32.tf32.tf32.f32", "m16n8k8.f32.tf32.tf32.f32@block=8"))
    other = replace(study, series=(Series("eight", str(eight)),))
    ((point, series),) = points(other, (128,), 0)
    assert all(
        value < 0.7 * four for value, four in zip(values_of(other, series, point), PUBLISHED_TF32[128], strict=True)
    )


def test_the_single_pass_is_close_to_a_shuffle_that_adds_in_f16() -> None:
    """As Figure 7 of Navarro et al. has them; a shuffle in f32 would be hundreds of times as accurate."""
    found = errors(10_000, "normal")
    assert 0.2 < found["single pass"] / found["warp shuffle"] < 5
    assert max(found.values()) < 1


@pytest.mark.parametrize("unit", ["volta/mma/m8n8k4.f32.f16.f16.f32", "turing/mma/m16n8k8.f32.f16.f16.f32"])
@pytest.mark.parametrize(("chain", "warps"), [(1, 1), (3, 2)])
def test_the_single_pass_is_a_plan(chain: int, warps: int, unit: str) -> None:
    """Products with ones, three blocks: the same bits, whatever R and B are."""
    numbers = from_numbers(np.random.default_rng(chain).standard_normal(3 * chain * warps * 256), F32, "nearest_even")
    wanted = SinglePass(unit, 16, chain, "outside", warps).evaluate(ArrayOperations(), numbers)
    assert sums(single_pass_plan(chain, warps, unit), numbers) == wanted.tolist()


def test_the_warp_shuffle_is_a_plan() -> None:
    numbers = from_numbers(np.random.default_rng(1).standard_normal(3 * 128), F32, "nearest_even")
    wanted = WarpShuffle(warps=4).evaluate(ArrayOperations(), numbers)
    assert sums(warp_shuffle_plan(4), numbers) == wanted.tolist()


def sums(plan: Plan, numbers: NDArray[np.unsignedinteger]) -> list[int]:
    ones = np.full((1, len(numbers)), plan.a.one, np.uint32)
    found: list[int] = np.asarray(simulate(ones, numbers[:, None], None, plan, engine="numpy")).ravel().tolist()
    return found


def test_the_single_pass_has_a_bound_for_every_n() -> None:
    """Little more than what f16 loses of each number, 2^-11; no f32 sum of 256 blocks loses a tenth of that."""
    every = error_of(bound_of_plan(single_pass_plan(), None, believed))
    assert any(factor.name == GROWTH for atom in every.parts for item in atom for factor in item)
    at = share(error_of(bound_of_plan(single_pass_plan(), 4 * BLOCK, believed)))
    assert 2**-11 < at < 1.1 * 2**-11


def test_the_cost_formulas_give_the_printed_speedup() -> None:
    """T(n) = 5 log n to the base m^2 and S = (4 / 5) log2 m^2: 3.2 for m = 4, 1.6 for 2."""
    for side, speedup in ((4, 3.2), (2, 1.6)):
        formula, whole = cost(1, side, 1 << 20)
        assert 4 * 20 / formula == pytest.approx(speedup)
        assert whole >= formula
    assert cost(4, 4, 64) == (pytest.approx(11), 11)
