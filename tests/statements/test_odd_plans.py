"""False statements about plans that are odd where formats end: numbers written for a NaN, heads that take products of
every K, conversions that a part of a plan alone can tell."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mmaprobe.queries.kernel.equality.plan_units import joined
from mmaprobe.queries.plans import equal as plans_equal
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text

UNIT = """unit: odd
formats: {{a: {a}, b: e2m1, c: {c}, d: {c}}}
length: 1
inputs: {{{reads}}}
roundings: {{r: "round({c}, {how})"}}
steps:
  d: r(exact(a[0] * b[0], c))
"""
PLAN = """plan: odd
formats: {{a: {a}, b: e2m1, c: {c}, d: e4m3}}
units: {{{units}}}
roundings: {{r: "round(e4m3, nearest_even)", s: "round(e4m3, nearest_even, subnormals=flush_after)"}}
convert: {{{convert}}}
steps:
  d: {step}
"""
SIDE = 64
NEAR = "nearest_even"


def unit(a: str, c: str = "e4m3", how: str = NEAR, reads: str = "") -> Model:
    return Model(f"{how} {reads}", parse_unit(UNIT.format(a=a, c=c, how=how, reads=reads), "odd.yaml"))


def plan(step: str, units: dict[str, Model], a: str, c: str = "e4m3", convert: str = "") -> Plan:
    names = ", ".join(f"{name}: {name}" for name in units)
    return parse_plan(PLAN.format(step=step, units=names, a=a, c=c, convert=convert), "odd.yaml", units.__getitem__)


def differ(left: Plan, right: Plan, length: int) -> bool:
    a, b, c = inputs(left if right.addend else right, length)
    one, other = (simulate(a, b, c, side, engine="numpy") for side in (left, right))
    return bool(np.any(one != other))


def inputs(side: Plan, length: int) -> tuple[Patterns, Patterns, Patterns]:
    draw = np.random.default_rng(length)

    def matrix(fmt: Format, *shape: int) -> Patterns:
        return draw.integers(0, 1 << fmt.width, shape).astype(np.uint64)

    a, b, c = matrix(side.a, SIDE, length), matrix(side.b, length, SIDE), matrix(side.c, SIDE, SIDE)
    return a, b, c * np.uint64(side.addend)  # +0 where it is not read


def prover(left: Plan, right: Plan, length: int | None) -> plans_equal._Prover:
    return plans_equal._Prover(left, right, length, Options(timeout=30.0), False)


TINY = unit("e2m1_ieee", "e5m2", f"{NEAR}, nan=0x81")  # below the least number of e4m3


def test_a_number_for_nan_may_round_to_zero() -> None:
    """-2^-16 becomes -0, though all sums are multiples of 2^-9 and +0 is among them."""
    sides = [plan(step, {"tiny": TINY}, "e2m1_ieee", "e5m2") for step in (
        "r(exact(r(exact(sum(tiny, +0), +0)), -0))", "r(exact(r(sum(tiny, +0)), -0, +0))")]  # fmt: skip
    assert differ(sides[0], sides[1], 1)
    units = [unit_of_plan(side, 1) for side in sides]
    assert joined(units[0]) != joined(units[1])
    assert prover(*sides, 1)._at(1) is None
    assert prover(*sides, 1)._for_all() is None


def test_a_head_is_taken_by_every_length() -> None:
    """Of the two conversions the unit can tell none, and the head can."""
    units = {"zero": unit("e4m3", reads="a: zero"), "keep": unit("e4m3")}
    for name, equal in (("head", False), ("tail", True)):
        sides = [plan(f"sum(whole(4, zero, {name}=keep), c)", units, "e4m3", convert=f"a: {how}") for how in "rs"]
        assert differ(sides[0], sides[1], 4) != equal
        theorem = prover(*sides, None)._for_all()
        assert (theorem is not None) == equal


@pytest.mark.parametrize("nan", ["", ", nan=0x1", ", nan=0x81", ", nan=0x80"])
@pytest.mark.parametrize("reads", ["c: zero", "c: positive_zero", "c: zero, zeros: positive", "zeros: positive"])
@pytest.mark.parametrize("tiny", ["flush_after", "flush_before"])
def test_what_is_written_for_nan_is_read_as_any_result(nan: str, reads: str, tiny: str) -> None:
    """The plan at a K, as an expression, against one use of the unit after another."""
    side = plan(
        "sum(one, c)", {"one": unit("e2m1_ieee", how=f"{NEAR}, subnormals={tiny}{nan}", reads=reads)}, "e2m1_ieee"
    )
    for length in (1, 2, 3):
        try:
            model = Model("expression", unit_of_plan(side, length))
        except MmaprobeError:
            assert "positive_zero" in reads  # which no rounding of a result says
            continue
        a, b, c = inputs(side, length)
        rows = np.repeat(a, SIDE, axis=0), np.tile(b.T, (SIDE, 1)), c.ravel()
        assert np.array_equal(simulate(a, b, c, side, engine="numpy").ravel(), evaluate_batch(model, *rows))


READINGS = ("", "c: zero", "c: positive_zero", "c: zero, zeros: positive", "c: positive_zero, zeros: positive")


@pytest.mark.parametrize("start", ["c", "r(c)", "-0"])
def test_an_addend_is_read_as_a_number_of_the_units_own_format(start: str) -> None:
    """Formats of c that hold e4m3, in which its subnormal numbers are subnormal (a unit of one more bit), normal, or
    some of each: the plan at a K, as an expression, against the unit; and no two plans that differ are called equal."""
    sides, seen = {}, 0
    for fmt in ("e4m3", "e4m4_all_ones", "f16", "e5m6b9_ieee"):
        for reads in READINGS:
            text = UNIT.format(a="e2m1", c=fmt, how=NEAR, reads=reads).replace(f"d: {fmt}", "d: e4m3")
            text = text.replace(f"round({fmt}", "round(e4m3")
            side = plan(f"sum(one, {start})", {"one": Model("one", parse_unit(text, "odd.yaml"))}, "e2m1")
            for length in (1, 2):
                a, b, c = inputs(side, length)
                a[:32], b[:, :32] = 0, 8  # sums of zeros of either sign
                rows = np.repeat(a, SIDE, axis=0), np.tile(b.T, (SIDE, 1)), c.ravel()
                found = simulate(a, b, c, side, engine="numpy")
                try:
                    model = Model("expression", unit_of_plan(side, length))
                except ParameterError:
                    assert reads == "c: positive_zero"
                    continue
                assert np.array_equal(found.ravel(), evaluate_batch(model, *rows)), (fmt, reads, length)
                sides[length, fmt, reads] = side, found
    for one, other in combinations(sides, 2):
        if one[0] == other[0] and np.any(sides[one][1] != sides[other][1]):
            assert prover(sides[one][0], sides[other][0], None)._for_all() is None, (one, other)
            seen += 1
    assert seen > 20


def test_a_unit_file_says_one_way_to_read_inputs() -> None:
    """A plan whose units read them in two ways is no file: a certificate of one would be about another unit."""
    units = {"zero": unit("e4m3", reads="a: zero"), "keep": unit("e4m3")}
    for step in ("sum(whole(4, zero, tail=keep), c)", "sum(whole(4, keep, head=zero), c)"):
        side = plan(step, units, "e4m3")
        with pytest.raises(ParameterError, match="read in several ways"):
            unit_text(unit_of_plan(side, 6))
        assert parse_unit(unit_text(unit_of_plan(plan("sum(zero, c)", units, "e4m3"), 6)), "text.yaml")


def test_many_loops_are_written() -> None:
    body = "keep"
    for size in (2, 4, 8, 16, 32):
        body = f"promote({size}, {body}, r)"
    whole = unit_of_plan(plan(f"sum({body}, c)", {"keep": unit("e4m3")}, "e4m3"), 64)
    assert parse_unit(unit_text(whole), "text.yaml") == whole


def test_a_number_of_an_own_format_is_written() -> None:
    own = "own_formats: {t: {exponent: 3, fraction: 1, specials: none}}\n"
    text = own + UNIT.format(a="e4m3", c="e4m3", how=NEAR, reads="").replace(", c))", ", number(0x5, t)))")
    whole = parse_unit(text, "odd.yaml")
    assert parse_unit(unit_text(whole), "text.yaml") == whole
