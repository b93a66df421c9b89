"""Files of vectors, with the share read so far in the progress line."""

from __future__ import annotations

import gzip
import io
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mmaprobe.cli.options import progress
from mmaprobe.cli.streams import standard_input
from mmaprobe.smtmodel.base.files import NOT_UTF8, STANDARD_INPUT
from mmaprobe.smtmodel.base.progress import Share, Throttle


@contextmanager
def open_input(name: str) -> Iterator[tuple[Iterable[str], str]]:
    """The lines of a vector file ("-": standard input), counted by the progress line; and the file's name for messages.

    Raises InputError.
    """
    from mmaprobe.smtmodel.inputs.vectors import open_text

    if name == "-":
        yield _counted(_plain(standard_input()), STANDARD_INPUT), STANDARD_INPUT
        return
    with open_text(Path(name)) as stream:
        yield _counted(stream, name), name


def _plain(stream: IO[str]) -> IO[str]:
    """Standard input as text; compressed input is decompressed."""
    from mmaprobe.smtmodel.inputs.vectors import GZIP

    buffer: Any = getattr(stream, "buffer", None)
    if not hasattr(buffer, "peek") or buffer.peek(len(GZIP))[: len(GZIP)] != GZIP:
        return stream
    return io.TextIOWrapper(gzip.GzipFile(fileobj=buffer), encoding="utf-8", errors=NOT_UTF8)


def _counted(lines: IO[str], name: str) -> Iterator[str]:
    """The lines. From time to time the progress line shows the number read, and their share of the file."""
    from mmaprobe.smtmodel.inputs.vectors import lines_of

    buffer: Any = getattr(lines, "buffer", None)
    file = getattr(buffer, "fileobj", buffer)  # below a gzip file
    size, now_and_then = _size(file), Throttle()
    for number, line in enumerate(lines_of(lines, name)):
        if now_and_then():
            text = f"{number} lines read"
            progress(Share(text, file.tell(), size, "lines") if size else text)
        yield line
    progress("")


def _size(file: Any) -> int:
    """Bytes of a regular file, or 0."""
    try:
        status = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
