"""Room for frames: calls across the border of two pieces of them map no memory."""

from __future__ import annotations

import resource
import sys
from threading import Thread

import pytest

from mmaprobe.smtmodel.base.frames import with_room


def at_every_depth(below: int = 200) -> None:
    for _ in range(100):
        ordinary()
    if below:
        at_every_depth(below - 1)


def ordinary() -> None:
    one, two, three, four = 1, 2, 3, 4
    assert one + two + three < four * two


@pytest.mark.skipif(sys.platform != "linux", reason="faults of a thread are counted by Linux alone")
def test_no_memory_is_mapped_by_calls() -> None:
    """In a thread, which has frames of its own."""
    faults: list[int] = []

    def counted() -> None:
        for call in (at_every_depth, lambda: with_room(at_every_depth)):
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
            call()
            faults.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)

    thread = Thread(target=counted)
    thread.start()
    thread.join()
    plain, roomy = faults
    assert plain > 100
    assert roomy < 50
