"""The sums of K cut at a few places, or into runs promoted in equal parts, for all ways of cutting K at once; and the
stages that these, and the sums of accumulators dealt K in turn, choose.

Every run of neighbouring tiles is summed once; a way of cutting K gives the sum of some of these runs, added by NumPy.
These sums only choose candidates, each of which is then compared with results as a plan of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import accumulate, combinations, islice, pairwise, product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.plans.dealt_sums import (
    ADDED,
    DealtSums,
    Evaluate,
    Numbers,
    agreeing,
    begun_with_c,
    ended,
    in_order,
    starts_of,
)
from mmaprobe.queries.plans.forms import Form
from mmaprobe.queries.plans.nested_sums import nested
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.tree_sums import TreeSums
from mmaprobe.queries.plans.unit_stages import PartRoundings, in_equal_parts
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans, type_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Stage
from mmaprobe.smtmodel.plans.joins import Add, Order
from mmaprobe.smtmodel.plans.named import in_format, in_runs_at, promoted
from mmaprobe.smtmodel.plans.partitions import Equal
from mmaprobe.smtmodel.plans.stages import Parted

TILES = (16, 32, 64, 128)  # products of a tile: K is cut at multiples of these
MOST_TILES = 64  # the most tiles in K, for one or two cuts
FINER = 128  # the most tiles in K, where nothing else was found
FEWER = 32  # the most tiles in K, for three cuts at any of them
HELD = 128  # the most ways of cutting K that are given for one form and one sample
FIRST = 2  # results of a sample that are compared first, as they refute most ways of cutting


def cuts_of(
    model: Model,
    forms: Sequence[Form],
    samples: Sequence[Sample],
    evaluate: Evaluate,
    kept: Sequence[PartRoundings] = (),
    *,
    within: bool = False,
) -> Iterator[tuple[Form, Parted, Matrix]]:
    """The ways of cutting K around a unit that give all results of a sample in one of some forms, each as the form, the
    stage and these results; at most `HELD` for a form and a sample. The samples have the same inputs. `kept`: the
    roundings with which the sums of runs may be stored and added, besides none. `within`: instead, the ways of
    adding the parts of K, each as the whole of K might be added."""
    begun: dict[tuple[object, ...], list[Form]] = {}
    for form in forms:
        if form.taken == (model.a, model.b) and form.format == model.c:
            begun.setdefault((form.convert, form.start), []).append(form)
    for alike in begun.values():
        about = model, alike[0], samples[0], evaluate
        for own in _within(*about) if within else _uneven(*about, kept):
            for form, sample in product(alike, samples):
                for stage, results in islice(own.stages(form, sample), HELD):
                    yield form, stage, results


def _uneven(
    model: Model, form: Form, sample: Sample, evaluate: Evaluate, kept: Sequence[PartRoundings]
) -> Iterator[CutSums | DealtSums]:
    sums = CutSums(model, form, sample, evaluate)
    yield sums
    yield from (DealtSums(model, form, sample, evaluate), TreeSums(model, form, sample, evaluate))
    yield from (sums.keeping(*how) for how in kept if how is not None)


def _within(model: Model, form: Form, sample: Sample, evaluate: Evaluate) -> Iterator[CutSums | DealtSums]:
    length = sample.a.shape[2]
    if tile_of(model, length, FINER) != tile_of(model, length):
        yield CutSums(model, form, sample, evaluate, FINER)
    yield from nested(model, form, sample, evaluate)


def tile_of(model: Model, length: int, most: int = MOST_TILES) -> int:
    """The smallest tile of which K has at most `most`; 0 for none."""
    fitting = (tile for tile in TILES if tile % model.length == 0 and 1 < -(-length // tile) <= most)
    return next(fitting, 0)


class CutSums:
    """The sums of a sample's elements (products of one row and one column) by a unit, with the conversion of inputs and
    the start of sums of a form. `evaluate`: gives the results of a plan for a sample."""

    def __init__(self, model: Model, form: Form, sample: Sample, evaluate: Evaluate, most: int = MOST_TILES) -> None:
        self.model, self.how, length = model, Rounding(model.c), sample.a.shape[2]
        self.tile = tile_of(model, length, most)
        self.count = -(-length // self.tile) if self.tile else 0
        self.length = length
        self.body: Stage = Chain(model)
        self._table: Numbers | None = None  # (first tile, end, element): the sum of the tiles from the first to the end
        takes = model.addend and model.c.name in ADDED and form.format == model.c
        if takes and self.tile:
            self._table = self._filled(form, sample, evaluate)

    def _filled(self, form: Form, sample: Sample, evaluate: Evaluate) -> Numbers | None:
        """The table of the sums of all runs of tiles (first tiles x ends x elements), made by adding one tile at a time
        to the runs from all places. The runs of the first row begin with the start of the whole sum; the last row has
        the same runs from +0. None if the unit cannot take these inputs."""
        plan, model = begun_with_c(self.model, form), self.model
        many, last = len(sample.d), sample.a.shape[2] - (self.count - 1) * self.tile
        first = np.append(np.arange(self.count), 0)
        sums = np.zeros((len(first), many, 1, 1), dtype=f"u{model.c.width // 8}")
        table = np.zeros((len(first), self.count + 1, many), dtype=sums.dtype)
        sums[0, :, 0, 0] = starts_of(form, model, sample)
        table[:, 0] = sums[:, :, 0, 0]
        for more in range(self.count):
            for size, own in ((self.tile, first + more < self.count - 1), (last, first + more == self.count - 1)):
                if own.any():
                    d = evaluate(plan, self._part(sample, first[own] + more, size, sums[own]))
                    if d is None:
                        return None
                    sums[own] = d.reshape(-1, many, 1, 1)
                    table[own, first[own] + more + 1] = sums[own, :, 0, 0]
        return table.view(f"f{sums.itemsize}")

    def keeping(self, part: Rounding | None, total: Rounding) -> CutSums:
        """These sums, with the sum of each run rounded by `part` (None: not rounded), and the runs added in the format
        of `total`."""
        other = copy(self)
        vars(other).pop("_promoted", None)  # sums of the runs as they were
        other.body, other.how = self.body if part is None else in_format(self.body, part), total
        if self._table is not None:
            with np.errstate(all="ignore"):
                stored = self._table[:, 1:].astype(type_of(other.body.d)).astype(self._table.dtype)
                other._table = np.concatenate([self._table[:, :1], stored], axis=1).astype(type_of(total.format))
        return other

    def _part(self, sample: Sample, tiles: NDArray[np.int64], size: int, c: Matrix) -> Sample:
        """The products of some tiles, each tile a matrix product of its own, with the sums before them as C."""
        spans = [slice(tile * self.tile, tile * self.tile + size) for tile in tiles]
        a = np.concatenate([sample.a[:, :, span] for span in spans])
        b = np.concatenate([sample.b[:, span] for span in spans])
        return replace(sample, a=a, b=b, c=c.reshape(-1, 1, 1), d=c.reshape(-1, 1, 1))

    def stages(self, form: Form, sample: Sample) -> Iterator[tuple[Parted, Matrix]]:
        """The stages whose results are those of the sample, with these results. `form`: a form with the same start of
        sums."""
        number = ~nans(sample.d, form.asked.d).ravel()  # all NaNs are equal
        if self.count > 2 and self._table is not None:
            stages, sums = self._promoted
            given = ended(form, self.model, sums, sample.c.ravel())
            for place in agreeing(form, given, sample):
                yield self._whole(stages[place]), given[place].reshape(sample.d.shape)
        for at, orders in self._ways():
            for order in orders:
                left = at
                for some in (slice(FIRST), slice(FIRST, None)):
                    given = ended(form, self.model, self._added(left, order, some), sample.c.ravel()[some])
                    left = left[((given == sample.d.ravel()[some]) | ~number[some]).all(axis=1)]
                for way in left:
                    places = tuple(int(tile) * self.tile for tile in way)
                    given = ended(form, self.model, self._added(way[None], order)[0], sample.c.ravel())
                    stage = in_runs_at(places, self.body, self.how, order)
                    yield self._whole(stage), given.reshape(sample.d.shape)

    def _whole(self, stage: Parted) -> Parted:
        """The stage with its sum rounded to the format of the unit."""
        return stage if stage.d == self.model.c else in_format(stage, Rounding(self.model.c))

    def _ways(self) -> Iterator[tuple[NDArray[np.int64], tuple[Order, ...]]]:
        """The tiles at which K is cut (ways x cuts) and the orders in which its runs are added, for one, two and three
        cuts."""
        if self._table is not None:
            yield _cuts(self.count, 1, 1), ("sequential",)
            yield _cuts(self.count, 2, 1), ("sequential", "backwards")
            step = next(size for size in (1, 2, 4) if self.count <= size * FEWER)
            yield _cuts(self.count, 3, step), ("sequential", "backwards", "pairwise")

    def _added(self, at: NDArray[np.int64], order: Order, some: slice = slice(None)) -> Numbers:
        """The sums (ways x elements) of K cut at some tiles (ways x cuts), of some elements."""
        assert self._table is not None
        table = self._table[:, :, some]
        ends = np.concatenate([np.zeros_like(at[:, :1]), at, np.full_like(at[:, :1], self.count)], axis=1)
        return in_order([table[first, last] for first, last in pairwise(ends.T)], order)

    @cached_property
    def _promoted(self) -> tuple[list[Parted], Numbers]:
        """The stages that promote runs of K, whole and in equal parts, and their sums (ways x elements)."""
        stages, sums = list[Parted](), list[Numbers]()
        for tiles in range(1, self.count // 2 + 1):
            size, runs = tiles * self.tile, cache(partial(self._promotion, tiles))
            stages.append(promoted(size, self.body, self.how))
            sums.append(runs(0, self.count))
            for stage in in_equal_parts(size, self.body, self.how, self.length, self.tile):
                assert isinstance(stage.partition, Equal)
                assert isinstance(stage.join, Add)
                ends = [-(-end // self.tile) for end in (0, *accumulate(stage.partition.sizes(self.length, stage)))]
                stages.append(stage)
                sums.append(in_order([runs(*span) for span in pairwise(ends)], stage.join.order))
        return stages, np.array(sums)

    def _promotion(self, tiles: int, first: int, end: int) -> Numbers:
        """The sums of the elements over the tiles from `first` up to `end`, in runs of `tiles` tiles, each from +0."""
        assert self._table is not None
        total: Numbers = self._table[first and self.count, 0]
        with np.errstate(all="ignore"):
            for at in range(first, end, tiles):
                total = total + self._table[at or self.count, min(at + tiles, end)]
        return total


@cache
def _cuts(count: int, cuts: int, step: int) -> NDArray[np.int64]:
    """The ways of cutting `count` tiles at `cuts` places, which are multiples of `step` (ways x cuts)."""
    return np.array([*combinations(range(step, count, step), cuts)], dtype=np.int64).reshape(-1, cuts)
