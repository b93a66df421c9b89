"""Evaluation of many vectors at once on the array carrier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model, evaluate
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.operand import FURTHER
from mmaprobe.smtmodel.units.unit import Memo

Patterns = NDArray[np.uint64]
CHUNK = 4096  # vectors at a time, so that the lanes of a stage stay in the processor's cache
SHARED_CHUNK = 4096  # vectors at a time for several models: each of their many operations has a cost of its own
ONE_BY_ONE = 2  # vectors, at most, that are evaluated faster one by one, as integers, than together


def evaluate_lanes(
    model: Model,
    a: Patterns,
    b: Patterns,
    c: Patterns,
    *rest: Patterns,
    memo: Memo | None = None,
    traced: bool = True,
) -> Evaluation:
    """One evaluation, with all signals if `traced`: `a` and `b` have shape (vectors, products), `c` (vectors,), and
    each further operand of `rest` (vectors, its elements); `memo` as in `mmaprobe.smtmodel.evaluate.model.evaluate`."""
    with np.errstate(over="ignore"):
        return evaluate(model, *_operands(model, a, b, c, *rest), memo=memo, traced=traced)


def _operands(model: Model, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> tuple[Any, ...]:
    """The arguments of `evaluate`."""

    def columns(table: Patterns, fmt: Format | None) -> list[Bits]:
        return [] if fmt is None else [lanes(table[:, k], fmt.width) for k in range(table.shape[1])]

    further = (columns(side, model.formats.get(row.name)) for row, side in zip(FURTHER, rest, strict=False))
    return columns(a, model.a), columns(b, model.b), lanes(c, model.c.width), *further


def lanes(patterns: Patterns, width: int) -> Bits:
    """One element of all vectors, shape (vectors,); for a single vector a constant, which the algebra folds."""
    if len(patterns) == 1:
        return constant(ARRAYS, int(patterns[0]), width)
    return ARRAYS.lanes(np.ascontiguousarray(patterns), width)


def evaluate_batch(model: Model, a: Any, b: Any, c: Any, *rest: Any) -> Patterns:
    """The result patterns, shape (vectors,), for inputs as in `evaluate_lanes` of any number of vectors."""
    a, b, c, *further = (np.asarray(side, dtype=np.uint64) for side in (a, b, c, *rest))
    if a.ndim != 2 or a.shape != b.shape or a.shape[1] > model.length or c.shape != a.shape[:1]:
        raise ValueError(f"shapes {a.shape}, {b.shape}, {c.shape} do not fit {model.length} products")
    out = np.empty(len(c), dtype=np.uint64)
    size = CHUNK if len(c) > ONE_BY_ONE else 1
    for start in range(0, len(c), size):
        part = slice(start, start + size)
        evaluation = evaluate_lanes(model, *(side[part] for side in (a, b, c, *further)), traced=False)
        out[part] = to_integers(evaluation.d, len(c[part]))
    return out


def evaluate_models(models: Sequence[Model], table: Patterns) -> Patterns:
    """The results of several models of one signature, shape (models, vectors), on flat rows of shape (vectors, columns
    of their layout); values that several models compute alike are computed once."""
    out = np.empty((len(models), len(table)), dtype=np.uint64)
    for start in range(0, len(table), SHARED_CHUNK):
        part = table[start : start + SHARED_CHUNK]
        operands = _operands(models[0], *sides_of(models[0], part))
        memo: Memo = {}
        with np.errstate(over="ignore"):
            for index, model in enumerate(models):
                results = evaluate(model, *operands, memo=memo, traced=False).d
                out[index, start : start + len(part)] = to_integers(results, len(part))
    return out


class Shared:
    """Several models on flat rows of one layout, shape (vectors, columns): each model, and each value that several
    models compute alike, is computed once. A model of more products than the layout takes zeros for the missing
    products and their scale factors."""

    def __init__(self, table: Patterns, layout: Layout) -> None:
        self.table = table
        self._counts = layout.counts
        self._memo: Memo = {}
        self._known: dict[Model, Patterns] = {}

    def of(self, model: Model) -> Patterns:
        """The results of a model, shape (vectors,)."""
        if model not in self._known:
            a, b, c, *rest = _split_columns(self.table, self._counts)
            wanted = zip(rest, model.counts[-len(FURTHER) :], strict=True)
            further = [np.pad(side, ((0, 0), (0, count - side.shape[1]))) for side, count in wanted]
            evaluation = evaluate_lanes(model, a, b, c, *further, memo=self._memo, traced=False)
            self._known[model] = to_integers(evaluation.d, len(self.table))
        return self._known[model]


def sides_of(model: Model, table: Patterns) -> tuple[Patterns, ...]:
    """The inputs of `evaluate_batch` from flat rows, shape (vectors, columns of the layout)."""
    return _without_empty(_split_columns(table, model.counts))


def _split_columns(table: Patterns, counts: Sequence[int]) -> tuple[Patterns, ...]:
    *ends, columns = accumulate(counts)
    a, b, c, *rest = np.split(table[:, :columns], ends, axis=1)
    return a, b, c[:, 0], *rest


def _without_empty(sides: tuple[Patterns, ...]) -> tuple[Patterns, ...]:
    """The operands without trailing empty ones, which the model does not have."""
    last = max([3, *(place for place, side in enumerate(sides, start=1) if side.ndim > 1 and side.shape[1])])
    return sides[:last]


def to_integers(value: Bits | Bit, count: int) -> Patterns:
    """The lanes of a narrow signal or a flag as uint64, shape (count,)."""
    node = value.node
    return np.broadcast_to(np.asarray(node, dtype=np.uint64), (count,))


def operand_tables(model: Model, rows: Sequence[Operands[int]]) -> tuple[Patterns, ...]:
    """The inputs of `evaluate_batch` from operands of any lengths, with zeros for missing trailing products and their
    scale factors."""
    length = max(len(row.a) for row in rows)

    def table(sides: Iterable[tuple[int, ...]], count: int) -> Patterns:
        return np.array([side + (0,) * (count - len(side)) for side in sides], dtype=np.uint64)

    counts = model.counts[-len(FURTHER) :]
    further = [table((row.rest[k] if k < len(row.rest) else () for row in rows), counts[k])
               for k in range(len(counts)) if any(counts[k:])]  # fmt: skip
    c = np.array([row.c for row in rows], dtype=np.uint64)
    return table((row.a for row in rows), length), table((row.b for row in rows), length), c, *further


def evaluate_rows(model: Model, rows: Sequence[Operands[int]]) -> list[int]:
    """The result patterns of inputs of any lengths, as in `operand_tables`."""
    return [int(pattern) for pattern in evaluate_batch(model, *operand_tables(model, rows))]


def evaluate_row(model: Model, operands: Operands[int]) -> int:
    """The result pattern of one input, as in `operand_tables`."""
    return evaluate_rows(model, [operands])[0]
