"""Sums of K, or of each part of K, whose products are dealt to accumulators in turn, for every number of accumulators.

For each number the sums of all accumulators are computed together, each as a product of one row and one column, and
NumPy adds them in every order. These sums only choose candidates: each candidate is then compared with results as a
plan of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.plans.forms import Form
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.unit_stages import halved, paired
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, nans, to_numbers, type_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.nodes import Element, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Products, Stage
from mmaprobe.smtmodel.plans.joins import ORDERS, Add, Order, Tree
from mmaprobe.smtmodel.plans.partitions import Interleaved, Lanes
from mmaprobe.smtmodel.plans.stages import Join, Parted, Partition

ACCUMULATORS = range(2, 17)  # numbers of accumulators of a unit of one product
OF_UNITS = range(2, 9)  # numbers of accumulators of units of several products
_LAST = ((0, 0), (0, 1))  # a product of zeros after the last one
ADDED = ("f16", "f32", "f64")  # formats in which NumPy adds, each addition rounded to nearest even

Numbers = NDArray[np.floating]
Places = NDArray[np.intp]
Evaluate = Callable[[Plan, Sample], Matrix | None]


@dataclass(frozen=True)
class Level:
    """A partition of products and the join of the sums of its parts; `tailed`: the unit adds the products left over."""

    partition: Partition
    join: Join
    tailed: bool = False


Levels = tuple[Level, ...]
"""the levels around a unit, the outermost first"""
Summed = tuple[Levels, Numbers]


def begun_with_c(model: Model, form: Form) -> Plan:
    """The plan of a unit's sum that starts from c, with inputs converted as in a form."""
    total = Products(Chain(model), Element("c"))
    result = total if model.d == model.c else Round(total, Rounding(model.c))
    return Plan(form.asked.a, form.asked.b, model.c, result, *form.convert)


def starts_of(form: Form, model: Model, sample: Sample) -> Matrix:
    """The start of each element's sum in a form, as patterns of a unit's c."""
    if form.start != Element("c"):
        return np.zeros(len(sample.d), dtype=f"u{model.c.width // 8}")
    numbers = to_numbers(np.ascontiguousarray(sample.c), form.asked.c)
    return from_numbers(numbers, model.c, "nearest_even").reshape(-1)


def ended(form: Form, model: Model, sums: Numbers, c: Matrix) -> Matrix:
    """The results of a form for sums (ways x elements) of a unit."""
    own = np.ascontiguousarray(sums, dtype=type_of(model.c))
    return form.ended(own.view(f"u{own.itemsize}"), np.ascontiguousarray(np.broadcast_to(c, own.shape)))


def agreeing(form: Form, given: Matrix, sample: Sample) -> NDArray[np.intp]:
    """The ways whose results (ways x elements) are those of a sample; where a sample has NaN, results are not
    compared."""
    number = ~nans(sample.d, form.asked.d).ravel()
    return np.flatnonzero(((given == sample.d.ravel()) | ~number).all(axis=1))


def in_order(runs: list[Numbers], order: Order) -> Numbers:
    """The sum of some sums, each addition rounded."""
    with np.errstate(all="ignore"):
        while order == "pairwise" and len(runs) > 2:
            pairs = [one + other for one, other in zip(runs[::2], runs[1::2], strict=False)]
            runs = [*pairs, *runs[2 * len(pairs) :]]
        total, *others = runs[::-1] if order == "backwards" else runs
        for other in others:
            total = total + other
    return total


def in_folds(lanes: Numbers, folds: Sequence[Fold]) -> Numbers:
    """The sums (... x elements) of the lanes of vectors (... x lanes x elements), each addition rounded."""
    for fold in folds:
        *outer, count, many = lanes.shape
        missing = np.full((*outer, -count % (fold.ways * fold.stride), many), -0.0, dtype=lanes.dtype)  # adds nothing
        groups = np.concatenate([lanes, missing], axis=-2).reshape(*outer, -1, fold.ways, fold.stride, many)
        lanes = np.add.accumulate(groups, axis=-3)[..., -1, :, :].reshape(*outer, -1, many)
    return lanes[..., 0, :]


class DealtSums:
    """Sums of a sample's elements (products of one row and one column) by a unit, in accumulators that take the
    products in turn. Inputs are converted and sums begun as in a form. `evaluate`: the results of a plan for a sample.

    Methods take rows of places of products (rows x places), and sum each row from its own start (rows x elements, as
    patterns)."""

    def __init__(self, model: Model, form: Form, sample: Sample, evaluate: Evaluate) -> None:
        self.model, self.how, self.length = model, Rounding(model.c), sample.a.shape[2]
        self._a, self._b = (np.pad(side, [(0, 0), *pad]) for side, pad in ((sample.a, _LAST), (sample.b, _LAST[::-1])))
        self._start, self._evaluate = starts_of(form, model, sample)[None], evaluate
        self._takes = model.addend and model.d == model.c and model.c.name in ADDED and form.format == model.c
        self._begun = begun_with_c(model, form) if self._takes else None

    def stages(self, form: Form, sample: Sample) -> Iterator[tuple[Parted, Matrix]]:
        """The stages whose results are those of the sample, with these results; `form`: a form that begins sums as
        these begin."""
        levels, sums = self.every
        if levels:
            given = ended(form, self.model, sums, sample.c.ravel())
            for place in agreeing(form, given, sample):
                yield self.stage(levels[place]), given[place].reshape(sample.d.shape)

    def stage(self, levels: Levels) -> Parted:
        """The stage of some levels around the unit."""
        body: Stage
        chain = body = Chain(self.model)
        for level in reversed(levels):
            body = Parted(level.partition, level.join, body, chain if level.tailed else None)
        assert isinstance(body, Parted)
        return body

    @cached_property
    def every(self) -> tuple[list[Levels], Numbers]:
        """Every way of dealing K to accumulators, and the sums (ways x elements)."""
        found = list[Summed]()
        with suppress(ParameterError), np.errstate(all="ignore"):
            if self._takes:
                found = [*self._ways(np.arange(self.length)[None])]
        return [levels for levels, _ in found], np.array([sums[0] for _, sums in found])

    def _ways(self, whole: Places) -> Iterator[Summed]:
        return self.dealt(whole, self._start, {self.length})

    def dealt(self, rows: Places, before: Matrix, lengths: Collection[int]) -> Iterator[Summed]:
        """Rows dealt to accumulators, one use of the unit at a time. Products that fill no turn are dealt as well, or
        added to the sum of all accumulators, or to the first one. `lengths`: the numbers of products that the same
        stage has to take."""
        unit = self.model.length
        for ways in ACCUMULATORS if unit == 1 else OF_UNITS:
            if ways * unit <= max(lengths):
                yield from self._dealt(rows, before, ways, any(size % (ways * unit) for size in lengths))

    def _dealt(self, rows: Places, before: Matrix, ways: int, tailed: bool) -> Iterator[Summed]:
        grain, how = self.model.length, self.how
        filled = rows.shape[1] - rows.shape[1] % (ways * grain)
        sums = self.lanes(rows[:, :filled], before, ways, grain)
        lanes = [*sums.swapaxes(0, 1)]
        orders = ORDERS if ways > 2 else ORDERS[:1]
        joined = [(Level(Interleaved(ways, grain), Add(how, one), tailed), in_order(lanes, one)) for one in orders]
        if ways > 2:
            level = Level(Lanes((ways, *halved(ways)), grain=grain), Tree(how), tailed)
            joined.append((level, in_folds(sums, halved(ways))))
        if not tailed:
            yield from (((level,), sums) for level, sums in joined)
            return
        rest = rows[:, filled:]
        every = self.sums_after(np.tile(rest, (len(joined) + 1, 1)), patterns([*(one for _, one in joined), lanes[0]]))
        *totals, first = every.reshape(-1, *before.shape)
        yield from (((level,), own) for (level, _), own in zip(joined, totals, strict=True))
        dealt, later = self.lanes(rows, before, ways, grain), np.stack([first, *lanes[1:]], axis=1)
        for fold in dict.fromkeys((halved(ways), (Fold(ways, 1),), paired(ways))):
            yield (Level(Lanes((ways, *fold), grain=grain), Tree(how)),), in_folds(dealt, fold)
            yield (Level(Lanes((ways, 1, *fold), grain=grain), Tree(how)),), in_folds(later, fold)

    def lanes(self, rows: Places, before: Matrix, ways: int, grain: int = 1) -> Numbers:
        """The sums (rows x lanes x elements) of `ways` lanes that take `grain` products of each row in turn: those of
        the first lane begin with the sum before, the others with +0. The last turn is filled up with zeros."""
        count, many = before.shape
        turns = -(-rows.shape[1] // (ways * grain))
        more = turns * ways * grain - rows.shape[1]
        full = np.pad(rows, ((0, 0), (0, more)), constant_values=self.length).reshape(count, turns, ways, grain)
        places = full.swapaxes(1, 2).reshape(count * ways, turns * grain)
        begun = np.zeros((count, ways, many), dtype=before.dtype)
        begun[:, 0] = before
        return self.sums_after(places, begun.reshape(-1, many)).reshape(count, ways, many)

    def sums_after(self, places: Places, before: Matrix) -> Numbers:
        """The sums (rows x elements) of the products at each row of places, each added to its row of `before`."""
        rows, many = before.shape
        if not places.size:
            return before.view(type_of(self.model.c))
        a = self._a[:, :, places].transpose(2, 0, 1, 3).reshape(rows * many, 1, -1)
        b = self._b[:, places].transpose(1, 0, 2, 3).reshape(rows * many, -1, 1)
        c = np.ascontiguousarray(before).reshape(-1, 1, 1)
        assert self._begun is not None
        found = self._evaluate(self._begun, Sample(a, b, c, c))
        if found is None:
            raise ParameterError("K", f"{self.model.reference} does not take this K")
        return found.reshape(rows, many).astype(before.dtype).view(type_of(self.model.c))


def patterns(sums: Iterable[Numbers]) -> Matrix:
    """Numbers (sums x rows x elements) as patterns, one row after another."""
    every = np.array([*sums])
    return every.view(f"u{every.itemsize}").reshape(-1, every.shape[-1])
