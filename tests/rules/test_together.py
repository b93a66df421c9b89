"""What parts give together: each side condition of the rules fails once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mmaprobe.queries.kernel.equality.expressions import _moved, one_expression, one_form, one_sum
from mmaprobe.queries.kernel.properties.together import HasProperty, each_part, every_order, negates, raised_elsewhere
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Monotonic, Reordered, negations, problems_of, reorderings
from mmaprobe.queries.kernel.terms.facts import follows
from mmaprobe.queries.kernel.terms.same import Compared, SidesAgree, agreed
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.proving import established_theorem, proofs_of, verdict_on
from mmaprobe.queries.properties.signs import symmetry_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.base.errors import FaultError
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Each, Element, ExactSum, Index, Product
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.said import says

VOLTA = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32")
CHAIN = parse_reference("ieee/fma/f16@length=3")
FREE, FINITE = Inputs(), Inputs(finite=True)


def believed(problem: Problem) -> Theorem:
    """That its sides agree, whether they do or not: what a rule makes of it is asked here."""
    compared = Compared(problem)
    return agreed(compared, follows(compared, compared.never, [], [], says("unsat")))


def refused(text: str, make: object, *given: object) -> None:
    with pytest.raises(RuleError, match=text):
        make(*given)  # type: ignore[operator]


@pytest.fixture(scope="module")
def orders() -> list[Theorem]:
    return [believed(problem) for problem in reorderings(VOLTA)]


def test_every_order_needs_what_generates_all(orders: Sequence[Theorem]) -> None:
    found = every_order(VOLTA, FREE, "bits", orders)
    assert found.goal == HasProperty("order-independent", VOLTA, FREE, "bits")
    for part in orders:
        refused("not known that", every_order, VOLTA, FREE, "bits", [one for one in orders if one is not part])
    problem = reorderings(VOLTA)[0]
    refused("stand fixed", every_order, VOLTA, Inputs(zero_terms=(0,)), "bits", orders)
    refused("other inputs", every_order, VOLTA, FINITE, "bits", orders)
    refused("compares otherwise", every_order, VOLTA, FREE, "value", orders)
    refused("something else", every_order, CHAIN, FREE, "bits", orders)
    refused("something else", every_order, VOLTA, FREE, "bits", [*orders, believed(Problem(VOLTA, VOLTA))])
    refused(
        "not a permutation", every_order, VOLTA, FREE, "bits", [*orders, believed(replace(problem, order=(0, 0, 2, 3)))]
    )
    refused("another kind", every_order, VOLTA, FREE, "bits", [symmetry()])


def test_orders_are_of_each_step() -> None:
    """Two steps of two products: an exchange in each."""
    model = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32@length=4,block=2")
    parts = [believed(problem) for problem in reorderings(model)]
    assert len(parts) == 2
    assert every_order(model, FREE, "bits", parts)
    for part in parts:
        refused("not known that", every_order, model, FREE, "bits", [part])


def test_a_property_is_all_its_parts() -> None:
    problems = problems_of("monotonic", CHAIN, FREE)
    parts = [believed(problem) for problem in problems]
    found = each_part("monotonic", CHAIN, FREE, "bits", parts)
    assert found.goal == HasProperty("monotonic", CHAIN, FREE, "bits")
    for part in parts:
        refused("a part is not known", each_part, "monotonic", CHAIN, FREE, "bits",
                [one for one in parts if one is not part])  # fmt: skip
    refused("a part is not known", each_part, "monotonic", CHAIN, FINITE, "bits", parts)
    refused("a part is not known", each_part, "monotonic", CHAIN, FREE, "value", parts)
    refused("about every order", each_part, "order-independent", CHAIN, FREE, "bits", parts)
    refused("nothing", each_part, "nothing", CHAIN, FREE, "bits", parts)
    refused("one length|no shorter", each_part, "zero-padding", parse_reference("ieee/fma/f32"), FREE, "bits", parts)


def test_a_product_stands_for_those_that_orders_bring_there(orders: Sequence[Theorem]) -> None:
    known, wanted = believed(Monotonic(VOLTA, VOLTA, raised=0)), Monotonic(VOLTA, VOLTA, raised=2)
    assert raised_elsewhere(wanted, known, orders).goal == SidesAgree(wanted)
    swap = believed(Reordered(VOLTA, VOLTA, order=(1, 0, 2, 3)))
    assert raised_elsewhere(replace(wanted, raised=1), known, [swap])
    refused("brings the product there", raised_elsewhere, wanted, known, [swap])
    refused("brings the product there", raised_elsewhere, wanted, known, [])
    refused("the addend", raised_elsewhere, replace(wanted, raised=None), known, orders)
    refused("the addend", raised_elsewhere, wanted, believed(Monotonic(VOLTA, VOLTA)), orders)
    refused("other inputs", raised_elsewhere, replace(wanted, inputs=FINITE), known, orders)
    refused("of one model", raised_elsewhere, wanted, orders[0], orders)
    refused("not a Monotonic", raised_elsewhere, Problem(VOLTA, VOLTA), known, orders)
    other = parse_reference(f"{VOLTA.reference}@fraction_bits=24")
    refused("of one model", raised_elsewhere, replace(wanted, right=other), known, orders)
    refused("about another model", raised_elsewhere, Monotonic(other, other, raised=2), known, orders)
    fixed = Inputs(zero_terms=(3,))
    refused("stand fixed", raised_elsewhere, replace(wanted, inputs=fixed),
            believed(Monotonic(VOLTA, VOLTA, fixed, raised=0)), orders)  # fmt: skip
    by_value = [believed(replace(problem, compare="value")) for problem in reorderings(VOLTA)]
    refused("compares otherwise", raised_elsewhere, wanted, known, by_value)


def symmetry() -> Theorem:
    settle = Settled(Options("bitwuzla", 20.0), False, 10.0, needed=False)
    return symmetry_of(CHAIN.unit, settle)


def test_a_result_that_turns_is_symmetric() -> None:
    known, (problem,) = symmetry(), negations(CHAIN)
    assert negates(problem, known).goal == SidesAgree(problem)
    refused("the values of one model", negates, replace(problem, compare="bits"), known)
    other = parse_reference("ieee/fma/f16@length=3,output_rounding=up")
    refused("the values of one model", negates, replace(problem, right=other), known)
    refused("another unit", negates, negations(VOLTA)[0], known)


def test_expressions_of_two_units() -> None:
    wide = parse_reference(f"{VOLTA.reference}@fraction_bits=24")
    assert one_expression(Problem(VOLTA, VOLTA)).goal == SidesAgree(Problem(VOLTA, VOLTA))
    for make, more in ((one_expression, ()), (one_form, (None, None))):
        refused("differ", make, Problem(VOLTA, wide), *more)
        refused("operands", make, Problem(VOLTA, parse_reference(f"{VOLTA.reference}@length=3")), *more)
        refused("different inputs", make, negations(VOLTA)[0], *more)


def test_forms_are_of_the_units_of_the_problem() -> None:
    problem = Problem(VOLTA, parse_reference(f"{VOLTA.reference}@exponent_floor=-200"))
    (proof,) = proofs_of([problem], Options("bitwuzla", 60.0), confirm=False)
    assert proof.theorem is not None
    left, right = proof.theorem.premises
    assert one_form(problem, left, right).goal == SidesAgree(problem)
    refused("another unit", one_form, problem, right, left)
    refused("forms differ", one_form, problem, left, None)


def test_products_in_a_loop_have_no_place() -> None:
    loop = Index(0, ((1, 1),))
    terms = Each(1, range(4), Product(Element("a", loop), Element("b", loop)))
    refused("a loop is left", _moved, ExactSum((terms,)), (1, 0, 2, 3))


def test_an_order_is_of_terms_of_one_sum() -> None:
    first = reorderings(VOLTA)[0]
    assert one_sum(first).goal == SidesAgree(first)
    refused("not a permutation", one_sum, replace(first, order=(0, 0, 2, 3)))
    refused("one model", one_sum, replace(first, right=parse_reference(f"{VOLTA.reference}@fraction_bits=24")))
    refused("not a Reordered", one_sum, Problem(VOLTA, VOLTA))
    for problem in reorderings(CHAIN):
        refused("normal forms differ", one_sum, problem)


@pytest.mark.parametrize("wanted", ["order-independent", "monotonic-addend", "zero-padding"])
def test_a_verdict_on_a_property_is_a_theorem_about_it(wanted: str) -> None:
    problems = problems_of(wanted, VOLTA, FREE)
    proofs = [Proof(problem, theorem=believed(problem)) for problem in problems]
    assert {proof.verdict for proof in proofs} == {"equal"}
    assert established_theorem(wanted, proofs).goal == HasProperty(wanted, VOLTA, FREE, "bits")
    lacking = proofs[1:] or [Proof(Problem(VOLTA, VOLTA), theorem=believed(Problem(VOLTA, VOLTA)))]
    with pytest.raises(FaultError, match=f"called {wanted} without a theorem"):
        verdict_on(wanted, lacking)
