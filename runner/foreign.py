"""User code that runs in this process, such as a function given to `mmaprobe` in Python, kept from ending the program
and from printing into its output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

_STDOUT, _STDERR = 1, 2  # file descriptors


class ForeignError(Exception):
    """An exception of user code, as text."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """A block in which every exception but an interrupt becomes a ForeignError: also SystemExit, which would end the
    program as if it were successful, and a call of os._exit. The block's prints go to standard error."""
    try:
        with _printing_aside(), _leaving_refused():
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ForeignError(in_words(error)) from error


def in_words(error: BaseException) -> str:
    """An exception on one line, even where its own text fails."""
    try:
        message = " ".join(str(error).split())
    except KeyboardInterrupt:
        raise
    except BaseException:  # also the class's name may fail
        message = ""
    return type(error).__name__ + (f": {message}" if message else "")


@contextlib.contextmanager
def _leaving_refused() -> Iterator[None]:
    """A block in which os._exit raises SystemExit; forked processes can still end by os._exit."""
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
    """A block in which standard output is standard error, for Python and for libraries in C."""
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # standard output is closed
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
            ctypes.CDLL(None).fflush(None)  # C may still buffer text printed in the block
        os.dup2(kept, _STDOUT)
        os.close(kept)
