"""Inputs that are multiplied in parts. The first part has the first bits of a significand, the second the first bits of
the rest, and so on. Products of parts are added in some order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from mmaprobe.queries.building.weights import negated_number
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Cut, ExactSum, Node, Round, Segment
from mmaprobe.smtmodel.nodes.round import Rounding

Passes = Literal["steps", "whole", "terms"]
Rest = Literal["+0", "ieee"]
RESTS: tuple[Rest, ...] = ("+0", "ieee")
PASSES: tuple[Passes, ...] = ("steps", "whole", "terms")
SHORT = 11  # the most bits of a format for which every width of a part is tried
WIDTHS = (8, 11, 12, 16, 24, 26, 27)  # widths of parts of longer formats
READ_MODES: tuple[Mode, ...] = ("toward_zero", "nearest_even")


@dataclass(frozen=True)
class Reading:
    """A rounding of an input to `bits` significant bits, in `mode`, before it is multiplied."""

    bits: int
    mode: Mode


Pair = tuple[int, int]
Split = tuple[Reading | None, ...]  # for each part of an input: the rounding of the rest that earlier parts leave
WHOLE: Split = (None,)


@dataclass(frozen=True)
class Parts:
    """Products of parts. `a`, `b`: how the inputs are split. `pairs`: the parts that are multiplied, in the order in
    which these products are added. `passes`: "steps": each step is made once for every pair, starting from its previous
    result; "whole": the whole unit is made once for every pair, with its previous result in place of c; "terms": all
    products are terms of one sum. `rest`: the rest of an infinity, a NaN, or a number whose first part is infinite: +0,
    or the difference by IEEE 754. `kept`: parts are segments, with the parameters `positive` and `leading`.
    """

    a: Split = WHOLE
    b: Split = WHOLE
    pairs: tuple[Pair, ...] = ((0, 0),)
    passes: Passes = "steps"
    rest: Rest = "+0"
    kept: bool = False
    positive: bool = True
    leading: bool = False

    def __post_init__(self) -> None:
        assert self.pairs
        assert all(i < len(self.a) and j < len(self.b) for i, j in self.pairs)
        assert not self.kept or all(part is None or part.mode == "toward_zero" for part in (*self.a, *self.b))


UNSPLIT = Parts()


def read_once(a: Reading | None, b: Reading | None) -> Parts:
    """Inputs that are each rounded once (None: read in full) and multiplied without further parts."""
    return Parts((a,), (b,))


def rounded_input(number: Node, reading: Reading | None, fmt: Format) -> Node:
    """A number of a format, rounded as it is read (None: read in full)."""
    if reading is None:
        return number
    return Round(Cut(number, reading.bits, reading.mode, fmt.emin), Rounding(fmt, reading.mode))


def part_of(number: Node, split: Split, at: int, parts: Parts, fmt: Format) -> Node:
    """One part of an input. Raises ParameterError for a segment of a number that is not an input."""
    if parts.kept and split != WHOLE:
        first = sum(reading.bits for reading in split[:at] if reading is not None)
        own = split[at]
        end = fmt.precision if own is None else first + own.bits
        return Segment(number, first, end, parts.positive and first > 0, parts.leading)
    for reading in split[:at]:
        high = rounded_input(number, reading, fmt)
        number = _rest(number, high, fmt, parts, reading is not None and reading.mode != "toward_zero")
    return rounded_input(number, split[at], fmt)


def _rest(number: Node, high: Node, fmt: Format, parts: Parts, overflows: bool) -> Node:
    """The rest that a part leaves of a number; the rest is always a number of the format. `overflows`: whether the part
    may be infinite where the number is not."""
    minus = negated_number(high, fmt)
    if parts.rest == "ieee":
        return Round(ExactSum((number, minus)), Rounding(fmt))
    if overflows:  # NaN where the part is infinite
        number = Round(ExactSum((Round(ExactSum((number, minus)), Rounding(fmt)), high)), Rounding(fmt))
    return Round(ExactSum((number, minus)), Rounding(fmt, nan=0))


# -- parts to try


def tried_splits(asked: Signature) -> Iterator[tuple[Split, Split]]:
    """Splits to try: both inputs in parts of the same widths, or only one in parts."""
    for mode in READ_MODES:
        left, right = (list(_splits(fmt, mode)) for fmt in (asked.a, asked.b))
        yield from ((one, other) for one, other in product(left, right) if one == other)
        yield from ((one, WHOLE) for one in left)
        yield from ((WHOLE, other) for other in right)


def uneven_parts(asked: Signature) -> Iterator[Parts]:
    """Products of segments whose widths differ between a and b. The last segment may be dropped: a factor of one
    segment has only its first bits."""
    left, right = (
        [*(split for split in _splits(fmt, "toward_zero") if len(split) == 2),
         *((Reading(bits, "toward_zero"),) for bits in range(2, fmt.precision))]
        if fmt.precision <= SHORT else [] for fmt in (asked.a, asked.b)
    )  # fmt: skip
    for passes in PASSES[:2]:
        for a, b in product(left, right):
            if a != b and len(a) + len(b) > 2:
                yield from (Parts(a, b, pairs, passes, kept=True) for pairs in pair_orders(a, b))


def _splits(fmt: Format, mode: Mode) -> Iterator[Split]:
    short = fmt.precision <= SHORT
    for bits in range(2, fmt.precision) if short else WIDTHS:
        if bits >= fmt.precision:
            continue
        reading = Reading(bits, mode)
        yield reading, None
        if 2 * bits < fmt.precision:
            yield reading, reading
            yield reading, reading, None


def pair_orders(a: Split, b: Split) -> Iterable[tuple[Pair, ...]]:
    """The pairs of parts that are multiplied, in order: all pairs, or all but those of small products; small products
    first or last."""
    every = list(product(range(len(a)), range(len(b))))
    large = [pair for pair in every if sum(pair) < max(len(a), len(b))]
    orders: dict[tuple[Pair, ...], None] = {}
    for some in (large, every):
        rows, columns = some, sorted(some, key=lambda pair: pair[::-1])
        for last_first in (True, False):
            for order in (rows, columns):
                orders[tuple(sorted(order, key=lambda pair: -sum(pair) if last_first else sum(pair)))] = None
        for order in (rows, rows[::-1], columns, columns[::-1]):
            orders[tuple(order)] = None
    return orders


def drafts_of_parts(asked: Signature, several: bool, kept: bool) -> Iterator[Parts]:
    """Products of parts to try, of two parts or, with `several`, of three. `kept`: the parts are segments."""
    for a, b in tried_splits(asked):
        modes = {part.mode for part in (*a, *b) if part is not None}
        if (max(len(a), len(b)) > 2) != several or (kept and modes != {"toward_zero"}):
            continue
        sets: dict[frozenset[Pair], None] = {}
        for pairs in pair_orders(a, b):
            yield Parts(a, b, pairs, "steps", kept=kept)
            yield Parts(a, b, pairs, "whole", kept=kept)
            if frozenset(pairs) not in sets:
                yield Parts(a, b, pairs, "terms", kept=kept)
            sets[frozenset(pairs)] = None


def other_parts(parts: Parts) -> Iterator[Parts]:
    """Parts that differ in one width, mode or product, or in the order of two products."""
    for number, pair in enumerate(parts.pairs[1:]):
        first = parts.pairs[:number]
        yield replace(parts, pairs=(*first, pair, parts.pairs[number], *parts.pairs[number + 2 :]))
    for pair in product(range(len(parts.a)), range(len(parts.b))):
        rest = tuple(other for other in parts.pairs if other != pair)
        if rest:
            yield replace(parts, pairs=rest if len(rest) < len(parts.pairs) else (pair, *rest))
    for passes in PASSES if len(parts.pairs) > 1 else ():
        yield replace(parts, passes=passes)
    if {reading.mode for reading in (*parts.a, *parts.b) if reading is not None} == {"toward_zero"}:
        yield replace(parts, kept=not parts.kept)
    for a in _other_splits(parts.a, parts.kept):
        yield replace(parts, a=a)
    for b in _other_splits(parts.b, parts.kept):
        yield replace(parts, b=b)


def _other_splits(split: Split, kept: bool) -> Iterator[Split]:
    for at, reading in enumerate(split):
        for other in _other_readings(reading, READ_MODES[:1] if kept else READ_MODES):
            yield (*split[:at], other, *split[at + 1 :])


def _other_readings(reading: Reading | None, modes: Sequence[Mode]) -> Sequence[Reading]:
    if reading is None:
        return ()
    modal = [replace(reading, mode=mode) for mode in modes]
    return [*modal, *(replace(reading, bits=bits) for bits in (reading.bits - 1, reading.bits + 1) if bits > 1)]
