"""Steps that sums of numbers take outside a unit, element by element: conversions, sums to nearest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Rounding, Target
from mmaprobe.smtmodel.carriers.algebra import Bits


def converted(pattern: Bits, source: Format, fmt: Format, rounding: Rounding = "nearest_even") -> Bits:
    """A number of one format in another format; in the same format its pattern does not change. Beyond the range IEEE
    754 decides: infinity when rounding to nearest, the largest finite number toward zero."""
    return pattern if source.name == fmt.name else ieee.convert(pattern, source, Target(fmt, rounding))


@cache
def adder(fmt: Format) -> Callable[[Bits, Bits], Bits]:
    """The IEEE sum of two numbers of a format, rounded to nearest even."""
    return partial(ieee.add, fmt=fmt)
