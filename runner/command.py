"""A program that speaks the device protocol: vectors on its standard input, answers on its standard output."""

from __future__ import annotations

import json
import shlex
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mmaprobe.runner.process import EndedError, LateError, LineProcess
from mmaprobe.runner.protocol import Device, DeviceError, DeviceUnavailableError, ReadAhead
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.jsontext import BrokenJsonError, parse_json
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_pattern

WINDOW = 4096  # vectors sent ahead of their answers


@dataclass(frozen=True)
class Question:
    """A vector that was sent. `number`: its position, from 1; `id`: the id under which it was sent."""

    vector: Vector
    number: int
    id: str | int


class CommandDevice(Device):
    """A device that is a program. `kind`: the word before the command line in the device's name. Raises InputError for
    a malformed command line, DeviceUnavailableError if the program cannot be started."""

    kind = "command"

    def __init__(self, command: str) -> None:
        self.name = f"{self.kind}:{command}"
        self.description: dict[str, Any] = {}
        self._asked = 0
        self._ids: set[str | int] = set()
        self._spoken = False
        self._broken = ""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"{self.name}: {error}") from None
        if not words:
            raise InputError(f"{self.kind}: needs a command line after the colon")
        try:
            self._process = LineProcess(words)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise DeviceUnavailableError(f"{self.name}: {words[0]!r} cannot be started: {reason}") from None

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        source = ReadAhead(vectors)
        waiting: deque[Question] = deque()
        try:
            while True:
                while len(waiting) < WINDOW and (vector := source.next()) is not None:
                    waiting.append(self._ask(vector))
                if not waiting:
                    break
                pattern = self._receive(waiting[0], len(waiting))
                yield waiting.popleft().vector, pattern
        finally:
            if waiting and not self._broken:  # the outstanding answers would be taken for answers to later questions
                self._broken = "was abandoned with answers outstanding"
                self._process.kill()
        source.finish()

    def _ask(self, vector: Vector) -> Question:
        self._asked += 1
        name = vector.id
        if name is None or name in self._ids:  # a unique id shows answers given twice or left out
            name = f"mmaprobe-{self._asked}"
        self._ids.add(name)
        question = Question(vector, self._asked, name)
        self._process.send(self._line(question).encode() + b"\n")
        return question

    def _line(self, question: Question) -> str:
        """The line that the program gets for a question."""
        return json.dumps(replace(question.vector, id=question.id, d=None, extra={}).to_json())

    def _receive(self, question: Question, outstanding: int) -> int:
        """The result pattern of the oldest open question. Raises DeviceError."""
        if self._broken:
            raise DeviceError(self.name, self._broken, question.vector, question.number)
        until = self.patience.next()
        try:
            while True:
                line = self._process.line(until)
                if line.strip() and (pattern := self._result(line, question)) is not None:
                    return pattern
        except EndedError as error:
            raise self._failure(f"{error}, without an answer", question) from None
        except LateError:
            hint = "; does it flush each answer?" if question.number == 1 else ""
            message = f"{self.patience.passed()} ({outstanding} outstanding{hint})"
            raise self._failure(message, question) from None

    def _result(self, line: bytes, question: Question) -> int | None:
        """The result pattern in a line; None if the line describes the device. Raises DeviceError for any other
        line."""
        document = self._parse(line, question)
        return None if self._is_header(document) else self._pattern(document, line, question)

    def _parse(self, line: bytes, question: Question) -> dict[str, Any]:
        try:
            document = parse_json(line)
        except BrokenJsonError:
            raise self._failure(f"garbage instead of an answer: {shown(line)}", question) from None
        except ValueError as error:
            raise self._failure(f"garbage instead of an answer ({error}): {shown(line)}", question) from None
        if not isinstance(document, dict):
            raise self._failure(f"an answer that is not a JSON object: {shown(line)}", question)
        return document

    def _is_header(self, document: dict[str, Any]) -> bool:
        first, self._spoken = not self._spoken, True
        if first and "d" not in document and isinstance(document.get("device"), dict):
            self.description = document["device"]
            return True
        return False

    def _pattern(self, document: dict[str, Any], line: bytes, question: Question) -> int:
        answered = document.get("id")
        if "d" not in document:
            raise self._failure(f"an answer without `d`: {shown(line)}", question)
        if type(answered) is not type(question.id) or answered != question.id:
            quoted = json.dumps(answered)[:200]
            raise self._failure(f"the answer has the id {quoted}, expected {json.dumps(question.id)}", question)
        return self._hexadecimal(document["d"], question)

    def _hexadecimal(self, text: Any, question: Question) -> int:
        """The result pattern from its hexadecimal digits. Raises DeviceError."""
        model, fmt = question.vector.model, question.vector.model.d
        if _too_long(text, fmt.digits):
            expected = f"a result of {model.reference or 'the unit'} ({fmt.name}) has {fmt.digits} hexadecimal digits"
            raise self._failure(f"{expected}, found {len(text)}: {text[:80]!r}", question)
        try:
            return parse_pattern(text, fmt, "d")
        except ValueError as error:
            raise self._failure(f"garbage instead of a result: {str(error)[:300]}", question) from None

    def _failure(self, message: str, question: Question) -> DeviceError:
        """The error of a failed question; the program is killed, and the end of its standard error is read."""
        self._process.pump(0)
        words = self._process.last_words()
        self._process.kill()
        self._broken = f"has failed before ({message})"
        return DeviceError(self.name, message, question.vector, question.number, words)

    def close(self) -> None:
        self._broken = self._broken or "is closed"
        self._process.close()

    def abort(self) -> None:
        self._broken = self._broken or "is closed"
        self._process.kill()


def _too_long(text: Any, digits: int) -> bool:
    return isinstance(text, str) and len(text) > digits and all(digit in "0123456789abcdefABCDEF" for digit in text)


def shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").strip()
    return repr(text if len(text) <= 200 else text[:200] + "...")
