"""Statements that are false are never called true: true claims and proofs with one parameter of their unit changed.

Each has an input that breaks it, which is evaluated again here. `BLIND` runs the provers without the simulation that
nearly always finds a counterexample first.
"""

from __future__ import annotations

from collections import Counter

import pytest

from mmaprobe.queries.claims.verify import _Verifier
from mmaprobe.queries.equality.staged import _Prover
from mmaprobe.queries.properties import monotonic as monotone
from mmaprobe.queries.properties import proving
from mmaprobe.queries.tactics.records import Proof
from tests.false_statements import Statement, is_false, kind_of, statements, verdict

pytestmark = pytest.mark.solvers

EVERY = statements()
TRUE = {"equal", "holds"}
QUICK = EVERY[::8]
BLIND = [one for one in EVERY if kind_of(one) not in ("error_bound", "overflow")][::60]


def name_of(statement: Statement) -> str:
    return kind_of(statement)


def test_there_are_enough_of_every_kind() -> None:
    counts = Counter(map(kind_of, EVERY))
    assert len(EVERY) >= 200
    for kind in ("equal", "order-independent", "sign-symmetric", "monotonic-addend", "monotonic-product",
                 "zero-padding", "exact", "error_bound", "overflow"):  # fmt: skip
        assert counts[kind] >= 5, kind
    assert sum(count for kind, count in counts.items() if "-tf32-" in kind or "ootomo" in kind) >= 10


@pytest.mark.parametrize("statement", QUICK, ids=name_of)
def test_false(statement: Statement) -> None:
    assert is_false(statement)
    assert verdict(statement, 2.0) not in TRUE


@pytest.mark.slow
@pytest.mark.parametrize("statement", EVERY, ids=name_of)
def test_every_one_is_false(statement: Statement) -> None:
    assert is_false(statement)
    assert verdict(statement, 10.0) not in TRUE


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """No prover looks at an example: what is left is what it would prove."""
    shown = _Prover._differ_at_random

    def matched_alone(self: _Prover) -> bool:
        shown(self)
        self.proof = Proof(self.problem)
        return False

    monkeypatch.setattr(_Prover, "_differ_at_random", matched_alone)
    monkeypatch.setattr(_Prover, "_differ_when_small", lambda self: False)
    monkeypatch.setattr(monotone, "find_fall", lambda problem: None)
    monkeypatch.setattr(_Verifier, "_simulate", lambda self, *limits: False)
    monkeypatch.setattr(_Verifier, "_climb", lambda self: False)
    monkeypatch.setattr(proving, "check_problems", lambda problems: None)


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("statement", BLIND, ids=name_of)
def test_nothing_false_is_proved(statement: Statement) -> None:
    assert verdict(statement, 2.0) not in TRUE


@pytest.mark.slow
@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("statement", EVERY, ids=name_of)
def test_nothing_false_is_proved_of_all(statement: Statement) -> None:
    assert verdict(statement, 10.0) not in TRUE
