"""Finds the plans of products that benchmarks/gpu_gemm recorded: a Markdown table of which kernels compute which plan.

    python -m benchmarks.gpu_plans FOLDER [--kinds f16,...] [--seconds 120] [-o FILE.json]

A shape is explained if a plan gives every element that was recorded, bit for bit. `--seconds`: for each kind.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.gpu_gemm import KINDS, NUMERICS, Kind, Record, places, random_factors, read
from queries.plans.candidates import CONVERSIONS, Candidates, Sample
from smtmodel.formats import FORMATS
from smtmodel.nodes.round import Rounding
from smtmodel.numbers import from_numbers
from smtmodel.plans import Chain, Interleaved, Plan, Promoted, Rounded, Split, Stage, Whole
from smtmodel.reference import parse_reference
from smtmodel.signature import parse_signature

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
}  # fmt: skip
TILES = (64, 128, 32, 16, 8)  # products of K that a kernel loads at a time
PROMOTED = 128  # products after which FP8 is added in f32
MOST = 160  # runs of a split
GRAINS = (8, 16, 32, 1)  # a run is a multiple of one of these, if not of the tile
KERNELS = re.compile(
    r"nvjet_sm90_\w+?_\d+x\d+_(?P<nvjet>\d+)x\d+"
    r"|tilesize\d+x\d+x(?P<xmma>\d+)|(?:cutlass|gemm).*?_\d+x\d+_(?P<cutlass>\d+)x\d+"
)


@dataclass
class Found:
    """What was found of one kind: the plan of each shape, None if no plan tried gives all; `asked`: how many shapes
    were looked at."""

    kind: str
    plans: dict[str, str | None] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    seconds: float = 0

    def rows(self) -> Iterator[str]:
        """A row of the table for each family of kernels and plan."""
        by: dict[str, Counter[str]] = defaultdict(Counter)
        for shape, plan in self.plans.items():
            by[self.families[shape]][general(plan) if plan else ""] += 1
        for family, plans in sorted(by.items(), key=lambda item: -item[1].total()):
            known = "; ".join(f"`{plan}` {count}" for plan, count in plans.most_common() if plan)
            yield f"| {self.kind} | {family} | {known} | {plans['']} |"


def general(plan: str) -> str:
    """A plan's text without what the shape alone decides: how many runs K is cut into."""
    return re.sub(r"(split|interleave)\(\d+,", r"\1(n,", plan)


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
    return Sample(a, b, np.zeros_like(record.random[shape]), record.random[shape])


def one_of(sample: Sample) -> Sample:
    """One element of a sample."""
    return Sample(sample.a[:, :1], sample.b[:, :, :1], sample.c[:, :1, :1], sample.d[:, :1, :1])


def stages(steps: Sequence[str], length: int, tile: int | None, result: str, split: bool) -> Iterator[Stage]:
    """Stages as kernels have them, those that do not split K first, and alone if `split` is false."""
    bodies: list[tuple[Stage, int]] = []
    for step in steps:
        model = parse_reference(step)
        chain = Chain(model)
        bodies.append((chain, tile or TILES[0]))
        if model.a.width == 8 and length > PROMOTED:
            bodies.append((Promoted(PROMOTED, chain, Rounding(FORMATS["f32"])), tile or TILES[1]))
        heads = [Whole(one, chain, head=chain) for one in ([tile] if tile else TILES) if length > one]
        bodies += [(head, head.number) for head in heads]
    yield from (body for body, _ in bodies)
    for body, own in bodies if split else ():
        how = Rounding(FORMATS["f64" if body.d.name == "f64" else "f32"])
        for ways in range(2, MOST + 1 if isinstance(body, Chain) else 0):
            if length % (ways * own) == 0:
                yield Interleaved(ways, body, how, "sequential", own)
        seen = set()
        for ways in range(2, MOST + 1):
            for grain in dict.fromkeys((own, *GRAINS)):
                size = -(-length // (grain * ways)) * grain
                if size >= length or size in seen:
                    continue
                seen.add(size)
                yield Split(ways, body, how, "sequential", grain)
                if result in ("f16", "bf16"):
                    yield Split(ways, Rounded(body, Rounding(FORMATS[result])), how, "sequential", grain)


def found_of(folder: Path, name: str, seconds: float) -> Found:
    """The plans of one kind."""
    kind, record, found = KINDS[name], read(folder, name), Found(name)
    begun = time.monotonic()
    formats = f"{kind.given},{kind.given},{kind.result}"
    steps = STEPS["tf32" if name == "tf32" else kind.given]
    converts = [Rounding(FORMATS["tf32"], mode) for mode in CONVERSIONS["tf32"]] if name == "tf32" else [None]
    several = [Candidates(parse_signature(formats, 1), convert) for convert in converts]
    for candidates in several:
        candidates.compiled.update(map(parse_reference, steps))
    usual: dict[str, Counter[Plan]] = defaultdict(Counter)
    for shape in sorted(record.random, key=lambda text: -int(text.rsplit(",", 1)[1])):  # a long K tells plans apart
        if time.monotonic() > begun + seconds:
            break
        kernels, tile = family(record.kernels.get(shape, ()))
        length = int(shape.rsplit(",", 1)[1])
        sample = sample_of(record, kind, shape, formats)
        one = one_of(sample)
        told = not record.kernels or any(name in kernels for name in ("cutlass", "nvjet", "xmma"))  # else a vector's
        every = (plan for stage in stages(steps, length, tile, kind.result, told)
                 for candidates in several for plan in candidates.plans(stage, False))  # fmt: skip
        known = [plan for plan, _ in usual[kernels].most_common()]
        tried = set()
        for plan in (*known, *every):
            if plan not in tried and several[0].same(plan, one) and several[0].same(plan, sample):
                if general(plan.reference) == plan.reference:
                    usual[kernels][plan] += 1
                found.plans[shape] = plan.reference
                break
            tried.add(plan)
        else:
            found.plans[shape] = None
        found.families[shape] = kernels
    found.seconds = round(time.monotonic() - begun, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("-o", "--output", type=Path, help="the plan of each shape, as JSON")
    given = parser.parse_args()
    document = {}
    print("| product | kernels | plans, shapes | no plan |\n|---|---|---|---|")
    for name in given.kinds.split(","):
        found = found_of(given.folder, name, given.seconds)
        explained = sum(plan is not None for plan in found.plans.values())
        print("\n".join(found.rows()))
        print(f"{name}: {explained} of {len(found.plans)} shapes, {found.seconds} s", flush=True)
        document[name] = {"plans": found.plans, "kernels": found.families}
        if given.output:
            given.output.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
