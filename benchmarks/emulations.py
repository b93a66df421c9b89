"""What emulations of f32 and f64 lose on today's matrix units: docs/emulations.md.

`python -m benchmarks.emulations [WORD...]` asks those whose name has a word (all without one), writes
benchmarks/emulations.jsonl, and the tables of the page from it: its text is written by hand.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import read_rows, write_rows
from mmaprobe.queries.claims.classical import beyond
from mmaprobe.queries.kernel.bounds.forms import EXACT, Form, Monomial
from mmaprobe.queries.kernel.bounds.wording import up_decimal, up_text
from mmaprobe.queries.kernel.integers.blocks import LosesOfBlocks
from mmaprobe.queries.kernel.integers.slices import LosesOfElements, LosesOfLargest
from mmaprobe.queries.kernel.integers.wraps import never_wraps
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.plans.bound_report import AtLength, find_plan_bound
from mmaprobe.queries.plans.slices import blocks_lose, elements_lose, slices_lose
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.plan_files import FOLDER
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference

ROOT = Path(__file__).parents[1]
RECORDS, PAGE = ROOT / "benchmarks" / "emulations.jsonl", ROOT / "docs" / "emulations.md"
LENGTH = 1024
DRAWN, SEED = 12, 1  # rows and columns of random elements
SPREADS = (0, 1, 2, 4, 8)
MOST = 1 << 20  # products, up to which a limit of K is looked for
MACHINES = ("H100", "B200", "MI300X", "x86")
UNITS: Mapping[str, tuple[str, ...]] = {
    "f16": ("hopper/wgmma/m64n8k16.f32.f16.f16", "blackwell/tcgen05mma/m64n8k16.f32.f16.f16",
            "cdna3/mfma/f32_32x32x8_f16"),
    "bf16": ("hopper/wgmma/m64n8k16.f32.bf16.bf16", "blackwell/tcgen05mma/m64n8k16.f32.bf16.bf16",
             "cdna3/mfma/f32_32x32x8_bf16"),
    "tf32": ("hopper/wgmma/m64n8k8.f32.tf32.tf32", "blackwell/tcgen05mma/m64n8k8.f32.tf32.tf32"),
    "e4m3": ("hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "blackwell/tcgen05mma/m64n8k32.f32.e4m3.e4m3"),
    # of integers, which these are known to add exactly
    "f16 integers": ("hopper/wgmma/m64n8k16.f32.f16.f16", "blackwell/tcgen05mma/m64n8k16.f32.f16.f16"),
    "e4m3 integers": ("", "blackwell/tcgen05mma/m64n8k32.f32.e4m3.e4m3"),  # on an H100 up to K = 72
    "int8": ("hopper/wgmma/m64n8k32.s32.s8.s8", "blackwell/tcgen05mma/m64n8k32.s32.s8.s8",
             "cdna3/mfma/i32_16x16x32_i8", "x86/avx-vnni-int8/vpdpbssd"),
}  # fmt: skip


@dataclass(frozen=True)
class Emulation:
    """A plan, whose unit is replaced by those of each machine. `unit`: the format of that unit."""

    name: str
    plan: str
    unit: str


F32 = (
    Emulation("bf16x3, Triton", "triton/bf16x3", "bf16"), Emulation("bf16x3, XLA", "xla/bf16x3", "bf16"),
    Emulation("bf16x6, Triton", "triton/bf16x6", "bf16"), Emulation("bf16x6, XLA", "xla/bf16x6", "bf16"),
    Emulation("bf16x9, in one accumulator", "multiword/bf16x9", "bf16"),
    Emulation("bf16x9, CUTLASS", "cutlass/bf16x9", "bf16"),
    Emulation("tf32x3, CUTLASS", "cutlass/tf32x3", "tf32"), Emulation("tf32x3, Triton", "triton/tf32x3", "tf32"),
    Emulation("f16x4, Markidis et al.", "multiword/markidis", "f16"),
    Emulation("f16x4, EGEMM-TC", "multiword/egemm-tc", "f16"),
    Emulation("f16x2, Markidis et al., A alone", "multiword/markidis-f16x2", "f16"),
    Emulation("f16x3, Ootomo and Yokota", "multiword/ootomo-yokota", "f16"),
    Emulation("f16x3, APE", "ape/f16x3-scaled", "f16"),
)  # fmt: skip
FP8 = (
    Emulation("FP8, in one accumulator", "cutlass/fp8-fast", "e4m3"),
    Emulation("FP8, promoted every 128", "cutlass/fp8-promoted", "e4m3"),
)
SLICES = (
    Emulation("f32, Ozaki I, 4 slices", "ozaki/f32-int8-4", "int8"),
    *(Emulation(f"f64, Ozaki I, {n} slices", f"ozaki/int8-{n}", "int8") for n in (6, 7, 8)),
    Emulation("f64, Ozaki II, 14 moduli", "ozaki/int8-ii-14", "int8"),
    Emulation("f64, Ozaki I, 7 slices in f16", "ozaki/f16-7", "f16 integers"),
    Emulation("f64, Ozaki I, 14 slices in FP8", "ozaki/fp8-14", "e4m3 integers"),
)
BLOCKS = ("mx/fp8", "mx/fp6", "mx/fp4", "transformerengine/mxfp8", "transformerengine/nvfp4")
ALONE = (("f32, fused multiply-adds", "loop/fma"), ("f16, compensated every 128", "compensated/chunks"),
         ("TF64, three products", "valero-lara/tf64x3"))  # fmt: skip


#: the tables by the headings of the page under which they stand
TABLES: Mapping[str, Sequence[str]] = {
    "f32 by words": ("f32, fused multiply-adds", *dict.fromkeys(one.name for one in F32)),
    "FP8 and f16, sums promoted": (*(one.name for one in FP8), "f16, compensated every 128"),
    "f64 by words": ("TF64, three products",),
    "f32 and f64 by slices and residues": tuple(one.name for one in SLICES),
    "What block formats lose": BLOCKS,
}


def with_unit(name: str, unit: str) -> Plan:
    """A plan that ships, on another unit."""
    text, count = re.subn(r"(?m)^  mma: .*$", f"  mma: {unit}", (FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    assert count == 1, name
    return parse_plan(text, f"{name} on {unit}", parse_reference)


def work(plan: Plan) -> int:
    """How many products of its units one product of elements takes."""
    return sum(len(products.stage.chains) for products in plan.sums)


def relative(form: Form) -> tuple[Fraction, int]:
    """The part of a bound that is a share of the sum of |a b|, and the least exponent of all elements from which on the
    other parts together are no more."""
    share, rest = Fraction(0), list[tuple[Monomial, Fraction]]()
    for atom, value in form.flat().parts.items():
        (item,) = atom
        names = {factor.name for factor in item}
        if names == {"a", "b"} or names == {EXACT}:
            share += value
        elif "c" not in names:
            rest.append((item, value))
    for exponent in range(-150, 128):
        one = Fraction(2) ** exponent
        if sum((value * one ** (len(item) - 2) for item, value in rest), Fraction(0)) <= share:
            return share, exponent
    raise AssertionError("a bound that has no share of the sum of magnitudes")


def of_words(plan: Plan, settle: Settled) -> dict[str, Any]:
    found = find_plan_bound(plan, Inputs(), (LENGTH,), settle, searched=LENGTH)
    if not found.sizes:
        return {"bound": None, "reason": found.reason}
    (size,) = found.sizes
    return {"work": work(plan), **_of_form(size, plan.d.precision)}


def _of_form(size: AtLength, precision: int) -> dict[str, Any]:
    share, least = relative(size.form)
    near = None if size.near is None else float(size.near.ratio)
    return {"bound": up_text(share), "times": float(share * (1 << precision) / LENGTH), "from": least, "near": near}


def of_slices(plan: Plan, worst: Sequence[tuple[float | None, float]]) -> dict[str, Any]:
    """`worst`: what was found of each spread."""
    goal = slices_lose(plan, LENGTH, plan.d.emax // 4).goal
    assert isinstance(goal, LosesOfLargest)
    elements = elements_lose(plan, LENGTH, plan.d.emax // 4).goal
    assert isinstance(elements, LosesOfElements)
    unit = Fraction(1, 1 << plan.d.precision)
    rows = [
        {
            "spread": spread,
            "proved": float(elements.within(spread) / LENGTH / unit),
            "found": found,
            "random": drawn,
        }
        for spread, (found, drawn) in zip(SPREADS, worst, strict=True)
    ]
    return {"work": work(plan), "bound": up_text(goal.share), "reach": plan.d.emax // 4, "most": _most(plan),
            "rows": rows}  # fmt: skip


def of_blocks(plan: Plan, settle: Settled) -> dict[str, Any]:
    """Of rows and columns whose blocks begin with a largest number before copies of another one, what the worst product
    loses."""
    goal = blocks_lose(plan, LENGTH, settle).goal
    assert isinstance(goal, LosesOfBlocks)
    sizes = (1.0, 17 / 16, 1.25, 1.5, 1.75, 511 / 256)
    pairs = [(most, most * share / 64) for most in sizes for share in range(32, 65)]
    rows = np.array([([most] + [other] * (goal.block - 1)) * (LENGTH // goal.block) for most, other in pairs])
    left, right = (from_numbers(rows, fmt, "nearest_even") for fmt in (plan.a, plan.b))
    a, b = (to_numbers(side, fmt).astype(float) for side, fmt in ((left, plan.a), (right, plan.b)))
    d = to_numbers(simulate(left, np.ascontiguousarray(right.T), None, plan).astype(kind_of(plan.d)), plan.d)
    found = np.abs(d - a @ b.T) / (LENGTH * np.outer(a.max(1), b.max(1)))
    return {"block": goal.block, "bound": up_text(goal.share), "found": float(found.max())}


@cache
def worst_of(name: str) -> tuple[tuple[float | None, float], ...]:
    """Of a plan that ships, for each spread, how many times K u sum |a b| the worst of two searches loses: of copies of
    two elements, and of random positive elements. Its integers are those of each unit on which no sum wraps."""
    plan = parse_plan_path(f"plan:{name}")
    found = []
    for spread in SPREADS:
        worst = beyond(plan, LENGTH, spread, 0)
        found.append((None if worst is None else float(worst.times), _random(plan, spread)))
    return tuple(found)


def _random(plan: Plan, spread: int) -> float:
    """The largest error of random products, whose elements are from 2^-spread to 1, in the same measure."""
    random = np.random.default_rng(SEED)
    a, b = (np.exp2(-spread * random.random((DRAWN, LENGTH))) for _ in range(2))
    a, b = (x.astype(np.float32).astype(np.float64) if plan.a.name == "f32" else x for x in (a, b))
    left, right = (from_numbers(x, plan.a, "nearest_even") for x in (a, b))
    d = to_numbers(simulate(left, np.ascontiguousarray(right.T), None, plan).astype(kind_of(plan.d)), plan.d)
    worst = Fraction(0)
    for i, j in np.ndindex(d.shape):
        exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a[i], b[j], strict=True)), Fraction(0))
        worst = max(worst, abs(Fraction(float(d[i, j])) - exact) / exact)
    return float(worst * (1 << plan.d.precision) / LENGTH)


def _most(plan: Plan) -> int:
    """The largest K for which no sum is known to wrap, up to MOST."""
    low, high = LENGTH, MOST
    while low < high:
        middle = (low + high + 1) // 2
        try:
            never_wraps(plan, middle, None, None)
            low = middle
        except RuleError:
            high = middle - 1
    return low


def rows() -> Iterator[tuple[str, str, str, str, Plan]]:
    """Of each row of the tables: its name, the machine, the unit, the plan that ships and that on the unit."""
    for name, plan in ALONE:
        yield name, "", "", plan, parse_plan_path(f"plan:{plan}")
    for plan in BLOCKS:
        yield plan, "", "", plan, parse_plan_path(f"plan:{plan}")
    for one in (*F32, *FP8, *SLICES):
        for machine, unit in zip(MACHINES, UNITS[one.unit], strict=False):
            if unit:
                yield one.name, machine, unit, one.plan, with_unit(one.plan, unit)


def read_records() -> dict[str, dict[str, Any]]:
    return {f"{row['name']} {row['machine']}": row for row in read_rows(RECORDS)}


def page(text: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with the tables that the records give."""
    for title, chosen in TABLES.items():
        text, count = re.subn(
            rf"(?m)^(##+ {re.escape(title)}\n(?:(?!\||## ).*\n)*)(?:\|.*\n)*",
            lambda found, chosen=chosen: found[1] + _table(known, chosen), text,
        )  # fmt: skip
        assert count == 1, title
    return text


def _table(known: Mapping[str, Mapping[str, Any]], chosen: Sequence[str]) -> str:
    of = {name: [row for row in known.values() if row["name"] == name] for name in chosen}
    if all("block" in row for one in of.values() for row in one):
        lines = ["| plan | proved: times the sum over blocks | of | worst found |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {row['bound']} | {row['block']} max a max b | {row['found']:.2g} |"
                  for name, (row,) in of.items()]  # fmt: skip
        return "\n".join(lines) + "\n"
    if all("rows" in row for one in of.values() for row in one):
        lines = ["| emulation | work | proved: times K max a max b | K up to | " + " | ".join(
            "one size" if not spread else f"within 2^{spread}" for spread in SPREADS) + " |",
            "|---|---|---|---|" + "---|" * len(SPREADS)]  # fmt: skip
        for name, rows in of.items():
            (row, *others) = rows
            assert all({**other, "machine": "", "unit": ""} == {**row, "machine": "", "unit": ""} for other in others)
            cells = (f"{_up(x['proved'])} ({x['found']:.2g})" for x in row["rows"])
            lines.append(f"| {name} | {row['work']} | {row['bound']} | {row['most']:,} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"
    lines = ["| emulation | on | work | proved: times sum of magnitudes | times K u | worst found | elements from |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, rows in of.items():
        alike: dict[str, list[str]] = {}
        for row in rows:
            near = "" if row["near"] is None else f"{row['near']:.2f}"
            cells = f"{row['work']} | {row['bound']} | {_up(row['times'])} | {near} | 2^{row['from']}"
            alike.setdefault(cells, []).append(row["machine"] or "any")
        lines += [f"| {name} | {', '.join(machines)} | {cells} |" for cells, machines in alike.items()]
    return "\n".join(lines) + "\n"


def _up(value: float) -> str:
    """Rounded up to two digits; large ones as they are."""
    return up_decimal(value, 2) if value < 100 else f"{ceil(value):,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    words: Sequence[str] = parser.parse_args().words
    known, settle = read_records(), Settled(Options(timeout=600.0), False)
    every = {f"{name} {machine}": (name, machine, unit, shipped, plan) for name, machine, unit, shipped, plan in rows()}
    for key, (name, machine, unit, shipped, plan) in every.items():
        if words and not any(word in key for word in words):
            continue
        start = time.monotonic()
        if plan.factors is not None:
            found = of_blocks(plan, settle)
        else:
            found = of_slices(plan, worst_of(shipped)) if plan.gathered else of_words(plan, settle)
        known[key] = {"name": name, "machine": machine, "unit": unit, **found}
        print(f"{time.monotonic() - start:6.1f} s  {key}", flush=True)
        write_rows((known[one] for one in every if one in known), RECORDS)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), read_records()), encoding="utf-8")


if __name__ == "__main__":
    main()
