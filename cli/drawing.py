"""An explanation as text: the inputs and products, then every sum with its bits under a ruler of exponents."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from cli.pictures import Canvas, PictureText
from reports import words
from smtmodel.dot import UnitModel
from smtmodel.explanation import Explanation, Row
from smtmodel.unitfile import step_texts
from smtmodel.vectors import to_hex

LIST_UP_TO = 16  # nonzero products with a line of their own


def draw(explanation: Explanation, canvas: Canvas) -> None:
    """The whole evaluation."""
    model = explanation.model
    canvas.say(model.reference, "title")
    if isinstance(model, UnitModel):
        _draw_unit(explanation, model, canvas)
        return
    for line in textwrap.wrap(words.parameters_text(model), canvas.width - 2, break_on_hyphens=False):
        canvas.say(f"  {line}")
    canvas.say()
    _draw_products(explanation, canvas)
    for item in words.step_runs(explanation, canvas.marked):
        canvas.say()
        if isinstance(item, range):
            canvas.say(words.passing_text(explanation, item), "fill")
        else:
            _draw_step(explanation, item, canvas)
    if explanation.after is not None:
        canvas.say()
        canvas.say(words.AFTER, "title")
        PictureText(explanation.after, canvas, str).draw()
    canvas.say()
    canvas.say(f"d = {words.pattern_text(explanation.result, model.d, canvas.width - 4)}", "title")


def _draw_unit(explanation: Explanation, model: UnitModel, canvas: Canvas) -> None:
    """An expression: its steps as text, the inputs, and a picture for every rounded result that is not exact."""
    for name, text in step_texts(model.unit).items():
        canvas.say(f"  {name}: {text}")
    canvas.say()
    _draw_products(explanation, canvas)
    for passes, run in groupby(explanation.steps, key=lambda step: step.passes):
        steps = list(run)
        names = [step.prefix.removesuffix(".").removesuffix(".next") for step in steps]
        canvas.say()
        if passes:
            span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
            canvas.say(f"{span}: one nonzero term at most passes through unchanged", "fill")
            continue
        for name, step in zip(names, steps, strict=True):
            canvas.say(name, "title", (f"{step.prefix}result",))
            PictureText(step.pictures[0], canvas, str).draw()
    canvas.say()
    canvas.say(f"d = {words.pattern_text(explanation.result, model.d, canvas.width - 4)}", "title")


# -- inputs and products


def _draw_products(explanation: Explanation, canvas: Canvas) -> None:
    rows = [row for row in explanation.products if row.bits or row.marks]
    inputs = explanation.inputs
    if len(rows) > LIST_UP_TO:
        _draw_many(explanation, rows, canvas)
    else:
        _draw_table(explanation, rows, canvas)
    zeros = [int(row.name) for row in explanation.products if not (row.bits or row.marks)]
    if zeros:
        text = words.zero_products_text(zeros)
        for line in textwrap.wrap(text, canvas.width - 4, subsequent_indent="  ", break_on_hyphens=False):
            canvas.say(f"  {line}", "fill")
    if explanation.model.scale:
        texts = [f"{name} {words.input_text(given)}" for name, given in inputs.items() if name.startswith("scale")]
        _pack([f"  {text}" for text in texts], canvas)


def _draw_table(explanation: Explanation, rows: Sequence[Row], canvas: Canvas) -> None:
    inputs = explanation.inputs
    lines = [("k", "a", "b", "product", "exponent, significand")]
    for row in rows:
        lines.append(
            (
                row.name,
                words.input_text(inputs[f"a{row.name}"]),
                words.input_text(inputs[f"b{row.name}"]),
                *words.term_text(row),
            )
        )
    c = inputs["c"]
    lines.append(("c", words.input_text(c), "", "", words.addend_text(explanation)))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    if sum(widths) + 10 > canvas.width:  # the values of the products can be read off the pictures
        widths[3] = 0
    if sum(widths) + 10 > canvas.width:
        widths[4] = 0
    for line, signals in zip(lines, [(), *(row.signals for row in rows), ("addend",)], strict=True):
        text = "  ".join(f"{part:<{width}}" for part, width in zip(line, widths, strict=True) if width)
        style = "fill" if not signals else ""
        canvas.say(f"  {text.rstrip()}", style, signals)


def _draw_many(explanation: Explanation, rows: Sequence[Row], canvas: Canvas) -> None:
    """Only the factors and the value of each product, in as many columns as fit."""
    texts, inputs = [], explanation.inputs
    for row in rows:
        a, b = (to_hex(inputs[f"{side}{row.name}"].pattern, inputs[f"{side}{row.name}"].format) for side in "ab")
        mark = " <-- differs" if canvas.shows(row.signals) else ""
        texts.append(f"  {row.name:>3}  {a} * {b} = {words.term_text(row)[0]}{mark}")
    canvas.say("  products a * b", "fill")
    _pack(texts, canvas)
    canvas.say(f"    c  {words.input_text(inputs['c'])}", signals=("addend",))


def _pack(texts: Sequence[str], canvas: Canvas) -> None:
    """Short texts in columns, read downwards."""
    width = max(len(text) for text in texts) + 2
    columns = max(1, (canvas.width + 2) // width)
    height = -(-len(texts) // columns)
    for line in range(height):
        canvas.say("".join(f"{text:<{width}}" for text in texts[line::height]).rstrip())


# -- steps


def _draw_step(explanation: Explanation, index: int, canvas: Canvas) -> None:
    step = explanation.steps[index]
    title, names = words.step_names(explanation, index)
    canvas.say(title, "title")
    for group in words.drawn_groups(step):
        canvas.say(f"  {words.group_text(explanation, group)}")
    if exact := words.exact_products_text(explanation, step):
        canvas.say(f"  {exact}")
    for picture in words.drawn_pictures(step):
        PictureText(picture, canvas, names).draw()
    if len(explanation.steps) > 1:
        canvas.say(f"  d{index} = {words.pattern_text(step.result, explanation.model.d, canvas.width - 8)}")
