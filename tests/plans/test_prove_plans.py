"""Two plans: equal by normal form and by induction, different with a replayed input; the normal form keeps values."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.kernel.equality.plan_units import FormsAgree
from mmaprobe.queries.kernel.equality.stages import StagesAgree
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.plans import equal as asked
from mmaprobe.queries.plans.certify import certify_plans
from mmaprobe.queries.plans.equal import PlanProof, places_asked, prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.errors import FaultError, ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_models, evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.vectors import vector_of
from mmaprobe.smtmodel.nodes import Each, Element, ExactSum, Index, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Plan, Stage
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from tests.plans.test_plans import SUMS, TEXT, plan_of
from tests.said import assumed

pytestmark = pytest.mark.solvers

AMPERE16, AMPERE8 = (f"ampere/mma/m16n8k{k}.f32.f16.f16.f32" for k in (16, 8))
F16, F32 = (parse_reference("ieee/fma/f32.f16.f16.f32").a, parse_reference("ieee/fma/f32").a)
R = Rounding(F32)


def prove(left: Plan | str, right: Plan | str, length: int | None = None) -> PlanProof:
    sides = [parse_plan_reference(plan) if isinstance(plan, str) else plan for plan in (left, right)]
    return prove_plans(sides[0], sides[1], length, Options(solver="bitwuzla", timeout=60.0))


def with_units(step: str, mma: str, fma: str = "ieee/fma/f32.f16.f16.f32") -> Plan:
    return plan_of(step, **{"volta/mma/m8n8k4.f32.f16.f16.f32": mma, "ieee/fma/f32.f16.f16.f32": fma})


# -- the normal form


@pytest.mark.parametrize("stage", SUMS)
def test_the_normal_form_keeps_values(stage: str) -> None:
    unit = unit_of_plan(plan_of(f"sum({stage}, c)"), SUMS[stage][-1])
    other = Model("normal", replace(unit, result=normal(unit.result)))
    table = sample_rows(layout_of(other), 300, seed=5)
    left, right = evaluate_models([Model("as it is", unit), other], table)
    assert left.tolist() == right.tolist()
    assert normal(normal(unit.result)) == normal(unit.result)


@pytest.mark.parametrize(
    "reference", [AMPERE16, "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16", "cdna2/mfma/f32_32x32x8f16",
                  "cdna3/mfma/f32_32x32x16_fp8_bf8", "x86/amx/tdpbf16ps"]
)  # fmt: skip
def test_the_normal_form_of_units_keeps_values(reference: str) -> None:
    model = parse_reference(reference)
    other = Model("normal", replace(model.unit, result=normal(model.unit.result)))
    left, right = evaluate_models([model, other], sample_rows(layout_of(model), 500, seed=6))
    assert left.tolist() == right.tolist()


def product(index: Index) -> Product:
    return Product(Element("a", index), Element("b", index))


def chain(level: int, places: range | tuple[int, ...], start: Element | Repeat | Running, index: Index) -> Repeat:
    return Repeat(level, places, start, Round(ExactSum((Running(level), product(index))), R))


def test_rules_of_the_normal_form() -> None:
    c, i, ij = Element("c"), Index(0, ((1, 1),)), Index(0, ((1, 4), (2, 1)))
    whole = normal(chain(1, range(8), c, i))
    assert normal(Repeat(1, range(2), c, chain(2, range(4), Running(1), ij))) == whole  # nested
    assert normal(chain(1, range(4, 8), chain(1, range(4), c, i), i)) == whole  # joined
    assert normal(chain(1, range(4), chain(1, range(4), c, i), Index(4, ((1, 1),)))) != normal(chain(1, range(4), c, i))
    assert normal(chain(1, range(0, 16, 2), c, i)) == normal(chain(1, range(8), c, Index(0, ((1, 2),))))  # variable
    assert normal(chain(1, range(1, 9), c, Index(-1, ((1, 1),)))) == whole
    assert normal(chain(1, (3,), c, i)) == Round(ExactSum(tuple(sorted((c, product(Index(3))), key=hash))), R)
    rounded = Round(c, R)
    assert normal(Round(rounded, R)) == rounded  # fixed point
    for other in (replace(R, subnormals="flush_after"), replace(R, zero="positive"), replace(R, nan=0x7FFFFFFF)):
        assert normal(Round(rounded, other)) == Round(rounded, other)
    assert normal(Round(rounded, replace(R, mode="down"))) == rounded
    one, other = product(Index(0)), product(Index(1))
    assert normal(ExactSum((one, other))) == normal(ExactSum((other, one)))  # commuted


C, ONE, IJ = Element("c"), Index(0, ((1, 1),)), Index(0, ((1, 2), (2, 1)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (chain(1, range(8), C, ONE), chain(1, range(7), C, ONE)),
        (chain(1, range(8), C, ONE), chain(1, range(1, 9), C, ONE)),
        (chain(1, (0, 1, 2), C, ONE), chain(1, (0, 2, 1), C, ONE)),
        (
            Repeat(1, range(2), C, chain(2, range(2), C, IJ)),
            Repeat(1, range(2), C, chain(2, range(2), Running(1), IJ)),
        ),
        (
            Repeat(1, range(2), C, Repeat(2, range(2), Running(1), Round(ExactSum((Running(1), product(IJ))), R))),
            chain(1, range(4), C, ONE),
        ),
        (ExactSum((Each(1, range(4), product(ONE)),)), ExactSum((Each(1, range(3), product(ONE)),))),
    ],
)
def test_what_computes_otherwise_has_another_normal_form(one: Repeat, other: Repeat) -> None:
    assert normal(one) != normal(other)


# -- equal


@pytest.mark.parametrize("length", [None, 64, 4096])
def test_tiles_of_one_step_are_neutral(length: int | None) -> None:
    proof = prove(AMPERE16, AMPERE8, length)
    assert proof.verdict == "equal"
    assert proof.multiples == 16
    assert not proof.proofs


def test_plans_that_differ_in_a_unit_within_are_equal_where_it_is() -> None:
    for step, multiples in (
        ("sum(split(3, h(mma), r, order=pairwise), c)", 48),
        ("sum(interleave(2, mma, r, grain=16), +0)", 32),
        ("r(exact(sum(promote(32, mma, r), +0), c))", 32),
        ("sum(halve(64, mma, r, grain=48), c)", 48),
        ("sum(halve(64, mma, r, grain=16, first=smaller), c)", 16),
        ("sum(split([32, 96], mma, r, order=pairwise), +0)", 16),
        ("sum(turns(48, mma, tail=fma), c)", 48),
        ("sum(whole(32, mma, tail=fma), c)", 32),
        ("sum(lanes(mma, r, 4, fold(2, 2), fold(2, 1), head=2, tail=fma), c)", 64),
    ):
        proof = prove(with_units(step, AMPERE16), with_units(step, AMPERE8))
        assert proof.verdict == "equal", step
        assert proof.multiples == multiples


def test_halves_of_other_multiples_than_the_units_have_no_rule() -> None:
    sides = [with_units("sum(halve(64, mma, r, grain=24), c)", mma) for mma in (AMPERE16, AMPERE8)]
    prover = asked._Prover(sides[0], sides[1], None, Options(), confirm=False)
    assert prover._for_all(by_solver=False) is None
    assert prover.proof.tried == ["rules for every K: none compares the stages that differ"]


@pytest.mark.parametrize("step", ["sum(split([8], mma, r), c)", "sum(lanes(fma, r, 4, fold(4, 1), tail=mma), c)"])
def test_stages_are_compared_where_their_units_are_equal_alone(step: str) -> None:
    """Units that differ, within stages that are alike: no rule says that they are equal."""
    sides = plan_of(step), plan_of(step.replace("mma", "fma") if "split" in step else step.replace("fma", "mma", 1))
    prover = asked._Prover(sides[0], sides[1], None, Options(), confirm=False)
    assert prover._for_all(by_solver=False) is None
    assert prove(*sides).verdict == "different"


def test_runs_that_the_units_do_not_fill_have_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [with_units("sum(split([24], mma, r), c)", mma) for mma in (AMPERE8, f"{AMPERE8}@carry_bits=4")]
    prover = asked._Prover(sides[0], sides[1], None, Options(), confirm=False)
    for multiples in (16, 12):

        def supposed(one: Stage, other: Stage, multiples: int = multiples) -> Theorem | None:
            agree = StagesAgree(sides[0], sides[1], one, other, multiples)
            return assumed(agree) if isinstance(one, Chain) else None

        monkeypatch.setattr(prover, "_by_induction", supposed)
        prover.proof.theorem = prover._for_all(by_solver=False)
        assert prover.proof.multiples == (0 if multiples == 16 else 12)


def test_a_plan_that_does_not_take_every_k_equals_itself() -> None:
    for step in ("sum(interleave(8, fma, r), c)", "sum(split([8, 12], mma, r), c)"):
        assert prove(plan_of(step), plan_of(step)).verdict == "equal"


def test_a_split_of_one_run_is_a_chain_at_that_k() -> None:
    proof = prove(plan_of("sum(split(4, mma, r, grain=32), c)"), plan_of("sum(mma, c)"), 32)
    assert proof.verdict == "equal"
    assert proof.multiples == 0
    assert prove(plan_of("sum(split(4, mma, r, grain=32), c)"), plan_of("sum(mma, c)"), 64).verdict == "different"


def test_steps_of_which_it_is_not_known_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "prove", lambda problem, options, confirm: Proof(problem))
    volta = "volta/mma/m8n8k4.f32.f16.f16.f32"
    sides = with_units("sum(mma, c)", f"{volta}@carry_bits=4"), with_units("sum(mma, c)", volta)
    assert asked._Prover(*sides, None, Options(), confirm=False)._for_all() is None
    backwards = "sum(lanes(mma, r, 2, 2, fold(2, 1), unroll=8, order=backwards), c)"  # too deep, written out
    deep = with_units(backwards, AMPERE16), with_units(backwards, AMPERE8)
    assert asked._Prover(*deep, 128, Options(), confirm=False)._at(128) is None


def test_steps_are_proved_by_solvers() -> None:
    volta = "volta/mma/m8n8k4.f32.f16.f16.f32"
    proof = prove(with_units("sum(mma, c)", f"{volta}@carry_bits=4"), with_units("sum(mma, c)", volta))
    assert proof.verdict == "equal"
    assert len(proof.proofs) == 1
    assert proof.proofs[0].engines


def test_a_verdict_that_evaluations_contradict_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "same_forms", lambda left, right, part, _: assumed(FormsAgree(left, right, part, False)))
    monkeypatch.setattr(asked._Prover, "_differ_on_samples", lambda self, length: False)
    with pytest.raises(FaultError, match="proved equal, and differ"):
        prove("volta/mma/m8n8k4.f32.f16.f16.f32", AMPERE8)


# -- different


#: two that differ, at a K or at some
DIFFERENT: list[tuple[str, str, int | None]] = [
    ("sum(mma, c)", "sum(fma, c)", None),
    ("sum(mma, c)", "r(exact(sum(mma, -0), c))", None),
    ("sum(mma, c)", "sum(f(mma), c)", None),
    ("z(exact(sum(mma, +0), c))", "r(exact(sum(mma, +0), c))", None),
    ("r(exact(sum(z(mma), +0), sum(mma, c)))", "r(exact(sum(h(mma), +0), sum(mma, c)))", None),
    ("sum(promote(6, mma, r), c)", "sum(promote(6, chain(mma, tail=fma), r), c)", None),
    ("sum(split(2, z(mma), r), c)", "sum(split(2, h(mma), r), c)", None),
    ("sum(promote(8, mma, r), c)", "sum(promote(8, mma, z), c)", None),
    ("sum(mma, c)", "r(exact(sum(mma, +0), c))", None),
    ("sum(mma, c)", "sum(promote(8, mma, r), c)", None),
    ("sum(mma, c)", "sum(split(2, mma, r), c)", None),
    ("sum(mma, +0)", "sum(split([8], mma, r), +0)", None),
    ("sum(split([8], mma, r), c)", "sum(split([12], mma, r), c)", None),
    ("sum(split([4, 12], mma, r), +0)", "sum(split([4, 12], mma, z), +0)", None),
    ("sum(lanes(fma, r, 2, fold(2, 1)), c)", "sum(lanes(mma, r, 2, fold(2, 1)), c)", None),
    ("sum(lanes(fma, r, 4, fold(2, 2), fold(2, 1)), c)", "sum(lanes(fma, r, 4, fold(2, 1), fold(2, 1)), c)", None),
    ("sum(lanes(fma, r, 2, fold(2, 1)), c)", "sum(lanes(fma, r, 2, fold(2, 1), grain=2), c)", None),
    ("sum(split(4, mma, r), c)", "sum(split(4, mma, r, order=pairwise), c)", None),
    ("sum(interleave(4, mma, r, grain=16), c)", "sum(interleave(4, mma, r, order=pairwise, grain=16), c)", None),
    ("sum(turns(32, swizzle(2, mma, grain=2)), c)", "sum(turns(32, swizzle(2, mma, grain=4)), c)", None),
    ("sum(mma, +0)", "sum(chain(mma, tail=fma), +0)", 7),
    ("sum(mma, +0)", "sum(interleave(2, mma, r, grain=4), +0)", None),  # which does not take every K
]


@pytest.mark.parametrize(("left", "right", "length"), DIFFERENT)
def test_differences_are_replayed(left: str, right: str, length: int | None) -> None:
    sides = plan_of(left), plan_of(right)
    proof = prove(sides[0], sides[1], length)
    assert proof.verdict == "different"
    assert proof.witness is not None
    assert proof.problem is not None
    assert length is None or proof.length == length
    operands = proof.problem.whole(proof.witness.operands)
    found = [evaluate_row(Model("replayed", unit_of_plan(plan, proof.length or 0)), operands) for plan in sides]
    assert found == [proof.witness.left, proof.witness.right]
    assert found[0] != found[1]
    assert np.count_nonzero(operands.a) <= 4


def test_long_products_are_told_apart_by_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where K is no multiple of a tile, so that no difference at a smaller one is moved there."""
    monkeypatch.setattr(asked, "LONG", 16)
    monkeypatch.setattr(asked, "WHOLE", 0)
    for name in ("_differ_in_zeros", "_found_by_solver"):
        monkeypatch.setattr(asked._Prover, name, lambda self, length: False)
    test_differences_are_replayed("sum(promote(8, mma, r), c)", "sum(promote(8, mma, z), c)", 44)


#: two whose tiles have a long common multiple, or that differ beside no few cuts
UNEVEN = {
    "t1": "sum(split(3, fma, r, grain=32), +0)",
    "t3": "sum(promote(127, fma, r), +0)",
    "t4": "sum(split([1000, 2003], fma, r), +0)",
    "lanes": "sum(split(3, lanes(fma, r, 5, fold(5, 1)), r, grain=16), +0)",
    "cut": "sum(split([95, 190], lanes(fma, r, 5, fold(5, 1)), r), +0)",
}


def unasked(*_: object, **__: object) -> None:
    pytest.fail("solvers are asked")


@pytest.mark.parametrize(("left", "right", "length"), [
    ("t1", "t3", 200), ("t1", "t3", None), ("t1", "t4", 2500), ("t1", "t4", None), ("t1", "cut", 200),
    ("lanes", "cut", 200),
])  # fmt: skip
def test_tiles_of_a_long_common_multiple_are_told_apart_at_a_short_k(
    left: str, right: str, length: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("prove", "distinguish"):
        monkeypatch.setattr(asked, name, unasked)
    test_differences_are_replayed(UNEVEN[left], UNEVEN[right], length)


def test_a_difference_at_all_places_is_certified_at_few(tmp_path: Path) -> None:
    proof = prove(plan_of(UNEVEN["lanes"]), plan_of(UNEVEN["cut"]), 200)
    assert proof.problem is not None
    assert len(proof.problem.places) <= 4
    certify_plans(proof, tmp_path, Options(solver="bitwuzla"))
    assert {found.kind for found in check_folder(tmp_path)} == {"fine"}


def test_the_k_asked_is_sampled_before_solvers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one tile is equal."""
    for name in ("prove", "distinguish"):
        monkeypatch.setattr(asked, name, unasked)
    test_differences_are_replayed("sum(promote(200, fma, r), +0)", "sum(chain(fma), +0)", 600)


def test_tiles_too_long_to_search_are_compared_by_rules() -> None:
    long = plan_of("sum(interleave(1000, mma, r, grain=4), c)"), plan_of("sum(interleave(1001, mma, r, grain=4), c)")
    proof = prove(*long)
    assert proof.verdict == "unknown"
    assert "no K up to 4096 is known that both plans take" in proof.tried[-1]
    wide = plan_of("sum(promote(4104, mma, r), c)")
    assert [prove(wide, wide, length).verdict for length in (None, 64)] == ["equal", "equal"]


def test_plans_that_samples_do_not_tell_apart_are_told_apart_by_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "WHOLE", 0)
    monkeypatch.setattr(asked._Prover, "_differ_on_samples", lambda self, length: False)
    test_differences_are_replayed("sum(mma, c)", "r(exact(sum(mma, +0), c))", 8)


@pytest.mark.parametrize("length", [5, 300])
def test_sums_that_are_all_minus_zero_are_told_apart(length: int) -> None:
    """A product that is -0, added to -0: it stays -0 in one rounding, and is +0 after a sum from +0."""
    one, other = plan_of("sum(fma, c)"), plan_of("sum(promote(1, fma, r), c)")
    proof = prove(one, other, length)
    assert (proof.verdict, proof.length) == ("different", length)
    assert proof.witness is not None
    assert (proof.witness.left, proof.witness.right) == (F32.sign_bit, 0)


def test_a_sum_that_is_flushed_to_minus_zero_is_told_apart() -> None:
    """CDNA2 reads -0 as +0: between instructions, not between the steps of one."""
    proof = prove(*(f"plan:cdna2/mfma/f32_32x32x{k}bf16" for k in (2, 4)))
    assert proof.verdict == "different"
    assert proof.witness is not None
    assert (proof.witness.left, proof.witness.right) == (0, F32.sign_bit)


def test_many_products_are_asked_of_solvers_only_after_few(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def none(self: asked._Prover, length: int) -> bool:
        lengths.append(length)
        return False

    for name in ("_differ_on_samples", "_differ_by_solver"):
        monkeypatch.setattr(asked._Prover, name, none)
    one, other = plan_of("sum(fma, c)"), plan_of("sum(promote(1, fma, r), c)")
    assert prove(one, other, 4096).verdict == "unknown"
    assert lengths == [1, 2, 4096, 1]


def test_conversions_are_not_neutral() -> None:
    assert prove("plan:cutlass/tf32", "plan:cutlass/tf32-truncated").verdict == "different"


def test_a_tail_is_neutral_where_there_is_none() -> None:
    one, other = plan_of("sum(mma, c)"), plan_of("sum(chain(mma, tail=fma), c)")
    proof = prove(one, other)
    assert proof.verdict == "equal"
    assert proof.multiples == 4
    assert prove(one, other, 9).verdict == "different"


def test_places_are_on_both_sides_of_every_cut() -> None:
    places = {
        k for group in places_asked(plan_of("sum(split(2, mma, r), c)"), plan_of("sum(mma, c)"), 64) for k in group
    }
    assert {0, 31, 32, 63} - places == {31}
    assert max(places) < 64


def test_plans_that_cannot_be_compared() -> None:
    with pytest.raises(ParameterError, match="different formats"):
        prove("plan:cublas/plain", "plan:loop/fma")
    with pytest.raises(ParameterError, match="reads c, and tested does not"):
        prove(plan_of("sum(mma, c)"), plan_of("sum(mma, +0)"))
    with pytest.raises(ParameterError, match="at most 4096"):
        prove("plan:loop/fma", "plan:loop/lanes", 5000)
    with pytest.raises(ParameterError, match="6 products do not fit"):
        prove(plan_of("sum(interleave(4, fma, r), c)"), plan_of("sum(fma, c)"), 6)


# -- the command


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["prove", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_shows_rules_and_vectors(tmp_path: Path) -> None:
    code, out, err = run(AMPERE16, AMPERE8, "--length", "4096", "--json")
    document = json.loads(out)
    assert (code, document["verdict"], document["multiples"]) == (0, "equal", 16)
    assert "induction: a step of 16 products" in document["rules"][0]
    assert "equal for K = 4096" in err
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(TEXT.replace("plan: tested", f"plan: {one}"), encoding="utf-8")
    other.write_text(TEXT.replace("sum(mma, c)", "r(exact(sum(mma, +0), c))"), encoding="utf-8")
    code, out, err = run(str(one), f"plan:{other}", "--json")
    document = json.loads(out)
    assert (code, document["verdict"]) == (1, "different")
    vector = vector_of({key: value for key, value in document["vector"].items() if key != "results"})
    assert f"{evaluate_row(vector.model, vector.operands):08x}" == document["vector"]["results"][0]
    assert re.match(r"equal: no, at K = \d+: the vector below was replayed on both plans\n", err)


OTHERS = "  it says nothing of any other K: --length K asks about one\n"


def test_the_command_says_of_which_lengths_it_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = ("plan:loop/fma", "plan:loop/lanes")
    assert re.match(f"equal: no, at K = 8: .*\n{OTHERS}", run(*lanes)[2])
    assert run(*lanes, "--length", "9")[2].startswith("equal: no, at K = 9: ")
    for equal, told in (((AMPERE16, f"plan:{AMPERE8}"), True), (("plan:loop/fma", "plan:loop/fma"), False),
                        ((AMPERE16, AMPERE8, "--length", "32"), False)):  # fmt: skip
        code, _, err = run(*equal)
        assert (code, OTHERS in err) == (0, told)
    for name in ("_differ_on_samples", "_differ_by_solver"):
        monkeypatch.setattr(asked._Prover, name, lambda *_: False)
    asked_for = "  it was asked for every K that is whole tiles: --length K asks about one\n"
    for length in ((), ("--length", "300")):
        code, _, err = run(*lanes, *length)
        assert code == 3
        assert err.startswith("equal: unknown after")
        assert (asked_for in err) == (not length)
        assert OTHERS not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan:loop/fma"], "--length is for two plans|a model for a given number"),
        (["plan:loop/fma", "plan:loop/lanes", "--property", "monotonic"], "monotonic is a property of one model"),
        ([AMPERE8, "--length", "4"], "--length is for two plans"),
        (["plan:loop/fma", "plan:loop/lane"], "did you mean 'loop/lanes'"),
        (["plan:loop/fma", "plan:loop/lanes", "--length", "0"], "0 is not in the range"),
        (["plan:loop/fma@length=x", "plan:loop/lanes"], "number of products: plan:loop/fma@length=64\n"),
    ],
)
def test_wrong_questions(arguments: list[str], message: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert any(part in err for part in message.split("|"))


@pytest.mark.parametrize(("left", "right", "multiples"), [
    ("sum(split(3, mma, r), c)", "sum(split(3, mma, r, order=pairwise), c)", 12),
    ("sum(interleave(2, fma, r, tail=fma), c)", "sum(interleave(2, fma, r, order=pairwise), c)", 2),
    ("sum(lanes(fma, r, 4, fold(4, 1), head=2), c)", "sum(lanes(fma, r, 4, fold(4, 1), tail=fma), c)", 4),
    ("sum(lanes(mma, r, 2, fold(2, 1), grain=8), c)",
     "sum(lanes(chain(mma, tail=fma), r, 2, fold(2, 1), grain=8, tail=fma), c)", 16),
    ("sum(split([8, 16], mma, r), c)", "sum(split([8, 16], mma, r, order=pairwise), c)", 1),
    ("sum(split(2, mma, r, order=backwards), c)", "sum(split(2, mma, r), c)", 8),
    ("sum(lanes(fma, r, 2, fold(2, 1), unroll=8, tail=fma), c)",
     "sum(lanes(fma, r, 2, fold(2, 1), unroll=8, tail=mma), c)", 8),
])  # fmt: skip
def test_what_whole_turns_and_three_sums_make_no_use_of(left: str, right: str, multiples: int) -> None:
    proof = prove(plan_of(left), plan_of(right))
    assert proof.verdict == "equal"
    assert proof.multiples == multiples


def test_an_unrolled_loop_leaves_more_over_than_its_lanes() -> None:
    """At K = 6 two lanes take all products, or none where the loop takes eight at a time."""
    left, right = (plan_of(f"sum(lanes(fma, r, 2, fold(2, 1), tail=fma{more}), c)") for more in ("", ", unroll=8"))
    assert prove(left, right, 6).verdict == "different"
    assert prove(left, right, 8).verdict == "equal"
    assert prove(left, right).verdict != "equal"


def test_one_turn_of_one_lane_is_a_chain() -> None:
    """Up to the products of a turn and one: the other lane is +0, or a product, which f32 holds."""
    lanes, chain = plan_of("sum(lanes(fma, r, 2, fold(2, 1), grain=4), +0)"), plan_of("sum(fma, +0)")
    assert [prove(lanes, chain, length).verdict for length in (4, 5, 6)] == ["equal", "equal", "different"]
    assert plan_of("sum(lanes(fma, r, 2, fold(2, 1), grain=1), +0)") == plan_of("sum(lanes(fma, r, 2, fold(2, 1)), +0)")


def test_an_unrolled_turn_backwards_gives_its_bodies_single_products() -> None:
    """They are equal for whole tiles, of which none is taken."""
    step = "sum(lanes({}, r, 2, fold(2, 1), unroll=8, order=backwards, tail=fma), c)"
    assert prove(plan_of(step.format("mma")), plan_of(step.format("chain(mma, tail=fma)"))).verdict == "different"
    forwards = plan_of(step.replace(", order=backwards", "").format("fma"))
    assert prove(plan_of(step.format("fma")), forwards).verdict == "different"


def test_where_products_begin_to_be_halved_is_tried() -> None:
    """Up to four products, which are the multiples of one that are tried else, both sum in order."""
    proof = prove(plan_of("sum(halve(8, fma, r), +0)"), plan_of("sum(halve(4, fma, r), +0)"))
    assert proof.verdict == "different"
    assert proof.length is not None
    assert proof.length > 4
    halves = "sum(halve(8, fma, r, grain=4{}), c)"
    assert prove(plan_of(halves.format("")), plan_of(halves.format(", first=smaller"))).verdict == "different"


@pytest.mark.parametrize(("stage", "order"), [
    ("split(4", "pairwise"), ("split(3", "backwards"), ("split([4, 8]", "backwards"), ("interleave(3", "backwards"),
])  # fmt: skip
def test_several_sums_in_another_order_are_others(stage: str, order: str) -> None:
    left, right = (plan_of(f"sum({stage}, mma, r{order}), c)") for order in ("", f", order={order}"))
    assert prove(left, right).verdict == "different"


def test_roundings_that_lose_nothing_are_neutral(tmp_path: Path) -> None:
    """A product of two f16 is exact in f32, and no sum that begins with +0 is -0."""
    chain, promoted = "sum(fma, {})", "sum(promote(1, fma, r), {})"
    assert prove(plan_of(chain.format("+0")), plan_of(promoted.format("+0")), 5).verdict == "equal"
    proof = prove(plan_of(chain.format("+0")), plan_of(promoted.format("+0")))
    assert proof.verdict == "equal"
    assert "without roundings that lose nothing" in proof.rules[0]
    certify_plans(proof, tmp_path, Options("bitwuzla", 10.0))
    assert {found.kind for found in check_folder(tmp_path)} == {"fine"}
    assert prove(plan_of(chain.format("c")), plan_of(promoted.format("c")), 5).verdict == "different"
    assert prove(plan_of(chain.format("c")), plan_of(promoted.format("c"))).verdict == "different"


@pytest.mark.parametrize(("other", "verdict"), [("lanes(fma, r, 3, fold(3, 1))", "equal"), ("fma", "different")])
def test_plans_that_read_no_c_are_compared_whatever_its_format(other: str, verdict: str) -> None:
    text = """plan: mine
formats: {{a: f16, b: f16, c: {c}, d: f32}}
units: {{fma: ieee/fma/f32.f16.f16.f32}}
roundings: {{r: "round(f32, nearest_even)"}}
steps: {{d: "sum({stage}, +0)"}}
"""
    one, two = (
        parse_plan(text.format(c=c, stage=stage), f"{c}.yaml", parse_reference)
        for c, stage in (("f16", "interleave(3, fma, r)"), ("none", other))
    )
    for sides in ((one, two), (two, one)):
        assert prove_plans(*sides, 12, Options("bitwuzla", 20), confirm=False).verdict == verdict


def test_an_interrupt_leaves_no_difference_at_another_k(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference at a smaller K says nothing about the K asked until it is found there, too."""

    def interrupted(prover: object, length: int) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(asked._Prover, "_differ_again", interrupted)
    proof = prove(Plan.chained(parse_reference("ieee/fma/f32")), Plan.chained(parse_reference("ieee/muladd/f32")), 7)
    assert proof.interrupted
    assert (proof.verdict, proof.length, proof.witness) == ("unknown", 7, None)
