"""The campaign of changes to the provers: its changes can be made, and the kernel without them sees them in a log."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from benchmarks.sabotage import ROOT, are_replayed, changes, is_replayed
from mmaprobe.queries.kernel.bounds import enclosures
from mmaprobe.queries.kernel.equality import expressions, rewriting
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.properties.bound import bound_of
from mmaprobe.queries.properties.certify import certify_proofs
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import FusedSum
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.proofs.test_bounds import UNITS, small
from tests.said import believed
from tests.second.proved import forms

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"


def test_changes_are_of_texts_that_stand_once() -> None:
    for change in changes():
        assert (ROOT / change["file"]).read_text().count(change["old"]) == 1, change["old"]
        for word in change.get("tests", "").split():
            assert not word.startswith("tests/") or (ROOT / word).exists(), word


@pytest.mark.solvers
def test_a_change_is_seen_in_the_log_of_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model("small", small(*UNITS["exact"]).unit)
    assert are_replayed(model, [bound_of(model.unit, believed)])
    halved = {mode: (x / 2, y / 2) for mode, (x, y) in enclosures.LOSSES.items()}
    monkeypatch.setattr(enclosures, "LOSSES", halved)
    assert not are_replayed(model, [bound_of(model.unit, believed)])


@pytest.mark.solvers
def test_a_change_is_seen_in_the_log_of_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule of rewriting that drops a bit as well; in words, the theorem says the same."""
    model, name = parse_reference(f"{VOLTA}@exponent_floor=-200"), "floor below every term"
    (form,) = forms(model.unit)
    assert are_replayed(model, [form])
    plain = rewriting.REWRITES[name]

    def fewer(scope: Any, node: Any) -> Any:
        found = plain(scope, node)
        if found is None or not isinstance(found.other, FusedSum):
            return found
        return replace(found, other=replace(found.other, fraction_bits=node.fraction_bits - 1))

    monkeypatch.setitem(rewriting.REWRITES, name, fewer)
    (wrong,) = forms(model.unit)
    assert wrong.goal.statement() == form.goal.statement()
    assert not are_replayed(model, [wrong])


@pytest.mark.solvers
def test_a_change_is_seen_in_the_log_of_two_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = parse_reference(VOLTA), parse_reference(f"{VOLTA}@fraction_bits=24")
    monkeypatch.setattr(expressions, "normal", lambda node: None)
    for right, fine in ((one, True), (other, False)):
        problem = Problem(one, right)
        proof = Proof(problem, "equal", theorem=expressions.one_form(problem, None, None))
        assert is_replayed(partial(certify_proofs, "equal", [proof])) is fine
