"""The parts of the time are of files that there are, and a thread is busy with the innermost of them."""

from __future__ import annotations

import sys

import pytest

from benchmarks.where_time_goes import PARTS, ROOT, SOLVERS, part_of
from mmaprobe.queries.solvers.engines import first_of


@pytest.mark.parametrize("file", [file for files in PARTS.values() for file in files if file and "pysmt" not in file])
def test_parts_are_of_files_that_there_are(file: str) -> None:
    assert list(ROOT.glob(f"{file}*.py"))


def test_the_innermost_function_counts() -> None:
    class RecordingCall:
        part = ""

        @property
        def finished(self) -> object:
            self.part = part_of(sys._getframe(1))  # of the race that waits
            raise InterruptedError

        def stop(self) -> None:
            pass

        def kill(self) -> None:
            pass

    call = RecordingCall()
    with pytest.raises(InterruptedError):
        first_of(["it"], lambda _: call, None, lambda answer: answer)  # type: ignore[arg-type, return-value]
    assert call.part == SOLVERS
    assert part_of(sys._getframe()) == "the rest"
