"""Products by residues: against Python's integers, which share no code with the plans."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import frexp, inf, ldexp
from operator import mul

import numpy as np
import pytest

from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles.oracle import decode
from tests.plans.carriers import agree_in_terms, agree_on_every_input, differ
from tests.plans.test_slices import (
    agree,
    agree_in_a_large_product,
    few,
    give_nan_in_their_rows,
    inputs,
    through,
    wrapped,
)  # fmt: skip

pytestmark = pytest.mark.compilers

OZAKI = "plan:ozaki/int8-ii-14"
MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199)

UNIT = """
unit: tiny/mma/int3
formats: {a: int3, b: int3, c: int8, d: int8}
length: 2
roundings:
  r: round(int8, toward_zero)
steps:
  d: r(fused(a[0:2] * b[0:2], c, F=6, carry=0, least=6))
"""
TINY = """
plan: tiny-residues
formats: {a: e2m1, b: e2m1, c: f32, d: f32}
units:
  mma: mma.yaml
roundings:
  q: round(int3, toward_zero)
  w: round(int4, toward_zero)
  r: round(f32, nearest_even)
words:
  a_whole: w(product(2**1, r(product(a, 1 / shared(a)))))
  a1: q(residue(a_whole, 8))
  a2: q(residue(a_whole, 7))
  b_whole: w(product(2**2, r(product(b, 1 / shared(b, up=true)))))
  b1: q(residue(b_whole, 8))
  b2: q(residue(b_whole, 7))
steps:
  total: recombined(sum(mma(a1, b1)), sum(mma(a2, b2)), moduli=[8, 7])
  d: r(exact(r(scale(r(product(2**-3, total)), shared(a), shared(b, up=true))), c))
"""


def tiny(old: str = "", new: str = "") -> Plan:
    assert old in TINY
    model = Model("mma.yaml", parse_unit(UNIT, "mma.yaml"))
    return parse_plan(TINY.replace(old, new) if old else TINY, "tiny.yaml", lambda _: model, whole=True)


def parsed(text: str, like: Callable[[], Plan]) -> Plan:
    """The plan of a text with the unit of another one."""
    return parse_plan(text, "tiny.yaml", lambda _: like().models[0])


# -- the oracle


def whole(row: list[float], bits: int) -> tuple[int, list[int]]:
    """The exponent of the largest magnitude, and the numbers as integers of `bits` bits, cut."""
    top = max((frexp(x)[1] for x in row if x), default=1) - 1
    found = []
    for x in row:
        n, d = abs(x).as_integer_ratio()
        up = bits - 1 - top
        y = (n << up) // d if up >= 0 else n // (d << -up)
        found.append(-y if x < 0 else y)
    return top, found


def ozaki(row: list[float], column: list[float], c: float, moduli: tuple[int, ...] = MODULI, bits: int = 49) -> float:
    """D of one row and one column by residues, each sum in 32 bits."""
    (left, a), (right, b) = whole(row, bits), whole(column, bits)
    total, period = 0, 1
    for m in moduli:
        x, y = ([(v + m // 2) % m - m // 2 for v in side] for side in (a, b))
        share = wrapped(sum(map(mul, x, y)), 32)
        total += period * ((share - total) * pow(period, -1, m) % m)
        period *= m
    if 2 * total > period:
        total -= period
    try:
        return ldexp(float(total), left + right - 2 * (bits - 1)) + c
    except OverflowError:
        return inf if total > 0 else -inf


# -- Ozaki II


@pytest.mark.parametrize("spread", [0, 30, 300, 1000])
def test_residues_of_int8(spread: int) -> None:
    plan = parse_plan_reference(OZAKI)
    a, b, c = inputs(5, 70, 6, spread, spread)
    a[0], b[:, 0], c[0] = 0, 0, -0.0
    places = list(product(range(5), range(6)))
    d = through(plan, a, b, c, "numpy")
    agree(ozaki, a, b, c, d, places)
    assert through(plan, a, b, c, "compiled").tobytes() == d.tobytes()


def test_results_that_are_subnormal_are_rounded_once_more() -> None:
    """The powers of both sides are applied at once."""
    plan = parse_plan_reference(OZAKI)
    a, b, c = inputs(4, 20, 4, 3, 3)
    for left, right in ((-1000, -70), (1000, -1000), (-1000, 1000), (900, 120)):
        own = ldexp(1.0, left) * a, ldexp(1.0, right) * b
        d = through(plan, *own, 0 * c, "numpy")
        agree(ozaki, *own, 0 * c, d, list(product(range(4), range(4))))


def test_the_oracle_sees_other_moduli() -> None:
    a, b, c = inputs(3, 2000, 3, 0, 1)
    a, b = abs(a) + 8, abs(b) + 8
    d = through(parse_plan_reference(OZAKI), a, b, c, "numpy")
    for moduli, bits in ((MODULI[:-1], 49), (MODULI, 48)):
        assert all(ozaki(a[i].tolist(), b[:, i].tolist(), float(c[i, i]), moduli, bits) != d[i, i] for i in range(3))


def test_the_largest_number_of_products() -> None:
    """Integers below 2^49: the sum of 2289 products is below half of the product of the moduli, that of 2290 is not."""
    most = 2.0 - 2.0**-52
    for length, right in ((2289, True), (2290, False)):
        a, b, c = np.full((1, length), most), np.full((length, 1), most), np.zeros((1, 1))
        d = through(parse_plan_reference(OZAKI), a, b, c, "compiled")
        agree(ozaki, a, b, c, d, [(0, 0)])
        assert (abs(d[0, 0] / (4 * length) - 1) < 2.0**-47) == right


@pytest.mark.slow
def test_a_large_product() -> None:
    agree_in_a_large_product(OZAKI, ozaki)


def test_rows_that_are_not_finite() -> None:
    give_nan_in_their_rows(OZAKI)


# -- by exhaustion


def tiny_oracle(a: list[int], b: list[int], c: int) -> float:
    """Of numbers of e2m1: all are small integers times 1/2."""
    x, y = ([(-1 if v.sign else 1) * int(2 * abs(v.value)) for v in (decode("e2m1", p) for p in side)]
            for side in (a, b))  # fmt: skip
    up, down = max(map(abs, x)), max(map(abs, y))
    left = 1 << up.bit_length() - 1 if up else 2  # in units of 1/2
    right = 1 << (down - 1).bit_length() if down else 2
    first, second = ([int(v * scale / unit) for v in side] for side, scale, unit in ((x, 2, left), (y, 4, right)))
    found = {}
    for m in (8, 7):
        p, q = ([(v + m // 2) % m - m // 2 for v in side] for side in (first, second))
        found[m] = sum(map(mul, p, q)) % m
    (total,) = (v for v in range(-27, 29) if v % 8 == found[8] and v % 7 == found[7])
    return total / 8 * (left / 2) * (right / 2) + float(np.uint32(c).view(np.float32))


def test_every_input_of_a_tiny_plan() -> None:
    agree_on_every_input(tiny(), tiny_oracle)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("residue(a_whole, 7)", "residue(a_whole, 5)"),
        ("moduli=[8, 7]", "moduli=[7, 8]"),
        ("moduli=[8, 7]", "moduli=[8, 5]"),
        ("w: round(int4, toward_zero)", "w: round(int4, nearest_even)"),
        ("2**-3", "2**-4"),
    ],
)
def test_plans_nearby_differ(old: str, new: str) -> None:
    assert differ(tiny(), tiny(old, new))


def test_terms_and_steps() -> None:
    plan = tiny()
    agree_in_terms(plan, lambda _: plan.models[0], *few())
    own = parse_plan_reference(OZAKI)
    assert parse_plan(plan_text(own), "plan.yaml", parse_reference) == own
