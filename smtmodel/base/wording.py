"""Human-readable counts and durations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

#: the most characters of a message, and of one word; the number of last characters that a cut text keeps
LONGEST_TEXT, LONGEST_WORD, TAIL = 4000, 400, 80
LISTED = 8  # the most names that a sentence lists


def counted(count: int, name: str) -> str:
    """A count with its noun: 1 vector, 2 vectors, 3 mismatches."""
    plural = "" if count == 1 else "es" if name.endswith(("s", "ch")) else "s"
    return f"{count} {name}{plural}"


def some_of(names: Sequence[object], most: int = LISTED) -> str:
    """The first `most` names, with ", ..." if there are more."""
    return f"{', '.join(map(str, names[:most]))}{', ...' if len(names) > most else ''}"


def spans_text(spans: Iterable[Sequence[int]], most: int = 1 << 30) -> str:
    """Spans of numbers in words, each given by its first and last number: 1, 4 to 7."""
    return some_of([str(low) if low == high else f"{low} to {high}" for low, high in spans], most)


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def ranges_text(numbers: Sequence[int], between: str = ", ") -> str:
    """Numbers as ranges: 0, 1, 2, 5 as "0-2, 5"."""
    return between.join(str(low) if low == high else f"{low}-{high}" for low, high in runs_of(numbers))


def runs_of(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last number of each run of consecutive numbers."""
    ends = [0, *(k for k, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1), len(numbers)]
    return [(numbers[first], numbers[end - 1]) for first, end in pairwise(ends) if end > first]


def duration(seconds: float) -> str:
    """A time in the largest unit (h, min or s) of which it has at least two."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def install_command(extra: str) -> str:
    """The command that installs an optional extra of pyproject.toml."""
    return f"pip install '.[{extra}]' in a clone of mmaprobe"


def as_words(name: str) -> str:
    """The name of a value as words: toward_zero becomes toward zero."""
    return name.replace("_", " ")


def shortened(text: str, most: int = 80) -> str:
    """A text on one line of at most `most` characters, for a message."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def abridged(message: str) -> str:
    """A message without the middles of long words, such as names of files, and without its own middle if it is still
    too long."""
    message = re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda match: _middle_cut(match[0], LONGEST_WORD), message)
    return message if len(message) <= LONGEST_TEXT else _middle_cut(message, LONGEST_TEXT)


def _middle_cut(text: str, most: int) -> str:
    return f"{text[: most - 2 * TAIL]}...({len(text):,} characters)...{text[-TAIL:]}"
