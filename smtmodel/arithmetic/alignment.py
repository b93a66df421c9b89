"""Fixed point: terms placed or truncated at a common exponent, and their sums in two's complement."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term
from mmaprobe.smtmodel.arithmetic.rounding import Mode, increments
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select, shift_right_jam, sum_of, truth


def reaches(term: Term, power: int) -> Bit:
    """Whether the magnitude of a nonzero term is at least 2^power."""
    exponent = term.normalised().exponent
    if not exponent.low < power <= exponent.high:
        return truth(term.sign.carrier, power <= exponent.low)
    return constant(exponent.bits.carrier, power - exponent.low, exponent.bits.width).ule(exponent.bits)


def distance(term: Term, maximum: Exponent) -> Bits:
    """How many places the exponent of a term is below `maximum`, in the width of the maximum's bits."""
    return maximum.bits - term.exponent.rebased(maximum.low, maximum.bits.width)


def is_within(term: Term, maximum: Exponent, reach: int) -> Bit:
    """Whether the exponent of a term is at most `reach` places below a maximum."""
    width = maximum.bits.width
    if reach < 0 or reach >= 1 << width:
        return truth(term.sign.carrier, reach >= 0)
    return distance(term, maximum).ule(constant(term.sign.carrier, reach, width))


def align(term: Term, maximum: Exponent, fraction_bits: int, rounding: Mode) -> Bits:
    """The magnitude of a term in units of 2^(maximum - fraction_bits), rounded as the mode `rounding` says."""
    if rounding != "toward_zero":
        jammed = with_tail(term, maximum, fraction_bits)
        kept = jammed.extract(jammed.width - 1, 2).zext(jammed.width - 1)
        raised = increments(rounding, term.sign, kept.bit(0), jammed.bit(1), jammed.bit(0))
        return kept + raised.bits(kept.width)
    shift = distance(term, maximum)
    spare = term.fraction - fraction_bits
    if shift.value is not None and shift.value + spare <= 0:  # the shift is known, and no bit is lost
        return term.significand.pad(-spare - shift.value)
    scaled = _at_least(term.significand.pad(max(0, -spare)), spare + 1)
    shifted = scaled.lshr(shift)
    return shifted.extract(shifted.width - 1, spare) if spare > 0 else shifted


def with_tail(term: Term, maximum: Exponent, fraction_bits: int) -> Bits:
    """The magnitude of a term in units of 2^(maximum - fraction_bits - 2), with a sticky last bit: these two bits below
    the last place kept decide every rounding."""
    shift = distance(term, maximum)
    spare = max(0, term.fraction - fraction_bits)
    jammed = _at_least(term.significand.pad(max(0, fraction_bits - term.fraction)).pad(2), spare + 3)
    if spare:
        jammed = shift_right_jam(jammed, constant(jammed.carrier, spare, spare.bit_length()))
        jammed = jammed.truncate(jammed.width - spare)
    return shift_right_jam(jammed, shift)


def _at_least(bits: Bits, width: int) -> Bits:
    """Bits, zero-extended to at least a width, since all bits of a small term may be below the last place."""
    return bits if bits.width >= width else bits.zext(width)


def total_of(signs: Sequence[Bit], magnitudes: Sequence[Bits], carry_width: int | None) -> Bits:
    """The sum of signed magnitudes in two's complement: exact if `carry_width` is None, else modulo 2^carry_width."""
    largest = sum((1 << magnitude.width) - 1 for magnitude in magnitudes)
    width = largest.bit_length() + 1 if carry_width is None else carry_width
    kept = [magnitude if magnitude.width <= width else magnitude.truncate(width) for magnitude in magnitudes]
    return sum_of(signs[0].carrier, signs, kept, width)


def magnitude_of(total: Bits, wraps: bool = False) -> tuple[Bit, Bits]:
    """The sign (whether negative) and magnitude of a sum in two's complement. `wraps`: the sum may be the least number,
    -2^(width - 1)."""
    negative = total.msb()
    magnitude = select(negative, -total, total)
    return negative, magnitude if wraps else magnitude.truncate(total.width - 1)


def place_all(terms: Sequence[Term]) -> tuple[list[Bits], int]:
    """The magnitudes of terms in fixed point over the whole range of the exponents, and the exponent of the unit."""
    low = min(term.exponent.low - term.fraction for term in terms)
    placed = []
    for term in terms:
        position = term.exponent.offset(-term.fraction)
        width = term.significand.width + position.high - low
        places = max((width - 1).bit_length(), position.bits.width)
        placed.append(term.significand.zext(width).shl(position.rebased(low, places)))
    return placed, low


def is_below(magnitude: Bits, unit: Exponent, power: int) -> Bit:
    """Whether magnitude * 2^unit is nonzero and below 2^power."""
    term = Term(truth(magnitude.carrier, False), magnitude, unit, 0)
    return magnitude.any() & ~reaches(term, power)


def bound_matters(bound: int | None, terms: Sequence[Term], kept: int | None) -> bool:
    """Whether a least value `bound` of the maximum exponent can change a sum of terms. It cannot if every exponent is
    at least `bound`; nor if `kept` fraction bits are kept below `bound` and the last of these places is at or below the
    last place of every term, since raising the maximum to `bound` then truncates no bit. `kept` is None where the
    second reason does not apply: for a sum that wraps, or terms that keep different numbers of bits."""
    if bound is None or bound <= min(term.exponent.least for term in terms):
        return False
    return kept is None or bound - kept > min(term.exponent.least - term.fraction for term in terms)
