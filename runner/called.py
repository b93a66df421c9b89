"""A Python function that runs in a process of its own."""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from numpy.typing import NDArray

from mmaprobe.runner import calling
from mmaprobe.runner.calling import AWAITED, pack, unpack
from mmaprobe.runner.process import EndedError, LateError, LineProcess
from mmaprobe.runner.protocol import DeviceUnavailableError, Patience
from mmaprobe.smtmodel.base.errors import InputError, OutOfTimeError, UnknownNameError
from mmaprobe.smtmodel.base.interrupts import held_back

ARGUMENTS = ("a", "b", "c")
LAST_LINES = 25  # the most lines of the function's output that an error shows: faulthandler's report of a crash fits


class CalledError(Exception):
    """A call that failed. `last_words`: the last lines that the function printed."""

    def __init__(self, message: str, last_words: str = "") -> None:
        self.last_words = last_words
        super().__init__(message)


class Called:
    """The function `name` of a Python file, called in a process of its own. `device`: the device's name in errors;
    `timeout`: seconds for a call; `until`: the end of the time for all calls, of time.monotonic. Raises InputError,
    UnknownNameError, DeviceUnavailableError or OutOfTimeError; a call raises CalledError."""

    def __init__(self, file: Path, name: str, device: str, timeout: float, until: float | None = None) -> None:
        self.patience = Patience(timeout, until)
        self._broken, self.orders = "", "CCC"  # the memory orders (C or F) of the arguments
        with held_back:  # no interrupt while the file has a name
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed with the process)
        number = self._file.fileno()
        command = [str(Path(calling.__file__).resolve()), str(number), str(file), name, *sys.path]
        self._process = LineProcess([sys.executable, "-P", *command], (number,), aloud=True)
        self._end = weakref.finalize(self, _end_process, self._process, self._file)
        try:
            about = json.loads(self._line())
        except CalledError as error:
            if self.patience.over:
                raise OutOfTimeError(f"{device}: the time ran out while {file} was being loaded") from None
            words = f"; it printed:\n{error.last_words}" if error.last_words else ""
            raise DeviceUnavailableError(f"{device}: {file} was being loaded: {error}{words}") from None
        if "takes" not in about:
            self.abort()
            self._refuse(about, str(file), name, device)
        #: the function's parameters, where inspect.signature looks for them
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(one, inspect.Parameter.POSITIONAL_ONLY) for one in ARGUMENTS[: about["takes"]]]
        )

    @staticmethod
    def _refuse(about: dict[str, Any], file: str, name: str, device: str) -> NoReturn:
        if "error" in about:
            raise DeviceUnavailableError(f"{device}: {file} fails: {about['error']}")
        if "async" in about:
            raise InputError(f"{name} is an async function: {AWAITED}", file)
        if not about["functions"]:
            raise InputError("defines no function", file)
        raise UnknownNameError(f"function of {file}", name, about["functions"])

    def __call__(self, *arrays: NDArray[Any]) -> NDArray[Any]:
        if self._broken:
            raise CalledError(f"has failed before ({self._broken})")
        self._process.send(pack(arrays, self._file, self.orders))
        answer = json.loads(self._line())
        if isinstance(answer, list):
            return unpack(answer, self._file)[0]
        if "object" in answer:
            raise CalledError(f"it gives a {answer['object']}, not an array of numbers")
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise CalledError(f"{answer['error']} (it was called with arrays of shapes {shapes})")

    def _line(self) -> bytes:
        """The next line that the process writes."""
        try:
            return self._process.line(self.patience.next())
        except EndedError as error:
            self._fail(f"{error}, without an answer")
        except LateError:
            self._fail(self.patience.passed())

    def _fail(self, message: str) -> NoReturn:
        self._process.pump(0)
        words = self._process.last_words(LAST_LINES)
        self.abort()
        self._broken = message
        raise CalledError(message, words)

    def close(self) -> None:
        """End the process. A later call raises CalledError."""
        self._process.close()
        self.abort()

    def abort(self) -> None:
        """End the process at once."""
        self._broken = self._broken or "is closed"
        self._end()


def _end_process(process: LineProcess, file: BinaryIO) -> None:
    process.kill()
    file.close()
