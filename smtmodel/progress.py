"""Progress that counts, and the time left that its speed promises."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

PATIENCE = 2.0  # seconds of work before its speed says anything


class Count(str):
    """A text of progress: `done` pieces of work of `total` are finished; `note` says which came last."""

    done: int
    total: int
    what: str
    note: str

    def __new__(cls, done: int, total: int, what: str, note: str = "") -> Self:
        made = super().__new__(cls, f"{done} of {total} {what}{note}")
        made.done, made.total, made.what, made.note = done, total, what, note
        return made


class TimeLeft:
    """Adds to counts the time left, from the speed since the first count of the same work. `clock`: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.first: tuple[Count, float] | None = None

    def text(self, count: Count) -> str:
        """The count, with the time left once it can be told."""
        now = self.clock()
        if self.first is None or not _same(self.first[0], count):
            self.first = count, now
        begun, start = self.first
        if count.done in (begun.done, count.total) or now - start < PATIENCE:
            return str(count)
        left = (now - start) * (count.total - count.done) / (count.done - begun.done)
        return f"{count.done} of {count.total} {count.what}, {duration(left)} left{count.note}"


def _same(begun: Count, count: Count) -> bool:
    return (begun.what, begun.total) == (count.what, count.total) and begun.done <= count.done


def duration(seconds: float) -> str:
    """Seconds in the unit that needs two digits or so."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
