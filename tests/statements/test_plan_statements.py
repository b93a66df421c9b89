"""Random statements about two plans, checked against products of matrices (benchmarks/plan_statements.py)."""

from __future__ import annotations

import pytest

from benchmarks.plan_statements import Statement, check, statement
from mmaprobe.queries.kernel.equality import plan_units
from mmaprobe.queries.plans import equal


@pytest.mark.parametrize("number", [n for n in range(12) if n not in (5, 7)])  # these two take seconds and end unknown
def test_no_verdict_is_wrong(number: int) -> None:
    outcome = check(statement(number), timeout=2.0, seed=number)
    assert not outcome.wrong
    assert outcome.verdict != "fault"


def test_a_false_equality_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the matrices of the check, where the prover's own do not look."""
    monkeypatch.setattr(plan_units, "normal", lambda node: 0)
    monkeypatch.setattr(equal, "matrices_agree", lambda *rest: True)
    monkeypatch.setattr(equal, "replay", lambda *rest: type("Replay", (), {"differs": [False]}))
    assert check(Statement("sum(short, c)", "sum(two, c)", 8), 2.0, seed=1).wrong == "they differ at K = 8"
