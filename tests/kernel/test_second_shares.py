"""What is concluded of claims about many numbers of products, checked by a second statement of the rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.claims.shares import within_lengths, within_of
from mmaprobe.queries.kernel.bounds import shares as near_shares
from mmaprobe.queries.kernel.bounds import unit_shares
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.bounds.shares import Apart, Near, Space, WordIsSmall
from mmaprobe.queries.kernel.bounds.unit_shares import ErrsUpTo, compares, for_every_length, share_claim, unit_of
from mmaprobe.queries.kernel.questions.recorded import Added, Addend, Instruction, Nothing, Word, Words
from mmaprobe.queries.kernel.questions.windows import is_of_plan, plan_at, unit_in
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unit import Unit
from tests.claims.test_claim_stages import claim_of
from tests.rules.test_every_length import CLAIM, error
from tests.said import believed
from tests.second import share_rules
from tests.second.magnitudes import FaultError
from tests.second.near_rules import Nears
from tests.second.plan_written import WrittenPlan
from tests.second.written import Written

pytestmark = pytest.mark.oracle

WINDOWS = {"format": "f32", "a": [-20, -11], "b": [-8, 8], "c": "zero"}
WIDE = {"format": "f16", "a": [-4, 4], "b": [-4, 4], "c": [-6, 6]}
ADDED = Path(__file__).parents[1] / "data" / "added.yaml"  # runs of 16 products, from c and from +0
CLAIMS: dict[str, Claim] = {
    "one word": CLAIM,
    "three products": error("(terms() * 2**-24 + 2**-13)", "plan:triton/bf16x3", inputs=WINDOWS,
                            terms={"multiples": 32, "most": 4096}),
    "scaled words": error("(2**-8 + terms() * 2**-24)", "plan:multiword/ootomo-yokota", inputs=WINDOWS,
                          terms={"multiples": 16, "most": 2048}),
    "three loops": error("(1 + 2**-12 * terms())", "plan:multiword/markidis", terms={"multiples": 16, "most": 1024},
                         inputs=WINDOWS | {"c": [-8, 8]}),
    "an addend": error("(2**-20 * terms() + 2**-20)", "ampere/mma/m16n8k16.f32.f16.f16.f32",
                       inputs=WIDE, terms={"multiples": 16, "most": 2048}),
    "halves": error("2**-17", "plan:loop/pairwise", inputs=WINDOWS, terms={"multiples": 100, "most": 3000}),
    "runs that are added": error("(2**-18 + terms() * 2**-24)", str(ADDED), inputs=WIDE,
                                 terms={"multiples": 16, "most": 4096}),
    "compensation": error("2**-17", "plan:compensated/chunks", inputs=WIDE | {"c": "zero"},
                          terms={"multiples": 128, "most": 4096}),
}  # fmt: skip


def told_of(theorem: Theorem) -> dict[str, Any]:
    goal: Any = theorem.goal
    about: Any = theorem.premises[0].goal
    written, space = WrittenPlan(about.unit) if is_of_plan(about.unit) else Written(unit_in(about.unit)), goal.space

    def bounded(goal: Any) -> dict[str, Any]:
        numbers = [written._plain(one) for one in goal.provided]
        return {"form": written._plain(goal.facts.error),
                "conditions": [written.document["conditions"][number] for number in numbers]}  # fmt: skip

    data = {
        "windows": {name: getattr(space.window, name) for name in "abc"}, "addend": not space.no_addend,
        "fraction": space.factors.fraction, "addend_fraction": space.addend.fraction, "terms": space.terms,
    } | bounded(about)  # fmt: skip
    for more in theorem.premises[1:]:
        once: Any = more.goal
        data["once"] = {"length": plan_at(once.unit).length} | bounded(once)
    if isinstance(goal, ErrsUpTo):
        at = plan_at(about.unit)
        repeats = {"growth": str(at.growth), "loops": at.loops, **written._plain(at.repeats)}
        data |= {"at": repeats, "first": goal.first, "shares": list(map(str, goal.shares))}
    else:
        unit = unit_in(unit_of(goal.part, space))
        data |= {"unit": Written(unit).stating([]), "share": str(goal.share), "size": str(goal.size)}
    found: dict[str, Any] = json.loads(json.dumps(data))
    return found


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_the_share_of_a_plan_passes_and_another_does_not(claim: Claim) -> None:
    within = within_lengths(claim, believed)
    for_every_length(claim.assertion, within)
    data, text = told_of(within[0]), claim.assertion.text
    share_rules.of_plan(data)
    share_rules.for_every_length([data], text)
    small = [str(Fraction(share) * (1 - Fraction(1, 1 << 20))) for share in data["shares"]]
    windows = data["windows"]
    higher = windows | {"a": [windows["a"][0], 1 << 10]}
    wrong: list[dict[str, Any]] = [
        {"shares": [small[0], data["shares"][1]]}, {"shares": [data["shares"][0], small[1]]},
        {"first": data["first"] + 1}, {"terms": data["terms"] * 2}, {"windows": higher}, {"form": []},
        {"at": data["at"] | {"growth": str(2 * Fraction(data["at"]["growth"]))}},
        {"conditions": [one | {"below": -1000} for one in data["conditions"]]},
        {"conditions": [one | {"most": None} for one in data["conditions"]]},
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises(FaultError):
            share_rules.of_plan(data | change)
    for other in (text.replace("<=", ">="), f"{text} * terms() * terms()", f"{text} * 2**-30", f"{text} + 1"):
        with pytest.raises(FaultError):
            share_rules.for_every_length([data], other)


def test_decimals_are_exact() -> None:
    """Of 15 digits, the least that is not below what is proved, and the one before it."""
    (within,) = within_lengths(CLAIMS["halves"], believed)
    assert isinstance(within.goal, ErrsUpTo)
    above = -int(-max(within.goal.shares) * 10**15 // 1)
    told = [(text, holds) for least, holds in ((above, True), (above - 1, False))
            for text in (f"0.{least:015d}", f"{least}e-15")]  # fmt: skip
    for text, holds in told:
        claim = error(text, "plan:loop/pairwise", inputs=WINDOWS, terms={"multiples": 100, "most": 3000})
        for check in (
            lambda claim=claim: for_every_length(claim.assertion, [within]),
            lambda claim=claim: share_rules.for_every_length([told_of(within)], claim.assertion.text),
        ):
            with nullcontext() if holds else pytest.raises((RuleError, FaultError)):
                check()


def two_results(text: str, where: Sequence[str], **changes: Any) -> Claim:
    inputs = WINDOWS | {"where": [*where]}
    parts = {"p": "plan:loop/pairwise", "q": "plan:loop/fma", "r": "plan:multiword/ootomo-yokota"}
    return claim_of(text, inputs=inputs, parts=parts, **changes)


def test_two_results_are_as_far_apart_as_both_errors_allow() -> None:
    """And those that conditions read are numbers, of which something must be known."""
    text = "abs(value(p) - value(q)) <= (2**-19 + 2**-23 * terms()) * magnitude_sum()"
    claim = two_results(text, ["value(r) > 1"], terms={"multiples": 16, "most": 2048})
    within = within_lengths(claim, believed)
    data = list(map(told_of, within))
    share_rules.for_every_length(data, text)
    for some in (data[:1], [data[0], data[1] | {"first": 32}, data[2]]):
        with pytest.raises(FaultError):
            share_rules.for_every_length(some, text)
    with pytest.raises(FaultError):
        share_rules.for_every_length(data, text.replace("2**-19 + 2**-23", "2**-24"))
    for_every_length(claim.assertion, within)
    shares: list[Any] = [one.goal for one in within[:2]]
    for place, count in enumerate((16, 2048)):  # more than either error alone
        least = max(goal.shares[place] for goal in shares)
        below = text.replace(
            "(2**-19 + 2**-23 * terms())", f"({least.numerator} * 2**-{least.denominator.bit_length() - 1})"
        )
        with pytest.raises(RuleError, match=f"K = {count}"):
            for_every_length(replace(claim.assertion, text=below), within)
    for other in (within[:2], within[:1] + within[2:], [within[1], within[0], within[2]]):
        with pytest.raises(RuleError):
            for_every_length(claim.assertion, other)


#: claims about one number of products: of a unit, and of a plan
AT: dict[str, Claim] = {
    "a unit that aligns": error("2**-8", "volta/mma/m8n8k4.f32.f16.f16.f32", inputs=WIDE, terms=4),
    "a chain of multiply-adds": error("2**-8", "plan:loop/fma", inputs=WINDOWS, terms=6),
    "an addend of a chain": error("2**-8", "plan:cublas/split-k", inputs=WIDE | {"c": "zero"}, terms=3),
    "compensation of chunks": error("2**-8", "plan:compensated/chunks", inputs=WIDE | {"c": "zero"}, terms=5),
}


def test_a_share_at_one_length_passes_and_another_does_not() -> None:
    seen = set[str]()
    for claim in AT.values():
        within = within_of(claim, believed)
        compares(claim.assertion, within)
        (one,) = within
        data, text, checked = told_of(one), claim.assertion.text, getattr(share_rules, one.rule)
        own = share_claim(claim.assertion)
        data["range"] = (own.size * own.space.most).numerator.bit_length() - 1
        checked(data)
        share_rules.compares([data], text)
        seen.add(one.rule)
        share = Fraction(data["share"])
        node = next(one for one in data["unit"]["nodes"] if one["kind"] == "element")
        wrong: list[dict[str, Any]] = [
            {"share": str(share * (1 - Fraction(1, 1 << 20)))}, {"size": "1"}, {"form": []},
            {"windows": data["windows"] | {"a": [data["windows"]["a"][0], 1 << 10]}},
            {"conditions": [one | {"below": -1000} for one in data["conditions"]]},
        ]  # fmt: skip
        for change in wrong:
            with pytest.raises(FaultError):
                checked(data | change)
        for other in (text.replace("<=", ">="), f"{text} * 2**-30"):
            with pytest.raises(FaultError):
                share_rules.compares([data], other)
        with pytest.raises(FaultError):
            share_rules.compares([data | {"range": -40}], text)
        nodes = [{"kind": "number"} if one is node else one for one in data["unit"]["nodes"]]
        more = data | {"unit": data["unit"] | {"nodes": nodes}}  # something where M is zero
        with pytest.raises(FaultError):
            share_rules.compares([more], text)
    assert seen == {"of_unit", "of_plan_at"}


BROKEN: dict[str, Any] = {
    "growth_of": lambda growth, count: Fraction(0),
    "round_up": lambda value: value / 2,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_share_that_is_too_small_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_shares, name, BROKEN[name])
    found = 0
    for claim in CLAIMS.values():
        try:
            share_rules.of_plan(told_of(within_lengths(claim, believed)[0]))
        except FaultError:
            found += 1
    assert found


def test_the_first_run_alone_has_a_bound_of_its_own() -> None:
    data = told_of(within_lengths(CLAIMS["runs that are added"], believed)[0])
    once = data["once"]
    loose = [[str(Fraction(value) * 1000), atom] for value, atom in once["form"]]
    for change in (
        {"length": 32},
        {"form": loose},
        {"conditions": [one | {"below": -1000} for one in once["conditions"]]},
    ):
        with pytest.raises(FaultError):
            share_rules.of_plan(data | {"once": once | change})
    with pytest.raises(FaultError):
        share_rules.of_plan({name: value for name, value in data.items() if name != "once"})


def test_loops_one_after_another_count() -> None:
    data = told_of(within_lengths(CLAIMS["three loops"], believed)[0])
    loops = data["at"]["loops"]
    assert loops > 1
    for other in (loops - 1, loops + 1):
        with pytest.raises(FaultError):
            share_rules.of_plan(data | {"at": data["at"] | {"loops": other}})


# -- two results, step by step

BOTH = {"markidis": "markidis@unit=volta/mma/m8n8k4.f32.f16.f16.f32,split=toward_zero",
        "ootomo": "multiword@words=2,products=4,unit=volta/mma/m8n8k4.f32.f16.f16.f32,split=toward_zero",
        "bf16": "multiword@words=3,products=6,unit=ampere/mma/m16n8k8.f32.bf16.bf16.f32",
        "sums": "multiword@words=2,products=3,sums=by_size,unit=ampere/mma/m16n8k8.f32.bf16.bf16.f32"}  # fmt: skip
PAIRS = [("markidis", "ootomo", 1), ("markidis", "markidis", 6), ("bf16", "bf16", 9), ("sums", "bf16", 9)]


def compared_parts(one: str, other: str, terms: int) -> Theorem:
    text = "abs(value(p) - value(q)) <= 1 * magnitude_sum()"
    inputs = {"format": "f32", "a": [-6, 4], "b": [-6, 4], "c": [-8, 8]}
    claim = claim_of(text, parts={"p": BOTH[one], "q": BOTH[other]}, inputs=inputs, terms=terms)
    return within_of(claim, believed)[0]


def nears_of(root: Theorem) -> dict[str, Any]:
    """The document of two results that are compared."""
    goal: Any = root.goal
    space, units, values, numbers = goal.space, list[Any](), dict[Any, int](), dict[Unit, int]()
    every = [one for one in root.walk() if type(one.goal) in (Apart, Near, WordIsSmall)]
    enclosed = [one.goal for one in root.walk() if isinstance(one.goal, Enclosed)]

    def plain(value: Any) -> Any:
        match value:
            case Model():
                if value.unit not in numbers:
                    numbers[value.unit] = len(units)
                    written = Written(value.unit)
                    bound = next(one for one in enclosed if (one.unit, one.node) == (value.unit, value.unit.result))
                    stated = written._plain(bound.facts.error)
                    places = [written._plain(one) for one in bound.provided]
                    conditions = [written.document["conditions"][place] for place in places]
                    units.append(written.stating([]) | {"bound": stated, "provided": conditions})
                return numbers[value.unit]
            case Addend() | Nothing() | Instruction() | Added():
                if value not in values:
                    found = {one.name: plain(getattr(value, one.name)) for one in fields(value)}
                    values[value] = len(values)
                    listed.append(found)
                return values[value]
            case Fraction():
                return str(value)
            case tuple() | list():
                return list(map(plain, value))
            case Space():
                return None
            case Format() | Word() | Words() | WordIsSmall() | Near() | Apart():
                return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
        return value

    listed = list[Any]()
    theorems = [{"rule": one.rule, "goal": {"is": type(one.goal).__name__} | plain(one.goal),
                 "premises": [every.index(premise) for premise in one.premises if premise in every]}
                for one in every]  # fmt: skip
    found = {"windows": {name: getattr(space.window, name) for name in "abc"}, "addend": not space.no_addend,
             "fraction": space.factors.fraction, "addend_fraction": space.addend.fraction, "terms": space.terms,
             "factors": plain(space.factors), "addend_format": plain(space.addend), "units": units, "values": listed,
             "theorems": theorems}  # fmt: skip
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_what_is_said_of_two_results_passes(case: tuple[str, str, int]) -> None:
    data = nears_of(compared_parts(*case))
    Nears(data).check()
    assert {one["rule"] for one in data["theorems"]} >= {"begins", "after_instruction", "near_each_other", "settled"}


def _smaller(value: str) -> str:
    return str(Fraction(value) * (1 - Fraction(1, 1 << 20)))


def changes_of(data: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each theorem with one thing in it, or below it, that is another."""
    for number, theorem in enumerate(data["theorems"]):
        goal = theorem["goal"]
        names = [name for name in ("distance", "off", "weight", "share", "size") if goal.get(name, "0") != "0"]
        wrong: list[dict[str, Any]] = [{name: _smaller(goal[name])} for name in names * (theorem["rule"] != "settled")]
        if goal["is"] == "Near":
            wrong += [{"base": goal["base"] + 1}, *([{"products": goal["products"][1:]}] * bool(goal["products"]))]
            wrong += [{"weights": [_smaller(one) for one in goal["weights"]]}] * (goal["weights"][0] != "0")
            value = data["values"][goal["value"]]
            if theorem["rule"] == "after_instruction":
                for name, other in (("start", value["stop"]), ("stop", 100), ("addend", goal["value"] - 2)):
                    values = [value | {name: other} if one is value else one for one in data["values"]]
                    yield number, data | {"values": values}
                units = [one | {"provided": [x | {"below": -1000} for x in one["provided"]]} for one in data["units"]]
                yield number, data | {"units": units}
        for change in filter(None, wrong):
            changed = [one | {"goal": goal | change} if one is theorem else one for one in data["theorems"]]
            yield number, data | {"theorems": changed}
        if (kept := {"after_instruction": 1, "near_each_other": 2}.get(theorem["rule"])) is not None:  # no lemma
            fewer = [one | {"premises": one["premises"][:kept]} if one is theorem else one for one in data["theorems"]]
            yield number, data | {"theorems": fewer}


def test_another_distance_or_size_of_two_results_is_found() -> None:
    seen = Counter[str]()
    for case in (PAIRS[0], PAIRS[3]):
        data = nears_of(compared_parts(*case))
        for number, changed in changes_of(data):
            with pytest.raises((FaultError, IndexError, KeyError)):
                Nears(changed).check()
            seen[data["theorems"][number]["rule"]] += 1
    assert seen["after_instruction"] > 10
    assert seen["near_each_other"] > 2


def test_results_that_are_too_near_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_shares, "apart", lambda one, other, words: Fraction(0))
    with pytest.raises(FaultError, match="further apart"):
        Nears(nears_of(compared_parts(*PAIRS[3]))).check()
