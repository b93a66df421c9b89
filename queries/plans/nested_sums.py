"""The sums of K in parts, each of which is added as the whole of a shorter K might be: in accumulators or lanes, in
trees, or in promoted runs.

The sums only choose candidates: each candidate is then held against results as a plan of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product

from mmaprobe.queries.plans.dealt_sums import Evaluate, Places, Summed
from mmaprobe.queries.plans.forms import Form
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.tree_sums import FEW, LANES, VECTOR, Trees
from mmaprobe.queries.plans.unit_stages import RUNS
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain
from mmaprobe.smtmodel.plans.joins import ORDERS, Add, Promote
from mmaprobe.smtmodel.plans.partitions import SPLIT_GRAINS, SPLITS, Equal, Runs
from mmaprobe.smtmodel.plans.stages import Parted, Partition

PROMOTED = sorted({8, *range(16, 129, 16), *RUNS})  # products of a run


class NestedSums(Trees):
    """Sums of a sample's elements, as of `DealtSums`, in the parts of one partition of K, and within these."""

    def __init__(
        self, cut: Partition, deep: bool, model: Model, form: Form, sample: Sample, evaluate: Evaluate
    ) -> None:
        super().__init__(model, form, sample, evaluate)
        self._cut, self._deep = cut, deep

    def _ways(self, whole: Places) -> Iterator[Summed]:
        split = isinstance(self._cut, Equal)
        parts = len(self._sizes(self._cut, self.length))
        orders = {2: ORDERS[:1], 3: ("sequential", "backwards")}.get(parts, ORDERS)  # three in pairs are in order
        joins = [Add(self.how, order) for order in orders] if split else [Promote(self.how)]
        yield from self.within(self._cut, joins, whole, self._start, {self.length},
                               self._part if split else self._run)  # fmt: skip

    def _part(self, rows: Places, before: Matrix, lengths: Collection[int]) -> Iterator[Summed]:
        """Parts of a split: as runs, or in runs, of which those that are more than loops are a search of their own."""
        if not self._deep:
            yield from self._run(rows, before, lengths)
        inner = self._few if self._deep else self._chain
        for run in _runs(self.model, max(lengths)):
            yield from self.within(run, [Promote(self.how)], rows, before, lengths, inner)

    def _run(self, rows: Places, before: Matrix, lengths: Collection[int]) -> Iterator[Summed]:
        yield from self._chain(rows, before, lengths)
        yield from self.dealt(rows, before, lengths)
        if self.model.length == 1:
            yield from self.trees(rows, before, lengths)
            yield from self.pairs(rows, before)

    def _few(self, rows: Places, before: Matrix, lengths: Collection[int]) -> Iterator[Summed]:
        """Short runs within parts, of one product after another: in pairs, or in the lanes of a vector."""
        yield from self.pairs(rows, before)
        for ways, grain in LANES:
            if ways <= VECTOR and grain <= FEW and 2 * ways * grain <= max(lengths):
                yield from self.over(rows, before, ways, grain, lengths)

    def _chain(self, rows: Places, before: Matrix, lengths: Collection[int]) -> Iterator[Summed]:
        yield (), self.sums_after(rows, before)


def nested(model: Model, form: Form, sample: Sample, evaluate: Evaluate) -> Iterator[NestedSums]:
    """The sums in the parts of each partition of K into equal parts, or into promoted runs, once."""
    length, stage = sample.a.shape[2], Parted(Equal(2), Add(Rounding(model.c)), Chain(model))
    equal = (Equal(ways, grain) for grain, ways in product(SPLIT_GRAINS, SPLITS) if grain % model.length == 0)
    splits = {tuple(cut.sizes(length, stage)): cut for cut in reversed([one for one in equal if one.full(length)])}
    every = [*reversed(splits.values())]
    about = model, form, sample, evaluate
    yield from (NestedSums(cut, False, *about) for cut in (*every, *_runs(model, length)))
    if model.length == 1:
        yield from (NestedSums(cut, True, *about) for cut in every)


def _runs(model: Model, length: int) -> Iterator[Runs]:
    return (Runs(run) for run in PROMOTED if run % model.length == 0 and run < length)
