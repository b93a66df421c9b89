"""Bounds on the error of a truncating fused dot product (Xie et al. 2026, Table 9): a theorem of the kernel."""

from __future__ import annotations

from mmaprobe.hypotheses.unit_claims import BoundClaim
from mmaprobe.queries.claims.outcome import Outcome, SearchStep
from mmaprobe.queries.kernel.questions.truncating import truncating_steps
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties.bound import bound_in_units
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.base.errors import ParameterError

ABOUT = "the bound is about one truncating sum of exact products and c, rounded once"


def verify_bound(claim: BoundClaim, options: Options) -> Outcome:
    """Prove a bound, or leave it unknown. Raises ParameterError, by what is at fault, for a unit that no rule is about.

    That the rules are about a unit is what they check; the parameter that is in the way is looked for here.
    """
    outcome, settle = Outcome(claim), Settled(options)
    unit = claim.model.unit
    truncating_steps(unit, ABOUT)
    try:
        outcome.theorem = bound_in_units(unit, *claim.units, settle)
        outcome.lemmas = settle.asked
    except KeyboardInterrupt:
        outcome.interrupted = True
    except RuleError as error:
        where, _, why = str(error).partition(": ")
        if where not in ("loosened", "open"):
            raise ParameterError(where, f"{why}: {ABOUT}") from None
        outcome.asked.append(SearchStep(why))
    return outcome
