"""The checker's form of sums of sums: the same bits on every input, and no rounding left out that changes some."""

from __future__ import annotations

import json
import random
from dataclasses import asdict

import pytest
from queries.certificates.lossless import Lossless
from queries.certificates.writing_out import Numbers
from queries.checking.plans import plans_fault
from queries.properties.asked import plain

from benchmarks.plan_statements import plan, statement
from queries.kernel.merged import merged
from queries.plans.equal import prove_plans
from queries.search.distinguish import Options
from smtmodel.errors import InputError, ParameterError
from smtmodel.formats import Format
from smtmodel.nodes import Constant, Element, ExactSum, Index, Node, Product, Round
from smtmodel.nodes.round import Rounding
from smtmodel.plans.lowering import unit_of_plan
from smtmodel.unit import Unit
from smtmodel.unitfile import parse_unit
from tests.test_merged import disagreement, random_plans


def written(unit: Unit, positive: bool = False) -> tuple[Lossless, int, int]:
    """A unit written out: its result, and the form of it."""
    numbers = Numbers()
    formats = {name: asdict(getattr(unit, name)) for name in "abc"}
    lossless, result = Lossless(numbers, formats, positive), numbers.of_unit(plain(unit), numbers.element)
    return lossless, result, lossless.form(result)


def node_of(numbers: Numbers, number: int) -> Node:
    """The expression that a number is written out from."""
    match numbers.made_of[number]:
        case ("element", operand, place, subnormals, positive):
            return Element(operand, None if place is None else Index(place), subnormals, positive)
        case ("zero", negative):
            return Constant(negative)
        case ("exact", _, terms):
            return ExactSum(tuple(node_of(numbers, term) for term, _ in terms))
        case ("round", term, (text, nan, subnormals, zero), mode, overflow):
            how = Rounding(Format(**json.loads(text)), mode, overflow, subnormals, zero, nan)
            return Round(node_of(numbers, term), how)
        case ("product", left, right, own):
            return Product(node_of(numbers, left), node_of(numbers, right), **dict(json.loads(own)))
    raise AssertionError(numbers.made_of[number])


@pytest.mark.parametrize("first", range(0, 96, 24))
def test_the_form_has_the_same_bits(first: int) -> None:
    changed = 0
    for one in random_plans(first, 24):
        for length in random.Random(first).sample(range(1, 14), 4):
            try:
                unit = unit_of_plan(one, length)
            except ParameterError:
                continue
            if any("F=3" in str(model.unit) or "short" in model.reference for model in one.models):
                continue
            lossless, result, form = written(unit)
            after, _, other = written(unit, True)
            zeros = node_of(after.numbers, other) if after.never_minus(other) else None
            place = disagreement(unit, length, node_of(lossless.numbers, form), zeros)
            assert place is None, str(one.sums[0].stage)
            changed += form != result
    assert changed > 4


UNIT = """unit: one
formats: {{a: {ab}, b: {ab}, c: {c}, d: {c}}}
length: 2
roundings:
  r: round({c}, nearest_even{outer})
  q: round({inner})
steps:
  d: {step}
"""
INSIDE = "r(exact(q(exact(a[0] * b[0])), a[1] * b[1], c))"
AGAIN = "r(exact(q(exact(a[0] * b[0], a[1] * b[1], c)), {}))"
#: how it is rounded inside, the step, other things, and how many roundings are left
KEPT: list[tuple[str, str, dict[str, str], int]] = [
    ("e4m3, nearest_even", INSIDE, {}, 1),
    ("e4m3, toward_zero, overflow=saturate", INSIDE, {}, 1),
    ("e4m3, nearest_even, subnormals=flush_after", INSIDE, {}, 2),
    ("e4m3, nearest_even, zero=positive", INSIDE, {}, 1),  # as with +0 among its terms
    ("e4m3, nearest_even, zero=exact_positive", INSIDE, {}, 2),  # of one term, which has its own sign
    ("e4m3, nearest_even, zero=exact_positive", INSIDE.replace("a[0] * b[0]", "a[0] * b[0], +0"), {}, 1),
    ("e2m1, nearest_even, zero=exact_positive", INSIDE, {}, 2),  # -1/4 is rounded to -0
    ("e4m3, down", INSIDE, {}, 2),
    ("e4m3fnuz, nearest_even", INSIDE, {}, 2),  # no -0
    ("e4m3, nearest_even, nan=0x01", INSIDE, {}, 2),  # a NaN becomes a number
    ("e2m1, nearest_even", INSIDE, {}, 2),  # products finer than its smallest number
    ("e5m2, nearest_even", INSIDE, {}, 2),  # too few bits
    ("e2m3, nearest_even", INSIDE, {}, 2),  # too small a range
    ("f32, nearest_even", INSIDE, {"ab": "f16", "c": "f32"}, 1),
    ("e8m23_none, nearest_even, overflow=saturate", INSIDE, {"ab": "f16", "c": "f32"}, 2),  # no infinity
    ("f32, nearest_even, nan=0x00000000", INSIDE, {"ab": "f16", "c": "f32"}, 2),  # a NaN becomes +0
    ("f32, nearest_even", INSIDE, {"ab": "f32", "c": "f32"}, 2),
    ("e4m3, nearest_even", INSIDE.replace("exact(a[0] * b[0])", "exact(a[0] * b[0], c)"), {}, 2),  # two terms
    ("e4m3, nearest_even", INSIDE.replace("exact(a[0] * b[0])", "exact(a[0] * b[0], +0)"), {}, 1),
    ("e4m3, nearest_even", INSIDE, {"outer": ", subnormals=flush_after"}, 2),
    ("e4m3, nearest_even", INSIDE, {"outer": ", zero=positive"}, 1),
    ("e4m3, nearest_even", AGAIN.format("+0"), {}, 1),
    ("e4m3, nearest_even", AGAIN.format("-0"), {}, 2),
    ("e5m3_ieee, nearest_even", AGAIN.format("+0"), {}, 2),
    ("e5m2, nearest_even, nan=0x81", "r(exact(r(exact(q(exact(a[0] * b[0], c)), +0)), a[1] * b[1]))", {}, 3),
    ("e4m3, nearest_even, nan=0xff", AGAIN.format("+0"), {}, 2),
    # 3/16, the largest number, which products become, is finer than all of them, and than numbers of the outer format
    ("e2m1b6_none, nearest_even", "r(exact(r(exact(q(exact(a[0] * b[0])), +0)), c))", {"c": "e3m2b2_ieee"}, 3),
]  # fmt: skip


@pytest.mark.parametrize(("inner", "step", "other", "left"), KEPT)
def test_a_rounding_is_left_out_where_it_loses_nothing_and_nowhere_else(
    inner: str, step: str, other: dict[str, str], left: int
) -> None:
    text = UNIT.format(**{"ab": "e2m1", "c": "e4m3", "outer": "", "inner": inner, "step": step} | other)
    unit = parse_unit(text, "one.yaml")
    lossless, _, form = written(unit)
    assert rounded(lossless.numbers, form) == left
    assert disagreement(unit, 1, node_of(lossless.numbers, form)) is None
    assert disagreement(unit, 1, merged(unit)) is None


def rounded(numbers: Numbers, number: int) -> int:
    """How many roundings there are in an expression, without one twice."""
    found, waiting = set[int](), [number]
    while waiting:
        one = waiting.pop()
        match numbers.made_of[one]:
            case ("exact", _, terms):
                waiting += [term for term, _ in terms]
            case ("round", term, *_):
                found.add(one)
                waiting.append(term)
    return len(found)


def test_c_that_is_never_minus_zero_makes_a_sum_that_is_not() -> None:
    step = "r(exact(r(exact(a[0] * b[0], a[1] * b[1])), c))"
    unit = parse_unit(UNIT.format(ab="e2m1", c="e4m3", outer="", inner="e4m3, nearest_even", step=step), "one.yaml")
    for positive in (False, True):
        lossless, _, form = written(unit, positive)
        assert lossless.never_minus(form) == positive
        assert ("zero", False) in lossless.numbers.made_of or not positive


@pytest.mark.parametrize(("c", "step", "never"), [
    ("e4m3", "r(exact(a[0] * b[0], +0))", True), ("e2m1", "r(exact(a[0] * b[0], +0))", False),  # -1/4 is rounded to -0
    ("e4m3", "r(exact(a[0] * b[0], +0 * a[1]))", False),
])  # fmt: skip
def test_a_sum_with_plus_zero_is_minus_zero_only_where_it_is_rounded_to_it(c: str, step: str, never: bool) -> None:
    unit = parse_unit(UNIT.format(ab="e2m1", c=c, outer="", inner="e4m3, nearest_even", step=step), "one.yaml")
    lossless, _, form = written(unit)
    assert lossless.never_minus(form) is never


def test_a_product_with_a_limit_is_of_no_known_size() -> None:
    numbers = Numbers()
    how = {"subnormals": "keep", "positive_zeros": False}
    a, b = (numbers.element(name, 0, how) for name in "ab")
    unit = parse_unit(UNIT.format(ab="e2m1", c="e4m3", outer="", inner="e4m3, nearest_even", step=INSIDE), "one.yaml")
    lossless = Lossless(numbers, {name: asdict(getattr(unit, name)) for name in "abc"})
    sizes = [lossless._size(numbers.made("product", a, b, json.dumps([["limit", limit], ["normalised", False]])))
             for limit in (None, 5)]  # fmt: skip
    assert sizes == [(4, 6, True), None]


@pytest.mark.parametrize("first", [0, 40])
def test_what_the_rules_say_of_plans_is_what_the_checker_says(first: int) -> None:
    """Of random pairs: those that are proved equal without roundings that lose nothing are accepted for the K or
    multiples that are proved; the others, for one K, are not."""
    accepted = refused = 0
    for number in range(first, first + 40):
        stated = statement(number)
        try:
            left, right = plan(stated.left), plan(stated.right)
            proof = prove_plans(left, right, stated.length or 4, Options("bitwuzla", 0.0), confirm=False)
        except (InputError, ParameterError):
            continue
        length = stated.length or 4
        fault = plans_fault({"length": length, "multiples": 0}, left, right, [])
        if proof.verdict == "different":
            assert fault, (stated, proof)
            refused += 1
        elif proof.theorem is not None and not proof.proofs:
            multiples = proof.multiples
            assert not plans_fault({"length": length, "multiples": multiples}, left, right, []), stated
            accepted += "lose nothing" in " ".join(proof.rules)
    assert refused > 3
    assert accepted
