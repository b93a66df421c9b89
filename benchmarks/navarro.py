"""The single pass and the warp shuffle of Navarro et al. 2020 as the authors' code has them: writes
benchmarks/navarro.md.

python -m benchmarks.navarro

The code is public (crinavar/gpu-tensor-core, reduction/tensor-cores-MMA/src/kernel.cuh, in December 2019 as in June
2020): its chain has f16 accumulators, and its shuffle reads f16 numbers and adds them in f16 within a warp. It has no
licence: nothing is copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.published_bounds import share
from mmaprobe.queries.kernel.bounds.wording import sum_text
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.algorithms.reductions import F16, F32, WARP, ArrayOperations, Reduction, SinglePass, WarpShuffle
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference

PAGE = Path(__file__).parent / "navarro.md"
SIDE, CHAIN, WARPS = 16, 4, 4  # m, R, and the warps of a block of 128 threads
BLOCK = CHAIN * SIDE * SIDE * WARPS
DRAWS, SIZE, DISTRIBUTIONS = 5, 1 << 20, ("normal", "uniform")
VOLTA, TURING = "volta/mma/m8n8k4.f32.f16.f16.f32", "turing/mma/m16n8k8.f32.f16.f16.f32"
CHAINED = parse_reference("volta/mma/m8n8k4.f16.f16.f16.f16")  # kernel.cuh, d_frag
ROWS = parse_reference(VOLTA)  # r_frag, from zeros

Patterns = NDArray[np.unsignedinteger]
Sum = Callable[[Patterns], float]


def single_pass(numbers: Patterns) -> float:
    """reduction_tc_warp and block_reduce_tc: f16 sums of columns, their sum in f32, a tree in each block."""
    operations = ArrayOperations()
    columns = operations.column_sums(CHAINED, (SIDE, SIDE), CHAIN, numbers)
    warps = operations.column_sums(ROWS, (SIDE, 1), 1, columns)
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


def draws(size: int, distribution: str) -> Iterator[tuple[NDArray[np.float64], float]]:
    """f32 numbers, and their exact sum, rounded once."""
    for seed in range(DRAWS):
        rng = np.random.default_rng([seed, size])
        drawn = rng.standard_normal(size) if distribution == "normal" else rng.random(size)
        drawn = drawn.astype(np.float32).astype(np.float64)
        yield drawn, math.fsum(drawn)


def errors(size: int, distribution: str) -> dict[str, float]:
    """The mean error of each sum in percent of the exact sum of the f32 numbers."""
    totals = dict.fromkeys(SUMS, 0.0)
    for drawn, exact in draws(size, distribution):
        numbers = from_numbers(drawn, F16, "nearest_even").astype(np.uint16)
        for name, total in SUMS.items():
            totals[name] += 100 * abs(total(numbers) - exact) / abs(exact) / DRAWS
    return totals


def folds(lanes: int) -> str:
    """The folds of a plan's lanes that add in halves, as shuffles in a warp do."""
    return ", ".join(f"fold(2, {lanes >> k})" for k in range(1, lanes.bit_length()))


def single_pass_plan(chain: int = CHAIN, warps: int = WARPS, unit: str = VOLTA) -> Plan:
    """The single pass as a plan, the f32 sums of columns added outside: a product with a = 1."""
    warp = chain * SIDE * SIDE
    steps = f"lanes(mma, r, {SIDE}, {folds(SIDE)})"
    if warps > 1:
        steps = f"lanes({steps}, r, {warps}, {folds(warps)}, grain={warp})"
    return _plan("single-pass", "f16", unit, f"promote({warps * warp}, {steps}, r)")


def warp_shuffle_plan(warps: int = WARP) -> Plan:
    """Trees of f32 numbers in warps and in blocks, as a plan."""
    steps = f"lanes(lanes(mma, r, {WARP}, {folds(WARP)}), r, {warps}, {folds(warps)}, grain={WARP})"
    return _plan("warp-shuffle", "f32", "ieee/fma/f32", f"promote({WARP * warps}, {steps}, r)")


def _plan(name: str, factor: str, unit: str, stage: str) -> Plan:
    text = f"""plan: {name}
formats: {{a: {factor}, b: f32, c: f32, d: f32}}
units: {{mma: {unit}}}
roundings: {{r: "round(f32, nearest_even)"{', h: "round(f16, nearest_even)"' if factor == "f16" else ""}}}
{"convert: {b: h}" if factor == "f16" else ""}
steps: {{d: "sum({stage}, +0)"}}
"""
    return parse_plan(text, f"{name}.yaml", parse_reference)


def mean_error(reduction: Reduction, size: int, distribution: str) -> float:
    """The mean error of a reduction in percent, and not a number where a sum overflows."""
    return sum(100 * abs(value(reduction.evaluate(ArrayOperations(), from_numbers(drawn, F32, "nearest_even"))) - exact)
               / abs(exact) for drawn, exact in draws(size, distribution)) / DRAWS  # fmt: skip


def levels(size: int, by: int) -> int:
    """How often a number of numbers is divided by another one, rounded up, until one is left."""
    found = 0
    while size > 1:
        size, found = -(-size // by), found + 1
    return found


def cost(chain: int, side: int, size: int) -> tuple[float, int]:
    """T(n) = (2R + 3) log n to the base R m^2 (their equation 24), and the same with whole levels."""
    by = chain * side * side
    return (2 * chain + 3) * math.log(size, by), (2 * chain + 3) * levels(size, by)


HEAD = """# Sums by matrix instructions: the figures of Navarro et al. 2020

Written by `python -m benchmarks.navarro`; [the studies](../docs/studies/navarro-variants.md) have f32 sums, as the
paper says.

## As their code has them

The mean error of five draws in percent, with the f16 accumulators and the f16 shuffles of the authors' code
(crinavar/gpu-tensor-core, reduction/tensor-cores-MMA/src/kernel.cuh, in December 2019 as in June 2020), on the model of
the V100; R = 4, blocks of 128 threads.

| distribution | n | single pass | warp shuffle |
|---|---|---|---|
"""
CHAINS = """
## Chains and blocks

The mean error of the single pass in percent, n = 1,000,000, against R (instructions in a chain) and B (threads of a
block), of normal and of uniform numbers. The paper has the time of these (its Figures 3, 5 and 11), and errors for R =
4 and B = 128 alone, on a V100 and on a TITAN RTX, which is Turing. The error hangs on R as on a draw, on B hardly, and
the two units give the same figures: what f16 loses of the numbers is most of it.

| unit | B | R = 1 | R = 2 | R = 4 | R = 5 |
|---|---|---|---|---|---|
"""
BOUNDS = """
## As plans, with proved bounds

A sum is a product with ones, so that the single pass with f32 sums of columns and the warp shuffle are
[plans](../docs/plans.md#sums-of-numbers): the same bits (tests/studies/test_published_errors.py). Bounds for every n
that is a multiple of a block's numbers, and for n = 1,048,576 as a share of sum |x|. seen: the largest share of five
draws of normal numbers. G = ((1 + g)^(n - 1) - 1) / g, g = 2^-24; a is 1.

| sum | numbers | bound of every n | n = 1,048,576 | seen |
|---|---|---|---|---|
"""
COSTS = """
The single pass loses 2^-11 of each number, which is rounded to f16, and next to nothing more; shuffles lose one
rounding for each block in the end.

## Cost

Their model of a GPU counts a unit of time for each access to memory and for each instruction: T(n) = (2 R + 3) log n to
the base R m^2 (equation 24), 4 log2 n for a reduction without matrix unit, and S their quotient, (4 / 5) log2 m^2 for R
= 1. S = 3.2 for m = 4, as printed. For n = 1,048,576; in parentheses with levels in whole numbers, as a program has
them.

| m | R | T | without | S |
|---|---|---|---|---|
"""
LAST = """
With m = 16, the matrices of their programs, S would be 6.4; 4.5 was measured at most. That T rises with R the paper
says of its model.
"""


def main() -> None:
    lines = [HEAD]

    def write(line: str) -> None:
        lines.append(line)
        print(line, end="", flush=True)

    for distribution in DISTRIBUTIONS:
        for size in (10_000, 100_000, 1_000_000):
            found = errors(size, distribution)
            write(f"| {distribution} | {size} | {' | '.join(f'{one:.2g}' for one in found.values())} |\n")
    write(CHAINS)
    for unit in (VOLTA, TURING):
        for warps in (1, 4, 32):
            cells = []
            for chain in (1, 2, 4, 5):
                one = SinglePass(unit, SIDE, chain, "unit", warps)
                cells.append(", ".join(f"{mean_error(one, 1_000_000, name):.2g}" for name in DISTRIBUTIONS))
            write(f"| `{unit}` | {WARP * warps} | {' | '.join(cells)} |\n")
    write(BOUNDS)
    settle = Settled(Options(), confirmed=False)
    for name, plan, reduction, block in (
        ("single pass", single_pass_plan(), SinglePass(columns="outside"), BLOCK),
        ("single pass, Turing", single_pass_plan(unit=TURING), SinglePass(TURING, columns="outside"), BLOCK),
        ("warp shuffle", warp_shuffle_plan(), WarpShuffle(), WARP * WARP),
    ):  # fmt: skip
        every, at = (error_of(bound_of_plan(plan, size, settle)).merged() for size in (None, SIZE))
        text, seen = sum_text(every).replace("|", "\\|"), max(share_of(reduction, SIZE))
        write(f"| {name} | {block} n | {text} | {float(share(at)):.3g} | {seen:.2g} |\n")
    write(COSTS)
    for side in (2, 4, 16):
        for chain in (1, 4, 5):
            formula, whole = cost(chain, side, SIZE)
            plain = 4 * math.log2(SIZE)
            quotients = f"{plain / formula:.2g} ({plain / whole:.2g})"
            write(f"| {side} | {chain} | {formula:.1f} ({whole}) | {plain:.0f} | {quotients} |\n")
    write(LAST)
    PAGE.write_text("".join(lines), encoding="utf-8")


def share_of(reduction: Reduction, size: int) -> Iterator[float]:
    """The error of each draw of normal numbers, divided by the sum of their magnitudes."""
    for drawn, exact in draws(size, "normal"):
        found = value(reduction.evaluate(ArrayOperations(), from_numbers(drawn, F32, "nearest_even")))
        yield abs(found - exact) / math.fsum(abs(drawn))


if __name__ == "__main__":
    main()
