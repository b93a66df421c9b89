"""Whether sums of n numbers from 0 to below 1 overflow, by bounds that are carried through a reduction.

No solver: every operation of these reductions is monotonic in its bounds. A truncating unit gives at most the exact
sum of what it is given, truncated to its result's format; conversions and additions to nearest are monotonic. So the
reduction of the largest number, run on bounds, bounds every sum, and where the real reduction of n such numbers
overflows the claim needs no more than that input. Fewer numbers are numbers of which the rest is +0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from hypotheses.unit_claims import OverflowClaim
from queries.claims.outcome import Asked, Outcome
from queries.claims.scope import truncating_steps
from smtmodel.algorithms import reference_of, sum_of_array
from smtmodel.algorithms.reductions import Reduction, Row, in_tree
from smtmodel.display import exact_value
from smtmodel.dot import Model
from smtmodel.errors import FaultError, ParameterError
from smtmodel.formats import FORMATS, Format

BELOW_ONE = 0x3F7FFFFF  # the largest f32 below 1
Bounds = tuple[Fraction | None, ...]  # None: it may be infinite

_ABOUT = "bounds are known of sums of exact products in f32 that are only ever truncated; this unit may round up"


def verify_overflow(claim: OverflowClaim) -> Outcome:
    """Settle a claim. Raises ParameterError for a unit whose sums have no bound here, and FaultError where the bounds
    contradict the evaluation."""
    start = time.monotonic()
    outcome = Outcome(claim)
    fewer = counts_below(claim.reduction, claim.numbers) if claim.overflow == "smallest" else [claim.numbers]
    bounded = all(bound(claim.reduction, n) is not None for n in fewer)
    infinite = overflows(claim.reduction, claim.numbers)
    if infinite and bound(claim.reduction, claim.numbers) is not None:
        raise FaultError(
            f"{claim.id}: bounds say that no {claim.numbers} numbers from 0 to below 1 overflow; evaluated, "
            f"{claim.numbers} times {BELOW_ONE:#x} do, of {reference_of(claim.reduction)}"
        )
    steps = [f"{claim.numbers} times the largest number below 1 {'overflow' if infinite else 'do not overflow'}"]
    if claim.overflow == "smallest":
        steps.append(f"fewer {'never do' if bounded else 'may as well'}, by bounds")
        decided = True if infinite and bounded else False if not infinite else None
    else:
        steps.append(f"no such numbers {'do' if bounded else 'are excluded'}, by bounds")
        decided = True if bounded else False if infinite else None
    outcome.verdict = "unknown" if decided is None else "holds" if decided else "refuted"
    outcome.asked = [Asked(step) for step in steps]
    outcome.seconds = time.monotonic() - start
    return outcome


def overflows(reduction: Reduction, numbers: int) -> bool:
    """Whether the sum of `numbers` times the largest f32 below 1 is infinite."""
    found = sum_of_array(reduction, np.full(numbers, BELOW_ONE, dtype=np.uint32))
    return exact_value(found, reduction.result_format) == "inf"


def counts_below(reduction: Reduction, numbers: int) -> list[int]:
    """The largest count below, and the largest with fewer levels of a recurrence: of each level the most."""
    side, chain = getattr(reduction, "side", 1), getattr(reduction, "chain", 1)
    found, size = [numbers - 1], side * side * chain
    while size < numbers - 1:
        found.append(size)
        size *= side * side * chain
    return found


def bound(reduction: Reduction, numbers: int) -> Fraction | None:
    """An upper bound of every sum of `numbers` numbers from 0 to below 1; None where a sum may be infinite."""
    largest = exact_value(BELOW_ONE, FORMATS["f32"])
    assert isinstance(largest, Fraction)
    (found,) = reduction.evaluate(BoundRow(), (largest,) * numbers)
    return found


def rounded(value: Fraction | None, fmt: Format, nearest: bool) -> Fraction | None:
    """A nonnegative number in a format, to nearest even or down; None beyond its range."""
    if not value:
        return value
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > value
    unit = Fraction(2) ** (max(exponent, fmt.emin) - fmt.fraction)
    found = (round(value / unit) if nearest else value // unit) * unit
    most = exact_value(fmt.largest, fmt)
    assert isinstance(most, Fraction)
    return found if found <= most else None


def total(values: Sequence[Fraction | None]) -> Fraction | None:
    known = [value for value in values if value is not None]
    return sum(known, Fraction(0)) if len(known) == len(values) else None


class BoundRow(Row[Bounds]):
    """Upper bounds of nonnegative numbers."""

    def length(self, numbers: Bounds) -> int:
        return len(numbers)

    def part(self, numbers: Bounds, start: int, stop: int) -> Bounds:
        return numbers[start:stop]

    def joined(self, first: Bounds, second: Bounds) -> Bounds:
        return first + second

    def converted(self, source: Format, fmt: Format, numbers: Bounds) -> Bounds:
        return tuple(rounded(number, fmt, nearest=True) for number in numbers)

    def column_sums(self, unit: Model, shape: tuple[int, int], chain: int, numbers: Bounds) -> Bounds:
        truncating_steps(unit.unit, _ABOUT)
        if unit.d != FORMATS["f32"]:
            raise ParameterError("d", f"{unit.d.name}: {_ABOUT}")
        side, width = shape
        size = side * width
        filled = numbers + (Fraction(0),) * (-len(numbers) % (chain * size))
        found: list[Fraction | None] = []
        for start in range(0, len(filled), chain * size):
            for j in range(width):
                column = filled[start + j : start + chain * size : width]  # a chain cuts off more than once: no more
                found.append(rounded(total(column), unit.d, nearest=False))
        return tuple(found)

    def trees(self, fmt: Format, size: int, numbers: Bounds) -> Bounds:
        filled = numbers + (Fraction(0),) * (-len(numbers) % size)
        return tuple(in_tree(self._add(fmt), filled[k : k + size]) for k in range(0, len(filled), size))

    def in_sequence(self, fmt: Format, numbers: Bounds) -> Bounds:
        running, *rest = numbers
        for number in rest:
            running = self._add(fmt)(running, number)
        return (running,)

    @staticmethod
    def _add(fmt: Format) -> Callable[[Fraction | None, Fraction | None], Fraction | None]:
        return lambda x, y: rounded(total([x, y]), fmt, nearest=True)
