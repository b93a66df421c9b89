"""Which plans reproduce a result of one matrix product."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from queries.plans.candidates import Candidates, Sample
from smtmodel.errors import ParameterError
from smtmodel.plans import Plan
from smtmodel.signature import Signature
from smtmodel.tiles import Matrix, kind_of

SIDE, MANY = 12, 96  # rows, and columns, that are recomputed, and for plans that reproduce those


@dataclass(frozen=True)
class Fitting:
    """The plans that reproduce all elements compared (`looked`: how many), and how many plans were `tried`; `best`: the
    plan that reproduces the most elements, and `most`: how many."""

    plans: tuple[Plan, ...]
    tried: int
    looked: int
    best: Plan | None
    most: int


def plans_of_product(
    asked: Signature, a: Matrix, b: Matrix, c: Matrix | None, d: Matrix, report: Callable[[str], None], seconds: float
) -> Fitting:
    """The plans that reproduce D: what ships, what libraries usually do, and every instruction of the table are tried
    for `seconds`, and for at most a quarter of that time after one was found. Raises ParameterError for matrices whose
    shapes do not fit together."""
    shape = (a.shape[0], b.shape[1]) if a.ndim == b.ndim == 2 else ()
    if not shape or a.shape[1] != b.shape[0] or d.shape != shape or (c is not None and c.shape != shape):
        others = f", C {c.shape}" if c is not None else ""
        raise ParameterError("A and B", f"shapes {a.shape} and {b.shape} do not give D {d.shape}{others}")
    candidates = Candidates(asked)

    def looked(side: int) -> Sample:
        rows, columns = (np.unique(np.linspace(0, own - 1, min(own, side)).astype(int)) for own in shape)
        at = np.ix_(rows, columns)
        addend = np.zeros((len(rows), len(columns)), dtype=kind_of(asked.c)) if c is None else c[at]
        return Sample(a[None, rows], b[None, :, columns], addend[None], d[at][None])

    sample = looked(SIDE)
    found: list[Plan] = []
    best, most, tried, start = None, 0, 0, time.monotonic()
    every = chain(candidates.usual(asked.length), candidates.unusual(asked.length))
    for plan in dict.fromkeys(every):
        if time.monotonic() > start + seconds:
            break
        report(f"trying {plan.reference}")
        tried += 1
        if (results := candidates.results(plan, sample)) is None:
            continue
        agree = results.size - candidates.differing(results, sample)
        if agree == results.size:
            found.append(plan)
            seconds = min(seconds, time.monotonic() - start + seconds / 4)
        if agree > most:
            best, most = plan, agree
    if found:
        sample = looked(MANY)
        agree_of = {plan: _agreeing(candidates, plan, sample) for plan in found}
        best, most = max(agree_of.items(), key=lambda item: item[1])
        found = [plan for plan in found if agree_of[plan] == sample.d.size]
    return Fitting(tuple(found), tried, sample.d.size, best, most)


def _agreeing(candidates: Candidates, plan: Plan, sample: Sample) -> int:
    results = candidates.results(plan, sample)
    return 0 if results is None else results.size - candidates.differing(results, sample)
