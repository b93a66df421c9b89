"""The table of choices: every pair is asked, its page is that of the records, and every vector in it is replayed."""

from __future__ import annotations

import pytest

from benchmarks.plan_choices import CHOICES, PAGE, Choice, page, read_records
from queries.plans.equal import prove_plans
from queries.search.distinguish import Options
from smtmodel.batch import evaluate_row
from smtmodel.dot import Model
from smtmodel.operands import Operands
from smtmodel.plans.lowering import unit_of_plan

ROWS = read_records()
DIFFERENT = [choice for choice in CHOICES if ROWS[choice.question]["verdict"] == "different"]
BY_RULES = [choice for choice in CHOICES if ROWS[choice.question].get("rules") and not ROWS[choice.question]["engines"]]


def question(choice: Choice) -> str:
    return choice.question


def test_the_page_is_that_of_the_records() -> None:
    assert list(ROWS) == [choice.question for choice in CHOICES]
    assert PAGE.read_text(encoding="utf-8") == page(list(ROWS.values()))
    assert len(DIFFERENT) + len(BY_RULES) >= 20


@pytest.mark.parametrize("choice", DIFFERENT, ids=question)
def test_vectors_are_replayed(choice: Choice) -> None:
    row = ROWS[choice.question]
    sides = [[0] * row["length"] for _ in "ab"]
    for place, *pair in row["products"]:
        for side, pattern in zip(sides, pair, strict=True):
            side[place] = int(pattern, 16)
    operands = Operands(tuple(sides[0]), tuple(sides[1]), int(row["c"], 16))
    found = [evaluate_row(Model("side", unit_of_plan(plan, row["length"])), operands) for plan in choice.plans]
    assert [f"{pattern:08x}" for pattern in found] == row["results"]
    assert found[0] != found[1]


@pytest.mark.parametrize("choice", BY_RULES, ids=question)
def test_theorems_by_rules_are_proved_again(choice: Choice) -> None:
    proof = prove_plans(*choice.plans, choice.length, Options(timeout=10.0))
    assert proof.verdict == "equal"
    assert proof.ground is not None
    assert list(proof.ground.lines()) == ROWS[choice.question]["rules"]
