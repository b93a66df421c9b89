"""What was proved of a claim, as certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypotheses.unit_claims import BoundClaim, PropertyClaim
from queries.certificates.certificate import write_certificate
from queries.claims.outcome import Outcome
from queries.claims.settle import problems_of_claim
from queries.properties.bound_certificate import certify_theorems
from queries.properties.proving import ARGUMENTS, proofs_of
from queries.properties.signs import certify_proofs
from queries.search.distinguish import Options

STAGES = (
    "the last questions have no answer: no input decides the claim, and every value is a number. Parts that are cut "
    "out of a question are any numbers, or any of which an earlier lemma says something (queries/claims/stages.py)."
)


def certify_claim(outcome: Outcome, directory: Path, options: Options) -> list[tuple[Path, dict[str, Any]]]:
    """Write the certificate of what was proved; of several proofs, each in a folder of its own. Raises
    CertificateError."""
    claim = outcome.claim
    question = f"{claim.id}: {claim.text}"
    if isinstance(claim, PropertyClaim):
        proofs = outcome.proofs
        if any(proof.why for proof in proofs):  # equal by their form: a certificate is of the question itself
            proofs = proofs_of(problems_of_claim(claim), options, confirm=True, forms=False)
        return certify_proofs(proofs, directory, options, question, ARGUMENTS.get(claim.wanted, ""))
    if isinstance(claim, BoundClaim) and outcome.theorem is not None:
        manifest = certify_theorems([outcome.theorem], claim.model.unit, question, directory, options)
        return [(directory, manifest)]
    leaves = [lemma.leaf for lemma in outcome.lemmas]
    manifest = write_certificate(
        directory, leaves, None, question, options.timeout, options.memory, options.progress,
        template="lemmas.md", argument=STAGES,
    )  # fmt: skip
    return [(directory, manifest)]
