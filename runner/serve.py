"""A device served to a program: vectors on standard input, answers on standard output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.process import CHUNK, widen_pipe
from mmaprobe.runner.protocol import check_fit
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.base.files import STANDARD_INPUT, cannot_write
from mmaprobe.smtmodel.base.jsontext import parse_json
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_row, to_hex


def serve(device: BatchDevice, source: int = 0, sink: int = 1) -> None:
    """Read vectors from the file descriptor `source` and write answers to `sink`, until the input ends or nobody reads
    the answers.

    Vectors that are waiting are answered together; a single vector is answered at once. If a vector names a model, only
    the model's formats are used, which must fit. Raises InputError at the first bad line, or DeviceError, after the
    answers to the lines before it.
    """
    widen_pipe(source)
    try:
        _write(sink, json.dumps({"device": device.description}).encode() + b"\n")
        number = 1
        for lines in _waiting(source):
            _answer(device, lines, number, sink)
            number += len(lines)
    except BrokenPipeError:
        return


def _waiting(source: int) -> Iterator[list[bytes]]:
    """Lists of whole lines, each as soon as there is a whole line, with all whole lines read so far. The last line may
    lack its end."""
    rest: list[bytes] = []
    while chunk := _read(source):
        first, *others = chunk.split(b"\n")
        rest.append(first)
        if others:
            yield [b"".join(rest), *others[:-1]]
            rest = [others[-1]]
    if last := b"".join(rest):
        yield [last]


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", STANDARD_INPUT) from None


def _answer(device: BatchDevice, lines: Sequence[bytes], number: int, sink: int) -> None:
    vectors: list[Vector] = []
    failure: InputError | None = None
    for line, text in enumerate(lines, start=number):
        if not text.strip():
            continue
        try:
            vectors.append(_vector(device.model, text, line))
        except InputError as error:
            failure = error
            break
    if vectors:
        results, fmt = device.answers(vectors), device.model.d
        answers = [json.dumps({"id": vector.id, "d": to_hex(d or 0, fmt)}) + "\n" for vector, d in results]
        _write(sink, "".join(answers).encode())
    if failure is not None:
        raise failure


def _vector(model: Model, text: bytes, line: int) -> Vector:
    try:
        vector = parse_row(parse_json(text), model_of=lambda: model)
        check_fit(model, vector)
        return vector
    except (ValueError, MmaprobeError) as error:
        raise InputError(str(error), STANDARD_INPUT, line) from None


def _write(sink: int, content: bytes) -> None:
    view = memoryview(content)
    try:
        while view:
            view = view[os.write(sink, view) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write(error, "standard output") from None
