"""The interface of devices, which answer vectors with result patterns, and their errors."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, MmaprobeError, ParameterError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex
from mmaprobe.smtmodel.operand import FACTORS, NAMED

DEFAULT_TIMEOUT = 60.0  # seconds for one answer
LEAST = 0.01  # seconds that a program gets at least
CLOCK = "sm_clock_mhz"  # the part of a device's description that changes from moment to moment


class DeviceError(IncompleteError):
    """A failure of a device. `vector`: the vector on which the device failed; `number`: the vector's position among
    those asked, from 1. Earlier answers have been returned. `last_words`: the end of the device's standard error."""

    def __init__(self, device: str, message: str, vector: Vector, number: int, last_words: str = "") -> None:
        self.device, self.vector, self.number, self.last_words = device, vector, number, last_words
        name = "" if vector.id is None else f" (id {vector.id!r})"
        words = f"; its standard error ends:\n{last_words}" if last_words else ""
        super().__init__(f"{device}: {message}, on vector {number}{name}{words}")


class DeviceUnavailableError(MmaprobeError):
    """A device that cannot be used here. The message says what is missing."""


@dataclass
class Patience:
    """The time limits of a device: `timeout` seconds for each answer, and `deadline` (in seconds of time.monotonic;
    None: no limit) for all answers."""

    timeout: float = DEFAULT_TIMEOUT
    deadline: float | None = None

    def next(self) -> float:
        """The deadline of the next answer, in seconds of time.monotonic."""
        late = time.monotonic() + self.timeout
        return late if self.deadline is None else min(late, self.deadline)

    def left(self) -> float:
        """The seconds until the deadline of the next answer, at least LEAST."""
        return max(LEAST, self.next() - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the time for all answers is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def passed(self) -> str:
        """The reason why an answer is missing after its deadline, in words."""
        return "the time ran out before its answer" if self.over else f"no answer within {self.timeout:g} s"


class Device(ABC):
    """A unit that answers vectors. A `with` block closes the device at its end.

    `name`: the name on the command line; `patience`: the time limits; `description`: what the device reports of itself
    (name, driver, ...), complete after the first answer; `steady`: the device always gives the same answer to a vector,
    so it need not be asked twice; `scaled`: the device takes scale factors; `shape`: the rows and columns of the
    products that a function of matrices is asked; `model`: the model of the device's instruction, None if the device
    does not name its instruction; `is_design`: the device is a design in Verilog, which `prove` reads.
    """

    name: str
    description: dict[str, Any]
    steady: bool = False
    scaled: bool = True
    shape: tuple[int, int] | None = None
    model: Model | None = None
    is_design: bool = False
    patience: Patience = Patience()

    def check_time(self, vector: Vector, number: int) -> None:
        """Raises DeviceError if the time for all answers is over before the `number`-th vector is asked."""
        if self.patience.over:
            raise DeviceError(self.name, self.patience.passed(), vector, number)

    @property
    def addend(self) -> bool:
        """Whether the device takes c. If not, every vector must have +0 as c."""
        return True

    @abstractmethod
    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        """Every vector with its result pattern, in order; the pattern is None where the device has no answer but can
        answer further vectors.

        Vectors are read ahead of the answers: a vector that depends on an earlier answer is asked in a call of its own.
        An error in reading `vectors` is raised after the answers to all vectors before it. Raises DeviceError.
        """

    def every(self, vectors: Iterable[Vector]) -> list[int | None]:
        """The result patterns of `answers`, without the vectors. Raises the errors of `answers`."""
        return [d for _, d in self.answers(vectors)]

    def again(self, vectors: Sequence[Vector]) -> list[int | None]:
        """The results of vectors that are asked once more; None for each vector of a steady device, which is not asked.
        Raises the errors of `answers`."""
        return [None] * len(vectors) if self.steady else self.every(vectors)

    def close(self) -> None:  # noqa: B027 (most devices hold nothing)
        """Release everything that the device holds. Further calls do nothing."""

    def abort(self) -> None:
        """Release everything that the device holds, without waiting."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class ReadAhead:
    """An iterable that is read ahead of its use. An error of the iterable is kept until `finish`, so that earlier
    vectors are dealt with first."""

    def __init__(self, vectors: Iterable[Vector]) -> None:
        self._vectors: Iterator[Vector] | None = iter(vectors)
        self._error: Exception | None = None

    def next(self) -> Vector | None:
        """The next vector; None at the end or after an error."""
        if self._vectors is None:
            return None
        try:
            return next(self._vectors)
        except StopIteration:
            self._vectors = None
        except Exception as error:
            self._vectors, self._error = None, error
        return None

    def finish(self) -> None:
        """Raise the error that was kept, if there is one."""
        if self._error is not None:
            raise self._error


def check_fit(model: Model, vector: Vector, known: bool = False) -> None:
    """Raises InputError if a vector does not fit a model: for other formats, more products or scale factors, or an
    addend that the model does not read. `known`: its formats were checked with an earlier vector."""
    asked, line = vector.model, vector.line or None
    name, own = model.reference or "the device", asked.reference or "those asked for"
    if not known and (asked.reference != model.reference or not asked.reference):
        if asked.formats != model.formats:
            taken, given = (" ".join(fmt.name for fmt in (one.a, one.b, one.c)) for one in (model, asked))
            other = next(row for name, row in NAMED.items() if asked.formats.get(name) != model.formats.get(name))
            which = f" ({taken}, not {given})" if taken != given else f" for {other.called}"
            raise InputError(f"{name} takes other formats than {own}{which}", line=line)
        if asked.d.width != model.d.width:
            raise InputError(f"{name} gives results of {model.d.width} bits, {own} of {asked.d.width}", line=line)
    operands = vector.operands
    sides = operands.sides if operands.rest else {}
    count, scales = len(operands.a), max(len(sides.get(row.name, ())) for row in FACTORS)
    if count > model.length:
        raise InputError(f"{name} takes {counted(model.length, 'product')}, not {count}", line=line)
    if scales > model.scales:
        raise InputError(f"{name} takes {counted(model.scales, 'scale factor')}", line=line)
    if operands.c and not model.addend:
        raise unread(vector, name)


def check_asked(device: Device, asked: Model) -> Device:
    """Returns the device. Raises ParameterError if questions of the signature `asked` have an addend or scale factors
    that the device does not take."""
    if asked.addend and not device.addend:
        if asked.reference:
            raise ParameterError("--device", f"{device.name} takes no addend, and {asked.reference} reads one")
        raise ParameterError("--formats", f"{device.name} takes no addend: give three formats, a,b,d")
    if asked.scale is not None and not device.scaled:
        wanted = f"and {asked.reference} needs them" if asked.reference else "leave out --scale"
        raise ParameterError("--device", f"{device.name} takes no scale factors: {wanted}")
    return device


def without_c(device: Device, asked: Model) -> str:
    """A message for a function that takes c while the formats asked leave c out; else an empty text."""
    if asked.addend or not device.addend or device.shape is None:
        return ""
    return f"{device.name} takes c: it is zero wherever a, b, d are the formats; give four, a,b,c,d, to ask with it"


def unread(vector: Vector, device: str, file: str | None = None) -> InputError:
    """The error for a vector with an addend, for a device that takes none. `file`: the vector's file."""
    message = f"c: {device} takes no addend: write {to_hex(0, vector.model.c)}, which is +0"
    return InputError(message, file, vector.line or None)
