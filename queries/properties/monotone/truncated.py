"""Truncated sums are monotonic in a term that rises by more than the others lose.

When the raised term moves the maximum exponent by d places, every other term loses less than one of the coarser units
(2^d finer ones); the raised one must make up for all of them. That it does is a lemma of its own; where it does not
(many terms, subnormal factors, other ways of cutting) that lemma fails and nothing is claimed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from queries.properties.monotone.ledger import ADMITTED, UnprovedError
from queries.properties.monotone.many import LABELS, Added, Many
from queries.properties.monotone.path import pattern_of, scaled_sum
from queries.properties.monotone.scaled import scaled_order
from queries.properties.monotone.steps import Case, Side, apart, at_most, bits_of, fused_sum, implies, within
from queries.properties.statements import Monotonic
from smtmodel.algebra import Bit, Bits, all_of, select
from smtmodel.decode import Term, unpack
from smtmodel.dot import Evaluation
from smtmodel.trace import Name, Part, Stage


@dataclass(frozen=True, eq=False)
class Distance:
    """How far the units of the two sums are apart, and whether the second one is the higher."""

    case: Case
    places: int
    up: bool


class Truncated(Many):
    """The fused sum of terms truncated below the unit of their maximum exponent."""

    extra = 0  # how many terms more the raised one must make up for
    weight = 1  # the last place that other terms keep, in the units of the sum
    together = 4  # cases in one lemma
    least_far = 0  # from how many places on, at least, the raised term is to decide by itself

    def side(self, evaluation: Evaluation) -> tuple[Side, Added]:
        maximum, items = bits_of(evaluation, self.summing, Stage.MAXIMUM), self.items(evaluation)
        names = [name for name, _ in evaluation.trace.entered[self.summing][1]]
        magnitudes = [bits_of(evaluation, self.summing, Stage.ALIGNED, name) for name in names]
        counted = [evaluation.trace[Name(self.summing, Stage.TERM, name, Part.EXPONENT)] for name in names]
        low = counted[0].offset
        own = [item.term.exponent.rebased(low, maximum.width) for item in items]
        return self.added(evaluation, magnitudes, [exponent.bits for exponent in counted], own, maximum)

    def ranges(self) -> list[str]:
        return self.in_ranges

    def cases(self) -> list[tuple[Case, str]]:
        facts = self._whole_sums(self.gained())
        self.in_ranges = [self._range(side) for side in (0, 1)]
        return [(found.case, fact) for found, fact in zip(self.found, facts, strict=True)]

    def gained(self) -> str:
        """The name of the fact on what the sum gains, in each case. Raises UnprovedError."""
        self.maxima = [self.ledger.maximum(parts.maximum) for parts in self.parts]
        self.order = [self.entering] if self.patterns else self._order()
        self._terms()
        self.slack = self._slack()
        integer = max(x.width for x in self.parts[0].magnitudes) - self.fraction_bits
        self.far = max(self.least_far, 1 + integer + (len(self.before.items) - 1).bit_length() + self.slack)
        left = self.fraction_bits + integer - self.far
        nothing = 0 if self._cut == "toward_zero" else self.weight
        self.far_apart = 1 << left if left > 0 else nothing  # the most of another term, in the coarser unit
        distances = [(0, True), *((n, up) for n in range(1, self.far + 1) for up in (True, False))]
        self.found = [Distance(self._case(*distance), *distance) for distance in distances]
        rise = self._rise()
        return self._sums(rise, [self._loss(k, [self._fact("exponent", 0, k)]) for k in self.shared])

    def _order(self) -> list[str]:
        """The raised terms rise, or, where they are sums of scale blocks, do not fall."""
        trace = self.ledger.left.trace
        group = scaled_sum(trace, trace.entered[self.summing][1][self.raised][1])
        if group is None:
            return self.product_order(True, self.entering)
        problem = self.ledger.problem
        assert isinstance(problem, Monotonic)
        totals = [bits_of(side, group.prefix, Stage.SUM) for side in (self.ledger.left, self.ledger.right)]
        products = [int(name) for name, _ in trace.entered[group.prefix][1]]
        cuts = [
            trace[Name("", Stage.PRODUCT, str(k), part)].value
            for k in products if k != problem.raised
            for part in (Part.SIGN, Part.SIGNIFICAND, Part.EXPONENT)
        ]  # fmt: skip
        text = self.say("the sum of its scale block does not fall")
        sums = self.ledger.establish(text, totals[0].sle(totals[1]), cuts, [self.entering])
        terms = self.raised_terms()
        given, fmt = self.ledger.inputs, problem.left.scale
        assert fmt is not None
        block = products[0] // problem.left.scale_block
        factors = [unpack(side[block], fmt).term for side in (given.scale_a, given.scale_b)]
        rises = scaled_order(self.ledger, self.name, totals, sums, terms, factors)
        parts = [part for term in terms for part in (term.sign, term.significand, term.exponent.bits)]
        return self.product_order(False, rises, parts)

    def _terms(self) -> list[str]:
        """What cut terms lose: which exponent counts, and its range."""
        claims: dict[str, Bit] = {}
        zero = fused_sum(self.ledger.left, self.summing).exponent_of_zeros(self.before.items)
        self.absent = 0 if zero is None else zero - (self.before.unit.low + self.fraction_bits)
        for side, k in ((0, self.raised), (1, self.raised), *((0, k) for k in self.shared)):
            parts, term, unit = self.parts[side], self.sides[side].items[k].term, self.sides[side].unit
            exponent, none = parts.exponents[k], ~term.significand.any()
            absent = self.constant(self.absent, exponent.width)
            if k == self.addend:
                claims[self._fact("least exponent", side, k)] = absent.ule(exponent)
            if k == self.raised:
                own = select(self._none(side), absent, parts.own[k])
                claims[self._fact("exponent", side, k)] = exponent.eq(own)
            else:
                claims[self._fact("exponent", side, k)] = none | exponent.eq(parts.own[k])
            reach = implies(self.finite, at_most(exponent, unit.high - unit.low))
            claims[self._fact("range", side, k)] = reach
        return self.ledger.establish_each(self.say("what terms are like"), claims, [ADMITTED, *self.earlier()])

    def _none(self, side: int) -> Bit:
        """The raised term counts as a zero."""
        return ~self.sides[side].items[self.raised].term.significand.any()

    def earlier(self) -> list[str]:
        """The facts that define the maxima of sums inside the terms."""
        return []

    def _slack(self) -> int:
        """How many places a raised term may lie below its exponent: none if it is normal, else as many as its
        significand has fraction bits. Raises UnprovedError where no room is left above the last place kept."""
        fraction = self.sides[0].items[self.raised].term.fraction
        for slack in (0, fraction):
            if slack >= self.fraction_bits:
                break
            with suppress(UnprovedError):
                text = self.say(f"raised terms are at most {slack} places down")
                self.ledger.establish_each(text, self._sizes(slack), [ADMITTED])
                return slack
        raise UnprovedError(self.say("raised terms are large enough"))

    def _sizes(self, slack: int) -> dict[str, Bit]:
        """The claims that raised terms are at most so far down. With both factors subnormal a product is further down
        than with one, but then no product that is not zero has a lower exponent."""
        terms, model = self.raised_terms(), self.ledger.problem.left
        down = min(slack, max(model.a.fraction, model.b.fraction)) if self._products else slack
        claims = {}
        for side, (term, other) in enumerate([terms, terms[::-1]]):
            high_enough = ~term.significand.any() | term.significand.lshr(term.fraction - down).any()
            if down < slack:
                high_enough |= ~other.significand.any() | term.exponent.bits.ule(other.exponent.bits)
            claims[self._fact("size", side, self.raised)] = high_enough & at_most(term.significand, self._largest(term))
        return claims

    @property
    def _products(self) -> bool:
        """Whether the raised terms are products, not addends or sums of a scale block."""
        model = self.ledger.problem.left
        return not self.patterns and self.raised_terms()[0].fraction == model.a.fraction + model.b.fraction

    def _fact(self, what: str, side: int, k: int) -> str:
        return self.say(f"{what} of term {k}{' ' + LABELS[side] if k == self.raised else ''}")

    def _largest(self, term: Term) -> int:
        """The largest significand of a product is not quite 4 (that of other terms fills its width)."""
        model = self.ledger.problem.left
        if not self._products:
            return (1 << term.significand.width) - 1
        return ((2 << model.a.fraction) - 1) * ((2 << model.b.fraction) - 1)

    def _case(self, places: int, up: bool) -> Case:
        lower, higher = self.parts if up else self.parts[::-1]
        small, large = (side.magnitude for side in (self.sides if up else self.sides[::-1]))
        far = places == self.far
        condition = apart(lower.maximum, higher.maximum, places, far)
        name = f"units {places}{' or more' if far else ''} apart, {'up' if up else 'down'}" if places else "equal units"
        if far:  # the raised term, now or before, is all that matters
            half = 1 << (self.fraction_bits - 1 - self.slack)
            edges = (self.constant(half << places, small.width + places), self.constant(half, large.width))
            relation = small.zext(small.width + places).ule(edges[0]) & edges[1].ule(large)
            return Case(name, condition, relation if up else None, None if up else relation)
        width = small.width + places
        fine, coarse = small.zext(width), large.zext(width).shl(places)
        relations = (fine.ule(coarse), coarse.ule(fine))
        return Case(name, condition, *(relations if up else relations[::-1]))

    @property
    def _cut(self) -> str:
        """How terms are truncated."""
        return fused_sum(self.ledger.left, self.summing).rounding

    @property
    def fraction_bits(self) -> int:
        bits = fused_sum(self.ledger.left, self.summing).fraction_bits
        return bits if isinstance(bits, int) else max(bits)

    def _wide(self, value: Bits) -> Bits:
        return value.sext(self.before.total.width + self.far + 3)

    def _gain(self, before: Bits, after: Bits, found: Distance) -> Bits:
        """after - before in the finer of the two units; where these are far apart, what is in the coarser one alone."""
        x, y = self._wide(before), self._wide(after)
        if found.places == self.far:
            return y if found.up else -x
        return y.shl(found.places) - x if found.up else y - x.shl(found.places)

    def _at_least(self, gain: Bits, least: int) -> Bit:
        return self.constant(least, gain.width).sle(gain)

    def _parts(self, side: int, k: int, exponent: Bits) -> list[Bits | Bit]:
        item = self.sides[side].items[k]
        return [item.sign, item.term.significand, exponent, self.parts[side].exponents[k]]

    def _within_maxima(self, k: int) -> Bit:
        before, after = (parts.exponents[k].ule(parts.maximum) for parts in self.parts)
        return before & after

    def _loss(self, k: int, facts: list[str]) -> list[str]:
        """Another term loses (or gains) less than one of the coarser units; if they are far apart, it is small."""
        before, after = self.parts
        claims = []
        for found in self.found:
            gain = self._gain(before.addends[k], after.addends[k], found)
            claim = self._at_least(gain, self._least(k, found))
            if found.places == self.far:
                claim = within(gain, self.far_apart)
            claims.append(implies(found.case.condition & self._within_maxima(k), claim))
        cuts: list[Bits | Bit] = [*self._parts(0, k, before.own[k]), before.maximum, after.maximum]
        return self._each_case(f"what term {k} loses", claims, cuts, facts)

    def _each_case(self, text: str, claims: list[Bit], cuts: list[Bits | Bit], facts: list[str]) -> list[str]:
        """The names, for each case, of facts that say so in some of the cases, since many at once are hard."""
        names: list[str] = []
        while len(names) < len(claims):
            first = len(names)
            part = f", from case {first + 1}" if first else ""
            some = claims[first : first + self.together]
            names += [self.ledger.establish(self.say(text + part), all_of(some), cuts, facts)] * len(some)
        return names

    def _others(self, count: int, found: Distance) -> int:
        """What `count` other terms may lose, in the finer units."""
        return count * self.weight * ((1 << found.places) - 1)

    def _rise(self) -> list[str]:
        """The raised term makes up for what all others may lose."""
        k, (before, after) = self.raised, self.parts
        largest = self._decides()
        claims = []
        for found in self.found:
            claim = self._at_least(self._gain(before.addends[k], after.addends[k], found), self._least(k, found))
            claims.append(implies(self.finite & found.case.condition & self._within_maxima(k), claim))
        cuts, facts = self._risen()
        text, cuts = "the rise of the raised term", [before.maximum, after.maximum, *cuts]
        return self._each_case(text, claims, cuts, [*facts, largest])

    def _risen(self) -> tuple[list[Bits | Bit], list[str]]:
        """What is cut where the raised term rises, and the facts about it."""
        facts = [self._fact(what, side, self.raised) for what in ("exponent", "size") for side in (0, 1)]
        cuts: list[Bits | Bit] = [*self.patterns]
        if not self.patterns:
            cuts.append(self.finite)  # which speaks of the patterns, where these are the addend's
            for side, term in enumerate(self.raised_terms()):
                cuts += self._parts(side, self.raised, term.exponent.bits)
        return cuts, [*facts, *self.order]

    def _decides(self) -> str:
        """Where the maxima differ, the raised term has the higher one."""
        cuts: list[Bits | Bit] = [*self.parts[0].exponents, *self.parts[1].exponents]
        cuts += [parts.maximum for parts in self.parts]
        top = all_of([implies(found.case.condition, self._top(found)) for found in self.found if found.places])
        sides = (0, 1) if self.addend == self.raised else (0,)
        used = [*self.maxima, *(self._fact("least exponent", side, self.addend) for side in sides)]
        return self.ledger.establish(self.say("the raised term decides the maximum"), top, cuts, used)

    def _top(self, found: Distance) -> Bit:
        """It has the higher maximum, and as no zero."""
        higher = self.parts[1] if found.up else self.parts[0]
        zero = self.constant(self.absent, higher.maximum.width)
        return higher.exponents[self.raised].eq(higher.maximum) & zero.ult(higher.maximum)

    @cached_property
    def addend(self) -> int:
        """The place of the addend among the terms."""
        trace, c, items = self.ledger.left.trace, self.ledger.inputs.c, self.before.items
        return next((k for k, item in enumerate(items) if pattern_of(trace, item, c) is not None), len(items) - 1)

    def _sums(self, rise: list[str], losses: list[list[str]]) -> str:
        """What the whole sum gains is what its terms gain, hence not negative."""
        facts = dict(zip([self.raised, *self.shared], [rise, *losses], strict=True))
        reached, last = self._reached(), len(self.before.items) - 1
        gained = ""
        for k in range(last + 1):
            gained = self._sum_gains(k, self._term_gains(k, facts[k], reached), gained)
        return gained

    def _gains(self, of: Literal["addends", "sums"], k: int) -> list[Bits]:
        """What a term, or a partial sum, gains in each case."""
        before, after = (getattr(parts, of)[k] for parts in self.parts)
        return [self._gain(before, after, found) for found in self.found]

    def _least(self, k: int, found: Distance) -> int:
        """What a term gains at least: the raised one what all others may lose."""
        if found.places == self.far:
            return 1 << (self.fraction_bits - self.slack) if k == self.raised else -self.far_apart
        return self._others(len(self.shared) + self.extra, found) if k == self.raised else -self._others(1, found)

    def _sum_least(self, last: int, found: Distance) -> int:
        """What the sum up to a term gains at least, in that case."""
        return sum(self._least(k, found) for k in range(last + 1))

    def _most(self, k: int, found: Distance) -> int:
        """What it gains at most, in that case."""
        return self.far_apart if found.places == self.far and k != self.raised else self._limit(k, found)

    def _limit(self, k: int, found: Distance) -> int:
        """What it gains at most, in any case."""
        return (1 << self.parts[0].magnitudes[k].width) << (found.places + 1)

    def _in_cases(self, gains: list[Bits], bounds: list[tuple[int, int]]) -> Bit:
        """In each case a gain is within its bounds."""
        claims = []
        for found, gain, (least, most) in zip(self.found, gains, bounds, strict=True):
            claim = self._at_least(gain, least) & gain.sle(self.constant(most, gain.width))
            claims.append(implies(self.finite & found.case.condition, claim))
        return all_of(claims)

    def _term_gains(self, k: int, facts: list[str], reached: str) -> str:
        """What a term gains, whatever its exponent."""
        gains, before, after = self._gains("addends", k), *self.parts
        bounds = [(self._least(k, found), self._most(k, found)) for found in self.found]
        cuts: list[Bits | Bit] = [*gains, before.addends[k], after.addends[k], before.exponents[k], after.exponents[k]]
        cuts += [before.maximum, after.maximum, self.finite]
        used = [*facts, self._gain_bound(k), self._below(k, reached)]
        return self.ledger.establish(self.say(f"what term {k} gains"), self._in_cases(gains, bounds), cuts, used)

    def _sum_gains(self, k: int, term: str, gained: str) -> str:
        """What the sum up to a term gains, from the sum before it."""
        if k == 0:
            return term
        gains = self._gains("sums", k)
        bounds = [(self._sum_least(k, found), sum(self._most(j, found) for j in range(k + 1))) for found in self.found]
        cuts: list[Bits | Bit] = [*gains, *self._gains("sums", k - 1), *self._gains("addends", k), self.finite]
        cuts += [parts.maximum for parts in self.parts]
        used = [term, gained, self._split(k)]
        return self.ledger.establish(
            self.say(f"what the sum up to term {k} gains"), self._in_cases(gains, bounds), cuts, used
        )

    def _below(self, k: int, reached: str) -> str:
        """One term's exponent is not above the maxima."""
        cuts: list[Bits | Bit] = [parts.exponents[k] for parts in self.parts]
        cuts += [parts.maximum for parts in self.parts]
        name = self.say(f"exponent {k} is not above the maximum")
        return self.ledger.establish(name, self._within_maxima(k), cuts, [reached])

    def _split(self, k: int) -> str:
        """What a partial sum gains is what the one before it and the next term gain."""
        cuts, used, claims = list[Bits | Bit](), [], []
        for side, parts in enumerate(self.parts):
            values = (parts.sums[k], parts.sums[k - 1], parts.addends[k])
            total, first, second = (self._wide(value) for value in values)
            bounds = [self.sum_bound(side, k - 1), self.bound(side, k)]
            name = self.say(f"sum up to term {k} {LABELS[side]} in more bits")
            used.append(self.ledger.establish(name, total.eq(first + second), values[1:], bounds))
            cuts += [total, first, second]
        before, after = self.parts
        for found in self.found:
            gains = [self._gain(x[j], y[j], found) for x, y, j in (
                (before.sums, after.sums, k), (before.sums, after.sums, k - 1), (before.addends, after.addends, k),
            )]  # fmt: skip
            claims.append(gains[0].eq(gains[1] + gains[2]))
        return self.ledger.establish(self.say(f"gains add up, term {k}"), all_of(claims), cuts, used)

    def _gain_bound(self, k: int) -> str:
        """What a term gains is far from wrapping."""
        before, after = self.parts[0].addends[k], self.parts[1].addends[k]
        claims = [within(self._gain(before, after, found), self._limit(k, found)) for found in self.found]
        used = [self.bound(side, k) for side in (0, 1)]
        return self.ledger.establish(self.say(f"bound of the gain of term {k}"), all_of(claims), [before, after], used)

    def _reached(self) -> str:
        """No exponent is above the maximum."""
        claim = all_of([self._within_maxima(k) for k in range(len(self.before.items))])
        cuts: list[Bits | Bit] = [*self.parts[0].exponents, *self.parts[1].exponents]
        cuts += [parts.maximum for parts in self.parts]
        return self.ledger.establish(self.say("no exponent is above the maximum"), claim, cuts, self.maxima)

    def _whole_sums(self, gained: str) -> list[str]:
        """The sums and their magnitudes are as each case says."""
        before, after = self.parts
        last = len(self.before.items) - 1
        used = [gained, *(self.sum_bound(side, last) for side in (0, 1))]
        cuts: list[Bits | Bit] = [self.finite, before.maximum, after.maximum, before.sums[-1], after.sums[-1]]
        return self._each_case("sums", [self.holds(found.case) for found in self.found], cuts, used)

    def _range(self, side: int) -> str:
        exponents, claim = self.parts[side].exponents, implies(self.finite, self.in_range(self.sides[side]))
        facts = [self.maxima[side], *(self._fact("range", side, k) for k in range(len(exponents)))]
        cuts: list[Bits | Bit] = [*exponents, self.finite]
        return self.ledger.establish(self.say(f"range of the maximum {LABELS[side]}"), claim, cuts, facts)
