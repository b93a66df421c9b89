"""An explanation as text: the inputs and products, then every sum with its bits under a ruler of exponents."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from fractions import Fraction

from cli.pictures import Canvas, PictureText, sign_of
from smtmodel.display import bit_fields, exact_value, number_text, powers
from smtmodel.dot import Model
from smtmodel.explaining import fraction_row
from smtmodel.explanation import Explanation, Group, Input, Row, Step
from smtmodel.formats import Format
from smtmodel.vectors import to_hex

LIST_UP_TO = 16  # nonzero products with a line of their own
LONGEST = 30  # characters of a significand


def draw(explanation: Explanation, canvas: Canvas) -> None:
    """The whole evaluation."""
    model = explanation.model
    canvas.say(model.reference, "title")
    for line in textwrap.wrap(_parameters(model), canvas.width - 2, break_on_hyphens=False):
        canvas.say(f"  {line}")
    canvas.say()
    _draw_products(explanation, canvas)
    shown: list[Step] = []  # steps that pass the sum on, to be folded
    for index, step in enumerate(explanation.steps):
        if step.passes and len(explanation.steps) > 1 and not _marked(step, canvas):
            shown.append(step)
            continue
        _draw_passing(explanation, index, shown, canvas)
        _draw_step(explanation, index, canvas)
    _draw_passing(explanation, len(explanation.steps), shown, canvas)
    if explanation.after is not None:
        canvas.say()
        canvas.say("c is added once, by an IEEE addition to nearest", "title")
        PictureText(explanation.after, canvas, {}).draw()
    canvas.say()
    canvas.say(f"d = {pattern_text(explanation.result, model.d, canvas.width - 4)}", "title")


def pattern_text(pattern: int, fmt: Format, width: int = 0) -> str:
    """A pattern in hexadecimal, by field if that fits in `width`, and in powers of two."""
    digits, value = to_hex(pattern, fmt), number_text(pattern, fmt)
    text = f"{digits}  {bit_fields(pattern, fmt)}  {value}"
    return text if len(text) <= width else f"{digits}  {value}"


def _parameters(model: Model) -> str:
    """What of the accumulator a reader needs for the picture."""
    acc, parts = model.accumulator, [model.accumulator.operation.replace("_", " ")]
    if len(acc.blocks) > 1:
        parts.append(f"{len(acc.blocks)} chained blocks of {len(acc.blocks[0])}")
    if acc.product != "unnormalised":
        parts.append(f"products {acc.product}")
    if not acc.exact_sum:
        parts.append(f"F={acc.fraction_bits} {acc.align_rounding}")
    if acc.carry_bits != "exact":
        parts.append(f"{acc.carry_bits} carry bit{'s' * (acc.carry_bits != 1)}")
    if acc.exponent_floor is not None:
        parts.append(f"floor {acc.exponent_floor}")
    if acc.grouping != "none":
        parts.append(f"{acc.grouping}" + (f" of {acc.group}" if acc.group > 1 else ""))
    if acc.addend != "fused":
        parts.append(f"addend {acc.addend}")
    if acc.partials != "unnormalised":
        parts.append("partial sums normalised")
    return ", ".join([*parts, f"result {acc.output} {acc.output_rounding}"])


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
        text = f"{len(zeros)} zero product{'s' * (len(zeros) > 1)}: {ranges(zeros)}"
        for line in textwrap.wrap(text, canvas.width - 4, subsequent_indent="  ", break_on_hyphens=False):
            canvas.say(f"  {line}", "fill")
    if explanation.model.scale:
        texts = [f"{name} {_input(given)}" for name, given in inputs.items() if name.startswith("scale")]
        _pack([f"  {text}" for text in texts], canvas)


def _input(given: Input) -> str:
    flushed = " read as 0" if given.flushed else ""
    return f"{to_hex(given.pattern, given.format)} {number_text(given.pattern, given.format)}{flushed}"


def _draw_table(explanation: Explanation, rows: Sequence[Row], canvas: Canvas) -> None:
    inputs = explanation.inputs
    lines = [("k", "a", "b", "product", "exponent, significand")]
    for row in rows:
        lines.append((row.name, _input(inputs[f"a{row.name}"]), _input(inputs[f"b{row.name}"]), *_term(row)))
    c = inputs["c"]
    value = exact_value(c.pattern, c.format)
    addend = fraction_row("c", value) if isinstance(value, Fraction) else None
    lines.append(("c", _input(c), "", "", _significand(explanation, addend)))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    if sum(widths) + 10 > canvas.width:  # the values of the products can be read off the pictures
        widths[3] = 0
    if sum(widths) + 10 > canvas.width:
        widths[4] = 0
    for line, signals in zip(lines, [(), *(row.signals for row in rows), ("addend",)], strict=True):
        text = "  ".join(f"{part:<{width}}" for part, width in zip(line, widths, strict=True) if width)
        style = "fill" if not signals else ""
        canvas.say(f"  {text.rstrip()}", style, signals)


def _term(row: Row) -> tuple[str, str]:
    """(value, exponent and significand) of a product."""
    if row.marks:
        return ("nan" if "nan" in row.marks else "-inf" if row.negative else "inf"), ""
    assert row.exponent is not None
    return powers(row.value), f"{row.exponent:>4}  {sign_of(row)}{_binary(row, row.exponent)}"


def _significand(explanation: Explanation, addend: Row | None) -> str:
    exponent = explanation.facts["addend.exponent"].real
    if addend is None or not addend.bits or exponent is None:
        return ""
    return f"{int(exponent):>4}  {sign_of(addend)}{_binary(addend, int(exponent))}"


def _binary(row: Row, point: int) -> str:
    """The bits with the binary point after the place `point`."""
    top, low = max(row.first, point), min(row.last, point)
    bits = "0" * (top - row.first) + row.bits + "0" * (row.last - low)
    whole = top - point + 1
    text = f"{bits[:whole]}.{bits[whole:]}" if bits[whole:] else bits
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _draw_many(explanation: Explanation, rows: Sequence[Row], canvas: Canvas) -> None:
    """Only the factors and the value of each product, in as many columns as fit."""
    texts, inputs = [], explanation.inputs
    for row in rows:
        a, b = (to_hex(inputs[f"{side}{row.name}"].pattern, inputs[f"{side}{row.name}"].format) for side in "ab")
        mark = " <-- differs" if canvas.shows(row.signals) else ""
        texts.append(f"  {row.name:>3}  {a} * {b} = {_term(row)[0]}{mark}")
    canvas.say("  products a * b", "fill")
    _pack(texts, canvas)
    canvas.say(f"    c  {_input(inputs['c'])}", signals=("addend",))


def _pack(texts: Sequence[str], canvas: Canvas) -> None:
    """Short texts in columns, read downwards."""
    width = max(len(text) for text in texts) + 2
    columns = max(1, (canvas.width + 2) // width)
    height = -(-len(texts) // columns)
    for line in range(height):
        canvas.say("".join(f"{text:<{width}}" for text in texts[line::height]).rstrip())


def ranges(numbers: Sequence[int]) -> str:
    """0, 1, 2, 5 as "0-2, 5"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


# -- steps


def _marked(step: Step, canvas: Canvas) -> bool:
    return canvas.marked is not None and bool(step.prefix) and canvas.marked.startswith(step.prefix)


def _draw_passing(explanation: Explanation, index: int, passing: list[Step], canvas: Canvas) -> None:
    """Steps of zero products, as one line."""
    if passing:
        numbers = list(range(index - len(passing), index))
        canvas.say()
        name = "blocks" if len(numbers) > 1 else "block"
        text = pattern_text(passing[-1].result, explanation.model.d)
        canvas.say(f"{name} {ranges(numbers)}: zero products; the sum passes unchanged: {text}", "fill")
        passing.clear()


def _draw_step(explanation: Explanation, index: int, canvas: Canvas) -> None:
    step, several = explanation.steps[index], len(explanation.steps) > 1
    late = explanation.model.accumulator.addend == "after"
    running = f"d{index - 1}" if index else "+0" if late else "c"
    names = {"addend": running}
    canvas.say()
    products = f"product{'s' * (len(step.indices) > 1)} {ranges(step.indices)}"
    title = f"block {index}: {products} and {running}" if several else f"{products} and {running}"
    canvas.say(title, "title")
    for group in step.groups:
        if len(group.members) > 1 and group.total:
            _draw_group(explanation, group, canvas)
    exact = [int(picture.name) for picture in step.pictures if picture.kind == "product" and picture.plain]
    if exact:
        canvas.say(f"  product{'s' * (len(exact) > 1)} {ranges(exact)}: exact in {explanation.model.d.name}")
    for picture in step.pictures:
        if not (picture.kind == "product" and picture.plain):
            PictureText(picture, canvas, names).draw()
    if several:
        canvas.say(f"  d{index} = {pattern_text(step.result, explanation.model.d, canvas.width - 8)}")


def _draw_group(explanation: Explanation, group: Group, canvas: Canvas) -> None:
    assert group.scales is not None
    texts = [number_text(explanation.inputs[name].pattern, explanation.inputs[name].format) for name in group.scales]
    scaled = " ".join(f"* ({text})" if " " in text else f"* {text}" for text in texts)
    canvas.say(f"  group {group.name}: exact sum {powers(group.total)}, scaled {scaled}")
