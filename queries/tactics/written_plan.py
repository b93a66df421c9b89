"""Theorems about a plan as a document of plain data: beside what `Written` writes, its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from queries.kernel.induction import Chained
from queries.kernel.steps import PlanAt, Step, recorded
from queries.kernel.theorem import Theorem
from queries.tactics.written import Written
from smtmodel.dot import Model
from smtmodel.plans.plan import Plan
from smtmodel.plans.stages import Stage
from smtmodel.unit import Unit


def units_of(plan: Plan) -> dict[Unit, int]:
    """The units of a plan, numbered."""
    return {unit: number for number, unit in enumerate(dict.fromkeys(model.unit for model in plan.models))}


class WrittenPlan(Written):
    """A plan for a number of products, or for any, and theorems about it. Steps are numbered, after what they are made
    of; so are stages, in the order of the sums of the plan."""

    def __init__(self, at: PlanAt) -> None:
        self.at, self.units = at, units_of(at.plan)
        self.stages = {stage: number for number, stage in enumerate(dict.fromkeys(one.stage for one in at.plan.sums))}
        self.steps: dict[Step, int] = {}
        super().__init__(at)
        self.document |= {"growth": str(at.growth), "steps": [], "sums": []}

    def stating(self, roots: Sequence[Theorem], leaves: Mapping[Theorem, str]) -> dict[str, Any]:
        """As of a unit, with the step that gives the sum of each stage."""
        document = super().stating(roots, leaves)
        if roots:
            document["sums"] = [self._plain(recorded(self.at.plan, stage, self.at.length)) for stage in self.stages]
        return document

    def _theorem(self, theorem: Theorem, leaf: str | None) -> dict[str, Any]:
        found = super()._theorem(theorem, leaf)
        if isinstance(theorem.goal, Chained):
            found["goal"]["model"] = self.units[theorem.goal.unit]
        return found

    def _plain(self, value: Any) -> Any:
        match value:
            case Step():
                return self._numbered(value)
            case Stage():
                return self.stages[value]
            case Model():
                return self.units[value.unit]
        return super()._plain(value)

    def _numbered(self, step: Step) -> int:
        if step not in self.steps:
            own = {one.name: self._plain(getattr(step, one.name)) for one in fields(step)}
            self.steps[step] = len(self.steps)
            self.document["steps"].append({"kind": type(step).__name__.lower()} | own)
        return self.steps[step]
