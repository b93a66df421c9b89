"""A drawing as PDF with embedded fonts, as journals require.

This is the only writer of drawings that imports matplotlib, which embeds DejaVu Sans Mono, a font with the character
width that the layout assumes.
"""

from __future__ import annotations

import io
from typing import Any

from mmaprobe.reports.drawings.sheet import MILLIMETRES, Box, Drawing, Line, Text, shapes_of
from mmaprobe.reports.drawings.styles import Look, look_of
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.base.wording import install_command

INCH = 25.4
FONT = "DejaVu Sans Mono"
ALIGNED = {"start": "left", "middle": "center", "end": "right"}


def pdf_of(drawing: Drawing, *, millimetres: float | None = None) -> bytes:
    """The drawing as a PDF page of the drawing's size. `millimetres`: the page's width; None: the width at which common
    text has 7 points. Raises IncompleteError if matplotlib is missing."""
    try:
        import matplotlib
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.figure import Figure
    except ImportError:
        raise IncompleteError(f"a PDF needs matplotlib ({install_command('plots')})") from None
    width, height = drawing.size
    scale = (millimetres / width if millimetres else MILLIMETRES) / INCH  # inches per pixel
    with matplotlib.rc_context({"pdf.fonttype": 42, "hatch.linewidth": 1.1 * scale * 72}):
        figure = Figure(figsize=(width * scale, height * scale))
        FigureCanvasPdf(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        for order, (place, sheet) in enumerate(zip(drawing.places, drawing.sheets, strict=True)):
            painter = _Painter(axes, place, scale * 72, order * 100_000)
            for shape in shapes_of(sheet.root):
                painter.paint(shape)
        stream = io.BytesIO()
        figure.savefig(stream, format="pdf", metadata={"Title": drawing.title, "CreationDate": None})
    return stream.getvalue()


class _Painter:
    """Draws the shapes of a sheet on the axes, later shapes over earlier ones. `place`: the sheet's upper left corner;
    `points`: points per pixel; `order`: matplotlib's zorder below the sheet's shapes."""

    def __init__(self, axes: Any, place: tuple[float, float], points: float, order: int) -> None:
        self.axes, self.points, self.order = axes, points, order
        self.x, self.y = place

    def paint(self, shape: Text | Box | Line) -> None:
        self.order += 1
        match shape:
            case Text():
                self._text(shape)
            case Box():
                self._box(shape)
            case Line():
                look = look_of("line", shape.css)
                self.axes.plot(
                    [self.x + shape.x1, self.x + shape.x2], [self.y + shape.y1, self.y + shape.y2],
                    color=look.stroke, linewidth=look.width * self.points, zorder=self.order,
                    linestyle=(0, tuple(length / look.width for length in look.dash)) if look.dash else "-",
                    solid_capstyle="butt", dash_capstyle="butt",
                )  # fmt: skip

    def _text(self, shape: Text) -> None:
        look = look_of("text", shape.css)
        self.axes.text(
            self.x + shape.x, self.y + shape.y, shape.text.replace("$", r"\$"), color=look.fill, family=FONT,
            fontsize=shape.size * self.points, weight="bold" if look.bold else "normal", ha=ALIGNED[shape.anchor],
            va="baseline", zorder=self.order,
        )  # fmt: skip

    def _box(self, shape: Box) -> None:
        from matplotlib.patches import FancyBboxPatch, Rectangle

        look = look_of("rect", shape.css)
        place, size = (self.x + shape.x, self.y + shape.y), (shape.width, shape.height)
        if shape.hatched:
            look = Look(look_of("rect", "mp-cut-ground").fill, look.stroke, look.width)
            ink = look_of("line", "mp-cut-hatch").stroke
            self.axes.add_patch(Rectangle(place, *size, facecolor=look.fill, edgecolor=ink, hatch="/////",
                                          linewidth=0, zorder=self.order - 0.5))  # fmt: skip
        style = f"round,pad=0,rounding_size={shape.radius}" if shape.radius else "square,pad=0"
        self.axes.add_patch(FancyBboxPatch(
            place, *size, boxstyle=style, facecolor="none" if shape.hatched else look.fill or "none",
            edgecolor=look.stroke or "none", linewidth=look.width * self.points if look.stroke else 0,
            zorder=self.order,
        ))  # fmt: skip
