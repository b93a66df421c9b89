"""A growing file of a device's answers: no answer is lost, and an interrupted run can continue."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from mmaprobe.queries.compare.steady import AGAIN, Answered, ContradictionError, same_answer, spread
from mmaprobe.runner.protocol import CLOCK, Device, DeviceError, Patience
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, OutputError
from mmaprobe.smtmodel.base.files import cannot_write, is_at, open_claimed
from mmaprobe.smtmodel.base.jsontext import BrokenJsonError, parse_json
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_row, to_hex

REPEATS = 4  # repetitions of a question whose answer differs from the earlier run's


def provenance(device: str) -> dict[str, Any]:
    """The source of answers: the device's name, the program's version, the time."""
    return {"device": device, "mmaprobe": VERSION, "started": datetime.now(UTC).isoformat(timespec="seconds")}


def answered_row(vector: Vector, d: int, source: dict[str, Any], description: dict[str, Any]) -> dict[str, Any]:
    """The JSON object of an answered vector. An earlier observation stays in its provenance."""
    origin = {**source, "description": description}
    if vector.d is not None:
        origin["earlier_d"] = to_hex(vector.d, vector.model.d)
    return replace(vector, d=d).to_json() | {"provenance": origin}


class AnswersFile:
    """Appends answers to a file; each answer reaches the system before the next one is awaited.

    An existing file must come from the same device; `take` gives its answers. Raises InputError for any other file,
    which is left unchanged. Rows that name no instruction are answers of `asked`.
    """

    def __init__(self, path: Path, device: str, asked: Model | None = None) -> None:
        self.path, self._asked = path, asked
        self.source = provenance(device)
        self._known: dict[Hashable, deque[int]] = {}
        self._rows: list[tuple[int, Vector]] = []  # line number and vector of each earlier answer
        self.description: dict[str, Any] | None = None  # the device's, from the earlier answers
        self._cut = 0  # the place to write at: the file's end, or the start of an incomplete last line
        self._newline = b""
        if path.suffix == ".gz":
            raise InputError("answers are written as they come, uncompressed: choose a name without .gz", str(path))
        try:
            self._new = not path.exists()
            self._kept = self._new or path.is_file()  # a pipe or a device file holds no earlier answers
            self._stream = open_claimed(path) if self._kept else path.open("wb", buffering=0)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
        try:
            if self._kept:
                self._load(self._stream.read(), device)
            self._write(self._newline)
        except BaseException:
            self._stream.close()
            raise

    def _load(self, content: bytes, device: str) -> None:
        lines = content.split(b"\n")
        for number, text in enumerate(lines, start=1):
            last = number == len(lines)
            if text.strip():
                try:
                    self._remember(parse_json(text), device, number)
                    self._newline = b"\n" if last else b""
                except (ValueError, MmaprobeError) as error:
                    if last and isinstance(error, BrokenJsonError) and (self._known or _may_begin_answer(text)):
                        return  # the run was ended in the middle of this line
                    message = f"not a file of answers to go on with, choose another: {error}"
                    raise InputError(message, str(self.path), number) from None
            self._cut += len(text) + (not last)

    def _remember(self, row: Any, device: str, line: int) -> None:
        asked = self._asked
        vector = parse_row(row, line, None if asked is None else lambda: asked)
        origin = row.get("provenance")
        if not isinstance(origin, dict) or vector.d is None:
            raise InputError("no `d` with its `provenance`")
        if origin.get("device") != device:
            raise InputError(f"answered by {origin.get('device')}, not by {device}")
        self.description = origin.get("description")
        self._known.setdefault(_key(vector), deque()).append(vector.d)
        self._rows.append((line, vector))

    @property
    def earlier(self) -> int:
        """The number of answers of an earlier run that have not been taken."""
        return sum(map(len, self._known.values()))

    def take(self, vector: Vector) -> int | None:
        """An earlier answer to a vector; each answer is given once; None if none is left."""
        answers = self._known.get(_key(vector))
        return answers.popleft() if answers else None

    def begin_anew(self) -> None:
        """Drop the answers of an earlier run: the file is empty from now on. Raises OutputError."""
        self._known.clear()
        self._rows.clear()
        self.description, self._cut = None, 0
        self._write(b"")

    def recheck(self, device: Device, discriminating: Callable[[Vector], bool]) -> int:
        """Ask a device some of the earlier questions again, half of them from the `discriminating` questions, and
        return the number of repeated answers.

        Raises InputError if an answer now differs from the earlier one, ContradictionError if the answers to one
        question now differ from each other, and DeviceError if the device fails at the first question; if it fails
        later, the next question of the run will show the failure."""
        first = [place for place, (_, vector) in enumerate(self._rows) if discriminating(vector)]
        first = [first[place] for place in spread(len(first), AGAIN // 2)]
        rest = [place for place in range(len(self._rows)) if place not in set(first)]
        chosen = sorted([*first, *(rest[place] for place in spread(len(rest), AGAIN - len(first)))])
        stood_by = 0
        try:
            for place in chosen:
                line, vector = self._rows[place]
                for _, d in device.answers([vector]):
                    if d is not None and vector.d is not None:
                        if not same_answer(vector.model.d, vector.d, d):
                            raise self._changed(device, line, (vector, vector.d), d)
                        stood_by += 1
        except DeviceError:
            if not stood_by:
                raise
        return stood_by

    def _changed(self, device: Device, line: int, earlier: Answered, now: int) -> MmaprobeError:
        """The error for an answer that differs from the file's, after some repetitions of the question."""
        vector, before = earlier
        for _ in range(REPEATS):
            fresh = [d for _, d in device.answers([vector]) if d is not None]
            for again in fresh:
                if not same_answer(vector.model.d, now, again):
                    return ContradictionError(vector, now, again, device.name)
        answers = f"{to_hex(before, vector.model.d)} here, {to_hex(now, vector.model.d)} now"
        message = f"the device has changed: its answer is {answers}; choose another file for its answers"
        return InputError(message, str(self.path), line, "d")

    def append(self, vector: Vector, d: int, description: dict[str, Any]) -> None:
        """Write an answer. Raises InputError if the device is not that of the earlier run."""
        if self.description is not None and _lasting_description(self.description) != _lasting_description(description):
            raise InputError(f"the earlier answers are of {self.description}, now it is {description}", str(self.path))
        self._write(json.dumps(answered_row(vector, d, self.source, description)).encode() + b"\n")

    def _write(self, content: bytes) -> None:
        """Write whole lines at the end. Raises OutputError, after the removal of an incomplete line."""
        try:
            if self._kept:
                self._stream.truncate(self._cut)
                self._stream.seek(self._cut)
            left = memoryview(content)
            while left:
                left = left[self._stream.write(left) or 0 :]
            self._cut += len(content)
        except OSError as error:
            if self._kept:
                with suppress(OSError):
                    self._stream.truncate(self._cut)
            raise cannot_write(error, self.path) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        kept = is_at(self._stream, self.path)
        if self._new and not self._cut and kept:
            self.path.unlink(missing_ok=True)
        self._stream.close()  # another run may write the file from now on
        if not kept and kind is None:
            raise OutputError(f"{self.path}: it was removed or replaced meanwhile, and the answers with it")


class KeptDevice(Device):
    """A device whose answers are kept in a file as they come; questions of an earlier run are answered from the file.
    The code that opened the device closes it. Rows have no ids, since the ids of questions begin anew with every
    search."""

    def __init__(self, device: Device, file: AnswersFile) -> None:
        self.device, self.file, self.name, self.steady = device, file, device.name, device.steady

    @property
    def addend(self) -> bool:
        return self.device.addend

    @property
    def patience(self) -> Patience:  # type: ignore[override]
        """The patience of the device."""
        return self.device.patience

    @property
    def description(self) -> dict[str, Any]:  # type: ignore[override]
        """The device's description; until its first answer, the description in the earlier run's file."""
        return self.device.description or self.file.description or {}

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        every = list(vectors)
        earlier = [self.file.take(replace(vector, id=None)) for vector in every]
        fresh = self.device.answers([vector for vector, d in zip(every, earlier, strict=True) if d is None])
        for vector, known in zip(every, earlier, strict=True):
            if known is not None:
                yield vector, known
                continue
            vector, d = next(fresh)
            if d is not None:
                self.file.append(replace(vector, id=None), d, self.device.description)
            yield vector, d


def _may_begin_answer(text: bytes) -> bool:
    """Whether a text may be the beginning of an answer written by this program."""
    head = b'{"schema": '
    return text.startswith(head) or head.startswith(text)


def _lasting_description(description: dict[str, Any]) -> dict[str, Any]:
    """The part of a device's description that does not change between runs."""
    return {name: value for name, value in description.items() if name != CLOCK}


def _key(vector: Vector) -> Hashable:
    return type(vector.id), vector.id, vector.model.reference, vector.operands
