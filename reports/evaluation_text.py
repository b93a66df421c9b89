"""An explanation as text: the inputs and products, then every sum with its bits under a ruler of exponents."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mmaprobe.reports import words
from mmaprobe.reports.bits_text import WIDTH, Canvas, PictureText
from mmaprobe.smtmodel.base.escapes import printable
from mmaprobe.smtmodel.explain.explanation import BitLine, Explanation
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.units.unitfile import step_texts

if TYPE_CHECKING:
    from mmaprobe.queries.compare.neighbours import Divergence

LIST_UP_TO = 16  # the most nonzero products that have a line each


def drawn(
    explanations: Sequence[Explanation], difference: Divergence | None, width: int = WIDTH, colour: bool = False
) -> Iterator[Canvas]:
    """The drawing of each evaluation, in which their first difference is marked."""
    alone = difference is not None and difference.of_one_side
    for explanation, marked in words.sides_of(explanations, difference):
        canvas = Canvas(width, colour, marked, alone)
        draw(explanation, canvas)
        yield canvas


def draw(explanation: Explanation, canvas: Canvas) -> None:
    """Draw the whole evaluation."""
    model = explanation.model
    canvas.say(printable(model.reference), "title")
    for name, text in step_texts(model.unit).items():
        for line in textwrap.wrap(f"{name}: {text}", canvas.width - 2, subsequent_indent="  ", break_on_hyphens=False):
            canvas.say(f"  {line}")
    canvas.say()
    _draw_products(explanation, canvas)
    for item in words.step_runs(explanation, canvas.marked):
        canvas.say()
        if isinstance(item, range):
            canvas.say(words.passing_text(explanation, item), "fill")
        else:
            _draw_step(explanation, item, canvas)
    canvas.say()
    canvas.say(f"d = {words.pattern_text(explanation.result, model.d, canvas.width - 4)}", "title")


# -- inputs and products


def _draw_products(explanation: Explanation, canvas: Canvas) -> None:
    rows = words.nonzero_products(explanation)
    if len(rows) > LIST_UP_TO:
        _draw_many(explanation, rows, canvas)
    else:
        _draw_table(explanation, rows, canvas)
    if text := words.zero_products_text(explanation):
        for line in textwrap.wrap(text, canvas.width - 4, subsequent_indent="  ", break_on_hyphens=False):
            canvas.say(f"  {line}", "fill")
    if texts := [f"  {name} {words.input_text(given)}" for name, given in words.shared_operands(explanation)]:
        _pack(texts, canvas)


def _draw_table(explanation: Explanation, rows: Sequence[BitLine], canvas: Canvas) -> None:
    lines, shown = words.product_table(explanation, rows)
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    if sum(widths) + 10 > canvas.width:  # the values of the products can be read off the pictures
        widths[3] = 0
    if sum(widths) + 10 > canvas.width:
        widths[4] = 0
    for line, signals in zip(lines, shown, strict=True):
        text = "  ".join(f"{part:<{width}}" for part, width in zip(line, widths, strict=True) if width)
        style = "fill" if line is lines[0] else ""
        canvas.say(f"  {text.rstrip()}", style, signals)


def _draw_many(explanation: Explanation, rows: Sequence[BitLine], canvas: Canvas) -> None:
    """Draw only the factors and the value of each product, in as many columns as fit."""
    texts = []
    for row in rows:
        product = (
            " * ".join(to_hex(one.pattern, one.format) for one in words.factor_inputs(explanation, row)) or "product"
        )
        mark = f" {canvas.mark}" if canvas.shows(row.signals) else ""
        texts.append(f"  {row.name:>3}  {product} = {words.term_text(row)[0]}{mark}")
    canvas.say("  products a * b", "fill")
    _pack(texts, canvas)
    for name, given in words.whole_sum_operands(explanation):
        canvas.say(f"  {name:>3}  {words.input_text(given)}", signals=words.alone_signals(name))


def _pack(texts: Sequence[str], canvas: Canvas) -> None:
    """Draw short texts in columns, each read from top to bottom."""
    width = max(len(text) for text in texts) + 2
    columns = max(1, (canvas.width + 2) // width)
    height = -(-len(texts) // columns)
    for line in range(height):
        canvas.say("".join(f"{text:<{width}}" for text in texts[line::height]).rstrip())


# -- steps


def _draw_step(explanation: Explanation, index: int, canvas: Canvas) -> None:
    step = explanation.steps[index]
    canvas.say(words.step_text(explanation, index), "title")
    for text in words.undrawn_texts(explanation, step):
        canvas.say(f"  {text}")
    for picture in words.drawn_pictures(step):
        PictureText(picture, canvas).draw()
    if result := words.result_text(explanation, step, canvas.width - 2):
        canvas.say(f"  {result}")
