"""--svg, --pdf, --tikz and --width: one drawing in the formats of pages and papers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import FileName, Millimetres
from mmaprobe.cli.options import refuse
from mmaprobe.smtmodel.base.files import write_whole

if TYPE_CHECKING:
    from mmaprobe.reports.drawings.sheet import Drawing

OTHERS = (".svg", ".pdf", ".tex", ".png", ".jpg", ".jpeg", ".eps")  # suffixes that say of which format a picture is


class PictureFile(FileName):
    """A picture to write, under a name that says of no other format than its own."""

    def __init__(self, ending: str) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix.lower() in OTHERS and path.suffix.lower() != self.ending:
            self.fail(f"{path}: a name that ends in {self.ending} is needed.", param, ctx)
        return path


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
        """Lay the drawing out, for a width in pixels or (None) for its natural width, and write every file. Raises
        MmaprobeError."""
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


def picture_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options for pictures to a command, which gets them as `pictures`."""

    @click.option("--svg", type=PictureFile(".svg"), metavar="FILE", help="Draw it into this SVG file, for web pages.")
    @click.option(
        "--pdf",
        type=PictureFile(".pdf"),
        metavar="FILE",
        help="Draw it into this PDF file, for papers (needs matplotlib).",
    )
    @click.option(
        "--tikz", type=PictureFile(".tex"), metavar="FILE", help="Draw it into this file as a tikzpicture, for LaTeX."
    )
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
