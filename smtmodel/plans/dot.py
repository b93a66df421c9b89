"""The evaluation of a plan on one sum of products, over any carrier, with the values of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bits, constant, max_of
from mmaprobe.smtmodel.evaluate.model import Model, evaluate, pattern_of
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.plans.matrices import Results
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Gathered, Words, factor_over, over_given

Pair = tuple[int, int]  # the word of a and the word of b; word 0 is the leading one


@dataclass(frozen=True)
class Word:
    """The step that makes a word of a factor. `number`: the index of the word; `place`: the index of the product."""

    side: Literal["a", "b"]
    number: int
    place: int

    def __str__(self) -> str:
        return f"{self.side}.word{self.number}[{self.place}]"


@dataclass(frozen=True)
class InUnit:
    """The unit's running sum after the products from `start` to before `stop`. `words`: the words of the factors; None
    if factors have a single word."""

    words: Pair | None
    start: int
    stop: int

    def __str__(self) -> str:
        return f"unit{_of(self.words)}[{self.start}:{self.stop}]"


@dataclass(frozen=True)
class Outside:
    """A sum outside the unit. `number`: its index among the sums that follow the unit's instruction on the products of
    `words` that end before `stop`."""

    words: Pair | None
    stop: int
    number: int

    def __str__(self) -> str:
        return f"outside{_of(self.words)}[:{self.stop}]" + (f".{self.number}" if self.number else "")


@dataclass(frozen=True)
class Result:
    """The step that gives the result."""

    def __str__(self) -> str:
        return "d"


Step = Word | InUnit | Outside | Result
RESULT = Result()


def _of(words: Pair | None) -> str:
    return "" if words is None else ".a{}b{}".format(*words)


@dataclass(frozen=True)
class Value:
    """A pattern of a format."""

    bits: Bits
    format: Format


class Dot(Results[Value]):
    """The evaluation of a plan on patterns of its formats. `steps`: the values of the steps evaluated so far."""

    def __init__(self, plan: Plan, a: Sequence[Bits], b: Sequence[Bits], c: Bits) -> None:
        self.plan, self.sides, self.c = plan, (a, b), Value(c, plan.c)
        self.read = tuple(plan.words_read(side) for side in range(2))
        self.steps: dict[Step, Bits] = {}
        self._last: tuple[Pair | None, int] = None, 0
        self._words: dict[tuple[int, int, int], Bits] = {}
        self._gathered: dict[tuple[Gathered, int], Value] = {}

    def all_steps(self) -> dict[Step, Bits]:
        """The values of all steps in order, RESULT last. Texts of steps are: `a.word0[k]`, a word of a number;
        `unit.a0b1[0:8]`, the unit's running sum after products 0 to 7 of words a0 and b1; `outside.a0b1[:8]`, a sum
        outside the unit after product 7. Raises ParameterError for a number of products that the plan does not take."""
        with self.plan.named():
            self._all_words()
            self.steps[RESULT] = self.value(self.plan.result, len(self.sides[0])).bits
        return self.steps

    def _all_words(self) -> None:
        for side, words in enumerate(self.read):
            for number, word in enumerate(words):
                for place in range(len(self.sides[side])):
                    pattern = self._words[side, number, place] = self.word(side, number, place)
                    if word is not None or len(words) > 1:
                        self.steps[Word("b" if side else "a", number, place)] = pattern

    def word(self, side: int, number: int, place: int) -> Bits:
        """A word of an element."""
        word, given = self.read[side][number], self.sides[side][place]
        if word is None:
            return given
        node, read = over_given(word)
        return pattern_of(node, given, *(self.gathered(part, place).bits for part in read))

    def gathered(self, node: Gathered, place: int = 0) -> Value:
        """The value of a `Gathered` node over all elements of its side, or, if the node has blocks, over the elements
        of the block with `place`."""
        elements = self.sides["ab".index(node.operand)]
        first = place - place % node.block if node.block else 0
        if (node, first) not in self._gathered:
            own = [node.own(pattern) for pattern in elements[first : first + (node.block or len(elements))]]
            self._gathered[node, first] = Value(node.found(max_of(own)), node.given)
        return self._gathered[node, first]

    def factors(self, model: Model, places: Sequence[int]) -> list[list[Bits]]:
        """The scale factors, of a and of b, of an instruction's products at `places`; empty for a plan without
        factors."""
        every = []
        for factor in self.plan.factors or ():
            node, read = factor_over(factor)
            starts = places[:: model.scale_block]
            own = [pattern_of(node, *(self.gathered(part, at).bits for part in read)) for at in starts]
            zero = constant(self.c.bits.carrier, 0, factor.rounding.format.width)
            every.append([*own, *[zero] * (model.scales - len(own))])
        return every

    def zeros(self, fmt: Format, negative: bool) -> Value:
        return Value(constant(self.c.bits.carrier, fmt.sign_bit * negative, fmt.width), fmt)

    def elementwise(self, node: Round, given: Sequence[Value]) -> Value:
        result = pattern_of(node, *(x.bits for x in given))
        number = sum(isinstance(step, Outside) and (step.words, step.stop) == self._last for step in self.steps)
        self.steps[Outside(*self._last, number)] = result
        return Value(result, node.rounding.format)

    def tile(self, model: Model, words: Words, span: Span, start: Value) -> Value:
        i, j = (read.index(word) for read, word in zip(self.read, self.plan.read(words), strict=True))
        a, b = ([self._words[side, number, place] for place in span.places] for side, number in enumerate((i, j)))
        pair = (i, j) if max(map(len, self.read)) > 1 else None
        addend = self.in_format(start, model.c).bits
        if self.plan.factors:
            span.scales(model.scale_block)  # raises where blocks do not lie within the tile
        result = self.instruction(model, a, b, addend, *self.factors(model, span.places))
        self._last = pair, max(span.places) + 1
        self.steps[InUnit(pair, min(span.places), self._last[1])] = result
        return Value(result, model.d)

    def instruction(
        self, model: Model, a: Sequence[Bits], b: Sequence[Bits], addend: Bits, *factors: Sequence[Bits]
    ) -> Bits:
        """The result of one instruction of a unit; missing products are zero."""
        return evaluate(model, a, b, addend, *factors).d


class ByFirstWords(Dot):
    """The evaluation of a plan on finite numbers that equal their first words (`firsts`, of a and of b, in the units'
    formats). All other words are constant zeros, and so is a unit's result on zero words with addend +0."""

    def __init__(self, plan: Plan, firsts: tuple[Sequence[Bits], Sequence[Bits]], c: Bits) -> None:
        super().__init__(plan, *firsts, c)

    def word(self, side: int, number: int, place: int) -> Bits:
        first = self.sides[side][place]
        return first if not number else constant(first.carrier, 0, word_format(self.plan, side, number).width)

    def instruction(
        self, model: Model, a: Sequence[Bits], b: Sequence[Bits], addend: Bits, *factors: Sequence[Bits]
    ) -> Bits:
        if addend.value == 0 and any(all(x.value == 0 for x in side) for side in (a, b)):
            return constant(addend.carrier, 0, model.d.width)
        return super().instruction(model, a, b, addend, *factors)


def word_format(plan: Plan, side: int, number: int = 0) -> Format:
    """The format of a word of a (`side` 0) or b (`side` 1). `number`: the index of the word."""
    word = plan.words_read(side)[number]
    return (plan.a, plan.b)[side] if word is None else word.rounding.format
