"""Outputs a second of `simulate` by engine, as ratios in one run.

`python benchmarks/simulate.py [-o benchmarks/simulate.md]`. One output is one dot product of the instruction's length
with its addend. For comparison, from their authors or measured on such a machine: microsoft/MMA-Sim about 11,000
outputs of 16 products a second, Hawkeye (C++) about 6,000,000 groups of 16 products a second.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from smtmodel.compiled import compile_model
from smtmodel.dot import Model
from smtmodel.formats import FORMATS
from smtmodel.gemm import simulate
from smtmodel.numbers import from_numbers
from smtmodel.reference import parse_reference

MODELS = (
    "hopper/mma/m16n8k16.f32.f16.f16.f32",
    "volta/mma/m8n8k4.f32.f16.f16.f32",
    "ampere/mma/m16n8k16.f32.bf16.bf16.f32",
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
    "cdna3/mfma/f32_16x16x16_f16",
    "cdna2/mfma/f32_32x32x8f16",
    "ampere/mma/m8n8k4.f64.f64.f64.f64",
)
SIZES = {"numpy": 256, "compiled": 1024}  # M and N


def rate(model: Model, engine: str, repeats: int = 3) -> float:
    """Outputs (of the instruction's length) a second on one thread; the best of some runs."""
    rng = np.random.default_rng(0)
    size, k = SIZES[engine], 4 * model.length
    sides = []
    for shape, fmt in (((size, k), model.a), ((k, size), model.b)):
        sides.append(from_numbers(rng.standard_normal(shape), FORMATS[fmt.name], "nearest_even"))
    best = 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        simulate(sides[0], sides[1], None, model, engine=engine, threads=1)  # type: ignore[arg-type]
        best = max(best, size * size * 4 / (time.perf_counter() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    lines = [f"# {(__doc__ or '').splitlines()[0]}", "", (__doc__ or "").split("\n\n", 1)[1].strip(), ""]
    lines += [
        f"One thread; M = N = {SIZES['numpy']} (numpy), {SIZES['compiled']} (compiled); K = 4 tiles.",
        "",
    ]
    lines += ["| model | products | numpy | compiled | ratio |", "|---|---|---|---|---|"]
    for reference in MODELS:
        model = parse_reference(reference)
        plain = rate(model, "numpy")
        fast = rate(model, "compiled") if compile_model(model) else float("nan")
        lines.append(f"| {reference} | {model.length} | {plain:,.0f}/s | {fast:,.0f}/s | {fast / plain:.1f} |")
        print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
