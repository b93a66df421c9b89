"""A drawing of one sum of an evaluation: terms as rows of bit cells under a ruler of exponents, down to the rounded
result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mmaprobe.reports import words
from mmaprobe.reports.drawings.grid import BAR, CARRY, CUT, FILL, GAP, Grid, grid_of
from mmaprobe.reports.drawings.sheet import CELL, LETTER, LINE, MARGIN, TALL, Line, ShapeGroup, Sheet, Text
from mmaprobe.smtmodel.arithmetic.display import powers
from mmaprobe.smtmodel.explain.explanation import BitLine, Picture
from mmaprobe.smtmodel.nodes.trace import Name

COLUMNS = 60  # columns of cells in one panel
LEAST_COLUMNS = 8
MOST_ROWS = 12  # rows of terms; if there are more terms, the last row stands for the rest
NOTES = 124.0  # pixels for notes right of the cells, where a sheet has room
BAR_WIDTH, GAP_WIDTH = 7.0, 26.0


@dataclass(frozen=True)
class Folded:
    """Terms that share a row."""

    rows: list[BitLine]

    @property
    def total(self) -> str:
        return powers(sum((row.value for row in self.rows), Fraction(0)))

    @property
    def text(self) -> str:
        """The number of the terms, their sum, how many of them lose bits, and the sum of the bits lost."""
        losses = [row.lost for row in self.rows if row.lost]
        many = "loses" if len(losses) == 1 else "lose"
        lost = f"; {len(losses)} {many} bits, together {powers(sum(losses, Fraction(0)))}"
        return f"{len(self.rows)} more terms: together {self.total}{lost if losses else ', nothing truncated'}"


def fold(rows: Sequence[BitLine], marked: Name | None, most: int = MOST_ROWS) -> tuple[list[BitLine], Folded | None]:
    """All rows and None if there are at most `most` rows; else the `most` - 1 most informative rows in their order, and
    the other rows folded into one."""
    if len(rows) <= most:
        return list(rows), None

    def weight(row: BitLine) -> tuple[bool, bool, bool, Fraction, Fraction]:
        special = bool(row.marks - {"maximum"}) or not row.name[:1].isdigit()
        return words.is_marked(marked, row.signals), special, "maximum" in row.marks, abs(row.lost), abs(row.value)

    ranked = sorted(range(len(rows)), key=lambda index: (weight(rows[index]), -index), reverse=True)
    chosen, rest = ([rows[index] for index in sorted(part)] for part in (ranked[: most - 1], ranked[most - 1 :]))
    return chosen, Folded(rest)


def bits_width(picture: Picture, marked: Name | None) -> float:
    """The width in pixels of the widest panel, with its gutter and notes, where no width is given."""
    rows, _ = fold(picture.rows, marked)
    return 2 * MARGIN + Gutter.of(picture, rows).width + widest(grid_of(picture, rows, COLUMNS)) + NOTES


def widest(grid: Grid) -> float:
    """Pixels of the widest panel."""
    return max((sum(_width(column) for column in panel) for panel in grid.panels), default=0.0)


def _width(column: object) -> float:
    return BAR_WIDTH if column == BAR else GAP_WIDTH if column == GAP else CELL


@dataclass(frozen=True)
class Gutter:
    """The columns left of the cells, and the x positions of their texts. `names`, `exponents`: the widths of the
    columns of names and of exponents in pixels."""

    names: float
    exponents: float

    @classmethod
    def of(cls, picture: Picture, rows: Sequence[BitLine]) -> Gutter:
        result = words.rounded_line(picture.rounded)
        names = ["term", "exact", *(row.name for row in (*rows, picture.total, result) if row)]
        exponents = ["exp", *(str(row.exponent) for row in rows if row.exponent is not None)]
        return cls(max(map(len, names)) * LETTER, max(map(len, exponents)) * LETTER)

    @property
    def name(self) -> float:
        return MARGIN + self.names

    @property
    def sign(self) -> float:
        return self.name + 10

    @property
    def exponent(self) -> float:
        return self.sign + 9 + self.exponents

    @property
    def cells(self) -> float:
        return self.exponent + 8

    @property
    def width(self) -> float:
        return self.cells - MARGIN


class BitsDrawing:
    """One picture on a sheet. `marked`: the signal at which two models diverge; `most`: the most rows of terms;
    `above`: the picture of the same step under another model, whose terms are not drawn again if all are equal."""

    def __init__(
        self, picture: Picture, sheet: Sheet, marked: Name | None, most: int = MOST_ROWS, above: Picture | None = None
    ) -> None:
        self.picture, self.sheet, self.marked = picture, sheet, marked
        differ = any(words.is_marked(marked, row.signals) for row in picture.rows)
        self.known = above is not None and above.rows == picture.rows and not differ
        self.rows, self.folded = fold(picture.rows, marked, most)
        self.gutter = Gutter.of(picture, self.rows)
        room = sheet.right - self.gutter.cells - (NOTES if sheet.roomy else 0.0)
        grids = (grid_of(picture, self.rows, columns) for columns in range(COLUMNS, LEAST_COLUMNS, -1))
        self.grid = next(grid for grid in grids if widest(grid) <= room + 0.01)
        self.result = words.rounded_line(picture.rounded)

    def draw(self) -> None:
        if first := words.first_line(self.picture):
            text, style, signals = first
            self._say(text, signals, "mp-special" if style == "special" else "")
        for panel in range(len(self.grid.panels)) if words.has_bits(self.picture) else ():
            self._panel(panel)
        if last := words.last_line(self.picture):
            self._say(*last)

    def _say(self, text: str, signals: Sequence[Name], css: str = "") -> None:
        self.sheet.paragraph(text, css, words.is_marked(self.marked, signals), indent=8)

    # -- a panel

    def _panel(self, panel: int) -> None:
        sheet = self.sheet
        self.places = self._places(panel)
        top, lines = sheet.y, sheet.layer()
        self._ruler(panel)
        for row in () if self.known else self.rows:
            self._row(row, row.name, note=words.row_note(row))
        for text in ["the same terms"] * (not panel) if self.known else self._others(panel):
            sheet.paragraph(text, "mp-soft", indent=self.gutter.width, crossed=True)
        sheet.line(MARGIN + 8, sheet.y + 2, self._end, sheet.y + 2)
        sheet.y += 6
        self._sums()
        self._verticals(lines, top, sheet.y)
        sheet.y += 6

    def _others(self, panel: int) -> list[str]:
        """Texts about terms that are not drawn one by one: with their sum in the first panel, else their number."""
        texts = [] if self.folded is None else [f"{len(self.folded.rows)} more terms" if panel else self.folded.text]
        return texts + [words.zeros_text(self.picture)] * bool(self.picture.zeros)

    def _places(self, panel: int) -> list[tuple[object, float]]:
        """The columns of a panel with their left edges."""
        places: list[tuple[object, float]] = []
        x = self.gutter.cells
        for column in self.grid.panels[panel]:
            places.append((column, x))
            x += _width(column)
        return places

    @property
    def _end(self) -> float:
        """The right edge of the panel's last column."""
        last, edge = self.places[-1]
        return edge + _width(last)

    def _ruler(self, panel: int) -> None:
        sheet, places = self.sheet, dict(self.places)
        maximum, unit = self.grid.maximum, self.grid.unit
        labels: list[Text] = []
        if maximum in places:
            if self.picture.largest is None:
                labels.append(Text(places[maximum] + 3, sheet.y + 10, f"max {maximum}", "mp-small"))
            if any(self.grid.is_carry(column) for column, _ in self.places):  # type: ignore[arg-type]
                labels.append(Text(places[maximum] - BAR_WIDTH - 1, sheet.y + 10, "carry", "mp-small", "end"))
        below = [x for column, x in self.places if isinstance(column, int) and unit is not None and column < unit]
        if below:
            labels.append(Text(below[0], sheet.y + 10, words.lost_text(self.picture), "mp-small"))
        sheet.y += 14 + LINE * max(0, sheet.labels(labels, MARGIN) - 1)
        sheet.text(self.gutter.name, "term", "mp-small", "end", y=sheet.y + 10)
        sheet.text(self.gutter.exponent, "exp", "mp-small", "end", y=sheet.y + 10)
        first = self.places[0][0]
        for _, place in self.grid.ticks(panel):
            tick = Text(places[place] + CELL / 2, sheet.y + 10, str(place), "mp-small", "middle")
            wide = max(0.0, tick.width - CELL) / 2  # moves a tick that would overlap a vertical line or "exp"
            sheet.add(replace(tick, x=tick.x + wide * ((place in (maximum, first)) - (place == unit))))
            sheet.line(places[place] + CELL / 2, sheet.y + 12, places[place] + CELL / 2, sheet.y + 16)
        sheet.line(self.gutter.cells, sheet.y + 16, self._end, sheet.y + 16)
        sheet.y += 18

    def _verticals(self, layer: ShapeGroup, top: float, bottom: float) -> None:
        """The alignment line left of the maximum exponent, and the line below which bits are truncated."""
        places = dict(self.places)
        for place, css in ((self.grid.maximum, "mp-align"), (self.grid.unit, "mp-unit")):
            if place in places:
                x = places[place] - BAR_WIDTH / 2 if css == "mp-align" else self._unit_line
                layer.shapes.append(Line(x, top + 2, x, bottom, css))

    @property
    def _unit_line(self) -> float:
        """The x of the line right of which bits are truncated; infinite in panels without the line."""
        places = dict(self.places)
        return places[self.grid.unit] + CELL + BAR_WIDTH / 2 if self.grid.unit in places else math.inf

    def _sums(self) -> None:
        picture, rounded = self.picture, self.picture.rounded
        if picture.unwrapped is not None:
            self._row(picture.unwrapped, "exact", note="wraps")
        if picture.complement is not None:
            self._row(replace(picture.complement, signals=()), "2's c", sign=" ")
        self._row(picture.total, "sum", note="lowest: sticky" if "sticky" in picture.total.marks else "")
        if picture.cut is not None:
            self._row(picture.cut, "cut", note="normalised, cut")
        if rounded is None or self.result is None:
            return
        self._brackets(words.rounding_spans(picture, rounded))
        self._row(self.result, self.result.name)

    def _brackets(self, spans: Sequence[tuple[int, int, str]]) -> None:
        """Draw brackets below the sum: the bits that rounding keeps, and those that decide the rounding."""
        sheet, labels = self.sheet, []
        for high, low, name in spans:
            edges = [x for column, x in self.places if isinstance(column, int) and low <= column <= high]
            if not edges:
                continue
            left, right, y = edges[0] + 1.5, edges[-1] + CELL - 1.5, sheet.y + 3
            for line in ((left, y - 2, left, y + 2), (left, y + 2, right, y + 2), (right, y + 2, right, y - 2)):
                sheet.line(*line)
            label = Text((left + right) / 2, y + 12, name, "mp-small", "middle")
            over = max(0.0, label.x + label.width / 2 + 2 - self._unit_line) if right < self._unit_line else 0.0
            labels.append(replace(label, x=label.x - over))  # so that the label does not cross the line
        sheet.y += LINE * sheet.labels(labels, self.gutter.cells)

    def _row(self, row: BitLine, name: str, note: str = "", sign: str = "") -> None:
        sheet, sign = self.sheet, sign or words.sign_of(row)
        marked = words.is_marked(self.marked, row.signals)
        if marked and (row.bits or row.cut):  # only panels that show bits of the row are marked
            marked = any(self._bit(row, column) for column, _ in self.places if isinstance(column, int))
        with sheet.group(_spoken(row, name, note, sign, marked)):
            below = sheet.mark(TALL + 1, self._end) if marked else 0.0
            sheet.text(self.gutter.name, name, "", "end")
            sheet.text(self.gutter.sign, "−" if sign == "-" else sign, "", "middle")
            if row.exponent is not None:
                sheet.text(self.gutter.exponent, str(row.exponent), "mp-soft", "end")
            for column, x in self.places:
                if column == GAP:
                    sheet.text(x + GAP_WIDTH / 2, "···", "mp-soft", "middle")
                elif isinstance(column, int):
                    self._cell(row, column, x)
            if note and not marked and sheet.roomy:
                sheet.text(self._end + 6, note, "mp-soft")
        sheet.y += TALL + 1 + below
        if note and not marked and not sheet.roomy:
            sheet.paragraph(f"({note})", "mp-soft", indent=self.gutter.width, crossed=True)

    def _bit(self, row: BitLine, place: int) -> tuple[str, str] | None:
        """The bit of a row at a place, and the bit's style; None where the row has no bit."""
        text, style = self.grid.cell(row, place)
        return None if style == FILL or not text.strip() else ("1" if text in "1x" else "0", style)

    def _cell(self, row: BitLine, place: int, x: float) -> None:
        if (cell := self._bit(row, place)) is None:
            self.sheet.line(x + CELL / 2 - 1, self.sheet.y + 9, x + CELL / 2 + 1, self.sheet.y + 9)
            return
        bit, style = cell
        self.sheet.cell(x, bit, {CARRY: "carry", CUT: "cut"}.get(style, ""))


def _spoken(row: BitLine, name: str, note: str, sign: str, marked: bool) -> str:
    """A line of bits in words, for a screen reader."""
    parts = [name, {"-": "minus", "+": "plus"}.get(sign, "")]
    if row.exponent is not None:
        parts.append(f"exponent {row.exponent}")
    if row.bits:
        parts.append(f"bits {row.bits} from 2^{row.first} down")
    if row.cut:
        parts.append(f"truncated {row.cut} from 2^{row.cut_first} down")
    parts += [note, "the models differ here" if marked else ""]
    return ", ".join(part for part in parts if part)
