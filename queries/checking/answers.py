"""Whether what a folder has answers what its documents say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from hypotheses.unit_claims import OverflowClaim
from queries.certificates.claim_files import read_claim
from queries.certificates.names import CLAIM, LEFT_PLAN, LOG, PLANS, RIGHT_PLAN, WITNESS
from queries.certificates.plan_files import read_plan
from queries.certificates.questions import read_document, read_question
from queries.certificates.reading import Held
from queries.checking.finding import Contents, Finding, Look, Texts, of_file
from queries.checking.log import log
from queries.checking.plans import plans_fault, plans_text
from queries.checking.witnesses import witness
from queries.kernel.rows import BELOW_ONE
from smtmodel.algorithms import sum_of_array
from smtmodel.display import exact_value


@of_file(PLANS)
def plans(texts: Texts, contents: Contents) -> Iterator[Finding]:
    """Whether two plans are equal, by rules and by the parts, each of which is checked."""
    stated = read_document(texts, PLANS)
    left, right = (read_plan(texts, name) for name in (LEFT_PLAN, RIGHT_PLAN))
    asked = [read_question(Held(contents.folder / part, OF_PART)) for part in contents.parts]
    fault = plans_fault(stated, left, right, asked)
    text = fault or f"{LEFT_PLAN} and {RIGHT_PLAN} are equal {plans_text(stated)}"
    yield Finding(PLANS, text, "fault" if fault else "fine")


OF_PART = ("question.json", "left.yaml", "right.yaml")


@of_file(CLAIM)
def overflow(texts: Texts, contents: Contents) -> Iterator[Finding]:
    """Of a claim about the least count of numbers whose sum overflows, whether the sum of that many does."""
    claim = None if WITNESS in texts else read_claim(texts)
    if isinstance(claim, OverflowClaim) and claim.overflow == "smallest":
        ones = np.full(claim.numbers, BELOW_ONE, dtype=np.uint32)
        last = exact_value(sum_of_array(claim.reduction, ones), claim.reduction.result_format)
        says = f"{claim.numbers} times the largest number below 1 {'overflow' if last == 'inf' else 'do not overflow'}"
        yield Finding(CLAIM, says, "fine" if last == "inf" else "fault")


#: what looks at each file that says what was proved
ANSWERS: Mapping[str, Look] = {LOG: log, CLAIM: overflow, PLANS: plans, WITNESS: witness}
