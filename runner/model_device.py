"""A software model as a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from runner.protocol import Device, Source, check_fit
from smtmodel.batch import evaluate_batch
from smtmodel.dot import Model
from smtmodel.operands import Operands
from smtmodel.reference import parse_reference
from smtmodel.vectors import Vector

BATCH = 4096  # vectors evaluated together


class ModelDevice(Device):
    """Answers what a model computes. The vectors' own models do not count, but their formats must fit (InputError)."""

    def __init__(self, reference: str) -> None:
        self.model = parse_reference(reference)
        self.name = f"model:{self.model.reference}"
        self.description = describe(self.model)

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        source = Source(self._fitting(vectors))
        while batch := self._batch(source):
            yield from zip(batch, evaluate_rows(self.model, [vector.operands for vector in batch]), strict=True)
        source.finish()

    def _fitting(self, vectors: Iterable[Vector]) -> Iterator[Vector]:
        for vector in vectors:
            check_fit(self.model, vector)
            yield vector

    def _batch(self, source: Source) -> list[Vector]:
        batch: list[Vector] = []
        while len(batch) < BATCH and (vector := source.next()) is not None:
            batch.append(vector)
        return batch


def describe(model: Model) -> dict[str, str]:
    """What a model says of itself as a device."""
    return {"name": f"software model {model.reference}", "model": model.reference}


def evaluate_rows(model: Model, rows: Sequence[Operands[int]]) -> list[int]:
    """The result patterns of inputs of any lengths; missing trailing products, and their scale factors, are zero."""
    length = max(len(row.a) for row in rows)

    def table(sides: Iterable[tuple[int, ...]], width: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
        return np.array([side + (0,) * (width - len(side)) for side in sides], dtype=np.uint64)

    a, b = table((row.a for row in rows), length), table((row.b for row in rows), length)
    c = np.array([row.c for row in rows], dtype=np.uint64)
    scales = [table(sides, model.scales) for sides in zip(*((r.scale_a, r.scale_b) for r in rows), strict=True)]
    return [int(pattern) for pattern in evaluate_batch(model, a, b, c, *(scales if model.scales else []))]
