"""Unexpected errors: one line, and the traceback in a file for the report."""

from __future__ import annotations

import errno
import shlex
import sys
import traceback
from pathlib import Path

from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.base.folders import cache_folder
from mmaprobe.smtmodel.base.wording import abridged

NAME = "fault.txt"


#: the system's errors for lack of descriptors, memory, processes or room for temporary files
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
_UNLOADED = ("failed to map segment", "cannot allocate memory", "Too many open files")  # the loader's messages


def shortage(error: Exception) -> str:
    """The text about a resource that the system refused; "" for any other error."""
    if isinstance(error, MemoryError):
        return "memory ran out"
    short = isinstance(error, OSError) and error.errno in _SHORT
    unloaded = isinstance(error, ImportError) and any(words in str(error) for words in _UNLOADED)
    if short or unloaded or (isinstance(error, RuntimeError) and "can't start new thread" in str(error)):
        message = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        return f"the system gives no more ({message}): see `ulimit -a`"
    return ""


def fault_text(error: Exception) -> str:
    """The message for an unexpected error, with its place and the file of its traceback."""
    message = abridged(" ".join(str(error).split()))
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}{f': {message}' if message else ''} ({Path(last.filename).name}:{last.lineno})"
    whole = "".join(traceback.format_exception(error))
    command = shlex.join(["mmaprobe", *sys.argv[1:]])
    try:
        path = cache_folder() / NAME
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, f"mmaprobe {VERSION}\n{command}\n\n{whole}")
        kept = f"please report it with {path}, which holds the command and the traceback"
    except Exception:  # then it is printed
        kept = f"please report it with the command and this traceback:\n{whole}"
    return f"a fault of mmaprobe, not of the input: {what}; {kept}"
