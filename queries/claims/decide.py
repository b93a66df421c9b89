"""A claim of any kind, decided by the prover of its kind."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.hypotheses.unit_claims import BoundClaim, ClassicalClaim, OverflowClaim, PropertyClaim, WrapClaim
from mmaprobe.queries.claims.classical import verify_classical
from mmaprobe.queries.claims.error_bound import verify_bound
from mmaprobe.queries.claims.outcome import Outcome
from mmaprobe.queries.claims.overflow import verify_overflow
from mmaprobe.queries.claims.properties import verify_property
from mmaprobe.queries.claims.verify import verify
from mmaprobe.queries.claims.wraps import verify_wraps
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.base.yamlfile import located


class Kind(NamedTuple):
    """How claims of a kind are decided, and the key of a claim's file to which errors of the decision refer."""

    verify: Callable[..., Outcome[Any]]
    key: str


#: class of a claim -> its kind
KINDS: Mapping[type[Statement], Kind] = {
    Claim: Kind(verify, "claim"),
    PropertyClaim: Kind(verify_property, "property"),
    BoundClaim: Kind(verify_bound, "model"),
    OverflowClaim: Kind(verify_overflow, "reduction"),
    WrapClaim: Kind(verify_wraps, "plan"),
    ClassicalClaim: Kind(verify_classical, "plan"),
}


def decide(claim: Statement, options: Options, before: Sequence[Outcome[Any]] = ()) -> Outcome[Any]:
    """The verdict on a claim. `before`: outcomes of other cases, whose inputs a search may use. Raises InputError for
    an ill-formed claim, FaultError where an evaluation contradicts what was proved."""
    start, kind = time.monotonic(), KINDS[type(claim)]
    with located(claim.file, (kind.key,)):
        outcome = kind.verify(claim, options, *_inputs(claim, before))
    outcome.seconds = time.monotonic() - start
    outcome.check(outcome.interrupted or outcome.seconds >= (options.timeout or math.inf))
    return outcome


def _inputs(claim: Statement, before: Sequence[Outcome[Any]]) -> list[list[Row]]:
    """For a claim about algorithms, a further argument of its prover: the inputs found for other cases."""
    if not isinstance(claim, Claim):
        return []
    return [[row for one in before for row in one.known(claim)]]
