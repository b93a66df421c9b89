"""Rounding and packing: one function for every format, rounding mode and width of the exact value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from mmaprobe.smtmodel.arithmetic.decode import Exponent, fit
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, minimum, select, shift_right_jam, truth

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Rounding = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down"]
Mode = Rounding | Literal["to_odd"]
Overflow = Literal["infinity", "saturate", "ieee"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)  # of IEEE 754
MODES: tuple[Mode, ...] = (*ROUNDINGS, "to_odd")
SIGNLESS: frozenset[Mode] = frozenset(MODES) - {"up", "down"}  # modes that do not depend on the sign
#: short name, as of processors, papers and libraries -> mode
SHORT: dict[str, Mode] = {
    "rne": "nearest_even", "rn": "nearest_even", "rna": "nearest_away", "rmm": "nearest_away", "rtz": "toward_zero",
    "rz": "toward_zero", "rup": "up", "ru": "up", "rdn": "down", "rd": "down", "rto": "to_odd", "odd": "to_odd",
}  # fmt: skip
OVERFLOWS: tuple[Overflow, ...] = get_args(Overflow)
Saturation = Literal["sat_finite", "sat_propagate"]  # of IEEE P3109: also for infinite exact values
ResultOverflow = Overflow | Saturation
RESULT_OVERFLOWS: tuple[ResultOverflow, ...] = (*OVERFLOWS, *get_args(Saturation))
Stochastic = Literal["stochastic_a", "stochastic_b", "stochastic_c"]  # of IEEE P3109
STOCHASTIC: tuple[Stochastic, ...] = get_args(Stochastic)
ResultMode = Mode | Stochastic  # of a rounding to a format
RESULT_MODES: tuple[ResultMode, ...] = (*MODES, *STOCHASTIC)
NEAREST: frozenset[Mode] = frozenset(("nearest_even", "nearest_away"))


def mode_named(text: str) -> str:
    """The mode of a short name in upper or lower case; any other text unchanged."""
    return SHORT.get(text.lower(), text)


def is_stochastic(mode: ResultMode) -> TypeIs[Stochastic]:
    """Whether a mode depends on random bits."""
    return mode in STOCHASTIC


def draw(mode: Stochastic, rest: Bits, random: Bits) -> Bits:
    """The sum of the truncated bits and N random bits R (`random`). Its first bit says whether the magnitude is raised
    by one unit in the last place kept.

    `rest`: at least N + 2 truncated bits, the last one sticky. If D is the value of `rest` as a share of the unit, the
    sum is (IEEE P3109, RoundToPrecision) floor(D 2^N) + R for A; floor(D 2^(N+1)) + 2 R + 1, with one bit more, for B;
    and D 2^N, rounded to nearest even, + R for C.
    """
    bits = random.width + (mode == "stochastic_b")
    share = rest.top(bits).zext(bits + 1)
    if mode == "stochastic_c":
        half, below = rest.bit(rest.width - bits - 1), rest.truncate(rest.width - bits - 1).any()
        share = share + (half & (below | share.bit(0))).bits(bits + 1)
    added = random if mode != "stochastic_b" else random.concat(constant(rest.carrier, 1, 1))
    return share + added.zext(bits + 1)


def increments(mode: Mode, sign: Bit, lowest: Bit, half: Bit, sticky: Bit) -> Bit:
    """Whether a truncated magnitude is raised by one unit. `lowest`: the last bit kept; `half`: the first bit
    truncated; `sticky`: whether any bit below `half` was set.

    Sources: IEEE 754-2019, 4.3; for to_odd, which sets the lowest bit of an inexact result, Arm Architecture Reference
    Manual, FPRounding_ODD.
    """
    if mode == "nearest_even":
        return half & (sticky | lowest)
    if mode == "nearest_away":
        return half
    if mode == "toward_zero":
        return truth(sign.carrier, False)
    inexact = half | sticky
    if mode == "to_odd":
        return inexact & ~lowest
    return inexact & (~sign if mode == "up" else sign)


@dataclass(frozen=True)
class Target:
    """The rounding of a value to a pattern. `overflow`: the result beyond the range is infinity in every rounding mode
    (NVIDIA's units), the largest number, or what IEEE 754-2019, 7.4 prescribes for the mode; `flush`: subnormal results
    become zero; `positive_zero`: no result is -0."""

    format: Format
    rounding: ResultMode
    overflow: Overflow = "ieee"
    flush: bool = False
    positive_zero: bool = False


def round_and_pack(sign: Bit, magnitude: Bits, unit: Exponent, target: Target, random: Bits | None = None) -> Bits:
    """The pattern of (-1)^sign * magnitude * 2^unit in the target format.

    A zero magnitude gives a zero with the sign `sign` if the target has this zero; in a format without subnormal
    numbers, which has no zero, the smallest number. The magnitude may have any width; the result has `format.width`
    bits. `random`: the random bits of stochastic rounding.
    """
    places = unit.bits.value
    if target.format.complement and places is not None and places + unit.low >= 0:  # the value is an integer
        return _limit_complement(magnitude.pad(places + unit.low), sign, target.format)
    tail = tail_of(magnitude, unit, target.format, 0 if random is None else random.width)
    raised = is_raised(target.rounding, sign, tail, random)
    packed = tail.packed + raised.bits(tail.packed.width)
    if not target.format.subnormals:  # exponent field 0: the smallest numbers; a smaller magnitude becomes the least
        first = constant(sign.carrier, 1 << target.format.fraction, packed.width)
        packed = select(packed.ult(first), first, packed) - first
    packed = select(magnitude.any(), packed, constant(sign.carrier, 0, packed.width))
    if target.format.complement:
        return _limit_complement(packed, sign, target.format)
    return _limit(packed, sign, target)


class Tail(NamedTuple):
    """A nonzero magnitude before rounding. `packed`: the exponent and fraction fields of the truncated magnitude, in a
    width for any exponent; `lowest`: the lowest bit kept; `half`: the first bit dropped; `sticky`: whether any bit
    below `half` is set; `rest`: all bits dropped, the last of which may be sticky."""

    packed: Bits
    lowest: Bit
    half: Bit
    sticky: Bit
    rest: Bits


def is_raised(mode: ResultMode, sign: Bit, tail: Tail, random: Bits | None) -> Bit:
    """Whether a truncated magnitude is raised by one unit. `random`: the random bits of stochastic rounding."""
    if is_stochastic(mode):
        assert random is not None
        return draw(mode, tail.rest, random).msb()
    return increments(mode, sign, tail.lowest, tail.half, tail.sticky)


def tail_of(magnitude: Bits, unit: Exponent, fmt: Format, more: int = 0) -> Tail:
    """The bits of magnitude * 2^unit on which rounding to a format depends, with 2 + `more` bits below the last
    place."""
    short = fmt.precision + 2 + more - magnitude.width
    if short > 0:  # room for the half and sticky bits
        magnitude, unit = magnitude.pad(short), unit.offset(-short)
    top = unit.offset(magnitude.width - 1 - fmt.emin)
    shifted, field = _normalise(magnitude, top, fmt, more)
    kept = shifted.top(fmt.precision)
    rest = shifted.truncate(shifted.width - fmt.precision)
    half = rest.msb()
    sticky = rest.truncate(rest.width - 1).any() if rest.width > 1 else truth(magnitude.carrier, False)
    lowest = kept.bit(0) if fmt.fraction else kept.bit(0) ^ field.bit(0)  # without fraction bits, the exponent's lowest
    # the hidden bit and a carry out of the significand add to the exponent field by themselves
    most = (max(top.high, 1) << fmt.fraction) + (1 << fmt.precision)
    width = max(fmt.exponent + fmt.fraction, most.bit_length())
    return Tail(fit(field.pad(fmt.fraction), width) + kept.zext(width), lowest, half, sticky, rest)


def _normalise(magnitude: Bits, top: Exponent, fmt: Format, more: int) -> tuple[Bits, Bits]:
    """The magnitude shifted such that its leading one is at the top, or for a subnormal number such that the top is at
    emin; and the exponent field less one (zero for subnormals). `top`: the exponent of a leading one at the top of
    `magnitude`, relative to emin."""
    width, carrier = magnitude.width, magnitude.carrier
    zeros = magnitude.leading_zeros()
    span = max(top.high, -top.low, 1).bit_length() + 1
    room = max(zeros.width, span)
    distance = fit(top.bits, room) + constant(carrier, top.low, room)
    if max(top.low, top.least) >= 0:  # no number is below emin
        shift = minimum(zeros.zext(room), distance)
        return magnitude.shl(shift), fit(distance - shift, max(top.high, 1).bit_length())
    below = distance.msb()
    shift = minimum(zeros.zext(room), distance)
    left = magnitude.shl(select(below, constant(carrier, 0, room), shift))
    field = select(below, constant(carrier, 0, room), distance - shift)
    # a number below emin is shifted right; only precision + 2 + more bits matter, the last one sticky
    keep = fmt.precision + 2 + more
    head = left.top(keep)
    if width > keep:
        tail = left.truncate(width - keep).any()
        head = head | tail.bits(keep)
    right = shift_right_jam(head, select(below, -distance, constant(carrier, 0, room)))
    return right, fit(field, max(top.high, 1).bit_length())


def _limit(packed: Bits, sign: Bit, target: Target) -> Bits:
    """The pattern of computed exponent and fraction fields, after overflow and flushing."""
    fmt, carrier = target.format, packed.carrier
    bits = fmt.exponent + fmt.fraction
    over = constant(carrier, fmt.largest_field, packed.width).ult(packed)
    fields = packed.truncate(bits)
    if target.flush:
        fields = select(fields.extract(bits - 1, fmt.fraction).any(), fields, constant(carrier, 0, bits))
    if target.positive_zero or not fmt.has_negative_zero:
        finite = _with_sign(fields, sign & fields.any(), fmt)
    else:
        finite = _with_sign(fields, sign, fmt)
    infinite, largest = infinity_of(fmt, sign), signed(fmt.largest, sign, fmt)
    if target.overflow == "infinity":
        instead = infinite
    elif target.overflow == "saturate":
        instead = largest
    else:
        yes = truth(carrier, True)
        mode = target.rounding
        instead = infinite if is_stochastic(mode) else select(increments(mode, sign, yes, yes, yes), infinite, largest)
    return select(over, instead, finite)


def _limit_complement(magnitude: Bits, sign: Bit, fmt: Format) -> Bits:
    """An integer in two's complement; beyond the format's range, the nearest integer of the format."""
    ends = constant(sign.carrier, fmt.largest_field + 1, fmt.width), constant(sign.carrier, fmt.largest, fmt.width)
    wide = max(magnitude.width, fmt.width)
    end = select(sign, *ends).zext(wide)
    kept = magnitude.zext(wide)
    kept = select(end.ult(kept), end, kept).truncate(fmt.width) if magnitude.width >= fmt.width else kept
    return select(sign, -kept, kept)


def _with_sign(fields: Bits, sign: Bit, fmt: Format) -> Bits:
    pattern = fields.pad(fmt.padding)
    if not fmt.signed:
        return pattern.zext(fmt.width)
    return sign.bits(1).concat(pattern)


def signed(pattern: int, sign: Bit, fmt: Format) -> Bits:
    """A constant non-negative pattern (zero, infinity, the largest number) with a computed sign."""
    if fmt.complement:
        return _limit_complement(constant(sign.carrier, pattern + (pattern == fmt.largest), fmt.width), sign, fmt)
    return _with_sign(constant(sign.carrier, pattern >> fmt.padding, fmt.exponent + fmt.fraction), sign, fmt)


def infinity_of(fmt: Format, sign: Bit) -> Bits:
    """The pattern of an infinite result: infinity; in formats without infinity NaN, and without NaN the largest
    number."""
    if fmt.nan_for_negative_zero and not fmt.has_infinity:
        return constant(sign.carrier, fmt.nan, fmt.width)
    return signed(fmt.infinity, sign, fmt)
