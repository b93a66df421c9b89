"""Verdicts on pairs of small models against the evaluation of all their inputs (benchmarks/small_pairs.py)."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.small_pairs import admitted, check, describe, every_row, make_pair, oracle_disagreements, random_model
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs

pytestmark = pytest.mark.solvers

LARGEST = 1 << 13  # inputs of one pair, so that the sample stays quick
PAIRS = 26
TIMEOUT = 60.0


@pytest.mark.parametrize("number", range(1000, 1000 + PAIRS))
def test_verdicts_are_those_of_every_input(number: int) -> None:
    pair = make_pair(number, LARGEST)
    outcome = check(pair, TIMEOUT, oracle_rows=60)
    assert not outcome.trouble, describe(pair)
    assert set(outcome.verdicts) == {"equal" if pair.equal else "different"}, describe(pair)


def test_pairs_are_repeatable_and_half_of_them_equal() -> None:
    pairs = [make_pair(number, LARGEST) for number in (2000, 2001, 2000)]
    assert [pair.equal for pair in pairs] == [True, False, True]
    assert describe(pairs[0]) == describe(pairs[2])
    assert (pairs[0].rows == pairs[2].rows).all()


def test_every_input_by_the_oracle() -> None:
    """The truth is not of one code's making: all results of a few models, in exact rationals."""
    rng, count = np.random.default_rng(7), 0
    while count < 4:
        model = random_model(rng)
        rows = every_row(model, Inputs(), 1 << 12)
        if rows is not None:
            assert oracle_disagreements(model, rows) == 0
            count += 1


def test_inputs_that_count() -> None:
    assert admitted("e2m1", Inputs()) == list(range(16))
    assert admitted("e2m1", Inputs(nonnegative=True, nonzero=True, finite=True)) == list(range(1, 8))
    assert admitted("e2m1", Inputs(exponents=ExponentRange(min=1, max=1), finite=True)) == [0, 4, 5, 8, 12, 13]
    assert len(admitted("e5m2", Inputs(finite=True))) == 256 - 8
    for name in ("e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e3m2"):
        assert len(admitted(name, Inputs())) == 1 << FORMATS[name].width
