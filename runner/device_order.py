"""The order in which a device adds, from its answers within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mmaprobe.queries.compare.steady import AGAIN
from mmaprobe.queries.order.reveal import Tree, reveal
from mmaprobe.runner.protocol import Device
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.base.progress import Throttle
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector

PART = 64  # questions asked again between two looks at the clock


def revealed(
    device: Device, asked: Signature, deadline: float, progress: Callable[[str], None], ends: bool = False
) -> Tree:
    """The summation tree of a device. `deadline`: in seconds of time.monotonic. `progress` gets texts now and then.

    `ends`: the tree says also what the sum starts from and which products are rounded; and every question is asked
    again while there is time, since no later question tests them. Raises UnrevealedError, ContradictionError, or
    IncompleteError where time runs out."""
    count, now_and_then = 0, Throttle()

    def every(vectors: Sequence[Vector]) -> list[int]:
        nonlocal count
        found = []
        for vector, d in device.answers(vectors):
            if d is None:
                which = f"no answer is recorded to question {vector.id} about the order"
                hint = "`mmaprobe identify FAMILY` says which candidates give the results recorded"
                raise IncompleteError(f"{device.name}: {which}; {hint}")
            found.append(d)
            count += 1
            if now_and_then():
                progress(f"revealing the summation order: {counted(count, 'question')}")
            if time.monotonic() > deadline:
                raise IncompleteError(f"the time ran out after {counted(count, 'question')} about the summation order")
        return found

    def again(vectors: Sequence[Vector]) -> list[int | None]:
        found: list[int | None] = []
        for start in range(0, len(vectors), PART):
            in_time = not start or time.monotonic() < deadline
            part = vectors[start : start + PART]
            found += device.again(part) if in_time else [None] * len(part)
            if now_and_then():
                progress(f"asking again: {counted(len(found), 'question')} of {len(vectors)}")
        return found

    return reveal(  # every question decides something
        lambda vector: every([vector])[0], asked, ask_all=every, again=again, addend=asked.addend, ends=ends,
        asked_again=None if ends else AGAIN,
    )  # fmt: skip
