"""Code of users that runs in this process, as a function given to `mmaprobe` in Python does: it neither ends the
program nor prints into its output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

_STDOUT, _STDERR = 1, 2  # file descriptors


class ForeignError(Exception):
    """What a user's code raised, in words."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Whatever is raised meanwhile becomes a ForeignError, but for an interrupt: also SystemExit, which would end the
    program as if all were said, and os._exit. What is printed meanwhile goes to standard error."""
    try:
        with _printing_aside(), _leaving_refused():
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ForeignError(in_words(error)) from error


def in_words(error: BaseException) -> str:
    """An exception on one line, also where its own text fails."""
    try:
        said = " ".join(str(error).split())
    except KeyboardInterrupt:
        raise
    except BaseException:  # of a class whose text fails as well
        said = ""
    return type(error).__name__ + (f": {said}" if said else "")


@contextlib.contextmanager
def _leaving_refused() -> Iterator[None]:
    """os._exit raises SystemExit in this process; forked ones leave by it."""
    own, leave = os.getpid(), os._exit

    def refused(status: int) -> NoReturn:
        if os.getpid() != own:
            leave(status)
        raise SystemExit(status)

    os._exit = refused
    try:
        yield
    finally:
        os._exit = leave


@contextlib.contextmanager
def _printing_aside() -> Iterator[None]:
    """Standard output is standard error, for Python and for libraries in C."""
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # it is closed
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        with contextlib.suppress(OSError):
            os.dup2(_STDERR, _STDOUT)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)  # what C still holds was printed meanwhile
        os.dup2(kept, _STDOUT)
        os.close(kept)
