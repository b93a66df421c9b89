"""TF64 of Valero-Lara et al. 2023 on the models, with the very numbers of the authors' code: writes
benchmarks/valero.md. (TF32 on an A100, whose seed is not known, is the study valero-a100.)

python -m benchmarks.valero

The code and the data are public (pedrovalerolara/TF32-TF64: src/gemm_testing.c, src/mixed_gemm.c,
data/gemm_test_2-norm). They have no licence: figures are quoted, nothing is copied.
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
from mmaprobe.studies.exact import exact_product, size_of
from mmaprobe.studies.run import rounded

Floats = NDArray[np.float64]
PAGE = Path(__file__).parent / "valero.md"
TF64 = "ieee/fma/f64.f32.f32.f64"
RAND_MAX = 2**31 - 1

#: n -> errors of TF64 in one, three and four products, in the 2-norm, on a CPU (data/gemm_test_2-norm)
PUBLISHED_TF64 = {
    128: (3.0671947869708137977e-09, 2.5731060778733057752e-16, 1.4225992130454231892e-16),
    256: (2.1810230258210595944e-09, 1.8396844505589749407e-16, 1.0254779639460559927e-16),
}


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


def tf64_errors(n: int, seed: int) -> tuple[float, float, float]:
    """The errors of TF64 in one, three and four products, in the 2-norm."""
    a, b = authors_inputs(n, seed)
    high, low = exact_product(a, b)
    size = size_of(a, "entry-2") * size_of(b, "entry-2")
    words = Words(tf64_words(a), tf64_words(b))
    results = (product(TF64, rounded(a, "f32"), rounded(b, "f32")), *(words.multiplied(TF64, k) for k in (3, 4)))
    one, three, four = (size_of((high - found) + low, "entry-2") / size for found in results)
    return one, three, four


HEAD = """# TF64 with the authors' inputs and norms

Written by `python -m benchmarks.valero`: what the code of Valero-Lara et al. 2023 (pedrovalerolara/TF32-TF64) measures,
on the models. Its matrices have numbers (rand() + rand()) / 2 between -1/2 and 1/2. Errors are the root of the sum of
squares over all elements, relative to that of A times that of B. The code draws with seed 1 at n = 128, with seed 2 at
n = 256. The published figures are those of data/gemm_test_2-norm, which a CPU computed.

| n | | 1x | 3x | 4x |
|---|---|---|---|---|
"""


def main() -> None:
    lines = [HEAD]
    for seed, (n, published) in enumerate(PUBLISHED_TF64.items(), 1):
        lines.append(f"| {n} | published | {' | '.join(f'{one:.12e}' for one in published)} |\n")
        lines.append(f"| {n} | model | {' | '.join(f'{one:.12e}' for one in tf64_errors(n, seed))} |\n")
    PAGE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
