"""Error bounds of plans: no product is beyond one, rules refuse what is false, and they agree with those of the plan's
whole expression at a K."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.plan_bounds import PAGE, page, read_records
from mmaprobe.cli.main import main
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.kernel.bounds import sums
from mmaprobe.queries.kernel.bounds.enclosures import Facts
from mmaprobe.queries.kernel.bounds.forms import NOUGHT, Form, number
from mmaprobe.queries.kernel.bounds.largest import of_largest
from mmaprobe.queries.kernel.bounds.shares import adds_products
from mmaprobe.queries.kernel.bounds.wording import COUNT, GROWTH, sum_text, up_text
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.questions import steps
from mmaprobe.queries.kernel.questions.steps import Places, PlanAt, Recorder, pair_read, recorded
from mmaprobe.queries.kernel.theorem import RULES, RuleError, Theorem
from mmaprobe.queries.plans import bound, bound_samples
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.plans.bound_report import document_of_plan, find_plan_bound
from mmaprobe.queries.plans.bound_samples import ErrorOfPlan
from mmaprobe.queries.properties.bound import bound_of, chain_of, error_of
from mmaprobe.reports.plan_sheet import sheet_of_plan
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import FaultError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Element, Index, Round
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.lowering import partly_filled, unit_of_plan
from mmaprobe.smtmodel.plans.plan_files import plans
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import PLAIN
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from mmaprobe.studies.file import study_named
from mmaprobe.studies.run import Draw, Product
from tests.marks import some_slow
from tests.plans.small_plans import compared, in_tiles
from tests.said import believed

pytestmark = pytest.mark.solvers

EVERY = sorted(plans())
LARGE = np.finfo(np.float64).max
FILE = """plan: small
formats: {{a: f16, b: f16, c: f32, d: {d}}}
units: {{mma: ampere/mma/m16n8k8.f32.f16.f16.f32, fma: ieee/fma/f32.f16.f16.f32}}
roundings: {{r: 'round(f32, nearest_even)', h: 'round(f16, nearest_even)', z: 'round(f32, toward_zero)',
  f: 'round(f32, nearest_even, subnormals=flush_after)'}}
steps:
  d: {step}
"""
AXPBY = "r(exact(product(number(0x3fc00000, f32), sum(mma, +0)), r(product(number(0xbf000000, f32), c))))"
SMALL = "r(product(number(0x3a000000, f32)"  # times 2^-11
STEPS = [
    "sum(split([16, 32], mma, r, order=pairwise), c)", "sum(split([6, 15], promote(4, fma, r), r), c)",
    "sum(mma, c)", "sum(fma, +0)", "sum(split(3, fma, r, order=pairwise), +0)", "sum(promote(32, mma, r), c)",
    "sum(promote(16, split(2, fma, z), r), c)", "sum(split(2, promote(16, mma, r), r), +0)",
    "sum(interleave(4, fma, r), c)", "sum(interleave(2, mma, r, grain=8), +0)",
    "sum(turns(16, swizzle(2, mma, grain=2)), c)", "h(exact(sum(h(mma), +0), c))",
    "sum(swizzle(4, fma), c)", "sum(swizzle(2, promote(8, mma, r), grain=8), +0)", "sum(first(8, mma, fma), c)",
    "sum(first(8, fma, split(2, mma, r)), +0)", "sum(whole(8, mma, tail=fma), c)", "sum(whole(8, mma, head=fma), +0)",
    "sum(split(2, whole(8, mma, tail=fma), r), c)",
    "h(relu(r(exact(product(number(0xbfc00000, f32), sum(mma, +0)), c))))",
    "sum(promote(1, fma, r), +0)", "sum(halve(8, fma, r), c)", AXPBY,
    "sum(lanes(fma, r, 4, fold(2, 2), fold(2, 1)), c)", "sum(lanes(mma, r, 2, fold(2, 1), tail=fma), +0)",
    "h(sum(h(split([32], promote(16, mma, r), r)), c))",
    "sum(add(16, mma, r), c)", "sum(add(8, fma, r), +0)", "sum(add(12, mma, r), +0)",
    "sum(lanes(fma, r, 8, fold(2, 4), 4, fold(4, 1), head=2), c)", "sum(lanes(fma, r, 2, 1, fold(2, 1), unroll=8), c)",
    f"r(exact(sum(promote(24, mma, r), c), {SMALL}, sum(split(2, mma, z), +0)))))",
    f"r(exact(sum(lanes(fma, r, 4, fold(2, 2), fold(2, 1)), c), {SMALL}, sum(promote(12, fma, r), +0)))))",
]  # fmt: skip


def plan_of(step: str) -> Plan:
    d = "f16" if step.startswith("h(") else "f32"
    return parse_plan(FILE.format(step=step, d=d), "small.yaml", parse_reference)


def value_at(form: Form, times: Fraction) -> dict[tuple[str, ...], Fraction]:
    """The coefficients by names of operands, with a number for G."""
    found: dict[tuple[str, ...], Fraction] = {}
    for atom, value in form.flat().parts.items():
        (item,) = atom
        kind = tuple(factor.name for factor in item if factor.name != GROWTH)
        found[kind] = found.get(kind, Fraction(0)) + value * (times if len(kind) < len(item) else 1)
    return found


@pytest.mark.parametrize("step", STEPS)
def test_no_product_is_beyond_its_bound(step: str) -> None:
    plan = plan_of(step)
    form = error_of(bound_of_plan(plan, 48, believed)).merged()
    near, tried = ErrorOfPlan(plan, form).nearest(48)  # which raises a fault for one beyond it
    assert near is not None
    assert tried > 100
    assert near.ratio > Fraction(1, 20)


@pytest.mark.parametrize("k", [2, 6, 7])
def test_a_tile_that_is_partly_filled_loses_less(k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of four products, of which two or three are there: by all inputs of two, and many of more."""
    plan = in_tiles(tmp_path, "e2m1", "e4m3_ieee", 4)
    error, limit = compared(plan, error_of(bound_of_plan(plan, k, believed)), k, addend=True)
    assert (error <= limit).all()
    with monkeypatch.context() as patched:
        patched.setattr(steps, "partly_filled", lambda model, count: model)
        _, full = compared(plan, error_of(bound_of_plan(plan, k, believed)), k, addend=True)
    assert (limit <= full).all()
    assert limit.sum() < full.sum() * (0.75 if k == 2 else 0.95)
    if k == 2:  # a product that is forgotten
        monkeypatch.setattr(steps, "partly_filled", lambda model, count: partly_filled(model, 1))
        error, limit = compared(plan, error_of(bound_of_plan(plan, k, believed)), k, addend=True)
        assert (error > limit).any()


@pytest.mark.parametrize("step", [step for step in STEPS if "halve" not in step])
def test_the_formula_is_about_every_multiple(step: str) -> None:
    plan = plan_of(step)
    theorem = bound_of_plan(plan, None, believed)
    at = theorem.goal.unit  # type: ignore[attr-defined]
    for n in (1, 2, 5):
        times = sums.growth_of(at.growth, n - 1)
        general, own = (
            value_at(error_of(theorem), times),
            value_at(error_of(bound_of_plan(plan, at.repeats.before + n * at.repeats.period, believed)), Fraction(0)),
        )
        assert general.keys() >= own.keys()
        for kind, value in own.items():
            assert value <= general[kind] * (1 + Fraction(1, 1 << 40)), (n, kind)
            assert general[kind] <= value * Fraction(3, 2) + Fraction(1, 1 << 30), (n, kind)


HALVES = [
    "sum(halve(8, fma, r), c)", "sum(halve(16, mma, z, grain=24), c)", "sum(halve(1, fma, r), +0)",
    "sum(halve(5, promote(2, fma, r), r, grain=2), c)", "h(sum(h(halve(8, promote(4, fma, z), r)), c))",
    "r(sum(halve(4, mma, h), +0))", "sum(halve(4, fma, f), c)",
    AXPBY.replace("sum(mma, +0)", "sum(halve(8, mma, r, grain=8), +0)"),
    "sum(halve(16, mma, z, grain=3, first=smaller), c)", "sum(halve(6, fma, r, grain=4, first=smaller), +0)",
]  # fmt: skip


def levels_of(width: int, length: int) -> int:
    """Of halves, by their definition."""
    return next(t for t in range(64) if length <= width << t)


def formula_at(theorem: Theorem, length: int) -> Form:
    """The formula of halves for a K."""
    at = theorem.goal.unit  # type: ignore[attr-defined]
    levels = levels_of(at.repeats.width, length)
    values = {GROWTH: number(sum((at.growth**k for k in range(levels)), Fraction(0))), COUNT: number(length)}
    return sums.put(error_of(theorem), lambda factor: values.get(factor.name, sums.single(factor))).merged()


@pytest.mark.parametrize("step", some_slow(HALVES, *HALVES[1::2]))
def test_the_formula_of_halves_is_about_every_length(step: str) -> None:
    plan = plan_of(step)
    theorem = bound_of_plan(plan, None, believed)
    for length in (*range(1, 20), 23, 24, 25, 32, 33, 47, 48, 49, 64, 65, 100, 191, 192, 193, 257, 1000):
        general, own = formula_at(theorem, length), error_of(bound_of_plan(plan, length, believed)).merged()
        most = {tuple(factor.name for factor in item): value for atom, value in general.parts.items() for item in atom}
        for kind, value in value_at(own, Fraction(0)).items():
            assert value <= most[kind] * (1 + Fraction(1, 1 << 40)), (length, kind)
            assert most[kind] <= value * 8 + Fraction(length, 1 << 24), (length, kind)
    for length in (1, 3, 9, 17, 48, 65):
        near, tried = ErrorOfPlan(plan, formula_at(theorem, length)).nearest(
            length
        )  # which raises a fault for one beyond it
        assert tried
        assert near is not None


@pytest.mark.parametrize("unit", ["f32_32x32x4f16", "f32_32x32x2bf16"])
def test_subnormals_that_a_unit_reads_as_zero_are_zero_in_the_exact_result(unit: str) -> None:
    """One product is exact: inputs of all sizes are tried, subnormal ones among them."""
    plan = Plan.chained(parse_reference(f"cdna2/mfma/{unit}"))
    near, tried = ErrorOfPlan(plan, error_of(bound_of_plan(plan, 1, believed)).merged()).nearest(1)
    assert near is not None
    assert tried > 100


def test_sums_of_samples_are_exact() -> None:
    rng = np.random.default_rng(1)
    sides = [rng.standard_normal((2, count)) * 2.0 ** rng.integers(-spread, spread + 1, (2, count))
             for count, spread in product((1, 2, 7, 500), (0, 3, 40, 400))]  # fmt: skip
    sides += [np.array([[LARGE, 5e-324, -LARGE, 0.0], [LARGE, 5e-324, LARGE, -0.0]]), np.full((2, 4096), 2.0**-52 - 2)]
    for x, y in sides:
        pairs = list(zip(map(Fraction, x.tolist()), map(Fraction, y.tolist()), strict=True))
        assert bound_samples._exact_sum(x, y) == sum(one * other for one, other in pairs)
        assert bound_samples._exact_sum(x) == sum(one for one, _ in pairs)


def test_halves_have_no_more_levels_than_the_formula_says() -> None:
    sizes = ((8, 1), (1, 1), (8, 5), (3, 8), (16, 24), (7, 2), (25, 8))
    for (most, grain), first in product(sizes, ("larger", "smaller")):
        stage = plan_of(f"sum(halve({most}, fma, r, grain={grain}, first={first}), c)").sums[0].stage
        width = steps.repeated(stage).width

        def levels(count: int, most: int = most, grain: int = grain, larger: bool = first == "larger") -> int:
            half = -(-count // (2 * grain)) * grain if larger else count // (2 * grain) * grain
            return 0 if count <= most or not 0 < half < count else 1 + max(levels(half), levels(count - half))

        assert all(levels(count) <= levels_of(width, count) for count in range(1, 400)), (most, grain)
        assert any(levels(count) == levels_of(width, count) > 2 for count in range(1, 400)), (most, grain)


@pytest.mark.parametrize("step", ["sum(mma, c)", "sum(split(2, fma, r), +0)", "h(sum(promote(16, mma, r), +0))"])
def test_it_agrees_with_the_bound_of_the_whole_expression(step: str) -> None:
    """Whose rules know of every product where it is; sums of all of them lose a little."""
    plan = plan_of(step)
    whole = error_of(bound_of(unit_of_plan(plan, 48), believed)).merged()
    most = max(
        value for atom, value in whole.parts.items() if {factor.name for (item,) in [atom] for factor in item} >= {"a"}
    )
    own = value_at(error_of(bound_of_plan(plan, 48, believed)).merged(), Fraction(0))
    assert most * (1 - Fraction(1, 1 << 40)) <= own["a", "b"] <= most * Fraction(6, 5)  # each is rounded up


@pytest.mark.parametrize("name", EVERY)
def test_every_plan_that_ships_has_a_bound(name: str) -> None:
    plan = parse_plan_path(f"plan:{name}")
    if plan.gathered:  # words of all elements of a row
        with pytest.raises(RuleError, match="a word that reads several elements"):
            bound_of_plan(plan, 96, believed)
        return
    form = error_of(bound_of_plan(plan, 100 if name == "loop/lanes" else 96, believed)).merged()
    assert "sum |a_k" in sum_text(form)
    assert "sum |a_k" in sum_text(error_of(bound_of_plan(plan, None, believed)))


def test_plans_of_many_parts_and_of_long_periods() -> None:
    theorem = bound_of_plan(plan_of("sum(split(400, fma, r, grain=1), c)"), 400, believed)  # sums within sums, 400 deep
    assert "sum |a_k" in sum_text(error_of(theorem).merged())
    found = find_plan_bound(plan_of("sum(interleave(100000000, fma, r, tail=fma), c)"), Inputs(), [16], believed)
    assert found.any is None
    assert "it repeats 100000000 products, which are too many" in found.reason
    assert [size.length for size in found.sizes] == [16]


BROKEN = [
    ("a tile loses nothing", Form, "split", lambda form, chosen: (NOUGHT, form)),
    ("products of one part count", sums, "larger", lambda forms: forms[0]),
    ("a rounding loses nothing", sums, "after_rounding", lambda facts, how: sums.numbers(
        Known.number(frozenset({how.format})), facts.low, facts.high, facts.size)),
    ("a loop has one round", sums, "growth_of", lambda growth, count: Fraction(0)),
    ("sizes are not counted", sums, "numbers", lambda known, low, high, size: Facts(
        low, high, NOUGHT, number(0), known)),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "broken"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, broken: Any) -> None:
    """By an evaluation beyond the bound that it gives, or by a rule."""
    monkeypatch.setattr(owner, name, broken)
    plan = plan_of("sum(promote(1, fma, r), +0)")
    with pytest.raises((FaultError, RuleError)):
        ErrorOfPlan(plan, error_of(bound_of_plan(plan, 48, believed)).merged()).nearest(48)


def test_rules_refuse_what_is_not_so() -> None:
    plan, other = plan_of("sum(split(2, fma, r), +0)"), plan_of("sum(fma, +0)")
    composer = bound._Composer(plan, 16, believed)
    composer.result()
    (theorem,) = composer.sums.values()
    products = plan.sums[0]
    start = bound.enclosures.constant(PlanAt(plan, 16), products.start)
    with pytest.raises(RuleError, match="its start"):  # another plan at this K, as an object
        sums.of_all_products(PlanAt(plan, 16), products, theorem, start, [])
    at = PlanAt(plan, 24)
    with pytest.raises(RuleError, match="steps of the plan"):
        sums.of_all_products(at, products, theorem, bound.enclosures.constant(at, products.start), [])
    at = PlanAt(other, 16)
    with pytest.raises(RuleError, match="its start"):
        sums.of_all_products(at, other.sums[0], theorem, bound.enclosures.constant(at, other.sums[0].start), [])
    step = recorded(plan, products.stage, 16)
    assert isinstance(step, steps.Added)
    one = composer._step(step.values[0], {sums.START: frozenset({plan.c})})
    with pytest.raises(RuleError, match="not about its values"):
        sums.added(step, [one, one], [believed(RoundingLoses(step.rounding.format, step.rounding.mode))])


def test_every_product_is_in_a_sum_once() -> None:
    plan = plan_of("sum(fma, +0)")
    recorder = Recorder(plan)
    (model,) = plan.models
    pair = pair_read(plan, model, PLAIN)
    once = recorder.tile(model, PLAIN, Span.of(1), recorder.begin())
    with pytest.raises(RuleError, match="twice"):
        recorder.tile(model, PLAIN, Span.of(1), once)
    with pytest.raises(RuleError, match="two rounds"):
        Places({(pair, ((1, 0),)): 1}).looped(1, 3)
    assert Places({(pair, ((1, 2),)): 0b11}).looped(1, 5).are_all(10)
    assert not Places({(pair, ((1, 2),)): 0b1}).looped(1, 5).are_all(10)
    other = (pair[1], pair[0])
    both = {(pair, ((1, 2),)): 0b11, (other, ((1, 1),)): 1}
    assert Places({**both, (other, ((1, 1),)): 1}).looped(1, 10).are_all(20) is False  # of one pair half of them
    assert Places({(pair, ((1, 1),)): 1, (other, ((1, 1),)): 1}).looped(1, 10).are_all(10)
    assert not Places({}).are_all(0)


def test_plans_without_a_formula_say_why() -> None:
    found = find_plan_bound(plan_of("sum(split(2, halve(8, fma, r), r), c)"), Inputs(), (16,), believed)
    assert found.any is None
    assert "Halves" in found.reason
    assert found.verdict == "holds"
    with pytest.raises(RuleError, match="at most 512"):
        bound_of_plan(plan_of("sum(halve(1000, fma, r), c)"), None, believed)
    for step in ("sum(split(2, split([16], mma, r), r), c)", "sum(split([16], split(2, mma, r), r), c)"):
        with pytest.raises(
            RuleError, match="stage of At"
        ):  # what is cut at a place would be repeated; so would two runs
            bound_of_plan(plan_of(step), None, believed)
    for one, other, why in (
        ("mma", "first(8, mma, fma)", "different numbers"), ("fma", "halve(8, fma, r)", "different numbers"),
        ("promote(16, mma, r)", "compensate(8, mma, r)", "a period is not one sum"),
        ("promote(1021, fma, r)", "promote(1031, fma, r)", "1052651 products, which are too many"),
    ):  # fmt: skip
        two = plan_of(f"r(exact(sum({one}, +0), sum({other}, +0)))")
        with pytest.raises(RuleError, match=why):
            bound_of_plan(two, None, believed)
    assert error_of(bound_of_plan(plan_of("r(exact(sum(mma, +0), sum(first(8, mma, fma), +0)))"), 24, believed)).parts


def test_sums_of_a_unit_that_rectifies_have_no_bound(tmp_path: Path) -> None:
    """What is exact there is no sum of products; nor has such a unit a share of the sum of magnitudes."""
    file = tmp_path / "unit.yaml"
    file.write_text(
        "unit: rectified\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 1\n"
        "roundings: {r: 'round(f32, nearest_even)'}\nsteps: {d: 'r(relu(exact(a[0] * b[0], c)))'}\n"
    )
    unit = parse_reference(str(file)).unit
    with pytest.raises(RuleError, match="rectifies"):
        bound_of_plan(Plan.chained(Model("rectified", unit)), 4, believed)
    with pytest.raises(RuleError):
        adds_products(unit)


@pytest.mark.parametrize("plan", [False, True])
def test_an_input_without_an_error_is_called_near_no_bound(plan: bool, tmp_path: Path) -> None:
    """Products of e2m1 numbers are added without a loss."""
    unit, file = tmp_path / "unit.yaml", tmp_path / "plan.yaml"
    unit.write_text(
        f"unit: tiny\nformats: {{a: e2m1, b: e2m1, c: {'f32' if plan else 'none'}, d: f32}}\nlength: 2\n"
        f"roundings: {{r: 'round(f32, nearest_even)'}}\nsteps: {{d: 'r(exact(a[0:2] * b[0:2]{', c' * plan}))'}}\n"
    )
    file.write_text(
        "plan: tiny\nformats: {a: e2m1, b: e2m1, c: f32, d: f32}\nunits: {u: unit.yaml}\n"
        "roundings: {r: 'round(f32, nearest_even)'}\nsteps: {d: 'sum(u, +0)'}\n"
    )
    asked = [f"plan:{file}", "--length", "4"] if plan else [str(unit)]
    done = CliRunner().invoke(main, ["prove", "--property", "error-bound", *asked])
    assert done.exit_code == 0, done.output
    assert re.search("^ +none of [0-9]+ inputs has an error$", done.stderr, re.MULTILINE)
    assert "an error of 0" not in done.stderr


@pytest.mark.parametrize(("length", "found"), [(2, False), (64, True)])
def test_errors_of_sums_of_few_exponents_are_found(length: int, found: bool) -> None:
    """Products of e2m1 numbers, rounded to f16: sums of 11 bits alone have no error."""
    unit = parse_unit(
        "unit: tiny\nformats: {a: e2m1, b: e2m1, c: f32, d: f32}\nlength: 4\n"
        "roundings: {r: 'round(f32, nearest_even)'}\nsteps: {d: 'r(exact(a[0:4] * b[0:4], c))'}\n", "tiny.yaml"
    )  # fmt: skip
    plan = Plan.chained(Model("tiny", unit), from_zero=True)
    plan = plan.with_result(Round(plan.result, Rounding(FORMATS["f16"])))
    near, tried = ErrorOfPlan(plan, error_of(bound_of_plan(plan, length, believed))).nearest(length)
    assert near is not None
    assert tried > 1000
    assert (near.ratio > Fraction(9, 10)) == found == bool(near.error)


def test_the_command_prints_a_formula_and_numbers(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(FILE.format(step="sum(promote(32, fma, r), c)", d="f32"), encoding="utf-8")
    line = ["prove", "--property", "error-bound", f"plan:{file}", "--store", str(tmp_path / "s")]
    done = CliRunner().invoke(main, [*line, "--length", "97", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["verdict"] == "holds"
    assert document["formula"]["multiples"] == 32
    (size,) = document["sizes"]
    assert size["length"] == 97
    assert 0.2 < size["nearest"]["ratio"] <= 1
    assert sum(alike["count"] for alike in size["nearest"]["a"]) == 97
    assert all("unsat" in lemma["by"] or "evaluated" in lemma["by"] for lemma in document["lemmas"])
    assert "for K = 32 n, any n: |d - exact| <= (" in done.stderr
    assert "it says nothing of K = 97: see below" in done.stderr
    assert "of the bound there (its numbers: --json)" in done.stderr
    done = CliRunner().invoke(main, [*line, "--length", "0"])
    assert done.exit_code == 2


def test_numbers_of_a_plan_are_exact() -> None:
    """A number in a plan, and its sign, count in the exact result that a bound is about."""
    plan = plan_of(AXPBY)
    assert bound_samples.exact_result(plan, Fraction(4), Fraction(2)) == Fraction(5)
    assert bound_samples.exact_result(plan, Fraction(4), Fraction(2), magnitudes=True) == Fraction(7)
    a = np.array([0x3C00, 0x4000], dtype=np.uint16)
    assert bound_samples._sums(plan, a, a)[1] == Fraction(15, 2)


def test_a_data_sheet_of_a_plan() -> None:
    plan = parse_plan(FILE.format(step="sum(split(2, promote(32, chain(mma, tail=fma), r), r), c)", d="f32"),
                      "small.yaml", parse_reference)  # fmt: skip
    assert [one.tried for one in find_plan_bound(plan, Inputs(), (64,), believed, late=lambda: True).sizes] == [0]
    found = find_plan_bound(plan, Inputs(), (64, 1024), believed, searched=64)
    sheet = sheet_of_plan(plan, "small.yaml", document_of_plan(found, "small.yaml"))
    lines = [(line.name, line.value) for line in sheet.lines]
    assert ("Sum of the products", "every 32 products from +0, added as f32, nearest even") in lines
    assert ("Sum of the products", "left over: one product after another, each result the next one's addend") in lines
    assert ("K without a tail", "every multiple of 64, perhaps others") in lines
    assert ("NaN", "nan (7fffffff)") not in lines
    bounds = [line for line in sheet.lines if line.name.startswith("Error")]
    assert [line.name for line in bounds] == ["Error, K = 64 n", "Error, K = 64", "Error, K = 1024"]
    assert "an input comes to 0." in bounds[1].basis
    assert bounds[2].basis == "proved"


def test_a_data_sheet_of_a_plan_without_c_has_special_values_in_products() -> None:
    plan = parse_plan_reference("plan:cublas/split-k")
    found = find_plan_bound(plan, Inputs(), (64,), believed, late=lambda: True)
    lines = {line.name: line.value for line in sheet_of_plan(plan, "split-k", document_of_plan(found, "split-k")).lines}
    assert lines["Formats"] == "f16 * f16 -> f16"
    assert [lines[name] for name in ("NaN * 1", "infinity * 0", "infinity - infinity")] == [
        "nan (pattern not known)"] * 3  # fmt: skip
    assert lines["-0 * 1, every product"] == "0 (0000)"
    assert not {"NaN", "-0 * 1 + (-0), other products +0"} & lines.keys()


def test_a_data_sheet_says_which_k_leave_no_tail() -> None:
    for step, text in (
        ("split([64, 128], mma, r)", "128 and a multiple of 8"),
        ("promote(64, mma, r)", "every multiple of 64, perhaps others"),
        ("mma", "multiples of 8"),
        ("windows(6, fma, r)", "multiples of 1"),
    ):
        plan = parse_plan(FILE.format(step=f"sum({step}, c)", d="f32"), "cut.yaml", parse_reference)
        found = find_plan_bound(plan, Inputs(), (256,), believed, late=lambda: True)
        lines = {line.name: line.value for line in sheet_of_plan(plan, "cut", document_of_plan(found, "cut")).lines}
        assert lines["K without a tail"] == text


def test_a_data_sheet_of_a_plan_calls_special_values_by_its_inputs() -> None:
    """With a negative alpha, -infinity as a product and infinity as c are infinities of one sign."""
    plan = parse_plan(FILE.format(step="r(exact(product(number(0xbf800000, f32), sum(mma, +0)), c))", d="f32"),
                      "minus.yaml", parse_reference)  # fmt: skip
    found = find_plan_bound(plan, Inputs(), (64,), believed, late=lambda: True)
    lines = {line.name: line.value for line in sheet_of_plan(plan, "minus", document_of_plan(found, "minus")).lines}
    assert lines["-infinity * 1, c = infinity"] == "inf (7f800000)"
    assert "infinity - infinity" not in lines


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_no_study_is_beyond_its_bound(distribution: str) -> None:
    """Every element of a drawn product, on units and in f32."""
    study = study_named("proved-bounds")
    product = Product(study, Draw(distribution, 64, 3))
    for series in study.series[: len(study.series) // 2]:
        (above,) = (one for one in study.series if one.label == f"{series.label}, proved bound")
        error, bound = np.abs(product.error(series)), product.error(above)
        assert (error <= bound).all()
        assert (error > 0).any()
        assert bound.max() < 1000 * error.max()


def test_the_page_of_bounds_is_that_of_its_records() -> None:
    records = read_records()
    assert sorted(records) == EVERY
    assert PAGE.read_text(encoding="utf-8") == page([records[name] for name in EVERY])
    for name in ("cublas/split-k", "deepgemm/fp8", "loop/fma"):  # and these are what is proved now
        row = records[name]
        plan = parse_plan_path(f"plan:{name}")
        for size in row["sizes"]:
            text = sum_text(error_of(bound_of_plan(plan, size["length"], believed)).merged())
            assert size["bound"] == f"|d - exact| <= {text}"
            assert size["nearest"] is None or 0 < size["nearest"]["ratio"] <= 1


@pytest.mark.parametrize("name", ["cublas/tf32", "cutlass/tf32-truncated"])
def test_inputs_lose_most_where_both_sides_are_converted(name: str) -> None:
    plan = parse_plan_reference(f"plan:{name}")
    near, _ = ErrorOfPlan(plan, error_of(bound_of_plan(plan, 64, believed)).merged()).nearest(64)
    assert near is not None
    assert near.ratio > Fraction(9, 10)


def test_changes_of_the_best_input_come_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a plan that rounds the sum to f16: the result moves to where that loses most."""
    plan = parse_plan_reference("plan:cublas/plain")
    form = error_of(bound_of_plan(plan, 96, believed)).merged()
    climbed, tried = ErrorOfPlan(plan, form).nearest(96)
    monkeypatch.setattr(bound_samples, "STEPS", 0)
    before, fewer = ErrorOfPlan(plan, form).nearest(96)
    assert climbed is not None
    assert before is not None
    assert tried > fewer
    assert climbed.ratio > max(before.ratio, Fraction(9, 10))


def test_the_second_nearest_input_may_lead_farther(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parse_plan_reference("plan:multiword/egemm-tc")
    form = error_of(bound_of_plan(plan, 64, believed)).merged()
    two, _ = ErrorOfPlan(plan, form).nearest(64)
    monkeypatch.setattr(bound_samples, "CLIMBERS", 1)
    one, _ = ErrorOfPlan(plan, form).nearest(64)
    assert two is not None
    assert one is not None
    assert two.ratio > Fraction(2, 5) > one.ratio


def test_inputs_come_near_a_bound_with_scale_factors() -> None:
    unit = "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e5m2.e5m2.ue8m0"
    (size,) = find_plan_bound(parse_plan_reference(f"plan:{unit}"), Inputs(), (96,), believed).sizes
    assert size.near is not None
    assert size.near.ratio > Fraction(1, 2)
    with pytest.raises(FaultError):
        ErrorOfPlan(parse_plan_reference(f"plan:{unit}"), size.form * Fraction(1, 2)).nearest(96)


@pytest.mark.parametrize(("name", "least"), [("triton/bf16x3", 0.6), ("cutlass/tf32x3", 0.5), ("xla/bf16x3", 0.65)])
def test_numbers_of_which_words_leave_most_come_near(name: str, least: float) -> None:
    plan = parse_plan_reference(f"plan:{name}")
    near, _ = ErrorOfPlan(plan, error_of(bound_of_plan(plan, 4, believed)).merged()).nearest(4)
    assert near is not None
    assert near.ratio > least


def test_slices_have_a_bound_in_the_largest_elements() -> None:
    """That of the rule, held against random products, whose errors are above a 4096th of it."""
    plan = parse_plan_reference("plan:ozaki/int8-6")
    found = find_plan_bound(plan, Inputs(), (96,), believed)
    (goal,) = found.largest
    assert (found.verdict, found.sizes, goal.length) == ("holds", [], 96)
    assert Fraction(1, 1 << 38) < goal.share < Fraction(1, 1 << 34)
    (shown,) = document_of_plan(found, "mine").largest
    assert shown.bound == f"|d - exact| <= {up_text(goal.share)} * K * max |a_k| * max |b_k|"
    with pytest.raises(FaultError, match="in the largest elements"):
        bound_samples.hold_largest(plan, replace(goal, share=goal.share / 4096))


def test_every_plan_has_a_bound_in_the_largest_elements(tmp_path: Path) -> None:
    """By its name, with a certificate; also where the result is rounded once more, for any K, and of units."""
    store = ["--store", str(tmp_path / "s"), "--no-confirm"]
    line = ["prove", "--property", "error-bound", "--measure", "largest", *store]
    done = CliRunner().invoke(
        main, [*line, "plan:cublas/plain", "--length", "64", "--certificate", str(tmp_path / "c")]
    )
    assert done.exit_code == 0, done.output
    assert re.search(r"for K = 16 n, any n: .* <= \(1.* G \+ 1.*\) \* K \* max \|a_k°\| \* max \|b_k°\| ", done.output)
    assert re.search(
        r"for K = 64: .* <= 1.0049\*2\^-11 \* K \* max \|a_k°\| \* max \|b_k°\| \+ 1.0001\*2\^-25", done.output
    )
    findings = list(check_folder(tmp_path / "c"))
    assert {found.kind for found in findings} == {"fine"}
    assert any("states: for any n from 1 on" in found.says and "max |a_k°|" in found.says for found in findings)
    for unit, wanted in (("ieee/fma/f32", "2^-24 * max |a_k| * max |b_k| + 2^-24 * |c|"),
                         ("ieee/fma/f32 --length 8", "1.0001*2^-18 * max |a_k| * max |b_k|")):  # fmt: skip
        done = CliRunner().invoke(main, [*line, *unit.split()])
        assert wanted in done.output, done.output


def test_only_what_is_known_of_the_result_is_said_of_the_largest_elements() -> None:
    plan = plan_of("r(exact(sum(mma, c), c))")
    theorem = bound_of_plan(plan, 16, believed)
    inner = next(one for one in theorem.walk() if one.rule == "of_all_products")
    drawn = chain_of(parse_reference("ieee/fma/f32").unit, believed)
    for other in (inner, *drawn.premises):
        with pytest.raises(RuleError, match="is not that of the result, or assumes something"):
            of_largest(other)
    scaled = parse_reference("blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e5m2.e5m2.ue8m0").unit
    with pytest.raises(RuleError, match="no bound is stated in terms of the largest scale"):
        of_largest(bound_of(scaled, believed))


def test_a_plan_with_a_number_has_a_bound_that_is_checked(tmp_path: Path) -> None:
    file, store = tmp_path / "small.yaml", ["--store", str(tmp_path / "s")]
    step = "r(exact(product(number(0xbfc00000, f32), sum(fma, +0)), c))"
    file.write_text(FILE.format(step=step, d="f32"), encoding="utf-8")
    line = ["prove", "--property", "error-bound", f"plan:{file}@length=4", *store]
    done = CliRunner().invoke(main, [*line, "--certificate", str(tmp_path / "c")])
    assert done.exit_code == 0, done.output
    assert not any(found.kind == "fault" for found in check_folder(tmp_path / "c"))


CONVERTED = """plan: converted
formats: {{a: e5m2, b: e5m2, c: f32, d: e8m13}}
units: {{u: 'hopper/wgmma/m64n8k32.f32.e4m3.e4m3@length=1,fraction_bits=3'}}
roundings: {{h: 'round(e4m3, {mode})'}}
convert: {{a: h, b: h}}
steps: {{d: 'sum(u, c)'}}
"""


@pytest.mark.parametrize(
    ("mode", "k"),
    [("nearest_even", 1), ("toward_zero", 3), ("up", 3), ("nearest_even, subnormals=flush_after", 3)],
)
def test_elements_of_more_exponents_than_the_format_to_which_they_are_rounded(mode: str, k: int) -> None:
    """Of one product every element that does not overflow; of several, most are tiny: rounded, they are subnormal."""
    plan = parse_plan(CONVERTED.format(mode=mode), "converted.yaml", parse_reference)
    finite, tiny, rng = np.arange(0x5F, dtype=np.uint8), np.arange(0x18, 0x24, dtype=np.uint8), np.random.default_rng(9)
    assert bound_samples._number(0x5E, plan.a) == 384
    a = finite[:, None]
    if k > 1:
        a = np.where(rng.random((40, 1)) < 0.8, rng.choice(tiny, (40, k)), rng.choice(finite, (40, k)))
        a = a.astype(np.uint8) | rng.choice(np.array([0, 0x80], dtype=np.uint8), (40, k))
    d, form, close = simulate(a, a.T, None, plan), error_of(bound_of_plan(plan, k, believed)), Fraction(0)
    for row, column in np.ndindex(d.shape):
        error = abs(
            bound_samples._number(int(d[row, column]), plan.d) - bound_samples._sums(plan, a[row], a[column])[1]
        )
        limit = ErrorOfPlan(plan, form).bound_at(a[row], a[column], 0)
        assert error <= limit, (a[row], a[column])
        close = max(close, error / limit if error else Fraction(0))
    assert close > Fraction(1, 16)


def test_a_plan_reads_the_formats_of_its_scale_factors() -> None:
    plan = Plan.chained(parse_reference("blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"))
    theorem: Any = RULES["element"](PlanAt(plan), Element("scale_a", Index()))
    assert theorem.goal.facts.known.formats == {plan.scale}
