"""What slices, residues and blocks are proved to lose, checked by a second statement of the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.bounds.induction import Chained
from mmaprobe.queries.kernel.integers import blocks, slices
from mmaprobe.queries.kernel.integers.blocks import LosesOfBlocks
from mmaprobe.queries.kernel.integers.slices import (
    LosesOfElements,
    LosesOfLargest,
    WithinClassical,
    WithinSpan,
    within_classical,
    within_span,
)
from mmaprobe.queries.plans.slices import blocks_lose, elements_lose, slices_lose
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.tables.reference import parse_plan_reference
from tests.plans import test_moduli, test_slices
from tests.rules.test_blocks import blocks as block_plan
from tests.said import believed
from tests.second import slice_rules
from tests.second.magnitudes import FaultError

pytestmark = pytest.mark.oracle

SLICED = ("ozaki/int8-6", "ozaki/int8-8", "ozaki/f32-int8-4", "ozaki/int8-ii-13", "ozaki/int8-ii-14")


@cache
def plans() -> dict[str, tuple[Plan, int, int]]:
    """Plans with a K and how far from 1 their largest magnitudes may be."""
    shipped = {name: parse_plan_reference(f"plan:{name}") for name in SLICED}
    found = {name: (plan, 8 if name.endswith("13") else 1000, plan.d.emax // 4) for name, plan in shipped.items()}
    return found | {"slices": (test_slices.tiny(), 2, 5), "moduli": (test_moduli.tiny(), 2, 5)}


def told_of(name: str) -> dict[str, Any]:
    plan, length, reach = plans()[name]
    goal = slices_lose(plan, length, reach).goal
    assert isinstance(goal, LosesOfLargest)
    return {"text": plan_text(plan), "length": length, "reach": reach, "share": str(goal.share)}


def told_of_blocks(name: str) -> dict[str, Any]:
    plan = block_plan() if name == "tiny" else parse_plan_reference(f"plan:{name}")
    theorem = blocks_lose(plan, 128, believed)
    goal, (premise,) = theorem.goal, theorem.premises
    assert isinstance(goal, LosesOfBlocks)
    assert isinstance(premise.goal, Chained)
    step, unit = premise.goal.step, premise.goal.unit

    def plain(form: Form) -> list[tuple[str, int, str]]:
        found = []
        for atom, value in form.parts.items():
            for item in atom:
                places = {factor.offset for factor in item if factor.name in ("a", "b")} or {x.offset for x in item}
                names = sorted(factor.name for factor in item)
                found.append((" ".join(names), min(places, default=0), str(value)))
        return found

    data = {"growth": str(step.growth), "part": str(step.part), "own": plain(step.own), "size": plain(step.size),
            "length": unit.length, "block": unit.scale_block}  # fmt: skip
    return {"text": plan_text(plan), "length": 128, "reach": goal.reach, "spread": goal.spread, "zeros": goal.zeros,
            "step": data,
            "share": str(goal.share), "rest": str(goal.rest)}  # fmt: skip


BLOCKS = ("mx/fp8", "mx/fp6", "mx/fp4", "transformerengine/mxfp8", "transformerengine/nvfp4")


@pytest.mark.parametrize("name", [*BLOCKS, "tiny"])
def test_what_blocks_lose_passes_and_less_does_not(name: str) -> None:
    data = told_of_blocks(name)
    slice_rules.loses_of_blocks(data)
    share, text, step = Fraction(data["share"]), data["text"], data["step"]
    wrong: list[dict[str, Any]] = [
        {"share": str(share * (1 - Fraction(1, 1 << 20)))}, {"rest": "0"}, {"reach": 2000},
        {"text": text.replace("overflow=saturate", "overflow=ieee").replace("sat_finite", "ieee")},
        {"text": text.replace("largest(a, block", "largest(b, block").replace("nearest_even", "toward_zero")},
        {"step": step | {"part": "1"}}, {"step": step | {"own": [*step["own"], ("a scale_a", 0, "1")]}},
        {"step": step | {"own": [*step["own"], ("a b scale_a scale_b", 0, "1/4096")]}},
    ]  # fmt: skip
    for change in wrong:
        if "up," in text and change.get("text", "").endswith("ieee"):
            continue
        with pytest.raises(FaultError):
            slice_rules.loses_of_blocks(data | change)


@pytest.mark.parametrize("name", ["_Results.most", "_Side.of", "off_by"])
def test_a_loss_of_blocks_that_is_too_small_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = blocks._Side.of
    broken: dict[str, Any] = {
        "_Results.most": property(lambda results: Fraction(0)), "off_by": lambda how: (Fraction(1), Fraction(1)),
        "_Side.of": lambda *given: replace(own(*given), loss=Fraction(1, 1 << 10)),
    }  # fmt: skip
    where, _, what = name.rpartition(".")
    monkeypatch.setattr(getattr(blocks, where) if where else blocks, what, broken[name])
    with pytest.raises(FaultError):
        slice_rules.loses_of_blocks(told_of_blocks("transformerengine/nvfp4"))


@pytest.mark.parametrize("name", [*SLICED, "slices", "moduli"])
def test_what_slices_lose_passes_and_less_does_not(name: str) -> None:
    data = told_of(name)
    slice_rules.loses_of_largest(data)
    share, text = Fraction(data["share"]), data["text"]
    wrong: list[dict[str, Any]] = [
        {"share": str(share * (1 - Fraction(1, 1 << 20)))}, {"share": str(2 * share)}, {"reach": 2000},
        {"text": text.replace("shared(a)", "shared(a, up=true)", 1)},
        {"text": text.replace("toward_zero", "nearest_even")}, {"text": text.replace("nearest_even", "toward_zero")},
    ]  # fmt: skip
    for change in wrong:
        if change.get("text") != text:
            with pytest.raises(FaultError):
                slice_rules.loses_of_largest(data | change)


ELEMENTS = slices._Elements


def told_of_elements(name: str) -> dict[str, Any]:
    plan, length, reach = plans()[name]
    goal = elements_lose(plan, length, reach).goal
    assert isinstance(goal, LosesOfElements)
    data = {"products": str(goal.products), "ones": list(map(str, goal.ones)), "largest": str(goal.largest),
            "steps": list(map(str, goal.steps))}  # fmt: skip
    return {"text": plan_text(plan), "length": length, "reach": reach, **data}


@pytest.mark.parametrize("name", [*SLICED, "slices", "moduli"])
def test_what_elements_tell_passes_and_less_does_not(name: str) -> None:
    data = told_of_elements(name)
    slice_rules.loses_of_elements(data)
    less = {key: str(Fraction(data[key]) * (1 - Fraction(1, 1 << 20))) for key in ("products", "largest")}
    one, other = data["ones"]
    wrong: list[dict[str, Any]] = [
        *({key: text} for key, text in less.items() if text != data[key]), {"ones": [one, str(Fraction(other) / 2)]},
        {"steps": [str(Fraction(1, 1 << 20)), "0"]}, {"reach": 2000},
        {"text": data["text"].replace("toward_zero", "nearest_even")},
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises(FaultError):
            slice_rules.loses_of_elements(data | change)


BROKEN: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "no product of words is large": (slices, "_most", lambda word: Fraction(0)),
    "no rounding of a result loses": (slices._Results, "_rounded", lambda self, node, form: form),
    "parts of words lose nothing": (slices._Words, "_rounded", lambda self, node: self.of(node.term)),
    "powers are at most the largest": (
        slices,
        "_Elements",
        lambda *given: ELEMENTS(*given[:2], Fraction(1), 1, *given[4:]),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_share_that_is_too_small_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[what])
    found = 0
    for name in ("slices", "moduli", "ozaki/f32-int8-4"):
        try:
            slice_rules.loses_of_largest(told_of(name))
        except FaultError:
            found += 1
    assert found


def test_what_follows_from_it() -> None:
    """For elements near the largest ones, and for largest products near those of the largest elements."""
    plan, length, reach = plans()["ozaki/int8-8"]
    premise, elements = slices_lose(plan, length, reach), elements_lose(plan, length, reach)
    share, about = str(premise.goal.share), elements.goal  # type: ignore[attr-defined]
    assert isinstance(about, LosesOfElements)
    shares = {"products": str(about.products), "ones": list(map(str, about.ones)), "largest": str(about.largest),
              "steps": list(map(str, about.steps))}  # fmt: skip
    for near in (0, 1, 5):
        unit = 1 << plan.d.precision
        times = about.within(near) * unit / length
        one = within_classical(elements, near, times).goal
        other = within_span(premise, near, Fraction(share) * unit * 2**near).goal
        assert isinstance(one, WithinClassical)
        assert isinstance(other, WithinSpan)
        data = {"format": plan.d.name, "share": share, "length": one.length, "times": str(one.times)} | shares
        slice_rules.within_classical(data | {"spread": one.spread})
        slice_rules.within_span(data | {"span": other.span, "times": str(other.times)})
        for rule, wrong in (
            (slice_rules.within_classical, {"spread": near + 1}),
            (slice_rules.within_span, {"span": 40}),
        ):
            with pytest.raises(FaultError):
                rule(data | wrong)
