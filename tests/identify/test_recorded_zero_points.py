"""Zero points of recorded quantised results, which no product of zeros shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.zero_points import likely_zero_points
from mmaprobe.smtmodel.inputs.signature import parse_signature

ASKED = parse_signature("int8,int8,int32,int8", 64)
FACTOR = np.float32(0.0123)


def product(zero_point: int, rounding: str, rectified: bool = False) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-20, 21, size, np.int8) for size in ((40, 64), (64, 48)))
    c = rng.integers(-2000, 2000, (40, 48), np.int32)
    x = (a.astype(np.int32) @ b.astype(np.int32) + c).astype(np.float32) * FACTOR
    y = {"nearest": np.rint, "down": np.floor, "half_up": lambda t: np.floor(np.float64(t) + 0.5)}[rounding](x)
    return a, b, c, np.clip(y.astype(np.int64) + zero_point, zero_point if rectified else -128, 127).astype(np.int8)


@pytest.mark.parametrize("zero_point", [-7, 0, 1, 64, -128])
@pytest.mark.parametrize("rounding", ["nearest", "down", "half_up"])
def test_a_zero_point_is_among_the_likely_ones(zero_point: int, rounding: str) -> None:
    sides = product(zero_point, rounding)
    found = likely_zero_points(ASKED, Sample(*(side[None].view(f"u{side.itemsize}") for side in sides)))
    assert {0, zero_point} <= {*found}
    assert len(found) <= 3


@pytest.mark.parametrize(("zero_point", "rounding", "rectified"), [(-7, "nearest", False), (5, "nearest", True)])
def test_a_plan_with_a_zero_point_is_found(zero_point: int, rounding: str, rectified: bool, tmp_path: Path) -> None:
    for name, side in zip("abcd", product(zero_point, rounding, rectified), strict=True):
        np.save(tmp_path / f"{name}.npy", side)
    files, plan = ",".join(str(tmp_path / f"{name}.npy") for name in "abcd"), tmp_path / "plan.yaml"
    done = CliRunner().invoke(
        main, ["identify", "--gemm", "--device", f"recorded:{files}", "--timeout", "60", "--save", str(plan)]
    )
    assert done.exit_code == 0, done.output
    again = str(tmp_path / "again.npy")
    inputs = [str(tmp_path / f"{name}.npy") for name in "abc"]
    assert CliRunner().invoke(main, ["simulate", *inputs, "-o", again, "--plan", str(plan)]).exit_code == 0
    assert (np.load(again) == np.load(tmp_path / "d.npy")).all()
