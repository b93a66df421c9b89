"""Whether a plan's error is within some times the classical bound K u sum |a_k b_k|, on elements that are near the
largest of their row or column: by rules of the kernel, or shown not to be by an input."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaprobe.hypotheses.unit_claims import ClassicalClaim
from mmaprobe.queries.claims.outcome import Outcome, SearchStep
from mmaprobe.queries.kernel.slices import loses_of_largest, within_classical
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.kernel.wraps import never_wraps
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans.gemm import simulate

TRIED = 12  # significands of elements
SEED = 1


@dataclass(frozen=True)
class Beyond:
    """A row with one element before K - 1 others, and a column with one after them, and how many times the bound the
    error is."""

    a: tuple[str, str]
    b: tuple[str, str]
    times: Fraction

    def __str__(self) -> str:
        products = f"{self.a[0]} before copies of {self.a[1]}, times {self.b[0]} after copies of {self.b[1]}"
        return f"{products}: {float(self.times):.4g} times K u sum |a_k b_k|"


def verify_classical(claim: ClassicalClaim) -> Outcome:
    """Decide a claim. Raises ParameterError for a plan that cannot be evaluated."""
    start, outcome = time.monotonic(), Outcome(claim)
    try:
        wraps = never_wraps(claim.plan, claim.products, None, None)
        lost = loses_of_largest(claim.plan, claim.products, claim.reach, wraps)
        outcome.asked.append(SearchStep(lost.goal.statement()))
        outcome.theorem = within_classical(lost, claim.spread, Fraction(claim.classical))
    except RuleError as error:
        outcome.asked.append(SearchStep(str(error)))
    if outcome.theorem is None:
        found = beyond(claim)
        outcome.overflows[claim.products] = found is not None
        outcome.asked.append(SearchStep("no input tried is beyond it" if found is None else str(found)))
    outcome.seconds = time.monotonic() - start
    return outcome


def beyond(claim: ClassicalClaim) -> Beyond | None:
    """The worst input of those tried, if its error is larger than the claim says: the first element of each row, and
    the last one of each column, is from 1 to below 2, and the others are copies of it, 2^-spread times smaller."""
    plan, count = claim.plan, claim.products
    (a, left), (b, right) = (_tried(fmt, claim.spread, count) for fmt in (plan.a, plan.b))
    d = simulate(a, np.ascontiguousarray(b.T[::-1]), None, plan)
    worst: Beyond | None = None
    for i, (x, one) in enumerate(zip(a, left, strict=True)):
        for j, (y, other) in enumerate(zip(b, right, strict=True)):
            exact = (
                one[0] * other[0]
                if count == 1
                else (one[0] * other[1] + one[1] * other[0] + (count - 2) * one[1] * other[1])
            )
            result = exact_value(int(d[i, j]), plan.d)
            if not isinstance(result, Fraction):
                continue
            times = abs(result - exact) / (count * exact) * (1 << plan.d.precision)
            if times > claim.classical and (worst is None or times > worst.times):
                own = [(to_hex(int(z[0]), fmt), to_hex(int(z[-1]), fmt)) for z, fmt in ((x, plan.a), (y, plan.b))]
                worst = Beyond(own[0], own[1], times)
    return worst


def _tried(fmt: Format, spread: int, count: int) -> tuple[Matrix, list[tuple[Fraction, Fraction]]]:
    """Rows of `count` elements, and the two numbers in each."""
    random, ones = np.random.default_rng(SEED), (1 << fmt.fraction) - 1
    significands = [ones, 0, *(int(x) for x in random.integers(0, ones + 1, TRIED - 2, dtype=np.uint64))]
    rows, numbers = np.empty((TRIED, count), dtype=kind_of(fmt)), []
    for row, low in zip(rows, significands, strict=True):
        first = fmt.one | low
        row[0], row[1:] = first, first - (spread << fmt.fraction)
        one, other = (exact_value(int(x), fmt) for x in (row[0], row[-1]))
        assert isinstance(one, Fraction)
        assert isinstance(other, Fraction)
        numbers.append((one, other))
    return rows, numbers
