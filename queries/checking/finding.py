"""A finding of a check, at one place of a certificate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mmaprobe.smtmodel.base.errors import MmaprobeError


@dataclass(frozen=True)
class Finding:
    """A finding at one place of a certificate. `word`: right if the named engine does not err; `open`: not checked;
    `fault`: rejected."""

    place: str
    says: str
    kind: Literal["fine", "word", "open", "fault"] = "fine"


def reason(error: Exception) -> str:
    """Why a file of a certificate could not be read, in words; for unexpected errors with the name of their class."""
    if isinstance(error, OSError):
        return ": ".join(filter(None, [Path(str(error.filename or "")).name, error.strerror or str(error)]))
    if isinstance(error, UnicodeDecodeError):
        return "not text in UTF-8"
    if isinstance(error, KeyError):
        return f"{error.args[0]}: this key is missing"
    return str(error) if isinstance(error, ValueError | MmaprobeError) else f"{type(error).__name__}: {error}"


Texts = Mapping[str, str]  # of the files in a folder, by name
#: a check of a folder, from its texts and the names of the queries in its manifest
Look = Callable[[Texts, Sequence[str]], Iterator[Finding]]


def of_file(name: str) -> Callable[[Look], Look]:
    """A decorator for a check of a folder that reads mainly the file `name`. Any error that the check raises, for
    instance at a malformed file, becomes a fault at this file."""

    def read(look: Look) -> Look:
        @functools.wraps(look)
        def guarded(texts: Texts, pieces: Sequence[str]) -> Iterator[Finding]:
            try:
                every = list(look(texts, pieces))
            except Exception as error:
                every = [Finding(name, f"cannot be read: {reason(error)}", "fault")]
            yield from every

        return guarded

    return read
