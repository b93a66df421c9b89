"""docs/generations.md: its inputs are replayed, and what it says to change is all that does."""

from __future__ import annotations

import pytest

from benchmarks.generations import KINDS, PAGE, Change, changes, page, predictions, row_of, same, steps, written
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.families.parameters import format_parameter
from mmaprobe.smtmodel.inputs.vectors import parse_row
from mmaprobe.smtmodel.tables.reference import parse_reference

#: no input was found in 20 seconds, nor a proof that there is none
OPEN = {"f16-f32-b200-mi300x-exponent_floor", "f16-f32-b200-mi300x-zero_sign"}
EVERY = [change for step in steps() for change in changes(step)]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(written()), "to write it: python -m benchmarks.generations --page"


def test_every_change_has_an_input_or_a_proof_that_there_is_none() -> None:
    known = written()
    assert set(known) <= {change.id for change in EVERY}
    for change in EVERY:
        if change.id not in known and change.id not in OPEN:
            assert same(parse_reference(change.before), parse_reference(change.after)), change.id


@pytest.mark.parametrize("change", [change for change in EVERY if change.id in written()], ids=lambda change: change.id)
def test_every_input_is_replayed(change: Change) -> None:
    row = written()[change.id]
    operands = parse_row(dict(row)).operands
    before, after = parse_reference(change.before), parse_reference(change.after)
    values = [exact_value(evaluate_row(model, operands), model.d) for model in (before, after)]
    assert values[0] != values[1]
    assert row["predictions"] == predictions(change.step.kind, before, operands)
    assert row["model"] == KINDS[change.step.kind][change.step.old]


def test_the_changes_of_a_family_are_all_there_are() -> None:
    """With every one of them the older unit is the newer one."""
    seen = 0
    for step in steps():
        old, new = step.models
        if step.verdict == "changed" and step.same_family:
            assert new.member is not None
            named = ",".join(f"{c.parameter}={format_parameter(new.member.values[c.parameter])}" for c in changes(step))
            assert parse_reference(f"{old.reference}@{named}").unit.result == new.unit.result
            seen += 1
        assert (step.verdict == "one") == (old.unit.result == new.unit.result)
    assert seen == 5


@pytest.mark.slow
@pytest.mark.parametrize("change", EVERY[::5], ids=lambda change: change.id)
def test_inputs_are_found_again(change: Change) -> None:
    found = row_of(change)
    assert (found is None) == (change.id not in written())
