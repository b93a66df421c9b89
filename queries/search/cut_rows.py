"""Inputs whose largest terms cancel exactly, so that what an alignment cuts off far below them decides the result.

Two terms of a fused sum cancel. The others lie about the last place that the sum keeps below these two: one just below
it, which is cut off, and of any sign; one or two at or above it, at the places at which the result is rounded. Random
terms seldom cancel, and more seldom leave the rest in reach of the result's last place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmaprobe.queries.search.samples import Lanes, Table, pattern_of, with_ones, with_raised
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.operands import Layout

HIGHEST = 0.6  # the share of rows whose largest terms are about the largest products
ALONE = 0.25  # the share of rows with one term beside those that cancel, whose bits lie about the last place
ONE_STEP = 0.7  # the share of rows whose terms are in one step of the unit
IN_ADDEND = 0.25  # the share of rows in which the addend is one of the terms below
POWERS = 0.6  # the share of terms that are powers of two


def cut_rows(
    layout: Layout, result: Format, bits: Sequence[int], count: int, steps: Sequence[Sequence[int]] = (), seed: int = 1
) -> Table:
    """Rows (count x columns of the layout) with two products that cancel, and one to three terms about the last place
    kept below them. `bits`: how many places units keep below the largest exponent; `steps`: the products of each step.
    Empty where nothing is cut, for integers, and where no two products cancel or nothing else is added."""
    n, a, b, c = layout.length, layout.a, layout.b, layout.c
    terms, integers = n + layout.addend, any(fmt.is_integer for fmt in (a, b, c, result))
    if not bits or integers or not (a.signed or b.signed) or n < 2 or terms < 3:
        return np.zeros((0, len(layout.names)), dtype=np.uint64)
    rng, rows = np.random.default_rng(seed), np.arange(count)
    table = np.zeros((count, layout.columns), dtype=np.uint64)
    most, least, kept = a.emax + b.emax, a.unit + b.unit, rng.choice(np.asarray(bits), count)
    low = np.clip(least + kept + 1, a.emin + b.emin, most)  # below this, no product is below the last place kept
    high = np.maximum(most - rng.integers(0, 3, count), low)
    top = np.where(rng.random(count) < HIGHEST, high, rng.integers(low, most + 1))
    last = top - kept
    cut = last - rng.choice(3, count, p=(0.6, 0.2, 0.2)) - 1
    alone = (rng.random(count) < ALONE) | (terms == 3)
    places = (last, result.unit - 1, cut + result.precision - 1, rng.integers(last, top + 1))
    above = np.choose(rng.integers(0, len(places), count), places) + rng.integers(0, 4, count)
    half = above - result.precision + rng.integers(-1, 2, count)
    about = last + rng.integers(-2, a.fraction + b.fraction + 2, count)
    order = _order(rng, n, count, steps)

    def form(exponent: Lanes, powers: float = POWERS) -> tuple[Table, Table]:
        own = np.clip(exponent // 2 + rng.integers(-3, 4, count), exponent - b.emax, exponent - b.unit)
        own = np.clip(own, a.unit, a.emax)
        plain, sign = rng.random(count) < powers, rng.integers(0, 2, count)
        sides = []
        for fmt, power, signed in ((a, own, a.signed), (b, exponent - own, not a.signed)):
            fraction = rng.integers(0, 1 << fmt.fraction, count, dtype=np.uint64)
            sides.append(pattern_of(fmt, sign * signed, power + fmt.bias, np.where(plain, np.uint64(0), fraction)))
        return sides[0], sides[1]

    def put(place: int, left: Table, right: Table, there: Table | bool = True) -> None:
        for side, pattern in ((0, left), (n, right)):
            table[rows, side + order[:, place]] = np.where(there, pattern, np.uint64(0))

    x, y = form(top, 0.4)
    put(0, x, y)
    put(1, x ^ np.uint64(a.sign_bit if a.signed else 0), y ^ np.uint64(0 if a.signed else b.sign_bit))
    some = rng.random(count) < 0.5
    below = [(np.where(alone, about, cut), np.full(count, True)), (above, ~alone), (half, ~alone & some)]
    moved = np.where(rng.random(count) < IN_ADDEND, rng.integers(0, 3, count), -1)  # into the addend
    moved = np.where(n == 2, 0, moved)
    for place, (exponent, there) in enumerate(below):
        if place + 2 < n:
            put(place + 2, *form(exponent), there & (moved != place))
        if layout.addend:
            fraction = rng.integers(0, 1 << c.fraction, count, dtype=np.uint64) * (rng.random(count) > POWERS)
            addend = pattern_of(c, rng.integers(0, 2, count), exponent + c.bias, fraction)
            table[:, 2 * n] = np.where(there & (moved == place), addend, table[:, 2 * n])
    return with_raised(layout, with_ones(layout, table), rng)


def _order(rng: np.random.Generator, n: int, count: int, steps: Sequence[Sequence[int]]) -> Table:
    """The products of each row in random order, in most rows those of one step first."""
    own = [np.isin(np.arange(n), step) for step in steps]
    first = np.stack([*own, np.full(n, True)])
    which = np.where(rng.random(count) < ONE_STEP, rng.integers(0, len(first), count), len(own))
    return np.argsort(rng.random((count, n)) - first[which], axis=1).astype(np.uint64)
