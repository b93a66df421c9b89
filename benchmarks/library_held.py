"""How much of a library's map is true: 200 random shapes that neither its rules nor their check have seen.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.library_held examples/numpy_device.py:matmul f32,f32,f32 [--seconds 90]
        [--shape 128,1]

Prints a row of docs/library-plans.md: plans; right, how many shapes have all elements as the rules say; seconds; and
the others: shapes that are wrong without a word. Of the rest a rule says that it is not relied on, or that no plan is
known there. Time is counted as time of computing.
"""

from __future__ import annotations

import argparse
import resource
import time
from contextlib import suppress
from unittest.mock import patch

import numpy as np

from benchmarks.pages import table_row
from mmaprobe.queries.plans.library import Mapper
from mmaprobe.runner.device_plans import mapper_of
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.inputs.signature import parse_signature

COUNT, SEED = 200, 4242
LENGTH, SHAPE = 2048, "128,128"


def computing() -> float:
    """Seconds of computing so far, of the compiler too."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def held(mapper: Mapper) -> tuple[int, list[str]]:
    """New random shapes held against what was found: how many are right, and those that are wrong."""
    mapper.deadline, mapper.rng = None, np.random.default_rng(SEED)
    right, wrong = 0, []
    for number in range(COUNT):
        shape = mapper.products.random_shape(number)
        at, so = mapper.held(mapper.rules, shape)
        right += bool(so.all())
        if any(mapper.findings.rules[rule].confirmed for rule in at[~so & (at >= 0)]):
            wrong.append(str(shape))
    return right, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function")
    parser.add_argument("formats")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--shape", default=SHAPE, help="the largest M and N: 128,1 for a matrix times a vector")
    given = parser.parse_args()
    with patch("time.monotonic", computing):
        rows, columns = map(int, given.shape.split(","))
        asked = parse_signature(given.formats, LENGTH)
        mapper = mapper_of(f"python:{given.function}", asked, (rows, columns), given.seconds)
        with suppress(IncompleteError):
            mapper.run()
    right, wrong = held(mapper)
    others = f"WRONG: {', '.join(wrong)}" if wrong else ""
    cells = (
        given.function,
        given.formats,
        given.shape,
        len(mapper.findings.plans),
        right,
        f"{given.seconds:g}",
        others,
    )
    print(table_row(*cells))


if __name__ == "__main__":
    main()
