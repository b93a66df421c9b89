"""A software model as a device."""

from __future__ import annotations

from mmaprobe.runner.batches import BatchDevice
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_batch
from mmaprobe.smtmodel.tables.reference import parse_reference


class ModelDevice(BatchDevice):
    """A device that answers with a model's results. Vectors may name other models with the same formats; other vectors
    raise InputError."""

    batch = 4096
    steady = True

    def __init__(self, reference: str) -> None:
        self.model = parse_reference(reference)
        self.name = f"model:{self.model.reference}"
        self.description = {"name": f"software model {self.model.reference}", "model": self.model.reference}

    def patterns(self, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> Patterns:
        return evaluate_batch(self.model, a, b, c, *rest)
