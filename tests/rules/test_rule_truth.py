"""Each rule on small formats: no theorem is false on any input, and a rule whose argument is wrong is found out.

The quick part of the campaign benchmarks/rules, whose table is benchmarks/rules.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rules.campaign import never_failed, refusals
from benchmarks.rules.everything import LEFT_OUT, PARTS, UNREACHED, Part, run
from benchmarks.rules.numbers import NOT_A_NUMBER, TooWide
from benchmarks.rules.numbers import formats_of as formats_of_unit
from benchmarks.rules.units import reads, small_unit, window
from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.arguments import forget
from mmaprobe.queries.kernel.bounds import enclosures, forms, induction, shares, sums
from mmaprobe.queries.kernel.bounds.enclosures import LOSSES
from mmaprobe.queries.kernel.bounds.shares import Space, WordIsSmall
from mmaprobe.queries.kernel.cases.conditions import Condition
from mmaprobe.queries.kernel.cases.unreachable import Unreachable
from mmaprobe.queries.kernel.datapath.effects import Normalises
from mmaprobe.queries.kernel.datapath.ranges import Range, Scope, ranges_of
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.equality import expressions, plan_units, rewriting, stages
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.integers import blocks, slices, wraps
from mmaprobe.queries.kernel.properties import rises
from mmaprobe.queries.kernel.questions.recorded import Addend, Words
from mmaprobe.queries.kernel.terms import facts, undecided
from mmaprobe.queries.kernel.terms.undecided import FirstWordIsWhole
from mmaprobe.queries.kernel.theorem import RULES
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.smtmodel.algorithms.exact import Window
from mmaprobe.smtmodel.algorithms.parts import Part as AlgorithmPart
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.arithmetic.rounding import MODES
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, ExactSum, Index, Product, Recombined, Round, SortedSum, exact, fused
from mmaprobe.smtmodel.nodes.known import NOTHING
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles import node_oracle
from tests.said import believed
from tests.second.tree import Tree
from tests.second.written import written

pytestmark = pytest.mark.all_inputs

COARSE = """unit: p
formats: {a: e2m1_all_ones, b: e2m1_all_ones, c: e4m3, d: e4m3}
length: 1
steps: {d: "round(exact(a[0] * b[0], c), e4m3, nearest_even)"}
"""
F16, VOLTA = format_named("f16"), "volta/mma/m8n8k4.f32.f16.f16.f32"


def part_named(name: str) -> Part:
    return next(part for part in PARTS if part.name == name)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_theorems_are_true_on_all_inputs(part: Part) -> None:
    campaign = run((part,), lambda part: range(part.first, part.first + part.few))
    assert not campaign.false()
    assert not {name: dict(own.broken) for name, own in campaign.tallies.items() if own.broken}
    assert all(campaign.tally(name).instances for name in part.rules)


def test_every_rule_is_called_or_it_is_said_why_not() -> None:
    called = [name for part in PARTS for name in part.rules]
    assert len(called) == len(set(called))
    assert {*called, *LEFT_OUT} == {*closed.RULES, *closed.REWRITES, *closed.LEMMAS}
    assert not set(called) & set(LEFT_OUT)


def test_what_refuses_in_no_call_is_in_the_source() -> None:
    every = {one.text for name in (*closed.RULES, *closed.REWRITES) for one in refusals(name)}
    assert every >= set(UNREACHED)


def test_side_conditions_are_found_in_the_source() -> None:
    """Those of the rule itself, and of what it calls; a rule of rewriting says nothing where a condition fails."""
    assert [one.text for one in refusals("carried")] == [
        "carried: a chain has at least one instruction, and at most {MOST_CARRIED}"
    ]
    assert len(refusals("needless_floor")) == 3
    assert any("is not a number" in one.text for one in refusals("literal"))
    campaign = run((part_named("chains"),), lambda part: range(4))
    own = campaign.tally("carried")
    own.refused.clear()
    assert never_failed("carried", own) == list(refusals("carried"))


def test_numbers_are_those_of_exact_rationals() -> None:
    """The oracle on many inputs at once is the oracle on one of them."""
    compared = 0
    for seed in range(80):
        rng = random.Random(seed)
        unit = small_unit(rng, (2,) if seed >= 60 else (1, 1, 2, 2, 3))
        if seed >= 60:  # of nodes that no random unit has
            terms = (*(Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(2)), Element("c"))
            bits = rng.randint(0, 4), rng.randint(4, 8)
            how = Rounding(unit.d, rng.choice(("nearest_even", "down")))
            unit = replace(unit, result=Round(SortedSum(tuple(rng.sample(terms, 3)), bits), how))
        found = window(formats_of_unit(unit), reads([unit.result], {}) | {("c", 0)}, rng)
        try:
            value = found.evaluation.value(unit.result, {})
        except TooWide:
            continue
        assert value.patterns is not None
        for row in rng.sample(range(found.count), 20):
            given: dict[str, list[int]] = {name: [0] * unit.length for name in found.evaluation.formats}
            for (name, place), side in found.evaluation.inputs.items():
                given[name][place] = int(side[row])
            wanted = node_oracle.evaluate(unit, given["a"], given["b"], given["c"][0], *list(given.values())[3:])
            same = value.kind[row] == NOT_A_NUMBER if wanted == node_oracle.ANY_NAN else value.patterns[row] == wanted
            assert same, (seed, row)
            compared += 1
    assert compared > 1000


# -- rules with a wrong argument


def _shorter(step: Any, places: Any, error: Any, size: Any) -> Any:
    return _run(step, places[:-1], error, size)


def _lossless(facts: Any, how: Any) -> Any:
    return replace(_rounded(facts, how), low=facts.low, high=facts.high)


def _nothing(*given: Any) -> Fraction:
    return Fraction(0)


_run, _rounded = induction.Step.run, sums.after_rounding
QUARTER = Fraction(1, 4)


@dataclass(frozen=True)
class Wrong:
    """What is wrong: a part of a rule's argument is replaced. `part`: the part of the campaign that finds the rules
    `names` to be false then, from the seed `first` on."""

    part: str
    names: tuple[str, ...]
    where: Any
    what: str
    instead: Any
    first: int = 0


ELEMENT = slices._Words.element


def _without_loss(words: slices._Words, given: list[Round]) -> Any:
    return replace(ELEMENT(words, given), loss=Fraction(0))


WRONG = {
    "a zero may be added whatever the rounding": Wrong(
        "rewrites that apply", ("zero_added", "first_step"), rewriting, "plus_for_zeros", lambda node: True, 7
    ),
    "no sum wraps": Wrong(
        "rewrites that apply", ("needless_carry",), fused.FusedSum, "never_wraps", lambda *given: True, 1
    ),
    "no term is -0": Wrong("rewrites that apply", ("positive_term",), exact, "is_positive", lambda terms: True, 4),
    "no rounding changes a number": Wrong(
        "rewrites that apply",
        ("rounded_in_vain", "rounded_again", "read_once", "zero_after"),
        Rounding,
        "keeps",
        lambda self, y: True,
        1,
    ),
    "no number is rounded to zero": Wrong(
        "rewrites that apply", ("no_sum_to_zero", "zero_after"), Rounding, "keeps_nonzero", lambda self, y: True, 1
    ),
    "every term is whole": Wrong(
        "nodes", ("fused", "grid"), enclosures._Aligned, "whole", property(lambda self: True), 24
    ),
    "to nearest loses a quarter": Wrong(
        "nodes", ("rounded", "cut", "fused"), enclosures, "LOSSES", {**LOSSES, "nearest_even": (QUARTER, QUARTER)}, 1
    ),
    "one step less of a loop": Wrong("nodes", ("repeated",), induction.Step, "run", _shorter, 18),
    "one instruction less": Wrong("chains", ("carried",), induction.Step, "run", _shorter, 10),
    "any bound is implied": Wrong("nodes", ("weakened",), forms.Form, "covers", lambda *given: True, 2),
    "rounding up is even": Wrong("signs", ("turned",), fused, "SIGNLESS", MODES, 50),
    "a sum may lose more than it gains": Wrong("order", ("rises",), rises, "_kept", lambda gain: max(gain, 0), 4),
    "any fact says that terms are equal": Wrong("terms", ("replaced",), facts, "_says", lambda *given: True, 8),
    "all normal forms are one": Wrong("orders", ("one_sum",), expressions, "normal", lambda node: 0, 2),
    "a rounding loses nothing": Wrong("steps of plans", ("added",), sums, "after_rounding", _lossless, 7),
    "nothing overflows": Wrong("nodes", ("rounded",), enclosures.NoOverflow, "is_met", lambda *given: True, 6),
    "all units have one form": Wrong("plans that agree", ("same_forms",), plan_units, "normal", lambda node: 0, 10),
    "all stages do the same": Wrong(
        "plans that agree", ("same_parts",), stages, "same_around", lambda *given: True, 41
    ),
    "parts are as many as the whole": Wrong(
        "plans that agree", ("same_parts",), stages, "partition", lambda one, other, number: number, 79
    ),
    "an instruction loses nothing": Wrong("shares", ("after_instruction",), shares._Sizes, "share", _nothing, 16),
    "two results share all": Wrong("shares", ("near_each_other",), shares, "apart", _nothing, 53),
    "no sum leaves its range": Wrong(
        "sums that wrap", ("never_wraps",), wraps, "check_within", lambda *given: None, 23
    ),
    "no slice leaves anything": Wrong(
        "sums that wrap", ("never_wraps",), ExactSum, "_left", lambda *given: NOTHING, 17
    ),
    "moduli have four times their product": Wrong(
        "sums that wrap", ("never_wraps",), Recombined, "whole", property(lambda node: 4 * prod(node.moduli)), 34
    ),
    "no word leaves anything of an element": Wrong(
        "slices", ("loses_of_largest", "loses_of_elements"), slices._Words, "element", _without_loss
    ),
    "a block is as large as its row": Wrong(
        "block formats", ("loses_of_blocks",), blocks._Region, "most", lambda region, block, row: 0, 44
    ),
    "no number of a word is rounded": Wrong(
        "block formats", ("loses_of_blocks",), blocks, "off_by", lambda how: (Fraction(1), Fraction(1)), 12
    ),
    "no input decides a claim": Wrong(
        "claims", ("undecided",), undecided, "decides", lambda assertion, message: message.yes & ~message.yes, 8
    ),
}


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What rules keep of earlier calls is forgotten, before and after."""
    forget()
    yield
    forget()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_argument_is_found_out(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = WRONG[wrong]
    monkeypatch.setattr(own.where, own.what, own.instead)
    for seed in range(own.first, own.first + 100):
        campaign = run((part_named(own.part),), lambda part, seed=seed: range(seed, seed + 1))
        if any(campaign.tally(name).false for name in own.names):
            return
    pytest.fail("no theorem was false")


# -- what the campaign found


def test_the_addend_is_an_input_or_the_previous_result() -> None:
    """Of a sum of c twice, one of them as an exact input, the error of the previous result would count once."""
    fmt = format_named("e2m1")
    c, factors = Element("c"), (Element("a", Index(0)), Element("b", Index(0)))
    how, lemma = Rounding(fmt), believed(RoundingLoses(fmt, "nearest_even"))
    twice, usual = ExactSum((c, c)), ExactSum((c, Product(*factors)))
    unit = Unit(fmt, fmt, fmt, 1, Round(twice, how))
    as_input, as_result = RULES["element"](unit, c), RULES["assumed"](unit, c, frozenset({fmt}))
    for premises in ([as_input, as_result], [as_result, as_input]):
        with pytest.raises(RuleError, match="taken both as a previous result and as an exact input"):
            RULES["exact"](twice, (), premises)
    for premise in (as_input, as_result):
        RULES["exact"](twice, (), [premise, premise])
    other = Unit(fmt, fmt, fmt, 1, Round(usual, how))  # the product reads no addend
    product = RULES["product"](usual.items[1], (), [RULES["element"](other, factor, ()) for factor in factors])
    total = RULES["exact"](usual, (), [RULES["assumed"](other, c, frozenset({fmt})), product])
    RULES["chained"](RULES["rounded"](other.result, (), [total], [lemma]))


def test_no_tree_has_an_addend_of_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second statement of the rules sees it as well, where the kernel does not."""
    fmt = format_named("e2m1")
    c = Element("c")
    twice = ExactSum((c, c))
    unit = Unit(fmt, fmt, fmt, 1, Round(twice, Rounding(fmt)))
    as_input, as_result = RULES["element"](unit, c), RULES["assumed"](unit, c, frozenset({fmt}))
    monkeypatch.setattr(
        enclosures, "assumed_together", lambda name, goals: frozenset().union(*(one.assuming for one in goals))
    )
    for premises, faults in (([as_input, as_result], True), ([as_result, as_result], False)):
        total = RULES["exact"](twice, (), premises)
        document = written(unit, [total])
        assert any("c is also an exact input" in text for _, text in Tree(document).check()) == faults


def test_what_is_of_another_number_is_refused() -> None:
    """Too few operands, results or numbers, and cases that a unit has not: a refusal, no other error."""
    fmt = format_named("e2m1")
    unit = Unit(fmt, fmt, fmt, 1, Round(ExactSum((Element("c"),)), Rounding(fmt)))
    space = Space(fmt, fmt, Window((0, 0), (0, 0), (0, 0)), 1, no_addend=False)
    near, row = RULES["begins"](space, Addend()), RULES["below_one"](3)
    none = RULES["parted"](row, 1, 1)
    model = Model("fma", unit)
    reaching = Unreachable(model, ((Condition("d", "sign", "of another unit"),),))
    shape = (2, 1)
    calls: list[tuple[str, Any]] = [
        ("congruent", (Scope.of(unit), unit.result, [])), ("near_each_other", ([near], [], Fraction(1))),
        ("near_each_other", ([near] * 3, [], Fraction(1))), ("below_one", (0,)), ("trees", (row, 0)),
        ("trees", (row, -2)), ("in_sequence", (none,)), ("refuted", (reaching, Engines())),
        ("column_sums", (RULES["converted"](row, F16), parse_reference(VOLTA), shape, 0)),
    ]  # fmt: skip
    for name, arguments in calls:
        with pytest.raises(RuleError):
            RULES[name](*arguments)
    assert none.goal.statement()


def test_no_lemma_is_about_exponents_that_a_format_has_not(tmp_path: Path) -> None:
    """They would be counted in too few bits: the lemma was evaluated for no number, and false of others."""
    fmt, words = format_named("e2m1"), Words(format_named("e2m1"), F16, format_named("e1m1_none"), "toward_zero", 1)
    RULES["exhausted"](WordIsSmall(words, (0, 0), Fraction(1), 0))
    for bounds in ((0, 3), (-1, 0), (1, 0)):
        with pytest.raises(RuleError, match="a window of exponents beyond"):
            RULES["exhausted"](WordIsSmall(words, bounds, Fraction(0), 0))
    (tmp_path / "p.yaml").write_text(COARSE, encoding="utf-8")
    part = AlgorithmPart(f"multiword@unit=({tmp_path}/p.yaml),source=f16,words=2,products=4,split=toward_zero")
    with pytest.raises(RuleError, match="a window of exponents beyond"):
        RULES["exhausted"](FirstWordIsWhole(part, fmt, ((0, 3), (0, 1))))


def test_a_scope_without_scale_factors_says_nothing_of_them() -> None:
    fmt = format_named("e2m1")
    unit = Unit(fmt, fmt, fmt, 1, Round(ExactSum((Element("c"),)), Rounding(fmt)))
    for node in (Element("scale_a", Index(0)), Product(Element("scale_a", Index(0)), Element("a", Index(0)))):
        assert ranges_of(Scope.of(unit), node) is None
    assert Scope.of(unit).known(Element("scale_a", Index(0))).formats is None


def test_a_range_without_numbers_is_refused() -> None:
    """One of one bit and one exponent has a number, which is as it is when normalised."""
    one = Normalises(Range(1, 0, 2, 2, 2))
    assert RULES["exhausted"](one).goal == one
    for width, low, high in ((0, 0, 0), (-1, 0, 0), (1, 1, 0)):
        with pytest.raises(RuleError, match="a range without numbers"):
            Range(width, 0, low, high, 0)
