"""The stages of a fused dot product, in the order in which a unit goes through them.

decode -> products -> exponents -> align at the maximum -> fused sum -> normalise, round and pack -> special values
(Xie et al. 2026, Algorithm 7; Valpey et al. 2025, Algorithm 1). Each stage is a function of the signals before it and
of the accumulator's parameters, and names its signals in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smtmodel import ieee
from smtmodel.accumulator import Accumulator
from smtmodel.algebra import (
    Bit,
    Bits,
    all_of,
    any_of,
    choose,
    constant,
    max_of,
    select,
    truth,
)
from smtmodel.alignment import align, magnitude_of, place_all, reaches, total_of
from smtmodel.decode import Exponent, Term, Unpacked, multiply, unpack
from smtmodel.formats import Format
from smtmodel.ieee import infinities, product_specials, round_term, sum_two, with_specials, zero_sign
from smtmodel.rounding import Target, round_and_pack
from smtmodel.trace import Trace

DECODE = frozenset({"flush_inputs", "input_zeros"})
PRODUCT = DECODE | {
    "product",
    "product_rounding",
    "product_overflow",
    "grouping",
    "group",
    "scale_format",
    "scale_block",
}
MAXIMUM = PRODUCT | {"length", "block", "block_order", "exponent_floor", "floor_applies_to", "addend", "partials"}
ALIGNED = MAXIMUM | {"operation", "fraction_bits", "align_rounding"}
LATE = frozenset({"late_fraction_bits", "late_sum_bits", "late_rounding", "late_small_addend"})
SUM = ALIGNED | LATE | {"carry_bits"}
RESULT = SUM | {"output", "output_rounding", "overflow", "flush_outputs", "zero_sign", "nan"}


def unpack_input(accumulator: Accumulator, pattern: Bits, fmt: Format) -> Unpacked:
    """An element or an addend as the unit reads it."""
    return unpack(pattern, fmt, accumulator.flush_inputs, accumulator.input_zeros == "positive")


def form_product(accumulator: Accumulator, left: Unpacked, right: Unpacked) -> Unpacked:
    """The product of two elements as the unit forms it: exact, normalised, or rounded to a format."""
    exact = multiply(left.term, right.term)
    is_nan, is_infinite = product_specials(left, right)
    is_zero = left.is_zero | right.is_zero
    formed, fmt = exact, accumulator.product_format
    if accumulator.product == "normalised":
        formed = exact.normalised()
    elif fmt is not None:
        rounded = unpack(round_term(exact, Target(fmt, accumulator.product_rounding)), fmt)
        formed, is_zero = rounded.term, is_zero | rounded.is_zero
        is_infinite = is_infinite | rounded.is_infinite
    limit = accumulator.product_overflow
    if limit is not None:
        is_infinite = is_infinite | (reaches(formed, limit) & ~(is_zero | is_nan))
    return Unpacked(formed, is_zero, is_infinite, is_nan)


def scale_product(product: Unpacked, left: Unpacked, right: Unpacked) -> Unpacked:
    """A product, or a group's sum, times its two scale factors: exponents added, significands multiplied
    (Xie et al. 2026, Algorithms 8 and 9)."""
    scale = multiply(left.term, right.term)
    is_zero = product.is_zero | left.is_zero | right.is_zero
    is_nan = product.is_nan | left.is_nan | right.is_nan | (product.is_infinite & (left.is_zero | right.is_zero))
    return Unpacked(multiply(product.term, scale), is_zero, product.is_infinite, is_nan)


def group_sum(products: Sequence[Unpacked], name: str, trace: Trace) -> Unpacked:
    """The exact dot product of one group in fixed point, as a term of exponent zero (Algorithm 9, line 3). It counts as
    a zero, for the alignment, if all its products are zero, not if they cancel."""
    magnitudes, low = place_all([product.term for product in products])
    signs = [product.sign for product in products]
    total = total_of(signs, magnitudes, None)
    exponent = Exponent(constant(total.carrier, 0, 1), 0, 0)
    trace.number(f"group[{name}]", total, exponent.offset(low), PRODUCT, is_signed=True)
    negative, magnitude = magnitude_of(total)
    sign = choose(magnitude.any(), negative, zero_sign(signs, "nearest_even"))
    is_nan, positive, minus = specials(products)
    term = Term(sign, magnitude, exponent, -low)
    return Unpacked(term, all_of([item.is_zero for item in products]), positive ^ minus, is_nan | (positive & minus))


@dataclass(frozen=True)
class Sum:
    """The finished sum: (-1)^negative * magnitude * 2^unit. `sign` is the sign that the result will carry."""

    sign: Bit
    magnitude: Bits
    unit: Exponent


def max_exponent(
    accumulator: Accumulator, items: Sequence[Unpacked], names: Sequence[str] = (), trace: Trace | None = None
) -> Exponent:
    """The largest exponent of the nonzero terms and, by the reading chosen, of the floor.

    Terms whose exponent must not count enter as the smallest exponent there is, which no sum can notice: if every
    term is zero the sum is zero at any scale.
    """
    counted = counted_exponents(accumulator, items)
    if trace is not None:
        for name, exponent in zip(names, counted, strict=True):
            trace.exponent(f"term[{name}].exponent", exponent, MAXIMUM)
    low, high, exponents = counted[0].low, counted[0].high, [exponent.bits for exponent in counted]
    floor, carrier, width = floor_of(accumulator, items), exponents[0].carrier, exponents[0].width
    if floor is not None and accumulator.floor_applies_to == "maximum":
        exponents.append(constant(carrier, floor - low, width))
    return Exponent(max_of(exponents), low, high)


def counted_exponents(accumulator: Accumulator, items: Sequence[Unpacked]) -> list[Exponent]:
    """The exponents with which terms enter the maximum, on one scale."""
    floor, zero = floor_of(accumulator, items), zero_exponent(accumulator, items)
    lows = [item.term.exponent.low for item in items] + ([] if floor is None else [floor])
    highs = [item.term.exponent.high for item in items] + ([] if floor is None else [floor])
    low, high = min(lows), max(highs)
    width = max(1, (high - low).bit_length())
    absent = constant(items[0].sign.carrier, 0 if zero is None else zero - low, width)
    own = [select(item.is_zero, absent, item.term.exponent.rebased(low, width)) for item in items]
    return [Exponent(exponent, low, high) for exponent in own]


def floor_of(accumulator: Accumulator, items: Sequence[Unpacked]) -> int | None:
    """The floor, where it can cut off any bit."""
    return accumulator.exponent_floor if floor_matters(accumulator, items) else None


def zero_exponent(accumulator: Accumulator, items: Sequence[Unpacked]) -> int | None:
    """The exponent with which a zero enters the maximum; None for the smallest that there is."""
    return None if accumulator.floor_applies_to == "maximum" else floor_of(accumulator, items)


def floor_matters(accumulator: Accumulator, items: Sequence[Unpacked]) -> bool:
    """Whether the floor can cut off any bit. It cannot where no term's exponent is ever below it; nor where its last
    kept place lies at or below the last place of every term, so that raising the maximum to the floor changes no
    aligned value (only a sum that wraps could tell)."""
    floor, bits = accumulator.exponent_floor, accumulator.fraction_bits
    if floor is None or floor <= min(item.term.exponent.least for item in items):
        return False
    if bits == "exact" or accumulator.carry_bits != "exact" or accumulator.addend == "late":
        return True
    return floor - bits > min(item.term.exponent.least - item.term.fraction for item in items)


def _signed_sum(accumulator: Accumulator, items: Sequence[Unpacked], total: tuple[Bit, Bits], unit: Exponent) -> Sum:
    negative, magnitude = total
    if accumulator.zero_sign != "ieee":
        return Sum(negative, magnitude, unit)
    of_zero = zero_sign([item.sign for item in items], accumulator.output_rounding)
    return Sum(choose(magnitude.any(), negative, of_zero), magnitude, unit)


def _exact_sum(accumulator: Accumulator, items: Sequence[Unpacked], names: Sequence[str], trace: Trace) -> Sum:
    """The sum without any loss: two terms with a sticky bit, more in fixed point over the whole range."""
    if len(items) == 2:
        negative, magnitude, unit = sum_two(items[0].term, items[1].term, accumulator.output_format.precision)
        return _signed_sum(accumulator, items, (negative, magnitude), unit)
    placed, low = place_all([item.term for item in items])
    unit = Exponent(constant(items[0].sign.carrier, 0, 1), low, low)
    for name, magnitude in zip(names, placed, strict=True):
        trace.number(f"placed[{name}]", magnitude, unit, ALIGNED)
    total = total_of([item.sign for item in items], placed, None)
    trace.number("sum", total, unit, SUM, is_signed=True)
    return _signed_sum(accumulator, items, magnitude_of(total), unit)


def fused_sum(accumulator: Accumulator, items: Sequence[Unpacked], names: Sequence[str], trace: Trace) -> Sum:
    """Align the terms at the maximum exponent and add them, without normalising on the way."""
    trace.enter(names, items)
    if accumulator.exact_sum:
        result = _exact_sum(accumulator, items, names, trace)
    else:
        fraction_bits, rounding = accumulator.fraction_bits, accumulator.align_rounding
        assert fraction_bits != "exact"
        assert rounding != "sticky"
        maximum = max_exponent(accumulator, items, names, trace)
        trace.exponent("max_exponent", maximum, MAXIMUM)
        unit = maximum.offset(-fraction_bits)
        aligned = [align(item.term, maximum, fraction_bits, rounding) for item in items]
        for name, item, magnitude in zip(names, items, aligned, strict=True):
            term = item.term
            trace.flag(f"term[{name}].sign", term.sign, PRODUCT)
            trace.number(f"term[{name}]", term.significand, term.exponent.offset(-term.fraction), PRODUCT)
            trace.number(f"aligned[{name}]", magnitude, unit, ALIGNED)
        carry = accumulator.carry_bits
        width = None if carry == "exact" else fraction_bits + 2 + carry
        total = total_of([item.sign for item in items], aligned, width)
        trace.number("sum", total, unit, SUM, is_signed=True)
        result = _signed_sum(accumulator, items, magnitude_of(total), unit)
    trace.flag("sum.negative", result.sign, SUM)
    trace.number("sum.magnitude", result.magnitude, result.unit, SUM)
    return result


def _as_item(total: Sum, fraction_bits: int, items: Sequence[Unpacked]) -> Unpacked:
    """A finished sum as a term of the next one. It counts as zero, for the alignment, if all its terms are zero."""
    no = truth(total.sign.carrier, False)
    term = Term(total.sign, total.magnitude, total.unit.offset(fraction_bits), fraction_bits)
    return Unpacked(term, all_of([item.is_zero for item in items]), no, no)


def _join(
    accumulator: Accumulator,
    items: Sequence[Unpacked],
    keep: Sequence[int],
    names: Sequence[str],
    trace: Trace,
    cut_last: bool = False,
) -> Sum:
    """Align finished sums, and an addend, at their maximum, each with so many fraction bits kept, and add them.

    `cut_last`: the last term vanishes if its exponent is more than its fraction bits + 1 below the maximum.
    """
    trace.enter(names, items)
    maximum = max_exponent(accumulator, items)
    trace.exponent("max_exponent", maximum, SUM)
    finest = max(keep)
    aligned = []
    for item, bits in zip(items, keep, strict=True):
        aligned.append(align(item.term, maximum, bits, accumulator.late_rounding).pad(finest - bits))
    if cut_last:
        width = maximum.bits.width
        distance = maximum.bits - items[-1].term.exponent.rebased(maximum.low, width)
        limit = min(keep[-1] + 1, (1 << width) - 1)
        far = constant(maximum.bits.carrier, limit, width).ult(distance)
        aligned[-1] = select(far, constant(far.carrier, 0, aligned[-1].width), aligned[-1])
    unit = maximum.offset(-finest)
    for name, magnitude in zip(names, aligned, strict=True):
        trace.number(f"placed[{name}]", magnitude, unit, SUM)
    total = total_of([item.sign for item in items], aligned, None)
    trace.number("sum", total, unit, SUM, is_signed=True)
    return _signed_sum(accumulator, items, magnitude_of(total), unit)


def late_sum(
    accumulator: Accumulator, products: Sequence[Unpacked], addend: Unpacked, names: Sequence[str], trace: Trace
) -> Sum:
    """The products' sum (of even and odd products apart, if grouped so), then the addend (Algorithms 10 and 11)."""
    bits = accumulator.fraction_bits
    assert bits != "exact"
    outer = trace.prefix
    if accumulator.grouping == "even_odd":
        halves = []
        for start, name in ((0, "even"), (1, "odd")):
            trace.prefix = f"{outer}{name}."
            part = products[start::2]
            halves.append(_as_item(fused_sum(accumulator, part, names[start:-1:2], trace), bits, part))
        trace.prefix = f"{outer}join."
        joined = _join(accumulator, halves, [bits, bits], ["even", "odd"], trace)
        trace.flag("total.sign", joined.sign, SUM)
        trace.number("total", joined.magnitude, joined.unit, SUM)
        total = _as_item(joined, bits, halves)
    else:
        trace.prefix = f"{outer}products."
        total = _as_item(fused_sum(accumulator, products, names[:-1], trace), bits, products)
    trace.prefix = f"{outer}late."
    cut = accumulator.late_small_addend == "cut"
    keep = [accumulator.late_fraction_bits, bits]
    result = _join(accumulator, [total, addend], keep, ["products", "addend"], trace, cut)
    trace.prefix = outer
    items = [*products, addend]
    result = _signed_sum(accumulator, items, (result.sign, result.magnitude), result.unit)
    trace.flag("sum.negative", result.sign, SUM)
    trace.number("sum.magnitude", result.magnitude, result.unit, SUM)
    return _cut_sum(accumulator, result, trace)


def _cut_sum(accumulator: Accumulator, total: Sum, trace: Trace) -> Sum:
    """The sum with a late addend, normalised and cut to so many bits below its leading one: rounded to a number that
    has the smallest exponent of the results, and no largest."""
    bits, fmt = accumulator.late_sum_bits, accumulator.output_format
    if bits is None or (total.magnitude.width <= bits + 1 and total.unit.least >= fmt.emin - bits):
        return total  # none is so long
    highest = total.unit.high + total.magnitude.width - fmt.emin
    wide = Format("sum", (highest + 1).bit_length(), bits, fmt.bias, "none")
    pattern = round_and_pack(total.sign, total.magnitude, total.unit, Target(wide, accumulator.late_rounding))
    cut = unpack(pattern, wide).term
    unit = cut.exponent.offset(-bits)
    trace.number("cut", cut.significand, unit, SUM)
    return Sum(total.sign, cut.significand, unit)


def pairwise_sum(accumulator: Accumulator, products: Sequence[Unpacked], addend: Unpacked, trace: Trace) -> Bits:
    """Products rounded one by one, added in pairs, and their sum added to the addend, every result rounded
    (Xie et al. 2026, Algorithms 1 and 2)."""
    fmt, rounding, nan = accumulator.output_format, accumulator.output_rounding, accumulator.nan_pattern
    target = Target(fmt, rounding, flush=accumulator.flush_outputs)
    layer = [pattern_of(product, target, nan) for product in products]
    for position, pattern in enumerate(layer):
        trace.flag(f"multiplied[{position}]", pattern, RESULT)
    for level in range(len(layer).bit_length() - 1):
        layer = [
            ieee.add(x, y, fmt, rounding, nan, accumulator.flush_outputs)
            for x, y in zip(layer[::2], layer[1::2], strict=True)
        ]
        for position, pattern in enumerate(layer):
            trace.flag(f"pair{level}[{position}]", pattern, RESULT)
    result = ieee.add_unpacked(addend, unpack(layer[0], fmt), target, nan)
    trace.flag("result", result, RESULT)
    return result


def pattern_of(value: Unpacked, target: Target, nan: int) -> Bits:
    """A term rounded to a format, special values included."""
    positive, negative = infinities([(value.is_infinite, value.sign)])
    return with_specials(round_term(value.term, target), value.is_nan, positive, negative, target.format, nan)


def specials(items: Sequence[Unpacked]) -> tuple[Bit, Bit, Bit]:
    """(any NaN, any +infinity, any -infinity) among the terms."""
    positive, negative = infinities([(item.is_infinite, item.sign) for item in items])
    return any_of([item.is_nan for item in items]), positive, negative


def finish(accumulator: Accumulator, total: Sum, items: Sequence[Unpacked], trace: Trace) -> Bits:
    """Round and pack the sum, then let NaNs and infinities among the terms decide (Xie et al. 2026, 4.2)."""
    fmt = accumulator.output_format
    target = Target(fmt, accumulator.output_rounding, accumulator.overflow, accumulator.flush_outputs,
                    positive_zero=accumulator.zero_sign == "always_positive")  # fmt: skip
    finite = round_and_pack(total.sign, total.magnitude, total.unit, target)
    is_nan, positive, negative = specials(items)
    trace.flag("special.nan", is_nan | (positive & negative), PRODUCT)
    trace.flag("special.infinite", positive | negative, PRODUCT)
    trace.flag("rounded", finite, RESULT)
    result = with_specials(finite, is_nan, positive, negative, fmt, accumulator.nan_pattern)
    trace.flag("result", result, RESULT)
    return result


def block_sum(
    accumulator: Accumulator, products: Sequence[Unpacked], addend: Unpacked, names: Sequence[str], trace: Trace
) -> Bits:
    """One step: the sum of a block's products and the addend, as a pattern of the output format."""
    items = [*products, addend]
    if accumulator.operation == "add_mul":
        return pairwise_sum(accumulator, products, addend, trace)
    if accumulator.addend == "late":
        return finish(accumulator, late_sum(accumulator, products, addend, names, trace), items, trace)
    if accumulator.partials == "unnormalised":
        return finish(accumulator, fused_sum(accumulator, items, names, trace), items, trace)
    outer = trace.prefix
    running = items[0]
    pattern = None
    for position, item in enumerate(items[1:], start=1):
        trace.prefix = f"{outer}partial{position}."
        pair = [running, item]
        total = fused_sum(accumulator, pair, ["running", names[position]], trace)
        pattern = finish(accumulator, total, pair, trace)
        running = unpack(pattern, accumulator.output_format)
    trace.prefix = outer
    assert pattern is not None  # the specials of the whole block decide, whatever a partial sum overflowed to
    is_nan, positive, negative = specials(items)
    return with_specials(pattern, is_nan, positive, negative, accumulator.output_format, accumulator.nan_pattern)
