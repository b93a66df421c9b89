"""The curves of a table as PNG and SVG. matplotlib is imported here alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smtmodel.files import whole_file
from studies.catalogue import Study
from studies.run import points
from studies.table import Table

TITLES = {"l1": "l1 error", "l2": "l2 error", "linf": "infinity-norm error", "percent": "error in percent",
          "mean": "mean of the signed errors", "deviation": "standard deviation of the errors",
          "negative": "percentage of negative errors"}  # fmt: skip
SCALES = {"mean": "symlog", "negative": "linear"}  # of measures that may be zero or negative; the others: log


def draw(study: Study, sizes: Sequence[int], seed: int, table: Table, stem: Path) -> list[Path]:
    """Writes STEM.png and STEM.svg, a row of panels for each distribution; nothing where matplotlib is missing.

    Sums that overflow leave a gap, and the legend says from which size on. Raises what `whole_file` does.
    """
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": study.name, "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    rows, columns = len(study.distributions), len(study.measures)
    size = (4.2 * columns + 2.2, 3.2 * rows)
    figure, panels = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", sharex=True)
    groups = list(dict.fromkeys(series.group for series in study.series))
    shades = matplotlib.colormaps["tab10" if len(groups) <= 10 else "tab20"]
    colours = {group: shades(index % shades.N) for index, group in enumerate(groups)}
    for row, distribution in enumerate(study.distributions):
        for column, measure in enumerate(study.measures):
            panel = panels[row][column]
            _panel(panel, study, sizes, seed, table, distribution, column, colours)
            panel.set_title(f"{distribution} numbers: {TITLES[measure]}")
            if row == rows - 1:
                panel.set_xlabel(study.axis)
        if row == 0 or study.kind == "sum":  # where sums overflow the legend says from which size on
            panels[row][-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=7, frameon=False)
    found = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
    with whole_file(found[0]) as stream:
        figure.savefig(stream, format="png", dpi=150)
    with whole_file(found[1]) as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return found


def _panel(
    panel: Any, study: Study, sizes: Sequence[int], seed: int, table: Table, distribution: str, column: int,
    colours: dict[str, Any],
) -> None:  # fmt: skip
    scale = SCALES.get(study.measures[column], "log")
    for series in study.series:
        curve = []
        for point, other in points(study, sizes, seed):
            values = table.find(point)
            if other is series and point.distribution == distribution and values is not None:
                curve.append((point.size, values[column]))
        lost = [size for size, value in curve if not math.isfinite(value)]
        shown = [(size, value) for size, value in curve if math.isfinite(value) and (scale != "log" or value > 0)]
        label = series.label + (f" (overflows from {lost[0]:,})" if lost else "")
        style = "--" if series.dashed else "-"
        wide = 1.2 if series.dashed else 2.0
        panel.plot(*zip(*shown, strict=True) if shown else ([], []), style, color=colours[series.group], marker=".",
                     linewidth=wide, label=label)  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale(scale, **({"linthresh": 0.01} if scale == "symlog" else {}))
    panel.minorticks_off()
    if study.kind != "sum":
        panel.set_xticks(list(sizes), [str(size) for size in sizes], fontsize=7)
    panel.grid(True, which="major", alpha=0.3)
