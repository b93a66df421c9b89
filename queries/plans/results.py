"""Which plans give the recorded results of one matrix product: one search for one result, or for two that differ.

A plan is tried on a few elements first; a plan that gives these is compared with thousands of elements. No plan is
named that any element refutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, zip_longest

import numpy as np

from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.queries.plans.activations import activation_of
from mmaprobe.queries.plans.apart import Apart, Other, narrowest
from mmaprobe.queries.plans.candidates import CHUNK, Candidates, likelihood, outline, with_unit, with_unit_in
from mmaprobe.queries.plans.cut_sums import cuts_of
from mmaprobe.queries.plans.forms import Form, forms_of, stored_of
from mmaprobe.queries.plans.pairs import saturates_pairs
from mmaprobe.queries.plans.recorded import SEED, Recorded, Sample
from mmaprobe.queries.plans.summed import WHOLE, Summed, summed
from mmaprobe.queries.plans.zero_points import likely_zero_points
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.interrupts import CutShort, state
from mmaprobe.smtmodel.base.progress import Show
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.plans import Chain, Plan, Stage

SECONDS = 120.0  # for trying plans, unless a command says otherwise
FIRST = 16  # elements that every plan is tried on
COUNTING = 0.05  # share of the time that is kept for counting the elements that the best plans give
RECOUNTED = 4  # near plans for which all elements are counted if no plan gives all
NEAREST = 64  # near plans that are kept; also plans that give all of one result, while another result has no plan
NARROW = 16  # a format of up to this many bits hides much of a sum
CONFIRMING = 10.0  # the most seconds for comparing the plans found with more elements
BEST = 4  # times as many ways for the unit that has given the most elements so far

#: what is tried, in words
TABLE = "shipped plans, and units that take K in tiles"
CUTS = "K cut in usual ways around each unit"
UNEVEN = (
    "K cut at one to three places, in runs promoted in equal parts, dealt to 2 to 16 accumulators, or added in trees"
)
NESTED = "K cut at any few tiles, or in parts or runs that are dealt to accumulators, promoted, or added in trees"
CHANGED = "instructions with one other number of fraction or carry bits, or rounding"
KINDS = (TABLE, CUTS, UNEVEN, NESTED, CHANGED)
#: the ends of the names of the parameters that are changed: those that show in sums of ordinary numbers
PARAMETERS = ("fraction_bits", "carry_bits", "rounding")


@dataclass(frozen=True)
class Fit:
    """A plan that gives `agree` of `looked` elements."""

    plan: Plan
    agree: int
    looked: int


@dataclass(frozen=True)
class PlansOfResult:
    """The plans of one result. `plans`: plans that give every element looked at; `looked`: the number of these
    elements; `best`: where there is no such plan, a plan that gives the most elements. `tried`: how many plans were
    tried; `untried`: in words, which plans were not tried, or not all, for lack of time. `products`: the products that
    are not in the sum, or are in it twice; plans are then about the products that are in it. `others`: those of `plans`
    that new elements tell from the first plan, or of which no new element was asked in time. `activation`: the
    activation, which no plan has, that results without a plan look like; empty for none. `pairs`: whether results
    without a plan are sums of pairs of products that are saturated to int16."""

    plans: tuple[Plan, ...]
    looked: int
    best: Fit | None
    tried: int
    untried: tuple[str, ...] = ()
    products: Summed = WHOLE
    others: tuple[Other, ...] = ()
    activation: str = ""
    pairs: bool = False

    @property
    def left_out(self) -> tuple[int, ...]:
        """The products that are not in the sum."""
        return self.products.left_out

    def names(self, first: Sequence[Plan] = ()) -> list[str]:
        """The plans found, each once, by name; `first`: those that are named before the others."""
        return list(dict.fromkeys(plan.reference for plan in (*first, *self.plans)))

    def alike(self, name: str) -> list[str]:
        """The other plans that give what the plan of a name gives, on new elements too, as far as these were asked."""
        groups = [[plan.reference for plan in other.plans] for other in self.others]
        own = next((group for group in groups if name in group), None)  # None: in the first plan's group
        apart = {one for group in groups for one in group}
        return [one for one in self.names() if one != name and (one not in apart if own is None else one in own)]

    @property
    def most(self) -> int:
        """The largest number of elements that a plan gives."""
        return self.looked if self.best is None and self.plans else 0 if self.best is None else self.best.agree


def plans_of_results(
    recorded: Recorded, first: Sequence[tuple[int, int]], report: Show, seconds: float | None
) -> tuple[PlansOfResult, ...]:
    """For each of the results: the plans that give it. Shipped plans, every unit of the table, and the usual stages of
    libraries around these units are tried for `seconds` (None: SECONDS), until each result has a plan; where a command
    is cut short, the plans found until then are given. `first`: the row and column of elements that tell plans apart,
    such as elements in which two results differ; further elements are chosen. `report` is called with the progress."""
    until = time.monotonic() + (SECONDS if seconds is None else seconds)
    products = [WHOLE] * len(recorded.d)
    with suppress(CutShort):
        products = [summed(recorded.asked, sample) for sample in recorded.block(*recorded.looked())]
    by_side: dict[int, PlansOfResult] = {}
    for number, what in enumerate(groups := list(dict.fromkeys(products))):
        sides = [side for side, own in enumerate(products) if own == what]
        end = time.monotonic() + (until - time.monotonic()) / (len(groups) - number)
        some = replace(recorded, d=tuple(recorded.d[side] for side in sides))
        by_side |= dict(zip(sides, _given(some, what, first, report, end), strict=True))
    return tuple(by_side[side] for side in range(len(recorded.d)))


def _given(
    recorded: Recorded, products: Summed, first: Sequence[tuple[int, int]], report: Show, until: float
) -> list[PlansOfResult]:
    """The plans of results that are sums of the same products."""
    every = [PlansOfResult((), 0, None, 0, KINDS)] * len(recorded.d)
    with suppress(CutShort):
        ways = list(products.of(recorded))
        for number, others in enumerate(ways):
            if state.ended or (number and all(one.plans for one in every)):
                break
            end = time.monotonic() + (until - time.monotonic()) / (len(ways) - number)
            new = _Trial(others, first, report, end).run()
            every = [_better(*pair) for pair in zip(every if number else new, new, strict=True)]
    return [replace(one, products=products) for one in every]


def _better(one: PlansOfResult, other: PlansOfResult) -> PlansOfResult:
    """The better of two findings: the one with plans, or with a plan that gives more elements."""
    agree = [0 if found.best is None else found.best.agree for found in (one, other)]
    return other if (bool(other.plans), agree[1]) > (bool(one.plans), agree[0]) else one


class _Trial:
    """Plans that are held against results, each once. `found`: for each result, the plans that give all of it."""

    def __init__(self, recorded: Recorded, first: Sequence[tuple[int, int]], report: Show, until: float) -> None:
        self.recorded, self.asked = recorded, recorded.asked
        self.candidates = Candidates(recorded.asked)
        self.sides = range(len(recorded.d))
        self.found: list[dict[Plan, Fit]] = [{} for _ in self.sides]
        rows, columns = with_others(first, recorded)
        self._samples = recorded.elements(rows, columns)
        self._report, self._begun, self._end = report, time.monotonic(), until
        self._until = until - COUNTING * (until - self._begun)
        self._tried: set[object] = set()
        self._untried: list[str] = []
        self._under_way: str | None = TABLE  # the stages and plans that are being tried, in words
        self._near: list[list[Fit]] = [[] for _ in self.sides]  # plans that give some of the first elements
        self._parts = recorded.parts()
        samples = recorded.block(*recorded.looked())
        self._activations = [activation_of(self.asked, sample) for sample in samples]
        self._pairs = [saturates_pairs(self.asked, sample) for sample in samples]
        every, stored = list[list[Form]](), list[Format]()
        for sample, activation in zip(samples, self._activations, strict=True):
            forms = []
            for point in likely_zero_points(self.asked, sample):
                near = forms_of(self.asked, sample, point)
                stored += stored_of(self.asked, sample, near, point)
                forms += near[: 1 if activation and not point else None]  # all are as far from an activation
            every.append(forms)
        self.candidates.stored = list(dict.fromkeys(stored))
        self.forms = [form for form in dict.fromkeys(chain.from_iterable(zip_longest(*every))) if form is not None]
        self._units: list[Model] = []
        self._gives: dict[Model, int] = {}  # unit -> the most first elements that it gives
        self._first: dict[object, Model] = {}  # results of a chain in a form -> the first unit with these results
        self._cut = set[tuple[str, Model]]()  # units whose cuts of a kind were tried
        self._number = 0  # number of plans tried

    def run(self) -> list[PlansOfResult]:
        """Try all stages and plans, or those for which there is time."""
        try:
            self._try_all()
            self._under_way = None
            return [self.plans_of(side) for side in self.sides]
        except CutShort:
            if self._under_way is not None:
                self._untried += KINDS[KINDS.index(self._under_way) :]
            return [self.plans_of(side) for side in self.sides]

    def _try_all(self) -> None:
        self.look(TABLE, self.table())
        if not self.wanting and self.ambiguous and not self.asked.of_integers:
            self.look(CUTS, self.usual())
        if self.wanting:
            around = self.around(self.candidates.stages)
            self.look(CUTS, islice(around, CHUNK * (BEST + len(self._units))))
            known = not self.wanting
            if not known:
                self.uneven()
            if known or self.wanting:  # with known plans, the stages nearest to them
                self.look(CUTS, around)
        if self.wanting:
            self._under_way = NESTED
            self.uneven(CHANGED, briefly=True)
            self.uneven(NESTED)
            self._under_way = CHANGED
            self.uneven(CHANGED)
        if self.hidden:
            self.uneven()

    @property
    def ambiguous(self) -> bool:
        """Whether chains of units with different arithmetics give a result, as when a narrow format hides the order of
        its sum: other plans that give the result are then of interest as well."""
        units = ({model.unit.result for plan in fits for model in plan.models} for fits in self.found)
        return any(len(some) > 1 for some in units) and self.narrow

    @property
    def narrow(self) -> bool:
        """Whether a plan that was found stores a sum in a format that hides much."""
        return any(narrowest(plan).width <= NARROW for fits in self.found for plan in fits)

    @property
    def hidden(self) -> bool:
        """Whether units of one product give a narrow result and matrix units may give it as well: matrix units are
        likelier."""
        longer = any(model.length > 1 for model in self._units)
        single = any(fits and all(x.length == 1 for plan in fits for x in plan.models) for fits in self.found)
        return longer and single and self.narrow and not self.asked.of_integers

    def usual(self) -> Iterator[Stage]:
        """The likeliest ways of cutting K around each unit."""
        self.candidates.compiled.update(self._units)
        for model in sorted(self._units, key=lambda model: -self._gives.get(model, 0)):
            yield from islice(self.candidates.stages(model, self.asked.length), CHUNK)

    def uneven(self, what: str = UNEVEN, *, briefly: bool = False) -> None:
        """Hold all ways of cutting K at few places against the results, for each unit; the usual ways of a unit come
        before its uneven ones, as they may cut this K at the same places. Where narrow results hide the plan that gives
        them, matrix units are tried, for as long again as the search has taken. With `NESTED`, all ways of adding the
        parts of K, which take longer: for the likeliest units first. With `CHANGED`, around instructions that are not
        in the table; `briefly`: for as long again as well."""
        hidden, now = self.hidden, time.monotonic()
        until = min(self._until, 2 * now - self._begun) if hidden or briefly else self._until
        ranked = self.ranked() if what == UNEVEN else sorted(self.ranked(), key=likelihood)
        models = self.changed(ranked) if what == CHANGED else ranked
        for model in chain([None], models):
            if time.monotonic() > until:
                self._untried += [] if briefly else [what]
                break
            if model is None or (what, model) in self._cut or not (self.wanting or (hidden and model.length > 1)):
                continue  # the time is checked before the first unit
            self._cut.add((what, model))
            self._report(f"trying {model.reference}")
            wanting = [sample for sample, fits in zip(self._samples, self.found, strict=True) if hidden or not fits]
            if what == CHANGED:
                self.candidates.compiled.add(model)
            kept, evaluate = self.candidates.kept(model, "shown"), self.candidates.results
            cuts = cuts_of(model, self.forms, wanting, evaluate, kept, within=what == NESTED)
            for number, (form, stage, results) in enumerate(cuts):
                known = sum(map(len, self.found))
                self.look(CUTS, self.candidates.stages(model, self.asked.length) if number == 0 else ())
                if self.wanting or hidden:
                    self._number += 1
                    self._enter(results, partial(form.plan, stage))
                if sum(map(len, self.found)) > known and not hidden:
                    self.look(CUTS, self.beside(model, stage))
                if not (self.wanting or hidden):
                    break

    def changed(self, models: Iterable[Model]) -> Iterator[Model]:
        """Instructions like those of `models`, with one parameter of their arithmetic changed."""
        known = {model.unit.result for model in self._units}
        for model in models:
            for name, _, near in neighbours(model) if self.wanting and model.member and model.length > 1 else ():
                if name.endswith(PARAMETERS) and near.member and near.unit.result not in known:
                    known.add(near.unit.result)
                    yield near

    @property
    def wanting(self) -> bool:
        """Whether one of the results has no plan."""
        return not all(self.found)

    def plans_of(self, side: int) -> PlansOfResult:
        fits, best = self._asked_of_all(side)
        looked = max((fit.looked for fit in fits.values()), default=0 if best is None else best.looked)
        groups = [tuple(self.names(x)) for x, fit in fits.items() if fit.looked == looked]
        plans = tuple(sorted(dict.fromkeys(chain.from_iterable(groups)), key=outline))
        untried = () if fits else tuple(dict.fromkeys(self._untried))
        activation = "" if plans else self._activations[side]
        others = self._others(plans, groups)
        pairs = not plans and self._pairs[side]
        return PlansOfResult(plans, looked, best, self._number, untried, WHOLE, others, activation, pairs)

    def _asked_of_all(self, side: int) -> tuple[dict[Plan, Fit], Fit | None]:
        """The plans found or, without one, the best plan. Several found plans are held against all recorded elements,
        while there is time."""
        fits, until = self.found[side], self._later()
        if not fits:
            return fits, self._best(side)
        if state.ended or len(fits) == 1 or self.recorded.d[side].size == next(iter(fits.values())).looked:
            return fits, None
        agree, looked = dict.fromkeys(fits, 0), 0
        for samples in self.recorded.every():
            if time.monotonic() > until:
                break
            looked += samples[side].d.size
            for plan in fits:
                results = self.candidates.results(plan, samples[side])
                agree[plan] += 0 if results is None else self._same(results, samples[side])
        every = {plan: Fit(plan, agree[plan], max(looked, fit.looked)) for plan, fit in fits.items()}
        whole = {plan: fit for plan, fit in every.items() if agree[plan] == looked}
        return whole, None if whole else max((Fit(x, agree[x], looked) for x in fits), key=lambda fit: fit.agree)

    def _others(self, plans: Sequence[Plan], groups: Sequence[tuple[Plan, ...]]) -> tuple[Other, ...]:
        """The plans that new elements tell from the first plan, each under all its names."""
        rest, until = [some for some in groups if plans[0] not in some], self._later()
        if not rest:
            return ()
        if state.ended:
            return tuple(Other(some, 0, 0, None) for some in rest)
        apart = Apart(self.recorded, self.candidates, plans[0])
        every = [Other(some, 0, 0, None) if time.monotonic() > until else apart.other(some) for some in rest]
        return tuple(
            sorted((one for one in every if one.differ or not one.asked), key=lambda one: outline(one.plans[0]))
        )

    def _later(self) -> float:
        """When comparing the plans found with more elements ends."""
        return min(self._end, time.monotonic() + CONFIRMING)

    def look(self, what: str, tried: Iterable[Stage | Plan]) -> None:
        """Try stages in every form, and whole plans, until the time ends. `what`: these stages and plans, in words."""
        self._under_way = what
        for one in chain([None], tried):
            if time.monotonic() > self._until:
                self._untried.append(what)
                break
            if isinstance(one, Plan):
                self._hold(one)
            elif one is not None:  # the time is checked before the first stage is made
                self._hold_in_forms(one)

    def _hold(self, plan: Plan) -> None:
        """Hold a plan against the first elements and, if it gives all of these, against the others."""
        if plan not in self._tried:
            self._tried.add(plan)
            self._report(f"trying {plan.reference}")
            results = self.candidates.results(plan, self._samples[0])
            self._number += 1
            if results is not None:
                self._enter(results, lambda: plan)

    def _hold_in_forms(self, stage: Stage) -> None:
        """Hold the plans in which a stage forms the sum against the first elements."""
        if stage in self._tried:
            return
        self._tried.add(stage)
        self._report(f"trying {stage.models[0].reference}")
        alone = stage.models[0] if stage == Chain(stage.models[0]) else None
        for form, results in self.candidates.in_forms(stage, self.forms, self._samples[0]):
            self._number += 1
            count, model = self._enter(results, partial(form.plan, stage)), stage.models[0]
            self._gives[model] = max(count, self._gives.get(model, 0))
            if alone is not None:
                self._first.setdefault((form, results.tobytes()), alone)

    def _enter(self, results: Matrix, plan: Callable[[], Plan | None]) -> int:
        """Record how many of the first elements a plan gives and, if it gives all of these, how many of the others.
        Returns the largest number of first elements of one result that it gives."""
        agree = [self._same(results, sample) for sample in self._samples]
        for side, count in enumerate(agree):
            if len(self.found[side]) >= NEAREST and self.wanting:  # the time is for the other result
                continue
            near, whole = self._near[side], count == self._samples[side].d.size
            kept = count > (near[-1].agree if len(near) == NEAREST else 0)
            if not (whole or kept) or (made := plan()) is None:
                continue
            fit = self._counted(made, side) if whole else Fit(made, count, self._samples[side].d.size)
            if whole and fit.agree == fit.looked:
                self.found[side][made] = fit
            else:
                self._near[side] = sorted([*near, fit], key=lambda one: -one.agree / one.looked)[:NEAREST]
        return max(agree)

    def _same(self, results: Matrix, sample: Sample) -> int:
        return int(self.candidates.agreeing(results, sample).sum())

    def _counted(self, plan: Plan, side: int, whole: bool = False) -> Fit:
        """How many of all elements looked at a plan gives. If not `whole`, counting ends with the first part that has a
        wrong element, whatever the time is, as a plan that gives all may be named. If `whole`, counting ends with the
        part in which the time ends."""
        agree = looked = 0
        for samples in self._parts:
            if looked and (time.monotonic() > self._end if whole else agree < looked):
                break
            results = self.candidates.results(plan, samples[side])
            agree += 0 if results is None else self._same(results, samples[side])
            looked += samples[side].d.size
        return Fit(plan, agree, looked)

    def _best(self, side: int) -> Fit | None:
        """The plan that gives the most elements, among the plans that come nearest."""
        near = self._near[side][:RECOUNTED]
        counted = near if state.ended else [self._counted(fit.plan, side, whole=True) for fit in near]
        return max(counted, key=lambda fit: (fit.looked, fit.agree), default=None)

    def names(self, plan: Plan) -> Iterator[Plan]:
        """A plan, and the same plan with its unit under other names."""
        yield plan
        if len(plan.models) == 1:
            others = (with_unit_in(plan, plan.models[0], other) for other in self.candidates.aliases(plan.models[0]))
            yield from (other for other in others if other is not None)

    # -- what is tried

    def table(self) -> Iterator[Stage | Plan]:
        """The shipped plans, and the chain of each unit for factors in the formats that some form gives."""
        yield from self.candidates.shipped()
        for taken in dict.fromkeys(form.taken for form in self.forms):
            for model in dict.fromkeys((*self.candidates.units(taken), *self.candidates.steps(taken))):
                self._units.append(model)
                yield Chain(model)
        yield from self.candidates.of_fewer_bits(self._units, self.forms)

    def known(self) -> list[Model]:
        """The units of the results that have a plan: the other results are likely of the same units."""
        return [model for side in self.found for plan in [*side][:1] for model in plan.models[:1]]

    def ranked(self) -> list[Model]:
        """The units: known units first, then the first unit of each group with the same sums, then the others; each
        group in the order of how many elements a unit gives."""
        firsts = {*self._first.values()}
        others = sorted(self._units, key=lambda model: (model not in firsts, -self._gives.get(model, 0)))
        return list(dict.fromkeys((*self.known(), *others)))

    def around(self, stages: Callable[[Model, int], Iterator[Stage]]) -> Iterator[Stage]:
        """K cut in usual ways around the units in turn, while a result has no plan."""
        known = self.known()
        waiting = {model: stages(model, self.asked.length) for model in self.ranked()}
        self.candidates.compiled.update(waiting)
        while waiting and self.wanting:
            ranked = sorted(waiting, key=lambda model: (model not in known, -self._gives.get(model, 0)))
            for number, model in enumerate(ranked):
                some = list(islice(waiting[model], CHUNK if number else CHUNK * BEST))
                if not some:
                    del waiting[model]
                for stage in some:
                    yield stage
                    if not self.wanting:
                        yield from self.beside(model, stage)
                        return

    def beside(self, model: Model, stage: Stage) -> Iterator[Stage]:
        """The stages nearest to a plan that was found: the same stage of the other units, and the other stages of this
        unit; of a unit of one product, those of the likeliest such unit that gives the results as well."""
        for other in self._units:
            if (other.a, other.b) == (model.a, model.b):
                with suppress(ParameterError):
                    yield with_unit(stage, model, other)
        used = (x for fits in self.found for plan in fits for x in plan.models)
        loops = [x for x in used if (x.length, x.a, x.b, x.d) == (1, model.a, model.b, model.d)]
        own = min([model, *loops], key=likelihood) if model.length == 1 else model
        yield from self.candidates.stages(own, self.asked.length)


def with_others(first: Sequence[tuple[int, int]], recorded: Recorded) -> tuple[list[int], list[int]]:
    """The rows and columns of some elements and of further elements, FIRST in all if there are as many: half of these
    with the smallest results, in which narrow formats hide least, and the rest at random."""
    height, width = recorded.d[0].shape
    chance, count = np.random.default_rng(SEED), min(height * width, FIRST)
    size = np.abs(in_f64(recorded.d[0], recorded.asked.d)).ravel()
    size[~(size > 0)] = np.inf
    small = np.argpartition(size, count // 2)[: count // 2]
    others = np.append(small, chance.choice(height * width, count, replace=False))
    places = [divmod(int(place), width) for place in others]
    half = count // 2
    chosen = list(dict.fromkeys((*first[:half], *places[:half], *first, *places)))[: max(count, len(first))]
    return [row for row, _ in chosen], [column for _, column in chosen]
