"""The `distinguish` command: inputs that distinguish hypotheses, or two models."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import FileName, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import models, questions_or_models
from mmaprobe.cli.options import (
    JSON,
    VECTORS_OUTPUT,
    compare_option,
    end_work,
    inputs_option,
    overall,
    print_json,
    progress,
    say,
    show_zeros,
    solver_options,
    write_vectors,
)
from mmaprobe.smtmodel.base.errors import FaultError, InputError
from mmaprobe.smtmodel.base.escapes import file_part
from mmaprobe.smtmodel.base.interrupts import allow, uncounted
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.inputs.restrictions import parse_inputs

if TYPE_CHECKING:
    from mmaprobe.hypotheses.schema import Question
    from mmaprobe.queries.search.answer import Answered
    from mmaprobe.queries.search.distinguish import Options


@click.command(cls=Command)
@click.argument("names", nargs=-1, required=True, metavar="ID... | MODEL MODEL", shell_complete=questions_or_models)
@click.option(
    "-n",
    "--count",
    "count",
    type=WholeNumber(1),
    default=1,
    show_default=True,
    help="How many vectors for each pair; they differ in what they exercise in one of the two.",
)
@VECTORS_OUTPUT
@click.option(
    "--model",
    "target",
    metavar="MODEL",
    shell_complete=models,
    help="Ask the questions about this model instead of the model in the question.",
)
@inputs_option("For two models. ")
@compare_option()
@click.option("--smt2", type=FileName(dir_okay=False), metavar="FILE", help="Write the query as SMT-LIB 2.6.")
@click.option("--free", type=WholeNumber(1, 3), help="In --smt2: all products but this many are zero.")
@solver_options("each pair of models")
@JSON
def distinguish(
    names: tuple[str, ...], count: int, output: str | None, target: str | None, restrictions: str, compare: Any,
    smt2: Path | None, free: int | None, options: Options, as_json: bool,
) -> None:  # fmt: skip
    """Find vectors that distinguish hypotheses, or two models.

    ID is a question of the library (`mmaprobe list hypotheses`) or a hypothesis file; MODEL is a model reference.

    \b
    mmaprobe distinguish carry-bits-ampere
    mmaprobe distinguish fasi-carry-bits --model hopper/wgmma/m64n8k16.f32.f16.f16
    mmaprobe distinguish my-question.yaml -n 5 -o vectors.jsonl
    mmaprobe distinguish volta/mma/m8n8k4.f32.f16.f16.f32 ampere/mma/m16n8k16.f32.f16.f16.f32
    """
    from mmaprobe.cli.text.vectors import show_answer
    from mmaprobe.documents.distinguish import Distinguish
    from mmaprobe.queries.search.answer import answer

    if free is not None and smt2 is None:
        raise click.UsageError("--free is about the query that --smt2 writes")
    questions = _questions(names, restrictions, target)
    pairs = sum(comb(len(question.models), 2) for question in questions)
    if pairs > 1:
        allow(options.timeout and options.timeout * pairs)
    pieces = Pieces(options.progress, "questions", len(questions))
    options = replace(options, count=count, progress=pieces)
    answers: dict[str, Answered] = {}  # of the ids of questions, also where an interrupt ended the search
    done: list[Answered] = []
    fault: FaultError | None = None
    written: int | None = None  # bytes of the output

    def work(question: Question) -> Answered:
        part = file_part(question.id.replace("/", "-"))
        path = smt2.with_stem(f"{smt2.stem}-{part}") if smt2 and len(questions) > 1 else smt2
        answers[question.id] = answered = answer(question, options, compare, path, free)
        return answered

    def take(question: Question, result: Callable[[], Answered]) -> None:
        nonlocal fault, written
        try:
            answered = result()
        except FaultError as error:  # the other questions are answered all the same
            say(f"{question.id}: {error}")
            fault = fault or error
            pieces.next()
            return
        show(answered)
        pieces.next()
        if answered.interrupted:
            raise KeyboardInterrupt

    def show(answered: Answered) -> None:
        nonlocal written
        progress("")
        done.append(answered)
        with uncounted():  # the time is for the search
            for name, reason in answered.question.dropped.items():
                say(f"  dropped {name}: {reason}")
            show_zeros(answered.question.zeros)
            show_answer(answered)
            if output is not None:  # at once, so that no vector found is lost
                written = write_vectors(answered.vectors, output, more=len(done) > 1, after=written)

    interrupt: KeyboardInterrupt | None = None
    try:
        options.pool.gather(work, questions, take)
    except KeyboardInterrupt as error:
        interrupt = error
        known = {answered.question.id for answered in done}
        for question in questions:
            if question.id in answers and question.id not in known:
                show(answers[question.id])
    end_work()
    if as_json:
        print_json(Distinguish(questions=[answered.document() for answered in done]))
    elif output is None:
        write_vectors((vector for answered in done for vector in answered.vectors), None)
    codes = [answered.exit_code for answered in done]
    if len(codes) > 1:
        say(f"{codes.count(0)} of {len(codes)} questions answered as expected, {codes.count(3)} unknown")
    if fault is not None:
        raise fault
    if interrupt is not None:
        raise interrupt
    sys.exit(overall(codes))


def _questions(names: tuple[str, ...], restrictions: str, target: str | None) -> list[Question]:
    from mmaprobe.hypotheses.library import library, question_named
    from mmaprobe.hypotheses.schema import pair_of
    from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
    from mmaprobe.smtmodel.tables.reference import parse_reference

    if all(_is_reference(name) and name not in library() for name in names):
        for name in names:
            if os.path.isdir(name):
                raise InputError("is a folder: a model, a question or its file is needed", name)
        if len(names) != 2:
            raise click.UsageError(f"two models are compared, {len(names)} given")
        if target is not None:
            raise click.UsageError("--model changes the model of a question, not of a comparison of two models")
        left, right = map(parse_reference, names)
        return [pair_of(left, right, parse_inputs(restrictions))]
    for name, other in zip(names, reversed(names), strict=True):
        if len(names) == 2 and _is_reference(name) and not _is_reference(other):
            with suppress(UnknownNameError):
                parse_reference(other)  # its error says what a GPU or an architecture is
            question_named(other)
            raise click.UsageError(f"{name} is a model, and {other} a question: give two models, or questions")
    if restrictions:
        raise ParameterError("--inputs", "the inputs of a question are set in its file")
    return [question_named(name, target) for name in names]


def _is_reference(name: str) -> bool:
    from mmaprobe.smtmodel.base.files import is_file
    from mmaprobe.smtmodel.tables.reference import is_plan, keys_of

    if is_plan(name):
        return True
    if (path := name.partition("@")[0]).endswith((".yaml", ".yml")) or is_file(path):
        keys = keys_of(path)  # a unit file without its key `unit` counts too: its error says that the key is missing
        return "candidates" not in keys and not {"unit", "formats", "plan"}.isdisjoint(keys)
    return "/" in path
