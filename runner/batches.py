"""Devices that answer vectors in batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from mmaprobe.runner.protocol import Device, DeviceError, ReadAhead, check_fit
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.evaluate.batch import Patterns, operand_tables
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector


class BatchDevice(Device):
    """A device that answers `batch` vectors at a time, and `first` of them at first, then twice as many each time:
    answers that take long are not all waited for. `model`: the model of the device's instruction; vectors of other
    instructions must have the formats of `model`, else `answers` raises InputError."""

    model: Model
    batch: int
    first: int = 1 << 16

    @property
    def addend(self) -> bool:
        return self.model.addend

    @abstractmethod
    def patterns(self, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> Patterns:
        """The result patterns, shape (vectors,): `a` and `b` have shape (vectors, products), `c` (vectors,), each
        further operand (vectors, its elements); missing trailing products are zero. Raises IncompleteError."""

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        source, asked, most = ReadAhead(self._fitting(vectors)), 0, min(self.first, self.batch)
        while batch := self._batch(source, most):
            self.check_time(batch[0], asked + 1)
            try:
                results = self.patterns(*operand_tables(self.model, [vector.operands for vector in batch]))
            except IncompleteError as error:
                raise DeviceError(self.name, str(error), batch[0], asked + 1) from None
            asked, most = asked + len(batch), min(2 * most, self.batch)
            yield from zip(batch, results.tolist(), strict=True)
        source.finish()

    def _fitting(self, vectors: Iterable[Vector]) -> Iterator[Vector]:
        known: Model | None = None
        for vector in vectors:
            check_fit(self.model, vector, known is vector.model)
            known = vector.model
            yield vector

    @staticmethod
    def _batch(source: ReadAhead, most: int) -> list[Vector]:
        batch: list[Vector] = []
        while len(batch) < most and (vector := source.next()) is not None:
            batch.append(vector)
        return batch
