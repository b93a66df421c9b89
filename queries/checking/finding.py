"""What a check finds at one place of a certificate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mmaprobe.smtmodel.base.errors import MmaprobeError


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


def reason(error: Exception) -> str:
    """Why a file of a certificate could not be read, in words; errors that nobody foresaw by their names."""
    if isinstance(error, OSError):
        return ": ".join(filter(None, [Path(str(error.filename or "")).name, error.strerror or str(error)]))
    if isinstance(error, UnicodeDecodeError):
        return "not text in UTF-8"
    if isinstance(error, KeyError):
        return f"{error.args[0]}: this key is missing"
    return str(error) if isinstance(error, ValueError | MmaprobeError) else f"{type(error).__name__}: {error}"


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
                every = [Finding(name, f"cannot be read: {reason(error)}", "fault")]
            yield from every

        return found

    return read
