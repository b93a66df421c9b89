"""What a theorem rests on stands in its goal: what is assumed of results so far, which roundings are kept, where
nothing may overflow. Rules read the goals of their premises, and not how these were derived."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib import import_module

import numpy as np
import pytest

from mmaprobe.queries.kernel import closed as lists
from mmaprobe.queries.kernel.bounds.enclosures import (
    Enclosed,
    NoOverflow,
    assumed,
    bound_places,
    element,
    exact,
    product,
    rounded,
    terms_of,
)
from mmaprobe.queries.kernel.bounds.forms import ERROR, NOUGHT, Factor, magnitude, number
from mmaprobe.queries.kernel.bounds.induction import carried, chained, closed, repeated
from mmaprobe.queries.kernel.bounds.parts import part, part_lemmas, rejoined
from mmaprobe.queries.kernel.bounds.table9 import sum_of, summed
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import bound_of, chain_of
from mmaprobe.queries.properties.bound_samples import covered
from mmaprobe.queries.properties.exact import ExactRow, numbers_of
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.nodes import Element, ExactSum, Index, Literal, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from tests import said
from tests.proofs.test_bounds import UNITS, every_row, small

believed = cache(said.believed)
F32, F16 = FORMATS["f32"], FORMATS["f16"]
A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
LOSES = RoundingLoses(F32, "nearest_even")


def unit_of(result: Node) -> Unit:
    return Unit(F16, F16, F32, 1, result)


def r(term: Node) -> Round:
    return Round(term, Rounding(F32))


def test_no_rule_reads_how_its_premises_were_derived() -> None:
    """Nor does what the rules of one module share."""
    modules = {*lists.RULES.values(), *lists.REWRITES.values(), *lists.LEMMAS.values()}
    used = {}
    for name in sorted(modules):
        file = import_module(name).__file__
        assert file is not None
        with open(file, encoding="utf-8") as text:
            reads = [one for one in ast.walk(ast.parse(text.read())) if isinstance(one, ast.Attribute)]
        if found := {one.attr for one in reads} & {"premises", "rule", "walk", "word", "arguments"}:
            used[name] = found
    assert not used


# -- what is assumed


def test_an_addend_is_not_both_a_previous_result_and_an_exact_input() -> None:
    """With an error E of the addend, the error of c + c is 2 E, not E."""
    total = ExactSum((C, C))
    unit = unit_of(r(total))
    exactly, previous = element(unit, C), assumed(unit, C, frozenset({F32}))
    with pytest.raises(RuleError, match="both as a previous result and as an exact input"):
        exact(total, (), [exactly, previous])
    with pytest.raises(RuleError, match="more than once"):
        chained(rounded(unit.result, (), [exact(total, (), [previous] * 2)], [believed(LOSES)]))


@pytest.mark.parametrize("start", [C, r(C)])
def test_nor_in_the_start_of_a_loop_and_in_its_body(start: Node) -> None:
    loop = Repeat(0, range(2), start, r(ExactSum((Running(0), C))))
    unit = unit_of(loop)
    formats = frozenset({F32})

    def of(node: Node, addend: Callable[[], Theorem]) -> Theorem:
        return addend() if node == C else rounded(node, (), [addend()], [believed(LOSES)])

    def previous() -> Theorem:
        return assumed(unit, C, formats)

    inner = exact(loop.body.term, (), [assumed(unit, Running(0), formats), previous()])  # type: ignore[attr-defined]
    body = rounded(loop.body, (), [inner], [believed(LOSES)])  # type: ignore[arg-type]
    assert repeated(loop, (), of(start, previous), body).goal.assuming  # type: ignore[attr-defined]
    with pytest.raises(RuleError, match="both as a previous result and as an exact input"):
        repeated(loop, (), of(start, lambda: element(unit, C)), body)


def test_a_goal_says_what_is_assumed() -> None:
    unit = parse_reference("ieee/fma/f32").unit
    assert chain_of(unit, believed).goal.statement().endswith(", if nothing overflows")
    for theorem in (closed(chain_of(unit, believed)), carried(chain_of(unit, believed), 2), bound_of(unit, believed)):
        assert theorem.goal.statement().endswith(", if nothing overflows")
    addend = assumed(unit, C, frozenset({F32}))
    assert addend.goal.statement() == "element: |v - x| <= E, where |v - x| <= E and |x| <= A of the addend"
    assert not element(unit, C).goal.provided  # type: ignore[attr-defined]
    for length in (None, 64):
        for theorem in bound_of_plan(parse_plan_reference("plan:cublas/split-k"), length, believed).walk():
            if type(theorem.goal).__name__ == "Summed":
                assert theorem.goal.statement().endswith(", if nothing overflows")


# -- where nothing may overflow


@pytest.mark.parametrize("name", UNITS)
def test_nothing_overflows_where_a_goal_says_so(name: str) -> None:
    """Of small formats, on inputs of all sizes; and it does overflow on some on which that is not said."""
    model = small(*UNITS[name])
    goal = bound_of(model.unit, believed).goal
    assert isinstance(goal, Enclosed)
    assert goal.provided
    table = every_row(model)[::13]
    _, admitted = covered(model, table)
    met = []
    for row in table[:: max(1, len(table) // 400)]:
        numbers = numbers_of(layout_of(model), row)
        assert numbers is not None
        inputs = ExactRow(model.unit, numbers)
        values = inputs.magnitude(inputs.exact)
        met.append(all(one.is_met(values) for one in goal.provided))
    chosen = admitted[:: max(1, len(table) // 400)]
    assert not (np.array(met) & ~chosen).any()
    assert any(met)


def test_a_rounding_that_is_kept_may_overflow_too() -> None:
    """x, rounded to a small format, and what that leaves of it: the goal says that x may not be too large."""
    low = Round(A, Rounding(FORMATS["e4m3"]))
    total = ExactSum((Product(low, B), C))
    unit = unit_of(r(total))
    kept = part(unit, low, (), list(map(believed, part_lemmas(low))))
    products = product(total.items[0], (), [kept, element(unit, B)])  # type: ignore[arg-type]
    goal = rejoined(exact(total, (), [products, element(unit, C)])).goal
    assert isinstance(goal, Enclosed)
    (one,) = goal.provided
    assert one.node == low
    assert one.is_met(lambda factor: Fraction(255))
    assert not one.is_met(lambda factor: Fraction(256))
    assert "if nothing overflows" in goal.statement()
    assert "x too" in kept.goal.statement()


def test_a_product_with_a_limit_is_below_it() -> None:
    times = Product(A, B, limit=4)
    unit = unit_of(r(ExactSum((times, C))))
    goal = product(times, (), [element(unit, A), element(unit, B)]).goal
    assert isinstance(goal, Enclosed)
    (one,) = goal.provided
    assert one.is_met(lambda factor: Fraction(3))
    assert not one.is_met(lambda factor: Fraction(4))


def test_a_sum_in_units_is_of_all_inputs() -> None:
    """Of products with a limit nothing is said in units of the alignment."""
    unit = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32").unit
    terms = []
    for item in sum_of(unit).items:
        for node, places in terms_of(item, {}):
            of = [element(unit, one, bound_places(one, dict(places))) for one in node.operands if node != C]
            terms.append(product(node, places, of) if isinstance(node, Product) else element(unit, C))
    with pytest.raises(RuleError, match="a lemma about the datapath is missing"):  # the terms are right
        summed(unit, terms, [])
    for one in terms[:1]:
        goal = replace(one.goal, provided=frozenset({NoOverflow(one.goal.node, one.goal.places)}))  # type: ignore
        with pytest.raises(RuleError, match="a term is not exact"):
            summed(unit, [said.assumed(goal), *terms[1:]], [])


def test_what_is_not_known_is_not_met() -> None:
    assert not NoOverflow(A, ()).is_met(lambda factor: Fraction(0))
    assert NoOverflow(A, (), 3, number(7)).is_met(lambda factor: Fraction(0))
    assert not NoOverflow(A, (), 3, number(8)).is_met(lambda factor: Fraction(0))


def test_a_result_so_far_is_what_the_loop_says() -> None:
    """Of a loop within a loop: each error in terms of the outer one's."""
    inner, outer = magnitude(ERROR, Index(1)), magnitude(ERROR, Index(0))
    one = NoOverflow(A, (), 5, inner).after(1, outer * 2, NOUGHT)
    assert one.after(0, number(15), NOUGHT).is_met(lambda factor: Fraction(0))
    assert not one.after(0, number(16), NOUGHT).is_met(lambda factor: Fraction(0))
    with pytest.raises(RuleError, match="the same level"):
        one.after(1, NOUGHT, NOUGHT)

    def nothing(factor: Factor) -> Fraction:
        raise RuleError(f"{factor.name} is not known")

    with pytest.raises(RuleError, match="error is not known"):
        one.is_met(nothing)


def test_an_error_that_shrinks_was_larger_before() -> None:
    """Of a loop that shrinks its result: the error of the first round is larger than that of the second, whose own
    products are zeros."""
    half = Literal(0x1400, F16)
    loop = Repeat(0, range(2), C, r(ExactSum((Product(r(Running(0)), half), r(Element("a", Index(0, ((0, 1),))))))))
    unit = Unit(F16, F16, F32, 2, loop)
    (whole,) = (one for one in bound_of(unit, believed).goal.provided if one.node == loop.body)  # type: ignore
    at_first = {Factor("a", 0): Fraction(1)}
    values = {factor.name: form.value(lambda one: at_first.get(one, Fraction(0))) for factor, form in whole.where}
    inner = Repeat(0, range(1), C, loop.body)
    once = bound_of(replace(unit, result=inner), believed).goal.facts.error  # type: ignore[attr-defined]
    assert values[ERROR] >= once.value(lambda one: at_first.get(one, Fraction(0)))
