"""The operations of an algorithm, recorded as an expression: operations that two parts share are equal expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.algorithms.forms import Form, tiles_of
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.steps import Pair
from mmaprobe.smtmodel.algorithms.words import adder
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Rounding
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.evaluate.model import Model


@dataclass(frozen=True)
class Words:
    """How a number in the format `given` becomes `count` numbers of the format `into`: converted to `source`, each word
    is the number less the words before it, rounded."""

    given: Format
    source: Format
    into: Format
    rounding: Rounding
    count: int


@dataclass(frozen=True)
class Word:
    """The word with this index, from 0, of every factor of a side."""

    words: Words
    number: int


@dataclass(frozen=True)
class Addend:
    """c."""

    kind: str = "addend"


@dataclass(frozen=True)
class Nothing:
    """+0, where a sum has no addend."""

    kind: str = "nothing"


@dataclass(frozen=True)
class Instruction:
    """The result of a unit for the products of two words, from index `start` to `stop` - 1, and an addend."""

    model: Model
    a: Word
    b: Word
    start: int
    stop: int
    addend: Value
    kind: str = "instruction"


@dataclass(frozen=True)
class Added:
    """The sum of two numbers of a format, rounded to nearest."""

    format: Format
    first: Value
    second: Value
    kind: str = "sum"


Value: TypeAlias = Addend | Nothing | Instruction | Added


class _Recorder(Form[Word, Value]):
    """Sides are words of all factors; a factor itself is the word 0."""

    def __init__(self, part: Part, given: Format, terms: int) -> None:
        self.part, self.given, self.terms = part, given, terms

    def length(self, a: Word) -> int:
        return self.terms

    def words(self, side: Word, fmt: Format, split: Callable[[Bits], tuple[Bits, ...]]) -> tuple[Word, ...]:
        return tuple(Word(side.words, number) for number in range(side.words.count))

    def apply(self, operation: Callable[..., Bits], fmt: Format, *values: Value) -> Value:
        if operation is not adder(fmt):
            raise RuleError("recorded: an operation outside of the unit that is not a sum of two numbers")
        first, second = values
        return Added(fmt, first, second)

    def chain(self, unit: Model, a: Word, b: Word, start: int, stop: int, addend: Value | None,
              words: Pair | None = None) -> Value:  # fmt: skip
        running = Nothing() if addend is None else addend
        for tile in tiles_of(unit, start, stop):
            running = Instruction(unit, a, b, tile.start, tile.stop, running)
        return running


def recorded_part(part: Part, given: Format, terms: int) -> Value:
    """The expression of a part for `terms` products of factors in the format `given`. Raises RuleError for scaled
    words, and for operations outside of the unit that are not sums of two numbers."""
    what, form, c = part.what, _Recorder(part, given, terms), Addend()
    if isinstance(what, Model):
        left, right = (Word(Words(given, fmt, fmt, "nearest_even", 1), 0) for fmt in (what.a, what.b))
        return form.chain(what, left, right, 0, terms, c)
    if what.scale:
        raise RuleError("recorded: words that are scaled")
    model, source = what.model, what.source_format
    left, right = (Word(Words(given, source, fmt, what.split, what.words), 0) for fmt in (model.a, model.b))
    return what.evaluate(form, left, right, c)
