"""`identify --gemm` of loops with compensated sums, or that go over K in several passes; and of products of words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.plans import lengths, library

pytestmark = pytest.mark.solvers

KERNELS = """
import numpy as np

def products(a, b):
    return [np.multiply.outer(a[:, k].astype(np.float32), b[k].astype(np.float32)) for k in range(a.shape[1])]

def kahan(a, b):
    total = lost = np.zeros((len(a), b.shape[1]), np.float32)
    for one in products(a, b):
        one = one - lost
        new = total + one
        lost, total = (new - total) - one, new
    return total

def neumaier(a, b):
    total = lost = np.zeros((len(a), b.shape[1]), np.float32)
    for one in products(a, b):
        new = total + one
        lost, total = lost + np.where(abs(total) >= abs(one), (total - new) + one, (one - new) + total), new
    return total + lost

def strided(a, b):
    total, every = np.zeros((len(a), b.shape[1]), np.float32), products(a, b)
    for first in range(16):
        for one in every[first::16]:
            total = total + one
    return total
"""

PLANS = {
    "kahan": "sum(compensate(1, fma, r, by=kahan), +0)",
    "neumaier": "sum(compensate(1, fma, r), +0)",
    "strided": "sum(swizzle(16, fma), +0)",
}


@pytest.fixture(autouse=True)
def _few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in ("FIRST", 20), ("MORE", 10), ("QUIET", 1), ("CHECKED", 20):
        monkeypatch.setattr(library, name, count)
    monkeypatch.setattr(lengths, "LENGTHS", 20)


def test_a_plan_of_several_sums_is_found(tmp_path: Path) -> None:
    path, plan = tmp_path / "kernels.py", "xla/bf16x3"
    path.write_text(f'import mmaprobe\n\ndef f(a, b):\n    return mmaprobe.matmul(a, b, plan="plan:{plan}")\n')
    words = "identify", "--gemm", "--formats", "f32,f32,f32", "--json", "--device", f"python:{path}:f"
    done = CliRunner().invoke(main, [*words, "--length", "40", "--shape", "8,8"])
    assert done.exit_code == 0, done.output
    assert [*json.loads(done.stdout)["plans"]] == [plan]


@pytest.mark.parametrize("kernel", PLANS)
def test_their_plans_are_found(kernel: str, tmp_path: Path) -> None:
    """Of functions; and of what they give for one product, in which an exact sum is as near as Neumaier's."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    rng, kernels = np.random.default_rng(3), dict[str, object]()
    exec(KERNELS, kernels)
    a, b = (rng.standard_normal(size).astype(np.float16) for size in ((30, 70), (70, 24)))
    for side, matrix in ("a", a), ("b", b), ("d", kernels[kernel](a, b)):  # type: ignore[operator]
        np.save(tmp_path / f"{side}.npy", matrix)
    recorded = ",".join(str(tmp_path / f"{side}.npy") for side in "abd")
    words = "identify", "--gemm", "--formats", "f16,f16,f32", "--json", "--device"
    function = f"python:{path}:{kernel}", "--length", "40", "--shape", "12,12"
    for device in (function, *([] if kernel == "neumaier" else [(f"recorded:{recorded}",)])):
        done = CliRunner().invoke(main, [*words, *device])
        assert done.exit_code == 0, done.output
        assert PLANS[kernel] in json.loads(done.stdout)["plans"]
