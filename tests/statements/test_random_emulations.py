"""Random emulations over tiny formats: their plans are the oracle's, and no statement about them is decided wrongly."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.random_emulations import drawn, known, statements
from tests.marks import some_slow
from tests.oracles import emulation_oracle as oracle

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("number", some_slow(range(12), *range(2, 12)))
def test_what_is_decided_is_true(number: int, tmp_path: Path) -> None:
    one = known(number, tmp_path)
    assert not one.wrong
    for what, verdict, truth in statements(one, random.Random(-number - 1), tmp_path, 15.0):
        assert verdict in ("holds" if truth else "refuted", "unknown"), what


def test_the_oracle_sees_what_is_changed() -> None:
    """A factor, the rounding of words, a pair that is left out: each gives another result for some elements."""
    for number in range(40):
        each = drawn(random.Random(number))
        if not each.moduli and len(each.pairs) > 2:
            break
    results = oracle.results(each, 1).d
    for changed in (replace(each, off=each.off + 1), replace(each, pairs=each.pairs[1:])):
        assert not np.array_equal(results, oracle.results(changed, 1).d)


def test_an_element_whose_digits_are_ones_leaves_the_range_of_the_moduli(tmp_path: Path) -> None:
    """1.5 of E2M1, times 16, times -8: 1 and -1 do not."""
    one = known(540015, tmp_path)
    found = {what: verdict for what, verdict, _ in statements(one, random.Random(-540016), tmp_path, 15.0)}
    assert found["no sum of 1 wraps"] == "refuted"
