"""Verdicts are compared with evaluations: a proved statement is tested on inputs, without a solver, before it is
reported.

Equality and properties are compared here, and claims in the files of their kinds (queries/claims). The inputs are not
those that the provers try: they are random inputs that the restrictions admit, with exponents at both ends, products
and addends that cancel, and edges of the formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.admitted_rows import admitted_rows, kept_bits
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.witness import Row, replay
from mmaprobe.smtmodel.base.errors import FaultError
from mmaprobe.smtmodel.evaluate.operands import Layout
from mmaprobe.smtmodel.inputs.vectors import to_hex

ROWS, LEAST = 3072, 256  # inputs for a verdict, and the least for each problem on which the verdict rests
SEED = 20  # not a seed of the provers


def check_problems(problems: Sequence[Problem]) -> None:
    """Raises FaultError if the sides of a problem, all of which were proved equal, differ on an admitted input."""
    for problem in problems:
        rows = _rows(problem, max(LEAST, ROWS // len(problems)))
        replayed = replay(problem, rows)
        for hit in np.flatnonzero(replayed.differs)[:1]:
            pair = zip(problem.sides, (problem.left.d, problem.right.d), (replayed.left, replayed.right), strict=True)
            results = " but ".join(f"{side} = {to_hex(int(patterns[hit]), fmt)}" for side, fmt, patterns in pair)
            raise_contradiction(_statement(problem), row_text(problem.layout, rows[hit]), results)


def _statement(problem: Problem) -> str:
    sides = zip(problem.sides, (problem.left.reference, problem.right.reference), strict=True)
    return " equals ".join(f"{side} of {reference}" for side, reference in sides)


def row_text(layout: Layout, row: Sequence[int]) -> str:
    """The operands that are not +0, in hexadecimal."""
    columns = zip(layout.names, row, layout.formats, strict=True)
    return " ".join(f"{name}={to_hex(pattern, fmt)}" for name, pattern, fmt in columns if pattern) or "zeros alone"


def raise_contradiction(claimed: str, given: str, result: str) -> NoReturn:
    raise FaultError(f"{claimed!r} was proved, but an evaluation contradicts it: {given} gives {result}")


def _rows(problem: Problem, count: int) -> list[Row]:
    layout, cuts = problem.layout, kept_bits(problem.left, problem.right)
    table = [sample_rows(layout, count // 3, SEED), admitted_rows(layout, problem.inputs, count, SEED, cuts)]
    return [tuple(row) for row in np.concatenate(table).tolist()]
