"""The decision whether a result depends on the shape of its product: whether, by a library's map, the sum of a row of A
and a column of B has the same bits for every M and N, at every place of the row and the column.

For each K the map's plans for all rows of all M and all columns of all N are enumerated; elements that no condition of
a rule distinguishes count as one. Two plans that compute the same sum in two shapes are then proved equal at each such
K, or an input is found on which they differ (equal.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.documents.parts import Verdict
from mmaprobe.queries.compare.steady import spread
from mmaprobe.queries.plans.equal import PlanProof, matrices_agree, prove_plans, with_one_addend
from mmaprobe.queries.plans.planmap import PlanMap, Within
from mmaprobe.queries.plans.rulefile import span_of
from mmaprobe.queries.plans.rules import Numbers, Shape
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.base.errors import IncompleteError, ParameterError
from mmaprobe.smtmodel.plans import Plan

#: the side that is the same in compared shapes; None: both may differ
Fixed = Literal["M", "N"]
Span = tuple[int, int]

LARGEST = 1 << 16  # the largest side, or K
TRIED = 12  # K at which two plans multiply matrices before the proofs
MOST_CASES = 1 << 28  # pairs of classes of rows and columns, times K


@dataclass(frozen=True)
class Shapes:
    """The shapes in question: the first and the last M, N and K."""

    rows: Span
    columns: Span
    length: Span

    @staticmethod
    def of(rules: PlanMap, given: str = "") -> Shapes:
        """The shapes of a map, narrowed by a text such as M=1..8,N=4096,K=16..1024. Raises ParameterError."""
        spans = {side: _all_of(rules, side) for side in ("M", "N", "K")}
        for part in filter(None, (part.strip() for part in given.split(","))):
            side, equals, text = (word.strip() for word in part.partition("="))
            ends = span_of(text)
            if not equals or side not in spans or ends is None:
                raise ParameterError("shapes", f"{part!r}: it is written M=1..8,N=4096,K=16..1024")
            low, high = spans[side]
            spans[side] = (max(1 if ends[0] is None else ends[0], 1), high if ends[1] is None else ends[1])
            if spans[side][0] > spans[side][1] or spans[side][1] < 1:
                raise ParameterError("shapes", f"{part!r}: no number; the map has {side} = {low} to {high}")
        for side, (_, high) in spans.items():
            if high > LARGEST:
                raise ParameterError("shapes", f"{side} up to {high} is too large; at most {LARGEST}")
        return Shapes(*spans.values())

    def holds(self, shape: Shape) -> bool:
        """Whether a shape is one of these shapes."""
        return all(low <= side <= high for side, (low, high) in zip(shape.sides, vars(self).values(), strict=True))

    def text(self) -> str:
        """The shapes in words."""
        spans = zip("MNK", vars(self).values(), strict=True)
        return ", ".join(f"{side} = {low}" if low == high else f"{side} = {low} to {high}"
                         for side, (low, high) in spans)  # fmt: skip


def _all_of(rules: PlanMap, side: str) -> Span:
    """The smallest and the largest limit of any rule for a side; 1 and LARGEST without limits."""
    ends = [
        end
        for rule in rules.rules
        for limit in rule.limits
        if limit.feature.kind == "number" and limit.feature.of == side
        for low, high in limit.spans
        for end in (low, high)
        if end is not None
    ]
    return (min(ends), max(ends)) if ends else (1, LARGEST)


@dataclass(frozen=True)
class At:
    """An element of a product."""

    shape: Shape
    row: int
    column: int

    def __str__(self) -> str:
        return f"[{self.row}, {self.column}] of {self.shape}"


@dataclass(frozen=True)
class Class:
    """Rows, or columns, that no condition of a rule distinguishes. `side`, `place`: of the first of these rows or
    columns, the M or N of its shape and its number; `held`: for each rule, whether its conditions about side and place
    hold."""

    side: int
    place: int
    held: tuple[bool, ...]


@dataclass(frozen=True)
class Need:
    """Two plans that compute the same sum in two shapes. `places`: by K, an element of each plan."""

    left: Plan
    right: Plan
    places: dict[int, tuple[At, At]] = field(hash=False)

    @property
    def lengths(self) -> list[int]:
        return sorted(self.places)

    def is_asked_by(self, proof: PlanProof) -> bool:
        """Whether a proof compares these two plans."""
        return (proof.left, proof.right) == with_one_addend(self.left, self.right)


@dataclass(frozen=True)
class Enumerated:
    """A map's plans for some shapes. `needs`: the pairs of plans that have to be equal; `open`: for each K at which no
    rule covers some element, the first such element; `plans`: the K of each plan."""

    needs: tuple[Need, ...]
    open: dict[int, At]
    plans: dict[Plan, list[int]]


@lru_cache(maxsize=8)
def enumerated(rules: PlanMap, shapes: Shapes, fixed: Fixed | None) -> Enumerated:
    """A map's plans for every element of some shapes. Raises IncompleteError for too many shapes."""
    products = {limit.feature.of for rule in rules.rules for limit in rule.limits} & {"M * N", "M * N * K"}
    rows, columns = (
        _classes(rules, names, span, bool(products))
        for names, span in ((("M", "rows"), shapes.rows), (("N", "columns"), shapes.columns))
    )
    lengths: dict[object, list[int]] = {}  # K for which all rules are the same
    for k in range(shapes.length[0], shapes.length[1] + 1):
        held = tuple(_hold(rule.limits, ("K",), Shape(1, 1, k))[0] for rule in rules.rules)
        lengths.setdefault((held, k if "M * N * K" in products else None), []).append(k)
    if len(rows) * len(columns) * len(lengths) > MOST_CASES:
        raise IncompleteError(f"{rules.reference}: too many shapes ({shapes.text()}): give fewer")
    places_of_pairs: dict[tuple[Plan, Plan], dict[int, tuple[At, At]]] = {}
    open_ones: dict[int, At] = {}
    plans: dict[Plan, list[int]] = {}

    def at(row: int, column: int, k: int) -> At:
        one, other = rows[row], columns[column]
        return At(Shape(one.side, other.side, k), one.place, other.place)

    for some in lengths.values():
        own = _numbers(rules, rows, columns, some[0])
        missing = np.argwhere(own < 0)
        if len(missing):
            row, column = missing[0].tolist()
            open_ones |= {k: at(row, column, k) for k in some}
        for number in np.unique(own[own >= 0]).tolist():
            plans.setdefault(rules.rules[number].plan, []).extend(some)
        for first, other in _together(own, rules, fixed):
            pair = tuple(rules.rules[own[place]].plan for place in (first, other))
            into = places_of_pairs.setdefault((pair[0], pair[1]), {})
            for k in some:
                into.setdefault(k, (at(*first, k), at(*other, k)))
    needs = tuple(Need(left, right, places) for (left, right), places in places_of_pairs.items())
    return Enumerated(needs, open_ones, {plan: sorted(set(ks)) for plan, ks in plans.items()})


def _classes(rules: PlanMap, names: tuple[str, str], span: Span, apart: bool) -> list[Class]:
    """The classes of rows or columns. `names`: the features of rules about them; `span`: the first and the last M or N;
    `apart`: whether rows or columns of two values of M or N are always in two classes."""
    classes: dict[object, Class] = {}
    places = any(limit.feature.of in names and limit.feature.kind not in ("number", "rest")
                 for rule in rules.rules for limit in rule.limits)  # fmt: skip
    for side in range(span[0], span[1] + 1):
        shape, count = Shape(side, side, 1), side if places else 1
        held = np.array([_hold(rule.limits, names, shape, count) for rule in rules.rules])
        for place in sorted(np.unique(held, axis=1, return_index=True)[1].tolist()):
            own = tuple(held[:, place].tolist())
            classes.setdefault((own, side if apart else None), Class(side, place, own))
    return list(classes.values())


def _hold(limits: Iterable[Within], names: Sequence[str], shape: Shape, count: int = 1) -> NDArray[np.bool_]:
    """For each of the first `count` places of a shape, whether the conditions about one side (`names`) hold."""
    places, hold = np.arange(count), np.ones(count, dtype=np.bool_)
    for limit in limits:
        if limit.feature.of in names:
            hold &= limit.holds(shape, places, places)
    return hold


def _numbers(rules: PlanMap, rows: Sequence[Class], columns: Sequence[Class], k: int) -> Numbers:
    """The number of the rule for each class of rows with each class of columns (rows x columns); -1: no rule."""
    numbers = np.full((len(rows), len(columns)), -1)
    m, n = (np.array([one.side for one in some]) for some in (rows, columns))
    for number, rule in reversed(list(enumerate(rules.rules))):
        if not _hold(rule.limits, ("K",), Shape(1, 1, k))[0]:
            continue
        own = np.outer([one.held[number] for one in rows], [one.held[number] for one in columns])
        for limit in rule.limits:
            if limit.feature.of in ("M * N", "M * N * K"):
                values = np.outer(m, n) * (k if limit.feature.of == "M * N * K" else 1)
                own &= limit.among(values)
        numbers[own] = number
    return numbers


def _together(own: Numbers, rules: PlanMap, fixed: Fixed | None) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of elements that are the same sum in two shapes and have two plans. Of the plans of a sum, the first
    element of one is paired with the first element of each other."""
    if fixed is None:
        yield from _apart([(int(i), int(j)) for i, j in np.ndindex(own.shape)], own.ravel(), rules)
        return
    lines = own.T if fixed == "N" else own
    _, kept = np.unique(lines, axis=0, return_index=True)
    for line in sorted(kept.tolist()):
        places = [(k, line) if fixed == "N" else (line, k) for k in range(lines.shape[1])]
        yield from _apart(places, lines[line], rules)


def _apart(
    places: Sequence[tuple[int, int]], own: Numbers, rules: PlanMap
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    firsts: dict[Plan, tuple[int, int]] = {}
    for number, at in zip(*np.unique(own, return_index=True), strict=True):
        if number >= 0:
            firsts.setdefault(rules.rules[number].plan, places[int(at)])
    yield from ((first, other) for first, other in [(next(iter(firsts.values())), one) for one in firsts.values()][1:])


@dataclass
class Invariance:
    """The findings about the shapes of a map. `proofs`: one for each pair of plans, in the order compared."""

    rules: PlanMap
    shapes: Shapes
    fixed: Fixed | None
    proofs: list[PlanProof] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def enumeration(self) -> Enumerated:
        """The map's plans for the shapes."""
        return enumerated(self.rules, self.shapes, self.fixed)

    @property
    def verdict(self) -> Verdict:
        """Different, if two plans of the same sum differ on a replayed input; equal, if the map has a plan for every
        element, and theorems state that the plans of each sum are equal at each K; else unknown."""
        if self.difference is not None:
            return "different"
        return "unknown" if self.enumeration.open or any(map(self.left_open, self.enumeration.needs)) else "equal"

    @property
    def difference(self) -> tuple[PlanProof, At, At] | None:
        """Two plans with an input on which they differ, and two elements that these plans compute by the map."""
        for proof in self.proofs:
            for need in self.enumeration.needs if proof.verdict == "different" else ():
                places = need.places.get(proof.length or 0)
                theirs = None if places is None else [self._plan_at(place) for place in places]
                if places is not None and theirs == [need.left, need.right] and need.is_asked_by(proof):
                    return (proof, *places)
        return None

    def _plan_at(self, place: At) -> Plan | None:
        own = self.rules.numbers_of(place.shape)[place.row, place.column]
        return self.rules.rules[own].plan if own >= 0 and self.shapes.holds(place.shape) else None

    def left_open(self, need: Need) -> list[int]:
        """The K at which no theorem states that two plans are equal."""
        goals = [proof.goal for proof in self.proofs if need.is_asked_by(proof)]
        return [k for k in need.lengths if not any(goal is not None and goal.covers(k) for goal in goals)]


def prove_invariant(
    rules: PlanMap, shapes: Shapes, fixed: Fixed | None = None, options: Options | None = None, confirm: bool = True
) -> Invariance:
    """Prove that a result does not depend on the shape, or find two shapes and an input for which it does. `fixed`: the
    side that is the same in both shapes. An interrupt ends the work. Raises ParameterError for a K that a plan does not
    take, IncompleteError for too many shapes, and FaultError if an evaluation contradicts a proof."""
    options = options or Options()
    start = options.clock()
    invariance = Invariance(rules, shapes, fixed)
    try:
        _Prover(invariance, options, confirm, start).run()
    except KeyboardInterrupt:
        invariance.interrupted = True
    invariance.seconds = options.clock() - start
    return invariance


class _Prover:
    def __init__(self, invariance: Invariance, options: Options, confirm: bool, start: float) -> None:
        self.invariance, self.options, self.confirm, self.start = invariance, options, confirm, start

    def run(self) -> None:
        """Search for a difference of any pair of plans first, as a difference ends the work; then prove the pairs
        equal."""
        needs = self.invariance.enumeration.needs
        for look in (self._differs, self._proved):
            for need in needs:
                look(need)
                if self.invariance.difference is not None:
                    return

    def _differs(self, need: Need) -> None:
        """Multiply random matrices at some K. If the two plans differ, find a small input."""
        for k in (need.lengths[place] for place in spread(len(need.lengths), TRIED)):
            if not matrices_agree(need.left, need.right, k):
                self._prove(need, k)
                return

    def _proved(self, need: Need) -> None:
        """Prove two plans equal at each K that no theorem so far covers: the theorem for one K may cover every multiple
        of a tile."""
        for k in need.lengths:
            if self.options.left(self.start) == 0 or self.invariance.difference is not None:
                return
            if k in self.invariance.left_open(need):
                self._prove(need, k)

    def _prove(self, need: Need, length: int) -> None:
        options = replace(self.options, timeout=self.options.left(self.start))
        proof = prove_plans(need.left, need.right, length, options, self.confirm)
        self.invariance.proofs.append(proof)
        if proof.interrupted:
            raise KeyboardInterrupt
