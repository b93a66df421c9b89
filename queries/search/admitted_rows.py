"""Random and extreme inputs that restrictions admit. Extreme inputs have exponents at both ends of the range, fractions
of all ones or zeros, products that cancel, or an addend that cancels a product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmaprobe.queries.search.samples import FAR, Lanes, Table, pattern_of, with_raised
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.operands import Layout
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Sum
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.operand import NAMED


def admitted_rows(layout: Layout, inputs: Inputs, count: int, seed: int, bits: Sequence[int] = ()) -> Table:
    """Patterns of shape (count, columns of the layout), nearly all of which the restrictions admit. `bits`: how many
    places below the largest exponent units cut terms off."""
    rng = np.random.default_rng(seed)
    products = layout.length
    mode = rng.integers(0, 1 << 30, count)
    whole = inputs.products_below_two  # then every b is a power of two
    columns = [_operand_patterns(fmt, inputs, mode, rng, whole and products <= k < 2 * products)
               for k, fmt in enumerate(layout.formats[: 2 * products + 1])]  # fmt: skip
    if inputs.exponents is None:
        _cut_off(columns, layout, bits, rng)
    if not inputs.nonnegative:
        _cancel(columns, layout, rng)
    for (name, _), fmt in list(zip(layout.places, layout.formats, strict=False))[2 * products + 1 :]:
        if NAMED[name].is_drawn:
            columns.append(rng.integers(0, (1 << fmt.width) - 1, count, dtype=np.uint64, endpoint=True))
            continue
        scales = NAMED[name].is_factor
        columns.append(_scale(fmt, rng, count) if scales else _operand_patterns(fmt, inputs, mode, rng, whole=False))
    for index in inputs.zero_terms:
        for column in (index, products + index) if index < products else (2 * products,):
            columns[column] = np.zeros(count, dtype=np.uint64)
    return with_raised(layout, np.stack(columns, axis=1), rng)


def kept_bits(*models: Model) -> list[int]:
    """The numbers of fraction bits that the models' units keep."""
    sums = (node for model in models for node in of_kind(model.unit.result, Sum))
    return sorted({bits for node in sums for bits in node.bits_of_terms})


def _operand_patterns(fmt: Format, inputs: Inputs, mode: Lanes, rng: np.random.Generator, whole: bool) -> Table:
    """Patterns of one operand. `mode`: random bits for each row, which decide whether the row's exponents are spread,
    at the ends, or near one exponent, and whether its signs are all positive; `whole`: only powers of two."""
    count, window = len(mode), inputs.exponents
    low, high = (fmt.emin, fmt.emax) if window is None else (max(fmt.emin, window.min), min(fmt.emax, window.max))
    if low > high:
        return np.zeros(count, dtype=np.uint64)  # the restrictions may admit zeros alone
    anywhere = rng.integers(low, high + 1, count)
    ends = np.where(rng.random(count) < 0.5, low, high)
    near = np.clip((mode >> 8) % 13 - 6 + rng.integers(-2, 3, count), low, high)
    exponent = np.choose(mode % 4, [anywhere, ends, near, np.full(count, (low, high)[int(rng.integers(2))])])
    bits = rng.integers(0, 1 << fmt.fraction, count, dtype=np.uint64)
    most = np.uint64((1 << fmt.fraction) - 1)
    edge = rng.choice(np.array([0, 0, 1, most, max(int(most) - 1, 0), (int(most) + 1) >> 1], dtype=np.uint64), count)
    fraction = np.where(whole, np.uint64(0), np.where(rng.random(count) < 0.5, bits, edge))
    biased = exponent + fmt.bias
    if not (inputs.normal or window is not None or whole) and fmt.subnormals:
        biased = np.where(rng.random(count) < 0.08, -rng.integers(0, fmt.fraction + 1, count), biased)
    sign = np.where((mode >> 4) % 3 == 0, 0, rng.integers(0, 2, count)) * (fmt.signed and not inputs.nonnegative)
    patterns = pattern_of(fmt, sign, biased, fraction)
    chance = rng.random(count)
    if not inputs.finite:
        patterns = np.where(
            chance > 0.99, np.uint64(fmt.infinity), np.where(chance > 0.985, np.uint64(fmt.nan), patterns)
        )
    if not inputs.nonzero:
        zero = np.where((rng.random(count) < 0.3) & fmt.has_negative_zero, sign, 0).astype(np.uint64)
        patterns = np.where(chance < 0.15, zero << np.uint64(fmt.field_width), patterns)
    return patterns


def _cut_off(columns: list[Table], layout: Layout, bits: Sequence[int], rng: np.random.Generator) -> None:
    """Change some rows: one term becomes large; all other terms become positive, get all fraction bits, and lie at one
    distance below the large term."""
    products, count = layout.length, len(columns[0])
    a, b, c = layout.a, layout.b, layout.c
    chosen, large = rng.random(count) < 0.2, rng.integers(0, products + 1, count)
    top = np.clip(rng.integers(-4, 5, count), c.emin, min(c.emax, a.emax + b.emax))
    distance = rng.integers(0, FAR, count)
    if bits:
        distance = np.where(rng.random(count) < 0.6, rng.choice(bits, count) + rng.integers(-1, 3, count), distance)
    for k in range(products + 1):
        fmt = c if k == products else a
        exponent = np.where(large == k, top, top - distance)
        full = np.uint64((1 << fmt.fraction) - 1)
        other = np.clip(exponent // 2, b.emin, b.emax) * (k < products)
        term = pattern_of(fmt, np.zeros(count, dtype=np.int64), exponent - other + fmt.bias, np.full(count, full))
        place = 2 * products if k == products else k
        columns[place] = np.where(chosen, term, columns[place])
        if k < products:
            one = pattern_of(b, np.zeros(count, dtype=np.int64), other + b.bias, np.zeros(count, dtype=np.uint64))
            columns[products + k] = np.where(chosen, one, columns[products + k])


def _cancel(columns: list[Table], layout: Layout, rng: np.random.Generator) -> None:
    """Change some rows: the second product becomes the negated first product, exactly or with an a that is off by one
    last place; in some other rows c becomes a negated product."""
    products, count = layout.length, len(columns[0])
    chosen = rng.random(count) < 0.3
    a, b, c = layout.a, layout.b, layout.c
    if products > 1 and a.signed:
        last = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(a.padding)
        columns[1] = np.where(chosen & (columns[0] != 0), columns[0] ^ np.uint64(a.sign_bit) ^ last, columns[1])
        columns[products + 1] = np.where(chosen, columns[products], columns[products + 1])
    kinds = {"f32": np.float32, "f16": np.float16, "f64": np.float64}
    if c.name in kinds:
        chosen, which = rng.random(count) < 0.3, int(rng.integers(products))
        with np.errstate(over="ignore", invalid="ignore"):
            value = in_f64(columns[which], a) * in_f64(columns[products + which], b)
            number = (-value).astype(kinds[c.name])
        written = chosen & np.isfinite(number) & (number != 0)
        columns[-1] = np.where(written, number.view(f"u{number.itemsize}").astype(np.uint64), columns[-1])


def _scale(fmt: Format, rng: np.random.Generator, count: int) -> Table:
    """Patterns of scale factors, mostly about one."""
    near = np.minimum(np.uint64(fmt.one) + rng.integers(0, 3, count).astype(np.uint64), np.uint64(fmt.largest))
    return np.where(rng.random(count) < 0.7, near, rng.integers(0, fmt.largest + 1, count, dtype=np.uint64))
