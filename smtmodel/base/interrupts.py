"""Interrupts at safe points.

A signal handler may raise an exception between any two steps of the main thread. During a wait on a lock, or just after
a lock is taken, such an exception leaves the lock taken for ever, and another thread waits for the lock. Therefore an
interrupt is deferred while the main thread is in a block of `held_back`, or in a module of Python's that handles locks;
and waits on other threads use a `Latch`, in which an exception may be raised at any time.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

from mmaprobe.smtmodel.base.errors import OutOfTimeError

if TYPE_CHECKING:
    from concurrent.futures import Future

SLICE = 0.05  # seconds between two looks at flags other than the latch's own
RETRY = 0.02  # seconds until an interrupt that was deferred because of locks is tried again
#: the time from a limit to the work's interrupt (MARGIN) and to its end (LAST): these seconds, or this share of the
#: limit if longer
MARGIN, LAST = (0.6, 0.03), (1.5, 0.08)
LEFT = 2.0  # seconds (or the whole limit if shorter) that a program has for its work, however long its start took
LONGEST = 1e8  # the most seconds that the system's timer takes

#: whether the work of this thread is unwanted; then the thread raises KeyboardInterrupt at its next safe point
unwanted: ContextVar[Callable[[], bool]] = ContextVar("unwanted", default=lambda: False)

#: Python's modules that take locks for which another thread may wait: the beginnings of their files' paths
_NAMES = ("threading.py", "queue.py", "concurrent", "logging", "multiprocessing")
_AMONG = (
    *(os.path.join(os.path.dirname(threading.__file__), name) for name in _NAMES),
    "<frozen importlib._bootstrap>",
)


#: the deadline of this thread's work, in seconds of time.monotonic
_until: ContextVar[float | None] = ContextVar("until", default=None)


class CutShort(KeyboardInterrupt):
    """The work of a command ends early: what it has found so far is printed."""


class TimeUp(CutShort):
    """The time limit of a command is over, and its work has not returned by itself."""


class Interrupted(CutShort):
    """The user interrupts a command."""


class _State:
    """The deferred interrupt and the time limit. Only the main thread changes these."""

    depth = 0
    pending: type[KeyboardInterrupt] | None = None
    guarded = False  # whether signals are handled here, by `guard`
    soft: float | None = None  # when the work is interrupted, in seconds of time.monotonic
    hard: float | None = None  # when the work is ended
    started: float | None = None  # when this process began, from which the first time limit counts; else None
    begun = 0.0  # when the work began
    seconds = 0.0  # the time limit
    late = False  # whether a limit has interrupted the work
    interrupted = False  # whether the user has interrupted the work

    @property
    def ended(self) -> bool:
        """Whether the work was told to end early."""
        return self.late or self.interrupted


state = _State()
_undo: list[Callable[[], object]] = []


class _HeldBack:
    """A block of the main thread without interrupts. An interrupt within the block is raised at the end of the
    outermost block. Work in the block must be short."""

    def __enter__(self) -> None:
        if _in_main():
            state.depth += 1

    def __exit__(self, *_: object) -> None:
        if _in_main():
            state.depth -= 1
            safe_point()


held_back = _HeldBack()


def safe_point() -> None:
    """Raise the deferred interrupt if there is one. Within a block of `held_back` this function does nothing."""
    if state.pending is not None and not state.depth and _in_main():
        kind, state.pending = state.pending, None
        raise kind


def interrupt(kind: type[KeyboardInterrupt], frame: FrameType | None) -> None:
    """Raise an interrupt now, in the handler of a signal, or defer the interrupt to a safe point. `frame`: the frame
    that the main thread executes."""
    state.interrupted |= kind is Interrupted
    if not state.depth and not _among_locks(frame):
        state.pending = None
        raise kind
    if state.pending is None or state.pending is TimeUp:
        state.pending = kind
    _set_timer()


def guard() -> None:
    """Let time limits interrupt this process from now on."""
    state.guarded = True
    signal.signal(signal.SIGALRM, _alarm)


def unguard() -> None:
    """Let no time limit interrupt this process any more, since the command has ended."""
    state.pending, state.soft, state.hard = None, None, None
    if state.guarded:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)


def allow(seconds: float | None) -> None:
    """Give the work of the main thread `seconds` from now on (None: no limit), in place of an earlier limit. The first
    limit counts from the program's start. Without `guard` the limit interrupts nothing."""
    state.begun, started = time.monotonic(), state.started
    state.started = None
    if seconds is not None and started is not None:
        state.begun = max(started, state.begun - max(0.0, seconds - LEFT))
    if seconds is None or seconds > LONGEST:
        state.soft = state.hard = None
    else:
        after, last = (max(least, share * seconds) for least, share in (MARGIN, LAST))
        over = state.begun + seconds
        state.soft, state.hard, state.seconds = over + after, over + last, seconds
    _set_timer()


@contextmanager
def uncounted() -> Iterator[None]:
    """A block of the main thread whose time does not count: the time limit of the command moves by as much."""
    began, soft, hard = time.monotonic(), state.soft, state.hard
    state.soft = state.hard = None
    _set_timer()
    try:
        yield
    finally:
        spent = time.monotonic() - began
        state.begun += spent
        state.soft, state.hard = (None if limit is None else limit + spent for limit in (soft, hard))
        _set_timer()


def why_ended() -> str:
    """The reason why work ended early: a time limit, or an interrupt."""
    return "out of time" if state.late else "interrupted"


def why_not_done() -> str:
    """The reason why work was not done, as a sentence's first half."""
    return "the search was interrupted" if state.interrupted else "the time was over"


def begun() -> float:
    """The time at which the current command began, of time.monotonic."""
    return state.begun


def left(seconds: float | None) -> float | None:
    """The seconds that are left of `seconds` since the work began (`allow`); None without a limit."""
    return None if seconds is None else max(0.0, state.begun + seconds - time.monotonic())


@contextmanager
def undone_if_ended(undo: Callable[[], object]) -> Iterator[None]:
    """A block whose traces `undo` removes: a thread that ends the process during the block calls `undo` first."""
    _undo.append(undo)
    try:
        yield
    finally:
        _undo.remove(undo)


def undo_all() -> None:
    """Call the `undo` of every open block of `undone_if_ended`, before the process is ended."""
    for undo in reversed(_undo):
        with suppress(Exception):
            undo()


def _in_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _among_locks(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_AMONG):
            return True
        frame = frame.f_back
    return False


def _set_timer() -> None:
    if not state.guarded:
        return
    now = time.monotonic()
    waits = [RETRY] * (state.pending is not None and not state.depth)
    waits += [] if state.soft is None else [max(1e-3, state.soft - now)]
    signal.setitimer(signal.ITIMER_REAL, min(waits, default=0.0))


def _alarm(number: int, frame: FrameType | None) -> None:
    if state.soft is not None and time.monotonic() >= state.soft:
        state.soft, state.late = None, True
        interrupt(state.pending or TimeUp, frame)
    elif state.pending is not None:
        interrupt(state.pending, frame)
    _set_timer()


# --- long loops ---------------------------------------------------------------------------------------------------


@contextmanager
def working_until(deadline: float | None) -> Iterator[None]:
    """A block whose long loops call `check_clock`. `deadline`: in seconds of time.monotonic, or None; an earlier
    deadline of an outer block holds too."""
    before = _until.get()
    token = _until.set(deadline if before is None else before if deadline is None else min(before, deadline))
    try:
        yield
    finally:
        _until.reset(token)


def check_clock() -> None:
    """Raises OutOfTimeError after the deadline of `working_until`, KeyboardInterrupt if this thread's work is
    unwanted."""
    deadline = _until.get()
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTimeError("the time ran out")
    if unwanted.get()():
        raise KeyboardInterrupt


# --- waits on other threads ---------------------------------------------------------------------------------------


class Latch:
    """An event that is set once. Unlike threading.Event, a latch has no lock that an exception in a wait leaves taken,
    and `set` never waits."""

    def __init__(self) -> None:
        self._set = False
        self._closed = threading.Lock()
        self._closed.acquire()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        with suppress(RuntimeError):  # the latch was set before
            self._closed.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the latch is set, or for `timeout` seconds. Returns whether the latch is set."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._set:
            left = SLICE if until is None else min(SLICE, until - time.monotonic())
            if left <= 0:
                break
            if self._closed.acquire(timeout=left):
                self._closed.release()  # for the next thread that waits
            safe_point()
        return self._set


def settle(future: Future[Any], timeout: float | None = None) -> bool:
    """Wait until a future is done, or for `timeout` seconds. Returns whether the future is done."""
    done = Latch()
    with held_back:
        future.add_done_callback(lambda _: done.set())
    return done.wait(timeout)
