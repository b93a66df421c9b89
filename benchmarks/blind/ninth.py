"""Units of others a ninth time, written before any of them was asked.

Kinds that the sets before lack: products subtracted toward zero, POWER's nn, f16 pairs under Arm's FPCR.AH, VDPPHPS in
two accumulators, K that fills no tile, three-term adders, an accumulator of fixed point with a least bit, saturating
f16 results of scaled fnuz products, a systolic column whose passes end in bf16, operands and results of unlike formats
(bf16 to f16, f16 to bf16, f16 to e5m2), f64 sums of bf16, scale factors, loops of OpenBLAS, XLA, ruy and stream-K. The
last three tempt to call exact what is not: a zero's sign that the last step alone loses, rounding up that loses what is
below half the smallest subnormal, a carry bit that some terms lack. From Arm's manual (FMLSLB, FMMLA of
FEAT_F16F32MM, FPCR.AH), the Power ISA 3.1 (xvbf16ger2nn), the RISC-V V extension (vfwnmacc), Intel's ISE (VDPPHPS,
TDPBHF8PS), CVFPU's and FloPoCo's papers, the OCP MX specification, and the libraries' sources, all as remembered.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

NINTH = Set()
unit = NINTH.unit
FLUSHED16 = partial(to, "f16", tiny="after")

# -- instructions of processors


@unit("fmlslb-rz-8", M32, 8, "SVE FMLSLB, then FMLSLT, toward zero: even products subtracted, then odd ones")
def _(a: Row, b: Row, c: N) -> N:
    return chain(RTZ32, c, [negated(x) for x in (*a[::2], *a[1::2])], [*b[::2], *b[1::2]])


@unit("fmmla-f16-ah-8", M32, 8, "Arm FMMLA of f16, FPCR.AH with FZ and FIZ: a pair's sum, then c; tiny after rounding")
def _(a: Row, b: Row, c: N) -> N:
    a, b = read_flushed("f16", a), read_flushed("f16", b)
    for k in range(0, 8, 2):
        c = FLUSHED(add((normal_only("f32", c), FLUSHED(add(exact_products(a[k : k + 2], b[k : k + 2]))))))
    return c


@unit(
    "xvbf16ger2nn-rtz-6", B32, 6, "POWER10 with RN = zero: a pair's sum and the accumulator both negated, three times"
)
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 2, 4):
        c = RTZ32(add((negated(c), negated(RTZ32(add(exact_products(a[k : k + 2], b[k : k + 2])))))))
    return c


@unit("vfwnmacc-down-4", "f32,f32,f64,f64", 4, "RISC-V vfwnmacc, frm = RDN: -(a * b) - c, four times")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = to("f64", add((negated(mul(x, y)), negated(c)), "rdn"), mode="rdn")
    return c


@unit("vdpphps-two-14", M32, 14, "seven VDPPHPS in two accumulators, even ones from c, odd ones from +0; then both")
def _(a: Row, b: Row, c: N) -> N:
    sums = [normal_only("f32", c), ZERO]
    for k in range(0, 14, 2):
        at = k // 2 % 2
        sums[at] = fma(FLUSHED, a[k], b[k], fma(FLUSHED, a[k + 1], b[k + 1], sums[at]))
    return FLUSHED(add(sums))


@unit("tdpbhf8ps-37", "e5m2,e4m3,f32,f32", 37, "AMX-FP8 with K = 37, filled up with +0: four chains, in pairs, then c")
def _(a: Row, b: Row, c: N) -> N:
    chains = lanes(FLUSHED, 4, [*a, *[ZERO] * 3], [*b, *[ZERO] * 3])
    return FLUSHED(add((normal_only("f32", c), in_pairs(FLUSHED, chains))))


@unit("rdna-dot2-24", M32, 24, "RDNA V_DOT2_F32_F16: f16 read flushed, two FMAs, results flushed")
def _(a: Row, b: Row, c: N) -> N:
    return chain(FLUSHED_BEFORE, normal_only("f32", c), read_flushed("f16", a), read_flushed("f16", b))


# -- open hardware and accelerators


@unit("exvsum-12", "e5m2,e5m2,f16,f16", 12, "CVFPU: SDOTP in two lanes from +0, then VSUM: both lanes and c at once")
def _(a: Row, b: Row, c: N) -> N:
    sums = [ZERO, ZERO]
    for k in range(0, 12, 2):
        sums[k // 2 % 2] = F16(add((sums[k // 2 % 2], *exact_products(a[k : k + 2], b[k : k + 2]))))
    return F16(add((c, *sums)))


@unit("cvfpu-f16-bf16-3", "f16,f16,bf16,bf16", 3, "CVFPU's multi-format FMA: f16 products, bf16 sums")
def _(a: Row, b: Row, c: N) -> N:
    return chain(BF16, c, a, b)


@unit("flopoco-lsb-16", M32, 16, "FloPoCo: products truncated at 2^-40 into fixed point, one rounding, then c")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, F32(add([cut_at(x, -40, "rtz") for x in exact_products(a, b)])))))


@unit(
    "amp-f8-scaled-16", "e4m3fnuz,e4m3fnuz,f16,f16", 16, "Graphcore: eight products / 8 and the sum at once; saturates"
)
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 8):
        terms = exact_products(a[k : k + 8], b[k : k + 8])
        c = to("f16", add((c, *(N(x.m, x.e - 3, x.neg, x.kind) for x in terms))), over="max")
    return c


@unit(
    "mxu-column-640", "bf16,bf16,f32,bf16", 640, "TPU: columns of 128 from +0, added to c in turn; then bf16; flushed"
)
def _(a: Row, b: Row, c: N) -> N:
    a, b, c = read_flushed("bf16", a), read_flushed("bf16", b), normal_only("f32", c)
    for k in range(0, 640, 128):
        c = FLUSHED_BEFORE(add((c, chain(FLUSHED_BEFORE, ZERO, a[k : k + 128], b[k : k + 128]))))
    return to("bf16", c, tiny="before")


@unit(
    "bf16-to-f16-10",
    "bf16,bf16,f16,f16",
    10,
    "an NPU: a chain of bf16 products in f32, c of f16, one conversion to f16",
)
def _(a: Row, b: Row, c: N) -> N:
    return F16(F32(add((c, chain(F32, ZERO, a, b)))))


@unit("e5m2-saturated-9", "f16,f16,f32,e5m2", 9, "f32 FMAs from c, stored as e5m2 with saturation")
def _(a: Row, b: Row, c: N) -> N:
    return to("e5m2", chain(F32, c, a, b), over="max")


@unit("bf16-f64-12", "bf16,bf16,f64", 12, "a reference kernel: bf16 products in two f64 lanes, halves of K")
def _(a: Row, b: Row, c: N) -> N:
    return F64(add((chain(F64, ZERO, a[:6], b[:6]), chain(F64, ZERO, a[6:], b[6:]))))


@unit(
    "mx-scaled-64",
    "e4m3,e5m2,f32,bf16",
    64,
    "OCP MX: 32 scaled products exactly to f32, both blocks to c; bf16",
    "ue8m0/32",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 32):
        c = F32(add((c, F32(add(exact_products(a[k : k + 32], b[k : k + 32]))))))
    return BF16(c)


# -- loops of libraries


@unit("openblas-sdot-37", "f32,f32,f32", 37, "OpenBLAS's sdot with NEON: 32 products in four vectors of four; the rest")
def _(a: Row, b: Row, c: N) -> N:
    sums = lanes(F32, 16, a[:32], b[:32])
    vectors = [sums[k : k + 4] for k in range(0, 16, 4)]
    pairs = [[F32(add(pair)) for pair in zip(*vectors[k : k + 2], strict=True)] for k in (0, 2)]
    total = in_pairs(F32, [F32(add(pair)) for pair in zip(*pairs, strict=True)])
    return chain(F32, total, a[32:], b[32:])


@unit("xla-gemv-200", S32, 200, "XLA on CPUs: products rounded, eight lanes, neighbours added; then c")
def _(a: Row, b: Row, c: N) -> N:
    sums = [in_turn(F32, ZERO, products(F32, a[k::8], b[k::8])) for k in range(8)]
    return F32(add((c, in_pairs(F32, sums))))


@unit("ruy-127", S32, 127, "ruy: FMAs from +0 over a K of 127, then the bias")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, chain(F32, ZERO, a, b))))


@unit("stream-k-1000", M32, 1000, "stream-K on a tensor core (8 products, 24 bits): 512 and 488 products, both, then c")
def _(a: Row, b: Row, c: N) -> N:
    parts = []
    for first, last in ((0, 512), (512, 1000)):
        total = ZERO
        for k in range(first, last, 8):
            total = as_read(RTZ32(aligned([total, *exact_products(a[k : k + 8], b[k : k + 8])], 24), zero="+"))
        parts.append(total)
    return F32(add((c, F32(add(parts)))))


@unit(
    "promoted-half2-512", M32, 512, "HFMA2: two f16 lanes of eight products each, both in f32, added to the sum; then c"
)
def _(a: Row, b: Row, c: N) -> N:
    total = ZERO
    for k in range(0, 512, 16):
        total = F32(add((total, F32(add(lanes(F16, 2, a[k : k + 16], b[k : k + 16]))))))
    return F32(add((c, total)))


# -- what tempts to say "exact"


@unit("last-zero-plus-6", B32, 6, "f32 FMAs from c; the last step alone turns -0 into +0")
def _(a: Row, b: Row, c: N) -> N:
    return to("f32", add((mul(a[5], b[5]), chain(F32, c, a[:5], b[:5]))), zero="+")


@unit("up-but-tiny-5", M16, 5, "f16 FMAs rounded up; what is below half the smallest subnormal becomes zero")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        total = add((mul(x, y), c), "rup")
        lost = total.m and not total.kind and top(total) < -25
        c = N(0, neg=total.neg) if lost else to("f16", total, mode="rup")
    return c


@unit(
    "carry-of-some-12", M32, 12, "twelve products and c cut 24 bits below; the adder of the last four lacks a carry bit"
)
def _(a: Row, b: Row, c: N) -> N:
    terms = [*exact_products(a, b), c]
    if any(x.kind for x in terms) or not any(x.m for x in terms):
        return RTZ32(add(terms))
    first = max(place(x) for x in terms if x.m)
    kept = [cut_at(x, first - 24, "rtz") for x in terms]
    last = add(kept[8:12])
    # products are below 4 in units of the largest: four of them below 16, of which the adder holds -8 to 8
    units = last.m << (last.e - first + 24) if last.m else 0
    held = (units + (1 << 27)) % (1 << 28) - (1 << 27)
    return RTZ32(add((*kept[:8], N(held, first - 24, held < 0 or (not held and last.neg)), kept[12])))
