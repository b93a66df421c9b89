"""The operations of an algorithm, recorded as an expression. Operations that two parts share are equal expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Rounding as WordRounding
from mmaprobe.smtmodel.arithmetic.rounding import is_stochastic
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import ExactSum, Round
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.matrices import Results
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Gathered, plain_words
from mmaprobe.smtmodel.plans.words import Words as PlanWords


@dataclass(frozen=True)
class Words:
    """The splitting of a number of the format `given` into `count` words of the format `into`. The number is converted
    to the format `source`; each word is the number less the words before it, rounded."""

    given: Format
    source: Format
    into: Format
    rounding: WordRounding
    count: int


@dataclass(frozen=True)
class Word:
    """The word with the index `number`, from 0, of every factor of a side."""

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


@dataclass(frozen=True)
class _Formatted:
    """A value and its format."""

    value: Value
    format: Format


class _Recorder(Results[_Formatted]):
    """Records the operations of a plan."""

    def __init__(self, plan: Plan, given: Format) -> None:
        self.plan, self.c = plan, _Formatted(Addend(), plan.c)
        self.words = tuple(_words_of(plan, side, given) for side in range(2))

    def zeros(self, fmt: Format, negative: bool) -> _Formatted:
        if negative:
            raise RuleError("recorded: a sum that starts from -0")
        return _Formatted(Nothing(), fmt)

    def gathered(self, node: Gathered) -> _Formatted:
        raise RuleError(f"recorded: a plan that reads {node.sentence()}")

    def elementwise(self, node: Round, given: Sequence[_Formatted]) -> _Formatted:
        fmt, slots = node.rounding.format, tuple(Given(slot, one.format) for slot, one in enumerate(given))
        plain = node.rounding == Rounding(fmt) and all(fmt.holds(one.format) for one in given)
        if not plain or len(given) != 2 or node.term not in (ExactSum(slots), ExactSum(slots[::-1])):
            raise RuleError("recorded: an operation outside of the unit that is not a sum of two numbers")
        return _Formatted(Added(fmt, given[0].value, given[1].value), fmt)

    def tile(self, model: Model, words: PlanWords, span: Span, start: _Formatted) -> _Formatted:
        if span.groups > 1 or span.step > 1:
            raise RuleError("recorded: an instruction on products that do not follow one another")
        a, b = (Word(own, self.plan.words_read(side).index(word))
                for side, (own, word) in enumerate(zip(self.words, self.plan.read(words), strict=True)))  # fmt: skip
        first = span.start.offset
        addend = self.in_format(start, model.c).value
        return _Formatted(Instruction(model, a, b, first, first + span.count, addend), model.d)


def _words_of(plan: Plan, side: int, given: Format) -> Words:
    """The splitting of the numbers of a side (0: A, 1: B) into words. Raises RuleError unless each word is the number
    less the words before it, rounded."""
    source, read = (plan.a, plan.b)[side], plan.words_read(side)
    rounded = [word.rounding for word in read if word is not None]
    how = rounded[0] if rounded else Rounding(source)
    if how.mode == "to_odd" or is_stochastic(how.mode) or read != plain_words(source, how, len(read)):
        raise RuleError("recorded: words that are scaled, or not the number less the words before, rounded")
    return Words(given, source, how.format, how.mode, len(read))


def recorded_part(part: Part, given: Format, terms: int) -> Value:
    """The expression of a part for `terms` products of factors in the format `given`. Raises RuleError for scaled
    words, for operations outside of the unit that are not sums of two numbers, and for a number of products that does
    not fit."""
    recorder = _Recorder(part.plan, given)
    try:
        return recorder.value(part.plan.result, terms).value
    except ParameterError as error:
        raise RuleError(f"recorded: {error}") from None
