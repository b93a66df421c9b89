"""Whether trees of theorems about the error of a plan are valid and about the plan beside them, and rest on trees about
its units and lemmas about roundings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from queries.certificates.names import PLAN, SUMS, TREE, UNIT
from queries.certificates.sum_rules import SumTree
from queries.checking.finding import Contents, Finding, of_file
from queries.checking.plan_steps import Steps, covered, steps_of
from queries.checking.trees import lemma_finding
from queries.kernel.steps import PlanAt
from queries.plans.certify import read_plan
from queries.properties.asked import plain, read_document, read_unit
from queries.tactics.written_plan import WrittenPlan, units_of
from smtmodel.plans import Plan

Plain = Mapping[str, Any]


@of_file(SUMS)
def bounds(folder: Path, contents: Contents) -> Iterator[Finding]:
    """The theorems, one finding for each that is not valid, and what they state."""
    plan, used = read_plan(folder, PLAN), set[str]()
    units = [plain(unit) for unit in units_of(plan)]
    trees = read_document(folder / SUMS)["trees"]
    for place, document in enumerate(trees):
        where = f"{SUMS}, tree {place}"
        yield from _tree(folder, where, document, plan, units, contents)
        used |= {theorem["leaf"] for theorem in document["theorems"] if theorem["rule"] == "chained"}
    if used != set(contents.parts) or not trees:
        yield Finding(SUMS, "a part is about something else", "fault")


def _tree(
    folder: Path, where: str, document: Plain, plan: Plan, units: Sequence[Plain], contents: Contents
) -> Iterator[Finding]:
    tree = SumTree(document, units)
    faults = list(tree.check())
    yield from (Finding(f"{where}, theorem {number}", fault, "fault") for number, fault in faults)
    fault = tree_fault(document, plan)
    if fault:
        yield Finding(where, fault, "fault")
    for number, theorem in enumerate(document["theorems"]):
        place = f"{where}, theorem {number}"
        if theorem["rule"] == "chained":
            yield _instruction(folder, place, theorem, units, contents)
        elif theorem.get("leaf") is not None:
            yield lemma_finding(folder, place, document, theorem, contents.pieces, [])
    if not faults and not fault:
        yield Finding(where, f"{len(tree.theorems)} theorems follow by their rules, about the steps of {PLAN}")
        about = covered(plan, document["unit"]["length"])
        yield from (Finding(where, f"states: {tree.statement(number, about)}") for number in tree.states)


def tree_fault(document: Plain, plan: Plan) -> str:
    """Why a tree is not about the plan; empty if it is."""
    length = document["unit"]["length"]
    again = WrittenPlan(PlanAt(plan, length)).stating((), {})
    formats = document["formats"]
    if again["formats"] != formats[: len(again["formats"])] or any(
        again[name] != document[name] for name in ("unit", "nodes")
    ):
        return f"is not about {PLAN}"
    covered(plan, length)
    steps = Steps(units_of(plan))
    written = steps.written(document["steps"], formats)
    stages = dict.fromkeys(one.stage for one in plan.sums)
    own = [steps_of(steps, plan, stage, length) for stage in stages]
    return "" if own == [written[number] for number in document["sums"]] else f"has not the steps of {PLAN}"


def _instruction(folder: Path, place: str, theorem: Plain, units: Sequence[Plain], contents: Contents) -> Finding:
    """Whether what a tree says of an instruction is what a part states of that unit."""
    part, goal = theorem["leaf"], theorem["goal"]
    if part not in contents.parts:
        return Finding(place, f"rests on {part}, which is not in the manifest", "fault")
    stated = read_document(folder / part / TREE)
    goals = [stated["theorems"][number]["goal"] for number in stated["states"]]
    same = plain(read_unit(folder / part / UNIT)) == units[goal["model"]]
    if same and {"is": "Chained", "step": goal["step"]} in goals:
        return Finding(place, f"{part} states it")
    return Finding(place, f"{part} does not state it", "fault")
