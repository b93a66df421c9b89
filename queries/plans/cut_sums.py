"""The sums of K cut at a few places, for all ways of cutting it at once.

Every run of neighbouring tiles is summed once; what a way of cutting gives is the sum of two to four of these, by
additions of NumPy's. This only chooses candidates: each is then held against results as a plan of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.plans.forms import Form
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, nans, to_numbers
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.nodes import Element, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Plan, Products
from mmaprobe.smtmodel.plans.joins import Order
from mmaprobe.smtmodel.plans.named import in_runs_at
from mmaprobe.smtmodel.plans.stages import Parted

TILES = (16, 32, 64, 128)  # products of K, at whose multiples it is cut
MOST = 64  # of these tiles in K, for one or two cuts
FEWER = 32  # the same, for three cuts
ADDED = ("f16", "f32", "f64")  # formats in which NumPy adds, each addition rounded to nearest even
FIRST = 2  # results by which most ways of cutting are told apart

Numbers = NDArray[np.floating]
Evaluate = Callable[[Plan, Sample], Matrix | None]


class CutSums:
    """Sums of a sample's elements (products of one row and one column) by a unit, of inputs converted and begun as in a
    form. `evaluate`: the results of a plan for a sample."""

    def __init__(self, model: Model, form: Form, sample: Sample, evaluate: Evaluate) -> None:
        self.model, self.how, length = model, Rounding(model.c), sample.a.shape[2]
        fitting = [tile for tile in TILES if tile % model.length == 0 and 1 < -(-length // tile) <= MOST]
        self.tile = fitting[0] if fitting else 0
        self.count = -(-length // self.tile) if fitting else 0
        self._table: dict[tuple[int, int], Numbers] = {}  # of the tiles from one up to another
        takes = model.addend and model.c.name in ADDED and form.format == model.c
        if takes and fitting and not self._filled(form, sample, evaluate):
            self._table.clear()

    def _filled(self, form: Form, sample: Sample, evaluate: Evaluate) -> bool:
        """Sum every run of tiles: one tile more at a time, for all places where a run may begin."""
        asked, model = form.asked, self.model
        total = Products(Chain(model), Element("c"))
        result = total if model.d == model.c else Round(total, self.how)
        plan = Plan(asked.a, asked.b, model.c, result, form.convert, form.convert)
        many, last = len(sample.d), sample.a.shape[2] - (self.count - 1) * self.tile
        sums = np.zeros((self.count, many, 1, 1), dtype=f"u{model.c.width // 8}")
        if form.start == Element("c"):
            sums[0] = from_numbers(to_numbers(np.ascontiguousarray(sample.c), asked.c), model.c, "nearest_even")
        for more in range(self.count):
            for places in (range(more, self.count - 1), range(self.count - 1, self.count)):
                if len(places):
                    size = self.tile if places.stop < self.count else last
                    own = slice(places.start - more, places.stop - more)
                    found = evaluate(plan, self._part(sample, places, size, sums[own]))
                    if found is None:
                        return False
                    sums[own] = found.reshape(len(places), many, 1, 1)
            sums = sums[: self.count - more]
            for first, one in enumerate(sums):
                self._table[first, first + more + 1] = one.ravel().view(f"f{model.c.width // 8}")
            sums = sums.copy()
        return True

    def _part(self, sample: Sample, tiles: range, size: int, c: Matrix) -> Sample:
        """The products of some tiles, each a product of its own, with what is summed before."""
        spans = [slice(tile * self.tile, tile * self.tile + size) for tile in tiles]
        a = np.concatenate([sample.a[:, :, span] for span in spans])
        b = np.concatenate([sample.b[:, span] for span in spans])
        return replace(sample, a=a, b=b, c=c.reshape(-1, 1, 1), d=c.reshape(-1, 1, 1))

    def stages(self, form: Form, sample: Sample) -> Iterator[tuple[Parted, Matrix]]:
        """The stages whose results, of a form that begins so, are those of the sample, with these results."""
        number = ~nans(sample.d, form.asked.d).ravel()  # all NaNs are equal
        for at, orders in self._ways():
            for order in orders:
                sums = self._added(at, order)
                left = np.arange(len(at))
                for some in (slice(FIRST), slice(FIRST, None)):
                    given = self._ended(form, sums[left][:, some], sample.c.ravel()[some])
                    left = left[((given == sample.d.ravel()[some]) | ~number[some]).all(axis=1)]
                for way in left:
                    places = tuple(int(tile) * self.tile for tile in at[way])
                    given = self._ended(form, sums[way], sample.c.ravel())
                    yield in_runs_at(places, Chain(self.model), self.how, order), given.reshape(sample.d.shape)

    @staticmethod
    def _ended(form: Form, sums: Numbers, c: Matrix) -> Matrix:
        """The results of a form for sums (ways x elements)."""
        own = np.ascontiguousarray(sums)
        return form.ended(own.view(f"u{own.itemsize}"), np.ascontiguousarray(np.broadcast_to(c, own.shape)))

    def _ways(self) -> Iterator[tuple[NDArray[np.int64], tuple[Order, ...]]]:
        """Tiles at which K is cut, and the orders in which its runs are added: those of one cut, of two, of three."""
        if self._table:
            places = range(1, self.count)
            yield np.array([*combinations(places, 1)]), ("sequential",)
            if self.count > 2:
                yield np.array([*combinations(places, 2)]), ("sequential", "backwards")
            step = next(size for size in (1, 2, 4) if self.count <= size * FEWER)
            if len(places[step - 1 :: step]) > 2:
                orders: tuple[Order, ...] = ("sequential", "backwards", "pairwise")
                yield np.array([*combinations(places[step - 1 :: step], 3)]), orders

    def _added(self, at: NDArray[np.int64], order: Order) -> Numbers:
        """The sums (ways x elements) of K cut at some tiles (ways x cuts)."""
        ends = np.concatenate([np.zeros_like(at[:, :1]), at, np.full_like(at[:, :1], self.count)], axis=1)
        runs = [np.stack([self._table[first, last] for first, last in zip(ends[:, n], ends[:, n + 1], strict=True)])
                for n in range(ends.shape[1] - 1)]  # fmt: skip
        with np.errstate(all="ignore"):
            if order == "pairwise" and len(runs) == 4:
                runs = [runs[0] + runs[1], runs[2] + runs[3]]
            total, *others = runs[::-1] if order == "backwards" else runs
            for other in others:
                total = total + other
        return total
