"""Sixty units as others would have them: instructions, open hardware, accelerators and kernels of libraries.

Written before any of them was asked, from what manuals, sources and papers say such units do; where these are silent,
from what a designer might do. They are programs: nothing here knows the nodes or the families.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

FIRST = Set()
unit = FIRST.unit


# -- instructions of processors


@unit("vdpphps", M32, 2, "AVX10.2: two fused multiply-adds, odd first; results flushed, inputs not")
def _(a: Row, b: Row, c: N) -> N:
    return fma(FLUSHED, a[0], b[0], fma(FLUSHED, a[1], b[1], c))


@unit("dpps", "f32,f32,f32", 4, "SSE4.1 DPPS: products rounded, added in pairs; no addend")
def _(a: Row, b: Row, c: N) -> N:
    return in_pairs(F32, products(F32, a, b))


@unit("dppd-ftz", "f64,f64,f64", 2, "SSE4.1 DPPD with FTZ and DAZ")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f64", tiny="after")
    flushed = [[normal_only("f64", x) for x in side] for side in (a, b)]
    return r(add(products(r, *flushed)))


@unit("tmmultf32ps", S32, 16, "AMX-TF32: inputs in f32, of which the low 13 bits are not read; f32 FMAs, flushed")
def _(a: Row, b: Row, c: N) -> N:
    cut = [[precise(normal_only("f32", x), 11, "rtz") for x in side] for side in (a, b)]
    return chain(FLUSHED, normal_only("f32", c), *cut)


@unit("tdpbf8ps", "e5m2,e5m2,f32,f32", 64, "AMX-FP8: four chains from +0, added in pairs, then to c")
def _(a: Row, b: Row, c: N) -> N:
    return FLUSHED(add((c, in_pairs(FLUSHED, lanes(FLUSHED, 4, a, b)))))


@unit("vdpbf16ps-16", B32, 16, "a kernel of eight VDPBF16PS: in every pair the odd product first")
def _(a: Row, b: Row, c: N) -> N:
    a, b = ([normal_only("bf16", x) for x in side] for side in (a, b))
    c = normal_only("f32", c)
    for k in range(0, 16, 2):
        c = fma(FLUSHED, a[k], b[k], fma(FLUSHED, a[k + 1], b[k + 1], c))
    return c


@unit("vfmaddbf16", "bf16,bf16,bf16,bf16", 12, "AVX10.2 VFMADD of bf16: chain, results bf16, flushed")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "bf16", tiny="after")
    a, b = ([normal_only("bf16", x) for x in side] for side in (a, b))
    return chain(r, normal_only("bf16", c), a, b)


@unit("bfdot-ebf", B32, 2, "Arm BFDOT with EBF: both products and their sum rounded once, then added")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, F32(add(exact_products(a, b))))))


@unit("bfmmla-ebf-flushed", B32, 4, "Arm BFMMLA with EBF and FZ: two such steps")
def _(a: Row, b: Row, c: N) -> N:
    a, b = ([normal_only("bf16", x) for x in side] for side in (a, b))
    c = normal_only("f32", c)
    for k in (0, 2):
        c = FLUSHED_BEFORE(add((c, FLUSHED_BEFORE(add(exact_products(a[k : k + 2], b[k : k + 2]))))))
    return c


@unit("fmlal-10", M32, 10, "Arm FMLAL and FMLAL2: f16 products fused into f32, one after another")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F32, c, a, b)


@unit("fdot-8", M32, 8, "SME2 FDOT: the sum of two products rounded, then added; four times")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 8, 2):
        c = F32(add((c, F32(add(exact_products(a[k : k + 2], b[k : k + 2]))))))
    return c


@unit("fdot-fp8", "e5m2,e5m2,f32,f32", 4, "Armv9.5 FDOT: four products and the addend rounded once")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, *exact_products(a, b))))


@unit("fdot-fp8-f16-saturating", "e4m3,e4m3,f16,f16", 2, "Armv9.5 FDOT to f16, saturating")
def _(a: Row, b: Row, c: N) -> N:
    return to("f16", add((c, *exact_products(a, b))), over="max")


@unit("fmmla-f32", S32, 2, "Arm FMMLA: two rounded products, their rounded sum, then the addend")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, F32(add(products(F32, a, b))))))


@unit("xvbf16ger2-no-addend", "bf16,bf16,f32", 2, "POWER10 without an addend: exact sum, one rounding")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add(exact_products(a, b)))


@unit("xvf64ger-6", "f64,f64,f64,f64", 6, "POWER10 xvf64gerpp six times: FMAs")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F64, c, a, b)


@unit("dlfloat-16", "e6m9_ieee,e6m9_ieee,f32,f32", 16, "NNPA: DLFloat products in chunks of 8, a chunk at once in f32")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 8):
        c = to("f32", add((c, *exact_products(a[k : k + 8], b[k : k + 8]))), "rna")
    return c


@unit("zvfbfwma-9", B32, 9, "RISC-V vfwmaccbf16: FMAs")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F32, c, a, b)


@unit("vfwredosum-16", M32, 16, "RISC-V vfwmul, then the ordered sum from the addend")
def _(a: Row, b: Row, c: N) -> N:
    return in_turn(F32, c, products(F32, a, b))


@unit("vfredusum-16", S32, 16, "RISC-V vfmul, vfredusum by a tree of halves, the addend last; rounded down")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f32", mode="rdn")
    total = [r(mul(x, y)) for x, y in zip(a, b, strict=True)]
    while len(total) > 1:
        half = len(total) // 2
        total = [r(add(pair, "rdn")) for pair in zip(total[:half], total[half:], strict=True)]
    return r(add((total[0], c), "rdn"))


@unit("fmadd-rup-f16", M16, 5, "RISC-V Zfh, rounding mode RUP: FMAs in f16")
def _(a: Row, b: Row, c: N) -> N:
    return chain(partial(to, "f16", mode="rup"), c, a, b)


@unit("fmadd-rmm", S32, 6, "RISC-V F, rounding mode RMM: FMAs to nearest, ties away")
def _(a: Row, b: Row, c: N) -> N:
    return chain(partial(to, "f32", mode="rna"), c, a, b)


# -- open hardware


@unit("sdotp-rdn", "e5m2,e5m2,f16,f16", 6, "CVFPU SDOTP: two products and the sum so far at once, rounded down")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 6, 2):
        c = to("f16", add((c, *exact_products(a[k : k + 2], b[k : k + 2])), "rdn"), "rdn")
    return c


@unit("sdotp-f64", "f32,f32,f64,f64", 4, "CVFPU SDOTP from f32 to f64")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 2):
        c = F64(add((c, *exact_products(a[k : k + 2], b[k : k + 2]))))
    return c


@unit("hardfloat-tree-8", S32, 8, "HardFloat: even products fused with rounded odd ones, a tree, then c")
def _(a: Row, b: Row, c: N) -> N:
    pairs = [fma(F32, a[k], b[k], F32(mul(a[k + 1], b[k + 1]))) for k in range(0, 8, 2)]
    return F32(add((in_pairs(F32, pairs), c)))


@unit("gemmini-bf16", "bf16,bf16,bf16,bf16", 16, "Gemmini: a column of f32 FMAs from c in bf16, the result in bf16")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(chain(F32, c, a, b))


@unit(
    "nvdla-32", "f16,f16,f32,f32", 32, "NVDLA: 16 products cut two's complement below the largest, accumulated in f32"
)
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 16):
        part = aligned(exact_products(a[k : k + 16], b[k : k + 16]), 28, "rdn")
        c = F32(add((c, F32(part))))
    return c


@unit("nvdla-f16", M16, 16, "NVDLA in f16: products cut 20 bits below the largest, the result truncated")
def _(a: Row, b: Row, c: N) -> N:
    return to("f16", add((c, to("f32", aligned(exact_products(a, b), 20, "rtz"), "rtz"))), "rtz", zero="+")


@unit("vortex-4", M32, 4, "Vortex tensor unit: exact products, a tree in f32, then the accumulator")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, in_pairs(F32, exact_products(a, b)))))


@unit(
    "vortex-aligned-8",
    M32,
    8,
    "Vortex, the version that aligns: products and c, 26 bits and a sticky bit, one rounding",
)
def _(a: Row, b: Row, c: N) -> N:
    return F32(aligned([*exact_products(a, b), c], 26, sticky=True))


@unit(
    "online-tree-8", "bf16,bf16,f32", 8, "online align-and-add: every sum of two is cut 28 bits below, not normalised"
)
def _(a: Row, b: Row, c: N) -> N:
    terms = exact_products(a, b)
    while len(terms) > 1:
        terms = [aligned(terms[k : k + 2], 28) for k in range(0, len(terms), 2)]
    return F32(terms[0])


@unit("guard-chain-bf16", "bf16,bf16,bf16,bf16", 8, "adders with three guard bits and no sticky one")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        product = BF16(mul(x, y))
        c = BF16(aligned_adder(product, c, 11))
    return c


def aligned_adder(x: N, y: N, bits: int) -> N:
    """The smaller of two numbers is cut that many bits below the larger one's exponent."""
    plain = [N(z.m, z.e, z.neg, z.kind) for z in (x, y)]
    return aligned(plain, bits - 1)


@unit("no-specials-8", M32, 8, "a unit that reads the top exponent as any other and never makes an infinity")
def _(a: Row, b: Row, c: N) -> N:
    def plain(x: N) -> N:
        return N(-(1 << 16) if x.neg else 1 << 16, 0, x.neg) if x.kind else x

    r = partial(to, "f32", mode="rtz", over="max")
    return chain(r, plain(c), [plain(x) for x in a], [plain(x) for x in b])


# -- accelerators


@unit("tpu-256", B32, 256, "two passes of a column of 128, each flushed f32 adds from +0; the passes added to c")
def _(a: Row, b: Row, c: N) -> N:
    a, b = ([normal_only("bf16", x) for x in side] for side in (a, b))
    for k in (0, 128):
        c = FLUSHED_BEFORE(add((c, chain(FLUSHED_BEFORE, ZERO, a[k : k + 128], b[k : k + 128]))))
    return c


@unit("amp-16", M32, 16, "Graphcore: four products at once, rounded; the four sums one after another")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 16, 4):
        c = F32(add((c, F32(add(exact_products(a[k : k + 4], b[k : k + 4]))))))
    return c


@unit("away-tree-16", B32, 16, "a tree that rounds ties away, flushes, and has no -0")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f32", mode="rna", tiny="before", zero="+")
    return r(add((in_pairs(r, exact_products(a, b)), c)))


@unit("long-exact-160", M32, 160, "Groq: 160 products without loss, one rounding, then c")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, F32(add(exact_products(a, b))))))


@unit(
    "lofi-16",
    "bf16,bf16,f32,f32",
    16,
    "Tenstorrent, one phase: significands cut to 5 and 7 bits; eight products aligned",
)
def _(a: Row, b: Row, c: N) -> N:
    a = [precise(x, 5, "rtz") for x in a]
    b = [precise(x, 7, "rtz") for x in b]
    for k in (0, 8):
        c = to("f32", add((c, aligned(exact_products(a[k : k + 8], b[k : k + 8]), 24))), "rtz", tiny="before")
    return c


@unit("cube-16", M32, 16, "Ascend: a tree of 16 exact products in f32, the addend last, truncated")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f32", mode="rtz")
    return r(add((c, in_pairs(r, exact_products(a, b)))))


@unit("dpas-16", B32, 16, "Xe: at each of eight stages two products and the sum so far at once")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 16, 2):
        c = F32(add((c, *exact_products(a[k : k + 2], b[k : k + 2]))))
    return c


@unit("aie-16", B32, 16, "AIE-ML: products and sum so far cut 23 bits below the largest, flushed; blocks of 8")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 8):
        c = to("f32", aligned([*exact_products(a[k : k + 8], b[k : k + 8]), c], 23), "rtz", tiny="before")
    return c


@unit("hmx-32", M16, 32, "Hexagon: 32 products and c without loss, one rounding to f16")
def _(a: Row, b: Row, c: N) -> N:
    return F16(add((c, *exact_products(a, b))))


@unit("fma16-5", M16, 5, "Apple AMX fma16")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F16, c, a, b)


@unit("odd-then-bf16", "bf16,bf16,f32,bf16", 4, "a product and sum to odd in f32, the last conversion to bf16")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f32", mode="odd")
    return BF16(chain(r, c, a, b))


@unit("e4m3-bf16", "e4m3,e4m3,bf16,bf16", 16, "four products and the bf16 sum so far at once, four times")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 16, 4):
        c = BF16(add((c, *exact_products(a[k : k + 4], b[k : k + 4]))))
    return c


@unit("f16-wide-f64", "f16,f16,f64,f64", 4, "f16 products in f64")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F64, c, a, b)


@unit(
    "promoted-256",
    "e4m3,e4m3,f32,f32",
    256,
    "Hopper FP8 with promotion: 32 products at 13 bits, four times from +0, then f32",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 256, 128):
        part = ZERO
        for j in range(k, k + 128, 32):
            total = aligned([*exact_products(a[j : j + 32], b[j : j + 32]), part], 13)
            part = to("f32", precise(total, 14, "rtz"), "rtz", over="inf", zero="+")
        c = F32(add((c, part)))
    return c


# -- kernels of libraries


@unit("sdot-70", "f32,f32,f32", 70, "OpenBLAS sdot: four vectors of eight lanes, then the rest one by one")
def _(a: Row, b: Row, c: N) -> N:
    found = lanes(F32, 32, a[:64], b[:64])
    vector = [in_turn(F32, found[k], found[k + 8 : 32 : 8]) for k in range(8)]
    quad = [F32(add((vector[k], vector[k + 4]))) for k in range(4)]
    head = F32(add((F32(add(quad[:2])), F32(add(quad[2:])))))
    return F32(add((in_turn(F32, ZERO, products(F32, a[64:], b[64:])), head)))


@unit("dgemm-33", "f64,f64,f64,f64", 33, "BLIS: FMAs from +0, then added to c")
def _(a: Row, b: Row, c: N) -> N:
    return F64(add((c, chain(F64, ZERO, a, b))))


@unit("sgemm-600", S32, 600, "BLIS with KC = 256: each panel from +0, added to c")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 600, 256):
        c = F32(add((c, chain(F32, ZERO, a[k : k + 256], b[k : k + 256]))))
    return c


@unit("eigen-dot-23", "f32,f32,f32", 23, "Eigen's redux: two packets of eight, their tree, then the rest")
def _(a: Row, b: Row, c: N) -> N:
    p = products(F32, a, b)
    packet = [F32(add((p[k], p[k + 8]))) for k in range(8)]
    return in_turn(F32, in_halves(F32, packet), p[16:])


@unit("f16-f32acc-20", M16, 20, "XNNPACK f16-f32acc: f32 FMAs from the bias, converted at the end")
def _(a: Row, b: Row, c: N) -> N:
    return F16(chain(F32, c, a, b))


@unit("ggml-f16-64", "f16,f16,f32", 64, "ggml: four vectors of eight f32 lanes, halves, then neighbours")
def _(a: Row, b: Row, c: N) -> N:
    found = lanes(F32, 32, a, b)
    two = [F32(add((found[k], found[k + 16]))) for k in range(16)]
    one = [F32(add((two[k], two[k + 8]))) for k in range(8)]
    quad = [F32(add((one[k], one[k + 4]))) for k in range(4)]
    return in_pairs(F32, quad)


@unit("ggml-neon-32", "f16,f16,f32", 32, "ggml on Arm: f16 FMAs in two vectors of eight, reduced in f16, then f32")
def _(a: Row, b: Row, c: N) -> N:
    found = lanes(F16, 16, a, b)
    one = [F16(add((found[k], found[k + 8]))) for k in range(8)]
    quad = [F32(add((one[k], one[k + 4]))) for k in range(4)]
    return in_pairs(F32, quad)


@unit("tinyblas-1024", "f32,f32,f32", 1024, "tinyBLAS: eight lanes of FMAs, halves, halves, halves")
def _(a: Row, b: Row, c: N) -> N:
    return in_halves(F32, lanes(F32, 8, a, b))


@unit("kahan-8", "f32,f32,f32", 8, "Kahan's compensated sum of rounded products")
def _(a: Row, b: Row, c: N) -> N:
    total, lost = ZERO, ZERO
    for x in products(F32, a, b):
        y = F32(add((x, negated(lost))))
        new = F32(add((total, y)))
        lost = F32(add((F32(add((new, negated(total)))), negated(y))))
        total = new
    return total


@unit("numpy-pairwise-150", "f32,f32,f32", 150, "numpy.sum(a * b): 72 and 78 terms, each in eight lanes and a rest")
def _(a: Row, b: Row, c: N) -> N:
    def block(terms: list[N]) -> N:
        whole = len(terms) - len(terms) % 8
        eight = [in_turn(F32, terms[k], terms[k + 8 : whole : 8]) for k in range(8)]
        return in_turn(F32, in_pairs(F32, eight), terms[whole:])

    p = products(F32, a, b)
    return F32(add((block(p[:72]), block(p[72:]))))


@unit("double-accumulator-16", S32, 16, "f32 products summed in f64, rounded at the end")
def _(a: Row, b: Row, c: N) -> N:
    return F32(chain(F64, c, a, b))


@unit(
    "bf16-stores-96",
    "bf16,bf16,bf16,bf16",
    96,
    "f32 FMAs from the sum so far, which is stored in bf16 after every 32 products",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 96, 32):
        c = BF16(chain(F32, c, a[k : k + 32], b[k : k + 32]))
    return c


@unit("half2-16", "f16,f16,f32", 16, "HFMA2: two f16 lanes, converted and added in f32")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add(lanes(F16, 2, a, b)))


@unit("addmm-bf16-16", "bf16,bf16,bf16,bf16", 16, "f32 FMAs from +0, converted to bf16, then the bf16 bias added")
def _(a: Row, b: Row, c: N) -> N:
    return BF16(add((c, BF16(chain(F32, ZERO, a, b)))))


@unit("split-k-64", "f16,f16,f16,f16", 64, "split-K of two: FMAs in f32, each half stored in f16, added with c in f32")
def _(a: Row, b: Row, c: N) -> N:
    halves = [F16(chain(F32, ZERO, a[k : k + 32], b[k : k + 32])) for k in (0, 32)]
    return F16(add((F32(add(halves)), c)))
