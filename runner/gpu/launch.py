"""The layer through which devices use a GPU. Tests replace this layer, and test all code above it without a GPU."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from mmaprobe.smtmodel.base.errors import IncompleteError

POLL = 0.0005  # seconds between two looks at a running kernel, after which Ctrl-C is noticed


class LaunchError(IncompleteError):
    """A kernel failed or did not end; this process gets no more answers from the GPU."""


class GpuMemoryError(LaunchError):
    """The GPU's memory is too small for the launch; a smaller batch may fit."""


def status_after(status: Callable[[], Any], running: object, timeout: float) -> Any:
    """The first status of a kernel other than `running`. Raises LaunchError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while (now := status()) == running:
        if time.monotonic() > deadline:
            raise LaunchError(f"the kernel did not finish within {timeout:.3g} s")
        time.sleep(POLL)
    return now


class Launcher(ABC):
    """One GPU and the kernel loaded on it.

    `gpu`: the GPU's name; `capability`: its compute capability (major, minor); `cuda`: the newest version of CUDA
    (major, minor) that its driver runs; `versions`: the versions of other software, for the provenance of answers.
    """

    gpu: str
    capability: tuple[int, int]
    cuda: tuple[int, int]
    versions: dict[str, Any]

    @abstractmethod
    def load(self, cubin: bytes, name: str) -> None:
        """Load machine code. `name`: the kernel that `launch` runs from now on. Raises LaunchError."""

    @abstractmethod
    def launch(
        self, blocks: int, threads: int, inputs: Sequence[Any], output: Any,
        numbers: Sequence[int], timeout: float,
    ) -> None:  # fmt: skip
        """Run the kernel on `inputs`, `output` and u32 `numbers`, in this order, and fill `output`. Arrays of any
        library that are in the GPU's memory already are read and filled there.

        `blocks`: the number of blocks of `threads` threads; `timeout`: seconds. Raises GpuMemoryError or LaunchError.
        """

    @abstractmethod
    def clock(self) -> int | None:
        """The present clock of the multiprocessors in MHz; None where it is not known."""
