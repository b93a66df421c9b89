"""The `cover` command: vectors that reach every condition of a unit's datapath."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import models
from mmaprobe.cli.options import JSON, VECTORS_OUTPUT, print_json, progress, say, solver_options, write_vectors
from mmaprobe.cli.text.certificates import CERTIFICATE, attach, check_attached
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.cover import Cover as Document
    from mmaprobe.queries.covering.cover import Cover, Wanted
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.smtmodel.inputs.vectors import Vector

LISTED = 12  # conditions out of reach, and open ones, that are listed


@click.command(cls=Command)
@click.argument("model", metavar="MODEL", shell_complete=models)
@VECTORS_OUTPUT
@click.option(
    "--pairs/--no-pairs", default=True, show_default=True,
    help="Also every two conditions of a step that can hold together.",
)  # fmt: skip
@CERTIFICATE
@solver_options("everything together")
@JSON
def cover(
    model: str, output: str | None, pairs: bool, certificate: Path | None, options: Options, as_json: bool
) -> None:
    """Write vectors that reach every condition of a datapath. The datapath is MODEL's, and the
    vectors are for tests of RTL, simulators and kernels.

    Conditions are the cases of each step: which term is the largest, how far others lie below it, bits lost or not,
    carries, cancellation, ties, odd and even, overflow, subnormals, zeros and special values; then two of a step
    together, and every change of one parameter that alters some result. Samples come first, then solvers; what no
    input reaches is proved. Each vector says in `reaches` what it was chosen for, and has its result in `d`.

    \b
    mmaprobe cover volta/mma/m8n8k4.f32.f16.f16.f32 -o cover.jsonl
    mmaprobe export cover.jsonl --format c -o cover.h

    Exit codes: 0 every condition is reached, or proved to be out of reach; 2 bad input; 3 some stay open.
    """
    from mmaprobe.queries.covering.cover import Covering
    from mmaprobe.smtmodel.tables.reference import parse_reference

    unit, start = parse_reference(model), options.clock()
    found = Covering(unit, pairs).run(options)
    progress("")
    seconds = options.clock() - start
    vectors = vectors_of(found)
    _show(found, seconds)
    if not as_json or output is not None:
        write_vectors(vectors, output)
        if output not in (None, "-"):
            say(f"{output}: {counted(len(vectors), 'vector')}")
    document = _document(found, vectors, seconds)
    failure: MmaprobeError | None = None
    if certificate is not None:
        from mmaprobe.queries.covering.certify import certify_cover

        document, failure = attach(document, certificate, lambda folder: certify_cover(found, folder, options), None)
    if as_json:
        print_json(document)
    if found.interrupted:
        say("interrupted; what was found so far is written")
    check_attached(failure)
    sys.exit(3 if found.open or found.interrupted else 0)


def vectors_of(found: Cover) -> list[Vector]:
    """The covering vectors: each with the conditions that it was chosen for, and the unit's result."""
    from mmaprobe.queries.covering.cover import words
    from mmaprobe.smtmodel.inputs.vectors import Vector

    return [
        Vector(found.model, found.layout.split(row), d, f"cover-{number}", extra={"reaches": [words(x) for x in why]})
        for number, (row, why, d) in enumerate(zip(found.rows, found.reasons, found.results, strict=True))
    ]


#: kinds of what is wanted: its key in documents, and in words
KINDS = {
    "conditions": "conditions",
    "pairs": "two conditions together",
    "changes": "changes of one parameter",
}


def _kind(wanted: Wanted) -> str:
    return "changes" if not isinstance(wanted, tuple) else "conditions" if len(wanted) == 1 else "pairs"


@dataclass
class _Kind:
    """What is wanted of one kind, by status."""

    reached: list[Wanted] = field(default_factory=list)
    out_of_reach: list[Wanted] = field(default_factory=list)
    open: list[Wanted] = field(default_factory=list)


def _of_kinds(found: Cover) -> dict[str, _Kind]:
    """The conditions and changes, by kind."""
    table = {kind: _Kind() for kind in KINDS}
    still = set(found.open)
    for wanted, count in found.counts.items():
        kind = table[_kind(wanted)]
        (kind.reached if count else kind.open if wanted in still else kind.out_of_reach).append(wanted)
    return table


def _show(found: Cover, seconds: float) -> None:
    from mmaprobe.queries.covering.cover import Change, words

    say(f"{found.model.reference}: {counted(len(found.rows), 'vector')}, {seconds:.1f} s")
    for name, kind in _of_kinds(found).items():
        if not (total := len(kind.reached) + len(kind.out_of_reach) + len(kind.open)):
            continue
        said = [f"{len(kind.reached)} of {total} reached"]
        if kind.out_of_reach:
            said.append(f"{len(kind.out_of_reach)} proved out of reach")
        if kind.open:
            said.append(f"{len(kind.open)} open")
        say(f"  {KINDS[name]}: {', '.join(said)}")
        unreached: list[Wanted] = [] if name == "pairs" else kind.out_of_reach
        for every, title in ((unreached, "no input reaches"), (kind.open, "not decided")):
            for wanted in every[:LISTED]:
                if isinstance(wanted, Change) and every is unreached:
                    say(f"    {wanted.name} gives the same results")
                else:
                    say(f"    {title}: {words(wanted)}")
            if len(every) > LISTED:
                say(f"    and {len(every) - LISTED} more (--json lists them)")
    for word in dict.fromkeys(_theorem_words(found)):
        say(f"  out of reach by {word}")


def _theorem_words(found: Cover) -> list[str]:
    return [one.word for theorem in found.unreachable.values() for one in theorem.walk() if one.word]


def _document(found: Cover, vectors: list[Vector], seconds: float) -> Document:
    from mmaprobe.documents.cover import Conditions, OutOfReach
    from mmaprobe.documents.cover import Cover as Document
    from mmaprobe.documents.parts import Vector as Row
    from mmaprobe.queries.covering.cover import words

    def of(wanted: Wanted) -> OutOfReach:
        if isinstance(wanted, tuple):
            theorem = found.unreachable[wanted]
            why = "; ".join(one.word for one in theorem.walk() if one.word)
            return OutOfReach(condition=words(wanted), rule=theorem.rule, why=why)
        return OutOfReach(condition=words(wanted), rule="equal", why=found.same[wanted].ground)

    conditions, pairs, changes = (
        Conditions(
            reached=list(map(words, kind.reached)),
            out_of_reach=list(map(of, kind.out_of_reach)),
            open=list(map(words, kind.open)),
        )
        for kind in _of_kinds(found).values()
    )
    return Document(
        model=found.model.reference,
        complete=not found.open and not found.interrupted,
        conditions=conditions,
        pairs=pairs,
        changes=changes,
        vectors=[Row.of(vector.to_json()) for vector in vectors],
        seconds=round(seconds, 3),
    )
