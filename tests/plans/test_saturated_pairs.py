"""What is said of sums of pairs of products that are saturated to int16, as PMADDUBSW has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from mmaprobe.cli.main import main
from mmaprobe.queries.plans.pairs import saturates_pairs
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_path

KERNEL = """import numpy as np
def f(a, b):
    total = np.zeros((len(a), b.shape[1]), np.int32)
    for k in range(0, a.shape[1], 2):
        total += np.clip(np.int32(a[:, k : k + 2]) @ np.int32(b[k : k + 2]), -(2**15), 2**15 - 1)
    return total
"""
UNIT = """unit: pairs
formats: {a: uint8, b: int8, c: int32, d: int32}
length: 2
steps:
"""
PLAN = """plan: saturated
formats: {a: uint8, b: int8, c: none, d: int32}
units: {pairs: pairs.yaml}
steps:
  d: sum(pairs, +0)
"""
SAID = "the results are sums of pairs of products, each pair saturated to int16"


def product(length: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """A, B, and what the kernel gives for them."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (20, length), np.uint8), rng.integers(-128, 128, (length, 20), np.int8)
    space: dict[str, Any] = {}
    exec(KERNEL, space)
    return a, b, space["f"](a, b)


@pytest.mark.parametrize("length", [2, 9, 40])
def test_saturated_pairs_are_told_from_other_sums(length: int) -> None:
    asked = parse_signature("uint8,int8,int32", length)
    a, b, d = product(length)

    def told(results: NDArray[Any], beside: int = 0) -> bool:
        c = np.full((1, *d.shape), beside, np.uint32)
        return saturates_pairs(asked, Sample(a[None], b.view(np.uint8)[None], c, results.view(np.uint32)[None]))

    whole = np.int32(a) @ np.int32(b)
    assert told(d)
    assert told(d + 7, 7)
    assert not told(whole)
    assert not told(d + np.int32(1))
    assert not told(np.clip(whole, -(2**15), 2**15 - 1)) or length == 2
    small = np.int32(a) @ np.int32(b // 4)
    assert not saturates_pairs(
        asked, Sample(a[None], (b // 4).view(np.uint8)[None], np.zeros_like(d)[None].view(np.uint32),
                      small.view(np.uint32)[None])
    )  # fmt: skip


def test_pairs_of_signed_factors_saturate_in_one_case(tmp_path: Path) -> None:
    """Only -128 * -128 twice is beyond int16, so that the plain sum is the plan of most elements."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    given = ["--device", f"python:{tmp_path}/kernel.py:f", "--formats", "int8,int8,int32", "--shape", "8,8"]
    done = CliRunner().invoke(main, ["identify", "--gemm", *given, "--length", "64", "--timeout", "25"])
    assert SAID in " ".join(done.stderr.split()), done.stderr


def test_saturated_pairs_are_said(tmp_path: Path) -> None:
    """By the door of functions and by that of recorded products; the unit that is named gives the results."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    formats = ["--formats", "uint8,int8,int32"]
    given = ["--device", f"python:{tmp_path}/kernel.py:f", *formats, "--length", "40", "--shape", "8,8"]
    done = CliRunner().invoke(main, ["identify", "--gemm", *given, "--timeout", "20"])
    text = " ".join(done.stderr.split())
    assert done.exit_code in (1, 3), text
    assert SAID in text
    a, b, d = product(40)
    for name, side in (("a", a), ("b", b), ("d", d)):
        np.save(tmp_path / f"{name}.npy", side)
    device = "recorded:" + ",".join(str(tmp_path / f"{side}.npy") for side in "abd")
    done = CliRunner().invoke(main, ["identify", "--gemm", "--device", device, *formats, "--timeout", "20"])
    text = " ".join(done.stderr.split())
    assert done.exit_code in (1, 3), text
    assert SAID in text
    steps = text[text.index("with the steps ") :].removeprefix("with the steps ").partition(" and d: ")
    first, last = steps[0], "d: " + steps[2][: steps[2].index("toward_zero)") + len("toward_zero)")]
    (tmp_path / "pairs.yaml").write_text(f"{UNIT}  {first}\n  {last}\n")
    (tmp_path / "plan.yaml").write_text(PLAN)
    plan = parse_plan_path(f"plan:{tmp_path}/plan.yaml")
    assert np.array_equal(simulate(a, b.view(np.uint8), None, plan).astype(np.uint32).view(np.int32), d)
