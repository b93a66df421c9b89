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
    """`proofs`: the proofs of all problems of the property, of which the last one may refute it. `proofs_of` has
    compared what the proofs say with evaluations."""

    proofs: list[Proof] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        verdict = verdict_on(self.claim.wanted, self.proofs)
        if verdict == "different":
            return "refuted"
        return "holds" if verdict == "equal" and not self.interrupted else "unknown"

    @property
    def refuting(self) -> Proof | None:
        return self.proofs[-1] if self.verdict == "refuted" else None

    @property
    def certificates(self) -> int:
        return {"holds": len(self.proofs), "refuted": 1, "unknown": 0}[self.verdict]

    def certify(self, directory: Path, options: Options) -> list[Certificate]:
        """Write the certificates of the proofs, or the input that refutes."""
        return certify_proofs(self.claim.wanted, self.proofs, directory, options)


def conjecture_of(claim: PropertyClaim) -> ModelConjecture:
    """The conjecture that the claim states."""
    return ModelConjecture.of(claim.wanted, claim.model, claim.other, claim.inputs, claim.compare)


def verify_property(claim: PropertyClaim, options: Options) -> PropertyOutcome:
    """Decide a claim. Raises ParameterError for models that cannot be compared, and SolverFaultError."""
    proofs = conjecture_of(claim).decide(options).found
    outcome = PropertyOutcome(claim, proofs=proofs, interrupted=any(proof.interrupted for proof in proofs))
    outcome.asked = [SearchStep(proof.why or "staged proof", tuple(proof.tried), proof.seconds) for proof in proofs]
    if outcome.verdict == "holds":
        outcome.lemmas = [lemma for proof in proofs for lemma in proof.lemmas]
    return outcome
