"""Which kernel computes which element of a product: rules over M, N, K and the place, learned from elements whose
kernels are known.

A rule is a number of limits, and the plan of the elements within them. Rules come from a tree of questions "is this
number at most so much?", each chosen such that most elements on either side have one plan. Where a limit lies is known
as far as elements were looked at: two numbers, and nothing is said between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

EDGES = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # multiples after which rows or columns may have a kernel of their own
FIRSTS = ((4, 8), (4, 16), (8, 16), (8, 32), (16, 32))  # the first ones, that fill no larger multiple
SIDES = (4, 8, 16, 32, 64)  # whose rest of M or N may choose a kernel
MULTIPLES = (2, 4, 8, 16, 32, 64)  # of K that may have one
DEEP = 14  # questions to one rule, at most

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """M, N and K of a product."""

    rows: int
    columns: int
    length: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns} x {self.length}"


Kind = Literal["number", "rest", "after", "first", "multiple"]


@dataclass(frozen=True)
class Feature:
    """What rules may ask of an element. number: M, N, K, or a product of them; rest: of M or N, divided by `step`. The
    others are so (1) or not (0). after: its row or column is after the last multiple of `step`; first: it is one of the
    first that are left of the multiples of `step` where the others fill multiples of `turn`; multiple: K is one of
    `step`."""

    kind: Kind
    of: str
    step: int = 0
    turn: int = 0

    @property
    def counts(self) -> bool:
        """Whether it is a number."""
        return self.kind in ("number", "rest")

    def values(self, shape: Shape, rows: Numbers, columns: Numbers) -> Numbers:
        """It, of elements of one product."""
        m, n, k = shape.rows, shape.columns, shape.length
        places, side = (rows, m) if self.of in ("M", "rows") else (columns, n)
        match self.kind:
            case "after":
                return (places >= side - side % self.step).astype(np.int64)
            case "first":
                return (places < (side - side % self.step) % self.turn).astype(np.int64)
            case "rest":
                value = side % self.step
            case "multiple":
                value = int(k % self.step == 0)
            case _:
                value = {"M": m, "N": n, "K": k, "M * N": m * n, "M * N * K": m * n * k}[self.of]
        return np.full(len(rows), value)

    def text(self, low: int | None, high: int | None) -> str:
        """That it is from `low` to `high`; None: no limit."""
        holds = low is not None
        match self.kind:
            case "multiple":
                return f"{self.of} a multiple of {self.step}" if holds else f"{self.of} no multiple of {self.step}"
            case "first":
                return f"{'' if holds else 'not '}the first {self.of}, {self.step}s that fill no {self.turn}"
            case "after":
                return f"{self.of} {'after' if holds else 'up to'} the last multiple of {self.step}"
        name, least = (f"{self.of} modulo {self.step}", 0) if self.kind == "rest" else (self.of, 1)
        if low is not None and high is not None and low == high:
            return f"{name} = {low}"
        if low is None or (low <= least and high is not None):
            return f"{name} = {high}" if high == least else f"{name} up to {high}"
        if high is None:
            return f"{name} from {low}"
        return f"{name} from {low} to {high}"


#: those that come first are asked where several tell elements apart alike
FEATURES = (
    *(Feature("number", of) for of in ("M", "N", "K", "M * N * K", "M * N")),
    *(Feature("rest", of, side) for of in ("N", "M") for side in SIDES),
    *(Feature("after", of, edge) for of in ("columns", "rows") for edge in EDGES),
    *(Feature("first", of, *first) for of in ("columns", "rows") for first in FIRSTS),
    *(Feature("multiple", "K", step) for step in MULTIPLES),
)


def features_of(shape: Shape, rows: Numbers, columns: Numbers) -> Numbers:
    """The features of elements of one product, a line each."""
    return np.array([feature.values(shape, rows, columns) for feature in FEATURES]).T


@dataclass(frozen=True)
class Limit:
    """A question: a feature is at most `low` on one side and at least `high` on the other, as far as was looked."""

    feature: int
    low: int
    high: int


@dataclass(frozen=True)
class Rule:
    """`below` and `above`: the limits that elements keep to. `plan`: the number of one that all elements have of which
    it was learned, -1 where there is none."""

    below: tuple[Limit, ...]
    above: tuple[Limit, ...]
    plan: int

    def holds(self, features: Numbers) -> NDArray[np.bool_]:
        """Which elements it speaks of."""
        found = np.ones(len(features), dtype=np.bool_)
        for limit in self.below:
            found &= features[:, limit.feature] <= limit.low
        for limit in self.above:
            found &= features[:, limit.feature] >= limit.high
        return found

    def _ends(self) -> Iterator[tuple[Feature, int | None, int | None]]:
        """The features it asks for, from and up to which number each."""
        for number, feature in enumerate(FEATURES):
            lows = [limit.high for limit in self.above if limit.feature == number]
            highs = [limit.low for limit in self.below if limit.feature == number]
            if lows or highs:
                yield feature, max(lows, default=None), min(highs, default=None)

    def text(self) -> str:
        """The elements, in words."""
        return ", ".join(feature.text(low, high) for feature, low, high in self._ends()) or "all products"

    def limits(self) -> list[dict[str, str | int | None]]:
        """The elements, for programs."""
        return [{**vars(feature), "least": low, "most": high} for feature, low, high in self._ends()]


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
        yield Rule(below, above, plan if whole and plan < len(liked) else -1)
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
        score = (float(right[at]), round(float(spread[at]), 6), -float(FEATURES[number].kind != "number"))
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
