"""An SVG drawing filled from the top: text, lines and cells of bits, built as elements, so that nothing needs escaping.

Lengths are in CSS pixels. All text is monospaced, so that its width is known without a browser.
"""

from __future__ import annotations

import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

SVG = "http://www.w3.org/2000/svg"
LETTER = 7.25  # width of a character at 12 pixels
LINE = 18.0  # height of a line of text
CELL, TALL = 13.0, 17.0  # width and height of a bit
MARGIN = 14.0
MARK = "◀ differs here"

ET.register_namespace("", SVG)


def style_sheet() -> str:
    """The styles of drawings, whose colours are variables for light and dark screens."""
    return files("reports").joinpath("templates/picture.css").read_text(encoding="utf-8")


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Sheet:
    """A column of a drawing, `width` pixels wide. `y` is where the next thing goes."""

    def __init__(self, width: float, prefix: str) -> None:
        self.width, self.prefix, self.y = width, prefix, MARGIN
        self.root = ET.Element("g")
        self._parents = [self.root]

    def add(self, tag: str, css: str = "", **attributes: float | str) -> ET.Element:
        """An element in the group that is open. Underscores in names of attributes stand for hyphens."""
        texts = {name.replace("_", "-"): v if isinstance(v, str) else number(v) for name, v in attributes.items()}
        if css:
            texts["class"] = css
        return ET.SubElement(self._parents[-1], tag, texts)

    @contextmanager
    def group(self, label: str) -> Iterator[ET.Element]:
        """A group that a screen reader reads as `label`, without what is in it."""
        element = self.add("g", role="img", aria_label=label)
        self._parents.append(element)
        yield element
        self._parents.pop()

    def text(self, x: float, text: str, css: str = "", anchor: str = "start", y: float | None = None) -> None:
        """A line of text whose baseline is at `y`, or in the middle of the line at the cursor."""
        element = self.add("text", css, x=x, y=self.y + 13 if y is None else y, text_anchor=anchor)
        element.text = text

    def paragraph(
        self, text: str, css: str = "", marked: bool = False, indent: float = 0.0, crossed: bool = False
    ) -> None:
        """Wrapped text, with the mark of a difference where there is one; on paper of its own where lines would cross
        it."""
        room = self.width - 2 * MARGIN - indent - (len(MARK) + 2) * LETTER * marked
        letter = LETTER * (13 / 12 if css == "mp-title" else 1)
        lines = textwrap.wrap(text, int(room / letter), break_on_hyphens=False) or [""]
        if marked:
            self.mark(len(lines) * LINE)
        for line in lines:
            x = MARGIN + indent
            if crossed:
                self.add("rect", "mp-paper", x=x - 4, y=self.y, width=len(line) * LETTER + 8, height=LINE)
            self.text(x, line, css)
            self.y += LINE

    def mark(self, height: float) -> None:
        """The frame around what differs, and its words on the right."""
        self.add("rect", "mp-mark", x=MARGIN - 6, y=self.y, width=self.width - 2 * MARGIN + 12, height=height, rx=3)
        self.text(self.width - MARGIN, MARK, "mp-mark", "end")

    def cell(self, x: float, bit: str, kind: str) -> None:
        """A bit in its cell. `kind`: "" for one that counts, "carry", or "cut"."""
        css = f"mp-{kind}{bit}" if kind else "mp-one" if bit == "1" else "mp-zero"
        box = self.add("rect", css, x=x + 0.5, y=self.y + 0.5, width=CELL - 1, height=TALL - 1, rx=1.5)
        if kind == "cut":
            box.set("fill", f"url(#{self.prefix}-hatch)")
        self.text(x + CELL / 2, bit, css, "middle", self.y + 13)

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str = "mp-line") -> None:
        self.add("line", css, x1=x1, y1=y1, x2=x2, y2=y2)


def document(sheets: list[Sheet], title: str, description: str, columns: int, styled: bool) -> ET.Element:
    """The whole drawing: sheets beside each other in `columns`, or below each other."""
    prefix = sheets[0].prefix
    places, x, y, row = [], 0.0, 0.0, 0.0
    for index, sheet in enumerate(sheets):
        if index and index % columns == 0:
            x, y, row = 0.0, y + row, 0.0
        places.append((x, y))
        x, row = x + sheet.width, max(row, sheet.y + MARGIN)
    width, height = max(px + sheet.width for (px, _), sheet in zip(places, sheets, strict=True)), y + row
    root = ET.Element("svg", {
        "xmlns": SVG, "viewBox": f"0 0 {number(width)} {number(height)}", "width": number(width),
        "height": number(height), "class": "mp", "role": "graphics-document", "aria-labelledby": f"{prefix}-title",
        "aria-describedby": f"{prefix}-desc",
    })  # fmt: skip
    ET.SubElement(root, "title", id=f"{prefix}-title").text = title
    ET.SubElement(root, "desc", id=f"{prefix}-desc").text = description
    if styled:
        ET.SubElement(root, "style").text = style_sheet()
    _hatch(ET.SubElement(root, "defs"), prefix)
    ET.SubElement(root, "rect", {"class": "mp-paper", "width": "100%", "height": "100%"})
    for (px, py), sheet in zip(places, sheets, strict=True):
        sheet.root.set("transform", f"translate({number(px)} {number(py)})")
        root.append(sheet.root)
    return root


def _hatch(parent: ET.Element, prefix: str) -> None:
    pattern = ET.SubElement(parent, "pattern", {
        "id": f"{prefix}-hatch", "width": "5", "height": "5", "patternUnits": "userSpaceOnUse",
        "patternTransform": "rotate(45)",
    })  # fmt: skip
    ET.SubElement(pattern, "rect", {"class": "mp-cut-ground", "width": "5", "height": "5"})
    ET.SubElement(pattern, "line", {"class": "mp-cut-hatch", "x1": "0", "y1": "0", "x2": "0", "y2": "5"})
