"""A GPU in place of the launch layer: it computes what a model does, and fails when it is told to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.runner.gpu.launch import GpuMemoryError, Launcher, LaunchError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.tables.reference import parse_reference


class FakeGpu(Launcher):
    """`memory`: vectors that fit; `fails`: the launch, counted from 1, that ends in that error."""

    def __init__(
        self, reference: str, capability: tuple[int, int] = (9, 0), memory: int | None = None,
        fails: tuple[int, BaseException] | None = None, cuda: tuple[int, int] = (13, 0),
    ) -> None:  # fmt: skip
        self.gpu, self.capability, self.cuda = "Fake H100", capability, cuda
        self.versions = {"driver": "580.65", "cuda": "13.0", "cupy": "14.0"}
        self.model = parse_reference(reference)
        self.memory, self.fails = memory, fails
        self.launches: list[dict[str, Any]] = []
        self.loaded: tuple[bytes, str] | None = None
        self.speed = 1980

    def load(self, cubin: bytes, name: str) -> None:
        assert cubin[:4] == b"\x7fELF"
        assert name.encode() in cubin
        self.loaded = cubin, name

    def launch(
        self, blocks: int, threads: int, inputs: Sequence[NDArray[Any]], output: NDArray[Any],
        numbers: Sequence[int], timeout: float,
    ) -> None:  # fmt: skip
        count, row, column, hashed, seed = numbers
        seen = {"blocks": blocks, "threads": threads, "count": count, "row": row, "column": column}
        types = [each.dtype.name for each in inputs]
        self.launches.append(seen | {"random": hashed, "seed": seed, "types": types})
        if self.fails and self.fails[0] == len(self.launches):
            raise self.fails[1]
        if self.memory is not None and count > self.memory:
            raise GpuMemoryError("the GPU's memory is full: out of memory")
        assert len(output) == count
        assert all(len(each) == count and each.flags.c_contiguous for each in inputs)
        a, b, c, *scales = inputs
        factors = scales if self.model.scales else []
        output[...] = evaluate_batch(self.model, a, b, c[:, 0], *factors).astype(output.dtype)

    def clock(self) -> int | None:
        self.speed -= 5
        return self.speed


def fault() -> LaunchError:
    return LaunchError("the kernel failed: cudaErrorIllegalAddress: an illegal memory access was encountered")


def random_rows(reference: str, count: int, seed: int = 3) -> list[NDArray[np.uint64]]:
    """Random bit patterns for a model: a, b, c and the scale factors."""
    model, rng = parse_reference(reference), np.random.default_rng(seed)

    def draw(width: int, *shape: int) -> NDArray[np.uint64]:
        return rng.integers(0, 1 << width, (count, *shape), dtype=np.uint64, endpoint=False) if width < 64 else \
            rng.integers(0, (1 << 64) - 1, (count, *shape), dtype=np.uint64, endpoint=True)  # fmt: skip

    parts = [draw(model.a.width, model.length), draw(model.b.width, model.length), draw(model.c.width)]
    if model.scale is not None:
        parts += [draw(model.scale.field_width, model.scales) for _ in range(2)]
    return parts
