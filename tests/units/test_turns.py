"""Units of one turn of an unrolled loop, by their order: what they compute, what is no order, and how a tree of a sum
suggests them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mmaprobe.queries.order.tree import Leaf, Node, chain_of
from mmaprobe.queries.plans.turn_stages import turns_of
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.nodes import Constant
from mmaprobe.smtmodel.plans import (
    Chain,
    Plan,
    Products,
)
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text, step_text
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.turns import is_turn_of_one
from mmaprobe.smtmodel.units.unitfile import parse_unit

FMA = parse_reference("ieee/fma/f32")
#: what MKL's sgemv of rows adds in one turn on a processor with AVX-512
MKL = "c+6+4+(7+5)+(2+0+(3+1))"


def rounded(value: Fraction) -> Fraction:
    """To f32, ties to even; for values in its normal range."""
    if not value:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    exponent -= abs(value) < Fraction(2) ** exponent
    unit = Fraction(2) ** (exponent - 23)
    return round(value / unit) * unit


def by_hand(a: list[Fraction], b: list[Fraction], c: Fraction) -> Fraction:
    """One turn of MKL's loop, written out."""
    r, x = rounded, [one * other for one, other in zip(a, b, strict=True)]
    total = r(r(c + x[6]) + x[4])
    total = r(total + r(r(x[7]) + x[5]))
    return r(total + r(r(r(x[2]) + x[0]) + r(r(x[3]) + x[1])))


def test_a_turn_computes_as_it_is_written() -> None:
    model, rng = parse_reference(f"ieee/turn/f32/{MKL}"), np.random.default_rng(5)
    for _ in range(50):
        numbers = (rng.standard_normal(17) * 2.0 ** rng.integers(-6, 7, 17)).astype(np.float32)
        a, b, c = numbers[:8], numbers[8:16], numbers[16:]
        exact = [[Fraction(float(x)) for x in side] for side in (a, b, c)]
        patterns = [side.view(np.uint32).tolist() for side in (a, b, c)]
        found = evaluate_row(model, Operands(tuple(patterns[0]), tuple(patterns[1]), patterns[2][0]))
        assert Fraction(float(np.uint32(found).view(np.float32))) == by_hand(exact[0], exact[1], exact[2][0])


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("1+0", "it begins with c"), ("c", "each product from 0 on once"), ("c+1", "each product from 0 on once"),
        ("c+0+0", "each product from 0 on once"), ("c+0+(1+2", "a bracket is not closed"),
        ("c+0)", r"\+ is missing before '\)'"), ("c++0", "'\\+' stands where a product"),
        ("c+x", "made of c, numbers"), ("c+0+(c+1)", "'c' stands where"), ("", "made of c, numbers"),
        ("+".join(["c", *map(str, range(65))]), "at most 64 products"),
    ],
)  # fmt: skip
def test_what_is_no_order_is_said(order: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_reference(f"ieee/turn/f32/{order}")
    with pytest.raises(UnknownNameError):
        parse_reference("ieee/turn/f33/c+0")


def test_an_order_has_no_parameters() -> None:
    with pytest.raises(ParameterError, match="is an order of additions: it has no parameters"):
        parse_reference("ieee/turn/f32/c+0@nan=7fffffff")


def tree_of(length: int) -> Node | Leaf:
    """The tree of MKL's loop."""

    def two(x: Node | Leaf, y: Node | Leaf) -> Node:
        return Node("binary", (x, y))

    total: Node | Leaf | None = None
    for k in range(0, length - length % 8, 8):
        odd, last = two(k + 7, k + 5), two(two(k, k + 2), two(k + 3, k + 1))
        begun = two(k + 4, k + 6) if total is None else two(two(total, k + 6), k + 4)
        total = two(two(begun, odd), last)
    assert total is not None
    return chain_of([total, *range(length - length % 8, length)])


@pytest.mark.parametrize("length", [16, 27, 40])
def test_a_tree_suggests_a_turn(length: int) -> None:
    """Each of the three pairs of products in either order: eight units, and the chain of the right one is a plan whose
    text is read back."""
    found = list(turns_of(tree_of(length), FMA))
    wanted = Chain(parse_reference(f"ieee/turn/f32/{MKL}"), Chain(FMA))
    assert len(found) == len(set(found)) == 8
    assert wanted in found
    plan = Plan(*[FORMATS["f32"]] * 3, Products(wanted, Constant()), reference="turns")
    assert parse_plan(plan_text(plan), "turns", parse_reference) == plan
    assert step_text(plan)[0] == f"sum(chain({MKL}, tail=fma), +0)"


UNIT = """unit: mine
formats: {{a: f32, b: f32, c: f32, d: f32}}
length: 1
roundings:
  r: round(f32, {mode})
steps:
  d: r(exact({terms}))
"""


@pytest.mark.parametrize(("terms", "mode", "one"), [
    ("a[0] * b[0], c", "nearest_even", True), ("c, a[0] * b[0]", "nearest_even", True),
    ("a[0] * b[0], c", "toward_zero", False), ("a[0] * b[0]", "nearest_even", False),
])  # fmt: skip
def test_a_turn_is_of_plain_fused_products(terms: str, mode: str, one: bool) -> None:
    """Told by what a unit computes, not by its name."""
    assert is_turn_of_one(parse_unit(UNIT.format(terms=terms, mode=mode), "mine")) == one


def test_no_turn_is_known_of_one_that_reads_subnormals_as_zero() -> None:
    assert is_turn_of_one(FMA.unit)
    flushing = parse_reference("ieee/fma/f32@flush_inputs=true")
    assert not is_turn_of_one(flushing.unit)
    assert not list(turns_of(tree_of(16), flushing))


@pytest.mark.parametrize("tree", [chain_of(range(20)), chain_of([chain_of(range(n, n + 4)) for n in range(0, 20, 4)])])
def test_chains_and_blocks_are_no_turns(tree: Node | Leaf) -> None:
    assert not list(turns_of(tree, FMA))


def test_units_are_named_by_their_instruction_in_the_text_of_a_plan() -> None:
    plan = Plan.chained(parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32"))
    assert "units:\n  mma: hopper/mma/" in plan_text(plan)
    turn = Plan.chained(parse_reference("ieee/turn/f64/c+1+0"))
    assert "units:\n  turn: ieee/turn/f64/c+1+0" in plan_text(turn)
