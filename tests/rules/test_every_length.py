"""Claims about every number of products: what is proved of them is true, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import mmaprobe
from benchmarks import random_schemes
from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.certificates.names import WITNESS
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.claims.algorithms import AlgorithmOutcome
from mmaprobe.queries.claims.shares import within_lengths, within_of
from mmaprobe.queries.claims.verify import verify
from mmaprobe.queries.kernel.bounds.enclosures import NoOverflow
from mmaprobe.queries.kernel.bounds.shares import Space, space_of
from mmaprobe.queries.kernel.bounds.unit_shares import ErrsUpTo, compares, for_every_length, of_plan, windows_of
from mmaprobe.queries.kernel.terms.undecided import NoInputDecides, NoLengthDecides
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.plans.gemm import simulate
from tests.claims.test_claim_stages import VOLTA, claim_of
from tests.plans.small_plans import small, values_of
from tests.said import believed

pytestmark = pytest.mark.solvers

BF16, FLUSHED = (f"multiword@words=1,products=1,unit=cdna2/mfma/{name}" for name in
                 ("f32_32x32x8bf16_1k", "f32_32x32x8f16"))  # fmt: skip
INPUTS = {"format": "f32", "a": [-24, -15], "b": [-8, 8], "c": "zero"}
SEVERAL = {"multiples": 8, "most": 65536}


def error(share: str, part: str = BF16, **changes: Any) -> Claim:
    return claim_of(f"error(p) <= {share} * magnitude_sum()",
                    **{"inputs": INPUTS, "parts": {"p": part}, "terms": SEVERAL} | changes)  # fmt: skip


def shares(claim: Claim) -> tuple[Fraction, Fraction]:
    goal = within_lengths(claim, believed)[0].goal
    assert isinstance(goal, ErrsUpTo)
    return goal.shares


@pytest.mark.parametrize("number", [0, 3, 5, 7, 10])
def test_no_input_of_a_random_scheme_errs_by_more_for_any_number_of_products(number: int, tmp_path: Path) -> None:
    found = random_schemes.compared_lengths(random_schemes.make(number, tmp_path), believed)
    assert not isinstance(found, str), found
    assert not found.wrong


def test_the_share_is_that_of_the_bound_of_the_plan() -> None:
    """For inputs in a window no number is subnormal: of the bound for one K the coefficient of |a b| is left."""
    plan = error("1").shape.parts["p"].plan
    (ab,) = (value for atom, value in error_of(bound_of_plan(plan, 65536, believed)).parts.items()
             if "".join(factor.name for (item,) in [atom] for factor in item) == "ab")  # fmt: skip
    least, most = shares(error("1"))
    assert ab <= most < ab * Fraction(10001, 10000)
    assert least < most


def test_a_word_that_is_read_as_zero_loses_no_more_than_itself() -> None:
    assert max(shares(error("1", FLUSHED))) < Fraction(5, 2)


def verified(claim: Claim) -> AlgorithmOutcome:
    return verify(claim, Options(timeout=60.0))


def test_a_claim_about_all_of_them_holds_or_is_refuted_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaprobe.queries.claims.verify.LONGER", 2.0)
    outcome = verified(error("(129 * 2**-14 + terms() * 2**-24)"))
    assert outcome.verdict == "holds"
    assert outcome.reached is not None
    assert outcome.share is not None
    assert 0 < outcome.reached <= outcome.share
    document = outcome.document
    assert document.claim.endswith(", for K = 8 n up to 65536")
    _, manifest = outcome.certify(tmp_path / "proved", Options())[0]
    assert manifest
    assert {one.kind for one in check_folder(tmp_path / "proved")} == {"fine"}


def test_conditions_may_read_the_result_that_is_compared() -> None:
    """It is a number on every input."""
    inputs = INPUTS | {"where": ["value(p) > 2**-30", "error(p) <= ulp(exact())"]}
    claim = error("2**-6", inputs=inputs, terms={"multiples": 8, "most": 4096})
    assert for_every_length(claim.assertion, known(claim)).goal == NoLengthDecides(claim.assertion)
    one = error("2**-6", inputs=inputs, terms=24)
    assert compares(one.assertion, within_of(one, believed)).goal == NoInputDecides(one.assertion)


def test_the_input_of_a_claim_about_all_of_them_is_given_as_numbers(tmp_path: Path) -> None:
    """It has more products than the fewest of the claim."""
    path = tmp_path / "mine.yaml"
    file = claim_of("terms() <= 8", inputs=INPUTS, parts={"p": BF16}, terms={"multiples": 8, "most": 32}).file
    path.write_text(yaml.safe_dump(file.data))
    (claim,) = mmaprobe.verify(path)
    assert claim.input is not None
    assert claim.document.vector is not None
    assert len(claim.input.a) == len(claim.input.b) == len(claim.document.vector.a) == 32
    assert claim.input.exact == sum(map(Fraction, map(float, claim.input.a * claim.input.b)))


def test_one_number_of_products_refutes_a_claim_about_all(tmp_path: Path) -> None:
    false = verified(error("2**-8", inputs=INPUTS | {"where": ["nonzero(a)"]}))
    assert false.verdict == "refuted"
    assert false.input is not None
    assert false.input.claim.terms in (8, 32)
    assert evaluate_claim(false.input.claim, np.array([false.input.row], dtype="uint64")).deciding.all()
    false.certify(tmp_path / "refuted", Options())
    assert (tmp_path / "refuted" / WITNESS).is_file()
    assert {one.kind for one in check_folder(tmp_path / "refuted")} == {"fine"}


def known(claim: Claim) -> list[Theorem]:
    return within_lengths(claim, believed)


CLAIM = error("(129 * 2**-14 + terms() * 2**-24)")
REFUSED: dict[str, Callable[[Claim], Claim]] = {
    "smaller for the largest K": lambda _: error("(129 * 2**-14 + terms() * 2**-30)"),
    "smaller for the smallest K": lambda _: error("(terms() * 2**-12)"),
    "a share that bends": lambda _: error("(1 + terms() * terms())"),
    "more products": lambda _: error("1", terms={"multiples": 8, "most": 131072}),
    "other products": lambda _: error("1", terms={"multiples": 16, "most": 65536}),
    "other inputs": lambda _: error("1", inputs=INPUTS | {"a": [-24, -14]}),
    "another part": lambda _: error("1", FLUSHED),
    "an addend": lambda _: error("1", inputs=INPUTS | {"c": [-8, 8]}),
    "one K alone": lambda claim: claim.at(8),
    "a condition that reads another result": lambda _: error("1", inputs=INPUTS | {"where": ["zero(q)"]},
                                                             parts={"p": BF16, "q": FLUSHED}),
}  # fmt: skip


@pytest.mark.parametrize("changed", REFUSED.values(), ids=REFUSED)
def test_no_other_claim_follows(changed: Callable[[Claim], Claim]) -> None:
    within = known(CLAIM)
    assert for_every_length(CLAIM.assertion, within).goal == NoLengthDecides(CLAIM.assertion)
    with pytest.raises(RuleError):
        for_every_length(changed(CLAIM).assertion, within)


def test_a_claim_about_several_is_none_about_one() -> None:
    with pytest.raises(RuleError, match="one number"):
        NoInputDecides(CLAIM.assertion)


def bound_and_space(claim: Claim = CLAIM) -> tuple[Theorem, Space, Part]:
    part, most = claim.shape.parts["p"], claim.assertion.most
    assert most is not None
    space = space_of(claim.assertion.at(most))
    return bound_of_plan(part.plan, None, believed, windows_of(space)), space, part


def test_the_bound_of_a_plan_is_of_its_inputs_and_multiples() -> None:
    bound, space, part = bound_and_space()
    of_plan(space, part, 8, bound)
    window = replace(space.window, a=(-24, -14))
    for other, first, what in ((space, 4, "multiple"), (space, 0, "multiple"), (replace(space, terms=12), 8, "mult"),
                               (replace(space, window=window), 8, "inputs")):  # fmt: skip
        with pytest.raises(RuleError, match=what):
            of_plan(other, part, first, bound)
    with pytest.raises(RuleError, match="not that of the part's result"):
        of_plan(space, Part(FLUSHED), 8, bound)
    with pytest.raises(RuleError, match="for any K"):
        of_plan(space, part, 8, bound_of_plan(part.plan, 64, believed, windows_of(space)))
    with pytest.raises(RuleError, match="inputs of the space"):
        of_plan(space, part, 8, bound_of_plan(part.plan, None, believed))


def test_the_first_run_alone_is_told_by_its_own_bound(tmp_path: Path) -> None:
    """Runs of two products are added: the formula begins with two of them. No input of one run, nor of many of more,
    errs by a larger share."""
    small(tmp_path, "e2m1", "e4m3_ieee", "+0", "add(2, mma, r)")
    inputs = {"format": "e2m1", "a": [0, 1], "b": [0, 1], "c": "zero"}
    claim = error("1", str(tmp_path / "small.yaml"), inputs=inputs, terms={"multiples": 2, "most": 8})
    least, most = shares(claim)
    rng, e2m1 = np.random.default_rng(1), claim.shape.factors
    numbers = [one for one, value in enumerate(values_of(e2m1)) if value == 0 or 1 <= abs(value) < 4]
    for count in (2, 4, 6, 8):
        every = np.stack(np.meshgrid(*[numbers] * count), -1).reshape(-1, count) if count == 2 else (
            rng.choice(numbers, (300, count)))  # fmt: skip
        a, b = every.astype(np.uint8), every.T.astype(np.uint8)
        plan = claim.shape.parts["p"].plan
        c = np.zeros((len(a), len(a)), dtype=np.uint8)
        x, y, d = (values_of(own)[side] for own, side in ((e2m1, a), (e2m1, b), (plan.d, simulate(a, b, c, plan))))
        whole = np.abs(x) @ np.abs(y)
        worst = (np.abs(d - x @ y)[whole > 0] / whole[whole > 0]).max()
        line = float(least + (most - least) * Fraction(count - 2, 6))
        assert worst <= line
        assert worst > line / 3
    bound, space, part = bound_and_space(claim)
    with pytest.raises(RuleError, match="K = 2 is wanted besides"):
        of_plan(space, part, 2, bound)
    with pytest.raises(RuleError, match="other bound is not for K = 2"):
        of_plan(space, part, 2, bound, bound_of_plan(part.plan, 4, believed, windows_of(space)))
    of_plan(space, part, 4, bound)


def test_what_may_overflow_for_the_largest_number_of_products_has_no_share() -> None:
    wide = {"format": "f32", "a": [0, 15], "b": [0, 15], "c": "zero"}
    part = f"multiword@words=1,products=1,unit=({VOLTA})"
    inputs = wide | {"a": [0, 13], "b": [0, 13]}
    shares(error("1", part, inputs=inputs, terms={"multiples": 4, "most": 1 << 20}))
    with pytest.raises(RuleError, match="may overflow"):  # a word of f16
        shares(error("1", part, inputs=wide, terms={"multiples": 4, "most": 1 << 20}))
    halves = VOLTA.replace("f32.f16.f16.f32", "f16.f16.f16.f16")
    small = {"format": "f16", "a": [-4, 0], "b": [-4, 0], "c": "zero"}
    shares(error("1", halves, inputs=small, terms={"multiples": 4, "most": 1 << 8}))
    with pytest.raises(RuleError, match="may overflow"):  # a sum in f16
        shares(error("1", halves, inputs=small, terms={"multiples": 4, "most": 1 << 15}))


def test_every_step_of_a_plan_says_what_may_not_overflow() -> None:
    bound, _, _ = bound_and_space(error("1", "plan:multiword/ootomo-yokota", terms={"multiples": 16, "most": 4096}))
    goal: Any = bound.goal
    hypotheses = [one for one in goal.provided if isinstance(one, NoOverflow)]
    assert all(one.most is not None for one in hypotheses)
    kinds = {(one.node.kind, one.each) for one in hypotheses}
    assert ("round", True) in kinds  # words, and instructions
    assert ("round", False) in kinds  # what is added outside


@pytest.mark.parametrize("terms", [{"multiples": 3, "most": 64}, {"multiples": 0, "most": 8}, {"multiples": 8}])
def test_faulty_numbers_of_products_are_named(terms: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"mine\.yaml"):
        claim_of("error(p) <= magnitude_sum()", inputs=INPUTS, parts={"p": BF16}, terms=terms)


def test_claims_of_another_kind_are_about_one_number_of_products() -> None:
    with pytest.raises(InputError, match="all inputs"):
        claim_of("error(p) <= magnitude_sum()", inputs=INPUTS, parts={"p": BF16}, terms=SEVERAL, quantifier="exists")
