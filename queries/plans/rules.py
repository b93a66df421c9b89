"""Rules that say which plan computes which element of a matrix product, by M, N, K, row and column, learned from
elements whose plans are known.

A rule is a list of limits and the plan of the elements within them. The rules are the leaves of a decision tree whose
tests are "is this feature at most this number?", each chosen such that one plan on either side reproduces as many
elements as possible. Each limit is known only as the gap between two observed values, and no rule covers what lies
within the gap. Nor does a rule cover a value of M, N or K in a size class in which it was never observed: 1, 2, 3 and 4
are classes of their own, and larger values are in one class from each power of two to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.documents import identify as documents

EDGES = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # elements after the last multiple of these may have their own kernel
FIRSTS = ((4, 8), (4, 16), (8, 16), (8, 32), (16, 32))  # (step, turn) of the features of the kind "first"
SIDES = (2, 4, 8, 16, 32, 64)  # M or N modulo these may decide which kernel runs
MULTIPLES = (2, 4, 8, 16, 32, 64)  # K may have a kernel of its own if it is a multiple of these
#: (step, turn) of the features of the kind "block"
BLOCKS = (
    (8, 0),
    (16, 0),
    (32, 0),
    (6, 0),
    (12, 0),
    (24, 0),
    (48, 0),
    (6, 4),
    (4, 4),
    (12, 8),
    (8, 8),
    (16, -8),
    (32, -8),
)
TURNS = (0, 8, 12, 16, 24)  # rows and columns are counted from the first one, or modulo these
DEEP = 14  # tests before one rule, at most
SMALL = 4  # each M, N or K up to here is a size class of its own
SIZES = 64  # an upper bound of the number of size classes
SIDES_ASKED = 3  # M, N and K are the first features

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """M, N and K of a product."""

    rows: int
    columns: int
    length: int

    @property
    def sides(self) -> tuple[int, int, int]:
        return self.rows, self.columns, self.length

    def __str__(self) -> str:
        return " x ".join(map(str, self.sides))


Kind = Literal["number", "rest", "after", "first", "multiple", "block", "place"]


@dataclass(frozen=True)
class Feature:
    """An integer that depends on M, N, K, row and column of an element, and that rules may test. By kind:

    - number: M, N, K, or a product of them.
    - rest: M or N modulo `step`; rules by hand may test K in this way too.
    - multiple: 1 if K is a multiple of `step`, else 0.
    - after: 1 if the element's row or column is after the last multiple of `step`, else 0.
    - first: 1 if the element's row or column is among the first r, else 0, where r is the largest multiple of `step` in
      M or N, modulo `turn`.
    - place: the index of the element's row or column, from 0 on, modulo `step` unless `step` is 0.
    - block: the size of the block that holds the element's row or column. M or N is cut into blocks of `step`, the rest
      into blocks of the largest power of two below `step`, and so on down to 1. A positive `turn` cuts M or N into
      panels first, of three times, twice and once `turn`, and each panel into blocks (OpenBLAS,
      driver/level3/level3.c). A negative `turn` makes the first -`turn` rows or columns a block of their own (OpenBLAS,
      sgemm_kernel_8x4_haswell_2.c)."""

    kind: Kind
    of: str
    step: int = 0
    turn: int = 0

    @property
    def counts(self) -> bool:
        """Whether the values are M, N, K, products of these, or remainders."""
        return self.kind in ("number", "rest")

    @property
    def of_shape(self) -> bool:
        """Whether all elements of a product have the same value."""
        return self.kind in ("number", "rest", "multiple")

    def values(self, shape: Shape, rows: Numbers, columns: Numbers) -> Numbers:
        """The values of the feature for elements of one product."""
        m, n, k = shape.sides
        places, side = (rows, m) if self.of in ("M", "rows") else (columns, n)
        match self.kind:
            case "after":
                return (places >= side - side % self.step).astype(np.int64)
            case "first":
                return (places < (side - side % self.step) % self.turn).astype(np.int64)
            case "place":
                return places % self.step if self.step else places
            case "block":
                return blocks_of(side, self.step, self.turn)[places]
            case "rest":
                value = {"M": m, "N": n, "K": k}[self.of] % self.step
            case "multiple":
                value = int(k % self.step == 0)
            case _:
                value = {"M": m, "N": n, "K": k, "M * N": m * n, "M * N * K": m * n * k}[self.of]
        return np.full(len(rows), value)

    def text(self, low: int | None, high: int | None) -> str:
        """The condition that the value is from `low` to `high`, in words; None: no limit."""
        holds = low is not None
        match self.kind:
            case "multiple":
                return f"{self.of} a multiple of {self.step}" if holds else f"{self.of} no multiple of {self.step}"
            case "first":
                return f"{'' if holds else 'not '}the first {self.of}, {self.step}s that fill no {self.turn}"
            case "after":
                return f"{self.of} {'after' if holds else 'up to'} the last multiple of {self.step}"
        if self.kind == "block":
            panels = f" in panels of {3 * self.turn}, {2 * self.turn}, {self.turn}" if self.turn > 0 else ""
            panels = f" after the first {-self.turn}" if self.turn < 0 else panels
            every = _sizes(self.step)
            sizes = [size for size in every if size >= (low or 1) and size <= (high or self.step)]
            return f"{self.of} in blocks of {' or '.join(map(str, sizes))} ({', '.join(map(str, every))}{panels})"
        if self.kind == "rest" and self.step == 2 and (low == 1 or high == 0):
            return f"{self.of} {'odd' if low else 'even'}"
        name, least = (f"{self.of} modulo {self.step}", 0) if self.kind == "rest" else (self.of, 1)
        if self.kind == "place":
            name, least = f"{self.of[:-1]} index{f' modulo {self.step}' if self.step else ''}", 0
        if low is not None and high is not None and low == high:
            return f"{name} = {low}"
        if low is None or (low <= least and high is not None):
            return f"{name} = {high}" if high == least else f"{name} up to {high}"
        if high is None:
            return f"{name} from {low}"
        return f"{name} from {low} to {high}"


def _sizes(largest: int) -> list[int]:
    """The sizes of blocks: the largest one, and the powers of two below it."""
    return [largest, *(1 << bit for bit in range((largest - 1).bit_length() - 1, -1, -1))]


@cache
def blocks_of(side: int, largest: int, turn: int) -> Numbers:
    """For each row or column of a side, the size of its block."""
    panels, left = [], side
    if turn < 0:
        panels = [min(side, -turn), max(side + turn, 0)]
    else:
        while turn and left:
            panel = next((times * turn for times in (3, 2) if left >= times * turn), min(left, turn))
            panels.append(panel)
            left -= panel
    blocks: list[int] = []
    for panel in panels or [side]:
        left = panel
        for size in _sizes(largest):
            blocks += [size] * (left - left % size)
            left %= size
    return np.array(blocks, dtype=np.int64)


#: of several features that separate elements equally well the first one is tested
FEATURES = (
    *(Feature("number", of) for of in ("M", "N", "K", "M * N * K", "M * N")),
    *(Feature("rest", of, side) for of in ("N", "M") for side in SIDES),
    *(Feature("place", of, step) for of in ("columns", "rows") for step in TURNS),
    *(Feature("block", of, *block) for of in ("columns", "rows") for block in BLOCKS),
    *(Feature("after", of, edge) for of in ("columns", "rows") for edge in EDGES),
    *(Feature("first", of, *first) for of in ("columns", "rows") for first in FIRSTS),
    *(Feature("multiple", "K", step) for step in MULTIPLES),
)


def features_of(shape: Shape, rows: Numbers, columns: Numbers) -> Numbers:
    """The features of elements of one product (elements x features)."""
    return np.array([feature.values(shape, rows, columns) for feature in FEATURES]).T


@dataclass(frozen=True)
class Limit:
    """A test of a decision tree: the value of a feature is at most `low` for the observed elements on one side, and at
    least `high` for those on the other."""

    feature: int
    low: int
    high: int


def sizes_of(numbers: Numbers) -> Numbers:
    """The size class of each value of M, N or K."""
    return np.where(numbers <= SMALL, numbers, SMALL + np.floor(np.log2(np.maximum(numbers, 1))).astype(np.int64) - 1)


def span_of(size: int) -> tuple[int, int]:
    """The first and the last value of a size class."""
    power = size - SMALL + 1
    return (size, size) if size <= SMALL else (max(SMALL + 1, 1 << power), (2 << power) - 1)


@dataclass(frozen=True)
class Rule:
    """The elements whose values are at most `low` of each limit in `below` and at least `high` of each limit in
    `above`. `plan`: the number of a plan that reproduces all observed elements among them, -1 if no plan does; `sizes`:
    the size classes of M, N and K in which elements were observed; `most`: the largest M, N and K of the observed
    shapes; `least`: the smallest that are asked, all multiples of `multiple`."""

    below: tuple[Limit, ...]
    above: tuple[Limit, ...]
    plan: int
    sizes: tuple[frozenset[int], ...]
    most: tuple[int, ...]
    least: tuple[int, ...] = (1, 1, 1)
    multiple: int = 1

    def holds(self, features: Numbers) -> NDArray[np.bool_]:
        """Which elements the rule covers. `features`: elements x features."""
        inside = self.reaches(features)
        for side, (seen, least, most) in enumerate(zip(self._seen, self.least, self.most, strict=True)):
            values = features[:, side]
            inside &= seen[sizes_of(values)] & (values >= least) & (values <= most) & (values % self.multiple == 0)
        return inside

    @cached_property
    def _seen(self) -> list[NDArray[np.bool_]]:
        """For M, N and K: whether the rule was observed in each size class."""
        return [np.isin(np.arange(SIZES), list(sizes)) for sizes in self.sizes]

    def reaches(self, features: Numbers) -> NDArray[np.bool_]:
        """Which elements are within the limits, whatever their size classes."""
        inside = np.ones(len(features), dtype=np.bool_)
        for limit in self.below:
            inside &= features[:, limit.feature] <= limit.low
        for limit in self.above:
            inside &= features[:, limit.feature] >= limit.high
        return inside

    def unseen(self) -> Iterator[tuple[int, int, int]]:
        """The size classes within the limits in which the rule was not observed: the side (0 to 2 for M, N, K), the
        first and the last value."""
        for side, most in enumerate(self.most):
            for size in range(1, int(sizes_of(np.array([most]))[0]) + 1):
                low, high = self._within(side, size)
                if size not in self.sizes[side] and low <= high:
                    yield side, low, high

    def _within(self, side: int, size: int) -> tuple[int, int]:
        """The first and the last value of a size class that are within the limits of a side."""
        (first, last), (low, high) = span_of(size), self._between(side)
        highs = [] if high is None else [high]
        return max(first, low or first, self.least[side]), min([last, self.most[side], *highs])

    def _between(self, number: int) -> tuple[int | None, int | None]:
        """The smallest and the largest value of a feature within the limits; None: no limit."""
        lows = [limit.high for limit in self.above if limit.feature == number]
        highs = [limit.low for limit in self.below if limit.feature == number]
        return max(lows, default=None), min(highs, default=None)

    def ends(self) -> Iterator[tuple[int, int]]:
        """The features that are numbers (`counts`), each with its smallest or largest value within the limits, if it
        has one."""
        for number, feature in enumerate(FEATURES):
            for end in self._between(number) if feature.counts else ():
                if end is not None:
                    yield number, end

    def _spans(self, side: int) -> list[tuple[int, int]]:
        """The spans of values of a side that the rule covers; adjacent size classes are one span."""
        spans: list[tuple[int, int]] = []
        for size in sorted(self.sizes[side]):
            low, high = self._within(side, size)
            if spans and spans[-1][1] // self.multiple == (low - 1) // self.multiple:
                low = spans.pop()[0]
            spans.append((low, high))
        return spans

    @property
    def lengths(self) -> list[int]:
        """The values of K that the rule covers."""
        step = self.multiple
        return [k for low, high in self._spans(SIDES_ASKED - 1) for k in range(-(-low // step) * step, high + 1, step)]

    def _others(self) -> Iterator[tuple[Feature, int | None, int | None]]:
        """The limited features other than M, N and K, with the smallest and the largest value of each."""
        for number, feature in enumerate(FEATURES[len(self.sizes) :], len(self.sizes)):
            low, high = self._between(number)
            if (low, high) != (None, None):
                yield feature, low, high

    def text(self) -> str:
        """The elements that the rule covers, in words."""
        sides = [
            f"{FEATURES[side].of} = {_spans_text(spans)}"
            for side, most in enumerate(self.most)
            if (spans := self._spans(side)) != [(self.least[side], most)]
        ]
        others = [feature.text(low, high) for feature, low, high in self._others()]
        multiples = [f"M, N and K multiples of {self.multiple}"] if self.multiple > 1 else []
        return ", ".join([*multiples, *sides, *others]) or "all products"

    def limits(self) -> list[documents.Limit]:
        """The elements that the rule covers, as one limit for each limited feature."""
        limits = [
            documents.Limit(**vars(FEATURES[side]), least=spans[0][0], most=spans[-1][1], spans=spans)
            for side in range(len(self.sizes))
            if (spans := self._spans(side))
        ]
        others = [(vars(feature), low, high) for feature, low, high in self._others()]
        if self.multiple > 1:
            others += [(vars(Feature("rest", side, self.multiple)), 0, 0) for side in ("M", "N", "K")]
        return [*limits, *(documents.Limit(**one, least=low, most=high, spans=[]) for one, low, high in others)]


def _spans_text(spans: Sequence[tuple[int, int]]) -> str:
    parts = [str(low) if low == high else f"{low} to {high}" for low, high in spans]
    return " or ".join(parts)


def learned(
    features: Numbers, fits: NDArray[np.bool_], least: tuple[int, ...] = (1, 1, 1), multiple: int = 1
) -> list[Rule]:
    """Learn rules. `features`: elements x features; `fits`: whether each plan reproduces each element (elements x
    plans); `least`: the smallest M, N and K that are asked, all multiples of `multiple`."""
    none = ~fits.any(axis=1, keepdims=True)
    rules = _Learning(features, np.concatenate([fits, none], axis=1)).rules()
    most = tuple(features[:, :SIDES_ASKED].max(axis=0).tolist())
    return [replace(rule, most=most, least=least, multiple=multiple) for rule in rules]


class _Learning:
    """Elements, prepared for counting. `values`: the values of each feature in rising order; `ranks`: the index of each
    element's value in `values` (features x elements); `fits`: as in `learned`, with a last column for elements that no
    plan reproduces; `liked`: how many elements each plan reproduces."""

    def __init__(self, features: Numbers, fits: NDArray[np.bool_]) -> None:
        uniques = [np.unique(column, return_inverse=True) for column in features.T]
        self.values = [values for values, _ in uniques]
        self.ranks = np.array([ranks for _, ranks in uniques])
        self.fits = fits
        self.liked = fits[:, :-1].sum(axis=0)

    def rules(self) -> Iterator[Rule]:
        """The leaves of the tree, for all elements."""
        yield from self._within(self.ranks, self.fits, (), ())

    def _within(
        self, ranks: Numbers, fits: NDArray[np.bool_], below: tuple[Limit, ...], above: tuple[Limit, ...]
    ) -> Iterator[Rule]:
        """The rules for the elements within some limits. Of plans that reproduce equally many of these elements, a rule
        takes the plan that reproduces most of all elements."""
        counts, liked = fits.sum(axis=0), self.liked
        ranked = sorted(range(len(counts)), key=lambda p: (counts[p], liked[p] if p < len(liked) else -1), reverse=True)
        plan, whole = ranked[0], bool(counts[ranked[0]] == len(fits))
        limit = None if whole or len(below) + len(above) >= DEEP else self._best(ranks, fits)
        if limit is None:
            sizes = tuple(
                frozenset(sizes_of(self.values[side][np.unique(ranks[side])]).tolist()) for side in range(SIDES_ASKED)
            )
            yield Rule(below, above, plan if whole and plan < len(liked) else -1, sizes, ())
            return
        left = self.values[limit.feature][ranks[limit.feature]] <= limit.low
        yield from self._within(ranks[:, left], fits[left], (*below, limit), above)
        yield from self._within(ranks[:, ~left], fits[~left], below, (*above, limit))

    def _best(self, ranks: Numbers, fits: NDArray[np.bool_]) -> Limit | None:
        """The test after which the best plans of the two sides reproduce the most elements; None if no feature
        varies."""
        best: tuple[float, ...] = ()
        limit = None
        plans = fits.shape[1]
        elements, fitting = np.nonzero(fits)
        for number, mine in enumerate(ranks):
            least, most = int(mine.min()), int(mine.max())
            if least == most:
                continue
            values = most - least + 1
            size = np.bincount(mine - least, minlength=values)
            present = np.flatnonzero(size)
            counts = np.bincount((mine[elements] - least) * plans + fitting, minlength=values * plans)
            sums, size = counts.reshape(values, plans)[present].cumsum(axis=0), size[present[:-1]].cumsum()
            below, above = sums[:-1].max(axis=1), (sums[-1] - sums[:-1]).max(axis=1)
            right = below + above
            spread = below.astype(float) ** 2 / size + above.astype(float) ** 2 / (len(fits) - size)
            at = int(np.lexsort((-spread, -right))[0])
            score = (float(right[at]), round(float(spread[at]), 6), -float(FEATURES[number].kind != "number"))
            if score > best:
                best = score
                low, high = self.values[number][present[at : at + 2] + least].tolist()
                limit = Limit(number, low, high)
        return limit


def chosen(rules: Sequence[Rule], features: Numbers) -> Numbers:
    """The number of the rule that covers each element, -1 if none does."""
    numbers = np.full(len(features), -1)
    for number, rule in enumerate(rules):
        numbers[rule.holds(features)] = number
    return numbers
