"""The sums of K in trees of pairs: of blocks of products, and of lanes that take products in turn, as the threads of a
warp or of a block add what they have.

Every lane is summed as a product of its own, and the lanes are added in all trees by NumPy, for a few elements. The
sums only choose candidates: each candidate is then held against results as a plan of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import product

import numpy as np

from mmaprobe.queries.plans.dealt_sums import (
    DealtSums,
    Evaluate,
    Numbers,
    agreeing,
    ended,
    in_folds,
    in_order,
    starts_of,
)
from mmaprobe.queries.plans.forms import Form
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.unit_stages import halved, paired
from mmaprobe.smtmodel.algorithms.reductions import WARP
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import type_of
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold
from mmaprobe.smtmodel.plans.joins import Add
from mmaprobe.smtmodel.plans.named import in_halves, in_vectors, promoted
from mmaprobe.smtmodel.plans.partitions import Runs
from mmaprobe.smtmodel.plans.stages import Parted

BLOCKS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)  # products of a block
LANES = (*product((4, 8, 16), (1,)), *product((32, 64, 128, 256, 512, 1024), (1, 2, 4, 8)))
"""numbers of lanes of vectors, and of threads, with the products that each of them takes in a turn"""
VECTOR = 16  # lanes of the longest vector of a processor; some are halved first, and then added in pairs of neighbours
FEW = 4  # elements whose sums are formed

Made = tuple[Callable[[], Parted], Numbers]


class TreeSums(DealtSums):
    """Sums of the first few elements of a sample, as of `DealtSums`, in trees around a unit of one product."""

    def __init__(self, model: Model, form: Form, sample: Sample, evaluate: Evaluate) -> None:
        few = _few(sample)
        super().__init__(model, form, few, evaluate)
        a, b = np.pad(few.a, ((0, 0), (0, 0), (0, 1))), np.pad(few.b, ((0, 0), (0, 1), (0, 0)))
        self._whole, self._sample = sample, replace(few, a=a, b=b)  # with a product of zeros at the end
        self._start = starts_of(form, model, few)

    def stages(self, form: Form, sample: Sample) -> Iterator[tuple[Parted, Matrix]]:
        trees, sums = self.trees
        few = _few(sample)
        for place in agreeing(form, ended(form, self.model, sums, few.c.ravel()), few) if trees else ():
            stage = trees[place]()
            plan = form.sum_of(stage)
            if plan is not None and (results := self._evaluate(plan, self._whole)) is not None:
                yield stage, form.ended(results, sample.c)

    @cached_property
    def trees(self) -> tuple[list[Callable[[], Parted]], Numbers]:
        """Every tree, which is made when it is wanted, and the sums (trees x elements)."""
        every = list[Made]()
        with suppress(ParameterError), np.errstate(all="ignore"):
            if self._takes and self.model.length == 1:
                every = [*self._of_blocks(), *self._of_lanes()]
        return [made for made, _ in every], np.array([sums for _, sums in every])

    def _of_lanes(self) -> Iterator[Made]:
        """Trees over lanes that take all of K in turn."""
        chain, how = Chain(self.model), Rounding(self.model.c)
        for ways, grain in LANES:
            if ways * grain < (2 * self.length if grain == 1 else self.length):  # else it is a tree over blocks
                lanes, _ = self._lanes(self.length + -self.length % (ways * grain), ways, grain)
                for folds in _trees(ways):
                    yield partial(in_vectors, chain, how, (ways, *folds), grain=grain), in_folds(lanes, folds)[0]

    def _of_blocks(self) -> Iterator[Made]:
        """Trees over the products of each block, or over the lanes of a warp that takes the block in turn, or blocks
        added in order; the sums of blocks are added in order or in pairs. A block that is not full is added as if it
        were, with zeros, or is halved by itself."""
        chain, how = Chain(self.model), Rounding(self.model.c)
        pairs, halves = Parted(Runs(1), Add(how, "pairwise"), chain), in_halves(1, chain, how)
        leaves, ends = (one[: self.length, 0] for one in self._lanes(1, 1))
        yield lambda: pairs, in_order([*leaves], "pairwise")
        yield lambda: halves, _halved(leaves)
        blocks = [size for size in BLOCKS if size < self.length]
        every = [(size, lanes) for size in blocks for lanes in (size, WARP, 1) if lanes == size or lanes < size]
        for size, lanes in sorted(every, key=lambda one: one[0] != one[1]):
            begun, own = self._lanes(size, lanes)
            left = self.length % size
            for folds in _trees(lanes):
                sums = in_folds(own, folds)
                if lanes == size and folds == paired(size):
                    last = _halved(ends[-left:])[None] if left else sums[-1:]
                    yield partial(promoted, size, halves, how), self._in_order(np.append(sums[:-1], last, axis=0))
                    if left:
                        yield partial(promoted, size, pairs, how), self._in_order(sums)
                    continue
                tree = in_vectors(chain, how, (lanes, *folds)) if lanes > 1 else chain
                yield partial(promoted, size, tree, how), self._in_order(sums)
                in_pairs = partial(Parted, Runs(size), Add(how, "pairwise"), tree)
                yield in_pairs, in_order([*in_folds(begun, folds)], "pairwise")

    def _in_order(self, sums: Numbers) -> Numbers:
        """The sum of some sums, one after another, from the start of the whole."""
        start = self._start.view(type_of(self.model.c))
        total: Numbers = np.add.accumulate(np.append(start[None], sums, axis=0))[-1]
        return total

    def _lanes(self, size: int, ways: int, grain: int = 1) -> tuple[Numbers, Numbers]:
        """The sums (blocks x lanes x elements) of `ways` lanes that take `grain` products of a block of `size` products
        in turn: where the first one begins with the start of the whole sum, and where it begins with +0."""
        places = np.arange(self.length + -self.length % size).reshape(-1, size // (ways * grain), ways, grain)
        rows = np.minimum(places, self.length).swapaxes(1, 2).reshape(-1, size // ways)
        zeros = np.zeros((len(rows), len(self._start)), dtype=self._start.dtype)
        lanes = self._after(rows, zeros).reshape(-1, ways, len(self._start))
        started = lanes.copy()
        if self._start.any():
            started[0, :1] = self._after(rows[:1], self._start[None])
        return started, lanes


def _few(sample: Sample) -> Sample:
    return Sample(*(side[:FEW] for side in (sample.a, sample.b, sample.c, sample.d)))


def _trees(lanes: int) -> Iterator[Sequence[Fold]]:
    """Folds of a power of two of lanes: in halves, in pairs of neighbours, first in halves and then in pairs; or in
    halves of each warp, and the sums of warps in halves or in order."""
    yield from dict.fromkeys((halved(lanes), paired(lanes)))
    for count in range(1, len(halved(lanes)) - 1) if lanes <= VECTOR else ():
        yield (*halved(lanes)[:count], *paired(lanes >> count))
    if lanes > WARP:
        yield from dict.fromkeys((*halved(WARP), *rest) for rest in (halved(lanes // WARP), (Fold(lanes // WARP, 1),)))


def _halved(leaves: Numbers) -> Numbers:
    """The sum of some numbers (numbers x elements), halved until single ones are left; the first half is the larger."""
    half = (len(leaves) + 1) // 2
    total: Numbers = leaves[0] if len(leaves) == 1 else _halved(leaves[:half]) + _halved(leaves[half:])
    return total
