"""What a search for the plans of a recorded result found, as text and as a plan file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.cli.options import say
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.plans.plantext import step_text

if TYPE_CHECKING:
    from mmaprobe.queries.plans.results import Given
    from mmaprobe.smtmodel.plans import Plan

NARROW = 16  # bits of results that hide much
PLANS = 4  # plans with the same result that are listed


def sentences(given: Given, first: Sequence[Plan] = ()) -> list[str]:
    """A line for each fact; `first`: plans that are named before the others."""
    lines = given.products.sentences()
    others = " of the others" if given.left_out and not given.products.instead else " of these" if lines else ""
    names = given.names(first)
    if names:
        also = f" (also: {', '.join(names[1:PLANS])}{', ...' if names[PLANS:] else ''})" if names[1:] else ""
        lines.append(f"{names[0]}{others} gives all of the {counted(given.looked, 'element')} looked at{also}")
        several = len({model.unit.result for plan in given.plans for model in plan.models}) > 1
        if several and given.plans[0].d.width <= NARROW:
            lines.append(f"in {given.plans[0].d.name} one product does not tell these plans apart")
    else:
        none = f"none of the {counted(given.tried, 'plan')} tried{others}"
        every = f"all of the {counted(given.looked, 'element')} looked at" if given.looked else "these results"
        lines.append(f"{none} gives {every}")
        if given.best is not None:
            best = given.best
            roundings = "".join(f", {name}: {how}" for name, how in step_text(best.plan)[1].items()
                                if how not in best.plan.reference)  # fmt: skip
            lines[-1] += f"; {best.plan.reference}{roundings} gives {best.agree} of {best.looked}"
    if given.untried:
        lines.append(f"the time was over; not tried, or not wholly: {'; '.join(given.untried)}")
    return lines


def save_plan(path: Path | None, plans: Sequence[Plan], given: Given | None = None, besides: str = "") -> None:
    """Write the first of some plans, and say so, and what it does not give. `given`: what was found of a recorded
    result; where its sum has not every product once, no plan file has it."""
    from mmaprobe.smtmodel.base.files import write_whole
    from mmaprobe.smtmodel.plans.plantext import plan_text

    if path is None or not plans:
        return
    if given is not None and given.products:
        say(f"not saved: a plan file adds every product once, and {given.names()[0]} is of what is summed here")
        return
    write_whole(path, plan_text(plans[0]))
    say(f"saved: {path}: {plans[0].reference}{besides and f' ({besides})'}")
