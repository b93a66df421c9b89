"""Errors that Valero-Lara et al. 2023 and Navarro et al. 2020 published, computed as their public code does."""

from __future__ import annotations

import pytest

from benchmarks.navarro import errors
from benchmarks.valero import AMPERE, PUBLISHED_TF32, PUBLISHED_TF64, tf32_errors, tf64_errors


def test_tf64_gives_the_published_digits() -> None:
    assert tf64_errors(128, seed=1) == pytest.approx(PUBLISHED_TF64[128], rel=1e-12)


def test_tf32_on_ampere_adds_four_products_at_a_time() -> None:
    """cuBLAS's three products on an A100: as with steps of four, not of eight, in both norms that average."""
    four = [tf32_errors(128, seed) for seed in range(4)]
    eight = [tf32_errors(128, seed, f"{AMPERE}@block=8") for seed in range(4)]
    for norm, published in enumerate(PUBLISHED_TF32[128][:2]):
        mean = [sum(found[norm] for found in errors) / len(errors) for errors in (four, eight)]
        assert mean[0] == pytest.approx(published, rel=0.03)
        assert mean[1] < 0.7 * published


def test_the_single_pass_is_close_to_a_shuffle_that_adds_in_f16() -> None:
    """As Figure 7 of Navarro et al. has them; a shuffle in f32 would be hundreds of times as accurate."""
    found = errors(10_000, "normal")
    assert 0.2 < found["single pass"] / found["warp shuffle"] < 5
    assert max(found.values()) < 1
