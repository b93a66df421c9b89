"""Rectified roundings: rectified before instead, by a rule, on all inputs of small formats; and plans that differ in
it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.rewriting import rectified
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.nodes import Constant, Cut, Element, ExactSum, FusedSum, Index, Node, Product, Relu, Round
from mmaprobe.smtmodel.nodes.round import TINY, ZEROS, Rounding
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from tests.node_units import MODES
from tests.units.test_nodes import on_arrays

SMALL, WIDE = format_named("e2m1_ieee"), Rounding(format_named("e4m3_ieee"))
A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
P = Product(A, B)
TERMS = [
    P, ExactSum((A, B)), ExactSum((P, C)), FusedSum((A, C), 0), Cut(ExactSum((A, C)), 2), ExactSum((C, Constant())),
    Round(ExactSum((P, C)), Rounding(format_named("e3m2_ieee"), "up")), Relu(ExactSum((A, C))),
]  # fmt: skip
#: formats that have all that is kept, and those without infinities, NaNs or zero
WHOLE = ["e2m1_ieee", "e3m2_ieee", "e2m2_extended"]
OTHERS = [format_named(name) for name in ("e2m1_all_ones", "e2m1_none", "e2m1_negative_zero", "int4")]


def unit_of(node: Node) -> Unit:
    return Unit(SMALL, SMALL, SMALL, 1, Round(ExactSum((node,)), WIDE))


def differing(one: Node, other: Node) -> int:
    """On how many of all inputs the two differ, as terms of an exact sum."""
    numbers = range(1 << SMALL.width)
    a, b, c = (np.array(column, np.uint64) for column in zip(*itertools.product(numbers, repeat=3), strict=True))
    results = (on_arrays(unit_of(node), (a[:, None], b[:, None], c)) for node in (one, other))
    return sum(x != y for x, y in zip(*results, strict=True))


@pytest.mark.all_inputs
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("number", range(len(TERMS)))
def test_what_is_rounded_is_rectified(number: int, name: str) -> None:
    """In every mode, with rules for zeros and subnormal numbers in turn."""
    for place, mode in enumerate(MODES):
        at = place + number
        how = Rounding(format_named(name), mode, subnormals=TINY[at % len(TINY)], zero=ZEROS[at // 3 % len(ZEROS)])
        node = Relu(Round(TERMS[number], how))
        found = rectified(Scope.of(unit_of(node)), node)
        assert found is not None
        assert isinstance(found.other, Round)
        assert isinstance(found.other.term, Relu)
        assert not isinstance(found.other.term.term, Relu)
        assert (found.counting, found.signs) == (True, True)
        assert not differing(node, found.other)


@pytest.mark.parametrize("fmt", OTHERS, ids=str)
def test_of_other_formats_it_says_nothing(fmt: Format) -> None:
    """A number below zero, or a NaN, would be another number there."""
    how = Rounding(fmt, overflow="infinity")
    node = Relu(Round(TERMS[2], how))
    assert rectified(Scope.of(unit_of(node)), node) is None
    assert differing(node, Round(Relu(TERMS[2]), how)) or fmt.is_integer or not fmt.has_nan


def test_of_other_rectifiers_it_says_nothing() -> None:
    """A small number below zero would become -0, and then stay it."""
    how = Rounding(SMALL, subnormals="flush_after")
    for node in (Relu(Round(C, how), zero="keep"), Relu(Round(C, how), nan="zero"), Relu(P), Relu(C)):
        assert rectified(Scope.of(unit_of(node)), node) is None
    lost = Rounding(SMALL, nan=0b1001)  # a number below zero for a NaN
    assert rectified(Scope.of(unit_of(C)), Relu(Round(C, lost))) is None
    assert differing(Relu(Round(C, lost)), Round(Relu(C), lost))


PLAN = """plan: rectified
formats: {{a: f16, b: f16, c: f16, d: f16}}
units: {{mma: ampere/mma/m16n8k16.f32.f16.f16.f32}}
roundings:
  r: round(f32, nearest_even)
  out: round(f16, nearest_even)
  other: round(f16, toward_zero)
steps: {{total: "r(exact(sum(mma, +0), c))", d: "{}"}}
"""


@pytest.mark.parametrize(
    ("one", "other", "multiples"),
    [
        ("out(relu(total))", "out(relu(out(total)))", 1),
        ("out(relu(total))", "out(relu(r(relu(total))))", 1),
        ("out(relu(total))", "out(relu(other(total)))", 0),
        ("out(relu(total, nan=zero))", "out(relu(out(total)))", 0),
    ],
)
def test_plans_that_rectify_before_or_after_a_rounding_are_proved_equal_for_every_k(
    one: str, other: str, multiples: int
) -> None:
    left, right = (parse_plan(PLAN.format(step), "plan.yaml", parse_reference) for step in (one, other))
    found = prove_plans(left, right)
    assert found.multiples == multiples
    assert (found.verdict == "equal") is (multiples == 1)
