"""What slices and residues lose: the rule against all elements of tiny formats, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import log2

import numpy as np
import pytest

from mmaprobe.queries.kernel.integers.slices import (
    LosesOfElements,
    LosesOfLargest,
    WithinClassical,
    WithinSpan,
    loses_of_largest,
    within_classical,
    within_span,
)
from mmaprobe.queries.kernel.integers.wraps import never_wraps
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.slices import elements_lose
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.tables.reference import parse_plan_reference
from tests.oracles.oracle import decode
from tests.plans import test_moduli, test_slices

pytestmark = pytest.mark.compilers

SLICES = test_slices.TINY
KEPT = "sum(then(mma(a1, b2), mma(a2, b1)))"


def lost(plan: Plan, length: int = 2, reach: int = 5) -> Theorem:
    return loses_of_largest(plan, length, reach, never_wraps(plan, length, None, None))


def share(plan: Plan, length: int = 2) -> Fraction:
    goal = lost(plan, length).goal
    assert isinstance(goal, LosesOfLargest)
    return goal.share


def worst(plan: Plan) -> Fraction:
    """The largest error of two products over K times the product of the largest magnitudes, of all elements of e2m1."""
    rows = np.array(list(product(range(16), repeat=2)), dtype=np.uint8)
    found = simulate(rows, np.ascontiguousarray(rows.T), None, plan, engine="numpy").view(np.float32).astype(float)
    numbers = np.array([float(abs(x.value)) * (-1 if x.sign else 1) for x in (decode("e2m1", p) for p in range(16))])
    a = numbers[rows]
    exact, largest = a @ a.T, np.abs(a).max(1)
    kept = np.outer(largest > 0, largest > 0)
    return Fraction(np.max(np.abs(found - exact)[kept] / (2 * np.outer(largest, largest))[kept]))


@pytest.mark.parametrize(
    ("made", "old", "new"),
    [
        (test_slices.tiny, "", ""),
        (test_slices.tiny, "2**-5", "2**-4"),
        (test_slices.tiny, "1 / shared(a)", "1 / shared(a, up=true)"),
        (test_slices.tiny, "mma(a1, b2), mma(a2, b1)", "mma(a1, b2)"),
        (test_slices.tiny, "mma(a1, b2), mma(a2, b1)", "mma(a1, b2), mma(a2, b1), mma(a1, b2)"),
        (test_moduli.tiny, "", ""),
        (test_moduli.tiny, "2**-3", "2**-4"),
        (test_moduli.tiny, "w: round(int4, toward_zero)", "w: round(int4, nearest_even)"),
        (test_moduli.tiny, "product(2**2, r(product(b", "product(2**1, r(product(b"),
    ],
)
def test_no_element_loses_more(made: Callable[[str, str], Plan], old: str, new: str) -> None:
    """The result is within the bound for all inputs of two products, also where factors are wrong; and comes near."""
    text = SLICES if made is test_slices.tiny else test_moduli.TINY
    text = text.replace(old, new) if old else text
    if "1 / shared(a, up" in text:
        text = text.replace("total, shared(a)", "total, shared(a, up=true)")
    plan = made("", "") if not old else test_moduli.parsed(text, made)
    bound, found = share(plan), worst(plan)
    assert found <= bound
    assert found > bound / 16


def test_what_ozaki_loses() -> None:
    """Pairs of slices that are left out lose most; of residues, what is cut off."""
    found = {name: log2(share(parse_plan_reference(f"plan:ozaki/{name}"), 1024)) for name in ("int8-7", "int8-ii-14")}
    assert -42.2 < found["int8-7"] < -42.1
    assert -46 < found["int8-ii-14"] < -45.9


def test_within_the_classical_bound() -> None:
    premise = elements_lose(parse_plan_reference("plan:ozaki/int8-7"), 1024, 200)
    found = within_classical(premise, 3, Fraction(97)).goal
    assert isinstance(found, WithinClassical)
    with pytest.raises(RuleError, match="is all that is known"):
        within_classical(premise, 3, Fraction(96))
    with pytest.raises(RuleError, match="from 0 on"):
        within_classical(premise, -1, Fraction(1 << 60))


@pytest.mark.parametrize(("name", "spread", "times"), [("int8-ii-14", 4, 1), ("int8-8", 3, 1), ("int8-7", 0, 2)])
def test_what_elements_tell(name: str, spread: int, times: int) -> None:
    """Sums of words that are cut lose of the sum of magnitudes; what one side leaves, of elements of the other; and an
    element that is not small has a last place."""
    premise = elements_lose(parse_plan_reference(f"plan:ozaki/{name}"), 1024, 200)
    assert within_classical(premise, spread, Fraction(times))
    with pytest.raises(RuleError, match="is all that is known"):
        within_classical(premise, spread + 1, Fraction(times))


def test_of_words_that_are_not_cut_the_largest_tell() -> None:
    plan = test_moduli.parsed(test_moduli.TINY.replace("w: round(int4, toward_zero)", "w: round(int4, nearest_even)"),
                              test_moduli.tiny)  # fmt: skip
    goal = elements_lose(plan, 2, 5).goal
    assert isinstance(goal, LosesOfElements)
    assert (goal.products, *goal.ones, *goal.steps) == (0,) * 5
    assert goal.largest == share(plan)


def test_within_a_span() -> None:
    """Each factor of two between the product of the largest and the largest product costs one of the bound."""
    premise = lost(parse_plan_reference("plan:ozaki/int8-7"), 1024, 200)
    assert isinstance(within_span(premise, 0, Fraction(1830)).goal, WithinSpan)
    assert isinstance(within_span(premise, 3, Fraction(8 * 1830)).goal, WithinSpan)
    for span, times in ((0, 1829), (3, 1830), (3, 8 * 1829)):
        with pytest.raises(RuleError, match="is all that is known"):
            within_span(premise, span, Fraction(times))
    with pytest.raises(RuleError, match="from 0 on"):
        within_span(premise, -1, Fraction(1 << 60))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("1 / shared(a)", "1 / shared(a, up=true)", "other powers of two"),
        ("total, shared(a)", "total, total", "multiplied by another one"),
        ("r(product(r(product(total, shared(a))), shared(b, up=true)))", "r(product(total, shared(a)))", "both powers"),
        ("a2: q(r(product(2**2, r(exact(a_part, -a1)))))", "a2: q(r(exact(a, -a1)))", "words with a exact"),
        ("r: round(f32, nearest_even)", "r: round(f32, toward_zero)", "rules of its own"),
    ],
)
def test_what_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        lost(test_moduli.parsed(SLICES.replace(old, new), test_slices.tiny))


def test_premises_that_are_refused() -> None:
    plan, other = test_slices.tiny(), test_moduli.tiny()
    for premise, length in ((never_wraps(other, 2, None, None), 2), (never_wraps(plan, 2, None, None), 3),
                            (never_wraps(plan, 2, 1, None), 2)):  # fmt: skip
        with pytest.raises(RuleError, match="not known that no sum wraps"):
            loses_of_largest(plan, length, 5, premise)
    for length, reach in ((0, 5), (1, -1)):
        with pytest.raises(RuleError, match="from 1 on"):
            loses_of_largest(plan, length, reach, never_wraps(plan, length, None, None))
    with pytest.raises(RuleError, match="may be subnormal, or overflow"):
        lost(plan, 2, 100)
