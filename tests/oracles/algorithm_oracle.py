"""Algorithms on matrix units in exact rationals, written from their papers over tests/oracles/oracle.py alone.

Each function is one paper's recipe for d = c + sum of a_k * b_k, spelled out; `unit` is a function (a, b, c) -> d of
patterns, one instruction of `length` products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gmpy2 import mpq

from tests.oracles.oracle import FORMATS, Decoded, decode, encode, ieee_add, infinity, special_sum

Unit = Callable[[Sequence[int], Sequence[int], int], int]
Words = list[list[int]]  # words[k][i]: the k-th word of the i-th number


def convert(pattern: int, source: str, target: str, mode: str) -> int:
    """IEEE conversion; a NaN becomes the quiet one."""
    x = decode(source, pattern)
    if x.kind == "nan":
        return FORMATS[target].nan
    if x.kind == "inf":
        return infinity(target, x.sign)
    beyond = [] if FORMATS[target].specials == "none" else [FORMATS[target].nan]
    return encode(target, x.sign, abs(x.value), mode, "ieee", *beyond)


def times_power(pattern: int, fmt: str, exponent: int) -> int:
    """The IEEE product with 2^exponent, to nearest even."""
    x = decode(fmt, pattern)
    special = special_sum([x])
    if special is not None:
        return FORMATS[fmt].nan if special.kind == "nan" else infinity(fmt, x.sign)
    return encode(fmt, x.sign, abs(x.value) * mpq(2) ** exponent, "nearest_even", "ieee")


def minus(pattern: int, fmt: str) -> int:
    f = FORMATS[fmt]
    return pattern ^ (f.ones + 1) << f.padding


def words(numbers: Sequence[int], source: str, target: str, mode: str, count: int, scale: int) -> Words:
    """Round to the narrow format, keep what is left (times 2^scale), and so on."""
    out: Words = []
    left = list(numbers)
    for _ in range(count):
        narrow = [x if source == target else convert(x, source, target, mode) for x in left]
        out.append(narrow)
        wide = [x if source == target else convert(x, target, source, "nearest_even") for x in narrow]
        rest = [ieee_add(source, "nearest_even", x, minus(w, source)) for x, w in zip(left, wide, strict=True)]
        left = [times_power(x, source, scale) for x in rest] if scale else rest
    return out


def tiles(a: Sequence[int], b: Sequence[int], length: int) -> list[tuple[Sequence[int], Sequence[int]]]:
    return [(a[k : k + length], b[k : k + length]) for k in range(0, len(a), length)]


def gemm(unit: Unit, length: int, a: Sequence[int], b: Sequence[int], c: int) -> int:
    """A whole product by instructions that hand on their results."""
    for x, y in tiles(a, b, length):
        c = unit(x, y, c)
    return c


def markidis(unit: Unit, length: int, a: Words, b: Words, c: int) -> int:
    """RA*RB, then A*RB, RA*B and A*B, every product accumulated in the unit on top of the one before."""
    for i, j in ((1, 1), (0, 1), (1, 0), (0, 0)):
        c = gemm(unit, length, a[i], b[j], c)
    return c


def ootomo_yokota(
    unit: Unit, length: int, a: Words, b: Words, c: int, scale: int, residuals: bool, fmt: str = "f32"
) -> int:
    """A*B instruction by instruction from zero, each added to c outside; A*RB and RA*B in the unit, from zero; the
    sum of both at the end, the second divided by the scale. `residuals`: RA*RB as well, divided by its square."""
    for x, y in tiles(a[0], b[0], length):
        c = ieee_add(fmt, "nearest_even", c, unit(x, y, 0))
    correction = gemm(unit, length, a[0], b[1], 0)
    correction = gemm(unit, length, a[1], b[0], correction)
    c = ieee_add(fmt, "nearest_even", c, times_power(correction, fmt, -scale))
    if residuals:
        last = gemm(unit, length, a[1], b[1], 0)
        c = ieee_add(fmt, "nearest_even", c, times_power(last, fmt, -2 * scale))
    return c


def largest_first(unit: Unit, length: int, a: Words, b: Words, c: int, order: Sequence[tuple[int, int]]) -> int:
    """Whole products in the order given, every result the next one's C (Valero-Lara et al., Figure 2)."""
    for i, j in order:
        c = gemm(unit, length, a[i], b[j], c)
    return c


def chained(unit: Unit, length: int, a: Sequence[int], b: Sequence[int], c: int, links: int, fmt: str = "f32") -> int:
    """One product in chains of so many instructions, every chain's result added to c outside."""
    for x, y in tiles(a, b, links * length):
        c = ieee_add(fmt, "nearest_even", c, gemm(unit, length, x, y, 0))
    return c


def exact(fmt: str, a: Sequence[int], b: Sequence[int], c: Decoded) -> mpq:
    """The exact sum of finite numbers."""
    return c.value + sum((decode(fmt, x).value * decode(fmt, y).value for x, y in zip(a, b, strict=True)), mpq(0))


# --- sums of numbers (Navarro et al. 2020) ---------------------------------------------------------------------------


def shuffled(fmt: str, numbers: Sequence[int], lanes: int) -> int:
    """Shuffle down in so many lanes: lane i takes lane i + offset on, for offset lanes/2, lanes/4, ..., 1. Lanes that
    hold no number take no part."""
    values: list[int | None] = [*numbers] + [None] * (lanes - len(numbers))
    while len(values) > 1:
        offset = (len(values) + 1) // 2
        upper = values[offset:] + [None] * (2 * offset - len(values))
        merged: list[int | None] = []
        for x, y in zip(values[:offset], upper, strict=True):
            merged.append(x if y is None else y if x is None else ieee_add(fmt, "nearest_even", x, y))
        values = merged
    assert values[0] is not None
    return values[0]


def in_blocks(numbers: Sequence[int], size: int) -> list[list[int]]:
    """Neighbours in blocks, zeros at the end."""
    padded = [*numbers] + [0] * (-len(numbers) % size)
    return [padded[k : k + size] for k in range(0, len(padded), size)]


def warp(unit: Unit, length: int, fmt: str, numbers: Sequence[int], side: int, links: int, outside: bool) -> int:
    """Equations 18 to 22: C_r = ones * M_r + C_(r-1), then C_R * ones; row by row in memory; C has equal rows."""
    one = encode(fmt, False, mpq(1), "toward_zero")
    row = []
    for column in range(side):
        total = 0
        for r in range(links):
            entries = [numbers[r * side * side + k * side + column] for k in range(side)]
            total = gemm(unit, length, [one] * side, entries, total)
        row.append(total)
    if outside:
        return shuffled("f32", row, side)
    narrow = [convert(x, "f32", fmt, "nearest_even") for x in row]
    return gemm(unit, length, narrow, [one] * side, 0)


def added(fmt: str, numbers: Sequence[int]) -> int:
    total, *rest = numbers
    for x in rest:
        total = ieee_add(fmt, "nearest_even", total, x)
    return total
