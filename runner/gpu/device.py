"""A GPU's matrix instruction as a device: the part that CUDA and HIP share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.gpu.hip_kernels import HipKernel
from mmaprobe.runner.gpu.kernel_source import POINTERS, THREADS
from mmaprobe.runner.gpu.kernels import Kernel, Operand
from mmaprobe.runner.gpu.launch import GpuMemoryError, Launcher
from mmaprobe.runner.protocol import CLOCK
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.batch import Patterns
from mmaprobe.smtmodel.evaluate.model import Model

LARGEST = 1 << 21  # the most vectors of one launch
SMALLEST = 1 << 8  # the fewest vectors of one launch; less memory is an error


@dataclass(frozen=True)
class Position:
    """The place of a vector in the instruction's matrices: `row` of A and C, `column` of B and C. The other elements
    are zeros, or (`neighbours` = "random") hashed bits that depend on `seed` and on the vector's number in its
    launch."""

    row: int = 0
    column: int = 0
    neighbours: str = "zero"
    seed: int = 0


class GpuDevice(BatchDevice):
    """A kernel on a GPU; `patience` limits one launch. Raises InputError for a position outside the kernel's
    matrices."""

    batch = 1 << 16
    shown_by: ClassVar[str] = "nvidia-smi"
    """the program that lists the processes that hold the GPU's memory"""

    def __init__(
        self, name: str, kernel: Kernel | HipKernel, model: Model, position: Position, launcher: Launcher
    ) -> None:
        self.name, self.kernel, self.model, self.position = name, kernel, model, position
        rows, columns, _ = kernel.shape
        if position.row >= rows or position.column >= columns:
            own = model.reference.rpartition("/")[2]
            raise InputError(f"{name}: {own} has rows 0 to {rows - 1} and columns 0 to {columns - 1}")
        self._launcher, self._size = launcher, LARGEST
        self.description: dict[str, Any] = {}

    def patterns(self, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> Patterns:
        operands = dict(zip(POINTERS, (a, b, c, *rest), strict=False))
        inputs = [_column(operand, operands[operand.matrix]) for operand in self.kernel.operands]
        inputs += [np.empty((len(c), 0), np.uint8)] * (len(POINTERS) - len(inputs))
        out = np.empty(len(c), inputs[2].dtype)
        start = 0
        while start < len(out):
            part = slice(start, start + self._size)
            try:
                self._launch([each[part] for each in inputs], out[part])
            except GpuMemoryError as error:
                self._size = len(out[part]) // 2
                if self._size < SMALLEST:
                    raise GpuMemoryError(f"{error}; other programs may hold it ({self.shown_by} shows them)") from None
            else:
                start += self._size
        self.description[CLOCK] = self._launcher.clock()
        return out.astype(np.uint64)

    def _launch(self, inputs: Sequence[NDArray[Any]], out: NDArray[Any]) -> None:
        each, at = THREADS // self.kernel.threads, self.position
        numbers = (len(out), at.row, at.column, int(at.neighbours == "random"), at.seed)
        self._launcher.launch(-(-len(out) // each), THREADS, inputs, out, numbers, self.patience.left())


def _column(operand: Operand, patterns: Patterns | None) -> NDArray[Any]:
    """Patterns as the kernel reads them: of shape (vectors, operand.count), with zeros for missing patterns."""
    assert patterns is not None
    table = patterns.reshape(len(patterns), -1)
    if table.shape[1] > operand.count:
        raise InputError(f"{table.shape[1]} patterns of {operand.matrix} for an instruction that takes {operand.count}")
    out = np.zeros((len(table), operand.count), f"u{operand.fmt.word // 8}")
    out[:, : table.shape[1]] = table
    return out
