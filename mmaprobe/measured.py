"""Error against size, measured by shipped studies and by study files of a user."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from mmaprobe.named import WantedError, whole_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.htmltext import html_table


@dataclass(frozen=True, repr=False)
class Studied:
    """The measurements of a study. `name`: the id of the study; `sizes`: an array; `values`: by (distribution, curve,
    measure) an array with one number for each size; `curves`: by name the model, plan or algorithm of each curve;
    `svg`: the drawing, None without matplotlib. A notebook shows the drawing, or else a table."""

    name: str
    sizes: NDArray[np.int64]
    values: Mapping[tuple[str, str, str], NDArray[np.float64]]
    curves: Mapping[str, str]
    svg: str | None = field(repr=False)

    def __repr__(self) -> str:
        """Two lines: the sizes and the curves."""
        sizes, measures = map(str, self.sizes.tolist()), dict.fromkeys(key[2] for key in self.values)
        return f"{self.name} at {', '.join(sizes)}: {', '.join(measures)}\n  of {', '.join(self.curves)}"

    def _repr_html_(self) -> str:
        if self.svg is not None:
            return self.svg
        rows = [(*key, *(f"{value:.3g}" for value in values)) for key, values in self.values.items()]
        return html_table(self.name, rows, ("numbers", "curve", "measure", *map(str, self.sizes.tolist())))


def study(
    study: str | os.PathLike[str],
    *,
    sizes: Iterable[SupportsIndex] | None = None,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
) -> Studied:
    """Measure error against size: the curves of a study.

    `study`: a name of `mmaprobe list studies`, or the path of a study file.

    Shapes: each curve has one number for each size, in ascending order of `sizes`.

    Units: `sizes` in the unit of the study's axis (default: the sizes of the study file); the same `seed` gives the
    same numbers; errors are relative to the norms that the study names. `folder`: where the table and the pictures are
    kept, as `mmaprobe study` keeps them: points in this table are not measured again.

    Raises MmaprobeError: a name that is not known, a file with a mistake, sizes that the study does not take.

    Source: each study's file says what it follows (docs/architectures.md).
    """
    from mmaprobe.studies.file import study_named
    from mmaprobe.studies.plot import draw
    from mmaprobe.studies.run import points, run
    from mmaprobe.studies.table import claimed_table

    if not isinstance(study, (str, os.PathLike)):
        raise WantedError("study", study, "the name of a study or the path of its file")
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise WantedError("folder", folder, "the path of a folder")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise WantedError("seed", seed, "a whole number")
    chosen = study_named(os.fspath(study))
    wanted = chosen.sizes if sizes is None else _sizes(sizes)
    with TemporaryDirectory() as temporary:
        path = Path(temporary if folder is None else folder, f"{chosen.id}.csv")
        with claimed_table(path, chosen.measures) as table:
            run(chosen, wanted, seed, table, lambda done, total, point: None)
        drawn = draw(chosen, wanted, seed, table, path.with_suffix(""))
        svg = next((one.read_text(encoding="utf-8") for one in drawn if one.suffix == ".svg"), None)
    curves: dict[tuple[str, str, str], list[float]] = {}
    for point, _ in points(chosen, wanted, seed):
        for measure, value in zip(chosen.measures, table.rows[point.key], strict=True):
            curves.setdefault((point.distribution, point.series, measure), []).append(value)
    return Studied(
        chosen.id,
        np.array(wanted, np.int64),
        {key: np.array(values, np.float64) for key, values in curves.items()},
        {series.label: series.subject for series in chosen.series},
        svg,
    )


def _sizes(given: Any) -> tuple[int, ...]:
    try:
        every = list(given)
    except TypeError:
        raise WantedError("sizes", given, "a list of whole numbers") from None
    sizes = tuple(sorted({whole_of("sizes", size) for size in every}))
    if not sizes:
        raise ParameterError("sizes", "none is given")
    return sizes
