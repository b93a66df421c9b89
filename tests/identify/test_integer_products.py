"""`identify --gemm` of products of integers: in which format they are added, and the steps after the sum."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.plans import lengths, library
from mmaprobe.queries.plans.recorded import Sample, near_ends, random_integers, random_patterns
from mmaprobe.queries.plans.summed import Summed, summed
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.signature import parse_signature

pytestmark = pytest.mark.solvers

KERNELS = """
import numpy as np

def exact(a, b):
    return a.astype(np.int64) @ b.astype(np.int64)

def wrapped(a, b, c):
    return (exact(a, b) + c).astype(np.int32)

def saturated(a, b, c):
    return np.clip(exact(a, b) + c, -2**31, 2**31 - 1).astype(np.int32)

def saturated_by_four(a, b, c):
    total = c.astype(np.int64)
    for k in range(0, a.shape[1], 4):
        total = np.clip(total + exact(a[:, k:k + 4], b[k:k + 4]), -2**31, 2**31 - 1)
    return total.astype(np.int32)

def to_f32(a, b):
    return exact(a, b).astype(np.float32)

def in_f32(a, b):
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total += np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    return total

def scaled(a, b):
    return exact(a, b).astype(np.float32) * np.float32(0.0123)

@np.errstate(over="ignore")
def scaled_in_f32(a, b):
    return scaled(a, b).astype(np.float16)

@np.errstate(over="ignore")
def scaled_in_f64(a, b):
    return (exact(a, b) * 0.0123).astype(np.float16)

@np.errstate(over="ignore")
def scaled_once(a, b):
    return (exact(a, b) * float(np.float32(0.0123))).astype(np.float16)

def requantised(a, b):
    return np.clip(np.rint(scaled(a, b)), -128, 127).astype(np.int8)

def shifted(a, b):
    return np.clip((exact(a, b) + 64) >> 7, -128, 127).astype(np.int8)

def truncated(a, b):
    return np.clip(np.trunc(scaled(a, b)), -128, 127).astype(np.int8)

def with_bias(a, b, c):
    total = np.maximum((exact(a, b) + c).astype(np.int32), 0).astype(np.float32)
    return np.clip(np.rint(total * np.float32(0.0007)), -128, 127).astype(np.int8)

def with_bias_in_f64(a, b, c):
    return np.clip(np.rint((exact(a, b) + c).astype(np.int32) * 0.0123), -128, 127).astype(np.int8)

def by_any_factor(a, b):
    scaled = exact(a, b).astype(np.float32) * np.float32(0.003817264)
    return np.clip(np.rint(scaled), 0, 127).astype(np.int8)

def cut_by_any_factor(a, b):
    scaled = exact(a, b).astype(np.float32) * np.float32(0.0030683267395943403)
    return np.clip(np.floor(np.maximum(scaled, 0)), -128, 127).astype(np.int8)

def with_f32_bias(a, b, c):
    return scaled(a, b) + c
"""

F32, F64 = "number(0x3c4985f0, f32)", "number(0x3f8930be0ded288d, f64)"


@pytest.fixture(name="mapped")
def _mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, int], str]:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    for name, count in ("FIRST", 20), ("MORE", 10), ("QUIET", 1), ("CHECKED", 20), ("LENGTHS", 20):
        monkeypatch.setattr(lengths if name == "LENGTHS" else library, name, count)

    def mapped(kernel: str, formats: str, length: int) -> str:
        """The one plan of a kernel, with each unit in words: `i` for sums of integers, `x4` for those of saturating
        units of four products, `f` for others."""
        words = "identify", "--gemm", "--device", f"python:{path}:{kernel}", "--formats", formats, "--shape", "12,12"
        done = CliRunner().invoke(main, [*words, "--length", str(length), "--json"])
        assert done.exit_code == 0, done.output
        [plan] = json.loads(done.stdout)["plans"]
        for unit, word in ("x86/avx-vnni-int8/vpdpbssds", "x4"), ("hopper/wgmma/m64n8k32.s32.s8.s8", "i"), \
                ("ampere/mma/m16n8k32.s32.u8.s8.s32", "u"):  # fmt: skip
            plan = plan.replace(unit, word)
        return str(plan)

    return mapped


@pytest.mark.parametrize(
    ("kernel", "formats", "length", "plan"),
    [
        ("wrapped", "int8,int8,int32,int32", 80, "sum(i, c)"),
        ("saturated", "int8,int8,int32,int32", 80, "r(exact(sum(i, +0), c))"),
        ("saturated_by_four", "int8,int8,int32,int32", 80, "sum(x4, c)"),
        ("to_f32", "int8,int8,f32", 1200, "r(sum(i, +0))"),
        ("in_f32", "int8,int8,f32", 1200, "sum(fma, +0)"),
        ("scaled", "int8,int8,f32", 1200, f"r(product({F32}, r(sum(i, +0))))"),
        ("scaled_in_f32", "int8,int8,f16", 200, f"r2(r(product({F32}, sum(i, +0))))"),
        ("scaled_in_f64", "int8,int8,f16", 200, f"r2(r(product({F64}, sum(i, +0))))"),
        ("scaled_once", "int8,int8,f16", 200, f"r(product({F32}, sum(i, +0)))"),
        ("requantised", "int8,int8,int8", 200, f"r(product({F32}, sum(i, +0)))"),
        ("shifted", "int8,int8,int8", 200, "r(exact(product(2**-7, sum(i, +0)), 2**-1)), result rounded down"),
        ("truncated", "uint8,int8,int8", 200, f"r(product({F32}, sum(u, +0))), result rounded toward_zero"),
        ("with_bias", "int8,int8,int32,int8", 80, "r2(relu(r(product(number(0x3a378034, f32), sum(i, c)))))"),
        ("with_bias_in_f64", "int8,int8,int32,int8", 80, f"r(product({F64}, sum(i, c)))"),
        ("by_any_factor", "int8,int8,int8", 80, "r(relu(product(number(0x3b7a2b10, f32), sum(i, +0))))"),
        (
            "cut_by_any_factor",
            "int8,int8,int8",
            80,
            "r(relu(product(number(0x3b4915fc, f32), sum(i, +0)))), result rounded toward_zero",
        ),
        ("with_f32_bias", "int8,int8,f32,f32", 80, f"r(exact(r(product({F32}, sum(i, +0))), c))"),
    ],
)
def test_the_steps_after_a_sum_of_integers_are_found(
    mapped: Callable[[str, str, int], str], kernel: str, formats: str, length: int, plan: str
) -> None:
    """Where the sum may leave int32, or the integers that f32 has, and which rounding follows which."""
    assert mapped(kernel, formats, length) == plan


@pytest.mark.parametrize("name", ["int8", "uint8", "int4", "int32"])
def test_random_integers_are_of_all_sizes(name: str) -> None:
    fmt, rng = FORMATS[name], np.random.default_rng(2)
    near = 1 << fmt.width // 2
    least, most = map(int, fmt.interval)

    def numbers(patterns: Matrix) -> Matrix:
        assert patterns.dtype == kind_of(fmt)
        assert int(patterns.max()) < 1 << fmt.width
        wide = patterns.astype(np.int64)
        return np.where(wide > most, wide - (1 << fmt.width), wide)

    every = numbers(random_patterns(rng, fmt, (4000,), -2, 2))
    assert every.min() < least + near
    assert every.max() > most - near
    assert (np.abs(every) < near).sum() > 400
    few = numbers(random_integers(rng, fmt, (400,), np.array([2])))
    assert {*few.tolist()} == ({-2, -1, 0, 1} if fmt.signed else {0, 1, 2, 3})
    for end, first, last in (False, most - near + 1, most), (True, least, least + near - 1):
        ends = numbers(near_ends(rng, fmt, np.full(4000, end)))
        assert first <= ends.min() < first + near // 4
        assert last - near // 4 < ends.max() <= last


def test_products_are_missing_where_the_others_give_the_results() -> None:
    """Of integers, few results are near to the sums of some products by chance, as where a zero point is subtracted."""
    rng, fmt = np.random.default_rng(6), FORMATS["int8"]
    asked, right = parse_signature("int8,int8,int32", 12), 0
    for number in range(60):
        rows, columns, length = (int(side) for side in rng.integers((1, 5, 4), (9, 13, 40)))
        bits = rng.integers(1, 9, (rows, 1)) if number % 2 else np.array([8])
        a = random_integers(rng, fmt, (rows, length), bits)
        b = near_ends(rng, fmt, np.broadcast_to(rng.integers(0, 2, (1, columns)) > 0, (length, columns)))
        x, y = (side.view(np.int8).astype(np.int64) for side in (a, b))

        def seen(d: Matrix, a: Matrix = a, b: Matrix = b) -> Summed:
            c = np.zeros((1, *d.shape), np.uint32)
            return summed(asked, Sample(a[None], b[None], c, d.astype(np.int32).view(np.uint32)[None]))

        for zero in 0, 1, 3, 17, 100:
            assert seen((x - zero) @ y) == Summed(), (rows, columns, length, zero)
        right += seen(x[:, :-2] @ y[:-2]).left_out == (length - 2, length - 1)
    assert right > 20


def test_factors_of_no_unit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    words = "identify", "--gemm", "--device", f"python:{path}:wrapped", "--formats", "int16,int16,int32"
    done = CliRunner().invoke(main, [*words, "--length", "8"])
    assert done.exit_code == 2
    assert "no unit takes factors of int16 and int16" in done.stderr
