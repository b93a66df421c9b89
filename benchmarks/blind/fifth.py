"""Units of others once more, written after the first four sets had been mended and before any of these was asked.

Instructions of this year and the last (AMX-COMPLEX, FP8 with scaling, bf16 to f32 in lanes), open cores, and loops of
libraries, with what the sets before have little of: products that are cut to odd, f32 chains behind results of eight
bits, products subtracted, trees that truncate in narrow formats, guard bits without a sticky one, K sliced among warps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

FIFTH = Set()
unit = FIFTH.unit
RTZ16 = partial(to, "f16", mode="rtz")


def scaled(x: N, places: int) -> N:
    """Times 2^places."""
    return replace(x, e=x.e + places)


def normalised(x: N) -> N:
    """A number in a format that has no subnormals: in an alignment its leading bit counts."""
    return replace(x, at=None)


# -- instructions of processors


@unit("tcmmrlfp16ps-16", M32, 16, "AMX-COMPLEX, real parts: even products in one chain, odd ones subtracted in another")
def _(a: Row, b: Row, c: N) -> N:
    even = chain(FLUSHED, ZERO, a[::2], b[::2])
    odd = chain(FLUSHED, ZERO, [negated(x) for x in a[1::2]], b[1::2])
    return FLUSHED(add((normal_only("f32", c), FLUSHED(add((even, odd))))))


@unit("reduce-ph-64", "f16,f16,f16", 64, "AVX512-FP16: 32 lanes of FMAs, then the vector's halves, all in f16")
def _(a: Row, b: Row, c: N) -> N:
    return in_halves(F16, lanes(F16, 32, a, b))


@unit("fdot-fp8-scaled-4", "e5m2,e4m3,f32,f32", 4, "Armv9.5 FDOT with FPMR.LSCALE = 9: the products' sum / 512, then c")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, scaled(add(exact_products(a, b)), -9))))


@unit(
    "fmopa-fp8-f16-8",
    "e4m3,e4m3,f16,f16",
    8,
    "SME FMOPA of FP8 to f16: two products / 16 at once, saturating",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 8, 2):
        pair = add(exact_products(a[k : k + 2], b[k : k + 2]))
        c = to("f16", add((c, scaled(pair, -4))), over="max")
    return c


@unit("xvf64gernn-3", "f64,f64,f64,f64", 3, "POWER10: the product and the accumulator are both negated, three times")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = F64(add((negated(mul(x, y)), negated(c))))
    return c


@unit("vfncvt-rod-6", "f32,f32,f64,f16", 6, "RISC-V: f64 FMAs, vfncvt.rod to f32, vfncvt to f16")
def _(a: Row, b: Row, c: N) -> N:
    return F16(ODD32(chain(F64, c, a, b)))


@unit("vfwmaccbf16-40", B32, 40, "RISC-V: eight lanes of vfwmaccbf16 from +0, then vfredosum from c")
def _(a: Row, b: Row, c: N) -> N:
    return in_turn(F32, c, lanes(F32, 8, a, b))


@unit("vfmadot-16", M16, 16, "RISC-V IME: four products in pairs in f32, with the sum so far rounded to f16")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 16, 4):
        c = F16(add((c, in_pairs(F32, exact_products(a[k : k + 4], b[k : k + 4])))))
    return c


# -- open hardware


@unit("vexriscv-fma-5", S32, 5, "VexRiscv: the product goes on with 26 bits, the last of them sticky")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = F32(add((c, precise(mul(x, y), 26, "odd"))))
    return c


@unit("tf32-accumulator-6", B32, 6, "HardFloat MulAddRecFN with 11 bits, near_maxMag: accumulators of 19 bits")
def _(a: Row, b: Row, c: N) -> N:
    return chain(partial(to, "tf32", mode="rna"), c, a, b)


@unit("redmule-fp8-12", "e4m3,e4m3,e4m3,e4m3", 12, "RedMulE: e4m3 at the ends, f16 FMAs inside")
def _(a: Row, b: Row, c: N) -> N:
    return to("e4m3", chain(F16, c, a, b))


@unit("ventus-8", M32, 8, "Ventus: rounded f16 products, a tree in f16, then c in f32")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((c, in_pairs(F16, products(F16, a, b)))))


@unit("guard-fma-f16-5", M16, 5, "an FMA whose smaller term is cut 13 bits below the larger one, without a sticky bit")
def _(a: Row, b: Row, c: N) -> N:
    for x, y in zip(a, b, strict=True):
        c = F16(aligned([normalised(mul(x, y)), normalised(c)], 13))
    return c


@unit("sticky-f16-12", M16, 12, "three products and the sum so far cut 14 bits below the largest, with a sticky bit")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 12, 3):
        terms = [*exact_products(a[k : k + 3], b[k : k + 3]), c]
        c = F16(aligned([normalised(x) for x in terms], 14, sticky=True))
    return c


# -- accelerators


@unit("mxu-quads-64", B32, 64, "TPU: four products and the sum so far rounded once, flushed, from +0; then c")
def _(a: Row, b: Row, c: N) -> N:
    a, b = read_flushed("bf16", a), read_flushed("bf16", b)
    total = ZERO
    for k in range(0, 64, 4):
        total = FLUSHED_BEFORE(add((total, *exact_products(a[k : k + 4], b[k : k + 4]))))
    return FLUSHED_BEFORE(add((normal_only("f32", c), total)))


@unit("hifi2-8", B32, 8, "Tenstorrent, two phases: the high five bits of a, then the low three; products aligned")
def _(a: Row, b: Row, c: N) -> N:
    high = [replace(precise(x, 5, "rtz"), at=x.at) for x in a]
    low = [replace(add((x, negated(h))), at=x.at) if not x.kind else ZERO for x, h in zip(a, high, strict=True)]
    for part in (high, low):
        c = RTZ32(add((c, aligned(exact_products(part, b), 24))))
    return c


@unit(
    "gaudi-fp8-32",
    "e4m3,e4m3,bf16",
    32,
    "Gaudi: 32 products cut 20 bits below the largest, to f32, then bf16",
)
def _(a: Row, b: Row, c: N) -> N:
    return BF16(RTZ32(aligned(exact_products(a, b), 20)))


@unit("mtia-64", M32, 64, "two trees of 32 products that truncate to f32, their sum too; c to nearest")
def _(a: Row, b: Row, c: N) -> N:
    halves = [in_pairs(RTZ32, exact_products(a[k : k + 32], b[k : k + 32])) for k in (0, 32)]
    return F32(add((c, RTZ32(add(halves)))))


@unit("npu-tree-f16-16", M16, 16, "an NPU's tree of 16 exact products that truncates to f16 at every step, and with c")
def _(a: Row, b: Row, c: N) -> N:
    return RTZ16(add((c, in_pairs(RTZ16, exact_products(a, b)))))


@unit("npu-tree-bf16-8", "bf16,bf16,bf16,bf16", 8, "the same of eight products in bf16")
def _(a: Row, b: Row, c: N) -> N:
    r = partial(to, "bf16", mode="rtz")
    return r(add((c, in_pairs(r, exact_products(a, b)))))


@unit("odd-quads-16", "bf16,bf16,f32,bf16", 16, "four products to odd in f32, each sum added to odd from c; then bf16")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 16, 4):
        c = ODD32(add((c, ODD32(add(exact_products(a[k : k + 4], b[k : k + 4]))))))
    return BF16(c)


# -- loops of libraries


@unit("dwconv-9", S32, 9, "XNNPACK: nine taps in two accumulators, even ones from the bias, odd ones from a product")
def _(a: Row, b: Row, c: N) -> N:
    odd = chain(F32, F32(mul(a[1], b[1])), a[3::2], b[3::2])
    return F32(add((chain(F32, c, a[::2], b[::2]), odd)))


@unit("warp-gemv-128", "f16,f16,f16", 128, "32 threads of four neighbours in f32, a butterfly by halves, then f16")
def _(a: Row, b: Row, c: N) -> N:
    threads = [chain(F32, ZERO, a[k : k + 4], b[k : k + 4]) for k in range(0, 128, 4)]
    return F16(in_halves(F32, threads))


@unit("sliced-k-256", M32, 256, "CUTLASS: four warps take every fourth 16 products in steps of 8; then in turn")
def _(a: Row, b: Row, c: N) -> N:
    warps = [ZERO] * 4
    for k in range(0, 256, 8):
        terms = [*exact_products(a[k : k + 8], b[k : k + 8]), warps[k // 16 % 4]]
        warps[k // 16 % 4] = as_read(to("f32", aligned(terms, 24), "rtz", over="inf", zero="+"))
    return F32(add((c, in_turn(F32, warps[0], warps[1:]))))


@unit("brgemm-1024", B32, 1024, "oneDNN with AVX512-BF16: of every pair the odd product first, from c")
def _(a: Row, b: Row, c: N) -> N:
    a, b, c = read_flushed("bf16", a), read_flushed("bf16", b), normal_only("f32", c)
    for k in range(0, 1024, 2):
        c = fma(FLUSHED, a[k], b[k], fma(FLUSHED, a[k + 1], b[k + 1], c))
    return c


@unit("f64-lanes-f16-12", M16, 12, "two f64 lanes, their sum and c in f64, converted once")
def _(a: Row, b: Row, c: N) -> N:
    return F16(F64(add((c, F64(add(lanes(F64, 2, a, b)))))))
