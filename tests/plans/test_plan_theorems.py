"""Theorems that two plans are equal: rules called with what they are not about, logs of their calls, and verdicts that
no field says."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from benchmarks.plan_statements import FEW, UNITS, agree, lengths_of, plan, statement
from mmaprobe.queries.kernel.equality.plan_units import FORMS, AtLength, Form, Steps, Tails, same_forms, units_of
from mmaprobe.queries.kernel.equality.plans import PlansAgree, same_sums, same_tails, same_units
from mmaprobe.queries.kernel.equality.stages import StagesAgree, same_parts, same_steps
from mmaprobe.queries.kernel.log import Replay, Subject, Writer
from mmaprobe.queries.kernel.questions.problem import Placed, Problem
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans import equal
from mmaprobe.queries.plans.equal import PlanProof, prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Element, FusedSum
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Products, Stage
from mmaprobe.smtmodel.plans.joins import Add
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.named import in_runs, in_vectors, promoted
from mmaprobe.smtmodel.plans.partitions import Equal
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.plans.stages import Parted
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.plans.test_merged import disagreement
from tests.plans.test_plans import plan_of
from tests.plans.test_prove_plans import DIFFERENT
from tests.said import assumed, says

E2M1, E4M3 = FORMATS["e2m1"], FORMATS["e4m3"]
ONES, FMA = plan("sum(ones, c)"), plan("sum(fma, c)")  # four products in four steps of one instruction, and one
CONVERTED = replace(ONES, convert_a=Rounding(E2M1))
SCALED = Plan.chained(parse_reference("blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"))
OTHER_C = replace(ONES, c=FORMATS["e3m2"])
FLUSHED, DEEP = plan("sum(flush, c)"), plan("sum(fma, c)")


class Odd(Chain):
    """A stage of one's own, that may do anything."""


class OddCut(Equal):
    """A partition of one's own, that may tell anything."""


class OddJoin(Add):
    """A join of one's own."""


def stages(left: Plan, right: Plan) -> tuple[Stage, Stage]:
    return left.sums[0].stage, right.sums[0].stage


def steps(left: Plan = ONES, right: Plan = FMA) -> Steps:
    return Steps(*stages(left, right))


def units(left: Plan, right: Plan, part: AtLength | Steps | Tails | None = None) -> tuple[Model, Model]:
    """The units of a part of two plans, of their steps without one."""
    one, other = units_of("a test", left, right, part or steps(left, right))
    return Model("left", one), Model("right", other)


@cache
def same(left: Plan = ONES, right: Plan = FMA, length: int | None = None) -> Theorem:
    return same_forms(left, right, steps(left, right) if length is None else AtLength(length), "plain")


@cache
def inductive(left: Plan = ONES, right: Plan = FMA) -> Theorem:
    """Their stages agree for every multiple of 4."""
    return same_steps(left, right, *stages(left, right), same(left, right))


def around(step: str, other: str = "", bodies: Theorem | None = None) -> Theorem:
    """A stage around `ones`, and one around `fma`."""
    left, right = plan(step.format("ones")), plan((other or step).format("fma"))
    one, two = stages(left, right)
    if bodies is None:
        inner = same_steps_of(left, right, one.body, two.body)
    else:
        goal = bodies.goal
        assert isinstance(goal, StagesAgree)
        inner = assumed(replace(goal, left=left, right=right, one=one.body, other=two.body))
    return same_parts(left, right, one, two, inner)


def same_steps_of(left: Plan, right: Plan, one: Stage, other: Stage, form: Form = "plain") -> Theorem:
    return same_steps(left, right, one, other, same_forms(left, right, Steps(one, other), form))


def from_zero(left: Plan, right: Plan) -> Theorem:
    return same_steps_of(left, right, *stages(left, right), form="positive")


def about(*models: Model, **named: Any) -> Theorem:
    return assumed(SidesAgree(Problem(*models, **named)))


BIG = assumed(StagesAgree(ONES, FMA, *stages(ONES, FMA), 16))
FROM_ZERO = assumed(StagesAgree(ONES, FMA, *stages(ONES, FMA), 4, zero=True))
TAILED = plan("sum(chain(ones, tail=two), c)"), plan("sum(chain(ones, tail=chain(two, tail=fma)), c)")
TWICE = plan("r(exact(sum(chain(ones, tail=two), +0), sum(chain(ones, tail=two), c)))")
FROM_C = FMA, plan("sum(promote(1, fma, r), c)")
FINE = plan("sum(promote(1, fma, r), +0)"), plan("sum(promote(2, chain(fma), r), +0)")


def tail(length: int = 6) -> Theorem:
    return same_forms(*TAILED, Tails(length), "plain")


def left_over() -> Theorem:
    return same_tails(*TAILED, 6, tail())


def test_what_is_right_is_a_theorem() -> None:
    whole = same_sums(ONES, FMA, [inductive()])
    assert whole.goal == PlansAgree(ONES, FMA, 4)
    assert "for every K that is a multiple of 4" in whole.goal.statement()
    assert same_units(ONES, FMA, 8, same(ONES, FMA, 8)).goal == PlansAgree(ONES, FMA, 0, 8)
    assert left_over().goal == PlansAgree(*TAILED, 0, 6)
    for step, multiples in (
        ("sum(r({}), c)", 4), ("sum(promote(8, {}, r), c)", 8), ("sum(split(3, {}, r, grain=2), c)", 12),
        ("sum(split([4, 8], {}, r), c)", 4), ("sum(interleave(2, {}, r, grain=2), c)", 8),
        ("sum(interleave(2, {}, r, grain=3), c)", 24),
        ("sum(swizzle(2, {}), c)", 8), ("sum(turns(8, {}), c)", 8), ("sum(whole(8, {}, tail=fma), c)", 8),
        ("sum(whole(8, {}, head=fma), c)", 8), ("sum(halve(8, {}, r, grain=4), c)", 4),
        ("sum(lanes({}, r, 4, fold(4, 1)), c)", 16), ("sum(lanes({}, r, 2, fold(2, 1), unroll=8, tail=fma), c)", 32),
    ):  # fmt: skip
        assert around(step).goal.multiples == multiples, step  # type: ignore[attr-defined]
    assert around("sum(promote(8, {}, r), c)", bodies=FROM_ZERO).goal.zero is False  # type: ignore[attr-defined]
    assert around("sum(split(2, {}, r), +0)", bodies=FROM_ZERO).goal.zero is True  # type: ignore[attr-defined]


def test_two_sums_agree_where_both_do() -> None:
    two = plan("r(exact(sum(ones, +0), sum(pairs, c)))")
    parts = [
        assumed(StagesAgree(two, two, each.stage, each.stage, number))
        for each, number in zip(two.sums, (4, 6), strict=True)
    ]
    assert same_sums(two, two, parts).goal.multiples == 12  # type: ignore[attr-defined]


#: what is called with something that it is not about; the words of the error
MISUSES: dict[str, tuple[Callable[[], Theorem], str]] = {
    # congruence
    "two stages as one": (lambda: same_parts(ONES, FMA, *stages(ONES, FMA), None), "the stages are two"),
    "one stage that reads its inputs otherwise": (
        lambda: same_parts(ONES, CONVERTED, *stages(ONES, CONVERTED), None), "or read inputs otherwise"),
    "sums of other lengths": (lambda: around("sum(promote(8, {}, r), c)", "sum(promote(4, {}, r), c)"), "other things"),
    "other roundings of sums": (
        lambda: around("sum(promote(8, {}, r), c)", "sum(promote(8, {}, z), c)"), "other things"),
    "other roundings of results": (lambda: around("sum(r({}), c)", "sum(z({}), c)"), "other things"),
    "another partition": (lambda: around("sum(split(2, {}, r), c)", "sum(interleave(2, {}, r), c)"), "other things"),
    "other halves": (
        lambda: around("sum(halve(8, {}, r, grain=4), c)", "sum(halve(8, {}, r, grain=4, first=smaller), c)"),
        "other things"),
    "four sums in another order": (
        lambda: around("sum(split(4, {}, r), c)", "sum(split(4, {}, r, order=pairwise), c)"), "other things"),
    "three sums from the end": (
        lambda: around("sum(split(3, {}, r), c)", "sum(split(3, {}, r, order=backwards), c)"), "other things"),
    "lanes from the end": (
        lambda: around("sum(lanes({}, r, 2, fold(2, 1), unroll=8, tail=fma), c)",
                       "sum(lanes({}, r, 2, fold(2, 1), unroll=8, order=backwards, tail=fma), c)"), "other things"),
    "heads that read their inputs otherwise": (
        lambda: same_parts(ONES, CONVERTED, *stages(plan("sum(whole(4, ones, head=fma), c)"),
                                                    plan("sum(whole(4, ones, head=fma), c)")), inductive()),
        "other things"),
    "stages that have no parts": (lambda: same_parts(ONES, FMA, *stages(ONES, FMA), inductive()), "other things"),
    "windows of no multiple": (lambda: around("sum(windows(6, {}, r), c)"), "multiples of 4, which parts"),
    "first products of no multiple": (lambda: around("sum(first(2, two, {}), c)"), "multiples of 4, which parts"),
    "other joins": (lambda: around("sum(split(2, {}, r), c)", "sum(through(split(2), {}), c)"), "other things"),
    "other first products": (
        lambda: around("sum(first(4, two, {}), c)", "sum(first(4, late, {}), c)"), "other things"),
    "a theorem about plans as one of their bodies": (
        lambda: same_parts(ONES, FMA, *stages(plan("sum(r(ones), c)"), plan("sum(r(fma), c)")),
                           same_sums(ONES, FMA, [inductive()])), "StagesAgree"),
    "other bodies": (
        lambda: same_parts(ONES, FMA, *stages(plan("sum(r(two), c)"), plan("sum(r(fma), c)")), inductive()),
        "not about the bodies"),
    "bodies in the other order": (
        lambda: same_parts(ONES, FMA, *stages(plan("sum(r(fma), c)"), plan("sum(r(ones), c)")), inductive()),
        "not about the bodies"),
    "bodies of other plans": (
        lambda: same_parts(CONVERTED, CONVERTED, *stages(plan("sum(r(ones), c)"), plan("sum(r(fma), c)")),
                           inductive()), "not about the bodies"),
    "sums of no multiple": (lambda: around("sum(promote(6, {}, r), c)"), "multiples of 4, which parts are not"),
    "turns of no multiple": (lambda: around("sum(turns(6, {}), c)"), "multiples of 4, which parts are not"),
    "runs of no multiple": (lambda: around("sum(split([8], {}, r), c)", bodies=BIG), "multiples of 16, which"),
    "halves of no multiple": (lambda: around("sum(halve(8, {}, r, grain=2), c)"), "multiples of 4, which parts"),
    "a whole of no multiple": (lambda: around("sum(whole(6, {}, tail=fma), c)"), "multiples of 4, which parts"),
    "single products": (
        lambda: around("sum(lanes({}, r, 2, fold(2, 1), unroll=8, order=backwards, tail=fma), c)"),
        "multiples of 4, which parts"),
    "turns of what agrees from zero": (lambda: around("sum(turns(8, {}), c)", bodies=FROM_ZERO), "other sums than"),
    "passes of what agrees from zero": (lambda: around("sum(swizzle(2, {}), c)", bodies=FROM_ZERO), "other sums than"),
    "lanes of what agrees from zero": (
        lambda: around("sum(lanes({}, r, 2, fold(2, 1)), c)", bodies=FROM_ZERO), "other sums than"),
    "what follows a head and agrees from zero": (
        lambda: around("sum(whole(4, {}, head=fma), c)", bodies=FROM_ZERO), "other sums than"),
    # induction
    "steps of other stages": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA), same(plan("sum(pairs, c)"), plan("sum(two, c)"))),
        "about another part"),
    "what holds for one K as a step": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA), same(ONES, FMA, 64)), "about another part"),
    "what holds of tails as a step": (lambda: same_steps(*TAILED, *stages(*TAILED), tail()), "about another part"),
    "steps of other plans": (
        lambda: same_steps(CONVERTED, CONVERTED, *stages(ONES, FMA), same()), "about another part"),
    "steps of other units": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA), about(*units(plan("sum(short, c)"), FMA))),
        "about other units"),
    "units for one K as a step": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA), about(*units(ONES, FMA, AtLength(64)))),
        "about other units"),
    "steps of some inputs": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA), about(*units(ONES, FMA), inputs=Inputs(nonzero=True))),
        "some inputs alone"),
    "steps of one value": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA), about(*units(ONES, FMA), compare="value")),
        "compares values"),
    "steps with few products": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA),
                           assumed(SidesAgree(Placed(*units(ONES, FMA), places=(0,))))), "something else"),
    "stages that repeat no step": (
        lambda: same_steps(ONES, FMA, *stages(plan("sum(split(2, ones, r), c)"), FMA), same()), "do not repeat steps"),
    "steps with other roundings of the last sum": (
        lambda: same_steps(ONES, FMA, *stages(plan("sum(r(ones), c)"), plan("sum(z(fma), c)")), same()),
        "the same last roundings"),
    "steps from sums of other formats": (
        lambda: same_steps(ONES, FMA, ONES.sums[0].stage, promoted(4, FMA.sums[0].stage, Rounding(FORMATS["e5m2"])),
                           same()), "one format of sums"),
    "steps of too many products": (
        lambda: same_steps(ONES, FMA, *stages(plan("sum(promote(5000, ones, r), c)"), FMA), same()), "4096"),
    "a theorem about plans as a step": (
        lambda: same_steps(ONES, FMA, *stages(ONES, FMA), same_sums(ONES, FMA, [inductive()])), "SidesAgree"),
    # forms
    "two forms": (
        lambda: from_zero(plan("sum(promote(1, fma, r), +0)"), plan("sum(promote(1, fma, z), +0)")), "forms differ"),
    "forms of other formats": (lambda: same_forms(ONES, OTHER_C, AtLength(4), "plain"), "different operands"),
    "a form of one's own": (lambda: same_forms(ONES, FMA, AtLength(4), "any"), "is none of"),  # type: ignore[arg-type]
    "a part of one's own": (lambda: same_forms(ONES, FMA, "all", "plain"), "is not a"),  # type: ignore[arg-type]
    "a result that may be -0": (
        lambda: same_forms(FLUSHED, FLUSHED, AtLength(1), "positive"), "may be -0"),
    "a form that is written out too far": (
        lambda: same_forms(DEEP, DEEP, AtLength(2000), "joined"), "within one another"),
    "forms of what takes scale factors": (
        lambda: same_forms(SCALED, SCALED, AtLength(32), "plain"), "scale factors are not compared"),
    "forms of no K": (lambda: same_forms(ONES, FMA, AtLength(0), "plain"), "0 is impossible"),
    # plans
    "a sum too few": (lambda: same_sums(ONES, FMA, []), "one about each"),
    "a sum too many": (lambda: same_sums(ONES, FMA, [inductive(), inductive()]), "one about each"),
    "sums of other plans": (
        lambda: same_sums(plan("sum(pairs, c)"), FMA, [inductive()]), "one about each"),
    "sums in the other order": (lambda: same_sums(FMA, ONES, [inductive()]), "one about each"),
    "sums that are rounded otherwise": (
        lambda: same_sums(plan("r(exact(sum(ones, +0), c))"), plan("z(exact(sum(fma, +0), c))"), [inductive()]),
        "other things with their sums"),
    "sums from other starts": (
        lambda: same_sums(ONES, plan("sum(fma, +0)"), [inductive()]), "start them from other numbers"),
    "more sums in one": (
        lambda: same_sums(ONES, plan("r(exact(sum(fma, +0), sum(ones, c)))"), [inductive()]), "other things with"),
    "steps from zero, from c": (lambda: same_sums(*FROM_C, [from_zero(*FROM_C)]), "another number than"),
    "sums that agree from zero, from c": (lambda: same_sums(ONES, FMA, [FROM_ZERO]), "another number than"),
    "another K": (lambda: same_units(ONES, FMA, 32, same(ONES, FMA, 64)), "about another part"),
    "no K": (lambda: same_units(ONES, FMA, 0, about(*units(ONES, FMA, AtLength(64)))), "0 is impossible"),
    "a large K": (
        lambda: same_units(ONES, FMA, 5000, about(*units(ONES, FMA, AtLength(64)))), "5000 is impossible"),
    "steps as a K": (lambda: same_units(ONES, FMA, 4, same()), "about another part"),
    "what agrees after a sum that is not -0": (
        lambda: same_units(*FROM_C, 1, same_forms(*FROM_C, AtLength(1), "positive")), "some c alone"),
    "a truth as a K": (lambda: same_units(ONES, FMA, True, same(ONES, FMA, 8)), "bool is not a int"),
    "units of another plan": (
        lambda: same_units(ONES, plan("sum(two, c)"), 8, same(ONES, FMA, 8)), "about another part"),
    "a plan that does not read c": (
        lambda: same_units(ONES, plan("sum(fma, +0)"), 8, about(*units(ONES, plan("sum(fma, +0)"), AtLength(8)))),
        "some c alone"),
    "nothing left over": (
        lambda: same_tails(*TAILED, 8, about(*units(*TAILED, Tails(6)))), "no products are left over"),
    "nothing before what is left over": (
        lambda: same_tails(*TAILED, 2, about(*units(*TAILED, Tails(6)))), "no products are left over"),
    "no K with tails": (
        lambda: same_tails(*TAILED, -2, about(*units(*TAILED, Tails(6)))), "no products are left over"),
    "tails of other tiles": (
        lambda: same_tails(TAILED[0], FMA, 6, about(*units(*TAILED, Tails(6)))), "not one sum each"),
    "tails of two sums": (
        lambda: same_tails(TWICE, TWICE, 6, about(*units(*TAILED, Tails(6)))), "one sum each"),
    "tails of another length": (lambda: same_tails(*TAILED, 7, tail()), "about another part"),
    "units of tails of another length": (
        lambda: same_tails(*TAILED, 7, about(*units(*TAILED, Tails(6)))), "about other units"),
    "tails in the other order": (lambda: same_tails(*TAILED[::-1], 6, tail()), "about another part"),
    "whole plans as tails": (
        lambda: same_tails(*TAILED, 6, about(*units(*TAILED, AtLength(6)))), "about other units"),
    "tails that read inputs otherwise": (
        lambda: same_tails(replace(TAILED[0], convert_a=Rounding(E2M1)), TAILED[1], 6,
                           about(*units(*TAILED, Tails(6)))), "no products are left over"),
    "tails of plans that start otherwise": (
        lambda: same_tails(TAILED[0], plan("sum(chain(ones, tail=two), +0)"), 6, tail()), "start them from"),
    "tails that agree after a sum that is not -0": (
        lambda: same_tails(*TAILED, 6, same_forms(*TAILED, Tails(6), "positive")), "some sums of tiles alone"),
    # what they are called with
    "scale factors": (lambda: same_sums(SCALED, SCALED, []), "scale factors are not compared"),
    "other formats of inputs": (
        lambda: same_parts(ONES, parse_plan_reference("plan:loop/fma"), *stages(ONES, ONES), None),
        "different formats"),
    "a stage of one's own": (
        lambda: same_parts(ONES, ONES, Odd(ONES.models[0]), Odd(ONES.models[0]), None), "Odd is not a Stage"),
    "a stage of one's own in a plan": (
        lambda: same_sums(replace(ONES, result=Products(Odd(ONES.models[0]), Element("c"))), ONES, [inductive()]),
        "a Odd within a (Plan|Parted) is no value of the project's"),
    "a stage of one's own in another one": (
        lambda: same_parts(ONES, ONES, *[in_runs(2, Odd(ONES.models[0]), Rounding(E4M3))] * 2, None),
        "a Odd within a (Plan|Parted) is no value of the project's"),
    "a partition of one's own": (
        lambda: same_parts(ONES, ONES, *[Parted(OddCut(2), Add(Rounding(E4M3)), Chain(ONES.models[0]))] * 2, None),
        "a OddCut within a (Plan|Parted) is no value of the project's"),
    "a join of one's own": (
        lambda: same_parts(ONES, ONES, *[Parted(Equal(2), OddJoin(Rounding(E4M3)), Chain(ONES.models[0]))] * 2, None),
        "a OddJoin within a (Plan|Parted) is no value of the project's"),
    "a stage that can be changed": (
        lambda: same_parts(ONES, ONES, *[in_vectors(ONES.sums[0].stage, Rounding(E4M3), [2, Fold(2, 1)])] * 2, None),  # type: ignore[arg-type]
        "a list within a Parted is no value of the project's"),
    "the text of a plan": (lambda: same_sums(plan_text(ONES), FMA, [inductive()]), "str is not a Plan"),  # type: ignore[arg-type]
    "no theorem": (lambda: same_sums(ONES, FMA, [PlansAgree(ONES, FMA, 1)]), "PlansAgree is not a Theorem"),  # type: ignore[list-item]
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_a_rule_called_with_what_it_is_not_about_makes_no_theorem(name: str) -> None:
    call, words = MISUSES[name]
    with pytest.raises(RuleError, match=words):
        call()


def test_a_verdict_is_that_of_a_theorem_about_these_plans_and_this_k() -> None:
    every, one = same_sums(ONES, FMA, [inductive()]), same_units(ONES, FMA, 64, same(ONES, FMA, 64))
    assert PlanProof(ONES, FMA, None, every).verdict == PlanProof(ONES, FMA, 8, every).verdict == "equal"
    assert PlanProof(ONES, FMA, 64, one).verdict == "equal"
    for length, theorem in ((6, every), (32, one), (None, one)):
        assert PlanProof(ONES, FMA, length, theorem).verdict == "unknown"
    assert PlanProof(FMA, ONES, None, every).verdict == PlanProof(ONES, ONES, None, every).verdict == "unknown"
    for theorem in (inductive(), same(), PlansAgree(ONES, FMA, 1)):
        with pytest.raises(RuleError):
            PlanProof(ONES, FMA, None, theorem).verdict  # type: ignore[arg-type] # noqa: B018
    with pytest.raises(AttributeError):
        PlanProof(ONES, FMA).verdict = "equal"  # type: ignore[misc]


def test_a_difference_is_one_that_a_replay_shows() -> None:
    short, two = plan("sum(short, c)"), plan("sum(two, c)")
    found = prove_plans(short, two, 8, Options(timeout=5.0))
    assert found.verdict == "different"
    assert found.witness is not None
    zeros = replace(found.witness, operands=found.problem.layout.split([0] * len(found.witness.operands.every)))  # type: ignore[union-attr]
    for change in ({"witness": zeros}, {"right": FMA}, {"length": 16}, {"length": None}, {"problem": None}):
        assert replace(found, **change).verdict == "unknown", change  # type: ignore[arg-type]


# -- truth


def test_one_product_of_zeros_stands_for_all_that_fill_up_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their exponent is that of the alignment where all products are small: without one the sum is another one."""
    monkeypatch.setitem(UNITS, "fused4", (4, "r(fused(a[0:4] * b[0:4], c, F=1))"))
    side = plan("sum(fused4, c)")
    whole = unit_of_plan(side, 1)
    found = units_of("a test", side, side, Tails(5))
    (total,) = [node for node in walk(found[0].result) if isinstance(node, FusedSum)]
    assert [item.count for item in total.items] == [1, 1, 1]  # c, a product, and one of zeros
    assert [disagreement(whole, seed, found[0].result) for seed in range(4)] == [None] * 4


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prover looks at no product: what is left are the rules."""
    for name in ("_differ_on_samples", "_differ_by_solver"):
        monkeypatch.setattr(equal._Prover, name, lambda self, k: False)
    monkeypatch.setattr(equal._Prover, "_check", lambda self: None)


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize(("left", "right", "length"), DIFFERENT)
def test_no_rules_prove_what_is_false(left: str, right: str, length: int | None) -> None:
    proof = prove_plans(plan_of(left), plan_of(right), length, Options(timeout=0.0), confirm=False)
    assert proof.theorem is None


@pytest.mark.oracle
@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("odd", [False, True])
def test_what_rules_prove_is_true(odd: bool) -> None:
    """Random statements, half of them false, without solvers; what is proved holds of matrices."""
    proved = 0
    for number in range(5000, 5060):
        asked = statement(number, odd)
        try:
            sides = plan(asked.left), plan(asked.right)
            proof = prove_plans(*sides, asked.length, Options(timeout=0.0), confirm=False)
        except (InputError, ParameterError):
            continue
        if proof.verdict == "equal":
            proved += 1
            lengths = list(lengths_of(asked, sides, proof.multiples))
            lengths += [proof.multiples * n for n in (1, 3, 7) if proof.multiples]
            assert all(agree(*sides, length, number, FEW) for length in lengths), str(asked)
    assert proved > 15


# -- logs

PAIRS = [
    ("sum(ones, c)", "sum(fma, c)", None), ("sum(split(4, two, r, grain=8), c)", "sum(two, c)", 8),
    ("sum(promote(8, split(2, ones, r, grain=4), r), c)", "sum(promote(8, split(2, fma, r, grain=4), r), c)", None),
    ("sum(lanes(fma, r, 4, fold(4, 1), head=2), c)", "sum(lanes(fma, r, 4, fold(4, 1), tail=fma), c)", None),
    ("r(exact(sum(z(ones), +0), c))", "r(exact(sum(z(fma), +0), c))", None),
    ("r(exact(sum(two, +0), sum(ones, c)))", "r(exact(sum(pairs, +0), sum(fma, c)))", None),
    ("sum(fma, +0)", "sum(promote(1, fma, r), +0)", None), 
    ("sum(lanes(fma, r, 2, fold(2, 1), grain=4), +0)", "sum(fma, +0)", 5),
    ("sum(chain(ones, tail=two), c)", "sum(chain(ones, tail=chain(two, tail=fma)), c)", 6),
    ("cdna2/mfma/f32_32x32x4f16", "cdna2/mfma/f32_32x32x8f16", None),
]  # fmt: skip


def side(step: str) -> Plan:
    return Plan.chained(parse_reference(step)) if "/" in step else plan(step)


def read_again(plans: Sequence[Plan]) -> Subject:
    """What a log is about, of files that were written and read: both plans, and their units."""
    found = []
    for one in plans:
        named = {model.reference: Model(model.reference, parse_unit(unit_text(model.unit), "unit.yaml"))
                 for model in one.models}  # fmt: skip
        found.append(parse_plan(plan_text(one), "plan.yaml", named.__getitem__))
    return Subject((), plans=tuple(found))


@cache
def log_of(left: str, right: str, length: int | None) -> tuple[Theorem, dict[str, Any], Subject]:
    sides = side(left), side(right)
    found = prove_plans(*sides, length, Options(timeout=5.0), confirm=False).theorem
    theorem = left_over() if sides == TAILED else found  # which whole units prove as well
    assert theorem is not None
    return theorem, json.loads(json.dumps(Writer(Subject((), plans=sides)).stating([theorem]))), read_again(sides)


@pytest.mark.parametrize(("left", "right", "length"), PAIRS)
def test_a_log_makes_the_same_theorem_again(left: str, right: str, length: int | None) -> None:
    theorem, document, subject = log_of(left, right, length)
    (again,) = Replay(document, subject, says("unsat")).run()
    assert again.goal == theorem.goal
    assert again.goal.statement() == theorem.goal.statement()
    assert [(one.rule, one.goal) for one in again.walk()] == [(one.rule, one.goal) for one in theorem.walk()]
    assert PlanProof(subject.plans[0], subject.plans[1], length, again).verdict == "equal"


def test_the_logs_call_every_rule_about_plans() -> None:
    called = {one.rule for pair in PAIRS for one in log_of(*pair)[0].walk()}
    assert called == {rule.__name__ for rule in (same_parts, same_steps, same_sums, same_units, same_tails, same_forms)}
    forms = {one.arguments["form"] for pair in PAIRS for one in log_of(*pair)[0].walk() if one.rule == "same_forms"}
    assert forms == set(FORMS)


@pytest.mark.parametrize(("left", "right", "length"), PAIRS)
def test_a_record_that_is_changed_is_no_other_theorem(left: str, right: str, length: int | None) -> None:
    """Of every record each argument in turn: another plan, stage, theorem, K, nothing."""
    theorem, document, subject = log_of(left, right, length)
    for number, record in enumerate(document["records"]):
        for name, value in record.items():
            for other in (None, "text", -1, 0, 1, 2, [], True, {"value": 0}, [value], 5):
                changed = copy.deepcopy(document)
                changed["records"][number][name] = other
                try:
                    (made,) = Replay(changed, subject, says("unsat")).run()
                except RuleError:
                    continue
                proof = PlanProof(theorem.goal.left, theorem.goal.right, length, made)  # type: ignore[attr-defined]
                assert proof.verdict != "equal" or made.goal == theorem.goal, (record, name, other)


def test_the_same_statement_about_another_plan_is_another_theorem() -> None:
    _, document, subject = log_of(*PAIRS[0])
    short = plan("sum(short, c)")
    for plans in ((short, subject.plans[1]), (subject.plans[0], short)):
        with pytest.raises(RuleError, match="normal forms differ"):
            Replay(document, replace(subject, plans=plans), says("unsat")).run()
