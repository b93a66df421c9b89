"""Contrast of colours after WCAG 2.2, and the colours of a style sheet's variables."""

from __future__ import annotations

import re

_VARIABLE = re.compile(r"(--[\w-]+):\s*(#[0-9a-fA-F]{6})\b")
DARK = "prefers-color-scheme: dark"


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def schemes(css: str) -> dict[str, dict[str, str]]:
    """The variables for light and for dark screens."""
    light, found, dark = css.partition(DARK)
    assert found
    dark = dark[: dark.index("}")]
    variables = {"light": dict(_VARIABLE.findall(light))}
    variables["dark"] = variables["light"] | dict(_VARIABLE.findall(dark))
    return variables
