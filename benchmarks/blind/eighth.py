"""Units of others an eighth time, written before any of them was asked.

Kinds that the sets before lack: POWER's and Arm's outer products under the directed modes of their control registers,
AMX-FP8 whose result a VCVTNEPS2BF16 stores, exact accumulators rounded once to odd and up, inputs that share an
exponent (block floating point), and the inner loops of libraries as their sources have them: NumPy's einsum, ggml,
PyTorch, Eigen, MLAS, XNNPACK, oneDNN with a half-empty last pair, split-K behind a bf16 result. From the Power ISA 3.1
and QEMU's vsxger16, Arm's manual (FPMatMulAdd, BFDotAdd, FP8DotAddFP), Intel's ISE (TDPHF8PS, VDPBF16PS,
VCVTNEPS2BF16), the RISC-V Zvfbfmin specification, and the libraries' sources, all as remembered.
"""

from __future__ import annotations

from functools import partial

from benchmarks.blind.numbers import *
from benchmarks.blind.units import *

EIGHTH = Set()
unit = EIGHTH.unit
#: rounded down, with x - x = -0
DOWN_FLUSHED = partial(to, "f32", mode="rdn", tiny="before")


def down(terms: Row) -> N:
    """A sum as it is rounded down with Arm's FZ."""
    return DOWN_FLUSHED(add(terms, mode="rdn"))


# -- instructions of processors


@unit("xvf16ger2pp-up-6", M32, 6, "POWER10 with FPSCR.RN = up: the sum of two products and that with c both rounded up")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 2, 4):
        c = RUP32(add((c, RUP32(add(exact_products(a[k : k + 2], b[k : k + 2]))))))
    return c


@unit("bfmopa-ebf-down-14", B32, 14, "SME BFMOPA, EBF, FZ, rounded down: two products at once, the sum then added")
def _(a: Row, b: Row, c: N) -> N:
    a, b = read_flushed("bf16", a), read_flushed("bf16", b)
    for k in range(0, 14, 2):
        pair = down(exact_products(a[k : k + 2], b[k : k + 2]))
        c = down((normal_only("f32", c), pair))
    return c


@unit("fmmla-f64-rz-4", "f64,f64,f64,f64", 4, "Arm FMMLA in f64 twice, toward zero: two products, their sum, then c")
def _(a: Row, b: Row, c: N) -> N:
    cut = partial(to, "f64", mode="rtz")
    for k in (0, 2):
        c = cut(add((c, cut(add(products(cut, a[k : k + 2], b[k : k + 2]))))))
    return c


@unit(
    "fmmla-fp8-scaled-8",
    "e4m3,e5m2,f32,f32",
    8,
    "Arm FMMLA of FP8, LSCALE = 5: four products / 32 and c at once, twice",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 4):
        terms = exact_products(a[k : k + 4], b[k : k + 4])
        c = F32(add((c, *(N(x.m, x.e - 5, x.neg, x.kind) for x in terms))))
    return c


@unit("brgemm-tail-13", B32, 13, "oneDNN with VDPBF16PS: odd before even; the last pair is filled up with +0")
def _(a: Row, b: Row, c: N) -> N:
    a, b = read_flushed("bf16", [*a, ZERO]), read_flushed("bf16", [*b, ZERO])
    c = normal_only("f32", c)
    for k in range(0, 14, 2):
        c = fma(FLUSHED, a[k], b[k], fma(FLUSHED, a[k + 1], b[k + 1], c))
    return c


@unit("tdphf8ps-bf16-72", "e4m3,e4m3,bf16", 72, "AMX-FP8 with K = 72 in tiles of 64 and 8, then VCVTNEPS2BF16")
def _(a: Row, b: Row, c: N) -> N:
    total = ZERO
    for k, end in ((0, 64), (64, 72)):
        chains = lanes(FLUSHED, 4, a[k:end], b[k:end])
        total = FLUSHED(add((total, in_pairs(FLUSHED, chains))))
    return BF16(normal_only("f32", total))


@unit("vfncvtbf16-down-15", "bf16,bf16,f32,bf16", 15, "RISC-V: vfwmaccbf16 to nearest, then vfncvtbf16 with frm = RDN")
def _(a: Row, b: Row, c: N) -> N:
    return to("bf16", chain(F32, c, a, b), mode="rdn")


@unit("mul-toward-zero-1", "bf16,bf16,bf16,bf16", 1, "a bf16 multiplier and an adder, both toward zero")
def _(a: Row, b: Row, c: N) -> N:
    cut = partial(to, "bf16", mode="rtz")
    return cut(add((cut(mul(a[0], b[0])), c)))


# -- open hardware and accelerators


@unit("exsdotp-up-10", B32, 10, "CVFPU ExSdotp, rounding mode RUP: two products and the sum so far at once")
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 10, 2):
        c = RUP32(add((c, *exact_products(a[k : k + 2], b[k : k + 2]))))
    return c


@unit("quire-odd-36", "e5m2,e5m2,bf16,bf16", 36, "a Kulisch accumulator of all products and c, rounded to odd to bf16")
def _(a: Row, b: Row, c: N) -> N:
    return to("bf16", add((c, *exact_products(a, b))), mode="odd")


@unit("quire-up-100", M32, 100, "a Kulisch accumulator of 100 products, rounded up; then c, rounded up")
def _(a: Row, b: Row, c: N) -> N:
    return RUP32(add((c, RUP32(add(exact_products(a, b))))))


@unit(
    "block-float-8", B32, 8, "bf16 inputs that share an exponent, eight bits each; the integer sum of products; then c"
)
def _(a: Row, b: Row, c: N) -> N:
    def shared(side: Row) -> list[N]:
        if any(x.kind for x in side) or all(not x.m for x in side):
            return list(side)
        last = max(place(x) for x in side if x.m) - 7
        return [cut_at(x, last, "rtz") for x in side]

    return F32(add((c, F32(add(exact_products(shared(a), shared(b)))))))


@unit(
    "dsp-vector-7",
    S32,
    7,
    "an FPGA's DSP blocks in vector mode: products rounded, a tree in which c is the eighth; flushed",
)
def _(a: Row, b: Row, c: N) -> N:
    a, b = read_flushed("f32", a), read_flushed("f32", b)
    return in_pairs(FLUSHED_BEFORE, [*products(FLUSHED_BEFORE, a, b), normal_only("f32", c)])


@unit(
    "gemmini-f32-10",
    S32,
    10,
    "Gemmini with f32: columns of four FMAs from +0 (the last of two), each added in the accumulator",
)
def _(a: Row, b: Row, c: N) -> N:
    for k in range(0, 10, 4):
        c = F32(add((c, chain(F32, ZERO, a[k : k + 4], b[k : k + 4]))))
    return c


# -- loops of libraries


@unit(
    "einsum-50",
    "f32,f32,f32",
    50,
    "NumPy's einsum with AVX2: of 32 products the last vector first; then vectors; halves",
)
def _(a: Row, b: Row, c: N) -> N:
    a, b = [*a, *[ZERO] * 6], [*b, *[ZERO] * 6]
    sums = [ZERO] * 8
    for first in (24, 16, 8, 0, 32, 40, 48):
        sums = [fma(F32, a[first + k], b[first + k], sums[k]) for k in range(8)]
    pairs = in_pairs(F32, sums[:4]), in_pairs(F32, sums[4:])
    return F32(add(pairs))


@unit(
    "ggml-bf16-69", "bf16,bf16,f32", 69, "ggml with AVX512-BF16: two vectors, halves each; they and the rest in double"
)
def _(a: Row, b: Row, c: N) -> N:
    x, y = read_flushed("bf16", a[:64]), read_flushed("bf16", b[:64])
    total = ZERO
    for first in (0, 32):
        sums = []
        for k in range(first, first + 32, 2):
            sums.append(fma(FLUSHED, x[k], y[k], fma(FLUSHED, x[k + 1], y[k + 1], ZERO)))
        total = F64(add((total, in_halves(F32, sums))))
    return F32(in_turn(F64, total, products(F32, a[64:], b[64:])))


@unit(
    "torch-gemv-75",
    "bf16,bf16,bf16",
    75,
    "PyTorch's bf16 gemv: eight vectors of eight, a tree; a vector of its own; the rest",
)
def _(a: Row, b: Row, c: N) -> N:
    sums = in_halves_of_vectors(lanes(F32, 64, a[:64], b[:64]), 8)
    total = F32(add((in_halves(F32, sums), in_halves(F32, lanes(F32, 8, a[64:72], b[64:72])))))
    return BF16(chain(F32, total, a[72:], b[72:]))


def in_halves_of_vectors(terms: Row, width: int) -> list[N]:
    """Vectors added by halves of their number until one is left."""
    rest = list(terms)
    while len(rest) > width:
        half = len(rest) // 2
        rest = [F32(add(pair)) for pair in zip(rest[:half], rest[half:], strict=True)]
    return rest


@unit(
    "eigen-two-13", S32, 13, "Eigen's gebp: of eight the even and odd ones apart, their sum; the rest goes on; then c"
)
def _(a: Row, b: Row, c: N) -> N:
    even, odd = chain(F32, ZERO, a[0:8:2], b[0:8:2]), chain(F32, ZERO, a[1:8:2], b[1:8:2])
    return F32(add((c, chain(F32, F32(add((even, odd))), a[8:], b[8:]))))


@unit("mlas-300", S32, 300, "MLAS: panels of 128, 128 and 44, FMAs from +0, each added to c")
def _(a: Row, b: Row, c: N) -> N:
    for k in (0, 128, 256):
        c = F32(add((c, chain(F32, ZERO, a[k : k + 128], b[k : k + 128]))))
    return c


@unit("xnn-4x2c4-7", S32, 7, "XNNPACK's 4x2c4 for SSE: four lanes, the first from c, products rounded; 0 + 2, 1 + 3")
def _(a: Row, b: Row, c: N) -> N:
    a, b, sums = [*a, ZERO], [*b, ZERO], [c, ZERO, ZERO, ZERO]
    for first in (0, 4):
        sums = [F32(add((sums[k], F32(mul(a[first + k], b[first + k]))))) for k in range(4)]
    return in_halves(F32, sums)


@unit(
    "split-k-bf16-192",
    "bf16,bf16,f32,bf16",
    192,
    "three parts of 64 on a tensor core (16 products, 25 bits), then c, then bf16",
)
def _(a: Row, b: Row, c: N) -> N:
    parts = []
    for first in (0, 64, 128):
        total = ZERO
        for k in range(first, first + 64, 16):
            total = RTZ32(aligned([replace_place(total), *exact_products(a[k : k + 16], b[k : k + 16])], 25))
        parts.append(total)
    return BF16(F32(add((c, in_turn(F32, parts[0], parts[1:])))))


def replace_place(x: N) -> N:
    """A number of f32 as it counts in an alignment."""
    return as_read(N(x.m, x.e, x.neg, x.kind))


@unit("alpha-beta-6", S32, 6, "FMAs from +0, then alpha = 1.25 times the sum and beta = 0.5 times c, in one FMA")
def _(a: Row, b: Row, c: N) -> N:
    return F32(add((mul(N(5, -2), chain(F32, ZERO, a, b)), F32(mul(N(1, -1), c)))))
