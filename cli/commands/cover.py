"""The `cover` command: vectors that reach every condition of a unit's datapath."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import models
from mmaprobe.cli.options import (
    FLAGS,
    JSON,
    VECTORS_OUTPUT,
    end_work,
    progress,
    say,
    say_list,
    solver_options,
    write_vectors,
)
from mmaprobe.cli.text.certificates import CERTIFICATE, finish
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mmaprobe.documents.cover import Cover as Document
    from mmaprobe.queries.certificates.certificate import Certificate
    from mmaprobe.queries.search.distinguish import Options

#: an engine's time in a reason: left out of the text, where reasons are counted; --json has it
_ANSWERED = re.compile(r": unsat in [0-9.]+ s( \(from the store\))?")


@click.command(cls=Command)
@click.argument("model", metavar="MODEL", shell_complete=models)
@VECTORS_OUTPUT
@click.option(
    "--pairs/--no-pairs", default=True, show_default=True,
    help="Also every two conditions of a step that can hold together.",
)  # fmt: skip
@CERTIFICATE
@click.option("--all", "every", is_flag=True, help="Print every condition that is out of reach, or open.")
@FLAGS
@solver_options("everything together")
@JSON
def cover(
    model: str, output: str | None, pairs: bool, certificate: Path | None, every: bool, flags: str | None,
    options: Options, as_json: bool,
) -> None:  # fmt: skip
    """Write vectors that reach every condition of a datapath. The datapath is MODEL's, and the
    vectors are for tests of RTL, simulators and kernels.

    Conditions are the cases of each step: which term is the largest, how far others lie below it, bits lost or not,
    carries, cancellation, ties, odd and even, overflow, subnormals, zeros and special values; then two of a step
    together, and every change of one parameter that alters some result. Samples come first, then solvers; what no
    input reaches is proved. Each vector says in `reaches` what it was chosen for, and has its result in `d`; with
    --flags also the exceptions in `flags`, each of which is a condition, as is every change of a parameter that alters
    them. The first vectors reach the most, each what none before it reaches: the first lines of the file are a small
    set.

    \b
    mmaprobe cover volta/mma/m8n8k4.f32.f16.f16.f32 -o cover.jsonl
    mmaprobe export cover.jsonl --format c -o cover.h

    Exit codes: 0 every condition is reached, or proved to be out of reach; 2 bad input; 3 some stay open.
    """
    from mmaprobe.queries.covering.cover import Covering
    from mmaprobe.queries.covering.report import document_of, vectors_of
    from mmaprobe.smtmodel.base.errors import OutOfTimeError
    from mmaprobe.smtmodel.base.interrupts import TimeUp, begun, left, why_ended, working_until
    from mmaprobe.smtmodel.tables.reference import parse_reference, with_flags

    start = begun()  # --timeout includes building the conditions
    progress(f"conditions of {model}")
    try:
        with working_until(None if options.timeout is None else start + options.timeout):
            unit = parse_reference(model)
            covering = Covering(unit if flags is None else with_flags(unit, flags), pairs)
    except (OutOfTimeError, TimeUp) as error:
        more = f"give more than --timeout {options.timeout:g}, or a model of fewer products"
        raise OutOfTimeError(f"no vector was found, as the conditions were not built in time: {more}") from error
    result = unit if flags is not None else None
    coverage = covering.run(replace(options, timeout=left(options.timeout)))
    seconds = time.monotonic() - start
    over = left(options.timeout) == 0
    end_work()
    if not coverage.interrupted:
        progress("the vectors that reach the most are put first")
        covering.arrange()
    progress("")
    vectors = vectors_of(coverage, result)
    document = document_of(coverage, seconds, vectors)
    _show(document, every, coverage.first)
    if vectors and (not as_json or output is not None):
        write_vectors(vectors, output)
        if output not in (None, "-"):
            say(f"{output}: {counted(len(vectors), 'vector')}")
    elif not vectors:
        say(f"no vector was found{'' if output in (None, '-') else f': {output} is not written'}")
    if coverage.interrupted:
        say(f"{why_ended()}{'; what was found so far is written' * bool(vectors)}")
    if coverage.open and not coverage.interrupted:
        why = f"the time was over: give more than --timeout {options.timeout:g}" if over else (
            "no engine answered in the seconds that one question had, which grow with --timeout")  # fmt: skip
        say(f"not decided: {len(coverage.open)} in all; {why}")

    def write(folder: Path) -> Iterable[Certificate]:
        from mmaprobe.queries.covering.certify import certify_cover

        return certify_cover(coverage, folder, options)

    finish(document, certificate, write, None, as_json)
    sys.exit(3 if coverage.open or coverage.interrupted else 0)


def _show(document: Document, every: bool, first: int) -> None:
    enough = f" (the first {first} reach all that is reached)" if first else ""
    say(f"{document.model}: {counted(len(document.vectors), 'vector')}{enough}, {document.seconds:.1f} s")
    for words, kind in (
        ("conditions", document.conditions),
        ("two conditions together", document.pairs),
        ("changes of one parameter", document.changes),
    ):
        if not (total := len(kind.reached) + len(kind.out_of_reach) + len(kind.open)):
            continue
        parts = [f"{len(kind.reached)} of {total} reached"]
        if kind.out_of_reach:
            parts.append(f"{len(kind.out_of_reach)} proved out of reach")
        if kind.open:
            parts.append(f"{len(kind.open)} open")
        say(f"  {words}: {', '.join(parts)}")
        if kind is not document.pairs:
            say_list([_unreached(one.condition) for one in kind.out_of_reach], every)
        say_list([f"not decided: {one}" for one in kind.open], every)
    both = (document.conditions, document.pairs)
    ways = Counter(_ANSWERED.sub("", one.why) for kind in both for one in kind.out_of_reach if one.why)
    for why, count in ways.items():
        say(f"  {count} out of reach by {why}")


def _unreached(condition: str) -> str:
    change = condition.removeprefix("differs from ")
    return f"no input reaches: {condition}" if change == condition else f"{change} gives the same results"
