"""Functions that are asked whether a row's result depends on the shape of the product."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import mmaprobe
from mmaprobe import MmaprobeError
from mmaprobe.cli.main import main
from mmaprobe.documents.identify import IdentifyInvariant

Floats = NDArray[np.float32]


def summed(a: Floats, b: Floats, order: Callable[[int], Any]) -> Floats:
    """Sums in f32, one product after another in an order of K."""
    d = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    for k in order(a.shape[-1]):
        d += a[..., :, k, None] * b[..., k, None, :]
    return d


def backwards(k: int) -> Any:
    return range(k - 1, -1, -1)


def steady(a: Floats, b: Floats) -> Floats:
    return summed(a, b, range)


def by_rows(a: Floats, b: Floats) -> Floats:
    """Another order for more than 16 rows."""
    return summed(a, b, range if a.shape[-2] <= 16 else backwards)


def by_columns(a: Floats, b: Floats) -> Floats:
    return summed(a, b, range if b.shape[-1] != 5 else backwards)


def last_row(a: Floats, b: Floats) -> Floats:
    """Another order for the last row of an odd number of rows."""
    d = steady(a, b)
    if a.shape[-2] % 2:
        d[..., -1:, :] = summed(a[..., -1:, :], b, backwards)
    return d


def by_stack(a: Floats, b: Floats) -> Floats:
    return summed(a, b, backwards if a.ndim == 3 and a.shape[0] == 8 else range)


def matrices(a: Floats, b: Floats) -> Floats:
    if a.ndim != 2:
        raise ValueError("two dimensions are wanted")
    return steady(a, b)


def long_ones(a: Floats, b: Floats) -> Floats:
    """Another order for few rows, from K = 20 on."""
    return summed(a, b, backwards if a.shape[-1] >= 20 and a.shape[-2] < 4 else range)


def asked(function: Any, **named: Any) -> mmaprobe.Invariant:
    given: dict[str, Any] = {"formats": "f32,f32,f32", "length": 24, "shape": (18, 18)} | named
    return mmaprobe.invariant(function, **given)


def document(function: Any, **named: Any) -> IdentifyInvariant:
    found = asked(function, **named).document
    assert isinstance(found, IdentifyInvariant)
    return found


@pytest.mark.parametrize(
    ("function", "fixed", "verdict"),
    [
        (steady, None, "none seen"), (matrices, None, "none seen"),
        (by_rows, None, "depends"), (by_rows, "N", "depends"), (by_rows, "M", "none seen"),
        (by_columns, None, "depends"), (by_columns, "N", "none seen"), (by_columns, "M", "depends"),
        (last_row, None, "depends"), (last_row, "N", "depends"), (last_row, "M", "none seen"),
        (by_stack, None, "depends"), (by_stack, "N", "depends"), (long_ones, None, "depends"),
    ],
)  # fmt: skip
def test_the_verdict(function: Any, fixed: Any, verdict: str) -> None:
    assert asked(function, fixed=fixed).verdict == verdict


@pytest.mark.parametrize("function", [by_rows, by_columns, last_row, by_stack, long_ones])
def test_the_example_is_small_and_the_function_gives_it_again(function: Any) -> None:
    found = document(function).depends
    assert found is not None
    assert found.others == "zeros"
    a, b = (np.array([int(one, 16) for one in side], np.uint32).view(np.float32) for side in (found.a, found.b))
    assert np.count_nonzero(a * b) <= 3
    assert found.results[0].d != found.results[1].d
    for one in found.results:
        (m, n, k), count = one.shape, one.stack or 1
        x, y = np.zeros((count, m, k), np.float32), np.zeros((count, k, n), np.float32)
        x[one.block, one.place[0]], y[one.block, :, one.place[1]] = a, b
        d = function(x, y) if one.stack else function(x[0], y[0])[None]
        assert f"{d[one.block, one.place[0], one.place[1]].view(np.uint32):08x}" == one.d


def test_values_of_m_that_give_the_same_bits() -> None:
    found = document(by_rows)
    assert found.alike == {"M": [[(1, 16)], [(17, 18)]]}
    assert document(by_columns).alike == {"N": [[(1, 4), (6, 18)], [(5, 5)]]}


def test_stacks_are_asked_where_they_are_taken() -> None:
    assert document(steady).stacked
    found = document(matrices)
    assert not found.stacked
    assert "two dimensions are wanted" in str(found.why_not)


def test_a_function_that_gives_other_bits_each_time() -> None:
    calls: list[int] = []

    def unsteady(a: Floats, b: Floats) -> Floats:
        calls.append(1)
        return steady(a, b) + np.float32(len(calls) % 3)

    found = asked(unsteady)
    assert found.verdict in ("open", "depends")


def test_matrices_lie_in_memory_alike_in_every_shape() -> None:
    """NumPy has another kernel for a transposed matrix: a difference between the two is none of the shape."""

    def laid(a: Floats, b: Floats) -> Floats:
        return steady(a, b) + np.float32(not (a.flags.c_contiguous and b.flags.c_contiguous))

    assert asked(laid).verdict == "none seen"


def test_what_was_asked_is_shown() -> None:
    lines = repr(asked(long_ones)).splitlines()
    assert lines[0] == "depends"
    assert " results of " in lines[1]
    assert len(lines) == 4
    assert " of 1 x 1 x 2" in lines[2]
    assert repr(asked(steady)).splitlines()[0] == "none seen"
    late = repr(asked(steady, timeout=1e-9)).splitlines()
    assert late[0] == "open: the time ran out"


def test_mistakes() -> None:
    with pytest.raises(MmaprobeError, match="formats, length"):
        mmaprobe.invariant(steady)
    with pytest.raises(MmaprobeError, match="shapes"):
        asked(steady, shapes="M=1")
    with pytest.raises(MmaprobeError, match="fixed"):
        asked(steady, fixed="K")
    with pytest.raises(MmaprobeError, match="of"):
        asked(4)
    with pytest.raises(TypeError, match="verdict"):
        bool(asked(steady, length=2, shape=(2, 2)))


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\n\ndef product(a, b):\n    order = range(a.shape[-1])\n    d = 0\n"
        "    for k in reversed(order) if a.shape[-2] > 7 else order:\n"
        "        d = d + a[..., :, k, None] * b[..., k, None, :]\n    return d\n"
    )
    words = ["identify", "--gemm", "--invariant", "--device", f"python:{tmp_path}/mine.py:product"]
    words += ["--formats", "f32,f32,f32", "--length", "20", "--shape", "12,12"]
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert document["verdict"] == "depends"
    assert document["alike"] == {"M": [[[1, 7]], [[8, 12]]]}
    assert "row 0 has the same bits for M = 1 to 7 | 8 to 12" in result.stderr
