"""Figures of a study's curves: PNG and SVG, and PDF with the width that a paper needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.files import whole_file
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.studies.run import points
from mmaprobe.studies.study import Series, Study
from mmaprobe.studies.table import Table

# measure -> the title of its panel, and the label of its vertical axis (absolute: in the units of D)
TITLES = {"l1": "l1 error", "l2": "l2 error", "linf": "infinity-norm error",
          "entry-1": "sum of errors", "entry-2": "root of the sum of squared errors", "entry-max": "largest error",
          "percent": "error in percent",
          "mean": "mean of the signed errors", "deviation": "standard deviation of the errors",
          "negative": "percentage of negative errors"}  # fmt: skip
AXES = {"l1": r"$\Vert$error$\Vert_1$ / ($\Vert A\Vert_1\,\Vert B\Vert_1$)",
        "l2": r"$\Vert$error$\Vert_2$ / ($\Vert A\Vert_2\,\Vert B\Vert_2$)",
        "linf": r"$\Vert$error$\Vert_\infty$ / ($\Vert A\Vert_\infty\,\Vert B\Vert_\infty$)",
        "entry-1": r"$\Sigma\,|$error$|$ / ($\Sigma\,|A|\;\Sigma\,|B|$)",
        "entry-2": r"$\Vert$error$\Vert_F$ / ($\Vert A\Vert_F\,\Vert B\Vert_F$)",
        "entry-max": r"max $|$error$|$ / (max $|A|$ max $|B|$)",
        "percent": "|error| (% of the exact sum)",
        "mean": "mean of D − exact\n(absolute)", "deviation": "deviation of D − exact\n(absolute)",
        "negative": "results below exact (%)"}  # fmt: skip
SCALES = {"mean": "symlog", "negative": "linear"}  # the scales of measures that may be zero or negative; others: log
# relative measure -> its value for a relative error of 1
RELATIVE = {"l1": 1.0, "l2": 1.0, "linf": 1.0, "entry-2": 1.0, "percent": 100.0}
UNITS = {"f32": -24, "f64": -53}  # format of the sum -> the exponent of u, half a unit in the last place of 1
BOUNDED = (*RELATIVE, "entry-1", "entry-max", "mean", "deviation")  # measures that increase with the errors' magnitudes
MARKERS = "osD^vPX<>*hp"
PANEL = 80  # the least width of a panel in a paper, in millimetres
TALLEST = 225  # the greatest height of a figure in a paper, in millimetres: a page has room for it and a caption
DIGITS = 30  # the number of digits for which the horizontal axis has room; with more, some sizes have no label
# the style of legends in a paper's figure
LEGEND: dict[str, Any] = {
    "fontsize": 6,
    "frameon": False,
    "handlelength": 2.2,
    "handletextpad": 0.5,
    "columnspacing": 1.0,
}
FINE = 0.6  # the relative weight of curves and markers in a paper's figure, where panels are half as wide
TURN = 4.0  # the length of a dash, in widths of the line, where equal curves draw their dashes in turn
DARKEST, LIGHTEST = 0.0, 0.88  # the ends of the used part of the colour scale, along which greys differ as well


def size_text(study: Study) -> str:
    """The label of the horizontal axis, which shows sizes."""
    if study.kind == "sum":
        return f"{study.axis} (numbers added)"
    if study.length:
        return f"{study.axis} (K = {study.length})"
    shape = f"{study.rows} × {study.axis} times {study.axis} × {study.rows}" if study.rows else "A and B are n × n"
    return f"{study.axis} ({shape})"


def check_width(millimetres: float | None) -> None:
    """Raises ParameterError for a width (in millimetres) without room for a panel."""
    if millimetres is not None and millimetres < PANEL:
        raise ParameterError("--width", f"{millimetres:g} mm is too narrow: {PANEL} or more")


def draw(
    study: Study, sizes: Sequence[int], seed: int, table: Table, stem: Path, millimetres: float | None = None
) -> list[Path]:
    """Write STEM.png and STEM.svg with a row of panels for each distribution and a legend beside the panels. Returns
    the paths written; without matplotlib, no file is written. `millimetres`: the width of a figure for a paper. Such a
    figure has as many panels in a row as fit, legends below the panels and text of 7 points, and STEM.pdf is written
    too.

    Groups of series differ in colour, grey value and marker; a bound has the marker of its group at its end. Where
    errors are relative, dotted lines show u (half a unit in the last place of 1 in the format of the sum) and n times
    u. Equal curves share one line. Overflowing sums leave a gap, and the legend names the first size that overflows.
    Raises the errors of `whole_file`, and ParameterError for a width without room for a panel.
    """
    check_width(millimetres)
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    points_of_text = 9 if millimetres is None else 7
    matplotlib.rcParams.update({"svg.hashsalt": study.id, "svg.fonttype": "none", "pdf.fonttype": 42,
                                "font.size": points_of_text})  # fmt: skip
    from matplotlib import pyplot

    shown = [(one, column) for one in study.distributions for column in range(len(study.measures))]
    columns = len(study.measures) if millimetres is None else min(len(study.measures), int(millimetres // PANEL))
    rows = -(-len(shown) // columns)
    size = (4.2 * columns + 2.2, 3.2 * rows)
    if millimetres is not None:
        size = (millimetres / 25.4, min(2.2 * rows + 1.2, TALLEST / 25.4))
    figure, panels = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", sharex=True)
    for spare in panels.flat[len(shown) :]:
        spare.set_axis_off()
    looks = looks_of(list(dict.fromkeys(series.group for series in study.series)))
    for index, (distribution, column) in enumerate(shown):
        panel, last = panels.flat[index], index + columns >= len(shown)
        weight = 1.0 if millimetres is None else FINE
        zeros = _panel(panel, study, sizes, seed, table, distribution, column, looks, weight)
        title = f"{distribution} numbers: {TITLES[study.measures[column]]}"
        if zeros:
            ends = " to ".join(dict.fromkeys((f"{zeros[0]:,}", f"{zeros[-1]:,}")))
            title += f"\n{counted(len(zeros), 'error')} of 0 not drawn, at {ends}"
        panel.set_title(title, fontsize=11 if millimetres is None else 7)
        panel.set_ylabel(AXES[study.measures[column]])
        if last:
            panel.set_xlabel(size_text(study))
            panel.tick_params(labelbottom=True)
        if millimetres is None and index % columns == columns - 1 and (index < columns or study.kind == "sum"):
            row = panels.flat[index - columns + 1 : index + 1]
            panel.legend(*_named(row), loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=7, frameon=False)
        if millimetres is not None and study.kind == "sum":  # each panel's legend names the sizes that overflow there
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25 if last else -0.05), ncols=2, **LEGEND)
    if millimetres is not None and study.kind != "sum":
        figure.legend(
            *_named(panels.flat[: len(study.measures)]), loc="outside lower center", ncols=2 * columns, **LEGEND
        )
    figure.align_ylabels()
    formats: dict[str, dict[str, Any]] = {"png": {"dpi": 150 if millimetres is None else 300}}
    formats["svg"] = {"metadata": {"Date": None}}
    if millimetres is not None:
        formats["pdf"] = {"metadata": {"CreationDate": None}}
    files = []
    for name, options in formats.items():
        files.append(stem.with_name(f"{stem.name}.{name}"))
        with whole_file(files[-1]) as stream:
            figure.savefig(stream, format=name, **options)
    pyplot.close(figure)
    return files


def _named(panels: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """The lines and labels in any of some panels, each label once. Only panels of relative errors have the lines of
    u."""
    named = {text: line for panel in panels for line, text in zip(*panel.get_legend_handles_labels(), strict=True)}
    return list(named.values()), list(named)


def looks_of(groups: Sequence[str]) -> dict[str, tuple[Any, str]]:
    """The colour and the marker of each group. The colours go from dark to light, so that the grey values differ."""
    import matplotlib

    shades, steps = matplotlib.colormaps["viridis"], max(1, len(groups) - 1)
    colour = [shades(DARKEST + (LIGHTEST - DARKEST) * index / steps) for index in range(len(groups))]
    return {group: (colour[index], MARKERS[index % len(MARKERS)]) for index, group in enumerate(groups)}


def _panel(
    panel: Any, study: Study, sizes: Sequence[int], seed: int, table: Table, distribution: str, column: int,
    looks: dict[str, tuple[Any, str]], weight: float,
) -> list[int]:  # fmt: skip
    """Draw a panel. Returns, in order, the sizes at which an error is 0, if the vertical axis is logarithmic and cannot
    show 0."""
    scale = SCALES.get(study.measures[column], "log")
    curves: list[tuple[Series, list[int], tuple[tuple[int, float], ...]]] = []
    zeros: list[int] = []
    for series in study.series:
        curve = []
        for point, other in points(study, sizes, seed):
            values = table.find(point)
            if other is series and point.distribution == distribution and values is not None:
                curve.append((point.size, values[column]))
        lost = [size for size, value in curve if not math.isfinite(value)]
        shown = tuple((size, value) for size, value in curve if math.isfinite(value) and (scale != "log" or value > 0))
        curves.append((series, lost, shown))
        zeros += [size for size, value in curve if scale == "log" and value == 0 and not series.bound]
    alike = [[series for series, _, other in curves if other == shown and shown and not series.bound]
             for _, _, shown in curves]  # fmt: skip
    for (series, lost, shown), equal in zip(curves, alike, strict=True):
        label = series.label
        if lost:
            label = f"{label.removesuffix(')')}{'; ' if ')' in label else ' ('}overflows from {lost[0]:,})"
        colour, marker = looks[series.group]
        curve_of = zip(*shown, strict=True) if shown else ([], [])
        if series.bound:
            curve_of = curve_of if study.measures[column] in BOUNDED else ([], [])
            panel.plot(*curve_of, linestyle=(0, (8, 2)), color=colour, linewidth=weight, label=label,
                       marker=marker, markersize=4 * weight**0.5, markeredgewidth=weight, markerfacecolor="white",
                       markevery=[-1])  # fmt: skip
            continue
        look = {"color": colour, "marker": marker, "markersize": 4 * weight**0.5, "markeredgewidth": weight,
                "markerfacecolor": "white" if series.dashed else colour}  # fmt: skip
        style, wide = "--" if series.dashed else "-", (1.2 if series.dashed else 2.0) * weight
        panel.plot([], [], style, linewidth=wide, label=label, **look)  # the entry of the legend
        if len(equal) > 1:  # equal curves draw dashes and markers in turn
            place, wide = equal.index(series), 2.0 * weight
            look["markevery"] = (place % len(shown), len(equal))
            turn = (TURN * (len(equal) - place), (TURN, TURN * (len(equal) - 1)))
            panel.plot(*curve_of, linestyle=turn, linewidth=wide, dash_capstyle="butt", **look)
        else:
            panel.plot(*curve_of, style, linewidth=wide, **look)
    _references(panel, study, sizes, study.measures[column], weight)
    panel.set_xscale("linear" if study.length else "log")
    panel.set_yscale(scale, **({"linthresh": 0.01, "linscale": 2} if scale == "symlog" else {}))
    if scale == "symlog":  # the axis has powers of ten of both signs, and by default its 15 labels overlap
        panel.yaxis.get_major_locator().set_params(numticks=8)
    panel.minorticks_off()
    if study.kind != "sum":
        every = 1 + sum(len(str(size)) for size in sizes) // DIGITS
        labelled = set(sorted(sizes)[::-every])
        panel.set_xticks(list(sizes), [str(size) if size in labelled else "" for size in sizes], fontsize=7)
    panel.grid(True, which="major", alpha=0.3)
    return sorted(zeros)


def _references(panel: Any, study: Study, sizes: Sequence[int], measure: str, weight: float) -> None:
    """Draw the lines of u and of n times u for a relative measure."""
    if measure not in RELATIVE:
        return
    exponent = UNITS[study.format]
    unit = RELATIVE[measure] * 2.0**exponent
    ends, percent = [min(sizes), max(sizes)], " in percent" if measure == "percent" else ""
    products = f"{study.length} u" if study.length else f"{study.axis} u"
    for values, label in (([unit, unit], "u"), ([study.products(size) * unit for size in ends], products)):
        what = f" (u = $2^{{{exponent}}}${percent})" if label == "u" else ""
        style = (0, (1, 1.5)) if label == "u" else (0, (4, 1.5, 1, 1.5))
        panel.plot(ends, values, linestyle=style, color="0.35", linewidth=weight, label=label + what, zorder=1)
