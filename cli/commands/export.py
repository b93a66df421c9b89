"""The `export` command: vectors in formats that other programs read."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from mmaprobe.cli.choice import Choice, FileName, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names
from mmaprobe.cli.options import MODEL_OF_ROWS, output_option, write_output
from mmaprobe.cli.reading import open_input
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.files import is_file
from mmaprobe.smtmodel.base.wording import counted

#: format -> description, and module and name of the function from evaluated rows to an `Export`
FORMATS = {
    "csv": ("a table of hexadecimal patterns, one vector a line", "tables", "csv_table"),
    "npz": ("NumPy arrays of unsigned integers", "tables", "npz_arrays"),
    "junit": ("JUnit XML for CI: a test for each vector, failed where the model gives another result than d",
              "junit", "suite"),
    "smt2": ("SMT-LIB 2.6: can the model give another result than d? (rows of one model)", "smtlib", "script"),
    "c": ("a C header: arrays of bit patterns and results (rows of one model)", "c_header", "header"),
    "memh": ("a file for Verilog's $readmemh: a word a line, a lowest, d highest (rows of one model)",
             "benches", "readmemh"),
    "cocotb": ("a test in Python that drives a design by cocotb and reports the conditions hit (rows of one model)",
               "benches", "cocotb_test"),
    "riscv": ("a test in assembler in the style of riscv-tests, with exceptions (rows of ieee/fma/f16, f32 or f64)",
              "benches", "riscv_test"),
    "fptest": ("IBM FPgen: fused multiply-adds, of vectors with one product", "fptest", "tests"),
}  # fmt: skip
#: the same for formats of models
OF_MODELS = {
    "verilog": (
        "a module in Verilog that computes what the model FILE does, combinational or a pipeline (--stages)",
        "verilog",
        "exported",
    ),
    "coverage": (
        "a module in SystemVerilog with the conditions of `cover` over the wires of --format verilog: a covergroup, "
        "cover statements, an assertion, and a bind",
        "coverage",
        "exported",
    ),
    "conditions": (
        "a table in Markdown of the conditions of `cover`, step by step and in words, for a verification plan",
        "coverage",
        "table",
    ),
    "btor2": ("words, operations and the output d in BTOR2, for model checkers and solvers", "circuits", "btor2"),
    "aiger": ("gates in AIGER's binary format, for model checkers and ABC", "circuits", "aiger"),
    "cpp": (
        "a header of C++ (and C): a function that computes what the model FILE does, in integers, without loops",
        "cpp_header",
        "exported",
    ),
    "fpcore": (
        "an FPCore 2.0 expression, of a model whose sums are exact, or of a plan for every K",
        "fpcore",
        "exported",
    ),
}
BINARY = ("npz", "aiger")
HELP = """Write vectors in a format of other programs. They are those of FILE, with the results of their models.

\b
{formats}

Or write a model, with its name in the place of FILE:

\b
{models}

\b
mmaprobe export answers.jsonl --format junit -o junit.xml
mmaprobe export answers.jsonl --format npz -o answers.npz
mmaprobe export volta/mma/m8n8k4.f32.f16.f16.f32 --format verilog -o unit.v
mmaprobe export volta/mma/m8n8k4.f32.f16.f16.f32 --format verilog --stages 3 -o pipeline.v
mmaprobe export volta/mma/m8n8k4.f32.f16.f16.f32 --format cpp -o unit.h
mmaprobe export arm/sme/fmopa-f16f32 --format fpcore
"""


def _listed(formats: dict[str, tuple[str, str, str]]) -> str:
    return "\n".join(f"{name:<10} {row[0]}" for name, row in formats.items())


#: the usual name of a kind of file -> the formats of that kind
KINDS = {
    "sv": ("verilog", "coverage", "memh", "cocotb"), "systemverilog": ("verilog", "coverage", "memh", "cocotb"),
    "v": ("verilog",), "h": ("c", "cpp"), "hex": ("memh",), "uvm": ("coverage", "cocotb"), "xml": ("junit",),
}  # fmt: skip


#: ending of a file's name -> the format of such files
ENDINGS = {".csv": "csv", ".npz": "npz", ".xml": "junit", ".smt2": "smt2", ".btor2": "btor2", ".aig": "aiger",
           ".aag": "aiger"}  # fmt: skip


class _FormatName(Choice):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if (kinds := KINDS.get(str(value).lower())) is not None:
            self.fail(f"{value!r} is a kind of file: {', '.join(kinds)} write it.", param, ctx)
        return super().convert(value, param, ctx)


@click.command(cls=Command, help=HELP.format(formats=_listed(FORMATS), models=_listed(OF_MODELS)))
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.option(
    "--format", "wanted", type=_FormatName([*FORMATS, *OF_MODELS]), required=True, help="One of the formats above."
)
@output_option("Write the output here (default: standard output).", "OUT", FileName(path_type=None))
@MODEL_OF_ROWS
@click.option(
    "--tininess",
    type=Choice(["after", "before"]),
    help="An underflow is a result that is tiny after rounding (default; RISC-V, x86), or before it (ARM). "
    "A unit that makes tiny results zero decides this.",
)
@click.option(
    "--stages",
    type=WholeNumber(0, 64),
    metavar="N",
    help="With verilog: N registers from each input to d (default: 0).",
)
@click.option(
    "--ports",
    metavar="a=PORT,...",
    help="With cocotb: the design's ports where they are not called a, b, c, d and so on, as after rtl:FILE "
    "(docs/my-rtl.md): a=x,d=result,clock=clk,latency=2.",
)
def export(
    file: str,
    wanted: str,
    output: str | None,
    model: str | None,
    tininess: str | None,
    stages: int | None,
    ports: str | None,
) -> None:
    from mmaprobe.queries.compare.observed import evaluate_vectors
    from mmaprobe.smtmodel.inputs.vectors import read_vectors
    from mmaprobe.smtmodel.tables.reference import names_plan, parse_plan_path, parse_reference

    if wanted in BINARY and output in (None, "-") and _terminal():
        raise click.UsageError(f"{wanted} is binary, and standard output is a terminal: name a file with --output")
    if tininess is not None and wanted != "fptest":
        raise click.UsageError(f"--tininess needs --format fptest: {wanted} has no flags")
    if stages is not None and wanted != "verilog":
        raise click.UsageError(f"--stages needs --format verilog: {wanted} has no registers")
    if ports is not None and wanted != "cocotb":
        raise click.UsageError(f"--ports needs --format cocotb: {wanted} has ports of its own, or none")
    if (own := ENDINGS.get(Path(output or "").suffix, wanted)) != wanted:
        raise click.UsageError(f"{output} has the ending of {own}: give --format {own}, or {wanted} another name")
    instead = parse_reference(model) if model else None
    if wanted in OF_MODELS:
        if instead is not None:
            raise click.UsageError(f"--model names the model of vectors: {wanted} writes the model {file}")
        _, module, function = OF_MODELS[wanted]
        given = parse_plan_path(file) if wanted == "fpcore" and names_plan(file) else parse_reference(file)
        made = getattr(import_module(f"mmaprobe.reports.exports.{module}"), function)(given, *[stages] * bool(stages))
        write_output(made.content, output, made.about, made.note)
        return
    if not is_file(file) and _is_model(file):
        wants = f"--format {wanted} writes vectors, and {file} is a model"
        raise click.UsageError(f"{wants}: `mmaprobe cover {file} -o vectors.jsonl` makes some")
    with open_input(file) as (lines, name):
        vectors = read_vectors(lines, name, instead=instead)
        rows = list(evaluate_vectors(vectors, instead, name))
    _, module, function = FORMATS[wanted]
    options = {"fptest": [tininess], "cocotb": [ports]}.get(wanted, [])
    made = getattr(import_module(f"mmaprobe.reports.exports.{module}"), function)(rows, name, *options)
    write_output(made.content, output, made.note or counted(len(rows), "vector"), made.note)


def _is_model(name: str) -> bool:
    from mmaprobe.smtmodel.tables.reference import parse_reference

    with suppress(MmaprobeError):
        parse_reference(name)
        return True
    return False


def _terminal() -> bool:
    return sys.stdout.isatty()
