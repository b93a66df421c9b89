"""Properties of every instruction: their records replayed by the oracle, their page, claims about them, symmetry."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from benchmarks.properties import COLUMNS, PAGE, RECORDS, alike, arithmetic, current, page
from benchmarks.sides import results_of
from mmaprobe.documents.parts import plain
from mmaprobe.hypotheses.claim import build_claims, claims, claims_named
from mmaprobe.hypotheses.family import parameters_of
from mmaprobe.hypotheses.unit_claims import PropertyClaim
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.claims.properties import conjecture_of, verify_property
from mmaprobe.queries.equality.certify import wholes_of
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.equality.expressions import one_expression
from mmaprobe.queries.kernel.properties.together import HasProperty
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import negations, problems_of, raised_products
from mmaprobe.queries.kernel.terms.same import Compared
from mmaprobe.queries.properties import proving
from mmaprobe.queries.properties.proving import established_theorem, proofs_of, verdict_of
from mmaprobe.queries.properties.report import pair_proof
from mmaprobe.queries.properties.signs import BY_NODES
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.inputs.vectors import parse_row
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests import said
from tests.oracles import node_oracle, oracle
from tests.search.test_distinguish import result

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
FP8 = "rtx-blackwell/mma/m16n8k32.f16.e2m1.e2m1.f16@length=4,block=4"
RESULTS = ("results", "other_side")
Row = dict[str, Any]
RECORDED: list[Row] = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]


def operands_of(row: Row) -> Operands[int]:
    return parse_row({key: value for key, value in row.items() if key not in RESULTS}).operands


def value(model: Model, pattern: int) -> oracle.Decoded:
    return oracle.decode(model.d.name, pattern)


def product_value(model: Model, operands: Operands[int], k: int) -> Any:
    return oracle.multiply(oracle.decode(model.a.name, operands.a[k]), oracle.decode(model.b.name, operands.b[k])).value


def below(x: oracle.Decoded, y: oracle.Decoded) -> bool:
    """Whether a number or infinity is below another one."""

    def key(number: oracle.Decoded) -> tuple[int, Any]:
        infinite = number.kind == "inf"
        return (-1 if number.sign else 1) if infinite else 0, 0 if infinite else number.value

    assert "nan" not in (x.kind, y.kind)
    return key(x) < key(y)


def test_the_page_prints_what_the_model_gives_for_each_side() -> None:
    refuted = [record for record in RECORDED if record["property"] == "sign-symmetric" and record["vector"]]
    assert len(refuted) == 16
    for record in refuted:
        row, model = record["vector"], parse_reference(record["instruction"])
        sides = (operands_of(row), operands_of(row.get("other_side", row)))
        assert [int(d, 16) for d in results_of(record["sides"], record["vector"]["results"])] == [
            result(model, side) for side in sides
        ]


def mean(model: Model, operands: Operands[int]) -> Fraction:
    """Of the results over all random bits."""
    numbers = range(1 << model.formats["random"].width)
    given = [node_oracle.evaluate(model.unit, operands.a, operands.b, operands.c, random=r) for r in numbers]
    return sum((Fraction(oracle.decode(model.d.name, d).value) for d in given), Fraction(0)) / len(given)


def exact_sum(model: Model, operands: Operands[int]) -> Fraction:
    products = (Fraction(product_value(model, operands, k)) for k in range(len(operands.a)))
    return sum(products, Fraction(oracle.decode(model.c.name, operands.c).value))


def breaks(wanted: str, row: Row) -> bool:
    """Whether a vector breaks a property by exact rationals, with the results that it states."""
    model, operands = parse_reference(row["model"]), operands_of(row)
    other = operands_of(row["other_side"]) if "other_side" in row else operands
    if wanted == "unbiased":
        return mean(model, operands) != exact_sum(model, operands)
    first, second = (result(model, side) for side in (operands, other))
    x, y = value(model, first), value(model, second)
    if wanted == "sign-symmetric":
        assert oracle.decode(model.c.name, operands.c).value == -oracle.decode(model.c.name, other.c).value
        return (x.kind, x.value) != (y.kind, -y.value) or (x.kind == "inf" and x.sign == y.sign)
    assert [first, second] == [int(bits, 16) for bits in row["results"]]
    if wanted == "order-independent":
        pairs = [sorted(zip(side.a, side.b, strict=True)) for side in (operands, other)]
        assert pairs[0] == pairs[1]
        assert operands.c == other.c
        return first != second
    if wanted == "monotonic-addend":
        assert (operands.a, operands.b) == (other.a, other.b)
        assert not below(oracle.decode(model.c.name, other.c), oracle.decode(model.c.name, operands.c))
    else:
        raised = [k for k in range(model.length) if (operands.a[k], operands.b[k]) != (other.a[k], other.b[k])]
        assert len(raised) == 1
        assert product_value(model, operands, raised[0]) < product_value(model, other, raised[0])
    return below(y, x)


def test_recorded_counterexamples_by_the_oracle() -> None:
    refuted = [record for record in RECORDED if record["verdict"] == "refuted"]
    assert refuted
    for record in refuted:
        assert breaks(record["property"], record["vector"]), record["instruction"]


def test_a_vector_that_breaks_nothing_is_seen() -> None:
    record = next(r for r in RECORDED if r["verdict"] == "refuted" and r["property"] == "monotonic-addend")
    row = dict(record["vector"])
    row["other_side"] = {key: row[key] for key in row if key not in RESULTS}
    row["results"] = [row["results"][0]] * 2
    assert not breaks("monotonic-addend", row)


def test_the_page_is_made_from_the_records() -> None:
    """Each stands for an arithmetic of the table, as it is now, and a property; the page says what they say."""
    known = {group[0] for group in alike()}
    asked = [(record["instruction"], record["property"]) for record in RECORDED]
    assert len(set(asked)) == len(asked)
    assert all(instruction in known and wanted in COLUMNS for instruction, wanted in asked)
    assert list(current(RECORDED).values()) == RECORDED
    assert PAGE.read_text(encoding="utf-8") == page(RECORDED)


def test_a_record_of_another_arithmetic_counts_for_nothing() -> None:
    record = RECORDED[0]
    stale = {**record, "arithmetic": arithmetic(f"{record['instruction']}@output_rounding=up")}
    assert current([stale]) == {}
    assert page([stale]) == page([])


PROPERTY_CLAIMS = [case for cases in claims().values() for case in cases if isinstance(case, PropertyClaim)]


@pytest.mark.parametrize("claim", [c for c in PROPERTY_CLAIMS if c.expect == "refuted"], ids=lambda claim: claim.id)
def test_refuted_claims_by_the_oracle(claim: PropertyClaim) -> None:
    outcome = decide(claim, Options(timeout=120))
    assert outcome.verdict == "refuted"
    assert outcome.refuting is not None
    assert breaks(claim.wanted, json.loads(json.dumps(pair_proof(outcome.refuting).vector, default=plain)))


def test_a_claim_about_two_models() -> None:
    text = f"""
id: mine
about: an example
source: nobody
says: nothing
expect: refuted
model: {VOLTA}
other: {VOLTA}@fraction_bits=24
property: equal
"""
    (claim,) = build_claims(read_yaml(text, "mine.yaml"))
    assert isinstance(claim, PropertyClaim)
    assert [parameters_of(p.right)["fraction_bits"] for p in conjecture_of(claim).problems] == [24]
    assert decide(claim, Options(timeout=60)).as_expected
    for broken in (text.replace("property: equal", "property: exact"), text.replace("  other", "  other").replace(
        f"other: {VOLTA}@fraction_bits=24\n", "")):  # fmt: skip
        with pytest.raises(InputError, match="two models"):
            build_claims(read_yaml(broken, "mine.yaml"))


def test_of_one_product_every_order_is_the_same() -> None:
    """It has one order, and the verdict is a theorem about it as any other."""
    head = {"id": "one", "about": "an example", "source": "nobody", "says": "nothing", "expect": "holds"}
    asked = {"model": "ieee/fma/f32@length=1", "property": "order-independent"}
    (claim,) = build_claims(read_yaml(json.dumps(head | asked), "one.yaml"))
    assert isinstance(claim, PropertyClaim)
    outcome = verify_property(claim, Options(timeout=20))
    assert outcome.verdict == "holds"
    goal = HasProperty("order-independent", claim.model, Inputs(), "bits")
    assert established_theorem("order-independent", outcome.proofs).goal == goal
    outcome.proofs = []
    assert outcome.verdict == "unknown"


def test_nothing_proved_is_nothing_established() -> None:
    assert verdict_of([]) == "unknown"


def test_a_proof_on_which_nothing_rests_is_not_in_a_certificate() -> None:
    problem = Problem(parse_reference(VOLTA), parse_reference(f"{VOLTA}@carry_bits=4"))
    proof = prove(problem, Options("bitwuzla", 60.0), confirm=False)
    assert proof.theorem is not None
    assert proof.theorem.rule == "agreed"
    other = one_expression(Problem(problem.left, problem.left))
    assert wholes_of([other], [proof], Options())[0] == {}
    assert list(wholes_of([proof.theorem], [proof], Options())[0]) == [proof.theorem]


def test_one_case_of_a_property() -> None:
    (claim,) = claims_named(f"symmetric-truncation@model={VOLTA}")
    assert claim.part_texts == {"d": VOLTA}
    assert claim.text == "sign-symmetric"


# --- products of one step, by the order of its products --------------------------------------------------------------


def test_one_product_stands_for_those_of_its_step() -> None:
    """The order of a step's products is proved once, and then the other products need no proof of their own."""
    problems = raised_products(parse_reference(f"{FP8},fraction_bits=8"))
    proofs = proofs_of(problems, Options(timeout=120), confirm=False)
    assert [proof.verdict for proof in proofs] == ["equal"] * len(proofs)
    kinds = [type(proof.problem).__name__ for proof in proofs]
    assert kinds == ["Monotonic", "Reordered", "Reordered"]


@pytest.mark.slow
def test_restrictions_of_one_product_leave_no_symmetry() -> None:
    inputs = Inputs(zero_terms=(1,))
    model = parse_reference(FP8.replace("length=4,block=4", "length=3,block=3,fraction_bits=8"))
    problems = problems_of("monotonic-product", model, inputs)
    kinds = [type(proof.problem).__name__ for proof in proofs_of(problems, Options(timeout=120), confirm=False)]
    assert kinds == ["Monotonic", "Monotonic"]


# --- sign symmetry of sums that are scaled ----------------------------------------------------------------------------


def test_a_negated_sum_is_of_the_same_two_sums() -> None:
    """In terms: the positive magnitudes of the one side are the negative ones of the other."""
    (problem,) = negations(parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32@length=2"))
    positive, negative, *other = Compared(problem).carrier.addends
    assert other == [negative, positive]


def test_signs_of_sums_of_scale_blocks() -> None:
    model = "blackwell/tcgen05mma_block_scale/m64n8k64.block32.f32.e2m1.e2m1.ue8m0@length=32,block=32,group=8"
    (proof,) = proofs_of(negations(parse_reference(model)), Options(timeout=120), confirm=False)
    assert (proof.verdict, proof.why) == ("equal", BY_NODES)
    (proof,) = proofs_of(negations(parse_reference(f"{model},align_rounding=down")), Options(timeout=60), confirm=False)
    assert proof.verdict == "different"


def test_an_interrupt_during_a_part_ends_the_work() -> None:
    def stop(text: str) -> None:
        if text:
            raise KeyboardInterrupt

    problems = problems_of("zero-padding", parse_reference(VOLTA), Inputs())
    proofs = proofs_of(problems, Options(timeout=60, progress=stop), confirm=False)
    assert [proof.problem for proof in proofs] == problems[:1]
    assert proofs[0].verdict == "unknown"
    assert proofs[0].interrupted


def test_an_interrupt_between_two_proofs_leaves_the_rest_unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse_reference(f"{VOLTA}@length=2,block=2")
    problems = problems_of("order-independent", model, Inputs())
    proved = []

    def first_only(problem: Problem, *_: object) -> Proof:
        if proved:
            raise KeyboardInterrupt
        proved.append(problem)
        return said.proved(problem)

    monkeypatch.setattr(proving, "by_form", first_only)
    found = proofs_of([*problems, *problems], Options(timeout=1), confirm=False)
    assert verdict_of(found) == "unknown"
    assert found[-1].interrupted
