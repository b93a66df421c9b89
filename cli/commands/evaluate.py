"""The `evaluate` command: observed results compared with those of models."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.choice import FileName
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names
from mmaprobe.cli.options import FLAGS, JSON, MODEL_OF_ROWS, output_option, print_json, say, write_vectors
from mmaprobe.cli.reading import open_input
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.devices import Evaluate
    from mmaprobe.queries.compare.observed import Report

EXPLAINED = 3  # mismatches that are shown with the model's evaluation and the neighbours that give the result


@click.command(cls=Command)
@click.argument("file", metavar="FILE", shell_complete=file_names)
@MODEL_OF_ROWS
@output_option("Write every row with the model's result under `predictions`.")
@click.option(
    "--junit", type=FileName(dir_okay=False), metavar="FILE",
    help="Write JUnit's XML, in which every row is a test, and a file in which nothing is compared an error.",
)  # fmt: skip
@FLAGS
@JSON
def evaluate(
    file: str, model: str | None, output: str | None, junit: Path | None, flags: str | None, as_json: bool
) -> None:
    """Compare observed results with those of models. The `d` of every row of a vector file is compared with its
    model's; with --flags, the row's `flags` too, as a row of its own of the model MODEL@flags=....

    FILE is JSONL, gzip-compressed or not; "-" reads standard input.

    \b
    mmaprobe evaluate observed.jsonl

    Exit codes: 0 no row disagrees, 1 a row does, 2 bad input, 3 nothing was compared: no row has a `d`.
    """
    from mmaprobe.queries.compare.observed import NOTHING, Report, evaluate_vectors, with_exceptions
    from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, MmaprobeError
    from mmaprobe.smtmodel.inputs.vectors import read_vectors
    from mmaprobe.smtmodel.tables.reference import parse_reference

    report = Report(keep=output is not None or junit is not None)
    failure: MmaprobeError | None = None
    with open_input(file) as (lines, name):
        try:
            candidate = parse_reference(model) if model else None
            vectors = read_vectors(lines, name, instead=candidate)
            rows = vectors if flags is None else with_exceptions(vectors, candidate, flags, name)
            report.take(evaluate_vectors(rows, candidate if flags is None else None, name))
        except InputError as error:  # the rows before the faulty row are kept
            failure = error
    if output is not None:
        write_vectors(report.predicted, output)
    document = report.document()
    if failure is None and not document.compared:
        failure = IncompleteError(f"{name}: {NOTHING}")
    if document.rows or failure is None:
        document = _show(document, report, name)
    if junit is not None:
        from mmaprobe.reports.exports.junit import suite
        from mmaprobe.smtmodel.base.files import write_whole

        write_whole(junit, suite(report.rows, name, str(failure or "")).content.decode())
    if as_json:
        print_json(replace(document, error=str(failure) if failure else None))
    if failure is not None:
        raise failure
    sys.exit(1 if report.mismatches else 0)


def _show(document: Evaluate, report: Report, name: str) -> Evaluate:
    """Print the verdict, the counts of each model, and the first mismatches. Returns the document with the neighbours
    of these mismatches."""
    from mmaprobe.cli.commands.explain import say_why
    from mmaprobe.cli.text.vectors import SHOWN, show_mismatch
    from mmaprobe.queries.compare.observed import explained_by
    from mmaprobe.reports.evaluations import neighbour_of

    if document.compared:
        without = document.rows - document.compared
        rest = f", {without} without d" if without else ""
        say(f"{counted(document.rows, 'row')}, {counted(document.mismatches, 'mismatch')}{rest}")
    for counts in document.models:
        rest = f"{counted(counts.mismatches, 'mismatch')}, {counts.unobserved} without d"
        say(f"  {counts.model}: {counted(counts.rows, 'row')}, {rest}")
    changes, first = [], list(document.first_mismatches)
    for index, row in enumerate(report.mismatches[:SHOWN]):
        show_mismatch(row, name)
        if index < EXPLAINED:
            near = explained_by(row)
            first[index] = replace(first[index], neighbours=list(map(neighbour_of, near)))
            say_why(row, near, name)
            changes.append({one.change: None for one in near})
    if len(changes) > 1:
        common = [change for change in changes[0] if all(change in other for other in changes)]
        lines = ", ".join(str(row.vector.line) for row in report.mismatches[: len(changes)])
        say(f"  one change that gives the results of lines {lines}: {', '.join(common) or 'none'}")
    return replace(document, first_mismatches=first)
