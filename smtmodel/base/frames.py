"""Room for the frames of Python's calls.

CPython keeps frames in pieces of 16 KiB, and gives a piece back to the system as soon as no call is in it: a loop that
calls functions across the border of two pieces maps and unmaps memory with every call, which took a third of the time
of building a unit. A call that asks for a large frame gets a large piece, which holds the frames of its inner calls as
well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
WORDS = 1 << 17  # the size of the frame asked for; the piece then has as much again, for some 2,000 frames below


def with_room(call: Callable[[], Result]) -> Result:
    """The result of a call, made with room for frames."""
    return call()


with_room.__code__ = with_room.__code__.replace(co_stacksize=WORDS)
