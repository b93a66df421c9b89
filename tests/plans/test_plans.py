"""Plans: matrices through them against exact rationals, their expressions at a K, their text, and the commands."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from mmaprobe.cli.main import main
from mmaprobe.reports.plan_sheet import stage_words
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, Rounding
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.plan_files import FOLDER, plans
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text, step_text
from mmaprobe.smtmodel.plans.tape import BLOCK, Tape
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.marks import some_slow
from tests.oracles.oracle import decode
from tests.plans import plan_oracle

pytestmark = pytest.mark.compilers

TEXT = """plan: tested
formats: {a: f16, b: f16, c: f32, d: f32}
units:
  mma: volta/mma/m8n8k4.f32.f16.f16.f32
  fma: ieee/fma/f32.f16.f16.f32
roundings:
  r: round(f32, nearest_even)
  h: round(f16, nearest_even)
  z: round(f32, toward_zero)
  f: round(f32, nearest_even, subnormals=flush_after)
steps:
  d: sum(mma, c)
"""
#: sums that use every stage, alone and within others, with numbers of products that fit no tile among them
SUMS = {
    "chain(mma, tail=fma)": (3, 11),
    "promote(8, mma, z)": (8, 21),
    "promote(6, chain(mma, tail=fma), r)": (23,),
    "split(3, mma, r)": (4, 12, 30),
    "split(4, h(mma), r, order=pairwise)": (4, 33),
    "split(3, fma, z, grain=2)": (3, 17),
    "split([8, 12], mma, r)": (13, 16, 30),
    "split([3, 4, 11], h(fma), r, order=pairwise)": (12, 17),
    "split([3, 4, 11], h(fma), z, order=backwards)": (12, 17),
    "split(3, interleave(4, fma, z, order=backwards), r, order=backwards, grain=4)": (12, 20),
    "split(2, split([4], promote(2, fma, r), z), r)": (12, 17),
    "split([7, 12], lanes(fma, r, 5, fold(5, 1)), r)": (13, 30),
    "split([6, 9], interleave(4, fma, r, tail=fma), z)": (10, 23),
    "split([4], promote(8, split(2, mma, z), r), r)": (8, 27),
    "interleave(2, split([4], fma, z), r)": (10, 16),
    "interleave(4, fma, r, order=pairwise, tail=fma)": (3, 19),
    "interleave(2, mma, r, grain=4, tail=mma)": (8, 27),
    "interleave(2, mma, r)": (16, 24),
    "interleave(3, mma, r, grain=8)": (48,),
    "interleave(2, split(2, promote(3, fma, r), z), r)": (22,),
    "halve(3, fma, r)": (2, 13),
    "windows(4, fma, r)": (3, 4, 5, 9, 17, 39),
    "windows(3, h(promote(2, fma, z)), z)": (1, 8, 29),
    "turns(8, split(2, fma, r, grain=4), tail=fma)": (5, 8, 29),
    "turns(6, promote(4, fma, z))": (14,),
    "swizzle(3, fma)": (2, 3, 11),
    "swizzle(2, swizzle(2, mma))": (3, 13, 22),
    "turns(16, swizzle(2, mma, grain=2), tail=fma)": (16, 37),
    "turns(16, swizzle(4, mma, grain=2))": (14, 32, 36),
    "interleave(2, mma, r, grain=2, tail=mma)": (8, 21, 24, 28),
    "split(2, swizzle(3, promote(4, fma, z), grain=4), r, grain=4)": (4, 24, 36),
    "whole(4, lanes(fma, r, 4, fold(2, 2), fold(2, 1)), head=fma)": (1, 4, 14, 16),
    "whole(4, interleave(2, fma, r), tail=promote(2, fma, r))": (3, 11),
    "first(3, promote(2, fma, r), lanes(fma, r, 5, fold(2, 3), 3, fold(3, 1), tail=fma))": (2, 3, 9, 17),
    "halve(4, mma, z, grain=4)": (18,),
    "halve(3, fma, r, first=smaller)": (4, 13),
    "halve(4, mma, z, grain=3, first=smaller)": (5, 6, 11, 23),
    "promote(16, interleave(2, split(2, fma, z), r, grain=2), r)": (40,),
    "split(2, promote(8, halve(4, mma, r, grain=4), r), r)": (37,),
    "promote(8, fma, z, even=2)": (7, 13, 17, 30),
    "promote(8, fma, z, share=2)": (7, 8, 9, 16, 20, 27),
    "promote(8, fma, r, tail=promote(4, fma, r, tail=fma))": (3, 15),
    "lanes(fma, r, 8, fold(2, 4), fold(4, 1))": (3, 21),
    "lanes(fma, z, 8, fold(2, 4), 4, fold(2, 1), fold(2, 1), tail=fma)": (7, 23),
    "lanes(fma, r, 8, fold(2, 4), fold(4, 1), head=2, tail=promote(8, fma, r))": (5, 23),
    "lanes(fma, r, 4, 1, fold(4, 1))": (2, 4, 7, 16),
    "lanes(fma, r, 5, fold(2, 1), fold(2, 1), fold(2, 1))": (3, 5, 13),
    "lanes(fma, r, 11, fold(2, 2), fold(4, 1), fold(2, 1))": (9, 25),
    "lanes(fma, r, 8, 2, fold(2, 4), fold(4, 1), tail=fma)": (7, 13),
    "lanes(fma, r, 2, 1, fold(2, 1), unroll=8)": (3, 8, 14, 23),
    "lanes(fma, z, 4, fold(2, 2), 2, fold(2, 1), unroll=12, tail=fma)": (11, 12, 19, 29),
    "promote(16, lanes(fma, z, 2, 1, fold(2, 1), unroll=4), r, even=1)": (21, 39),
    "lanes(fma, z, 2, 2, fold(2, 1), unroll=8, order=backwards)": (7, 8, 23),
    "lanes(fma, r, 4, fold(2, 2), 2, fold(2, 1), unroll=12, order=backwards, tail=fma)": (11, 12, 31),
    "lanes(promote(2, fma, z), r, 6, fold(3, 2), fold(2, 1), tail=fma)": (29,),
    "split(2, lanes(fma, r, 4, fold(2, 2), 2, fold(2, 1)), r)": (15,),
    "lanes(fma, r, 4, fold(2, 2), fold(2, 1), grain=3)": (2, 11, 12, 20, 31),
    "lanes(promote(2, fma, z), r, 2, fold(2, 1), grain=4)": (5, 13, 15),
    "lanes(mma, z, 4, fold(2, 2), 2, fold(2, 1), grain=4, tail=fma)": (16, 29),
    "lanes(mma, z, 4, 1, fold(4, 1), grain=8)": (7, 37, 43),
}
ENDS = {
    "sum(promote(4, mma, r), r(exact(c, c)))": 10,
    "r(exact(product(number(0xbfc00000, f32), sum(mma, +0)), r(product(number(0x3f000000, f32), c))))": 9,
    "z(exact(sum(mma, +0), sum(fma, -0), c))": 9,
    "z(relu(exact(product(number(0x3fc00000, f32), sum(mma, +0)), c)))": 9,
    "r(relu(r(exact(product(number(0xbfc00000, f32), sum(mma, +0)), c)), nan=zero, zero=signed))": 9,
    "z(exact(relu(sum(mma, +0), zero=keep), relu(c, nan=zero)))": 9,
}


def plan_of(step: str, **changes: str) -> Plan:
    text = TEXT.replace("sum(mma, c)", step)
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse_plan(text, "tested.yaml", parse_reference)


def operands(plan: Plan, rows: int, columns: int, k: int, seed: int = 0) -> list[NDArray[Any]]:
    """Plain numbers of a few sizes, zeros, and rows with infinities and NaNs; +0 for a c that is not read."""
    rng = np.random.default_rng(seed)

    def side(fmt: Format, shape: tuple[int, int]) -> NDArray[Any]:
        numbers = np.ldexp(rng.standard_normal(shape), rng.integers(-6, 7, shape)) * (rng.random(shape) < 0.9)
        found = from_numbers(numbers, fmt, "nearest_even").astype(np.uint64)
        odd = np.array([fmt.infinity, fmt.nan, fmt.sign_bit, fmt.largest, 1 << fmt.padding], dtype=np.uint64)
        found = np.where(rng.random(shape) < 0.02 / shape[0], rng.choice(odd, shape), found)
        return found | rng.integers(1 << fmt.padding, size=shape, dtype=np.uint64) if fmt.padding else found

    return [side(plan.a, (rows, k)), side(plan.b, (k, columns)), side(plan.c, (rows, columns)) * np.uint64(plan.addend)]


TOO_DEEP = ("ozaki/fp8-14",)  # 105 sums, one added after another, are no expression


def check(plan: Plan, k: int, rows: int = 3, columns: int = 4) -> None:
    """Matrices through a plan are what exact rationals give, and what its expression gives for this K."""
    a, b, c = operands(plan, rows, columns, k, seed=k)
    found = simulate(a, b, c, plan, engine="numpy")
    expected = plan_oracle.matmul(plan, a.tolist(), b.tolist(), c.tolist())
    for one, other in zip(found.ravel().tolist(), expected, strict=True):
        if other == plan_oracle.ANY_NAN:
            assert decode(plan.d.name, one).kind == "nan"
        else:
            assert one == other
    if plan.reference in TOO_DEEP:
        with pytest.raises(ParameterError, match="too many steps"):
            unit_of_plan(plan, k)
        return
    i, j = (index.ravel() for index in np.indices(c.shape))
    lowered = evaluate_batch(Model("lowered", unit_of_plan(plan, k)), a[i], b[:, j].T, c[i, j])
    assert lowered.tolist() == found.ravel().tolist()


@pytest.mark.parametrize("stage", SUMS)
def test_every_stage_is_what_it_says(stage: str) -> None:
    plan = plan_of(f"sum({stage}, c)")
    for k in SUMS[stage]:
        check(plan, k)
    assert parse_plan(plan_text(plan), "tested", parse_reference) == plan


def test_a_sum_starts_from_the_zero_that_is_written() -> None:
    """Of one product that is -0; also where a plan is computed for many small products."""
    for zero, expected in (("+0", 0), ("-0", 1 << 31)):
        plan = plan_of(f"sum(fma, {zero})")
        a, b, c = (np.full((1, 1), pattern, dtype=np.uint64) for pattern in (plan.a.sign_bit, plan.b.largest, 0))
        assert simulate(a, b, c, plan, engine="numpy").tolist() == [[expected]]
        if compiler() is not None:
            assert Tape(plan, 1).play(a[None], b[None], c[None]).tolist() == [[[expected]]]
        assert parse_plan(plan_text(plan), "tested", parse_reference).sums == plan.sums


def test_bits_that_the_format_of_c_ignores_are_not_read() -> None:
    plan = plan_of("sum(fma, c)", **{"c: f32": "c: tf32"})
    check(plan, 9)
    a, b, c = operands(plan, 3, 4, 9)
    if compiler() is not None:
        assert np.array_equal(Tape(plan, 9).play(a[None], b[None], c[None])[0], simulate(a, b, c, plan))


@pytest.mark.parametrize("step", ENDS)
def test_what_is_done_with_the_sum(step: str) -> None:
    plan = plan_of(step)
    check(plan, ENDS[step])
    assert parse_plan(plan_text(plan), "tested", parse_reference) == plan


@pytest.mark.parametrize("name", some_slow(plans(), "ozaki/int8-7", "ozaki/int8-8"))
def test_shipped_plans(name: str) -> None:
    plan = parse_plan_reference(f"plan:{name}")
    assert plan.reference == name
    assert plan.about
    assert plan.source
    assert plan.evidence
    sides = 1 if len(plan.sums) > 20 else 2
    check(plan, 41 if "openblas" not in name else 385, rows=sides, columns=sides)


def test_conversion_is_part_of_the_plan() -> None:
    a = np.array([[0x3F801000]], dtype=np.uint64)  # half a place of tf32 above 1
    one = np.array([[0x3F800000]], dtype=np.uint64)
    found = [
        int(simulate(a, one, None, parse_plan_reference(f"plan:cutlass/{name}"))[0, 0])
        for name in ("tf32", "tf32-truncated")
    ]
    assert found == [0x3F802000, 0x3F800000]


@pytest.mark.parametrize("convert", ["{a: q}", "{b: q}", "{a: q, b: t}"])
def test_what_is_converted_to_fewer_bits_stays_a_number_of_the_unit(convert: str) -> None:
    """A unit that takes f16 takes the elements of one side, or of both, that were rounded to FP8."""
    cuts = "roundings:\n  q: round(e5m2, toward_zero)\n  t: round(e4m3, nearest_even)\n"
    plan = plan_of("sum(chain(mma, tail=fma), c)", **{"roundings:\n": f"convert: {convert}\n{cuts}"})
    check(plan, 9)
    assert parse_plan(plan_text(plan), "tested", parse_reference) == plan
    if compiler() is not None:
        a, b, c = operands(plan, 3, 4, 9)
        assert np.array_equal(Tape(plan, 9).play(a[None], b[None], c[None])[0], simulate(a, b, c, plan, engine="numpy"))
    with pytest.raises(InputError, match="takes f16, not bf16"):  # some of whose numbers are none of f16
        plan_of("sum(mma, c)", **{"roundings:\n": f"convert: {convert}\n{cuts}".replace("e5m2", "bf16")})


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_max_with_zero_is_the_same_before_and_after_a_rounding(name: str, mode: Rounding) -> None:
    """What docs/plans.md says of activations, for every finite f16 number; numbers beyond e4m3 are NaNs there."""
    fmt, patterns = FORMATS[name], np.arange(1 << 16, dtype=np.uint16)
    numbers = patterns[patterns & 0x7C00 != 0x7C00].view(np.float16)
    before = to_numbers(from_numbers(np.maximum(numbers, 0), fmt, mode), fmt).astype(np.float64)
    rounded = to_numbers(from_numbers(numbers, fmt, mode), fmt).astype(np.float64)
    kept = ~np.isnan(rounded)
    assert np.array_equal(before[kept], np.maximum(rounded, 0)[kept])
    assert np.all(kept) == (name == "e5m2" or mode == "toward_zero")
    assert len(np.unique(before[kept])) > 100


def test_choices_of_a_plan_count() -> None:
    """The same matrices through plans that differ in one choice give other bits."""
    steps = ["sum(mma, c)", "sum(fma, c)", "sum(promote(8, mma, r), c)", "sum(promote(16, mma, r), c)",
             "sum(split(2, mma, r), c)", "sum(split(4, mma, r), c)", "sum(split(4, mma, r, order=pairwise), c)",
             "r(exact(sum(mma, +0), c))", "sum(interleave(2, mma, r), c)"]  # fmt: skip
    a, b, c = operands(plan_of(steps[0]), 32, 32, 64)
    found = {simulate(a, b, c, plan_of(step), engine="numpy").tobytes() for step in steps}
    assert len(found) == len(steps)


@pytest.mark.parametrize(
    ("stage", "grain", "length"),
    [("halve(4, fma, r)", 1, 32), ("halve(4, mma, r)", 2, 32), ("mma", 1, 6), ("mma", 1, 26),
     ("promote(6, fma, r)", 1, 26), ("chain(mma, tail=fma)", 2, 44)],
)  # fmt: skip
def test_a_swizzled_stage_runs_once_for_each_pass(stage: str, grain: int, length: int) -> None:
    """As the page and the sheet say: from the sum so far, and not once over the products in that order; with tiles
    longer than a pass, and stages that divide what they are given."""
    a, b, c = operands(plan_of("sum(fma, c)"), 24, 24, length)
    once = plan_of(f"sum({stage}, c)")
    first = np.array([k // grain % 2 == 0 for k in range(length)])
    expected = simulate(a[:, first], b[first], c, once, engine="numpy")
    expected = simulate(a[:, ~first], b[~first], expected, once, engine="numpy")
    plan = plan_of(f"sum(swizzle(2, {stage}, grain={grain}), c)")
    assert np.array_equal(simulate(a, b, c, plan, engine="numpy"), expected)
    order = [*np.flatnonzero(first), *np.flatnonzero(~first)]
    assert not np.array_equal(simulate(a[:, order], b[order], c, once, engine="numpy"), expected)
    words, *_ = (one.text for one in stage_words(plan.sums[0].stage))
    products = counted(grain, "product")
    assert (
        words == f"2 passes, each over {products} of every {2 * grain}: the whole of what follows, from the sum so far"
    )


def scaled(step: str) -> Plan:
    """A plan of a unit u that takes scale factors."""
    model = parse_reference("blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0")
    text = TEXT.replace("a: f16, b: f16", "a: e4m3, b: e4m3")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("  mma:", "  fma:")))
    text = text.replace("units:\n", f"units:\n  u: {model.reference}\n").replace("sum(mma, c)", step)
    return parse_plan(text, "tested.yaml", parse_reference)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("step", ["sum(split(2, promote(8, mma, r), z), c)", "r(relu(sum(mma, c), zero=keep))",
                                  "sum(turns(16, swizzle(4, mma, grain=2)), c)"])  # fmt: skip
def test_compiled_plans_are_the_same(step: str) -> None:
    plan = plan_of(step)
    a, b, c = operands(plan, BLOCK[0] + 2, BLOCK[1] + 8, 100)
    counted: list[tuple[int, int]] = []
    found = simulate(a, b, c, plan, engine="compiled", threads=2, progress=lambda *x: counted.append(x))
    assert np.array_equal(found, simulate(a, b, c, plan, engine="numpy"))
    assert counted == sorted(counted)
    assert counted[-1] == (len(a), len(a))


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize(
    "stage", ["u", "split(2, u, r)", "interleave(4, u, r, grain=32)", "swizzle(2, u, grain=32)", "halve(32, u, r)"]
)
def test_compiled_plans_take_the_scale_factors_of_their_products(stage: str) -> None:
    plan = scaled(f"sum({stage}, c)")
    rng, k = np.random.default_rng(5), 256
    finite = np.delete(np.arange(256, dtype=np.uint8), [0x7F, 0xFF])
    a, b = (rng.choice(finite, shape) for shape in ((BLOCK[0] + 2, k), (k, 7)))
    factors = [rng.integers(120, 134, shape, dtype=np.uint8) for shape in ((len(a), 8), (8, 7))]
    c = rng.integers(0, 1 << 32, (len(a), 7), dtype=np.uint64)
    found, expected = (
        simulate(a, b, c, plan, scales={"scale_a": factors[0], "scale_b": factors[1]}, engine=engine)
        for engine in ("compiled", "numpy")
    )
    assert np.array_equal(found, expected)
    assert len(np.unique(found)) > 100


@pytest.mark.parametrize("length", [16, 100])
@pytest.mark.parametrize("name", ["cutlass/fp8-promoted", "cublas/split-k-f16", "loop/lanes"])
def test_a_plan_at_a_length_is_a_unit_file(name: str, length: int) -> None:
    unit = parse_reference(f"plan:{name}@length={length}").unit
    assert unit.length == length
    assert parse_unit(unit_text(unit), "unit.yaml") == unit


@pytest.mark.parametrize(
    "reference",
    ["x86/amx/tdpbf16ps", "arm/neon/bfdot", "arm/neon/bfmmla", "cdna2/mfma/f32_32x32x4bf16",
     "cdna1/mfma/f32_32x32x4bf16", "rdna3.5/dot2/f32_f16"],
)  # fmt: skip
def test_addends_are_read_as_the_unit_reads_them(reference: str) -> None:
    """Subnormal sums and zeros of both signs, from one tile to the next."""
    model, rng = parse_reference(reference), np.random.default_rng(7)
    plan, k = Plan.chained(model), 3 * model.length
    tiny = [(exponent << 7) | sign for exponent in (0, 1, 60, 64) for sign in (0, 0x8000)]
    a, b = (rng.choice(np.array(tiny, dtype=np.uint64), shape) for shape in ((12, k), (k, 12)))
    c = rng.integers(0, 1 << 25, (12, 12), dtype=np.uint64) * rng.integers(0, 2, (12, 12), dtype=np.uint64)
    c |= rng.integers(0, 2, (12, 12), dtype=np.uint64) << np.uint64(31)
    found = simulate(a, b, c, plan, engine="numpy")
    if plan.reference in TOO_DEEP:
        with pytest.raises(ParameterError, match="too many steps"):
            unit_of_plan(plan, k)
        return
    i, j = (index.ravel() for index in np.indices(c.shape))
    lowered = evaluate_batch(Model("lowered", unit_of_plan(plan, k)), a[i], b[:, j].T, c[i, j])
    assert lowered.tolist() == found.ravel().tolist()
    assert len(np.unique(found)) > 5


def test_scale_factors_are_cut_with_k() -> None:
    model = parse_reference("rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 16, shape, dtype=np.uint8) for shape in ((4, 144), (144, 4)))
    scales = [rng.integers(0x30, 0x40, shape, dtype=np.uint8) for shape in ((4, 9), (9, 4))]
    found = simulate(a, b, None, model, scales={"scale_a": scales[0], "scale_b": scales[1]})
    lowered = Model("lowered", unit_of_plan(Plan.chained(model), 144))
    i, j = (index.ravel() for index in np.indices(found.shape))
    zero = np.zeros(i.size)
    expected = evaluate_batch(lowered, a[i], b[:, j].T, zero, scales[0][i], scales[1][:, j].T)
    assert expected.tolist() == found.ravel().tolist()


@pytest.mark.parametrize("stage", ["interleave(2, u, r, grain=1)", "swizzle(2, u, grain=16)", "first(16, u, u)"])
def test_tiles_that_share_no_scale_factors_are_refused(stage: str) -> None:
    """Their products do not lie in blocks: none of the factors is that of a whole block."""
    plan = scaled(f"sum({stage}, c)")
    ones, scales = np.full((64, 64), 0x38, dtype=np.uint8), np.full((64, 2), 127, dtype=np.uint8)
    for use in (
        lambda: simulate(ones, ones, None, plan, scales={"scale_a": scales, "scale_b": scales.T}),
        lambda: unit_of_plan(plan, 64),
    ):
        with pytest.raises(ParameterError, match="a tile does not begin where 32 products share a pair"):
            use()


# -- mistakes


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("sum(mma, c)", "sum(nma, c)", 12, r"steps\.d: column 5 of the expression: unknown unit 'nma'; did you mean"),
        ("sum(mma, c)", "sum(splt(2, mma, r), c)", 12, r"unknown stage 'splt'; did you mean 'split'"),
        ("sum(mma, c)", "sum(split(0, mma, r), c)", 12, r"split: 0 is impossible"),
        ("sum(mma, c)", "sum(split([], mma, r), c)", 12, r"split: a list has places to cut K at: it needs one"),
        ("sum(mma, c)", "sum(split([8, 8], mma, r), c)", 12, r"split: K cannot be cut at 8 after 8: places rise"),
        ("sum(mma, c)", "sum(split([0], fma, r), c)", 12, r"split: K cannot be cut at 0 after 0"),
        ("sum(mma, c)", "sum(split([6], mma, r), c)", 12, r"cut at 6 after 0: .* are multiples of 4"),
        ("sum(mma, c)", "sum(split([6], interleave(4, fma, r), r), c)", 12, r"cut at 6 after 0: .* are multiples of 4"),
        ("sum(mma, c)", "sum(split([6], lanes(mma, r, 3, fold(3, 1)), r), c)", 12, r"are multiples of 4"),
        ("sum(mma, c)", "sum(split([8], mma, r, grain=4), c)", 12, r"unknown parameter 'grain'"),
        ("sum(mma, c)", "sum(split(2, mma), c)", 12, r"2 arguments given, 3 needed"),
        ("sum(mma, c)", "sum(split(2, mma, r, order=tree), c)", 12, r"column 28 .*unknown value 'tree'.*pairwise"),
        ("sum(mma, c)", "sum(split(2, mma, r, size=4), c)", 12, r"unknown parameter 'size'"),
        ("sum(mma, c)", "sum(chain(mma, tail=h(fma)), c)", 12, r"tail: its results are f16, the others f32"),
        ("sum(mma, c)", "sum(3, c)", 12, r"'3' is not a stage"),
        ("sum(mma, c)", "r(exact(c, a[0] * b[0]))", 12, r"a plan reads elements by its units only"),
        ("sum(mma, c)", "relu(r(sum(mma, c)))", 12, r"not rounded to a format: its last step must be a round"),
        ("sum(mma, c)", "r(relu(exact(sum(mma, c)), zero=keep))", 12, r"nan and zero apply to a number: round this"),
        ("sum(mma, c)", "r(relu(sum(mma, c), zero=plus))", 12, r"unknown value 'plus'.*positive"),
        ("sum(mma, c)", "r(c)", 12, r"a plan needs a sum of all products"),
        ("sum(mma, c)", "exact(sum(mma, c), c)", 12, r"the result is not rounded"),
        ("sum(mma, c)", "sum(mma, exact(c, c))", 12, r"a sum starts from c, zero or a rounded result"),
        ("d: f32}", "d: f16}", 2, r"formats\.d: the result of the last step is f32"),
        ("c: f32", "c: f64", 12, r"start: f64 and f32 cannot be chained"),
        ("a: f16", "a: f32", 2, r"formats\.a: a: volta/.* takes f16, not f32 \(conversions"),
        ("m8n8k4", "m8n8k5", 4, r"units\.mma: unknown model"),
        ("units:", "convert: {a: q}\nunits:", 3, r"convert\.a: unknown rounding 'q'"),
        ("units:", "convert: {c: r}\nunits:", 3, r"convert\.c: the inputs that are converted are a and b"),
        ("plan: tested", "plan: tested\nlength: 4", 2, r"length: unknown key"),
        ("units:", "unit:", 3, r"unit: unknown key; did you mean 'units'"),
        ("sum(mma, c)", "sum(split(2, mma, r, grain=-16), c)", 12, r"grain: -16 is impossible"),
        ("sum(mma, c)", "sum(split(2, mma, r, grain=8, grain=16), c)", 12, r"grain is given twice"),
        ("sum(mma, c)", "sum(split(2, mma, r, **x), c)", 12, r"`\*\*` is not read"),
        ("sum(mma, c)", "sum(split(2.5, mma, r), c)", 12, r"'2.5' is not a whole number"),
        ("sum(mma, c)", "sum(swizzle(0, mma), c)", 12, r"swizzle: 0 is impossible"),
        ("  d: sum(mma, c)", "  d: e\n  e: d", 12, r"the step 'e' is read before its definition"),
        ("sum(mma, c)", "sum(lanes(fma, r, 0), c)", 12, r"lanes: 0 is impossible"),
        ("sum(mma, c)", "sum(lanes(fma, r, 8192, fold(8192, 1)), c)", 12, r"lanes: 8192 are too many; at most 4096"),
        ("sum(mma, c)", "sum(lanes(fma, r, 4, fold(4, 1), head=2, grain=2), c)", 12, r"grain: lanes that take several"),
        ("sum(mma, c)", "sum(lanes(fma, r, 2, 1, fold(2, 1), unroll=8, grain=2), c)", 12, r"neither head nor unroll"),
        ("sum(mma, c)", "sum(lanes(fma, r, 2, fold(2, 1), grain=0), c)", 12, r"grain: 0 is impossible"),
        ("sum(mma, c)", "[1]", 12, r"steps\.d: text is needed"),
        ("  fma:", "  split:", 5, r"units\.split: this name cannot be used"),
        ("  fma:", "  r:", 7, r"roundings\.r: this name cannot be used"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(old: str, new: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_plan(TEXT.replace(old, new), "tested.yaml", parse_reference)
    assert str(caught.value).startswith(f"tested.yaml:{line}: ")


def test_a_plan_among_its_own_units_is_named(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(TEXT.replace("ieee/fma/f32.f16.f16.f32", f"plan:{path}@length=4"), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match=r"own\.yaml:5: units\.fma: .*own\.yaml: this plan is among its own units"):
            parse_plan_reference(str(path))


def test_a_unit_file_is_looked_for_beside_the_plan(tmp_path: Path) -> None:
    for name, reference in (("unit.yaml", "volta/mma/m8n8k4.f32.f16.f16.f32"), ("four.yaml", "./unit.yaml")):
        unit = parse_reference(reference).unit if name == "unit.yaml" else None
        text = unit_text(unit) if unit else TEXT.replace("ieee/fma/f32.f16.f16.f32", reference)
        (tmp_path / name).write_text(text, encoding="utf-8")
    plan = parse_plan_reference(str(tmp_path / "four.yaml"))
    assert plan == plan_of("sum(mma, c)")
    (tmp_path / "outer.yaml").write_text(
        TEXT.replace("volta/mma/m8n8k4.f32.f16.f16.f32", "plan:four.yaml@length=8"), encoding="utf-8"
    )
    assert parse_plan_reference(str(tmp_path / "outer.yaml")).models[0].length == 8
    (tmp_path / "outer.yaml").write_text(TEXT.replace("ieee/fma/f32.f16.f16.f32", "none.yaml"), encoding="utf-8")
    with pytest.raises(InputError, match=r"outer\.yaml:5: units\.fma: none\.yaml: no such file"):
        parse_plan_reference(str(tmp_path / "outer.yaml"))


def test_a_file_has_no_step_that_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = TEXT.replace("  d: sum(mma, c)\n", "  s: sum(mma, +0)\n  t: r(s)\n  d: r(exact(s, c))\n")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.yaml:13: steps\.t: d does not depend on this step"):
        parse_plan_reference(str(path))
    path.write_text(text.replace("  t: r(s)\n", ""), encoding="utf-8")
    assert parse_plan_reference(str(path)) == plan_of("r(exact(sum(mma, +0), c))")


def test_too_many_sums_for_one_expression_are_named() -> None:
    plan = plan_of("sum(split(1000, fma, r, grain=1), c)")
    assert unit_of_plan(plan, 90).length == 90
    for length in (130, 1000):
        with pytest.raises(ParameterError, match=f"length: {length} products are added in too many steps"):
            unit_of_plan(plan, length)
    bits = np.full((1, 1000), 0x3C00, dtype=np.uint64)
    assert simulate(bits, bits.T, None, plan)[0, 0] == 0x447A0000  # 1000


def test_lengths_that_do_not_fit_are_named() -> None:
    for step, k, message in (
        ("sum(interleave(4, fma, r), c)", 6, r"interleave: 6 products do not fit: it takes multiples of 4 unless"),
        ("sum(interleave(2, mma, r, grain=3), c)", 12, r"grain: runs of 3 products and steps of 4 do not fit"),
        ("sum(split([8, 16], mma, r), c)", 16, r"split: 16 products do not fit: the last cut is at 16"),
        ("sum(split(2, split([8], mma, r), r), c)", 16, r"split: 4 products do not fit: the last cut is at 8"),
        ("sum(split(2, interleave(2, mma, r, grain=3), r), c)", 24, r"grain: runs of 3 products"),
        ("sum(swizzle(2, mma, grain=4), c)", 10, r"swizzle: 10 products do not fit: it takes multiples of 4"),
    ):
        plan = plan_of(step)
        a, b, c = operands(plan, 2, 2, k)
        for use in (lambda: unit_of_plan(plan, k), lambda: simulate(a, b, c, plan)):  # noqa: B023
            with pytest.raises(ParameterError, match=rf"tested\.yaml:12: steps\.d: {message}"):
                use()
    chained = Plan.chained(parse_reference("volta/mma/m8n8k4.f32.f16.f16.f16"))
    assert unit_of_plan(chained, 4).length == 4
    with pytest.raises(ParameterError, match="f32 and f16 cannot be chained"):
        unit_of_plan(chained, 5)


def test_each_plan_has_its_step_with_the_roundings_that_it_names() -> None:
    """As data sheets print it: that of a rounding that saturates was refused."""
    for name in plans():
        step, roundings = step_text(parse_plan_reference(f"plan:{name}"))
        assert step.partition("(")[0] in {*roundings, "sum", "product", "exact", "cut", "recombined", "relu"}, step
        assert all(text.startswith("round(") for text in roundings.values())


def test_a_rounding_keeps_its_name_and_a_unit_gets_another() -> None:
    text = TEXT.replace("  mma:", "  volta:").replace("  r:", "  mma:").replace("sum(mma, c)", "mma(sum(volta, c))")
    plan = parse_plan(text, "tested.yaml", parse_reference)
    written = plan_text(plan)
    assert parse_plan(written, "again.yaml", parse_reference, whole=True) == plan
    assert "d: mma(sum(mma1, c))" in written
    assert "d: mma(" in unit_text(unit_of_plan(plan, 8))


def test_references_of_plans() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'cublas/split-k'"):
        parse_plan_reference("plan:cublas/splitk")
    for text in ("plan:loop/fma", "plan:loop/fma@length=x", "plan:loop/fma@block=4"):
        with pytest.raises(ParameterError, match="@length=64"):
            parse_reference(text)
    with pytest.raises(ParameterError, match="length: 0 is impossible"):
        parse_reference("plan:loop/fma@length=0")
    path = FOLDER / "loop" / "fma.yaml"
    assert parse_plan_reference(f"plan:{path}") == parse_plan_reference("plan:loop/fma")


# -- commands


@cache
def _files(folder: Path) -> list[str]:
    rng = np.random.default_rng(1)
    for name, shape in (("a", (5, 48)), ("b", (48, 3))):
        np.save(folder / f"{name}.npy", rng.standard_normal(shape).astype(np.float16))
    return [str(folder / "a.npy"), str(folder / "b.npy"), "-o", str(folder / "d.npy")]


def test_simulate_takes_plans(tmp_path: Path) -> None:
    files = _files(tmp_path)
    plan = tmp_path / "mine.yaml"
    plan.write_text(TEXT.replace("sum(mma, c)", "sum(split(2, mma, r), +0)"), encoding="utf-8")
    found = []
    for name in ("plan:cublas/split-k", str(plan), f"plan:{plan}"):
        result = CliRunner().invoke(main, ["simulate", *files, "--plan", name, "--json"])
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["products"][0]["shape"] == [5, 3]
        found.append(np.load(tmp_path / "d.npy"))
    assert [x.dtype for x in found] == [np.float16, np.float32, np.float32]
    a, b = (np.load(tmp_path / f"{name}.npy").astype(np.float64) for name in "ab")
    for x in found:
        assert np.allclose(x, a @ b, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--plan", "plan:cublas/splitk"], "unknown plan"),
        (["--plan", "none.yaml"], "no such file"),
        ([], "give --model (a unit) or --plan"),
        (["--plan", "plan:loop/fma", "--model", "ieee/fma/f32"], "give --model (a unit) or --plan"),
    ],
)
def test_wrong_plans_on_the_command_line(options: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["simulate", *_files(tmp_path), *options])
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "d.npy").exists()


def test_plans_are_listed() -> None:
    result = CliRunner().invoke(main, ["list", "plans", "--json"])
    rows = {row["id"]: row for row in json.loads(result.stdout)}
    assert list(rows) == [f"plan:{name}" for name in plans()]
    assert rows["plan:deepgemm/fp8"]["units"] == ["hopper/wgmma/m64n8k32.f32.e4m3.e4m3"]
    with pytest.raises(MmaprobeError):
        parse_reference("plan:deepgemm/fp8")


@pytest.mark.parametrize("step", ["sum(t(fma), c)", "sum(t(promote(4, fma, r)), c)", "sum(then(fma, t(fma)), c)"])
def test_the_start_alone_is_rounded_as_the_stage_says(step: str) -> None:
    """A sum of no products, K = 0: c as the workspace of the stage keeps it, here rounded toward zero."""
    plan = plan_of(step, **{"d: f32}": "d: f16}", "  h: round(f16, nearest_even)": "  t: round(f16, toward_zero)"})
    numbers = np.array([[0.16133253, -2.2308297]], dtype=np.float32)
    a, b = np.zeros((1, 0), np.uint16), np.zeros((0, 2), np.uint16)
    wanted = from_numbers(numbers, plan.d, "toward_zero")
    for engine in ("numpy", "compiled"):
        assert (simulate(a, b, numbers.view(np.uint32), plan, engine=engine) == wanted).all()
