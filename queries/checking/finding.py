"""What a check finds at one place of a certificate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """What was found at one place of a certificate. `word`: it holds if the engine named does not err; `open`: it could
    not be checked; `fault`: it was rejected."""

    place: str
    says: str
    kind: Literal["fine", "word", "open", "fault"] = "fine"


@dataclass(frozen=True)
class Contents:
    """What a manifest says is in a folder beside the files: queries, by name."""

    pieces: Sequence[str]


Texts = Mapping[str, str]  # of the files in a folder, by name
Look = Callable[[Texts, Contents], Iterator[Finding]]


def of_file(name: str) -> Callable[[Look], Look]:
    """What is found in a folder, most of it in the file of that name: whatever error reading its files raises, as of
    one that is no such document, is a fault there."""

    def read(look: Look) -> Look:
        @functools.wraps(look)
        def found(texts: Texts, contents: Contents) -> Iterator[Finding]:
            every: list[Finding] = []
            try:
                every += look(texts, contents)
            except Exception as error:
                every = [Finding(name, f"cannot be read: {type(error).__name__}: {error}", "fault")]
            yield from every

        return found

    return read
