"""Lost bits that decide a result alone: the terms of a sum that lose a single bit, the place of this bit, and whether a
rounding goes the other way without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mmaprobe.smtmodel.arithmetic.alignment import with_tail
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term
from mmaprobe.smtmodel.arithmetic.rounding import Mode, increments, tail_of
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, constant, select, truth
from mmaprobe.smtmodel.nodes.round import Round


@dataclass(frozen=True)
class LoneBit:
    """A term, and whether it loses one bit while no other term loses any (`flag`). `place`: the distance of the
    bit below the first one of the significand, which has `width` bits; `depth`: its distance below the largest
    exponent; `kept`: the distance down to which bits are kept; `unit`: whether the sum without the bit
    changes by a unit in the sum's last place, rather than by the sum's lowest set bit."""

    name: str
    flag: Bit
    sign: Bit
    place: Bits
    width: int
    depth: Bits
    kept: int
    unit: bool = False


@dataclass(frozen=True)
class _Place:
    """The lowest set bit of a term. `place`, `depth`: as in `LoneBit`; `depth` is 0 for a zero term."""

    place: Bits
    depth: Bits

    def exceeds(self, kept: int) -> Bit:
        return _more(self.depth, kept)


def lone_bits_of_two(names: Sequence[str], terms: Sequence[Term], kept: int) -> Iterator[LoneBit]:
    """The lone bits of two terms whose exact sum keeps `kept` places below the first bit of the larger term, and a
    sticky bit. A lone bit is the lowest set bit of both terms, whether it is kept or not."""
    normal = [term.normalised() for term in terms]
    low, high = min(term.exponent.low for term in normal), max(term.exponent.high for term in normal)
    width = (high - low).bit_length() + 1
    tops = [term.exponent.rebased(low, width) for term in normal]
    live = [term.significand.any() for term in terms]
    tops = [select(flag, top, constant(top.carrier, 0, width)) for flag, top in zip(live, tops, strict=True)]
    largest = select(tops[0].ult(tops[1]), tops[1], tops[0])
    for i, (name, term) in enumerate(zip(names, normal, strict=True)):
        places = [_place_of(part, largest - top) for part, top in zip((normal[0], normal[1]), tops, strict=True)]
        own, other = places[i], places[1 - i]
        rest = _place_of(_without_lowest(term), largest - tops[i])
        wide = max(own.depth.width, other.depth.width)
        last = other.depth.zext(wide).ult(own.depth.zext(wide)) & ~other.exceeds(kept)
        flag = live[i] & last & (~own.exceeds(kept) | ~rest.exceeds(kept))
        yield LoneBit(name, flag, term.sign, own.place, term.significand.width, own.depth, kept)


def lone_bits_of_aligned(
    names: Sequence[str], terms: Sequence[Term], distances: Sequence[Bits], bits: Sequence[int],
    rounding: Mode | None, maximum: Exponent,
) -> Iterator[LoneBit]:  # fmt: skip
    """The lone bits of aligned terms. `distances`: the distance of each term's exponent below the largest exponent;
    `bits`: the number of bits that each term keeps below that exponent. `rounding`: the mode of each term's rounding,
    which the bit has to decide; None: the bits that terms lose make one sticky bit of the sum."""
    places = [_place_of(term, far) for term, far in zip(terms, distances, strict=True)]
    loses = [place.exceeds(kept) for place, kept in zip(places, bits, strict=True)]
    for i, (name, term) in enumerate(zip(names, terms, strict=True)):
        rest = _without_lowest(term)
        others = [~lost for k, lost in enumerate(loses) if k != i]
        flag = loses[i] & ~_place_of(rest, distances[i]).exceeds(bits[i]) & all_of(others or [loses[i]])
        if rounding is not None:
            flag = flag & (_raised(term, maximum, bits[i], rounding) ^ _raised(rest, maximum, bits[i], rounding))
        place = places[i].place - term.significand.leading_zeros()
        yield LoneBit(name, flag, term.sign, place, term.significand.width, places[i].depth, bits[i],
                      rounding is not None)  # fmt: skip


def _raised(term: Term, maximum: Exponent, bits: int, rounding: Mode) -> Bit:
    cut = with_tail(term, maximum, bits)
    return increments(rounding, term.sign, cut.bit(2), cut.bit(1), cut.bit(0))


def _without_lowest(term: Term) -> Term:
    bits = term.significand
    return Term(term.sign, bits & (bits - constant(bits.carrier, 1, bits.width)), term.exponent, term.fraction)


def _place_of(term: Term, distance: Bits) -> _Place:
    bits = term.significand
    place = (bits & -bits).leading_zeros()
    width = max(place.width, distance.width, term.integer.bit_length()) + 2
    top = constant(bits.carrier, max(0, term.integer - 1), width)
    depth = distance.zext(width) + place.zext(width) - top  # negative above the exponent's place, where nothing is lost
    depth = select(depth.msb() | ~bits.any(), constant(bits.carrier, 0, width), depth)
    return _Place(place, depth)


def _more(value: Bits, bound: int) -> Bit:
    if bound >= 1 << value.width:
        return truth(value.carrier, False)
    return constant(value.carrier, bound, value.width).ult(value)


@dataclass(frozen=True)
class DecidingBit:
    """The dependence of a rounded result on the lowest set bit of a magnitude. `less`, `more`: whether the result is
    another one if this bit is subtracted from the magnitude, or added; `unit_less`, `unit_more`: the same for a unit in
    the magnitude's last place. `span`, `span_more`: the distance of the bit below the leading one of the magnitude, or
    of the magnitude with the bit added. `weight`: the bit's exponent."""

    less: Bit
    more: Bit
    unit_less: Bit
    unit_more: Bit
    span: Bits
    span_more: Bits
    weight: Exponent


def deciding_bit(node: Round, sign: Bit, term: Term) -> DecidingBit:
    """The bits on which the result of rounding a term depends. `sign`: the result's."""
    how, magnitude, unit = node.rounding, term.significand, term.exponent.offset(-term.fraction)
    wide = magnitude.zext(magnitude.width + 1)
    lowest = wide & -wide
    one = constant(wide.carrier, 1, wide.width)

    def rounded(bits: Bits) -> Bits:
        return node.pattern_of(replace(term, sign=sign, significand=bits), sign)

    own, tail = rounded(wide), tail_of(wide, unit, how.format)
    some = magnitude.any() & (tail.half | tail.sticky)
    less, more, unit_less, unit_more = (
        some & ~own.eq(rounded(bits)) for bits in (wide - lowest, wide + lowest, wide - one, wide + one)
    )
    nearest = how.mode in ("nearest_even", "nearest_away")
    if nearest:  # the half itself is no bit below the last one
        less = less & tail.sticky
    place = lowest.leading_zeros()
    top = unit.offset(wide.width - 1)
    low, high = top.low - wide.width, top.high
    width = max((high - low).bit_length(), place.width)
    weight = Exponent(top.rebased(low, width) - place.zext(width), low, high)
    span, span_more = (place - bits.leading_zeros() for bits in (wide, wide + lowest))
    return DecidingBit(less, more, unit_less, unit_more, span, span_more, weight)
