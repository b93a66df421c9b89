"""Where a device differs from the nearest unit: the smallest condition that holds exactly on the vectors on which
device and unit differ, over operands and signals of the unit's datapath; fresh vectors test it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from operator import or_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.answers import BUILT
from mmaprobe.queries.building.features import LOW, Feature, Flags, Places, features_of
from mmaprobe.queries.building.shapes import Kind, Shapes
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans, without_payload
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.units.unit import Unit

Ask = Callable[[Table], Patterns]

FRESH = 20_000  # new vectors on which a condition is tested
BATCH = 1_000  # fresh vectors in one question to the device
LEARNT = 4_000  # vectors from which a condition is learnt
TRIED = 20  # facts of which every pair and every triple is tried
SPLITS = 8  # flags, and as many facts about numbers, tried to split the differing vectors in two
MOST_FACTS = 8  # the most facts of a condition
TURNS = 24  # turns of learning from fresh vectors that refute conditions
ROUNDS = 8  # further turns, in which a condition only has to be necessary (it holds wherever vectors differ)
EXACT = 0.7  # share of the time after which conditions only have to be necessary
GOOD = 0.6  # largest share of the agreeing vectors on which a necessary condition may hold
NEAR = 0.5  # largest share of the vectors, and of random vectors, on which a device differs from a near unit
WRONG_ALLOWED = 0.01  # wrong verdicts of conditions allowed for each vector that differs
BAD = 0.002  # largest share of fresh vectors with a wrong verdict of the conditions
SIMPLE = (False, False, 0.0, 3.5)  # a unit of at most this _Learnt.order ends the comparison of units
CHOOSING = 0.3  # share of the time after which no further unit is compared
LARGEST_COST = 24.0  # cost above which conditions only have to be necessary
HALF = 0.6  # two conditions replace one if they have less than this share of its wrong verdicts
PART = 0.04  # each fact of a necessary condition rules out at least this share of the vectors that do not differ
RANDOM: tuple[Kind, ...] = ("middle", "anything")
SHAPED: tuple[Kind, ...] = ("heavy", "small", "vanishing", "subnormal", "large")


class Fact(NamedTuple):
    """A statement about a feature of a vector. For a flag (`at` is None): it is set (`holds`) or not; for a number: it
    is at least `at` (`holds`) or at most `at`."""

    name: str
    at: int | None
    holds: bool

    def among(self, values: Places) -> Flags:
        """For each value of its feature, whether the fact holds."""
        if self.at is None:
            return np.asarray((values != 0) == self.holds)
        return np.asarray(values >= self.at if self.holds else values <= self.at)


@dataclass(frozen=True)
class Difference:
    """Vectors on which a device differs from a unit in one way: `how`, in words; `condition`: the facts that hold on
    these vectors, in words."""

    how: str
    condition: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """Where a device differs from `unit`. `fresh`: the number of vectors that tested the conditions; `wrong`: the
    number of these with a wrong verdict; `shares`: for each kind of vectors, in words, the number that differ and the
    number of all. `inside`: for a condition that is only necessary, the number of differing vectors on which it holds,
    and the number of all vectors on which it holds."""

    unit: Unit
    differences: tuple[Difference, ...]
    fresh: int
    wrong: int
    shares: tuple[tuple[str, int, int], ...]
    inside: tuple[int, int] | None = None

    def sentences(self) -> list[str]:
        """The description in words, a line for each fact."""
        lines = [f"{one.how} where {' and '.join(one.condition)}" for one in self.differences]
        if self.inside is not None:
            every = ", or where ".join(" and ".join(one.condition) for one in self.differences)
            lines = [f"{self.differences[0].how} only where {every}"]
            lines.append(f"there the device differs on {self.inside[0]} of {self.inside[1]} vectors asked")
        tested = "all" if not self.wrong else f"all but {self.wrong}"
        lines.append(f"this is right on {tested} of {self.fresh} fresh vectors")
        lines += [
            f"device and unit differ on {count} of {whole} {what} vectors"
            for what, count, whole in self.shares
            if whole
        ]
        return lines


# -- conditions


def holds(fact: Fact, features: dict[str, Feature]) -> Flags:
    """On which vectors a fact holds."""
    return fact.among(features[fact.name].values)


def words(fact: Fact, feature: Feature) -> str:
    """A fact in words."""
    if fact.at is None:
        return feature.yes if fact.holds else feature.no
    return feature.yes.format(fact.at) if fact.holds else feature.no.format(fact.at + 1)


@dataclass(frozen=True)
class Condition:
    """Facts that all hold on the vectors that differ. `wrong`: the number of agreeing vectors on which all these facts
    hold too."""

    facts: tuple[Fact, ...]
    cost: float
    wrong: int


def rank_of(every: Sequence[Condition]) -> tuple[int, float]:
    """The number of wrong verdicts of conditions, then the cost of the conditions."""
    return sum(one.wrong for one in every), sum(one.cost for one in every)


def smallest(features: dict[str, Feature], differs: Flags, other: Flags, quick: bool = False) -> Condition:
    """The cheapest facts that hold on every vector in `differs` and, together, on as few vectors in `other` as
    possible. `quick`: a greedy choice alone, in which each fact excludes the most further vectors of `other`."""
    facts, costs, excluded = list[Fact](), list[float](), list[Flags]()
    inside, outside = np.flatnonzero(differs), np.flatnonzero(other)
    for name, feature in features.items():
        own = feature.values.take(inside)
        low, high = int(own.min()), int(own.max())
        if "{}" not in feature.yes:
            options = [Fact(name, None, bool(low))] if low == high else []
        else:
            options = [Fact(name, low, True)] if low > LOW else []
            options += [Fact(name, high, False)] if high < -LOW else []
        for fact in options:
            flags = ~fact.among(feature.values.take(outside))
            if flags.any():
                facts.append(fact)
                costs.append(feature.cost)
                excluded.append(flags)
    left = np.ones(len(outside), dtype=np.bool_)
    if not facts or not len(left):
        return Condition((), 0.0, len(left))
    table, prices = np.array(excluded), np.array(costs)
    counted = table.astype(np.float32)  # counts below 2^24 are exact, and a product of f32 matrices is quicker
    chosen = list[int]()
    while left.any() and len(chosen) < MOST_FACTS:
        gains = (counted @ left) / prices
        best = int(gains.argmax())
        if not gains[best]:
            break
        chosen.append(best)
        left &= ~table[best]
    condition = Condition(tuple(facts[k] for k in chosen), float(prices[chosen].sum()), int(left.sum()))
    if len(chosen) > 1 and not quick:
        condition = _fewer(condition, facts, table, prices)
    return condition


def _fewer(condition: Condition, facts: list[Fact], table: Flags, prices: NDArray[np.float64]) -> Condition:
    """A condition of at most three of the TRIED facts that exclude most vectors, if it is cheaper and wrong on no more
    vectors; else the given condition."""
    ranked = np.argsort(-table.sum(axis=1) / prices, kind="stable")[:TRIED].tolist()
    sets = {k: int.from_bytes(np.packbits(table[k]).tobytes(), "big") for k in ranked}  # vectors excluded
    most = table.shape[1] - condition.wrong
    for size in range(1, min(3, len(condition.facts)) + 1):
        for some in combinations(ranked, size):
            cost = sum(float(prices[k]) for k in some)
            union = reduce(or_, (sets[k] for k in some))
            if cost < condition.cost and union.bit_count() >= most:
                condition = Condition(tuple(facts[k] for k in some), cost, table.shape[1] - union.bit_count())
        if len(condition.facts) == size:
            break
    return condition


def conditions(features: dict[str, Feature], differs: Flags, other: Flags, depth: int = 2) -> list[Condition]:
    """One condition for all vectors that differ; or several conditions, each for a part of these vectors, if they have
    fewer wrong verdicts. `depth`: how often a part is split again."""
    whole = smallest(features, differs, other)
    if not whole.wrong or not depth:
        return [whole]
    tried = list[tuple[int, float, Fact]]()
    for fact in _parting(features, differs, other, whole):
        sides = (holds(one, features) for one in _sides(fact))
        quick = [smallest(features, differs & side, other & side, True) for side in sides]
        price = features[fact.name].cost
        tried.append((sum(one.wrong for one in quick), sum(one.cost + price for one in quick), fact))
    wrong, cost, best = min(tried, key=lambda one: one[:2], default=(whole.wrong, whole.cost, None))
    if best is None or (wrong, cost) >= (whole.wrong, whole.cost):
        return [whole]
    return [condition for one in _sides(best) for condition in _part(features, differs, other, one, depth - 1)]


def _sides(fact: Fact) -> tuple[Fact, Fact]:
    """A fact and its negation."""
    if fact.at is None:
        return fact, fact._replace(holds=not fact.holds)
    return fact, Fact(fact.name, fact.at - 1 if fact.holds else fact.at + 1, not fact.holds)


def _part(features: dict[str, Feature], differs: Flags, other: Flags, fact: Fact, depth: int) -> list[Condition]:
    """Conditions for the vectors on which a fact holds; the fact is part of each condition."""
    side = holds(fact, features)
    return [Condition((fact, *(x for x in one.facts if x != fact)), one.cost + features[fact.name].cost, one.wrong)
            for one in conditions(features, differs & side, other & side, depth)]  # fmt: skip


def _parting(features: dict[str, Feature], differs: Flags, other: Flags, whole: Condition) -> list[Fact]:
    """Facts that hold on some, not all, of the vectors that differ: flags that are set, and sizes beyond those of every
    agreeing vector on which the condition `whole` holds."""
    wrong, count, found = other.copy(), int(differs.sum()), list[tuple[float, Fact]]()
    for fact in whole.facts:
        wrong &= holds(fact, features)
    differ, beside = np.flatnonzero(differs), np.flatnonzero(wrong)
    for name, feature in features.items():
        inside, outside = feature.values.take(differ), feature.values.take(beside)
        if "{}" not in feature.yes:
            options = [Fact(name, None, True)]
        else:
            options = [Fact(name, int(outside.max()) + 1, True), Fact(name, int(outside.min()) - 1, False)]
        for fact in options:
            kept = fact.among(inside)
            if 0 < kept.sum() < count and (fact.at is None or abs(fact.at) < -LOW // 2):
                found.append((feature.cost if fact.at is None else feature.cost + 1 - kept.sum() / count, fact))
    flags, sizes = ([one for one in found if (one[1].at is None) == kind] for kind in (True, False))
    return [fact for some in (flags, sizes) for _, fact in sorted(some, key=lambda one: one[0])[:SPLITS]]


def necessary(features: dict[str, Feature], differs: Flags, other: Flags) -> list[Condition]:
    """A condition that holds on every vector in `differs`; or two conditions, each for a part of these vectors, where
    the two rule out much more of `other`."""
    whole = _few(features, other, smallest(features, differs, other))
    best, wrong = [whole], HALF * whole.wrong
    for fact in _parting(features, differs, other, whole) if whole.wrong else ():
        parts = list[Condition]()
        for one in _sides(fact):
            side = holds(one, features)
            condition = smallest(features, differs & side, other & side, True)
            few = _few(features, other & side, condition)
            parts.append(replace(few, facts=(one, *(x for x in few.facts if x != one))))
        if sum(one.wrong for one in parts) < wrong:
            best, wrong = parts, sum(one.wrong for one in parts)
    return best


def _few(features: dict[str, Feature], other: Flags, condition: Condition) -> Condition:
    """The condition without the facts that rule out less than `PART` of `other`."""
    kept, left, cost = list[Fact](), other.copy(), 0.0
    for fact in condition.facts:
        inside = left & holds(fact, features)
        if left.sum() - inside.sum() >= PART * other.sum():
            kept.append(fact)
            left, cost = inside, cost + features[fact.name].cost
    return Condition(tuple(kept), cost, int(left.sum()))


# -- how results differ


def ways(d: Patterns, own: Patterns, fmt: Format) -> NDArray[np.str_]:
    """For each result of the device, the way in which it differs from the unit's result, in words."""
    sign = np.uint64(fmt.sign_bit)
    one, other = (np.where(nans(side, fmt), np.uint64(0), side & ~sign) for side in (d, own))
    texts = np.full(len(d), "the device gives another number", dtype="<U64")
    same = (d & sign) == (own & sign)
    step = one.astype(np.int64) - other.astype(np.int64)
    last = 1 << fmt.padding
    texts[same & (step > 0)] = "the device gives a larger magnitude"
    texts[same & (step < 0)] = "the device gives a smaller magnitude"
    texts[same & (step == last)] = "the device gives one unit more in the last place"
    texts[same & (step == -last)] = "the device gives one unit less in the last place"
    texts[(one != 0) & (other == 0)] = "the device gives no zero, the unit does,"
    texts[~same & (one == other)] = "the device gives the other sign"
    texts[(one == 0) & ((d & sign) != 0)] = "the device gives -0"
    texts[(one == 0) & ((d & sign) == 0)] = "the device gives +0"
    texts[nans(own, fmt)] = "the device gives no NaN, the unit does,"
    texts[nans(d, fmt)] = "the device gives NaN"
    return texts


# -- learning and testing


class Describer:
    """Learns where a device differs from a unit. `ask`: the device's answers to rows, with one pattern for all NaNs;
    `until`: the deadline, of time.monotonic."""

    def __init__(self, asked: Signature, shapes: Shapes, ask: Ask, until: float) -> None:
        self.asked, self.shapes, self.ask, self.until = asked, shapes, ask, until
        self.layout = layout_of(asked)
        self.random = np.random.default_rng(3)

    def described(self, units: Sequence[Unit], rows: Table, answers: Patterns) -> Description | None:
        """The description by one of `units`, tested on fresh vectors. Units are tried in the order of their
        descriptions' size by the answers so far, until one has few enough wrong verdicts on fresh vectors. None if no
        unit has, or if the time is over."""
        rows, first = np.unique(rows, axis=0, return_index=True)
        answers = answers[first]
        ranked: list[tuple[tuple[bool, bool, float, float], int]] = []
        start = time.monotonic()
        for number, unit in enumerate(units):
            if ranked and time.monotonic() > start + CHOOSING * (self.until - start):
                break
            learnt = _Learnt(self.asked, unit, rows, answers, self.random)
            if learnt.differs.any():
                ranked.append((learnt.order, number))
            if learnt.ways and learnt.order <= SIMPLE:
                break
        tested = (self._tested(units[number], rows, answers) for _, number in sorted(ranked))
        return next((found for found in tested if found is not None), None)

    def _tested(self, unit: Unit, rows: Table, answers: Patterns) -> Description | None:
        """Learn conditions, test them on fresh vectors, and learn again from the vectors that refute them. After
        `TURNS` turns, or a share of the time, the conditions only have to be necessary."""
        exact = time.monotonic() + EXACT * (self.until - time.monotonic())
        for turn in range(TURNS + ROUNDS):
            loose = turn >= TURNS or time.monotonic() > exact
            learnt = _Learnt(self.asked, unit, rows, answers, self.random, loose)
            if not learnt.good:
                return None
            fresh, wrong, inside = 0, 0, np.zeros(2, dtype=np.int64)
            shares = {"random": [0, 0], "shaped": [0, 0]}
            most = BATCH // 20 if learnt.one_sided else BATCH // 100
            while fresh < FRESH and time.monotonic() < self.until and wrong < most:
                parts = [("random", self._of(RANDOM)), ("shaped", self._of(SHAPED)), ("", self._near(learnt))]
                batch = np.concatenate([part for _, part in parts])
                results = self.ask(batch)
                own = learnt.results(batch)
                differs, predicted = results != own, learnt.predicted(batch, own)
                mistaken = differs & ~predicted if learnt.one_sided else differs != predicted
                inside = inside + np.array([(differs & predicted).sum(), predicted.sum()])
                start = 0
                for name, part in parts:
                    here = differs[start : start + len(part)]
                    if name:
                        shares[name][0] += int(here.sum())
                        shares[name][1] += len(part)
                    start += len(part)
                fresh, wrong = fresh + len(batch), wrong + int(mistaken.sum())
                some = mistaken | (self.random.random(len(batch)) < 0.1)
                rows, answers = np.concatenate([rows, batch[some]]), np.concatenate([answers, results[some]])
            if not wrong or time.monotonic() > self.until:
                break
        if not fresh or wrong > BAD * fresh or (learnt.one_sided and shares["random"][0] > NEAR * shares["random"][1]):
            return None
        counted = tuple((name, count, whole) for name, (count, whole) in shares.items())
        some = (int(inside[0]), int(inside[1])) if learnt.one_sided else None
        return Description(unit, learnt.differences(), fresh, wrong, counted, some)

    def _of(self, kinds: Sequence[Kind]) -> Table:
        each = BATCH // 4 // len(kinds) + 1
        return np.concatenate([self.shapes.rows(kind, each) for kind in kinds])

    def _near(self, learnt: _Learnt) -> Table:
        """Changed copies of vectors that differ, and of some vectors that do not differ."""
        count, formats = BATCH // 2, self.layout.formats
        differ, other = np.flatnonzero(learnt.differs), np.flatnonzero(~learnt.differs)
        chosen = self.random.choice(differ, count)
        if len(other):
            some = self.random.random(count) < 0.3
            chosen[some] = self.random.choice(other, int(some.sum()))
        table: Table = learnt.rows[chosen].copy()
        for _ in range(2):
            place = self.random.integers(0, table.shape[1], count)
            if self.layout.unread:
                place[np.isin(place, self.layout.unread)] = 0
            how = self.random.integers(0, 7, count)
            for k, fmt in enumerate(formats):
                for way in range(7):
                    at = np.flatnonzero((place == k) & (how == way))
                    if len(at):
                        table[at, k] = self._changed(table[at, k], fmt, way, learnt.rows[:, k])
        return table

    def _changed(self, patterns: Patterns, fmt: Format, way: int, others: Patterns) -> Patterns:
        """Patterns of a format, changed: a zero, the other sign, a neighbour, another exponent, or another pattern."""
        mask, sign = np.uint64((1 << fmt.width) - 1), np.uint64(fmt.sign_bit if fmt.signed else 0)
        unit = np.uint64(int(self.random.integers(1, 4)) << (fmt.fraction + fmt.padding))
        ends: list[Patterns] = [
            patterns & sign, patterns ^ sign, patterns + np.uint64(1 << fmt.padding),
            patterns - np.uint64(1 << fmt.padding), patterns + unit, patterns - unit,
            others[self.random.integers(0, len(others), len(patterns))],
        ]  # fmt: skip
        changed: Patterns = ends[way] & mask
        return changed


class _Way(NamedTuple):
    """Vectors that differ in one way. `words`: the way in words; `instead`: the pattern that the device gives on all
    these vectors, None if it gives several (the conditions may hold on further vectors on which the unit gives this
    pattern too); `conditions`: the conditions for these vectors."""

    words: str
    instead: int | None
    conditions: list[Condition]


class _Learnt:
    """Conditions learnt from answers for a unit: for each way in which answers differ from the unit's results; or, if
    `loose` or where these conditions are too wrong or costly, necessary conditions, one of which holds on every vector
    that differs (`one_sided`). `far`: most vectors differ."""

    def __init__(
        self, asked: Signature, unit: Unit, rows: Table, answers: Patterns, random: np.random.Generator,
        loose: bool = False,
    ) -> None:  # fmt: skip
        self.asked, self.unit = asked, unit
        own = self.results(rows)
        differs = answers != own
        self.far = bool(differs.mean() > NEAR)
        if len(rows) > LEARNT:
            keep = differs | (random.random(len(rows)) < LEARNT / len(rows))
            if differs.sum() > LEARNT // 2:
                keep &= ~differs | (random.random(len(rows)) < LEARNT / 2 / differs.sum())
            keep[-LEARNT // 4 :] = True  # the last vectors refuted earlier conditions
            rows, answers, own, differs = rows[keep], answers[keep], own[keep], differs[keep]
        self.rows, self.differs = rows, differs
        self.features = features_of(asked, unit, rows)
        self.ways: list[_Way] = []
        self.one_sided = False
        if not differs.any():
            return
        texts = ways(answers, own, unit.d)
        for how in dict.fromkeys(texts[differs].tolist()):
            here = differs & (texts == how)
            given = np.unique(answers[here])
            instead = int(given[0]) if len(given) == 1 else None
            other = ~differs if instead is None else ~differs & (own != given[0])
            self.ways.append(_Way(how, instead, conditions(self.features, here, other)))
        if len(self.ways) > 1:
            joint = conditions(self.features, differs, ~differs)
            if rank_of(joint) <= self.rank:
                self.ways = [_Way("the device gives another result", None, joint)]
        if loose or self.rank[0] > WRONG_ALLOWED * differs.sum() + 2 or self.rank[1] > LARGEST_COST:
            self.one_sided = True
            self.ways = [_Way("the device differs", None, necessary(self.features, differs, ~differs))]
        self._texts = {fact: words(fact, self.features[fact.name])
                       for way in self.ways for one in way.conditions for fact in one.facts}  # fmt: skip

    @property
    def _every(self) -> list[Condition]:
        return [one for way in self.ways for one in way.conditions]

    @property
    def rank(self) -> tuple[int, float]:
        return rank_of(self._every)

    @property
    def order(self) -> tuple[bool, bool, float, float]:
        """The unit's place among several units, least first: units that differ on most vectors come last."""
        return self.far, self.one_sided, *self.rank

    @property
    def good(self) -> bool:
        """Whether every condition has a fact and, if necessary only, holds on few enough of the agreeing vectors."""
        complete = bool(self.ways) and all(one.facts for one in self._every)
        return complete and (not self.one_sided or self.rank[0] <= GOOD * (~self.differs).sum())

    def results(self, rows: Table) -> Patterns:
        """The unit's results, with one pattern for all NaNs."""
        return without_payload(evaluate_models([Model(BUILT, self.unit)], rows)[0], self.asked.d)

    def predicted(self, rows: Table, own: Patterns) -> Flags:
        """Where the conditions say that the device differs from the unit, whose results are `own`."""
        features, differs = features_of(self.asked, self.unit, rows), np.zeros(len(rows), dtype=np.bool_)
        for way in self.ways:
            for one in way.conditions:
                every = np.ones(len(rows), dtype=np.bool_) if way.instead is None else own != np.uint64(way.instead)
                for fact in one.facts:
                    every &= holds(fact, features)
                differs |= every
        return differs

    def differences(self) -> tuple[Difference, ...]:
        """The conditions in words."""
        return tuple(Difference(way.words, tuple(self._texts[fact] for fact in one.facts))
                     for way in self.ways for one in way.conditions)  # fmt: skip
