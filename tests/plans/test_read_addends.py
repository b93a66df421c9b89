"""Addends that a unit reads as they are: the same bits where reading is left out, and left out only where it may be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.queries.kernel.equality.plan_units import Tails, same_forms
from mmaprobe.queries.kernel.equality.plan_units import read as read_once
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.nodes import Round, Running
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.plans.test_merged import disagreement

UNIT = """unit: {a}-{tiny}-{mode}
formats: {{a: {a}, b: {a}, c: e4m3, d: e4m3}}
length: 2
inputs: {{subnormals: {read}, zeros: positive}}
roundings:
  r: round(e4m3, {mode}, subnormals={tiny})
  p: round(e4m3, nearest_even)
steps:
  d: r(exact(c, p(exact(a[0] * b[0], a[1] * b[1]))))
"""


def chain(a: str, tiny: str, mode: str, read: str) -> Plan:
    unit = parse_unit(UNIT.format(a=a, tiny=tiny, mode=mode, read=read), "unit")
    text = f"plan: chain\nformats: {{a: {a}, b: {a}, c: e4m3, d: e4m3}}\nunits: {{u: unit}}\nsteps:\n  d: sum(u, c)\n"
    return parse_plan(text, "chain", lambda _: replace(parse_reference("arm/neon/bfdot"), reference="unit", unit=unit))


# products of e2m1 are multiples of 2^-2, and of e2m3 of 2^-6; the smallest normal e4m3 is 2^-6, the smallest one 2^-9
@pytest.mark.parametrize(
    ("a", "tiny", "mode", "read", "left_out"),
    [
        ("e2m1", "flush_after", "nearest_even", "positive_zero", True),
        ("e2m1", "flush_before", "toward_zero", "positive_zero", True),
        ("e2m1", "keep", "up", "positive_zero", True),
        ("e2m1", "keep", "nearest_even", "keep", True),
        ("e2m1", "flush_after", "down", "positive_zero", False),
        ("e2m1", "flush_after", "nearest_even", "keep", True),  # -2^-9 becomes -0, whose sign no sum reads
        ("e2m3", "flush_after", "nearest_even", "positive_zero", True),
        ("e2m3", "keep", "nearest_even", "positive_zero", False),  # a result may be subnormal
    ],
)
def test_reading_is_left_out_where_it_changes_nothing(a: str, tiny: str, mode: str, read: str, left_out: bool) -> None:
    unit = unit_of_plan(chain(a, tiny, mode, read), 6)
    once = read_once(unit)
    for seed in range(4):
        assert disagreement(unit, seed, once) is None
    assert any(isinstance(part, Round) and isinstance(part.term, Running) for part in walk(once)) != left_out


TILE = """unit: u
formats: {{a: {a}, b: {a}, c: e4m3, d: e4m3}}
length: 2
inputs: {{a: keep, b: keep, c: zero}}
roundings:
  r: round(e4m3, nearest_even)
steps:
  d: r(exact(c, {products}))
"""
ONE = """unit: v
formats: {{a: {a}, b: {a}, c: e4m3, d: e4m3}}
length: 1
roundings:
  r: round(e4m3, nearest_even)
steps:
  d: r(exact(c, a[0] * b[0]))
"""
FROM_ZERO, TOGETHER = "repeat(i in range(0, 2), +0, r(exact(acc, a[i] * b[i])))", "r(exact(a[0] * b[0], a[1] * b[1]))"


@pytest.mark.parametrize(
    ("a", "products", "equal"),
    [
        ("e2m1", FROM_ZERO, True),
        ("e2m1", TOGETHER, False),  # -0 so far: with a product of zeros +0, and with -0 * 1 alone -0
        ("e2m3", FROM_ZERO, False),  # a sum so far may be subnormal, and the tile reads it as zero
    ],
)
def test_products_left_over(a: str, products: str, equal: bool) -> None:
    """A tile filled up with zeros, or one product alone: from sums so far that tiles make."""
    units = {"u": parse_unit(TILE.format(a=a, products=products), "u"), "v": parse_unit(ONE.format(a=a), "v")}
    head, model = f"plan: tail\nformats: {{a: {a}, b: {a}, c: e4m3, d: e4m3}}\n", parse_reference("arm/neon/bfdot")

    def plan(names: str, step: str) -> Plan:
        given = f"{head}units: {{{names}}}\nsteps:\n  d: sum({step}, c)\n"
        return parse_plan(given, "tail", lambda name: replace(model, reference=name, unit=units[name]))

    left, right = plan("u: u", "u"), plan("u: u, v: v", "chain(u, tail=v)")
    proof = prove_plans(left, right, 3, Options(timeout=10.0))
    assert proof.verdict == ("equal" if equal else "different"), proof.tried
    if equal:
        assert same_forms(left, right, Tails(3), "joined").goal.statement()
    else:
        with pytest.raises(RuleError, match="differ"):
            same_forms(left, right, Tails(3), "joined")
    assert prove_plans(left, right, 1, Options(timeout=10.0)).verdict == "different"  # from c, which may be -0
    other = unit_of_plan(right, 3).result
    found = [disagreement(unit_of_plan(left, 3), seed, other) for seed in range(4)]
    assert (found == [None] * 4) == equal


def test_cdna2_f16() -> None:
    """One arithmetic for 4, 8 and 16 products: f16 products are multiples of 2^-48, far above the smallest f32."""
    units = [parse_reference(f"cdna2/mfma/f32_{shape}f16") for shape in ("32x32x4", "32x32x8", "16x16x16")]
    texts = (
        f"plan: chain\nformats: {{a: f16, b: f16, c: f32, d: f32}}\nunits: {{u: {unit.reference}}}\n"
        "steps:\n  d: sum(u, c)\n" for unit in units
    )  # fmt: skip
    short, middle, long = (parse_plan(text, "chain", parse_reference) for text in texts)
    for one, other, multiples in ((short, middle, 8), (short, long, 16), (middle, long, 16)):
        proof = prove_plans(one, other)
        assert proof.verdict == "equal"
        assert proof.multiples == multiples
