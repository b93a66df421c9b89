"""The single pass and the warp shuffle of Navarro et al. 2020 as the authors' code has them: writes
benchmarks/navarro.md.

python -m benchmarks.navarro

The code is public (crinavar/gpu-tensor-core, reduction/tensor-cores-MMA/src/kernel.cuh, in December 2019 as in June
2020): its chain has f16 accumulators, and its shuffle reads f16 numbers and adds them in f16 within a warp. It has no
licence: nothing is copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms.reductions import F16, F32, WARP, ArrayOperations
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers
from mmaprobe.smtmodel.tables.reference import parse_reference

PAGE = Path(__file__).parent / "navarro.md"
SIDE, CHAIN, WARPS = 16, 4, 4  # m, R, and the warps of a block of 128 threads
DRAWS = 5
CHAINED = parse_reference("volta/mma/m8n8k4.f16.f16.f16.f16")  # kernel.cuh, d_frag
LAST = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32")  # r_frag, from zeros

Patterns = NDArray[np.unsignedinteger]
Sum = Callable[[Patterns], float]


def single_pass(numbers: Patterns) -> float:
    """reduction_tc_warp and block_reduce_tc: f16 sums of columns, their sum in f32, a tree in each block."""
    operations = ArrayOperations()
    columns = operations.column_sums(CHAINED, (SIDE, SIDE), CHAIN, numbers)
    warps = operations.column_sums(LAST, (SIDE, 1), 1, columns)
    return value(operations.in_sequence(F32, operations.trees(F32, WARPS, warps)))


def warp_shuffle(numbers: Patterns) -> float:
    """block_reduce_shuffle: f16 trees in warps; the sum of a block in f32, which it returns as f16."""
    operations = ArrayOperations()
    warps = operations.converted(F16, F32, operations.trees(F16, WARP, numbers))
    blocks = operations.converted(F32, F16, operations.trees(F32, WARPS, warps))
    return value(operations.in_sequence(F32, operations.converted(F16, F32, blocks)))


SUMS: dict[str, Sum] = {"single pass": single_pass, "warp shuffle": warp_shuffle}


def value(pattern: Patterns) -> float:
    return float(to_numbers(pattern.astype(np.uint32), F32)[0])


def errors(size: int, distribution: str) -> dict[str, float]:
    """The mean error of each sum in percent of the exact sum of the f32 numbers."""
    totals = dict.fromkeys(SUMS, 0.0)
    for seed in range(DRAWS):
        rng = np.random.default_rng([seed, size])
        drawn = rng.standard_normal(size) if distribution == "normal" else rng.random(size)
        drawn = drawn.astype(np.float32).astype(np.float64)
        exact = math.fsum(drawn)
        numbers = from_numbers(drawn, F16, "nearest_even").astype(np.uint16)
        for name, total in SUMS.items():
            totals[name] += 100 * abs(total(numbers) - exact) / abs(exact) / DRAWS
    return totals


HEAD = """# Sums as the code of Navarro et al. 2020 has them

Written by `python -m benchmarks.navarro`: the mean error of five draws in percent, with the f16 accumulators and the
f16 shuffles of the authors' code (crinavar/gpu-tensor-core, reduction/tensor-cores-MMA/src/kernel.cuh, in December 2019
as in June 2020), on the model of the V100; R = 4, blocks of 128 threads.
[The study](../docs/studies/navarro-variants.md) has f32 sums, as the paper says.

| distribution | n | single pass | warp shuffle |
|---|---|---|---|
"""


def main() -> None:
    lines = [HEAD]
    for distribution in ("normal", "uniform"):
        for size in (10_000, 100_000, 1_000_000):
            found = errors(size, distribution)
            lines.append(f"| {distribution} | {size} | {' | '.join(f'{one:.2g}' for one in found.values())} |\n")
            print(lines[-1], end="", flush=True)
    PAGE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
