"""What is proved of sums of integers, of any format, checked by a second statement of the rules."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.rules.wraps import recombining, tiny
from mmaprobe.queries.kernel.integers import factors, wraps
from mmaprobe.queries.kernel.integers.factors import same_integers
from mmaprobe.queries.kernel.integers.wraps import never_wraps
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.nodes import ExactSum
from mmaprobe.smtmodel.nodes.known import NOTHING
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.plan_files import FOLDER
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import unit_text
from tests.rules.test_wraps import held, residues
from tests.second import wrap_rules
from tests.second.magnitudes import FaultError

pytestmark = pytest.mark.oracle

TOTAL = "exact(a[0:1] * b[0:1], c)"


def data_of(plan: Plan, length: int, *most: int | None, text: str = "") -> dict[str, Any]:
    units = {model.reference: unit_text(model.unit) for model in plan.models}
    return {"text": text or plan_text(plan), "units": units, "length": length, "most": most or (None, None)}


def shipped(name: str, *changes: tuple[str, str]) -> tuple[Plan, str]:
    """A plan of the library, and its file."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_plan(text, name, parse_reference), text


def refuses(rule: Callable[..., Any], *given: Any) -> str:
    try:
        rule(*given)
    except (RuleError, FaultError) as error:
        return str(error)
    return ""


HOPPER = ("rtx-blackwell/mma/m16n8k32.f32.e4m3.e4m3.f32", "hopper/wgmma/m64n8k32.f32.e4m3.e4m3")


@pytest.mark.parametrize(("name", "changes", "most"), [
    ("ozaki/int8-7", (), 133144), ("ozaki/f32-int8-4", (), 133144), ("ozaki/int8-ii-14", (), 2289),
    ("ozaki/f16-7", (), 1040), ("ozaki/fp8-14", (), 74565), ("ozaki/fp8-14", (HOPPER,), 72),
])  # fmt: skip
def test_both_tell_of_the_same_k(name: str, changes: tuple[tuple[str, str], ...], most: int) -> None:
    plan, text = shipped(name, *changes)
    for length in (1, most):
        assert never_wraps(plan, length, None, None)
        wrap_rules.never_wraps(data_of(plan, length, text=text))
    with pytest.raises(RuleError):
        never_wraps(plan, most + 1, None, None)
    with pytest.raises(FaultError, match=r"^a sum may|^another number may"):
        wrap_rules.never_wraps(data_of(plan, most + 1, text=text))


#: what the rule refuses, and the second statement tells: it takes each product alone, and rounding up never makes -0
MORE = ("never_wraps: a sum may lose bits", "same_integers: a sum may be -0")


def test_random_plans() -> None:
    """What is proved passes; what is refused does not, but for two reasons."""
    rng, seen = random.Random(54), Counter[str]()
    while seen["plans"] < 50:
        floats, state = rng.random() < 0.5, rng.getstate()
        try:
            plan = tiny(rng, floats) if floats or rng.random() < 0.5 else recombining(rng)
        except MmaprobeError:
            continue
        seen["plans"] += 1
        for length in (1, rng.randint(2, 40)):
            most = tuple(rng.choice((None, None, 0, 1, 2, 3)) for _ in "ab")
            one = refuses(never_wraps, plan, length, *most)
            other = refuses(wrap_rules.never_wraps, data_of(plan, length, *most))
            assert not other if not one else other or one in MORE, (one, other, plan_text(plan))
            seen["proved" if not one else "refused"] += 1
        if floats:
            again = random.Random()
            again.setstate(state)
            wide = tiny(again, floats, wide=True)
            one = refuses(same_integers, plan, wide, length := rng.randint(1, 3))
            other = refuses(wrap_rules.same_integers, data_of(plan, length), data_of(wide, length))
            assert not other if not one else other or one in MORE, (one, other, plan_text(plan))
            seen["same" if not one else "not the same"] += 1
    assert min(seen[one] for one in ("proved", "refused", "same", "not the same")) > 1, seen


@pytest.mark.parametrize("change", [
    ("", "moduli=[3, 5]", "moduli=[3, 7]"), ("", "residue(a0, 3)", "residue(a0, 4)"), ("", "+0", "-0"),
    ("units", "int6", "int3"), ("units", "F=4", "F=3"), ("units", "least=4", "least=5"),
    ("units", "b[0:2], c", "b[0:2], c, c"), ("units", "a[0:2] * b[0:2]", "a[0:2] * a[0:2]"),
])  # fmt: skip
def test_another_text_is_refused(change: tuple[str, str, str]) -> None:
    made = data_of(residues(), 1, 1, 3)
    wrap_rules.never_wraps(made)
    where, old, new = change
    if where:
        made["units"] = {name: text.replace(old, new) for name, text in made["units"].items()}
    else:
        made["text"] = made["text"].replace(old, new)
    assert made != data_of(residues(), 1, 1, 3)
    with pytest.raises(FaultError):
        wrap_rules.never_wraps(made)


def test_slices_of_the_same_integers() -> None:
    (one, text), (two, second) = (shipped(f"ozaki/{kind}-7") for kind in ("f16", "int8"))
    wrap_rules.same_integers(data_of(one, 1024, text=text), data_of(two, 1024, text=second))
    assert "2**7" in second
    for length, changed in ((1025, second), (1024, second.replace("2**7", "2**6", 1))):
        with pytest.raises(FaultError):
            wrap_rules.same_integers(data_of(one, length, text=text), data_of(two, length, text=changed))


# -- a kernel that is wrong

WRONG: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "no sum leaves its range": (wraps, "check_within", lambda *given: None),
    "sums lose no bits": (wraps, "_check_exact", lambda *given: None),
    "every unit adds its products": (wraps, "adds_products_once", lambda *given: None),
    "integers are held": (wraps, "whole_of", lambda word: word if word.rounding.format.is_integer else word.term),
    "nothing is left of a number": (ExactSum, "_left", lambda *given: NOTHING),
    "one instruction": (wraps, "_times", lambda one, count: one),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_broken_rule_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WRONG[what])
    rng, found = random.Random(7), 0
    for number in range(60):
        try:
            plan = tiny(rng, number % 3 > 0) if number % 4 else recombining(rng)
        except MmaprobeError:
            continue
        length = rng.randint(1, 9)
        if not refuses(never_wraps, plan, length, None, None):
            found += bool(refuses(wrap_rules.never_wraps, data_of(plan, length)))
    assert found


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "down"},
        {"integers": "int4"},
        {"stage": "then(mma(a1, b1), mma(a1, b1))"},
        {"stage": "promote(2, promote(1, mma(a1, b1), n), s)"},
    ],
)
def test_other_integers_are_noticed(change: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "integers_of", lambda *given: None)
    monkeypatch.setattr(factors, "SIGNLESS", {*factors.SIGNLESS, "down"})
    one, other = (held(TOTAL, **({"c": "e5m8b15_ieee", "integers": "int3"} | x)) for x in ({}, change))
    wrap_rules.same_integers(data_of(one, 2), data_of(one, 2))
    assert not refuses(same_integers, one, other, 2)
    with pytest.raises(FaultError):
        wrap_rules.same_integers(data_of(one, 2), data_of(other, 2))
