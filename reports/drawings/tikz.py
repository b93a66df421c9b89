r"""A drawing as TikZ, for papers: a tikzpicture of lines, boxes and text in the document's typewriter font.

The document needs `\usepackage{tikz}` and `\usetikzlibrary{patterns}`. Knuth's typewriter font has no bold face and few
sizes: titles are then light, and LaTeX warns of replaced sizes. `\usepackage[T1]{fontenc}\usepackage{lmodern}` has
bold and all sizes.
"""

from __future__ import annotations

from mmaprobe.reports.drawings.sheet import MILLIMETRES, Box, Drawing, Line, Text, shapes_of
from mmaprobe.reports.drawings.styles import Look, look_of
from mmaprobe.reports.drawings.svg import number
from mmaprobe.smtmodel.base.escapes import one_line

PACKAGES = r"% needs \usepackage{tikz} and \usetikzlibrary{patterns}"
POINTS = 72.27 / 25.4  # per millimetre
ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
#: characters that are special in TeX, or missing in its typewriter font
TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "-": "{-}", "−": "$-$", "±": r"$\pm$", "·": r"$\cdot$",
    "◀": r"$\triangleleft$", " ": r"\ ", "≤": r"$\leq$", "×": r"$\times$",
}  # fmt: skip


class _Palette(dict[str, str]):
    """The names of colours in TikZ, numbered in the order of use."""

    def named(self, colour: str | None) -> str:
        letter = len(self)
        return self.setdefault(colour or "#000000", "mmaprobe" + chr(ord("A") + letter % 26) * (letter // 26 + 1))


def tikz_of(drawing: Drawing, *, millimetres: float | None = None) -> str:
    """The drawing as a tikzpicture. `millimetres`: the picture's width; None: the width at which common text has 7
    points."""
    width, _ = drawing.size
    scale = (millimetres / width if millimetres else MILLIMETRES) * POINTS  # points per pixel
    body: list[str] = []
    palette = _Palette()
    for (x, y), sheet in zip(drawing.places, drawing.sheets, strict=True):
        body.append(rf"\begin{{scope}}[shift={{({number(x)},{number(y)})}}]")
        for shape in shapes_of(sheet.root):
            body += _lines(shape, scale, palette)
        body.append(r"\end{scope}")
    start = [
        PACKAGES,
        f"% {one_line(drawing.title).encode('ascii', 'replace').decode()}",
        rf"\begin{{tikzpicture}}[x={scale:.5f}pt,y=-{scale:.5f}pt,inner sep=0pt,outer sep=0pt]",
    ]
    defined = [rf"\definecolor{{{name}}}{{HTML}}{{{colour[1:].upper()}}}" for colour, name in palette.items()]
    return "\n".join([*start, *defined, *body, r"\end{tikzpicture}", ""])


def _lines(shape: Text | Box | Line, scale: float, palette: _Palette) -> list[str]:
    match shape:
        case Text():
            return [_text(shape, scale, palette)]
        case Box():
            return _box(shape, scale, palette)
        case Line():
            look = look_of("line", shape.css)
            ends = f"({number(shape.x1)},{number(shape.y1)}) -- ({number(shape.x2)},{number(shape.y2)})"
            return [rf"\draw[{_stroke(look, scale, palette)}] {ends};"]


def _text(shape: Text, scale: float, palette: _Palette) -> str:
    look, size = look_of("text", shape.css), shape.size * scale
    words = "".join(TEX.get(letter, letter) for letter in shape.text)
    font = rf"\fontsize{{{size:.2f}}}{{{size * 1.2:.2f}}}\selectfont\ttfamily" + r"\bfseries" * look.bold
    options = f"anchor={ANCHORS[shape.anchor]},text={palette.named(look.fill)},font={{{font}}}"
    return rf"\node[{options}] at ({number(shape.x)},{number(shape.y)}) {{{words}}};"


def _box(shape: Box, scale: float, palette: _Palette) -> list[str]:
    look = look_of("rect", shape.css)
    fill = look_of("rect", "mp-cut-ground").fill if shape.hatched else look.fill
    options = [f"rounded corners={number(shape.radius * scale)}pt"] if shape.radius else []
    options += [f"fill={palette.named(fill)}"] if fill else []
    options += [_stroke(look, scale, palette)] if look.stroke else []
    corners = _corners(shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
    lines = [rf"\path[{','.join(options)}] {corners};"]
    if shape.hatched:
        ink = palette.named(look_of("line", "mp-cut-hatch").stroke)
        lines.append(rf"\path[pattern=north east lines,pattern color={ink}] {corners};")
    return lines


def _corners(left: float, top: float, right: float, bottom: float) -> str:
    return f"({number(left)},{number(top)}) rectangle ({number(right)},{number(bottom)})"


def _stroke(look: Look, scale: float, palette: _Palette) -> str:
    option = f"draw={palette.named(look.stroke)},line width={number(look.width * scale)}pt"
    if look.dash:
        on, off = (number(length * scale) for length in look.dash)
        option += f",dash pattern=on {on}pt off {off}pt"
    return option
