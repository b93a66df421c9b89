"""The oracle beside the kernel: it finds nothing wrong with what the kernel proves, and sees what is changed in it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import pytest

from mmaprobe.queries.kernel.bounds import draws, enclosures
from mmaprobe.queries.kernel.questions.windows import Windowed
from mmaprobe.queries.kernel.theorem import RULES as KERNEL
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties.bound import bound_of
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.nodes import exact
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.marks import some_slow
from tests.node_units import random_unit
from tests.proofs.test_bounds import ARITHMETICS, SABOTAGE, UNITS, small
from tests.rules.test_table9 import SUM, unit_of
from tests.rules.test_transformations import SUMS
from tests.rules.test_transformations import unit_of as unit_with
from tests.said import believed
from tests.second.document import holds
from tests.second.proved import bounds, faults, proved
from tests.second.tree import RULES, STEPS, Tree
from tests.second.written import written

pytestmark = pytest.mark.oracle

TABLE_9 = unit_of(SUM.format("F=2"))
Document = dict[str, Any]
#: modules of rules of which the oracle has no statement: of questions of terms, of plans, of algorithms, and of what
#: follows for a whole unit; those of unit_shares have one of their own (tests/second/share_rules.py), and slices,
#: blocks (slice_rules.py beside it), sums of integers and plans of the same ones (wrap_rules.py)
OTHERS = ("facts", "same", "undecided", "unreachable", "expressions", "together", "shares", "unit_shares",
          "rows", "plans", "plan_units", "stages", "wraps", "slices", "blocks", "factors", "every")  # fmt: skip


def document_of(unit: Unit) -> Document:
    """All bounds that are proved of a unit."""
    return written(unit, list(bounds(unit)))


def found_at(document: Document, number: int) -> bool:
    """Whether a fault is found in a theorem, that of a document that was checked; others are not checked."""
    return any(place == number for place, _ in Tree(document).check(number))


def test_every_rule_about_nodes_has_a_statement() -> None:
    others = {name for name, made in KERNEL.items() if made.__module__.rpartition(".")[2] in OTHERS}
    assert not others & RULES.keys()
    assert others | RULES.keys() == KERNEL.keys()


@pytest.mark.parametrize(
    "part", some_slow(range(18), *range(1, 18)), ids=lambda part: f"rest-{part}" if part else "some"
)
def test_what_is_proved_of_the_table_passes(part: int) -> None:
    for reference in ARITHMETICS[part::18]:
        unit = parse_reference(reference).unit
        theorems = proved(unit)
        assert theorems, reference
        assert faults(unit, theorems) == [], reference
        again = written(parse_unit(unit_text(unit), "unit.yaml"), [])
        assert again["nodes"] == written(unit, [])["nodes"], reference


@pytest.mark.parametrize("name", UNITS)
def test_what_is_proved_of_small_units_passes(name: str) -> None:
    unit = small(*UNITS[name]).unit
    assert faults(unit, proved(unit)) == []


def test_what_is_proved_in_windows_passes_and_in_others_does_not() -> None:
    """Of numbers with exponents from -1 to 2."""
    seen = 0
    for name, parts in UNITS.items():
        unit = small(*parts).unit
        windows = tuple((key, (max(fmt.emin, -1), min(fmt.emax, 2))) for key, fmt in unit.formats.items()
                        if key in ("a", "b", "c") and fmt.emin <= 2)  # fmt: skip
        document = written(Windowed(unit, windows), [bound_of(Windowed(unit, windows), believed)])
        assert not list(Tree(document).check()), name
        for place, (key, (low, high)) in enumerate(windows):
            if all(node.get("operand") != key for node in document["nodes"]):
                continue  # it is not read
            broken = copy.deepcopy(document)
            higher = high + 1 if high < unit.formats[key].emax else high - 1
            worded = any(theorem["rule"] == "part" for theorem in document["theorems"]) and key == "a"
            broken["unit"]["windows"][place] = [key, [low + 1, high] if worded else [low, higher]]
            assert list(Tree(broken).check()), (name, key)
            seen += 1
    assert seen > 60


DRAWN = """unit: drawn
formats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3, random: uint4}
length: 2
roundings: {r: "round(e4m3, MODE)"}
steps: {d: "r(exact(a[0:2] * b[0:2], c), random)"}
"""
MODES = ("stochastic_a", "stochastic_b", "stochastic_c")


@pytest.mark.parametrize("mode", MODES)
def test_what_is_proved_of_a_draw_passes(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = parse_unit(DRAWN.replace("MODE", mode), "drawn.yaml")
    theorems = list(bounds(unit))
    assert any(one.rule == "drawn" for theorem in theorems for one in theorem.walk())
    assert faults(unit, theorems) == []
    monkeypatch.setattr(draws, "replace", lambda how, mode: replace(how, mode="nearest_even"))
    assert faults(unit, list(bounds(unit)))


def test_a_draw_needs_its_lemmas() -> None:
    document = document_of(parse_unit(DRAWN.replace("MODE", "stochastic_b"), "drawn.yaml"))
    number = next(k for k, one in enumerate(document["theorems"]) if one["rule"] == "drawn")
    assert not found_at(document, number)
    for left_out in range(2, 6):
        less = own(document, number)
        del less["theorems"][number]["premises"][left_out]
        assert found_at(less, number)
    fewer = own(document, number)
    lemma = next(p for p in fewer["theorems"][number]["premises"] if document["theorems"][p]["goal"].get("bits"))
    fewer["theorems"][lemma] = copy.deepcopy(fewer["theorems"][lemma])
    fewer["theorems"][lemma]["goal"]["bits"] = 3
    assert found_at(fewer, number)


def test_what_is_proved_of_random_units_passes() -> None:
    rng, seen = random.Random(5), 0
    known = list(bounds(parse_unit(DRAWN.replace("MODE", "stochastic_a"), "drawn.yaml")))
    known += list(bounds(unit_with(SUMS["added back to c"][0], "e3m1_ieee", y="b[0]")))
    known += [theorem for parts in UNITS.values() for theorem in proved(small(*parts).unit)] + list(bounds(TABLE_9))
    for _ in range(100):
        unit = random_unit(rng)
        if theorems := proved(unit):
            assert faults(unit, theorems) == [], unit.result
            known += theorems
            seen += 1
    assert seen > 80
    assert {one.rule for theorem in known for one in theorem.walk()} == RULES.keys() - STEPS.keys() - {"exhausted"}


# -- a kernel that is wrong


@pytest.mark.parametrize("sabotage", SABOTAGE, ids=lambda one: f"{one[2]} in {one[0]}")
def test_bounds_that_are_too_small_are_refused(sabotage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those below an error of the unit, of which tests/proofs/test_bounds.py says so."""
    name, where, what, broken = sabotage
    unit = small(*UNITS[name]).unit
    assert not faults(unit, [next(bounds(unit))])
    monkeypatch.setattr(where, what, broken)
    assert faults(unit, [next(bounds(unit))])


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (enclosures, "LOSSES", dict.fromkeys(enclosures.LOSSES, (Fraction(1, 2), Fraction(1, 2)))),
        (exact, "grid_of", lambda every: 0),
        (enclosures, "largest", lambda forms: forms[0]),
        (enclosures, "_multiplied", lambda facts: facts[0]),
    ],
)
def test_a_broken_kernel_is_noticed(where: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, value)
    found = []
    for parts in UNITS.values():
        unit = small(*parts).unit
        try:
            found += faults(unit, list(bounds(unit)))
        except RuleError:
            continue
    assert found


def test_a_sum_that_may_wrap_has_no_bound() -> None:
    """The document of a unit, said of one with fewer carry bits: two products of 1.5^2 and 1.5, rounded up."""
    document = document_of(small(*UNITS["just room"]).unit)
    assert not list(Tree(document).check())
    next(node for node in document["nodes"] if node["kind"] == "fused")["carry_bits"] = 1
    assert "fused: the sum may wrap" in {fault for _, fault in Tree(document).check()}


def test_what_may_not_overflow_is_not_left_out() -> None:
    for name in ("chain", "parts", "rounded products"):
        unit = small(*UNITS[name]).unit
        document = document_of(unit)
        seen = 0
        for number, theorem in enumerate(document["theorems"]):
            provided = theorem["goal"].get("provided", [])
            for changed in (provided[1:], provided[:-1]) if provided else ():
                broken = own(document, number)
                broken["theorems"][number]["goal"]["provided"] = changed
                assert found_at(broken, number), (name, number)
                seen += 1
        for number, condition in enumerate(document["conditions"]):
            broken = {**document, "conditions": [*document["conditions"]]}
            broken["conditions"][number] = condition | {"below": condition["below"] + 1}
            assert list(Tree(broken).check()), (name, number)
        assert seen


FORMATS = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "e5m2fnuz", "e4m3fnuz", "ue4m3", "e4m3_none", "e4m0_all_ones",
           "ue8m0", "ue4m0_all_ones", "ue3m1_none")  # fmt: skip


def test_a_format_that_holds_another_has_all_its_numbers() -> None:
    small, other = format_named("e2m1"), format_named("e3m2")
    formats = [*map(format_named, FORMATS), replace(small, bias=2), replace(small, subnormals=False)]
    formats += [replace(other, specials=specials) for specials in ("ieee", "all_ones", "extended")]
    values = {fmt: {value for pattern in range(1 << fmt.width)
                    if not isinstance(value := exact_value(pattern, fmt), str) or value == "-0"}
              for fmt in formats}  # fmt: skip
    held = [(one, other) for one in formats for other in formats if holds(asdict(one), asdict(other))]
    assert all(values[other] - {"-0"} <= values[one] for one, other in held)
    assert sum(one != other for one, other in held) > 8


# -- one thing changed in a document


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all numbers and fractions in a goal."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers_in(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from numbers_in(inner, (*path, place))
    elif (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and value[0].isdigit()):
        yield path


def put(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = change(value[path[-1]])


def own(document: Document, number: int) -> Document:
    """The document with a theorem of its own at a place, to be changed."""
    theorems = list(document["theorems"])
    theorems[number] = copy.deepcopy(theorems[number])
    return {**document, "theorems": theorems}


def other(value: int | str) -> int | str:
    """Another number: a fraction becomes a little smaller, nothing becomes something."""
    return value + 1 if isinstance(value, int) else str(Fraction(value) * (1 - Fraction(1, 1 << 20)) or Fraction(1, 7))


#: a sum with cut terms that becomes one of a chain, and roundings that flush
CHANGED = ["chain", "cut", "flush before", "floor", "exact in a sum", "chain that flushes", "table 9"]


def small_document(name: str) -> Document:
    return document_of(TABLE_9 if name == "table 9" else small(*UNITS[name]).unit)


@pytest.mark.parametrize("name", CHANGED)
def test_any_number_changed_in_a_conclusion_is_found_there(name: str) -> None:
    document, rng, count = small_document(name), random.Random(6), 0
    for number, theorem in enumerate(document["theorems"]):
        places = list(numbers_in(theorem["goal"]))
        for path in rng.sample(places, min(len(places), 12)):
            broken = own(document, number)
            less = theorem["rule"] == "loosened"  # more units would follow as well
            put(broken["theorems"][number]["goal"], path, (lambda units: units - 9) if less else other)
            if theorem["rule"] == "settled":  # a lemma about something else: those that need it miss it
                users = {k for k, one in enumerate(document["theorems"]) if number in one["premises"]}
                assert users <= {k for k, _ in Tree(broken).check()}, (number, path)
            else:
                assert found_at(broken, number), (number, path)
            count += 1
    assert count > 50


#: the first of which may be called the second: a lemma is one, the result's own size is that of the exact result, and a
#: sum of which nothing is rounded is followed to its terms
ALIKE = {("settled", "exhausted"), ("weakened", "whole"), ("exact", "error_free")}


@pytest.mark.parametrize("name", CHANGED)
def test_another_premise_or_rule_is_found_there(name: str) -> None:
    document, rng = small_document(name), random.Random(7)
    goals = [theorem["goal"] for theorem in document["theorems"]]
    for number, theorem in enumerate(document["theorems"]):
        for place, premise in enumerate(theorem["premises"]):
            before, after = theorem["premises"][:place], theorem["premises"][place + 1 :]
            others = [new for new in range(number) if goals[new] != goals[premise]]
            if theorem["rule"] == "of_largest":  # a bound, and one that is weakened, say the same of the largest
                others = [new for new in others if document["theorems"][new]["rule"] != "weakened"]
            for middle in [[], [number], [-1], [10**6], *([new] for new in rng.sample(others, min(3, len(others))))]:
                broken = own(document, number)
                broken["theorems"][number]["premises"] = [*before, *middle, *after]
                assert found_at(broken, number), (number, premise, middle)
        for rule in rng.sample([*RULES, "nothing"], 5):
            if rule != theorem["rule"] and (theorem["rule"], rule) not in ALIKE:
                broken = own(document, number)
                broken["theorems"][number]["rule"] = rule
                assert found_at(broken, number), (number, rule)


def test_what_is_no_bound_of_the_result_is_not_stated() -> None:
    document = document_of(small(*UNITS["chain"]).unit)
    for number, theorem in enumerate(document["theorems"]):
        if number not in document["states"]:
            broken = {**document, "states": [*document["states"], number]}
            goal = theorem["goal"]
            final = goal["is"] == "Enclosed" and goal["node"] == document["unit"]["result"] and not goal["assuming"]
            assert found_at(broken, number) == (not final and goal["is"] != "Chained")
