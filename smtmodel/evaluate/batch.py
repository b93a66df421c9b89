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
CHUNK = 4096  # vectors evaluated at a time, so that the lanes of a stage fit the processor's cache
ONE_BY_ONE = 2  # the most vectors that are evaluated faster one by one, as integers, than together


def evaluate_lanes(
    model: Model,
    a: Patterns,
    b: Patterns,
    c: Patterns,
    *rest: Patterns,
    memo: Memo | None = None,
    traced: bool = True,
) -> Evaluation:
    """The evaluation of several vectors at once, with all signals if `traced`. Shapes: `a` and `b` (vectors, products),
    `c` (vectors,), each further operand in `rest` (vectors, the operand's elements). `memo` as of
    `mmaprobe.smtmodel.evaluate.model.evaluate`."""
    with np.errstate(over="ignore"):
        return evaluate(model, *_operands(model, a, b, c, *rest), memo=memo, traced=traced)


def _operands(model: Model, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> tuple[Any, ...]:
    """The operands as arguments of `evaluate`."""

    def columns(table: Patterns, fmt: Format | None) -> list[Bits]:
        return [] if fmt is None else [lanes(table[:, k], fmt.width) for k in range(table.shape[1])]

    further = (columns(side, model.formats.get(row.name)) for row, side in zip(FURTHER, rest, strict=False))
    return columns(a, model.a), columns(b, model.b), lanes(c, model.c.width), *further


def lanes(patterns: Patterns, width: int) -> Bits:
    """One element of all vectors, from patterns of shape (vectors,); for a single vector a constant, which the algebra
    folds."""
    if len(patterns) == 1:
        return constant(ARRAYS, int(patterns[0]), width)
    return ARRAYS.lanes(np.ascontiguousarray(patterns), width)


def evaluate_batch(model: Model, a: Any, b: Any, c: Any, *rest: Any) -> Patterns:
    """The result patterns, shape (vectors,), for inputs as of `evaluate_lanes`. Raises ValueError if the shapes do not
    fit the model."""
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
    """The results of several models of one signature, shape (models, vectors), on rows of shape (vectors, columns of
    their layout). Values that several models compute alike are computed once."""
    out = np.empty((len(models), len(table)), dtype=np.uint64)
    for start in range(0, len(table), CHUNK):
        part = table[start : start + CHUNK]
        operands = _operands(models[0], *sides_of(models[0], part))
        memo: Memo = {}
        with np.errstate(over="ignore"):
            for index, model in enumerate(models):
                results = evaluate(model, *operands, memo=memo, traced=False).d
                out[index, start : start + len(part)] = to_integers(results, len(part))
    return out


class Shared:
    """Results of several models on rows of one layout, of shape (vectors, columns). Each model is evaluated once, and
    each value that several models compute alike is computed once. For a model with more products than the layout, the
    missing products and their scale factors are zero."""

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
    """The arguments of `evaluate_batch` from rows of shape (vectors, columns of the layout)."""
    return _without_empty(_split_columns(table, model.counts))


def _split_columns(table: Patterns, counts: Sequence[int]) -> tuple[Patterns, ...]:
    *ends, columns = accumulate(counts)
    a, b, c, *rest = np.split(table[:, :columns], ends, axis=1)
    return a, b, c[:, 0], *rest


def _without_empty(sides: tuple[Patterns, ...]) -> tuple[Patterns, ...]:
    """The operands without empty ones at the end, which the model does not have."""
    last = max([3, *(place for place, side in enumerate(sides, start=1) if side.ndim > 1 and side.shape[1])])
    return sides[:last]


def to_integers(value: Bits | Bit, count: int) -> Patterns:
    """The lanes of a flag, or of a signal of at most 64 bits, as uint64 of shape (count,)."""
    node = value.node
    return np.broadcast_to(np.asarray(node, dtype=np.uint64), (count,))


def operand_tables(model: Model, rows: Sequence[Operands[int]]) -> tuple[Patterns, ...]:
    """The arguments of `evaluate_batch` from inputs with different numbers of products, with zeros for missing products
    at the end and their scale factors."""
    length = max(len(row.a) for row in rows)

    def table(sides: Iterable[tuple[int, ...]], count: int) -> Patterns:
        return np.array([side + (0,) * (count - len(side)) for side in sides], dtype=np.uint64)

    counts = model.counts[-len(FURTHER) :]
    further = [table((row.rest[k] if k < len(row.rest) else () for row in rows), counts[k])
               for k in range(len(counts)) if any(counts[k:])]  # fmt: skip
    c = np.array([row.c for row in rows], dtype=np.uint64)
    return table((row.a for row in rows), length), table((row.b for row in rows), length), c, *further


def evaluate_rows(model: Model, rows: Sequence[Operands[int]]) -> list[int]:
    """The result patterns of inputs as of `operand_tables`."""
    return [int(pattern) for pattern in evaluate_batch(model, *operand_tables(model, rows))]


def evaluate_row(model: Model, operands: Operands[int]) -> int:
    """The result pattern of one input as of `operand_tables`."""
    return evaluate_rows(model, [operands])[0]
