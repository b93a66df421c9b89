"""The looks of a drawing's classes: colours for light screens and paper, which every writer uses, and a style sheet
with the colours for dark screens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

#: name -> the colour on light screens and on paper, and the colour on dark screens
COLOURS = {
    "paper": ("#ffffff", "#14171c"), "ink": ("#14181f", "#e9ecf1"), "soft": ("#4d5663", "#b3bcc8"),
    "line": ("#7d8794", "#8a94a3"), "zero": ("#e9eef5", "#262d37"), "one": ("#1f4e79", "#9cc4f5"),
    "on-one": ("#ffffff", "#0a1a2e"), "carry": ("#7a4a00", "#f2c572"), "carry-zero": ("#fcebcd", "#3d3118"),
    "on-carry": ("#ffffff", "#221600"), "cut": ("#fdeeec", "#33201e"), "cut-line": ("#cf6f64", "#b0574c"),
    "on-cut": ("#6d120a", "#ffd2cc"), "mark": ("#8e1a77", "#f0a6de"), "mark-paper": ("#fbeaf7", "#3a1a33"),
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How a shape is painted: its colours (None: not painted), the `width` of its stroke and `dash` in pixels."""

    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    dash: tuple[float, ...] = ()
    bold: bool = False


#: (element of SVG, class) -> its look, with names of colours
LOOKS = {
    ("text", ""): Look("ink"),
    ("text", "mp-title"): Look("ink", bold=True),
    ("text", "mp-special"): Look("ink", bold=True),
    ("text", "mp-soft"): Look("soft"),
    ("text", "mp-small"): Look("soft"),
    ("text", "mp-mark"): Look("mark", bold=True),
    ("text", "mp-zero"): Look("ink"),
    ("text", "mp-one"): Look("on-one", bold=True),
    ("text", "mp-carry0"): Look("ink"),
    ("text", "mp-carry1"): Look("on-carry", bold=True),
    ("text", "mp-cut0"): Look("on-cut"),
    ("text", "mp-cut1"): Look("on-cut", bold=True),
    ("rect", "mp-paper"): Look("paper"),
    ("rect", "mp-line"): Look(stroke="line"),
    ("rect", "mp-mark"): Look("mark-paper", "mark", 1.5),
    ("rect", "mp-zero"): Look("zero"),
    ("rect", "mp-one"): Look("one"),
    ("rect", "mp-carry0"): Look("carry-zero"),
    ("rect", "mp-carry1"): Look("carry"),
    ("rect", "mp-cut0"): Look(stroke="cut-line", width=0.5),
    ("rect", "mp-cut1"): Look(stroke="cut-line", width=0.5),
    ("rect", "mp-cut-ground"): Look("cut"),
    ("line", "mp-cut-hatch"): Look(stroke="cut-line", width=1.8),
    ("line", "mp-line"): Look(stroke="line"),
    ("line", "mp-align"): Look(stroke="ink", width=2),
    ("line", "mp-unit"): Look(stroke="ink", width=1.5, dash=(4, 2)),
}


@cache
def look_of(tag: str, css: str, *, dark: bool = False) -> Look:
    """The look of an element of a drawing, with colours as #rrggbb. `tag`: text, rect or line; `css`: a class."""
    look = LOOKS[tag, css]
    return replace(look, fill=_colour(look.fill, dark), stroke=_colour(look.stroke, dark))


def _colour(name: str | None, dark: bool) -> str | None:
    return None if name is None else COLOURS[name][dark]


def style_sheet() -> str:
    """The style sheet for browsers: the colours on dark screens, and the rule that keeps spaces of text. All other
    looks are attributes of elements, since many programs know neither variables nor media queries of style sheets."""
    rules = [_rule(tag, css, look_of(tag, css, dark=True)) for tag, css in LOOKS]
    dark = ["@media screen and (prefers-color-scheme: dark) {", *rules, "}"]
    return "\n".join([".mp text { white-space: pre; }", *dark, ""])


def _rule(tag: str, css: str, look: Look) -> str:
    painted = {"fill": look.fill, "stroke": look.stroke}
    text = "; ".join(f"{name}: {colour}" for name, colour in painted.items() if colour)
    return f"  .mp {tag}{css and f'.{css}'} {{ {text} }}"
