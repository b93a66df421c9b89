"""Special values in pairs of places: two special values together may change a result in a way that neither does
alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.operands import Layout

# shares in turns after the first one
ORDINARY = 0.5  # share of the other places of i and j that hold 1; the rest hold zeros and special values, half of each
FULL = 0.5  # share of the rows whose other products have factors 1, not 0


def of_both_signs(patterns: Sequence[int], fmt: Format) -> list[int]:
    """Patterns, then the same with the sign bit where the format has one; each once."""
    return list(dict.fromkeys([*patterns, *(pattern | fmt.sign_bit for pattern in patterns)]))


def special_values(fmt: Format) -> list[int]:
    """Patterns of zeros, NaNs (signalling and quiet, several payloads), infinities, the largest number, the smallest
    and the largest subnormal number, and 1; each with both signs where the format has them."""
    fields = [0, fmt.largest_field, 1, (1 << fmt.fraction) - 1, fmt.one >> fmt.padding]
    if fmt.has_infinity:
        fields.append(fmt.infinity_field)
    if fmt.has_nan and not fmt.nan_for_negative_zero:
        last = (1 << fmt.exponent + fmt.fraction) - 1
        fields += [fmt.last_field + 1, min(fmt.last_field + (1 << max(fmt.fraction - 1, 0)), last), last]
    return of_both_signs([field << fmt.padding for field in fields], fmt)


def special_rows(layout: Layout, turns: int, most: int | None = None) -> Table:
    """Rows with every pair of special values in every pair of the places a_i, b_i, a_j, b_j, c, and the scale factors
    of i: `turns` rows for each. i and j are in turn the first, a middle and the last product. In the first turn the
    other factors of these products are 1, and all other products are zero. In further turns these factors are 1, 0 or
    special values, and the other products are all zero or all 1. `most`: the number of rows, chosen at random if there
    are more."""
    chance, n = np.random.default_rng(1), layout.length
    ends = list(dict.fromkeys((0, n // 2, n - 1)))
    places = np.array([_places(layout, i, j) for i in ends for j in ends if i != j or n == 1])
    pairs = combinations(range(places.shape[1]), 2)
    rows = np.concatenate([
        _pairs(layout, turn, one, other, places, chance) for one, other in pairs for turn in range(turns)
    ])  # fmt: skip
    return rows if most is None or len(rows) <= most else chance.permutation(rows)[:most]


def _places(layout: Layout, i: int, j: int) -> list[int]:
    """The columns of a_i, b_i, a_j, b_j and c, and of the scale factors of i."""
    n, scales = layout.length, layout.scales
    first = 2 * n + 1 + (i * scales // n)
    return [i, n + i, *([j, n + j] if i != j else []), 2 * n, *([first, first + scales] if scales else [])]


def _pairs(
    layout: Layout, turn: int, one: int, other: int, places: NDArray[np.int64], chance: np.random.Generator
) -> Table:
    """A row for each pair of special values in two of the places, by their numbers in `_places`; none where one place
    is c and the device has no addend."""
    n, formats = layout.length, layout.formats
    if not layout.addend and 2 * n in places[0, [one, other]]:
        return np.zeros((0, len(formats)), dtype=np.uint64)
    values = [np.array(special_values(formats[column]), dtype=np.uint64) for column in places[0]]
    first, second = np.repeat(values[one], len(values[other])), np.tile(values[other], len(values[one]))
    count, ones = len(first), np.array([fmt.one for fmt in formats], dtype=np.uint64)
    rows, own = np.arange(count), places[np.arange(turn, turn + count) % len(places)]
    table = np.zeros((count, len(formats)), dtype=np.uint64)
    table[:, 2 * n + 1 :] = ones[2 * n + 1 :]
    if turn:
        table[np.ix_(chance.random(count) < FULL, np.arange(2 * n))] = ones[: 2 * n]
    for place, column in enumerate(own.T):
        is_c = column[0] == 2 * n
        if not is_c:
            table[rows, column] = ones[column]
        if turn and (layout.addend or not is_c):
            some = rows[chance.random(count) >= ORDINARY]
            drawn = chance.choice(values[place], len(some)) * chance.integers(0, 2, len(some), dtype=np.uint64)
            table[some, column[some]] = drawn
    table[rows, own[:, one]], table[rows, own[:, other]] = first, second
    return table
