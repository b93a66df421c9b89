"""Facts about the values of nodes: each kind of node derives its facts from those of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TypeVar

from mmaprobe.smtmodel.arithmetic.display import exponent_of
from mmaprobe.smtmodel.arithmetic.formats import Format, Interval

Size = TypeVar("Size", int, Fraction)
Fact = TypeVar("Fact")
ANY = 1 << 20  # an exponent above all others, for zero, which is a multiple of every power of two


@dataclass(frozen=True)
class Known:
    """Facts about every finite value v of a node. None or False: the fact is not known.

    If v counts as nonzero in an alignment, its exponent e there satisfies `least` <= e <= `most`, |v| <= `head` * 2^e,
    and v is a multiple of 2^(e - `digits`). v is a multiple of 2^`grid`, has at most `bits` significant bits, lies in
    `interval`, which contains 0, and is zero or a number of one of `formats`. `zero`: v is zero. `never_minus`: v is
    not -0. `never_tiny`: v is zero or at least the smallest normal number of its format. `finite`: no value of the node
    is infinite or a NaN. `terms`: the facts of each term of an exact sum. `adds`: v is a sum, and a zero v has a plus
    sign. `agrees`: if all numbers added are negative or -0, v is not above zero, and counts as zero if it is zero.
    `positive`: if all numbers added are negative or -0, v is not zero. `turns`: if every a and c is negated, and no
    other input, then v is negated (True) or unchanged (False), and so is an infinity; a zero stays a zero, of either
    sign, and a NaN stays a NaN."""

    least: int | None = None
    most: int | None = None
    head: Fraction | None = None
    digits: int | None = None
    grid: int | None = None
    bits: int | None = None
    interval: Interval | None = None
    formats: frozenset[Format] | None = None
    zero: bool = False
    never_minus: bool = False
    never_tiny: bool = False
    finite: bool = False
    terms: tuple[Known, ...] = ()
    adds: bool = False
    agrees: bool = False
    positive: bool = False
    turns: bool | None = None

    @staticmethod
    def number(
        formats: frozenset[Format], grid: int | None = None, bits: int | None = None, interval: Interval | None = None
    ) -> Known:
        """Facts of a number of one of `formats` (zero if there is none). The number is, as far as these are given, a
        multiple of 2^`grid`, has at most `bits` significant bits, and lies in `interval`. Its exponent e is the
        exponent of its magnitude, but at least emin; with f fraction bits the number is a multiple of 2^(e - f), and of
        magnitude at most (2 - 2^-f) * 2^e."""
        if not formats:
            return ZERO
        emin, own = min(fmt.emin for fmt in formats), min(fmt.unit for fmt in formats)
        emax, digits = max(fmt.emax for fmt in formats), max(fmt.fraction for fmt in formats)
        every = reduce(hull, (fmt.interval for fmt in formats))
        interval = every if interval is None else common(interval, every)
        largest = magnitude(interval)
        most = emax if not largest else max(emin, exponent_of(largest))
        grid, bits = own if grid is None else max(grid, own), digits + 1 if bits is None else min(bits, digits + 1)
        if len(formats) == 1:  # below 2^emin numbers are multiples of 2^grid, above it they have `bits` bits
            digits = max(0, bits - 1, emin - grid)
        if len(formats) == 1 and next(iter(formats)).complement:  # -2^emax has emin's exponent
            return Known(emin, emin, Fraction(2), emin - grid, grid, bits, interval, formats, agrees=True)
        return Known(max(emin, grid), most, 2 - power(-digits), digits, grid, bits, interval, formats, agrees=True)

    @staticmethod
    def normal(fmt: Format, low: int, high: int) -> Known:
        """Facts of a number of a format that is zero, or normal with an exponent from `low` to `high`."""
        head = 2 - power(-fmt.fraction)
        top = head * power(high)
        facts = Known.number(frozenset({fmt}), low - fmt.fraction, interval=(-top, top))
        return replace(facts, least=low, digits=fmt.fraction, head=head, never_tiny=True, finite=True)

    @property
    def largest(self) -> Fraction | None:
        """An upper bound of |v|; None if none is known."""
        return None if self.interval is None else magnitude(self.interval)

    @property
    def top(self) -> int | None:
        """The least t with |v| < 2^t for all v of the interval; None if no interval is known."""
        return top_of(self.interval)

    @property
    def unsized(self) -> Known:
        """The facts, with only the interval and the largest exponent that the formats imply."""
        most = UNKNOWN if self.formats is None else Known.number(self.formats)
        return replace(self, interval=most.interval, most=most.most)

    @property
    def is_magnitude(self) -> bool:
        """Whether the formats are known and none of them has a sign or an infinity, so that v has neither."""
        return bool(self.formats) and not any(fmt.signed or fmt.has_infinity for fmt in self.formats or ())

    def or_else(self, other: Known) -> Known:
        """Facts that hold for the values of either node."""
        if self.zero or other.zero:
            facts = replace(self if other.zero else other, zero=self.zero and other.zero)
        else:
            facts = Known(
                _least(self.least, other.least), _most(self.most, other.most), _most(self.head, other.head),
                _most(self.digits, other.digits), _least(self.grid, other.grid), _most(self.bits, other.bits),
                None if self.interval is None or other.interval is None else hull(self.interval, other.interval),
                None if self.formats is None or other.formats is None else self.formats | other.formats,
            )  # fmt: skip
            facts = replace(facts, never_tiny=self.never_tiny and other.never_tiny)
        return replace(facts, never_minus=self.never_minus and other.never_minus, finite=self.finite and other.finite,
                       agrees=self.agrees and other.agrees, terms=(), adds=False, positive=False,
                       turns=turns_of((self, other)))  # fmt: skip

    def times(self, other: Known) -> Known:
        """Facts of exact, unnormalised products: exponents are added, and so are the places of last bits."""
        return Known(
            total(self.least, other.least), total(self.most, other.most),
            times(self.head, other.head), total(self.digits, other.digits), total(self.grid, other.grid),
            total(self.bits, other.bits),
            None if self.interval is None or other.interval is None else product_of(self.interval, other.interval),
            zero=self.zero or other.zero, finite=self.finite and other.finite, agrees=True,
            turns=None if None in (self.turns, other.turns) else self.turns is not other.turns,
        )  # fmt: skip


UNKNOWN = Known()
NOTHING: Interval = (Fraction(0), Fraction(0))
ZERO = Known(None, None, Fraction(2), 0, ANY, 0, NOTHING, frozenset(), True, True, True, True, agrees=True, turns=True)
#: mode -> the largest result of rounding a magnitude in units of a last place; in other modes the next integer up
WAYS: Mapping[str, Callable[[Fraction], int]] = {"toward_zero": math.floor, "nearest_even": round}


@lru_cache(None, typed=True)  # 1.0 is not 1
def power(exponent: int) -> Fraction:
    """2^exponent."""
    return Fraction(2) ** exponent


def total(one: int | None, other: int | None) -> int | None:
    """The sum of two numbers; None if one is not known."""
    return None if one is None or other is None else one + other


def times(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """The product of two numbers; None if one is not known."""
    return None if one is None or other is None else one * other


def hull(one: Interval, other: Interval) -> Interval:
    """The smallest interval that contains two intervals."""
    return min(one[0], other[0]), max(one[1], other[1])


def common(one: Interval, other: Interval) -> Interval:
    """The intersection of two intervals."""
    return max(one[0], other[0]), min(one[1], other[1])


def lies_in(one: Interval, other: Interval) -> bool:
    """Whether an interval lies in another one."""
    return hull(one, other) == other


def plus(one: Interval, other: Interval) -> Interval:
    """The interval of the sums of numbers of two intervals."""
    return one[0] + other[0], one[1] + other[1]


def product_of(one: Interval, other: Interval) -> Interval:
    """The interval of the products of numbers of two intervals."""
    ends = [x * y for x in one for y in other]
    return min(ends), max(ends)


def magnitude(interval: Interval) -> Fraction:
    """The largest magnitude in an interval."""
    return max(-interval[0], interval[1])


def rounded(interval: Interval | None, precision: int, least: int | None, mode: str) -> Interval | None:
    """The interval of an interval's numbers after rounding to `precision` bits or, below 2^least, to multiples of the
    last place there. Since rounding is monotonic, only the ends are rounded."""

    def end(size: Fraction) -> Fraction:
        if not size:
            return size
        exponent = exponent_of(size) if least is None else max(exponent_of(size), least)
        return multiple_of(size, exponent - precision + 1, mode)

    return None if interval is None else (-end(-interval[0]), end(interval[1]))


@lru_cache(1 << 12, typed=True)
def multiple_of(largest: Fraction, place: int, mode: str) -> Fraction:
    """The largest magnitude after rounding numbers of magnitude up to `largest` to multiples of 2^place."""
    units = largest * power(-place)
    return WAYS.get(mode, math.ceil)(units) * power(place)


def all_known(values: Iterable[Fact | None]) -> list[Fact] | None:
    """The facts as a list; None if one of them is not known."""
    every = list(values)
    sizes = [value for value in every if value is not None]
    return sizes if len(sizes) == len(every) else None


def top_of(interval: Interval | None) -> int | None:
    """The least t with |v| < 2^t for all numbers v of an interval; None if the interval is not known."""
    if interval is None:
        return None
    largest = magnitude(interval)
    return exponent_of(largest) + 1 if largest else -ANY


def runs(every: Iterable[Fact]) -> list[tuple[Fact, int]]:
    """Neighbours that are one object, as the facts of a range's terms are: each once, with their number."""
    found: list[tuple[Fact, int]] = []
    for fact in every:
        if found and found[-1][0] is fact:
            found[-1] = fact, found[-1][1] + 1
        else:
            found.append((fact, 1))
    return found


def sum_of(every: Sequence[Known], more: Fraction | None, head: Fraction | None, most: int | None) -> Interval | None:
    """The interval of a sum whose terms change by at most `more` in all before the addition, and whose magnitude is at
    most head * 2^most. None if no interval is known."""
    own: list[Interval] = []
    if more is not None and all(known.interval is not None for known in every):
        several = ((known.interval or NOTHING, count) for known, count in runs(every))
        own = [reduce(plus, ((count * low, count * high) for (low, high), count in several), (-more, more))]
    top = None if most is None else times(head, power(most))
    known = own if top is None else [*own, (-top, top)]
    return reduce(common, known) if known else None


def grid_of(every: Sequence[Known]) -> int | None:
    """An exponent g such that all values are multiples of 2^g; None if none is known."""
    grids = all_known(known.grid for known in every if not known.zero)
    return None if grids is None else min(grids, default=ANY)


def turns_of(every: Iterable[Known]) -> bool | None:
    """The common `Known.turns` of all values: True, False, or None if they differ. Zeros, which are their own
    negatives, are ignored; True if all values are zeros."""
    ways = {known.turns for known in every if not (known.zero and known.finite)}
    return True if not ways else ways.pop() if len(ways) == 1 else None


def turned(turns: bool | None, signless: bool) -> bool | None:
    """`Known.turns` after a step. A step that depends on magnitudes alone (`signless`) keeps the fact; after a step
    that depends on signs, only False (v is unchanged) remains known."""
    return turns if signless or not turns else None


def _least(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def _most(one: Size | None, other: Size | None) -> Size | None:
    return None if one is None or other is None else max(one, other)
