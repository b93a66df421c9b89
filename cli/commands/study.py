"""The `study` command: the error of algorithms as a function of size."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import click

from mmaprobe.cli.choice import FileName, Millimetres, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import studies
from mmaprobe.cli.options import CLUSTER, JSON, loudness, opened_pool, print_json, progress, say
from mmaprobe.smtmodel.base.wording import install_command


@click.command(cls=Command)
@click.argument("study", shell_complete=studies)
@click.option("--sizes", metavar="N,N,...", help="Sizes instead of the study's own.")
@click.option("--seed", type=WholeNumber(0), default=0, show_default=True, help="The same seed gives the same numbers.")
@click.option(
    "-o", "--output", type=FileName(file_okay=False), default=Path("."), show_default=True,
    metavar="DIR", help="Where ID.csv, ID.png and ID.svg go.",
)  # fmt: skip
@click.option(
    "--width", type=Millimetres(), metavar="MM",
    help="The width of the drawing in millimetres, with text of 7 points: 85 is a column of a paper. Writes ID.pdf "
    "as well.",
)  # fmt: skip
@CLUSTER
@JSON
def study(
    study: str, sizes: str | None, seed: int, output: Path, width: float | None, cluster: str | None, as_json: bool
) -> None:
    """Measure error against size, as a table and curves. STUDY is a name of `mmaprobe list studies` or a study file
    (docs/studies): plans, sizes, distributions and norms of one's own.

    Finished points are kept: an interrupted run continues where it stopped. The curves need matplotlib.

    \b
    mmaprobe study valero-tf32 -o results
    mmaprobe study my.yaml -o results
    """
    from mmaprobe.documents.explain import Study
    from mmaprobe.smtmodel.base.progress import Count
    from mmaprobe.studies.file import study_named
    from mmaprobe.studies.plot import check_width, draw
    from mmaprobe.studies.run import run
    from mmaprobe.studies.table import Point, claimed_table

    chosen = study_named(study)
    name = chosen.id
    check_width(width)  # before anything is measured
    wanted = chosen.sizes if sizes is None else _sizes(sizes)
    _check_pictures(output, name)
    show = functools.partial(progress, loud=loudness())

    def report(done: int, total: int, point: Point) -> None:
        show(Count(done, total, "points", f" (last: {point.series}, {point.distribution}, {point.size:,})"))

    path = output / f"{name}.csv"
    try:
        with claimed_table(path, chosen.measures) as table, opened_pool(cluster, width=1) as pool:
            measured = run(chosen, wanted, seed, table, report, pool)
    except KeyboardInterrupt:
        progress("")
        if path.exists():
            say(f"finished points are in {path}; the same command goes on from there")
        raise
    progress("")
    say(f"{path}: {measured} new points")
    pictures = draw(chosen, wanted, seed, table, output / name, width)
    for picture in pictures:
        say(str(picture))
    if not pictures:
        say(f"no curves drawn: they need matplotlib ({install_command('plots')})")
    if as_json:
        files = [str(file) for file in (path, *pictures)]
        print_json(Study(study=name, seed=seed, sizes=wanted, new=measured, files=files))


def _check_pictures(folder: Path, name: str) -> None:
    """Raises InputError for pictures of this name without a table beside them: they are not of a study."""
    from mmaprobe.smtmodel.base.errors import InputError

    if not (folder / f"{name}.csv").exists():
        for path in (folder / f"{name}.{kind}" for kind in ("png", "svg", "pdf")):
            if path.exists():
                raise InputError(f"no study drew this, as there is no {name}.csv: name another folder", str(path))


DIGITS = 9  # digits of a size, at most


def _sizes(text: str) -> tuple[int, ...]:
    """The sizes in a list such as 32,64,128, ascending and without duplicates. Raises ParameterError."""
    from mmaprobe.smtmodel.base.errors import ParameterError

    if not re.fullmatch("[0-9]+(,[0-9]+)*", text):
        raise ParameterError("--sizes", f"{text!r} is not a list of sizes such as 32,64,128")
    if long := [part for part in text.split(",") if len(part) > DIGITS]:
        raise ParameterError("--sizes", f"{long[0]} is too large: a size has up to {DIGITS} digits")
    return tuple(sorted({int(part) for part in text.split(",")}))
