"""What a search for the plans of a recorded result found, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.plans.results import Given
    from mmaprobe.smtmodel.plans import Plan

PLANS = 4  # plans with the same result that are listed


def sentences(given: Given, first: Sequence[Plan] = ()) -> list[str]:
    """A line for each fact; `first`: plans that are named before the others."""
    from mmaprobe.queries.order.tree import not_in_the_sum

    lines = [not_in_the_sum(given.left_out)] if given.left_out else []
    others = " of the others" if given.left_out else ""
    names = given.names(first)
    if names:
        also = f" (also: {', '.join(names[1:PLANS])}{', ...' if names[PLANS:] else ''})" if names[1:] else ""
        lines.append(f"{names[0]}{others} gives all of the {counted(given.looked, 'element')} looked at{also}")
    else:
        none = f"none of the {counted(given.tried, 'plan')} tried{others}"
        lines.append(f"{none} gives all of the {counted(given.looked, 'element')} looked at")
        if given.best is not None:
            best = given.best
            lines[-1] += f"; {best.plan.reference} gives {best.agree} of {best.looked}"
    if given.untried:
        lines.append(f"the time was over; not tried, or not wholly: {'; '.join(given.untried)}")
    return lines
