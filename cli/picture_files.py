"""--svg, --pdf, --tikz and --width: one drawing in the formats of pages and papers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import Millimetres, OwnFile
from mmaprobe.cli.options import Decorator, refuse, say
from mmaprobe.smtmodel.base.files import write_whole

if TYPE_CHECKING:
    from mmaprobe.reports.drawings.sheet import Drawing

OTHERS = (".svg", ".pdf", ".tex", ".png", ".jpg", ".jpeg", ".eps")  # suffixes that say a picture's format


@dataclass(frozen=True)
class PictureFiles:
    """The files that were asked for, and the width in millimetres."""

    svg: Path | None
    pdf: Path | None
    tikz: Path | None
    width: float | None

    def __bool__(self) -> bool:
        return any((self.svg, self.pdf, self.tikz))

    def write(self, draw: Callable[[float | None], Drawing]) -> None:
        """Lay the drawing out by `draw` (width in pixels; None: natural width), write every file and say its name.
        Raises MmaprobeError."""
        from mmaprobe.reports.drawings.sheet import pixels

        if not self:
            return
        drawing = draw(None if self.width is None else pixels(self.width))
        if self.svg is not None:
            from mmaprobe.reports.drawings.svg import svg_of

            write_whole(self.svg, svg_of(drawing, millimetres=self.width) + "\n")
        if self.tikz is not None:
            from mmaprobe.reports.drawings.tikz import tikz_of

            write_whole(self.tikz, tikz_of(drawing, millimetres=self.width))
        if self.pdf is not None:
            from mmaprobe.reports.drawings.pdf import pdf_of

            write_whole(self.pdf, pdf_of(drawing, millimetres=self.width))
        for path in filter(None, (self.svg, self.tikz, self.pdf)):
            say(str(path))


def _picture_option(name: str, ending: str, what: str) -> Decorator:
    file = OwnFile(ending, OTHERS, dir_okay=False)
    return click.option(name, type=file, metavar="FILE", help=f"Draw it into this {what}")


def picture_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options for pictures to a command, which gets them as `pictures`."""

    @_picture_option("--svg", ".svg", "SVG file, for web pages.")
    @_picture_option("--pdf", ".pdf", "PDF file, for papers (needs matplotlib).")
    @_picture_option("--tikz", ".tex", "file as a tikzpicture, for LaTeX.")
    @click.option(
        "--width", type=Millimetres(), metavar="MM",
        help="The width of the drawing in millimetres, with text of 7 points: 85 is a column of a paper.",
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(
        *arguments: Any, svg: Path | None, pdf: Path | None, tikz: Path | None, width: float | None, **others: Any
    ) -> Any:
        pictures = PictureFiles(svg, pdf, tikz, width)
        if not pictures:
            refuse("it is that of --svg, --pdf or --tikz", "width")
        return command(*arguments, pictures=pictures, **others)

    return wrapped
