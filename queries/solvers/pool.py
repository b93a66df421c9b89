"""Where solvers run: on this machine, or (cluster.py) on a cluster's workers.

Questions are built in Python with pysmt's shared tables, so only the thread that holds the lock builds. A thread
releases the lock while it waits for a solver's process. So n threads keep n cores busy, and code that builds questions
need not know about threads. The builders are threads, not processes, because terms must be built where the tables are;
solvers are processes, and get text.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from mmaprobe.queries.solvers import engines as racing
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.smtmodel.base.frames import with_room
from mmaprobe.smtmodel.base.interrupts import SLICE, Latch, held_back, settle, unwanted

AHEAD = 2  # threads per question asked at a time: some wait for the lock, or for another thread's equal query
Item = TypeVar("Item")
Result = TypeVar("Result")


class BuilderLock:
    """The lock under which terms are built (pysmt is not thread-safe). The lock notes which thread holds it, and how
    long each thread was idle waiting for it. A thread whose work is unwanted, or that is interrupted, does not get the
    lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mine = threading.local()

    @property
    def waited(self) -> float:
        """The seconds that this thread waited to get the lock back, and those added by `add_idle`."""
        return float(getattr(self._mine, "waited", 0.0))

    def add_idle(self, seconds: float) -> None:
        self._mine.waited = self.waited + max(0.0, seconds)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block with the lock, which this thread may hold already."""
        if getattr(self._mine, "held", False):
            yield
            return
        self._take()
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def released(self) -> Iterator[None]:
        """A block with the lock released, so that another thread can take it."""
        if not getattr(self._mine, "held", False):
            yield
            return
        self._leave()
        try:
            yield
        finally:
            began = time.monotonic()
            self._take()
            self.add_idle(time.monotonic() - began)

    def _take(self) -> None:
        while True:
            with held_back:
                if self._lock.acquire(timeout=SLICE):
                    self._mine.held = True
                    return
            if unwanted.get()():
                raise KeyboardInterrupt

    def _leave(self) -> None:
        with held_back:
            if getattr(self._mine, "held", False):
                self._mine.held = False
                self._lock.release()


class Pool:
    """This machine. `width`: how many questions are asked at a time, by default one for each core; `threads`: how many
    threads build the questions, if `width` is more than 1."""

    def __init__(self, width: int | None = None) -> None:
        self.width = width or os.cpu_count() or 1
        self.threads = 1 if self.width == 1 else AHEAD * self.width
        self.busy = 1  # the number of questions that may be asked at a time
        self._building = BuilderLock()
        self._cores = threading.BoundedSemaphore(self.width)
        self._ended = False  # whether the threads are told to end
        self._asking: dict[str, Latch] = {}

    def clock(self) -> float:
        """The time for budgets, in seconds: time.monotonic() less the time that this thread waited for other threads,
        for the lock, or for a free worker."""
        return time.monotonic() - self._building.waited

    def sharing(self, solver: str) -> int:
        """The factor by which a question may take longer while other questions are asked: then its engines share one
        core, so the factor is their number."""
        return min(len(racing.engines_of(solver)), self.width)

    @contextmanager
    def alone_with(self, text: str) -> Iterator[None]:
        """A block that starts when no other thread asks the same query; by then the store has the other thread's
        answer."""
        while (other := self._asking.get(text)) is not None:
            with self._building.released():
                began = time.monotonic()
                other.wait()
                self._building.add_idle(time.monotonic() - began)
        mine = self._asking[text] = Latch()
        try:
            yield
        finally:
            del self._asking[text]
            mine.set()

    def race(
        self,
        engines: Sequence[str],
        text: str,
        timeout: float | None,
        memory: int,
        keep: racing.Keep,
        processor: float | None = None,
    ) -> list[Answer]:
        """The answers of the engines to a query's text, as `engines.race` gives them."""
        with self._building.released():
            began = time.monotonic()
            with self._cores:
                self._building.add_idle(time.monotonic() - began)
                return racing.race(engines, text, timeout, memory, keep, processor)

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """The function's result. For a cluster the function must be of a module, its arguments and result plain
        data."""
        return function(*arguments)

    def gather(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        take: Callable[[Item, Callable[[], Result]], object],
    ) -> None:
        """Call `take(item, result)` in this thread for each item in order, where `result()` returns the result of
        `work(item)` or raises its error.

        Other threads call `work`, for a few items at a time and ahead of `take`. An error or an interrupt ends the work
        in progress, drops its results, and is raised.
        """
        if self.threads == 1 or len(items) < 2:
            for item in items:
                take(item, lambda item=item: work(item))  # type: ignore[misc]
            return
        with self._building.held():
            self.busy = min(self.width, len(items))
            threads = ThreadPoolExecutor(min(self.threads, len(items)), "mmaprobe")
            try:
                with held_back:
                    futures = [threads.submit(self._work, work, item) for item in items]
                for item, future in zip(items, futures, strict=True):
                    self._wait(future)
                    take(item, future.result)
            except BaseException:
                self._ended = True
                raise
            finally:
                with self._building.released():
                    threads.shutdown(cancel_futures=True)
                self._ended = False
                self.busy = 1

    def _wait(self, future: Future[Any]) -> None:
        with self._building.released():
            settle(future)

    def _work(self, work: Callable[[Item], Result], item: Item) -> Result:
        if self._ended:
            raise KeyboardInterrupt
        unwanted.set(lambda: self._ended)
        with self._building.held():
            return with_room(lambda: work(item))
