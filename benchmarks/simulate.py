"""Outputs a second of `simulate` by engine, as ratios in one run.

`python -m benchmarks.simulate [-o benchmarks/simulate.md] [--large]`. One output is one dot product of the
instruction's length with its addend; seconds are those of the processor, so that a busy machine counts as a free one.
The yardsticks of the same run: `limit.c`, a loop written by hand for one case (Hopper's f16, 16 products, finite inputs
that are decoded already), and the bytes a second of a copy in memory. From their authors or measured on such a machine:
Hawkeye (C++) about 6 million groups of 16 products a second, MMA-Sim 2.1.1 (PyTorch) 1.0 to 1.2 million.

The next limit of the compiled loops is the two ports of vector operations: a product takes about eleven of them (a
multiplication, which is two, an addition and a maximum of exponents, a distance and its cap, a shift, sign and sum),
16 lanes wide. CC names another compiler than the first of clang and cc. `--large` adds a product of 4096 x 4096 x 4096
on two threads, `--mma-sim PYTHON` measures MMA-Sim in the same run by a Python that has it (`pip install
mmasim==2.1.1`; the faster of two sizes), and `--check` holds ten million results of each model against NumPy's: a
quarter of the rows of A and C and of the columns of B are of any patterns, the others of numbers near one and far from
it. `--plans` adds the time of plans as a ratio to that of their unit alone.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import table_row
from mmaprobe.runner.cpu import processor_name
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.libraries import IS_X86, compiler
from mmaprobe.smtmodel.evaluate.compiled import compile_lanes, compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.evaluate.tiles import Elementwise, Matrix
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.matrices import Patterns, Results
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Words
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference

YARDSTICK = Path(__file__).parent / "limit.c"
MODELS = (
    "hopper/mma/m16n8k16.f32.f16.f16.f32",
    "volta/mma/m8n8k4.f32.f16.f16.f32",
    "ampere/mma/m16n8k16.f32.bf16.bf16.f32",
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
    "cdna3/mfma/f32_16x16x16_f16",
    "cdna3/mfma/f32_16x16x32_fp8_fp8",
    "cdna2/mfma/f32_32x32x8f16",
    "cdna1/mfma/f32_32x32x8f16",
    "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3",
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
    "ampere/mma/m8n8k4.f64.f64.f64.f64",
    "x86/amx/tdpbf16ps",
    "x86/avx512/vdpbf16ps",
)
#: plans, one of them not shipped: promotion into f64 as often as it can be
PLANS = (
    *("cublas/plain", "cublas/split-k", "cublas/split-k-f16", "cutlass/tf32", "cutlass/fp8-promoted", "deepgemm/fp8"),
    *("cutlass/linear-combination", "pytorch/cpu-bf16-amx", "loop/fma", "openblas/sgemm", "loop/lanes"),
    "loop/pairwise",
    """plan: f64 every 32 products
about: Promotion into f64 after every two instructions.
source: this benchmark
formats: {a: f16, b: f16, c: f32, d: f32}
units: {mma: hopper/mma/m16n8k16.f32.f16.f16.f32}
roundings: {r: "round(f64, nearest_even)", out: "round(f32, nearest_even)"}
steps: {d: "out(sum(promote(32, mma, r), c))"}
""",
)
PLAN_SHAPES = {"compiled": (512, 2048, 512), "numpy": (64, 512, 64)}  # M, K and N
CHECKED = 10_000_000  # results of each model
SIZES = {"numpy": 256, "compiled": 1024}  # M and N
LARGE = 4096
#: prints outputs a second of MMA-Sim's instructions named by the arguments, a line each
MMA_SIM = """
import sys, time, torch
from mmasim import amd, nv_ptx
torch.set_num_threads(1)
for reference in sys.argv[1:]:
    generation, kind, name = reference.split("/")
    generation = generation.upper() if generation.startswith("cdna") else generation.capitalize()
    try:
        operation = {"mma": nv_ptx.MMA, "wgmma": nv_ptx.WGMMA, "mfma": amd.MFMA}[kind](generation, name)
    except (KeyError, AssertionError):
        print(0)
        continue
    best = 0.0
    for size in (64, 256, 256, 256):
        a = torch.randn(size, operation.k).to(operation.a_type)
        b = torch.randn(operation.k, size).to(operation.b_type)
        c = torch.zeros(size, size).to(operation.c_type)
        start = time.process_time()
        operation(a, b, c)
        best = max(best, size * size / (time.process_time() - start))
    print(best)
"""
HAWKEYE = 6e6  # of 16 products, from its paper


def inputs(model: Model, size: int, k: int) -> tuple[list[Matrix], dict[str, Any]]:
    """A and B of normal deviates, and scale factors near one."""
    rng = np.random.default_rng(0)
    shapes = (((size, k), model.a), ((k, size), model.b))
    sides = [from_numbers(rng.standard_normal(shape), fmt, "nearest_even") for shape, fmt in shapes]
    factors: dict[str, Any] = {}
    if (scale := model.scale) is not None:
        near, count = 3 << scale.fraction, k // model.scale_block
        for name, shape in (("scale_a", (size, count)), ("scale_b", (count, size))):
            factors[name] = rng.integers(scale.one - near, scale.one + near, shape, dtype=np.uint8)
    return sides, factors


def rate(model: Model, engine: str, repeats: int = 5) -> float:
    """Outputs (of the instruction's length) a second on one thread; the best of some runs."""
    size, k = SIZES[engine], 4 * model.length
    sides, factors = inputs(model, size, k)
    best = 0.0
    for _ in range(repeats):
        start = time.process_time()
        simulate(*sides, None, model, engine=engine, threads=1, scales=factors)
        best = max(best, size * size * 4 / (time.process_time() - start))
    return best


def plan_line(plan: Plan, repeats: int = 9) -> str:
    """For each engine, the time through a plan over that of its unit in a chain; and that time with the plan's
    additions over it, which nothing can be below: what they take by themselves, on matrices that are in the cache."""
    cells, unit = [plan.reference.removeprefix("plan:")], Plan.chained(plan.models[0])
    for engine, (m, k, n) in PLAN_SHAPES.items():
        best, counted = {}, Counted(plan, k)
        sides = {}
        for which in (plan, unit):
            rng = np.random.default_rng(0)
            shapes = (((m, k), which.a), ((k, n), which.b))
            sides[which] = [from_numbers(rng.standard_normal(shape), fmt, "nearest_even") for shape, fmt in shapes]
        for _ in range(repeats):  # in turn, so that both see the same machine
            for which, (a, b) in sides.items():
                start = time.process_time()
                simulate(a, b, None, which, engine=engine, threads=1)
                best[which] = min(best.get(which, math.inf), time.process_time() - start)
        additions = counted.seconds(m * n, engine == "compiled")
        cells += [f"{best[plan] / best[unit]:.2f}", f"{1 + additions / best[unit]:.2f}"]
    return table_row(*cells)


class Counted(Results[Patterns]):
    """How often a plan does each of its elementwise steps at a K."""

    def __init__(self, plan: Plan, k: int) -> None:
        self.c, self.steps = Patterns(np.zeros(1, np.uint64), plan.c), Counter[Elementwise]()
        self.value(plan.result, k)

    def zeros(self, fmt: Format, negative: bool) -> Patterns:
        return replace(self.c, format=fmt)

    def tile(self, model: Model, words: Words, span: Span, start: Patterns) -> Patterns:
        return replace(self.c, format=model.d)

    def elementwise(self, node: Round, given: Sequence[Patterns]) -> Patterns:
        self.steps[Elementwise(node, tuple(x.format for x in given))] += 1
        return replace(self.c, format=node.rounding.format)

    def seconds(self, outputs: int, compiled: bool, lanes: int = 1 << 16) -> float:
        """What they take for so many outputs."""
        rng, total = np.random.default_rng(0), 0.0
        for step, count in self.steps.items():
            given = [from_numbers(rng.standard_normal(lanes), fmt, "nearest_even") for fmt in step.formats]
            given = [
                x.astype(np.uint32 if fmt.width <= 32 else np.uint64)
                for x, fmt in zip(given, step.formats, strict=True)
            ]
            lanes_of = compile_lanes(step, tuple(fmt.width for fmt in step.formats)) if compiled else None
            once = partial(step.of, given) if lanes_of is None else partial(lanes_of, *given)
            best = math.inf
            for _ in range(40):
                start = time.process_time()
                for _ in range(5):
                    once()
                best = min(best, (time.process_time() - start) / 5)
            total += best * count * outputs / lanes
        return total


def mixed(rng: np.random.Generator, fmt: Format, shape: tuple[int, int]) -> Matrix:
    """Lines of numbers of many sizes, and a quarter of lines of any patterns."""
    spread = rng.choice([0, 1, 4, 16], (shape[0], 1)) * rng.standard_normal(shape)
    found = from_numbers(rng.standard_normal(shape) * 2.0**spread, fmt, "nearest_even").astype(np.uint64)
    drawn = rng.integers(0, 1 << 63, shape, dtype=np.uint64) << np.uint64(1) >> np.uint64(64 - fmt.width)
    drawn = drawn >> np.uint64(fmt.padding) << np.uint64(fmt.padding)
    patterns: Matrix = np.where(rng.random((shape[0], 1)) < 0.25, drawn, found)
    return patterns


def differing(model: Model, size: int = 1000) -> int:
    """How many of CHECKED results the two engines give differently."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(CHECKED // size**2):
        a, b, c = (
            mixed(rng, fmt, (size, count))
            for fmt, count in ((model.a, model.length), (model.b, model.length), (model.c, size))
        )
        factors: dict[str, Any] = {}
        if model.scale is not None:
            shape, most = (size, model.scales), 1 << model.scale.width
            left, right = (rng.integers(0, most, shape, dtype=np.uint64) for _ in "ab")
            factors = {"scale_a": left, "scale_b": right.T}
        one, other = (
            simulate(a, b.T, c, model, engine=engine, threads=1, scales=factors) for engine in ("numpy", "compiled")
        )
        found += int(np.count_nonzero(one != other))
    return found


def large(model: Model) -> str:
    """A product of 4096 x 4096 x 4096 on two threads, in words."""
    (a, b), _ = inputs(model, LARGE, LARGE)
    start = time.process_time(), time.perf_counter()
    simulate(a, b, None, model, engine="compiled", threads=2)
    busy, wall = time.process_time() - start[0], time.perf_counter() - start[1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    shape = " x ".join([str(LARGE)] * 3)
    return (
        f"{shape} by {model.reference} on two threads: {busy:.0f} s of processors, {wall:.0f} s on the clock (load "
        f"average {os.getloadavg()[0]:.0f}), {memory} MiB at most."
    )


def yardstick() -> float:
    """Outputs a second of the loop written by hand; 0 without a compiler."""
    cc = compiler()
    if cc is None:
        return 0.0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "limit"
        widest = ["-mprefer-vector-width=512"] if IS_X86 else []  # as the generated code has it
        subprocess.run([*cc, "-O3", "-march=native", *widest, "-w", "-o", program, YARDSTICK], check=True)
        return max(float(subprocess.check_output([program], text=True).split()[0]) for _ in range(3)) * 1e6


def by_mma_sim(python: Path | None) -> list[float]:
    """Outputs a second of MMA-Sim for each of MODELS; 0 where it has no such instruction."""
    if python is None:
        return [0.0] * len(MODELS)
    return [float(line) for line in subprocess.check_output([python, "-c", MMA_SIM, *MODELS], text=True).splitlines()]


def copied() -> float:
    """Bytes a second of a copy in memory, read and written."""
    source = np.ones(1 << 26, dtype=np.uint8)
    target, best = np.empty_like(source), 0.0
    for _ in range(5):
        start = time.process_time()
        np.copyto(target, source)
        best = max(best, 2 * source.size / (time.process_time() - start))
    return best


def processor() -> str:
    """The name of the processor, and whether it has long vectors."""
    info = Path("/proc/cpuinfo")
    long = info.exists() and "avx512f" in info.read_text(encoding="utf-8")
    return f"{processor_name()} ({'AVX-512' if long else 'no AVX-512'})"


def made_by() -> str:
    """The C compiler, in its own words."""
    cc = compiler()
    return subprocess.check_output([*cc, "--version"], text=True).splitlines()[0] if cc else "no C compiler"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--mma-sim", type=Path, metavar="PYTHON")
    arguments = parser.parse_args()
    lines = [f"# {(__doc__ or '').splitlines()[0]}", "", (__doc__ or "").split("\n\n", 1)[1].strip(), ""]
    lines += [
        f"One thread, 512-bit vectors where there are such, limit.c too; M = N = {SIZES['numpy']} (numpy), "
        f"{SIZES['compiled']} (compiled); K = 4 tiles.",
        "",
    ]
    limit = yardstick()
    lines += [f"{processor()}; {made_by()}; limit.c: {limit:,.0f}/s; a copy in memory: {copied() / 1e9:.1f} GB/s.", ""]
    lines += [
        "| model | products | numpy | compiled | ratio | of limit.c | of Hawkeye | MMA-Sim 2.1.1 | of it |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for reference, other in zip(MODELS, by_mma_sim(arguments.mma_sim), strict=True):
        model = parse_reference(reference)
        plain = rate(model, "numpy")
        fast = rate(model, "compiled") if compile_model(model) else float("nan")
        lines.append(
            f"| {reference} | {model.length} | {plain:,.0f}/s | {fast:,.0f}/s | {fast / plain:.1f} | "
            f"{fast / limit if limit else float('nan'):.2f} | {fast * model.length / 16 / HAWKEYE:.0f} | "
            + (f"{other:,.0f}/s | {fast / other:.0f} |" if other else "- | - |")
        )
        print(lines[-1], flush=True)
    if arguments.check:
        wrong = {reference: differing(parse_reference(reference)) for reference in MODELS}
        count = f"{CHECKED:,} results of each of {len(MODELS)} models by both engines"
        lines += [
            "",
            f"{count}: {', '.join(f'{n} differ by {name}' for name, n in wrong.items() if n) or 'none differ'}.",
        ]
        print(lines[-1], flush=True)
    if arguments.large:
        lines += ["", large(parse_reference(MODELS[0]))]
        print(lines[-1], flush=True)
    if arguments.plans:
        shapes = [f"{' x '.join(map(str, shape))} ({engine})" for engine, shape in PLAN_SHAPES.items()]
        lines += [
            "",
            f"Plans, {' and '.join(shapes)}, one thread: the time over that of the unit alone, and the least that this "
            "ratio can be, that time with the plan's additions over it.",
            "",
            "| plan | compiled | least | numpy | least |",
            "|---|---|---|---|---|",
        ]
        for text in PLANS:
            lines.append(plan_line(parse_plan(text, "f64", parse_reference) if "\n" in text else parse_plan_path(text)))
            print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
