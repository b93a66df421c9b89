"""Units of others a sixth time, written before any of them was asked.

Kinds that the sets before have little of: f32 products in three passes of bf16, blocks that are rounded before the
next one, group sums to odd in a short format, results that saturate at every step, alignment at the largest of a
group and then at the largest of the groups, accumulators of formats between the inputs' and the result's, c that
enters in the middle, and lengths that no row has.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

SIXTH = Set()
unit = SIXTH.unit
SATURATING16 = partial(to, "f16", over="max")


# -- instructions of processors


@unit("tdpfp16ps-12", M32, 12, "AMX-FP16: two chains, even and odd, results flushed, f16 subnormals read; then c")
def _(a: Row, b: Row, c: N) -> N:
    even, odd = chain(FLUSHED, ZERO, a[::2], b[::2]), chain(FLUSHED, ZERO, a[1::2], b[1::2])
    return FLUSHED(add((normal_only("f32", c), FLUSHED(add((even, odd))))))


@unit("fmopa-2way-f16-10", M32, 10, "SME FMOPA, two-way, without EBF: both products to odd, their sum to odd, c to odd")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 10, 2):
        pair = [ODD32(x) for x in exact_products(a[k : k + 2], b[k : k + 2])]
        c = F32(add((c, ODD32(add(pair)))))
    return c


@unit(
    "vfdot-rvv-20",
    "bf16,bf16,f32,f32",
    20,
    "a RISC-V vendor's dot unit: four products at once in f32, c joins the last four",
)
def _(a: Row, b: Row, c: N) -> N:
    total = ZERO
    for k in range(0, 16, 4):
        total = F32(add((total, *exact_products(a[k : k + 4], b[k : k + 4]))))
    return F32(add((c, total, *exact_products(a[16:], b[16:]))))


@unit("fp8-fma-saturating-6", "e5m2,e4m3,f16,f16", 6, "FP8 products, two at once, added to an f16 sum that saturates")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 6, 2):
        c = SATURATING16(add((c, *exact_products(a[k : k + 2], b[k : k + 2]))))
    return c


# -- accelerators


@unit("bf16-3pass-4", S32, 4, "TPU, f32 from bf16: each input is a bf16 and a bf16 of the rest; three of four products")
def _(a: Row, b: Row, c: N) -> N:
    def split(x: N) -> tuple[N, N]:
        high = BF16(x)
        rest = add((x, negated(high))) if not (x.kind or high.kind) else ZERO
        return high, BF16(rest)

    pairs = [(split(x), split(y)) for x, y in zip(a, b, strict=True)]
    total = ZERO
    for i, j in ((0, 1), (1, 0), (0, 0)):
        total = F32(add((total, *(mul(x[i], y[j]) for x, y in pairs))))
    return F32(add((c, total)))


@unit(
    "mx-rounded-blocks-32",
    "e4m3,e4m3,f32",
    32,
    "an MX unit: 16 products exactly, rounded to bf16, the two blocks added in f32",
)
def _(a: Row, b: Row, c: N) -> N:
    blocks = [BF16(add(exact_products(a[k : k + 16], b[k : k + 16]))) for k in (0, 16)]
    return F32(add(blocks))


@unit("group-odd-e4m3-16", "e4m3,e4m3,f32,bf16", 16, "groups of eight to odd in f16, added to c in f32, then bf16")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 8):
        c = F32(add((c, to("f16", add(exact_products(a[k : k + 8], b[k : k + 8])), mode="odd"))))
    return BF16(c)


@unit(
    "two-alignments-16",
    M32,
    16,
    "groups of four cut 15 bits below their largest, the groups and c 24 bits below theirs",
)
def _(a: Row, b: Row, c: N) -> N:
    groups = [aligned(exact_products(a[k : k + 4], b[k : k + 4]), 15) for k in range(0, 16, 4)]
    return RTZ32(aligned([*groups, replace(c, at=None)], 24))


@unit(
    "tf32-sums-24",
    "f16,f16,f32,f32",
    24,
    "three chains of eight products in an accumulator of 19 bits; their sum and c in f32",
)
def _(a: Row, b: Row, c: N) -> N:
    sums = [chain(partial(to, "tf32"), ZERO, a[k : k + 8], b[k : k + 8]) for k in (0, 8, 16)]
    return F32(add((c, in_turn(F32, sums[0], sums[1:]))))


@unit("c-in-the-middle-8", M32, 8, "a chain whose accumulator is loaded after half of the products have been added")
def _(a: Row, b: Row, c: N) -> N:
    first = chain(F32, ZERO, a[:4], b[:4])
    return chain(F32, F32(add((c, first))), a[4:], b[4:])


# -- loops of libraries


@unit("two-rows-18", S32, 18, "two rows of unrolled FMAs, nine each, c added to the first one's sum; then both")
def _(a: Row, b: Row, c: N) -> N:
    first, second = chain(F32, ZERO, a[:9], b[:9]), chain(F32, ZERO, a[9:], b[9:])
    return F32(add((F32(add((first, c))), second)))


@unit("bf16-gemv-48", "bf16,bf16,bf16,bf16", 48, "six lanes of f32 FMAs, added in turn from c, then bf16, upward")
def _(a: Row, b: Row, c: N) -> N:
    return to("bf16", in_turn(F32, c, lanes(F32, 6, a, b)), mode="rup")
