"""The values of nodes on many inputs at once, written from the table of nodes: an oracle in binary64.

All numbers of formats of at most six bits, their products and sums are multiples of 2^-26 below 2^26, which binary64
adds and multiplies without loss: what does not fit raises `TooWide`. The same in exact rationals, one input at a time,
is tests/oracles/node_oracle.py, against which tests/rules/test_rule_truth.py holds this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Counting,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Literal,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
    Segment,
    Signed,
    SortedSum,
)
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles import oracle

Flags = NDArray[np.bool_]
Lanes = NDArray[np.float64]
Whole = NDArray[np.int64]
Patterns = NDArray[np.uint64]

FINE, LARGE = 30, 20  # numbers are multiples of 2^-FINE below 2^LARGE
BELOW_ALL = -5000  # an exponent that no term has
FINITE, INFINITE, NOT_A_NUMBER = 0, 1, 2

#: formats of at most six bits, and wider ones of results: how the oracle of formats knows them
SMALL = {
    "e1m1_none": (1, 1, 1, "none"), "e1m2_none": (1, 2, 1, "none"), "e1m3_none": (1, 3, 1, "none"),
    "e2m1": (2, 1, 0, "none"), "e2m2_none": (2, 2, 0, "none"), "e2m3": (2, 3, 0, "none"), "e3m2": (3, 2, -2, "none"),
    "e3m1_none": (3, 1, -2, "none"), "e2m1_ieee": (2, 1, 0, "ieee"), "e2m2_ieee": (2, 2, 0, "ieee"),
    "e3m1_ieee": (3, 1, -2, "ieee"), "e3m2_ieee": (3, 2, -2, "ieee"), "e2m1_all_ones": (2, 1, 0, "all_ones"),
    "e3m1_all_ones": (3, 1, -2, "all_ones"), "e2m2_all_ones": (2, 2, 0, "all_ones"),
    "binary3p2se": (1, 1, 0, "p3109"), "binary4p2se": (2, 1, -1, "p3109"), "binary6p3se": (3, 2, -3, "p3109"),
    "binary5p2sf": (3, 1, -3, "fnuz"), "ue1m1_none": (1, 1, 1, "none"), "ue2m1_none": (2, 1, 0, "none"),
    "ue1m1_all_ones": (1, 1, 1, "all_ones"), "ue2m1_ieee": (2, 1, 0, "ieee"), "e1m1b2_none": (1, 1, -1, "none"),
    "e2m1b3_none": (2, 1, -2, "none"), "e4m1_none": (4, 1, -6, "none"), "e4m1_ieee": (4, 1, -6, "ieee"),
    "e3m3_ieee": (3, 3, -2, "ieee"), "e4m3_ieee": (4, 3, -6, "ieee"),
}  # fmt: skip
oracle.FORMATS.setdefault("bare", oracle.Format(2, 1, -1, "none", subnormals=False))  # without a zero
for _name, _row in SMALL.items():
    oracle.FORMATS.setdefault(_name, oracle.Format(*_row, signed=not _name.startswith("u")))


class Unchecked(Exception):  # noqa: N818 - no error of anyone's
    """A statement that inputs do not decide, as it is about nothing that is computed here."""


class TooWide(Unchecked):
    """A number that binary64 may not hold."""


@dataclass(frozen=True)
class Value:
    """A node on every input. `exact`: the number, of an infinity its sign; `exponent`: where it counts in an alignment,
    unless it counts there as a zero (`is_zero`); `every`, `some`: whether all, and whether any, of the numbers added
    are negative; `single`: it is one number, not a sum; `fault`: a rounding overflowed on the way to it, a product
    reached its limit, or something was not finite; `patterns`: of a number of a format that was rounded to."""

    kind: NDArray[np.int8]
    exact: Lanes
    exponent: Whole
    is_zero: Flags
    every: Flags
    some: Flags
    single: Flags
    fault: Flags
    patterns: Patterns | None = None

    @property
    def finite(self) -> Flags:
        return self.kind == FINITE

    @property
    def negative(self) -> Flags:
        """The sign of one number, zeros included; of a sum that is not zero, its own."""
        return np.where(self.exact != 0, self.exact < 0, self.every)

    def cleared(self, where: Flags, negative: Flags) -> Value:
        """Zeros of these signs where it is said so."""
        no = np.zeros(len(where), dtype=bool)
        return Value(
            np.where(where, FINITE, self.kind).astype(np.int8), np.where(where, 0.0, self.exact),
            np.where(where, 0, self.exponent), np.where(where, True, self.is_zero),
            np.where(where, negative, self.every), np.where(where, negative, self.some),
            np.where(where, True, self.single), np.where(where, no, self.fault) | self.fault,
        )  # fmt: skip


def checked(exact: Lanes) -> Lanes:
    """The numbers, if sums and products of them are exact. Raises TooWide."""
    scaled = np.ldexp(exact, FINE)
    if not (np.abs(exact) < 2.0**LARGE).all() or (scaled != np.rint(scaled)).any():
        raise TooWide
    return exact


def nearest_away(x: Lanes) -> Lanes:
    size = np.abs(x)
    low = np.floor(size)
    return np.copysign(low + (size - low >= 0.5), x)


def to_odd(x: Lanes) -> Lanes:
    low = np.trunc(x)
    return low + np.where((low != x) & (np.fmod(low, 2) == 0), np.sign(x), 0.0)


ROUND: dict[str, Callable[[Lanes], Lanes]] = {
    "nearest_even": np.rint, "nearest_away": nearest_away, "toward_zero": np.trunc, "up": np.ceil, "down": np.floor,
    "to_odd": to_odd,
}  # fmt: skip


def units(exact: Lanes, place: Any, mode: str) -> Lanes:
    """Rounded to multiples of 2^place."""
    return np.ldexp(ROUND[mode](np.ldexp(exact, -place)), place) + 0.0


def log2(x: Lanes) -> Whole:
    """The largest e with 2^e <= |x|, where x is not zero."""
    return np.frexp(x)[1].astype(np.int64) - 1


@cache
def table_of(fmt: Format) -> tuple[NDArray[np.int8], Lanes, Whole, Flags, Flags]:
    """Of every pattern: the kind, the number, its exponent, whether it is a zero, and its sign."""
    every = [oracle.decode(fmt.name, pattern) for pattern in range(1 << fmt.width)]
    kinds = {"finite": FINITE, "inf": INFINITE, "nan": NOT_A_NUMBER}
    exact = [float(x.value) if x.kind == "finite" else 0.0 if x.kind == "nan" else -1.0 if x.sign else 1.0
             for x in every]  # fmt: skip
    return (np.array([kinds[x.kind] for x in every], dtype=np.int8), np.array(exact),
            np.array([x.exponent for x in every], dtype=np.int64),
            np.array([x.kind == "finite" and not x.significand for x in every]),
            np.array([bool(x.sign) for x in every]))  # fmt: skip


def number(fmt: Format, patterns: Patterns) -> Value:
    """The numbers of a format that patterns stand for."""
    kind, exact, exponent, is_zero, sign = (side[patterns] for side in table_of(fmt))
    return Value(kind, exact, exponent, is_zero, sign, sign, np.ones(len(patterns), dtype=bool), kind != FINITE,
                 patterns)  # fmt: skip


def constant(count: int, fmt: Format, pattern: int) -> Value:
    return replace(number(fmt, np.full(count, pattern, dtype=np.uint64)), patterns=None)


def zeros(count: int, negative: bool) -> Value:
    no, sign = np.zeros(count, dtype=bool), np.full(count, negative)
    return Value(np.zeros(count, dtype=np.int8), np.zeros(count), np.zeros(count, dtype=np.int64), ~no, sign, sign, ~no,
                 no)  # fmt: skip


def any_of(flags: Sequence[Flags]) -> Flags:
    return np.logical_or.reduce(flags)


def all_of(flags: Sequence[Flags]) -> Flags:
    return np.logical_and.reduce(flags)


def times(values: Sequence[Value]) -> Value:
    """An exact product; what infinities and zeros give; exponents added, signs combined."""
    first, *others = values
    flip = np.logical_xor.reduce([v.negative for v in others])
    infinite = any_of([v.kind == INFINITE for v in values])
    zero = any_of([v.finite & (v.exact == 0) for v in values])
    nan = any_of([v.kind == NOT_A_NUMBER for v in values]) | (infinite & zero)
    kind = np.where(nan, NOT_A_NUMBER, np.where(infinite, INFINITE, FINITE)).astype(np.int8)
    exact = first.exact
    for v in others:
        exact = exact * v.exact
    sign = np.where(first.negative != flip, -1.0, 1.0)
    every, some = np.where(flip, ~first.some, first.every), np.where(flip, ~first.every, first.some)
    return Value(
        kind, checked(np.where(nan, 0.0, np.where(infinite, sign, exact))), sum(v.exponent for v in values),
        any_of([v.is_zero for v in values]), np.where(infinite, sign < 0, every), np.where(infinite, sign < 0, some),
        first.single, any_of([v.fault for v in values]) | (kind != FINITE),
    )  # fmt: skip


def _special(terms: Sequence[Value]) -> tuple[NDArray[np.int8], Flags]:
    """The kind of a sum, and the sign of an infinite one."""
    plus, minus = (any_of([(t.kind == INFINITE) & ((t.exact < 0) == sign) for t in terms]) for sign in (False, True))
    nan = any_of([t.kind == NOT_A_NUMBER for t in terms]) | (plus & minus)
    return np.where(nan, NOT_A_NUMBER, np.where(plus | minus, INFINITE, FINITE)).astype(np.int8), minus


def _summed(terms: Sequence[Value], exact: Lanes, exponent: Whole, is_zero: Flags, single: Flags) -> Value:
    """A sum with this finite part."""
    kind, minus = _special(terms)
    sign = np.where(minus, -1.0, 1.0)
    every, some = all_of([t.every for t in terms]), any_of([t.some for t in terms])
    infinite = kind == INFINITE
    exact = np.where(infinite, sign, np.where(kind == NOT_A_NUMBER, 0.0, exact))
    return Value(kind, checked(exact), exponent, is_zero & (kind == FINITE), np.where(infinite, minus, every),
                 np.where(infinite, minus, some), single & ~infinite,
                 any_of([t.fault for t in terms]) | (kind != FINITE))  # fmt: skip


def _added(terms: Sequence[Value]) -> Lanes:
    return np.sum([np.where(t.finite, t.exact, 0.0) for t in terms], axis=0)


def exact_sum(terms: Sequence[Value]) -> Value:
    """The sum without loss: exponent 0 of its fixed point, a zero if all its terms are."""
    count = len(terms[0].exact)
    single = terms[0].single if len(terms) == 1 else np.zeros(count, dtype=bool)
    return _summed(terms, _added(terms), np.zeros(count, dtype=np.int64), all_of([t.is_zero for t in terms]), single)


def fused_sum(node: FusedSum, operands: Sequence[Sequence[Value]]) -> Value:
    """Terms aligned at the largest exponent, cut, and added."""
    every = [t for terms in operands for t in terms]
    count, lanes = len(operands), len(every[0].exact)
    bits = (node.fraction_bits,) * count if isinstance(node.fraction_bits, int) else node.fraction_bits
    floors, reaches = node.floors or (None,) * count, node.reach or (None,) * count
    lowest = np.full(lanes, BELOW_ALL * 4, dtype=np.int64)
    top = lowest if node.least is None else np.full(lanes, node.least, dtype=np.int64)
    for terms, low in zip(operands, floors, strict=True):
        for t in terms:
            own = lowest if node.zeros is None else np.full(lanes, node.zeros, dtype=np.int64)
            top = np.maximum(top, np.where(t.is_zero, own, t.exponent))
            top = top if low is None else np.maximum(top, low)
    none = all_of([t.is_zero | ~t.finite for t in every])
    top = np.where(none, 0, top)
    total, lost = np.zeros(lanes), np.zeros(lanes, dtype=bool)
    for terms, precision, reach in zip(operands, bits, reaches, strict=True):
        for t in terms:
            away = t.is_zero | ~t.finite
            if reach is not None:
                away = away | (t.exponent < top - reach)
            exact = np.where(away, 0.0, t.exact)
            kept = units(exact, top - precision, node.rounding)
            lost |= kept != exact
            total += kept
    last = top - max(bits)
    if node.carry_bits is not None:
        half = 2.0 ** (max(bits) + 1 + node.carry_bits)
        total = np.ldexp(np.mod(np.trunc(np.ldexp(total, -last)) + half, 2 * half) - half, last)
    if node.sticky:
        total = np.where(lost, total + np.where(total < 0, -1.0, 1.0) * np.ldexp(1.0, last - 1), total)
    is_zero = all_of([t.is_zero for t in every])
    total = np.where(is_zero, 0.0, total)
    return _summed(every, total, np.where(is_zero, 0, top), is_zero, np.zeros(lanes, dtype=bool))


def sorted_sum(node: SortedSum, terms: Sequence[Value]) -> Value:
    """The two terms with the highest first places, then the third; borrows for what is cut off, one sticky bit."""
    lowest = BELOW_ALL * 4
    firsts = np.array([np.where(t.is_zero | ~t.finite, lowest, t.exponent + isinstance(item, Product))
                       for t, item in zip(terms, node.items, strict=True)])  # fmt: skip
    order = np.argsort(-firsts, axis=0, kind="stable")
    every = np.array([np.where(t.finite, t.exact, 0.0) for t in terms])
    total, *others = np.take_along_axis(every, order, axis=0)
    minus = np.take_along_axis(np.array([t.negative for t in terms]), order, axis=0)[0]
    top = np.where(firsts.max(axis=0) == lowest, 0, firsts.max(axis=0))
    sticky = alone = np.zeros(len(total), dtype=bool)
    for term, bits in zip(others, node.fraction_bits, strict=True):
        alone, flip = (total == 0) & ~sticky, np.where(minus, -1.0, 1.0)
        cut = units(flip * term, top - bits, "down")
        total = flip * (units(flip * total, top - bits, "toward_zero") + cut)
        sticky = sticky | (cut != flip * term)
        minus = np.where(total != 0, total < 0, minus)
    last = np.ldexp(np.where(minus, -1.0, 1.0), top - node.fraction_bits[1] - 1)
    total = np.where(alone, others[1], np.where(sticky, total + last, total))
    exponent = np.where(alone, np.take_along_axis(firsts, order, axis=0)[2], top)
    return _summed(terms, total, exponent, all_of([t.is_zero for t in terms]), np.zeros(len(total), dtype=bool))


def grid_sum(node: GridSum, operands: Sequence[Sequence[Value]]) -> Value:
    """Integers on a grid, whose unit is the coarsest that an exponent and its operand's F give; where there is a frame,
    what opposes its sign is flipped, so that it counts one unit more."""
    every = [t for terms in operands for t in terms]
    count, lanes = len(operands), len(every[0].exact)
    place = np.full(lanes, BELOW_ALL * 4, dtype=np.int64)
    for terms, bits, low in zip(operands, node.fraction_bits, node.floors or (None,) * count, strict=True):
        for t in terms:
            place = np.maximum(place, np.where(t.is_zero | ~t.finite, place, t.exponent - bits))
            place = place if low is None else np.maximum(place, low - bits)
    place = np.where(all_of([t.is_zero | ~t.finite for t in every]), 0, place)
    frame = None if node.frame is None else operands[node.frame][0].negative
    total = np.zeros(lanes)
    for terms, reach in zip(operands, node.reach or (None,) * count, strict=True):
        for t in terms:
            near = t.finite if reach is None else t.finite & (t.is_zero | (t.exponent >= place - reach))
            kept = units(np.where(near, t.exact, 0.0), place, node.rounding)
            if frame is not None:
                unit = np.where(t.negative, -1.0, 1.0) * np.ldexp(1.0, place)
                kept = np.where(t.negative != frame, kept + unit, kept)
            total += kept
    is_zero = all_of([t.is_zero for t in every])
    total = np.where(is_zero, 0.0, total)
    exponent = np.where(is_zero, 0, place + max(node.fraction_bits))
    return _summed(every, total, exponent, is_zero, np.zeros(lanes, dtype=bool))


def cut(value: Value, node: Cut) -> Value:
    """Normalised and rounded to some significant bits; a sum that is zero has the least exponent, or one below all. A
    sum that is not zero has one sign from here on, also where it is cut to zero."""
    least = BELOW_ALL if node.least is None else node.least
    nonzero = value.finite & (value.exact != 0)
    size = np.where(nonzero, value.exact, 1.0)
    exponent = np.maximum(log2(size), least)
    exact = np.where(nonzero, units(size, exponent - node.bits + 1, node.mode), 0.0)
    again = np.where(exact != 0, np.maximum(log2(np.where(exact != 0, exact, 1.0)), least), exponent)
    negative = value.exact < 0
    return replace(
        value, exact=np.where(nonzero, exact, value.exact), exponent=np.where(nonzero, again, least),
        every=np.where(nonzero, negative, value.every), some=np.where(nonzero, negative, value.some),
        single=np.where(nonzero, exact == 0, value.single), patterns=None,
    )  # fmt: skip


def rectified(value: Value, node: Relu) -> Value:
    """What is above zero stays; each zero, or what becomes one, has the sign that its rule says."""
    nan = value.kind == NOT_A_NUMBER
    stays = ~nan & (value.exact > 0)
    negative = ~nan & value.negative
    sign = {"positive": negative & False, "keep": negative & (value.exact == 0), "signed": negative}[node.zero]
    lost = ~stays & (nan | (value.exact < 0))
    kept = nan & (node.nan == "keep")
    gone = replace(value.cleared(~stays & ~kept, sign), patterns=None)
    return replace(gone, exponent=value.exponent, is_zero=np.where(lost, True, value.is_zero) & ~kept,
                   single=np.where(kept, value.single, True))  # fmt: skip


@dataclass(frozen=True)
class Encoding:
    """A format as the oracle of formats has it, for rounding many numbers."""

    fmt: Format
    own: oracle.Format

    @classmethod
    def of(cls, fmt: Format) -> Encoding:
        return cls(fmt, oracle.FORMATS[fmt.name])

    def rounded(self, exact: Lanes, negative: Flags, how: Rounding) -> tuple[Patterns, Flags]:
        """The patterns of numbers that are not zero, and where they overflow."""
        own, size = self.own, np.abs(exact)
        exponent = np.maximum(np.where(size > 0, log2(np.where(size > 0, size, 1.0)), own.emin), own.emin)
        place = exponent - own.mantissa_bits
        base = np.ldexp((exponent - own.emin).astype(float), own.mantissa_bits)  # makes patterns even or odd
        body = np.abs(ROUND[how.mode](np.where(negative, -1.0, 1.0) * (np.ldexp(size, -place) + base)))
        most = float(oracle.decode(self.fmt.name, own.largest << own.padding).value)
        over = np.ldexp(body - base, place) > most
        body = np.maximum(body - (not own.subnormals), 0)
        inward = np.full(len(exact), how.mode in ("toward_zero", "to_odd"))
        inward = inward | (negative if how.mode == "up" else ~negative & (how.mode == "down"))
        infinite = over & ((how.overflow == "infinity") | ((how.overflow == "ieee") & ~inward))
        body = np.where(over, own.largest, body).astype(np.uint64)
        signed = negative & own.signed & ~(own.one_zero & (body == 0))
        found = (np.where(signed, own.ones + 1, 0).astype(np.uint64) + body) << np.uint64(own.padding)
        return np.where(infinite, infinities(self.fmt, negative), found), over

    def zero(self, negative: Flags) -> Patterns:
        signed = negative & self.own.signed & (not self.own.one_zero)
        return np.where(signed, (self.own.ones + 1) << self.own.padding, 0).astype(np.uint64)


def infinities(fmt: Format, negative: Flags) -> Patterns:
    plus, minus = (oracle.infinity(fmt.name, sign) for sign in (False, True))
    return np.where(negative, minus, plus).astype(np.uint64)


def nan_of(how: Rounding) -> int:
    own = oracle.FORMATS[how.format.name]
    if how.nan is not None:
        return how.nan
    return 0 if own.specials == "none" else own.nan


def rounded(value: Value, how: Rounding) -> Value:
    """The numbers of a format."""
    to, count = Encoding.of(how.format), len(value.exact)
    exact, nonzero = value.exact, value.finite & (value.exact != 0)
    single = value.single if how.zero == "exact_positive" else np.ones(count, dtype=bool)
    negative = value.every | (value.some & (how.mode == "down"))
    zero = to.zero(np.where(exact != 0, exact < 0, negative & single) & (how.zero != "positive"))
    found, over = to.rounded(np.where(nonzero, exact, 1.0), exact < 0, how)
    own = to.own
    tiny = np.zeros(count, dtype=bool)
    if how.subnormals == "flush_before":
        tiny = np.abs(exact) < 2.0**own.emin
    kind, numbers, *_ = (side[found] for side in table_of(how.format))
    small = (kind == FINITE) & ((numbers == 0) | (how.subnormals == "flush_after") & (np.abs(numbers) < 2.0**own.emin))
    if not own.subnormals:
        small = tiny
    found = np.where(~nonzero | tiny | small, zero, found)
    found = np.where(value.kind == INFINITE, infinities(how.format, exact < 0), found)
    nan = (value.kind == NOT_A_NUMBER) | ((table_of(how.format)[0][found] == NOT_A_NUMBER) & (value.kind != INFINITE))
    if how.nan is not None:  # where there is no infinity either
        nan = nan | (table_of(how.format)[0][found] == NOT_A_NUMBER)
    patterns = np.where(nan, np.uint64(nan_of(how)), found)
    made = number(how.format, patterns)
    return replace(made, fault=value.fault | (over & nonzero & ~tiny) | (value.kind != FINITE) | (made.kind != FINITE))


Loops = Mapping[int, tuple[int, Value | None]]  # level -> the loop variable, and the result so far


class Evaluation:
    """Nodes on many inputs of formats: `inputs` has the patterns of each element, by operand and place."""

    def __init__(self, formats: Mapping[str, Format], inputs: Mapping[tuple[str, int], Patterns], count: int) -> None:
        self.formats, self.inputs, self.count = formats, inputs, count
        self._known: dict[Any, tuple[Loops, Value]] = {}

    def element(self, node: Element, loops: Loops) -> Value:
        fmt, own = self.formats[node.operand], oracle.FORMATS[self.formats[node.operand].name]
        x = number(fmt, self.inputs[node.operand, place_of(node.index, loops)])
        small = own.subnormals & x.finite & (x.exact != 0) & (np.abs(x.exact) < 2.0**own.emin)
        plus = np.zeros(self.count, dtype=bool)
        if node.positive_zeros:
            where = x.finite & (x.exact == 0)
            x = replace(x, every=x.every & ~where, some=x.some & ~where, patterns=None)
        if node.subnormals == "keep":
            return x
        negative = x.negative if node.subnormals == "zero" and not node.positive_zeros else plus
        return x.cleared(small, negative)

    def terms(self, node: Node, loops: Loops) -> Iterator[Value]:
        """The terms that an operand of a sum stands for."""
        if isinstance(node, Each):
            for place in node.places:
                yield from self.terms(node.body, {**loops, node.level: (place, None)})
        else:
            yield self.value(node, loops)

    def value(self, node: Node, loops: Loops) -> Value:
        own = {level: loops[level] for level in node.free}
        key = node, tuple((level, place, id(value)) for level, (place, value) in sorted(own.items()))
        if key not in self._known:
            self._known[key] = own, self.compute(node, loops)  # the loops are kept, so that no id comes again
        return self._known[key][1]

    def compute(self, node: Node, loops: Loops) -> Value:
        match node:
            case Element():
                return self.element(node, loops)
            case Constant():
                return zeros(self.count, node.negative)
            case Literal():
                return constant(self.count, node.format, node.pattern)
            case Product():
                return self.product(node, loops)
            case Gate():
                factors = [self.value(x, loops) for x in node.term.operands]
                zero = any_of([x.finite & (x.exact == 0) for x in factors])
                return self.value(node.term, loops).cleared(zero, np.full(self.count, node.minus_zero))
            case Segment():
                return self.segment(node, loops)
            case Cancelling():
                x = self.value(node.term, loops)
                return replace(x, is_zero=x.is_zero | (x.finite & (x.exact == 0)), patterns=None)
            case Counting():
                x = self.value(node.term, loops)
                return replace(x, is_zero=np.zeros(self.count, dtype=bool), patterns=None)
            case Signed():
                x = self.value(node.term, loops)
                exact = exact_sum([t for item in node.term.operands for t in self.terms(item, loops)])
                kept = x.finite & (x.exact == 0) & (exact.exact != 0)
                every, some = (np.where(kept, exact.exact < 0, signs) for signs in (x.every, x.some))
                return replace(x, every=every, some=some, single=x.single | kept, patterns=None)
            case Relu():
                return rectified(self.value(node.term, loops), node)
            case Scale():
                return times([self.value(x, loops) for x in (node.term, node.left, node.right)])
            case ExactSum():
                return exact_sum([t for item in node.items for t in self.terms(item, loops)])
            case FusedSum():
                return fused_sum(node, [[*self.terms(item, loops)] for item in node.items])
            case SortedSum():
                return sorted_sum(node, [self.value(item, loops) for item in node.items])
            case GridSum():
                return grid_sum(node, [[*self.terms(item, loops)] for item in node.items])
            case Cut():
                return cut(self.value(node.term, loops), node)
            case Round():
                return rounded(self.value(node.term, loops), node.rounding)
            case Repeat():
                so_far = self.value(node.start, loops)
                for place in node.places:
                    so_far = self.value(node.body, {**loops, node.level: (place, so_far)})
                return so_far
            case Running():
                found = loops[node.level][1] if node.level in loops else None
                if found is None:
                    raise Unchecked  # of no loop around
                return found
        raise TypeError(f"no value: {node!r}")

    def product(self, node: Product, loops: Loops) -> Value:
        p = times([self.value(node.left, loops), self.value(node.right, loops)])
        nonzero = p.finite & (p.exact != 0)
        if node.normalised:
            p = replace(p, exponent=np.where(nonzero, log2(np.where(nonzero, p.exact, 1.0)), p.exponent))
        if node.limit is not None:
            over = nonzero & (np.abs(p.exact) >= 2.0**node.limit)
            sign = np.where(p.exact < 0, -1.0, 1.0)
            p = replace(p, kind=np.where(over, INFINITE, p.kind).astype(np.int8), exact=np.where(over, sign, p.exact),
                        every=np.where(over, sign < 0, p.every), some=np.where(over, sign < 0, p.some),
                        fault=p.fault | over)  # fmt: skip
        return p

    def segment(self, node: Segment, loops: Loops) -> Value:
        """Some bits of an input, read from its exponent down; what is not finite is in the first segment alone."""
        x = replace(self.value(node.term, loops), patterns=None)
        nonzero = x.finite & (x.exact != 0)
        size = np.where(nonzero, np.ldexp(np.abs(x.exact), -x.exponent - 1), 0.0)  # below 1: bit i is worth 2^-(i + 1)
        down = np.zeros(self.count, dtype=np.int64)
        if node.leading:
            down = np.where(nonzero, -1 - log2(np.where(nonzero, size, 1.0)), down)
        kept = units(size, -node.end - down, "toward_zero") - units(size, -node.first - down, "toward_zero")
        sign = np.where(x.negative, -1.0, 1.0)
        none = x.finite & (kept == 0)
        exact = np.where(x.finite, sign * np.ldexp(kept, x.exponent + 1), x.exact) + 0.0
        found = replace(
            x, exact=exact, is_zero=np.where(x.finite, none, x.is_zero),
            every=np.where(none, x.negative & (not node.positive), x.every),
            some=np.where(none, x.negative & (not node.positive), x.some),
        )  # fmt: skip
        if node.first:
            return replace(found.cleared(~x.finite, np.zeros(self.count, dtype=bool)), fault=x.fault)
        return found


def place_of(index: Index | None, loops: Loops) -> int:
    return 0 if index is None else index.offset + sum(factor * loops[level][0] for level, factor in index.factors)


def formats_of(unit: Unit) -> dict[str, Format]:
    """The formats of a unit's operands, by name."""
    scales = {} if unit.scale is None else {"scale_a": unit.scale, "scale_b": unit.scale}
    return {"a": unit.a, "b": unit.b, "c": unit.c, **scales}
