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
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.properties.proving import proofs_of, verdict_on
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


def problems_of_claim(claim: PropertyClaim) -> list[Problem]:
    """The problems whose models must all be proved equal for the claim to hold."""
    if claim.other is None:
        return problems_of(claim.wanted, claim.model, claim.inputs, claim.compare)
    return [Problem(claim.model, claim.other, claim.inputs, claim.compare or "bits")]


def verify_property(claim: PropertyClaim, options: Options) -> Outcome:
    """Decide a property as `prove` does. Raises InputError for models that cannot be compared, and SolverFaultError."""
    outcome = Outcome(claim)
    with located(claim.file, ("property",)):
        proofs = proofs_of(problems_of_claim(claim), options, confirm=True)
    verdict = verdict_on(claim.wanted, proofs)
    outcome.interrupted = any(proof.interrupted for proof in proofs)
    outcome.asked = [SearchStep(proof.why or "staged proof", tuple(proof.tried), proof.seconds) for proof in proofs]
    if verdict == "different":
        outcome.refuting = proofs[-1]
    elif verdict == "equal" and not outcome.interrupted:
        outcome.proofs = proofs
        outcome.lemmas = [lemma for proof in proofs for lemma in proof.lemmas]
    return outcome
