"""Rules that evaluate all inputs: of tiny plans, what they prove and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from mmaprobe.queries.kernel.integers.every import _Side, every_error, every_product, every_sum
from mmaprobe.queries.kernel.integers.slices import WithinClassical, WithinSpan
from mmaprobe.queries.kernel.integers.wraps import never_wraps
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNIT = """unit: mma.yaml
formats: {a: int4, b: int4, c: int7, d: int7}
length: 1
roundings: {r: "round(int7, toward_zero)"}
steps: {d: "r(fused(a[0] * b[0], c, F=6, carry=0, least=6))"}
"""
PLAN = """plan: tiny
formats: {a: e2m1, b: e2m1, c: f32, d: f32}
units: {mma: mma.yaml}
roundings: {q: "round(int4, toward_zero)", t: "round(f32, nearest_even)"}
words:
  a0: q(t(product(2**1, t(product(a, 1 / shared(a))))))
  b0: q(t(product(2**1, t(product(b, 1 / shared(b))))))
steps:
  total: t(product(2**-2, sum(mma(a0, b0))))
  d: t(product(t(product(total, shared(a))), shared(b)))
"""


def tiny(old: str = "", new: str = "", unit: str = UNIT) -> Plan:
    assert old in PLAN
    return parse_plan(PLAN.replace(old, new), "tiny", lambda name: Model(name, parse_unit(unit, "mma.yaml")))


def test_products_of_all_inputs() -> None:
    """The factors of a sum may be taken one by one, and a factor may not be another."""
    plan = tiny()
    other = tiny("product(2**-2, sum(mma(a0, b0)))", "product(2**-1, t(product(2**-1, sum(mma(a0, b0)))))")
    goal = every_product(plan, other, 2).goal
    assert goal.statement().endswith("for K = 2")
    for new in ("t(product(2**-1, sum", "t(product(2**-3, sum"):
        with pytest.raises(RuleError, match="differ"):
            every_product(plan, tiny("t(product(2**-2, sum", new), 1)


def test_sums_of_all_inputs() -> None:
    """In 7 bits two products of slices hold, in 5 only one."""
    plan = tiny()
    assert every_sum(plan, 2).goal == never_wraps(plan, 2, None, None).goal
    narrow = UNIT.replace("int7", "int5").replace("F=6", "F=4").replace("least=6", "least=4")
    with pytest.raises(RuleError, match="may leave"):
        every_sum(tiny(unit=narrow), 2)
    every_sum(tiny(unit=narrow), 1)


def test_negative_zeros_are_finite_elements() -> None:
    """All 16 patterns of e2m1 are finite, and 248 of e5m2, which has -0 as well."""
    for name, count in (("e2m1", 16), ("e5m2", 248)):
        rows, columns = _Side.of(FORMATS[name], FORMATS["e2m1"], 1)
        assert (len(rows.finite().values), len(columns.finite().patterns)) == (count, 16)


def test_errors_of_all_inputs() -> None:
    """A slice of two bits cuts a quarter of an element at most."""
    plan, u = tiny(), Fraction(1 << 24)
    classical = every_error(plan, 1, 4, 0, u / 2, False).goal
    assert isinstance(classical, WithinClassical)
    assert isinstance(every_error(plan, 2, 4, 2, 2 * u, True).goal, WithinSpan)
    with pytest.raises(RuleError, match="beyond the bound"):
        every_error(plan, 2, 4, 8, u / 64, True)
    with pytest.raises(RuleError, match="beyond the bound"):
        every_error(tiny("2**-2, sum", "2**-1, sum"), 1, 4, 0, u / 2, False)


def twice(unit: str) -> Plan:
    return tiny(unit=unit.replace("a[0] * b[0], c", "a[0] * b[0], a[0] * b[0], c"))


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (lambda: every_sum(tiny(), 3), "too many"),
        (lambda: every_sum(tiny(), 0), "from 1 on"),
        (lambda: every_error(tiny(), 1, 4, -1, Fraction(1), False), "from 0 on"),
        (lambda: every_product(tiny(), parse_plan_path("plan:triton/bf16x3"), 1), "different formats"),
        (lambda: every_product(*[tiny("shared(a))), shared(b)", "shared(a))), c")] * 2, 1), "reads c"),
        (lambda: every_sum(twice(UNIT), 1), "not every product"),
        (lambda: every_sum(tiny(unit=UNIT.replace("length: 1", "length: 2").replace("[0]", "[0:2]")), 2), "no chain"),
    ],
)
def test_what_is_refused(rule: Callable[[], Theorem], reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        rule()
