"""How a blind unit is written down, and the steps that many of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.blind.numbers import NAN, ZERO, N, add, mul, normal_only, pattern, read, to, top
from tests.oracle import FORMATS, decode

Row = Sequence[N]
Compute = Callable[[Row, Row, N], N]
Round = Callable[[N], N]


@dataclass(frozen=True)
class Blind:
    """A unit as a program. `formats`: of a, b, c and d; of a, b and d where it takes no addend. `like`: whose it is.
    `scale`: FORMAT/BLOCK of its scale factors; `compute` gets a and b multiplied by them, without loss."""

    name: str
    formats: str
    length: int
    like: str
    compute: Compute
    scale: str = ""

    @property
    def scales(self) -> int:
        """The number of scale factors of a, and of b."""
        return self.length // int(self.scale.partition("/")[2]) if self.scale else 0

    def result(
        self, a: Sequence[int], b: Sequence[int], c: int, scale_a: Sequence[int] = (), scale_b: Sequence[int] = ()
    ) -> int:
        """The result's pattern."""
        names = self.formats.split(",")
        addend = read(names[2], c) if len(names) == 4 else ZERO
        sides = [[read(name, x) for x in side] for name, side in zip(names, (a, b), strict=False)]
        if self.scale:
            name, _, block = self.scale.partition("/")
            for side, given in zip(sides, (scale_a, scale_b), strict=True):
                factors = [factor(name, x) for x in given]
                side[:] = [mul(x, factors[k // int(block)]) for k, x in enumerate(side)]
        return pattern(names[-1], self.compute(*sides, addend))


def factor(fmt: str, given: int) -> N:
    """A scale factor."""
    x = decode(fmt, given)
    if x.kind == "nan":
        return NAN
    return N(int(x.significand * 2 ** FORMATS[fmt].mantissa_bits), x.exponent - FORMATS[fmt].mantissa_bits)


class Set:
    """The units of one set, by name."""

    def __init__(self) -> None:
        self.units: dict[str, Blind] = {}

    def unit(self, name: str, formats: str, length: int, like: str, scale: str = "") -> Callable[[Compute], Compute]:
        """Adds a unit."""

        def added(compute: Compute) -> Compute:
            assert name not in self.units
            self.units[name] = Blind(name, formats, length, like, compute, scale)
            return compute

        return added


F64, F32, F16, BF16 = (partial(to, name) for name in ("f64", "f32", "f16", "bf16"))
#: formats of units
M32, M16 = "f16,f16,f32,f32", "f16,f16,f16,f16"
B32, S32 = "bf16,bf16,f32,f32", "f32,f32,f32,f32"
RTZ32, RUP32, RDN32, ODD32 = (partial(to, "f32", mode=mode) for mode in ("rtz", "rup", "rdn", "odd"))
FLUSHED = partial(to, "f32", tiny="after")  # x86 with FTZ
FLUSHED_BEFORE = partial(to, "f32", tiny="before")  # Arm with FZ


def read_flushed(name: str, side: Row) -> list[N]:
    """Subnormal inputs are read as zero."""
    return [normal_only(name, x) for x in side]


def as_read(x: N) -> N:
    """A converted number counts in an alignment with its own exponent, as one that is read."""
    return x if x.kind or not x.m else replace(x, at=max(top(x), -126))


def fma(r: Round, x: N, y: N, z: N) -> N:
    return r(add((mul(x, y), z)))


def chain(r: Round, start: N, a: Row, b: Row) -> N:
    """Fused multiply-adds one after another."""
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if k and start.m and not (x.m or x.kind) and not y.kind:
            continue  # a zero leaves what is rounded already
        start = fma(r, x, y, start)
    return start


def products(r: Round, a: Row, b: Row) -> list[N]:
    """Rounded products."""
    return [r(mul(x, y)) for x, y in zip(a, b, strict=True)]


def exact_products(a: Row, b: Row) -> list[N]:
    return [mul(x, y) for x, y in zip(a, b, strict=True)]


def in_turn(r: Round, start: N, terms: Row) -> N:
    for x in terms:
        start = r(add((start, x)))
    return start


def in_pairs(r: Round, terms: Row) -> N:
    """Neighbours first; one that is left over goes on as it is."""
    rest = list(terms)
    while len(rest) > 1:
        rest = [r(add(rest[k : k + 2])) if k + 1 < len(rest) else rest[k] for k in range(0, len(rest), 2)]
    return rest[0]


def in_halves(r: Round, terms: Row) -> N:
    """The first half with the second one, place by place."""
    rest = list(terms)
    while len(rest) > 1:
        half = len(rest) // 2
        rest = [r(add(pair)) for pair in zip(rest[:half], rest[half:], strict=True)]
    return rest[0]


def lanes(r: Round, count: int, a: Row, b: Row, start: N = ZERO) -> list[N]:
    """Chains of fused multiply-adds, each over every count-th product."""
    return [chain(r, start, a[k::count], b[k::count]) for k in range(count)]
