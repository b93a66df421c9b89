"""`separate` distinguishes the candidates of a family."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.candidates import MODEL, family_of, impossible, members_of, say_impossible
from mmaprobe.cli.choice import Seconds
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import families
from mmaprobe.cli.options import JSON, VECTORS_OUTPUT, print_json, progress, refuse, say, solver_options, write_vectors
from mmaprobe.smtmodel.base.interrupts import begun
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.smtmodel.evaluate.model import Model

SHOWN = 20  # open pairs printed as text


@click.command(cls=Command)
@click.argument("family", metavar="FAMILY", shell_complete=families)
@MODEL
@VECTORS_OUTPUT
@click.option("--one", is_flag=True, help="A single vector with as many different outcomes as possible.")
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
    from mmaprobe.documents.identify import Class, Separate
    from mmaprobe.documents.parts import Vector as Row
    from mmaprobe.queries.candidates.separate import EACH, single
    from mmaprobe.queries.candidates.separate import separate as separate_family
    from mmaprobe.smtmodel.evaluate.operands import layout_of
    from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex

    if one:
        refuse("a single vector is looked for among samples: no pair is asked about by itself", "each")
    start = begun()  # --timeout includes what builds the candidates
    chosen = family_of(family, model)
    candidates = chosen.candidates(None if options.timeout is None else start + options.timeout)
    say_impossible(chosen)
    found = single(candidates, options) if one else separate_family(candidates, options, each=each or EACH, start=start)
    progress("")
    base = chosen.base
    layout = layout_of(candidates[0])
    vectors = [
        Vector(
            base,
            layout.split(row),
            id=f"{chosen.id}-{number}",
            extra={"family": family, "outcomes": _outcomes(found, number, base)},
        )
        for number, row in enumerate(found.rows)
    ]
    say(
        f"{chosen.id}: {counted(found.candidates, 'candidate')}, {counted(len(found.classes), 'class')}, "
        f"{counted(len(vectors), 'vector')}, {counted(found.asked, 'class')} asked of solvers, "
        f"{counted(len(found.unknown), 'pair')} open, {found.seconds:.1f} s"
    )
    if found.interrupted:
        say("interrupted: pairs not yet decided are open")
    for left, right in found.unknown[:SHOWN]:
        say(f"  open: {left.reference} | {right.reference}")
    if len(found.unknown) > SHOWN:
        say(f"  and {counted(len(found.unknown) - SHOWN, 'more open pair')}, which --json lists")
    if as_json:
        classes = [
            Class(members=members_of(members), results=[to_hex(d, base.d) for d in results])
            for members, results in zip(found.classes, found.predictions, strict=True)
        ]
        print_json(Separate(
            family=chosen.id, candidates=found.candidates, impossible=impossible(chosen), classes=classes,
            vectors=[Row.of(vector.to_json()) for vector in vectors],
            unknown=[[left.reference, right.reference] for left, right in found.unknown],
            seconds=round(found.seconds, 3),
        ))  # fmt: skip
    if output is not None or not as_json:
        write_vectors(vectors, output)
    sys.exit(3 if found.unknown else 0)


def _outcomes(found: Any, number: int, base: Model) -> dict[str, int]:
    """The number of classes that give each result."""
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    counts: dict[str, int] = {}
    for results in found.predictions:
        text = to_hex(results[number], base.d)
        counts[text] = counts.get(text, 0) + 1
    return counts
