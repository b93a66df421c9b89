"""Units of others, written after the first set had been mended and before any of these was asked.

As in the first set they are programs in exact numbers, from what manuals, sources and papers say, and where these are
silent from what a designer might do.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

SECOND = Set()
unit = SECOND.unit


# -- instructions of processors


@unit("xvbf16ger2np", B32, 2, "POWER10: the rounded sum of two products is subtracted from the accumulator")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, negated(F32(add(exact_products(a, b)))))))


@unit("xvf32gerpn", S32, 1, "POWER10: the accumulator is subtracted from the product")
def _(a: Row, b: Row, c: N) -> N:
    return fma(F32, a[0], b[0], negated(c))


@unit("vfmaddcph-real", M16, 2, "AVX512-FP16 VFMADDCPH, the real part: one FMA, then one with the product negated")
def _(a: Row, b: Row, c: N) -> N:
    return fma(F16, negated(a[1]), b[1], fma(F16, a[0], b[0], c))


@unit("dlfloat-fma-8", "e6m9_ieee,e6m9_ieee,e6m9_ieee,e6m9_ieee", 8, "DLFloat FMAs, to nearest away, no subnormals")
def _(a: Row, b: Row, c: N) -> N:
    a, b = ([normal_only("e6m9_ieee", x) for x in side] for side in (a, b))
    return chain(partial(to, "e6m9_ieee", mode="rna", tiny="after"), normal_only("e6m9_ieee", c), a, b)


@unit("bfmlalb-bfmlalt-8", B32, 8, "SVE BFMLALB over all vectors, then BFMLALT: even products, then odd ones")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F32, chain(F32, c, a[::2], b[::2]), a[1::2], b[1::2])


@unit("fmopa-f16-7", M16, 7, "SME FMOPA without widening, FZ16: FMAs in f16")
def _(a: Row, b: Row, c: N) -> N:
    a, b = ([normal_only("f16", x) for x in side] for side in (a, b))
    return chain(partial(to, "f16", tiny="before"), normal_only("f16", c), a, b)


@unit("vfwredosum-f64-12", "f32,f32,f64,f64", 12, "RISC-V vfmul in f32, then vfwredosum in f64")
def _(a: Row, b: Row, c: N) -> N:
    return in_turn(F64, c, products(F32, a, b))


@unit("vfmacc-rtz-10", M16, 10, "RISC-V Zvfh vfmacc, rounding mode RTZ")
def _(a: Row, b: Row, c: N) -> N:
    return chain(partial(to, "f16", mode="rtz"), c, a, b)


@unit("relaxed-madd-4", S32, 4, "WebAssembly relaxed madd where it is not fused")
def _(a: Row, b: Row, c: N) -> N:
    return in_turn(F32, c, products(F32, a, b))


@unit("mad-1", M16, 1, "a GPU's mad of f16, not fused")
def _(a: Row, b: Row, c: N) -> N:
    return F16(add((c, F16(mul(a[0], b[0])))))


@unit("soft-f16-fma-5", M16, 5, "FMAs of f16 in software: computed in f32, converted to f16 after each")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = F16(fma(F32, x, y, c))
    return c


# -- open hardware


@unit("exsdotp-rmm-4", M32, 4, "CVFPU ExSdotp, rounding mode RMM: two products and the sum so far at once")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 2):
        c = to("f32", add((c, *exact_products(a[k : k + 2], b[k : k + 2]))), "rna")
    return c


@unit("hardfloat-tree-max", M16, 4, "HardFloat MulRecFN and AddRecFN, round_max: a tree of four, then c")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f16", mode="rup")
    p = [r(mul(x, y)) for x, y in zip(a, b, strict=True)]
    left, right = r(add(p[:2], "rup")), r(add(p[2:], "rup"))
    return r(add((r(add((left, right), "rup")), c), "rup"))


@unit("hardfloat-chain-min", S32, 7, "HardFloat MulAddRecFN, round_min, one after another")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = to("f32", add((mul(x, y), c), "rdn"), "rdn")
    return c


@unit("hardfloat-tree-odd", B32, 8, "HardFloat, round_odd in a tree of products, the addend last to nearest even")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, in_pairs(partial(to, "f32", mode="odd"), exact_products(a, b)))))


@unit("vpu-odd-bf16", "bf16,bf16,bf16,bf16", 8, "a tree to odd in f32 with the addend, converted to bf16 once")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f32", mode="odd")
    return BF16(r(add((c, in_pairs(r, exact_products(a, b))))))


@unit("column-bf16-12", "bf16,bf16,bf16,bf16", 12, "tiles of four in f32 from +0; tile sums stored and added in bf16")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 12, 4):
        c = BF16(add((c, BF16(chain(F32, ZERO, a[k : k + 4], b[k : k + 4])))))
    return c


@unit("fixed-16", M32, 16, "an accumulator that is aligned but normalised at the end alone; four products at a time")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 16, 4):
        c = aligned([*exact_products(a[k : k + 4], b[k : k + 4]), c], 30, "rdn")
    return F32(c)


# -- accelerators


@unit("hifi4-bf16", "bf16,bf16,bf16,bf16", 16, "Tenstorrent, all phases, destination in bf16: eight products aligned")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 8):
        c = BF16(add((c, to("f32", aligned(exact_products(a[k : k + 8], b[k : k + 8]), 24), "rtz"))))
    return c


@unit("cube-910b-32", B32, 32, "Ascend: 16 products and the sum so far cut 27 bits below the largest, to nearest even")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 16):
        c = as_read(F32(aligned([*exact_products(a[k : k + 16], b[k : k + 16]), c], 27)))
    return c


@unit("simdgroup-8", M32, 8, "Apple simdgroup_matrix: f32 FMAs, flushed")
def _(a: Row, b: Row, c: N) -> N:
    return chain(FLUSHED_BEFORE, normal_only("f32", c), a, b)


@unit("mali-dot4", M16, 4, "Mali: four products in f32 in pairs, then c, truncated to f16")
def _(a: Row, b: Row, c: N) -> N:
    return to("f16", F32(add((c, in_pairs(F32, exact_products(a, b))))), "rtz")


@unit("adreno-mad-6", M16, 6, "Adreno f16 mad: truncated after each of two steps, flushed")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f16", mode="rtz", tiny="before")
    a, b = ([normal_only("f16", x) for x in side] for side in (a, b))
    return in_turn(r, normal_only("f16", c), products(r, a, b))


@unit("dpas-bf16-16", "bf16,bf16,bf16,bf16", 16, "Xe with bf16 on both sides: stages of two products in f32")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 16, 2):
        c = F32(add((c, *exact_products(a[k : k + 2], b[k : k + 2]))))
    return BF16(c)


@unit("fp8-tree-rtz", "e5m2,e5m2,f16,f16", 16, "a tree of e5m2 products, truncated to f16 at every node")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "f16", mode="rtz")
    return r(add((c, in_pairs(r, exact_products(a, b)))))


@unit("wgmma-bf16out-128", "e4m3,e4m3,bf16", 128, "Hopper FP8 without promotion: 32 products at 13 bits; then bf16")
def _(a: Row, b: Row, c: N) -> N:
    part = ZERO
    for k in range(0, 128, 32):
        total = aligned([*exact_products(a[k : k + 32], b[k : k + 32]), part], 13)
        part = to("f32", precise(total, 14, "rtz"), "rtz", over="inf", zero="+")
    return BF16(part)


@unit("tf32-compute-8", S32, 8, "cuBLAS in TF32: f32 inputs to 11 bits, ties away; products and c cut 24 bits below")
def _(a: Row, b: Row, c: N) -> N:
    a, b = ([as_read(to("tf32", x, "rna")) for x in side] for side in (a, b))
    return to("f32", aligned([*exact_products(a, b), c], 24), "rtz", over="inf", zero="+")


# -- kernels of libraries


@unit("bf16x1-8", S32, 8, "oneMKL float_to_bf16: f32 inputs to bf16, f32 FMAs")
def _(a: Row, b: Row, c: N) -> N:
    return chain(F32, c, [BF16(x) for x in a], [BF16(x) for x in b])


@unit("bf16x3-4", S32, 4, "oneMKL float_to_bf16x2: both parts of each input, the small products first")
def _(a: Row, b: Row, c: N) -> N:
    high = [[BF16(x) for x in side] for side in (a, b)]
    low = [
        [BF16(add((x, negated(h)))) for x, h in zip(side, top, strict=True)]
        for side, top in zip((a, b), high, strict=True)
    ]
    c = chain(F32, c, low[0], high[1])
    c = chain(F32, c, high[0], low[1])
    return chain(F32, c, *high)


@unit("amx-gemm-100", B32, 100, "oneDNN with AMX tiles of 32: even and odd products of each tile, then c")
def _(a: Row, b: Row, c: N) -> N:
    a, b = ([normal_only("bf16", x) for x in side] for side in (a, b))
    c = normal_only("f32", c)
    for k in range(0, 100, 32):
        c = FLUSHED(add((c, FLUSHED(add(lanes(FLUSHED, 2, a[k : k + 32], b[k : k + 32]))))))
    return c


@unit("openblas-1000", S32, 1000, "OpenBLAS, panels of 384, 308 and 308: FMAs from +0, each panel added to c")
def _(a: Row, b: Row, c: N) -> N:
    for start, end in ((0, 384), (384, 692), (692, 1000)):
        c = F32(add((c, chain(F32, ZERO, a[start:end], b[start:end]))))
    return c


@unit("numpy-pairwise-256", "f32,f32,f32", 256, "numpy.sum(a * b): two blocks of 128, each in eight lanes")
def _(a: Row, b: Row, c: N) -> N:
    p = products(F32, a, b)
    return F32(
        add([in_pairs(F32, [in_turn(F32, p[s + k], p[s + k + 8 : s + 128 : 8]) for k in range(8)]) for s in (0, 128)])
    )


@unit("ggml-f16-100", "f16,f16,f32", 100, "ggml: 96 products in four vectors of eight f32 lanes, the rest in double")
def _(a: Row, b: Row, c: N) -> N:
    found = lanes(F32, 32, a[:96], b[:96])
    vector = in_halves(F32, in_halves_once(in_halves_once(found)))
    return F32(in_turn(F64, vector, exact_products(a[96:], b[96:])))


def in_halves_once(terms: list[N]) -> list[N]:
    half = len(terms) // 2
    return [F32(add(pair)) for pair in zip(terms[:half], terms[half:], strict=True)]


@unit("eigen-gebp-7", S32, 7, "Eigen's product: FMAs from +0, then c")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, chain(F32, ZERO, a, b))))


@unit("dsdot-33", "f32,f32,f32", 33, "OpenBLAS dsdot: four lanes in f64, the rest one by one, rounded once")
def _(a: Row, b: Row, c: N) -> N:
    total = in_pairs(F64, lanes(F64, 4, a[:32], b[:32]))
    return F32(fma(F64, a[32], b[32], total))


@unit("dgemm-lanes-100", "f64,f64,f64,f64", 100, "a kernel with four sums over k, then their tree, then c")
def _(a: Row, b: Row, c: N) -> N:
    return F64(add((c, in_pairs(F64, lanes(F64, 4, a, b)))))


@unit("rows-33", S32, 33, "a convolution: three rows of eleven, each from +0, added to the bias one after another")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 11, 22):
        c = F32(add((c, chain(F32, ZERO, a[k : k + 11], b[k : k + 11]))))
    return c


@unit("tree-with-c-3", B32, 3, "two adders side by side: the first two products, the third and c; then both")
def _(a: Row, b: Row, c: N) -> N:
    p = exact_products(a, b)
    return F32(add((F32(add(p[:2])), F32(add((p[2], c))))))


@unit("dot2-3", "f32,f32,f32", 3, "Dot2 of Ogita, Rump and Oishi: as if in twice the precision")
def _(a: Row, b: Row, c: N) -> N:
    total, lost = ZERO, ZERO
    for x, y in zip(a, b, strict=True):
        product = F32(mul(x, y))
        error = F32(add((mul(x, y), negated(product))))
        new = F32(add((total, product)))
        rest = F32(add((total, product, negated(new))))
        lost = F32(add((lost, F32(add((error, rest))))))
        total = new
    return F32(add((total, lost)))
