"""Which plans reproduce two results of one matrix product."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from queries.compare.gemm import Element, Matrices
from queries.compare.steady import same_answer
from queries.plans.candidates import Candidates, Sample
from queries.plans.scalars import scalars_of
from smtmodel.dot import Model
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.nodes import Round
from smtmodel.nodes.node import walk
from smtmodel.plans import Chain, Plan
from smtmodel.signature import Signature
from smtmodel.tiles import Matrix, kind_of
from smtmodel.unit_table import units

SECONDS = 60.0  # of trying plans, at most


@dataclass(frozen=True)
class Given:
    """The plans that reproduce a result in every element compared, and how many plans were `tried`; `complete`: whether
    none was left out for lack of time."""

    plans: tuple[Plan, ...]
    tried: int
    complete: bool


def plans_of_results(
    model: Model, matrices: Matrices, elements: Sequence[Element], report: Callable[[str], None]
) -> tuple[Given, Given]:
    """For each of the two results D in `matrices`: the plans with the formats of `model` that reproduce it at all
    `elements`. What ships, every instruction of the table and what libraries usually do are tried, until both results
    have a plan; `report` is called with the progress."""
    trial = _Trial(model, matrices, elements, report)
    candidates, length = trial.candidates, trial.asked.length
    trial.look(candidates.table())
    trial.look_beside()
    for usual in (candidates.usual, candidates.unusual):
        if trial.wanting:
            trial.look(usual(length))
    for plan in trial.chains():
        trial.look_around(plan)
        trial.look_beside()
    for plan in trial.chains():
        trial.look(candidates.like(plan).uneven(plan.models[0], length))
    for side in (0, 1) if trial.wanting else ():
        trial.look_scaled(side)
    return trial.given(0), trial.given(1)


class _Trial:
    """Plans that are held against two results at the elements compared, each once; `found`: those that reproduce each
    of the two."""

    def __init__(
        self, model: Model, matrices: Matrices, elements: Sequence[Element], report: Callable[[str], None]
    ) -> None:
        rows, columns = [element.row for element in elements], [element.column for element in elements]
        a, b = matrices.a[rows][:, None], matrices.b[:, columns].T[:, :, None]
        c = np.zeros((len(elements), 1, 1), dtype=kind_of(model.c))
        if matrices.c is not None:
            c[:, 0, 0] = matrices.c[rows, columns]
        self.asked = Signature(model.a, model.b, model.c, model.d, matrices.a.shape[1], matrices.c is not None)
        self.candidates = Candidates(self.asked)
        self.found: tuple[list[Plan], list[Plan]] = [], []
        self._sample = Sample(a, b, c, c)
        self._d = [matrices.d[side][rows, columns] for side in (0, 1)]
        self._report = report
        self._until = time.monotonic() + SECONDS
        self._complete = True
        self._tried: set[Plan] = set()
        self._surrounded: set[Plan] = set()
        self._first: dict[bytes, Plan] = {}  # with each result
        self._known: dict[object, Matrix | None] = {}  # by `_arithmetic`: many instructions have the same expression

    @property
    def wanting(self) -> bool:
        """Whether one of the results has no plan."""
        return not all(self.found)

    def given(self, side: int) -> Given:
        return Given(tuple(self.found[side]), len(self._tried), self._complete)

    def look(self, plans: Iterable[Plan]) -> None:
        for plan in plans:
            if time.monotonic() > self._until:
                self._complete = False
                break
            if plan in self._tried:
                continue
            self._tried.add(plan)
            self._report(f"trying {plan.reference}")
            key = _arithmetic(plan)
            if key not in self._known:
                self._known[key] = self.candidates.results(plan, self._sample)
            if (results := self._known[key]) is None:
                continue
            self._first.setdefault(results.tobytes(), plan)
            for found, d in zip(self.found, self._d, strict=True):
                pairs = zip(results.ravel().tolist(), d.tolist(), strict=True)
                if all(same_answer(self.asked.d, one, other) for one, other in pairs):
                    found.append(plan)

    def look_around(self, plan: Plan) -> None:
        """K cut in the usual ways for a plan's instruction."""
        self.candidates.compiled.update(plan.models)
        self.look(self.candidates.like(plan).cuts(plan.models[0], self.asked.length))

    def look_beside(self) -> None:
        """K cut in every way for the instruction of a result that is known: the other is likely of the same."""
        for plan in [side[0] for side in self.found if side]:
            if plan in self._surrounded:
                continue
            self._surrounded.add(plan)
            if self.wanting:
                self.look_around(plan)
            if self.wanting:
                self.look(self.candidates.like(plan).uneven(plan.models[0], self.asked.length))

    def look_scaled(self, side: int) -> None:
        """Products times alpha and addends times beta, as a result without a plan shows them."""
        scalars = None if self.found[side] else scalars_of(self.asked, self._sample, self._d[side])
        if scalars is None:
            return
        scaled = Candidates(self.asked, None, None, scalars)
        self.look(scaled.chains([*units(), *INSTRUCTIONS]))
        if not self.found[side]:
            for plan in list(self._first.values()):
                if is_chain(plan):
                    self.look(scaled.cuts(plan.models[0], self.asked.length))

    def chains(self) -> Iterator[Plan]:
        """The first chain with each result so far, while a result has no plan."""
        for plan in list(self._first.values()):
            if is_chain(plan) and self.wanting:
                yield plan


def _arithmetic(plan: Plan) -> object:
    """A key that is equal for plans that differ in the names of their instructions alone."""
    text = plan.reference
    for model in plan.models:
        text = text.replace(model.reference, model.c.name)
    rounded = tuple(node.rounding for node in walk(plan.result) if isinstance(node, Round))
    return text, rounded, plan.convert_a, plan.convert_b, tuple((model.unit.result, model.d) for model in plan.models)


def is_chain(plan: Plan) -> bool:
    """Whether a plan only takes K in tiles of instructions, without a tail."""
    return all(isinstance(products.stage, Chain) and products.stage.tail is None for products in plan.sums)
