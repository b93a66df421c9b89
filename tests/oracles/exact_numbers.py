"""Arithmetic of exact numbers for units written as programs: integers times powers of two, nothing of smtmodel.

Formats and the meaning of patterns are those of tests/oracles/oracle.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from tests.oracles.oracle import FORMATS, decode
from tests.oracles.oracle import infinity as infinity_of

FORMATS_BITS = {name: (row.mantissa_bits + 1, row.emin) for name, row in FORMATS.items()}


@dataclass(frozen=True, slots=True)
class N:
    """`m` * 2^`e`, or an infinity or a NaN (`kind`). `neg`: the sign, of zeros as well. `at`: the exponent with which
    it counts in an alignment; None of a zero, and where that of its leading bit counts."""

    m: int
    e: int = 0
    neg: bool = False
    kind: str = ""
    at: int | None = None


ZERO, NEGATIVE_ZERO, NAN = N(0), N(0, neg=True), N(0, kind="nan")


def infinite(neg: bool) -> N:
    return N(0, neg=neg, kind="inf")


def _down(m: int, shift: int) -> int:
    return m >> shift


def _nearest_even(m: int, shift: int) -> int:
    low, half = m & ((1 << shift) - 1), 1 << (shift - 1)
    kept = m >> shift
    return kept + (low > half or (low == half and kept & 1))


def _nearest_away(m: int, shift: int) -> int:
    low, half = m & ((1 << shift) - 1), 1 << (shift - 1)
    return (m >> shift) + (low > half or (low == half and m >= 0))


def _toward_zero(m: int, shift: int) -> int:
    return m >> shift if m >= 0 else -(-m >> shift)


def _to_odd(m: int, shift: int) -> int:
    size, lost = abs(m) >> shift, abs(m) & ((1 << shift) - 1)
    size |= bool(lost)
    return size if m >= 0 else -size


CUT: dict[str, Callable[[int, int], int]] = {
    "rne": _nearest_even,
    "rna": _nearest_away,
    "rtz": _toward_zero,
    "rdn": _down,
    "rup": lambda m, shift: -(-m >> shift),
    "odd": _to_odd,
}


def cut_at(x: N, place: int, mode: str) -> N:
    """A multiple of 2^place."""
    if x.kind or x.e >= place:
        return x
    m = CUT[mode](x.m, place - x.e)
    return N(m, place, m < 0 if m else x.neg, "", x.at)


def top(x: N) -> int:
    """The exponent of the leading bit."""
    return x.e + abs(x.m).bit_length() - 1


def precise(x: N, bits: int, mode: str, least: int = -100000) -> N:
    """At most that many significant bits, and no place below that of 2^least's."""
    if x.kind or not x.m:
        return x
    found = cut_at(x, max(top(x), least) - bits + 1, mode)
    return N(found.m, found.e, x.neg)


@cache
def largest(fmt: str) -> tuple[int, int]:
    row = FORMATS[fmt]
    found = decode(fmt, row.largest << row.padding)
    return int(found.significand * 2**row.mantissa_bits), found.exponent - row.mantissa_bits


def to(fmt: str, x: N, mode: str = "rne", tiny: str = "", over: str = "ieee", zero: str = "") -> N:
    """A number of a format. `tiny`: "before" or "after" rounding, results below the smallest normal number are zero;
    `over`: beyond the largest number what IEEE says, always infinity ("inf"), or that number ("max"); `zero`: "+": no
    result is -0."""
    if x.kind:
        return x
    bits, emin = FORMATS_BITS[fmt]
    if x.m and tiny == "before" and top(x) < emin:
        x = N(0, neg=x.neg)
    found = precise(x, bits, mode, emin)
    if found.m and tiny == "after" and top(found) < emin:
        found = N(0, neg=x.neg)
    if not found.m:
        return ZERO if zero else N(0, neg=found.neg)
    m, e = largest(fmt)
    if above(found, m, e):
        inward = mode in ("rtz", "odd") or mode == ("rup" if x.neg else "rdn")
        if over == "max" or (over == "ieee" and inward) or FORMATS[fmt].specials == "none":
            return N(-m if x.neg else m, e, x.neg)
        return infinite(x.neg) if FORMATS[fmt].specials in ("ieee", "p3109") else NAN
    return N(found.m, found.e, found.neg)


def above(x: N, m: int, e: int) -> bool:
    """Whether a magnitude is larger than m * 2^e."""
    low = min(x.e, e)
    return abs(x.m) << (x.e - low) > m << (e - low)


def mul(x: N, y: N) -> N:
    """The exact product; in an alignment it counts with the sum of its factors' exponents."""
    neg = x.neg != y.neg
    if x.kind or y.kind:
        if "nan" in (x.kind, y.kind) or any(not z.kind and not z.m for z in (x, y)):
            return NAN
        return infinite(neg)
    at = None if x.at is None or y.at is None else x.at + y.at
    return N(x.m * y.m, x.e + y.e, neg, "", at)


def negated(x: N) -> N:
    return N(-x.m, x.e, not x.neg, x.kind, x.at)


def add(terms: Iterable[N], mode: str = "rne") -> N:
    """The exact sum, with IEEE's sign of a zero; `mode`: the direction in which it will be rounded."""
    given = list(terms)
    if any(x.kind for x in given):
        signs = {x.neg for x in given if x.kind == "inf"}
        if len(signs) == 2 or any(x.kind == "nan" for x in given):
            return NAN
        return infinite(signs.pop())
    low = min([x.e for x in given])
    m = sum([x.m << (x.e - low) for x in given])
    if not m:
        signs = {x.neg for x in given}
        return N(0, neg=signs == {True} or (mode == "rdn" and True in signs))
    return N(m, low, m < 0)


def place(x: N) -> int:
    """The exponent with which a number that is not zero counts in an alignment."""
    return top(x) if x.at is None else x.at


def aligned(terms: Sequence[N], bits: int, mode: str = "rtz", sticky: bool = False, least: int | None = None) -> N:
    """The sum of terms cut `bits` places below the largest exponent among them (and `least`), in one direction each."""
    if any(x.kind for x in terms):
        return add(terms)
    exponents = [place(x) for x in terms if x.m]
    if not exponents:
        return add(terms)
    last = max([*exponents, *([] if least is None else [least])]) - bits
    kept = [cut_at(x, last, mode) for x in terms]
    total = add(kept)
    if sticky and any(k.m << max(0, k.e - x.e) != x.m << max(0, x.e - k.e) for k, x in zip(kept, terms, strict=True)):
        size = abs(total.m) << (total.e - last + 1) if total.m else 0
        return N(-(size | 1) if total.m < 0 else size | 1, last - 1, total.m < 0)
    return N(total.m, total.e, total.neg, "", max(exponents) if total.m else None)


@lru_cache(1 << 16)
def read(fmt: str, pattern: int) -> N:
    """The number of a pattern; its exponent in an alignment is that of its field."""
    row = FORMATS[fmt]
    raw = pattern >> row.padding
    neg, body = raw > row.ones, raw & row.ones
    if body > row.largest or (row.one_zero and neg and not body):
        x = decode(fmt, pattern)
        return NAN if x.kind == "nan" else infinite(x.sign)
    field, m = divmod(body, 1 << row.mantissa_bits)
    m, exponent = (m + (1 << row.mantissa_bits), row.emin + field - 1) if field else (m, row.emin)
    return N(-m if neg else m, exponent - row.mantissa_bits, neg, "", exponent if m else None)


def pattern(fmt: str, x: N) -> int:
    """The pattern of a number that the format holds; of NaN, the usual quiet one."""
    row = FORMATS[fmt]
    if x.kind == "nan":
        return row.nan
    if x.kind == "inf":
        return infinity_of(fmt, x.neg, row.nan)
    sign = (row.ones + 1) << row.padding if x.neg and not (row.one_zero and not x.m) else 0
    if not x.m:
        return sign
    exponent = max(top(x), row.emin)
    shift = x.e - (exponent - row.mantissa_bits)
    size = abs(x.m) << shift if shift >= 0 else abs(x.m) >> -shift
    if size << max(0, -shift) != abs(x.m) << max(0, shift):
        raise ValueError(f"{x} is not a number of {fmt}")
    return sign | ((exponent - row.emin) << row.mantissa_bits) + size << row.padding
