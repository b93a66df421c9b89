"""Inputs that tell models from the units that differ from them in one parameter, to be asked of devices that are
compared with the models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from mmaprobe.queries.compare.asked_rows import row_of
from mmaprobe.queries.covering.cover import SAMPLES, Change, Covering
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout

SOLVER_SECONDS = 60.0  # the most for all changes that no sample shows
UNLIMITED_SECONDS = 5.0  # the same where the search has no limit of its own, so that it may end soon
SHARE = 0.5  # of the time that is left, the most for them
NUMBERS = 400_000  # the most numbers in each kind of samples


class NeighbourRows:
    """Rows of a layout that show changes of models: first those among samples, then those that solvers find. `until`:
    the time after which none is looked for, in seconds of time.monotonic; None without a limit."""

    def __init__(
        self, models: Sequence[Model], layout: Layout, until: float | None, progress: Callable[[str], None]
    ) -> None:
        self.models, self.layout, self.until, self.progress = models, layout, until, progress
        self.coverings: list[Covering] = []

    def sampled(self) -> Iterator[Row]:
        """Rows among samples, and among rows near those."""
        for model in self.models:
            samples = min(SAMPLES, NUMBERS // (2 * model.length + 1))
            covering = Covering(model, False, cases=False, samples=samples)
            self.coverings.append(covering)
            covering.begin(Options(timeout=self._left(), progress=self.progress))
            covering.sample(self.progress)
            yield from self._fitting(covering, 0)

    def solved(self) -> Iterator[Row]:
        """Rows that solvers find for the changes that no sample showed. Raises SolverFaultError."""
        for number, covering in enumerate(self.coverings):
            if not covering.finished().open:
                continue
            left, known = self._left(), len(covering.found.rows)
            seconds = UNLIMITED_SECONDS if left is None else min(SOLVER_SECONDS, SHARE * left)
            seconds /= len(self.coverings) - number
            found = covering.run(Options(timeout=seconds, progress=self.progress))
            if found.interrupted:
                raise KeyboardInterrupt
            yield from self._fitting(covering, known)

    @property
    def open(self) -> list[Change]:
        """The changes that no row shows, and that are not proved to change no result."""
        return [change for covering in self.coverings for change in covering.changes if change in covering.found.open]

    def _fitting(self, covering: Covering, start: int) -> Iterator[Row]:
        """The rows of a covering from one on that fit the layout."""
        for found in covering.found.rows[start:]:
            row = row_of(covering.layout.split(found), self.layout)
            if row is not None:
                yield row

    def _left(self) -> float | None:
        return None if self.until is None else max(0.0, self.until - time.monotonic())
