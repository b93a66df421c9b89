"""Random units of odd forms against the oracle and their own forms (benchmarks/odd_units.py)."""

from __future__ import annotations

import pytest

from benchmarks import odd_units
from benchmarks.odd_units import check, unit_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.smtmodel.nodes import Node, Round
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

PROOFS = Normaliser(Options(timeout=10.0))


@pytest.mark.parametrize("number", range(24))
def test_every_form_computes_as_its_unit(number: int) -> None:
    assert not check(unit_of(number), PROOFS).wrong


def test_a_form_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(unit: Unit, _: Normaliser) -> Node:
        def leaf(old: Node, new: Node) -> Node:
            return Round(new.term, Rounding(new.rounding.format, "up")) if isinstance(new, Round) else new

        return rebuilt(unit.result, leaf, {})

    monkeypatch.setitem(odd_units.FORMS, "normal form", changed)
    found = [check(unit_of(number), PROOFS).wrong for number in range(6)]
    assert any("normal form differs" in text for wrong in found for text in wrong)
