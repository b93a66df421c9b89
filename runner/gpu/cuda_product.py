"""Matrix products of a plan on an NVIDIA GPU, bit for bit, by a kernel that does not use the GPU's matrix unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from mmaprobe.runner.gpu.cuda import launcher_here
from mmaprobe.runner.gpu.launch import Launcher
from mmaprobe.runner.gpu.nvrtc import compiler_for
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.operand import NAMED, OPERANDS
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.cuda_tape import NAME, THREADS, CudaTape, cuda_tape
from mmaprobe.smtmodel.plans.gemm import filled_scales, simulate_each
from mmaprobe.smtmodel.plans.tape import UncompiledError

MOST_WORK = 1 << 32  # outputs times steps of one launch, at most: about a second
TIMEOUT = 120.0  # seconds for one launch


#: (shape, bytes of a word) -> an array of such words in the GPU's memory
Empty = Callable[[tuple[int, ...], int], Any]


@cache
def _cubin(source: str, capability: tuple[int, int], cuda: int) -> bytes:
    """The machine code of a kernel. Raises CompilerError."""
    return compiler_for(capability, cuda).compile(source, f"sm_{capability[0]}{capability[1]}").cubin


class CudaProduct:
    """Products on one GPU, for `simulate` and for frameworks."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __call__(
        self, plan: Plan, a: Matrix, b: Matrix, c: Matrix, scales: Mapping[str, Matrix],
        progress: Callable[[int, int], None] | None = None,
    ) -> Matrix:  # fmt: skip
        """D for patterns A (rows x K), B (K x columns) and C, and scale factors. Raises ParameterError, CompilerError
        and LaunchError."""
        try:
            tape = cuda_tape(plan, a.shape[1])
        except UncompiledError as error:
            raise ParameterError("engine", f"{plan.reference} has no kernel: {error}") from None
        given = {"a": a, "b": b, "c": c, **scales}
        d: Matrix = self._launched(tape, {name: side[None] for name, side in given.items()}, progress)[0]
        return d

    def each(
        self, plan: Plan, a: Any, b: Any, c: Matrix | None = None, scales: Mapping[str, Matrix] | None = None,
        empty: Empty | None = None,
    ) -> Any:  # fmt: skip
        """D (blocks x rows x columns) of each block's A (blocks x rows x K) and B (blocks x K x columns), as
        `simulate_each` computes it. A and B may be contiguous tensors of words in the GPU's memory, which are not
        copied. `empty` makes D in the GPU's memory; without `empty`, D is a NumPy array. A plan without a kernel is
        computed on the processor, and its D is in the processor's memory."""
        try:
            tape = cuda_tape(plan, a.shape[2])
        except UncompiledError:
            return simulate_each(_on_processor(a, plan.a), _on_processor(b, plan.b), c, plan, scales)
        filled = [filled_scales(plan, {name: side[n] for name, side in (scales or {}).items()}, a[n], b[n])
                  for n in range(len(a))]  # fmt: skip
        own = {name: np.stack([one[name] for one in filled]) for name in filled[0]}
        if c is None and plan.addend:
            c = np.zeros((len(a), a.shape[1], b.shape[2]), kind_of(plan.c))
        with plan.named():
            return self._launched(tape, {"a": a, "b": b, **({} if c is None else {"c": c}), **own}, empty=empty)

    def _launched(
        self, tape: CudaTape, given: Mapping[str, Any], progress: Callable[[int, int], None] | None = None,
        empty: Empty | None = None,
    ) -> Any:  # fmt: skip
        """D of all blocks, by several launches if a single launch would take too long."""
        plan, (blocks, rows), columns = tape.plan, given["a"].shape[:2], given["b"].shape[2]
        shape, kind = (blocks, rows, columns), kind_of(plan.d)
        out = np.empty(shape, kind) if empty is None else empty(shape, np.dtype(kind).itemsize)
        arrays = {
            name: np.ascontiguousarray(side, kind_of(plan.formats[name])) if isinstance(side, np.ndarray) else side
            for name, side in given.items()
        }
        most = max(1, MOST_WORK // max(1, columns * len(tape.tables[0])))
        several = max(1, most // max(1, rows))
        for first, start in product(range(0, blocks, several), range(0, rows if columns else 0, most)):
            some, part = slice(first, first + several), slice(start, start + most)
            own = {
                name: side[some] if NAMED[name].of == "column" else side[some, part] for name, side in arrays.items()
            }
            if not plan.addend:
                own["c"] = np.zeros(1, kind_of(plan.c))
            self.blocks(tape, own, out[some, part])
            if progress is not None:
                progress(min(part.stop, rows), rows)
        return out

    def blocks(self, tape: CudaTape, given: Mapping[str, Any], out: Any) -> None:
        """Fill D (blocks x rows x columns) from patterns A (blocks x rows x K), B (blocks x K x columns), C (one
        element if the plan reads no C), and scale factors: contiguous arrays of NumPy or in the GPU's memory."""
        gpu, (blocks, rows, columns) = self._launcher, out.shape
        gpu.load(_cubin(tape.source, gpu.capability, gpu.cuda[0]), NAME)
        factors = given["scale_b"].shape[1] if "scale_b" in given else 0
        numbers = [blocks, rows, columns, given["a"].shape[2], factors, len(tape.tables[0]), tape.result]
        inputs = [*(given[row.name] for row in OPERANDS if row.name in given), *tape.tables]
        gpu.launch(-(-blocks * rows * columns // THREADS), THREADS, inputs, out, numbers, TIMEOUT)


def _on_processor(side: Any, fmt: Format) -> Matrix:
    """A side's patterns as a NumPy array; the side may lie in the GPU's memory."""
    return side if isinstance(side, np.ndarray) else np.asarray(side.cpu()).view(kind_of(fmt))


@cache
def product_here(device: int) -> CudaProduct | None:
    """Products on CUDA's current GPU of this machine; None without CuPy or a GPU. `device`: the number of that GPU, for
    which the products are kept."""
    try:
        return CudaProduct(launcher_here())
    except DeviceUnavailableError:
        return None
