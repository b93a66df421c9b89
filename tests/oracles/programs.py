"""Units as programs in exact numbers, with which nothing of smtmodel computes: what others build, and odd ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mmaprobe.smtmodel.evaluate.batch import Patterns
from tests.oracles.exact_numbers import ZERO, N, add, mul, negated, pattern, read, to

Row = Sequence[N]
Compute = Callable[[Row, Row, N], N]
Round = Callable[[N], N]
F64, F32, F16, BF16 = (partial(to, name) for name in ("f64", "f32", "f16", "bf16"))
M16, S32 = "f16,f16,f16,f16", "f32,f32,f32,f32"


@dataclass(frozen=True)
class Program:
    """A unit as a program. `formats`: of a, b, c and d."""

    formats: str
    length: int
    compute: Compute

    def result(self, a: Sequence[int], b: Sequence[int], c: int) -> int:
        """The result's pattern."""
        names = self.formats.split(",")
        left, right = ([read(name, x) for x in side] for name, side in zip(names[:2], (a, b), strict=True))
        return pattern(names[3], self.compute(left, right, read(names[2], c)))

    def answers(self, rows: Patterns) -> Patterns:
        """The results of rows of a, b and c."""
        n = self.length
        found = [self.result(row[:n], row[n : 2 * n], row[2 * n]) for row in rows.tolist()]
        return np.array(found, dtype=np.uint64)


PROGRAMS: dict[str, Program] = {}


def program(name: str, formats: str, length: int) -> Callable[[Compute], Compute]:
    """Adds a program."""

    def added(compute: Compute) -> Compute:
        PROGRAMS[name] = Program(formats, length, compute)
        return compute

    return added


def fused(r: Round, start: N, a: Row, b: Row) -> N:
    """Fused multiply-adds one after another."""
    for x, y in zip(a, b, strict=True):
        start = r(add((mul(x, y), start)))
    return start


def products(a: Row, b: Row) -> list[N]:
    return [mul(x, y) for x, y in zip(a, b, strict=True)]


def in_pairs(r: Round, terms: Row) -> N:
    """Neighbours first; one that is left over goes on as it is."""
    rest = list(terms)
    while len(rest) > 1:
        rest = [r(add(rest[k : k + 2])) if k + 1 < len(rest) else rest[k] for k in range(0, len(rest), 2)]
    return rest[0]


def scaled(x: N, places: int) -> N:
    """Times 2^places."""
    return replace(x, e=x.e + places)


@program("npu-tree-f16-16", M16, 16)
@program("npu-tree-bf16-8", "bf16,bf16,bf16,bf16", 8)
def _(a: Row, b: Row, c: N) -> N:
    """A tree of exact products that truncates at every step, and with c."""
    r = partial(to, "f16" if len(a) == 16 else "bf16", mode="rtz")
    return r(add((c, in_pairs(r, products(a, b)))))


@program("odd-f16-tree-4", M16, 4)
def _(a: Row, b: Row, c: N) -> N:
    """Products to odd in f16, a tree in f16 to odd, c to nearest."""
    odd = partial(to, "f16", mode="odd")
    return F16(add((c, in_pairs(odd, [*map(odd, products(a, b))]))))


@program("tree-widths-4", M16, 4)
def _(a: Row, b: Row, c: N) -> N:
    """Products exact, pairs in f32 truncated, their sum and c in f16."""
    p = products(a, b)
    left, right = (to("f32", add(pair), mode="rtz") for pair in (p[:2], p[2:]))
    return F16(add((F16(add((left, right))), c)))


@program("saturating-e4m3-8", "e4m3,e4m3,f32,e4m3", 8)
def _(a: Row, b: Row, c: N) -> N:
    """An f32 chain from c, the result e4m3 with saturation."""
    return to("e4m3", fused(F32, c, a, b), over="max")


@program("group-odd-e4m3-16", "e4m3,e4m3,f32,bf16", 16)
def _(a: Row, b: Row, c: N) -> N:
    """Groups of eight to odd in f16, added to c in f32, then bf16."""
    for k in (0, 8):
        c = F32(add((c, to("f16", add(products(a[k : k + 8], b[k : k + 8])), mode="odd"))))
    return BF16(c)


@program("fdot-fp8-scaled-4", "e5m2,e4m3,f32,f32", 4)
def _(a: Row, b: Row, c: N) -> N:
    """Armv9.5 FDOT with FPMR.LSCALE = 9: the products' sum / 512, then c."""
    return F32(add((c, scaled(add(products(a, b)), -9))))


@program("fmopa-fp8-f16-8", "e4m3,e4m3,f16,f16", 8)
def _(a: Row, b: Row, c: N) -> N:
    """SME FMOPA of FP8 to f16: two products / 16 at once, saturating."""
    for k in range(0, 8, 2):
        c = to("f16", add((c, scaled(add(products(a[k : k + 2], b[k : k + 2])), -4))), over="max")
    return c


@program("c-halved-4", S32, 4)
def _(a: Row, b: Row, c: N) -> N:
    """f32 FMAs from c / 2."""
    return fused(F32, F32(N(c.m, c.e - 1, c.neg, c.kind)), a, b)


@program("xvf64gernn-3", "f64,f64,f64,f64", 3)
def _(a: Row, b: Row, c: N) -> N:
    """POWER10: the product and the accumulator are both negated, three times."""
    for x, y in zip(a, b, strict=True):
        c = F64(add((negated(mul(x, y)), negated(c))))
    return c


@program("bf16-3pass-4", S32, 4)
def _(a: Row, b: Row, c: N) -> N:
    """TPU, f32 from bf16: each input is a bf16 and a bf16 of the rest; three of four products."""

    def split(x: N) -> tuple[N, N]:
        high = BF16(x)
        rest = add((x, negated(high))) if not (x.kind or high.kind) else ZERO
        return high, BF16(rest)

    pairs, total = [(split(x), split(y)) for x, y in zip(a, b, strict=True)], ZERO
    for i, j in ((0, 1), (1, 0), (0, 0)):
        total = F32(add((total, *(mul(x[i], y[j]) for x, y in pairs))))
    return F32(add((c, total)))
