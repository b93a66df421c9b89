"""Matrix products by a plan on an NVIDIA GPU, bit for bit: the plan's kernel, not the GPU's matrix unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from mmaprobe.runner.gpu.launch import Launcher
from mmaprobe.runner.gpu.nvrtc import compiler_for
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.cuda_tape import NAME, THREADS, CudaTape, cuda_tape
from mmaprobe.smtmodel.plans.tape import UncompiledError

MOST = 1 << 32  # outputs of one launch, which then takes a second or so
TIMEOUT = 120.0  # seconds for one launch


@cache
def _cubin(source: str, capability: tuple[int, int], cuda: int) -> bytes:
    """The machine code of a kernel. Raises CompilerError."""
    return compiler_for(capability, cuda).compile(source, f"sm_{capability[0]}{capability[1]}").cubin


class CudaProduct:
    """Products on one GPU, for `simulate`."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __call__(
        self, plan: Plan, a: Matrix, b: Matrix, c: Matrix, scales: Mapping[str, Matrix],
        progress: Callable[[int, int], None] | None = None,
    ) -> Matrix:  # fmt: skip
        """D for patterns A (rows x K), B (K x columns) and C, and scale factors. Raises ParameterError, CompilerError
        and LaunchError."""
        (rows, columns), length = c.shape, a.shape[1]
        try:
            tape = cuda_tape(plan, length)
        except UncompiledError as error:
            raise ParameterError("engine", f"{plan.reference} has no kernel: {error}") from None
        sides = {"a": a, "b": b, "c": c, **scales}
        arrays = {name: np.ascontiguousarray(side, kind_of(plan.formats[name])) for name, side in sides.items()}
        out = np.empty(c.shape, dtype=kind_of(plan.d))
        each = max(1, MOST // max(1, columns * len(tape.tables[0])))
        for start in range(0, rows if columns else 0, each):
            part = slice(start, min(start + each, rows))
            own = {name: (side if name in ("b", "scale_b") else side[part])[None] for name, side in arrays.items()}
            self.blocks(tape, own, out[None, part])
            if progress is not None:
                progress(part.stop, rows)
        return out

    def blocks(self, tape: CudaTape, given: Mapping[str, Any], out: Any) -> None:
        """Fill D (blocks x rows x columns) of patterns A (blocks x rows x K), B (blocks x K x columns), C, of which one
        element is given where it is not read, and scale factors: contiguous arrays of NumPy, or of the GPU itself."""
        gpu, (blocks, rows, columns) = self._launcher, out.shape
        gpu.load(_cubin(tape.source, gpu.capability, gpu.cuda[0]), NAME)
        factors = given["scale_b"].shape[1] if "scale_b" in given else 0
        numbers = [blocks, rows, columns, given["a"].shape[2], factors, len(tape.tables[0]), tape.result]
        inputs = [*given.values(), *tape.tables]
        gpu.launch(-(-blocks * rows * columns // THREADS), THREADS, inputs, out, numbers, TIMEOUT)
