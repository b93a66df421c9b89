"""The files of a certificate that say what was proved, and the check of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mmaprobe.hypotheses.unit_claims import OverflowClaim, WrapClaim
from mmaprobe.queries.certificates.claim_files import read_claim
from mmaprobe.queries.certificates.names import CLAIM, LOG, WITNESS
from mmaprobe.queries.checking.finding import Finding, Look, Texts, of_file
from mmaprobe.queries.checking.log import log
from mmaprobe.queries.checking.witnesses import witness
from mmaprobe.queries.claims.overflow import evaluated
from mmaprobe.queries.claims.wraps import wrapping


@of_file(CLAIM)
def overflow(texts: Texts, pieces: Sequence[str]) -> Iterator[Finding]:
    """For a claim about the least count of numbers whose sum overflows, or of products whose sum wraps: whether a sum
    of this count overflows or wraps."""
    claim = None if WITNESS in texts else read_claim(texts)
    if isinstance(claim, OverflowClaim) and claim.asked == "smallest":
        infinite, says = evaluated(claim)
        yield Finding(CLAIM, says, "fine" if infinite else "fault")
    if isinstance(claim, WrapClaim) and claim.asked == "smallest":
        wrap = wrapping(claim, claim.count)
        says = f"no sum of {claim.count} products that was tried wraps" if wrap is None else str(wrap)
        yield Finding(CLAIM, says, "fault" if wrap is None else "fine")


#: the check of each file that says what was proved
ANSWERS: Mapping[str, Look] = {LOG: log, CLAIM: overflow, WITNESS: witness}
