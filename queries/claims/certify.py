"""What was proved of a claim, as certificates."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.hypotheses.unit_claims import BoundClaim, PropertyClaim
from mmaprobe.queries.certificates.asked import of_claim
from mmaprobe.queries.certificates.certificate import Certificate, CertificateError, write_certificate
from mmaprobe.queries.certificates.claim_files import claim_texts
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.names import WITNESS
from mmaprobe.queries.certificates.questions import document_texts
from mmaprobe.queries.claims.outcome import Outcome
from mmaprobe.queries.kernel.questions.problem import free_values
from mmaprobe.queries.properties.bound_certificate import certify_unit_bounds
from mmaprobe.queries.properties.certify import certify_proofs, certify_refuted
from mmaprobe.queries.search.distinguish import Options


def certify_claim(outcome: Outcome, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of the proofs of a claim; if there are several, each into a folder of its own. Raises
    CertificateError."""
    claim = outcome.claim
    if isinstance(claim, Claim) and outcome.row is not None:
        decided = outcome.decided
        values = free_values(decided.layout, {decided.terms} if claim.zero_addend else (), outcome.row)
        texts = claim_texts(claim) | document_texts(WITNESS, {"values": values})
        return write_certificate(directory, options, texts)
    if isinstance(claim, PropertyClaim):
        if outcome.refuting is not None:
            return certify_refuted(claim.wanted, outcome.refuting, directory, options)
        return certify_proofs(claim.wanted, outcome.proofs, directory, options)
    if outcome.theorem is None:
        raise CertificateError("only what is proved by lemmas has a certificate")
    if isinstance(claim, BoundClaim):
        return certify_unit_bounds([outcome.theorem], claim.model, directory, options)
    return certify_theorems([outcome.theorem], of_claim(claim), claim_texts(claim), directory, options)
