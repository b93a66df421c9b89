"""An explanation as text: the inputs and products, then every sum with its bits under a ruler of exponents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import click

from cli.grid import Grid, grid_of
from smtmodel.display import bit_fields, exact_value, number_text, powers
from smtmodel.dot import Model
from smtmodel.explaining import fraction_row
from smtmodel.explanation import Cause, Explanation, Group, Input, Picture, Rounded, Row, Special, Step
from smtmodel.formats import Format
from smtmodel.vectors import to_hex

WIDTH = 100
LIST_UP_TO = 16  # nonzero products with a line of their own
STYLES = {
    "fill": {"dim": True},
    "cut": {"fg": "red", "dim": True},
    "carry": {"fg": "yellow", "bold": True},
    "title": {"bold": True},
    "differs": {"fg": "magenta", "bold": True},
    "special": {"fg": "yellow"},
}


@dataclass
class Canvas:
    """Lines of text. `marked`: the signal at which two models part; the line that shows it gets a mark."""

    width: int = WIDTH
    colour: bool = False
    marked: str | None = None
    lines: list[str] = field(default_factory=list)

    def paint(self, text: str, style: str) -> str:
        return click.style(text, **STYLES[style]) if self.colour and style else text  # type: ignore[arg-type]

    def say(self, text: str = "", style: str = "", signals: Iterable[str] = ()) -> None:
        tail = "  " + self.paint("<-- differs", "differs") if self.shows(signals) else ""
        self.lines.append(self.paint(text, style) + tail)

    def shows(self, signals: Iterable[str]) -> bool:
        """Whether one of the signals, or a part of it, is where the models part."""
        marked = self.marked
        return marked is not None and any(marked == name or marked.startswith(name + ".") for name in signals)


def draw(explanation: Explanation, canvas: Canvas) -> None:
    """The whole evaluation."""
    model = explanation.model
    canvas.say(model.reference, "title")
    canvas.say(f"  {_parameters(model)}")
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
        _Sum(explanation.after, canvas, {}).draw()
    canvas.say()
    canvas.say(f"d = {pattern_text(explanation.result, model.d)}", "title")


def pattern_text(pattern: int, fmt: Format) -> str:
    return f"{to_hex(pattern, fmt)}  {bit_fields(pattern, fmt)}  {number_text(pattern, fmt)}"


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
        parts.append(f"{acc.carry_bits} carry bits")
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
        canvas.say(f"  {len(zeros)} zero product{'s' * (len(zeros) > 1)}: {ranges(zeros)}", "fill")
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
        lines = [(*line[:3], "", line[4]) for line in lines]
        widths[3] = 0
    for line, signals in zip(lines, [(), *(row.signals for row in rows), ("addend",)], strict=True):
        text = "  ".join(f"{part:<{width}}" for part, width in zip(line, widths, strict=True) if width)
        style = "fill" if not signals else ""
        canvas.say(f"  {text.rstrip()}", style, signals)


def _term(row: Row) -> tuple[str, str]:
    """(value, exponent and significand) of a product."""
    if row.marks:
        return ("nan" if "nan" in row.marks else "-inf" if row.negative else "inf"), ""
    assert row.exponent is not None
    return powers(row.value), f"{row.exponent:>4}  {_sign(row)}{_binary(row, row.exponent)}"


def _significand(explanation: Explanation, addend: Row | None) -> str:
    exponent = explanation.facts["addend.exponent"].real
    if addend is None or not addend.bits or exponent is None:
        return ""
    return f"{int(exponent):>4}  {_sign(addend)}{_binary(addend, int(exponent))}"


def _sign(row: Row) -> str:
    return "-" if row.negative else "+"


def _binary(row: Row, point: int) -> str:
    """The bits with the binary point after the place `point`."""
    top, low = max(row.first, point), min(row.last, point)
    bits = "0" * (top - row.first) + row.bits + "0" * (row.last - low)
    whole = top - point + 1
    return f"{bits[:whole]}.{bits[whole:]}" if bits[whole:] else bits


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
    for picture in step.pictures:
        _Sum(picture, canvas, names).draw()
    if several:
        canvas.say(f"  d{index} = {pattern_text(step.result, explanation.model.d)}")


def _draw_group(explanation: Explanation, group: Group, canvas: Canvas) -> None:
    assert group.scales is not None
    texts = [number_text(explanation.inputs[name].pattern, explanation.inputs[name].format) for name in group.scales]
    scaled = " ".join(f"* ({text})" if " " in text else f"* {text}" for text in texts)
    canvas.say(f"  group {group.name}: exact sum {powers(group.total)}, scaled {scaled}")


class _Sum:
    """One picture on a canvas. `names`: what terms are called here."""

    def __init__(self, picture: Picture, canvas: Canvas, names: dict[str, str]) -> None:
        self.picture, self.canvas, self.names = picture, canvas, names
        rounded = picture.rounded
        self.result = self._result(rounded) if rounded and rounded.outcome in ("cut", "raised") else None
        self.rows = [*picture.rows]
        self.label = max(len(self._name(row.name)) for row in (*picture.rows, picture.total)) + 2
        self.label = max(self.label, 6)
        places = [len(str(row.exponent)) for row in picture.rows if row.exponent is not None]
        self.gutter = self.label + 3 + max(places, default=1) + 2

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    @staticmethod
    def _result(rounded: Rounded) -> Row | None:
        value = exact_value(rounded.pattern, rounded.format)
        return fraction_row(rounded.format.name, value) if isinstance(value, Fraction) else None

    def draw(self) -> None:
        picture = self.picture
        if picture.special is not None:
            self._say_special(picture.special)
            return
        if not picture.rows:
            if picture.kind in ("sum", "late"):
                self.canvas.say("  every term is zero", "fill")
                self._say_rounded()
            return
        if picture.maximum is None and picture.plain and len(picture.rows) <= 2:
            self._say_plain()
            return
        self._say_title()
        self._draw_rows()
        self._say_rounded()

    # -- words

    def _say_special(self, special: Special) -> None:
        what = {
            "nan": "a NaN decides",
            "inf*0": "infinity times zero is a NaN",
            "opposite": "infinities of both signs: NaN",
            "infinity": "an infinity decides",
        }[special.rule]
        self.canvas.say(f"  {what}: {'; '.join(self._cause(c) for c in special.causes)}", "special", special.signals)

    def _cause(self, cause: Cause) -> str:
        name = self._name(cause.term)
        if cause.inputs == (name,):
            return name
        return f"term {name}" + (f" ({', '.join(cause.inputs)})" if cause.inputs else "")

    def _say_plain(self) -> None:
        """A sum that loses nothing, in a line."""
        picture = self.picture
        terms = " + ".join(f"({powers(row.value)})" if row.negative else powers(row.value) for row in picture.rows)
        names = " + ".join(self._name(row.name) for row in picture.rows)
        total = "" if len(picture.rows) == 1 else f" = {powers(picture.total.value)}"
        signals = [*picture.total.signals, *(picture.rounded.signals if picture.rounded else ())]
        signals += [signal for row in picture.rows for signal in row.signals]
        self.canvas.say(f"  {names}: {terms}{total}, exact", signals=signals)

    def _say_title(self) -> None:
        picture = self.picture
        what = {
            "even": "even products: ", "odd": "odd products: ", "join": "even and odd sums: ",
            "products": "the products: ", "late": "late addend: ",
        }.get(picture.kind, "")  # fmt: skip
        if picture.maximum is None:
            names = " + ".join(self._name(row.name) for row in picture.rows)
            self.canvas.say(f"  {what}exact sum" + (f" of {names}" if len(picture.rows) < 5 else ""))
            return
        assert picture.unit is not None
        winners = [self._name(row.name) for row in picture.rows if "maximum" in row.marks]
        if picture.floor is not None:
            source = "the exponent floor, above every term"
        else:
            source = ", ".join(winners[:6]) + (", ..." if len(winners) > 6 else "")
        kept = f"{picture.maximum - picture.unit} bits kept below it, to 2^{picture.unit}"
        signals = (f"{picture.prefix}max_exponent",)
        self.canvas.say(f"  {what}maximum exponent {picture.maximum} ({source}); {kept}", signals=signals)

    def _say_rounded(self) -> None:
        rounded = self.picture.rounded
        if rounded is None:
            return
        below = f"half {int(rounded.half)}, sticky {int(rounded.sticky)}"
        lowest = rounded.kept.bits[-1:] or "0"
        how = {
            "exact": "exact",
            "cut": f"{below}: {rounded.mode} cuts",
            "raised": f"lowest bit {lowest}, {below}: {rounded.mode} raises by one unit",
            "overflow": "beyond the largest finite number",
            "flushed": "a subnormal result is flushed to zero",
        }[rounded.outcome]
        more = " (subnormal)" if rounded.subnormal else ""
        text = number_text(rounded.pattern, rounded.format)
        self.canvas.say(f"  {rounded.format.name}: {how}{more}: {text}", signals=rounded.signals)

    # -- bits

    def _draw_rows(self) -> None:
        picture = self.picture
        extra = [row for row in (self.result,) if row]
        grid = grid_of(picture, extra, self.canvas.width - self.gutter)
        for panel in range(len(grid.panels)):
            self._line("", "", "exponent", grid.labels(panel), style="fill")
            self._line("", "", "", grid.ruler(panel), style="fill")
            for row in picture.rows:
                self._row(row, grid, panel, notes=True)
            if picture.zeros:
                names = [self._name(name) for name in picture.zeros]
                folded = f"{len(names)} zero term{'s' * (len(names) > 1)}"
                self.canvas.say(f"{'':>{self.label}} {folded}" if len(names) > 3 else f"{'':>{self.label}} {folded}: {', '.join(names)}", "fill")
            self._line("", "", "", "-" * len(grid.ruler(panel)), style="fill")
            self._sums(grid, panel)

    def _sums(self, grid: Grid, panel: int) -> None:
        picture, rounded = self.picture, self.picture.rounded
        if picture.unwrapped is not None:
            self._row(picture.unwrapped, grid, panel, name="exact", note="does not fit: it wraps")
        if picture.complement is not None:
            self._row(picture.complement, grid, panel, name="2's c.", sign=" ")
        self._row(picture.total, grid, panel, note="lowest bit: sticky" if "sticky" in picture.total.marks else "")
        if rounded is None or self.result is None:
            return
        top = max(rounded.kept.first, rounded.lowest)
        spans = [(rounded.lowest - 1, rounded.lowest - 1, "h"), (rounded.lowest - 2, picture.total.last, "s")]
        self._line("kept", "", "", grid.marker(panel, [(top, rounded.lowest, "^"), *spans]))
        self._row(self.result, grid, panel)

    def _row(
        self, row: Row, grid: Grid, panel: int, name: str = "", note: str = "", notes: bool = False, sign: str = ""
    ) -> None:
        if notes:
            words = {"raised": "rounded up", "dropped": "too small: dropped"}
            note = ", ".join(text for mark, text in words.items() if mark in row.marks)
        exponent = "" if row.exponent is None else str(row.exponent)
        bits = grid.bits(row, panel, self.canvas.paint)
        self._line(name or self._name(row.name), sign or _sign(row), exponent, bits, note, row.signals)

    def _line(
        self, name: str, sign: str, exponent: str, bits: str, note: str = "", signals: Sequence[str] = (), style: str = ""
    ) -> None:
        head = f"{name:>{self.label}} {sign:1} {exponent:>{self.gutter - self.label - 5}}  "
        head = f"{head:<{self.gutter}}"[: max(self.gutter, 0)] if len(head) >= self.gutter else f"{head:<{self.gutter}}"
        self.canvas.say(f"{head}{bits}" + (f"  {note}" if note else ""), style, signals)
