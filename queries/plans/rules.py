"""Which kernel computes which element of a product: rules over M, N, K and the place, learned from elements whose
kernels are known.

A rule is a number of limits, and the plan of the elements within them. Rules come from a tree of questions "is this
number at most so much?", each chosen such that most elements on either side have one plan. Where a limit lies is known
as far as elements were looked at: two numbers, and nothing is said between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EDGES = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # multiples after which rows or columns may have a kernel of their own
FIRSTS = ((4, 8), (4, 16), (8, 16), (8, 32), (16, 32))  # the first ones, that fill no larger multiple
SIDES = (4, 8, 16, 32, 64)  # whose rest of M or N may choose a kernel
MULTIPLES = (2, 4, 8, 16, 32, 64)  # of K that may have one
DEEP = 10  # questions to one rule, at most

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """M, N and K of a product."""

    rows: int
    columns: int
    length: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns} x {self.length}"


@dataclass(frozen=True)
class Feature:
    """What rules may ask of an element: a number (`step` 0), or whether something is so (1) or not (0): whether it is
    after the last multiple of `step`, or, with `turn`, one of the first that are left of the multiples of `step` where
    the others fill multiples of `turn`."""

    name: str
    step: int = 0
    turn: int = 0

    def text(self, low: int | None, high: int | None) -> str:
        """That it is from `low` to `high`; None: no limit."""
        if self.step:
            holds = low is not None
            if self.name == "K":
                return f"K a multiple of {self.step}" if holds else f"K no multiple of {self.step}"
            if self.turn:
                return f"{'' if holds else 'not '}the first {self.name}, {self.step}s that fill no {self.turn}"
            return f"{self.name} {'after' if holds else 'up to'} the last multiple of {self.step}"
        least = 0 if "modulo" in self.name else 1
        if low is not None and high is not None and low == high:
            return f"{self.name} = {low}"
        if low is None or (low <= least and high is not None):
            return f"{self.name} = {high}" if high == least else f"{self.name} up to {high}"
        if high is None:
            return f"{self.name} from {low}"
        return f"{self.name} from {low} to {high}"


#: those that come first are asked where several tell elements apart alike
FEATURES = (
    Feature("M"), Feature("N"), Feature("K"), Feature("M * N * K"), Feature("M * N"),
    *(Feature(f"N modulo {side}") for side in SIDES), *(Feature(f"M modulo {side}") for side in SIDES),
    *(Feature("columns", edge) for edge in EDGES), *(Feature("rows", edge) for edge in EDGES),
    *(Feature("columns", *first) for first in FIRSTS), *(Feature("rows", *first) for first in FIRSTS),
    *(Feature("K", step) for step in MULTIPLES),
)  # fmt: skip


def features_of(shape: Shape, rows: Numbers, columns: Numbers) -> Numbers:
    """The features of elements of one product, a line each."""
    m, n, k = shape.rows, shape.columns, shape.length
    whole = [m, n, k, m * n * k, m * n, *(n % side for side in SIDES), *(m % side for side in SIDES)]
    found = [np.full(len(rows), value) for value in whole]
    found += [(columns >= n - n % edge).astype(np.int64) for edge in EDGES]
    found += [(rows >= m - m % edge).astype(np.int64) for edge in EDGES]
    found += [(columns < (n - n % step) % turn).astype(np.int64) for step, turn in FIRSTS]
    found += [(rows < (m - m % step) % turn).astype(np.int64) for step, turn in FIRSTS]
    found += [np.full(len(rows), int(k % step == 0)) for step in MULTIPLES]
    return np.array(found).T


@dataclass(frozen=True)
class Limit:
    """A question: a feature is at most `low` on one side and at least `high` on the other, as far as was looked."""

    feature: int
    low: int
    high: int


@dataclass(frozen=True)
class Rule:
    """`below` and `above`: the limits that elements keep to. `plan`: the number of one, -1 where none is known.
    `whole`: all elements that it was learned from have this plan."""

    below: tuple[Limit, ...]
    above: tuple[Limit, ...]
    plan: int
    whole: bool = True

    def holds(self, features: Numbers) -> NDArray[np.bool_]:
        """Which elements it speaks of."""
        found = np.ones(len(features), dtype=np.bool_)
        for limit in self.below:
            found &= features[:, limit.feature] <= limit.low
        for limit in self.above:
            found &= features[:, limit.feature] >= limit.high
        return found

    def text(self) -> str:
        """The elements, in words."""
        parts = []
        for number, feature in enumerate(FEATURES):
            lows = [limit.high for limit in self.above if limit.feature == number]
            highs = [limit.low for limit in self.below if limit.feature == number]
            if lows or highs:
                parts.append(feature.text(max(lows, default=None), min(highs, default=None)))
        return ", ".join(parts) or "all products"


def learned(features: Numbers, fits: NDArray[np.bool_]) -> list[Rule]:
    """Rules for elements with these features, of which `fits` says for each plan whether it gives them."""
    none = ~fits.any(axis=1, keepdims=True)
    return list(_rules(features, np.concatenate([fits, none], axis=1), (), (), fits.sum(axis=0)))


def _rules(
    features: Numbers, fits: NDArray[np.bool_], below: tuple[Limit, ...], above: tuple[Limit, ...], liked: Numbers
) -> Iterator[Rule]:
    """Of the elements within some limits. `liked`: of how many elements each plan is one, to choose among those that
    fit alike."""
    counts = fits.sum(axis=0)
    ranked = sorted(range(len(counts)), key=lambda p: (counts[p], liked[p] if p < len(liked) else -1), reverse=True)
    plan, whole = ranked[0], bool(counts[ranked[0]] == len(fits))
    limit = None if whole or len(below) + len(above) >= DEEP else _best(features, fits)
    if limit is None:
        yield Rule(below, above, -1 if plan == len(liked) else plan, whole)
        return
    left = features[:, limit.feature] <= limit.low
    yield from _rules(features[left], fits[left], (*below, limit), above, liked)
    yield from _rules(features[~left], fits[~left], below, (*above, limit), liked)


def _best(features: Numbers, fits: NDArray[np.bool_]) -> Limit | None:
    """The question after which one plan on each side explains most elements; None where none helps."""
    best: tuple[float, ...] = ()
    found = None
    for number in range(features.shape[1]):
        order = np.argsort(features[:, number], kind="stable")
        values = features[order, number]
        ends = np.flatnonzero(values[1:] > values[:-1])
        if not len(ends):
            continue
        below = fits[order].cumsum(axis=0)[ends]
        above = fits.sum(axis=0) - below
        right = below.max(axis=1) + above.max(axis=1)
        size = ends + 1
        spread = (below.astype(float) ** 2).max(axis=1) / size + (above.astype(float) ** 2).max(axis=1) / (
            len(fits) - size
        )
        at = max(range(len(ends)), key=lambda x: (right[x], spread[x]))
        score = (float(right[at]), round(float(spread[at]), 6), -float(number > 4))
        if score > best:
            best = score
            found = Limit(number, int(values[ends[at]]), int(values[ends[at] + 1]))
    return found


def chosen(rules: Sequence[Rule], features: Numbers) -> Numbers:
    """The rule of each element, -1 where none speaks of it."""
    found = np.full(len(features), -1)
    for number, rule in enumerate(rules):
        found[rule.holds(features)] = number
    return found
