"""The `export` command: vectors in formats that other programs read."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from mmaprobe.cli.choice import Choice, FileName
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.options import say
from mmaprobe.cli.reading import open_input
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.base.wording import counted

#: format -> what it is, and the function that makes its bytes of evaluated rows and says what it left out
FORMATS = {
    "csv": ("a table of hexadecimal patterns, one vector a line", "tables", "csv_table"),
    "npz": ("NumPy arrays of unsigned integers", "tables", "npz_arrays"),
    "junit": ("JUnit XML for CI: a test for each vector, failed where the model gives another result than d",
              "junit", "suite"),
    "smt2": ("SMT-LIB 2.6: can the model give another result than d? (rows of one model)", "smtlib", "script"),
    "c": ("a C header: arrays of bit patterns and results (rows of one model)", "c_header", "header"),
    "fptest": ("IBM FPgen: fused multiply-adds, of vectors with one product", "fptest", "tests"),
}  # fmt: skip
HELP = """Write vectors in a format of other programs. They are those of FILE, with what their models give.

\b
{formats}

\b
mmaprobe export answers.jsonl --format junit -o junit.xml
mmaprobe export answers.jsonl --format npz -o answers.npz
"""


@click.command(cls=Command, help=HELP.format(formats="\n".join(f"{name:<7} {row[0]}" for name, row in FORMATS.items())))
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.option("--format", "wanted", type=Choice(list(FORMATS)), required=True, help="One of the formats above.")
@click.option(
    "-o",
    "--output",
    type=FileName(path_type=None),
    metavar="OUT",
    shell_complete=file_names,
    help="Write it here (default: standard output).",
)
@click.option(
    "--model", metavar="MODEL", shell_complete=models, help="Evaluate every row under this model instead of its own."
)
@click.option(
    "--tininess",
    type=Choice(["after", "before"]),
    help="An underflow is a result that is tiny after rounding (default; RISC-V, x86), or before it (ARM). "
    "A unit that makes tiny results zero says this itself.",
)
def export(file: str, wanted: str, output: str | None, model: str | None, tininess: str | None) -> None:
    from mmaprobe.queries.compare.observed import evaluate_vectors
    from mmaprobe.smtmodel.inputs.vectors import read_vectors
    from mmaprobe.smtmodel.tables.reference import parse_reference

    if wanted == "npz" and output in (None, "-") and _terminal():
        raise click.UsageError("npz is binary, and standard output is a terminal: name a file with --output")
    if tininess is not None and wanted != "fptest":
        raise click.UsageError(f"--tininess is of the flags of fptest: {wanted} has none")
    candidate = parse_reference(model) if model else None
    with open_input(file) as (lines, name):
        vectors = read_vectors(lines, name, instead=candidate)
        rows = list(evaluate_vectors(vectors, candidate, name))
    _, module, function = FORMATS[wanted]
    options = [tininess] if wanted == "fptest" else []
    content, note = getattr(import_module(f"mmaprobe.reports.exports.{module}"), function)(rows, name, *options)
    if output in (None, "-"):
        click.echo(content, nl=False)
        if note:
            say(note)
    else:
        write_whole(Path(str(output)), content)
        say(f"{output}: {note or counted(len(rows), 'vector')}")


def _terminal() -> bool:
    return sys.stdout.isatty()
