"""Conjectures that two models are equal, or that one model has a property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.documents.prove import Prove
from mmaprobe.queries.conjectures.conjecture import Conjecture, Decided
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.properties.proving import proofs_of
from mmaprobe.queries.properties.report import proof_document
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs

if TYPE_CHECKING:
    from mmaprobe.queries.certificates.certificate import Certificate


@dataclass(frozen=True)
class ModelConjecture(Conjecture[list[Proof], Prove]):
    """The conjecture that two models are equal, or that one has the property `wanted`: the sides of each problem
    agree."""

    wanted: str
    problems: Sequence[Problem]

    @classmethod
    def of(
        cls, wanted: str, model: Model, other: Model | None, inputs: Inputs, compare: Compare | None
    ) -> ModelConjecture:
        """The conjecture that a model equals `other`, or, without one, has a property. Raises ParameterError for a
        conjecture that cannot be asked."""
        if other is None:
            return cls(wanted, problems_of(wanted, model, inputs, compare))
        return cls(wanted, [Problem(model, other, inputs, compare or "bits")])

    @property
    def zeros(self) -> Mapping[str, str]:
        """The operands of which zeros alone are admitted, each with the reason."""
        return self.problems[0].zeros

    def decide(self, options: Options, confirm: bool = True) -> Decided[list[Proof], Prove]:
        proofs = proofs_of(self.problems, options, confirm)
        document = proof_document(self.wanted, proofs, self.zeros)

        def certify(folder: Path) -> Sequence[Certificate]:
            from mmaprobe.queries.properties.certify import certify_proofs

            return certify_proofs(self.wanted, proofs, folder, options)

        return Decided(proofs, document, certify, len(proofs))
