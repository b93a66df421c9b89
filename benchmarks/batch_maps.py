"""Maps of functions whose kernels depend on the size of the batch, or on K: how many of 200 new random shapes are as
the rules of `identify --gemm` say.

    python -m benchmarks.batch_maps [--only NAME,...] [--seconds 60]

Seconds are those of computing, without the function's own, so that other programs do not count.

Prints a table of product_searches.md: `plans`, how many of the function's own are found; `right`, the shapes whose
elements all have a rule that is relied on and are as it says; `open`, those of which a rule says that it is not relied
on, or no rule speaks; `wrong`, those in which a rule that is relied on is not so.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.library_held import computing
from benchmarks.pages import table_row
from benchmarks.product_searches import AMPERE, B16, F16, FMA, HOPPER, WGMMA, Row
from mmaprobe.queries.plans.library import Mapper
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.runner.device_plans import mapper_of
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate

SHAPES, SEED = 200, 77
TOP = 64, 64


@dataclass(frozen=True)
class Batch:
    """A function: its formats and largest K, and its kernels (unit, result, conversion), of which `chosen` says which
    one a shape (M, N, K) has."""

    name: str
    formats: str
    length: int
    kernels: tuple[tuple[str, str, str], ...]
    chosen: Callable[[int, int, int], int]

    @cached_property
    def plans(self) -> list[Plan]:
        a, b, d = self.formats.split(",")
        return [Row(self.name, f"{a},{b},{d},{d}", self.length, *kernel).plan for kernel in self.kernels]

    def of(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """The patterns of a product of patterns."""
        return simulate(a, b, None, self.plans[self.chosen(a.shape[0], b.shape[1], a.shape[1])], engine="compiled")

    def multiply(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        plan = self.plans[0]
        return self.of(from_numbers(a, plan.a, "nearest_even"), from_numbers(b, plan.b, "nearest_even"))


def by_batch(m: int, _: int, __: int) -> int:
    return 0 if m == 1 else 1 if m <= 16 else 2


def below(length: int) -> Callable[[int, int, int], int]:
    return lambda m, n, k: int(k >= length)


H, S = f"{HOPPER}.{F16}", f"{HOPPER}.{B16}"
TF32 = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
FUNCTIONS = (
    Batch("f16-batch", "f16,f16,f16", 1024, (
        (H, "h(sum(split(8, u, r, grain=64), +0))", ""), (H, "h(sum(split(4, u, r, grain=64), +0))", ""),
        (H, "h(sum(u, +0))", "")), by_batch),
    Batch("bf16-batch", "bf16,bf16,bf16", 2048, (
        ("ieee/fma/f32.bf16.bf16.f32", "s(sum(lanes(u, r, 32, fold(2, 16), fold(2, 8), fold(2, 4), fold(2, 2), "
         "fold(2, 1), grain=8), +0))", ""),
        (S, "s(sum(split(4, u, r, grain=64), +0))", ""), (S, "s(sum(split(2, u, r, grain=64), +0))", "")), by_batch),
    Batch("f32-batch", "f32,f32,f32", 512, (
        (FMA, "sum(lanes(u, r, 32, fold(2, 16), fold(2, 8), fold(2, 4), fold(2, 2), fold(2, 1)), +0)", ""),
        (FMA, "sum(split(4, u, r, grain=8), +0)", ""), (FMA, "sum(u, +0)", "")), by_batch),
    Batch("fp8-batch", "e4m3,e4m3,bf16", 1024, (
        (WGMMA, "s(sum(split(4, u, r, grain=128), +0))", ""), (WGMMA, "s(sum(split(2, u, r, grain=128), +0))", ""),
        (WGMMA, "s(sum(promote(128, u, r), +0))", "")), by_batch),
    Batch("f16-f32-batch", "f16,f16,f32", 1024, (
        (f"{AMPERE}.{F16}", "sum(split(6, u, r, grain=32), +0)", ""),
        (f"{AMPERE}.{F16}", "sum(split(3, u, r, grain=32), +0)", ""), (f"{AMPERE}.{F16}", "sum(u, +0)", "")),
        by_batch),
    Batch("tf32-batch", "f32,f32,f32", 512, (
        (TF32, "sum(split(4, u, r, grain=32), +0)", "tf32, nearest_even"),
        (TF32, "sum(split(2, u, r, grain=32), +0)", "tf32, nearest_even"),
        (TF32, "sum(u, +0)", "tf32, nearest_even")), by_batch),
    Batch("bf16-cut", "f32,f32,f32", 512, ((f"{AMPERE}.{B16}", "sum(u, +0)", "bf16, toward_zero"),), lambda *_: 0),
    Batch("f16-first", "f32,f32,f32", 512, (
        (f"{AMPERE}.{F16}", "sum(split(2, u, r, grain=32), +0)", "f16, nearest_even"),), lambda *_: 0),
    Batch("tf32-cut-below", "f32,f32,f32", 512, (
        (TF32, "sum(u, +0)", "tf32, toward_zero"), (TF32, "sum(split(2, u, r, grain=32), +0)", "tf32, toward_zero")),
        below(128)),
    Batch("f16-below-128", "f16,f16,f16", 1024, (
        (H, "h(sum(u, +0))", ""), (H, "h(sum(split(2, u, r, grain=64), +0))", "")), below(128)),
    Batch("f32-below-128", "f32,f32,f32", 512, (
        (FMA, "sum(u, +0)", ""), (FMA, "sum(interleave(4, u, r, tail=u), +0)", "")), below(128)),
    Batch("bf16-f32-below-256", "bf16,bf16,f32", 1024, (
        (S, "sum(u, +0)", ""), (S, "sum(promote(256, u, r), +0)", "")), below(256)),
)  # fmt: skip


def mapped(one: Batch, seconds: float) -> Mapper:
    """The map of a function, as far as it came."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "library.py")
        file.write_text(
            f"from benchmarks.batch_maps import FUNCTIONS\n"
            f"ONE = next(one for one in FUNCTIONS if one.name == {one.name!r})\n"
            f"def multiply(a, b):\n    return ONE.multiply(a, b)\n"
        )
        mapper = mapper_of(f"python:{file}:multiply", parse_signature(one.formats, one.length), TOP, seconds)
        with suppress(MmaprobeError):
            mapper.run()
    return mapper


def held(mapper: Mapper, one: Batch) -> tuple[int, int, list[Shape]]:
    """Of new random shapes: how many are right, how many are open, and which are wrong."""
    mapper.deadline, mapper.rng = None, np.random.default_rng(SEED)
    mapper.multiply = lambda a, b, c: one.of(a, b)
    relied = np.array([entry.confirmed for entry in mapper.found.rules], dtype=np.bool_)
    right, left, wrong = 0, 0, []
    for number in range(SHAPES if mapper.rules else 0):
        shape = mapper.random_shape(number)
        at, so = mapper.held(mapper.rules, shape)
        sure = (at >= 0) & relied[at]
        if (sure & ~so).any():
            wrong.append(shape)
        right, left = right + bool((sure & so).all()), left + (not sure.all())
    return right, left, wrong


def own(mapper: Mapper, one: Batch) -> int:
    """How many of the function's own plans are among those found: by the same results at the largest K."""
    sides = (mapper.asked.a, (16, one.length)), (mapper.asked.b, (one.length, 16))
    a, b = (mapper._random(fmt, size, 2) for fmt, size in sides)
    found = [simulate(a, b, None, plan, engine="compiled") for plan in mapper.found.plans]
    return sum(any((d == simulate(a, b, None, plan, engine="compiled")).all() for d in found) for plan in one.plans)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(one.name for one in FUNCTIONS))
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    print("| function | plans | right | open | wrong | rules | seconds |\n|---|---|---|---|---|---|---|", flush=True)
    for one in FUNCTIONS:
        if one.name in given.only.split(","):
            with patch("time.monotonic", computing):
                begun = computing()
                mapper = mapped(one, given.seconds)
                took = computing() - begun
            plans = own(mapper, one)
            right, left, wrong = held(mapper, one)
            cells = (
                one.name,
                f"{plans} of {len(one.plans)}",
                right,
                left,
                len(wrong),
                len(mapper.rules),
                f"{took:.0f}",
            )
            print(table_row(*cells), flush=True)


if __name__ == "__main__":
    main()
