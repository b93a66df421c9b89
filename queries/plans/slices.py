"""What the slices or residues of a plan lose, for K up to a length."""

from __future__ import annotations

from mmaprobe.queries.kernel.slices import loses_of_largest
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.kernel.wraps import never_wraps
from mmaprobe.smtmodel.plans.plan import Plan


def slices_lose(plan: Plan, length: int, reach: int) -> Theorem:
    """A theorem `LosesOfLargest`. Raises RuleError where none is known, or a sum may wrap."""
    return loses_of_largest(plan, length, reach, never_wraps(plan, length, None, None))
