"""Claims that compare an error, or two results, with the sum of magnitudes: a tactic for kernel/bounds/shares.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.kernel.bounds.shares import (
    WordIsSmall,
    after_addition,
    after_instruction,
    begins,
    from_here,
    near_each_other,
    space_of,
    units,
)
from mmaprobe.queries.kernel.bounds.unit_shares import (
    Errs,
    of_plan,
    of_plan_at,
    of_unit,
    share_claim,
    unit_of,
    windows_of,
)
from mmaprobe.queries.kernel.questions.recorded import Added, Instruction, Value, Word, Words, recorded_part
from mmaprobe.queries.kernel.questions.steps import repeated
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import Settle, bound_of, needed
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.known import power


def within_of(claim: Claim, settle: Settle) -> list[Theorem]:
    """Theorems about the error or the difference that a claim compares with the sum of magnitudes, and about the errors
    of the results that its conditions read. Raises RuleError where no rule gives a theorem, or a lemma stays open."""
    return _Sharing(claim, settle).within()


def within_lengths(claim: Claim, settle: Settle) -> list[Theorem]:
    """Theorems as those of `within_of`, for a claim about several numbers of products: one theorem about each result
    alone, for all these numbers. Raises RuleError."""
    assertion = claim.assertion
    assert assertion.most is not None
    wanted, space = share_claim(assertion.at(assertion.terms)), space_of(assertion.at(assertion.most))
    windows, first, found = windows_of(space), assertion.terms, list[Theorem]()
    for part in (*wanted.parts, *wanted.read):
        bound = bound_of_plan(part.plan, None, settle, windows)
        before = {repeated(products.stage).before for products in part.plan.sums}
        once = bound_of_plan(part.plan, first, settle, windows) if before == {first} else None
        found.append(of_plan(space, part, first, bound, once))
    return found


class _Sharing:
    def __init__(self, claim: Claim, settle: Settle) -> None:
        self.settle, self.wanted = settle, share_claim(claim.assertion)
        self.space = self.wanted.space
        self.bounds: dict[Model, Theorem] = {}

    def within(self) -> list[Theorem]:
        """The theorems; two results are compared by the steps that both share, or by the errors of both."""
        parts, read = self.wanted.parts, self.wanted.read
        compared = [self._one(parts[0])] if len(parts) == 1 else self._two(parts)
        return [*compared, *map(self._one, read)]

    def _two(self, parts: Sequence[Part]) -> list[Theorem]:
        try:
            return [self._apart(parts)]
        except RuleError as error:
            with suppress(RuleError):
                return [self._one(part) for part in parts]
            raise error

    def _apart(self, parts: Sequence[Part]) -> Theorem:
        space = self.space
        one, two = (recorded_part(part, space.factors, space.terms) for part in parts)
        words = [word for value in (one, two) for step in units(value) for word in (("a", step.a), ("b", step.b))]
        there = list(_before(two))
        shared = next((step for step in _before(one) if step in there), None)
        nears = [self._near(one, shared), self._near(two, shared)]
        return near_each_other(nears, self._small(*dict.fromkeys(words)))

    def _one(self, part: Part) -> Theorem:
        """The theorem with the least share of a part's error: by the bound of its plan, or by the bound of the unit
        that the plan is, which is smaller where steps round numbers that fit. Raises RuleError, with both reasons,
        where neither bound gives a theorem."""
        space = self.space
        ways: tuple[Callable[[], Theorem], ...] = (
            lambda: of_plan_at(space, part, bound_of_plan(part.plan, space.terms, self.settle, windows_of(space))),
            lambda: of_unit(space, part, bound_of(unit_of(part, space), self.settle)),
        )
        found, refused = list[Theorem](), list[str]()
        for way in ways:
            try:
                found.append(way())
            except RuleError as error:
                refused.append(str(error))
        if not found:
            raise RuleError("; ".join(dict.fromkeys(refused)))
        return min(found, key=_share)

    def _near(self, value: Value, shared: Value | None) -> Theorem:
        """The theorem on how far a value lies from the shared value, or from the value that its steps begin with."""
        match value:
            case Instruction():
                if value.model not in self.bounds:
                    self.bounds[value.model] = bound_of(value.model.unit, self.settle)
                words = self._small(("a", value.a), ("b", value.b))
                near = after_instruction(value, self._near(value.addend, shared), self.bounds[value.model], words)
            case Added():
                near = after_addition(value, self._near(value.first, shared), self._near(value.second, shared))
            case _:
                near = begins(self.space, value)
        return from_here(near) if value == shared else near

    def _small(self, *words: tuple[str, Word]) -> list[Theorem]:
        theorems = []
        for side, word in words:
            how, number = word.words, word.number
            first = Fraction(1) if how.rounding == "toward_zero" else 1 + power(-_kept(how))
            share = first if number == 0 else power(-number * _kept(how))
            theorems.append(needed(WordIsSmall(how, getattr(self.space.window, side), share, number), self.settle))
        return list(dict.fromkeys(theorems))


def _share(theorem: Theorem) -> Fraction:
    assert isinstance(theorem.goal, Errs)
    return theorem.goal.share


def _kept(how: Words) -> int:
    """The bits that a word keeps: it leaves at most 2^-kept of its number."""
    return how.into.fraction + (how.rounding in NEAREST)


def _before(value: Value) -> Iterable[Value]:
    """A value, and the earlier values in the chain of its sums, the last ones first."""
    yield value
    match value:
        case Instruction():
            yield from _before(value.addend)
        case Added():
            yield from _before(value.first)
