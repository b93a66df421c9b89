"""Which plans of whole products each entry point finds: of a recording, of a recording beside another one, and of a
function. None of these plans was looked at while the search was written.

    python -m benchmarks.product_searches [--only NAME,...] [--ways recorded,compared,function] [--seconds 60] [-o FILE]

    python -m benchmarks.product_searches --only drawn --ways recorded,compared,asked --table FILE

Appends a row of JSON for each plan and entry point; --table prints those of a file, the last of each. `found`: one of
the plans named gives the true one's bits on new inputs; `wrong`: there are some, and none does. A function is asked up
to the K of its row, with M and N up to 16; what its rules say is compared with it at new shapes. `asked`: until its
plan is found. Seconds are those of computing, so that other programs do not count.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.library_held import computing
from benchmarks.pages import keep_line, read_rows, table_head
from mmaprobe.queries.plans.library import Mapper
from mmaprobe.queries.plans.recorded import Recorded
from mmaprobe.queries.plans.results import PlansOfResult, plans_of_results
from mmaprobe.runner.device_plans import mapper_of
from mmaprobe.smtmodel.base.errors import IncompleteError, MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, type_of
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Plan, Products
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.named import in_runs
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference

ROWS, COLUMNS, SEED = 72, 64, 20
LEAST, MOST, WORK = 128, 4096, 1 << 27  # sides of drawn products, and their multiplications
FRESH, SHAPES = 48, 12  # rows and columns of new inputs; new shapes of functions
NAMED = 64  # plans of a recording that are looked at
Matrix = NDArray[Any]

HOPPER, AMPERE, VOLTA = "hopper/mma/m16n8k16", "ampere/mma/m16n8k16", "volta/mma/m8n8k4"
F16, B16 = "f32.f16.f16.f32", "f32.bf16.bf16.f32"
WGMMA = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
ADA = "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32"


@dataclass(frozen=True)
class Row:
    """A plan: formats (with that of c in the third place, which is not read where `d` has none), K, unit, result, and
    how inputs, or those named in `converted`, are converted. `bias`: C has one row, or one column, for all. `sides`:
    those of a recorded result."""

    name: str
    formats: str
    length: int
    unit: str
    result: str
    convert: str = ""
    bias: str = ""
    sides: tuple[int, int] = ROWS, COLUMNS
    converted: str = "ab"

    @property
    def plan(self) -> Plan:
        a, b, c, d = self.formats.split(",")
        both = ", ".join(f"{side}: t" for side in self.converted)
        converted = f"convert: {{{both}}}\n" if self.convert else ""
        t = f"  t: round({self.convert})\n" if self.convert else ""
        text = (
            f"plan: {self.name}\nformats: {{a: {a}, b: {b}, c: {c}, d: {d}}}\nunits: {{u: {self.unit}}}\n{converted}"
            f"roundings:\n  r: round(f32, nearest_even)\n  h: round(f16, nearest_even)\n"
            f"  s: round(bf16, nearest_even)\n  w: round(f64, nearest_even)\n{t}steps:\n  d: {self.result}\n"
        )
        return parse_plan(text, self.name, parse_reference)


def number(value: float) -> str:
    return f"number({int(np.float32(value).view(np.uint32)):#x}, f32)"


FMA, MULADD = "ieee/fma/f32", "ieee/muladd/f32"
PLANS = (
    Row("split-4", "f16,f16,f32,f32", 1024, f"{HOPPER}.{F16}", "sum(split(4, u, r, grain=64), +0)"),
    Row("split-8-pairs", "bf16,bf16,bf16,bf16", 2048, f"{AMPERE}.{B16}", "s(sum(split(8, u, r, order=pairwise), +0))"),
    Row("split-2-back", "bf16,bf16,f32,f32", 4096, "cdna3/mfma/f32_16x16x16_bf16",
        "sum(split(2, u, r, order=backwards), +0)"),
    Row("fp8-promoted", "e4m3,e4m3,bf16,bf16", 1024, WGMMA, "s(sum(promote(128, u, r), +0))"),
    Row("fp8-promoted-64-c", "e4m3,e4m3,f32,f32", 512, ADA, "r(exact(sum(promote(64, u, r), +0), c))"),
    Row("eighth", "f16,f16,f32,f32", 512, f"{HOPPER}.{F16}", f"r(product({number(0.125)}, sum(u, +0)))"),
    Row("third", "f32,f32,f32,f32", 1000, FMA, f"r(product({number(0.3)}, sum(promote(256, u, r), +0)))"),
    Row("root-128", "f16,f16,f16,f16", 128, f"{AMPERE}.{F16}", f"h(r(product({number(128 ** -0.5)}, sum(u, +0))))"),
    Row("alpha-beta", "f16,f16,f32,f32", 768, f"{HOPPER}.{F16}",
        f"r(exact(product({number(1.5)}, sum(split(2, u, r, grain=64), +0)), r(product({number(0.5)}, c))))"),
    Row("two-two", "f16,f16,f16,f16", 256, f"{VOLTA}.{F16}",
        f"h(r(exact(product({number(2)}, sum(u, +0)), product({number(2)}, c))))"),
    Row("stored-then-c", "bf16,bf16,bf16,bf16", 512, f"{HOPPER}.{B16}", "s(exact(s(sum(u, +0)), c))"),
    Row("stored-f16-c-f32", "f16,f16,f32,f32", 320, f"{AMPERE}.{F16}", "r(exact(h(sum(u, +0)), c))"),
    Row("split-stored-c", "f16,f16,f16,f16", 1536, f"{HOPPER}.{F16}",
        "h(exact(h(sum(split(3, u, r, grain=64), +0)), c))"),
    Row("c-last", "f16,f16,f32,f32", 384, f"{AMPERE}.{F16}", "r(exact(sum(promote(128, u, r), +0), c))"),
    Row("c-first-split", "bf16,bf16,f32,f32", 1152, f"{HOPPER}.{B16}", "sum(split(3, u, r, grain=32), c)"),
    Row("truncated-loop", "f32,f32,f32,f32", 320, "ieee/fma/f32.tf32.tf32.f32", "sum(u, +0)", "tf32, toward_zero"),
    Row("bf16-first", "f32,f32,f32,f32", 512, f"{AMPERE}.{B16}", "sum(split(2, u, r, grain=32), +0)",
        "bf16, nearest_even"),
    Row("tf32-c-last", "f32,f32,f32,f32", 640, "ampere/mma/m16n8k8.f32.tf32.tf32.f32", "r(exact(sum(u, +0), c))",
        "tf32, nearest_away"),
    Row("four-sums-c", "f32,f32,f32,f32", 500, FMA, "r(exact(sum(interleave(4, u, r, tail=u), +0), c))"),
    Row("lanes", "f32,f32,f32,f32", 333, MULADD, "sum(lanes(u, r, 8, fold(2, 4), fold(2, 2), fold(2, 1), tail=u), +0)"),
    Row("bias-row", "f16,f16,f32,f16", 256, f"{HOPPER}.{F16}", "h(r(exact(sum(split(2, u, r), +0), c)))", bias="row"),
    Row("bias-column", "bf16,bf16,f32,bf16", 896, f"{AMPERE}.{B16}", "s(sum(u, c))", bias="column"),
    Row("twice", "f16,f16,f32,f32", 512, f"{HOPPER}.{F16}", "r(h(sum(u, +0)))"),
    Row("workspace", "f16,f16,f16,f16", 2048, f"{AMPERE}.{F16}", "h(sum(split(4, h(u), r, grain=64), +0))"),
)  # fmt: skip


#: plans that were written when the search was done
HELD = (
    Row("held-scaled-back", "bf16,bf16,f32,f32", 3072, f"{HOPPER}.{B16}",
        f"r(product({number(2.5)}, sum(split(8, u, r, order=backwards), +0)))"),
    Row("held-minus-c", "bf16,bf16,f32,f32", 640, f"{AMPERE}.{B16}",
        f"r(exact(sum(split(2, u, r), +0), product({number(-1)}, c)))"),
    Row("held-tf32-third", "f32,f32,f32,f32", 1024, "hopper/mma/m16n8k8.f32.tf32.tf32.f32",
        f"r(product({number(1 / 3)}, sum(split(4, u, r), +0)))", "tf32, nearest_even"),
    Row("held-f16-first-c", "f32,f32,f32,f32", 768, f"{AMPERE}.{F16}", "r(exact(sum(u, +0), c))",
        "f16, nearest_even"),
    Row("held-relu-bias", "f16,f16,f32,f16", 512, f"{HOPPER}.{F16}", "h(relu(r(exact(sum(u, +0), c))))", bias="row"),
    Row("held-fp8-root", "e4m3,e4m3,f32,f32", 1024, WGMMA,
        f"r(product({number(0.5**0.5)}, sum(promote(256, u, r), +0)))"),
    Row("held-stored-relu", "bf16,bf16,bf16,bf16", 256, f"{HOPPER}.{B16}", "s(relu(exact(s(sum(u, +0)), c)))"),
    Row("held-halves", "f32,f32,f32,f32", 1024, FMA,
        f"r(exact(product({number(0.5)}, sum(halve(128, u, r), +0)), c))"),
    Row("held-odd-k", "f16,f16,f32,f32", 1000, f"{HOPPER}.{F16}", "sum(split(2, u, r, grain=64), +0)"),
    Row("held-f16-sums", "f16,f16,f16,f16", 384, "turing/mma/m16n8k8.f16.f16.f16.f16",
        f"h(product({number(0.5)}, sum(u, +0)))"),
    Row("held-two-sums", "bf16,bf16,bf16,bf16", 1024, f"{AMPERE}.{B16}",
        "s(exact(s(sum(interleave(2, u, r, grain=16, tail=u), +0)), c))"),
    Row("held-bf16-c-first", "bf16,bf16,bf16,f32", 448, f"{HOPPER}.{B16}", "sum(promote(64, u, r), c)"),
)  # fmt: skip


CDNA2, TURING, BLACKWELL = "cdna2/mfma/f32_32x32x8f16", "turing/mma/m16n8k8", "blackwell/mma/m16n8k16"
#: plans as of kernels in use, written by one who had not read the search, none of which was looked at before it was run
UNSEEN = (
    Row("unseen-f16-split-5", "f16,f16,f16,f16", 2560, f"{AMPERE}.{F16}", "h(sum(split(5, u, r, grain=32), +0))"),
    Row("unseen-bf16-stream-k", "bf16,bf16,bf16,bf16", 1536, f"{HOPPER}.{B16}", "s(sum(split([448], u, r), +0))"),
    Row("unseen-bf16-stream-k-2", "bf16,bf16,f32,f32", 2048, f"{HOPPER}.{B16}",
        "sum(split([320, 1344], u, r, order=backwards), +0)"),
    Row("unseen-wgmma-e5m2", "e5m2,e4m3,f32,f32", 896, "hopper/wgmma/m64n8k32.f32.e5m2.e4m3",
        "sum(promote(128, u, r), +0)"),
    Row("unseen-fp8-split", "e4m3,e4m3,bf16,bf16", 2048, WGMMA,
        "s(sum(split(2, promote(128, u, r), r, grain=128), +0))"),
    Row("unseen-fp8-scaled-bias", "e4m3,e4m3,f32,f16", 768, WGMMA,
        f"h(r(exact(r(product({number(0.0078125)}, sum(promote(128, u, r), +0))), c)))", bias="row"),
    Row("unseen-fp8-tenth", "e4m3,e5m2,bf16,bf16", 512, "ada-lovelace/mma/m16n8k32.f32.e4m3.e5m2.f32",
        f"s(r(product({number(0.1)}, sum(promote(64, u, r), +0))))"),
    Row("unseen-fp8-f16", "e4m3,e4m3,f16,f16", 640, "hopper/wgmma/m64n8k32.f16.e4m3.e4m3", "sum(u, +0)"),
    Row("unseen-fp8-mma", "e4m3,e4m3,f32,f32", 1024, "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32",
        "sum(split(4, u, r), +0)"),
    Row("unseen-f64-gpu", "f64,f64,f64,f64", 256, "ampere/mma/m8n8k4.f64.f64.f64.f64", "sum(u, +0)"),
    Row("unseen-f64-split", "f64,f64,f64,f64", 768, "ieee/fma/f64", "sum(split(3, u, w, grain=16), +0)"),
    Row("unseen-f64-lanes", "f64,f64,f64,f64", 200, "ieee/muladd/f64",
        "sum(lanes(u, w, 4, fold(2, 2), fold(2, 1), tail=u), +0)"),
    Row("unseen-f64-blocks-c", "f64,f64,f64,f64", 900, "ieee/fma/f64", "w(exact(sum(promote(256, u, w), +0), c))"),
    Row("unseen-f64-alpha", "f64,f64,f64,f64", 384, "ieee/fma/f64",
        "w(exact(w(product(c, number(0xbff0000000000000, f64))), "
        "product(number(0x4008000000000000, f64), sum(u, +0))))"),
    Row("unseen-f32-avx-lanes", "f32,f32,f32,f32", 768, FMA,
        "sum(lanes(u, r, 16, fold(2, 8), fold(2, 4), fold(2, 2), fold(2, 1)), +0)"),
    Row("unseen-f32-blocks", "f32,f32,f32,f32", 1152, FMA, "sum(promote(384, u, r), c)"),
    Row("unseen-f32-splitk", "f32,f32,f32,f32", 4096, FMA, "sum(split(8, u, r, grain=8), +0)"),
    Row("unseen-f32-simt-bias", "f32,f32,f32,f32", 784, FMA, "r(relu(exact(sum(u, +0), c)))", bias="row"),
    Row("unseen-f32-in-f64", "f32,f32,f32,f32", 300, "ieee/fma/f64.f32.f32.f64", "r(sum(u, +0))"),
    Row("unseen-f32-pairwise", "f32,f32,f32,f32", 512, MULADD, "sum(halve(16, u, r), +0)"),
    Row("unseen-tf32-split", "f32,f32,f32,f32", 2048, "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
        "sum(split(4, u, r, grain=32), +0)", "tf32, nearest_even"),
    Row("unseen-tf32-cut", "f32,f32,f32,f32", 1024, "hopper/mma/m16n8k8.f32.tf32.tf32.f32",
        "r(exact(sum(u, +0), c))", "tf32, toward_zero"),
    Row("unseen-bf16-cut", "f32,f32,f32,f32", 256, f"{AMPERE}.{B16}", "sum(u, c)", "bf16, toward_zero"),
    Row("unseen-f32-as-f16", "f32,f32,f32,f32", 640, f"{HOPPER}.{F16}",
        f"r(product({number(0.25)}, sum(split(2, u, r), +0)))", "f16, nearest_even"),
    Row("unseen-bf16-f16-out", "f32,f32,f16,f16", 384, f"{BLACKWELL}.{B16}", "h(sum(u, +0))", "bf16, nearest_even"),
    Row("unseen-attention", "bf16,bf16,bf16,bf16", 192, f"{HOPPER}.{B16}",
        f"s(r(product({number(192 ** -0.5)}, sum(u, +0))))"),
    Row("unseen-attention-f32", "f16,f16,f32,f32", 160, f"{AMPERE}.{F16}",
        f"r(product({number(160 ** -0.5)}, sum(u, +0)))"),
    Row("unseen-stored-scaled", "f16,f16,f16,f16", 512, f"{AMPERE}.{F16}",
        f"h(product({number(0.3)}, h(sum(split(2, u, r, grain=64), +0))))"),
    Row("unseen-linear", "bf16,bf16,bf16,bf16", 1024, f"{AMPERE}.{B16}", "s(r(exact(sum(u, +0), c)))", bias="row"),
    Row("unseen-linear-split", "f16,f16,f16,f16", 3072, f"{HOPPER}.{F16}",
        "h(r(exact(sum(split(4, u, r, grain=64), +0), c)))", bias="row"),
    Row("unseen-linear-twice", "bf16,bf16,bf16,bf16", 768, f"{HOPPER}.{B16}",
        "s(exact(s(sum(split(3, u, r, grain=64), +0)), c))", bias="row"),
    Row("unseen-relu-first", "f16,f16,f16,f16", 320, f"{HOPPER}.{F16}", "h(relu(sum(u, +0)))"),
    Row("unseen-half-residual", "f16,f16,f16,f16", 1024, f"{HOPPER}.{F16}",
        f"h(r(exact(r(product({number(0.5)}, sum(u, +0))), c)))"),
    Row("unseen-minus", "f16,f16,f32,f32", 896, f"{AMPERE}.{F16}", f"r(exact(c, product({number(-1)}, sum(u, +0))))"),
    Row("unseen-turing", "f16,f16,f16,f16", 704, f"{TURING}.{F16}", "h(sum(split(2, u, r), +0))"),
    Row("unseen-volta-f16", "f16,f16,f16,f16", 128, "volta/mma/m8n8k4.f16.f16.f16.f16", "sum(promote(32, u, h), +0)"),
    Row("unseen-mi250", "f16,f16,f32,f32", 1280, CDNA2, "sum(split(2, u, r, grain=64), +0)"),
    Row("unseen-mi300-c", "bf16,bf16,f32,f32", 2304, "cdna3/mfma/f32_32x32x8_bf16",
        f"r(exact(product({number(0.7)}, sum(split(3, u, r, grain=64), +0)), r(product({number(0.3)}, c))))"),
    Row("unseen-amx", "bf16,bf16,f32,f32", 352, "x86/amx/tdpbf16ps", "sum(turns(32, u), +0)"),
    Row("unseen-bf16-workspace", "bf16,bf16,bf16,bf16", 4096, f"{HOPPER}.{B16}",
        "s(sum(split(8, s(u), r, grain=64), +0))"),
)  # fmt: skip


#: inputs of which one alone is rounded, or both to a format of no unit, and sums of fewer bits than the results
FEWER = (
    Row("fewer-a-bf16-cut", "f32,f32,f32,f32", 300, MULADD, "sum(u, +0)", "bf16, toward_zero", converted="a"),
    Row("fewer-b-f16-blocks", "f32,f32,f32,f32", 1024, FMA, "sum(promote(256, u, r), c)", "f16, nearest_even",
        converted="b"),
    Row("fewer-a-tf32-split-c", "f32,f32,f32,f32", 768, FMA, "r(exact(sum(split(3, u, r, grain=8), +0), c))",
        "tf32, nearest_away", converted="a"),
    Row("fewer-b-bf16-bf16-out", "f32,f32,f32,bf16", 512, MULADD, "s(sum(u, +0))", "bf16, nearest_even", converted="b"),
    Row("fewer-a-five-bits", "bf16,bf16,bf16,bf16", 640, f"{HOPPER}.{B16}",
        f"s(r(exact(product({number(0.75)}, sum(u, +0)), c)))", "e8m5_ieee, toward_zero", converted="a"),
    Row("fewer-b-six-bits", "f16,f16,f16,f16", 512, f"{AMPERE}.{F16}", "h(sum(split(2, u, r, grain=32), +0))",
        "e5m6_ieee, nearest_even", converted="b"),
    Row("fewer-both-nine-bits", "f32,f32,f32,f32", 400, FMA, "sum(u, +0)", "e8m9_ieee, nearest_even"),
    Row("fewer-a-f32-of-f64", "f64,f64,f64,f64", 256, "ieee/fma/f64", "sum(u, +0)", "f32, nearest_even", converted="a"),
    Row("fewer-relu", "f32,f32,f32,f32", 384, FMA, "r(relu(exact(sum(u, +0), c)))", "bf16, nearest_even", bias="row",
        converted="a"),
    Row("fewer-sums-14", "bf16,bf16,f32,f32", 300, "ieee/fma/f32.bf16.bf16.f32", "r(sum(turns(1, t(u)), +0))",
        "e8m13, toward_zero", converted=""),
    Row("fewer-sums-exact", "bf16,bf16,f32,f32", 300, "ieee/fma/f32.bf16.bf16.f32", "r(sum(promote(1, u, t), +0))",
        "e8m13, toward_zero", converted=""),
    Row("fewer-sums-unit", "f16,f16,f32,f32", 512, f"{HOPPER}.{F16}", "r(sum(turns(16, t(u)), +0))",
        "e8m16_ieee, nearest_even", converted=""),
    Row("fewer-result", "f16,f16,f32,f32", 512, f"{HOPPER}.{F16}", "r(t(sum(split(2, u, r), +0)))",
        "e8m12_ieee, toward_zero", converted=""),
)  # fmt: skip


#: runs of K that are stored in a narrower format than that in which they are added and given
STORED = (
    Row("stored-bf16-f32-loop", "f32,f32,f32,f32", 200, MULADD, "sum(split(4, s(u), r, grain=1), +0)"),
    Row("stored-f16-split-2", "f16,f16,f32,f32", 256, f"{HOPPER}.{F16}", "sum(split(2, h(u), r), +0)"),
    Row("stored-f16-promoted", "f16,f16,f32,f32", 256, f"{HOPPER}.{F16}", "sum(promote(64, h(u), r), +0)"),
    Row("stored-bf16-split-c", "bf16,bf16,f32,f32", 1024, f"{AMPERE}.{B16}",
        "r(exact(sum(split(8, s(u), r, grain=64), +0), c))"),
    Row("stored-bf16-pairs-third", "bf16,bf16,f32,f32", 768, f"{HOPPER}.{B16}",
        f"r(product({number(0.3)}, sum(split(4, s(u), r, order=pairwise), +0)))"),
    Row("stored-f16-stream-k", "f16,f16,f32,f32", 1024, f"{HOPPER}.{F16}",
        "sum(split([320, 704], h(u), r, order=backwards), +0)"),
    Row("stored-f32-of-f64", "f64,f64,f64,f64", 300, "ieee/fma/f64", "sum(split(3, r(u), w, grain=1), +0)"),
)  # fmt: skip


#: of drawn plans: formats of a and b, units, format of their sums, formats of results, and how inputs are converted
KINDS: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("f16,f16", (f"{HOPPER}.{F16}", f"{AMPERE}.{F16}", f"{TURING}.{F16}", f"{VOLTA}.{F16}", f"{BLACKWELL}.{F16}", CDNA2,
                 "cdna3/mfma/f32_16x16x16_f16"), "f32", ("f16", "f16", "f32"), ("",)),
    ("bf16,bf16", (f"{HOPPER}.{B16}", f"{AMPERE}.{B16}", f"{BLACKWELL}.{B16}", "cdna3/mfma/f32_32x32x8_bf16",
                   "hopper/wgmma/m64n8k16.f32.bf16.bf16"), "f32", ("bf16", "bf16", "f32"), ("",)),
    ("e4m3,e4m3", (WGMMA, ADA, "blackwell/mma/m16n8k32.f32.e4m3.e4m3.f32"), "f32", ("bf16", "f16", "f32"), ("",)),
    ("e5m2,e4m3", ("hopper/wgmma/m64n8k32.f32.e5m2.e4m3", "ada-lovelace/mma/m16n8k32.f32.e5m2.e4m3.f32"), "f32",
     ("bf16", "f32"), ("",)),
    ("f32,f32", (FMA, MULADD), "f32", ("f32",), ("",)),
    ("f32,f32", ("ampere/mma/m16n8k8.f32.tf32.tf32.f32", "hopper/mma/m16n8k8.f32.tf32.tf32.f32"), "f32", ("f32",),
     ("tf32, nearest_even", "tf32, nearest_away", "tf32, toward_zero")),
    ("f32,f32", (f"{AMPERE}.{B16}", f"{HOPPER}.{B16}"), "f32", ("f32", "bf16"),
     ("bf16, nearest_even", "bf16, toward_zero")),
    ("f64,f64", ("ieee/fma/f64", "ieee/muladd/f64", "hopper/mma/m16n8k4.f64.f64.f64.f64"), "f64", ("f64",), ("",)),
    ("f16,f16", ("turing/mma/m16n8k8.f16.f16.f16.f16", f"{HOPPER}.f16.f16.f16.f16"), "f16", ("f16",), ("",)),
)  # fmt: skip
ROUNDS = {"f16": "h", "bf16": "s", "f32": "r", "f64": "w"}


def drawn(count: int, seed: int) -> tuple[Row, ...]:
    """Plans drawn at random: kinds in turn, each with one of the ways in which kernels cut K, and one of what they do
    with the sum."""
    chance = random.Random(seed)
    return tuple(_drawn(number, seed, chance) for number in range(count))


def _drawn(number: int, seed: int, chance: random.Random) -> Row:
    factors, units, sums, ends, conversions = KINDS[number % len(KINDS)]
    unit, d, convert = chance.choice(units), chance.choice(ends), chance.choice(conversions)
    own = parse_reference(unit).length
    length = _side(chance) if own == 1 else max(1, _side(chance) // (4 * own)) * 4 * own
    r, o = ROUNDS[sums], ROUNDS[d]
    stage = _cut(chance, own, length, r)
    total, how, c, bias = f"sum({stage}, +0)", chance.choice(ENDS), chance.choice((sums, d)), ""
    once = (lambda x: x) if d == sums else (lambda x: f"{o}({x})")
    stored = o if d != sums else "h" if sums == "f32" else r
    alpha, beta = (_factor(chance, sums) for _ in range(2))
    match how:
        case "first" if c == sums:
            text = once(f"sum({stage}, c)")
        case "first" | "last":
            text = f"{o}(exact({total}, c))"
        case "last, rounded":
            text = once(f"{r}(exact({total}, c))")
        case "scaled":
            text = f"{o}(product({alpha}, {total}))"
        case "scaled, rounded":
            text = once(f"{r}(product({alpha}, {total}))")
        case "alpha, beta":
            text = once(f"{r}(exact(product({alpha}, {total}), {r}(product({beta}, c))))")
        case "stored, c":
            text = f"{o}(exact({stored}({total}), c))"
        case "bias":
            bias, text = chance.choice(("row", "column")), once(f"{r}(exact({total}, c))")
        case "relu":
            bias, text = "row", f"{o}(relu({r}(exact({total}, c))))"
        case "twice" if stored != r:
            text = f"{o}({stored}({total}))"
        case _:
            text = once(total)
    rows = min(_side(chance), WORK // length // LEAST)
    sides = max(LEAST, rows), max(LEAST, min(_side(chance), WORK // length // rows))
    return Row(f"drawn-{seed}-{number}", f"{factors},{c},{d}", length, unit, text, convert, bias, sides)


ENDS = ("plain", "plain", "first", "last", "last, rounded", "scaled", "scaled, rounded", "alpha, beta", "stored, c",
        "bias", "relu", "twice")  # fmt: skip


def _side(chance: random.Random) -> int:
    """A side, often a round one."""
    side = int(LEAST * (MOST / LEAST) ** chance.random())
    return side if chance.random() < 0.3 else side // 32 * 32


def _factor(chance: random.Random, sums: str) -> str:
    value = chance.choice((0.5, 0.125, 2.0, -1.0, 0.3, 1.7, 64**-0.5, 96**-0.5, round(chance.uniform(0.05, 3), 2)))
    return number(value) if sums != "f64" else f"number({int(np.float64(value).view(np.uint64)):#x}, f64)"


def _cut(chance: random.Random, own: int, length: int, r: str) -> str:
    """A stage: a way of cutting K."""
    ways, lanes = chance.choice((2, 3, 4, 6, 8)), chance.choice((4, 8, 16))
    run = max(own, 16) * chance.choice((4, 8, 16))
    inner = f"promote({run}, u, {r})" if run < length // 2 else "u"
    folds = "".join(f"fold(2, {lanes >> n}), " for n in range(1, lanes.bit_length()))
    every = [
        "u",
        f"split({ways}, u, {r}, grain={max(own, 16) * chance.choice((1, 2, 4))})",
        f"split({ways}, u, {r}, order=backwards)",
        f"split({chance.choice((4, 8))}, u, {r}, order=pairwise)",
        inner,
        f"split({ways % 4 + 2}, {inner}, {r}, grain={run})",
    ]
    if own == 1:
        every += [f"interleave({chance.choice((2, 4))}, u, {r}, tail=u)", f"halve(128, u, {r})",
                  f"lanes(u, {r}, {lanes}, {folds}tail=u)"]  # fmt: skip
    return chance.choice(every)


DRAWN = drawn(40, 5511)


class Product:
    """One row's product of random matrices."""

    def __init__(self, row: Row) -> None:
        self.row, self.plan = row, row.plan
        formats = row.formats.split(",")
        self.formats = ",".join(formats if self.plan.addend else [*formats[:2], formats[3]])
        self.asked = parse_signature(self.formats, row.length)

    def inputs(self, rows: int, columns: int, seed: int, length: int = 0) -> list[Matrix]:
        """Patterns of A, B and, where it is read, C."""
        rng, plan = np.random.default_rng(seed), self.plan
        length = length or self.row.length
        c = {"row": (1, columns), "column": (rows, 1), "": (rows, columns)}[self.row.bias]
        sides = [(plan.a, (rows, length)), (plan.b, (length, columns)), *([(plan.c, c)] if plan.addend else [])]
        found = [
            from_numbers(rng.standard_normal(shape).astype(type_of(fmt)), fmt, "nearest_even") for fmt, shape in sides
        ]
        if plan.addend:
            found[2] = np.ascontiguousarray(np.broadcast_to(found[2], (rows, columns)))
        return found

    def of(self, sides: list[Matrix], plan: Plan | None = None) -> Matrix:
        """The patterns that a plan gives, or the row's own: its chain, for a K that it does not take."""
        a, b, *c = sides
        try:
            return simulate(a, b, c[0] if c else None, plan or self.plan, engine="compiled")
        except ParameterError:
            if plan is not None:
                raise
            return self.of(sides, self.other())

    def right(self, plan: Plan) -> bool:
        """Whether a plan gives the true one's bits on new inputs."""
        sides = self.inputs(FRESH, FRESH, SEED + 1)
        return bool((self.of(sides) == self.of(sides, plan)).all())

    def other(self) -> Plan:
        """Another device's plan: one chain of the unit, or two, if that is the row's own; c is added at the end."""
        plan, own = self.plan, Chain(self.plan.models[0])
        same = isinstance(plan.result, Products) and plan.result.stage == own
        total = Products(in_runs(2, own, Rounding(own.d)) if same else own, Constant())
        result = Round(ExactSum((total, Element("c"))), Rounding(plan.d)) if plan.addend else (
            total if own.d == plan.d else Round(total, Rounding(plan.d)))  # fmt: skip
        return Plan(plan.a, plan.b, plan.c, result, plan.convert_a, plan.convert_b)

    def multiply(self, *sides: Any) -> Matrix:
        """The function: of arrays of numbers, to patterns."""
        formats = (self.plan.a, self.plan.b, self.plan.c)
        return self.of([from_numbers(side, fmt, "nearest_even") for side, fmt in zip(sides, formats, strict=False)])


def recorded(one: Product, seconds: float, beside: bool = False) -> dict[str, Any]:
    sides = one.inputs(*one.row.sides, SEED)
    a, b, *c = sides
    d = (one.of(sides), *([one.of(sides, one.other())] if beside else []))
    places = [(int(x), int(y)) for x, y in np.argwhere(d[0] != d[-1])[:16]]
    given: PlansOfResult = plans_of_results(Recorded(one.asked, a, b, c[0] if c else None, d), places, say, seconds)[0]
    right = any(one.right(plan) for plan in given.plans[:NAMED])
    return {
        "found": right, "wrong": bool(given.plans) and not right, "tried": given.tried,
        "plan": given.plans[0].reference if given.plans else None if given.best is None else
        f"{given.best.agree} of {given.best.looked}: {given.best.plan.reference}",
    }  # fmt: skip


def compared(one: Product, seconds: float) -> dict[str, Any]:
    return recorded(one, seconds, beside=True)


class FoundError(IncompleteError):
    """The plan of a function is known, before its rules are."""


def asked(one: Product, seconds: float) -> dict[str, Any]:
    return function(one, seconds, briefly=True)


def function(one: Product, seconds: float, briefly: bool = False) -> dict[str, Any]:
    """`briefly`: only until the plan is found; its rules are not held against new shapes then."""
    mapper: Mapper
    held = set[Plan]()

    def look(_: str) -> None:
        for plan in mapper.known if briefly else ():
            if plan not in held and one.right(plan):
                raise FoundError(plan.reference)
            held.add(plan)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "library.py")
        c = ", c" if one.plan.addend else ""
        file.write_text(
            f"from benchmarks.product_searches import Product, every\n"
            f"ONE = next(Product(row) for row in every() if row.name == {one.row.name!r})\n"
            f"def multiply(a, b{c}):\n    return ONE.multiply(a, b{c})\n"
        )
        mapper = mapper_of(f"python:{file}:multiply", one.asked, (16, 16), seconds, progress=look)
        try:
            mapper.run()
        except FoundError as found_first:
            return {"found": True, "wrong": False, "plan": [str(found_first)]}
        except MmaprobeError:
            pass
        found, rules = mapper.found, mapper.rules
        names = [plan.reference for plan in found.plans]
        right = any(one.right(plan) for plan in found.plans)
        mapper.deadline, wrong, so_far = None, 0, 0
        mapper.multiply = lambda a, b, c: one.of([a, b, *([c] if one.plan.addend else [])])
        mapper.rng = np.random.default_rng(SEED)
        for number in range(SHAPES if rules else 0):
            at, so = mapper.held(rules, mapper.random_shape(number))
            wrong += any(found.rules[rule].confirmed for rule in at[~so & (at >= 0)])
            so_far += bool(so.all())
        return {"found": right, "wrong": bool(wrong), "shapes": so_far, "checked": [found.right, found.checked],
                "plan": names[:3]}  # fmt: skip


WAYS: dict[str, Callable[[Product, float], dict[str, Any]]] = {
    "recorded": recorded, "compared": compared, "function": function, "asked": asked,
}  # fmt: skip


def every() -> tuple[Row, ...]:
    return *PLANS, *HELD, *UNSEEN, *FEWER, *STORED, *DRAWN


SETS = {"held": HELD, "unseen": UNSEEN, "fewer": FEWER, "stored": STORED, "drawn": DRAWN}


def say(text: str) -> None:
    pass


def table(rows: Sequence[Row], ways: Sequence[str], file: Path) -> Iterator[str]:
    """The lines of a table of the last answers in a file."""
    outcomes = {(line["plan"], line["way"]): line for line in read_rows(file)}
    yield from table_head("plan", "formats, K, inputs", "result", *ways)
    for row in rows:
        inputs = [row.formats, str(row.length), row.convert, f"c a {row.bias}" if row.bias else ""]
        cells = ["-" if (line := outcomes.get((row.name, way))) is None else
                 f"{'found' if line['found'] else 'wrong' if line['wrong'] else 'no'}, {line['seconds']:.0f} s"
                 for way in ways]  # fmt: skip
        what = f"{', '.join(filter(None, inputs))} | `{row.result}`, u = {row.unit}"
        yield f"| {row.name.rpartition('-')[2]} | {what} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        default=",".join(row.name for row in PLANS),
        help="or held, unseen, fewer, stored, drawn: those written last",
    )
    parser.add_argument("--ways", default="recorded,compared,function")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("-o", dest="out", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    ways = given.ways.split(",")
    rows = SETS.get(given.only, [row for row in every() if row.name in given.only.split(",")])
    for line in () if given.table is None else table(rows, ways, given.table):
        print(line)
    for way in ways if given.table is None else ():
        for row in rows:
            one, begun = Product(row), computing()
            with patch("time.monotonic", computing):
                outcomes = WAYS[way](one, given.seconds)
            line = json.dumps({"plan": row.name, "way": way, "seconds": round(computing() - begun, 1)} | {
                "named" if key == "plan" else key: value for key, value in outcomes.items()})  # fmt: skip
            keep_line(line, given.out)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
