"""Certificates of the error bounds of plans: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import main
from queries.building.naming import with_nan
from queries.certificates.magnitudes import FaultError
from queries.certificates.sum_rules import SumTree, _conversions, geometric, holds
from queries.checking.folder import check_folder
from queries.checking.plan_bounds import tree_fault
from queries.checking.plan_steps import Steps, _Runner, covered, steps_of
from queries.kernel.enclosures import Enclosed, weakened
from queries.kernel.induction import Chained
from queries.kernel.steps import PlanAt, recorded
from queries.kernel.sums import growth_of
from queries.kernel.theorem import RuleError
from queries.plans.bound import bound_of_plan
from queries.plans.certify import plan_texts, read_plan
from queries.properties.asked import plain
from queries.properties.bound import bound_of, chain_of, error_of
from queries.properties.bound_certificate import certify_theorems
from queries.search.distinguish import Options
from queries.tactics.settling import Settled
from queries.tactics.written_plan import WrittenPlan, units_of
from smtmodel.display import exact_value
from smtmodel.formats import Format, format_named
from smtmodel.nodes import Index
from smtmodel.plans import Chain, Halves, Plan, Promoted, Span, Split
from smtmodel.plans.planfile import parse_plan
from smtmodel.plans.stages import Engine
from smtmodel.reference import parse_plan_path, parse_plan_reference, parse_reference
from smtmodel.unitfile import parse_unit, unit_text
from tests.tampering import accepted, documents, fitted, put, tampered
from tests.test_bounds import believed
from tests.test_plan_bounds import EVERY, FILE, HALVES, STEPS, plan_of

Document = dict[str, Any]
CONVERTED_TEXT = """plan: small
formats: {a: f32, b: f32, c: f32, d: f32}
units: {mma: ampere/mma/m16n8k8.f32.tf32.tf32.f32}
roundings: {r: 'round(f32, nearest_even)', p: 'round(tf32, nearest_away)', q: 'round(tf32, toward_zero)'}
convert: {a: p, b: q}
steps: {d: 'sum(promote(16, mma, r), c)'}
"""
CONVERTED = {
    "converted": parse_plan(CONVERTED_TEXT, "small.yaml", parse_reference),
    "narrowed": parse_plan(CONVERTED_TEXT.replace("mma/m16n8k8.f32.tf32.tf32.f32", "mma/m16n8k8.f32.f16.f16.f32")
                           .replace("tf32", "f16"), "small.yaml", parse_reference),
}  # fmt: skip
QUICK = Options("bitwuzla", 60.0)


def tree_of(plan: Plan, length: int | None) -> Document:
    """The tree of a bound; no lemma in it was proved."""
    root = bound_of_plan(plan, length, believed)
    root = weakened(root, error_of(root).merged())
    assert isinstance(root.goal, Enclosed)
    assert isinstance(root.goal.unit, PlanAt)
    names = {one: "chain" for one in root.walk() if isinstance(one.goal, Chained)}
    names |= {one: "lemma" for one in root.walk() if one.rule == "settled"}
    found: Document = json.loads(json.dumps(WrittenPlan(root.goal.unit).stating([root], names)))
    return found


def faults(plan: Plan, document: Document) -> list[str]:
    try:
        found = [text for _, text in SumTree(document, [plain(unit) for unit in units_of(plan)]).check()]
        return found + [text for text in [tree_fault(document, plan)] if text]
    except Exception as error:  # as the command has it: a document that cannot be read
        return [repr(error)]


@pytest.mark.parametrize("step", STEPS + HALVES)
def test_trees_of_small_plans_pass(step: str) -> None:
    plan = plan_of(step)
    assert faults(plan, tree_of(plan, 48)) == []
    assert faults(plan, tree_of(plan, None)) == []


@pytest.mark.parametrize("name", EVERY)
def test_trees_of_plans_that_ship_pass(name: str) -> None:
    plan = parse_plan_path(f"plan:{name}")
    assert faults(plan, tree_of(plan, 100 if name == "loop/lanes" else 96)) == []
    assert faults(plan, tree_of(plan, None)) == []


@pytest.mark.parametrize("model", [
    "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e5m2.ue8m0", "arm/neon/bfdot",
    "cdna3/mfma/f32_16x16x32_fp8_fp8",
])  # fmt: skip
def test_trees_of_chained_units_pass_from_their_files(model: str, tmp_path: Path) -> None:
    """With scale factors, inputs read as zero, and a product that has a limit."""
    plan = parse_plan_reference(f"plan:{model}")
    for name, text in plan_texts({"one.plan.yaml": plan}).items():
        (tmp_path / name).write_text(text)
    again = read_plan(tmp_path, "one.plan.yaml")
    for length in (3 * plan.models[0].length, None):
        assert faults(again, tree_of(plan, length)) == []


# -- one thing that is not so

Change = Callable[[Document], None]
MORE = ["1", [[["c", 0, [], False]]]]  # |c|
PROMOTED, SPLIT, HALVED = "sum(promote(16, fma, r), c)", "sum(split(2, fma, r), c)", "sum(halve(2, fma, r), c)"
AFTER = "r(exact(product(number(0x3fc00000, f32), sum(fma, c)), c))"
CASCADE = "sum(split([8], promote(8, fma, r), r), c)"


def of(document: Document, name: str, place: int = 0) -> Document:
    """A theorem by a rule."""
    found: Document = [one for one in document["theorems"] if one["rule"] == name][place]
    return found


def premise(document: Document, name: str, place: int) -> Document:
    """The goal of a premise of the last theorem by a rule."""
    found: Document = document["theorems"][of(document, name, -1)["premises"][place]]["goal"]
    return found


def goal(name: str, **parts: Any) -> Change:
    """Something else in the goal of the last theorem by a rule, or in its facts."""

    def change(document: Document) -> None:
        own = of(document, name, -1)["goal"]
        for key, value in parts.items():
            (own if key in own else own["facts"])[key] = value

    return change


def before(name: str, place: int, **parts: Any) -> Change:
    """Something else in the goal of a premise of a theorem by a rule, or in its facts."""

    def change(document: Document) -> None:
        own = premise(document, name, place)
        for key, value in parts.items():
            (own if key in own else own["facts"])[key] = value

    return change


def theorem(name: str, **parts: Any) -> Change:
    return lambda document: of(document, name).update(parts)


def rests(name: str, change: Callable[[list[int]], list[int]]) -> Change:
    def changed(document: Document) -> None:
        one = of(document, name, -1)
        one["premises"] = change(one["premises"])

    return changed


def unit_step(name: str, value: Any) -> Change:
    return lambda document: of(document, "chained")["goal"]["step"].update({name: value})


def plus(name: str, place: int, part: str, more: Any) -> Change:
    """A further magnitude in what a premise says."""
    return lambda document: premise(document, name, place)["facts"][part].append(more)


def first_step(kind: str, **parts: Any) -> Change:
    return lambda document: next(one for one in document["steps"] if one["kind"] == kind).update(parts)


def scaled(name: str, part: str, factor: Fraction) -> Change:
    """A coefficient in the facts of a theorem's goal, another number."""

    def change(document: Document) -> None:
        facts = of(document, name, -1)["goal"]["facts"]
        for side in ("low", "high") if part == "error" else (part,):
            facts[side][0][0] = str(Fraction(facts[side][0][0]) * factor)

    return change


def every(*changes: Change) -> Change:
    def change(document: Document) -> None:
        for one in changes:
            one(document)

    return change


AB = ["1", [[["a", 0, [], False], ["b", 1, [], False]]]]
HALF_ERROR = [["1/2", [[["error", 1, [], False]]]]]
REFUSED: list[tuple[str, int | None, Change, str]] = [
    (PROMOTED, 32, theorem("begun", rule="assumed"), "there is no such rule"),
    (PROMOTED, 32, theorem("begun", rule="held"), "its step is begin, not sofar"),
    (PROMOTED, 32, goal("begun", **{"is": "Enclosed"}), "cannot be read"),
    (PROMOTED, 32, theorem("chained", rule="begun"), "its goal is of another kind"),
    (PROMOTED, 32, goal("begun", assuming=[]), "it assumes one thing"),
    (PROMOTED, 32, goal("begun", growth="2"), "it assumes one thing"),
    (PROMOTED, 32, goal("begun", assuming=[[3, [0]]]), "it is about another sum"),
    (PROMOTED, 32, goal("held", assuming=[[0, [0]]]), "it is about another sum"),
    (PROMOTED, 32, goal("begun", size=[]), "the conclusion does not follow: size"),
    (PROMOTED, 32, theorem("nothing", premises=[0]), "a zero rests on nothing"),
    (PROMOTED, 32, goal("nothing", assuming=[[0, [0]]]), "it assumes something else"),
    (PROMOTED, 32, goal("nothing", size=[MORE]), "the conclusion does not follow"),
    (PROMOTED, 32, theorem("chained", premises=[0]), "it is not about an instruction"),
    (PROMOTED, 32, theorem("chained", leaf=None), "no part is named"),
    (PROMOTED, 32, theorem("settled", leaf=None), "no file is named"),
    # a tile
    (PROMOTED, 32, rests("tile", lambda own: [own[1], *own[1:]]), "not about its unit"),
    (PROMOTED, 32, rests("tile", lambda own: [own[0], own[0], *own[2:]]), "a premise about a step is needed"),
    (PROMOTED, 32, lambda document: of(document, "chained")["goal"].update(model=1), "not about its unit"),
    (PROMOTED, 32, first_step("tile", start=0), "is not about its start"),
    (PROMOTED, 32, before("tile", 1, formats=None), "not a number of the unit's addend"),
    (PROMOTED, 32, lambda document: document["formats"][1].update(name="other"), "another format"),
    (PROMOTED, 32, unit_step("own", [MORE]), "an instruction adds more than products"),
    (PROMOTED, 32, unit_step("size", [MORE]), "an instruction adds more than products"),
    (PROMOTED, 32, unit_step("own", [AB]), "it is not about single products"),
    (PROMOTED, 32, unit_step("own", [["1", [[["a", 0, [[1, 1]], False]]]]]), "it is not about single products"),
    (PROMOTED, 32, unit_step("own", [["1", [[["a", 0, [], False], ["exact", 0, [], False]]]]]), "single products"),
    (PROMOTED, 32, unit_step("growth", "2"), "tile: the conclusion does not follow"),
    (PROMOTED, 32, scaled("tile", "error", Fraction(1, 2)), "tile: the conclusion does not follow"),
    (PROMOTED, 32, scaled("tile", "size", Fraction(1, 2)), "tile: the conclusion does not follow"),
    (PROMOTED, 32, goal("tile", assuming=[]), "it assumes something else than its premises"),
    (PROMOTED, 32, goal("tile", growth="2"), "it grows at another rate"),
    ("converted", 32, unit_step("size", [["2", [[["a", 0, [], False], ["b", 0, [], False]]]]]), "products of a and b"),
    ("converted", 32, rests("tile", lambda own: own[:2]), "a lemma about the datapath is missing"),
    # an addition
    (SPLIT, 16, rests("added", lambda own: [own[1], own[0], *own[2:]]), "not about its values"),
    (SPLIT, 16, rests("added", lambda own: own[:-1]), "a lemma about the datapath is missing"),
    (SPLIT, 16, scaled("added", "error", Fraction(1, 2)), "added: the conclusion does not follow"),
    (SPLIT, 16, goal("added", assuming=[]), "it assumes something else than its premises"),
    (SPLIT, 16, every(before("added", 1, assuming=[[0, []]]), goal("added", assuming=[[0, []], [0, [1]]])),
     "two formats are assumed of one sum"),
    (SPLIT, None, before("added", 1, growth="3"), "it grows at another rate"),
    # a loop
    (PROMOTED, 32, rests("iterated", lambda own: own[::-1]), "not about its start and its body"),
    (PROMOTED, 32, before("iterated", 1, growth="2"), "depends on more than the sum so far"),
    (PROMOTED, 32, before("iterated", 1, assuming=[]), "depends on more than the sum so far"),
    (PROMOTED, 32, before("iterated", 1, assuming=[[1, [0]], [2, [0]]]), "depends on more than the sum so far"),
    (PROMOTED, 32, before("iterated", 1, assuming=[[2, [0]]]), "another sum so far is assumed"),
    (PROMOTED, 32, before("iterated", 0, assuming=[[0, [0]], [1, [0]]]), "another sum so far is assumed"),
    (PROMOTED, 32, before("iterated", 0, formats=None), "not a number of the formats assumed"),
    (PROMOTED, 32, before("iterated", 1, formats=[0, 1]), "not a number of the formats assumed"),
    (PROMOTED, 32, before("iterated", 1, low=HALF_ERROR, high=HALF_ERROR), "enters a round in another way"),
    (PROMOTED, 32, plus("iterated", 1, "size", ["1", [[["error", 1, [], False]]]]), "enters a round in another way"),
    (PROMOTED, 32, before("iterated", 1, size=[["2", [[["size", 1, [], False]]]]]), "enters a round in another way"),
    (PROMOTED, 32, plus("iterated", 1, "size", MORE), "a round adds more than products"),
    (PROMOTED, 32, plus("iterated", 1, "low", MORE), "a round adds more than products"),
    (PROMOTED, 32, plus("iterated", 1, "low", ["1", [[["error", 1, [], False], ["c", 0, [], False]]]]), "not linear"),
    (PROMOTED, 32, first_step("loop", count=0), "a loop has a round"),
    (PROMOTED, 32, first_step("loop", count=17), "the bound is smaller than what follows"),
    (PROMOTED, 32, first_step("loop", count=15), "the bound is larger than what follows"),
    (PROMOTED, None, before("iterated", 0, growth="2"), "begins with what is repeated"),
    (PROMOTED, 32, goal("iterated", growth="2"), "it assumes something else, or grows so"),
    (PROMOTED, None, goal("iterated", growth="2"), "or grows so"),
    (PROMOTED, 32, goal("iterated", assuming=[]), "it assumes something else, or grows so"),
    (PROMOTED, 32, scaled("iterated", "error", Fraction(1, 2)), "the bound is smaller than what follows"),
    (PROMOTED, 32, scaled("iterated", "size", Fraction(1, 2)), "the conclusion does not follow"),
    # halves
    (HALVED, None, rests("halved", lambda own: [own[1], own[0], *own[2:]]), "not about its leaves"),
    (HALVED, None, rests("halved", lambda own: own[:-1]), "a lemma about the datapath is missing"),
    (HALVED, None, goal("halved", assuming=[]), "leaves assume different things"),
    (HALVED, None, before("halved", 1, assuming=[[0, []]]), "leaves assume different things"),
    (HALVED, None, before("halved", 1, growth="2"), "a leaf is of any number of products"),
    (HALVED, None, before("halved", 1, formats=[0]), "leaves are not numbers of one format"),
    (HALVED, None, plus("halved", 1, "size", MORE), "the start enters in another way"),
    (HALVED, None, plus("halved", 1, "low", MORE), "the start enters in another way"),
    (HALVED, None, before("halved", 1, size=[["2", [[["size", 0, [], False]]]]]), "the start enters in another way"),
    (HALVED, None, goal("halved", growth=None), "it grows at another rate"),
    (HALVED, None, scaled("halved", "error", Fraction(1, 2)), "halved: the conclusion does not follow"),
    # the sum of all products, and what is around it
    (PROMOTED, 32, rests("of_all_products", lambda own: [*own, own[1]]), "it is not about its start"),
    (PROMOTED, 32, before("of_all_products", 1, assuming=[{"level": 1, "formats": []}]), "it is not about its start"),
    (PROMOTED, 32, lambda document: document.update(sums=[0]), "not about the steps of the plan"),
    (PROMOTED, None, lambda document: document.update(growth="2"), "it grows at another rate"),
    (PROMOTED, 32, before("of_all_products", 0, assuming=[[1, [0]]]), "more than its start is assumed"),
    (PROMOTED, 32, before("of_all_products", 1, formats=None), "more than its start is assumed"),
    (PROMOTED, 32, before("of_all_products", 0, assuming=[[0, [0]]]), "not a number of the format assumed"),
    (AFTER, 8, lambda document: document["nodes"].append({"kind": "product", "left": 2, "right": 2}), "two sums"),
    (PROMOTED, 32, goal("of_all_products", assuming=[{"level": 1, "formats": []}]), "of_all_products: it assumes"),
    (PROMOTED, 32, scaled("of_all_products", "error", Fraction(1, 2)), "of_all_products: the conclusion"),
    (PROMOTED, 32, scaled("weakened", "error", Fraction(1, 2)), "it is not implied by its premise"),
    (PROMOTED, 32, lambda document: document.update(states=[0]), "it is stated, but is not a bound of the result"),
    # the steps
    (PROMOTED, 32, lambda document: document["unit"].update(length=16), "has not the steps"),
    (PROMOTED, 32, lambda document: document["unit"].update(length=33), "has not the steps"),
    (PROMOTED, 32, lambda document: document["unit"].update(length=None), "has not the steps"),
    (PROMOTED, None, lambda document: document["unit"].update(length=32), "has not the steps"),
    (PROMOTED, 32, lambda document: document["unit"].update(c=0), "is not about"),
    (PROMOTED, 32, lambda document: document["steps"][-1].update(start=len(document["steps"])), "stands before"),
    (PROMOTED, 32, lambda document: document["steps"][-1].update(start=-1), "stands before"),
    (PROMOTED, 32, lambda document: document["steps"][-1].update(kind="loops"), "there is no step loops"),
]  # fmt: skip


def plan_named(step: str) -> Plan:
    return CONVERTED[step] if step in CONVERTED else plan_of(step)


@cache
def tree_named(step: str, length: int | None) -> Document:
    return tree_of(plan_named(step), length)


@pytest.mark.parametrize(("step", "length", "change", "says"), REFUSED, ids=[str(at) for at in range(len(REFUSED))])
def test_what_is_not_so_is_refused(step: str, length: int | None, change: Change, says: str) -> None:
    document = copy.deepcopy(tree_named(step, length))
    assert faults(plan_named(step), document) == []
    change(document)
    assert any(says in fault for fault in faults(plan_named(step), document)), faults(plan_named(step), document)


@pytest.mark.parametrize(("step", "length"), [(PROMOTED, 32), (SPLIT, None), (HALVED, None), ("converted", None),
                                              ("narrowed", 32), (CASCADE, None), (AFTER, 8)])  # fmt: skip
def test_any_value_changed_is_refused(step: str, length: int | None) -> None:
    """Some of them at random, each alone; what an instruction does is told by a part."""
    document, plan, rng = tree_named(step, length), plan_named(step), random.Random(4)
    told = {at for at, one in enumerate(document["theorems"]) if one["rule"] == "chained"}
    places = [(where, value) for where, value in documents(document)
              if where and where[-1] != "leaf" and not (where[0] == "theorems" and {*where[1:2]} & told)]  # fmt: skip
    for where, value in rng.sample(places, min(60, len(places))):
        assert faults(plan, put(document, where, value)), (where, value)


# -- the steps


def steps_at(plan: Plan, length: int | None) -> list[int]:
    steps = Steps(units_of(plan))
    return [steps_of(steps, plan, one.stage, length) for one in plan.sums]


@dataclass(frozen=True)
class Odd(Split):
    """A stage that takes some products twice, or not at all."""

    by: int = 0

    def spans(self, span: Span) -> Iterator[Span]:
        for one in super().spans(span):
            yield replace(one, start=Index(one.start.offset // 2 if self.by == 2 else one.start.offset + self.by))


@pytest.mark.parametrize(("by", "fine"), [(0, True), (1, False), (2, False)])
def test_every_product_is_taken_once(by: int, fine: bool) -> None:
    plan = plan_of(SPLIT)
    stage = plan.sums[0].stage
    assert isinstance(stage, Split)
    odd = Odd(stage.ways, stage.body, stage.rounding, by=by)
    with nullcontext() if fine else pytest.raises(FaultError, match="not every product is added once"):
        steps_of(Steps(units_of(plan)), plan, odd, 16)


class Late(Promoted):
    """A stage that promotes no products but those of its first period."""

    def run(self, engine: Engine[Any], span: Span, start: Any) -> Any:
        return super().run(engine, span, start) if span.count <= self.period else self.body.run(engine, span, start)


def test_several_periods_are_as_many_equal_steps() -> None:
    plan = plan_of(PROMOTED)
    stage = plan.sums[0].stage
    assert isinstance(stage, Promoted)
    late = Late(stage.every, stage.body, stage.rounding)
    assert steps_of(Steps(units_of(plan)), plan, late, late.period)
    with pytest.raises(FaultError, match="2 periods are not equal steps"):
        steps_of(Steps(units_of(plan)), plan, late, None)


@dataclass(frozen=True)
class Short(Split):
    """A stage that gives each part some products less than one instruction takes, where two and three times as many
    take two and three instructions, and four times as many three."""

    @property
    def period(self) -> int:
        return self.ways * (self.body.period - 1)


def test_what_is_repeated_takes_whole_instructions() -> None:
    plan = plan_of(SPLIT.replace("fma", "mma"))
    stage = plan.sums[0].stage
    assert isinstance(stage, Split)
    assert stage.body.period > 3
    short = Short(stage.ways, stage.body, stage.rounding)
    with pytest.raises(FaultError, match="a stage takes whole periods any number of times"):
        steps_of(Steps(units_of(plan)), plan, short, None)


def test_steps_of_two_units_are_two_steps() -> None:
    tiles = [{"kind": "tile", "model": model, "converts": [], "start": 0} for model in range(2)]
    assert len(set(Steps({}).written([{"kind": "begin"}, *tiles], []))) == 3


def test_every_product_of_several_runs_is_taken() -> None:
    plan = plan_of(SPLIT.replace("fma", "mma"))
    runner = _Runner(Steps(units_of(plan)), plan)
    (model,) = (part.model for part in plan.sums[0].stage.parts if isinstance(part, Chain))
    runner.tile(model, Span(Index(3), 2, 8, 4, 1), 0)
    assert runner.taken == [3, 4, 5, 6, 11, 12, 13, 14]


def test_rounds_that_differ_are_no_loop() -> None:
    plan = plan_of(SPLIT)
    steps = Steps(units_of(plan))
    runner = _Runner(steps, plan)
    with pytest.raises(FaultError, match="rounds of a loop are not alike"):
        runner.repeat(3, "", steps.made("begin"), lambda place, so_far: steps.made("tile", 0, (), place.offset // 2))


BACKWARDS = "sum(lanes(fma, r, 2, 2, fold(2, 1), unroll=8, order=backwards), c)"


@pytest.mark.parametrize("step", ["sum(split(2, halve(8, fma, r), r), c)", "sum(split(2, split([16], mma, r), r), c)",
                                  "sum(split(2, whole(8, mma, head=fma), r), c)", BACKWARDS,
                                  "sum(swizzle(2, split(2, fma, r)), c)",
                                  "sum(split(2, first(8, mma, fma), r), c)"])  # fmt: skip
def test_what_is_not_one_step_repeated_has_no_formula(step: str) -> None:
    plan = plan_of(step)
    with pytest.raises(FaultError, match="is not one step repeated"):
        steps_at(plan, None)
    with pytest.raises(RuleError, match="is not one step repeated"):
        recorded(plan, plan.sums[0].stage, None)


def test_of_halves_every_part_that_is_not_halved_is_looked_at() -> None:
    with pytest.raises(FaultError, match="too many leaves"):
        steps_at(plan_of("sum(halve(1000, fma, r), c)"), None)
    plan = plan_of("sum(halve(4, fma, r), c)")
    halves = plan.sums[0].stage
    assert isinstance(halves, Halves)
    odd = Odd(2, plan_of("sum(fma, c)").sums[0].stage, halves.rounding, grain=1, by=1)
    with pytest.raises(FaultError, match="not every product is added once"):
        steps_of(Steps(units_of(plan)), plan, replace(halves, body=odd), None)


@pytest.mark.parametrize("step", STEPS + HALVES)
def test_what_a_formula_covers_is_what_is_proved(step: str) -> None:
    plan = plan_of(step)
    found, repeats = covered(plan, None), PlanAt(plan).repeats
    assert (found.before, found.period, found.width) == (repeats.before, repeats.period, repeats.width)
    assert covered(plan, 48).text == "K = 48"


def test_sums_of_different_periods_have_no_formula() -> None:
    with pytest.raises(FaultError, match="different numbers"):
        covered(plan_of("r(exact(sum(mma, +0), sum(promote(24, mma, r), +0)))"), None)


# -- numbers


def test_a_geometric_sum_is_no_smaller_than_it_is() -> None:
    for rate in (Fraction(1), 1 + Fraction(1, 1 << 24), Fraction(5, 3), 1 + Fraction(5, 1 << 23)):
        for count in (0, 1, 2, 3, 7, 16, 100, 511):
            least = sum((rate**k for k in range(count)), Fraction(0))
            assert least <= geometric(rate, count) <= growth_of(rate, count) <= least * (1 + Fraction(1, 1 << 40))


def numbers_of(fmt: Format) -> set[Fraction | int]:
    found = [exact_value(pattern, fmt) for pattern in range(1 << fmt.width)]
    return {Fraction(0) if value == "-0" else value for value in found if not isinstance(value, str) or value == "-0"}


SMALL = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "e5m2fnuz", "e4m3fnuz", "ue4m3")


def test_a_format_that_holds_another_has_all_its_numbers() -> None:
    small, other = format_named("e2m1"), format_named("e3m2")
    formats = [*map(format_named, SMALL), replace(small, bias=2), replace(small, subnormals=False)]
    formats += [replace(other, specials=specials) for specials in ("ieee", "all_ones", "extended")]
    formats += map(format_named, ("e4m3_none", "e4m0_all_ones", "ue8m0", "ue4m0_all_ones", "ue3m1_none"))
    values, held = {fmt: numbers_of(fmt) for fmt in formats}, 0
    written = {fmt: {str(exact_value(pattern, fmt)) for pattern in range(1 << fmt.width)} for fmt in formats}
    for fmt in formats:
        for other in formats:
            if holds(asdict(fmt), asdict(other)):
                assert values[other] <= values[fmt], (fmt, other)
                held += fmt != other
            if fmt.holds(other):
                assert values[other] <= values[fmt], (fmt, other)
                assert all(pattern in written[fmt] for pattern in written[other]), (fmt, other)
    assert held > 8
    wide = ["e5m2", "e3m2", "e2m1", "e4m3", "f16", "tf32", "f32"]
    for less, more in pairwise(wide[4:]):
        assert holds(asdict(format_named(more)), asdict(format_named(less)))
        assert not holds(asdict(format_named(less)), asdict(format_named(more)))
    assert all(holds(asdict(format_named("f16")), asdict(format_named(name))) for name in wide[1:5])


def test_elements_are_not_rounded_for_a_unit_that_reads_them_as_zero() -> None:
    """What the rule of the kernel refuses, the checker refuses."""
    document = copy.deepcopy(tree_named("converted", 16))
    text = CONVERTED_TEXT.replace("ampere/mma/m16n8k8.f32.tf32.tf32.f32", "arm/neon/bfdot").replace("tf32", "bf16")
    plan = parse_plan(text, "small.yaml", parse_reference)
    units = [plain(unit) for unit in units_of(plan)]
    tree = SumTree(document, units)
    step = document["steps"][next(at for at, one in enumerate(document["steps"]) if one["kind"] == "tile")]
    assert plan.convert_a is not None
    if (how := asdict(plan.convert_a.format)) not in tree.formats:
        tree.formats.append(how)
    step["converts"] = [one | {"format": tree.formats.index(how)} for one in step["converts"]]
    with pytest.raises(FaultError, match="reads what is rounded as zero"):
        _conversions(tree, step, units[0])


# -- a whole certificate


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "small.yaml").write_text(FILE.format(step="sum(promote(8, fma, r), c)", d="f32"), encoding="utf-8")
    line = ["prove", "--property", "error-bound", f"plan:{folder / 'small.yaml'}", "--length", "32"]
    done = CliRunner().invoke(main, [*line, "--store", str(folder / "s"), "--certificate", str(folder / "c")])
    assert done.exit_code == 0, done.output
    return folder / "c"


@pytest.fixture
def copied(proved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(proved, tmp_path / "c"))


def test_the_command_checks_it(proved: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(proved)])
    assert done.exit_code == 0, done.output
    assert "sums.json, tree 0: states: for K = 8 n, every n > 0: |d - exact| <= " in done.output
    assert "sums.json, tree 1: states: for K = 32: |d - exact| <= " in done.output
    assert sorted(path.name for path in proved.iterdir() if path.is_dir()) == ["chain-1"]


@pytest.mark.parametrize("name", ["sums.json", "bounded.plan.yaml", "unit-1.yaml", "lemma-01.smt2", "lemma-01.drat",
                                  "chain-1/tree.json", "chain-1/unit.yaml", "chain-1/lemma-01.cnf"])  # fmt: skip
def test_a_file_that_is_missing_or_another_is_found(copied: Path, name: str) -> None:
    path = copied / name
    text = path.read_text()
    path.write_text(text.replace("1", "2", 1))
    assert not accepted(copied)
    path.unlink()
    assert not accepted(copied)


def of_sums(change: Change) -> Change:
    """In the tree for a K, which is the second one."""
    return lambda document: change(document["trees"][1])


SABOTAGE: list[Change] = [
    of_sums(unit_step("growth", "1")), of_sums(unit_step("own", [])), of_sums(scaled("added", "error", Fraction(1, 2))),
    of_sums(rests("added", lambda own: own[:-1])), of_sums(rests("weakened", lambda own: [])),
    of_sums(lambda tree: tree["unit"].update(length=24)), of_sums(lambda tree: tree["unit"].update(length=None)),
    of_sums(scaled("weakened", "error", Fraction(1, 2))), of_sums(theorem("chained", leaf="chain-2")),
    of_sums(theorem("settled", leaf="lemma-02")), lambda document: document["trees"].append({}),
    of_sums(lambda tree: tree["formats"][0].update(fraction=9)), lambda document: document.update(schema=2),
    lambda document: document["trees"][0]["unit"].update(length=8),
]  # fmt: skip


@pytest.mark.parametrize("change", SABOTAGE, ids=[str(at) for at in range(len(SABOTAGE))])
def test_trees_that_were_made_to_say_something_else_are_refused(copied: Path, change: Change) -> None:
    document = json.loads((copied / "sums.json").read_text())
    change(document)
    (copied / "sums.json").write_text(json.dumps(document))
    fitted(copied)
    assert not accepted(copied)


def test_any_line_of_the_plan_changed_is_refused(copied: Path) -> None:
    """Some of them, and of the manifest; what is said of units is compared with the parts."""
    assert list(tampered(copied, "*.plan.yaml", 2)) == []
    assert list(tampered(copied, "unit-1.yaml", 4)) == []
    assert list(tampered(copied, "manifest.json", 6)) == []


def test_what_a_part_says_of_another_unit_is_refused(copied: Path) -> None:
    """A part that passes by itself, of a unit that the plan does not use."""
    other = parse_reference("ampere/mma/m16n8k8.f32.f16.f16.f32").unit
    certify_theorems([chain_of(other, Settled(QUICK, False))], other, copied / "chain-1", QUICK)
    fitted(copied)
    assert accepted(copied / "chain-1")
    assert "chain-1 does not state it" in [found.says for found in check_folder(copied) if found.kind == "fault"]
    (copied / "unit-1.yaml").write_text(unit_text(other))
    fitted(copied)
    assert not accepted(copied)


def test_what_a_part_says_with_the_same_bound_is_refused(copied: Path) -> None:
    """Of a unit that writes another NaN, and of one instruction instead of a chain of them."""
    part = copied / "chain-1"
    unit = parse_unit((part / "unit.yaml").read_text(), "unit.yaml")
    other = with_nan(unit, 0x7FFFFFFF if unit.rounding.nan != 0x7FFFFFFF else 0x7FC00000)
    for one, says in ((other, chain_of), (unit, bound_of)):
        certify_theorems([says(one, Settled(QUICK, False))], one, part, QUICK)
        fitted(copied)
        assert accepted(part)
        assert [found.says for found in check_folder(copied) if found.kind == "fault"] == [
            "chain-1 does not state it"
        ] * 2


def test_a_part_that_nothing_rests_on_is_refused(copied: Path) -> None:
    shutil.copytree(copied / "chain-1", copied / "chain-2")
    manifest = json.loads((copied / "manifest.json").read_text())
    (copied / "manifest.json").write_text(json.dumps(manifest | {"parts": ["chain-1", "chain-2"]}))
    assert "a part is about something else" in [found.says for found in check_folder(copied)]
    (copied / "manifest.json").write_text(json.dumps(manifest | {"parts": []}))
    assert any("not in the manifest" in found.says for found in check_folder(copied))


def test_no_trees_state_nothing(copied: Path) -> None:
    (copied / "sums.json").write_text(json.dumps({"schema": 1, "trees": []}))
    fitted(copied)
    assert not accepted(copied)
