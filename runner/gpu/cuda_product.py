"""Matrix products by a model on an NVIDIA GPU, bit for bit: the model's kernel, not the GPU's matrix unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from mmaprobe.runner.gpu.launch import Launcher
from mmaprobe.runner.gpu.nvrtc import compiler_for
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.compiled import TooLongError
from mmaprobe.smtmodel.evaluate.cuda_text import NAME, THREADS, cuda_source
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.operand import NAMED

MOST = 1 << 32  # outputs of one launch, which then takes a second or so
TIMEOUT = 120.0  # seconds for one launch


@cache
def _cubin(model: Model, capability: tuple[int, int], cuda: int) -> bytes:
    """The machine code of a model's kernel. Raises CompilerError and TooLongError."""
    return compiler_for(capability, cuda).compile(cuda_source(model), f"sm_{capability[0]}{capability[1]}").cubin


class CudaProduct:
    """Products on one GPU, for `simulate`."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __call__(
        self, model: Model, a: Matrix, b: Matrix, c: Matrix, scales: Mapping[str, Matrix],
        progress: Callable[[int, int], None] | None = None,
    ) -> Matrix:  # fmt: skip
        """D for patterns A (rows x K), B (K x columns) and C, with K a multiple of the model's length, and scale
        factors. Raises ParameterError, CompilerError and LaunchError."""
        gpu = self._launcher
        try:
            gpu.load(_cubin(model, gpu.capability, gpu.cuda[0]), NAME)
        except TooLongError as error:
            raise ParameterError("engine", f"{model.reference} is too long for a kernel: {error}") from None
        (rows, columns), steps = c.shape, a.shape[1] // model.length
        sides = {"a": a, "b": b, "c": c, **scales}
        arrays = {name: np.ascontiguousarray(side, kind_of(model.formats[name])) for name, side in sides.items()}
        out = np.empty(c.shape, dtype=kind_of(model.d))
        each = max(1, MOST // max(1, columns * steps))
        for start in range(0, rows if columns else 0, each):
            part = slice(start, min(start + each, rows))
            count = part.stop - start
            given = [side if NAMED[name].of == "column" else side[part] for name, side in arrays.items()]
            numbers = [count, columns, steps]
            gpu.launch(-(-count * columns // THREADS), THREADS, given, out[part], numbers, TIMEOUT)
            if progress is not None:
                progress(part.stop, rows)
        return out
