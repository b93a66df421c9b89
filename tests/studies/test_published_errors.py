"""Errors that Valero-Lara et al. 2023 and Navarro et al. 2020 published, computed as their public code does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.navarro import errors
from benchmarks.valero import PUBLISHED_TF64, tf64_errors
from mmaprobe.studies.file import studies
from mmaprobe.studies.run import points, values_of
from mmaprobe.studies.study import Series

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
