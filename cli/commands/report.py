"""The `report` command: results as one self-contained page."""

from __future__ import annotations

from pathlib import Path

import click

from mmaprobe.cli.choice import PageFile
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names
from mmaprobe.cli.options import say
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.base.wording import counted


@click.command(cls=Command)
@click.argument("results", nargs=-1, required=True, metavar="RESULTS...", shell_complete=file_names)
@click.option("-o", "--output", type=PageFile(".html"), required=True, metavar="FILE",
              help="Write the page here: HTML.")  # fmt: skip
@click.option("--title", default="", help="The title of the page.")
def report(results: tuple[str, ...], output: Path, title: str) -> None:
    """Make one page of HTML from results. It has verdicts, vectors, pictures, and how to repeat them.

    RESULTS are files of JSON documents, as --json of run, compare, identify, separate, prove, verify, distinguish,
    evaluate, explain and study prints them, and files of vectors. The page loads nothing from the network and needs
    no scripts.

    \b
    mmaprobe distinguish carry-bits-ampere --json > carry.json
    mmaprobe identify nvidia-f16 --device command:./my-gpu --json > unit.json
    mmaprobe report carry.json unit.json -o report.html
    """
    from mmaprobe.reports.report import report as page

    write_whole(output, page(results, title))
    say(f"{output}: {counted(len(results), 'file')} of results")
