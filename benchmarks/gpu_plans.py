"""Finds the plans of products that benchmarks/gpu_gemm recorded: a Markdown table of which kernels compute which plan.

    python -m benchmarks.gpu_plans FOLDER [--kinds f16,...] [--seconds 120] [-o FILE.jsonl]

A shape is explained if a plan gives every element that was recorded, bit for bit. `--seconds`: for each kind. `-o`: of
each family of kernels and plan, what was recorded of the shape with the longest K up to 1100, and the plan: the lines
of tests/data/gpu_products.jsonl, which a test holds against the plans.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path

import numpy as np

from benchmarks.gpu_gemm import KINDS, NUMERICS, Kind, Record, places, random_factors, read
from mmaprobe.queries.plans.candidates import Candidates
from mmaprobe.queries.plans.forms import CONVERSIONS, Form, plain
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.unit_stages import vectors
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Stage
from mmaprobe.smtmodel.plans.named import in_format, in_multiples, in_runs, in_vectors, interleaved, promoted
from mmaprobe.smtmodel.plans.partitions import Whole
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.plans.stages import parts_of
from mmaprobe.smtmodel.tables.reference import parse_reference

#: instructions that libraries may run, by the format of the factors, the likeliest first
STEPS = {
    "f16": ("hopper/wgmma/m64n8k16.f32.f16.f16", "hopper/mma/m16n8k16.f32.f16.f16.f32",
            "hopper/mma/m16n8k8.f32.f16.f16.f32", "ieee/fma/f32.f16.f16.f32"),
    "bf16": ("hopper/wgmma/m64n8k16.f32.bf16.bf16", "hopper/mma/m16n8k16.f32.bf16.bf16.f32",
             "hopper/mma/m16n8k8.f32.bf16.bf16.f32", "ieee/fma/f32.bf16.bf16.f32"),
    "tf32": ("hopper/wgmma/m64n8k8.f32.tf32.tf32", "hopper/mma/m16n8k8.f32.tf32.tf32.f32",
             "hopper/mma/m16n8k4.f32.tf32.tf32.f32"),
    "f32": ("ieee/fma/f32",),
    "f64": ("ieee/fma/f64",),
    "e4m3": ("hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32"),
    "e5m2": ("hopper/wgmma/m64n8k32.f32.e5m2.e5m2", "hopper/mma/m16n8k32.f32.e5m2.e5m2.f32"),
    "bf16 on a processor": ("x86/amx/tdpbf16ps",),
    "f16 in f16": ("hopper/wgmma/m64n8k16.f16.f16.f16", "hopper/mma/m16n8k16.f16.f16.f16.f16"),
}  # fmt: skip
TILES = (64, 128, 32, 16, 8)  # products of K that a kernel loads at a time
PROMOTED = (128, 64, 32)  # products after which FP8 is added in f32
KEPT = 1100  # K of a product that is kept for the tests, at most
TF32 = ("tf32", "triton-tf32", "jax-f32")  # kinds whose inputs may be rounded to tf32
QUICK = 2048  # K up to which shapes are looked at first, from the longest, which tells most plans apart
MOST = 160  # runs of a split
GRAINS = (8, 4, 2, 1, 16, 32)  # a run is a multiple of one of these (of 16 bytes), if not of the tile
KERNELS = re.compile(
    r"nvjet_sm90_\w+?_\d+x\d+_(?P<nvjet>\d+)x\d+"
    r"|tilesize\d+x\d+x(?P<xmma>\d+)|(?:cutlass|gemm).*?_\d+x\d+_(?P<cutlass>\d+)x\d+"
)


@dataclass
class Found:
    """What was found of one kind: the plan of each shape, None if no plan tried gives all; `families`: of its kernels;
    `left`: shapes for which the time did not suffice."""

    kind: str
    plans: dict[str, Plan | None] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    seconds: float = 0

    def rows(self) -> Iterator[str]:
        """A row of the table for each family of kernels and plan."""
        by: dict[str, Counter[str]] = defaultdict(Counter)
        for shape, kernels in self.families.items():
            plan = self.plans.get(shape)
            by[kernels][general(plan.reference) if plan else "left" if shape in self.left else ""] += 1
        for family, plans in sorted(by.items(), key=lambda item: -item[1].total()):
            known = "; ".join(f"`{plan}` {count}" for plan, count in plans.most_common() if plan not in ("", "left"))
            yield f"| {self.kind} | {family} | {known} | {plans['']} | {plans['left']} |"

    def kept(self, record: Record) -> Iterator[str]:
        """The lines of `-o`."""
        longest: dict[tuple[str, str], str] = {}
        for shape, plan in self.plans.items():
            if plan is not None and int(shape.rsplit(",", 1)[1]) <= KEPT:
                longest.setdefault((self.families[shape], general(plan.reference)), shape)
        for (kernels, _), shape in longest.items():
            plan, d = self.plans[shape], record.random[shape]
            assert plan is not None
            digits = 2 * d.itemsize
            line = {"kind": self.kind, "shape": shape, "kernels": kernels, "plan": plan_text(plan),
                    "d": " ".join(f"{pattern:0{digits}x}" for pattern in d.ravel().tolist())}  # fmt: skip
            yield json.dumps(line)


def general(plan: str) -> str:
    """A plan's text without what the shape alone decides: how many runs K is cut into."""
    plan = re.sub(r"(split|interleave)\(\d+,", r"\1(n,", plan)
    return re.sub(r"\d+, fold\(\d+, 1\), grain", "n, fold(n, 1), grain", plan)


def family(names: Sequence[str]) -> tuple[str, int | None]:
    """What the kernels of a product are called, without sizes of tiles of M and N; and how many products of K their
    tiles have, None where the name does not say."""
    found, tile = [], None
    for name in names:
        if "Memset" in name or "at::native" in name:
            continue
        short = re.sub(r"^void |\(.*|^std::enable_if<.*?>::type |cutlass::Kernel2<|>$|cublasLt::", "", name)
        short = re.sub(r"<.*|_\d+x\d+_nn.*", "", short)
        if match := KERNELS.search(name):
            tile = int(next(number for number in match.groups() if number))
            short = "nvjet" + " split" * ("splitK" in name) if match["nvjet"] else re.sub(r"_\d+x\d+.*", "", short)
            short = re.sub(r"_tilesize.*", "", short)
            short += f", {tile} of K" if not match["nvjet"] else ""
        found.append(short)
    return " + ".join(dict.fromkeys(found)) or "not told", tile


def sample_of(record: Record, kind: Kind, shape: str, formats: str) -> Sample:
    """What was recorded of a shape: plain and cancelling factors, as two products."""
    asked = parse_signature(formats, 1)
    rows, columns, length = map(int, shape.split(","))
    i, j = len(places(rows, 1)), len(places(columns, 2))
    parts = [random_factors(NUMERICS[kind.given], length, cancels, length) for cancels in (False, True)]
    a = np.array([from_numbers(part[0][:i], asked.a) for part in parts])
    b = np.array([from_numbers(part[1][:, :j], asked.b) for part in parts])
    d = record.random[shape].reshape(2, i, j)
    return Sample(a, b, np.zeros_like(d), d)


def one_of(sample: Sample) -> Sample:
    """One element of a sample."""
    return Sample(sample.a[:, :1], sample.b[:, :, :1], sample.c[:, :1, :1], sample.d[:, :1, :1])


def stages(
    steps: Sequence[str], length: int, tile: int | None, result: str, split: bool, unnamed_kernel: bool, cutlass: bool
) -> Iterator[Stage]:
    """Stages as kernels have them: those that split K, or the others. `told`: whether the name is that of a kernel of
    matrices, not of vectors; `cutlass`: kernels of CUTLASS begin with the products that fill no tile."""
    bodies: list[tuple[Stage, int]] = []
    for step in steps:
        model = parse_reference(step)
        tiles = Chain(model)
        bodies.append((tiles, tile or TILES[0]))
        runs = [run for run in PROMOTED if run < length] if model.a.width == 8 else []
        bodies += [(promoted(run, tiles, Rounding(FORMATS["f32"])), tile or TILES[1]) for run in runs]
        heads = [in_multiples(one, tiles, head=tiles) for one in ([tile] if tile else TILES) if length > one]
        bodies += [(head, head.number) for head in heads]
    if not split:
        yield from (body for body, _ in bodies)
        return
    if not unnamed_kernel:
        for body, _ in bodies:
            if isinstance(body, Chain) and body.model.length == 1:
                yield from vectors(body, Rounding(body.d), length)
        return
    if cutlass:
        bodies.sort(key=lambda item: parts_of(item[0], Whole) is None)
    for body, own in bodies:
        how = Rounding(FORMATS["f64" if body.d.name == "f64" else "f32"])
        for ways in range(2, MOST + 1 if isinstance(body, Chain) else 0):
            if length % (ways * own) == 0:
                yield interleaved(ways, body, how, "sequential", own)
            elif length > ways * own and body.d == how.format:  # the last turn is short
                yield in_vectors(body, how, (ways, Fold(ways, 1)), grain=own)
        seen = set()
        for grain, ways in product(dict.fromkeys((own, *GRAINS)), range(2, MOST + 1)):
            size = -(-length // (grain * ways)) * grain
            if size >= length or size in seen:
                continue
            seen.add(size)
            yield in_runs(ways, body, how, "sequential", grain)
            if result in ("f16", "bf16"):
                yield in_runs(ways, in_format(body, Rounding(FORMATS[result])), how, "sequential", grain)


class Search:
    """The search for plans of one kind. Plans that do not split K are tried on every shape first."""

    def __init__(self, folder: Path, name: str) -> None:
        self.kind, self.record, self.found = KINDS[name], read(folder, name), Found(name)
        self.formats = f"{self.kind.given},{self.kind.given},{self.kind.result}"
        self.several = list(self._steps(name))
        self.judge = Candidates(parse_signature(self.formats, 1))
        self.judge.compiled.update(parse_reference(step) for _, steps in self.several for step in steps)
        self.usual: dict[str, Counter[Plan]] = defaultdict(Counter)

    def _steps(self, name: str) -> Iterator[tuple[Rounding | None, tuple[str, ...]]]:
        """The instructions that are tried, with the conversion of their inputs."""
        given = self.kind.given
        if name in TF32:
            for mode in sorted(CONVERSIONS["tf32"], key=lambda mode: mode != "nearest_even"):
                yield Rounding(FORMATS["tf32"], mode), STEPS["tf32"]
        if "gpu" not in self.record.about and (own := STEPS.get(f"{given} on a processor")):
            yield None, own
            return
        yield None, (*STEPS[given], *STEPS.get(f"{given} in {self.kind.result}", ()))
        if given in ("e4m3", "e5m2"):
            yield Rounding(FORMATS["f16"]), STEPS["f16"][1:3]

    def run(self, seconds: float) -> Found:
        begun, found = time.monotonic(), self.found
        lengths = {shape: int(shape.rsplit(",", 1)[1]) for shape in self.record.random}
        ordered = sorted(lengths, key=lambda shape: (lengths[shape] > QUICK, -lengths[shape]))
        tiles = {shape: family(self.record.kernels.get(shape, ())) for shape in ordered}
        found.families = {shape: kernels for shape, (kernels, _) in tiles.items()}
        unnamed = self.kind.call != "triton" and not any(self.record.kernels.values())
        for split in (False, True):
            for shape in ordered:
                kernels, tile = tiles[shape]
                unnamed_kernel = unnamed or any(name in kernels for name in ("cutlass", "nvjet", "xmma"))
                if found.plans.get(shape) is not None:
                    continue
                if time.monotonic() > begun + seconds:
                    found.left.add(shape)
                    continue
                found.plans[shape] = self.plan_of(
                    shape, kernels, self._plans(lengths[shape], kernels, tile, split, unnamed_kernel)
                )
        found.seconds = round(time.monotonic() - begun, 1)
        return found

    def _plans(self, length: int, kernels: str, tile: int | None, split: bool, unnamed_kernel: bool) -> Iterator[Plan]:
        result = self.kind.result
        for convert, steps in self.several:
            short = [step for step in steps if split and "s1688gemm" in kernels and "n8k8." in step]
            for stage in stages(short or steps, length, tile, result, split, unnamed_kernel, "cutlass" in kernels):
                form: Form = next(plain(self.judge.asked, stage.d, convert))
                if (plan := form.plan(stage)) is not None:
                    yield plan

    def plan_of(self, shape: str, kernels: str, plans: Iterator[Plan]) -> Plan | None:
        """The first of some plans that gives what was recorded of a shape; those that other shapes of the same kernels
        have are tried first."""
        sample = sample_of(self.record, self.kind, shape, self.formats)
        one, usual = one_of(sample), self.usual[kernels]
        tried = set()
        for plan in chain([plan for plan, _ in usual.most_common()], plans):
            if plan not in tried and self.judge.same(plan, one) and self.judge.same(plan, sample):
                if general(plan.reference) == plan.reference:
                    usual[plan] += 1
                return plan
            tried.add(plan)
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    lines: list[str] = []
    print("| product | kernels | plans, shapes | no plan | time |\n|---|---|---|---|---|")
    for name in given.kinds.split(","):
        found = Search(given.folder, name).run(given.seconds)
        explained = sum(plan is not None for plan in found.plans.values())
        print("\n".join(found.rows()))
        print(f"{name}: {explained} of {len(found.families)} shapes, {found.seconds} s", flush=True)
        lines += found.kept(read(given.folder, name))
        if given.output:
            given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
