"""Conjectures that the error of a unit, of a chain of its instructions, or of a plan has a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.documents.prove import ErrorBound, Measure, PlanErrorBound
from mmaprobe.queries.conjectures.conjecture import Conjecture, Decided
from mmaprobe.queries.plans.bound_report import PlanBound, document_of_plan, find_plan_bound
from mmaprobe.queries.properties.bound_report import BoundResult, document_of, find_bound
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.plans.plan import Plan

if TYPE_CHECKING:
    from mmaprobe.queries.certificates.certificate import Certificate


@dataclass(frozen=True)
class BoundOfModel(Conjecture[BoundResult, ErrorBound]):
    """A bound of the error of a model, or, with a `length`, of a chain of its instructions. `measure`: the magnitudes
    in which the bound is stated; None: the magnitudes of all elements."""

    model: Model
    inputs: Inputs
    length: int | None = None
    measure: Measure | None = None

    def decide(self, options: Options, confirm: bool = True) -> Decided[BoundResult, ErrorBound]:
        found = find_bound(self.model, self.inputs, self.length, Settled(options, confirm), self.measure)

        def certify(folder: Path) -> Sequence[Certificate]:
            from mmaprobe.queries.properties.bound_certificate import certify_bound

            return certify_bound(found, folder, options)

        return Decided(found, document_of(found), certify)


@dataclass(frozen=True)
class BoundOfPlan(Conjecture[PlanBound, PlanErrorBound]):
    """A bound of the error of a plan, for every K that the plan takes whole and for each K of `lengths`. `name`: what
    the document calls the plan; `measure`: as for `find_plan_bound`."""

    plan: Plan
    inputs: Inputs
    lengths: Sequence[int]
    name: str
    measure: Measure | None = None

    def decide(self, options: Options, confirm: bool = True) -> Decided[PlanBound, PlanErrorBound]:
        settled = Settled(options, confirm)
        found = find_plan_bound(
            self.plan, self.inputs, self.lengths, settled, options.progress, late=settled.late, measure=self.measure
        )

        def certify(folder: Path) -> Sequence[Certificate]:
            from mmaprobe.queries.plans.certify import certify_plan_bound

            return certify_plan_bound(found, folder, options)

        return Decided(found, document_of_plan(found, self.name), certify)
