"""Ends a process from another thread, when the work of its main thread does not return."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from mmaprobe.smtmodel.base.interrupts import state, undo_all


def end(text: str) -> NoReturn:
    """Print a line, end every child process, remove half-written files and end this process with exit code 3. The
    function takes no lock, since the main thread may hold it."""
    try:
        with suppress(OSError):
            os.write(2, f"{text}\n".encode(errors="replace"))
        for child in _descendants(os.getpid()):
            with suppress(OSError):  # the child's process group first: orphaned grandchildren may be in it
                os.killpg(child, signal.SIGKILL)
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
        undo_all()
    finally:
        os._exit(3)


def late_text() -> str:
    """The message about work that goes on after its time limit."""
    from mmaprobe.cli.options import LINE

    doing = LINE.time_left.text()
    at = f"; it was at: {doing}" if doing else ""
    return f"error: time ran out ({state.seconds:g} s), and the work did not end by itself{_place()}{at}"


def _place() -> str:
    """The innermost function of this program that the main thread is in, as text; "" where there is none."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("mmaprobe."):
            return f" (in {name}.{frame.f_code.co_name})"
        frame = frame.f_back
    return ""


def _descendants(parent: int) -> list[int]:
    """The ids of the processes that a process and its children have started; none where /proc does not list them."""
    children: list[int] = []
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, listed.read_text().split()):
                children += [child, *_descendants(child)]
    return children
