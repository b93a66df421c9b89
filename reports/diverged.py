"""Where the computations of a model by two machines diverge: as lines of text, as a picture, and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from mmaprobe.documents.emulate import Diverged, Divergence
from mmaprobe.reports.drawings.sheet import LETTER, LINE, MARGIN, Box, Drawing, Sheet
from mmaprobe.reports.emulated import size_text
from mmaprobe.smtmodel.base.wording import counted, table_lines

HEADINGS = ("product", "M x N x K", "differ itself", "ulps", "of bound", "differ in the run", "ulps", "relative")
BAR = 220.0  # pixels of the longest bar
DECADES = 10  # orders of magnitude that a bar spans


def diverged_lines(diverged: Diverged) -> list[str]:
    """Lines of the answer, of a table of the products, and about the terms that show the first difference."""
    table = table_lines([HEADINGS, *map(_cells, diverged.products)])
    return [*answer(diverged), "", *table, *terms_lines(diverged)]


def answer(diverged: Diverged) -> list[str]:
    """The first lines: which product differs first and by how much, and how much the model's outputs differ."""
    left, right = diverged.machines
    lines = [f"{left} and {right}, {diverged.framework}: {counted(len(diverged.products), 'matrix product')}"]
    if diverged.first is None:
        return [*lines, "no product differs"]
    first = diverged.products[diverged.first]
    lines += [
        f"the first that differs: {name_of(first)}: {first.own} of {first.outputs} results, by up to "
        f"{counted(first.own_ulps, 'ulp')}",
        f"what the model returns: {diverged.differ} of {diverged.outputs} numbers differ, by up to "
        f"{diverged.largest:.3g}",
    ]
    grown = [row for row in diverged.products[diverged.first + 1 :] if row.relative > 4 * first.relative > 0]
    if grown:
        most = max(grown, key=lambda row: row.relative)
        lines.append(
            f"later products amplify it: relative {first.relative:.1e} there, {most.relative:.1e} in {name_of(most)}"
        )
    return lines


def terms_lines(diverged: Diverged) -> list[str]:
    """Lines about the few terms on which the sums of the first differing product differ; empty if none were found."""
    if diverged.explained is None:
        return []
    how = diverged.explained
    lines = ["", f"why: of result {list(how.element)} these products alone give different sums"]
    lines += [f"  k = {term.place}: {term.a} * {term.b}" for term in how.terms]
    lines += [f"  {name}: {result}" for name, result in zip(diverged.machines, how.results, strict=True)]
    return [*lines, *(f"  {line}" for line in how.why)]


def name_of(row: Divergence) -> str:
    """The number, module and operator of a product."""
    what = row.operator.removeprefix("aten.") + (" (gradient)" if row.backward else "")
    return f"{row.number}: {row.module} {what}".replace("  ", " ")


def _cells(row: Divergence) -> Sequence[str]:
    share = "" if not isinstance(row.bound, float) else f"{row.bound:.2g}"
    return (
        name_of(row), size_text(row), f"{row.own} of {row.outputs}", str(row.own_ulps), share, str(row.carried),
        str(row.carried_ulps), f"{row.relative:.1e}",
    )  # fmt: skip


def diverged_drawing(diverged: Diverged) -> Drawing:
    """A bar for each product: the relative difference of the two runs' results, on a logarithmic scale."""
    names = [name_of(row) for row in diverged.products]
    left = MARGIN + max(map(len, names), default=0) * LETTER + 2 * LETTER
    sheet = Sheet(left + BAR + 30 * LETTER)
    sheet.paragraph(f"{diverged.machines[0]} and {diverged.machines[1]}", "mp-title")
    sheet.paragraph(f"bars: difference of the runs over the results, from 1e-{DECADES} to 1")
    sheet.y += LINE / 2
    for row, name in zip(diverged.products, names, strict=True):
        with sheet.group(f"{name}: relative difference {row.relative:.1e}"):
            sheet.text(MARGIN, name, "mp-special" if row.number == diverged.first else "")
            share = 0.0
            if row.relative > 0:
                share = min(1.0, max(0.02, 1 + log10(row.relative) / DECADES))
            sheet.add(Box(left, sheet.y + 2, BAR, LINE - 4, "mp-zero"))
            if share:
                sheet.add(Box(left, sheet.y + 2, BAR * share, LINE - 4, "mp-one"))
            sheet.text(left + BAR + LETTER, f"{row.relative:.1e}, {row.carried} differ" if row.carried else "same bits")
            sheet.y += LINE
    return Drawing([sheet], "where two machines part", "\n".join(diverged_lines(diverged)), prefix="parts")


def diverged_page(diverged: Diverged) -> str:
    """The answer as a page of HTML."""
    from mmaprobe.reports.drawings.svg import svg_of
    from mmaprobe.reports.report import environment

    template = environment().get_template("diverged.html")
    return template.render(
        title=f"{diverged.machines[0]} and {diverged.machines[1]}: where a model parts", lines=answer(diverged),
        picture=svg_of(diverged_drawing(diverged)), headings=HEADINGS, first=diverged.first,
        rows=[(row.number, _cells(row), row.plans) for row in diverged.products], why=terms_lines(diverged),
    )  # fmt: skip
