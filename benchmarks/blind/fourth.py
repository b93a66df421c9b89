"""Units that a designer might make, written before any of them was asked: roundings to odd and up and down inside,
results in bf16 of sums in f32, products in bf16, accumulators side by side, lanes of three, strided trees, block
scales in the accumulator, sums corrected by FMA residues, results that saturate or are flushed alone, zeros skipped.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

FOURTH = Set()
unit = FOURTH.unit
BB, SUMS = "bf16,bf16,bf16,bf16", "bf16,bf16,f32,bf16"
ODD16 = partial(to, "f16", mode="odd")


# -- roundings to odd, and in directions


@unit("odd-chain-bf16-6", BB, 6, "f32 FMAs to odd from c, converted to bf16 once")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(chain(ODD32, c, a, b))


@unit("odd-blocks-8", M32, 8, "four products and the sum so far exactly, to odd; the last of two blocks to nearest")
def _(a: Row, b: Row, c: N) -> N:
    first = ODD32(add((c, *exact_products(a[:4], b[:4]))))
    return F32(add((first, *exact_products(a[4:], b[4:]))))


@unit("odd-f16-tree-4", M16, 4, "products to odd in f16, a tree in f16 to odd, c to nearest")
def _(a: Row, b: Row, c: N) -> N:
    return F16(add((c, in_pairs(ODD16, products(ODD16, a, b)))))


@unit("up-chain-7", B32, 7, "f32 FMAs rounded up")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = RUP32(add((mul(x, y), c), "rup"))
    return c


@unit("down-aligned-16", M32, 16, "16 products and c cut down 26 bits below the largest, rounded down")
def _(a: Row, b: Row, c: N) -> N:
    return RDN32(aligned([*exact_products(a, b), c], 26, "rdn"))


@unit("interval-2", S32, 2, "the first FMA rounded down, the second one up")
def _(a: Row, b: Row, c: N) -> N:
    return RUP32(add((mul(a[1], b[1]), RDN32(add((mul(a[0], b[0]), c), "rdn"))), "rup"))


# -- results in bf16 of sums in f32, and in f16


@unit("bf16-last-12", SUMS, 12, "f32 FMAs from c in f32, the result in bf16")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(chain(F32, c, a, b))


@unit("bf16-tree-8", BB, 8, "a tree of eight products in f32, c added in f32, bf16 at the end, toward zero")
def _(a: Row, b: Row, c: N) -> N:
    return to("bf16", F32(add((c, in_pairs(F32, exact_products(a, b))))), mode="rtz")


@unit("bf16-fused-32", SUMS, 32, "blocks of 16 products and the sum so far cut 25 bits below, toward zero; then bf16")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 16):
        c = as_read(RTZ32(aligned([*exact_products(a[k : k + 16], b[k : k + 16]), c], 25)))
    return BF16(c)


@unit("f16-lanes-4-16", M16, 16, "four f32 lanes, a tree of halves, c added in f32, converted to f16")
def _(a: Row, b: Row, c: N) -> N:
    return F16(F32(add((c, in_halves(F32, lanes(F32, 4, a, b))))))


@unit("f64-to-bf16-5", BB, 5, "f64 FMAs, converted to f32, then to bf16")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(F32(chain(F64, c, a, b)))


# -- long sums


@unit("long-96", M32, 96, "blocks of 32 exact products, each sum rounded, added to c one after another")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 96, 32):
        c = F32(add((c, F32(add(exact_products(a[k : k + 32], b[k : k + 32]))))))
    return c


@unit("two-accumulators-192", B32, 192, "f32 FMAs into two accumulators by halves of K, their sum, then c")
def _(a: Row, b: Row, c: N) -> N:
    low, high = chain(F32, ZERO, a[:96], b[:96]), chain(F32, ZERO, a[96:], b[96:])
    return F32(add((c, F32(add((low, high))))))


@unit("strided-tree-384", BB, 384, "lane k of 8 takes every eighth product in f32; a tree of halves; c; bf16")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(F32(add((c, in_halves(F32, lanes(F32, 8, a, b))))))


@unit("strided-16", M32, 16, "a tree that adds products 8 apart, then 4, 2 and 1, truncated; c to nearest")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, in_halves(RTZ32, exact_products(a, b)))))


@unit("lanes-3-21", B32, 21, "three interleaved lanes of FMAs, the first from c, added one after another")
def _(a: Row, b: Row, c: N) -> N:
    one = chain(F32, c, a[::3], b[::3])
    two, three = (chain(F32, ZERO, a[k::3], b[k::3]) for k in (1, 2))
    return F32(add((F32(add((one, two))), three)))


# -- products


@unit("bf16-products-16", BB, 16, "products rounded to bf16, their f32 sums in order from c, bf16 at the end")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(in_turn(F32, c, products(BF16, a, b)))


@unit("f16-products-8", M32, 8, "products rounded to f16, a tree in f32, then c")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, in_pairs(F32, products(F16, a, b)))))


@unit("residues-3", S32, 3, "products and their FMA residues; the residues are summed beside and added at the end")
def _(a: Row, b: Row, c: N) -> N:
    rest = ZERO
    for x, y in zip(a, b, strict=True):
        p = F32(mul(x, y))
        rest = F32(add((rest, F32(add((mul(x, y), negated(p)))))))
        c = F32(add((c, p)))
    return F32(add((c, rest)))


@unit("minus-pairs-4", M32, 4, "like POWER's np twice: the rounded sum of two products is subtracted")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 2):
        c = F32(add((c, negated(F32(add(exact_products(a[k : k + 2], b[k : k + 2])))))))
    return c


# -- the ends of the range


@unit("flushed-last-8", B32, 8, "f32 FMAs; the result alone is flushed, before rounding")
def _(a: Row, b: Row, c: N) -> N:
    total = chain(F32, c, a[:-1], b[:-1])
    return to("f32", add((mul(a[-1], b[-1]), total)), tiny="before")


@unit("saturating-e4m3-8", "e4m3,e4m3,f32,e4m3", 8, "an f32 chain from c, the result e4m3 with saturation")
def _(a: Row, b: Row, c: N) -> N:
    return to("e4m3", chain(F32, c, a, b), over="max")


@unit("zeros-skipped-6", M32, 6, "f32 FMAs; where a or b is zero the step is left out")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        skipped = any(not z.kind and not z.m for z in (x, y))
        c = c if skipped else fma(F32, x, y, c)
    return c


@unit("daz-f16-sums-10", "f16,f16,f16", 10, "f16 inputs read flushed, products and sums in f16 toward zero, in pairs")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f16", mode="rtz")
    a, b = ([normal_only("f16", x) for x in side] for side in (a, b))
    return in_pairs(r, products(r, a, b))
