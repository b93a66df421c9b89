"""A software model as a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runner.protocol import Device, Source, check_fit
from smtmodel.batch import evaluate_rows
from smtmodel.dot import Model
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
