"""Standard input and output of the command: a closed, full or abandoned stream ends in a plain message, never in a
traceback; only a reader that stops reading ends the command silently."""

from __future__ import annotations

import io
import os
import sys
from typing import IO, Any

from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.base.files import NOT_UTF8, STANDARD_INPUT, cannot_write

NAME = "standard output"


class _Output(io.FileIO):
    """Standard output. If its reader is gone, the rest is dropped silently. If a write fails for another reason, the
    error is raised once, and the rest is dropped."""

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
            self.dropped = True  # also when the interpreter flushes at exit
            raise cannot_write(error, NAME) from None


class _Closed(io.RawIOBase):
    """Standard output that was closed before the program started. The first write raises InputError."""

    reported = False

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        if not self.reported:
            self.reported = True
            raise InputError("is closed", NAME)
        return len(content)


class NobodyReadsError(IncompleteError):
    """Standard output has no reader any more, and there is more to do. The command ends without a message."""


_raw: _Output | None = None


def secure() -> None:
    """Make the standard streams of this process safe. The file descriptors of closed streams are opened on the null
    device, so that no later file gets them."""
    global _raw
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):  # the wrong way: any use fails
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free descriptor: this one
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Closed(), 1), write_through=True)
    elif sys.stdout is sys.__stdout__ and type(sys.stdout) is io.TextIOWrapper:
        sys.stdout.flush()
        _raw = _Output(sys.stdout.fileno(), "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_raw), sys.stdout.encoding, sys.stdout.errors, line_buffering=sys.stdout.line_buffering
        )


def check_reader() -> None:
    """Raises NobodyReadsError if standard output has no reader any more."""
    if _raw is not None and _raw.abandoned:
        raise NobodyReadsError("nobody reads standard output")


def standard_input() -> IO[str]:
    """The lines of standard input. Raises InputError."""
    if sys.stdin is None:
        raise InputError("is closed", STANDARD_INPUT)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors=NOT_UTF8)
    return sys.stdin
