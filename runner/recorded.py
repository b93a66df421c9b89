"""A file of observed results as a device that answers the vectors of the file."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mmaprobe.runner.protocol import Device
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import unpadded
from mmaprobe.smtmodel.inputs.vectors import Vector, lines_of, open_text, read_vectors, to_hex


class RecordedDevice(Device):
    """A device that answers from a vector file: a vector's answer is in the row with the same instruction, formats and
    operands.

    `file` may end in @GPU; then only rows whose `gpu` is GPU are read. `vectors`: the vectors with an answer. The
    parameters in a row's model reference are ignored, since they are hypotheses about the instruction. Rows that name
    no instruction are answers for the signature `asked`. Raises InputError, also for rows that contradict each other.
    """

    steady = True

    def __init__(self, file: str, asked: Model | None = None) -> None:
        self.name = f"recorded:{file}"
        self.vectors: list[Vector] = []
        self._known: dict[Hashable, Vector] = {}
        gpu = ""
        if not os.path.exists(file) and "@" in file:
            file, _, gpu = file.rpartition("@")
            if not gpu:
                raise InputError("after @ stands a GPU, the `gpu` of rows", self.name)
        with open_text(Path(file)) as stream:
            for vector in read_vectors(lines_of(stream, file), file, None if asked is None else lambda: asked, gpu):
                if vector.d is not None:
                    self._take(vector, file)
        if not self.vectors:
            raise InputError(f"no row has an observed result `d`{f' of {gpu}' if gpu else ''}", file)
        devices = sorted({str(vector.extra["gpu"]) for vector in self.vectors if vector.extra.get("gpu")})
        self.description = {"name": " and ".join(devices) or self.name, "file": file}

    def _take(self, vector: Vector, file: str) -> None:
        earlier = self._known.setdefault(_key(vector), vector)
        if earlier.d != vector.d:
            seen = [f"{to_hex(row.d or 0, row.model.d)}{_where(row)}" for row in (earlier, vector)]
            message = f"the device contradicts itself: line {earlier.line} has {seen[0]} for this input, here it is"
            raise InputError(f"{message} {seen[1]}", file, vector.line, "d")
        if earlier is vector:
            self.vectors.append(vector)

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        for vector in vectors:
            known = self._known.get(_key(vector))
            yield self.with_own_keys(vector), None if known is None else known.d

    def with_own_keys(self, vector: Vector) -> Vector:
        """A vector with the user's own keys of its recorded row (`Vector.own_keys`)."""
        known = self._known.get(_key(vector))
        own = {} if known is None else known.own_keys
        return replace(vector, extra=own | vector.extra) if own else vector


def _where(vector: Vector) -> str:
    return f" ({vector.extra['gpu']})" if vector.extra.get("gpu") else ""


def _key(vector: Vector) -> Hashable:
    """A key that is equal for the same input of the same instruction, whatever zero products stand at its end."""
    model, parts = vector.model, unpadded(vector.operands)
    formats = (model.d.name, *((name, fmt.name) for name, fmt in model.formats.items()))
    instruction = model.instruction
    return instruction, formats, parts
