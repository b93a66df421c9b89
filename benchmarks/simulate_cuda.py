"""Outputs a second of `simulate --engine cuda` on this machine's GPU, and whether they are NumPy's.

`python -m benchmarks.simulate_cuda [-o benchmarks/simulate_cuda.md]`. One output is one dot product of the
instruction's length with its addend. The whole call is timed, transfers and checks included: M = N = 4096, and K of
64 instructions, which are 1,074 million outputs. Every model's results on lines of any patterns
and on numbers of many sizes (as in benchmarks/simulate.py) are held against the NumPy carrier's first.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.simulate import MODELS, inputs, mixed
from mmaprobe.runner.gpu.cuda import launcher_here
from mmaprobe.runner.gpu.cuda_product import CudaProduct
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_reference

SIZE, STEPS = 4096, 64
CHECKED = 250_000  # results of each model


def differing(model: Model, product: CudaProduct, size: int = 500) -> int:
    """How many of CHECKED results, each of three instructions, NumPy gives differently."""
    rng, found, k = np.random.default_rng(1), 0, 3 * model.length
    for _ in range(CHECKED // size**2):
        sides = ((model.a, (size, k)), (model.b, (size, k)), (model.c, (size, size)))
        a, b, c = (mixed(rng, fmt, shape) for fmt, shape in sides)
        factors = {}
        if model.scale is not None:
            most, shape = 1 << model.scale.width, (size, 3 * model.scales)
            left, right = (rng.integers(0, most, shape, dtype=np.uint64) for _ in "ab")
            factors = {"scale_a": left, "scale_b": right.T}
        plain = simulate(a, b.T, c, model, engine="numpy", scales=factors)
        found += int(np.count_nonzero(plain != simulate(a, b.T, c, model, engine=product, scales=factors)))
    return found


def rate(model: Model, product: CudaProduct) -> float:
    """Outputs (of the instruction's length) a second; the best of three calls after one that compiles."""
    sides, factors = inputs(model, SIZE, STEPS * model.length)
    best = 0.0
    for _ in range(4):
        start = time.perf_counter()
        simulate(*sides, None, model, engine=product, scales=factors)
        best = max(best, SIZE * SIZE * STEPS / (time.perf_counter() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    launcher = launcher_here()
    product, (title, about) = CudaProduct(launcher), (__doc__ or "").split("\n\n", 1)
    lines = [f"# {title}", "", about.strip(), "", f"{launcher.gpu}; {launcher.versions}.", ""]
    lines += [f"| model | products | outputs/s | of {CHECKED:,} differ |", "|---|---|---|---|"]
    for reference in MODELS:
        model = parse_reference(reference)
        wrong = differing(model, product)
        lines.append(f"| {reference} | {model.length} | {rate(model, product):,.0f} | {wrong} |")
        print(lines[-1], flush=True)
        if chosen.output:
            chosen.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
