"""Searches for inputs on which a result falls, by evaluation alone, on rows constructed for a fall.

A sum that truncates its terms at a distance below the largest exponent falls if the raised operand increases that
exponent while its value hardly rises, and the truncation at the higher place removes something from the other terms.
Such rows are built: the raised operand takes two neighbouring values whose exponents differ, and all other terms are at
the truncation distance. No solver is needed, and nothing is claimed if no row falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.questions.statements import Monotonic
from mmaprobe.queries.search.samples import Lanes, Table, pattern_of, sample_rows, with_signs
from mmaprobe.queries.search.witness import Witness, confirmed_witness, replay, shrink
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Sum
from mmaprobe.smtmodel.nodes.node import of_kind

Reals = NDArray[np.float64]

ROWS = 4096  # rows of each kind
PAIRS = 1 << 20  # products from which neighbours in value are taken
SPREAD = 4  # binary orders of magnitude of the raised product; subnormal factors reach all of them
NEAR = (-10, 20)  # exponents of sums
SEEDS = 4
FULL = 0.3  # the share of the other terms that have all fraction bits set


def find_fall(problem: Monotonic) -> Witness | None:
    """A replayed and shrunk input on which the result falls, or None."""
    for seed in range(1, SEEDS + 1):
        rng = np.random.default_rng(seed)
        tables = [sample_rows(problem.layout, ROWS, seed), _shaped(problem, rng), *_carried(problem, rng)]
        tables += [_shaped(problem, rng, beside=True)] if problem.raised is None else []
        for table in tables:
            differing = table[np.flatnonzero(replay(problem, table).differs)[:3]]
            if len(differing):
                simplest = min((tuple(map(int, row)) for row in differing), key=np.count_nonzero)
                return confirmed_witness(problem, shrink(problem, simplest))
    return None


def _shaped(problem: Monotonic, rng: np.random.Generator, beside: bool = False) -> Table:
    """Rows in which the raised operand changes the largest exponent and the other terms are at the truncation distance.
    With `beside`, one other term is just below the raised operand and has the other sign: the two cancel, so that the
    truncated bits may decide a result of few bits."""
    model, k, count = problem.left, problem.raised, problem.length
    columns = [np.zeros(ROWS, dtype=np.uint64) for _ in problem.layout.formats]
    if k is None:
        (before, after), highest, sign = _neighbours(model.c, rng)
        columns[2 * count], columns[-1] = before, after
    else:
        factors, highest, sign = _close_products(problem, rng)
        columns[k], columns[count + k], columns[-2], columns[-1] = factors
    bits = _kept(model)
    # distances around the higher truncation; a row has one distance for all terms, or one for each
    distance = bits + rng.integers(-3, 4, ROWS)
    scale = _scale(problem, columns, highest - distance if k is None else 0 * highest)
    scattered = rng.random(ROWS) < 0.3
    same = np.where(rng.random(ROWS) < 0.7, sign, 1 - sign)
    for other in range(count):
        if other == k:
            continue
        near = beside and other == 0
        signs = 1 - sign if near else same
        below = np.where(scattered, bits + rng.integers(-3, 4, ROWS), distance)
        exponent = highest - (1 if near else below) - scale
        left = np.clip(exponent // 2, model.a.emin, model.a.emax)
        left = np.clip(left, exponent - model.b.emax, exponent - model.b.emin)
        columns[other] = _power(model.a, left, signs, rng.random(ROWS) < FULL)
        columns[count + other] = _power(model.b, exponent - left, None, rng.random(ROWS) < FULL)
    if k is not None:
        columns[2 * count] = _power(model.c, highest - distance, same, rng.random(ROWS) < FULL)
    return np.stack(columns, axis=1)


def _scale(problem: Monotonic, columns: list[Table], wanted: Lanes) -> Lanes:
    """Set all scales to powers of two such that each pair of scales multiplies a product by about 2^wanted. Returns the
    exponent of the actual factor (0 for a model without scales)."""
    fmt, count = problem.left.scale, problem.layout.scales
    if fmt is None:
        return 0 * wanted
    first = np.clip(wanted // 2, fmt.emin, fmt.emax)
    second = np.clip(wanted - first, fmt.emin, fmt.emax)
    for place in range(2 * problem.length + 1, 2 * problem.length + 1 + 2 * count):
        columns[place] = _power(fmt, first if place <= 2 * problem.length + count else second)
    total: Lanes = first + second
    return total


def _carried(problem: Monotonic, rng: np.random.Generator) -> list[Table]:
    """Rows in which the raised product lifts its step's result from the number below a power of two to that power, and
    the next step's products are at the truncation distance."""
    model, count, k, precision = problem.left, problem.length, problem.raised, problem.left.d.precision
    lowest = model.a.emin + model.b.unit + precision
    lowest, highest = max(lowest, NEAR[0]), min(model.a.emax + model.b.emax, NEAR[1])
    step = next((step for step, block in enumerate(model.blocks[:-1]) if k in block), None)
    if k is None or step is None or lowest >= highest:
        return []
    columns = [np.zeros(ROWS, dtype=np.uint64) for _ in problem.layout.formats]
    power, none, width = rng.integers(lowest, highest, ROWS), np.zeros(ROWS, dtype=np.int64), model.a.fraction + 1
    ones = [(other, power - 1 - width * place, precision - width * place) for place, other in enumerate(
        other for other in model.blocks[step] if other != k
    )]  # fmt: skip
    for other, exponent, wanted in ones:
        if wanted > 0:
            left = np.clip(exponent // 2, model.a.emin, model.a.emax)
            fraction = ((1 << min(wanted, width)) - 1 << max(width - wanted, 0)) & ((1 << model.a.fraction) - 1)
            fields = ((left + model.a.bias) << model.a.fraction) + fraction
            columns[other] = with_signs(model.a, none, np.minimum(fields, model.a.largest_field).astype(np.uint64))
            columns[count + other] = _power(model.b, exponent - left)
    distance = _kept(model) + rng.integers(-3, 4, ROWS)
    risen = [
        (len(columns) - 2, power - precision),
        *((other, power - distance) for other in model.blocks[step + 1]),
    ]
    tie = int(rng.integers(0, len(risen) - 1)) + 1  # one other term may bring the sum next to a tie
    risen[tie] = (
        risen[tie][0],
        np.where(rng.random(ROWS) < 0.5, power - precision + rng.integers(-1, 2, ROWS), risen[tie][1]),
    )
    for place, exponent in risen:
        left = np.clip(exponent // 2, model.a.unit, model.a.emax)
        columns[place] = _power(model.a, left)
        columns[place + (1 if place == len(columns) - 2 else count)] = _power(model.b, exponent - left)
    return [np.stack(columns, axis=1)]


def _kept(model: Model) -> int:
    """The fewest bits that a sum of the unit keeps below its largest term; the precision of d if no sum cuts its
    terms."""
    counts = [bits for node in of_kind(model.unit.result, Sum) for bits in node.bits_of_terms]
    return min(counts, default=model.d.precision)


def _power(fmt: Format, exponent: Lanes, sign: Lanes | None = None, full: NDArray[np.bool_] | bool = False) -> Table:
    """Patterns of powers of two, subnormal where the exponent requires a subnormal number; where `full`, normal
    patterns have all fraction bits set."""
    least = fmt.unit if fmt.subnormals else fmt.emin
    fraction = np.where(full & (exponent >= fmt.emin), np.uint64((1 << fmt.fraction) - 1), np.uint64(0))
    return pattern_of(fmt, 0 * exponent if sign is None else sign, np.maximum(exponent, least) + fmt.bias, fraction)


def _neighbours(fmt: Format, rng: np.random.Generator) -> tuple[tuple[Table, Table], Lanes, Lanes]:
    """A power of two and the number below it, in rising order; the exponent of the power, and the sign."""
    lowest, highest = min(fmt.emin + 1, fmt.emax), fmt.emax
    near = rng.integers(-8, 9, ROWS)
    exponent = np.where(rng.random(ROWS) < 0.5, near, rng.integers(lowest, highest + 1, ROWS))
    exponent = np.clip(exponent, lowest, highest)
    power = ((exponent + fmt.bias) << fmt.fraction).astype(np.uint64)
    sign = rng.integers(0, 2, ROWS)
    small, large = with_signs(fmt, sign, power - np.uint64(1)), with_signs(fmt, sign, power)
    return (np.where(sign == 0, small, large), np.where(sign == 0, large, small)), exponent, sign


def _close_products(problem: Monotonic, rng: np.random.Generator) -> tuple[list[Table], Lanes, Lanes]:
    """The factors of pairs of products with close values whose exponents (the sums of the factors' exponents) differ;
    the larger exponent; and the sign for the other terms."""
    a, b, normal = problem.left.a, problem.left.b, problem.inputs.normal
    top = min(0, a.emax + b.emax)
    top = top if normal else min(top, b.emax + a.unit, a.emax + b.unit)
    value = max(top - int(rng.integers(0, SPREAD)), a.emin + b.emin)
    left, right, nominal, small, large = _closest(a, b, normal, value)
    if not len(small):
        zero = np.zeros(ROWS, dtype=np.int64)
        return [zero.astype(np.uint64)] * 4, zero, zero
    chosen = rng.integers(0, len(small), ROWS)
    sign = rng.integers(0, 2, ROWS)
    before = np.where(sign == 0, small[chosen], large[chosen])
    after = np.where(sign == 0, large[chosen], small[chosen])
    none = np.zeros(ROWS, dtype=np.int64)
    factors = [
        with_signs(a, sign, left[before].astype(np.uint64)), with_signs(b, none, right[before].astype(np.uint64)),
        with_signs(a, sign, left[after].astype(np.uint64)), with_signs(b, none, right[after].astype(np.uint64)),
    ]  # fmt: skip
    # where the smaller magnitude has the larger exponent, the other terms need the other sign to make the sum fall
    turned = (nominal[before] > nominal[after]) ^ (sign == 1)
    return factors, np.maximum(nominal[before], nominal[after]), np.where(turned, 1 - sign, sign)


@lru_cache(maxsize=2 * SPREAD)
def _closest(a: Format, b: Format, normal: bool, value: int) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes]:
    """Magnitudes of factors, the exponents of their products, and the indices of pairs of these products whose
    exponents differ and whose values are the closest, the smaller one first."""
    left, right, products, nominal = map(np.concatenate, zip(*_pairs(a, b, normal, value), strict=True))
    small, large = _neighbouring(products, nominal)
    gap = (products[large] - products[small]) * np.exp2(-np.maximum(nominal[small], nominal[large]).astype(np.float64))
    closest = np.argsort(gap, kind="stable")[:ROWS]
    places, where = np.unique(np.r_[small[closest], large[closest]], return_inverse=True)
    return left[places], right[places], nominal[places], where[: len(closest)], where[len(closest) :]


def _neighbouring(products: Reals, nominal: Lanes) -> tuple[Lanes, Lanes]:
    """Pairs of indices of neighbouring values, the smaller value first: the lowest exponent of each value with the
    highest exponent of the next value, and the highest with the lowest, where both exponents differ."""
    order = np.lexsort((nominal, products))
    new = np.flatnonzero(np.diff(products[order], prepend=-1.0) > 0)  # the first place of each value
    lowest, highest = order[new], order[np.r_[new[1:], len(order)][: len(new)] - 1]
    small = np.concatenate((lowest[:-1], highest[:-1]))
    large = np.concatenate((highest[1:], lowest[1:]))
    good = (nominal[small] != nominal[large]) & (products[small] > 0)
    return small[good], large[good]


def _pairs(a: Format, b: Format, normal: bool, value: int) -> Iterator[tuple[Lanes, Lanes, Reals, Lanes]]:
    """Magnitudes of factors, one of which may be subnormal, with their products, between 2^value and 2^(value + 2), and
    the sums of their exponents (as the unit sees them: subnormals have no hidden bit)."""
    for x, y in _significands(a, b, normal):
        magnitude = np.floor(np.log2(x)).astype(np.int64) + np.floor(np.log2(y)).astype(np.int64)
        for more in (0, 1):
            total = value + more - magnitude + a.fraction + b.fraction
            first = np.clip(total // 2, np.maximum(a.emin, total - b.emax), np.minimum(a.emax, total - b.emin))
            first = np.where(y >> b.fraction == 0, total - b.emin, first)
            first = np.where(x >> a.fraction == 0, a.emin, first)
            second = total - first
            fields = _joined(a, x, first), _joined(b, y, second)
            kept = (first >= a.emin) & (first <= a.emax) & (second >= b.emin) & (second <= b.emax)
            kept &= (fields[0] <= a.largest_field) & (fields[1] <= b.largest_field)
            products = x.astype(np.float64) * y * np.exp2((total - a.fraction - b.fraction).astype(np.float64))
            yield fields[0][kept], fields[1][kept], products[kept], total[kept]


def _significands(a: Format, b: Format, normal: bool) -> Iterator[tuple[Lanes, Lanes]]:
    """Pairs of significands as integers: both of normal numbers, or one of a subnormal number; all pairs, or PAIRS
    random pairs."""
    rng = np.random.default_rng(1)
    for low_a, low_b in ((False, False), (True, False), (False, True)):
        if any(low and (normal or not fmt.subnormals or not fmt.fraction) for low, fmt in ((low_a, a), (low_b, b))):
            continue
        ranges = [
            (1, 1 << fmt.fraction) if low else (1 << fmt.fraction, 2 << fmt.fraction)
            for low, fmt in ((low_a, a), (low_b, b))
        ]
        if a.fraction + b.fraction > PAIRS.bit_length() - 1:
            left, right = (rng.integers(*edges, PAIRS) for edges in ranges)
            yield left, right
        else:
            grid = np.meshgrid(*(np.arange(*edges, dtype=np.int64) for edges in ranges))
            yield grid[0].ravel(), grid[1].ravel()


def _joined(fmt: Format, significand: Lanes, exponent: Lanes) -> Lanes:
    """The fields of numbers with these significands (below 2^fraction for subnormals) and exponents."""
    hidden = significand >> fmt.fraction
    fraction = significand & ((1 << fmt.fraction) - 1)
    fields: Lanes = np.where(hidden == 1, ((exponent + fmt.bias) << fmt.fraction) + fraction, fraction)
    return fields
