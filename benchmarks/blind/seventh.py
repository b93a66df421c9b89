"""Units of others a seventh time, written before any of them was asked.

An outer product of POWER's kind that rounds to odd within, a systolic array whose partial sums are bf16 every four
products, FP8 that is promoted and stored as bf16, a GEMM in two passes of TF32 whose small parts come first, a loop of
f16 whose result is rounded up, and a sum of f64 products behind an f32 result.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

SEVENTH = Set()
unit = SEVENTH.unit


@unit("ger-odd-4", M32, 4, "two rank-two updates: both products to odd in f32, their sum to odd, then c to nearest")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 2):
        c = F32(add((c, ODD32(add([ODD32(x) for x in exact_products(a[k : k + 2], b[k : k + 2])])))))
    return c


@unit("systolic-bf16-24", "bf16,bf16,f32,f32", 24, "columns of four f32 FMAs whose sums go on as bf16; then c")
def _(a: Row, b: Row, c: N) -> N:
    total = ZERO
    for k in range(0, 24, 4):
        total = BF16(chain(F32, total, a[k : k + 4], b[k : k + 4]))
    return F32(add((c, total)))


@unit(
    "fp8-promoted-64",
    "e4m3,e4m3,bf16,bf16",
    64,
    "16 products cut 13 bits below the largest, truncated to f32, four such sums promoted one after another; then bf16",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 64, 16):
        c = F32(add((c, RTZ32(aligned(exact_products(a[k : k + 16], b[k : k + 16]), 13)))))
    return BF16(c)


@unit("tf32x3-4", S32, 4, "cutlass, 3xTF32: small times big, big times small, big times big, four products at once")
def _(a: Row, b: Row, c: N) -> N:
    def split(x: N) -> tuple[N, N]:
        big = to("tf32", x, mode="rtz")
        rest = add((x, negated(big))) if not x.kind else ZERO
        return big, to("tf32", rest, mode="rtz")

    pairs = [(split(x), split(y)) for x, y in zip(a, b, strict=True)]
    for i, j in ((1, 0), (0, 1), (0, 0)):
        c = RTZ32(add((c, *(mul(x[i], y[j]) for x, y in pairs))))
    return c


@unit("f16-up-9", M16, 9, "three lanes of f16 FMAs that round up, from +0, added in turn, then c")
def _(a: Row, b: Row, c: N) -> N:
    up = partial(to, "f16", mode="rup")
    sums = lanes(up, 3, a, b)
    total = in_turn(up, sums[0], sums[1:])
    return up(add((total, c)))


@unit("dot-in-f64-10", S32, 10, "products and sums in f64, two lanes, rounded to f32 once, c added in f32")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, F32(F64(add(lanes(F64, 2, a, b)))))))
