"""The sums of K in trees of pairs: of blocks of products, and of lanes that take products in turn, as the threads of a
warp or of a block add what they have.

Every lane is summed as a product of its own, and the lanes are added in all trees by NumPy, for a few elements. The
sums only choose candidates: each candidate is then held against results as a plan of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import accumulate, product

import numpy as np

from mmaprobe.queries.plans.dealt_sums import (
    DealtSums,
    Evaluate,
    Level,
    Numbers,
    Places,
    Summed,
    in_folds,
    in_order,
    patterns,
)
from mmaprobe.queries.plans.forms import Form
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.unit_stages import halved, paired
from mmaprobe.smtmodel.algorithms.reductions import WARP
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import type_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.plans import Chain, Fold
from mmaprobe.smtmodel.plans.joins import Add, Promote, Tree
from mmaprobe.smtmodel.plans.partitions import Equal, Halves, Lanes, Runs
from mmaprobe.smtmodel.plans.stages import Join, Parted, Partition

BLOCKS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)  # products of a block
LANES = (*product((4, 8, 16, 32, 64, 128, 256, 512, 1024), (1, 2, 4, 8)),)
"""numbers of lanes of vectors, and of threads, with the products that each of them takes in a turn"""
VECTOR = 16  # lanes of the longest vector of a processor; some are halved first, and then added in pairs of neighbours
FEW = 4  # elements whose sums are formed


class Trees(DealtSums):
    """Sums of a sample's elements, as of `DealtSums`, and those of rows in trees, or in parts."""

    def pairs(self, rows: Places, before: Matrix) -> Iterator[Summed]:
        """Rows halved until single products are left, and in pairs of neighbours."""
        leaves: list[Numbers] = [*self.lanes(rows, before, rows.shape[1]).swapaxes(0, 1)]
        yield (Level(Halves(1), Tree(self.how)),), _halved(leaves)
        yield (Level(Runs(1), Add(self.how, "pairwise")),), in_order(leaves, "pairwise")

    def trees(self, rows: Places, before: Matrix, lengths: Collection[int]) -> Iterator[Summed]:
        """Rows over lanes that take them in turn."""
        for ways, grain in LANES if self.model.length == 1 else ():
            if ways * grain < (2 * max(lengths) if grain == 1 else max(lengths)):
                yield from self.over(rows, before, ways, grain, lengths)

    def over(
        self, rows: Places, before: Matrix, ways: int, grain: int = 1, lengths: Collection[int] = ()
    ) -> Iterator[Summed]:
        """Rows over a power of two of lanes, in all trees; products that fill no turn of rows of some lengths are in a
        short turn, or added to the sum of all lanes."""
        lanes, kind = self.lanes(rows, before, ways, grain), Tree(self.how)
        filled = rows.shape[1] - rows.shape[1] % (ways * grain)
        full = lanes if filled == rows.shape[1] else self.lanes(rows[:, :filled], before, ways, grain)
        tailed = any(size % (ways * grain) for size in lengths)
        for folds in _trees(ways):
            partition = Lanes((ways, *folds), grain=grain)
            yield (Level(partition, kind),), in_folds(lanes, folds)
            if tailed:
                total = self.sums_after(rows[:, filled:], patterns([in_folds(full, folds)]))
                yield (Level(partition, kind, tailed),), total

    def within(
        self, partition: Partition, joins: Sequence[Join], rows: Places, before: Matrix, lengths: Collection[int],
        inner: Callable[[Places, Matrix, Collection[int]], Iterator[Summed]],
    ) -> Iterator[Summed]:  # fmt: skip
        """The parts of rows, each added in all ways of `inner`, with their sums joined in all ways of `joins`. Parts
        of one size are rows of their own, which are added together; where sums begin with C, the first parts are added
        from C as well."""
        sizes = {size: self._sizes(partition, size) for size in lengths}
        own, every = sizes[rows.shape[1]], {part for parts in sizes.values() for part in parts}
        ends, (count, many) = [*accumulate(own, initial=0)], before.shape
        started = [0] if before.any() else []
        groups = {size: [n for n, other in enumerate(own) if other == size] for size in dict.fromkeys(own)}
        ways = list[Iterator[Summed]]()
        for size, parts in groups.items():
            some = [*parts, *(started if size == own[0] else [])]
            begun = np.zeros((len(some), count, many), dtype=before.dtype)
            begun[len(parts) :] = before
            places = np.concatenate([rows[:, ends[n] : ends[n + 1]] for n in some])
            ways.append(inner(places, begun.reshape(-1, many), every))
        for found in zip(*ways, strict=True):
            sums, begun = np.empty((len(own), count, many), dtype=type_of(self.model.c)), before
            for parts, (_, numbers) in zip(groups.values(), found, strict=True):
                each = numbers.reshape(-1, count, many)
                sums[parts] = each[: len(parts)]
                if len(each) > len(parts):
                    begun = each[-1]
            for join in joins:
                levels = Level(partition, join), *found[0][0]
                if isinstance(join, Add):
                    yield levels, in_order([begun if started else sums[0], *sums[1:]], join.order)
                else:
                    first = [before.view(sums.dtype)] if started else []
                    yield levels, in_order([*first, *sums], "sequential")

    def _sizes(self, partition: Partition, count: int) -> Sequence[int]:
        """The numbers of products in the parts of `count` products."""
        if isinstance(partition, Equal):
            return partition.sizes(count, Parted(partition, Add(self.how), Chain(self.model)))
        assert isinstance(partition, Runs)
        return [min(partition.every, count - start) for start in range(0, count, partition.every)]


class TreeSums(Trees):
    """Sums of the first few elements of a sample, as of `DealtSums`, in trees around a unit of one product."""

    def __init__(self, model: Model, form: Form, sample: Sample, evaluate: Evaluate) -> None:
        super().__init__(model, form, _few(sample), evaluate)
        self._whole = sample
        self._takes = self._takes and model.length == 1

    def stages(self, form: Form, sample: Sample) -> Iterator[tuple[Parted, Matrix]]:
        for stage, _ in super().stages(form, _few(sample)):
            plan = form.sum_of(stage)
            if plan is not None and (results := self._evaluate(plan, self._whole)) is not None:
                yield stage, form.ended(results, sample.c)

    def _ways(self, whole: Places) -> Iterator[Summed]:
        """Trees of pairs; then those over the products of each block, or over the lanes of a warp that takes the block
        in turn, or blocks added in order: the sums of blocks are added in order or in pairs; then trees over lanes."""
        yield from self.pairs(whole, self._start)
        blocks = [size for size in BLOCKS if size < self.length]
        joins = Promote(self.how), Add(self.how, "pairwise")
        for whole_blocks in (True, False):
            for size in blocks:
                ways = [size] if whole_blocks else ([1] if size <= WARP else [WARP, 1])
                yield from self.within(Runs(size), joins, whole, self._start, {self.length}, partial(self._block, ways))
        yield from self.trees(whole, self._start, {self.length})

    def _block(self, ways: Sequence[int], rows: Places, before: Matrix, lengths: Collection[int]) -> Iterator[Summed]:
        if max(lengths) in ways:
            yield from self.pairs(rows, before)
        for lanes in ways:
            if lanes > 1:
                yield from self.over(rows, before, lanes)
            else:
                yield (), self.sums_after(rows, before)


def _few(sample: Sample) -> Sample:
    return Sample(*(side[:FEW] for side in (sample.a, sample.b, sample.c, sample.d)))


def _trees(lanes: int) -> Iterator[Sequence[Fold]]:
    """Folds of a power of two of lanes: in halves, in pairs of neighbours, first in halves and then in pairs; or in
    halves of each warp, and the sums of warps in halves or in order."""
    yield from dict.fromkeys((halved(lanes), paired(lanes), *([(Fold(lanes, 1),)] if lanes <= WARP else [])))
    for count in range(1, len(halved(lanes)) - 1) if lanes <= VECTOR else ():
        yield (*halved(lanes)[:count], *paired(lanes >> count))
    if lanes > WARP:
        yield from dict.fromkeys((*halved(WARP), *rest) for rest in (halved(lanes // WARP), (Fold(lanes // WARP, 1),)))


def _halved(leaves: Sequence[Numbers]) -> Numbers:
    """The sum of some numbers, halved until single ones are left; the first half is the larger."""
    half = (len(leaves) + 1) // 2
    total: Numbers = leaves[0] if len(leaves) == 1 else _halved(leaves[:half]) + _halved(leaves[half:])
    return total
