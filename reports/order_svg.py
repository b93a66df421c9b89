"""A summation tree as SVG: its outline with a box for each step and each run of terms."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from queries.order.text import Outline
from reports.sheet import LETTER, LINE, MARGIN, Sheet, document

STEP, ROOM = 22.0, 8.0  # how far a step's terms stand right of it, and the space around the text of a box
TALL = LINE + 4


def order_svg(outline: Outline, title: str, notes: Sequence[str]) -> str:
    """The drawing as a document of its own. `notes` stand below the tree."""
    longest = max([_width(outline, 0.0), *(len(text) * LETTER for text in (title, *notes))])
    sheet = Sheet(longest + 2 * MARGIN + 2 * ROOM, "order")
    sheet.paragraph(title, "mp-title")
    sheet.y += ROOM
    _draw(outline, sheet, MARGIN)
    sheet.y += ROOM
    for note in notes:
        sheet.paragraph(note)
    description = "\n".join([*outline.lines(), *notes])
    return ET.tostring(document([sheet], title, description, 1, styled=True), encoding="unicode") + "\n"


def _width(outline: Outline, indent: float) -> float:
    own = indent + len(outline.text) * LETTER + 2 * ROOM
    return max([own, *(_width(part, indent + STEP) for part in outline.below)])


def _draw(outline: Outline, sheet: Sheet, x: float) -> float:
    """Draws at the cursor; gives the height of the middle of its own box."""
    middle = sheet.y + TALL / 2
    sheet.add(
        "rect", "mp-line", x=x, y=sheet.y, width=len(outline.text) * LETTER + 2 * ROOM, height=TALL, rx=3, fill="none"
    )
    sheet.text(x + ROOM, outline.text, y=sheet.y + 15)
    sheet.y += TALL + 4
    trunk, ends = x + STEP / 2, []
    for part in outline.below:
        ends.append(_draw(part, sheet, x + STEP))
        sheet.line(trunk, ends[-1], x + STEP, ends[-1])
    if ends:
        sheet.line(trunk, middle + TALL / 2, trunk, ends[-1])
    return middle
