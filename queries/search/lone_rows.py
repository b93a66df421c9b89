"""Inputs whose result depends on one bit far below the result's last place, the lone bit. Without this bit of a term,
the term or the sum of two terms would be half way between two results. The lone bit is at each place of its term's
significand, and at any distance below the half unit."""

from __future__ import annotations

import numpy as np

from mmaprobe.queries.search.samples import Lanes, Table, pattern_of, with_ones, with_raised, with_signs
from mmaprobe.queries.search.witness import bit_length
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.operands import Layout

INTEGER_BITS = 63  # the most bits of significands as integers
ALONE = 0.3  # the share of rows in which the term with the lone bit has no other bit
SINGLE = 0.15  # the share of rows with a single term


def lone_rows(layout: Layout, result: Format, count: int, seed: int = 1, kept: int = 0) -> Table:
    """Rows (count x columns of the layout) whose result, rounded to `result`, depends on one lone bit; empty if an
    operand or the result is an integer. Each row has at most two terms other than zero, any products or the addend.
    `kept`: the most bits of a rounding on the way, if it keeps more than the result."""
    n, a, b, c = layout.length, layout.a, layout.b, layout.c
    if any(fmt.is_integer for fmt in (a, b, c, result)):
        return np.zeros((0, len(layout.names)), dtype=np.uint64)
    rng = np.random.default_rng(seed)
    table = np.zeros((count, layout.columns), dtype=np.uint64)
    terms = rng.permuted(np.tile(np.arange(n + 1), (count, 1)), axis=1)[:, :2]
    where = np.clip(_exponents(layout, result, rng, count), -(1 << 20), 1 << 20)  # exponents of the half unit
    gap = 1 + np.minimum(rng.integers(0, 2 * max(result.precision, kept) + 3, count), rng.integers(0, 1 << 10, count))
    tie = rng.random(count) < 0.5  # the half unit is a bit of the same term as the lone bit, not of the other term
    alone = rng.random(count) < ALONE
    low = where - gap
    own = _odd(rng, count, np.where(alone, 1, rng.integers(1, 12, count) * result.precision // 8 + 1))
    # the term with the lone bit: the addend, or a product
    spread = np.minimum(gap, INTEGER_BITS).astype(np.uint64)
    bits = own >> np.uint64(1) << (spread + np.uint64(1)) | np.uint64(1)
    bits |= np.where(tie, np.uint64(1) << spread, 0).astype(np.uint64)
    bits &= np.uint64((1 << c.precision) - 1)
    bits = np.where(alone, np.uint64(1), bits)
    is_product = terms < n
    table[:, 2 * n] = np.where(is_product[:, 0], np.uint64(0), _number(c, rng, bits, low))
    x = _odd(rng, count, np.where(alone, 1, rng.integers(1, a.precision + 1, count)))
    spread = np.minimum(gap + 1, b.precision).astype(np.uint64)
    mask = (np.uint64(1) << spread) - np.uint64(1)
    wanted = np.where(tie & (gap < b.precision), np.uint64(1) << (spread - np.uint64(1)), 0).astype(np.uint64)
    with np.errstate(over="ignore"):
        y = ((wanted | np.uint64(1)) * _inverse(x)) & mask
    y |= _below(rng, count, b.precision) & ~mask & np.where(rng.random(count) < 0.5, ~np.uint64(0), 0)
    y = np.where(alone, np.uint64(1), y)
    _put_product(layout, table, rng, is_product[:, 0], terms[:, 0], x, y, low)
    # the other term: as many bits as the result keeps, and the half unit where the first term has no half unit
    there = rng.random(count) >= SINGLE
    half = ~tie | alone
    size = np.clip(result.precision + half - rng.integers(0, 2, count) * rng.integers(0, 3, count), 1, INTEGER_BITS)
    start = where + ~half
    bits = _number(c, rng, _odd(rng, count, np.minimum(size, c.precision)), start)
    table[:, 2 * n] = np.where(~is_product[:, 1] & there, bits, table[:, 2 * n])
    left = np.clip(size - rng.integers(0, b.precision + 1, count), 1, a.precision)
    right = np.clip(size - left + rng.integers(0, 2, count), 1, b.precision)
    x, y = _odd(rng, count, left), _odd(rng, count, right)
    _put_product(layout, table, rng, is_product[:, 1] & there, terms[:, 1], x, y, start)
    return with_raised(layout, with_ones(layout, table), rng)


def lone_input_rows(layout: Layout, count: int, seed: int = 1) -> Table:
    """Rows with one operand whose exponent field has one bit set or one bit clear, or whose fraction of a subnormal
    number or NaN has one bit set. The operand is a factor, with another factor that brings the product near one, or
    the addend; one other term may stand beside it. Empty if an operand is an integer."""
    n, formats = layout.length, layout.formats
    if any(fmt.is_integer for fmt in (layout.a, layout.b, layout.c)):
        return np.zeros((0, len(layout.names)), dtype=np.uint64)
    rng = np.random.default_rng(seed)
    table = np.zeros((count, layout.columns), dtype=np.uint64)
    place = rng.integers(0, 2 * n + 1, count)
    for column in range(2 * n + 1):
        fmt = formats[column]
        ones, kind = (1 << fmt.exponent) - 1, rng.integers(0, 4, count)
        bit = np.uint64(1) << rng.integers(0, max(fmt.exponent, 1), count).astype(np.uint64)
        low = np.uint64(1) << rng.integers(0, max(fmt.fraction, 1), count).astype(np.uint64)
        every = np.uint64((1 << fmt.fraction) - 1)
        any_low = _below(rng, count, fmt.fraction) & np.where(rng.random(count) < 0.5, every, np.uint64(0))
        exponent = np.select([kind == 0, kind == 1, kind == 2], [bit * 0, bit * 0 + np.uint64(ones), bit],
                             np.uint64(ones) - bit)  # fmt: skip
        fields = exponent << np.uint64(fmt.fraction) | (np.where(kind < 2, low, any_low) & every)
        signs = rng.integers(0, 1 + fmt.signed, count)
        pattern = with_signs(fmt, signs, fields)
        chosen = place == column
        table[:, column] = np.where(chosen, pattern, table[:, column])
        if column < 2 * n:
            other = (column + n) % (2 * n)
            own = formats[other]
            near = np.clip(fmt.bias - exponent.astype(np.int64) + rng.integers(-2, 3, count), own.emin, own.emax)
            beside = pattern_of(
                own, rng.integers(0, 1 + own.signed, count), near + own.bias, _below(rng, count, INTEGER_BITS)
            )
            table[:, other] = np.where(chosen, beside, table[:, other])
    for alone, columns, least in ((place < 2 * n, (2 * n,), -40), (place == 2 * n, (0, n), -80)):
        accompanied = alone & (rng.random(count) < 0.5)  # a product by an addend, an addend by a product
        for column in columns:
            fmt = formats[column]
            signs, size = rng.integers(0, 1 + fmt.signed, count), rng.integers(max(fmt.emin, least), 4, count)
            pattern = pattern_of(fmt, signs, size + fmt.bias, _below(rng, count, INTEGER_BITS))
            table[:, column] = np.where(accompanied, pattern, table[:, column])
    return with_raised(layout, with_ones(layout, table), rng)


def _exponents(layout: Layout, result: Format, rng: np.random.Generator, count: int) -> Lanes:
    """Exponents of half a unit in the last place of results: of results about one, of any size, about the smallest
    normal number, or subnormal."""
    a, b, c = layout.a, layout.b, layout.c
    low = max(min(a.emin + b.emin, c.emin), result.emin)
    high = max(low + 1, min(max(a.emax + b.emax, c.emax), result.emax))
    kind = rng.integers(0, 4, count)
    top = np.select([kind == 0, kind == 1], [rng.integers(-4, 5, count), rng.integers(low, high + 1, count)],
                    result.emin + rng.integers(-1, 3, count))  # fmt: skip
    return np.where(kind < 3, np.maximum(top - result.fraction, result.unit),
                    result.unit + rng.integers(0, result.precision, count)) - 1  # fmt: skip


def _below(rng: np.random.Generator, count: int, width: int) -> Table:
    """Random integers below 2^width, for a width of at most INTEGER_BITS."""
    integers: Table = rng.integers(0, 1 << min(width, INTEGER_BITS), count, dtype=np.uint64)
    return integers


def _odd(rng: np.random.Generator, count: int, width: Lanes) -> Table:
    """Random odd integers of exactly `width` bits."""
    top = np.uint64(1) << np.clip(width - 1, 0, INTEGER_BITS - 1).astype(np.uint64)
    integers: Table = (_below(rng, count, INTEGER_BITS) & (top - np.uint64(1))) | top | np.uint64(1)
    return integers


def _inverse(x: Table) -> Table:
    """The inverses of odd integers modulo 2^64 (by Newton's iteration)."""
    inverse = x.copy()
    with np.errstate(over="ignore"):
        for _ in range(6):
            inverse = inverse * (np.uint64(2) - x * inverse)
    return inverse


def _width(bits: Table) -> Lanes:
    high, low = bits >> np.uint64(32), bits & np.uint64((1 << 32) - 1)
    return np.where(high > 0, bit_length(high) + 32, bit_length(low))


def _number(fmt: Format, rng: np.random.Generator, bits: Table, unit: Lanes) -> Table:
    """The pattern of bits * 2^unit with a random sign; bits that do not fit the format's fraction are cut off."""
    width = _width(bits)
    shift = fmt.fraction + 1 - width
    left = np.where(shift >= 0, bits << np.maximum(shift, 0).astype(np.uint64),
                    bits >> np.maximum(-shift, 0).astype(np.uint64))  # fmt: skip
    return pattern_of(fmt, rng.integers(0, 1 + fmt.signed, len(bits)), unit + width - 1 + fmt.bias, left)


def _put_product(layout: Layout, table: Table, rng: np.random.Generator, chosen: np.ndarray, place: Lanes,
                 x: Table, y: Table, unit: Lanes) -> None:  # fmt: skip
    """Set the products at `place`, in the chosen rows, to x * y * 2^unit, each split at random between the exponents of
    a and b."""
    n, a, b = layout.length, layout.a, layout.b
    swapped = (rng.random(len(x)) < 0.5) if a == b else np.zeros(len(x), dtype=np.bool_)
    x, y = np.where(swapped, y, x), np.where(swapped, x, y)
    top, other = _width(x) - 1, _width(y) - 1
    least, most = a.unit, a.emax
    low = np.maximum(least, unit + top + other - b.emax)
    high = np.maximum(np.minimum(most, unit + top + other - b.unit), low)
    exponent = np.where(rng.random(len(x)) < 0.5, (unit + top + other) // 2, rng.integers(low, high + 1))
    exponent = np.clip(exponent, low, high)
    left = _number(a, rng, x, exponent - top)
    right = _number(b, rng, y, unit + top - exponent)
    for side, pattern in ((0, left), (n, right)):
        table[np.flatnonzero(chosen), side + place[chosen]] = pattern[chosen]
