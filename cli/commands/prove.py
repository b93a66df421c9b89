"""The `prove` command: a command line asks one of a few kinds of statements, whose class does the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from mmaprobe.cli.choice import Choice, FileName, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.commands.prove_bounds import PlanBounds, UnitBound
from mmaprobe.cli.commands.prove_line import ERROR_BOUND, CommandLine, Statement
from mmaprobe.cli.commands.prove_models import Design, Models
from mmaprobe.cli.commands.prove_plans import Invariant, PlansEqual
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.options import (
    DESIGN,
    EXIT,
    FIXED,
    FLAGS,
    JSON,
    compare_option,
    end_work,
    inputs_option,
    solver_options,
)
from mmaprobe.cli.text.certificates import CERTIFICATE, finish
from mmaprobe.hypotheses.properties import Property

if TYPE_CHECKING:
    from mmaprobe.queries.search.distinguish import Options

#: kind of statement -> whether a command line asks this kind, if it asks no kind above
KINDS: dict[type[Statement[Any, Any]], Callable[[CommandLine], bool]] = {
    Invariant: lambda line: line.rules is not None,
    PlanBounds: lambda line: line.wanted == ERROR_BOUND and len(line.sides) == 1 and line.names_plan,
    UnitBound: lambda line: line.wanted == ERROR_BOUND,
    PlansEqual: lambda line: (line.wanted, len(line.sides)) == ("equal", 2)
                             and (line.length is not None or line.names_plan),
    Design: lambda line: any(side.text.startswith(DESIGN) for side in line.sides),
    Models: lambda line: True,
}  # fmt: skip


@click.command(cls=Command)
@click.argument("models", nargs=-1, metavar="[MODEL [MODEL]]", shell_complete=models)
@click.option(
    "--property",
    "wanted",
    type=Choice([*get_args(Property), ERROR_BOUND]),
    default="equal",
    help="For two models: equal. For one model: the others (`mmaprobe list words` explains them).",
)
@inputs_option()
@compare_option(" (default: bits)")
@click.option(
    "--confirm/--no-confirm", default=True, show_default=True, help="Have a second solver confirm every lemma."
)
@CERTIFICATE
@click.option("--explain", is_flag=True, help="Print the chain of lemmas.")
@click.option(
    "--latex", is_flag=True, help="error-bound: print the formulas and their conditions as LaTeX, on standard output."
)
@click.option(
    "--length",
    type=WholeNumber(1),
    metavar="K",
    help="Prove two plans, or two units in chains, equal at this K (default: at every multiple of a tile). "
    "error-bound: of a chain of instructions with K products.",
)
@click.option(
    "--measure",
    type=Choice(["elements", "largest"]),
    help="error-bound: in the magnitudes of all elements, or in the largest one of the row of A and of the column of B "
    "(default: elements; largest for plans of which no other bound is known).",
)
@click.option(
    "--invariant", "rules", type=FileName(dir_okay=False), metavar="MAP", shell_complete=file_names,
    help="In place of models: whether a result depends on M, N or its place, by a map of `identify --gemm --json`, or "
    "rules by hand (docs/batch-invariance.md).",
)  # fmt: skip
@click.option(
    "--shapes", default="", metavar="M=..,N=..,K=..",
    help="With --invariant: the shapes asked about, as M=1..8,N=4096,K=16..1024 (default: those of the map).",
)  # fmt: skip
@FIXED
@FLAGS
@solver_options("the whole proof")
@JSON
def prove(
    models: tuple[str, ...], confirm: bool, certificate: Path | None, options: Options, as_json: bool, **asked: Any
) -> None:
    """Prove two models or designs equal, or a property. A proof is about every input.

    Intermediate results are proved equal stage by stage. A difference is reported as a vector, which is evaluated
    again. The second model may be a design in Verilog, rtl:FILE.sv,top=NAME (see `mmaprobe compare`). --flags asks
    whether the exceptions are equal, in place of the results; a design's are at its port flags, or d=PORT.

    exact: the result is the exact sum, rounded once by the unit's last rounding, which also says what becomes of
    an overflow, of an infinite sum and of NaN; subnormal results are kept, and zeros are equal.

    \b
    mmaprobe prove turing/mma/m16n8k8.f32.f16.f16.f32 ampere/mma/m16n8k8.f32.f16.f16.f32
    mmaprobe prove --property order-independent hopper/mma/m16n8k16.f32.f16.f16.f32
    mmaprobe prove plan:cublas/plain plan:cublas/split-k --length 4096
    mmaprobe prove ieee/fma/f16 rtl:fma.sv,top=fma
    mmaprobe prove --invariant map.json --fixed N
    """
    from mmaprobe.smtmodel.tables.reference import Named

    line = CommandLine(tuple(map(Named, models)), as_json=as_json, **asked)
    statement = next(kind for kind, is_asked in KINDS.items() if is_asked(line))(line)
    decided = statement.conjecture.decide(options, confirm)
    end_work()
    statement.show(decided.found, decided.document)
    into = None if decided.document.verdict == "unknown" else certificate
    seconds = options.timeout and options.timeout * decided.parts
    finish(decided.document, into, decided.certify, seconds, as_json)
    sys.exit(EXIT[decided.document.verdict])
