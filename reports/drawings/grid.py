"""Rows of bits under one ruler of exponents, as text of a given width."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from mmaprobe.reports.words import rounded_line
from mmaprobe.smtmodel.explain.explanation import BitLine, Picture

Paint = Callable[[str, str], str]

LEAST_GAP = 6  # the most columns in a row without a set bit that are shown; more become a gap
LONG_GAP = 30  # LEAST_GAP among kept bits, if the line has room for so many columns
TICK = 5  # places divisible by this are numbered
LEAD = 4  # characters before the first column, for the first column's number
Column = int | Literal["bar", "gap"]
BAR: Literal["bar"] = "bar"
GAP: Literal["gap"] = "gap"

#: the kinds of cells: styles of `Canvas.paint`
FILL, BIT, CARRY, CUT = "fill", "", "carry", "cut"


@dataclass(frozen=True)
class Grid:
    """The columns of a picture of bits. A column is a place (the exponent of a bit, in descending order), a bar, or a
    gap for places without a set bit. A bar stands before `maximum`, the place of the largest exponent, and another
    after `unit`, the lowest place kept. A picture too wide for a line is split into panels."""

    panels: tuple[tuple[Column, ...], ...]
    maximum: int | None
    unit: int | None

    def labels(self, panel: int) -> str:
        """The numbers above the ruler, each with its last digit over its column, after LEAD characters on the left."""
        text = ""
        for position, column in self.ticks(panel):
            text = f"{text:<{LEAD + position + 1 - len(str(column))}}{column}"
        return text

    def ruler(self, panel: int) -> str:
        ticks = {position for position, _ in self.ticks(panel)}
        text = ""
        for column in self.panels[panel]:
            if not isinstance(column, int):
                text += "|" if column == BAR else " ~ "
            elif self.is_carry(column):
                text += "c"
            else:
                text += "+" if len(text) in ticks else "-"
        return text

    def ticks(self, panel: int) -> list[tuple[int, int]]:
        """The columns that are numbered, each as its position in characters and its place."""
        placed: list[tuple[int, int]] = []
        position, end, after_gap = 0, -1 - LEAD, not (self.panels[panel] and self.is_carry(self.panels[panel][0]))
        for column in self.panels[panel]:
            if isinstance(column, int):
                fits = position + 1 - len(str(column)) > end
                if fits and (column % TICK == 0 or after_gap or column == self.maximum):
                    placed.append((position, column))
                    end = position + 1
                after_gap = False
            else:
                after_gap = after_gap or column == GAP
            position += 3 if column == GAP else 1
        return placed

    def is_carry(self, place: Column) -> bool:
        return isinstance(place, int) and self.maximum is not None and place > self.maximum

    def bits(self, row: BitLine, panel: int, paint: Paint) -> str:
        """The bits of a row as text, painted by `cell`'s styles."""
        cells: list[tuple[str, str]] = []
        for column in self.panels[panel]:
            if not isinstance(column, int):
                cells.append(("|" if column == BAR else " ~ ", FILL))
            else:
                cells.append(self.cell(row, column))
        while cells and not cells[-1][0].strip():
            cells.pop()
        runs = ((style, "".join(text for text, _ in run)) for style, run in groupby(cells, key=lambda cell: cell[1]))
        return "".join(paint(text, style) for style, text in runs)

    def cell(self, row: BitLine, place: int) -> tuple[str, str]:
        """The character of a row at a place, and the character's style. A bit that this row truncates at a place where
        other rows keep theirs is `x` if set and `.` if clear."""
        if not row.bits and not row.cut and place == (self.panels[-1][-1] if self.unit is None else self.unit):
            return "0", BIT
        if row.bits and row.last <= place <= row.first:
            return row.bits[row.first - place], CARRY if self.is_carry(place) else BIT
        kept = self.unit is None or place >= self.unit
        lost = row.cut and row.cut_first - len(row.cut) < place <= row.cut_first
        if lost:
            bit = row.cut[row.cut_first - place]
            return ("x" if bit == "1" else ".") if kept else bit, CUT
        if not kept:
            return ("0" if row.cut and place > row.cut_first else " "), CUT
        return ".", FILL

    def marker(self, panel: int, spans: Iterable[tuple[int, int, str]]) -> str:
        """A line of marks for spans, each a highest place, a lowest place and a character; a bar or gap repeats the
        previous character."""
        text, before = "", " "
        ranges = list(spans)
        for column in self.panels[panel]:
            if isinstance(column, int):
                before = next((mark for high, low, mark in ranges if low <= column <= high), " ")
                text += before
            else:
                text += before * (3 if column == GAP else 1)
        return text.rstrip()


def grid_of(picture: Picture, terms: Iterable[BitLine], width: int) -> Grid:
    """The columns for a picture's sums and for those of its terms that have rows, split into panels of at most `width`
    characters."""
    sums = (picture.unwrapped, picture.complement, picture.cut, rounded_line(picture.rounded))
    rows = [*terms, picture.total, *(row for row in sums if row)]
    places = [place for row in rows if row.bits for place in (row.first, row.last)]
    places += [place for row in rows if row.cut for place in (row.cut_first, row.cut_first - len(row.cut) + 1)]
    places += [place for place in (picture.maximum, picture.unit) if place is not None]
    if not places:
        return Grid((), picture.maximum, picture.unit)
    filled = _filled(rows)
    for least in (LONG_GAP, LEAST_GAP):
        columns = _columns(picture, max(places), min(places), filled, least)
        if _length(columns) <= width:
            break
    return Grid(tuple(_split(columns, width)), picture.maximum, picture.unit)


def _filled(rows: Iterable[BitLine]) -> set[int]:
    """The places where a row has a set bit, kept or truncated."""
    places: set[int] = set()
    for row in rows:
        for bits, first in ((row.bits, row.first), (row.cut, row.cut_first)):
            places.update(first - index for index, bit in enumerate(bits) if bit == "1")
    return places


def _columns(picture: Picture, top: int, bottom: int, filled: set[int], least: int) -> list[Column]:
    maximum, unit = picture.maximum, picture.unit
    ends = {place for place in (maximum, unit) if place is not None}
    columns: list[Column] = []
    dull: list[Column] = []

    def flush(kept: bool = True) -> None:
        """Append the pending columns without a set bit: as they are, or as one gap if there are many."""
        columns.extend([GAP] if len(dull) > (least if kept else LEAST_GAP) else dull)
        dull.clear()

    for place in range(top, bottom - 1, -1):
        if place == maximum and place != top:
            flush()
            columns.append(BAR)
        if unit is not None and place == unit - 1:
            flush()
            columns.append(BAR)
        if place not in filled and place not in ends:
            dull.append(place)
        else:
            flush(unit is None or place >= unit)
            columns.append(place)
    flush(unit is None)
    return columns


def _length(columns: Iterable[Column]) -> int:
    return sum(3 if column == GAP else 1 for column in columns)


def _split(columns: list[Column], width: int) -> Iterable[tuple[Column, ...]]:
    line: list[Column] = []
    for column in columns:
        if _length(line) + _length([column]) > width:
            yield tuple(line)
            line = []
        line.append(column)
    yield tuple(line)
