"""Steps whose addend comes late (Algorithms 10 and 11): finished sums are aligned and added once more.

A raised addend enters the last sum alone. A raised product enters a sum of products, perhaps the join of two such sums,
and the last one: at each level what it raises must rise by more than the other terms of that level and of those around
it can lose, since each of these cuts anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from queries.properties.monotone.ledger import NamedFacts, UnprovedError
from queries.properties.monotone.many import LABELS
from queries.properties.monotone.path import Passage, terms_below
from queries.properties.monotone.steps import bits_of, implies
from queries.properties.monotone.truncated import Truncated
from smtmodel.algebra import Bit, Bits, all_of
from smtmodel.decode import Unpacked
from smtmodel.dot import Evaluation
from smtmodel.nodes import FusedSum
from smtmodel.trace import Stage, Visit


class Level(Truncated):
    """One of the sums of a step: that of `passage.entered[level]`."""

    def __init__(
        self, ledger: NamedFacts, passage: Passage, level: int, entering: str, patterns: Sequence[Bits], name: str
    ) -> None:
        self.passage, self.level = passage, level
        super().__init__(ledger, passage.prefix, passage.entered[level][1], entering, patterns, name)

    @property
    def summing(self) -> str:
        return self.passage.entered[self.level][0].prefix

    @property
    def kept_bits(self) -> int:
        """The fraction bits that products and addends keep."""
        first = self._summed(self.ledger.left)[0][0].node
        assert isinstance(first, FusedSum)
        assert isinstance(first.fraction_bits, int)
        return first.fraction_bits

    def _summed(self, evaluation: Evaluation) -> tuple[list[Visit], list[Unpacked]]:
        """The sums of the step, and what all of them add that is not a sum."""
        outer, trace = self.passage.outer, evaluation.trace
        return terms_below(trace, next(v for v in trace.visits if (v.prefix, v.node) == (outer.prefix, outer.node)))

    def deciding(self, evaluation: Evaluation) -> list[Unpacked]:
        return self._summed(evaluation)[1]

    def earlier(self) -> list[str]:
        found = []
        for evaluation in (self.ledger.left, self.ledger.right):
            others = [total for total in self._summed(evaluation)[0] if total.prefix != self.summing]
            found += [self.ledger.maximum(bits_of(evaluation, total.prefix, Stage.MAXIMUM)) for total in others]
        return list(dict.fromkeys(found))


class Joined(Level):
    """The sum of all products, as finished, and of an addend that comes late and is raised: the two are truncated at
    different places below their maximum exponent."""


class Inside(Level):
    """A sum that a raised product enters: it rises by more than `extra` terms of the sums around it can lose."""

    def gains(self) -> list[str]:
        """What the sum gains at least, a fact for each case. Raises UnprovedError."""
        gained, found = self.gained(), []
        before, after = (parts.sums[-1] for parts in self.parts)
        for case in self.found:
            gain = self._gain(before, after, case)
            enough = self._at_least(gain, self._sum_least(len(self.before.items) - 1, case))
            claim = implies(self.finite & case.case.condition, enough)
            cuts: list[Bits | Bit] = [gain, self.finite, *(parts.maximum for parts in self.parts)]
            text = self.say(f"what the sum gains, {case.case.name}")
            found.append(self.ledger.establish(text, claim, cuts, [gained]))
        return found

    def zeros(self) -> list[str]:
        """Facts: of terms that count as zeros nothing is added."""
        places = [(side, self.raised) for side in (0, 1)] + [(0, k) for k in self.shared]
        return [self._zero(side, k) for side, k in places]

    def _zero(self, side: int, k: int) -> str:
        item = self.sides[side].items[k]
        claim = implies(item.is_zero, ~item.term.significand.any())
        return self.ledger.establish(self._fact("zero", side, k), claim)

    def _terms_cut(self) -> list[Bits | Bit]:
        cuts: list[Bits | Bit] = [self.finite]  # maxima are variables, but for those of a single term
        for side in (0, 1):
            cuts += self._term_cut(self.sides[side].items[self.raised])
        return [*cuts, *self._others_cut()]

    def _others_cut(self) -> list[Bits | Bit]:
        return [part for k in self.shared for part in self._term_cut(self.before.items[k])]

    def _term_cut(self, item: Unpacked) -> list[Bits | Bit]:
        return [item.is_zero, item.term.sign, item.term.significand, item.term.exponent.bits]

    def empty(self, side: int) -> Bit:
        """All terms count as zeros."""
        return all_of([item.is_zero for item in self.sides[side].items])

    def no_sum(self, side: int) -> str:
        """The fact that the sum of zeros is zero."""
        claim = implies(self.empty(side), ~self.parts[side].sums[-1].any())
        return self.ledger.establish(
            self.say(f"the sum of zeros {LABELS[side]}"), claim, self._terms_cut(), self.zeros()
        )

    def from_nothing(self) -> tuple[str, int]:
        """A proved lower bound of the sum's magnitude where all terms of the other side are zeros: the fact's name, and
        the bound. Raises UnprovedError."""
        (before, after), least = (parts.sums[-1] for parts in self.parts), self._smallest()
        bound = self.constant(least, after.width)
        claim = implies(self.empty(0), bound.sle(after)) & implies(self.empty(1), before.sle(-bound))
        used = [*self.order, *self.maxima, *self.zeros()]
        name = self.say("what a sum of zeros becomes")
        return self.ledger.establish(name, implies(self.finite, claim), self._terms_cut(), used), least

    def _smallest(self) -> int:
        """What the raised product adds, at least, where it is not zero."""
        model = self.ledger.problem.left
        bits = self.fraction_bits - model.a.fraction - model.b.fraction
        if bits < 0:
            raise UnprovedError(self.say("products have more fraction bits than their sum"))
        return 1 << bits


class Nested(Inside):
    """A sum of sums, one of which holds the raised product, perhaps with an addend: the last one of a step, or inside
    another."""

    together = 1

    def __init__(
        self, ledger: NamedFacts, passage: Passage, level: int, entering: str, patterns: Sequence[Bits], name: str
    ) -> None:
        super().__init__(ledger, passage, level, entering, patterns, name)
        self.weight = 1 << (self.fraction_bits - self.kept_bits)
        below = passage.entered[level - 1][0].prefix.removeprefix(passage.prefix).rstrip(".")
        kind = Nested if level > 1 else Inside
        self.source: Inside = kind(ledger, passage, level - 1, entering, patterns, f"{name}, {below}")

    def gained(self) -> str:
        self.source.extra = self.extra + len(self.shared)  # enough also for what the raised operand loses
        self.rises = self.source.gains()
        self.nothing, self.least = self.source.from_nothing()
        self.least_far = self.source.far
        return super().gained()

    def _order(self) -> list[str]:
        return [*self.rises, self.nothing, *(self._sign(side) for side in (0, 1)), *map(self.source.no_sum, (0, 1))]

    def _sign(self, side: int) -> str:
        """The sign of what rises is that of its sum, if that is not zero."""
        total, sign = self.source.parts[side].sums[-1], self.sides[side].items[self.raised].sign
        claim = ~total.any() | ~(sign ^ total.msb())
        return self.ledger.establish(self.say(f"the sign of what rises {LABELS[side]}"), claim, [total])

    def _none(self, side: int) -> Bit:
        return self.sides[side].items[self.raised].is_zero

    def _slack(self) -> int:
        """Lower bound of the increased partial sum (its significand has no least value), exponents far apart."""
        source = self.source
        least = min((1 << (source.fraction_bits - source.slack)) - len(source.shared) * source.far_apart, self.least)
        least = (least << (self.fraction_bits - source.fraction_bits)) - 1
        if least < 1:
            raise UnprovedError(self.say("what rises is large enough"))
        return self.fraction_bits - least.bit_length() + 1

    def _risen(self) -> tuple[list[Bits | Bit], list[str]]:
        return self._rising_cut(), self.order

    def _each_case(self, text: str, claims: list[Bit], cuts: list[Bits | Bit], facts: list[str]) -> list[str]:
        """Where the maxima are equal, by the distances of what rises: cuts of sums at one place keep their order."""
        if self.nothing not in facts:
            return super()._each_case(text, claims, cuts, facts)
        used, others = list[str](), [fact for fact in facts if fact not in self.rises]
        for found, rises in zip(self.source.found, self.rises, strict=True):
            claim, name = implies(found.case.condition, claims[0]), self.say(f"{text}, {found.case.name}")
            used.append(self.ledger.establish(name, claim, cuts, [rises, *others]))
        first = super()._each_case(text, claims[:1], cuts, used)
        return [*first, *super()._each_case(f"{text}, units apart", claims[1:], cuts, facts)]

    def _rising_cut(self) -> list[Bits | Bit]:
        cuts: list[Bits | Bit] = [self.finite]
        for side in (0, 1):
            parts, item = self.source.parts[side], self.sides[side].items[self.raised]
            cuts += [parts.sums[-1], item.is_zero]
            if item.sign.node is not parts.sums[-1].msb().node:  # what a cut sum shows of itself
                cuts.append(item.sign)
        return cuts

    def _terms_cut(self) -> list[Bits | Bit]:
        return [*self._rising_cut(), *self._others_cut()]

    def _zero(self, side: int, k: int) -> str:
        return self.source.no_sum(side) if k == self.raised else super()._zero(side, k)

    def _smallest(self) -> int:
        return self.least << (self.fraction_bits - self.source.fraction_bits)
