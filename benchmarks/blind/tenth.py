"""Units of others a tenth time, written before any of them was asked.

Kinds that the sets before lack: BFDOT as it was before EBF over several instructions, pairs rounded in every direction
and stored in bf16, a register in fixed point that c joins, stages of FP8 truncated before they are added, trees as
repeated blocks, chunks in DLFloat of FP8 products, bulk sums to odd, e5m2 on all sides with sums in f16, blocks of e2m1
with factors over a long K, serial split-K through f16, kernels for vectors as GPUs have them (a warp's lanes, f16
pairs), lanes to odd before bf16, K of 1 and of 1,000. The last four tempt to call exact what is not: one side whose
subnormals vanish, a sticky bit of c alone, one product of 32 cut a bit earlier, and a sum with its error beside it.
From Arm's manual (BFDOT, BFMOPA, FMMLA, FDOT with LSCALE), Intel's ISE and the Xe manuals, the RISC-V proposals for
bulk dot products, the papers on RedMulE, RaPiD, the TPU and Ascend, and the libraries' sources, all as remembered.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

TENTH = Set()
unit = TENTH.unit
ODD_FLUSHED = partial(to, "f32", mode="odd", tiny="before")
DL16 = partial(to, "e6m9_ieee", mode="rna", tiny="after")


def as_read16(x: N) -> N:
    return x if x.kind or not x.m else N(x.m, x.e, x.neg, "", max(top(x), -14))


# -- instructions of processors


@unit(
    "bfdot-odd-6", B32, 6, "Arm BFDOT without EBF, three times: products, their sum and the sum so far to odd, flushed"
)
def _(a: Row, b: Row, c: N) -> N:
    a, b = read_flushed("bf16", a), read_flushed("bf16", b)
    for k in range(0, 6, 2):
        pair = ODD_FLUSHED(add(products(ODD_FLUSHED, a[k : k + 2], b[k : k + 2])))
        c = ODD_FLUSHED(add((normal_only("f32", c), pair)))
    return c


@unit(
    "bfmopa-ebf-down-8", B32, 8, "SME BFMOPA with EBF, FPCR.RMode = RM: a pair's sum rounded down, then the sum so far"
)
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 8, 2):
        pair = RDN32(add(exact_products(a[k : k + 2], b[k : k + 2]), "rdn"))
        c = RDN32(add((c, pair), "rdn"))
    return c


@unit("fmmla-f64-up-4", "f64,f64,f64,f64", 4, "SVE FMMLA of f64, rounded up: two products, their sum, then c; twice")
def _(a: Row, b: Row, c: N) -> N:
    up = partial(to, "f64", mode="rup")
    for k in (0, 2):
        c = up(add((c, up(add(products(up, a[k : k + 2], b[k : k + 2]), "rup"))), "rup"))
    return c


@unit("fdot-lscale-12", "e5m2,e5m2,f32,f32", 12, "Armv9.5 FDOT, LSCALE = 3: four products / 8 and the sum at once")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 12, 4):
        terms = exact_products(a[k : k + 4], b[k : k + 4])
        c = F32(add((c, *(N(x.m, x.e - 3, x.neg, x.kind) for x in terms))))
    return c


@unit("tdpfp16ps-44", M32, 44, "AMX-FP16, a tile of 32 and one of 12: even and odd products from +0, both, then c")
def _(a: Row, b: Row, c: N) -> N:
    for first, last in ((0, 32), (32, 44)):
        c = FLUSHED(add((normal_only("f32", c), FLUSHED(add(lanes(FLUSHED, 2, a[first:last], b[first:last]))))))
    return c


@unit("zvfbdot-32", B32, 32, "RISC-V bulk dot product: eight products without loss to odd in f32, then the sum so far")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 32, 8):
        c = F32(add((c, ODD32(add(exact_products(a[k : k + 8], b[k : k + 8]))))))
    return c


@unit("rvv-lanes-48", B32, 48, "RISC-V vfwmaccbf16 in vectors of four, then vfredosum from c")
def _(a: Row, b: Row, c: N) -> N:
    return in_turn(F32, c, lanes(F32, 4, a, b))


@unit("odd-muladd-1", S32, 1, "the product to odd, then c to nearest")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, ODD32(mul(a[0], b[0])))))


@unit("pairs-up-bf16-12", "bf16,bf16,f32,bf16", 12, "a pair's sum up, the sum so far up, bf16 up at the end")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 12, 2):
        c = RUP32(add((c, RUP32(add(exact_products(a[k : k + 2], b[k : k + 2]), "rup"))), "rup"))
    return to("bf16", c, mode="rup")


# -- open hardware and accelerators


@unit(
    "mxu-tree4-96",
    B32,
    96,
    "a systolic array of trees: four exact products in pairs in f32, each tree to the sum so far",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 96, 4):
        c = F32(add((c, in_pairs(F32, exact_products(a[k : k + 4], b[k : k + 4])))))
    return c


@unit("register-down-24", M32, 24, "a register in fixed point with a last bit of 2^-30: products and c cut down")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add([cut_at(x, -30, "rdn") for x in (*exact_products(a, b), c)]))


@unit("dpas-bf8-32", "e5m2,e5m2,f32,f32", 32, "Xe: at each stage four products truncated to f32, then the sum so far")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 32, 4):
        c = F32(add((c, RTZ32(add(exact_products(a[k : k + 4], b[k : k + 4]))))))
    return c


@unit("redmule-e5m2-20", "e5m2,e5m2,e5m2,e5m2", 20, "RedMulE: FMAs in f16 from c, stored as e5m2")
def _(a: Row, b: Row, c: N) -> N:
    return to("e5m2", chain(F16, c, a, b))


@unit("rapid-hfp8-32", "e4m3,e5m2,e6m9_ieee,e6m9_ieee", 32, "RaPiD: chunks of 16 FMAs in DLFloat from +0, both to c")
def _(a: Row, b: Row, c: N) -> N:
    c = normal_only("e6m9_ieee", c)
    for k in (0, 16):
        c = DL16(add((c, chain(DL16, ZERO, a[k : k + 16], b[k : k + 16]))))
    return c


@unit("cube-f16-48", M16, 48, "Ascend: trees of 16 products in f32, three of them from c one after another; then f16")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 48, 16):
        c = F32(add((c, in_pairs(F32, exact_products(a[k : k + 16], b[k : k + 16])))))
    return F16(c)


@unit("tf32-plus-8", S32, 8, "f32 inputs to 16 bits; eight products and c cut 28 bits below the largest, to nearest")
def _(a: Row, b: Row, c: N) -> N:
    left, right = ([as_read(F32(precise(x, 16, "rne", -126))) for x in side] for side in (a, b))
    return F32(aligned([*exact_products(left, right), c], 28))


# -- loops of libraries


@unit("mxfp4-256", "e2m1,e2m1,f32,f32", 256, "MXFP4 on a CPU: 32 products without loss, scaled, FMAs", "ue8m0/32")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 256, 32):
        c = F32(add((c, *exact_products(a[k : k + 32], b[k : k + 32]))))
    return c


@unit("split-k-serial-96", M16, 96, "CUTLASS serial split-K: three of 32 products (8 at 24 bits), each added to f16")
def _(a: Row, b: Row, c: N) -> N:
    for first in range(0, 96, 32):
        total = ZERO
        for k in range(first, first + 32, 8):
            total = as_read(RTZ32(aligned([total, *exact_products(a[k : k + 8], b[k : k + 8])], 24), zero="+"))
        c = F16(F32(add((c, total))))
    return c


@unit("pairwise-100", "f32,f32,f32", 100, "pairwise summation of rounded products, halves down to leaves of eight")
def _(a: Row, b: Row, c: N) -> N:
    def halved(terms: Row) -> N:
        if len(terms) <= 8:
            return in_turn(F32, terms[0], terms[1:])
        half = len(terms) // 2
        return F32(add((halved(terms[:half]), halved(terms[half:]))))

    return halved(products(F32, a, b))


@unit("sve-unrolled-70", S32, 70, "SVE FMLA, eight lanes, two accumulators, a predicated rest in the first; FADDV; c")
def _(a: Row, b: Row, c: N) -> N:
    sums = [ZERO] * 16
    for k in range(64):
        sums[k % 16] = fma(F32, a[k], b[k], sums[k % 16])
    for k in range(64, 70):
        sums[k % 16] = fma(F32, a[k], b[k], sums[k % 16])
    return F32(add((c, in_pairs(F32, [F32(add(pair)) for pair in zip(sums[:8], sums[8:], strict=True)]))))


@unit(
    "warp-gemv-256", "f16,f16,f32", 256, "a warp: 32 lanes of eight products in a row, FMAs in f32; shuffles by halves"
)
def _(a: Row, b: Row, c: N) -> N:
    return in_halves(F32, [chain(F32, ZERO, a[k : k + 8], b[k : k + 8]) for k in range(0, 256, 8)])


@unit(
    "half2-gemv-128", "f16,f16,f32", 128, "eight threads: f16 pairs of 16 products in a row, in f32; shuffles by halves"
)
def _(a: Row, b: Row, c: N) -> N:
    threads = [lanes(F16, 2, a[k : k + 16], b[k : k + 16]) for k in range(0, 128, 16)]
    return in_halves(F32, [F32(add(pair)) for pair in threads])


@unit("odd-lanes-bf16-32", "bf16,bf16,bf16,bf16", 32, "four lanes to odd in f32, in pairs, c; bf16 once at the end")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(ODD32(add((c, in_pairs(ODD32, lanes(ODD32, 4, a, b))))))


@unit("bf16-chain-1024", "bf16,bf16,bf16,bf16", 1024, "FMAs in f32 from c, bf16 at the end")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(chain(F32, c, a, b))


@unit("hgemm-1000", M16, 1000, "a tensor core with f16 sums: 8 products and the sum so far at 24 bits, to nearest")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 1000, 8):
        c = as_read16(F16(aligned([c, *exact_products(a[k : k + 8], b[k : k + 8])], 24), zero="+"))
    return c


# -- what tempts to say "exact"


@unit("daz-of-a-12", M32, 12, "f32 FMAs from c; subnormals of a alone are zero")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F32, c, read_flushed("f16", a), b)


@unit("sticky-of-c-9", M32, 9, "nine products and c cut 26 bits below; what c alone loses sets a sticky bit")
def _(a: Row, b: Row, c: N) -> N:
    terms = [*exact_products(a, b), c]
    if any(x.kind for x in terms) or not any(x.m for x in terms):
        return F32(add(terms))
    last = max(place(x) for x in terms if x.m) - 26
    kept = [cut_at(x, last, "rtz") for x in terms]
    total = add(kept)
    if kept[-1].m << max(0, kept[-1].e - c.e) == c.m << max(0, c.e - kept[-1].e):
        return F32(total)
    size = abs(total.m) << (total.e - last + 1) if total.m else 0
    return F32(N(-(size | 1) if total.m < 0 else size | 1, last - 1, total.m < 0))


@unit("one-shorter-32", M32, 32, "32 products and c cut 25 bits below the largest, product 17 alone 24 bits below")
def _(a: Row, b: Row, c: N) -> N:
    terms = [*exact_products(a, b), c]
    if any(x.kind for x in terms) or not any(x.m for x in terms):
        return RTZ32(add(terms))
    first = max(place(x) for x in terms if x.m)
    return RTZ32(add([cut_at(x, first - (24 if k == 17 else 25), "rtz") for k, x in enumerate(terms)]))


@unit("compensated-f16-6", M16, 6, "f16: each sum's error, by two-sum, is added up beside it and joins at the end")
def _(a: Row, b: Row, c: N) -> N:
    beside = ZERO
    for x in products(F16, a, b):
        total = F16(add((c, x)))
        part = F16(add((total, negated(c))))
        lost = F16(add((F16(add((c, negated(F16(add((total, negated(part)))))))), F16(add((x, negated(part)))))))
        c, beside = total, F16(add((beside, lost)))
    return F16(add((c, beside)))
