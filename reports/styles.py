"""The styles of a drawing's classes: the style sheet for SVG, and its rules for print for the other writers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

_VARIABLE = re.compile(r"(--[\w-]+):\s*(#[0-9a-fA-F]{6})\b")
_RULE = re.compile(r"^((?:\.mp [\w.-]+(?:, )?)+) \{ (.*) \}$", re.MULTILINE)


def style_sheet() -> str:
    """The style sheet of drawings; its colours are variables with values for light and dark screens."""
    return files("reports").joinpath("templates/picture.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Look:
    """Colours as #rrggbb (None: not painted); `width` of the stroke and `dash` in pixels; `halo`: the stroke is painted
    below the fill of the text."""

    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    dash: tuple[float, ...] = ()
    bold: bool = False
    halo: bool = False


@cache
def look_of(tag: str, css: str) -> Look:
    """How an element of a drawing looks on paper: `tag` is text, rect or line."""
    look = Look(fill=_colours()["--mp-ink"]) if tag == "text" else Look(fill="#000000")
    for selectors, properties in _rules():
        if any(_applies(selector, tag, css.split()) for selector in selectors):
            look = _with(look, properties)
    return look


@cache
def _colours() -> dict[str, str]:
    return dict(_VARIABLE.findall(style_sheet().partition("@media")[0]))


@cache
def _rules() -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple((tuple(one.split(", ")), text) for one, text in _RULE.findall(style_sheet()))


def _applies(selector: str, tag: str, classes: list[str]) -> bool:
    """Whether a selector of this style sheet (`.mp tag`, `.mp .class` or `.mp tag.class`) applies to an element."""
    wanted, _, name = selector.removeprefix(".mp ").partition(".")
    return wanted in ("", tag) and name in ("", *classes)


def _with(look: Look, properties: str) -> Look:
    for name, value in _pairs(properties):
        match name:
            case "fill":
                look = replace(look, fill=_colour(value))
            case "stroke":
                look = replace(look, stroke=_colour(value))
            case "stroke-width":
                look = replace(look, width=float(value.removesuffix("px")))
            case "stroke-dasharray":
                look = replace(look, dash=tuple(map(float, value.split())))
            case "font-weight":
                look = replace(look, bold=value == "bold")
            case "paint-order":
                look = replace(look, halo=value == "stroke")
    return look


def _pairs(properties: str) -> Iterator[tuple[str, str]]:
    for part in properties.split(";"):
        name, _, value = part.strip().partition(": ")
        yield name, value


def _colour(value: str) -> str | None:
    return None if value == "none" else _colours()[value.removeprefix("var(").removesuffix(")")]
