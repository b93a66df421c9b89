"""The sums of K dealt to accumulators in turn, for all numbers of accumulators at once.

The accumulators of one number are summed together, each as a product of its own, and added by NumPy in every order. The
sums only choose candidates: each candidate is then held against results as a plan of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
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
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Products
from mmaprobe.smtmodel.plans.joins import ORDERS, Order
from mmaprobe.smtmodel.plans.named import in_vectors, interleaved
from mmaprobe.smtmodel.plans.stages import Parted

ACCUMULATORS = range(2, 17)  # numbers of accumulators of a unit of one product
OF_UNITS = range(2, 9)  # numbers of accumulators of a longer unit
ADDED = ("f16", "f32", "f64")  # formats in which NumPy adds, each addition rounded to nearest even

Numbers = NDArray[np.floating]
Evaluate = Callable[[Plan, Sample], Matrix | None]


def begun_with_c(model: Model, form: Form) -> Plan:
    """The plan of a unit's sum of inputs converted as in a form, from C."""
    total = Products(Chain(model), Element("c"))
    result = total if model.d == model.c else Round(total, Rounding(model.c))
    return Plan(form.asked.a, form.asked.b, model.c, result, *form.convert)


def starts_of(form: Form, model: Model, sample: Sample) -> Matrix:
    """What the sum of each element begins with in a form, as patterns of a unit's addend."""
    if form.start != Element("c"):
        return np.zeros(len(sample.d), dtype=f"u{model.c.width // 8}")
    numbers = to_numbers(np.ascontiguousarray(sample.c), form.asked.c)
    return from_numbers(numbers, model.c, "nearest_even").reshape(-1)


def ended(form: Form, model: Model, sums: Numbers, c: Matrix) -> Matrix:
    """The results of a form for sums (ways x elements) of a unit."""
    own = np.ascontiguousarray(sums, dtype=type_of(model.c))
    return form.ended(own.view(f"u{own.itemsize}"), np.ascontiguousarray(np.broadcast_to(c, own.shape)))


def agreeing(form: Form, given: Matrix, sample: Sample) -> NDArray[np.intp]:
    """The ways whose results (ways x elements) are those of a sample; all NaNs are equal."""
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


@np.errstate(all="ignore")
def in_folds(lanes: Numbers, folds: Sequence[Fold]) -> Numbers:
    """The sums (... x elements) of the lanes of vectors (... x lanes x elements), each addition rounded."""
    for fold in folds:
        *outer, count, many = lanes.shape
        missing = np.full((*outer, -count % (fold.ways * fold.stride), many), -0.0, dtype=lanes.dtype)  # adds nothing
        groups = np.concatenate([lanes, missing], axis=-2).reshape(*outer, -1, fold.ways, fold.stride, many)
        lanes = np.add.accumulate(groups, axis=-3)[..., -1, :, :].reshape(*outer, -1, many)
    return lanes[..., 0, :]


class DealtSums:
    """Sums of a sample's elements (products of one row and one column) in accumulators of a unit, with inputs converted
    and sums begun as in a form. `evaluate`: the results of a plan for a sample."""

    def __init__(self, model: Model, form: Form, sample: Sample, evaluate: Evaluate) -> None:
        self.model, self.form, self.length = model, form, sample.a.shape[2]
        self._sample, self._evaluate = sample, evaluate
        self._takes = model.addend and model.d == model.c and model.c.name in ADDED and form.format == model.c

    def stages(self, form: Form, sample: Sample) -> Iterator[tuple[Parted, Matrix]]:
        """The stages whose results are those of the sample, with these results; `form`: a form that begins sums as
        these begin."""
        stages, sums = self.every
        if stages:
            given = ended(form, self.model, sums, sample.c.ravel())
            for place in agreeing(form, given, sample):
                yield stages[place], given[place].reshape(sample.d.shape)

    @cached_property
    def every(self) -> tuple[list[Parted], Numbers]:
        """Every way of dealing K, and the sums (ways x elements)."""
        found, unit = list[tuple[Parted, Numbers]](), self.model.length
        with suppress(ParameterError):
            for ways in ACCUMULATORS if unit == 1 else OF_UNITS:
                if self._takes and ways * unit <= self.length:
                    found += self._dealt(ways, unit)
        return [stage for stage, _ in found], np.array([sums for _, sums in found])

    def _dealt(self, ways: int, grain: int) -> Iterator[tuple[Parted, Numbers]]:
        """K dealt to `ways` accumulators, `grain` products (one use of the unit) at a time. Products that fill no turn
        are dealt as well, or added to the sum of all accumulators, or to the first one."""
        chain, how, turns = Chain(self.model), Rounding(self.model.c), self.length // (ways * grain)
        filled = turns * ways * grain
        places = np.arange(filled).reshape(turns, ways, grain).swapaxes(0, 1).reshape(ways, -1)
        start = starts_of(self.form, self.model, self._sample)
        lanes = self._after(places, np.stack([start, *[np.zeros_like(start)] * (ways - 1)]))
        rest = np.arange(filled, self.length)
        tail = chain if len(rest) else None
        orders = ORDERS if ways > 2 else ORDERS[:1]
        joined = [(interleaved(ways, chain, how, order, grain, tail), in_order([*lanes], order)) for order in orders]
        folds = dict.fromkeys((halved(ways), (Fold(ways, 1),), *([paired(ways)] if ways & (ways - 1) == 0 else [])))
        if ways > 2:
            stage = in_vectors(chain, how, (ways, *halved(ways)), grain=grain, tail=tail)
            joined.append((stage, in_folds(lanes, halved(ways))))
        if tail is None:
            yield from joined
            return
        *sums, first = self._after(
            np.tile(rest, (len(joined) + 1, 1)), _patterns([*(one for _, one in joined), lanes[0]])
        )
        yield from zip([stage for stage, _ in joined], sums, strict=True)
        dealt, lane, whole = lanes.copy(), 0, len(rest) // grain * grain
        for own in (rest[:whole].reshape(-1, grain), rest[None, whole:]):
            if own.size:
                dealt[lane : lane + len(own)] = self._after(own, _patterns([*lanes[lane : lane + len(own)]]))
            lane += len(own)
        for fold in folds:
            yield in_vectors(chain, how, (ways, *fold), grain=grain), in_folds(dealt, fold)
            yield in_vectors(chain, how, (ways, 1, *fold), grain=grain), in_folds(np.stack([first, *lanes[1:]]), fold)

    def _after(self, places: NDArray[np.intp], before: Matrix) -> Numbers:
        """The sums (rows x elements) of the products at each row of places, from the sums `before` (the same)."""
        rows, many = before.shape
        a = self._sample.a[:, :, places].transpose(2, 0, 1, 3).reshape(rows * many, 1, -1)
        b = self._sample.b[:, places].transpose(1, 0, 2, 3).reshape(rows * many, -1, 1)
        c = np.ascontiguousarray(before).reshape(-1, 1, 1)
        found = self._evaluate(begun_with_c(self.model, self.form), Sample(a, b, c, c))
        if found is None:
            raise ParameterError("K", f"{self.model.reference} does not take it")
        return found.reshape(rows, many).astype(before.dtype).view(type_of(self.model.c))


def _patterns(sums: Sequence[Numbers]) -> Matrix:
    """Numbers as patterns."""
    every = np.array(sums)
    return every.view(f"u{every.itemsize}")
