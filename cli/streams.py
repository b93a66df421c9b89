"""Standard input and output of the command: no closed, full or abandoned stream ends in a traceback, or in silence."""

from __future__ import annotations

import io
import os
import sys
from typing import IO, Any

from smtmodel.errors import IncompleteError, InputError
from smtmodel.files import cannot_write

NAME = "standard output"


class _Output(io.FileIO):
    """Standard output. Nobody reads on: the rest is dropped. A write that fails is an error that says where, once."""

    dropped = abandoned = False

    def write(self, content: Any) -> int:
        size = len(memoryview(content).cast("B"))
        if self.dropped:
            return size
        try:
            written = super().write(content)
            return size if written is None else written
        except BrokenPipeError:
            self.dropped = self.abandoned = True
            return size
        except OSError as error:
            self.dropped = True  # also what the interpreter would try again at its end
            raise cannot_write(error, NAME) from None


class _Closed(io.RawIOBase):
    """Standard output that was closed from the start, which the first write is told."""

    told = False

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        if not self.told:
            self.told = True
            raise InputError("is closed", NAME)
        return len(content)


class NobodyReadsError(IncompleteError):
    """Standard output has no reader any more, and there is more to do. It ends the command without a word."""


_raw: _Output | None = None


def secure() -> None:
    """Guard the streams of this process. Numbers of closed ones are taken, so that no file of ours gets them."""
    global _raw
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):  # the way that fails
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number: this one
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Closed(), 1), write_through=True)
    elif sys.stdout is sys.__stdout__ and type(sys.stdout) is io.TextIOWrapper:
        sys.stdout.flush()
        _raw = _Output(sys.stdout.fileno(), "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_raw), sys.stdout.encoding, sys.stdout.errors, line_buffering=sys.stdout.line_buffering
        )


def check_reader() -> None:
    """Raises NobodyReadsError."""
    if _raw is not None and _raw.abandoned:
        raise NobodyReadsError("nobody reads standard output")


def standard_input() -> IO[str]:
    """The lines of standard input. Raises InputError."""
    if sys.stdin is None:
        raise InputError("is closed", "standard input")
    return sys.stdin
