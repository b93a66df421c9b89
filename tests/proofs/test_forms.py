"""Equality by expressions: those that are one, and those that have one normal form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.rewriting import AS_IEEE, neutral_zero_added, unreached_overflow
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import negations, reorderings
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.properties.forms import ANY_ORDER, SAME, by_expression, by_rewriting
from mmaprobe.queries.properties.proving import proofs_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit

pytestmark = pytest.mark.solvers

HOPPER, WGMMA = "hopper/mma/m16n8k16.f32.f16.f16.f32", "hopper/wgmma/m64n8k16.f32.f16.f16"
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
FAST = Options("bitwuzla", 60.0)


def pair(left: str, right: str) -> Problem:
    return Problem(parse_reference(left), parse_reference(right))


def why(problem: Problem) -> str:
    proof = by_expression(problem)
    assert proof is None or (proof.theorem is not None and proof.theorem.goal == SidesAgree(problem))
    return "" if proof is None else proof.why


@pytest.mark.parametrize(
    ("left", "right", "one"),
    [
        (HOPPER, WGMMA, True),
        (HOPPER, "blackwell/tcgen05mma/m64n8k16.f32.f16.f16", True),
        (HOPPER, f"{HOPPER}@fraction_bits=24", False),
        (VOLTA, f"{VOLTA}@length=3", False),
        (VOLTA, f"{VOLTA}@nan=7fc00000", False),  # both name the pattern, and not the same
        (VOLTA, f"{VOLTA}@nan=none", True),  # one names none: all NaNs are one
    ],
)
def test_what_is_one_expression(left: str, right: str, one: bool) -> None:
    assert (by_expression(pair(left, right)) is not None) == one
    assert (by_expression(pair(right, left)) is not None) == one


def test_a_property_is_about_two_inputs() -> None:
    """Both sides of it are one model, and what they are given differs: one expression if a sum adds all of it."""
    assert [why(problem) for problem in reorderings(parse_reference(VOLTA))] == [ANY_ORDER] * 2
    assert not any(map(by_expression, negations(parse_reference(VOLTA))))
    for reference in (f"{VOLTA}@block=1", "ieee/fma/f32@length=4", "x86/amx/tdpbf16ps"):
        assert not any(map(by_expression, reorderings(parse_reference(reference)))), reference


def test_one_expression_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Options, "ask", None)
    (proof,) = proofs_of([replace(pair(HOPPER, WGMMA), inputs=Inputs(finite=True))], FAST, confirm=True)
    assert (proof.verdict, proof.why, proof.lemmas) == ("equal", SAME, [])


def test_a_normal_form_is_a_proof_and_another_one_is_not() -> None:
    proof = by_rewriting(pair(VOLTA, f"{VOLTA}@exponent_floor=-200"), FAST)
    assert proof is not None
    assert proof.verdict == "equal"
    assert "floor below every term" in proof.why
    assert all(lemma.confirmed for lemma in proof.lemmas)
    for change in ("exponent_floor=-100", "fraction_bits=24", "zero_sign=ieee", "output_rounding=up"):
        assert by_rewriting(pair(VOLTA, f"{VOLTA}@{change}"), FAST) is None, change


def test_the_command_says_so() -> None:
    result = CliRunner().invoke(main, ["prove", HOPPER, WGMMA])
    assert (result.exit_code, result.stderr) == (0, f"equal: proved in 0.0 s: {SAME}\n")


def test_a_last_rounding_that_differs_is_another_expression() -> None:
    problem = pair(VOLTA, f"{VOLTA}@output_rounding=nearest_even")
    assert isinstance(problem.left.unit.result, Round)
    assert not by_expression(problem)


@pytest.mark.parametrize(
    ("products", "product", "enough"), [(64, "normalised", 7), (64, "unnormalised", 8), (256, "unnormalised", 10)]
)
def test_carry_bits_of_long_sums_are_settled_both_ways(products: int, product: str, enough: int) -> None:
    """Enough of them by a rule, and one fewer by an input on which the sum wraps."""
    base = f"{WGMMA}@length={products},block={products},product={product},carry_bits="
    one, two, three = (replace(pair(f"{base}{bits}", f"{base}{bits + 1}"), inputs=Inputs(finite=True))
                       for bits in (enough, enough - 1, enough + 1))  # fmt: skip
    for problem in (one, three):
        (proof,) = proofs_of([problem], FAST, confirm=True)
        assert proof.verdict == "equal"
        assert "carry bits that no sum needs" in proof.why
    if products == 64:
        (proof,) = proofs_of([two], FAST, confirm=True)
        assert proof.verdict == "different"
        assert proof.witness is not None
        assert proof.witness.left != proof.witness.right
    assert by_rewriting(two, FAST) is None


@pytest.mark.parametrize(
    ("total", "one"),
    [
        ("fused(a[0:2] * b[0:2], a[2:4] * b[2:4], c, F=[3, 9, 9])", False),
        ("fused(a[0:2] * b[0:2], a[2:4] * b[2:4], c, F=9, reach=[4, none, none])", False),
        ("fused(a[0:2] * b[0:2], a[2:4] * b[2:4], c, F=9, floors=[none, -3, none])", False),
        ("grid(a[0:2] * b[0:2], a[2:4] * b[2:4], c, F=[3, 9, 9])", False),
        ("grid(a[0] * b[0], a[1:4] * b[1:4], c, F=[9, 9, 9], frame=0)", False),
        ("fused(a[0:2] * b[0:2], a[2:4] * b[2:4], c, F=[9, 9, 3])", True),
        ("grid(a[0:2] * b[0:2], a[2:4] * b[2:4], c, F=[9, 9, 3], frame=2)", True),
    ],
)
def test_terms_of_one_sum_have_no_order_but_keep_what_goes_with_them(total: str, one: bool) -> None:
    head = "unit: four\nformats: {a: e4m3, b: e4m3, c: f32, d: f32}\nlength: 4\nroundings: {r: round(f32)}\n"
    model = Model("four.yaml", parse_unit(f"{head}steps: {{d: 'r({total})'}}", "four.yaml"))
    assert all(why(problem) == ANY_ORDER for problem in reorderings(model)) == one


PRODUCT = """unit: product
formats: {{a: {fmt}, b: {fmt}, c: none, d: {fmt}}}
length: 1
roundings: {{r: "round({fmt}, {mode})"}}
steps: {{d: "r({term})"}}
"""


@pytest.mark.parametrize(("mode", "zero"), [("nearest_even", "-0"), ("up", "-0"), ("down", "+0")])
def test_a_neutral_zero_beside_a_product_is_a_matter_of_rules(mode: str, zero: str) -> None:
    alone, added = (
        Model("x", parse_unit(PRODUCT.format(fmt="f64", mode=mode, term=term), "x.yaml"))
        for term in ("a[0] * b[0]", f"exact(a[0] * b[0], {zero})")
    )
    found = by_rewriting(Problem(alone, added), Options(timeout=60))
    assert found is not None
    assert "neutral zero added" in found.why


@pytest.mark.parametrize("mode", ["nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd"])
@pytest.mark.parametrize("negative", [False, True])
def test_every_input_of_a_small_format_agrees_with_a_neutral_zero_alone(mode: str, negative: bool) -> None:
    """In each mode the zero that the rule takes out changes no result, and the other one changes the sign of a zero."""
    zero = "-0" if negative else "+0"
    alone, added = (
        Model("x", parse_unit(PRODUCT.format(fmt="e2m1", mode=mode, term=term), "x.yaml"))
        for term in ("a[0] * b[0]", f"exact(a[0] * b[0], {zero})")
    )
    every = np.array([(x, y, 0) for x in range(16) for y in range(16)], dtype=np.uint64)
    one, other = evaluate_models([alone, added], every)
    assert (one == other).all() == (negative == (mode != "down"))
    replaced = neutral_zero_added(Scope.of(added.unit), added.unit.result)
    assert (replaced is not None) == (negative == (mode != "down"))


REACH = """unit: reach
formats: {{a: e2m1, b: e2m1, c: none, d: {fmt}}}
length: 2
roundings: {{r: "round({fmt}, {mode}, overflow={overflow})"}}
steps: {{d: "r(exact(a[0] * b[0], a[1] * b[1]))"}}
"""


@pytest.mark.parametrize("fmt", ["e2m3", "e3m2", "e4m3", "e5m2"])
def test_every_input_of_a_small_format_agrees_where_no_overflow_is_reached(fmt: str) -> None:
    """The rule applies in e4m3 and wider formats alone, below which some sum is beyond the largest number."""
    every = np.array([(x, y, z, 3, 0) for x in range(16) for y in range(16) for z in range(16)], dtype=np.uint64)
    for mode in ("nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd"):
        for overflow in ("ieee", "infinity", "saturate"):
            text = REACH.format(fmt=fmt, mode=mode, overflow=overflow)
            model = Model("x", parse_unit(text, "x.yaml"))
            found = unreached_overflow(Scope.of(model.unit), model.unit.result)
            if found is not None:
                assert not found.lemmas
                assert found.signs
                other = Model("y", replace(model.unit, result=found.other))
                one, two = evaluate_models([model, other], every)
                assert (one == two).all()
            named = overflow != "ieee" and overflow != AS_IEEE.get(mode)
            assert (found is not None) == (named and fmt in ("e4m3", "e5m2"))


BESIDE = """unit: beside
formats: {{a: {a}, b: e2m1, c: {fmt}, d: {fmt}}}
length: 1
roundings: {{r: "round({fmt}, {mode}, overflow={overflow})", q: "round(e5m2, up)"}}
steps: {{d: "r(exact({term}, c))"}}
"""


@pytest.mark.parametrize(
    ("a", "fmt", "term", "applies"),
    [
        ("e2m1", "e4m3", "a[0] * b[0]", False),
        ("e2m1", "e5m2", "a[0] * b[0]", True),
        ("e2m1", "e4m3", "a[0], b[0]", True),
        ("e2m1", "e4m3", "a[0], b[0], b[0]", False),
        ("e2m3", "e4m3", "a[0]", True),
        ("e2m3", "e4m3", "q(a[0])", True),
        ("e2m3", "e4m3", "q(a[0]), b[0]", True),
        ("e2m3", "e4m3", "q(a[0]), a[0], b[0]", False),
        ("e2m3", "e5m2", "q(a[0] * b[0])", True),
    ],
)
def test_every_small_number_beside_one_of_the_format_overflows_as_the_rule_says(
    a: str, fmt: str, term: str, applies: bool
) -> None:
    """What is added to a number of the format must be less than half a unit in the largest number's last place."""
    every = np.array([(x, y, z) for x in range(64) for y in range(16) for z in range(256)], dtype=np.uint64)
    every = every[every[:, 0] < 1 << FORMATS[a].width]
    for mode in ("nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd"):
        plain = AS_IEEE.get(mode, "ieee")
        for overflow in ("infinity", "saturate"):
            model = Model("x", parse_unit(BESIDE.format(a=a, fmt=fmt, mode=mode, overflow=overflow, term=term), "x"))
            node = model.unit.result
            assert isinstance(node, Round)
            found = unreached_overflow(Scope.of(model.unit), node)
            how = replace(node.rounding, overflow=plain)
            other = Model("y", replace(model.unit, result=replace(node, rounding=how)))
            one, two = evaluate_models([model, other], every)
            inward = mode in ("nearest_even", "nearest_away", "toward_zero")
            assert (found is not None) == (overflow != plain and applies and inward)
            if found is not None:
                assert found.other == other.unit.result
                assert (one == two).all()
