"""Conjectures that two plans are equal, and that the plans of a map make results that depend on no shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.documents.prove import ProveInvariant, ProvePlans
from mmaprobe.queries.conjectures.conjecture import Conjecture, Decided
from mmaprobe.queries.plans.equal import PlanProof, prove_plans
from mmaprobe.queries.plans.invariant import Fixed, Invariance, Shapes, prove_invariant
from mmaprobe.queries.plans.mapping import rules_of
from mmaprobe.queries.plans.planmap import PlanMap
from mmaprobe.queries.plans.report import document_of, document_of_invariance
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.plans.plan import Plan

if TYPE_CHECKING:
    from mmaprobe.queries.certificates.certificate import Certificate


@dataclass(frozen=True)
class PlanConjecture(Conjecture[PlanProof, ProvePlans]):
    """The conjecture that two plans are equal for K = `length`, or, if this is None, for every multiple of a tile.
    `names`: what the document calls the plans."""

    left: Plan
    right: Plan
    length: int | None
    names: tuple[str, str]

    def decide(self, options: Options, confirm: bool = True) -> Decided[PlanProof, ProvePlans]:
        proof = prove_plans(self.left, self.right, self.length, options, confirm)

        def certify(folder: Path) -> Sequence[Certificate]:
            from mmaprobe.queries.plans.certify import certify_plans

            return certify_plans(proof, folder, options)

        return Decided(proof, document_of(proof, *self.names, self.length), certify)


@dataclass(frozen=True)
class InvarianceConjecture(Conjecture[Invariance, ProveInvariant]):
    """The conjecture that a result depends neither on M and N nor on its place, in these shapes. `fixed`: the side that
    is the same in the shapes that are compared."""

    rules: PlanMap
    shapes: Shapes
    fixed: Fixed | None

    @classmethod
    def of(cls, path: Path, shapes: str, fixed: Fixed | None) -> InvarianceConjecture:
        """The conjecture about the map, or the rules by hand, in a file. Raises InputError, and ParameterError for the
        shapes."""
        rules = rules_of(path)
        return cls(rules, Shapes.of(rules, shapes), fixed)

    def decide(self, options: Options, confirm: bool = True) -> Decided[Invariance, ProveInvariant]:
        found = prove_invariant(self.rules, self.shapes, self.fixed, options, confirm)

        def certify(folder: Path) -> Sequence[Certificate]:
            from mmaprobe.queries.plans.certify import certify_invariance

            return certify_invariance(found, folder, options)

        return Decided(found, document_of_invariance(found), certify)
