"""Evaluation of many vectors at once on the array carrier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smtmodel.algebra import Bit, Bits
from smtmodel.carriers.arrays import ArrayCarrier
from smtmodel.dot import Evaluation, Model, evaluate

Patterns = NDArray[np.uint64]
CHUNK = 4096  # vectors at a time: the lanes of a stage stay in the processor's cache

_CARRIER = ArrayCarrier()


def evaluate_lanes(model: Model, a: Patterns, b: Patterns, c: Patterns) -> Evaluation:
    """One evaluation with all signals: `a` and `b` have shape (vectors, products), `c` (vectors,)."""
    lanes = _CARRIER.lanes
    left = [lanes(a[:, k], model.a.width) for k in range(a.shape[1])]
    right = [lanes(b[:, k], model.b.width) for k in range(b.shape[1])]
    with np.errstate(over="ignore"):
        return evaluate(model, left, right, lanes(c, model.c.width))


def evaluate_batch(model: Model, a: Any, b: Any, c: Any) -> Patterns:
    """The result patterns, shape (vectors,), of inputs as in `evaluate_lanes`; any number of vectors."""
    a, b, c = (np.asarray(side, dtype=np.uint64) for side in (a, b, c))
    if a.ndim != 2 or a.shape != b.shape or a.shape[1] > model.length or c.shape != a.shape[:1]:
        raise ValueError(f"shapes {a.shape}, {b.shape}, {c.shape} do not fit {model.length} products")
    out = np.empty(len(c), dtype=np.uint64)
    for start in range(0, len(c), CHUNK):
        part = slice(start, start + CHUNK)
        left, right = np.ascontiguousarray(a[part].T).T, np.ascontiguousarray(b[part].T).T
        out[part] = to_integers(evaluate_lanes(model, left, right, c[part]).d, len(c[part]))
    return out


def to_integers(value: Bits | Bit, count: int) -> Patterns:
    """The lanes of a narrow signal or a flag as uint64, shape (count,)."""
    node = value.node
    return np.broadcast_to(np.asarray(node, dtype=np.uint64), (count,))
