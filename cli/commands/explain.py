"""The `explain` command: one evaluation, stage by stage."""

from __future__ import annotations

import os
import shutil
import sys
import zlib
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.options import ADDEND, JSON, loudness, print_json, refuse, say
from mmaprobe.cli.picture_files import PictureFiles, picture_options
from mmaprobe.cli.reading import open_input
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.base.files import check_utf8, is_file
from mmaprobe.smtmodel.base.jsontext import parse_json
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from mmaprobe.queries.compare.neighbours import Divergence, Neighbour
    from mmaprobe.queries.compare.observed import ObservedVector
    from mmaprobe.reports.drawings.sheet import Drawing
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.explain.explanation import Explanation
    from mmaprobe.smtmodel.inputs.vectors import Vector

NARROWEST, WIDEST = 60, 160
MOST_LINES = 120  # lines, at most, of an evaluation that `evaluate` draws
MOST_NEIGHBOURS = 6  # shown with their first divergence; the others are named


@click.command(cls=Command)
@click.argument("model", shell_complete=models)
@click.argument("vectors", nargs=-1, required=True, metavar="VECTOR", shell_complete=file_names)
@click.option(
    "--and",
    "--against",
    "other",
    metavar="MODEL2",
    shell_complete=models,
    help="Explain a second model too, and name the first divergence of the two.",
)
@picture_options
@click.option(
    "--name", "names", multiple=True, metavar="TEXT",
    help="The name of the model in drawings, in place of its reference and expression; twice, for two models.",
)  # fmt: skip
@click.option(
    "--element", metavar="I,J",
    help="VECTOR is two or three matrix files A B [C]: show which steps of this element of the product lose bits.",
)  # fmt: skip
@ADDEND
@JSON
def explain(
    model: str, vectors: tuple[str, ...], other: str | None, pictures: PictureFiles, names: tuple[str, ...],
    element: str | None, addend: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Show one evaluation stage by stage, bit by bit.

    VECTOR is a JSON object (a row of a vector file), FILE:LINE of a vector file, or FILE (its first row). With
    --element it is the matrix files of a product, and MODEL a plan, or a model that takes K in tiles.

    \b
    mmaprobe explain volta/mma/m8n8k4.f32.f16.f16.f32 '{"a": ["3c00"], "b": ["3c00"], "c": "3f800000"}'
    mmaprobe explain ampere/mma/m16n8k16.f32.f16.f16.f32 vectors.jsonl:3 --against MODEL2 --svg why.svg
    mmaprobe explain MODEL vectors.jsonl --against MODEL2 --name A100 --name H100 --width 85 --tikz why.tex
    mmaprobe explain plan:cublas/split-k a.npy b.npy --element 3,5

    Bits are drawn under a ruler of exponents. Left of the first bar (c) are the carry bits, right of the last bar the
    bits that alignment truncates; x is a set bit that is truncated where other terms keep theirs. Under a rounded sum,
    ^ marks the bits kept, h the half bit and s the sticky bits.
    """
    from mmaprobe.cli.commands.element import explain_element
    from mmaprobe.cli.text.vectors import say_unread
    from mmaprobe.smtmodel.explain.explaining import check_same_inputs
    from mmaprobe.smtmodel.explain.explaining import explain as explained
    from mmaprobe.smtmodel.tables.reference import parse_reference

    if element is not None:
        refuse("--element explains one plan, as text or with --json", "other", "svg", "pdf", "tikz", "width", "names")
        explain_element(model, vectors, addend, element, as_json)
        return
    refuse("it goes with --element, as matrix files do", "addend")
    if not pictures:
        refuse("it is a name in drawings: give --svg, --pdf or --tikz", "names")
    if len(vectors) != 1:
        raise click.UsageError("give one vector: JSON, or FILE:LINE (matrix files go with --element ROW,COLUMN)")
    (text,) = vectors
    models = [parse_reference(name) for name in (model, other) if name is not None]
    for one in models[1:]:
        check_same_inputs(models[0], one)
    row, place = _row(text)
    given = [_vector(one, row, place) for one in models]
    explanations = [explained(one, vector.operands) for one, vector in zip(models, given, strict=True)]
    difference = None
    if len(explanations) == 2:
        from mmaprobe.queries.compare.neighbours import parted

        difference = parted(explanations)
    observed = [vector.d for vector in given]
    if len(names) > len(models):
        raise click.UsageError(f"--name is given {len(names)} times for {counted(len(models), 'model')}")
    for one in models:
        say_unread(one)
    pictures.write(lambda width: _drawing(explanations, difference, width, names))
    if as_json:
        from mmaprobe.reports.evaluations import document_of

        print_json(document_of(explanations, difference, observed))
    elif not pictures:
        _show(explanations, observed, difference)


def _drawing(
    explanations: list[Explanation], difference: Divergence | None, width: float | None, names: tuple[str, ...]
) -> Drawing:
    from mmaprobe.reports.drawings.evaluation_drawing import evaluation_drawing

    return evaluation_drawing(explanations, difference, width=width, names=names)


def _show(explanations: list[Explanation], observed: list[int | None], difference: Divergence | None) -> None:
    from mmaprobe.reports.evaluation_text import drawn
    from mmaprobe.reports.words import difference_text, pattern_text

    canvases = drawn(explanations, difference, *terminal(sys.stdout))
    for canvas, explanation, seen in zip(canvases, explanations, observed, strict=True):
        if seen is not None:
            verdict = "as the model has it" if seen == explanation.result else "not what the model gives"
            canvas.say(f"observed: {pattern_text(seen, explanation.model.d)}, {verdict}")
        if len(explanations) == 2:
            canvas.say("-" * canvas.width, "fill")
        click.echo("\n".join(canvas.lines), color=True)
    if len(explanations) == 2:
        click.echo(f"first divergence: {difference_text(difference)}")


def terminal(stream: Any) -> tuple[int, bool]:
    """(width in characters, whether colours are used) of an output stream."""
    if not stream.isatty():
        return 100, False
    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size((100, 24)).columns))
    return width, not os.environ.get("NO_COLOR")


# -- input


def _row(text: str) -> tuple[dict[str, Any], str]:
    """The row that VECTOR names, and its place for messages. Raises InputError."""
    if text.lstrip().startswith("{"):
        return _parsed(text, "VECTOR", None), "VECTOR"
    file, line = text, None
    head, _, tail = text.rpartition(":")
    if head and is_digits(tail) and not is_file(text):
        file, line = head, int(tail)
    number, content = 0, ""
    if not (line or file == "-" or os.path.exists(file)):
        raise InputError("no such file; a vector is a JSON object, or FILE:LINE", file or "VECTOR ''")
    with open_input(file) as (lines, name):
        try:
            for number, content in enumerate(lines, start=1):
                if number == line or (line is None and content.strip()):
                    return _parsed(content, name, number), f"{name}:{number}"
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot be read: {error}", name, number + 1) from None
    raise InputError(
        "the file has no vector" if line is None else f"there is no line {line}: it has {counted(number, 'line')}",
        name,
    )


def _parsed(text: str, name: str, line: int | None) -> dict[str, Any]:
    try:
        row = parse_json(check_utf8(text, name, line or 1).removeprefix("\ufeff"))
    except ValueError as error:
        raise InputError(str(error), name, line) from None
    if not isinstance(row, dict):
        raise InputError("a JSON object is needed", name, line)
    return row


def _vector(model: Model, row: dict[str, Any], place: str) -> Vector:
    """The vector of a row, read in the formats of `model`. If the row names a model of its own, both must have the
    same formats, unless that is a unit file that is missing. Products of zero beyond the model's length are left out.
    Raises InputError."""
    from mmaprobe.smtmodel.inputs.vectors import parse_row
    from mmaprobe.smtmodel.operand import OPERANDS
    from mmaprobe.smtmodel.tables.reference import is_unit_file

    given = dict(row, model=model.reference)
    try:
        name = row.get("model")
        if isinstance(name, str) and is_unit_file(name) and not os.path.exists(name):
            say(f"warning: {place}: there is no {name} here: its operands are read in the formats of {model.reference}")
        elif "model" in row or "instruction" in row:
            own = parse_row(dict(row, d=None)).model
            for operand in OPERANDS:
                theirs, ours = (side.formats.get(operand.name) for side in (own, model))
                if theirs != ours:
                    words = [fmt.name if fmt else "none" for fmt in (theirs, ours)]
                    difference = f"the vector's format is {words[0]}, that of {model.reference} {words[1]}"
                    raise ValueError(f"{operand.key}: {difference}")
        for name in ("a", "b"):
            given[name] = _shortened(row, name, model.length)
        return parse_row(given)
    except (ValueError, MmaprobeError) as error:
        raise InputError(str(error), place) from None


def _shortened(row: dict[str, Any], name: str, length: int) -> Any:
    both = [row.get(side) for side in ("a", "b")]
    if not all(isinstance(side, list) and len(side) > length for side in both):
        return row.get(name)
    beyond = zip(*(side[length:] for side in both), strict=False)  # type: ignore[index]
    zero = all(any(isinstance(x, str) and x.strip("0") == "" for x in pair) for pair in beyond)
    return row[name][:length] if zero else row[name]


# -- for `evaluate`


def say_why(row: ObservedVector, near: list[Neighbour], file: str) -> None:
    """Print the model's evaluation of a row of a file whose observed result is another (of a long evaluation, the
    command that prints it), and the neighbours that give the observed result."""
    from mmaprobe.reports.bits_text import Canvas
    from mmaprobe.reports.evaluation_text import draw
    from mmaprobe.reports.words import change_text, explain_command
    from mmaprobe.smtmodel.explain.explaining import explain as explained

    apart = near[0].divergence if near else None
    first = apart.left if apart else None
    alone = apart is not None and apart.of_one_side
    canvas = Canvas(*terminal(sys.stderr), marked=first.name if first else None, alone=alone)
    draw(explained(row.model, row.vector.operands), canvas)
    if len(canvas.lines) > MOST_LINES:
        length, canvas = len(canvas.lines), Canvas(*terminal(sys.stderr), marked=None, alone=False)
        canvas.say(f"its evaluation has {length} lines: {explain_command(row, file)}")
    canvas.say()
    if not near:
        canvas.say("no change of one parameter gives the observed result", "special")
    for one in near[:MOST_NEIGHBOURS]:
        canvas.say(change_text(f"{one.change} gives the observed result", one.divergence), "special")
    if len(near) > MOST_NEIGHBOURS:
        canvas.say(f"and {len(near) - MOST_NEIGHBOURS} more: {', '.join(one.change for one in near[MOST_NEIGHBOURS:])}")
    if loudness() >= 0:
        click.echo("\n".join(f"    {line}".rstrip() for line in canvas.lines) + "\n", err=True, color=True)
