"""A small set of vectors that distinguishes every two candidates of a family, and the classes of those proved equal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmaprobe.queries.candidates.classes import Equality, partition_sets
from mmaprobe.queries.candidates.kinds import unique_models
from mmaprobe.queries.candidates.outcomes import Outcomes, distinct_counts, pool_rows
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of

POOL = 5000  # vectors simulated before solvers are asked
EACH = 30.0  # the most seconds for one pair
MOST_IN_32_BITS = 46340  # the largest number whose square is below 2^31


@dataclass
class Separation:
    """`rows` distinguish every two classes; `classes`: models proved equal, with reasons; `unknown`: open pairs."""

    candidates: int
    classes: list[list[Equality]]
    rows: list[Row]
    predictions: list[list[int]]
    unknown: list[tuple[Model, Model]] = field(default_factory=list)
    asked: int = 0
    seconds: float = 0.0
    interrupted: bool = False


def separate(
    candidates: Sequence[Model], options: Options, each: float = EACH, start: float | None = None
) -> Separation:
    """Simulate first, then ask solvers about candidates that simulation does not distinguish. `options.timeout` is for
    the whole, which began at `start` (time.monotonic), half of it for the time until the simulation ends, and `each`
    for one pair, in seconds. At an interrupt the simulated results are kept, and pairs not decided yet are open. Raises
    IncompleteError if the time does not suffice to simulate any vector."""
    start = time.monotonic() if start is None else start
    outcome = Separation(len(candidates), [], [], [])

    def deadline(share: float) -> float | None:
        """When a share of the time is over."""
        if outcome.interrupted:
            return start
        return None if options.timeout is None else start + share * options.timeout

    kinds = unique_models(candidates, options, deadline(1 / 4))
    models = list(kinds)
    table = pool_rows(layout_of(models[0]), POOL)
    outcomes, outcome.interrupted = Outcomes.until(models, table, deadline(1 / 2), options.progress, deadline(1))
    together = outcomes.classes(range(len(models)))
    classes = outcome.classes
    open_ones = [[models[index] for index in indices] for indices in together if len(indices) > 1]
    outcome.asked = len(open_ones)
    alike = counted(outcome.asked, "class")
    options.progress(f"simulation leaves {alike} of several candidates, {sum(map(len, open_ones))} in all")

    def interrupt() -> None:
        outcome.interrupted = True

    partitions = partition_sets(open_ones, replace(options, timeout=each), deadline=deadline(1), interrupt=interrupt)
    rest = iter(partitions)
    witnesses: list[Row] = []
    for indices in together:
        if len(indices) == 1:
            classes.append([Equality(models[indices[0]], "")])
            continue
        partition = next(rest)
        classes += partition.classes
        witnesses += partition.witnesses
        outcome.unknown += partition.unknown
    index_of = {model: index for index, model in enumerate(models)}
    representatives = [index_of[members[0].model] for members in classes]
    if witnesses:
        outcomes.extend(np.array(witnesses, dtype=np.uint64), representatives)
    chosen = smallest_set(outcomes, representatives)
    outcome.rows = [tuple(map(int, outcomes.table[column])) for column in chosen]
    outcome.predictions = [[int(outcomes.results[index, column]) for column in chosen] for index in representatives]
    for members in classes:
        members += [twin for member in list(members) for twin in kinds[member.model]]
    outcome.seconds = time.monotonic() - start
    return outcome


def smallest_set(outcomes: Outcomes, representatives: Sequence[int]) -> list[int]:
    """Vectors that together give every representative its own row of results: greedily, each time the vector that
    splits the representatives into the most parts."""
    results = outcomes.results[list(representatives)]
    codes = np.stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in results.T])
    codes = codes.astype(np.int32 if len(representatives) <= MOST_IN_32_BITS else np.int64)
    part = np.zeros(len(representatives), dtype=codes.dtype)  # the part of each, as long as it shares one
    chosen: list[int] = []
    while len(part) > 1:
        counts = distinct_counts(part * (codes.max() + 1) + codes)  # the number of parts after each vector
        best = int(counts.argmax())
        if counts[best] <= len(np.unique(part)):
            break
        chosen.append(best)
        groups = part * (codes.max() + 1) + codes[best]
        _, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        shared = sizes[inverse] > 1
        part, codes = inverse[shared].astype(codes.dtype), codes[:, shared]
    return chosen


def single(candidates: Sequence[Model], options: Options) -> Separation:
    """The one vector of a pool with the most different outcomes; candidates of one outcome are a class."""
    start = time.monotonic()
    kinds = unique_models(candidates, options)
    models = list(kinds)
    table = pool_rows(layout_of(models[0]), POOL)
    outcomes = Outcomes.of(models, table, options.progress)
    counts = distinct_counts(outcomes.results.T)
    column = outcomes.easiest(np.flatnonzero(counts == counts.max()))
    groups: dict[int, list[Equality]] = {}
    for index, model in enumerate(models):
        group = groups.setdefault(int(outcomes.results[index, column]), [])
        group += [Equality(twin, "the same outcome") for twin in (model, *(twin.model for twin in kinds[model]))]
    row = tuple(map(int, table[column]))
    predictions = [[result] for result in groups]
    seconds = time.monotonic() - start
    return Separation(len(candidates), list(groups.values()), [row], predictions, seconds=seconds)
