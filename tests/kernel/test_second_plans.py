"""The oracle beside the kernel, of plans: it finds nothing wrong with the bounds of sums, and sees what is changed."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.queries.kernel.bounds import largest, sums
from mmaprobe.queries.kernel.bounds.forms import NOUGHT, larger, number
from mmaprobe.queries.kernel.bounds.largest import OfLargest, of_largest
from mmaprobe.queries.kernel.bounds.sums import times_elements
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.plan_files import plans
from mmaprobe.smtmodel.tables.reference import parse_plan_reference
from tests.kernel.test_second import ALIKE, numbers_in, other, own, put
from tests.marks import some_slow
from tests.plans import test_plan_bounds
from tests.plans.small_plans import compared, small
from tests.said import believed
from tests.second.plan_tree import PlanTree
from tests.second.plan_written import plan_written
from tests.second.proved import faults
from tests.second.tree import RULES, STEPS

pytestmark = pytest.mark.oracle
Document = dict[str, Any]

#: how one plan adds products, and for which K: what each of the rules is about
SUMS: list[tuple[str, int | None]] = [
    ("sum(promote(16, split(2, fma, z), r), c)", None), ("sum(mma, +0)", 24), ("sum(mma, c)", None),
    ("sum(halve(8, fma, r), c)", None), ("h(sum(h(split([32], promote(16, mma, r), r)), c))", None),
    ("sum(lanes(fma, r, 4, fold(2, 2), fold(2, 1)), c)", None), ("sum(promote(1, fma, r), +0)", 12),
    ("sum(promote(8, mma, f), c)", 32), ("sum(compensate(16, mma, r), c)", 64), ("sum(compensate(8, fma, r), c)", None),
    ("sum(compensate(16, mma, r, by=kahan), +0)", 48), ("sum(compensate(8, mma, r, by=kahan), c)", None),
    (test_plan_bounds.AXPBY, 16), (test_plan_bounds.STEPS[-2], None),
    ("loop/pairwise", None), ("sum(mma, c)", 21), ("sum(promote(8, mma, r), +0)", 10),
]  # fmt: skip
#: with words, some of them scaled; of units that flush; through several formats
SHIPPED = ["multiword/ootomo-yokota", *sorted({*plans()} - {"multiword/ootomo-yokota", "openblas/sgemm"})]


def plan_named(name: str) -> Plan:
    """A plan that ships, or one by its step."""
    return test_plan_bounds.plan_of(name) if "(" in name else parse_plan_reference(f"plan:{name}")


@cache
def bounded(name: str, length: int | None) -> Theorem:
    return bound_of_plan(plan_named(name), length, believed)


@cache
def document_of(name: str, length: int | None) -> Document:
    return plan_written([bounded(name, length), of_largest(bounded(name, length))])


def faults_of(theorem: Theorem) -> list[tuple[int, str]]:
    """What is wrong with a bound of a plan, and with what it rests on about its units."""
    own = (one for one in theorem.walk() if type(one.goal).__name__ in ("Chained", "FromZero"))
    found = [fault for one in own for fault in faults(one.goal.unit, [one])]  # type: ignore[attr-defined]
    return found + list(PlanTree(plan_written([theorem, of_largest(theorem)])).check())


def test_what_is_proved_of_sums_passes() -> None:
    seen = set[str]()
    for case in SUMS:
        theorem = bounded(*case)
        assert faults_of(theorem) == [], case
        seen |= {one.rule for one in theorem.walk()}
    assert seen >= STEPS.keys()


WINDOWS = (("a", (-10, 4)), ("b", (-10, 4)), ("c", (-6, 6)))


def test_what_is_proved_of_sums_in_windows_passes() -> None:
    for name, length in SUMS:
        document = plan_written([bound_of_plan(plan_named(name), length, believed, WINDOWS)])
        assert not list(PlanTree(document).check()), name
        if any(theorem["rule"] == "element" for theorem in document["theorems"]):  # of c
            document["unit"]["windows"][2][1] = [-6, 7]
            assert list(PlanTree(document).check()), name


#: with words of all kinds: one, residuals, scaled ones, that are flushed
IN_WINDOWS = (
    "multiword/ootomo-yokota",
    "triton/bf16x3",
    "cutlass/tf32",
    "multiword/markidis-f16x2",
    "ape/f16x3-scaled",
)


@pytest.mark.parametrize("name", IN_WINDOWS)
def test_what_is_proved_of_words_in_windows_passes(name: str) -> None:
    document = plan_written([bound_of_plan(plan_named(name), None, believed, WINDOWS)])
    assert not list(PlanTree(document).check())
    every = [[*window] for window in document["unit"]["windows"]]
    for windows in ([], [["a", [-11, 4]], *every[1:]]):
        document["unit"]["windows"] = windows
        assert list(PlanTree(document).check())


@pytest.mark.parametrize("name", some_slow(SHIPPED, *SHIPPED[1:]))
def test_what_is_proved_of_plans_that_ship_passes(name: str) -> None:
    for length in (None, 64):
        try:
            theorem = bounded(name, length)
        except RuleError as error:
            assert "shared exponent" in str(error)  # noqa: PT017
            continue
        assert faults_of(theorem) == [], length


# -- a kernel that is wrong: the bounds are too small, as inputs of small formats show

ROUND = sums.after_rounding
LOSSLESS: Any = ("after_rounding", lambda facts, how: replace(ROUND(facts, how), low=facts.low, high=facts.high))
NO_GROWTH: Any = ("growth_of", lambda growth, count: Fraction(0))
SABOTAGE: list[tuple[str, int, str, Any]] = [
    ("promote(1, mma, r)", 12, *LOSSLESS), ("promote(1, mma, r)", 12, *NO_GROWTH), ("mma", 12, *NO_GROWTH),
    ("compensate(1, mma, r)", 4, *LOSSLESS), ("halve(2, mma, r)", 12, *LOSSLESS),
    ("compensate(1, mma, r, by=kahan)", 12, "_kahan", lambda unit, times: (NOUGHT, number(4))),
    ("split(3, mma, r)", 12, "_disjoint_sum", lambda forms: forms[0]),
    ("mma", 2, "_sums_of", lambda form, pair: NOUGHT),
    ("promote(2, mma, r)", 12, "_sums_of", lambda form, pair: NOUGHT),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "k", "what", "broken"), SABOTAGE, ids=lambda one: "" if callable(one) else str(one))
def test_bounds_that_are_too_small_are_refused(
    stage: str, k: int, what: str, broken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small(tmp_path, "e2m1", "e4m3_ieee", "+0", stage)
    right = bound_of_plan(plan, k, believed)
    error, limit = compared(plan, error_of(right), k)
    assert (error <= limit).all()
    assert faults_of(right) == []
    monkeypatch.setattr(sums, what, broken)
    wrong = bound_of_plan(plan, k, believed)
    error, limit = compared(plan, error_of(wrong), k)
    assert (error > limit).any()
    assert list(PlanTree(plan_written([wrong])).check())


def test_a_little_too_small_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no input of a few products shows: less than the growth of a loop, of compensation, of halves."""
    whole, kahan = sums.growth_of, sums._kahan
    less = Fraction((1 << 30) - 1, 1 << 30)
    broken: list[tuple[str, int | None, str, Any]] = [
        ("sum(promote(8, mma, r), c)", 64, "growth_of", lambda growth, count: whole(growth, count) * less),
        ("sum(compensate(8, mma, r), c)", 64, "growth_of", lambda growth, count: whole(growth, count) * less),
        ("sum(compensate(8, mma, r, by=kahan), c)", None, "_rate_of_kahan", lambda unit: 1 + unit),
        ("sum(compensate(8, mma, r, by=kahan), c)", 64, "_kahan", lambda u, times: (kahan(u, times)[0], number(1))),
        ("multiword/markidis", None, "_by_growth", lambda form: (NOUGHT, form)),
        ("multiword/markidis", None, "_grown", lambda form, growth, times: form),
        ("multiword/markidis", None, "times_products", lambda form, length: form),
        ("sum(halve(8, fma, r), c)", None, "larger", lambda forms: forms[0]),
        ("sum(split(2, mma, r), c)", 64, "_within", lambda plan, fmt: frozenset()),
        ("multiword/markidis", 64, "_of_pair", lambda limit, pair: replace(limit, most=NOUGHT, where=())),
        ("sum(split(2, mma, r), c)", 64, "_disjoint_sum", lambda forms: larger([forms[0], forms[-1]])),
    ]
    for case in broken:
        step, length, *changed = case
        right = document_of(step, length)
        with monkeypatch.context() as patched:
            patched.setattr(sums, *changed)
            theorem = bound_of_plan(plan_named(step), length, believed)
            wrong = plan_written([theorem, of_largest(theorem)])
        assert wrong != right, case
        assert list(PlanTree(wrong).check()), case


def test_bounds_in_the_largest_elements_that_are_too_small_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both products only one counts."""
    plan = small(tmp_path, "e2m1", "e4m3_ieee", "+0", "mma")
    proved = bound_of_plan(plan, 2, believed)

    def checked() -> tuple[bool, bool]:
        """Whether no error exceeds the bound, and whether the oracle finds nothing wrong."""
        theorem = of_largest(proved)
        assert isinstance(theorem.goal, OfLargest)
        error, limit = compared(plan, theorem.goal.form, 2)
        return bool((error <= limit).all()), not list(PlanTree(plan_written([theorem])).check())

    assert checked() == (True, True)
    monkeypatch.setattr(largest, "times_elements", lambda form, _: times_elements(form, None) * Fraction(1, 2))
    assert checked() == (False, False)


# -- one thing changed in a document

CHANGED = [SUMS[0], SUMS[3], SUMS[5], SUMS[8], SUMS[9], SUMS[10], SUMS[11], ("multiword/markidis", None), SUMS[-2]]


def found_at(document: Document, number: int) -> bool:
    return any(place == number for place, _ in PlanTree(document).check(number))


@pytest.mark.parametrize("case", some_slow(CHANGED, *CHANGED[1:]), ids=str)
def test_any_number_changed_in_a_conclusion_is_found_there(case: tuple[str, int | None]) -> None:
    document, rng, count = document_of(*case), random.Random(6), 0
    for number_, theorem in enumerate(document["theorems"]):
        if theorem["rule"] in ("elsewhere", "settled"):  # what rests on it misses it, or has a document of its own
            continue
        places = list(numbers_in(theorem["goal"]))
        for path in rng.sample(places, min(len(places), 12)):
            broken = own(document, number_)
            put(broken["theorems"][number_]["goal"], path, other)
            assert found_at(broken, number_), (number_, path)
            count += 1
    assert count > 30


@pytest.mark.parametrize("case", some_slow(CHANGED, *CHANGED[1:]), ids=str)
def test_another_premise_or_rule_is_found_there(case: tuple[str, int | None]) -> None:
    document, rng = document_of(*case), random.Random(7)
    goals = [theorem["goal"] for theorem in document["theorems"]]
    for number_, theorem in enumerate(document["theorems"]):
        for place, premise in enumerate(theorem["premises"]):
            before, after = theorem["premises"][:place], theorem["premises"][place + 1 :]
            others = [new for new in range(number_) if goals[new] != goals[premise]]
            for middle in [[], [number_], [10**6], *([new] for new in rng.sample(others, min(2, len(others))))]:
                broken = own(document, number_)
                broken["theorems"][number_]["premises"] = [*before, *middle, *after]
                assert found_at(broken, number_), (number_, premise, middle)
        for rule in rng.sample([*RULES, "nothing"], 5):
            if rule != theorem["rule"] and (theorem["rule"], rule) not in ALIKE:
                broken = own(document, number_)
                broken["theorems"][number_]["rule"] = rule
                assert found_at(broken, number_), (number_, rule)


def changes(document: Document) -> Iterator[tuple[str, Document]]:
    """Steps that do something else than the stage, and stages that leave a product out."""
    for number_, step in enumerate(document["steps"]):
        for name, value in step.items():
            changed: Any = None
            if name == "count":
                changed = 3 if value is None else value + 1
            elif name == "by":
                changed = {"kahan": "neumaier", "neumaier": "kahan"}[value]
            elif name == "rounding":
                changed = value | {"mode": "toward_zero" if value["mode"] != "toward_zero" else "nearest_even"}
            elif name in ("values", "leaves"):
                changed = [value[0]] * (len(value) + 1)
            elif name in ("start", "body") and value:
                changed = 0
            elif name == "read":
                changed = value[::-1]
            elif name == "model":
                changed = next((other for other in range(len(document["units"])) if other != value), None)
            if changed is not None:
                broken = copy.deepcopy(document)
                broken["steps"][number_][name] = changed
                yield f"{step['kind']}.{name}", broken
    for stage in range(len(document["stages"])):
        for kind in ("tile", "rounded", "zero"):
            broken = copy.deepcopy(document)
            record = broken["stages"][stage]["records"][-1]
            node = next((node for node in record["nodes"] if node[0] == kind), None)
            if kind == "tile" and node is not None:
                node[4] = node[4][:-1]
                yield "a product left out", broken
            elif kind == "rounded" and node is not None:
                node[2]["mode"] = "up"
                yield "rounded otherwise", broken
            elif node is not None:
                node[0] = "begin"
                yield "begun otherwise", broken


def test_steps_that_are_not_what_the_stage_does_are_found() -> None:
    seen = set[str]()
    for case in CHANGED:
        for what, broken in changes(document_of(*case)):
            assert list(PlanTree(broken).check()), (case, what)
            seen.add(what)
    assert seen >= {"Loop.count", "Compensated.by", "Compensated.count", "Tile.model", "Tile.read", "Added.values",
                    "Halved.leaves", "Added.rounding", "Tile.start", "a product left out", "rounded otherwise",
                    "begun otherwise"}  # fmt: skip


def test_the_bound_of_a_unit_is_not_that_of_another() -> None:
    """A tile that rests on what is proved of another unit of the plan."""
    document = document_of(*SUMS[0])
    at = next(k for k, one in enumerate(document["theorems"]) if one["rule"] == "elsewhere")
    broken = own(document, at)
    broken["units"].append(copy.deepcopy(broken["units"][0]))
    broken["theorems"][at]["goal"]["unit"] = len(broken["units"]) - 1
    assert list(PlanTree(broken).check())
