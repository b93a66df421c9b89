"""Which kernel computes which element of a product: rules over M, N, K and the place, learned from elements whose
kernels are known.

A rule is a number of limits, and the plan of the elements within them. Rules come from a tree of questions "is this
number at most so much?", each chosen such that most elements on either side have one plan. Where a limit lies is known
as far as elements were looked at: two numbers, and nothing is said between them. Nor is anything said of a side M, N or
K of a size at which the rule was never seen: 1, 2, 3 and 4 are sizes of their own, above them all of one power of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

EDGES = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # multiples after which rows or columns may have a kernel of their own
FIRSTS = ((4, 8), (4, 16), (8, 16), (8, 32), (16, 32))  # the first ones, that fill no larger multiple
SIDES = (4, 8, 16, 32, 64)  # whose rest of M or N may choose a kernel
MULTIPLES = (2, 4, 8, 16, 32, 64)  # of K that may have one
DEEP = 14  # questions to one rule, at most
SMALL = 4  # each side up to here is a size of its own
SIZES = 64  # there are fewer
SIDES_ASKED = 3  # M, N and K are the first features

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


def sizes_of(numbers: Numbers) -> Numbers:
    """The size of each number of products, rows or columns."""
    return np.where(numbers <= SMALL, numbers, SMALL + np.floor(np.log2(np.maximum(numbers, 1))).astype(np.int64) - 1)


def span_of(size: int) -> tuple[int, int]:
    """The first and the last number of a size."""
    power = size - SMALL + 1
    return (size, size) if size <= SMALL else (max(SMALL + 1, 1 << power), (2 << power) - 1)


@dataclass(frozen=True)
class Rule:
    """`below` and `above`: the limits that elements keep to; `sizes`: those of M, N and K at which it was seen; `most`:
    the largest M, N and K of any shape that was looked at. `plan`: the number of one that all elements have of which it
    was learned, -1 where there is none."""

    below: tuple[Limit, ...]
    above: tuple[Limit, ...]
    plan: int
    sizes: tuple[frozenset[int], ...]
    most: tuple[int, ...]

    def holds(self, features: Numbers) -> NDArray[np.bool_]:
        """Which elements it speaks of."""
        found = self.reaches(features)
        for side, (seen, most) in enumerate(zip(self._seen, self.most, strict=True)):
            found &= seen[sizes_of(features[:, side])] & (features[:, side] <= most)
        return found

    @cached_property
    def _seen(self) -> list[NDArray[np.bool_]]:
        """Of each side whether it was seen at each size."""
        return [np.isin(np.arange(SIZES), list(sizes)) for sizes in self.sizes]

    def reaches(self, features: Numbers) -> NDArray[np.bool_]:
        """Which elements are within its limits, of any size."""
        found = np.ones(len(features), dtype=np.bool_)
        for limit in self.below:
            found &= features[:, limit.feature] <= limit.low
        for limit in self.above:
            found &= features[:, limit.feature] >= limit.high
        return found

    def unseen(self) -> Iterator[tuple[int, int, int]]:
        """Sides (0 to 2) and the numbers, the first and the last one, of sizes within the limits at which it was not
        seen."""
        for side, most in enumerate(self.most):
            for size in range(1, int(sizes_of(np.array([most]))[0]) + 1):
                low, high = self._within(side, size)
                if size not in self.sizes[side] and low <= high:
                    yield side, low, high

    def _within(self, side: int, size: int) -> tuple[int, int]:
        """The numbers of a size that are within the limits of a side."""
        (first, last), (low, high) = span_of(size), self._between(side)
        return max(first, low or first), min([last, self.most[side], *([high] if high is not None else [])])

    def _between(self, number: int) -> tuple[int | None, int | None]:
        """From and up to which number a feature is asked for."""
        lows = [limit.high for limit in self.above if limit.feature == number]
        highs = [limit.low for limit in self.below if limit.feature == number]
        return max(lows, default=None), min(highs, default=None)

    def ends(self) -> Iterator[tuple[int, int]]:
        """The features that count with their first and last numbers, where there are such."""
        for number, feature in enumerate(FEATURES):
            for end in self._between(number) if feature.counts else ():
                if end is not None:
                    yield number, end

    def _spans(self, side: int) -> list[tuple[int, int]]:
        """The numbers of a side that it speaks of: neighbouring sizes are one span."""
        found: list[tuple[int, int]] = []
        for size in sorted(self.sizes[side]):
            low, high = self._within(side, size)
            if found and found[-1][1] == low - 1:
                low = found.pop()[0]
            found.append((low, high))
        return found

    def _others(self) -> Iterator[tuple[Feature, int | None, int | None]]:
        """The other features it asks for, from and up to which number each."""
        for number, feature in enumerate(FEATURES[len(self.sizes) :], len(self.sizes)):
            low, high = self._between(number)
            if (low, high) != (None, None):
                yield feature, low, high

    def text(self) -> str:
        """The elements, in words."""
        sides = [
            f"{FEATURES[side].of} = {_spans_text(spans)}"
            for side, most in enumerate(self.most)
            if (spans := self._spans(side)) != [(1, most)]
        ]
        others = [feature.text(low, high) for feature, low, high in self._others()]
        return ", ".join([*sides, *others]) or "all products"

    def limits(self) -> list[dict[str, Any]]:
        """The elements, for programs."""
        found = [
            {
                **vars(FEATURES[side]),
                "least": spans[0][0],
                "most": spans[-1][1],
                "spans": [list(span) for span in spans],
            }
            for side in range(len(self.sizes))
            if (spans := self._spans(side))
        ]
        others = ({**vars(feature), "least": low, "most": high, "spans": []} for feature, low, high in self._others())
        return [*found, *others]


def _spans_text(spans: Sequence[tuple[int, int]]) -> str:
    parts = [str(low) if low == high else f"{low} to {high}" for low, high in spans]
    return " or ".join(parts)


def learned(features: Numbers, fits: NDArray[np.bool_]) -> list[Rule]:
    """Rules for elements with these features, of which `fits` says for each plan whether it gives them."""
    none = ~fits.any(axis=1, keepdims=True)
    rules = _rules(features, np.concatenate([fits, none], axis=1), (), (), fits.sum(axis=0))
    most = tuple(features[:, :SIDES_ASKED].max(axis=0).tolist())
    return [replace(rule, most=most) for rule in rules]


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
        sizes = tuple(frozenset(sizes_of(np.unique(features[:, side])).tolist()) for side in range(SIDES_ASKED))
        yield Rule(below, above, plan if whole and plan < len(liked) else -1, sizes, ())
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
