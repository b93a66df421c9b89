"""Maps a library's matrix product: which plan computes which element, by the shape (M, N, K) and the element's place.

The library multiplies random matrices of random shapes, and some elements of each result are recomputed with every
known plan. If no known plan reproduces an element, candidates are made from its summation order; the plans of plan
files, and every instruction of the table with K in tiles, are tried as well. Rules that say which plan computes which
elements are learned from the elements seen. The library then multiplies shapes between neighbouring rules, and new
random shapes test the rules. An element that no rule covers has no plan.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, takewhile

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.tree import Leaf, Node
from mmaprobe.queries.plans.activations import activation_of
from mmaprobe.queries.plans.asked_products import CHOICES, SMALL, TILE, AskedProducts, cost, crossed
from mmaprobe.queries.plans.candidates import CHUNK, Candidates, likelihood, outline
from mmaprobe.queries.plans.cut_sums import cuts_of
from mmaprobe.queries.plans.dependence import Multiply
from mmaprobe.queries.plans.forms import Form, form_of, forms_of, plain, stored_of, told_sums, with_sums
from mmaprobe.queries.plans.lengths import lengths_asked
from mmaprobe.queries.plans.pairs import saturates_pairs
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.results import SECONDS
from mmaprobe.queries.plans.rules import FEATURES, Limit, Numbers, Rule, Shape, chosen, features_of, learned
from mmaprobe.queries.plans.summed import Summed, summed
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import IncompleteError, OutOfTimeError, ParameterError
from mmaprobe.smtmodel.base.interrupts import CutShort, TimeUp
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Constant
from mmaprobe.smtmodel.plans import Chain, Plan, Products, Stage
from mmaprobe.smtmodel.plans.joins import Promote
from mmaprobe.smtmodel.plans.partitions import Runs
from mmaprobe.smtmodel.plans.stages import Parted, parts_of

FIRST = 60  # random shapes from which the first rules are learned
MORE = 40  # random shapes in each round of refining the rules
NEAR = 2  # shapes, with one side changed, that are multiplied for each shape on which the rules failed
QUIET = 4  # successive rounds without a failure that end the refining
ROUNDS = 40  # the most rounds
DRAWN = 16  # the most shapes that are drawn to find a shape with elements within the limits of a rule
NARROW = 4  # a gap narrower than 1/NARROW of its lower end is tested at its roundest number, a wider gap in the middle
LEARNING = 0.7  # share of time; the last check has the rest
HOLDING = 0.85  # share of the time after which rules are compared at no further K
CONFIRMING = 0.95  # share of the time after which no shape is multiplied to confirm a single rule
CHECKED = 200  # new random shapes in each check
CHECKS = 4  # the most checks: rules are learned again from the shapes that differ, then checked on new shapes
CONFIRMED = 8  # shapes on which a rule must be right in all its elements before it is relied on
DOUBTED = 40  # CONFIRMED after any rule has failed: the library may choose by features that the rules lack
MEANT = 64  # the most shapes that are multiplied to confirm one rule
SHORT = 32  # K below which elements are not counted when plans are compared, as many plans agree there
TELLING = 64  # shapes among which the TRIED that best distinguish plans are chosen
TRIED = 8  # shapes with unexplained elements on which plans are compared
LONGER = 7  # further K, each one step longer, at which plans are compared
NEAR_CUTS = 8  # the most steps by which the size of a cut is changed, up and down, as many as between two guesses
COMPARED_PLANS = 4  # plans that reproduce an element; if there are more, all are compared on the element's whole shape
MOSTLY = 0.8  # share of the elements reproduced by the best plan that another plan must reproduce
APART = 6  # the most K that distinguish plans with equal sums of different sizes: each K leaves a range of sizes
HELD = 16  # the most unexplained elements of a shape that a way of cutting K has to reproduce
LEAST_EXPLAINED = 8  # the least number of unexplained elements that each further plan has to reproduce
TREES = 24  # the most summation orders that are revealed, and the most searches without a plan
ROUNDS_OF_CUTS = 4  # rounds of CHUNK
QUESTIONS = 4  # about how many matrix products reveal an order, for each product of K
SHARE = 0.2  # share of the learning time left: the largest estimate for an order that is revealed
LONGEST = 2  # times SHARE of that time, after which the search for an order ends
ORDERING = 0.4  # share of the learning time for all orders
UNITS = 4  # the least number of uses of a known unit in K for which its cuts are tried before an order is revealed
DIRECTED = 4  # products whose c is chosen to distinguish plans
AGAIN, NARROW_D = (3, 12), 16  # further products that a plan must reproduce, the latter if d has at most NARROW_D bits
NARROWED = 16  # the most products by which the factor of quantised results is narrowed down
LONG_ORDER = 1100  # K up to which orders are revealed, unless K of every shape left is longer

Reveal = Callable[[Shape, tuple[int, int], float | None], Node | Leaf | None]


@dataclass(frozen=True, eq=False)
class Looked:
    """A shape with the library's results at n elements. `places`: the elements' rows and columns (n x 2); `features`: n
    x features; `seconds`: the time of the quickest product; `fits`: for each known plan, whether it reproduces each of
    the n elements."""

    shape: Shape
    sample: Sample
    places: NDArray[np.int64]
    features: Numbers
    seconds: float
    fits: list[NDArray[np.bool_]]

    @property
    def unexplained(self) -> NDArray[np.bool_]:
        """For each element, whether no known plan reproduces it."""
        return np.asarray(~np.array(self.fits).any(axis=0))

    @property
    def sides(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows, and the columns, of the elements."""
        rows, columns = (np.unique(side) for side in self.places.T)
        return rows, columns

    def alone(self, number: int) -> Sample:
        """The sample restricted to one element."""
        sample = self.sample
        row, column = divmod(number, sample.b.shape[2])
        at = slice(row, row + 1), slice(column, column + 1)
        return Sample(sample.a[:, at[0]], sample.b[:, :, at[1]], sample.c[:, *at], sample.d[:, *at])


@dataclass
class MappedRule:
    """A rule with its plan, None if none is known. `agree`: the number of random shapes in which the plan reproduces
    all elements of the rule; `differ`: the random shapes in which it does not; `rivals`: the map's other plans that
    fail on an observed element of the rule, each with the number of agreeing shapes on which it fails; `wanted`: the
    number of agreeing shapes that confirm the rule; `lengths`: the K at which elements of the rule were compared."""

    rule: Rule
    plan: Plan | None
    agree: int = 0
    differ: list[Shape] = field(default_factory=list)
    rivals: dict[Plan, int] = field(default_factory=dict)
    wanted: int = CONFIRMED
    lengths: set[int] = field(default_factory=set)

    @property
    def confirmed(self) -> bool:
        """Whether the rule is relied on: at least `wanted` new shapes agree, no shape differs, and each of `rivals`
        fails on at least `CONFIRMED` of the agreeing shapes."""
        enough = self.agree >= self.wanted and all(count >= CONFIRMED for count in self.rivals.values())
        return self.plan is not None and not self.differ and enough


@dataclass
class Mapped:
    """The map of a library. `checked`: the number of random shapes in the last check; `right`: the number of these
    whose elements are all as the rules say; `open`: the shapes with elements that have no rule, or a rule without a
    plan; `orders`: the revealed summation orders, by shape and place; `asked`: the number of matrix products that the
    library computed; `left_out`: by shape, the products that sums without a plan leave out or add twice; `gives`: for
    each plan, the number of the `observed` elements (places of shapes) that it reproduces in every product of the shape
    that was asked, of which there are two at least; `activation`: the activation, which no plan has, that elements
    without a plan look like, empty for none; `unlike`: two rows or columns of the same factors that have other results,
    in words, empty for none; `zero_point`: the integer that zeros give in every element, where results are quantised;
    0 for none; `pairs`: whether elements without a plan are sums of pairs of products that are saturated to int16."""

    rules: list[MappedRule] = field(default_factory=list)
    checked: int = 0
    right: int = 0
    open: list[Shape] = field(default_factory=list)
    orders: dict[tuple[Shape, tuple[int, int]], Node | Leaf | None] = field(default_factory=dict)
    asked: int = 0
    left_out: dict[Shape, Summed] = field(default_factory=dict)
    gives: dict[Plan, int] = field(default_factory=dict)
    observed: int = 0
    activation: str = ""
    unlike: str = ""
    zero_point: int = 0
    pairs: bool = False

    @property
    def plans(self) -> list[Plan]:
        """The plans found, each once, the plan of most elements first."""
        every = dict.fromkeys(entry.plan for entry in self.rules if entry.plan is not None)
        return sorted(every, key=lambda plan: -self.gives.get(plan, 0))

    @property
    def nearest(self) -> Plan | None:
        """The plan tried that gives the most elements; None where none was tried."""
        return max(self.gives, key=self.gives.__getitem__, default=None)

    @property
    def fails(self) -> bool:
        """Whether the rules fail on most new random shapes."""
        return 2 * self.right < self.checked

    @property
    def whole(self) -> bool:
        """Whether every rule has a plan, and all shapes are as the rules say."""
        return bool(self.rules) and all(entry.plan for entry in self.rules) and not self.differ and not self.open

    @property
    def differ(self) -> list[Shape]:
        return list(dict.fromkeys(shape for entry in self.rules for shape in entry.differ))


def _with_cut(plan: Plan, size: Callable[[Runs], int]) -> Plan:
    """A plan like `plan`, with the largest size of its equal sums changed by `size`."""

    def moved(products: Products) -> Products:
        stage, runs = products.stage, parts_of(products.stage, Runs, Promote)
        if not isinstance(stage, Parted) or runs is None or not runs.share:
            return products
        return Products(replace(stage, partition=replace(runs, every=max(size(runs), runs.share))), products.start)

    return with_sums(plan, moved)


def _near_cuts(plan: Plan, length: int) -> list[Plan]:
    """A plan, and the plans that differ from it in the largest size of equal sums but cut K = `length` in the same
    way."""

    def by(more: int) -> Callable[[Runs], int]:
        return lambda runs: runs.every + more * runs.share

    cuts = [_with_cut(plan, by(more)) for more in range(-NEAR_CUTS, NEAR_CUTS + 1)]
    return [one for one in dict.fromkeys((plan, *cuts)) if _cut(one, length) == _cut(plan, length)]


def _promotions(plan: Plan) -> list[Runs]:
    """The runs into which a plan cuts all of K."""
    runs = (parts_of(products.stage, Runs, Promote) for products in plan.sums)
    return [one for one in runs if one is not None]


def _cut(plan: Plan, length: int) -> tuple[tuple[int, ...], ...] | None:
    """The places at which a plan's sums begin at K = `length`; None if the plan does not take so many products."""
    parts = (part for products in plan.sums for part in products.stage.walk() if isinstance(part, Parted))
    with suppress(ParameterError):
        return tuple(tuple(part.partition.begins(length, part)) for part in parts)
    return None


def _telling(plans: Sequence[Plan], shapes: Sequence[Looked]) -> list[Looked]:
    """At most `TRIED` of some shapes. Each is the shape that, together with the shapes chosen before, distinguishes the
    most plans by the places at which they cut K."""
    some, seen = list(shapes[:TELLING]), list[object]([None] * len(plans))
    cuts = {length: [_cut(plan, length) for plan in plans] for length in {one.shape.length for one in some}}
    picked: list[Looked] = []
    while some and len(picked) < TRIED:
        best = max(some, key=lambda one: len({*zip(seen, cuts[one.shape.length], strict=True)}))
        seen = [*zip(seen, cuts[best.shape.length], strict=True)]
        picked.append(some.pop(some.index(best)))
    return picked


class Mapper(Candidates):
    """Maps one library. `multiply`: gives the patterns of D for those of A, B and C (zeros if the library takes no C);
    `reveal`: gives the summation tree of one element of a shape, None if it cannot be revealed, and raises
    IncompleteError past its deadline; `top`: the largest shape; `least`: the smallest M, N and K; `multiple`: a number
    of which M, N and K are multiples. Times are those of time.monotonic(), in seconds. Past `deadline` IncompleteError
    is raised; `findings` then has the map so far."""

    def __init__(
        self, asked: Signature, multiply: Multiply, reveal: Reveal, top: Shape, seed: int = 1,
        deadline: float | None = None, progress: Callable[[str], None] = lambda text: None,
        least: tuple[int, int, int] = (1, 1, 1), multiple: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(asked)
        self.multiply, self.reveal = multiply, reveal
        self.products = AskedProducts(asked, self._multiplied, top, least, multiple, seed)
        self.top, self.rng = self.products.top, self.products.rng  # one sequence of random numbers for both
        self.begun, self.deadline, self.progress = time.monotonic(), deadline, progress
        self.ordering = 0.0  # seconds that orders took
        self.quickest = math.inf  # seconds of one product of the shape that was asked for last
        self.findings = Mapped()
        likeliest = islice(self.units((asked.a, asked.b)), 1) if self.asked.of_integers else ()
        steps = chain(likeliest, self.steps((asked.a, asked.b)))
        own = ((Chain(model), next(plain(asked, model.d))) for model in steps)
        self.known: list[Plan] = [plan for stage, form in own if (plan := form.plan(stage)) is not None]
        if not self.known:
            raise ParameterError("formats", f"no unit takes factors of {asked.a.name} and {asked.b.name}")
        if not asked.addend:  # a sum that starts from its first product may differ in the sign of a zero
            self.known.append(with_sums(self.known[0], lambda sums: Products(sums.stage, Constant(True))))
        self.usual = len(self.known)  # the number of plans that were known from the start
        self.looked: dict[Shape, Looked] = {}
        self.rules: list[Rule] = []
        # whether the last search failed at a tree of unknown units; reset after a second such failure
        self.of_unknown_units = False
        self.failed = 0  # searches that found no plan
        self.untried: set[tuple[Shape, tuple[int, int]]] = set()
        self._near_forms: dict[Shape, list[Form]] = {}

    def run(self) -> Mapped:
        """Learn the map and check it on new random shapes. Raises IncompleteError past the deadline, and if zeros do
        not give zeros."""
        first = self.products.first
        self.findings.zero_point, self.findings.unlike = first.check_zeros(), first.unlike()
        others = [self.products.random_shape(number) for number in range(FIRST)]
        self._look_at([self.top])
        top = self.looked[self.top]
        if top.unexplained.any():
            self.findings.activation = activation_of(self.asked, top.sample)
        self._look_at(others)
        if (np.array(top.fits)[:, 0].any() or not self._lacks(top)) and (self._affordable(top) or self._units_likely):
            if not self._units_likely:
                self._order(self.top, (0, 0))
            if not np.array(top.fits)[:, 0].any():
                self._new(top, 0)
        rules = self._explained()
        for number in range(CHECKS):
            rules = self._mended(rules)
            self._check(rules)
            if number == CHECKS - 1 or not self.findings.differ or self._late():
                break
            self._learn_from(self.findings.differ)
            rules = self._explained()
        return self.findings

    def searched(self) -> IncompleteError | None:
        """Run; then look for products that the sums of elements without a plan leave out or add twice. Returns the
        error that ended the work early, None without one."""
        failure: IncompleteError | None = None
        try:
            try:
                self.run()
            except IncompleteError as error:
                failure = error
            unexplained = [looked for looked in self.looked.values() if looked.unexplained.any()]
            few = (looked.sample for looked in unexplained[:TRIED])
            self.findings.pairs = bool(unexplained) and all(saturates_pairs(self.asked, sample) for sample in few)
            for looked in unexplained:
                self._lacks(looked)
        except CutShort as end:  # between two looks at the clock
            failure = failure or (self.late() if isinstance(end, TimeUp) else IncompleteError("interrupted"))
        if failure is not None and not self.findings.rules:
            self._count()
        return failure

    def _count(self) -> None:
        """Count the elements observed so far that each known plan reproduces."""
        whole = [looked.fits for looked in self.looked.values() if len(looked.fits) == len(self.known)]
        self.findings.observed = sum(len(fits[0]) for fits in whole)
        self.findings.gives = {
            plan: sum(int(fits[place].sum()) for fits in whole) for place, plan in enumerate(self.known)
        }

    def _lacks(self, looked: Looked) -> bool:
        """Whether the sums of a shape leave out a product or add one twice. No plan has such sums: a plan adds every
        product once."""
        if self.findings.zero_point:  # results are no multiples of the sums
            return False
        if looked.shape not in self.findings.left_out and (products := summed(self.asked, looked.sample)):
            self.findings.left_out[looked.shape] = products
        return looked.shape in self.findings.left_out

    def _mended(self, rules: list[Rule]) -> list[Rule]:
        """The rules, refined until they are right on new random shapes, on new shapes at their limits, and at the K of
        `lengths_asked`."""
        quiet = number = 0
        while quiet < QUIET and number < ROUNDS and not self._late():
            rules = self._narrowed(rules)
            new = [self.products.random_shape(n) for n in range(MORE)] + list(self._ends(rules))
            self._look_at(new)
            for shape in self._held_at(rules, LEARNING) if quiet == QUIET - 1 else ():
                self._look_at([shape])
                new.append(shape)
            wrong = [shape for shape in new if not self._reproduced(rules, self.looked[shape])[1].all()]
            quiet, number = 0 if wrong else quiet + 1, number + 1
            self._say(f"round {number}: {len(wrong)} of {len(new)} shapes not as the rules said")
            self._learn_from(wrong)
            rules = self._explained()
        return rules

    def _learn_from(self, wrong: Sequence[Shape]) -> None:
        """Observe the shapes on which rules failed, and shapes beside them."""
        self._look_at([*wrong, *(near for shape in wrong for near in self._near(shape))])

    # -- observed elements

    def _look_at(self, shapes: Iterable[Shape]) -> None:
        for number, shape in enumerate(shapes):
            if shape not in self.looked:
                self._say(f"{shape}, {number + 1}")
                self.looked[shape] = self._seen(shape)

    def _seen(self, shape: Shape) -> Looked:
        looked = self._unfitted(shape)
        for plan in self.known:
            looked.fits.append(self._fitting(plan, looked))
        return looked

    def _unfitted(self, shape: Shape) -> Looked:
        """The library's results for a shape, before any plan is compared."""
        self.quickest = math.inf
        sample, places = self.products.sample(shape)
        return Looked(shape, sample, places, features_of(shape, places[:, 0], places[:, 1]), self.quickest, [])

    def _multiplied(self, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        """The library's D. The product is counted and timed."""
        begun = time.monotonic()
        d = self.multiply(a, b, c)
        self.quickest = min(self.quickest, time.monotonic() - begun)  # the first may include compilation
        self.findings.asked += 1
        return d

    def _fitting(self, plan: Plan, looked: Looked) -> NDArray[np.bool_]:
        """For each observed element, whether a plan reproduces it."""
        self._in_time()
        results = self.results(plan, looked.sample)
        if results is None:
            return np.zeros(len(looked.places), dtype=np.bool_)
        every: NDArray[np.bool_] = self.agreeing(results, looked.sample).all(axis=0).ravel()
        return every

    def _table(self) -> tuple[Numbers, NDArray[np.bool_], list[tuple[Looked, int]]]:
        """For all n observed elements: the features (n x features), whether each plan reproduces them (n x plans), and
        the shape and number of each element."""
        every = list(self.looked.values())
        features = np.concatenate([looked.features for looked in every])
        fits = np.concatenate([np.array(looked.fits).T for looked in every])
        return features, fits, [(looked, n) for looked in every for n in range(len(looked.places))]

    # -- plans and rules

    def _explained(self) -> list[Rule]:
        """Search for plans of the elements that no known plan reproduces, at a long and a short K alternately; then
        learn rules from all elements."""
        while max(self.failed, len(self.findings.orders)) < TREES and not self._late():
            features, fits, where = self._table()
            rest = [where[n] for n in np.flatnonzero(~fits.any(axis=1))]
            rest = [(x, n) for x, n in rest if (x.shape, self._place(x, n)) not in self.untried]
            if not rest:
                break
            ranked = sorted(rest, key=lambda item: item[0].shape.length)
            brief = [item for item in ranked if self._affordable(item[0])]
            brief = brief or (ranked if self._units_likely else ranked[:1])  # units need no order
            usual = [item for item in brief if item[0].shape.length <= LONG_ORDER] or brief[:1]
            if self.of_unknown_units:  # whole tiles in K show the units
                usual = [item for item in usual if item[0].shape.length % TILE == 0] or usual
            looked, number = usual[len(usual) * (1 + 2 * ((len(self.known) + self.failed) % 2)) // 4]
            self.untried |= {(looked.shape, self._place(looked, n)) for x, n in rest if x is looked}
            self._new(looked, number)
        features, fits, _ = self._table()
        self.rules = rules = learned(features, fits, self.products.least, self.products.multiple)
        self.findings.rules = [MappedRule(rule, self.known[rule.plan] if rule.plan >= 0 else None) for rule in rules]
        self.findings.gives = dict(zip(self.known, fits.sum(axis=0).tolist(), strict=True))
        self.findings.observed = len(fits)
        return rules

    @staticmethod
    def _place(looked: Looked, number: int) -> tuple[int, int]:
        row, column = looked.places[number]
        return int(row), int(column)

    def _new(self, looked: Looked, number: int) -> None:
        """Search for plans that reproduce an element. Of several such plans, the plans that reproduce most other
        unexplained elements become known plans."""
        if self._lacks(looked):
            self.failed += 1
            return
        sample = self._again(looked, number)
        for group in self._groups(looked, number):
            plans = self._fitting_plans(dict.fromkeys(self._while_learning(group)), sample, self._forms(looked))
            fitting = [plan for plan in plans if plan not in self.known]
            if fitting:
                break
        else:
            tree = self.findings.orders.get((looked.shape, self._place(looked, number)))
            self.failed += 1
            self.of_unknown_units = not self.of_unknown_units and tree is not None and self.of_units(tree)
            return
        self.of_unknown_units = False
        if len(fitting) > COMPARED_PLANS:  # many reproduce one element by chance, above all in a narrow format
            fitting = self._giving_most(fitting, looked, looked.unexplained, MOSTLY)
        fitting = self._likeliest_ends(fitting, looked)
        fitting.sort(key=outline)  # of equally good plans the simplest is kept
        self.compiled.update(model for plan in fitting for model in plan.models)  # many shapes follow
        fitting = self._going_on(fitting, looked)
        _, fits, where = self._table()
        open_at = np.flatnonzero(~fits.any(axis=1))
        shapes = list(dict.fromkeys(where[n][0] for n in open_at))
        shortest = min(SHORT, self.top.length // 2)  # at a shorter K many plans agree
        if len(shapes) > TRIED:
            some = [one for n in self.rng.permutation(len(shapes)) if (one := shapes[n]) is not looked]
            shapes = [looked, *_telling(fitting, [x for x in some if x.shape.length >= shortest] or some)]
        gives = {plan: np.concatenate([self._fitting(plan, one) for one in shapes]) for plan in fitting}
        left = np.concatenate([one.unexplained for one in shapes])
        left &= np.concatenate([np.full(len(one.places), one.shape.length >= shortest) for one in shapes])
        others = self._explained_ones(fitting)
        if not left.any():
            self._know(self._with_best_unit(self._of_most(fitting, others), sample, [looked, *others]))
        for count in range(len(gives)):
            most = max(int((fits & left).sum()) for fits in gives.values())
            if most < (LEAST_EXPLAINED if count else 1):  # a wrong plan may fit a few by chance
                break
            best = self._of_most([plan for plan, fits in gives.items() if (fits & left).sum() == most], others)
            left &= ~gives.pop(best)
            self._know(self._with_best_unit(best, sample, [*shapes, *others]))

    def _explained_ones(self, plans: Sequence[Plan]) -> list[Looked]:
        """Shapes whose elements all have a plan, and which distinguish some plans: one plan of all shapes is likelier
        than two plans of some shapes each."""
        some = [one for one in self.looked.values() if not one.unexplained.any()]
        return _telling(plans, [some[n] for n in self.rng.permutation(len(some))]) if some else []

    def _of_most(self, plans: Sequence[Plan], shapes: Sequence[Looked]) -> Plan:
        """The first of the plans that reproduce the most elements of some shapes."""
        return plans[0] if len(plans) == 1 else max(plans, key=lambda plan: self._count_of(plan, shapes))

    def _count_of(self, plan: Plan, shapes: Sequence[Looked]) -> int:
        return sum(int(self._fitting(plan, one).sum()) for one in shapes)

    def _with_best_unit(self, plan: Plan, sample: Sample, shapes: Sequence[Looked]) -> Plan:
        """A plan with the unit that gives the most elements of some shapes, among the units with which it gives a
        sample. Units that give the same are asked of numbers near the smallest, which some units take for zeros."""
        every = sorted((plan, *(one for one in self.twins(plan) if self.same(one, sample))), key=outline)
        if len(every) > 1:
            counts = [self._count_of(one, shapes) for one in every]
            every = [one for one, count in zip(every, counts, strict=True) if count == max(counts)]
        if len(every) > 1:
            small = self.products.near_smallest(shapes[0].shape, *shapes[0].sides)
            results = [self.results(one, small) for one in every]
            counts = [0 if one is None else int(self.agreeing(one, small).sum()) for one in results]
            every = [every[counts.index(max(counts))]]
        return every[0]

    def _again(self, looked: Looked, number: int) -> Sample:
        """An element of a shape, with its results in further products: wrong plans reproduce one result by chance,
        above all in a narrow format."""
        row, column = looked.places[number : number + 1].T
        times = AGAIN[self.asked.d.width <= NARROW_D]
        more = [self.products.drawn(looked.shape, row, column, True) for _ in range(times)]
        return Sample.joined([looked.alone(number), *more])

    def _likeliest_ends(self, plans: list[Plan], looked: Looked) -> list[Plan]:
        """Of plans of one sum, those of one form for each format of the sum: of the likeliest form that no result
        refutes; and all plans of several sums. The forms around the most frequent stage of each format are compared on
        sums and values of c for which different steps after the sum give different results; for random ones, narrow
        results rarely differ."""
        stages: dict[Format, Counter[Stage]] = {}
        single = [plan for plan in plans if len(plan.sums) == 1]
        for plan in single:
            stages.setdefault((stage := plan.sums[0].stage).d, Counter())[stage] += 1
        usual = [counts.most_common(1)[0][0] for counts in stages.values()]
        best = [
            self._with_best_end([plan for plan in single if plan.sums[0].stage == stage], looked) for stage in usual
        ]
        forms = [form_of(self.asked, plan) for plan in best]
        return [plan for plan in plans if plan not in single or form_of(self.asked, plan) in forms]

    def _with_best_end(self, plans: list[Plan], looked: Looked) -> Plan:
        """Of several plans with the same sum, the plan that reproduces most of the unexplained elements of a shape,
        for sums and values of c that distinguish the steps after the sum. Of equally good plans, the first."""
        rows, columns = looked.sides
        before: list[Plan] = []
        while self.asked.of_integers and len(plans) != len(before):
            before = plans
            if (drawn := self._telling_sums(plans, looked.shape, rows, columns)) is not None:
                plans = self._giving_most_of(drawn, plans, looked)
        formats = self.asked.a, self.asked.b, self.asked.c, self.asked.d
        if len(plans) > 1 and not any(fmt.is_integer for fmt in formats):
            plans = self._giving_most_of(self.products.tied(looked.shape, rows, columns), plans, looked)
        for number in range(DIRECTED if self.asked.addend else 0):
            if len(plans) == 1 or (number > 1 and len(plans) == len(before)):
                break
            before, with_c = plans, partial(self._telling_c, plans)
            drawn = self.products.drawn(looked.shape, rows, columns, self.asked.of_integers, with_c)
            plans = self._giving_most_of(drawn, plans, looked)
        return plans[0]

    def _giving_most_of(self, sample: Sample, plans: list[Plan], looked: Looked) -> list[Plan]:
        """The plans that reproduce most of the elements of a new product of a shape that are unexplained there."""
        open_at = looked.unexplained.reshape(sample.d.shape)
        every = [self.results(plan, sample) for plan in plans]
        gives = [0 if one is None else int((self.agreeing(one, sample) & open_at).sum()) for one in every]
        return [plan for plan, count in zip(plans, gives, strict=True) if count == max(gives)]

    def _telling_c(self, plans: Sequence[Plan], a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        """For each element of a product, a random c for which as many plans as possible differ from the first plan in
        the steps after the sum."""
        forms = [form_of(self.asked, plan) for plan in plans]
        ends = {one.end: one for one in forms if replace(one, end=forms[0].end) == forms[0]}.values()
        total = forms[0].sum_of(plans[0].sums[0].stage)
        sums = None if total is None else self.results(total, Sample(a[None], b[None], c[None], c[None]))
        if sums is None or len(ends) == 1:
            return c
        many = self.products.patterns(self.asked.c, (max(1, CHOICES // c.size), c.size), (-SMALL, 5))
        results = [one.ended(np.broadcast_to(sums.reshape(1, -1), many.shape), many) for one in ends]
        differ = (np.array(results) != results[0]).sum(axis=0)
        return np.take_along_axis(many, differ.argmax(axis=0)[None], axis=0).reshape(c.shape)

    def _telling_sums(
        self, plans: Sequence[Plan], shape: Shape, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> Sample | None:
        """A, B, C (zeros) and D at some rows and columns of a product of integers, with one sum in each row, for which
        some plan differs from the first one in the steps after the sum; None if no such sum is found."""
        sums, c = self.products.sums(shape), kind_of(self.asked.c)
        forms = [form_of(self.asked, plan) for plan in plans]
        patterns = from_numbers(sums.astype(np.float64), forms[0].format, "nearest_even")
        results = np.array([one.ended(patterns, np.zeros(sums.shape, c)) for one in forms])
        told = sums[(results != results[0]).any(axis=0)]
        return self.products.of_sums(told, shape, rows, columns) if told.size else None

    def _with_told_sums(self, looked: Looked, sample: Sample) -> Sample:
        """A sample of products of integers, and further products of its shape whose sums narrow the factor down."""
        rows, columns = looked.sides
        for _ in range(NARROWED):
            told = told_sums(self.asked, sample, self.products.sums(looked.shape), self.findings.zero_point)
            if not told.size:
                break
            sample = Sample.joined([sample, self.products.of_sums(told, looked.shape, rows, columns)])
        return sample

    def _giving_most(self, plans: list[Plan], looked: Looked, asked: NDArray[np.bool_], share: float) -> list[Plan]:
        """The plans that reproduce at least `share` times as many of the elements in `asked` as the best plan does."""
        gives = [int((self._fitting(plan, looked) & asked).sum()) for plan in plans]
        return [plan for plan, count in zip(plans, gives, strict=True) if count >= share * max(gives)]

    def _groups(self, looked: Looked, number: int) -> Iterator[Iterable[Stage | Plan]]:
        """Groups of candidates for an element, the likeliest first. If a matrix unit may take the factors, the chain
        and the usual cuts of the unit are tried before the order is revealed, as an order costs far more."""
        length, forms = looked.shape.length, self._forms(looked)
        taken = dict.fromkeys(form.taken for form in forms)
        learned = self.known[self.usual :]
        several = learned if self._units_likely else []  # their units of one product are tried too
        known = dict.fromkeys(
            model for plan in self.known for model in plan.models if model.length > 1 or plan in several
        )
        of_units = [model for own in taken for model in self.units(own) if model.length > 1]
        early = [model for model in known if length >= UNITS * model.length]
        yield [products.stage for plan in learned for products in plan.sums]
        yield from (self.stages(model, length) for model in early)
        yield self.of_fewer_bits([model for own in taken for model in (*self.steps(own), *self.units(own))], forms)
        if self._units_likely:
            yield from self._unit_stages(of_units, length, 1)
            yield self._cut(of_units, looked)
        steps = [model for own in taken for model in self.steps(own)]
        usual = ([Chain(model) for model in steps], *(self.stages(model, length) for model in steps))
        if not (affordable := self._affordable(looked)):
            yield from (*usual, self._cut(steps, looked))
        asks = (affordable or not self._units_likely) and not self.asked.of_integers  # no order of theirs shows
        tree = self._order(looked.shape, self._place(looked, number)) if asks else None
        if tree is not None:
            usual_ones, others = (
                chain.from_iterable(map(partial(self.guesses, tree, known=self.known, wider=wider), taken))
                for wider in (False, True)
            )  # where d is narrow, nested stages give this K as well as the stage that gives every K
            together = self.asked.d.width <= NARROW_D
            yield from [chain(usual_ones, others)] if together else [usual_ones, others]
        lossless = isinstance(tree, Node) and tree.kind != "binary"  # as compensated sums nearly are
        if affordable and (tree is None or lossless or self.asked.d.width <= NARROW_D):  # a narrow d hides steps too
            yield from (*usual, self._cut(steps, looked))
        if tree is None or self.of_units(tree) or len(taken) > 1:  # longer units are slow to evaluate
            yield self.shipped()
            yield from self._unit_stages(of_units, length, ROUNDS_OF_CUTS)
            yield from (self.stages(model, length) for model in known if model not in early)
        if not learned and not self.failed:  # they take long
            yield self._cut(sorted((*steps, *of_units), key=likelihood), looked, within=True)

    def _cut(self, models: Sequence[Model], looked: Looked, *, within: bool = False) -> Iterator[Stage]:
        """Stages that cut K at few places around units and reproduce elements without a plan. The usual stages of a
        unit come before these, as they may cut this K in the same way. `within`: as of `cuts_of`, for `SECONDS` or a
        share of the time."""
        seconds = SECONDS if self.deadline is None else min(SECONDS, SHARE * self._left(self.deadline))
        until = time.monotonic() + seconds if within else math.inf

        def results(plan: Plan, sample: Sample) -> Matrix | None:
            return None if time.monotonic() > until else self.results(plan, sample)

        open_at = np.flatnonzero(looked.unexplained)[:HELD]
        sample = Sample.joined([looked.alone(int(number)) for number in open_at])
        for model in models:
            if self.in_any_order(model, looked.shape.length):
                continue
            cuts = cuts_of(model, self._forms(looked), [sample], results, self.kept(model, "shown"), within=within)
            stages = dict.fromkeys(stage for _, stage, _ in cuts)
            yield from chain(self.stages(model, looked.shape.length) if stages else (), stages)

    @property
    def _units_likely(self) -> bool:
        """Whether matrix units take the factors' format, before or after a likely conversion."""
        return self.narrow or self._forms(self.looked[self.top])[0].taken != (self.asked.a, self.asked.b)

    def _unit_stages(self, models: Sequence[Model], length: int, rounds: int) -> Iterator[Iterable[Stage]]:
        """The chains of units; then, in `rounds` rounds, cuts of K around each unit."""
        yield [Chain(model) for model in models]
        some = [self.stages(model, length) for model in models]
        self.compiled.update(models if rounds else ())
        for _ in range(rounds):
            yield [stage for stages in some for stage in islice(stages, CHUNK)]

    def _forms(self, looked: Looked) -> list[Form]:
        """The forms that fit a shape's results of products that do not cancel; then those of the largest shape, as a
        few short sums show little."""
        if looked.shape not in self._near_forms:
            x, top = looked.sample, self.looked.get(self.top, looked)
            sample = Sample(x.a[::2], x.b[::2], x.c[::2], x.d[::2])
            if self.asked.of_integers and looked is top and not (self.asked.addend and not self.asked.c.is_integer):
                sample = self._with_told_sums(looked, sample)
            point = self.findings.zero_point
            own = forms_of(self.asked, sample, point)
            self.stored = list(dict.fromkeys((*self.stored, *stored_of(self.asked, sample, own, point))))
            others = self._forms(top) if looked is not top else []
            every = (
                (*others, *own) if self.asked.of_integers else (*own, *others)
            )  # factors are known best of the top shape
            self._near_forms[looked.shape] = list(dict.fromkeys(every))
        return self._near_forms[looked.shape]

    def _fitting_plans(self, tried: Iterable[Stage | Plan], sample: Sample, forms: Sequence[Form]) -> Iterator[Plan]:
        """The candidates that reproduce a sample: plans, and stages as plans of some forms. The iteration ends with the
        time for learning."""
        for one in self._while_learning(tried):
            self._in_time()
            if isinstance(one, Plan):
                if self.same(one, sample):
                    yield one
                continue
            for form, results in self.in_forms(one, forms, sample):
                if not self.differing(results, sample) and (plan := form.plan(one)) is not None:
                    yield plan

    def _while_learning(self, some: Iterable[Stage | Plan]) -> Iterator[Stage | Plan]:
        """The candidates of a sequence, until the time for learning is over."""
        return takewhile(lambda one: not self._late(), some)

    def _going_on(self, plans: list[Plan], looked: Looked) -> list[Plan]:
        """The plans that reproduce most elements at the next few K as well, as plans that treat the last products in
        different ways may agree at one K. Of plans that differ only in the size of a cut, the likeliest come first, and
        plans with sizes near the likeliest size are added."""
        shape, step = looked.shape, self.products.multiple
        for length in range(shape.length + step, min(shape.length + LONGER * step, self.top.length) + 1, step):
            plans = self._best_at(plans, replace(shape, length=length))
        alike: dict[Plan, list[Plan]] = {}  # by the plan with the smallest cut size
        for plan in plans:
            alike.setdefault(_with_cut(plan, lambda runs: runs.share), []).append(plan)
        for key, sizes in alike.items():
            if len(sizes) > 1:
                apart = self._best_past_cuts(sizes, shape)
                near = self._best_past_cuts(_near_cuts(apart[0], shape.length), shape)
                alike[key] = list(dict.fromkeys((*near, *apart, *sizes)))
        return [plan for sizes in alike.values() for plan in sizes]

    def _best_past_cuts(self, plans: list[Plan], shape: Shape) -> list[Plan]:
        """The plans that reproduce most elements at K one above the largest size of a plan's sums, or one above twice
        that size: at such K the plans' cuts differ."""
        least, multiple = self.products.least[2], self.products.multiple
        for _ in range(APART):
            every = {runs.every * n + 1 for plan in plans for runs in _promotions(plan) for n in (1, 2)}
            lengths = sorted(n for n in every if least <= n <= self.top.length and n % multiple == 0)
            groups = [max(Counter(_cut(plan, length) for plan in plans).values()) for length in lengths]
            if not lengths or min(groups) == len(plans):
                break
            plans = self._best_at(plans, replace(shape, length=lengths[groups.index(min(groups))]), known=True)
        return plans

    def _best_at(self, plans: list[Plan], shape: Shape, known: bool = False) -> list[Plan]:
        """The plans that reproduce most of the unexplained elements of a shape; with `known`, most of all elements, as
        a known plan may reproduce the elements of a K that is not cut."""
        if len(plans) == 1 or self._late():
            return plans
        self._look_at([shape])
        looked = self.looked[shape]
        return self._giving_most(plans, looked, known | looked.unexplained, 1)

    def _know(self, plan: Plan) -> None:
        self.known.append(plan)
        self.compiled.update(plan.models)
        for looked in self.looked.values():
            looked.fits.append(self._fitting(plan, looked))

    def _order(self, shape: Shape, place: tuple[int, int]) -> Node | Leaf | None:
        if (shape, place) not in self.findings.orders:
            self._say(f"{shape}: the order at row {place[0]}, column {place[1]}")
            begun, self.findings.orders[shape, place] = time.monotonic(), None
            with suppress(IncompleteError):
                self.findings.orders[shape, place] = self.reveal(shape, place, self._end_of_order())
            self.ordering += time.monotonic() - begun
        return self.findings.orders[shape, place]

    def _end_of_order(self) -> float | None:
        """The time at which a search for an order that begins now is given up."""
        if self.deadline is None:
            return None
        left, learning = self._left(self.deadline), LEARNING * (self.deadline - self.begun)
        return time.monotonic() + min(LONGEST * SHARE * left, ORDERING * learning - self.ordering)

    def _near(self, shape: Shape) -> Iterator[Shape]:
        """Shapes with one side of `shape` changed."""
        for _ in range(NEAR):
            other, own = self.products.random_shape(), int(self.rng.integers(3))
            yield Shape(*(*shape.sides[:own], other.sides[own], *shape.sides[own + 1 :]))

    def _narrowed(self, rules: list[Rule]) -> list[Rule]:
        """Observe shapes between the two values of each limit, and shapes of sizes at which a rule was not observed;
        then learn again."""
        limits = dict.fromkeys(limit for rule in rules for limit in (*rule.below, *rule.above))
        open_ones = (limit for limit in limits if FEATURES[limit.feature].counts and limit.high - limit.low > 1)
        self._look_at(between for limit in open_ones if (between := self._between(limit)) is not None)
        bases = self._bases(rules)
        for number in sorted(bases, key=lambda x: len(bases[x]), reverse=True):  # rules with most shapes first
            self._look_at(self._unseen(rules[number], bases[number]))
        return self._explained()

    def _bases(self, rules: Sequence[Rule]) -> dict[int, list[Shape]]:
        """By the number of each rule with a plan: the observed shapes with elements of the rule."""
        features, _, where = self._table()
        bases: dict[int, dict[Shape, None]] = {}
        for number, (looked, _) in zip(chosen(rules, features).tolist(), where, strict=True):
            if number >= 0 and rules[number].plan >= 0:
                bases.setdefault(number, {})[looked.shape] = None
        return {number: list(shapes) for number, shapes in bases.items()}

    def _unseen(self, rule: Rule, bases: Sequence[Shape]) -> Iterator[Shape]:
        """New shapes of sizes at which a rule was not observed, with elements within its limits."""
        allowed = self.products.allowed
        for side, low, high in rule.unseen():
            every = (
                allowed(*base.sides[:side], int(self.rng.integers(low, high + 1)), *base.sides[side + 1 :])
                for base in self._some_of(bases)
            )
            yield from islice(self._new_within(rule.reaches, every), 1)

    def _ends(self, rules: Sequence[Rule]) -> Iterator[Shape]:
        """New shapes at the limits of rules: a limit may have been learned from few shapes."""
        bases = self._bases(rules)
        ends = [(number, *end) for number in bases for end in rules[number].ends()]
        for at in self.rng.permutation(len(ends))[:MORE]:
            number, feature, end = ends[at]
            some = self._some_of(bases[number])
            every = (shape for base in some for shape in self.products.changed(base, FEATURES[feature], end))
            yield from islice(self._new_within(rules[number].reaches, every), 1)

    def _held_at(self, rules: Sequence[Rule], share: float) -> Iterator[Shape]:
        """New shapes at the K of `lengths_asked` for the rules with a plan, each with the M and N that need the fewest
        products. Ends when a share of the time is over."""
        bases = {number: sorted(shapes, key=cost) for number, shapes in self._bases(rules).items()}
        numbers, seen = list(bases), {number: {shape.length for shape in shapes} for number, shapes in bases.items()}
        for at, length in lengths_asked((rules[number], self.known[rules[number].plan]) for number in numbers):
            if length in seen[number := numbers[at]]:
                continue
            if self._late(share):
                break
            shapes = (replace(base, length=length) for base in bases[number][:DRAWN])
            yield from islice(self._new_within(rules[number].holds, shapes), 1)

    def _some_of(self, bases: Sequence[Shape]) -> Iterator[Shape]:
        for _ in range(0 if self._late() else DRAWN):
            yield bases[int(self.rng.integers(len(bases)))]

    def _new_within(self, covers: Callable[[Numbers], NDArray[np.bool_]], shapes: Iterable[Shape]) -> Iterator[Shape]:
        """The shapes not yet observed that have elements which a rule covers. `covers`: `Rule.reaches` or `Rule.holds`
        of the rule."""
        for shape in shapes:
            places = crossed(self.products.places(shape.rows), self.products.places(shape.columns))
            if shape not in self.looked and covers(features_of(shape, places[:, 0], places[:, 1])).any():
                yield shape

    def _between(self, limit: Limit) -> Shape | None:
        """A shape whose feature lies between the two values of a limit, near their middle; None if there is no such
        shape."""
        low, high = (
            next(one.shape for one in self.looked.values() if (one.features[:, limit.feature] == value).any())
            for value in (limit.low, limit.high)
        )
        wanted = (limit.low + limit.high) // 2
        if limit.high - limit.low < limit.low // NARROW:  # libraries choose at round numbers
            wanted = _roundest(limit.low, limit.high)
        feature = FEATURES[limit.feature]
        shapes = [shape for base in (low, high) for shape in self.products.changed(base, feature, wanted)]
        away = [(abs(self._number(shape, limit) - wanted), n) for n, shape in enumerate(shapes)
                if limit.low < self._number(shape, limit) < limit.high]  # fmt: skip
        return shapes[min(away)[1]] if away else None

    @staticmethod
    def _number(shape: Shape, limit: Limit) -> int:
        """The value of a limit's feature for a shape."""
        return int(FEATURES[limit.feature].values(shape, *np.zeros((2, 1), dtype=np.int64))[0])

    # -- tests of rules

    def _reproduced(self, rules: Sequence[Rule], looked: Looked) -> tuple[Numbers, NDArray[np.bool_]]:
        """For each element of a shape: the number of its rule, -1 if it has no rule, and whether the rule's plan
        reproduces it."""
        at = chosen(rules, looked.features)
        reproduced = np.zeros(len(at), dtype=np.bool_)
        for number in {*at.tolist()} - {-1}:
            if (plan := rules[number].plan) >= 0:
                fits = looked.fits[plan] if looked.fits else self._fitting(self.known[plan], looked)
                reproduced |= (at == number) & fits
        return at, reproduced

    def _check(self, rules: list[Rule]) -> None:
        """Compare the rules with new random shapes and at further K of `lengths_asked`, and each unconfirmed rule with
        shapes of its own; the counts go into `self.findings`."""
        mapped = self.findings
        mapped.checked, mapped.right, mapped.open = 0, 0, []
        self._find_rivals(rules)
        count = min(CHECKED, max(2 * CONFIRMED, self.products.shapes()))
        for number in range(count):
            self._say(f"{number} of {count} random shapes")
            shape = self.products.random_shape(number)
            is_open = self._compared(rules, shape)
            mapped.checked += 1
            mapped.right += not is_open and not any(shape in entry.differ for entry in mapped.rules)
            mapped.open += [shape] if is_open else []
        for number, shapes in self._bases(rules).items():
            mapped.rules[number].lengths |= {shape.length for shape in shapes}
        for shape in self._held_at(rules, HOLDING):
            self._say(f"{shape}, to hold a rule at its K")
            self._compared(rules, shape, confirms=False)
        for _ in range(2):  # a failure raises `wanted` of earlier rules too
            for rule, entry in zip(rules, mapped.rules, strict=True):
                self._confirm(rules, rule, entry)

    def _find_rivals(self, rules: Sequence[Rule]) -> None:
        """Find for each rule the other plans that fail to reproduce some of its observed elements."""
        features, fits, _ = self._table()
        at = chosen(rules, features)
        used = sorted({rule.plan for rule in rules if rule.plan >= 0})
        for number, entry in enumerate(self.findings.rules):
            mine = fits[at == number]
            entry.rivals = {
                self.known[plan]: 0 for plan in used if plan != rules[number].plan and not mine[:, plan].all()
            }

    def _confirm(self, rules: Sequence[Rule], rule: Rule, entry: MappedRule) -> None:
        """Compare a rule with further shapes until it is confirmed or fails. These shapes lie beside observed shapes
        and at the rule's limits in turn. A limit on a feature by which the library does not choose fails at the limits
        first."""
        features, _, where = self._table()
        bases = list({where[n][0].shape: None for n in np.flatnonzero(rule.holds(features))})
        ends = list(rule.ends())
        for number in range(MEANT if rule.plan >= 0 and bases else 0):
            if (entry.confirmed and number >= 2 * len(ends)) or entry.differ or self._late(CONFIRMING):
                break
            base, other = bases[int(self.rng.integers(len(bases)))], self.products.random_shape()
            kept = self.rng.random(3) < 0.5
            shapes = [Shape(*np.where(kept, base.sides, other.sides).tolist())]
            if ends and number % 2:
                feature, end = ends[number // 2 % len(ends)]
                shapes = self.products.changed(base, FEATURES[feature], end)
            for shape in self._new_within(rule.holds, shapes):
                self._say(f"{shape}, to confirm a rule")
                self._compared(rules, shape)

    def _compared(self, rules: Sequence[Rule], shape: Shape, confirms: bool = True) -> bool:
        """Compare rules with a new shape; with `confirms`, agreement counts toward their confirmation. Returns whether
        an element has no rule with a plan."""
        looked, mapped = self._unfitted(shape), self.findings
        at, is_open = chosen(rules, looked.features), False
        numbers = {plan: number for number, plan in enumerate(self.known)}
        fits: dict[int, NDArray[np.bool_]] = {}

        def fitting(plan: int) -> NDArray[np.bool_]:
            if plan not in fits:
                fits[plan] = self._fitting(self.known[plan], looked)
            return fits[plan]

        for one in sorted({int(x) for x in at}):
            if one < 0 or rules[one].plan < 0:
                is_open = True
                continue
            entry, mine = mapped.rules[one], at == one
            entry.lengths.add(shape.length)
            if not fitting(rules[one].plan)[mine].all():
                entry.differ.append(shape)
                for each in mapped.rules:
                    each.wanted = DOUBTED
                continue
            entry.agree += confirms
            for rival, count in entry.rivals.items():
                if confirms and count < CONFIRMED:
                    entry.rivals[rival] += not fitting(numbers[rival])[mine].all()
        return is_open

    def held(self, rules: Sequence[Rule], shape: Shape) -> tuple[Numbers, NDArray[np.bool_]]:
        """For each element of a new shape: the number of its rule (-1: no rule), and whether the rule's plan reproduces
        it."""
        return self._reproduced(rules, self._unfitted(shape))

    # -- time

    def _say(self, text: str) -> None:
        self.progress(f"{text}; {counted(len(self.known), 'plan')} so far")
        self._in_time()

    def _late(self, share: float = LEARNING) -> bool:
        """Whether a share of the time is over, by default the share for learning."""
        return self.deadline is not None and self._left(self.deadline, share) < 0

    def _left(self, deadline: float, share: float = LEARNING) -> float:
        """The seconds until a share of the time is over."""
        return self.begun + share * (deadline - self.begun) - time.monotonic()

    def _affordable(self, looked: Looked) -> bool:
        """Whether the order of an element of a shape is likely to be revealed in a share of the time for learning."""
        if self.deadline is None:
            return True
        return QUESTIONS * looked.shape.length * looked.seconds <= SHARE * self._left(self.deadline)

    def _in_time(self) -> None:
        if self.is_late:
            raise self.late()

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @staticmethod
    def late() -> OutOfTimeError:
        """The error of a map that is cut short by the deadline."""
        return OutOfTimeError("the time ran out before the map was whole")


def _roundest(low: int, high: int) -> int:
    """Of the numbers between two numbers, the one with the most zero bits at its end."""
    number = high - 1
    while (shorter := number & (number - 1)) > low:
        number = shorter
    return number
