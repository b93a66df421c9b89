"""The time for building, and shares of that time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mmaprobe.smtmodel.base.errors import OutOfTimeError

T = TypeVar("T")


class Clock:
    """The remaining time. `deadline`: the time of time.monotonic at which all work ends; `limit`: the time at which the
    present work ends. `left`: the searches whose share of the time was too short."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = self.limit = deadline
        self.left: list[str] = []

    def end(self, seconds: float) -> float:
        """The time that is `seconds` from now, or the deadline if that is earlier."""
        after = time.monotonic() + seconds
        return after if self.deadline is None else min(after, self.deadline)

    def within(self, share: float, what: str, look: Callable[[], list[T]]) -> list[T]:
        """The candidates that `look` finds in a share of the remaining time; no candidate if that share is too short:
        then `what` is noted in `left`."""
        whole, now = self.limit, time.monotonic()
        self.limit = None if whole is None else now + share * (whole - now)
        try:
            return look()
        except OutOfTimeError:
            if whole is not None and time.monotonic() > whole:
                raise
            self.left.append(what)
            return []
        finally:
            self.limit = whole

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A block in which the present work may take all of the remaining time."""
        limit, self.limit = self.limit, self.deadline
        try:
            yield
        finally:
            self.limit = limit
