"""Bounds in units of an alignment: true on all inputs of small formats, and refused where a side condition fails."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.kernel.bounds.table9 import BoundInUnits, SumInUnits, loosened, summed, truncated
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses, TruncationKeeps
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, exhausted, query_of
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.bound import _Composer, bound_in_units
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.display import exact_value, ulp_of
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.batch import evaluate_lanes, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.proofs.test_bounds import numbers_of
from tests.said import believed

pytestmark = pytest.mark.all_inputs

TEXT = """unit: table9
own_formats:
  p: {{exponent: 2, fraction: 1, bias: 2, specials: none}}
  q: {{exponent: 4, fraction: {fraction}, specials: none}}
  wide: {{exponent: 4, fraction: 1, specials: {specials}}}
formats: {{a: p, b: p, c: q, d: wide}}
length: 2
{inputs}
roundings:
  r: round(wide, {rounding})
steps:
  d: {d}
"""
SUM = "r(fused(a[0] * b[0], a[1] * b[1], c, {}))"


def unit_of(d: str, fraction: int = 1, rounding: str = "toward_zero", inputs: str = "", specials: str = "none") -> Unit:
    text = TEXT.format(d=d, fraction=fraction, rounding=rounding, inputs=inputs, specials=specials)
    return parse_unit(text, "table9.yaml")


@cache
def known(unit: Unit) -> BoundInUnits:
    """What the rules give at best."""
    for units in range(-1, 9):
        try:
            goal = bound_in_units(unit, units, False, believed).goal
        except RuleError as error:
            if not str(error).startswith("loosened"):
                raise
            continue
        assert isinstance(goal, BoundInUnits)
        return goal
    raise AssertionError


def largest_excess(unit: Unit, bound: BoundInUnits) -> float:
    """The largest error less the bound, of all inputs; infinite where a result is not a number."""
    half = 1 << (unit.b.width - 1)
    sizes = [1 << unit.a.width] * 2 + [half] * 2 + [1 << unit.c.width]
    table = np.stack([axis.ravel() for axis in np.meshgrid(*map(np.arange, sizes), indexing="ij")], 1)
    table = table.astype(np.uint64)
    a, b, c = (numbers_of(fmt) for fmt in (unit.a, unit.b, unit.c))
    products = [a[table[:, k]] * b[table[:, 2 + k]] for k in range(2)]
    exact = products[0] + products[1] + c[table[:, 4]]

    def tops(fmt: Any, values: Any) -> Any:
        return np.maximum(2.0 ** np.floor(np.log2(np.abs(values), where=values != 0, out=np.zeros_like(values))),
                          2.0**fmt.emin)  # fmt: skip

    terms = [np.where(p != 0, tops(unit.a, a[table[:, k]]) * tops(unit.b, b[table[:, 2 + k]]), 0)
             for k, p in enumerate(products)]  # fmt: skip
    terms.append(np.where(c[table[:, 4]] != 0, tops(unit.c, c[table[:, 4]]), 0))
    u = np.max(terms, axis=0) * 2.0**-unit.result.term.fraction_bits  # type: ignore[attr-defined]
    found = evaluate_lanes(Model("table9", unit), table[:, :2], table[:, 2:4], table[:, 4])
    patterns = to_integers(found.d, len(table))
    texts = {pattern: exact_value(pattern, unit.d) for pattern in set(patterns.tolist())}
    if "inf" in texts.values() or "nan" in texts.values():
        return float("inf")
    d = numbers_of(unit.d)[patterns]
    ulp = tops(unit.d, d) * 2.0**-unit.d.fraction
    limit = bound.units * u + (ulp if bound.apart else np.maximum(u, ulp))
    return float((np.abs(d - exact) - limit).max())


#: units, what the rules give, and how much less is true as well: a sum of few terms may lose less than each of them can
TRUE = [
    (unit_of(SUM.format("F=2")), 1, 0), (unit_of(SUM.format("F=3")), 1, 0), (unit_of(SUM.format("F=1")), 2, 1),
    (unit_of(SUM.format("F=0")), 2, 0),
    pytest.param(unit_of(SUM.format("F=1, zeros=-9"), 3), 2, 0, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize(("unit", "units", "idle"), TRUE)
def test_bounds_hold_on_all_inputs_and_none_smaller_does(unit: Unit, units: int, idle: int) -> None:
    goal = known(unit)
    assert goal == BoundInUnits(unit, units, False)
    assert largest_excess(unit, replace(goal, units=units - idle)) <= 0
    assert largest_excess(unit, replace(goal, units=units - idle - 1)) > 0
    assert largest_excess(unit, replace(goal, units=units + 1, apart=True)) <= 0


#: what a side condition keeps out: (the unit, what the refusal begins with)
REFUSED = [
    (unit_of(SUM.format("F=2, rounding=nearest_even")), "fused"),
    (unit_of(SUM.format("F=2, sticky=true")), "fused"),
    (unit_of(SUM.format("F=2, carry=4")), "fused"),
    (unit_of(SUM.format("F=2, reach=[none, none, 3]")), "fused"),
    (unit_of(SUM.format("F=[2, 2, 3]")), "fused"),
    (unit_of(SUM.format("F=2, zeros=0")), "fused: its floor 0"),
    (unit_of(SUM.format("F=2, least=1")), "fused: its floor 1"),
    (unit_of(SUM.format("F=2, floors=[none, 1, none]")), "fused: its floor 1"),
    (unit_of(SUM.format("F=2"), inputs="inputs: {subnormals: zero}"), "inputs"),
    (unit_of("r(fused(a[0] * b[0], a[1] * b[0], c, F=2))"), "steps"),
    (unit_of("r(fused(a[0] * b[0], a[1] * b[1], F=2))"), "steps"),
    (unit_of("r(fused(a[0] * b[0], a[1] * b[1], c, c, F=2))"), "steps"),
    (unit_of("r(fused(a[0] * a[0], a[1] * b[1], c, F=2))"), "inputs"),
    (unit_of("r(fused(a[0] * b[0], a[1] * b[1], a[0], c, F=2))"), "fused: a term"),
    (unit_of("r(fused(product(a[0], b[0], normalised=true), a[1] * b[1], c, F=2))"), "fused: a term"),
    (unit_of("r(fused(product(a[0], b[0], limit=2), a[1] * b[1], c, F=2))"), "summed: a term is not exact"),
    (unit_of("r(fused(r(a[0] * b[0]), a[1] * b[1], c, F=2))"), "summed: a term is not exact"),
    (unit_of("r(exact(a[0] * b[0], a[1] * b[1], c))"), "fused"),
    (unit_of("repeat(k in range(2), c, r(fused(a[k] * b[k], acc, F=2)))"), "steps"),
    (unit_of(SUM.format("F=2"), rounding="nearest_even"), "subnormals"),
    (unit_of(SUM.format("F=2"), rounding="toward_zero, subnormals=flush_after"), "subnormals"),
    (unit_of(SUM.format("F=2"), specials="all_ones"), "d: e4m1_all_ones has"),
    (unit_of(SUM.format("F=5")), "d: e4m1_none can overflow"),  # products reach what is kept of the largest c
    (unit_of(SUM.format("F=3"), 3), "d: e4m1_none can overflow"),  # c is wider than what d holds
]


@pytest.mark.parametrize(("unit", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_every_side_condition_refuses_once(unit: Unit, why: str) -> None:
    with pytest.raises(RuleError, match=f"^{why}"):
        known(unit)


def test_what_premises_must_be() -> None:
    unit, other = unit_of(SUM.format("F=2")), unit_of(SUM.format("F=1"))

    def parts(one: Unit) -> tuple[list[Theorem], list[Theorem]]:
        composer = _Composer(one, believed)
        terms = [composer.of(item, ()) for item in one.result.term.items]  # type: ignore[attr-defined]
        goals = [
            AlignmentLoses(4, 2, one.result.term.fraction_bits, "toward_zero"),  # type: ignore[attr-defined]
            AlignmentLoses(2, 1, one.result.term.fraction_bits, "toward_zero"),
        ]  # type: ignore[attr-defined]
        return terms, list(map(believed, goals))

    terms, lemmas = parts(unit)
    total = summed(unit, terms, lemmas)
    assert total.goal == SumInUnits(unit, 2)
    keeps = believed(TruncationKeeps(unit.d))
    for wrong in (
        lambda: summed(unit, terms[:-1], lemmas), lambda: summed(unit, terms[::-1], lemmas),
        lambda: summed(unit, terms, lemmas[:1]), lambda: summed(unit, terms, [*lemmas, *parts(other)[1]]),
        lambda: summed(unit, parts(other)[0], lemmas), lambda: summed(unit, [*terms[:-1], keeps], lemmas),
        lambda: truncated(keeps, keeps), lambda: truncated(total, lemmas[0]),
        lambda: truncated(total, believed(TruncationKeeps(unit.a))),
        lambda: truncated(total, believed(RoundingLoses(unit.d, "toward_zero"))),
    ):  # fmt: skip
        with pytest.raises(RuleError):
            wrong()
    bound = truncated(total, keeps)
    assert loosened(bound, 2, True).goal == BoundInUnits(unit, 2, True)
    for units, apart, premise in ((0, False, bound), (1, True, bound), (5, False, loosened(bound, 2, True)),
                                  (1, True, loosened(bound, 2, True)), (2, True, total)):  # fmt: skip
        with pytest.raises(RuleError):
            loosened(premise, units, apart)


def test_the_lemma_about_truncation_is_true_and_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("e2m1", "e3m2", "e4m3", "e5m2"):
        assert exhausted(TruncationKeeps(FORMATS[name]))
    (answer,) = Options(solver="bitwuzla").ask(query_of(TruncationKeeps(FORMATS["f16"])), 20.0, "truncation")
    assert answer.status == "unsat"
    kept = TruncationKeeps._rounded
    monkeypatch.setattr(TruncationKeeps, "_rounded", lambda self, given, mode: kept(self, given, "nearest_even"))
    with pytest.raises(RuleError, match="shows otherwise"):
        exhausted(TruncationKeeps(FORMATS["e3m2"]))


def test_the_last_place_is_that_of_the_claim() -> None:
    """`ulp(d)` of the rule is that by which claims are checked against evaluations: at zero that of emin."""
    assert ulp_of(Fraction(0), FORMATS["f16"]) == Fraction(1, 1 << 24)
