"""Steps that algorithms take outside the unit, element by element: words of a number, scaling, sums to nearest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.ordering import negated
from mmaprobe.smtmodel.arithmetic.rounding import Rounding, Target, round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bits


def converted(pattern: Bits, source: Format, fmt: Format, rounding: Rounding = "nearest_even") -> Bits:
    """A number of one format in another; in its own it stays the pattern that it is. Beyond the range IEEE 754
    decides: infinity when rounding to nearest, the largest finite number toward zero."""
    return pattern if source.name == fmt.name else ieee.convert(pattern, source, Target(fmt, rounding))


@cache
def adder(fmt: Format) -> Callable[[Bits, Bits], Bits]:
    """The IEEE sum of two numbers of a format, rounded to nearest even."""
    return partial(ieee.add, fmt=fmt)


def scaled(pattern: Bits, fmt: Format, exponent: int) -> Bits:
    """The IEEE product with 2^exponent, rounded to nearest even (exact but at the ends of the range)."""
    if not exponent:
        return pattern
    value = unpack(pattern, fmt)
    term = value.term
    unit = term.exponent.offset(exponent - term.fraction)
    finite = round_and_pack(term.sign, term.significand, unit, Target(fmt, "nearest_even"))
    positive, negative = ieee.infinities([(value.is_infinite, value.sign)])
    return ieee.with_specials(finite, value.is_nan, positive, negative, fmt, fmt.nan)


def split(pattern: Bits, source: Format, fmt: Format, rounding: Rounding, words: int, scale: int) -> tuple[Bits, ...]:
    """A number as a sum of `words` numbers of a narrower format, the k-th times 2^(-k * scale).

    Every word is what is left, rounded; what is left after it is their IEEE difference in the source format (exact
    for numbers inside the range of both formats), times 2^scale. So an infinity, or a number that rounds to one, leaves
    a second word that is NaN or infinite, as it does on a GPU.
    """
    found: list[Bits] = []
    rest = pattern
    for k in range(words):
        found.append(converted(rest, source, fmt, rounding))
        if k + 1 < words:
            word = converted(found[-1], fmt, source)
            rest = scaled(ieee.add(rest, negated(word, source), source), source, scale)
    return tuple(found)
