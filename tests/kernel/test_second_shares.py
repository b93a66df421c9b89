"""What is concluded of claims about many numbers of products, checked by a second statement of the rules."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.claims.shares import within_lengths
from mmaprobe.queries.kernel import unit_shares
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.kernel.unit_shares import ErrsUpTo, for_every_length
from mmaprobe.queries.kernel.windows import plan_at
from tests.rules.test_every_length import CLAIM, error
from tests.said import believed
from tests.second import share_rules
from tests.second.magnitudes import FaultError
from tests.second.plan_written import WrittenPlan

pytestmark = pytest.mark.oracle

WINDOWS = {"format": "f32", "a": [-20, -11], "b": [-8, 8], "c": "zero"}
WIDE = {"format": "f16", "a": [-4, 4], "b": [-4, 4], "c": [-6, 6]}
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
    "compensation": error("2**-17", "plan:compensated/chunks", inputs=WIDE | {"c": "zero"},
                          terms={"multiples": 128, "most": 4096}),
}  # fmt: skip


def told_of(theorem: Theorem) -> dict[str, Any]:
    goal: ErrsUpTo = theorem.goal  # type: ignore[assignment]
    (bound,) = theorem.premises
    about: Any = bound.goal
    at, space = plan_at(about.unit), goal.space
    written = WrittenPlan(about.unit)
    facts = written.plain(about.facts)
    conditions = [written.plain(one) for one in about.provided]
    told = {
        "windows": {name: getattr(space.window, name) for name in "abc"}, "addend": not space.no_addend,
        "fraction": space.factors.fraction, "addend_fraction": space.addend.fraction, "terms": space.terms,
        "at": {"growth": str(at.growth), "loops": at.loops, **written.plain(at.repeats)},
        "form": facts["low"], "conditions": [written.document["conditions"][number] for number in conditions],
        "first": goal.first, "shares": list(map(str, goal.shares)),
    }  # fmt: skip
    found: dict[str, Any] = json.loads(json.dumps(told))
    return found


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_the_share_of_a_plan_passes_and_another_does_not(claim: Claim) -> None:
    within = within_lengths(claim, believed)
    for_every_length(claim.assertion, within)
    told, text = told_of(within), claim.assertion.text
    share_rules.of_plan(told)
    share_rules.for_every_length(told, text)
    small = [str(Fraction(share) * (1 - Fraction(1, 1 << 20))) for share in told["shares"]]
    windows = told["windows"]
    higher = windows | {"a": [windows["a"][0], 1 << 10]}
    wrong: list[dict[str, Any]] = [
        {"shares": [small[0], told["shares"][1]]}, {"shares": [told["shares"][0], small[1]]},
        {"first": told["first"] + 1}, {"terms": told["terms"] * 2}, {"windows": higher}, {"form": []},
        {"at": told["at"] | {"growth": str(2 * Fraction(told["at"]["growth"]))}},
        {"conditions": [one | {"below": -1000} for one in told["conditions"]]},
        {"conditions": [one | {"most": None} for one in told["conditions"]]},
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises(FaultError):
            share_rules.of_plan(told | change)
    for other in (text.replace("<=", ">="), f"{text} * terms() * terms()", f"{text} * 2**-30", f"{text} + 1"):
        with pytest.raises(FaultError):
            share_rules.for_every_length(told, other)


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
            share_rules.of_plan(told_of(within_lengths(claim, believed)))
        except FaultError:
            found += 1
    assert found


def test_loops_one_after_another_count() -> None:
    told = told_of(within_lengths(CLAIMS["three loops"], believed))
    loops = told["at"]["loops"]
    assert loops > 1
    for other in (loops - 1, loops + 1):
        with pytest.raises(FaultError):
            share_rules.of_plan(told | {"at": told["at"] | {"loops": other}})
