"""A drawing as shapes, laid out from the top down: text, lines, boxes and cells of bits.

Writers convert the same shapes to SVG, PDF and TikZ (svg.py, pdf.py, tikz.py). Lengths are in pixels; common text has a
font size of 12 pixels. All text is monospaced, so that its width is known without a font.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

LETTER = 7.25  # width of a character at 12 pixels
SIZE, TITLE, SMALL = 12.0, 13.0, 10.0  # font sizes of common text, titles and captions
LINE = 18.0  # height of a line of text
CELL, TALL = 13.0, 17.0  # width and height of a bit
MARGIN = 14.0
MARK = "◀ differs here"
ALONE = "◀ only here"  # mark of a step that only one evaluation has
NARROWEST = 400.0  # the least width of a layout, about a column of a paper
#: millimetres per pixel, for common text of 7 points as in papers' captions
MILLIMETRES = 7 / 12 * 25.4 / 72.27
#: width of a drawing in a page; in a narrower drawing, notes stand below their shapes
ROOMY = 660.0


@dataclass(frozen=True)
class Text:
    """A line of text with its baseline at `y`. `anchor`: which point of the text is at `x`: start, middle or end;
    `css`: the text's class."""

    x: float
    y: float
    text: str
    css: str = ""
    anchor: str = "start"

    @property
    def size(self) -> float:
        return TITLE if "mp-title" in self.css else SMALL if "mp-small" in self.css else SIZE

    @property
    def width(self) -> float:
        return len(self.text) * LETTER * self.size / SIZE

    @property
    def left(self) -> float:
        return self.x - {"start": 0.0, "middle": self.width / 2, "end": self.width}[self.anchor]


@dataclass(frozen=True)
class Box:
    """A rectangle: its upper left corner, its size, its class, and the radius of its corners."""

    x: float
    y: float
    width: float
    height: float
    css: str
    radius: float = 0.0
    hatched: bool = False


@dataclass(frozen=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    css: str = "mp-line"


@dataclass
class ShapeGroup:
    """Shapes that a screen reader reads as `label`; without a label, an empty group to be filled later."""

    label: str = ""
    shapes: list[Shape] = field(default_factory=list)


Shape = Text | Box | Line | ShapeGroup


def shapes_of(group: ShapeGroup) -> Iterator[Text | Box | Line]:
    """The shapes of a group and of its groups, in the order in which they are painted."""
    for shape in group.shapes:
        if isinstance(shape, ShapeGroup):
            yield from shapes_of(shape)
        else:
            yield shape


class Sheet:
    """A column of a drawing, `width` pixels wide. `y`: the position of the next shape."""

    def __init__(self, width: float, mark: str = MARK) -> None:
        self.width, self.y, self._mark = width, MARGIN, mark
        self.root = ShapeGroup()
        self._open = [self.root]

    @property
    def roomy(self) -> bool:
        """Whether notes have room beside their shapes."""
        return self.width >= ROOMY

    @property
    def right(self) -> float:
        return self.width - MARGIN

    def add(self, shape: Shape) -> None:
        """Add a shape to the innermost open group."""
        self._open[-1].shapes.append(shape)

    def layer(self) -> ShapeGroup:
        """An empty group below all later shapes. A caller adds shapes to it once their positions are known."""
        group = ShapeGroup()
        self.add(group)
        return group

    @contextmanager
    def group(self, label: str) -> Iterator[None]:
        """A block whose shapes a screen reader reads as one `label`."""
        group = ShapeGroup(label)
        self.add(group)
        self._open.append(group)
        yield
        self._open.pop()

    def text(self, x: float, text: str, css: str = "", anchor: str = "start", y: float | None = None) -> None:
        """Add a line of text with its baseline at `y`, by default on the line at the sheet's current position."""
        self.add(Text(x, self.y + 13 if y is None else y, text, css, anchor))

    def paragraph(
        self, text: str, css: str = "", marked: bool = False, indent: float = 0.0, crossed: bool = False
    ) -> None:
        """Add wrapped text. `marked`: the text is framed as a difference; `crossed`: the text gets a background,
        since lines of the drawing cross it."""
        letter = LETTER * TITLE / SIZE if css == "mp-title" else LETTER
        x = MARGIN + indent
        room = self.right - x - (self._words + 2 * LETTER if marked and self.roomy else 0.0)
        most = int(room / letter)
        if max(map(len, text.split()), default=0) > most:
            text = text.replace("@", " @")  # a model's name is broken where its changes begin, not within a word
        lines = textwrap.wrap(text, most, break_on_hyphens=False) or [""]
        below = self.mark(len(lines) * LINE, x + max(map(len, lines)) * letter) if marked else 0.0
        for line in lines:
            if crossed:
                self.add(Box(x - 2, self.y + 2, len(line) * LETTER + 6, LINE, "mp-paper"))  # below a frame
            self.text(x, line, css)
            self.y += LINE
        self.y += below

    def labels(self, texts: Sequence[Text], left: float) -> int:
        """Add captions at their positions, shifted to stay between `left` and the right margin. A caption that would
        overlap another moves to a further line. Captions have a background, since lines of the drawing may cross them.
        Returns the number of lines, each LINE high."""
        ends: list[float] = []
        for label in sorted(texts, key=lambda label: label.left):
            x = max(left, min(label.left, self.right - label.width))
            row = next((row for row, end in enumerate(ends) if x >= end + 4), len(ends))
            ends[row : row + 1] = [x + label.width]
            y = label.y + row * LINE
            self.add(Box(x - 1, y - label.size + 1, label.width + 2, label.size + 1, "mp-paper"))
            self.add(Text(x, y, label.text, label.css))
        return len(ends)

    _words = len(MARK) * LETTER  # width of the words of a mark

    def mark(self, height: float, taken: float) -> float:
        """Add the frame of a difference, `height` high, and its words at the right margin. The words stand on the first
        line if the text, which extends to x = `taken`, leaves room, else on a further line. Returns the height of the
        further line, or 0."""
        below = 0.0 if taken + LETTER + self._words <= self.right else LINE
        self.add(Box(MARGIN - 6, self.y, self.right - MARGIN + 12, height + below, "mp-mark", radius=3))
        self.text(self.right, self._mark, "mp-mark", "end", self.y + 13 + (height if below else 0.0))
        return below

    def cell(self, x: float, bit: str, kind: str) -> None:
        """Add a cell with a bit at the current position. `kind`: "" (a bit kept), "carry", or "cut" (truncated)."""
        css = f"mp-{kind}{bit}" if kind else "mp-one" if bit == "1" else "mp-zero"
        self.add(Box(x + 0.5, self.y + 0.5, CELL - 1, TALL - 1, css, radius=1.5, hatched=kind == "cut"))
        if kind == "cut":  # no hatching behind the digit
            self.add(Box(x + (CELL - LETTER) / 2 - 0.5, self.y + 2.5, LETTER + 1, SIZE, "mp-cut-ground"))
        self.text(x + CELL / 2, bit, css, "middle", self.y + 13)

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str = "mp-line") -> None:
        self.add(Line(x1, y1, x2, y2, css))


@dataclass(frozen=True)
class Drawing:
    """Sheets side by side in rows of `columns` sheets. `prefix`: the prefix of element ids, which differs between the
    drawings of a page."""

    sheets: Sequence[Sheet]
    title: str
    description: str
    columns: int = 1
    prefix: str = "mp"

    @property
    def places(self) -> list[tuple[float, float]]:
        """The upper left corner of each sheet."""
        corners, x, y, row = [], 0.0, 0.0, 0.0
        for index, sheet in enumerate(self.sheets):
            if index and index % self.columns == 0:
                x, y, row = 0.0, y + row, 0.0
            corners.append((x, y))
            x, row = x + sheet.width, max(row, sheet.y + MARGIN)
        return corners

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        placed = list(zip(self.places, self.sheets, strict=True))
        return max(x + sheet.width for (x, _), sheet in placed), max(y + sheet.y + MARGIN for (_, y), sheet in placed)


def pixels(millimetres: float) -> float:
    """The width in pixels of a drawing that is `millimetres` wide if common text has 7 points. Raises
    ParameterError."""
    from mmaprobe.smtmodel.base.errors import ParameterError

    if millimetres / MILLIMETRES < NARROWEST:
        least = int(NARROWEST * MILLIMETRES) + 1
        raise ParameterError("--width", f"{millimetres:g} mm is too narrow: {least} or more")
    return millimetres / MILLIMETRES
