"""Random claims about small units, checked against all their inputs (benchmarks/claim_statements.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.claim_statements import FORMS, blind, check, make
from benchmarks.statements import grid_of
from mmaprobe.queries.claims.verify import _Verifier
from mmaprobe.queries.kernel.terms.undecided import NoInputDecides
from mmaprobe.queries.search.scene import evaluate_claim
from tests.said import assumed

#: some of every kind that are soon decided without examples
QUICK = (1, 2, 3, 4, 5, 7, 9)


@pytest.mark.parametrize("number", QUICK)
def test_no_verdict_is_wrong(number: int) -> None:
    with blind():
        found = check(make(number), 10.0)
    assert not found.wrong, (found.verdict, found.statement.text())


def test_a_false_claim_that_is_proved_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def proves(self: _Verifier) -> None:
        self.outcome.theorem = assumed(NoInputDecides(self.claim.assertion))

    monkeypatch.setattr(_Verifier, "_solve", proves)
    with blind():
        assert [check(make(number), 10.0).wrong for number in (2, 5)] == [True, False]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_the_truth_is_that_of_the_claim_on_all_patterns(number: int, tmp_path: Path) -> None:
    """What the claim file says of all patterns of its operands, of one product."""
    found = next(one for one in map(make, range(number, 1000, len(FORMS))) if one.data["terms"] == 1)
    claim = found.claim(tmp_path)
    table = grid_of([range(1 << fmt.width) for fmt in claim.layout.formats])
    if claim.zero_addend:
        table = table[table[:, -1] == 0]
    decided = bool(evaluate_claim(claim, table).deciding.any())
    assert decided == (found.true == (claim.quantifier == "exists"))
    assert np.any(evaluate_claim(claim, table).admitted)
