"""A device that reads and writes lines of hexadecimal words, such as a test bench of five lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mmaprobe.runner.command import CommandDevice, Question, shown
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.operands import padded
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex

GRACE = 0.2  # seconds to wait for a surplus answer after the first vectors, before it seems to answer another vector


class PlainDevice(CommandDevice):
    """A program that gets one line for each vector: the elements of the operands in the order of `OPERANDS` (a, b, c,
    scale_a, scale_b), each with all hexadecimal digits of its format, zeros for missing products, and c only if the
    vector's unit reads it. The answer is one word with all hexadecimal digits of its format. Since lines have no ids,
    an answer given twice shows as an answer left over."""

    kind = "plain"
    _last: Question | None = None  # the last question answered

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        self._check_rest(0)
        first = self._last is None
        yield from super().answers(vectors)
        self._check_rest(GRACE if first else 0)

    def _line(self, question: Question) -> str:
        model = question.vector.model
        sides = padded(question.vector.operands, model).sides
        operands = [(fmt, sides[name]) for name, fmt in model.formats.items() if name != "c" or model.addend]
        return " ".join(to_hex(pattern, fmt) for fmt, side in operands for pattern in side)

    def _result(self, line: bytes, question: Question) -> int:
        self._last, words = question, line.decode("utf-8", "backslashreplace").split()
        if len(words) != 1:
            raise self._failure(f"an answer of {counted(len(words), 'word')}, not one: {shown(line)}", question)
        return self._hexadecimal(words[0], question)

    def _check_rest(self, seconds: float) -> None:
        """Wait up to `seconds` for lines that answer no question. Raises DeviceError if there are any."""
        if self._last is None or self._broken:
            return
        self._process.pump(seconds)
        if rest := [line for line in self._process.lines if line.strip()]:
            raise self._failure(f"more answers than vectors: {shown(rest[0])}", self._last)
