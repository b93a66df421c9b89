"""One sum of an explanation as text: bits under a ruler, with marks of what is truncated, carried and rounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import click

from mmaprobe.reports import words
from mmaprobe.reports.drawings.grid import LEAD, Grid, grid_of
from mmaprobe.smtmodel.explain.explanation import BitLine, Picture
from mmaprobe.smtmodel.nodes.trace import Name

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
    """Lines of text, of `width` characters where possible. `marked`: the signal at which two models diverge, whose line
    gets a mark; `alone`: the other model has no such signal."""

    width: int = WIDTH
    colour: bool = False
    marked: Name | None = None
    alone: bool = False
    explained: str = ""  # the latest explanation of the ruler's signs
    lines: list[str] = field(default_factory=list)

    def paint(self, text: str, style: str) -> str:
        return click.style(text, **STYLES[style]) if self.colour and style else text  # type: ignore[arg-type]

    def say(self, text: str = "", style: str = "", signals: Iterable[Name] = ()) -> None:
        tail = "  " + self.paint(self.mark, "differs") if self.shows(signals) else ""
        self.lines.append(self.paint(text, style) + tail)

    @property
    def mark(self) -> str:
        return "<-- only here" if self.alone else "<-- differs"

    def shows(self, signals: Iterable[Name]) -> bool:
        """Whether the models diverge at one of the signals, or at a part of one."""
        return words.is_marked(self.marked, signals)


class PictureText:
    """One picture on a canvas."""

    def __init__(self, picture: Picture, canvas: Canvas) -> None:
        self.picture, self.canvas = picture, canvas
        self.result = words.rounded_line(picture.rounded)
        self.label = max(len(row.name) for row in (*picture.rows, picture.total)) + 2
        self.label = max(self.label, 6)
        places = [len(str(row.exponent)) for row in picture.rows if row.exponent is not None]
        self.places = max(3, *places) if places else 3
        self.gutter = self.label + self.places + 5

    def draw(self) -> None:
        if first := words.first_line(self.picture):
            text, style, signals = first
            self.canvas.say(f"  {text}", style, signals)
        if words.has_bits(self.picture):
            self._draw_rows()
        if last := words.last_line(self.picture):
            text, signals = last
            self.canvas.say(f"  {text}", signals=signals)

    # -- bits

    def _draw_rows(self) -> None:
        picture = self.picture
        grid = grid_of(picture, picture.rows, self.canvas.width - self.gutter)
        for panel in range(len(grid.panels)):
            self._say_ruler(grid, panel)
            for row in picture.rows:
                self._row(row, grid, panel, notes=True)
            if picture.zeros:
                self.canvas.say(f"{'':>{self.label}} {words.zeros_text(picture)}", "fill")
            self._line("", "", "", "-" * len(grid.ruler(panel)), style="fill")
            self._sums(grid, panel)

    def _say_ruler(self, grid: Grid, panel: int) -> None:
        labels = f"{'2^':>{self.gutter - LEAD}}{grid.labels(panel)}"
        self.canvas.say(labels, "fill")
        note, canvas = "", self.canvas
        signs = f"c: carry bits; right of |: {words.lost_text(self.picture)}"
        if canvas.explained != signs and grid.unit is not None:
            note = canvas.explained = signs
        self._line("term", "", "exp", grid.ruler(panel), note, style="fill")

    def _sums(self, grid: Grid, panel: int) -> None:
        picture, rounded = self.picture, self.picture.rounded
        if picture.unwrapped is not None:
            self._row(picture.unwrapped, grid, panel, name="exact", note="does not fit: it wraps")
        if picture.complement is not None:
            self._row(picture.complement, grid, panel, name="2's c", sign=" ")
        self._row(picture.total, grid, panel, note="lowest bit: sticky" if "sticky" in picture.total.marks else "")
        if picture.cut is not None:
            self._row(picture.cut, grid, panel, note="normalised and cut")
        if rounded is None or self.result is None:
            return
        spans = [
            (top, low, "^" if name == "kept" else name[0]) for top, low, name in words.rounding_spans(picture, rounded)
        ]
        self._line("", "", "", grid.marker(panel, spans))
        self._row(self.result, grid, panel)

    def _row(
        self, row: BitLine, grid: Grid, panel: int, name: str = "", note: str = "", notes: bool = False, sign: str = ""
    ) -> None:
        if notes:
            note = words.row_note(row)
        exponent = "" if row.exponent is None else str(row.exponent)
        bits = grid.bits(row, panel, self.canvas.paint)
        self._line(name or row.name, sign or words.sign_of(row), exponent, bits, note, row.signals)

    def _line(
        self,
        name: str,
        sign: str,
        exponent: str,
        bits: str,
        note: str = "",
        signals: Sequence[Name] = (),
        style: str = "",
    ) -> None:
        head = f"{name:>{self.label}} {sign:1} {exponent:>{self.places}}  "
        fits = len(head) + len(click.unstyle(bits)) + len(note) + 2 <= self.canvas.width
        self.canvas.say(f"{head}{bits}" + (f"  {note}" if note and fits else ""), style, signals)
        if note and not fits:
            self.canvas.say(f"{'':{len(head)}}({note})", style)
