"""Whether a plan's error is at most some multiple of the classical bound K u sum |a_k b_k|, for elements near the
largest of their row or column: proved by rules of the kernel, or refuted by an input."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaprobe.hypotheses.unit_claims import ClassicalClaim
from mmaprobe.queries.claims.outcome import Contradiction, CountOutcome, SearchStep
from mmaprobe.queries.kernel.integers.every import Errors, every_error
from mmaprobe.queries.kernel.integers.slices import within_classical, within_span
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.slices import elements_lose, slices_lose
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import result_or_none
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan

TRIED, FULL = 16, 8  # significands tried; FULL of them have a fraction of some zeros, then ones alone
TRIED_BITS = 4  # the most bits of a format whose numbers are all tried
Pair = tuple[Fraction, Fraction]
SEED = 1


@dataclass(frozen=True)
class Beyond:
    """A row with one element before K - 1 copies of another, and a column with one element after K - 1 copies of
    another (`a`, `b`: the single element, then the copied one); `times`: the error as a multiple of the bound."""

    a: tuple[str, str]
    b: tuple[str, str]
    times: Fraction

    def __str__(self) -> str:
        products = f"{self.a[0]} before copies of {self.a[1]}, times {self.b[0]} after copies of {self.b[1]}"
        return f"{products}: {float(self.times):.4g} times K u sum |a_k b_k|"


class ClassicalOutcome(CountOutcome[ClassicalClaim]):
    """The outcome of a claim about errors beyond a multiple of the classical bound."""

    def contradiction(self, late: bool) -> Contradiction | None:
        """An input, of those tried, whose error is beyond the bound."""
        found = beyond_claim(self.claim)
        return None if found is None else (str(found), "an error beyond the bound")


def verify_classical(claim: ClassicalClaim, options: Options) -> ClassicalOutcome:
    """Decide a claim. Raises ParameterError for a plan that cannot be evaluated."""
    outcome = ClassicalOutcome(claim)
    try:
        lose = elements_lose if claim.span is None else slices_lose
        lost = lose(claim.plan, claim.count, claim.reach)
        outcome.asked.append(SearchStep(lost.goal.statement()))
        times = Fraction(claim.classical)
        outcome.theorem = (
            within_classical(lost, claim.spread, times) if claim.span is None else within_span(lost, claim.span, times)
        )
    except RuleError as error:
        outcome.asked.append(SearchStep(str(error)))
        outcome.theorem = _of_every(claim)
    if outcome.theorem is None:
        found = beyond_claim(claim)
        outcome.exceeds[claim.count] = found is not None
        outcome.asked.append(SearchStep("no input tried is beyond it" if found is None else str(found)))
    return outcome


def _of_every(claim: ClassicalClaim) -> Theorem | None:
    """The claim proved by evaluating all inputs, where these are few."""
    spans, times = claim.span is not None, Fraction(claim.classical)
    near = claim.spread if claim.span is None else claim.span
    return result_or_none(every_error, claim.plan, claim.count, claim.reach, near, times, spans)


def beyond_claim(claim: ClassicalClaim) -> Beyond | None:
    """The worst input tried, if it contradicts a claim."""
    return beyond(claim.plan, claim.count, claim.spread, claim.classical, claim.span)


def beyond(plan: Plan, count: int, spread: int, most: int, span: int | None = None) -> Beyond | None:
    """The worst input of `count` products among those tried, if its error is larger than `most` times the bound. Each
    row has one element before copies of another, each column one element after copies of another. For a format of few
    numbers, all are tried as elements; for other formats, the single element is from 1 to below 2 and the copies are
    2^-spread times as large. With `span`, the product of the largest elements is at most 2^span times the largest
    product."""
    (a, left), (b, right) = (
        _tried(fmt, spread if span is None else 1 << TRIED_BITS if fmt.width <= TRIED_BITS else span, count)
        for fmt in (plan.a, plan.b)
    )
    if not left or not right:
        return None
    d = simulate(a, np.ascontiguousarray(b.T[::-1]), None, plan)
    times = [1] if count == 1 else [1, 1, count - 2]
    rows, columns = [one[:1] if count == 1 else (*one, one[1]) for one in left], [
        other[:1] if count == 1 else (*other[::-1], other[1]) for other in right]  # fmt: skip
    found = Errors.of(rows, columns, times, d, plan.d)
    unit = Fraction(count, 1 << plan.d.precision)
    meant = found.finite & found.beyond(most * unit) & (True if span is None else found.near(span))
    worst: Beyond | None = None
    ratios = np.where(meant, found.error / found.size, -1)
    for i, j in np.argwhere(meant & (ratios == ratios.max())):
        share = Fraction(found.error[i, j], found.size[i, j]) / unit
        if worst is None or share > worst.times:
            own = [(to_hex(int(z[0]), fmt), to_hex(int(z[-1]), fmt)) for z, fmt in ((a[i], plan.a), (b[j], plan.b))]
            worst = Beyond(own[0], own[1], share)
    return worst


def _tried(fmt: Format, spread: int, count: int) -> tuple[Matrix, list[Pair]]:
    """Rows of `count` elements, and the two numbers in each row: neither is 0, and each has at least 2^-spread times
    the magnitude of the other."""
    if fmt.width <= TRIED_BITS:
        every = range(1 << fmt.width)
        pairs = [(x, y) for x in every for y in every if count > 1 or x == y]
    else:
        random, ones = np.random.default_rng(SEED), (1 << fmt.fraction) - 1
        full = [ones >> places for places in range(FULL)]  # of these significands all slices but the first are full
        significands = [*full, 0, *(int(x) for x in random.integers(0, ones + 1, TRIED - 1 - FULL, dtype=np.uint64))]
        given = [fmt.one | low << fmt.padding for low in significands if spread <= fmt.bias - 1]
        pairs = [(x, x - (spread << fmt.fraction + fmt.padding)) for x in given]
    rows, numbers = list[Matrix](), list[Pair]()
    for x, y in pairs:
        one, other = exact_value(x, fmt), exact_value(y, fmt)
        if not isinstance(one, Fraction) or not isinstance(other, Fraction) or not one or not other:
            continue
        if min(abs(one), abs(other)) * (1 << spread) >= max(abs(one), abs(other)):
            rows.append(np.array([x, *[y] * (count - 1)], dtype=kind_of(fmt)))
            numbers.append((one, other))
    return np.array(rows, dtype=kind_of(fmt)).reshape(len(rows), count), numbers
