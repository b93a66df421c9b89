"""Which choices of a matrix product change bits: pairs of plans, each with a theorem or a vector.

`python -m benchmarks.plan_choices [WORD...] [--timeout 100]` asks those whose question has a word (all without one),
writes benchmarks/plan_choices.jsonl, and docs/plan-choices.md from it. With `--units` it asks instead what the table
for each unit (plan_units.py) lacks; that may be stopped at any time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.pages import read_rows, write_rows
from benchmarks.plan_answers import ROOT, answer
from benchmarks.plan_units import AnsweredQuestions, section
from mmaprobe.smtmodel.arithmetic.display import number_text
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference

RECORDS, PAGE = ROOT / "benchmarks" / "plan_choices.jsonl", ROOT / "docs" / "plan-choices.md"

UNITS = {
    "volta": "volta/mma/m8n8k4.f32.f16.f16.f32",
    "turing": "turing/mma/m16n8k8.f32.f16.f16.f32",
    "ampere8": "ampere/mma/m16n8k8.f32.f16.f16.f32",
    "ampere16": "ampere/mma/m16n8k16.f32.f16.f16.f32",
    "ada": "ada-lovelace/mma/m16n8k16.f32.f16.f16.f32",
    "hopper_mma": "hopper/mma/m16n8k16.f32.f16.f16.f32",
    "hopper_mma8": "hopper/mma/m16n8k8.f32.f16.f16.f32",
    "wgmma": "hopper/wgmma/m64n8k16.f32.f16.f16",
    "tcgen05": "blackwell/tcgen05mma/m64n8k16.f32.f16.f16",
    "cdna3_8": "cdna3/mfma/f32_32x32x8_f16",
    "cdna3_16": "cdna3/mfma/f32_16x16x16_f16",
    "fma": "ieee/fma/f32.f16.f16.f32",
}
FP8 = {"fp8": "hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "fp8_mma": "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32"}
INTEL = {"amx": "x86/amx/tdpbf16ps", "dp": "x86/avx512/vdpbf16ps"}
ARM = {"bfdot": "arm/neon/bfdot", "bfmmla": "arm/neon/bfmmla"}
TF32 = {"mma8": "ampere/mma/m16n8k8.f32.tf32.tf32.f32", "mma4": "ampere/mma/m16n8k4.f32.tf32.tf32.f32"}
SGEMM = {"fma32": "ieee/fma/f32"}
#: the units of each format of a and b
FORMATS = {"f16": UNITS, "e4m3": FP8, "bf16": INTEL | ARM, "f32": TF32 | SGEMM}


@dataclass(frozen=True)
class Choice:
    """Two plans that differ in one choice: each the step `d` of a plan file, with its conversion of f32 inputs."""

    question: str
    source: str
    left: str
    right: str
    length: int | None = None
    ab: str = "f16"
    convert: tuple[str, str] = ("", "")

    @property
    def plans(self) -> tuple[Plan, Plan]:
        left, right = (plan_of(*side, self.ab) for side in zip((self.left, self.right), self.convert, strict=True))
        return left, right


@cache
def plan_of(step: str, convert: str, ab: str) -> Plan:
    """The plan of a step, with f32 for c and d."""
    units = "".join(f"  {name}: {unit}\n" for name, unit in FORMATS[ab].items() if name in step)
    text = (
        f"plan: choice\nformats: {{a: {ab}, b: {ab}, c: f32, d: f32}}\nunits:\n{units}"
        f"roundings:\n  r: round(f32, nearest_even)\n  h: round(f16, nearest_even)\n"
        f"  away: round(tf32, nearest_away)\n  truncated: round(tf32, toward_zero)\nsteps:\n  d: {step}\n"
    )
    if convert:
        text += f"convert: {{a: {convert}, b: {convert}}}\n"
    return parse_plan(text, step, parse_reference)


BIT = "facebookexperimental/triton, bitequiv"
GPUS = "pytorch 105726 and 111457 (two GPUs differ)"
ONCE = "ROCm rocm-systems 10344"
CAST = "triton 11782 (a cast changes the order)"
PROMOTION, ACCUMULATIONS = "DeepSeek-V3; CUTLASS FP8FastAccum", "CUTLASS, max_num_imprecise_acc"
STREAM = "Osama et al. 2023 (Stream-K); CUTLASS"
CHOICES = (
    Choice("Hopper: `mma` or `wgmma`?", BIT, "sum(hopper_mma, c)", "sum(wgmma, c)"),
    Choice("`wgmma` or `tcgen05`?", BIT, "sum(wgmma, c)", "sum(tcgen05, c)"),
    Choice("Hopper's `mma` or `tcgen05`?", BIT, "sum(hopper_mma, c)", "sum(tcgen05, c)"),
    Choice("Ampere's `mma` or `tcgen05`?", BIT, "sum(ampere16, c)", "sum(tcgen05, c)"),
    Choice("Ampere: instructions of 16 products or of 8?", "CUTLASS instruction shapes",
           "sum(ampere16, c)", "sum(ampere8, c)"),
    Choice("Hopper: instructions of 16 products or of 8?", "CUTLASS instruction shapes",
           "sum(hopper_mma, c)", "sum(hopper_mma8, c)"),
    Choice("Ampere or Ada Lovelace, one plan?", GPUS, "sum(ampere16, c)", "sum(ada, c)"),
    Choice("Ampere or Hopper, one plan?", GPUS, "sum(ampere16, c)", "sum(wgmma, c)"),
    Choice("Volta or Turing, one plan?", GPUS, "sum(volta, c)", "sum(turing, c)"),
    Choice("Is K split?", f"{BIT}; {GPUS}", "sum(ampere16, +0)", "sum(split(2, ampere16, r, grain=32), +0)"),
    Choice("Split in 2 or in 4?", "cuBLAS heuristics; autotuning",
           "sum(split(2, ampere16, r, grain=32), +0)", "sum(split(4, ampere16, r, grain=32), +0)"),
    Choice("Are the sums of a split added in order or in pairs?", "stream-K and parallel split-K in CUTLASS",
           "sum(split(4, ampere16, r), +0)", "sum(split(4, ampere16, r, order=pairwise), +0)"),
    Choice("Stream-K: do tiles of K dealt unevenly give what split-K gives?", STREAM,
           "sum(split(2, ampere16, r, grain=32), +0)", "sum(split([32], ampere16, r), +0)", 128),
    Choice("Stream-K: do two tiles of D, cut at other places, agree?", STREAM,
           "sum(split([32], ampere16, r), +0)", "sum(split([64], ampere16, r), +0)"),
    Choice("Stream-K: one tile of D, units of 16 or of 8?", STREAM,
           "sum(split([32, 96], ampere16, r), +0)", "sum(split([32, 96], ampere8, r), +0)"),
    Choice("Workspace of a split in f32 or f16?", "cuBLAS, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE",
           "sum(split(2, ampere16, r), +0)", "sum(split(2, h(ampere16), r), +0)"),
    Choice("One split, units of 16 or of 8?", "CUTLASS instruction shapes",
           "sum(split(4, ampere16, r, grain=64), +0)", "sum(split(4, ampere8, r, grain=64), +0)"),
    Choice("Are tiles taken in another order (two interleaved)?", CAST,
           "sum(ampere16, +0)", "sum(interleave(2, ampere16, r, grain=16), +0)"),
    Choice("Are products taken in another order in one sum (swizzled)?", CAST,
           "sum(ampere16, c)", "sum(turns(32, swizzle(2, ampere16, grain=2)), c)"),
    Choice("One swizzled order, units of 16 or of 8?", "CUTLASS instruction shapes",
           "sum(turns(32, swizzle(2, ampere16, grain=2)), c)", "sum(turns(32, swizzle(2, ampere8, grain=2)), c)"),
    Choice("Start from c, or add it at the end?", "cuBLAS, beta = 1",
           "sum(ampere16, c)", "r(exact(sum(ampere16, +0), c))"),
    Choice("beta * c: added to the sum, or by a fused multiply-add? (beta is 0.5)", "CUTLASS, linear_combination.h",
           "r(exact(sum(ampere16, +0), r(product(number(0x3f000000, f32), c))))",
           "r(exact(sum(ampere16, +0), product(number(0x3f000000, f32), c)))"),
    Choice("beta * c: the same, beta is 0.1", "CUTLASS, linear_combination.h",
           "r(exact(sum(ampere16, +0), r(product(number(0x3dcccccd, f32), c))))",
           "r(exact(sum(ampere16, +0), product(number(0x3dcccccd, f32), c)))"),
    Choice("A bias: before the result is rounded to f16, or after?", "fused epilogues (cuBLASLt, EPILOGUE_BIAS)",
           "r(h(exact(sum(ampere16, +0), c)))", "r(h(exact(h(sum(ampere16, +0)), c)))"),
    Choice("Is the sum rounded once per k (a chain of FMAs), or a product first?", ONCE,
           "sum(fma, c)", "sum(promote(1, fma, r), c)"),
    Choice("The same, products of f16 and a sum that begins with +0", ONCE,
           "sum(fma, +0)", "sum(promote(1, fma, r), +0)"),
    Choice("Tail through zeros or FMAs, K a multiple of 16", "odd K in cuBLAS and CUTLASS",
           "sum(ampere16, c)", "sum(chain(ampere16, tail=fma), c)"),
    Choice("Tail through zeros or FMAs, K = 17", "odd K in cuBLAS and CUTLASS",
           "sum(ampere16, c)", "sum(chain(ampere16, tail=fma), c)", 17),
    Choice("Tail of 8 products: zeros, or the shorter instruction?", "odd K in cuBLAS and CUTLASS",
           "sum(ampere16, c)", "sum(chain(ampere16, tail=ampere8), c)", 24),
    Choice("CDNA3: 32x32x8 or 16x16x16?", "rocBLAS and hipBLASLt kernels", "sum(cdna3_8, c)", "sum(cdna3_16, c)"),
    Choice("FP8: promotion every 128 products, or none?", PROMOTION,
           "r(sum(fp8, +0))", "sum(promote(128, fp8, r), +0)", ab="e4m3"),
    Choice("FP8: promotion every 128 products or every 64?", ACCUMULATIONS,
           "sum(promote(64, fp8, r), +0)", "sum(promote(128, fp8, r), +0)", ab="e4m3"),
    Choice("FP8 on Hopper: `wgmma` or `mma`, both promoted every 32?", "DeepGEMM and older kernels",
           "sum(promote(32, fp8, r), +0)", "sum(promote(32, fp8_mma, r), +0)", ab="e4m3"),
    Choice("bf16 on a processor: AMX or AVX512-BF16?", "oneDNN; PyTorch on two Xeons",
           "sum(amx, +0)", "sum(dp, +0)", ab="bf16"),
    Choice("bf16 on Arm: BFDOT or BFMMLA?", "Arm Compute Library kernels",
           "sum(bfdot, +0)", "sum(bfmmla, +0)", ab="bf16"),
    Choice("tf32: inputs rounded, or cut by the instruction?", "CUTLASS; PyTorch allow_tf32",
           "sum(mma8, +0)", "sum(mma8, +0)", ab="f32", convert=("away", "truncated")),
    Choice("tf32: instructions of 8 products or of 4?", "CUTLASS instruction shapes",
           "sum(mma8, +0)", "sum(mma4, +0)", ab="f32", convert=("away", "away")),
    Choice("sgemm: blocks of K of 384 or of 320?", "OpenBLAS, param.h (SkylakeX, Haswell)",
           "sum(promote(384, fma32, r), c)", "sum(promote(320, fma32, r), c)", 400, ab="f32"),
    Choice("sgemm: one loop, or 8 lanes?", "compilers with -ffast-math",
           "sum(fma32, +0)", "sum(interleave(8, fma32, r, order=pairwise), +0)", ab="f32"),
)  # fmt: skip


def record(choice: Choice, timeout: float) -> dict[str, Any]:
    """What was found, as a row of the records."""
    return {"question": choice.question} | answer(choice.plans, choice.length, timeout)


HEAD = """# Which choices of a matrix product change bits

In short: a split of K, the order in which the sums of a split are added, interleaved accumulators, promotion, and the
place of c change bits on [every unit](#every-unit) that was asked. One instruction or two at a time changes none; nor
does, from Hopper on, the choice of `mma`, `wgmma` or `tcgen05` with 16 products of f16 or bf16.

Each row compares two [plans](plans.md) that differ in one choice, on all inputs: subnormals, infinities and NaNs count.
The plans follow what libraries publish. What libraries were seen to run is on [cublas-plans](cublas-plans.md),
[triton-plans](triton-plans.md) and [library-plans](library-plans.md). In the answers

- "neutral": the choice changes no bit, for the K given. What proves it follows: induction over the steps of K, or equal
  parts. Two steps "have one normal form" if rewriting turns both into the same expression ([prove](prove.md)).
- "differs": an input with K products on which the plans give the two results after the arrow; both were evaluated
  again. `place: a * b` is a product, in hexadecimal; products of two zeros +0 are left out.

The [names of units](#units) are explained below. `python -m benchmarks.plan_choices` writes this page; no answer took
more than {slowest:.1f} s.

| question, and where it is asked | two plans | answer |
|---|---|---|
"""


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The table."""
    choices = {choice.question: choice for choice in CHOICES}
    lines = []
    for row in rows:
        choice = choices[row["question"]]
        sides = [
            f"`{step}`" + (f", inputs {how}" if how else "")
            for step, how in zip((choice.left, choice.right), choice.convert, strict=True)
        ]
        lines.append(f"| {choice.question} ({choice.source}) | {'<br>'.join(sides)} | {_answer(row, choice)} |\n")
    used = sorted({(name, unit) for units in FORMATS.values() for name, unit in units.items()})
    names = "".join(f"- `{name}`: {unit}\n" for name, unit in used)
    head = HEAD.format(slowest=max(row["seconds"] for row in rows))
    return f"{head}{''.join(lines)}\n## Units\n\n{names}\n{section(AnsweredQuestions(None))}"


def _answer(row: dict[str, Any], choice: Choice) -> str:
    if row["verdict"] == "unknown":
        return "unknown"
    if row["verdict"] == "equal":
        what = f"K = {choice.length}" if choice.length else f"every multiple of {row['multiples']}"
        by = f" ({', '.join(row['engines'])})" if row["engines"] else ""
        return f"neutral for {what}: {'; '.join(line.strip() for line in row['rules'])}{by}"
    terms = [f"{place}: {a} * {b}" for place, a, b in row["products"]] or ["no product but zeros"]
    if len(terms) == row["length"] > 2 and len({(a, b) for _, a, b in row["products"]}) == 1:
        terms = [f"all: {row['products'][0][1]} * {row['products'][0][2]}"]
    fmt = choice.plans[0].d
    values = [number_text(int(result, 16), fmt) for result in row["results"]]
    shown = [f"{result} ({value})" for result, value in zip(row["results"], values, strict=True)]
    return f"differs at K = {row['length']}: {', '.join(terms)}; c = {row['c']} → {shown[0]}, {shown[1]}"


def read_records() -> dict[str, dict[str, Any]]:
    """The rows by question."""
    return {row["question"]: row for row in read_rows(RECORDS)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--timeout", type=float, default=100.0)
    parser.add_argument("--units", action="store_true", help="what the table for each unit lacks")
    arguments = parser.parse_args()
    known = read_records()
    if arguments.units:
        section(AnsweredQuestions(arguments.timeout))
    for choice in CHOICES if not arguments.units else ():
        if not arguments.words or any(word in choice.question for word in arguments.words):
            row = known[choice.question] = record(choice, arguments.timeout)
            print(f"{row['seconds']:6.1f} s  {row['verdict']:9}  {choice.question}", flush=True)
        write_rows((known[one.question] for one in CHOICES if one.question in known), RECORDS)
    PAGE.write_text(page([known[one.question] for one in CHOICES if one.question in known]), encoding="utf-8")


if __name__ == "__main__":
    main()
