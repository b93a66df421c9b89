"""Random statements about random small units, checked against all their inputs (benchmarks/statements.py), and what
such statements have shown."""

from __future__ import annotations

import pytest

from benchmarks.statements import blind, check, make
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.properties.proving import proofs_of, verdict_of
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.units.unitfile import parse_unit

pytestmark = pytest.mark.solvers

SMALL = """unit: small
formats: {{a: {a}, b: {b}, c: {c}, d: {d}}}
length: {length}
roundings:
  r: round({d}, toward_zero)
  n: round({d}, nearest_even)
steps:
  d: {step}
"""


def model(step: str, a: str = "e1m1_none", b: str = "e1m1_none", c: str = "e2m1", d: str = "e4m3",
          length: int = 2) -> Model:  # fmt: skip
    return Model("small", parse_unit(SMALL.format(a=a, b=b, c=c, d=d, length=length, step=step), "small.yaml"))


def verdict(wanted: str, one: Model, inputs: Inputs | None = None) -> str:
    return verdict_of(proofs_of(problems_of(wanted, one, inputs or Inputs()), Options(timeout=30.0), confirm=False))


#: some of every kind that are soon decided
QUICK = (3000, 3021, 3025, 3003, 3004, 3009, 3010, 3011, 3013, 3014, 3015, 3017, 3019)


@pytest.mark.parametrize("number", QUICK)
def test_a_verdict_is_that_of_all_inputs(number: int) -> None:
    statement = make(number)
    with blind():
        found = check(statement, 20.0)
    assert not found.wrong, (statement.text(), found.trouble)


def test_statements_are_repeatable_and_both_true_and_false() -> None:
    found = [make(number) for number in (0, 10, 0)]
    assert found[0] == found[2]
    assert [statement.true for statement in found] == [True, False, True]


def test_products_outside_of_every_loop_are_asked_about() -> None:
    """They belong to a step of their own: an input may differ there alone, and they change places with each other."""
    loop = "repeat(k in range(1, 2), c, r(exact(acc, a[k] * b[k])))"
    left, right = (model(f"n(exact({loop}, {rest}))") for rest in ("a[0] * b[0]", "exact(c)"))
    assert left.blocks == ((1,), (0,))
    assert distinguish(Problem(left, right), Options(timeout=30.0)).verdict == "different"
    assert distinguish(Problem(right, left), Options(timeout=30.0)).verdict == "different"
    assert verdict("order-independent", left) == "different"


@pytest.mark.parametrize("wanted", ["exact", "monotonic-addend", "monotonic-product", "order-independent"])
def test_formats_with_one_exponent_have_samples(wanted: str) -> None:
    one = model("r(exact(a[0:2] * b[0:2], c))", c="e1m1_none")
    assert verdict(wanted, one) == "equal"


@pytest.mark.parametrize("sum_", ["fused(a[0] * b[0], c, F=2, sticky=true)", "fused(a[0] * b[0], c, F=9, carry=0)"])
def test_sums_that_have_no_argument_end_no_proof(sum_: str) -> None:
    """The sum has fewer bits than what is rounded, or than a term."""
    with blind():
        assert verdict("monotonic-addend", model(f"r({sum_})", length=1)) in ("equal", "different")
