"""Steps of sums of numbers outside a unit, element by element: conversions, and sums rounded to nearest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Rounding, Target
from mmaprobe.smtmodel.carriers.algebra import Bits


def converted(pattern: Bits, source: Format, fmt: Format, rounding: Rounding = "nearest_even") -> Bits:
    """A pattern of the format `source` converted to `fmt`; unchanged if both are the same format. Numbers beyond the
    range become, as in IEEE 754, infinity when rounding to nearest, and the largest finite number toward zero."""
    return pattern if source.name == fmt.name else ieee.convert(pattern, source, Target(fmt, rounding))


@cache
def adder(fmt: Format) -> Callable[[Bits, Bits], Bits]:
    """The IEEE sum of two numbers of a format, rounded to nearest even."""
    return partial(ieee.add, fmt=fmt)
