"""Of the plans of two results, the pair that differs least, and the difference that changes the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from mmaprobe.cli.main import main
from mmaprobe.queries.compare.gemm import Element, Matrices
from mmaprobe.queries.plans.first_step import first_step
from mmaprobe.queries.plans.recorded import Recorded
from mmaprobe.queries.plans.results import PlansOfResult, plans_of_results
from mmaprobe.reports.plan_differences import RESULT, SUM, UNIT, C, why_they_differ
from mmaprobe.reports.plan_pairs import IDLE, Pair, most_alike, nearest_pair, with_part
from mmaprobe.smtmodel.base.interrupts import CutShort
from mmaprobe.smtmodel.evaluate.numbers import format_of
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference

Numbers = NDArray[Any]

SCALE = np.float32(0.0173)
FMA, HOPPER = "ieee/fma/f32.f16.f16.f32", "hopper/mma/m16n8k16.f32.f16.f16.f32"
INT8_FMA, INT8 = "ieee/fma/f32.int8.int8.f32", "hopper/wgmma/m64n8k32.s32.s8.s8"


def plan_of(step: str, unit: str = FMA, formats: str = "f16,f16,f32", out: str = "round(f16, nearest_even)") -> Plan:
    """The plan of a step of `u`, f32 rounding `r`, f16 rounding `h` and the last rounding `out`."""
    a, b, c = formats.split(",")
    d = out.removeprefix("round(").split(",")[0]
    text = f"""plan: {step}
formats: {{a: {a}, b: {b}, c: {c}, d: {d}}}
units: {{u: {unit}}}
roundings: {{r: "round(f32, nearest_even)", h: "round(f16, nearest_even)", out: "{out}"}}
steps: {{d: "{step}"}}
"""
    return parse_plan(text, step, parse_reference)


def recorded_of(a: Numbers, b: Numbers, c: Numbers | None, one: Numbers, other: Numbers) -> Recorded:
    def fmt(matrix: Numbers) -> Any:
        return format_of(matrix.dtype)

    def patterns(matrix: Numbers) -> Numbers:
        return np.ascontiguousarray(matrix).view(f"u{matrix.itemsize}")

    addend = one if c is None else np.broadcast_to(c, one.shape)
    asked = Signature(fmt(a), fmt(b), fmt(addend), fmt(one), a.shape[1], c is not None)
    every = patterns(a), patterns(b), None if c is None else patterns(addend), (patterns(one), patterns(other))
    return Recorded(asked, *every)


def places_of(recorded: Recorded) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in np.argwhere(recorded.d[0] != recorded.d[1])[:16]]


def given(*plans: Plan) -> PlansOfResult:
    return PlansOfResult(plans, 480, None, len(plans))


def chain(a: Numbers, b: Numbers, start: Numbers | float = 0.0) -> Numbers:
    total = np.zeros((len(a), b.shape[1]), np.float32) + np.float32(start)
    for k in range(a.shape[1]):
        total = total + np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    return total


def floats() -> tuple[Numbers, Numbers, Numbers]:
    rng = np.random.default_rng(7)
    a, b = (rng.normal(size=shape).astype(np.float16) for shape in ((24, 96), (96, 20)))
    return a, b, rng.normal(size=20).astype(np.float32)


def integers() -> tuple[Numbers, Numbers, Numbers]:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((24, 80), (80, 20)))
    return a, b, rng.normal(size=20).astype(np.float32)


def sums(a: Numbers, b: Numbers) -> Numbers:
    return a.astype(np.int64) @ b.astype(np.int64)


def half(numbers: Numbers) -> Numbers:
    return np.asarray(numbers.astype(np.float16))


AT_START, AT_END, STORED = "out(sum(u, c))", "out(exact(sum(u, +0), c))", "out(exact(h(sum(u, +0)), c))"


def test_the_pair_with_one_difference_is_found_behind_many_other_plans() -> None:
    """Both kernels add the bias at the end; a plan that begins with it gives the first result as well, and so do fifty
    other plans whose names are shorter."""
    others = [plan_of(f"out(sum(split({count}, u, r), c))") for count in range(2, 52)]
    ones = [plan_of(AT_START), *others, plan_of(AT_END)]
    pair = most_alike(ones, [plan_of(STORED)], True, 96)
    assert pair is not None
    assert [plan.reference for plan in pair] == [AT_END, STORED]
    assert list(why_they_differ(*pair, True)) == [RESULT]


def test_a_pair_of_fewer_steps_is_chosen_and_the_same_unit_for_both() -> None:
    ones = [plan_of("out(relu(sum(u, +0)))", unit) for unit in (HOPPER, FMA)]
    others = [plan_of(step, FMA) for step in ("out(r(exact(sum(u, +0), c)))", "out(sum(u, +0))")]
    pair = most_alike(ones, others, False, 96)
    assert pair is not None
    assert [plan.reference for plan in pair] == ["out(relu(sum(u, +0)))", "out(sum(u, +0))"]
    assert [plan.models[0].reference for plan in pair] == [FMA, FMA]
    assert most_alike([], others, False, 96) is None


def requantised(bias: Numbers) -> tuple[Recorded, Plan, Plan]:
    """An int8 product, times a factor, with a bias, rectified; the second kernel rounds the product to f16 before the
    bias. The plan of the second result has another unit, that rounds to f32."""
    a, b, _ = integers()
    scaled = (sums(a, b).astype(np.float32) * SCALE).astype(np.float32)
    one, other = (half(np.maximum(x + bias, np.float32(0))) for x in (scaled, half(scaled).astype(np.float32)))
    factor = f"number(0x{SCALE.view(np.uint32):08x}, f32)"
    formats = "int8,int8,f32"
    first = plan_of(f"out(relu(r(exact(r(product({factor}, sum(u, +0))), c))))", INT8, formats)
    second = plan_of(f"out(relu(r(exact(h(r(product({factor}, sum(u, +0)))), c))))", INT8_FMA, formats)
    return recorded_of(a, b, bias, one, other), first, second


def test_units_that_cannot_be_the_cause_are_exchanged() -> None:
    """Sums of 80 products of int8 are exact in int32 and in f32: one unit gives both results, and the rounding before
    the bias is the difference."""
    recorded, first, second = requantised(integers()[2])
    assert list(why_they_differ(first, second, True)) == [UNIT, SUM, RESULT]
    pair = nearest_pair([given(first), given(second)], recorded, places_of(recorded))
    assert pair is not None
    (why,) = pair.why
    assert why.startswith("the result is the sum times 9287867*2^-29, rounded to f32, nearest even, and c, ")
    assert "then rounded to f16, nearest even, and c, " in why
    assert [plan.models[0].reference for plan in pair.plans] == [INT8, INT8]


def test_the_result_of_one_plan_is_compared_with_that_of_the_other() -> None:
    """In some elements the sum that one kernel rounds to f16 before the bias is what the other one gives at last."""
    a, b = np.array([[2430, 0.9]], np.float16), np.ones((2, 1), np.float16)
    c, d = np.full((1, 1), -1.5, np.float32), np.zeros((1, 1), np.uint16)
    matrices = Matrices(a.view(np.uint16), b.view(np.uint16), c.view(np.uint32), (d, d))
    steps = first_step(plan_of(AT_END), plan_of(STORED), matrices, Element(0, 0, (0, 0), None))
    assert steps is not None
    assert [None if step is None else (step.step, step.value) for step in steps] == [("d", 2430), ("d", 2428)]


def test_after_the_time_the_plans_stay_as_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, first, second = requantised(integers()[2])

    def ended(*_: object) -> None:
        raise CutShort

    monkeypatch.setattr("mmaprobe.reports.plan_pairs.Candidates.results", ended)
    pair = nearest_pair([given(first), given(second)], recorded, places_of(recorded))
    assert pair == Pair((first, second), list(why_they_differ(first, second, True).values()))


def test_the_difference_that_changes_most_comes_first() -> None:
    """Two runs of K and a chain differ in f32, and few of these differences are left in f16; C twice differs in all
    elements."""
    a, b, c = floats()
    one, other = half(chain(a, b)), half(chain(a[:, :48], b[:48]) + chain(a[:, 48:], b[48:]) + c)
    recorded = recorded_of(a, b, c, one, other)
    plans = plan_of("out(sum(u, +0))"), plan_of("out(exact(sum(split(2, u, r), +0), c))")
    pair = nearest_pair([given(plans[0]), given(plans[1])], recorded, places_of(recorded))
    assert pair is not None
    assert [why.split(" ")[0] for why in pair.why] == ["C:", "the"]
    assert not any(why.endswith(IDLE) for why in pair.why)


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        (UNIT, "out(sum(split(2, hopper/mma/m16n8k16.f32.f16.f16.f32, r), +0))"),
        (SUM, "out(sum(hopper/mma/m16n8k16.f32.f16.f16.f32, +0))"),
        (C, "out(relu(exact(sum(split(2, fma, r), +0), c)))"),
        (RESULT, "out(relu(exact(sum(split(2, fma, r), +0), c)))"),
    ],
)
def test_a_plan_takes_the_part_of_another_one(what: str, wanted: str) -> None:
    one, other = plan_of("out(sum(split(2, u, r), +0))"), plan_of("out(relu(exact(sum(u, +0), c)))", HOPPER)
    made = with_part(one, other, what)
    unit = HOPPER if what in (UNIT, SUM) else FMA
    assert made == plan_of(wanted.replace("fma", "u").replace(HOPPER, "u"), unit)
    assert with_part(plan_of("out(exact(sum(u, +0), sum(split(2, u, r), +0)))"), other, what) is None


@pytest.mark.parametrize(
    ("step", "out", "wanted"),
    [
        ("out(exact(product(2**-9, sum(u, +0)), 2**-1))", "int8, down",
         "the sum times 2^-9, plus 2^-1, rounded to int8, down"),
        ("out(exact(sum(u, +0), 2**-1))", "f16, nearest_even", "the sum, plus 2^-1, rounded to f16, nearest even"),
        ("out(exact(product(2**1, sum(u, +0)), product(2**-1, c)))", "f16, nearest_even",
         "the sum times 2, and c times 2^-1, rounded to f16, nearest even"),
        ("out(product(2**1, sum(u, c)))", "f16, nearest_even",
         "(the sum and c) times 2, rounded to f16, nearest even"),
        ("out(exact(sum(u, +0), r(product(2**1, c))))", "f16, nearest_even",
         "the sum and (c times 2, rounded to f32, nearest even), then rounded to f16, nearest even"),
        ("out(relu(exact(sum(u, +0), c)))", "f16, nearest_even",
         "the sum and c, but zero for those below zero, rounded to f16, nearest even"),
        ("out(exact(relu(sum(u, +0)), c))", "f16, nearest_even",
         "the sum, but zero for those below zero, and c, rounded to f16, nearest even"),
    ],
)  # fmt: skip
def test_the_steps_after_a_sum_are_said_in_their_order(step: str, out: str, wanted: str) -> None:
    """A number that is added is no factor of c."""
    plan, other = plan_of(step, out=f"round({out})"), plan_of("out(r(sum(u, +0)))", out=f"round({out})")
    assert why_they_differ(plan, other, True)[RESULT].startswith(f"the result is {wanted} (D1); ")


def test_a_number_added_before_a_cut_is_no_factor_of_c(tmp_path: Path) -> None:
    """Halves rounded up by an integer shift against halves rounded to even."""
    a, b, _ = integers()
    total = sums(a, b)
    one, other = ((total + 256) >> 9), np.rint(total * 2.0**-9)
    assert (one != other).any()
    names = {
        "a": a,
        "b": b,
        "d1": np.clip(one, -128, 127).astype(np.int8),
        "d2": np.clip(other, -128, 127).astype(np.int8),
    }
    for name, matrix in names.items():
        np.save(tmp_path / f"{name}.npy", matrix)
    words = [str(tmp_path / f"{name}.npy") for name in names]
    text = " ".join(CliRunner().invoke(main, ["compare", "--gemm", *words, "--timeout", "20"]).stderr.split())
    assert "why: the result is the sum times 2^-9, plus 2^-1, rounded to int8, down (D1); the sum times 2^-9, " in text
    assert "c times" not in text


def test_an_integer_product_stored_before_the_bias_has_a_plan_of_an_integer_unit() -> None:
    recorded, *_ = requantised(integers()[2])
    found = plans_of_results(recorded, places_of(recorded), lambda text: None, 20)
    assert any(plan.models[0].d.is_integer for plan in found[1].plans)
    pair = nearest_pair(found, recorded, places_of(recorded))
    assert pair is not None
    assert [why.split(" is ")[0] for why in pair.why] == ["the result"]
    assert pair.plans[0].models == pair.plans[1].models
