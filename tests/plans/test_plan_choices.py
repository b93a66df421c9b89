"""The table of choices: every pair is asked, its page is that of the records, and every vector in it is replayed."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.plan_choices import CHOICES, PAGE, Choice, page, read_records
from benchmarks.plan_units import AnsweredQuestions, plans_of
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.lowering import unit_of_plan

pytestmark = pytest.mark.records

ROWS = read_records()
DIFFERENT = [choice for choice in CHOICES if ROWS[choice.question]["verdict"] == "different"]
BY_RULES = [choice for choice in CHOICES if ROWS[choice.question].get("rules") and not ROWS[choice.question]["engines"]]


def question(choice: Choice) -> str:
    return choice.question


def test_the_page_is_that_of_the_records() -> None:
    assert list(ROWS) == [choice.question for choice in CHOICES]
    assert PAGE.read_text(encoding="utf-8") == page(list(ROWS.values()))
    assert len(DIFFERENT) + len(BY_RULES) >= 20


def replay(plans: tuple[Plan, Plan], row: dict[str, Any]) -> None:
    """The two plans give the results of a row, which differ."""
    sides = [[0] * row["length"] for _ in "ab"]
    for place, *pair in row["products"]:
        for side, pattern in zip(sides, pair, strict=True):
            side[place] = int(pattern, 16)
    operands = Operands(tuple(sides[0]), tuple(sides[1]), int(row["c"], 16))
    found = [evaluate_row(Model("side", unit_of_plan(plan, row["length"])), operands) for plan in plans]
    assert [to_hex(pattern, plan.d) for pattern, plan in zip(found, plans, strict=True)] == row["results"]
    assert found[0] != found[1]


@pytest.mark.parametrize("choice", DIFFERENT, ids=question)
def test_vectors_are_replayed(choice: Choice) -> None:
    replay(choice.plans, ROWS[choice.question])


def test_rows_of_units_are_replayed_and_proved_again() -> None:
    """Some of the vectors, and of the theorems of each kind of question."""
    rows = list(AnsweredQuestions(None).rows.values())
    assert [row["id"] for row in rows] == list(range(1, len(rows) + 1))
    for row in [row for row in rows if row["verdict"] == "different"][::40]:
        replay(plans_of(*row["asked"]), row)
    for row in [row for row in rows if row["verdict"] == "equal" and not row["engines"]][::10]:
        proof = prove_plans(*plans_of(*row["asked"]), None, Options(timeout=10.0))
        assert proof.rules == row["rules"]


@pytest.mark.parametrize("choice", BY_RULES, ids=question)
def test_theorems_by_rules_are_proved_again(choice: Choice) -> None:
    proof = prove_plans(*choice.plans, choice.length, Options(timeout=10.0))
    assert proof.verdict == "equal"
    assert proof.rules == ROWS[choice.question]["rules"]
