"""Monotonicity: falls are replayed, what holds is proved, and nothing false is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.properties.rises import needed
from mmaprobe.queries.kernel.questions.statements import Monotonic, exchangeable, problems_of, symmetries_of
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties import monotonic, proving
from mmaprobe.queries.properties.falls import find_fall
from mmaprobe.queries.properties.monotonic import BY_RISES, prove_monotonic
from mmaprobe.queries.properties.proving import proofs_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.stored import witness_key
from mmaprobe.queries.search.witness import Witness, confirmed_witness, moved_input, replay
from mmaprobe.queries.solvers.store import Store
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference

pytestmark = pytest.mark.solvers

FAST = Options("bitwuzla", 60.0)
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k8.f32.f16.f16.f32"
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
SMALL = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3@length=2,block=2,fraction_bits=8"  # cut as Volta is, and quick
NORMAL = Inputs(finite=True, normal=True)
EVERY = Inputs()


LATE = "cdna3/mfma/f32_32x32x16_fp8_fp8@length=4,block=4,fraction_bits=8,late_fraction_bits=9"


def late_product(reference: str, raised: int) -> Monotonic:
    """A product of a step whose addend comes late, with factors so narrow that the proof is quick."""
    narrow = FORMATS["e2m1"]
    wide = parse_reference(reference)
    model = Model(reference, replace(wide.unit, a=narrow, b=narrow))
    return Monotonic(model, model, raised=raised)


def addend(reference: str, inputs: Inputs = EVERY) -> Monotonic:
    model = parse_reference(reference)
    return Monotonic(model, model, inputs)


def product(reference: str, inputs: Inputs = EVERY, raised: int = 0) -> Monotonic:
    model = parse_reference(reference)
    return Monotonic(model, model, inputs, raised=raised)


@pytest.mark.parametrize(
    "problem",
    [
        addend(VOLTA),
        addend(VOLTA, NORMAL),
        addend(AMPERE, NORMAL),
        addend("hopper/wgmma/m64n8k32.f32.e4m3.e4m3@length=8,block=8,fraction_bits=24"),  # results of 14 bits
        product(VOLTA),
        product(VOLTA, raised=2),
        product(f"{HOPPER}@fraction_bits=23", NORMAL),
        product(f"{HOPPER}@fraction_bits=23", NORMAL, raised=15),
    ],
    ids=lambda problem: f"{problem.left.reference} {problem.raised} {problem.inputs.normal}",
)
def test_a_fall_is_found_without_a_solver(problem: Monotonic) -> None:
    witness = find_fall(problem)
    assert witness is not None
    assert confirmed_witness(problem, witness.operands.every) == witness
    moved = moved_input(problem, witness.operands)
    assert moved != witness.operands


def test_a_stored_fall_is_evaluated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, sought = addend(VOLTA), list[Monotonic]()

    def find(problem: Monotonic) -> Witness | None:
        sought.append(problem)
        return find_fall(problem)

    monkeypatch.setattr(monotonic, "find_fall", find)
    with Store(tmp_path / "store.sqlite") as store:
        kept = replace(FAST, store=store)
        first = prove_monotonic(problem, kept, confirm=False)
        assert first.witness is not None
        assert prove_monotonic(problem, kept, confirm=False).witness == first.witness
        assert sought == [problem]
        assert prove_monotonic(problem, replace(kept, fresh=True), confirm=False).witness == first.witness
        assert sought == [problem] * 2
        zeros = [0] * len(problem.layout.formats)  # nothing falls there, whatever the store says
        store.record_result(witness_key(problem), {"verdict": "different", "input": zeros})
        assert prove_monotonic(problem, kept, confirm=False).witness == first.witness
        assert sought == [problem] * 3


def test_only_stored_answers_leave_an_evaluation_to_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems, evaluated = symmetries_of(parse_reference(SMALL), (0, 1)), list[int]()
    monkeypatch.setattr(proving, "check_problems", lambda problems: evaluated.append(len(problems)))
    with Store(tmp_path / "store.sqlite") as store:
        for stored, times in ((True, 1), (True, 1), (False, 2), (True, 2)):
            assert proving.verdict_of(proofs_of(problems, replace(FAST, store=store, stored=stored), False)) == "equal"
            assert len(evaluated) == times


def test_a_fall_is_looked_for_where_all_normal_products_are_small() -> None:
    model = parse_reference("ieee/fma/e4m3@length=1")
    narrow = replace(model.unit, a=format_named("e2m1b5_none"), b=format_named("e3m1b7_none"))
    small = Model("narrow", narrow)
    assert find_fall(Monotonic(small, small, NORMAL, raised=0)) is None


@pytest.mark.parametrize("raised", [4, -1])
def test_a_product_that_a_unit_does_not_have_cannot_rise(raised: int) -> None:
    """That no result falls is true of it, and a certificate stated it."""
    with pytest.raises(ParameterError, match=f"raised: {raised} is impossible; it takes a product from 0 to 3"):
        product("volta/mma/m8n8k4.f32.f16.f16.f32", raised=raised)


def test_a_power_of_two_as_addend_cuts_more_than_the_number_below_it() -> None:
    """As Fasi et al. 2021 have it: c from 1 - 2^-24 to 1, and four products of 2^-24."""
    problem = addend(VOLTA, NORMAL)
    row = (*[0x0C00] * 8, 0x3F7FFFFF, 0x3F800000)
    witness = confirmed_witness(problem, row)
    assert witness is not None
    assert (witness.left, witness.right) == (0x3F800001, 0x3F800000)


def test_the_same_product_of_other_factors_is_no_rise() -> None:
    """1.5 * 1.5 and 1.125 * 2 give different results beside small terms; neither product is larger."""
    rest = [0x0C00] * 3, [0x1000] * 3
    row = (0x3E00, *rest[0], 0x3E00, *rest[1], 0x34000000, 0x3C80, 0x4000)
    problem = product(VOLTA, NORMAL)
    assert confirmed_witness(problem, row) is None
    result = replay(problem, [row])
    assert (result.left[0], result.right[0]) == (0x40100002, 0x40100000)


@pytest.mark.parametrize(
    "problem",
    [
        product("ieee/fma/f16@length=2"),
        product(SMALL, NORMAL),
        product(f"{SMALL},align_rounding=nearest_even", NORMAL),
        addend(f"{SMALL},family=emulated-fp8"),
        addend("cdna3/mfma/f32_32x32x4_2b_bf16@length=2,block=2,late_sum_bits=none", NORMAL),
        late_product(LATE.replace("=4,", "=2,") + ",family=tr-fdpa", 0),
        late_product(LATE.replace("=4,", "=2,"), 1),
        late_product(LATE, 1),
        late_product(LATE.replace("=8,", "=4,"), 0),
    ],
    ids=lambda problem: f"{problem.left.reference} {problem.raised}",
)
def test_monotonic(problem: Monotonic) -> None:
    proof = prove_monotonic(problem, replace(FAST, timeout=240.0), confirm=False)
    assert proof.verdict == "equal"
    assert proof.why == BY_RISES
    assert {lemma.answer.status for lemma in proof.lemmas} <= {"unsat"}
    assert proof.witness is None


@pytest.mark.parametrize(
    "problem",
    [
        addend(SMALL, NORMAL),
        addend(f"{SMALL},align_rounding=nearest_even", NORMAL),
        product(SMALL),
        product(f"{SMALL},align_rounding=nearest_even"),
        product(f"{SMALL},fraction_bits=6".replace("fraction_bits=8,", ""), NORMAL),
        product(VOLTA),
        product(f"{HOPPER}@fraction_bits=23", NORMAL),
        late_product(LATE.replace("=8,", "=2,"), 0),
    ],
    ids=lambda problem: f"{problem.left.reference} {problem.raised} {type(problem).__name__}",
)
def test_what_is_false_does_not_follow_by_the_rule(problem: Monotonic) -> None:
    with pytest.raises(RuleError):
        needed(problem.left.unit, problem.raised, problem.inputs.normal)


@pytest.mark.parametrize("reference", [LATE, SMALL])
def test_orders_without_effect_bring_each_product_to_every_place(reference: str) -> None:
    model = parse_reference(reference)
    orders = symmetries_of(model, exchangeable(model)[0])
    reached, waiting = {0}, [0]
    while waiting:
        place = waiting.pop()
        waiting += [order.order[place] for order in orders if order.order[place] not in reached]
        reached |= set(waiting)
    assert reached == set(range(model.length))
    assert all(prove(order, FAST, confirm=False).verdict == "equal" for order in orders)


def test_an_interrupt_ends_the_work() -> None:
    def stop(text: str) -> None:
        raise KeyboardInterrupt

    (proof,) = proofs_of([addend("ieee/fma/f16")], replace(FAST, progress=stop), confirm=False)
    assert proof.interrupted
    assert proof.verdict == "unknown"


def test_without_the_rule_it_is_a_question_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monotonic, "_by_nodes", lambda *given: None)
    problem = addend(f"{SMALL},partials=normalised", Inputs(zero_terms=(0, 1)))
    proof = prove_monotonic(problem, FAST, confirm=False)
    assert proof.verdict == "equal"
    assert proof.verdict == "equal"
    assert proof.theorem is not None
    assert proof.theorem.rule == "agreed"
    assert {lemma.answer.status for lemma in proof.lemmas} == {"unsat"}


def test_a_part_proved_as_the_time_ends_leaves_the_next_one_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The property would be called proved, by the theorem about its first part alone."""
    model = parse_reference("ieee/fma/e2m1")
    ask = proving.prove_monotonic
    monkeypatch.setattr(proving, "prove_monotonic", lambda *given: replace(ask(*given), interrupted=True))
    problems = problems_of("monotonic", model, EVERY)
    assert len(problems) > 1
    proofs = proofs_of(problems, FAST, False)
    assert [proof.verdict for proof in proofs] == ["equal", "unknown"]
    assert proving.verdict_on("monotonic", proofs) == "unknown"
