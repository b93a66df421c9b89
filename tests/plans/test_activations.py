"""The activation that results without a plan look like."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from mmaprobe.cli.main import main
from mmaprobe.queries.plans.activations import activation_of
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.inputs.signature import parse_signature

Numbers = NDArray[Any]


def gelu(x: Numbers) -> Numbers:
    """By the formula with tanh, which differs from that with erf by less than a thousandth."""
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: Numbers) -> Numbers:
    return x / (1 + np.exp(-x))


RELU6 = """import numpy as np
def f(a, b):
    x = (np.int32(a) @ np.int32(b)).astype(np.float32) * np.float32(0.001)
    return np.clip(x, 0, 6).astype(np.float16)
"""
CASES: dict[str, tuple[Callable[[Numbers], Numbers], str]] = {
    "gelu": (gelu, "GELU"),
    "silu": (silu, "SiLU"),
    "tanh": (np.tanh, "tanh"),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), "sigmoid"),
    "leaky": (lambda x: np.where(x > 0, x, x / 100), "leaky ReLU"),
    "relu6": (lambda x: np.clip(x, 0, 6), "a clamp from 0 to 6 (ReLU6)"),
    "hard tanh": (lambda x: np.clip(x, -1, 1), "a clamp from -1 to 1"),
    "at most": (lambda x: np.minimum(x, 0.75), "a clamp to 0.75 at most"),
    "at least": (lambda x: np.maximum(x, -0.25), "a clamp to -0.25 at least"),
    "relu": (lambda x: np.maximum(x, 0), ""),
    "third": (lambda x: x / 3, ""),
    "rectified third": (lambda x: np.maximum(x, 0) / 3, ""),
    "rectified third of rounded sums": (lambda x: np.maximum(x + 1e-6, 0) / 3, ""),
    "noise": (lambda x: x + np.random.default_rng(1).standard_normal(x.shape), ""),
    "square": (np.square, ""),
    "zero": (lambda x: x * 0, ""),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("d", ["f32", "bf16"])
@pytest.mark.parametrize("addend", [False, True])
def test_the_activation_of_results(case: str, d: str, addend: bool) -> None:
    apply, name = CASES[case]
    asked = parse_signature(f"f32,f32,f32,{d}" if addend else f"f32,f32,{d}", 40)
    rng = np.random.default_rng(2)
    a, b, c = (rng.standard_normal((1, *shape)).astype(np.float32) for shape in ((24, 40), (40, 20), (24, 20)))
    results = from_numbers(apply(a.astype(np.float64) @ b + c * addend), asked.d, "nearest_even")
    if not addend:
        c = from_numbers(np.zeros_like(c), asked.c, None)
    assert activation_of(asked, Sample(a.view(np.uint32), b.view(np.uint32), c.view(f"u{c.itemsize}"), results)) == name


@pytest.mark.parametrize(
    ("d", "least", "most", "name"),
    [
        ("int8", -127, 127, "a clamp from -127 to 127"),
        ("int8", 0, 100, "a clamp from 0 to 100"),
        ("int8", -128, 100, "a clamp from -128 to 100"),
        ("int8", -128, 127, ""),
        ("int8", 0, 127, ""),
    ],
)
@pytest.mark.parametrize("zero_point", [0, 3])
def test_a_clamp_of_integers_within_their_format(d: str, least: int, most: int, name: str, zero_point: int) -> None:
    asked = parse_signature(f"int8,int8,{d}", 40)
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-128, 128, (1, *shape)) for shape in ((24, 40), (40, 20)))
    results = np.clip(np.rint(a @ b * 0.003) + zero_point, least, most).astype(d)
    a, b = (side.astype(np.int8).view(np.uint8) for side in (a, b))
    sample = Sample(a, b, np.zeros(results.shape, f"u{(asked.c.width + 7) // 8}"), results.view(np.uint8))
    assert activation_of(asked, sample) == name


def test_a_clamp_is_named_in_place_of_a_plan(tmp_path: Path) -> None:
    """By the door of functions and by that of recorded products."""
    (tmp_path / "kernel.py").write_text(RELU6)
    given = ["--device", f"python:{tmp_path}/kernel.py:f", "--formats", "int8,int8,f16", "--length", "40"]
    done = CliRunner().invoke(main, ["identify", "--gemm", *given, "--shape", "8,8", "--timeout", "20"])
    text = " ".join(done.stderr.split())
    assert done.exit_code in (1, 3), text
    assert "the results are near a clamp from 0 to 6 (ReLU6) of the sums" in text
    rng = np.random.default_rng(3)
    a, b = rng.integers(-128, 128, (12, 40), dtype=np.int8), rng.integers(-128, 128, (40, 16), dtype=np.int8)
    space: dict[str, Any] = {}
    exec(RELU6, space)
    for file, side in (("a", a), ("b", b), ("d", space["f"](a, b))):
        np.save(tmp_path / f"{file}.npy", side)
    device = "recorded:" + ",".join(str(tmp_path / f"{side}.npy") for side in "abd")
    done = CliRunner().invoke(main, ["identify", "--gemm", "--device", device, "--timeout", "100"])
    text = " ".join(done.stderr.split())
    assert done.exit_code == 1, text
    assert "the results are near a clamp from 0 to 6 (ReLU6) of the sums" in text


def test_an_activation_is_named_in_place_of_a_plan(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((12, 4), (4, 16)))
    for name, apply in (("gelu", gelu), ("square", np.square)):
        for file, side in (("a", a), ("b", b), ("d", apply(a @ b).astype(np.float32))):
            np.save(tmp_path / f"{name}-{file}.npy", side)
    device = "recorded:" + ",".join(str(tmp_path / f"gelu-{side}.npy") for side in "abd")
    done = CliRunner().invoke(main, ["identify", "--gemm", "--device", device, "--timeout", "100"])
    text = " ".join(done.stderr.split())
    assert done.exit_code == 1, text
    assert "the results are near GELU of the sums, and no plan has an activation other than ReLU" in text
    device = device.replace("gelu-", "square-")
    done = CliRunner().invoke(main, ["identify", "--gemm", "--device", device, "--timeout", "100"])
    text = " ".join(done.stderr.split())
    assert done.exit_code == 1, text
    assert "alpha, beta, a bias and ReLU are tried, not GELU, SiLU, tanh or another activation" in text
