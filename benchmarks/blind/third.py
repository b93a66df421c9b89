"""Units of kinds that neither set before had, written after both had been mended and before any of these was asked.

Sums of several precisions, other roundings at each level, results rounded twice, saturation, subnormals treated unlike
on each side, lengths of one to seven, and sums that correct their own errors, which no unit file describes.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

THIRD = Set()
unit = THIRD.unit


# -- sums of several precisions


@unit("half2-pairs-8", M32, 8, "two products by f16 multiplication and FMA, each pair added to the f32 sum")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 8, 2):
        c = F32(add((c, fma(F16, a[k + 1], b[k + 1], F16(mul(a[k], b[k]))))))
    return c


@unit("f16-quads-20", M32, 20, "chains of four f16 FMAs from +0, then a chain of f32 sums, c last")
def _(a: Row, b: Row, c: N) -> N:
    total = ZERO
    for k in range(0, 20, 4):
        total = F32(add((total, chain(F16, ZERO, a[k : k + 4], b[k : k + 4]))))
    return F32(add((total, c)))


@unit("bf16-products-9", B32, 9, "products rounded to bf16, summed in f32 from c")
def _(a: Row, b: Row, c: N) -> N:
    return in_turn(F32, c, products(BF16, a, b))


@unit("f64-lanes-14", "f32,f32,f32,f32", 14, "two lanes in f64, their sum, then c, and one conversion")
def _(a: Row, b: Row, c: N) -> N:
    return F32(F64(add((c, F64(add(lanes(F64, 2, a, b)))))))


# -- roundings of levels


@unit("tree-levels-8", B32, 8, "a tree of adders: truncated, then nearest even, then up; c to nearest even")
def _(a: Row, b: Row, c: N) -> N:
    rest = exact_products(a, b)
    for r, mode in ((RTZ32, "rtz"), (F32, "rne"), (RUP32, "rup")):
        rest = [r(add(rest[k : k + 2], mode)) for k in range(0, len(rest), 2)]
    return F32(add((rest[0], c)))


@unit("tree-widths-4", M16, 4, "products exact, pairs in f32 truncated, their sum and c in f16")
def _(a: Row, b: Row, c: N) -> N:
    p = exact_products(a, b)
    left, right = RTZ32(add(p[:2])), RTZ32(add(p[2:]))
    return F16(add((F16(add((left, right))), c)))


@unit("twice-rounded-6", "bf16,bf16,bf16,bf16", 6, "an FMA in f32, converted to bf16 after each step, both to nearest")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = BF16(fma(F32, x, y, c))
    return c


@unit("down-then-up-5", S32, 5, "FMAs rounded down from +0; c added, rounded up")
def _(a: Row, b: Row, c: N) -> N:
    total = ZERO
    for x, y in zip(a, b, strict=True):
        total = RDN32(add((mul(x, y), total), "rdn"))
    return RUP32(add((total, c)))


@unit("odd-pair-bf16", "bf16,bf16,bf16,bf16", 2, "products and their sum to odd in f32, with c to nearest in bf16")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(add((c, ODD32(add(products(ODD32, a, b))))))


# -- overflow


@unit("saturating-f16-5", M16, 5, "f16 FMAs that saturate")
def _(a: Row, b: Row, c: N) -> N:
    return chain(partial(to, "f16", over="max"), c, a, b)


@unit("saturating-e4m3-16", "e4m3,e4m3,f32,e4m3", 16, "16 exact products and c, to e4m3 with saturation")
def _(a: Row, b: Row, c: N) -> N:
    return to("e4m3", F32(add((c, *exact_products(a, b)))), over="max")


@unit("small-integers-32", "e2m3,e2m3,f32,f16", 32, "six-bit products, exact as of integers, then c, then f16")
def _(a: Row, b: Row, c: N) -> N:
    return F16(F32(add((c, F32(add(exact_products(a, b)))))))


# -- subnormals


@unit("inputs-flushed-5", S32, 5, "f32 FMAs: a and b subnormal are zero, c and results are kept")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F32, c, read_flushed("f32", a), read_flushed("f32", b))


@unit("daz-c-kept-3", S32, 3, "products and sums flushed after rounding, a and b flushed; c as it is")
def _(a: Row, b: Row, c: N) -> N:
    return in_turn(FLUSHED, c, products(FLUSHED, read_flushed("f32", a), read_flushed("f32", b)))


@unit("e5m2-flushed-12", "e5m2,e5m2,f16,f16", 12, "f16 FMAs, results flushed before rounding, inputs kept")
def _(a: Row, b: Row, c: N) -> N:
    return chain(partial(to, "f16", tiny="before"), c, a, b)


# -- the addend


@unit("c-last-f16-8", "f16,f16,f32,f16", 8, "eight products truncated 24 bits below the largest; c and f16 at once")
def _(a: Row, b: Row, c: N) -> N:
    return F16(add((c, RTZ32(aligned(exact_products(a, b), 24)))))


@unit("c-halved-4", S32, 4, "f32 FMAs from c / 2")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F32, F32(N(c.m, c.e - 1, c.neg, c.kind)), a, b)


@unit("minus-c-4", M32, 4, "two pairs, their sum, c subtracted")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((in_pairs(F32, exact_products(a, b)), negated(c))))


# -- lengths


@unit("mul-add-up-1", "bf16,bf16,f32,f32", 1, "the product and the sum rounded up, flushed before rounding")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f32", mode="rup", tiny="before")
    return r(add((r(mul(a[0], b[0])), c)))


@unit("fused-3", M32, 3, "three products and c cut 26 bits below the largest, to nearest even")
def _(a: Row, b: Row, c: N) -> N:
    return F32(aligned([*exact_products(a, b), c], 26))


@unit("twos-complement-4", B32, 4, "four products and c cut down 16 bits below the largest, truncated")
def _(a: Row, b: Row, c: N) -> N:
    return RTZ32(aligned([*exact_products(a, b), c], 16, "rdn"))


@unit("backwards-5", "f32,f32,f64,f64", 5, "f64 FMAs, the last product first, truncated")
def _(a: Row, b: Row, c: N) -> N:
    return chain(partial(to, "f64", mode="rtz"), c, a[::-1], b[::-1])


@unit("odd-tree-7", M32, 7, "a tree of seven f32 products; the last one joins as it is; c first of all")
def _(a: Row, b: Row, c: N) -> N:
    p = exact_products(a, b)
    p[0] = F32(add((c, p[0])))
    return in_pairs(F32, p)


@unit("lanes-3-24", M32, 24, "three lanes without FMA in f32, one after another, then c")
def _(a: Row, b: Row, c: N) -> N:
    p = products(F32, a, b)
    return F32(add((in_turn(F32, ZERO, [in_turn(F32, ZERO, p[k::3]) for k in range(3)]), c)))


@unit("lanes-8-bf16-40", "bf16,bf16,bf16,bf16", 40, "eight f32 lanes of FMAs, halves, c in f32, then bf16")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(F32(add((in_halves(F32, lanes(F32, 8, a, b)), c))))


@unit("muladd-flushed-300", S32, 300, "f32 multiplication and addition in order, flushed before rounding")
def _(a: Row, b: Row, c: N) -> N:
    a, b = read_flushed("f32", a), read_flushed("f32", b)
    return in_turn(FLUSHED_BEFORE, normal_only("f32", c), products(FLUSHED_BEFORE, a, b))


# -- sums that correct their errors


@unit("kahan-f16-4", M16, 4, "Kahan's sum of rounded products")
def _(a: Row, b: Row, c: N) -> N:
    lost = ZERO
    for p in products(F16, a, b):
        y = F16(add((p, negated(lost))))
        total = F16(add((c, y)))
        lost = F16(add((F16(add((total, negated(c)))), negated(y))))
        c = total
    return c


@unit("two-sum-3", S32, 3, "the error of each sum, added at the end")
def _(a: Row, b: Row, c: N) -> N:
    rest = ZERO
    for p in products(F32, a, b):
        total = F32(add((c, p)))
        rest = F32(add((rest, F32(add((c, p, negated(total)))))))
        c = total
    return F32(add((c, rest)))
