"""The text of an FPCore as nested expressions with line numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mmaprobe.smtmodel.base.errors import InputError

#: rounding modes and formats of this package -> their names in FPCore
MODES = {
    "nearest_even": "nearestEven", "nearest_away": "nearestAway", "toward_zero": "toZero", "up": "toPositive",
    "down": "toNegative",
}  # fmt: skip
PRECISIONS = {"f16": "binary16", "f32": "binary32", "f64": "binary64"}
_WORDS = re.compile(r';[^\n]*|"(?:[^"\\]|\\.)*"|[()\[\]]|[^\s()\[\];"]+')
_DEPTH = 200


@dataclass(frozen=True)
class Word:
    """A symbol, number or string, and its line in the file."""

    text: str
    line: int


@dataclass(frozen=True)
class Group:
    """The expressions within brackets."""

    items: tuple[Expression, ...]
    line: int

    @property
    def head(self) -> str:
        return self.items[0].text if self.items and isinstance(self.items[0], Word) else ""


Expression = Word | Group


def parsed(text: str, file: str) -> Group:
    """The single FPCore expression of a text. Raises InputError (with the line) for any other text."""
    open_groups: list[tuple[str, int, list[Expression]]] = [("", 1, [])]
    line, at = 1, 0
    for found in _WORDS.finditer(text):
        line, at = line + text.count("\n", at, found.start()), found.start()
        word = found.group()
        if word in "([":
            open_groups.append((word, line, []))
            if len(open_groups) > _DEPTH:
                raise InputError(f"brackets are nested more than {_DEPTH} deep", file, line)
        elif word in ")]":
            opened, start, items = open_groups.pop()
            if opened + word not in ("()", "[]"):
                raise InputError("a bracket is closed that was not opened", file, line)
            open_groups[-1][2].append(Group(tuple(items), start))
        elif not word.startswith(";"):
            open_groups[-1][2].append(Word(word, line))
    if len(open_groups) > 1:
        raise InputError("a bracket is not closed", file, open_groups[-1][1])
    cores = open_groups[0][2]
    if len(cores) != 1 or not isinstance(cores[0], Group) or cores[0].head != "FPCore":
        raise InputError("one (FPCore ...) is wanted, and nothing else", file, 1)
    return cores[0]
