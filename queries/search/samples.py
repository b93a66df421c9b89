"""Inputs for simulation: random rows, and rows shaped to exercise the corner cases of a datapath.

A random pattern rarely makes a unit align, carry or cancel; a shaped row does. A shaped row has one exponent for its
largest terms, other terms below these at the distances at which units cut bits off, and significands of few bits or of
all bits. All functions are seeded: the same arguments give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.operands import RAISED, Layout

Table = NDArray[np.uint64]
Lanes = NDArray[np.int64]
Flags = NDArray[np.bool_]

SHAPED = 0.6  # share of the rows that are shaped
SEARCHED = 12  # the most fraction bits for which all significands are tried
TINY = 0.6  # share of the rows with ties whose product is about the smallest result
KEPT = 600_000  # the most patterns of a table that is cached for the next question
NARROW = 8  # the most bits of a format whose numbers some units convert to a wider format before they multiply
WORD = 60  # the most bits of a product of fractions that is formed in machine words
DRAWN = 8  # products drawn for each that is kept, the nearest to powers of two
PLACES = range(-4, 2)  # the exponents of a product's factors about the last place of a result
FAR = 40  # the most places below the largest term that matter to a unit


def every_row(layout: Layout, most: int) -> Table | None:
    """All inputs, as patterns of shape (inputs, columns of the layout), with zeros for elements that are not read; None
    if the elements that are read have more than `most` bits together."""
    widths = [0 if place in layout.unread else fmt.width for place, fmt in enumerate(layout.formats)]
    total = sum(widths)
    if total > most:
        return None
    every = np.arange(1 << total, dtype=np.uint64)  # the first element in the highest bits
    columns = [every >> np.uint64(total - end) & np.uint64((1 << width) - 1)
               for end, width in zip(accumulate(widths), widths, strict=True)]  # fmt: skip
    return np.stack(columns, axis=1)


def sample_rows(layout: Layout, count: int, seed: int = 1) -> Table:
    """Patterns of shape (count, columns of the layout): the shaped rows first, then the random ones."""
    return _cached_rows(_mixed_rows, layout, count, seed)


def _cached_rows(form: Callable[..., Table], layout: Layout, count: int, *rest: Any) -> Table:
    """A copy of the rows that `form` makes, which are cached if they are few."""
    made = _made_rows if count * len(layout.names) <= KEPT else _made_rows.__wrapped__
    return made(form, layout, count, *rest).copy()


@lru_cache(48)  # many questions have inputs of one layout
def _made_rows(form: Callable[..., Table], *given: Any) -> Table:
    return form(*given)


def _mixed_rows(layout: Layout, count: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    shaped = int(count * SHAPED)
    base = layout.columns
    plain = replace(layout, formats=layout.formats[:base], names=layout.names[:base])
    table = np.concatenate([_Shaped(plain, shaped, rng).rows(), _random_rows(plain, count - shaped, rng)])
    return with_raised(layout, table, rng)


def tie_rows(layout: Layout, result: Format, count: int, seed: int = 1) -> Table:
    """Rows with one product of few bits and one or two powers of two below it at any distance. The product is about the
    smallest result or about one. If it is half way between two results, the powers of two decide the rounding, unless
    the unit cuts them off."""
    return _cached_rows(_tie_rows, layout, count, result, seed)


def _tie_rows(layout: Layout, count: int, result: Format, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    base = layout.columns
    columns = [np.zeros(count, dtype=np.uint64) for _ in range(base)]
    a, b = layout.a, layout.b
    least = a.unit + b.unit

    def form(k: int, exponent: Lanes, fraction: Table) -> None:
        exponent = np.maximum(exponent, least)
        left = np.clip(exponent // 2 + rng.integers(-3, 4, count), exponent - b.emax, exponent - b.emin + b.fraction)
        left = np.clip(left, a.unit, a.emax)
        signs, none = rng.integers(0, 1 + a.signed, count), np.zeros(count, dtype=np.int64)
        columns[k] = pattern_of(a, signs, left + a.bias, fraction)
        columns[layout.length + k] = pattern_of(b, none, exponent - left + b.bias, none.astype(np.uint64))

    smallest = result.unit + rng.integers(0, 4, count)
    top = np.where(rng.random(count) < TINY, smallest, rng.integers(-8, 9, count))
    few = rng.integers(0, 8, count, dtype=np.uint64) << np.uint64(max(a.fraction - 3, 0))
    form(0, top, few)
    for k in range(1, min(layout.length, 3)):
        form(k, top - rng.integers(0, 64, count), np.zeros(count, dtype=np.uint64))
        absent = rng.random(count) < (0.7 if k > 1 else 0.0)
        for column in (columns[k], columns[layout.length + k]):
            column[absent] = 0
    return with_raised(layout, with_ones(layout, np.stack(columns, axis=1)), rng)


def near_tie_rows(layout: Layout, result: Format, count: int, seed: int = 1) -> Table:
    """Rows with a power of two, a product or c, and far below it, about the last place of the result, a product next to
    a power of two: the last digit of this product is many places below its first, and alone decides which result is
    nearer. Neither random products nor solvers, which would have to factor numbers, find such digits. Empty for
    integers and for one product alone."""
    return _cached_rows(_near_tie_rows, layout, count, result, seed)


def _near_tie_rows(layout: Layout, count: int, result: Format, seed: int) -> Table:
    a, b, n = layout.a, layout.b, layout.length
    digits = a.fraction + b.fraction
    if any(fmt.is_integer for fmt in (a, b, layout.c, result)) or digits > WORD or not (n > 1 or layout.addend):
        return np.zeros((0, len(layout.names)), dtype=np.uint64)
    rng, drawn = np.random.default_rng(seed), DRAWN * count
    left = (1 << a.fraction) + rng.integers(0, 1 << a.fraction, drawn)
    right = np.minimum((2 << digits) // left + rng.integers(0, 2, drawn), (2 << b.fraction) - 1)
    beside = np.abs(left * right - (2 << digits))
    best = np.argsort(np.where(beside == 0, 2 << digits, beside), kind="stable")[:count]
    left, right, none = left[best], right[best], np.zeros(count, dtype=np.int64)
    most = a.emax + b.emax
    top = most - rng.integers(0, max(1, most - a.emin - b.emin - result.precision - len(PLACES)), count)
    columns = [np.zeros(count, dtype=np.uint64) for _ in range(layout.columns)]

    def form(k: int, signs: Lanes, exponent: Lanes, *significands: Lanes) -> None:
        own = np.clip(exponent // 2 + rng.integers(-3, 4, count), exponent - b.emax, exponent - b.emin)
        own = np.clip(own, a.emin, a.emax)
        for side, (fmt, power) in enumerate(((a, own), (b, exponent - own))):
            fraction = (significands[side] - (1 << fmt.fraction)).astype(np.uint64)
            columns[side * n + k] = pattern_of(fmt, none if side else signs, power + fmt.bias, fraction)

    signs, in_c = rng.integers(0, 2, count), rng.random(count) < (0.5 if layout.addend and n > 1 else n == 1)
    form(0, signs * a.signed, top, none + (1 << a.fraction), none + (1 << b.fraction))
    if layout.addend:
        addend = pattern_of(layout.c, signs * layout.c.signed, top + layout.c.bias, none.astype(np.uint64))
        columns[2 * n] = np.where(in_c, addend, np.uint64(0))
        columns[0] = np.where(in_c, np.uint64(0), columns[0])
    form(n - 1, none, top - result.precision + rng.choice(PLACES, count), left, right)
    return with_raised(layout, with_ones(layout, np.stack(columns, axis=1)), rng)


def subnormal_rows(layout: Layout, count: int, seed: int = 1) -> Table:
    """Rows with the product of a subnormal and a large factor, and one or two products at any distance below it. The
    bits of these that a unit truncates show which exponent the first product has in the alignment. Empty for factors
    of more than 8 bits."""
    return _cached_rows(_below_small_rows, layout, count, False, seed)


def zero_rows(layout: Layout, count: int, seed: int = 1) -> Table:
    """Rows as of `subnormal_rows`, but with a zero in the place of the subnormal factor, factors of any width, and an
    addend. They show whether the zero product's exponent takes part in the alignment. Empty for integers."""
    return _cached_rows(_below_small_rows, layout, count, True, seed)


def _below_small_rows(layout: Layout, count: int, zero: bool, seed: int) -> Table:
    n, base = layout.length, layout.columns
    formats = layout.a, layout.b
    narrow = [fmt.width <= NARROW and fmt.subnormals and fmt.fraction > 1 for fmt in formats]
    sides = [side for side in (0, 1) if (not formats[side].is_integer if zero else narrow[side])]
    if not sides or not count:
        return np.zeros((0, len(layout.names)), dtype=np.uint64)
    rng, rows = np.random.default_rng(seed), np.arange(count)
    table = np.zeros((count, base), dtype=np.uint64)
    places = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)[:, : min(n, 3)]
    small = rng.choice(sides, count)
    signs, top = rng.integers(0, 2, (2, len(places[0]), count)), np.zeros(count, dtype=np.int64)
    for side, fmt in enumerate(formats):
        tiny = rng.integers(not zero, 1 if zero else 1 << max(fmt.fraction - 1, 1), count, dtype=np.uint64)
        exponent = fmt.emax - rng.integers(0, 4, count)
        large = pattern_of(fmt, signs[side, 0], exponent + fmt.bias, _bits(rng, count, fmt.fraction))
        table[rows, side * n + places[:, 0]] = np.where(small == side, with_signs(fmt, signs[side, 0], tiny), large)
        top += np.where(small == side, fmt.emin, exponent)
    for k in range(1, places.shape[1]):
        exponent = top - rng.integers(1, FAR, count)
        left = np.clip(exponent // 2 + rng.integers(-3, 4, count), formats[0].emin, formats[0].emax)
        for side, (fmt, own) in enumerate(zip(formats, (left, exponent - left), strict=True)):
            filled = pattern_of(fmt, signs[side, k], own + fmt.bias, _bits(rng, count, fmt.fraction))
            table[rows, side * n + places[:, k]] = np.where(
                rng.random(count) < (0.0, 1.0, 0.5)[k], filled, np.uint64(0)
            )
    if zero and not (fmt := layout.c).is_integer:  # the addend, beside these products or alone
        own = top - rng.integers(1, FAR, count) + fmt.bias
        chance = rng.random(count)
        addend = pattern_of(fmt, rng.integers(0, 2, count), own, _bits(rng, count, fmt.fraction))
        table[:, 2 * n] = np.where(chance < 0.5, addend, np.uint64(0))
        for k in range(1, places.shape[1]):
            table[rows, places[:, k]] *= np.uint64(1) - (chance < 0.25).astype(np.uint64)
    return with_raised(layout, with_ones(layout, table), rng)


def with_ones(layout: Layout, table: Table) -> Table:
    """The rows, changed in place: scale factors and all operands after c are 1."""
    for place in layout.further:
        table[:, place] = layout.formats[place].one
    return table


def with_raised(layout: Layout, table: Table, rng: np.random.Generator) -> Table:
    """The rows with the layout's columns for the raised operand of a second evaluation added, and zeros in columns that
    no evaluation reads."""
    table[:, layout.unread] = 0
    raised = [_raised_operand(layout, table, index, rng) for index in range(table.shape[1], len(layout.names))]
    return np.concatenate([table, *raised], axis=1)


def _raised_operand(layout: Layout, table: Table, index: int, rng: np.random.Generator) -> Table:
    """The raised values of one operand: mostly the neighbouring pattern up or down, else the operand of another row."""
    source, fmt = layout.names.index(layout.names[index].removesuffix(RAISED)), layout.formats[index]
    pattern = table[:, source]
    step = np.uint64(1 << fmt.padding)
    chance = rng.random(len(pattern))
    nearby = np.where(chance < 0.4, pattern + step, np.where(chance < 0.8, pattern - step, pattern))
    nearby &= np.uint64((1 << fmt.width) - 1)
    return np.where(chance < 0.9, nearby, rng.permutation(pattern))[:, None]


def _random_rows(layout: Layout, count: int, rng: np.random.Generator) -> Table:
    """Independent patterns: random bits, numbers about 1, and some zeros, infinities and largest numbers."""
    columns = []
    for fmt in layout.formats:
        bits = _bits(rng, count, fmt.width)
        centre = fmt.bias + rng.integers(-2, 3, count)
        tidy = pattern_of(fmt, rng.integers(0, 1 + fmt.signed, count), centre, _bits(rng, count, max(fmt.fraction, 1)))
        sign = bits & np.uint64(1 << fmt.field_width) if fmt.signed else np.uint64(0)
        chance = rng.random(count)
        values = np.where(chance < 0.5, bits, tidy)
        values = np.where(chance > 0.85, np.uint64(0), values)
        values = np.where(chance > 0.98, np.uint64(fmt.infinity) | sign, values)
        columns.append(np.where(chance > 0.99, np.uint64(fmt.largest) | sign, values))
    return np.stack(columns, axis=1)


def _bits(rng: np.random.Generator, count: int, width: int) -> Table:
    bits = rng.integers(0, 1 << 63, count, dtype=np.uint64) << np.uint64(1) ^ rng.integers(0, 2, count, dtype=np.uint64)
    return bits >> np.uint64(64 - width)


def pattern_of(fmt: Format, sign: Lanes, exponent: Lanes, fraction: Table) -> Table:
    """Patterns of numbers from their signs (0 or 1), biased exponents and fractions. Exponents above the format's range
    become the largest one; exponents from 0 down give subnormal numbers, or zero exponent fields in a format without
    subnormals. Only the low bits of `fraction` that fit the format are used."""
    highest = (fmt.largest >> (fmt.padding + fmt.fraction)) & ((1 << fmt.exponent) - 1)
    field = np.clip(exponent, 1 if fmt.subnormals else 0, highest).astype(np.uint64)
    kept = fraction & np.uint64((1 << fmt.fraction) - 1)
    fields = np.minimum(field << np.uint64(fmt.fraction) | kept, np.uint64(fmt.largest >> fmt.padding))
    if fmt.subnormals:
        places = np.clip(1 - exponent, 0, fmt.fraction + 1).astype(np.uint64)
        fields = np.where(places > 0, (kept | np.uint64(1 << fmt.fraction)) >> places, fields)
    return with_signs(fmt, sign, fields)


def with_signs(fmt: Format, sign: Lanes, fields: Table) -> Table:
    """Patterns from their signs (0 or 1) and their exponent and fraction fields, each as one integer."""
    top = sign.astype(np.uint64) << np.uint64(fmt.field_width) if fmt.signed else np.uint64(0)
    return fields << np.uint64(fmt.padding) | top


def _largest_below_two(left: int, right: int) -> tuple[np.uint64, np.uint64]:
    """The fractions, of `left` and `right` bits, of two significands in [1, 2) with the largest product below 2. This
    product has the most set bits of a product that needs no normalisation."""
    if left > SEARCHED:
        return np.uint64((1 << left) - 1), np.uint64(0)
    x = np.arange(1 << left, 2 << left, dtype=np.uint64)
    y = np.minimum((np.uint64(2 << (left + right)) - np.uint64(1)) // x, np.uint64((2 << right) - 1))
    best = int(np.argmax(x * y))
    return x[best] - np.uint64(1 << left), y[best] - np.uint64(1 << right)


@dataclass
class _Shaped:
    layout: Layout
    count: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.products, self.a, self.b, self.c = self.layout.length, self.layout.a, self.layout.b, self.layout.c
        self.columns: list[Table] = [np.zeros(self.count, dtype=np.uint64)] * len(self.layout.formats)

    def rows(self) -> Table:
        rng, count, products, columns = self.rng, self.count, self.products, self.columns
        a, b, c = self.a, self.b, self.c
        # the exponent of the largest terms, within the ranges of products and addend, or of either
        low, high = sorted((max(a.emin + b.emin + 1, c.emin + 1, -150), min(a.emax + b.emax, c.emax)))
        centre = rng.integers(-6, 7, count)
        anywhere = rng.integers(low, high + 1, count)
        largest = np.where(rng.random(count) < 0.6, np.clip(centre, low, high), anywhere)
        signs = rng.integers(0, 4, count)  # all +, all -, mixed, mixed
        dense = rng.choice([1.0, 1.0, 0.5, 0.2], count)  # the share of products that are not zero
        scatter = rng.integers(0, 4, count)  # 0: all at the largest; 1: near; 2: at one cutting distance; 3: anywhere
        self.kind = np.where(rng.random(count) < 0.3, rng.integers(0, 5, count), -1)  # -1: each term has its own kind
        full = rng.random(count) < 0.05  # the largest sums: all terms full, with one exponent and sign
        signs, scatter, dense = np.where(full, signs % 2, signs), np.where(full, 0, scatter), np.where(full, 1.0, dense)
        self.kind = np.where(full, 1, self.kind)
        brim = full & (rng.random(count) < 0.5)
        fill = _largest_below_two(a.fraction, b.fraction)
        cut = rng.integers(0, FAR, count)
        # a window of products, so that other steps of a chain do not hide the effects of one
        wide = np.where(
            rng.random(count) < 0.3, rng.choice([w for w in (1, 2, 4, 8, 16) if w <= products], count), products
        )
        wide = np.where(
            full & (rng.random(count) < 0.5), rng.choice([w for w in (4, 8, 16) if w <= products] or [1], count), wide
        )
        start = rng.integers(0, products // np.minimum(wide, products), count) * wide
        start = np.where(rng.random(count) < 0.3, products - wide, start)  # in the last step, after which no sum is cut
        own = rng.spawn(1)[0]
        # one product is below the others, so that the last place of a sum without an addend is odd too
        tail = np.where(full & (own.random(count) < 0.5), start + own.integers(0, wide), -1)
        below = own.integers(1, 16, count)
        for k in range(products):
            exponent = largest - self._distance(scatter, cut, first=k == 0) - np.where(k == tail, below, 0)
            sign = self._sign(signs)
            zero = (rng.random(count) > dense) | (k < start) | (k >= start + wide)
            part = np.clip(exponent // 2 + rng.integers(-3, 4, count), exponent - b.emax, exponent - b.emin)
            part = np.clip(part, a.emin, a.emax)
            left, right = np.where(brim, fill[0], self._fraction(a)), np.where(brim, fill[1], self._fraction(b))
            x = pattern_of(a, sign, part + a.bias, left)
            y = pattern_of(b, rng.integers(0, 2, count) * (signs > 2), exponent - part + b.bias, right)
            columns[k] = np.where(zero, np.uint64(0), x)
            columns[products + k] = np.where(zero, np.uint64(0), y)
        exponent = largest - self._distance(scatter, cut) + (rng.random(count) < 0.2)
        loose = full & (rng.random(count) < 0.5)  # so that the last place kept is odd too
        fraction = np.where(loose, _bits(rng, count, max(c.fraction, 1)), self._fraction(c))
        addend = pattern_of(c, self._sign(signs), exponent + c.bias, fraction)
        columns[2 * products] = np.where(rng.random(count) < 0.2, np.uint64(0), addend)
        self._pairs()
        self._ties(largest)
        self._completions(largest)
        self._cancellations()
        self._zeros()
        self._smallest(own)
        for index in self.layout.further:
            fmt = self.layout.formats[index]
            near = fmt.bias + rng.integers(-2, 3, count)
            columns[index] = pattern_of(fmt, np.zeros(count, dtype=np.int64), near, self._fraction(fmt))
        return np.stack(columns, axis=1)

    def _distance(self, scatter: Lanes, cut: Lanes, first: bool = False) -> Lanes:
        rng, count = self.rng, self.count
        near, wide = rng.integers(0, 4, count), rng.integers(0, FAR, count)
        below = np.where(rng.random(count) < 0.3, 0, cut + rng.integers(-1, 2, count))
        distance = np.choose(scatter, [np.zeros(count, dtype=np.int64), near, below, wide])
        return np.where(rng.random(count) < 0.5, 0, distance) if first else distance

    def _sign(self, signs: Lanes) -> Lanes:
        return np.where(signs < 2, signs, self.rng.integers(0, 2, self.count))

    def _fraction(self, fmt: Format) -> Table:
        """Fractions without a set bit, with one (anywhere or the last), with all bits set, or random."""
        if not fmt.fraction:
            return np.zeros(self.count, dtype=np.uint64)
        ones = np.uint64((1 << fmt.fraction) - 1)
        single = np.uint64(1) << self.rng.integers(0, fmt.fraction, self.count).astype(np.uint64)
        kind = np.where(self.kind < 0, self.rng.integers(0, 5, self.count), self.kind)
        zero = np.zeros(self.count, dtype=np.uint64)
        choices = [zero, zero + ones, single, zero + np.uint64(1), _bits(self.rng, self.count, fmt.fraction)]
        return np.choose(kind, choices)

    def _set(self, chosen: Flags, place: int, pattern: Table | np.uint64) -> None:
        """Replace the patterns in column `place` of the chosen rows."""
        self.columns[place] = np.where(chosen, pattern, self.columns[place])

    def _set_product(self, chosen: Flags, k: int, factors: Sequence[Table]) -> None:
        for place, pattern in zip((k, self.products + k), factors, strict=True):
            self._set(chosen, place, pattern)

    def _pairs(self) -> None:
        """In some rows, make the second product cancel the first."""
        if self.products < 2 or not self.a.has_negative_zero:
            return
        chosen = self.rng.random(self.count) < 0.15
        flipped = self.columns[0] ^ np.uint64(1 << self.a.field_width)
        self._set_product(chosen, 1, (flipped, self.columns[self.products]))

    def _ties(self, largest: Lanes) -> None:
        """Change some rows: a product or the addend becomes a power of two, a second term half a unit in its last
        place, and a third term lies far below and decides the rounding."""
        rng, count, products, c = self.rng, self.count, self.products, self.c
        chosen = rng.random(count) < 0.15
        place = rng.integers(0, products, count)
        half, far = rng.choice([11, 14, 24], count), rng.integers(10, FAR + 8, count)
        smallest = rng.random(count) < 0.3  # the first term is half of the smallest result, which alone is a tie
        largest = np.where(smallest, rng.choice([-25, -150], count), largest)
        half = np.where(smallest, 400, half)
        far = np.where(smallest & (rng.random(count) < 0.6), rng.integers(18, 26, count), far)
        zero = np.zeros(count, dtype=np.int64)
        lead = (rng.random(count) < 0.4) & ~smallest  # the first term is the addend
        high = min(self.a.emax + self.b.emax, c.emax)
        largest = np.where(lead, np.minimum(largest, high) - rng.integers(0, 4, count), largest)
        top = rng.random(count) < 0.5  # narrow formats have room only at the top
        largest = np.where(lead & top, high - rng.integers(0, 4, count), largest)
        half = np.where(lead, c.fraction + 1, half)
        far = np.where(lead & (rng.random(count) < 0.7), half + rng.integers(1, 10, count), far)
        below = [
            np.where(lead, 400, 0),
            np.where((rng.random(count) < 0.8) | lead, half, 400),
            np.where((rng.random(count) < 0.5) | lead, far, 400),
        ]
        for k in range(products):
            turn = (k - place) % products
            distance = np.choose(np.minimum(turn, 3), [*below, zero + 400])
            factors = self._single(distance, largest)
            self._set_product(chosen, k, [np.where(distance < 400, pattern, np.uint64(0)) for pattern in factors])
        exponent = np.where(lead, largest, largest - far)
        addend = pattern_of(c, rng.integers(0, 2, count), exponent + c.bias, np.zeros(count, dtype=np.uint64))
        there = lead | (below[2] == 400)
        self._set(chosen, 2 * products, np.where(there, addend, np.uint64(0)))

    def _single(self, distance: Lanes, largest: Lanes) -> tuple[Table, Table]:
        """Factors of one bit whose product lies `distance` below the exponent of the largest terms."""
        sign = np.where(distance > 0, self.rng.integers(0, 2, self.count), 0)
        return self._power(largest - distance, sign)

    def _power(self, exponent: Lanes, sign: Lanes) -> tuple[Table, Table]:
        """Factors of one bit whose product has a given exponent."""
        a, b, zero = self.a, self.b, np.zeros(self.count, dtype=np.uint64)
        least = np.maximum(exponent - b.emax, a.emin - a.fraction * a.subnormals)
        most = np.minimum(exponent - b.emin + b.fraction * b.subnormals, a.emax)
        part = np.clip(exponent // 2, least, most)
        left = pattern_of(a, sign, part + a.bias, zero)
        return left, pattern_of(b, zero.astype(np.int64), exponent - part + b.bias, zero)

    def _completions(self, largest: Lanes) -> None:
        """Change some rows: one product is just below a power of two, and two products are each half of the difference
        to that power. The exact sum is the power of two; a unit that cuts the halves off stays below it. Often the
        products are about the smallest subnormal result."""
        rng, count, products, a, b = self.rng, self.count, self.products, self.a, self.b
        if products < 3 or not a.fraction:
            return
        low, high = a.emin + b.emin + 1, a.emax + b.emax
        chosen, place = rng.random(count) < 0.1, rng.integers(0, products, count)
        smallest = np.clip(rng.choice([-150, -25], count), low, high)
        top = np.where(rng.random(count) < 0.6, smallest, largest)
        ones = rng.integers(1, a.fraction + 1, count)
        filled = (np.uint64(1) << ones.astype(np.uint64)) - np.uint64(1)
        fraction = filled << (np.uint64(a.fraction) - ones.astype(np.uint64))
        for k in range(products):
            turn = (k - place) % products
            distance = np.where(turn == 0, 0, np.where(turn < 3, ones + 1, 400))
            x, y = self._single(distance, top)
            x = np.where(turn == 0, x | (fraction << np.uint64(a.padding)), x)
            x = x & np.uint64((1 << a.field_width) - 1)
            self._set_product(chosen, k, [np.where(distance < 400, pattern, np.uint64(0)) for pattern in (x, y)])
        self._set(chosen, 2 * products, np.uint64(0))

    def _cancellations(self) -> None:
        """Change some rows: two large products cancel and leave a small term, which a unit may have cut off. They are
        often the largest products, since in narrow formats only these are far enough above a small term."""
        rng, count, products, a, b, c = self.rng, self.count, self.products, self.a, self.b, self.c
        if products < 2 or not a.has_negative_zero:
            return
        chosen, high = rng.random(count) < 0.1, a.emax + b.emax
        top = np.where(rng.random(count) < 0.6, high - rng.integers(0, 3, count), rng.integers(-6, high + 1, count))
        x, y = self._single(np.zeros(count, dtype=np.int64), top)
        full = rng.random(count) < 0.4  # significands of all ones, whose product is above 2
        plain = rng.random((2, count)) < 0.6  # powers of two
        for factor, fmt, index in ((x, a, 0), (y, b, 1)):
            ones = np.uint64(((1 << fmt.fraction) - 1) << fmt.padding)
            other = np.where(plain[index], np.uint64(0), self._fraction(fmt) << np.uint64(fmt.padding))
            np.bitwise_or(factor, np.where(full, ones, other), out=factor)
        x, y = np.minimum(x, np.uint64(a.largest)), np.minimum(y, np.uint64(b.largest))
        small = self._single(self._cutting(), top)
        first, step = rng.integers(0, products, count), rng.integers(1, products, count)
        third = (first + 2 * step + (2 * step == products)) % products
        near = rng.random(count) < 0.6  # the two large products are in one step of every published order
        first, step = np.where(near, first & ~1, first), np.where(near, 1, step)
        third = np.where(near, (first + np.where(products > 4, 4, 2)) % products, third)
        third = np.where(rng.random(count) < 0.5, third, -1)
        for k in range(products):
            kinds = [k == first, k == (first + step) % products, k == third]
            sides = (x, x ^ np.uint64(1 << a.field_width), small[0]), (y, y, small[1])
            self._set_product(chosen, k, [np.select(kinds, patterns, np.uint64(0)) for patterns in sides])
        addend = pattern_of(c, rng.integers(0, 2, count), top - self._cutting() + c.bias, self._fraction(c))
        self._set(chosen, 2 * products, np.where(third < 0, addend, np.uint64(0)))

    def _zeros(self) -> None:
        """Change some rows: all terms are zeros, of one sign or of both, except at most one of the smallest products,
        which may round to a zero with a sign."""
        rng, count, products = self.rng, self.count, self.products
        chosen, place = rng.random(count) < 0.04, rng.integers(-1, products, count)
        place = np.where(rng.random(count) < 0.3, 0, place)
        signs = rng.integers(0, 3, count)  # all +, all -, mixed
        for index, fmt in enumerate(self.layout.formats[: 2 * products + 1]):
            sign = np.where(signs < 2, signs * (index < products or index == 2 * products), rng.integers(0, 2, count))
            smallest = rng.integers(1, 4, count).astype(np.uint64) << np.uint64(fmt.padding)
            if not (fmt.has_negative_zero and fmt.subnormals):
                sign, smallest = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.uint64)
            patterns = np.where((place == index % products) & (index < 2 * products), smallest, np.uint64(0))
            patterns |= sign.astype(np.uint64) << np.uint64(fmt.field_width)
            self._set(chosen, index, patterns)

    def _smallest(self, rng: np.random.Generator) -> None:
        """Change some rows: the terms are half of the smallest result, or a run of ones just below it, and one or two
        small products, which a floor of the exponent may truncate. Successive rows have successive distances."""
        count, products, a, b, unit = self.count, self.products, self.a, self.b, self.c.unit
        if products < 4 or not a.fraction or unit <= a.emin + b.emin:
            return
        chosen = rng.random(count) < 0.06
        number = np.cumsum(chosen)
        halfway = number % 2 == 0
        place, chance = rng.integers(0, products, count), rng.random(count)
        place = np.where(chance < 0.4, place & ~3, place)  # so that the products are in one step
        place = np.where(chance > 0.6, products - 2, place)  # so that no sum follows that cuts bits off
        sign = rng.integers(0, 2, count) * a.has_negative_zero
        below = 1 + number // 2 % min(13, 2 * a.fraction + 2)  # places below the smallest result
        ones = np.where(halfway, 1, below)
        # the run of ones is the product (2^n - 1) * 1 or (2^n - 1)(2^n + 1), or the sum of two products (2^n - 1) * 1
        squared = (ones > a.fraction + 1) & (ones % 2 == 0) & (ones // 2 <= min(a.fraction, b.fraction))
        first = np.where(squared, ones // 2, np.minimum(ones, a.fraction + 1))
        second = np.where(squared, 0, ones - first)
        halves = number // 26 % 2 == 1  # each of two products is half of the difference
        last = np.where(halfway | halves, unit - 1 - below, unit - below)
        one = np.ones(count, dtype=np.int64)
        parts = [(first, squared, unit - one), (second, False, unit - 1 - first), (one, False, last),
                 (one * (halves & ~halfway), False, last)]  # fmt: skip
        for side in range(2 * products + 1):
            self._set(chosen, side, np.uint64(0))
        for index, (bits, plus, top) in enumerate(parts):
            at = (place + index - ((second == 0) & (index >= 2))) % products
            x, y = self._power(top, sign)
            x |= (self._ones(bits - 1) << self._place(a, bits - 1)) << np.uint64(a.padding)
            y |= np.where(plus, np.uint64(1) << self._place(b, bits) << np.uint64(b.padding), np.uint64(0))
            for k in range(products):
                self._set_product(chosen & (at == k) & (bits > 0), k, (x, y))

    @staticmethod
    def _ones(bits: Lanes) -> Table:
        return (np.uint64(1) << np.maximum(bits, 0).astype(np.uint64)) - np.uint64(1)

    @staticmethod
    def _place(fmt: Format, bits: Lanes) -> Table:
        """How far a bit is shifted left to be the last of the first `bits` fraction bits."""
        return np.clip(fmt.fraction - bits, 0, fmt.fraction).astype(np.uint64)

    def _cutting(self) -> Lanes:
        """Distances at which units cut bits off, mostly about the precision of f32."""
        rng, count = self.rng, self.count
        return np.where(rng.random(count) < 0.5, rng.integers(20, 29, count), rng.integers(6, FAR, count))
