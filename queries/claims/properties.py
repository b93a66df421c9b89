"""Claims that a model has a property, or that two models are equal: decided as `prove` does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mmaprobe.hypotheses.unit_claims import PropertyClaim
from mmaprobe.queries.certificates.certificate import Certificate
from mmaprobe.queries.claims.outcome import Outcome, SearchStep, Verdict
from mmaprobe.queries.conjectures.models import ModelConjecture
from mmaprobe.queries.properties.certify import certify_proofs
from mmaprobe.queries.properties.proving import verdict_on
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof


@dataclass
class PropertyOutcome(Outcome[PropertyClaim]):
    """`proofs`: the proofs of all problems of the property; `refuting`: the proof that refutes the property.
    `proofs_of` has compared what the proofs say with evaluations."""

    proofs: list[Proof] = field(default_factory=list)
    refuting: Proof | None = None

    @property
    def verdict(self) -> Verdict:
        if self.refuting is not None:
            return "refuted" if self.refuting.verdict == "different" else "unknown"
        return "holds" if verdict_on(self.claim.wanted, self.proofs) == "equal" else "unknown"

    @property
    def certificates(self) -> int:
        return len(self.proofs) if self.refuting is None else 1

    def certify(self, directory: Path, options: Options) -> list[Certificate]:
        """Write the certificates of the proofs, or the input that refutes."""
        proofs = self.proofs if self.refuting is None else [self.refuting]
        return certify_proofs(self.claim.wanted, proofs, directory, options)


def conjecture_of(claim: PropertyClaim) -> ModelConjecture:
    """The conjecture that the claim states."""
    return ModelConjecture.of(claim.wanted, claim.model, claim.other, claim.inputs, claim.compare)


def verify_property(claim: PropertyClaim, options: Options) -> PropertyOutcome:
    """Decide a claim. Raises ParameterError for models that cannot be compared, and SolverFaultError."""
    outcome, proofs = PropertyOutcome(claim), conjecture_of(claim).decide(options).found
    verdict = verdict_on(claim.wanted, proofs)
    outcome.interrupted = any(proof.interrupted for proof in proofs)
    outcome.asked = [SearchStep(proof.why or "staged proof", tuple(proof.tried), proof.seconds) for proof in proofs]
    if verdict == "different":
        outcome.refuting = proofs[-1]
    elif verdict == "equal" and not outcome.interrupted:
        outcome.proofs = proofs
        outcome.lemmas = [lemma for proof in proofs for lemma in proof.lemmas]
    return outcome
