"""One sum of an explanation as text: bits under a ruler, what is cut off, carried and rounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import click

from cli.grid import LEAD, Grid, grid_of
from smtmodel.display import exact_value, number_text, powers
from smtmodel.explaining import fraction_row
from smtmodel.explanation import Cause, Picture, Rounded, Row, Special

WIDTH = 100
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
    explained: bool = False  # the ruler's signs
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


def sign_of(row: Row) -> str:
    return "-" if row.negative else "+"


class PictureText:
    """One picture on a canvas. `names`: what terms are called here."""

    def __init__(self, picture: Picture, canvas: Canvas, names: dict[str, str]) -> None:
        self.picture, self.canvas, self.names = picture, canvas, names
        rounded = picture.rounded
        self.result = self._result(rounded) if rounded and rounded.outcome in ("cut", "raised") else None
        self.rows = [*picture.rows]
        self.label = max(len(self._name(row.name)) for row in (*picture.rows, picture.total)) + 2
        self.label = max(self.label, 6)
        places = [len(str(row.exponent)) for row in picture.rows if row.exponent is not None]
        self.places = max(3, *places) if places else 3
        self.gutter = self.label + self.places + 5

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
        terms = [f"({powers(row.value)})" if row.negative else powers(row.value) for row in picture.rows]
        names = [self._name(name) for name in (*(row.name for row in picture.rows), *picture.zeros)]
        zeros = ["0"] * len(picture.zeros)
        total = f" = {powers(picture.total.value)}" if len(names) > 1 else ""
        signals = [*picture.total.signals, *(picture.rounded.signals if picture.rounded else ())]
        signals += [signal for row in picture.rows for signal in row.signals]
        self.canvas.say(f"  {' + '.join(names)}: {' + '.join([*terms, *zeros])}{total}, exact", signals=signals)

    def _say_title(self) -> None:
        picture = self.picture
        what = {
            "even": "even products: ", "odd": "odd products: ", "join": "even and odd sums: ",
            "products": "the products: ", "late": "late addend: ",
        }.get(picture.kind, f"adding {self._name(picture.name)}: " if picture.name else "")  # fmt: skip
        if picture.maximum is None:
            names = " + ".join(self._name(row.name) for row in picture.rows)
            self.canvas.say(f"  {what}exact sum" + (f" of {names}" if len(picture.rows) < 5 else ""))
            return
        assert picture.unit is not None
        winners = [self._name(row.name) for row in picture.rows if "maximum" in row.marks]
        if picture.floor is not None:
            source = "the exponent floor, above every term"
        else:
            word = f"term{'s' * (len(winners) > 1)} " if winners[0].isdigit() else ""
            source = word + ", ".join(winners[:6]) + (", ..." if len(winners) > 6 else "")
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
            "cut": f"lowest bit {lowest}, {below}: cut off",
            "raised": f"lowest bit {lowest}, {below}: one unit up",
            "overflow": "beyond the largest finite number",
            "flushed": "a subnormal result is flushed to zero",
        }[rounded.outcome]
        more = " (subnormal)" if rounded.subnormal else ""
        text = number_text(rounded.pattern, rounded.format)
        self.canvas.say(f"  {rounded.format.name} {rounded.mode}: {how}{more}: {text}", signals=rounded.signals)

    # -- bits

    def _draw_rows(self) -> None:
        picture = self.picture
        extra = [row for row in (self.result,) if row]
        grid = grid_of(picture, extra, self.canvas.width - self.gutter)
        for panel in range(len(grid.panels)):
            self._say_ruler(grid, panel)
            for row in picture.rows:
                self._row(row, grid, panel, notes=True)
            if picture.zeros:
                names = [self._name(name) for name in picture.zeros]
                folded = f"{len(names)} zero term{'s' * (len(names) > 1)}"
                self.canvas.say(
                    f"{'':>{self.label}} {folded}"
                    if len(names) > 3
                    else f"{'':>{self.label}} {folded}: {', '.join(names)}",
                    "fill",
                )
            self._line("", "", "", "-" * len(grid.ruler(panel)), style="fill")
            self._sums(grid, panel)

    def _say_ruler(self, grid: Grid, panel: int) -> None:
        labels = f"{'2^':>{self.gutter - LEAD}}{grid.labels(panel)}"
        self.canvas.say(labels, "fill")
        note, canvas = "", self.canvas
        if not canvas.explained and grid.unit is not None:
            note, canvas.explained = "c: carry bits; right of |: cut off", True
        self._line("term", "", "exp", grid.ruler(panel), note, style="fill")

    def _sums(self, grid: Grid, panel: int) -> None:
        picture, rounded = self.picture, self.picture.rounded
        if picture.unwrapped is not None:
            self._row(picture.unwrapped, grid, panel, name="exact", note="does not fit: it wraps")
        if picture.complement is not None:
            self._row(picture.complement, grid, panel, name="2's c", sign=" ")
        self._row(picture.total, grid, panel, note="lowest bit: sticky" if "sticky" in picture.total.marks else "")
        if rounded is None or self.result is None:
            return
        top = max(rounded.kept.first, rounded.lowest)
        spans = [(rounded.lowest - 1, rounded.lowest - 1, "h"), (rounded.lowest - 2, picture.total.last, "s")]
        self._line("", "", "", grid.marker(panel, [(top, rounded.lowest, "^"), *spans]))
        self._row(self.result, grid, panel)

    def _row(
        self, row: Row, grid: Grid, panel: int, name: str = "", note: str = "", notes: bool = False, sign: str = ""
    ) -> None:
        if notes:
            words = {"raised": "rounded up", "dropped": "too small: dropped"}
            note = ", ".join(text for mark, text in words.items() if mark in row.marks)
        exponent = "" if row.exponent is None else str(row.exponent)
        bits = grid.bits(row, panel, self.canvas.paint)
        self._line(name or self._name(row.name), sign or sign_of(row), exponent, bits, note, row.signals)

    def _line(
        self,
        name: str,
        sign: str,
        exponent: str,
        bits: str,
        note: str = "",
        signals: Sequence[str] = (),
        style: str = "",
    ) -> None:
        head = f"{name:>{self.label}} {sign:1} {exponent:>{self.places}}  "
        fits = len(head) + len(click.unstyle(bits)) + len(note) + 2 <= self.canvas.width
        self.canvas.say(f"{head}{bits}" + (f"  {note}" if note and fits else ""), style, signals)
        if note and not fits:
            self.canvas.say(f"{'':{len(head)}}({note})", style)
