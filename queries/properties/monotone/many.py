"""Sums of many terms are monotonic in each: what all of them share, and exact sums in fixed point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queries.properties.monotone.ledger import UnprovedError
from queries.properties.monotone.steps import (
    Case,
    Side,
    Step,
    at_most,
    bits_of,
    entered,
    implies,
    side_of,
    signed,
    term_key,
    within,
)
from smtmodel.algebra import Bit, Bits, all_of, select, truth
from smtmodel.alignment import place_all
from smtmodel.decode import Term, Unpacked
from smtmodel.dot import Evaluation
from smtmodel.trace import Stage

LABELS = ("before", "after")


@dataclass(frozen=True)
class Added:
    """One side's terms as added: magnitudes and signed terms, and the partial sums. For truncated sums also the
    exponents that count for the maximum, each term's own exponent on the same scale, and the maximum."""

    magnitudes: list[Bits]
    addends: list[Bits]
    sums: list[Bits]
    exponents: list[Bits]
    own: list[Bits]
    maximum: Bits


class Many(Step[Added]):
    """What both kinds of sums have in common: no sum wraps, and a product's order is that of its terms."""

    def added(
        self, evaluation: Evaluation, magnitudes: list[Bits], exponents: list[Bits], own: list[Bits], maximum: Bits
    ) -> tuple[Side, Added]:
        """Raises UnprovedError if the sum is not a plain sum of the terms."""
        total, items = bits_of(evaluation, self.summing, Stage.SUM), self.items(evaluation)
        if any(x.width > total.width for x in magnitudes):
            raise UnprovedError("a term has more bits than the sum")
        addends = [signed(item.sign, x, total.width) for item, x in zip(items, magnitudes, strict=True)]
        sums = [addends[0]]
        for addend in addends[1:]:
            sums.append(sums[-1] + addend)
        if sums[-1].node != total.node:
            raise UnprovedError("the sum is not a plain sum")
        side = side_of(evaluation, self.prefix, total, items, self.deciding(evaluation), self.summing)
        return side, Added(magnitudes, addends, sums, exponents, own, maximum)

    @property
    def summing(self) -> str:
        """The prefix of the sum's signals."""
        return self.prefix

    def _exponent_fact(self, label: str) -> str:
        """The name of the fact about a raised product's exponent."""
        return self.say(f"exponent of the raised product {label}")

    def items(self, evaluation: Evaluation) -> list[Unpacked]:
        return entered(evaluation, self.summing)

    def deciding(self, evaluation: Evaluation) -> list[Unpacked]:
        """The terms whose NaNs and infinities decide."""
        return self.items(evaluation)

    def raised_terms(self) -> list[Term]:
        return [side.items[self.raised].term for side in self.sides]

    def bound(self, side: int, k: int) -> str:
        """A term as added is not larger than its magnitude can be."""
        parts, sign = self.parts[side], self.sides[side].items[k].sign
        claim = within(parts.addends[k], (1 << parts.magnitudes[k].width) - 1)
        text = f"bound of term {k} {LABELS[side]}"
        return self.ledger.establish(self.say(text), claim, [parts.magnitudes[k], sign])

    def sum_bound(self, side: int, last: int) -> str:
        """No partial sum up to a term wraps."""
        parts, name = self.parts[side], self.bound(side, 0)
        for k in range(1, last + 1):
            claim = within(parts.sums[k], sum((1 << x.width) - 1 for x in parts.magnitudes[: k + 1]))
            cuts: list[Bits | Bit] = [parts.sums[k - 1], parts.addends[k]]
            text = f"bound of the sum up to term {k} {LABELS[side]}"
            name = self.ledger.establish(self.say(text), claim, cuts, [name, self.bound(side, k)])
        return name

    def product_order(self, strictly: bool, entering: str, cuts: Sequence[Bits | Bit] = ()) -> list[str]:
        """The raised products (or sums of a scale block's products) as normalised terms are ordered, and their
        exponents are in range."""
        keys, used = [], []
        for term, label in zip(self.raised_terms(), LABELS, strict=True):
            normal, exponent = term.normalised(), term.exponent
            zero = self.constant(0, normal.exponent.bits.width)
            bits = select(normal.is_zero, zero, normal.exponent.bits)
            keys.append(term_key(bits, normal.significand, term.sign))
            claim = implies(self.finite, at_most(exponent.bits, exponent.high - exponent.low))
            used.append(self.ledger.establish(self._exponent_fact(label), claim))
        claim = implies(self.finite, keys[0].slt(keys[1]) if strictly else keys[0].sle(keys[1]))
        text = "the raised products rise" if strictly else "the raised products are ordered"
        return [*used, self.ledger.establish(self.say(text), claim, cuts, [entering])]


class FixedPoint(Many):
    """An exact sum in fixed point over the whole range, rounded once."""

    def side(self, evaluation: Evaluation) -> tuple[Side, Added]:
        placed = place_all([item.term for item in self.items(evaluation)])[0]
        return self.added(evaluation, placed, [], [], self.constant(0, 1))

    def ranges(self) -> list[str]:
        return []

    def cases(self) -> list[tuple[Case, str]]:
        before, after = (side.magnitude for side in self.sides)
        case = Case("one unit", truth(self.ledger.carrier, True), before.ule(after), after.ule(before))
        fact, last = self._placed_order(), len(self.before.items) - 1
        for k in range(max(self.raised, 1), last + 1):
            fact = self._add(k, fact)
        used = [fact, *(self.sum_bound(side, last) for side in (0, 1))]
        cuts: list[Bits | Bit] = [*(side.total for side in self.sides), self.finite]
        return [(case, self.ledger.establish(self.say("magnitudes of the sums"), self.holds(case), cuts, used))]

    def _placed_order(self) -> str:
        before, after = (parts.addends[self.raised] for parts in self.parts)
        claim = implies(self.finite, before.sle(after))
        cuts: list[Bits | Bit] = [*self.patterns]
        used = [self.entering]
        if not self.patterns:
            used = self._product_places()
            cuts.append(self.finite)
            for side, term in enumerate(self.raised_terms()):
                cuts += [term.sign, self._shifted(side), self.parts[side].magnitudes[self.raised]]
        return self.ledger.establish(self.say("placed terms are ordered"), claim, cuts, used)

    def _shifted(self, side: int) -> Bits:
        """A product's normalised significand in fixed point over the whole range of its exponents."""
        normal = self.raised_terms()[side].normalised()
        width = normal.significand.width + normal.exponent.high - normal.exponent.low
        places = max(width.bit_length(), normal.exponent.bits.width)
        return normal.significand.zext(width).shl(normal.exponent.bits.zext(places))

    def _product_places(self) -> list[str]:
        """Normalised products in fixed point are ordered, and are what was placed."""
        used, shape, cuts = self.product_order(False, self.entering), [], list[Bits | Bit]()
        for term in self.raised_terms():
            normal = term.normalised()
            range_ = at_most(normal.exponent.bits, normal.exponent.high - normal.exponent.low)
            shape += [~normal.significand.any() | normal.significand.msb(), implies(self.finite, range_)]
            cuts += [normal.significand, normal.exponent.bits, term.sign]
        used.append(self.ledger.establish(self.say("raised products are normalised"), all_of(shape)))
        signs = [term.sign for term in self.raised_terms()]
        numbers = [signed(sign, x, x.width + 1) for sign, x in zip(signs, map(self._shifted, (0, 1)), strict=True)]
        claim = implies(self.finite, numbers[0].sle(numbers[1]))
        name = self.say("normalised products in fixed point are ordered")
        return [self.ledger.establish(name, claim, [*cuts, self.finite], used), *map(self._place, (0, 1))]

    def _place(self, side: int) -> str:
        """The product as placed is the normalised one in fixed point, on one scale."""
        term, placed, shifted = self.raised_terms()[side], self.parts[side].magnitudes[self.raised], self._shifted(side)
        zeros, significand = term.significand.leading_zeros(), term.significand
        kept = significand.shl(zeros).lshr(zeros).eq(significand) & at_most(zeros, significand.width)
        shape = self.ledger.establish(self.say(f"leading zeros {LABELS[side]}"), kept, [significand])
        fixed = place_all([item.term for item in self.sides[side].items])[1]
        scale = fixed - (term.normalised().exponent.low - significand.width + 1)
        width = max(placed.width + max(scale, 0), shifted.width + max(-scale, 0))
        left, right = placed.zext(width).shl(max(scale, 0)), shifted.zext(width).shl(max(-scale, 0))
        cuts: list[Bits | Bit] = [significand, zeros, term.exponent.bits, self.finite]
        used = [shape, self._exponent_fact(LABELS[side])]
        name = self.say(f"the product as placed {LABELS[side]}")
        return self.ledger.establish(name, implies(self.finite, left.eq(right)), cuts, used)

    def _add(self, k: int, ordered: str) -> str:
        """The partial sums up to a term are ordered, since those before it (or the terms) are."""
        before, after = self.parts
        claim = implies(self.finite, before.sums[k].sle(after.sums[k]))
        bounds = [fact for side in (0, 1) for fact in (self.sum_bound(side, k - 1), self.bound(side, k))]
        cuts: list[Bits | Bit] = [
            before.sums[k - 1],
            after.sums[k - 1],
            before.addends[k],
            after.addends[k],
            self.finite,
        ]
        return self.ledger.establish(self.say(f"sums up to term {k}"), claim, cuts, [ordered, *bounds])
