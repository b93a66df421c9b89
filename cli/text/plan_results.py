"""What a search for the plans of a recorded result found, as text and as a plan file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.cli.options import say
from mmaprobe.smtmodel.base.wording import counted, some_of
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans.plantext import step_text

if TYPE_CHECKING:
    from mmaprobe.queries.plans.apart import Other
    from mmaprobe.queries.plans.results import PlansOfResult
    from mmaprobe.smtmodel.plans import Plan

NARROW = 16  # bits of results: narrow ones hide many differences
PLANS = 4  # plans listed, at most, that no input distinguishes
APART = 3  # plans listed, at most, that differ only on other inputs


def sentences(found: PlansOfResult, first: Sequence[Plan] = ()) -> list[str]:
    """A line for each fact; `first`: plans that are named before the others."""
    lines = found.products.sentences()
    others = " of the others" if found.left_out and not found.products.instead else " of these" if lines else ""
    names = found.names(first)
    if names:
        groups = [[plan.reference for plan in other.plans] for other in found.others]
        own = next((group for group in groups if names[0] in group), None)  # None: in the first plan's group
        apart = {name for group in groups for name in group}
        also = [name for name in names[1:] if (name not in apart if own is None else name in own)]
        more = f" (also: {some_of(also, PLANS - 1)})" if also else ""
        lines.append(f"{names[0]}{others} gives all of the {counted(found.looked, 'element')} looked at{more}")
        lines += _apart(found, names[0])
    else:
        none = f"none of the {found.tried} plans tried{others}" if found.tried > 1 else f"no plan{others}"
        every = f"all of the {counted(found.looked, 'element')} looked at" if found.looked else "these results"
        lines.append(f"{none} gives {every}")
        if found.best is not None:
            best = found.best
            roundings = "".join(f", {name}: {how}" for name, how in step_text(best.plan)[1].items()
                                if how not in best.plan.reference)  # fmt: skip
            lines[-1] += f"; {best.plan.reference}{roundings} gives {best.agree} of {best.looked}"
    if found.untried:
        lines.append(f"the time was over; not tried, or not wholly: {'; '.join(found.untried)}")
    return lines


def _apart(found: PlansOfResult, name: str) -> list[str]:
    """The plans that give the same elements as the first plan but differ from it on other inputs, and one of these
    inputs. `name`: the plan named before."""
    from mmaprobe.queries.plans.apart import narrowest

    lines, known = list[str](), [other for other in found.others if other.asked]
    if known:
        names = [one.plans[0].reference for one in known]
        listed = f"{', '.join(names[:APART])}{f', and {len(names) - APART} more' if names[APART:] else ''}"
        plans = f"{len(known)} other plan{'s give' if known[1:] else ' gives'} these elements too"
        counts = [one.differ for one in known]
        differ = f"{min(counts)}{f' to {max(counts)}' if max(counts) > min(counts) else ''}"
        than = "" if name == found.plans[0].reference else f" than {found.plans[0].reference}"
        lines.append(f"{plans}, but something else{than} in {differ} of {known[0].asked:,} new ones: {listed}")
    if unasked := len(found.others) - len(known):
        lines.append(f"the time was over before {counted(unasked, 'other plan')} with these elements met new ones")
    if found.others and (fmt := narrowest(found.plans[0])).width <= NARROW:
        lines.append(f"in {fmt.name} one product does not tell these plans apart")
    if not found.products and (one := next((one for one in known if one.shown), None)) is not None:
        lines.append(_input_text(found.plans[0], one))
    return lines


def _input_text(plan: Plan, other: Other) -> str:
    """An input on which two plans differ; factors not listed are +0."""
    shown, own = other.shown, other.plans[0]
    assert shown is not None
    factors = ", ".join(f"a[{k}] = {to_hex(a, plan.a)}, b[{k}] = {to_hex(b, plan.b)}"
                        for k, (a, b) in shown.products.items())  # fmt: skip
    one, two = (to_hex(result, plan.d) for result in shown.results)
    added = f", c = {to_hex(shown.c, plan.c)}" if shown.c else ""
    return f"{factors}{added}, all else +0, tell {plan.reference} ({one}) from {own.reference} ({two})"


def save_plan(path: Path | None, plans: Sequence[Plan], found: PlansOfResult | None = None) -> None:
    """Write the first of some plans to a file, and print this. `found`: the findings about a recorded result; if its
    sum lacks or repeats products, nothing is written."""
    from mmaprobe.smtmodel.base.files import write_whole
    from mmaprobe.smtmodel.plans.plantext import plan_text

    if path is None or not plans:
        return
    if found is not None and found.products:
        name = found.names()[0]
        say(f"not saved: a plan file adds every product once, and {name} is the plan of the products summed here")
        return
    write_whole(path, plan_text(plans[0]))
    others = ""
    if found is not None and found.others:
        plan = counted(len(found.others), "other plan")
        others = f" ({plan} may be the true one: ask for a product that tells them apart)"
    say(f"saved: {path}: {plans[0].reference}{others}")
