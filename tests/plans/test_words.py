"""Words of elements: what units read of them, against exact rationals, by every engine; files of them; rules."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.queries.kernel.equality.plan_units import plan_key
from mmaprobe.queries.kernel.equality.stages import StagesAgree, same_bodies, same_parts
from mmaprobe.queries.kernel.questions.steps import pairs_of, record_of, recorded
from mmaprobe.queries.kernel.theorem import RuleError, goal_of
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.nodes import Element, Literal, Product
from mmaprobe.smtmodel.nodes.element import MINUS, power_of_two
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.multiword import parse_scheme
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.plans.stages import Chain, Then
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.plans.test_plans import check, operands
from tests.said import assumed

TEXT = """
plan: words
formats: {a: f32, b: f32, c: f32, d: f32}
units:
  mma: volta/mma/m8n8k4.f32.f16.f16.f32
  wide: ampere/mma/m16n8k8.f32.tf32.tf32.f32
roundings: {h: "round(f16)", t: "round(tf32, toward_zero)", r: "round(f32)"}
words:
  a0: h(a)
  rest: r(exact(a, -a0))
  a1: h(rest)
  a2: h(r(product(2**11, rest)))
  a3: h(r(exact(rest, -a1)))
  ta: t(a)
  b0: h(b)
  b1: h(r(exact(b, -b0)))
  tb: t(r(exact(b, -b0)))
steps:
  d: sum(mma(a0, b0), c)
"""
STEPS = {
    "sum(then(mma(a1, b1), mma(a0, b1), mma(a0, b0)), c)": (1, 4, 11),
    "sum(turns(4, then(mma(a1, b0), mma(a3, b1), mma(a0, b0))), c)": (3, 8, 22),
    "sum(promote(8, then(mma(a0, b1), wide(ta, tb)), r), c)": (4, 21),
    "sum(split(2, then(mma(a1, b0), promote(4, mma(a0, b0), r)), r), c)": (15, 16),
    "sum(interleave(2, then(mma(a1, b0), mma(a0, b0)), r, grain=2, tail=mma(a0, b0)), c)": (9, 16),
    "sum(chain(mma(a0, b0), tail=mma(a1, b1)), c)": (3, 10),
    "r(exact(sum(mma(a0, b0), c), r(product(2**-11, sum(then(mma(a2, b0), mma(a0, b1)), +0)))))": (4, 19),
    "sum(first(4, then(mma(a0, b0), mma(a1, b0)), turns(4, mma(a0, b0))), c)": (2, 13),
}


def plan_of(step: str) -> Plan:
    """The plan of a step, with the words that it reads, and those of which these are made."""
    lines = TEXT.replace("sum(mma(a0, b0), c)", step).splitlines()
    made = {"rest": "a1 a2 a3", "a1": "a3", "a0": "rest a1 a2 a3", "b0": "b1 tb"}
    used = set(re.findall(r"\w+", step))
    kept = [line for line in lines if (word := line.strip().partition(":")[0]) not in
            ("a0", "rest", "a1", "a2", "a3", "ta", "b0", "b1", "tb")
            or not used.isdisjoint((word, *made.get(word, "").split()))]  # fmt: skip
    return parse_plan("\n".join(kept), "words.yaml", parse_reference, whole=True)


@pytest.mark.compilers
@pytest.mark.parametrize("step", STEPS)
def test_words_are_what_they_say(step: str) -> None:
    """By exact rationals, NumPy, generated C and as a unit; and the plan's text is read back."""
    plan = plan_of(step)
    for k in STEPS[step]:
        check(plan, k)
        if compiler() is not None:
            a, b, c = operands(plan, 5, 3, k, seed=k + 1)
            found = [simulate(a, b, c, plan, engine=engine) for engine in ("numpy", "compiled")]  # type: ignore[arg-type]
            assert np.array_equal(*found)
    assert parse_plan(plan_text(plan), "text.yaml", parse_reference, whole=True) == plan


def test_words_have_their_names_where_a_plan_is_a_unit() -> None:
    unit = unit_of_plan(plan_of("sum(then(mma(a1, b0), mma(a0, b0)), c)"), 4)
    assert {"a0", "a1", "b0"} < set(unit.labels.values())
    assert parse_unit(unit_text(unit), "unit.yaml").result == unit.result


def test_a_word_of_one_rounding_is_a_conversion() -> None:
    """In what it computes; and where words are named, elements without a word are still converted."""
    words = plan_of("sum(mma(a0, b0), c)")
    converted = parse_plan(
        plan_text(words).replace("mma(a0, b0)", "mma").partition("words:")[0]
        + "convert: {a: h, b: h}\nsteps:\n  d: sum(mma, c)\n", "converted.yaml", parse_reference, whole=True,
    )  # fmt: skip
    a, b, c = operands(words, 6, 6, 9)
    assert np.array_equal(simulate(a, b, c, words), simulate(a, b, c, converted))
    assert unit_of_plan(words, 9).result == unit_of_plan(converted, 9).result


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("a0: h(a)", "a0: h(b)", "made of one element"),
        ("a1: h(rest)", "a1: h(r(exact(a, b)))", "made of one element"),
        ("a1: h(rest)", "a1: h(c)", "made of one element"),
        ("a1: h(rest)", "a1: exact(a, -a0)", "its last step must be a round"),
        ("a1: h(rest)", "a1: h(relu(a))", "not a relu"),
        ("a1: h(rest)", "a1: h(exact(a, c))", "not a element"),
        ("a1: h(rest)", "a1: h(a9)", "unknown name 'a9'"),
        ("a1: h(rest)", "mma: h(rest)", "this name cannot be used: a unit has it"),
        ("a1: h(rest)", "split: h(rest)", r"it is a stage: split\(NUMBER, STAGE, ROUNDING\)"),
        ("a1: h(rest)", "block_scaled: h(rest)", "it is a node: block_scaled"),
        ("sum(mma(a0, b0), c)", "sum(mma(b0, a0), c)", "unknown value 'b0'"),
        ("sum(mma(a0, b0), c)", "sum(mma(a0), c)", "1 argument given, 2 needed"),
        ("sum(mma(a0, b0), c)", "sum(mma(a, b0), c)", "takes f16, not f32"),
        (
            "sum(mma(a0, b0), c)",
            "sum(mma(ta, b0), c)",
            r"takes f16, not tf32 \(words .*a0: .*, where r rounds to f16\)",
        ),
        ("sum(mma(a0, b0), c)", "sum(then(), c)", "0 arguments given, 1 needed"),
        ("sum(mma(a0, b0), c)", "r(a0)", "unknown name 'a0'"),
        ("sum(mma(a0, b0), c)", "sum(mma(a0, b0), c)", "no unit reads this word"),
        ("2**11", "2**300", "no normal number of f32"),
    ],
)
def test_what_is_no_word(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_plan(TEXT.replace(old, new), "words.yaml", parse_reference, whole=True)
    assert "words.yaml:" in str(caught.value)


def test_minus_and_powers_of_two() -> None:
    """Short for products with numbers, which are as narrow as they can be."""
    text = TEXT.partition("units:")[0].replace("plan:", "unit:") + (
        "length: 1\nroundings: {r: round(f32)}\nsteps:\n  d: r(exact(-a[0], product(2**3, b[0]), c))\n"
    )
    unit = parse_unit(text, "unit.yaml")
    one = Element("a", unit.result.operands[0].operands[0].operands[1].index)  # type: ignore[attr-defined]
    assert unit.result.operands[0].operands[0] == Product(MINUS, one)
    assert power_of_two(3) == Literal(0x41000000, unit.a)
    a, b, c = (np.array([x], np.float32).view(np.uint32).astype(np.uint64) for x in (1.5, 2.25, 0.5))
    from mmaprobe.smtmodel.evaluate.batch import lanes, to_integers

    found = evaluate(Model("unit", unit), [lanes(a, 32)], [lanes(b, 32)], lanes(c, 32)).d
    assert to_integers(found, 1).astype(np.uint32).view(np.float32)[0] == -1.5 + 8 * 2.25 + 0.5


def test_every_pair_of_words_has_every_product_once() -> None:
    plan = plan_of("sum(then(mma(a1, b0), mma(a0, b0)), c)")
    for length in (8, None):
        found = record_of(plan, plan.sums[0].stage, length)
        assert set(found.places.pairs) == set(pairs_of(plan))
        assert len(pairs_of(plan)) == 2
    with pytest.raises(RuleError, match="added twice"):
        recorded(plan, plan_of("sum(then(mma(a0, b0), mma(a0, b0)), c)").sums[0].stage, 8)
    twice = parse_plan_reference("ieee/fma/f32")
    stage = Then((twice.sums[0].stage, twice.sums[0].stage))
    with pytest.raises(RuleError, match="added twice"):
        recorded(twice, stage, 2)


def test_stages_that_follow_one_another_agree_if_their_bodies_do() -> None:
    plan = plan_of("sum(then(mma(a1, b0), mma(a0, b0)), c)")
    (product,) = plan.sums
    stage = product.stage
    assert isinstance(stage, Then)
    same = [same_parts(plan, plan, body, body, None) for body in stage.bodies]
    found = same_bodies(plan, plan, stage, stage, same)
    assert found.goal.multiples == 1
    for bodies in (same[:1], same[::-1]):
        with pytest.raises(RuleError, match="same_bodies"):
            same_bodies(plan, plan, stage, stage, bodies)
    with pytest.raises(RuleError, match="same_bodies"):
        same_bodies(plan, plan, stage, stage.bodies[0], same)
    zero = [assumed(replace(goal_of(body, StagesAgree, "test"), zero=True)) for body in same]
    assert goal_of(same_bodies(plan, plan, stage, stage, [zero[0], same[1]]), StagesAgree, "test").zero
    with pytest.raises(RuleError, match="another sum than"):
        same_bodies(plan, plan, stage, stage, [same[0], zero[1]])
    other = plan_of("sum(then(mma(a0, b0), mma(a1, b0)), c)")
    assert plan_key(plan) != plan_key(other)
    with pytest.raises(RuleError):
        same_parts(plan, other, stage, other.sums[0].stage, None)


def test_a_stage_of_several_sums_loses_none() -> None:
    with pytest.raises(ParameterError, match="it needs a stage"):
        Then(())
    with pytest.raises(ParameterError, match="cannot be chained"):
        Then((Chain(parse_reference("ieee/fma/f32")), Chain(parse_reference("ieee/fma/f16"))))


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("multiword/markidis", "markidis"),
        ("multiword/ootomo-yokota", "ootomo-yokota"),
        (
            "multiword/bf16x9",
            "multiword@unit=ampere/mma/m16n8k16.f32.bf16.bf16.f32,words=3,products=9,order=small_first",
        ),
    ],
)
def test_files_that_ship_are_the_schemes(name: str, scheme: str) -> None:
    assert parse_plan_path(name) == parse_plan_path(scheme) == parse_plan_path(f"plan:{scheme}")


@pytest.mark.parametrize(
    ("chain", "order"),
    [("2", "small_first"), ("6", "11-00-01-10"), ("1", "large_first"), ("4", "large_first"), ("8", "large_first")],
)
def test_chains_of_tiles(chain: str, order: str) -> None:
    """So many instructions after each other before a sum is added: a multiple or a divisor of those of a tile."""
    reference = f"multiword@unit=volta/mma/m8n8k4.f32.f16.f16.f32,products=4,loop=tiles,chain={chain},order={order}"
    if chain == "6":
        with pytest.raises(ParameterError, match="6 is impossible: a tile has 4 instructions"):
            parse_plan_path(reference)
        return
    for addend in ("unit", "first", "last"):
        plan = parse_plan_path(f"{reference},addend={addend}")
        check(plan, 11)
        assert parse_plan(plan_text(plan), "text.yaml", parse_reference, whole=True) == plan
    assert parse_scheme(reference).reference == parse_plan_path(reference).reference


def test_what_people_are_shown_of_a_model_names_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a plan has the expressions of its units, not their two lines."""
    plan = plan_of("sum(mma(a0, b0), c)")
    key = plan_key(plan)
    monkeypatch.setattr(Model, "__repr__", lambda _: "a model")
    assert plan_key(plan) == key
