"""A drawing as SVG, built as XML elements, so that no text needs escaping here.

The elements are ElementTree's: svgwrite is no longer maintained, and another library of shapes would be a further layer
between the shapes of a sheet, which PDF and TikZ share, and the elements.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from mmaprobe.reports.drawings.sheet import Box, Drawing, Line, Shape, ShapeGroup, Text
from mmaprobe.reports.drawings.styles import look_of, style_sheet

SVG = "http://www.w3.org/2000/svg"
FONTS = "DejaVu Sans Mono, ui-monospace, Menlo, Consolas, monospace"  # some renderers know only the first of these

ET.register_namespace("", SVG)


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def svg_of(drawing: Drawing, *, styled: bool = True, millimetres: float | None = None) -> str:
    """The drawing as an SVG document. `styled`: the document contains the style sheet; `millimetres`: the document's
    width (None: one unit for each pixel)."""
    width, height = drawing.size
    prefix = drawing.prefix
    unit = "mm" if millimetres else ""
    scale = millimetres / width if millimetres else 1.0
    root = ET.Element("svg", {
        "xmlns": SVG, "viewBox": f"0 0 {number(width)} {number(height)}", "width": f"{number(width * scale)}{unit}",
        "height": f"{number(height * scale)}{unit}", "class": "mp", "role": "graphics-document",
        "aria-labelledby": f"{prefix}-title", "aria-describedby": f"{prefix}-desc", "font-family": FONTS,
        "xml:space": "preserve",
    })  # fmt: skip
    ET.SubElement(root, "title", id=f"{prefix}-title").text = drawing.title
    ET.SubElement(root, "desc", id=f"{prefix}-desc").text = drawing.description
    if styled:
        ET.SubElement(root, "style").text = style_sheet()
    _hatch(ET.SubElement(root, "defs"), prefix)
    _add(root, "rect", "mp-paper", width=width, height=height)
    for (x, y), sheet in zip(drawing.places, drawing.sheets, strict=True):
        group = ET.SubElement(root, "g", {"transform": f"translate({number(x)} {number(y)})"})
        for shape in sheet.root.shapes:
            _element(group, shape, prefix)
    return ET.tostring(root, encoding="unicode")


def _element(parent: ET.Element, shape: Shape, prefix: str) -> None:
    match shape:
        case ShapeGroup():
            attributes = {"role": "img", "aria-label": shape.label} if shape.label else {}
            group = ET.SubElement(parent, "g", attributes)
            for part in shape.shapes:
                _element(group, part, prefix)
        case Text():
            text = _add(parent, "text", shape.css, x=shape.x, y=shape.y, **{"font-size": shape.size})
            text.set("text-anchor", shape.anchor)
            text.text = shape.text
        case Box():
            size = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height}
            box = _add(parent, "rect", shape.css, **size, **({"rx": shape.radius} if shape.radius else {}))
            if shape.hatched:
                box.set("fill", f"url(#{prefix}-hatch)")
        case Line():
            _add(parent, "line", shape.css, x1=shape.x1, y1=shape.y1, x2=shape.x2, y2=shape.y2)


def _add(parent: ET.Element, tag: str, css: str, **places: float) -> ET.Element:
    """A new element with its class, and with its look on light screens as attributes, which every renderer knows."""
    texts = {name: number(value) for name, value in places.items()}
    look = look_of(tag, css)
    if tag != "line":
        texts["fill"] = look.fill or "none"
    if look.stroke:
        texts |= {"stroke": look.stroke, "stroke-width": number(look.width)}
    if look.dash:
        texts["stroke-dasharray"] = " ".join(map(number, look.dash))
    if look.bold:
        texts["font-weight"] = "bold"
    return ET.SubElement(parent, tag, {**texts, **({"class": css} if css else {})})


def _hatch(parent: ET.Element, prefix: str) -> None:
    pattern = ET.SubElement(parent, "pattern", {
        "id": f"{prefix}-hatch", "width": "5", "height": "5", "patternUnits": "userSpaceOnUse",
        "patternTransform": "rotate(45)",
    })  # fmt: skip
    _add(pattern, "rect", "mp-cut-ground", width=5, height=5)
    _add(pattern, "line", "mp-cut-hatch", x1=0, y1=0, x2=0, y2=5)
