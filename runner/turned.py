"""A device that is asked with the signs of some operands turned."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from queries.building.subtracted import Place, turned
from runner.protocol import Device
from smtmodel.signature import Signature
from smtmodel.vectors import Vector


class TurnedDevice(Device):
    """Adds the products, and c, that the device subtracts in `places`."""

    def __init__(self, device: Device, places: frozenset[Place], asked: Signature) -> None:
        self.device, self.places, self.asked = device, places, asked
        self.name, self.description, self.steady = device.name, device.description, device.steady

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        waiting: deque[Vector] = deque()

        def every() -> Iterator[Vector]:
            for vector in vectors:
                waiting.append(vector)
                yield replace(vector, operands=turned(vector.operands, self.places, self.asked))

        for _, d in self.device.answers(every()):
            yield waiting.popleft(), d
