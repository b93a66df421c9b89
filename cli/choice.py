"""Parameters: one of a few words, a number of seconds, the name of a file, a page to write."""

from __future__ import annotations

import math
from collections.abc import Container
from pathlib import Path
from typing import Any, ClassVar

import click

from mmaprobe.smtmodel.base.digits import LONGEST, is_decimal, is_whole
from mmaprobe.smtmodel.base.errors import nearest
from mmaprobe.smtmodel.base.files import can_be_named


class Choice(click.Choice[str]):
    """One of a few words; for a misspelt word the error suggests the closest match, as click does for options alone."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = nearest(str(value), map(str, self.choices))
            self.fail(error.message + (f" Did you mean {near!r}?" if near else ""), param, ctx)


class RoundingName(Choice):
    """A rounding by its name, or by a short one (`rne`, `rtz`)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from mmaprobe.smtmodel.arithmetic.rounding import mode_named

        return super().convert(mode_named(str(value)), param, ctx)


class _Whole:
    """Accepts whole numbers only, on the command line and in the file of defaults. `unit`: what is counted."""

    unit = ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        kind: Any = super()
        if not (is_whole(value.strip()) if isinstance(value, str) else type(value) is int):
            kind.fail(f"{value!r} is not a whole number{self.unit}: give up to {LONGEST:,} digits, 0 to 9.", param, ctx)
        return kind.convert(value, param, ctx)


class WholeNumber(_Whole, click.IntRange):
    """A whole number in a range, as digits: click also takes 1_0, and true and 2.5 in the file of defaults."""


class Mebibytes(WholeNumber):
    """A size of memory."""

    unit = " of MiB"


class Length(_Whole, click.types.IntParamType):
    """A number of products, whose range depends on what is asked."""


class Millimetres(click.FloatRange):
    """A length of a drawing on paper: a number of millimetres, or one with a unit (8.5cm, 3.3in)."""

    LONGEST = 10_000.0
    UNITS: ClassVar = {"mm": 1.0, "cm": 10.0, "in": 25.4}

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        unit = str(value)[-2:].lower()
        if unit in self.UNITS and _is_number(number := str(value)[:-2]):
            value = round(float(number) * self.UNITS[unit], 6)
        if not _is_number(value):
            self.fail(f"{value!r} is not a number of millimetres, or one with mm, cm or in.", param, ctx)
        if (length := super().convert(value, param, ctx)) > self.LONGEST:
            self.fail(f"{value} mm is wider than any paper: up to {self.LONGEST:,.0f}.", param, ctx)
        return length


def _is_number(value: Any) -> bool:
    """Whether a value of the command line, or of the file of defaults, is a finite number."""
    if isinstance(value, str):
        return is_decimal(value.strip())
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Seconds(click.ParamType[float]):
    """A time in seconds above 0 (or 0 too, with `zero`), up to the longest wait that a clock supports."""

    name = "seconds"
    LONGEST = 1e9  # 30 years

    def __init__(self, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value) if _is_number(value) else math.nan
        except OverflowError:
            seconds = math.nan
        if not (0 < seconds <= self.LONGEST or (self.zero and seconds == 0)):
            least = "from 0" if self.zero else "above 0"
            self.fail(f"{value!r} is not a number of seconds {least} and up to {self.LONGEST:.0e}.", param, ctx)
        return seconds


class FileName(click.Path):
    """The name of a file or folder. An empty name, as an unset variable of a script gives, is refused."""

    def __init__(self, *, path_type: type[Path] | None = Path, **kind: Any) -> None:
        super().__init__(path_type=path_type, **kind)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail(f"a name is missing: '' names no {'file' if self.file_okay else 'folder'}.", param, ctx)
        if not can_be_named(value):
            self.fail(f"{value}: no file can have this name.", param, ctx)
        if param is not None and param.nargs > 1 and str(value).startswith("-") and not Path(value).exists():
            self.fail(f"{value} stands where {param.nargs} names are needed, {param.metavar}.", param, ctx)
        return super().convert(value, param, ctx)


class PageFile(FileName):
    """A file to write, whose suffix must be one of a few and selects the format."""

    def __init__(self, *endings: str) -> None:
        super().__init__(dir_okay=False)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in self.endings and not (path.is_char_device() or path.is_fifo()):  # /dev/stdout
            self.fail(f"{path}: a name that ends in {' or '.join(self.endings)} is needed.", param, ctx)
        return path


class OwnFile(FileName):
    """A file to write in one format, whose name has no suffix of some other formats. `why`: what the error says before
    the ending that is needed."""

    def __init__(self, ending: str, others: Container[str], why: str = "", **kind: Any) -> None:
        super().__init__(**kind)
        self.ending, self.others, self.why = ending, others, why

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name = super().convert(value, param, ctx)
        if (suffix := Path(name).suffix.lower()) in self.others and suffix != self.ending:
            self.fail(f"{name}: {self.why}a name that ends in {self.ending} is needed.", param, ctx)
        return name
