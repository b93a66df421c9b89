"""A drawing of a summation tree: its outline, with a box for each step and each run of terms."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from mmaprobe.queries.order.text import Outline
from mmaprobe.reports.drawings.sheet import LETTER, LINE, MARGIN, SIZE, TITLE, Box, Drawing, Sheet

STEP, ROOM = 22.0, 8.0  # indentation of a step's terms, and the space around the text of a box
NATURAL = 76  # characters to which texts are wrapped where no width is given
LEAST = 18  # least number of characters on a line of a deeply nested box


def order_drawing(outline: Outline, title: str, notes: Sequence[str], width: float | None = None) -> Drawing:
    """A drawing of an outline, with `notes` below the tree. `width` in pixels, to which texts are wrapped; None: the
    natural width."""
    longest = [
        *(min(len(text), NATURAL) * LETTER for text in notes), len(title) * LETTER * TITLE / SIZE, _width(outline, 0.0),
    ]  # fmt: skip
    sheet = Sheet(max(longest) + 2 * MARGIN + 2 if width is None else width)
    sheet.paragraph(title, "mp-title")
    sheet.y += ROOM
    _draw(outline, sheet, MARGIN)
    sheet.y += ROOM
    for note in notes:
        sheet.paragraph(note)
    return Drawing([sheet], title, "\n".join([*outline.lines(), *notes]), prefix="order")


def _width(outline: Outline, indent: float) -> float:
    own = indent + min(len(outline.text), NATURAL) * LETTER + 2 * ROOM
    return max([own, *(_width(part, indent + STEP) for part in outline.below)])


def _draw(outline: Outline, sheet: Sheet, x: float) -> float:
    """Draw an outline at the sheet's current position. Returns the y of the middle of the root's box."""
    most = max(LEAST, int((sheet.right - x - 2 * ROOM + 0.01) / LETTER))
    lines = textwrap.wrap(outline.text, most, break_on_hyphens=False)
    top, tall = sheet.y, len(lines) * LINE + 4
    sheet.add(Box(x, top, max(map(len, lines)) * LETTER + 2 * ROOM, tall, "mp-line", radius=3))
    for number, line in enumerate(lines):
        sheet.text(x + ROOM, line, y=top + 15 + number * LINE)
    sheet.y += tall + 4
    trunk, ends = x + STEP / 2, []
    for part in outline.below:
        ends.append(_draw(part, sheet, x + STEP))
        sheet.line(trunk, ends[-1], x + STEP, ends[-1])
    if ends:
        sheet.line(trunk, top + tall, trunk, ends[-1])
    return top + tall / 2
