"""Any claim of the library, settled by what it is about."""

from __future__ import annotations

from hypotheses.claim import AnyClaim, BoundClaim, OverflowClaim, located
from queries.distinguish import Options
from queries.error_bound import verify_bound
from queries.overflow import verify_overflow
from queries.verify import Outcome, verify


def settle(claim: AnyClaim, options: Options) -> Outcome:
    """The verdict on a claim. Raises InputError for one that has no sense, SolverFaultError."""
    if isinstance(claim, BoundClaim):
        with located(claim.file, ("model",)):
            return verify_bound(claim, options)
    if isinstance(claim, OverflowClaim):
        with located(claim.file, ("reduction",)):
            return verify_overflow(claim)
    return verify(claim, options)
