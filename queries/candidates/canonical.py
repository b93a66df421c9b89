"""Parameters that can make no difference, set to one value, so that models alike by construction are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from smtmodel.accumulator import Accumulator
from smtmodel.algebra import constant
from smtmodel.alignment import bound_matters
from smtmodel.carriers.arrays import ArrayCarrier
from smtmodel.decode import Unpacked, unpack
from smtmodel.dot import Model
from smtmodel.families import product_of
from smtmodel.formats import Format
from smtmodel.nodes.node import Context

WHY = "alike by construction"

_SUMS = ("fused_dot", "exact_dot")
_ANY = Accumulator(length=1, block=1)


def canonical(model: Model) -> Accumulator:
    """The accumulator with what has no effect at its default: a floor below every term's last bit, a limit that no
    product reaches, the overflow rule where rounding to nearest gives infinity anyway, products rounded to a format
    that holds them all, in an exact sum how products are normalised and where it would be cut, how a sum is
    rounded that always fits the result, and the sign of zeros after a chain from +0 that never gives -0, or where no
    sum is rounded to zero."""
    accumulator, changes = model.accumulator, dict[str, object]()
    fmt = accumulator.product_format
    if fmt is not None and _holds_products(fmt, model.a, model.b):
        accumulator = replace(accumulator, product="normalised", product_rounding=_ANY.product_rounding)
    if accumulator.exact_sum and accumulator.operation in _SUMS:
        if accumulator.product == "normalised":
            accumulator = replace(accumulator, product="unnormalised")
        if accumulator.align_rounding == "sticky":
            accumulator = replace(accumulator, fraction_bits="exact", align_rounding="toward_zero")
    items = _items(model.a, model.b, model.c, accumulator.product)
    reach = items[0].term.exponent.high + items[0].term.integer
    limit = accumulator.product_overflow
    if limit is not None and limit >= reach and accumulator.scale_format is None:
        changes["product_overflow"] = None
    if accumulator.overflow == "ieee" and accumulator.output_rounding in ("nearest_even", "nearest_away"):
        changes["overflow"] = "infinity" if accumulator.operation in _SUMS else "ieee"
    if (
        accumulator.exponent_floor is not None
        and accumulator.scale_format is None
        and _known_terms(accumulator, model.c)
    ):
        bits = accumulator.fraction_bits
        if bits == "exact" or not _floor_cuts(accumulator, items):
            changes |= {"exponent_floor": None, "floor_applies_to": "zero_terms"}
    if accumulator.addend == "after" and _never_negative_zero(accumulator, items):
        changes["zero_sign"] = "positive"
    if accumulator.zero_sign == "always_positive" and _never_rounded_to_zero(accumulator, items, model.c):
        changes["zero_sign"] = "positive"
    if accumulator.output_rounding in ("nearest_even", "nearest_away") and _fits_the_result(
        accumulator, items, model.c
    ):
        changes["output_rounding"] = "toward_zero"
    return replace(accumulator, **changes)  # type: ignore[arg-type]


def _fits_the_result(accumulator: Accumulator, items: tuple[Unpacked, Unpacked], c: Format) -> bool:
    """Whether every finite sum of a step is a number of the output format, unless it overflows by one rule. With the
    addend added after the sums, a step adds the result of the step before, of the output format, instead."""
    bits, fmt = accumulator.fraction_bits, accumulator.output_format
    plain = accumulator.operation == "fused_dot" and accumulator.addend != "late" and accumulator.grouping == "none"
    plain = plain and accumulator.scale_format is None and accumulator.partials == "unnormalised"
    if not plain or bits == "exact" or accumulator.align_rounding == "sticky" or accumulator.overflow == "ieee":
        return False
    product, addend = items
    # each aligned magnitude is at most 2^(integer bits + fraction bits), rounded up
    largest = (accumulator.block << (product.term.integer + bits)) + (1 << (addend.term.integer + bits))
    unit = min(product.term.exponent.least, fmt.emin, addend.term.exponent.least) - bits
    return (
        _known_terms(accumulator, c) and (largest - 1).bit_length() <= fmt.precision and unit >= fmt.emin - fmt.fraction
    )


def _floor_cuts(accumulator: Accumulator, items: tuple[Unpacked, Unpacked]) -> bool:
    """Whether the floor can cut off a bit. A chain that starts from +0 has sums that are multiples of whatever all
    products are multiples of."""
    floor, bits = accumulator.exponent_floor, accumulator.fraction_bits
    if accumulator.addend != "after" or floor is None or bits == "exact" or accumulator.carry_bits != "exact":
        return floor_matters(accumulator, items)
    return floor - bits > items[0].term.exponent.least - items[0].term.fraction


def _never_negative_zero(accumulator: Accumulator, items: tuple[Unpacked, Unpacked]) -> bool:
    """Whether a chain of sums that starts from +0 never gives -0: no sum of products is too small for a result, and
    none of nonzero terms of one sign is cut to zero, since the largest keeps all its bits, or at least, if it is the
    result of the step before and no subnormal number, its first."""
    bits, fmt, product = accumulator.fraction_bits, accumulator.output_format, items[0].term
    unit = product.exponent.least - product.fraction  # every sum is a multiple of this power of two
    held = unit >= fmt.emin - fmt.fraction
    first = 0 if unit >= fmt.emin else fmt.fraction  # bits that a result's first set bit may need
    kept = bits == "exact" or (bits >= max(product.fraction, first) and not _floor_cuts(accumulator, items))
    plain = accumulator.scale_format is None and accumulator.grouping == "none" and not accumulator.flush_outputs
    return held and kept and plain and accumulator.output_rounding != "down" and accumulator.align_rounding != "sticky"


def _never_rounded_to_zero(accumulator: Accumulator, items: tuple[Unpacked, Unpacked], c: Format) -> bool:
    """Whether every nonzero sum of a step is so large that its result is no zero: every term, cut or not, is a multiple
    of the smallest subnormal result."""
    fmt = accumulator.output_format
    least = min(item.term.exponent.least - item.term.fraction for item in items)
    plain = accumulator.scale_format is None and accumulator.grouping == "none" and not accumulator.flush_outputs
    known = _known_terms(accumulator, c) and accumulator.align_rounding != "sticky"
    return plain and known and least >= fmt.emin - fmt.fraction


def _holds_products(fmt: Format, a: Format, b: Format) -> bool:
    """Whether every finite product is a normal number of a format, or zero."""
    term = _items(a, b, fmt, "normalised")[0].term
    fits = fmt.emin <= term.exponent.low and term.exponent.high + term.integer - 1 <= fmt.emax
    return fits and term.significand.width <= fmt.precision


def _known_terms(accumulator: Accumulator, c: Format) -> bool:
    """Whether every term of every step is a product or a number of the addend's format."""
    sums = accumulator.output_format
    held = sums.emin >= c.emin and sums.emin - sums.fraction >= c.emin - c.fraction
    return accumulator.addend != "late" and (held or len(accumulator.blocks) == 1)


@cache
def _items(a: Format, b: Format, c: Format, product: str) -> tuple[Unpacked, Unpacked]:
    """A product and an addend of the formats, for the static ranges of their exponents."""
    carrier = ArrayCarrier()
    x, y, z = (constant(carrier, 0, fmt.width) for fmt in (a, b, c))
    context = Context({"a": (x,), "b": (y,), "c": (z,)}, {"a": a, "b": b}, {})
    return context.value(product_of(Accumulator(length=1, block=1, product=product))).item, unpack(z, c)


def floor_matters(accumulator: Accumulator, items: Sequence[Unpacked]) -> bool:
    """Whether the floor can cut off any bit of a step's sums."""
    bits = accumulator.fraction_bits
    kept = None if accumulator.carry_bits != "exact" or accumulator.addend == "late" or bits == "exact" else bits
    return bound_matters(accumulator.exponent_floor, [item.term for item in items], kept)
