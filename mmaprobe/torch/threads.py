"""Contexts in threads: threads started inside a context, and work handed to pools of threads there, run inside it too.

A dispatch mode belongs to one thread. While a context is open, `Thread.start` and `ThreadPoolExecutor.submit` give new
work the contexts of the calling thread; after the end of a context, work that still runs is native.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from threading import Lock, Thread
from typing import Any

Contexts = list[AbstractContextManager[Any]]
_LOCK, _OPEN = Lock(), [0]
_START, _SUBMIT = Thread.start, ThreadPoolExecutor.submit


@contextmanager
def followed(contexts_here: Callable[[], Contexts]) -> Iterator[None]:
    """Within the block, new threads are in the contexts that `contexts_here()` returns in the thread that starts
    them."""

    def inside(function: Callable[..., Any]) -> Callable[..., Any]:
        contexts = contexts_here()

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with ExitStack() as stack:
                if not contexts_here():  # a pool's thread may be in the contexts already
                    for one in contexts:
                        stack.enter_context(one)
                return function(*args, **kwargs)

        return run if contexts else function

    def start(thread: Thread) -> None:
        thread.run = inside(thread.run)  # type: ignore[method-assign]
        _START(thread)

    def submit(pool: ThreadPoolExecutor, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return _SUBMIT(pool, inside(function), *args, **kwargs)

    with _LOCK:
        _OPEN[0] += 1
        Thread.start, ThreadPoolExecutor.submit = start, submit  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        with _LOCK:
            _OPEN[0] -= 1
            if not _OPEN[0]:
                Thread.start, ThreadPoolExecutor.submit = _START, _SUBMIT  # type: ignore[method-assign]
