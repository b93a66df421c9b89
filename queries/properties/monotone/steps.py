"""One step of a dot product is monotonic in one of its terms: the frame of the proof, whatever way the step sums.

From the order of the raised term before and after: the signed sums are ordered (in cases by how far apart their units
lie, which `monotone_sums` proves for each kind of sum), so the rounded magnitudes are (a lemma on rounding for each
case), so the results are, NaNs and infinities included. Each is a lemma over the model's own terms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from queries.properties.monotone.ledger import NamedFacts, UnprovedError
from queries.properties.monotone.path import rounding_at
from smtmodel.algebra import Bit, Bits, all_of, any_of, constant, select, truth
from smtmodel.decode import Exponent, Unpacked, unpack
from smtmodel.dot import Evaluation
from smtmodel.formats import Format
from smtmodel.nodes import FusedSum
from smtmodel.ordering import pattern_key
from smtmodel.trace import Name, Part, Stage


def implies(condition: Bit, claim: Bit) -> Bit:
    return ~condition | claim


def signed(sign: Bit, magnitude: Bits, width: int) -> Bits:
    """A signed magnitude in two's complement, as sums build it."""
    return (magnitude.zext(width) ^ sign.bits(1).sext(width)) + sign.bits(width)


def absolute(total: Bits) -> Bits:
    """The absolute value of a number in two's complement."""
    return select(total.msb(), -total, total)


def term_key(exponent: Bits, significand: Bits, sign: Bit) -> Bits:
    """An integer that orders normalised terms as their values (a zero has exponent 0)."""
    key = exponent.concat(significand).zext(exponent.width + significand.width + 1)
    return select(sign, -key, key)


def apart(lower: Bits, higher: Bits, places: int, at_least: bool = False) -> Bit:
    """One exponent lies `places` above another, or `at_least` that many."""
    width = max(lower.width, higher.width) + places.bit_length() + 1
    raised = lower.zext(width) + constant(lower.carrier, places, width)
    return raised.ule(higher.zext(width)) if at_least else raised.eq(higher.zext(width))


def within(value: Bits, bound: int) -> Bit:
    """Whether a number in two's complement lies from -`bound` to `bound`."""
    low, high = (constant(value.carrier, edge, value.width) for edge in (-bound, bound))
    return low.sle(value) & value.sle(high)


def at_most(bits: Bits, most: int) -> Bit:
    return bits.ule(constant(bits.carrier, min(most, (1 << bits.width) - 1), bits.width))


@dataclass(frozen=True)
class Side:
    """One evaluation of the step: (-1)^sign * magnitude * 2^unit is rounded; `total` is the sum in two's complement,
    `whole` its absolute value in the width of `total`, of which the magnitude is the low bits. `items` are the terms of
    the sum; `deciding` those whose NaNs and infinities decide (all that went into the step)."""

    items: tuple[Unpacked, ...]
    deciding: tuple[Unpacked, ...]
    total: Bits
    whole: Bits
    magnitude: Bits
    unit: Exponent
    sign: Bit
    rounded: Bits
    result: Bits

    def fields(self, fmt: Format) -> Bits:
        """The rounded magnitude as exponent and fraction fields."""
        return self.rounded.truncate(fmt.field_width)


@dataclass(frozen=True)
class Case:
    """A case of the units of the two sums. Under it, a sum that is not negative before is not negative after, and the
    magnitudes are `rising`; one that is negative after was so before, and they are `falling` (None: cannot be)."""

    name: str
    condition: Bit
    rising: Bit | None
    falling: Bit | None


def side_of(
    evaluation: Evaluation,
    prefix: str,
    total: Bits,
    items: Sequence[Unpacked],
    deciding: Sequence[Unpacked],
    summing: str | None = None,
) -> Side:
    """The signals of a step with its terms; `summing`: what those of its sum begin with, if not as those of the step
    do. Raises UnprovedError if the sum is not the one that the evaluation used."""
    trace = evaluation.trace
    whole = absolute(total)
    magnitude = trace[Name(prefix if summing is None else summing, Stage.SUM, part=Part.MAGNITUDE)]
    rounded, result = (trace[Name(prefix, stage)].bits for stage in (Stage.ROUNDED, Stage.RESULT))
    unit, sign = magnitude.scale, trace[Name(prefix, Stage.SIGN)].flag
    assert unit is not None
    if magnitude.bits.width > whole.width or whole.truncate(magnitude.bits.width).node != magnitude.bits.node:
        raise UnprovedError(f"{magnitude.name} is not a plain sum")
    return Side(tuple(items), tuple(deciding), total, whole, magnitude.bits, unit, sign, rounded, result)


def bits_of(evaluation: Evaluation, prefix: str, stage: Stage, of: str = "") -> Bits:
    """A signal that is a number or a pattern."""
    return evaluation.trace[Name(prefix, stage, of)].bits


def entered(evaluation: Evaluation, prefix: str) -> list[Unpacked]:
    """The terms of a sum."""
    return [item for _, item in evaluation.trace.entered[prefix][1]]


def fused_sum(evaluation: Evaluation, prefix: str) -> FusedSum:
    """The sum whose signals' names begin with a prefix."""
    visits = evaluation.trace.visits
    return next(v.node for v in reversed(visits) if v.prefix == prefix and isinstance(v.node, FusedSum))


def ordered(patterns: Sequence[Bits], fmt: Format) -> Bit:
    """The second of two patterns is not below the first; a NaN neither rises nor falls."""
    before, after = patterns
    missing = unpack(before, fmt).is_nan | unpack(after, fmt).is_nan
    return missing | pattern_key(before, fmt).sle(pattern_key(after, fmt))


Parts = TypeVar("Parts")


class Step(ABC, Generic[Parts]):
    """The proof for one step with its term `raised` (by index) raised; the other terms are the same on both sides.

    `entering` names the fact that orders the raised operand; `patterns` are its two patterns where it is one.
    """

    def __init__(
        self, ledger: NamedFacts, prefix: str, raised: int, entering: str, patterns: Sequence[Bits], name: str
    ) -> None:
        self.ledger, self.prefix, self.raised, self.entering = ledger, prefix, raised, entering
        self.patterns, self.name = tuple(patterns), name
        self.output = rounding_at(ledger.left.trace, prefix).rounding.format
        (self.before, *_), (self.after, *_) = built = [self.side(e) for e in (ledger.left, ledger.right)]
        self.parts = [parts for _, parts in built]
        flags = [flag for side in self.sides for item in side.deciding for flag in (item.is_nan, item.is_infinite)]
        self.finite = ~any_of(flags)

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.before, self.after

    @property
    def inner(self) -> tuple[Bits, ...]:
        """What is cut in every lemma, wherever nothing larger is."""
        return self.patterns

    @property
    def shared(self) -> list[int]:
        """The terms that are the same on both sides."""
        return [k for k in range(len(self.before.items)) if k != self.raised]

    @abstractmethod
    def side(self, evaluation: Evaluation) -> tuple[Side, Parts]:
        """The signals of one side, and what its sum is made of."""

    @abstractmethod
    def cases(self) -> list[tuple[Case, str]]:
        """Cases that are exhaustive, each with the name of the proved fact that it is as it says."""

    @abstractmethod
    def ranges(self) -> list[str]:
        """Proved facts: where all terms are finite, no unit is beyond its range."""

    def say(self, text: str) -> str:
        return f"{self.name}: {text}"

    def constant(self, value: int, width: int) -> Bits:
        return constant(self.ledger.carrier, value, width)

    def in_range(self, side: Side) -> Bit:
        bits, span = side.unit.bits, side.unit.high - side.unit.low
        if span >= (1 << bits.width) - 1:
            return truth(self.ledger.carrier, True)
        return bits.ule(self.constant(span, bits.width))

    def prove(self) -> str:
        """The name of the fact that the step's results are ordered. Raises UnprovedError."""
        cases = self.cases()
        facts = [*self.ranges(), *(fact for _, fact in cases)]
        for case, _ in cases:
            if case.rising is not None:
                facts.append(self._rounding(case, self.before, self.after, case.rising))
            if case.falling is not None:
                facts.append(self._rounding(case, self.after, self.before, case.falling))
        return self._results(self._magnitudes(facts))

    def holds(self, case: Case) -> Bit:
        """That a case is as it says."""
        before, after = (side.total.msb() for side in self.sides)
        rising = before if case.rising is None else before | (~after & case.rising)
        falling = ~after if case.falling is None else ~after | (before & case.falling)
        return implies(self.finite & case.condition, rising & falling)

    def _rounding(self, case: Case, small: Side, large: Side, apart: Bit) -> str:
        """The rounded magnitudes are ordered as the magnitudes are."""
        premise = self.in_range(small) & self.in_range(large) & case.condition & apart
        claim = implies(premise, small.fields(self.output).ule(large.fields(self.output)))
        way = "rising" if small is self.before else "falling"
        cuts = [part for side in (small, large) for part in (side.whole, side.unit.bits, side.sign)]
        return self.ledger.establish(self.say(f"rounding keeps the order, {case.name}, {way}"), claim, cuts)

    def _magnitudes(self, facts: list[str]) -> str:
        """A sum does not become negative; magnitudes of positive sums do not fall, those of negative ones not rise."""
        fields = [side.fields(self.output) for side in self.sides]
        cuts: list[Bits | Bit] = [part for side in self.sides for part in (side.total, side.unit.bits, side.rounded)]
        before, after = (side.total.msb() for side in self.sides)
        rising = any_of([before, after, fields[0].ule(fields[1])])
        falling = any_of([~before, ~after, fields[1].ule(fields[0])])
        claim = implies(self.finite, (before | ~after) & rising & falling)
        return self.ledger.establish(self.say("the rounded magnitudes are ordered"), claim, [*cuts, self.finite], facts)

    def _results(self, magnitudes: str) -> str:
        """The results' order from that of the magnitudes, and from the special values."""
        ledger, fmt = self.ledger, self.output
        used = [magnitudes]
        for label, side in zip(("before", "after"), self.sides, strict=True):
            used += self._shape(label, side)
        keys = [pattern_key(side.rounded, fmt) for side in self.sides]
        cuts: list[Bits | Bit] = [
            part for side in self.sides for part in (side.rounded, side.total, side.sign, side.unit.bits)
        ]
        claim = implies(self.finite, keys[0].sle(keys[1]))
        name = ledger.establish(self.say("finite results are ordered"), claim, [*cuts, self.finite], used)
        specials = [name, self.entering, *map(self._kept, ("before", "after"))]
        cuts = [side.rounded for side in self.sides]
        cuts += [*self.patterns] if self.patterns else []
        for item, other in zip(self.before.deciding, self.after.deciding, strict=True):
            if item.sign.node is other.sign.node and item.is_nan.node is other.is_nan.node:  # it is not raised
                cuts += [item.is_nan, item.is_infinite, item.sign]
        results = [side.result for side in self.sides]
        return ledger.establish(self.say("the results are ordered"), ordered(results, fmt), cuts, specials)

    def _kept(self, label: str) -> str:
        """The name of the fact about what rounding keeps."""
        return self.say(f"what rounding keeps, {label}")

    def _shape(self, label: str, side: Side) -> list[str]:
        """Rounding keeps the sign (of what is not zero) and zero and gives no NaN; what the sign has to do with the
        sum."""
        fmt, ledger = self.output, self.ledger
        fields, zero = side.fields(fmt), ~side.magnitude.any()
        sign = side.rounded.bit(fmt.field_width)
        largest = self.constant(fmt.infinity, fmt.field_width)
        claim = all_of(
            [
                implies(fields.any(), ~(sign ^ side.sign)),
                fields.ule(largest),
                implies(zero & self.in_range(side), fields.equals(0)),
            ]
        )
        cuts: list[Bits | Bit] = [side.whole, side.unit.bits, side.sign]
        name = ledger.establish(self._kept(label), claim, cuts)
        claim = zero | ~(side.sign ^ side.total.msb())
        signs = [item.sign for item in side.deciding]
        return [name, *self.ranges(), ledger.establish(self.say(f"the sign {label}"), claim, [side.total, *signs])]
