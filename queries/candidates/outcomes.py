"""The results of every candidate of a family on a pool of vectors, simulated once and shared by all questions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.search.samples import Table, sample_rows
from mmaprobe.queries.search.specials import of_both_signs
from mmaprobe.queries.solvers.children import die_with, safe_imports, without_interrupts
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.base.interrupts import held_back, settle
from mmaprobe.smtmodel.base.progress import Count
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import without_payload
from mmaprobe.smtmodel.evaluate.operands import Layout, layout_of

Results = NDArray[np.uint64]
PART = 64  # candidates that a process simulates at a time
ALONE = 96  # with fewer candidates, one process is faster than two
SEED = 1  # the seed of a pool's vectors
FIRST = 1000  # vectors simulated before the deadline is checked; fewer vectors take hardly less time


def pool_rows(layout: Layout, count: int, seed: int = SEED) -> Table:
    """Vectors that distinguish candidates: shaped and random vectors, and small cases of zero, overflow and
    cancellation with either sign."""
    return np.concatenate([_corner_rows(layout), sample_rows(layout, count, seed)])


def _corner_rows(layout: Layout) -> Table:
    """Rows with zeros of both signs, sums that cancel, the largest and the smallest numbers, in the first products."""
    products, formats = layout.length, layout.formats
    a, b, c = layout.a, layout.b, layout.c
    rows = []
    for x in _corner_values(a):
        for y in (b.one, b.largest, 1 << b.padding, b.one | b.sign_bit):
            for z in _corner_values(c):
                row = [0] * len(formats)
                row[0], row[products], row[2 * products] = x, y, z
                for index in range(2 * products + 1, len(formats)):
                    row[index] = formats[index].one
                rows.append(row)
                for alike in {products // 2, products} - {0, 1}:  # several equal products
                    rows.append([*[x] * alike, *[0] * (products - alike), *[y] * products, *row[2 * products :]])
    return np.array(rows, dtype=np.uint64)


def _corner_values(fmt: Format) -> list[int]:
    return of_both_signs([0, fmt.one, fmt.largest, 1 << fmt.padding, fmt.infinity], fmt)


def results_of(models: Sequence[Model], table: Table) -> Results:
    """The results of models on a table; NaNs are one pattern."""
    return without_payload(evaluate_models(models, table), models[0].d)


@contextmanager
def _simulator(models: Sequence[Model], processes: int | None = None) -> Iterator[Callable[[Table], Iterator[Results]]]:
    """A block with a function that simulates models on a table, PART models at a time, in one process or several."""
    parts = [models[start : start + PART] for start in range(0, len(models), PART)]
    processes = processes or min(os.cpu_count() or 1, len(parts))
    if len(models) < ALONE or processes == 1:
        yield lambda table: (results_of(part, table) for part in parts)
        return
    with safe_imports(), held_back:  # the executor's locks start a process that tracks them
        executor = ProcessPoolExecutor(processes, get_context("spawn"), die_with, (os.getpid(),))

    def simulated(table: Table) -> Iterator[Results]:
        with safe_imports(), without_interrupts(), held_back:  # submit starts the processes
            futures = [executor.submit(results_of, part, table) for part in parts]
        return map(_result_of, futures)

    try:
        yield simulated
    except BaseException:
        for process in list(executor._processes.values()):  # from Python 3.14 on, kill_workers does this
            process.kill()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _result_of(future: Future[Results]) -> Results:
    settle(future)
    return future.result()


def simulate(
    models: Sequence[Model],
    table: Table,
    processes: int | None = None,
    progress: Callable[[str], None] | None = None,
    deadline: float | None = None,
) -> Results:
    """The results of every model (rows) on every vector (columns); NaNs are one pattern. Raises IncompleteError after
    the deadline (of time.monotonic)."""
    with _simulator(models, processes) as simulated:
        return _gathered(simulated(table), len(models), progress, deadline)


def _gathered(
    parts: Iterable[Results], count: int, progress: Callable[[str], None] | None, deadline: float | None = None
) -> Results:
    results: list[Results] = []
    for part in parts:
        results.append(part)
        done = min(len(results) * PART, count)
        if done < count:
            _check_time(deadline, done, count, part.shape[1])
        if progress is not None:
            progress(Count(done, count, "candidates simulated"))
    return np.concatenate(results)


def _check_time(deadline: float | None, done: int, count: int, vectors: int) -> None:
    """Raises IncompleteError after the deadline (of time.monotonic)."""
    if deadline is not None and time.monotonic() > deadline:
        on = counted(vectors, "vector")
        raise IncompleteError(f"time ran out when {done} of {count} candidates were simulated on {on}")


@dataclass
class Outcomes:
    """A pool of vectors (`table`, a row each) and the results of every candidate on them (candidates x vectors)."""

    candidates: list[Model]
    table: Table
    results: Results
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        self.layout = layout_of(self.candidates[0])

    @classmethod
    def of(
        cls,
        models: list[Model],
        table: Table,
        progress: Callable[[str], None] | None = None,
        deadline: float | None = None,
    ) -> Outcomes:
        """The candidates simulated on a pool. Raises the errors of `simulate`."""
        return cls(models, table, simulate(models, table, progress=progress, deadline=deadline))

    @classmethod
    def until(
        cls,
        models: list[Model],
        table: Table,
        deadline: float | None,
        progress: Callable[[str], None],
        latest: float | None = None,
    ) -> tuple[Outcomes, bool]:
        """The candidates simulated on a pool, and whether there was an interrupt. At the `deadline` (of time.monotonic)
        or an interrupt, the outcomes are those of the vectors finished so far, evenly spread over the pool. The first
        FIRST vectors have time until `latest`. Raises IncompleteError, or KeyboardInterrupt, if no vector is
        finished."""
        order = np.random.default_rng(len(table)).permutation(len(table))
        parts: list[Results] = []
        interrupted = False
        _check_time(latest or deadline, 0, len(models), min(FIRST, len(table)))  # checked before processes are started
        with _simulator(models) as simulated:
            try:
                for part in np.split(order, [FIRST] if len(table) > FIRST else []):
                    limit = deadline if parts else latest or deadline
                    parts.append(_gathered(simulated(table[part]), len(models), progress, limit))
            except (IncompleteError, KeyboardInterrupt) as end:
                if not parts:
                    raise
                interrupted = isinstance(end, KeyboardInterrupt)
        results = np.concatenate(parts, axis=1)
        order = order[: results.shape[1]]
        return cls(models, table[np.sort(order)], results[:, np.argsort(order)]), interrupted

    def narrowed(self, members: Sequence[int]) -> Outcomes:
        """The outcomes of some of the candidates on the same vectors."""
        return Outcomes([self.candidates[index] for index in members], self.table, self.results[list(members)])

    def extend(self, rows: Table, members: Sequence[int] | None = None, deadline: float | None = None) -> None:
        """Add vectors to the pool. If `members` is given, only these candidates are simulated; the others get results
        of 0. Raises the errors of `simulate`."""
        chosen = list(range(len(self.candidates)) if members is None else members)
        more = np.zeros((len(self.candidates), len(rows)), dtype=np.uint64)
        more[chosen] = simulate([self.candidates[index] for index in chosen], rows, deadline=deadline)
        self.table = np.concatenate([self.table, rows])
        self.results = np.concatenate([self.results, more], axis=1)

    def classes(self, members: Sequence[int]) -> list[list[int]]:
        """The members grouped by their results on the whole pool, in the order of their first members."""
        by_results: dict[bytes, list[int]] = {}
        for index in members:
            by_results.setdefault(self.results[index].tobytes(), []).append(index)
        return list(by_results.values())

    def best_question(self, representatives: Sequence[int], allowed: NDArray[np.bool_] | None = None) -> int | None:
        """The vector whose answer leaves the fewest classes on average; None if no vector distinguishes two classes.

        Of equally good vectors, the one with the fewest nonzero operands is taken: it is the easiest to read.
        """
        results = self.results[list(representatives)]
        ordered = np.sort(results, axis=0)
        starts = np.ones_like(ordered, dtype=bool)
        starts[1:] = ordered[1:] != ordered[:-1]
        left = np.empty(ordered.shape[1])
        for column in range(ordered.shape[1]):
            edges = np.flatnonzero(starts[:, column])
            sizes = np.diff(np.append(edges, len(ordered)))
            left[column] = float((sizes.astype(float) ** 2).sum())
        worst = float(len(results)) ** 2
        left = np.where(left < worst, left, np.inf)
        if allowed is not None:
            left = np.where(allowed, left, np.inf)
        if not np.isfinite(left.min()):
            return None
        return self.easiest(np.flatnonzero(left <= left.min() * 1.02))

    def easiest(self, columns: NDArray[np.int64]) -> int:
        """Of some vectors, the one with the fewest nonzero operands."""
        return int(columns[np.argmin((self.table[columns] != 0).sum(axis=1))])


def distinct_counts(rows: NDArray[Any]) -> NDArray[np.int64]:
    """The number of different values in each row."""
    ordered = np.sort(np.ascontiguousarray(rows), axis=1)
    return np.asarray(1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1))
