"""Progress texts, and the remaining time estimated from them. cli/line.py says why rich is not used."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from mmaprobe.smtmodel.base.wording import duration

PATIENCE = 2.0  # seconds of work before a text tells the time of the work

Show = Callable[[str], None]
Item = TypeVar("Item")


class Share(str):
    """A text about work of known size: `done` of `total`, in any unit. `what` names the work: texts of the same name
    follow one another; `note` is the part of the text that stands after the time left."""

    done: float
    total: float
    what: str
    note: str

    def __new__(cls, text: str, done: float, total: float, what: str, note: str = "") -> Self:
        made = super().__new__(cls, text + note)
        made.done, made.total, made.what, made.note = done, total, what, note
        return made


class Count(Share):
    """`done` pieces of work of `total` are finished."""

    def __new__(cls, done: int, total: int, what: str, note: str = "") -> Self:
        return super().__new__(cls, f"{done} of {total} {what}", done, total, what, note)


class Wait(str):
    """A text about work with a time limit in `seconds`; None: it has no limit."""

    seconds: float | None

    def __new__(cls, text: str, seconds: float | None) -> Self:
        made = super().__new__(cls, text)
        made.seconds = seconds
        return made


class Notice(str):
    """A text that stays, for work that shows no other text for long."""


class NestedText(str):
    """A text about one piece of larger work."""

    outer: Share
    inner: str

    def __new__(cls, outer: Share, inner: str) -> Self:
        made = super().__new__(cls, ": ".join(filter(None, (outer, inner))))
        made.outer, made.inner = outer, inner
        return made

    @property
    def levels(self) -> list[str]:
        """The texts, that of the largest work first."""
        rest = self.inner.levels if isinstance(self.inner, NestedText) else [self.inner] * bool(self.inner)
        return [self.outer, *rest]


class Pieces:
    """Shows the progress of `total` pieces of work, and the text that each piece shows itself."""

    def __init__(self, show: Show, what: str, total: int = 1) -> None:
        self.show, self.what, self.total = show, what, total
        self.done = 0
        self.inner = ""

    def __call__(self, text: str) -> None:
        """Take a text that the piece being worked on shows."""
        if isinstance(text, Notice):
            self.show(text)
            return
        self.inner = text
        self.show(NestedText(Count(self.done, self.total, self.what), text) if self.total > 1 else text)

    def next(self) -> None:
        """Count one more piece as finished."""
        self.done += 1
        if self.total > 1:
            self(self.inner)

    def of(self, pieces: Sequence[Item]) -> Iterator[Item]:
        """The pieces in order; each counts as finished when the next is asked for."""
        self.total, self.done = len(pieces), 0
        for piece in pieces:
            yield piece
            self.inner = ""
            self.next()


class Throttle:
    """True at most once a second."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if passed := now - self.last >= 1.0:
            self.last = now
        return passed


@dataclass
class _Level:
    """One text that is shown: when it came, and the first text of the same work with its time."""

    text: str
    since: float
    first: str
    begun: float


class TimeLeft:
    """Adds the remaining time to the latest progress text: extrapolated from the speed so far, or the rest of the time
    limit; where neither is known, the time spent so far. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.levels: list[_Level] = []

    def take(self, text: str) -> None:
        """Take the next progress text."""
        now, before = self.clock(), self.levels
        self.levels = []
        for depth, part in enumerate(text.levels if isinstance(text, NestedText) else [text]):
            old = before[depth] if depth < len(before) else None
            if old is not None and _same(old.text, part):
                since = old.since if part == old.text else now
                self.levels.append(_Level(part, since, old.first, old.begun))
            else:
                self.levels.append(_Level(part, now, part, now))
                before = before[:depth]  # texts below belong to an earlier piece

    def text(self, width: int | None = None) -> str:
        """The text with its remaining time, truncated to `width` columns; the time is never cut."""
        now = self.clock()
        parts = [(_plain(level.text), _time(level, now), _note(level.text)) for level in self.levels]
        full = ": ".join(map("".join, parts))
        if width is None or len(full) <= width or not parts:
            return full
        text, left, _ = parts[-1]
        head = ": ".join(["".join(one) for one in parts[:-1]] + [""])
        room = max(0, width - len(head) - len(left) - 1)
        return f"{head}{text[:room]}…{left}"[:width]


def _same(before: str, text: str) -> bool:
    """Whether two texts describe progress of the same task."""
    if isinstance(before, Share) and isinstance(text, Share):
        return (before.what, before.total) == (text.what, text.total) and before.done <= text.done
    return before is text or (before == text and not isinstance(text, Wait))


def _plain(text: str) -> str:
    note = _note(text)
    return text[: len(text) - len(note)] if note else str(text)


def _note(text: str) -> str:
    return text.note if isinstance(text, Share) else ""


def _time(level: _Level, now: float) -> str:
    text, spent = level.text, now - level.begun
    if isinstance(text, Wait) and text.seconds is not None:
        return f", at most {duration(max(0.0, text.seconds - spent))}"
    if spent < PATIENCE or (isinstance(text, Share) and text.done >= text.total):
        return ""
    first = level.first
    if not isinstance(text, Share) or not isinstance(first, Share) or text.done <= first.done:
        return f", {duration(spent)} so far"
    share = (text.total - text.done) / (text.done - first.done)
    left = (level.since - level.begun) * share - (now - level.since)
    return f", {duration(left if left > 0 else spent * share)} left"
