"""What a search for the plans of a recorded result found, as text and as a plan file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmaprobe.cli.options import say
from mmaprobe.smtmodel.arithmetic.display import value_text
from mmaprobe.smtmodel.base.interrupts import state, why_not_done
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans.plantext import step_text

if TYPE_CHECKING:
    from mmaprobe.queries.plans.apart import Other
    from mmaprobe.queries.plans.recorded import Recorded
    from mmaprobe.queries.plans.results import PlansOfResult
    from mmaprobe.smtmodel.plans import Plan

NARROW = 16  # the most bits of results that hide much of the sums
WHOLE = 1 << 24  # the most products of elements in a recorded matrix product that is computed again whole
LISTED = 3  # plans of a kind that are listed
WIDTH = 110  # columns of a line, as far as names allow
#: formats whose numbers NumPy has -> the names of their types there
TYPES = {"f16": "f2", "f32": "f4", "f64": "f8"}


def say_wrapped(sentence: str, label: str = "") -> None:
    """Print a sentence on lines that fit a screen; the lines of a list that it has stand apart."""
    head, *listed = sentence.split("\n")
    lines = textwrap.wrap(f"  {label}{head}", WIDTH, subsequent_indent="    ", break_long_words=False,
                          break_on_hyphens=False)  # fmt: skip
    for line in [*lines, *(f"      {one}" for one in listed)]:
        say(line)


def sentences(
    found: PlansOfResult, recorded: Recorded, seconds: float | None = None, first: Sequence[Plan] = ()
) -> list[str]:  # fmt: skip
    """A sentence for each fact, with lists as further lines. `seconds`: the time given; `first`: plans that are
    named before the others."""
    lines = found.products.sentences()
    others = " of the others" if found.left_out and not found.products.instead else " of these" if lines else ""
    names = found.names(first)
    looked = f"all of the {counted(found.looked, 'element')} looked at" if found.looked else "these results"
    if names:
        also = f"; at K = {recorded.length} so do"
        lines.append(f"{names[0]}{others} gives {looked}{_listed(also, found.alike(names[0]))}")
        lines += _apart(found, names[0], len(names), recorded)
        lines += _flushes(next(plan for plan in (*first, *found.plans) if plan.reference == names[0]), recorded)
    elif not found.tried:
        lines.append(f"no plan was compared with the results{others}: {why_not_done()} before the first one")
    else:
        none = f"none of the {found.tried} plans tried{others}" if found.tried > 1 else f"no plan{others}"
        lines.append(f"{none} gives {looked}")
        if found.best is not None:
            best = found.best
            roundings = "".join(f", {name}: {how}" for name, how in step_text(best.plan)[1].items()
                                if how not in best.plan.reference)  # fmt: skip
            share = f"{best.agree} of {best.looked} ({percent(best.agree, best.looked)})"
            lines[-1] += f"; the nearest so far, {best.plan.reference}{roundings}, gives {share}"
        if found.pairs:
            lines.append(PAIRS)
        elif found.activation:
            lines.append(activation_text(found.activation))
        elif not found.untried:
            lines.append(ELSE)
    if found.untried:
        more = "" if seconds is None or state.interrupted else f"; to go on, give more than --timeout {seconds:g}"
        lines.append(f"{why_not_done()}; not tried, or not wholly: {'; '.join(found.untried)}{more}")
    return lines


ELSE = (
    "after the sum alpha, beta, a bias and ReLU are tried, not GELU, SiLU, tanh or another activation; a function that "
    "computes such products shows its order, and other K (identify --gemm --device python:FILE.py:FUNCTION); of units, "
    "those of the table and instructions with one other number of bits or rounding are tried: another is identified "
    "from its tiles (identify --device); a plan file of your own is compared by what `mmaprobe simulate --plan` gives"
)


PAIRS = (
    "the results are sums of pairs of products, each pair saturated to int16, as PMADDUBSW and PMADDWD give them; no "
    "unit of the table has such pairs: a plan with `sum(pairs, +0)` has them by a unit file of your own, of length 2, "
    "with the steps s: round(exact(a[0:2] * b[0:2]), int16, toward_zero, overflow=saturate) and "
    "d: round(exact(s, c), int32, toward_zero)"
)


def activation_text(name: str) -> str:
    """What is said of results that look like an activation of the sums."""
    return (
        f"the results are near {name} of the sums, and no plan has an activation other than ReLU: record the product "
        "before it, or ask a function without it"
    )


def percent(part: int, whole: int) -> str:
    """A share, rounded down, as 100 % would say that nothing is missing."""
    return f"{100 * part // whole}%"


def differing(plan: Plan, recorded: Recorded) -> str:
    """The first element that a plan does not give, in words; empty where the product is too large to compute again."""
    from mmaprobe.smtmodel.evaluate.numbers import same_results
    from mmaprobe.smtmodel.plans.gemm import simulate

    [d] = recorded.d
    if d.size * recorded.length > WHOLE:
        return ""
    results = simulate(recorded.a, recorded.b, recorded.c if plan.addend else None, plan)
    places = np.argwhere(~same_results(results, d, plan.d))
    if not len(places):
        return ""
    row, column = places[0]
    plans, files = (value_text(int(side[row, column]), plan.d) for side in (results, d))
    count = counted(len(places), "element")
    return f"it differs in {count}, the first at [{row}, {column}]: {plans}, and the file has {files}"


def _listed(words: str, names: Sequence[str]) -> str:
    """Some names, each on a line of its own."""
    more = [f"and {len(names) - LISTED} more"] if len(names) > LISTED else []
    return "\n".join([f"{words}:", *names[:LISTED], *more]) if names else ""


def _flushes(plan: Plan, recorded: Recorded) -> list[str]:
    """The sentence that a plan takes subnormal factors for zeros, if no factor shows this."""
    from mmaprobe.smtmodel.nodes import Element
    from mmaprobe.smtmodel.nodes.node import of_kind

    sides = []
    for operand, matrix in ("a", recorded.a), ("b", recorded.b):
        fmt = getattr(recorded.asked, operand)
        read = {
            element.subnormals
            for model in plan.models
            if model.formats[operand] == fmt
            for element in of_kind(model.unit.result, Element)
            if element.operand == operand
        }
        fields = (matrix >> fmt.padding) & ((1 << fmt.exponent + fmt.fraction) - 1)
        if read - {"keep"} and not np.any((fields > 0) & (fields < 1 << fmt.fraction)):
            sides.append(operand.upper())
    if not sides:
        return []
    return [f"no number of {' or '.join(sides)} is subnormal, so that these elements do not show whether such numbers "
            f"count: {plan.reference} takes them for zeros"]  # fmt: skip


def _apart(found: PlansOfResult, name: str, count: int, recorded: Recorded) -> list[str]:
    """The plans that give the first plan's elements, but others on other inputs, and such an input. `name`: the plan
    already named; `count`: how many give these elements."""
    from mmaprobe.queries.plans.apart import narrowest

    lines, known = list[str](), [other for other in found.others if other.asked]
    if found.others:
        shortest = name == found.plans[0].reference
        why = "the shortest one, of the likeliest unit" if shortest else "the one most like the other result's"
        unsure = "which do not show which one is true, or whether another is"
        lines.append(f"{count} plans give these elements, {unsure}; named first: {why}")
    than = f" than {found.plans[0].reference}" if name != found.plans[0].reference else ""
    for wide in False, True:
        some = [one for one in known if one.wide is wide]
        if some:
            counts = [one.differ for one in some]
            differ = f"{min(counts)}{f' to {max(counts)}' if max(counts) > min(counts) else ''}"
            give = f"{len(some)} {'others give' if some[1:] else 'other gives'}"
            words = f"{give} something else{than} in {differ} of {some[0].asked:,} new elements"
            if wide:
                words = f"{give} the same in new elements like these, but something else{than} in {differ} of "
                numbers = "integers near the largest" if recorded.asked.a.is_integer else "numbers of all exponents"
                words += f"{some[0].asked:,} elements of {numbers}"
            lines.append(_listed(words, [one.plans[0].reference for one in some]))
            more = f"more rows and columns, recorded too, tells them apart: {some[0].asked:,} elements or more"
            lines.append("a product of " + ("such numbers, recorded too, tells them apart" if wide else more))
    if unasked := len(found.others) - len(known):
        rest = counted(unasked, "other plan")
        lines.append(f"{why_not_done()} before {rest} could be compared on new elements")
    if found.others and (fmt := narrowest(found.plans[0])).width <= NARROW:
        lines.append(f"in {fmt.name} one product does not tell these plans apart")
    if not found.products and (one := next((one for one in known if one.shown), None)) is not None:
        lines.append(_input_text(found.plans[0], one, recorded))
    return lines


def _input_text(plan: Plan, other: Other, recorded: Recorded) -> str:
    """An input on which two plans differ, the other factors being +0: the command that writes it."""
    shown, own = other.shown, other.plans[0]
    assert shown is not None
    places, (x, y) = [*shown.products], zip(*shown.products.values(), strict=True)
    sides = [
        ("a", recorded.a, recorded.asked.a, f"0, {places}", x),
        ("b", recorded.b, recorded.asked.b, f"{places}, 0", y),
    ]
    if recorded.c is not None:
        shape = np.empty((recorded.a.shape[0], recorded.b.shape[1]), recorded.addends.dtype)
        sides.append(("c", shape, recorded.asked.c, "0, 0", (shown.c,)))
    code = ["import numpy as np"]
    for name, matrix, fmt, at, patterns in sides:
        values = ", ".join(f"0x{to_hex(pattern, fmt)}" for pattern in patterns)
        view = f".view('{TYPES[fmt.name]}')" if fmt.name in TYPES else ""
        code.append(f"{name} = np.zeros({matrix.shape}, 'u{matrix.dtype.itemsize}'); {name}[{at}] = {values}")
        code.append(f"np.save('tell-{name}.npy', {name}{view})")
    one, two = (to_hex(result, plan.d) for result in shown.results)
    words = f"element [0, 0] of the product of the matrices that this writes tells {plan.reference} ({one})"
    words += f" from {own.reference} ({two}):"
    return "\n".join([words, f'python -c "{code[0]}; \\', *(f"  {line}; \\" for line in code[1:-1]), f'  {code[-1]}"'])


def save_plan(
    path: Path | None, plans: Sequence[Plan], found: PlansOfResult | None = None, about: str = "", length: int = 0
) -> None:
    """Write the first of some plans to a file, and print this. `found`: the findings about a recorded result of K =
    `length`; if its sum lacks or repeats products, nothing is written. `about`: what the plan was found for, which the
    file says too."""
    from mmaprobe.queries.plans.apart import same_sizes
    from mmaprobe.smtmodel.base.files import write_whole
    from mmaprobe.smtmodel.plans.plantext import plan_text

    if path is None or not plans:
        return
    if found is not None and found.products:
        name = found.names()[0]
        say(f"not saved: a plan file adds every product once, and {name} is the plan of the products summed here")
        return
    if found is not None and (alike := found.alike(plans[0].reference)):
        about += f"; one of {len(alike) + 1} plans that give the same there"
    if length and (other := same_sizes(plans[0], length)) is not None:
        about += f"; with grain={other[0]} its parts have the same lengths there, and other lengths at K = {other[1]}"
    plan = replace(plans[0], about=about) if about and not plans[0].about else plans[0]
    write_whole(path, plan_text(plan))
    others = ""
    if found is not None and found.others:
        count = counted(len(found.others), "other plan")
        others = f" ({count} may be the true one: ask for a product that tells them apart)"
    say(f"saved: {path}: {plans[0].reference}{f', {about}' if about else ''}{others}")
