"""Which plans give the recorded results of one matrix product: one search for one result, or for two that differ.

A plan is tried on a few elements first; one that gives these is held against thousands. None is named that one of them
refutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from mmaprobe.queries.plans.candidates import Candidates, Sample
from mmaprobe.queries.plans.left_out import left_out
from mmaprobe.queries.plans.recorded import SEED, Recorded
from mmaprobe.queries.plans.scalars import scalars_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.plans import Chain, Plan
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.units.unit_files import units

SECONDS = 120.0  # of trying plans, unless a command says otherwise
FIRST = 16  # elements that every plan is tried on
#: architectures whose libraries are the likeliest to cut K, in this order, before all others
LIKELY = ("hopper", "ampere", "turing", "blackwell", "ada", "volta", "cdna3", "cdna2", "cdna1")
COUNTING = 0.05  # of the time, that is kept for counting the elements that the best plans give
RECOUNTED = 4  # plans that come near, of which all elements are counted if none gives all

Report = Callable[[str], None]
#: what is tried, in words
TABLE = "shipped plans, and units that take K in tiles"
SCALED = "factors alpha and beta"
CUTS = "K cut in usual ways around each unit"
LOOPS = "loops and lanes of one product at a time"
INPUTS = "inputs rounded first, results truncated"
UNEVEN = "K cut at one or two places"


@dataclass(frozen=True)
class Fit:
    """A plan that gives `agree` of `looked` elements."""

    plan: Plan
    agree: int
    looked: int


@dataclass(frozen=True)
class Given:
    """What was found of one result. `plans`: those that give every element looked at, `looked` of them; `best`: if
    there are none, one that gives the most. `tried`: how many plans were; `untried`: what was not for lack of time, or
    not wholly, in words. `left_out`: products that are not in the sum; the plans are of the others."""

    plans: tuple[Plan, ...]
    looked: int
    best: Fit | None
    tried: int
    untried: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()

    def names(self, first: Sequence[Plan] = ()) -> list[str]:
        """The plans found, each once, by name; `first`: those that are named before the others."""
        return [plan.reference for plan in dict.fromkeys((*first, *self.plans))]

    @property
    def most(self) -> int:
        """How many elements a plan gives at most."""
        return self.looked if self.best is None and self.plans else 0 if self.best is None else self.best.agree


def plans_of_results(
    recorded: Recorded, first: Sequence[tuple[int, int]], report: Report, seconds: float
) -> tuple[Given, ...]:
    """For each of the results: the plans that give it. What ships, every instruction of the table, and what libraries
    usually do are tried for `seconds`, until each result has a plan. `first`: rows and columns of elements that tell
    plans apart, as those in which two results differ do; more are chosen at random. `report` is called with the
    progress."""
    until = time.monotonic() + seconds
    missing = [left_out(recorded.asked, sample) for sample in recorded.block(*recorded.looked())]
    found: dict[int, Given] = {}
    for number, products in enumerate(groups := list(dict.fromkeys(missing))):
        sides = [side for side, own in enumerate(missing) if own == products]
        end = time.monotonic() + (until - time.monotonic()) / (len(groups) - number)
        some = replace(recorded, d=tuple(recorded.d[side] for side in sides))
        found |= dict(zip(sides, _given(some, products, first, report, end), strict=True))
    return tuple(found[side] for side in range(len(recorded.d)))


def _given(
    recorded: Recorded, products: tuple[int, ...], first: Sequence[tuple[int, int]], report: Report, until: float
) -> list[Given]:
    """What is found of results in which the same products are left out."""
    if not products:
        return _Trial(recorded, first, report, until).run()
    last = products[0] == recorded.length - len(products)
    ways = [*([recorded.shortened(len(products))] if last else []), recorded.with_zeros(products)]
    found: list[Given] = []
    for number, others in enumerate(ways):
        end = time.monotonic() + (until - time.monotonic()) / (len(ways) - number)
        new = _Trial(others, first, report, end).run()
        found = [_better(*pair) for pair in zip(found or new, new, strict=True)]
        if all(one.plans for one in found):
            break
    return [replace(one, left_out=products) for one in found]


def _better(one: Given, other: Given) -> Given:
    """Of what was found in two ways the one with plans, or with a plan that gives more elements."""
    agree = [0 if given.best is None else given.best.agree for given in (one, other)]
    return other if (bool(other.plans), agree[1]) > (bool(one.plans), agree[0]) else one


class _Trial:
    """Plans that are held against results, each once. `found`: those that give all of each result."""

    def __init__(self, recorded: Recorded, first: Sequence[tuple[int, int]], report: Report, until: float) -> None:
        self.recorded, self.asked = recorded, recorded.asked
        self.candidates = Candidates(recorded.asked)
        self.sides = range(len(recorded.d))
        self.found: list[dict[Plan, Fit]] = [{} for _ in self.sides]
        rows, columns = _with_others(first, recorded.d[0].shape)
        self._samples = recorded.elements(rows, columns)
        self._report, self._end = report, until
        self._until = until - COUNTING * (until - time.monotonic())
        self._tried: set[Plan] = set()
        self._surrounded: set[Plan] = set()
        self._untried: list[str] = []
        self._agree: dict[object, tuple[int, ...] | None] = {}  # of the first elements, by `_arithmetic`
        self._near: list[dict[object, Fit]] = [{} for _ in self.sides]  # plans that give all or most of these
        self._first: dict[bytes, tuple[Plan, int]] = {}  # the first chain with each result, and its first elements
        self._parts = recorded.parts()

    def run(self) -> list[Given]:
        candidates, length = self.candidates, self.asked.length
        self.look(TABLE, candidates.table())
        self.look_beside()
        for side in self.sides:
            if not self.found[side] and (scalars := self._scalars(side)):
                self.look(SCALED, self.scaled(scalars))
        steps: list[tuple[str, Callable[[], Iterator[Plan]]]] = [
            (LOOPS, lambda: candidates.loops(length)),
            (INPUTS, lambda: candidates.unusual(length)),
        ]
        steps.insert(0 if candidates.narrow else 2, (CUTS, self.cut))
        steps.append((UNEVEN, self.uneven))
        for name, plans in steps:
            if self.wanting:
                self.look(name, plans())
                self.look_beside()
        return [self.given(side) for side in self.sides]

    @property
    def wanting(self) -> bool:
        """Whether one of the results has no plan."""
        return not all(self.found)

    def given(self, side: int) -> Given:
        found = self.found[side]
        best = None if found else self._best(side)
        looked = max((fit.looked for fit in found.values()), default=0 if best is None else best.looked)
        plans = tuple(sorted((plan for plan, fit in found.items() if fit.looked == looked), key=_outline))
        untried = () if found else tuple(dict.fromkeys(self._untried))
        return Given(plans, looked, best, len(self._tried), untried)

    def look(self, what: str, plans: Iterable[Plan]) -> None:
        """Try plans until the time ends. `what` they are, in words."""
        for plan in chain([None], plans):
            if time.monotonic() > self._until:
                self._untried.append(what)
                break
            if plan is None:  # the time is looked at before the first plan is made
                continue
            if plan not in self._tried:
                self._tried.add(plan)
                self._report(f"trying {plan.reference}")
                self._hold(plan)

    def look_beside(self) -> None:
        """Cut K in the usual ways around the instruction of a result that is known: the other is likely of the same."""
        new = [plan for side in self.found for plan in [*side][:1] if plan not in self._surrounded]
        if new and self.wanting:
            self._surrounded.update(new)
            self.look(CUTS, chain.from_iterable(map(self.around, new)))

    def _hold(self, plan: Plan) -> None:
        """Hold a plan against the first elements, and where it gives these against the others."""
        key = _arithmetic(plan)
        if key not in self._agree:
            self._agree[key] = self._of_first(plan)
        if (agree := self._agree[key]) is None:
            return
        for side, count in zip(self.sides, agree, strict=True):
            near, size = self._near[side], self._samples[side].d.size
            if key not in near:
                near[key] = Fit(plan, count, size) if count < size else self._counted(plan, side)
            if count == size and near[key].agree == near[key].looked:
                self.found[side][plan] = near[key]

    def _of_first(self, plan: Plan) -> tuple[int, ...] | None:
        """How many of the first elements of each result a plan gives; None if it has none for such inputs."""
        if (results := self.candidates.results(plan, self._samples[0])) is None:
            return None
        agree = tuple(self._same(results, sample) for sample in self._samples)
        if is_chain(plan):
            self._first.setdefault(results.tobytes(), (plan, max(agree)))
        return agree

    def _same(self, results: Matrix, sample: Sample) -> int:
        return int(self.candidates.agreeing(results, sample).sum())

    def _counted(self, plan: Plan, side: int, whole: bool = False) -> Fit:
        """How many of all elements looked at a plan gives; not `whole`: up to the part in which one is wrong. Ends
        after a part where the time does."""
        agree = looked = 0
        for samples in self._parts:
            if looked and ((agree < looked and not whole) or time.monotonic() > self._end):
                break
            results = self.candidates.results(plan, samples[side])
            agree += 0 if results is None else self._same(results, samples[side])
            looked += samples[side].d.size
        return Fit(plan, agree, looked)

    def _best(self, side: int) -> Fit | None:
        """Of the plans that come nearest the one that gives the most elements."""
        near = sorted(self._near[side].values(), key=lambda fit: -fit.agree / fit.looked)
        counted = [self._counted(fit.plan, side, whole=True) for fit in near[:RECOUNTED]]
        return max(counted, key=lambda fit: (fit.looked, fit.agree), default=None)

    # -- what is tried beside the table

    def around(self, plan: Plan) -> Iterator[Plan]:
        """K cut in the usual ways for a plan's instruction."""
        self.candidates.compiled.update(plan.models)
        yield from self.candidates.like(plan).cuts(plan.models[0], self.asked.length)

    def cut(self) -> Iterator[Plan]:
        """K cut in the usual ways for each unit that gives other results."""
        for plan in self.chains():
            yield from self.around(plan)

    def uneven(self) -> Iterator[Plan]:
        """K cut at one or two places, for the unit of a known result first."""
        known = [plan for side in self.found for plan in [*side][:1]]
        for plan in (*known, *self.chains()):
            yield from self.candidates.like(plan).uneven(plan.models[0], self.asked.length)

    def chains(self) -> Iterator[Plan]:
        """The first chain with each result, while a result has no plan: those that give most of the first elements, and
        the likeliest, first."""
        for plan, _ in sorted(self._first.values(), key=lambda item: (-item[1], _unlikely(item[0]))):
            if self.wanting:
                yield plan

    def scaled(self, scalars: tuple[float, float]) -> Iterator[Plan]:
        """Products times alpha and addends times beta: chains of units, then K cut in the usual ways around each."""
        scaled = Candidates(self.asked, None, None, scalars)
        yield from scaled.chains([*units(), *INSTRUCTIONS])
        for plan in self.chains():
            yield from scaled.cuts(plan.models[0], self.asked.length)

    def _scalars(self, side: int) -> tuple[float, float] | None:
        """Alpha and beta, as the numbers of a result show them."""
        sample = self._parts[0][side]
        return scalars_of(self.asked, sample, sample.d)


def _with_others(first: Sequence[tuple[int, int]], shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The rows and columns of some elements, and of others at random, FIRST if there are as many."""
    size = shape[0] * shape[1]
    chance = np.random.default_rng(SEED)
    others = [divmod(int(place), shape[1]) for place in chance.choice(size, min(size, FIRST), replace=False)]
    chosen = [*first, *(place for place in others if place not in first)][: max(FIRST, len(first))]
    return [row for row, _ in chosen], [column for _, column in chosen]


def _outline(plan: Plan) -> tuple[int, str]:
    """The text of a plan without the names of its instructions, the shortest first."""
    text = plan.reference
    for model in plan.models:
        text = text.replace(model.reference, model.c.name)
    return len(text), text


def _arithmetic(plan: Plan) -> object:
    """A key that is equal for plans that differ in the names of their instructions alone."""
    rounded = tuple(node.rounding for node in walk(plan.result) if isinstance(node, Round))
    return (
        _outline(plan),
        rounded,
        plan.convert_a,
        plan.convert_b,
        tuple((model.unit.result, model.d) for model in plan.models),
    )


def _unlikely(plan: Plan) -> int:
    """The place of a plan's unit among those that are tried one after another."""
    architecture = plan.models[0].reference.partition("/")[0]
    return LIKELY.index(architecture) if architecture in LIKELY else len(LIKELY)


def is_chain(plan: Plan) -> bool:
    """Whether a plan only takes K in tiles of instructions, without a tail."""
    return all(isinstance(products.stage, Chain) and products.stage.tail is None for products in plan.sums)
