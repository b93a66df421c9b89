"""The errors that a user can cause. Each message says what is wrong; for a wrong name, it has the nearest right
name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from mmaprobe.smtmodel.base.wording import abridged


class MmaprobeError(Exception):
    """The base of all errors that the command line reports without a traceback; `exit_code`: the command's exit code.
    Long names in the text are abridged."""

    exit_code = 2

    def __str__(self) -> str:
        return abridged(super().__str__())


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name nearest to a name, in upper or lower case: near in spelling, or with the name as one of its parts
    (`ada` of ada-lovelace); None if none is near."""
    names, asked = {one.lower(): one for one in known}, name.lower()
    containing = [one for one in names if (len(asked) > 3 and asked in one) or (asked and one.startswith(f"{asked}-"))]
    return next((names[one] for one in [*get_close_matches(asked, names, n=1, cutoff=cutoff), *containing]), None)


class UnknownNameError(MmaprobeError):
    """A name that is not in its table."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name = kind, name
        self.known = sorted(known)
        near = nearest(name, self.known)
        tail = (
            f"; did you mean {near!r}?" if near else f"; known: {', '.join(self.known)}" if len(self.known) < 20 else ""
        )
        super().__init__(f"unknown {kind} {name!r}{tail}{hint}")


class NotModelledError(MmaprobeError):
    """An instruction that hardware has, or that users expect it to have, and that the table lacks on purpose."""


class MissingError(MmaprobeError, ImportError):
    """A package that is not installed, and the command that installs it."""


EXPONENTS = (-4096, 4096)  # limits of a number given as an exponent, or as a distance of two exponents
CARRY_BITS = (0, 16)


class ParameterError(MmaprobeError):
    """A parameter with an impossible value, alone or together with others. `parameter` is its name; without a name, the
    caller adds the name of the argument to `message`."""

    def __init__(self, parameter: str, message: str) -> None:
        self.parameter, self.message = parameter, message
        super().__init__(f"{parameter}: {message}" if parameter else message)


class InexactError(ParameterError):
    """A number that its format does not hold, given where numbers are not rounded."""

    def __init__(self, what: str) -> None:
        self._what = what
        super().__init__("", self.asking("say how to round (convert)"))

    def asking(self, wanted: str) -> str:
        """The message, with advice to the user."""
        return f"{self._what}: {wanted}"


class InputError(MmaprobeError):
    """Bad input in a file; the message starts with file, line and key or field."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None, key: str | None = None) -> None:
        self.file, self.line, self.key = file, line, key
        place = ":".join(str(part) for part in (file, line) if part is not None)
        parts = [part for part in (place, key) if part]
        super().__init__(": ".join([*parts, message]))


class IncompleteError(MmaprobeError):
    """A question that stays unanswered: time or memory ran out, or a device failed."""

    exit_code = 3


class OutOfTimeError(IncompleteError):
    """The time of the current work is over."""


class FaultError(MmaprobeError):
    """A fault of this program or of an engine: results that contradict each other, or an unexpected error. No verdict
    is printed beside the error; its text is for a bug report, and so not abridged."""

    exit_code = 4

    def __str__(self) -> str:
        return Exception.__str__(self)


class OutputError(MmaprobeError):
    """Output that could not be written completely, for example on a full disk. The input was right."""

    exit_code = 4


def check_number(name: str, value: int | None, limits: tuple[int, int]) -> None:
    """Raises ParameterError for a number outside of a parameter's limits. None, for a parameter left open, passes."""
    low, high = limits
    if value is not None and not low <= value <= high:
        raise ParameterError(name, f"{value} is impossible; it takes a whole number from {low} to {high}")
