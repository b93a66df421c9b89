"""Room for the frames of Python's calls.

CPython keeps frames in pieces of 16 KiB, and gives a piece back to the system as soon as no call is in it: a loop that
calls functions across the border of two pieces maps and unmaps memory with every call, which took a third of the time
of building a unit. A call that asks for much gets a large piece, and what it calls has its frames there as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
WORDS = 1 << 17  # what the call asks for; as much is left to those below it, some 2,000 frames


def with_room(call: Callable[[], Result]) -> Result:
    """What a call gives, made with room for frames."""
    return call()


with_room.__code__ = with_room.__code__.replace(co_stacksize=WORDS)
