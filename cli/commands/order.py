"""The `order` command: the summation tree of a device."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.choice import FileName, Length, Seconds
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names
from mmaprobe.cli.options import DEVICE, DEVICE_TIMEOUT, JSON, end_work, print_json, progress, say
from mmaprobe.cli.picture_files import PictureFiles, picture_options
from mmaprobe.cli.question import DeviceQuestion
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.interrupts import begun
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.order.probe import Question
    from mmaprobe.queries.order.reveal import Tree

FORMATS = click.option(
    "--formats", metavar="A,B,C,D",
    help="The formats of a, b, c and the result; A,B,D for a device without an addend. Instructions and plans have "
    "their own.",
)  # fmt: skip
LENGTH = click.option(
    "--length",
    type=Length(),
    metavar="K",
    help="The number of products, up to 4096. Instructions have their own.",
)


@click.command(cls=Command)
@DEVICE
@FORMATS
@LENGTH
@picture_options
@click.option(
    "-o", "--output", type=FileName(dir_okay=False), metavar="FILE", shell_complete=file_names,
    help="Append the questions with their answers here, as JSONL; a run cut short goes on from them, and --device "
    "recorded:FILE reads them.",
)  # fmt: skip
@DEVICE_TIMEOUT
@click.option("--timeout", type=Seconds(), default=300.0, show_default=True, help="Seconds for everything together.")
@JSON
def order(
    device_name: str, formats: str | None, length: int | None, pictures: PictureFiles, output: Path | None,
    device_timeout: float, timeout: float, as_json: bool,
) -> None:  # fmt: skip
    """Reveal the order in which a device adds. The terms are c and K products; its answers alone show the order.

    Nothing is assumed but formats and length: no family, no row of the table. It takes some K log K questions,
    and each is asked once more at the end, to see whether the answer stays. Where a device splits operands into
    words, a product stands where its largest part enters.

    \b
    mmaprobe order --device command:./my-gpu --formats f16,f16,f32,f32 --length 16
    mmaprobe order --device python:mine.py:matmul --formats f32,f32,f32 --length 512

    Exit codes: 0 revealed, 2 bad input, 3 not revealed, cut short, or the device contradicts itself.
    """
    from mmaprobe.queries.compare.steady import ContradictionError
    from mmaprobe.queries.order.probe import UnrevealedError
    from mmaprobe.queries.order.report import document_of
    from mmaprobe.queries.order.text import title_of
    from mmaprobe.reports.drawings.order_drawing import order_drawing
    from mmaprobe.runner.device_order import revealed

    start = begun()
    question = DeviceQuestion(device_name=device_name, formats=formats, length=length, output=output,
                              device_timeout=device_timeout, timeout=timeout)  # fmt: skip
    asked = question.signature()
    tree: Tree | None = None
    failure: MmaprobeError | None = None
    questions: tuple[Question, ...] = ()
    with question.kept(asked) as opened:
        try:
            tree = revealed(opened, asked, start + timeout, progress, ends=True)
            questions = tree.questions
        except UnrevealedError as error:
            failure, questions = error, error.questions
        except ContradictionError as error:
            failure = error.named(question.device_name)
        description = opened.description
    end_work()
    seconds = time.monotonic() - start
    title, notes = title_of(asked), [] if tree is None else _notes(tree, seconds)
    if "places" in description:
        notes.append(f"of the product's places: {description['places']}")
    if tree is not None:
        say(f"{title}:")
        for line in [*tree.outline().lines(), *notes]:
            say(f"  {line}")
    elif questions:
        _say_seen(questions)
    if tree is not None:
        outline = tree.outline()
        pictures.write(lambda width: order_drawing(outline, title, notes, width))
    if as_json:
        print_json(
            document_of(tree, asked, {"name": question.device_name, **description}, len(questions), seconds, failure)
        )
    if failure is not None:
        raise failure
    sys.exit(0)


def _notes(tree: Tree, seconds: float) -> list[str]:
    from mmaprobe.queries.order.tree import KINDS

    lines = [] if tree.ends is None else tree.ends.lines()
    if any(KINDS["exact"] in line for line in tree.outline().lines()):
        lines.append(f"a step without loss: none within the {tree.places} places that the formats allow to see")
    if tree.places < tree.span.bits:
        lines.append(f"masks left traces: beside them steps were seen to hide what lies {tree.places} places below")
    return [*lines, f"{counted(len(tree.questions), 'question')}, {seconds:.1f} s"]


def _say_seen(questions: Sequence[Question]) -> None:
    """Print the failure to reveal the order, and the last questions with their answers."""
    from mmaprobe.smtmodel.arithmetic.display import value_text

    say(f"not revealed, after {counted(len(questions), 'question')}; the last of them:")
    for question in questions[-3:]:
        say(f"  {question.text}: {value_text(question.d, question.vector.model.d)}")
