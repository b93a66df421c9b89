"""`separate` distinguishes the candidates of a family."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.candidates import family_of, model_option
from mmaprobe.cli.choice import Seconds
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import families
from mmaprobe.cli.options import JSON, VECTORS_OUTPUT, end_work, print_json, refuse, say, solver_options, write_vectors
from mmaprobe.smtmodel.base.interrupts import begun, why_ended
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.search.distinguish import Options

SHOWN = 20  # open pairs printed as text


@click.command(cls=Command)
@click.argument("family", metavar="FAMILY", shell_complete=families)
@model_option()
@VECTORS_OUTPUT
@click.option("--one", is_flag=True, help="A single vector: of those simulated, that with the most outcomes.")
@click.option(
    "--each", type=Seconds(), metavar="SECONDS",
    help="Seconds for one pair at most (default: 30).",
)  # fmt: skip
@solver_options("all pairs together")
@JSON
def separate(
    family: str, model: str | None, output: str | None, one: bool, each: float | None, options: Options, as_json: bool
) -> None:
    """Find a few vectors that distinguish all candidates of FAMILY. Every two differ in the result of at least one.

    FAMILY is an id (`mmaprobe list families`) or a file. Candidates that no vector distinguishes are proved equal. The
    timeout is for all of it; after an interrupt the undecided pairs are open.

    \b
    mmaprobe separate nvidia-f16 --timeout 600 -o vectors.jsonl
    mmaprobe separate nvidia-fp8 --one

    Exit codes: 0 every pair is distinguished or proved equal, 2 bad input, 3 some pairs stay open.
    """
    from mmaprobe.hypotheses.gpu_family import own_family
    from mmaprobe.queries.candidates.report import separated, separating
    from mmaprobe.queries.candidates.separate import EACH, single
    from mmaprobe.queries.candidates.separate import separate as separate_family

    if one:
        refuse("a single vector is looked for among samples: no pair is asked about by itself", "each")
    start = begun()  # --timeout includes building the candidates
    chosen = family_of(family, own_family(family), model)
    candidates = chosen.candidates(None if options.timeout is None else start + options.timeout)
    if chosen.impossible.count:
        say(f"left out: {chosen.impossible.text()}")
    separation = (
        single(candidates, options) if one else separate_family(candidates, options, each=each or EACH, start=start)
    )
    end_work()
    vectors = separating(chosen, separation, candidates[0], family)
    say(
        f"{chosen.id}: {counted(separation.candidates, 'candidate')}, {counted(len(separation.classes), 'class')}, "
        f"{counted(len(vectors), 'vector')}, {counted(separation.asked, 'class')} asked of solvers, "
        f"{counted(len(separation.unknown), 'pair')} open, {separation.seconds:.1f} s"
    )
    if separation.interrupted:
        say(f"{why_ended()}: pairs not yet decided are open")
    for left, right in separation.unknown[:SHOWN]:
        say(f"  open: {left.reference} | {right.reference}")
    if len(separation.unknown) > SHOWN:
        say(f"  and {counted(len(separation.unknown) - SHOWN, 'more open pair')}, which --json lists")
    if as_json:
        print_json(separated(chosen, separation, vectors))
    if output is not None or not as_json:
        write_vectors(vectors, output)
    sys.exit(3 if separation.unknown else 0)
