"""The interface of engines, which execute the steps of a plan: an engine makes an expression (lowering.py), computes
with matrices (matrices.py), or records the steps (tape.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, Literal, TypeVar

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Words

V = TypeVar("V")
#: ways in which the rounding errors of additions are compensated
Way = Literal["neumaier", "kahan"]


class Engine(ABC, Generic[V]):
    """An executor of a plan's steps. V: the type of a sum."""

    @abstractmethod
    def zero(self, fmt: Format) -> V:
        """The sum +0 of a format."""

    @abstractmethod
    def tile(self, model: Model, words: Words, span: Span, start: V) -> V:
        """The result of a unit on the words of a span's products. The span has at most as many products as the unit;
        zero products fill up the rest. `start`: the addend."""

    def tiles(self, model: Model, words: Words, span: Span, start: V) -> V:
        """The result of successive uses of a unit on all products of a span, whose number is a multiple of the unit's
        length. Each result is the next use's addend."""
        return in_turn(self, span, model.length, "tile", start, lambda part, x: self.tile(model, words, part, x))[0]

    @abstractmethod
    def rounded(self, values: Sequence[V], rounding: Rounding) -> V:
        """The exact sum of values (or one value), rounded."""

    @abstractmethod
    def lost(self, values: Sequence[V], total: V, rounding: Rounding) -> V:
        """The rounding error of a sum of values: their exact sum minus `total`, rounded."""

    def compensated(
        self, start: V, parts: Sequence[tuple[Span, str]], body: Callable[[Span], V], rounding: Rounding, by: Way
    ) -> V:
        """The sum of `start` and the sums of parts (each a span and a name), added one after another with rounding. By
        Neumaier's way the rounding errors are added up in another sum, which is added to the result at the end; by
        Kahan's way each error is computed from the rounded sum (fast 2Sum) and added to the next part."""
        value, errors = start, list[V]()
        for span, name in parts if by == "kahan" else ():
            with self.part(name):
                part_sum = body(span)
                part_sum = self.rounded([part_sum, errors.pop()], rounding) if errors else part_sum
                total = self.rounded([value, part_sum], rounding)
                errors.append(self.lost([part_sum], self.lost([total], value, rounding), rounding))
                value = total
        if by == "kahan":
            return value
        for span, name in parts:
            with self.part(name):
                part_sum = body(span)
                total = self.rounded([value, part_sum], rounding)
                errors.append(self.lost([value, part_sum], total, rounding))
                value = total
        return self.rounded([value, self.in_order(errors, rounding)], rounding)

    def repeat(self, count: int, name: str, start: V, body: Callable[[Index, V], V]) -> V:
        """The result of a loop: the body is applied `count` times, to the loop variable and the result so far."""
        for number in range(count):
            start = body(Index(number), start)
        return start

    def part(self, name: str) -> AbstractContextManager[None]:
        """A block whose steps belong to the part `name`."""
        return nullcontext()

    def in_order(self, values: Sequence[V], rounding: Rounding) -> V:
        """The sum of values that are added one after another, each addition rounded."""
        value, *others = values
        for other in others:
            value = self.rounded([value, other], rounding)
        return value


def in_turn(
    engine: Engine[V], span: Span, count: int, name: str, start: V, body: Callable[[Span, V], V]
) -> tuple[V, Span | None]:
    """The result of applying the body to every `count` products of a span in turn, and the rest of the span. `name`:
    the name of the parts."""
    whole, rest = span.cut(span.count - span.count % count)
    if whole is None:
        return start, rest
    first, loops = whole.loops(count)

    def nest(left: tuple[tuple[int, int], ...], part: Span, running: V) -> V:
        if not left:
            return body(part, running)
        (times, distance), *inner = left
        outer = name if not inner or all(number == 1 for number, _ in inner) else "group"
        return engine.repeat(times, outer, running, lambda k, x: nest(tuple(inner), part.at(k, distance), x))

    return nest(loops, first, start), rest
