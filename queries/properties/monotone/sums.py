"""The sum of two terms is monotonic in each: aligned at the larger one with a sticky bit, as in `ieee.sum_two`.

Where the units of the sums before and after differ, the sums are compared by cases of how many places they are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queries.properties.monotone.path import pattern_of
from queries.properties.monotone.steps import (
    Case,
    Side,
    Step,
    apart,
    at_most,
    entered,
    implies,
    side_of,
    signed,
    term_key,
    within,
)
from smtmodel import ieee
from smtmodel.algebra import Bit, Bits, all_of, select, shift_right_jam, sum_of
from smtmodel.decode import Term, Unpacked, at_maximum
from smtmodel.dot import Evaluation


@dataclass(frozen=True)
class Aligned:
    """One side's terms on the way to its sum: normalised, their exponents (0 for zeros), significands, and as added."""

    terms: list[Term]
    exponents: list[Bits]
    significands: list[Bits]
    addends: list[Bits]
    maximum: Bits


class TwoTerms(Step[Aligned]):
    """The sum of two terms with a sticky bit (`ieee.sum_two`), rounded to nearest or toward zero."""

    FAR = 3  # units so far apart decide by themselves

    def side(self, evaluation: Evaluation) -> tuple[Side, Aligned]:
        items = entered(evaluation, self.prefix)
        total, aligned = self.aligned(items)
        return side_of(evaluation, self.prefix, total, items, items), aligned

    def aligned(self, items: Sequence[Unpacked]) -> tuple[Bits, Aligned]:
        """The sum of two terms in two's complement, as `ieee.sum_two` builds it, and what it is made of."""
        left, right = (item.term for item in items)
        terms = [left.normalised(), right.normalised()]
        unit, significands, _ = at_maximum(*terms)
        placed, _ = ieee.align_two(left, right, self.output.precision)
        self.width = placed[0].width
        signs = [item.sign for item in items]
        total = sum_of(self.ledger.carrier, signs, placed, self.width + 2)
        width, low = unit.bits.width, min(term.exponent.low for term in terms)
        zero = self.constant(0, width)
        exponents = [select(term.is_zero, zero, term.exponent.rebased(low, width)) for term in terms]
        addends = [signed(sign, magnitude, self.width + 2) for sign, magnitude in zip(signs, placed, strict=True)]
        return total, Aligned(terms, exponents, list(significands), addends, unit.bits)

    def ranges(self) -> list[str]:
        return self.in_ranges

    def cases(self) -> list[tuple[Case, str]]:
        facts = self._terms()
        facts.append(self._order())
        maxima = [self.ledger.maximum(aligned.maximum) for aligned in self.parts]
        self.in_ranges = [self._range(k, facts[1:2], name) for k, name in enumerate(maxima)]
        facts += maxima
        found = [(self._case(places, up), places, up) for places in range(self.FAR + 1) for up in (True, False)]
        cases = []
        for case, places, up in found:
            if places == 0 and not up:
                continue
            fact = self._same_unit(case, facts) if places == 0 else self._far(case, facts)
            cases.append((case, fact))
        return cases

    def _parts(self, side: int, index: int) -> list[Bits | Bit]:
        aligned = self.parts[side]
        return [self.sides[side].items[index].sign, aligned.terms[index].significand, aligned.exponents[index]]

    def _cuts(self) -> list[Bits | Bit]:
        chosen = [(0, self.raised), (1, self.raised), (0, self.shared[0])]
        return [p for where in chosen for p in self._parts(*where)] + [a.maximum for a in self.parts] + [self.finite]

    def _terms(self) -> list[str]:
        """Terms are normalised, a zero has exponent 0, and where all are finite no exponent is beyond its range."""
        shape, bounds, counted = [], [], []
        cuts: list[Bits | Bit] = [self.finite]
        for side, index in ((0, self.raised), (1, self.raised), (0, self.shared[0])):
            aligned, unit = self.parts[side], self.sides[side].unit
            term, exponent = aligned.terms[index], aligned.exponents[index]
            zero, bits = ~term.significand.any(), term.exponent.bits
            shape += [zero | term.significand.msb(), implies(zero, exponent.equals(0))]
            bounds.append(at_most(bits, term.exponent.high - term.exponent.low))
            counted.append(at_most(exponent, unit.high - unit.low))
            cuts += [term.significand, bits]
        shaped, bounded = self.say("shape of the terms"), self.say("range of their exponents")
        claims = {shaped: all_of(shape), bounded: implies(self.finite, all_of(bounds))}
        self.ledger.establish_each(self.say("terms are normalised"), claims)
        claim = implies(self.finite, all_of(counted))
        counts = self.ledger.establish(self.say("exponents that count"), claim, cuts, [shaped, bounded])
        return [shaped, counts]

    def _order(self) -> str:
        keys = []
        for side in (0, 1):
            aligned, item = self.parts[side], self.sides[side].items[self.raised]
            keys.append(term_key(aligned.exponents[self.raised], aligned.significands[self.raised], item.sign))
        claim = implies(self.finite, keys[0].sle(keys[1]))
        return self.ledger.establish(self.say("the raised terms are ordered"), claim, self.patterns, [self.entering])

    def _range(self, side: int, facts: list[str], maximum: str) -> str:
        claim = implies(self.finite, self.in_range(self.sides[side]))
        label = ("before", "after")[side]
        return self.ledger.establish(
            self.say(f"range of the maximum {label}"),
            claim,
            [*self.parts[side].exponents, self.finite],
            [*facts, maximum],
        )

    def _case(self, places: int, up: bool) -> Case:
        lower, higher = self.parts if up else self.parts[::-1]
        small, large = self.sides if up else self.sides[::-1]
        far = places == self.FAR
        condition = apart(lower.maximum, higher.maximum, places, far)
        if far:  # the larger one is at least a quarter of its unit's range
            most = self.constant(1 << (self.width - 2), large.magnitude.width)
            relation = most.ule(large.magnitude)
        else:
            relation = self._above(small.magnitude, large.magnitude, places)
        name = f"units {places}{' or more' if far else ''} apart, {'up' if up else 'down'}"
        if not places:
            return Case("equal units", condition, relation, self._above(large.magnitude, small.magnitude, 0))
        return Case(name, condition, relation if up else None, None if up else relation)

    def _above(self, small: Bits, large: Bits, places: int) -> Bit:
        """The small magnitude is at most the large one, whose unit is higher: exactly, or, where the large one has
        bits enough for any rounding, but for the sticky bit."""
        width = small.width + places
        exact = small.zext(width).ule(large.zext(width).shl(places))
        if not places:
            return exact
        jammed = shift_right_jam(small, self.constant(places, places.bit_length()))
        return jammed.ule(large) & (exact | large.lshr(self.output.precision + 2).any())

    def _far(self, case: Case, facts: list[str]) -> str:
        return self.ledger.establish(self.say(f"sums, {case.name}"), self.holds(case), self._cuts(), facts)

    def _same_unit(self, case: Case, facts: list[str]) -> str:
        """The aligned terms are ordered, and so are their sums."""
        before, after = self.parts
        other, raised = self.shared[0], self.raised
        claim = implies(self.finite & case.condition, before.addends[raised].sle(after.addends[raised]))
        used = [self.ledger.establish(self.say("aligned terms, equal units"), claim, self._cuts(), facts)]
        claim = implies(case.condition, before.addends[other].eq(after.addends[other]))
        used.append(self.ledger.establish(self.say("aligned other term, equal units"), claim, self._cuts()))
        cuts: list[Bits | Bit] = []
        for side, label in ((0, "before"), (1, "after")):
            for addend, item in zip(self.parts[side].addends, self.sides[side].items, strict=True):
                cuts.append(addend)
                used.append(self._bounded(side, addend, item.sign, label))
        cuts += [self.finite, *(aligned.maximum for aligned in self.parts)]
        return self.ledger.establish(self.say("sums, equal units"), self.holds(case), cuts, used)

    def _bounded(self, side: int, addend: Bits, sign: Bit, label: str) -> str:
        aligned = self.parts[side]
        which = "raised" if addend is aligned.addends[self.raised] else "other"
        cuts: list[Bits | Bit] = [sign, *aligned.significands, aligned.maximum]
        claim = within(addend, (1 << self.width) - 1)
        return self.ledger.establish(self.say(f"bound of the {which} aligned term {label}"), claim, cuts)


class RoundedAddition(TwoTerms):
    """An IEEE addition of two patterns, one of which is raised: of the running sum and the sum of a step's rounded
    products, or of the chain's result and an addend that comes after it."""

    @property
    def inner(self) -> tuple[Bits, ...]:
        other = pattern_of(self.ledger.left.trace, self.before.items[self.shared[0]], self.ledger.inputs.c)
        return self.patterns if other is None else (*self.patterns, other)
