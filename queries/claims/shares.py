"""Claims that compare an error, or two results, with the sum of magnitudes: a tactic for proof/shares.py."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.kernel.forms import power
from mmaprobe.queries.kernel.lemmas import Lemma
from mmaprobe.queries.kernel.recorded import Added, Instruction, Value, Word, Words
from mmaprobe.queries.kernel.shares import (
    WordIsSmall,
    WordsLeave,
    after_addition,
    after_instruction,
    begins,
    compares,
    from_here,
    near_each_other,
    near_the_sum,
    share_claim,
    units,
)
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.bound import Settle, bound_of
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST
from mmaprobe.smtmodel.evaluate.model import Model


def by_shares(claim: Claim, settle: Settle) -> Theorem:
    """That no input decides a claim. Raises RuleError where no rule says so, or a lemma stays open."""
    return _Sharing(claim, settle).theorem()


class _Sharing:
    def __init__(self, claim: Claim, settle: Settle) -> None:
        self.claim, self.settle, self.wanted = claim, settle, share_claim(claim.assertion)
        self.space = self.wanted.space
        self.bounds: dict[Model, Theorem] = {}

    def theorem(self) -> Theorem:
        values, share = self.wanted.values, self.wanted.share
        words = dict.fromkeys(word for value in values for one in units(value) for word in (("a", one.a), ("b", one.b)))
        if len(values) == 1:
            kinds = dict.fromkeys((side, word.words) for side, word in words)
            leaves = dict.fromkeys(self._leave(*kind) for kind in kinds)
            words |= dict.fromkeys((side, Word(kind, number)) for side, kind in kinds for number in range(kind.count))
            within = near_the_sum(self._near(values[0], None), self._small(*words), list(leaves), share)
        else:
            one, two = values
            there = list(_before(two))
            shared = next((step for step in _before(one) if step in there), None)
            within = near_each_other([self._near(one, shared), self._near(two, shared)], self._small(*words), share)
        return compares(self.claim.assertion, within, list(map(self._settled, self.wanted.zeros)))

    def _near(self, value: Value, shared: Value | None) -> Theorem:
        """How far a value lies from the one that is shared, or from where it begins."""
        match value:
            case Instruction():
                if value.model not in self.bounds:
                    self.bounds[value.model] = bound_of(value.model.unit, self.settle)
                words = self._small(("a", value.a), ("b", value.b))
                found = after_instruction(value, self._near(value.addend, shared), self.bounds[value.model], words)
            case Added():
                found = after_addition(value, self._near(value.first, shared), self._near(value.second, shared))
            case _:
                found = begins(self.space, value)
        return from_here(found) if value == shared else found

    def _small(self, *words: tuple[str, Word]) -> list[Theorem]:
        found = []
        for side, word in words:
            how, number = word.words, word.number
            first = Fraction(1) if how.rounding == "toward_zero" else 1 + power(-_kept(how))
            share = first if number == 0 else power(-number * _kept(how))
            found.append(self._settled(WordIsSmall(how, self._window(side), share, number)))
        return list(dict.fromkeys(found))

    def _leave(self, side: str, how: Words) -> Theorem:
        share = Fraction(0) if how.count * how.into.precision >= how.given.precision else power(-how.count * _kept(how))
        return self._settled(WordsLeave(how, self._window(side), share))

    def _window(self, side: str) -> tuple[int, int]:
        return self.space.window.a if side == "a" else self.space.window.b

    def _settled(self, goal: Lemma) -> Theorem:
        found = self.settle(goal)
        if found is None:
            raise RuleError(f"open: it is not decided whether {goal.statement()}")
        return found


def _kept(how: Words) -> int:
    """A word leaves 2^-kept of its number at most."""
    return how.into.fraction + (how.rounding in NEAREST)


def _before(value: Value) -> Iterable[Value]:
    """A value, and those that it was made from, the last ones first, along the chain of its sums."""
    yield value
    match value:
        case Instruction():
            yield from _before(value.addend)
        case Added():
            yield from _before(value.first)
