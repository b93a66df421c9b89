"""Sums with compensation: what an addition loses is a number of its format, and the bound that follows is true."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.kernel.bounds import forms, sums
from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.bounds.sums import START, Summed
from mmaprobe.queries.kernel.bounds.wording import sum_text
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.questions.steps import Compensated, made, recorded
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans import bound
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.matrices import Job, Patterns, Strip
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.plans.small_plans import compared, small
from tests.said import believed

PLAN = """plan: compensated
formats: {a: f16, b: f16, c: f32, d: f32}
units:
  mma: ampere/mma/m16n8k16.f32.f16.f16.f32
roundings:
  r: round(f32, MODE)
steps:
  d: sum(JOIN, c)
"""


def plan_of(join: str = "compensate(16, mma, r)", mode: str = "nearest_even") -> Plan:
    return parse_plan(PLAN.replace("JOIN", join).replace("MODE", mode), "mine.yaml", parse_reference)


def products(form: Form) -> Fraction:
    """The coefficient of the sum of |a b|."""
    (found,) = (value for atom, value in form.merged().parts.items() for item in atom
                if [factor.name for factor in item] == ["a", "b"])  # fmt: skip
    return found


def test_compensation_makes_the_bound_smaller() -> None:
    """Of 65536 products in chunks: not n roundings are left but one, and those within the chunks."""
    plain, better = (error_of(bound_of_plan(plan_of(join), 65536, believed))
                     for join in ("promote(16, mma, r)", "compensate(16, mma, r)"))  # fmt: skip
    assert products(better) * 150 < products(plain)
    chunk = error_of(bound_of_plan(plan_of("compensate(16, mma, r)"), 16, believed))
    assert products(better) < products(chunk) * Fraction(11, 10)
    kahan = error_of(bound_of_plan(plan_of("compensate(16, mma, r, by=kahan)"), 65536, believed))
    assert products(better) < products(kahan) < products(chunk) * Fraction(3, 2)


def test_the_formula_for_every_k_has_the_square_of_g() -> None:
    found = error_of(bound_of_plan(plan_of(), None, believed))
    assert "G^2" in sum_text(found)
    assert "1.0001*2^-48 G^2 + 1.0001*2^-48 G + " in sum_text(found)


FORMATS_OF_SUMS = ("e3m2_ieee", "e2m3_ieee", "e4m1_ieee")


def lost_of(fmt: str, mode: Any) -> list[tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Of every two finite numbers of a format whose sum does not overflow: both, the sum, and what `lost` gives."""
    own = format_named(fmt)
    finite = [
        p for p in range(1 << own.width) if not isinstance(exact_value(p, own), str) or exact_value(p, own) == "-0"
    ]
    x, y = (side.ravel().astype(kind_of(own)) for side in np.meshgrid(finite, finite))
    plan = plan_of()
    nothing = np.zeros((1, 1), kind_of(FORMATS["f16"]))
    engine = Strip(Job(plan, nothing, nothing), slice(0, 1), Patterns(np.zeros((1, 1), np.uint32), FORMATS["f32"]))
    values, how = [Patterns(side[None], own) for side in (x, y)], Rounding(own, mode)
    total = engine.rounded(values, how)
    lost = engine.lost(values, total, how)
    rows = zip(x.tolist(), y.tolist(), total.matrix[0].tolist(), lost.matrix[0].tolist(), strict=True)
    numbers = [[Fraction(0) if (v := exact_value(p, own)) == "-0" else v for p in row] for row in rows]
    return [tuple(row) for row in numbers if not any(isinstance(v, str) for v in row)]  # type: ignore[misc]


@pytest.mark.parametrize("fmt", FORMATS_OF_SUMS)
@pytest.mark.parametrize("mode", ["nearest_even", "nearest_away"])
def test_what_an_addition_to_nearest_loses_is_computed_exactly(fmt: str, mode: str) -> None:
    """All pairs of numbers: the theorem of Dekker and Knuth, and Sterbenz's where nothing is lost."""
    rows = lost_of(fmt, mode)
    assert len(rows) > 500
    for x, y, total, lost in rows:
        assert lost == x + y - total
        assert abs(lost) <= min(abs(x), abs(y))
        if x * y <= 0 and abs(y) <= 2 * abs(x) and abs(x) <= 2 * abs(y):
            assert not lost


@pytest.mark.parametrize("mode", ["toward_zero", "up", "down", "to_odd"])
def test_in_other_modes_it_is_not(mode: str) -> None:
    assert any(lost != x + y - total for fmt in FORMATS_OF_SUMS for x, y, total, lost in lost_of(fmt, mode))
    with pytest.raises(RuleError, match="need not be a number"):
        bound_of_plan(plan_of(mode=mode), None, believed)


@pytest.mark.parametrize(("factor", "total", "start", "by"), [
    ("e2m1", "e5m2_ieee", "+0", "neumaier"), ("e2m1", "e4m3_ieee", "c", "neumaier"),
    ("e1m2_none", "e5m3_ieee", "+0", "kahan"), ("e2m1", "e4m3_ieee", "c", "kahan"),
])  # fmt: skip
def test_no_input_errs_by_more_than_the_bound(factor: str, total: str, start: str, by: str, tmp_path: Path) -> None:
    """All inputs of two products, and a quarter of a million of 3, 4 and 12; some come near."""
    plan, nearest = small(tmp_path, factor, total, start, f"compensate(1, mma, r, by={by})"), 0.0
    for k in (2, 3, 4, 12):
        error, limit = compared(plan, error_of(bound_of_plan(plan, k, believed)), k, start == "c")
        assert (error <= limit).all()
        nearest = max(nearest, float((error[error > 0] / limit[error > 0]).max(initial=0)))
    assert nearest > (0.3 if by == "neumaier" else 0.15)


def known(plan: Plan, length: int | None = 64) -> tuple[Compensated, Theorem, list[Theorem], list[Theorem]]:
    """A step, and the theorems about its start, its parts and its rounding."""
    step = recorded(plan, plan.sums[0].stage, length)
    assert isinstance(step, Compensated)
    own = bound._Composer(plan, length, believed)
    formats = {START: frozenset({FORMATS["f32"]})}
    lemma = believed(RoundingLoses(FORMATS["f32"], "nearest_even"))
    assert lemma is not None
    return step, own._step(step.start, formats), [own._step(part, formats) for part in step.parts], [lemma]


def test_the_rule_looks_at_what_is_added() -> None:
    step, start, parts, lemmas = known(plan_of())
    found = sums.compensated(step, start, parts, lemmas).goal
    assert isinstance(found, Summed)
    assert found.growth is None
    with pytest.raises(RuleError, match="not about"):
        sums.compensated(step, parts[0], parts, lemmas)
    with pytest.raises(RuleError, match="not about"):
        sums.compensated(step, start, [start], lemmas)
    with pytest.raises(RuleError, match="lemma"):
        sums.compensated(step, start, parts, [])

    def other(**changes: object) -> Compensated:
        fields = {
            "count": step.count,
            "start": step.start,
            "parts": step.parts,
            "rounding": step.rounding,
            "by": step.by,
        } | changes
        return made(Compensated, *fields.values())

    def rounding(fmt: str = "f32", **changes: Any) -> Compensated:
        return other(rounding=Rounding(FORMATS[fmt], **changes))

    for wrong, what in (
        (other(count=0), "more parts"), (rounding(mode="toward_zero"), "need not be"),
        (rounding(subnormals="flush_after"), "need not be"), (rounding("f16"), "not one of the format"),
        (rounding("e4m3"), "need not be"),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=what):
            sums.compensated(wrong, start, parts, lemmas)
    held = sums.held(plan_of(), made(bound.SoFar, 1), frozenset({FORMATS["f32"]}))
    with pytest.raises(RuleError, match="another sum"):
        sums.compensated(other(parts=(made(bound.SoFar, 1),)), start, [held], lemmas)


def test_any_number_of_parts_is_of_a_number_each() -> None:
    step, start, parts, lemmas = known(plan_of("compensate(split(2), mma, r)"), None)
    assert sums.compensated(step, start, parts, lemmas).goal
    every = made(Compensated, None, step.start, step.parts, step.rounding, step.by)
    with pytest.raises(RuleError, match="neither the number of sums nor"):
        sums.compensated(every, start, parts, lemmas)


def test_nothing_is_said_of_a_loop_after_it_for_every_k() -> None:
    one, two = sums._by_growth(forms.number(1) + sums.G)
    assert (one, two) == (forms.number(1), sums.G)
    with pytest.raises(RuleError, match="ask for a K"):
        sums._by_growth(sums.G * sums.G)
