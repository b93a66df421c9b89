"""The line of progress: on a terminal one line, redrawn every second; with --verbose lines that stay.

Not rich.progress: importing it takes 0.10 s of CPU, and it would replace only the drawing, which is this file. The
texts that solvers, threads and workers of a cluster pass on (smtmodel/base/progress.py) would still be needed, as
would the time limits of waits ("at most 40 s"), for which rich has no column.
"""

from __future__ import annotations

import shutil
import sys
import threading
from contextlib import suppress

import click

from mmaprobe.smtmodel.base.escapes import printable
from mmaprobe.smtmodel.base.progress import TimeLeft

TICK = 1.0  # seconds between two drawings


def _echo(text: str, nl: bool = True) -> None:
    """Print text on standard error. If standard error is closed, the text is dropped and the command goes on."""
    with suppress(OSError):
        click.echo(text, err=True, nl=nl)


class StatusLine:
    """Standard error, which the progress line and all other messages share without mixing. Thread-safe."""

    def __init__(self, time_left: TimeLeft | None = None) -> None:
        self.time_left = time_left or TimeLeft()
        self._lock = threading.Lock()
        self._drawn = False
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None

    def show(self, text: str, stays: bool = False) -> None:
        """Show progress: a line that `stays`, or, on a terminal, a line that the next one replaces."""
        if not text:
            self.end()
            return
        with self._lock:
            self.time_left.take(text)
            if stays:
                _echo(printable(self.time_left.text()))
            elif sys.stderr is not None and sys.stderr.isatty():
                self._draw()
                if self._ticker is None:
                    self._ended = threading.Event()
                    self._ticker = threading.Thread(target=self._tick, args=(self._ended,), daemon=True)
                    self._ticker.start()

    def say(self, text: str) -> None:
        """Print text that stays, above the progress line. Control characters in foreign names and messages are shown as
        escapes."""
        with self._lock:
            self._clear()
            _echo(printable(text))

    def end(self) -> None:
        """Clear the progress line."""
        with self._lock:
            self._ended.set()
            ticker, self._ticker = self._ticker, None
            self._clear()
        if ticker is not None:
            ticker.join()

    def _draw(self) -> None:
        columns = shutil.get_terminal_size().columns
        _echo(f"\r\x1b[2K{printable(self.time_left.text(columns - 1))}\r", nl=False)
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            _echo("\r\x1b[2K", nl=False)
            self._drawn = False

    def _tick(self, ended: threading.Event) -> None:
        while not ended.wait(TICK):
            with self._lock:
                if not ended.is_set():
                    self._draw()
