"""Whether sums of n numbers from 0 to below 1 overflow: bounds carried through a reduction, by rules of the kernel.

One input shows that some sum of n numbers overflows: n times the largest number, on which the evaluated reduction
overflows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe.hypotheses.unit_claims import OverflowClaim
from mmaprobe.queries.claims.outcome import Contradiction, CountOutcome, SearchStep
from mmaprobe.queries.kernel.integers.rows import (
    BELOW_ONE,
    Bounded,
    below_one,
    column_sums,
    converted,
    in_sequence,
    joined,
    largest_counts,
    never_overflows,
    parted,
    trees,
)
from mmaprobe.queries.kernel.theorem import Theorem, goal_of
from mmaprobe.queries.search.contradiction import SEED
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import result_or_none
from mmaprobe.smtmodel.algorithms import reference_of, sum_of_array
from mmaprobe.smtmodel.algorithms.reductions import Operations, Reduction
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import FaultError
from mmaprobe.smtmodel.evaluate.model import Model


class OverflowOutcome(CountOutcome[OverflowClaim]):
    """The outcome of a claim about the overflow of a sum of numbers."""

    def contradiction(self, late: bool) -> Contradiction | None:
        """An infinite sum of the claim's count of numbers, or of one number less if the claim says that this count is
        the smallest that overflows."""
        count = self.claim.proved
        if count < 1:
            return None
        rng = np.random.default_rng(SEED)  # halfway cases of f16 among the numbers
        near = np.uint32(BELOW_ONE) - rng.integers(0, 1 << 14, count, dtype=np.uint32)
        for what, numbers in (("the largest number below 1", BELOW_ONE), ("numbers near 1", near)):
            if overflows(self.claim.reduction, count, numbers):
                return f"{count} times {what}", "an infinite sum"
        return None


def verify_overflow(claim: OverflowClaim, options: Options) -> OverflowOutcome:
    """Decide a claim. Raises ParameterError for a unit whose sums have no bound here, and FaultError where the bounds
    contradict the evaluation."""
    reduction, outcome = claim.reduction, OverflowOutcome(claim)
    outcome.theorem = never(reduction, claim.proved)
    bounded, (infinite, evaluation) = outcome.theorem is not None, evaluated(claim)
    outcome.exceeds[claim.count] = infinite
    if infinite and ((claim.asked == "never" and bounded) or result_or_none(bound, reduction, claim.count) is not None):
        raise FaultError(
            f"{claim.id}: bounds say that no {claim.count} numbers from 0 to below 1 overflow; evaluated, "
            f"{claim.count} times {BELOW_ONE:#x} do, of {reference_of(claim.reduction)}"
        )
    steps = [evaluation]
    if claim.asked == "smallest":
        fewer = infinite and not bounded and overflows(reduction, claim.proved)
        outcome.exceeds[claim.proved] = fewer
        steps.append("one less as well" if fewer else f"fewer {'never do' if bounded else 'may as well'}, by bounds")
    else:
        steps.append(f"no such numbers {'do' if bounded else 'are excluded'}, by bounds")
    outcome.asked = [SearchStep(step) for step in steps]
    return outcome


def evaluated(claim: OverflowClaim) -> tuple[bool, str]:
    """Whether the claim's count of the largest numbers overflows, and this in words."""
    infinite = overflows(claim.reduction, claim.count)
    return infinite, f"{claim.count} times the largest number below 1 {'overflow' if infinite else 'do not overflow'}"


def overflows(reduction: Reduction, count: int, numbers: NDArray[np.uint32] | int = BELOW_ONE) -> bool:
    """Whether the sum of `count` f32 numbers, or of `count` copies of one number, is infinite."""
    total = sum_of_array(reduction, np.full(count, numbers, dtype=np.uint32))
    return exact_value(total, reduction.result_format) == "inf"


def never(reduction: Reduction, numbers: int) -> Theorem | None:
    """The theorem that no sum of up to `numbers` numbers overflows; None where no rule proves this."""

    def proved() -> Theorem:
        sums = [bound(reduction, count) for count in largest_counts(reduction, numbers).values()]
        return never_overflows(reduction, numbers, sums)

    return result_or_none(proved)


def bound(reduction: Reduction, numbers: int) -> Theorem:
    """The theorem that bounds every sum of `numbers` numbers. Raises RuleError where no rule gives a bound."""
    return reduction.evaluate(_Proved(), below_one(numbers))


class _Proved(Operations[Theorem]):
    """The operations of a reduction on rows of numbers, each row given by a theorem that bounds it."""

    def length(self, numbers: Theorem) -> int:
        return int(goal_of(numbers, Bounded, "length").made.length)

    def part(self, numbers: Theorem, start: int, stop: int) -> Theorem:
        return parted(numbers, start, stop)

    def joined(self, first: Theorem, second: Theorem) -> Theorem:
        return joined(first, second)

    def converted(self, source: Format, fmt: Format, numbers: Theorem) -> Theorem:
        return converted(numbers, fmt)

    def column_sums(self, unit: Model, shape: tuple[int, int], chain: int, numbers: Theorem) -> Theorem:
        return column_sums(numbers, unit, shape, chain)

    def trees(self, fmt: Format, size: int, numbers: Theorem) -> Theorem:
        return trees(numbers, size)

    def in_sequence(self, fmt: Format, numbers: Theorem) -> Theorem:
        return in_sequence(numbers)
