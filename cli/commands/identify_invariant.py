"""`identify --gemm --invariant`: whether results of a function depend on the shape of the product."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.commands.identify_gemm import RECORDED, signature_and_spans
from mmaprobe.cli.options import end_work, print_json, progress, say
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import counted, spans_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmaprobe.cli.question import Question
    from mmaprobe.documents.identify import IdentifyInvariant
    from mmaprobe.queries.plans.dependence import Depends
    from mmaprobe.smtmodel.inputs.signature import Signature


def ask_invariant(question: Question) -> int:
    """Ask whether results of a function depend on the shape; gives the exit code. Raises MmaprobeError."""
    from mmaprobe.queries.plans.report import document_of_dependence
    from mmaprobe.queries.plans.rules import Shape
    from mmaprobe.runner.device_plans import dependence_of
    from mmaprobe.smtmodel.units.unit import LONGEST

    if question.device_name.startswith(RECORDED):
        raise click.UsageError("--invariant asks a function: a recorded product has one shape")
    start, (asked, least, most) = time.monotonic(), signature_and_spans(question, LONGEST)
    if least != (1, 1, 1):
        message = f"{question.shape!r}: --invariant asks shapes from 1 x 1 on, so give the largest M,N"
        raise ParameterError("--shape", message)
    top = Shape(*most)
    outcome = dependence_of(
        question.device_name, asked, top, question.fixed, question.timeout, question.device_timeout, progress
    )
    end_work()
    document = document_of_dependence(
        outcome, question.device_name, asked, top, question.fixed, time.monotonic() - start
    )
    _show(document, outcome.depends, asked)
    if question.as_json:
        print_json(document)
    return {"none seen": 0, "depends": 1, "open": 3}[document.verdict]


def _show(document: IdentifyInvariant, depends: Depends | None, asked: Signature) -> None:
    m, n, k = document.shape
    looked = f"{counted(document.compared, 'result')} of {counted(document.products_asked, 'product')}"
    fixed = f"; {document.fixed} fixed" if document.fixed else ""
    what = f"batch-invariant (M up to {m}, N up to {n}, K up to {k}{fixed})"
    if depends is not None:
        say(f"{what}: no; one row and one column gave different bits in two shapes, also when asked again:")
        _show_depends(depends, asked)
        for side, groups in document.alike.items():
            where = f"K = {depends.one.at.shape.length}, {'N' if side == 'M' else 'M'} = {n if side == 'M' else m}"
            say(f"  at {where} {'row' if side == 'M' else 'column'} 0 has the same bits for {side} = {_groups(groups)}")
    elif document.error is None:
        say(f"{what}: no dependence seen, which proves nothing of shapes that were not asked")
    else:
        say(f"{what}: open: {document.error}")
    if document.why_not is not None:
        say(f"  stacks of products were not asked: {document.why_not}")
    say(f"{looked}, at K = {', '.join(map(str, document.lengths))}; {document.seconds:.1f} s")


def _show_depends(depends: Depends, asked: Signature) -> None:
    from mmaprobe.cli.text.vectors import show_operands, show_results
    from mmaprobe.smtmodel.evaluate.operands import Operands

    show_operands(asked, Operands(depends.a, depends.b, 0))
    show_results([(str(seen), seen.d, asked.d) for seen in (depends.one, depends.other)])
    if depends.filled:
        say("  the other rows and columns hold random numbers; beside zeros the results are the same")


def _groups(groups: Sequence[Sequence[Sequence[int]]]) -> str:
    return " | ".join(map(spans_text, groups))
