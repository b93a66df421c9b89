"""What a CUDA device needs of a GPU: a narrow layer, so that everything above it can be tested without one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from mmaprobe.smtmodel.base.errors import IncompleteError


class LaunchError(IncompleteError):
    """A kernel failed or hung; the GPU gives no more answers in this process."""


class GpuMemoryError(LaunchError):
    """The GPU's memory does not hold what was to be put there; a smaller batch may fit."""


class Launcher(ABC):
    """One GPU and the kernel loaded on it.

    `gpu` is its name; `capability` its compute capability (major, minor); `cuda` the newest version of CUDA (major,
    minor) that its driver runs; `versions` what else belongs to the provenance of an answer.
    """

    gpu: str
    capability: tuple[int, int]
    cuda: tuple[int, int]
    versions: dict[str, Any]

    @abstractmethod
    def load(self, cubin: bytes, name: str) -> None:
        """Load machine code; `name` is the kernel that `launch` runs from now on. Raises LaunchError."""

    @abstractmethod
    def launch(
        self, blocks: int, threads: int, inputs: Sequence[NDArray[Any]], output: NDArray[Any],
        numbers: Sequence[int], timeout: float,
    ) -> None:  # fmt: skip
        """Run the kernel on `inputs`, `output` and u32 `numbers`, in this order, and fill `output`.

        `timeout`: seconds. Raises GpuMemoryError or LaunchError.
        """

    @abstractmethod
    def clock(self) -> int | None:
        """MHz that the multiprocessors run at now, if that can be told."""
