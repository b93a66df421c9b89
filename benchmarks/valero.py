"""What Valero-Lara et al. 2023 measured, on the models, with the inputs and norms of the authors' code: writes
benchmarks/valero.md.

python -m benchmarks.valero

The code and the data are public (pedrovalerolara/TF32-TF64: src/gemm_testing.c, src/mixed_gemm.c, data/gemm_test_2-norm
and data/gemm_cuda_test_*-norm). They have no licence: figures are quoted, nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_reference
from mmaprobe.studies.exact import exact_product
from mmaprobe.studies.run import rounded

Floats = NDArray[np.float64]
PAGE = Path(__file__).parent / "valero.md"
AMPERE = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
TF64 = "ieee/fma/f64.f32.f32.f64"
RAND_MAX = 2**31 - 1

#: the entrywise norms of the authors' code, and what its files call them
NORMS = {
    "1": lambda x: float(np.abs(x).sum()),
    "2": lambda x: float(np.sqrt(np.square(x).sum())),
    "I": lambda x: float(np.abs(x).max()),
}
#: n -> errors of TF64 in one, three and four products, in the 2-norm, on a CPU (data/gemm_test_2-norm)
PUBLISHED_TF64 = {
    128: (3.0671947869708137977e-09, 2.5731060778733057752e-16, 1.4225992130454231892e-16),
    256: (2.1810230258210595944e-09, 1.8396844505589749407e-16, 1.0254779639460559927e-16),
}
#: n -> errors of cuBLAS's three TF32 products on an A100 in the norms above (data/gemm_cuda_test_*-norm)
PUBLISHED_TF32 = {
    128: (3.5222e-10, 3.9998e-08, 5.2824e-06), 256: (9.4483e-11, 2.0966e-08, 5.9295e-06),
    512: (1.6659e-10, 7.3477e-08, 3.7699e-05),
}  # fmt: skip


def rand(count: int, seed: int) -> NDArray[np.int64]:
    """What rand() of glibc returns after srand(seed)."""
    state = [seed]
    for _ in range(30):
        state.append(16807 * state[-1] % RAND_MAX)
    state += state[:3]
    for k in range(34, 344 + count):
        state.append((state[k - 31] + state[k - 3]) & 0xFFFFFFFF)
    return np.array(state[344:], dtype=np.int64) >> 1


def authors_inputs(n: int, seed: int) -> tuple[Floats, Floats]:
    """A and B as generate_random_matrices draws them: (rand + rand) / 2 between -1/2 and 1/2."""
    drawn = rand(4 * n * n, seed).astype(np.float64)
    a, b = ((drawn[0::2] + drawn[1::2]) / (2.0 * RAND_MAX) - 0.5).reshape(2, n, n)
    return a, b


def similar_inputs(n: int, seed: int) -> tuple[Floats, Floats]:
    """Numbers of the same distribution; which seed the measurement on the GPU had is not known."""
    a, b = np.random.default_rng(seed).random((2, 2, n, n)).mean(axis=1) - 0.5
    return a, b


@dataclass(frozen=True)
class Words:
    """Two words of each number of A and B."""

    a: tuple[Floats, Floats]
    b: tuple[Floats, Floats]

    def multiplied(self, unit: str, count: int) -> Floats:
        """The sum of three or four products, added as the authors add the results of their calls."""
        (a1, a2), (b1, b2) = self.a, self.b
        first = product(unit, a1, b1)
        rest = product(unit, a1, b2) + product(unit, a2, b1)
        return first + (rest + product(unit, a2, b2) if count == 4 else rest)


def product(reference: str, a: Floats, b: Floats) -> Floats:
    """A * B by one unit, whose result is its next addend."""
    plan, source = parse_plan_reference(f"multiword@words=1,products=1,unit=({reference})"), FORMATS["f32"]
    found = simulate(from_numbers(a, source), from_numbers(b, source), None, plan).astype(kind_of(plan.d))
    return np.asarray(to_numbers(found, plan.d))


def tf64_words(x: Floats) -> tuple[Floats, Floats]:
    """The number cut to 23 fraction bits, and the rest as f32."""
    first = (x.view(np.uint64) & np.uint64(0xFFFFFFFFE0000000)).view(np.float64)
    return first, rounded(x - first, "f32")


def tf32_words(x: Floats) -> tuple[Floats, Floats]:
    """The f32 number rounded to TF32, and the rest as TF32."""
    single = rounded(x, "f32")
    first = rounded(single, "tf32")
    return first, rounded(single - first, "tf32")


def tf64_errors(n: int, seed: int) -> tuple[float, float, float]:
    """The errors of TF64 in one, three and four products, in the 2-norm."""
    a, b = authors_inputs(n, seed)
    high, low = exact_product(a, b)
    size = NORMS["2"](a) * NORMS["2"](b)
    words = Words(tf64_words(a), tf64_words(b))
    results = (product(TF64, rounded(a, "f32"), rounded(b, "f32")), *(words.multiplied(TF64, k) for k in (3, 4)))
    one, three, four = (NORMS["2"]((high - found) + low) / size for found in results)
    return one, three, four


def tf32_errors(n: int, seed: int, unit: str = AMPERE) -> tuple[float, ...]:
    """The errors of three TF32 products in each norm, which the authors take from a product in double precision."""
    a, b = similar_inputs(n, seed)
    error = a @ b - Words(tf32_words(a), tf32_words(b)).multiplied(unit, 3)
    return tuple(norm(error) / norm(a) / norm(b) for norm in NORMS.values())


HEAD = """# TF32 and TF64 with the authors' inputs and norms

Written by `python -m benchmarks.valero`: what the code of Valero-Lara et al. 2023 (pedrovalerolara/TF32-TF64) measures,
on the models. Its matrices have numbers (rand() + rand()) / 2 between -1/2 and 1/2, its norms are entrywise: the sum of
magnitudes (1), the root of the sum of squares (2), the largest magnitude (I).

## TF64

Errors in the 2-norm; the code draws with seed 1 at n = 128, with seed 2 at n = 256. The published figures are those of
data/gemm_test_2-norm, which a CPU computed.

| n | | 1x | 3x | 4x |
|---|---|---|---|---|
"""
MIDDLE = """
## Three TF32 products on an A100

cuBLAS multiplies the words in three calls, whose results are added outside; in each call a chain of the unit's steps
begins at +0. Words are rounded to nearest even. Means and standard deviations over draws of the same distribution, as
the published figures (data/gemm_cuda_test_*-norm) have inputs of an unknown seed.

| n | | norm 1 | norm 2 | norm I |
|---|---|---|---|---|
"""


def main() -> None:
    lines = [HEAD]
    for seed, (n, published) in enumerate(PUBLISHED_TF64.items(), 1):
        lines.append(f"| {n} | published | {' | '.join(f'{one:.12e}' for one in published)} |\n")
        lines.append(f"| {n} | model | {' | '.join(f'{one:.12e}' for one in tf64_errors(n, seed))} |\n")
    lines.append(MIDDLE)
    for n, figures in PUBLISHED_TF32.items():
        lines.append(f"| {n} | A100, published | {' | '.join(f'{one:.3e}' for one in figures)} |\n")
        seeds = range(8 if n < 512 else 3)
        for block, unit in ((4, AMPERE), (8, f"{AMPERE}@block=8")):
            found = np.array([tf32_errors(n, seed, unit) for seed in seeds])
            cells = [
                f"{mean:.3e} ± {spread:.0e}" for mean, spread in zip(found.mean(0), found.std(0, ddof=1), strict=True)
            ]
            lines.append(f"| {n} | steps of {block} | {' | '.join(cells)} |\n")
            print(lines[-1], end="", flush=True)
    PAGE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
