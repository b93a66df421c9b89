"""What is proved by evaluating all inputs, against an oracle in Python's integers, which has another description."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmarks.random_emulations import Known, _changed, known, write
from mmaprobe.queries.kernel.integers.every import every_error, every_product, every_sum
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from tests.oracles import emulation_oracle as oracle

pytestmark = pytest.mark.oracle

NUMBERS = (7, 8, 12, 21)  # by slices and by residues, some of which wrap, one with a wrong factor


def largest(one: Known, count: int, near: int, span: bool) -> Fraction:
    """The largest error over u times the number of products times the sum of magnitudes."""
    x = one.results[count]
    meant = np.logical_and.outer(x.most[0] > 0, x.most[1] > 0)
    if span:
        meant &= np.outer(*x.most) <= 2**near * x.product
    else:
        meant &= np.logical_and.outer(*(low * 2**near >= top for low, top in zip(x.least, x.most, strict=True)))
    errors, sizes = abs(x.d - x.exact)[meant], x.size[meant]
    pairs = {(float(e), float(s)) for e, s in zip(errors, sizes, strict=True)}
    unit = Fraction(count, 1 << one.each.digits)
    return max((Fraction(e) / Fraction(s) / unit for e, s in pairs), default=Fraction(0))


def holds(rule: object, *given: object) -> bool:
    try:
        rule(*given)  # type: ignore[operator]
    except RuleError:
        return False
    return True


@pytest.mark.parametrize("number", NUMBERS)
def test_errors_are_at_most_the_largest_and_no_less(number: int, tmp_path: Path) -> None:
    one = known(number, tmp_path)
    for near, span in ((0, False), (2, False), (0, True), (2, True)):
        times = max(largest(one, count, near, span) for count in ((1, 2) if span else (2,)))
        assert holds(every_error, one.plan, 2, 4, near, times, span)
        if times:
            assert not holds(every_error, one.plan, 2, 4, near, times * (1 - Fraction(1, 1 << 60)), span)


def test_sums_and_products_are_those_of_the_oracle(tmp_path: Path) -> None:
    """No sum is out of range where the rule says so, and results are the same exactly if they are by the rule."""
    wraps, alike = set(), set()
    for number in (*NUMBERS, 10, 24):  # whose units add integers: of other sums the rule says nothing
        one = known(number, tmp_path)
        for count in (1, 2):
            truth = not any((one.results[k].beyond | one.results[k].wide).any() for k in range(1, count + 1))
            assert holds(every_sum, one.plan, count) == truth
            wraps.add(truth)
        rng = random.Random(number)
        for changed in (_changed(one.each, rng) for _ in range(2)):
            other = parse_plan_path(f"plan:{write(changed, f'changed-{number}', tmp_path)}")
            truth = np.array_equal(one.results[2].d, oracle.results(changed, 2).d)
            assert holds(every_product, one.plan, other, 2) == truth
            alike.add(truth)
    assert wraps == alike == {False, True}
