"""The stages of a fused dot product, in the order in which a unit goes through them.

decode -> products -> exponents -> align at the maximum -> fused sum -> normalise, round and pack -> special values
(Xie et al. 2026, Algorithm 7; Valpey et al. 2025, Algorithm 1). Each stage is a function of the signals before it and
of the accumulator's parameters, and names its signals in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smtmodel.accumulator import Accumulator
from smtmodel.algebra import (
    Bit,
    Bits,
    any_of,
    choose,
    constant,
    max_of,
    select,
    shift_right_jam,
    sum_of,
)
from smtmodel.decode import Exponent, Term, Unpacked, fit, multiply, unpack
from smtmodel.ieee import infinities, product_specials, round_term, sum_two, with_specials, zero_sign
from smtmodel.rounding import Rounding, Target, increments, round_and_pack
from smtmodel.trace import Trace

DECODE = frozenset({"flush_inputs"})
PRODUCT = DECODE | {"product", "product_rounding"}
MAXIMUM = PRODUCT | {"length", "block", "block_order", "exponent_floor", "floor_applies_to", "addend", "partials"}
ALIGNED = MAXIMUM | {"operation", "fraction_bits", "align_rounding"}
SUM = ALIGNED | {"carry_bits"}
RESULT = SUM | {"output", "output_rounding", "overflow", "flush_outputs", "zero_sign", "nan"}


def form_product(accumulator: Accumulator, left: Unpacked, right: Unpacked) -> Unpacked:
    """The product of two elements as the unit forms it: exact, normalised, or rounded to a format."""
    exact = multiply(left.term, right.term)
    is_nan, is_infinite = product_specials(left, right)
    is_zero = left.is_zero | right.is_zero
    if accumulator.product == "normalised":
        return Unpacked(exact.normalised(), is_zero, is_infinite, is_nan)
    fmt = accumulator.product_format
    if fmt is None:
        return Unpacked(exact, is_zero, is_infinite, is_nan)
    rounded = unpack(round_term(exact, Target(fmt, accumulator.product_rounding)), fmt)
    return Unpacked(rounded.term, is_zero | rounded.is_zero, is_infinite | rounded.is_infinite, is_nan)


@dataclass(frozen=True)
class Sum:
    """The finished sum: (-1)^negative * magnitude * 2^unit. `sign` is the sign that the result will carry."""

    sign: Bit
    magnitude: Bits
    unit: Exponent


def max_exponent(accumulator: Accumulator, items: Sequence[Unpacked]) -> Exponent:
    """The largest exponent of the nonzero terms and, by the reading chosen, of the floor.

    Terms whose exponent must not count enter as the smallest exponent there is, which no sum can notice: if every
    term is zero the sum is zero at any scale.
    """
    floor = accumulator.exponent_floor
    lows = [item.term.exponent.low for item in items] + ([] if floor is None else [floor])
    highs = [item.term.exponent.high for item in items] + ([] if floor is None else [floor])
    low, high = min(lows), max(highs)
    width = max(1, (high - low).bit_length())
    carrier = items[0].sign.carrier
    absent = constant(carrier, 0 if floor is None or accumulator.floor_applies_to == "maximum" else floor - low, width)
    exponents = [select(item.is_zero, absent, item.term.exponent.rebased(low, width)) for item in items]
    if floor is not None and accumulator.floor_applies_to == "maximum":
        exponents.append(constant(carrier, floor - low, width))
    return Exponent(max_of(exponents), low, high)


def align(term: Term, maximum: Exponent, fraction_bits: int, rounding: Rounding) -> Bits:
    """The magnitude of a term in units of 2^(maximum - fraction_bits), cut or rounded as the unit does it."""
    width = maximum.bits.width
    shift = maximum.bits - term.exponent.rebased(maximum.low, width)
    spare = term.fraction - fraction_bits
    scaled = term.significand.pad(max(0, -spare))
    if rounding == "toward_zero":
        shifted = scaled.lshr(shift)
        return shifted.extract(shifted.width - 1, spare) if spare > 0 else shifted
    # two bits below the unit, the last one sticky, decide every other rounding
    spare = max(0, spare)
    jammed = scaled.pad(2)
    if spare:
        jammed = shift_right_jam(jammed, constant(jammed.carrier, spare, spare.bit_length()))
        jammed = jammed.truncate(jammed.width - spare)
    jammed = shift_right_jam(jammed, shift)
    kept = jammed.extract(jammed.width - 1, 2).zext(jammed.width - 1)
    raised = increments(rounding, term.sign, kept.bit(0), jammed.bit(1), jammed.bit(0))
    return kept + raised.bits(kept.width)


def _total(signs: Sequence[Bit], magnitudes: Sequence[Bits], carry_width: int | None) -> tuple[Bit, Bits]:
    """(negative, magnitude) of a sum: exact, or formed and wrapped in `carry_width` bits of two's complement."""
    largest = sum((1 << magnitude.width) - 1 for magnitude in magnitudes)
    width = largest.bit_length() + 1 if carry_width is None else carry_width
    total = sum_of(signs[0].carrier, signs, [fit(magnitude, width) for magnitude in magnitudes], width)
    negative = total.msb()
    return negative, select(negative, -total, total)


def _signed_sum(accumulator: Accumulator, items: Sequence[Unpacked], total: tuple[Bit, Bits], unit: Exponent) -> Sum:
    negative, magnitude = total
    if accumulator.zero_sign == "positive":
        return Sum(negative, magnitude, unit)
    of_zero = zero_sign([item.sign for item in items], accumulator.output_rounding)
    return Sum(choose(magnitude.any(), negative, of_zero), magnitude, unit)


def _exact_sum(accumulator: Accumulator, items: Sequence[Unpacked]) -> Sum:
    """The sum without any loss: two terms with a sticky bit, more in fixed point over the whole range."""
    if len(items) == 2:
        negative, magnitude, unit = sum_two(items[0].term, items[1].term)
        return _signed_sum(accumulator, items, (negative, magnitude), unit)
    low = min(item.term.exponent.low - item.term.fraction for item in items)
    placed = []
    for item in items:
        term = item.term
        position = term.exponent.offset(-term.fraction)
        width = term.significand.width + position.high - low
        places = (width - 1).bit_length()
        placed.append(term.significand.zext(width).shl(position.rebased(low, max(places, position.bits.width))))
    unit = Exponent(constant(items[0].sign.carrier, 0, 1), low, low)
    total = _total([item.sign for item in items], placed, None)
    return _signed_sum(accumulator, items, total, unit)


def fused_sum(accumulator: Accumulator, items: Sequence[Unpacked], names: Sequence[str], trace: Trace) -> Sum:
    """Align the terms at the maximum exponent and add them, without normalising on the way."""
    if accumulator.exact_sum:
        result = _exact_sum(accumulator, items)
    else:
        fraction_bits, rounding = accumulator.fraction_bits, accumulator.align_rounding
        assert fraction_bits != "exact"
        assert rounding != "sticky"
        maximum = max_exponent(accumulator, items)
        trace.exponent("max_exponent", maximum, MAXIMUM)
        unit = maximum.offset(-fraction_bits)
        aligned = [align(item.term, maximum, fraction_bits, rounding) for item in items]
        for name, item, magnitude in zip(names, items, aligned, strict=True):
            term = item.term
            trace.number(f"term[{name}]", term.significand, term.exponent.offset(-term.fraction), PRODUCT)
            trace.number(f"aligned[{name}]", magnitude, unit, ALIGNED)
        carry = accumulator.carry_bits
        width = None if carry == "exact" else fraction_bits + 2 + carry
        total = _total([item.sign for item in items], aligned, width)
        result = _signed_sum(accumulator, items, total, unit)
    trace.flag("sum.negative", result.sign, SUM)
    trace.number("sum.magnitude", result.magnitude, result.unit, SUM)
    return result


def specials(items: Sequence[Unpacked]) -> tuple[Bit, Bit, Bit]:
    """(any NaN, any +infinity, any -infinity) among the terms."""
    positive, negative = infinities([(item.is_infinite, item.sign) for item in items])
    return any_of([item.is_nan for item in items]), positive, negative


def finish(accumulator: Accumulator, total: Sum, items: Sequence[Unpacked], trace: Trace) -> Bits:
    """Round and pack the sum, then let NaNs and infinities among the terms decide (Xie et al. 2026, 4.2)."""
    fmt = accumulator.output_format
    target = Target(fmt, accumulator.output_rounding, accumulator.overflow, accumulator.flush_outputs)
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
    """One step: the fused sum of a block's products and the addend, as a pattern of the output format."""
    items = [*products, addend]
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
    assert pattern is not None
    return pattern
