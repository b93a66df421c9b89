"""Outputs a second of `simulate` by engine, as ratios in one run.

`python -m benchmarks.simulate [-o benchmarks/simulate.md]`. One output is one dot product of the instruction's length
with its addend. The yardsticks of the same run: `limit.c`, a loop written by hand for one case (Hopper's f16, 16
products, finite inputs that are decoded already), and the bytes a second of a copy in memory. From their authors or
measured on such a machine: Hawkeye (C++) about 6 million groups of 16 products a second, MMA-Sim 2.1.1 (PyTorch) 1.0 to
1.2 million.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from smtmodel.compiled import compile_model, compiler
from smtmodel.dot import Model
from smtmodel.formats import FORMATS
from smtmodel.gemm import simulate
from smtmodel.numbers import from_numbers
from smtmodel.reference import parse_reference

YARDSTICK = Path(__file__).parent / "limit.c"
MODELS = (
    "hopper/mma/m16n8k16.f32.f16.f16.f32",
    "volta/mma/m8n8k4.f32.f16.f16.f32",
    "ampere/mma/m16n8k16.f32.bf16.bf16.f32",
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
    "cdna3/mfma/f32_16x16x16_f16",
    "cdna2/mfma/f32_32x32x8f16",
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
    "ampere/mma/m8n8k4.f64.f64.f64.f64",
    "x86/amx/tdpbf16ps",
    "x86/avx512/vdpbf16ps",
)
SIZES = {"numpy": 256, "compiled": 1024}  # M and N


def rate(model: Model, engine: str, repeats: int = 5) -> float:
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


def yardstick() -> float:
    """Outputs a second of the loop written by hand; 0 without a compiler."""
    cc = compiler()
    if cc is None:
        return 0.0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "limit"
        subprocess.run([cc, "-O3", "-march=native", "-w", "-o", str(program), str(YARDSTICK)], check=True)
        return max(float(subprocess.check_output([program], text=True).split()[0]) for _ in range(3)) * 1e6


def copied() -> float:
    """Bytes a second of a copy in memory, read and written."""
    source = np.ones(1 << 26, dtype=np.uint8)
    target, best = np.empty_like(source), 0.0
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        best = max(best, 2 * source.size / (time.perf_counter() - start))
    return best


def processor() -> str:
    """The name of the processor, where the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    vectors = "AVX-512" if any("avx512f" in line for line in lines) else "no AVX-512"
    return f"{named[0]} ({vectors})" if named else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    lines = [f"# {(__doc__ or '').splitlines()[0]}", "", (__doc__ or "").split("\n\n", 1)[1].strip(), ""]
    lines += [
        f"One thread; M = N = {SIZES['numpy']} (numpy), {SIZES['compiled']} (compiled); K = 4 tiles.",
        "",
    ]
    limit = yardstick()
    lines += [f"{processor()}; limit.c: {limit:,.0f}/s; a copy in memory: {copied() / 1e9:.1f} GB/s.", ""]
    lines += ["| model | products | numpy | compiled | ratio | of limit.c |", "|---|---|---|---|---|---|"]
    for reference in MODELS:
        model = parse_reference(reference)
        plain = rate(model, "numpy")
        fast = rate(model, "compiled") if compile_model(model) else float("nan")
        lines.append(
            f"| {reference} | {model.length} | {plain:,.0f}/s | {fast:,.0f}/s | {fast / plain:.1f} | "
            f"{fast / limit if limit else float('nan'):.2f} |"
        )
        print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
