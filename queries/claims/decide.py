"""A claim of any kind, decided by the prover of its kind."""

from __future__ import annotations

import math
import time

from mmaprobe.hypotheses.claim import AnyClaim
from mmaprobe.hypotheses.claim_file import located
from mmaprobe.hypotheses.unit_claims import BoundClaim, ClassicalClaim, OverflowClaim, PropertyClaim, WrapClaim
from mmaprobe.queries.claims.classical import verify_classical
from mmaprobe.queries.claims.contradiction import check_outcome
from mmaprobe.queries.claims.error_bound import verify_bound
from mmaprobe.queries.claims.outcome import Outcome, SearchStep
from mmaprobe.queries.claims.overflow import verify_overflow
from mmaprobe.queries.claims.verify import verify
from mmaprobe.queries.claims.wraps import verify_wraps
from mmaprobe.queries.conjectures.models import OfModels
from mmaprobe.queries.search.distinguish import Options


def decide(claim: AnyClaim, options: Options) -> Outcome:
    """The verdict on a claim. Raises InputError for an ill-formed claim, FaultError where an evaluation contradicts
    what was proved."""
    start = time.monotonic()
    outcome = _decide(claim, options)
    outcome.seconds = time.monotonic() - start
    check_outcome(outcome, outcome.interrupted or outcome.seconds >= (options.timeout or math.inf))
    return outcome


def _decide(claim: AnyClaim, options: Options) -> Outcome:
    if isinstance(claim, PropertyClaim):
        return verify_property(claim, options)
    if isinstance(claim, BoundClaim):
        with located(claim.file, ("model",)):
            return verify_bound(claim, options)
    if isinstance(claim, OverflowClaim):
        with located(claim.file, ("reduction",)):
            return verify_overflow(claim)
    if isinstance(claim, WrapClaim):
        with located(claim.file, ("plan",)):
            return verify_wraps(claim)
    if isinstance(claim, ClassicalClaim):
        with located(claim.file, ("plan",)):
            return verify_classical(claim)
    return verify(claim, options)


def conjecture_of(claim: PropertyClaim) -> OfModels:
    """What the claim says."""
    return OfModels.of(claim.wanted, claim.model, claim.other, claim.inputs, claim.compare)


def verify_property(claim: PropertyClaim, options: Options) -> Outcome:
    """Decide a property as `prove` does. Raises InputError for models that cannot be compared, and SolverFaultError."""
    outcome = Outcome(claim)
    with located(claim.file, ("property",)):
        decided = conjecture_of(claim).decide(options)
    proofs = decided.found
    outcome.interrupted = any(proof.interrupted for proof in proofs)
    outcome.asked = [SearchStep(proof.why or "staged proof", tuple(proof.tried), proof.seconds) for proof in proofs]
    if decided.document.verdict in ("different", "refuted"):
        outcome.refuting = proofs[-1]
    elif decided.document.verdict != "unknown" and not outcome.interrupted:
        outcome.proofs = proofs
        outcome.lemmas = [lemma for proof in proofs for lemma in proof.lemmas]
    return outcome
