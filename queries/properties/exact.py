"""Units evaluated without rounding, in exact rationals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from operator import mul

from mmaprobe.queries.kernel.bounds.forms import EXACT, Factor, added
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout
from mmaprobe.smtmodel.nodes import Constant, Element, Literal, Node, Relu, Segment
from mmaprobe.smtmodel.nodes.fold import Fold
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.units.unit import Unit

#: by operand and place: a number, and the format that it is of
Numbers = dict[tuple[str, int], tuple[Fraction, Format]]


def segment_of(number: Fraction, node: Segment, fmt: Format) -> Fraction:
    """The value of those bits of a number that a segment takes; `fmt`: the format of the number."""
    exponent, size = fmt.emin, abs(number)
    while size >= power(exponent + 1) or (node.leading and 0 < size < power(exponent)):
        exponent += 1 if size >= power(exponent + 1) else -1
    last = power(exponent - node.end + 1)
    return (size // last) % (1 << node.end - node.first) * last * (-1 if number < 0 else 1)


class Exactly(Fold[Fraction]):
    """The values of nodes without rounding. Subclasses give the values of elements and segments."""

    def formed(self, node: Node) -> Fraction:
        match node.without_loss:
            case "product":
                return reduce(mul, map(self.of, node.operands))
            case "sum":
                return added(self.of_terms(node.operands))
            case "operand":
                return self.of(node.operands[0])
        match node:
            case Constant():
                return Fraction(0)
            case Literal():
                return node.value or Fraction(0)
            case Relu():
                return max(self.of(node.term), Fraction(0))
        raise TypeError(f"no exact value of {node.kind}")


class ExactRow(Exactly):
    """One row of operands as numbers. `chained`: the addend is the exact result of the row before, instead of a
    pattern."""

    def __init__(self, unit: Unit, numbers: Numbers, chained: bool = False) -> None:
        super().__init__()
        self.unit, self.numbers, self.chained = unit, numbers, chained

    @property
    def exact(self) -> Fraction:
        """The result of the unit without rounding."""
        return self.of(self.unit.result)

    def formed(self, node: Node) -> Fraction:
        if isinstance(node, Segment):
            return segment_of(self.of(node.term), node, getattr(self.unit, node.element.operand))
        if not isinstance(node, Element):
            return super().formed(node)
        value, fmt = self.numbers[node.operand, 0 if node.index is None else node.index.at(self.places)]
        if self.chained and node.operand == "c":
            return value
        flushed = node.subnormals != "keep" and fmt.subnormals and abs(value) < power(fmt.emin)
        return Fraction(0) if flushed else value

    def magnitude(self, exact: Fraction) -> Callable[[Factor], Fraction]:
        def of(factor: Factor) -> Fraction:
            if factor.name == EXACT:
                return abs(exact)
            value, fmt = self.numbers[factor.name, factor.offset]
            return max(abs(value), power(fmt.emin)) if factor.raised and value else abs(value)

        return of


def numbers_of(layout: Layout, row: Sequence[int]) -> Numbers | None:
    """The operands of a row as numbers; None if an operand is not finite."""
    numbers: Numbers = {}
    for place, fmt, pattern in zip(layout.places, layout.formats, row, strict=True):
        number = finite_value(int(pattern), fmt)
        if number is None:
            return None
        numbers[place] = number, fmt
    return numbers


@dataclass(frozen=True)
class ExactChain:
    """A chain of instructions on rows of finite operands, without rounding: each exact result, whatever the unit rounds
    it to, is the addend of the next. A single instruction is a chain of one."""

    model: Model
    rows: Sequence[Numbers]

    @classmethod
    def of(cls, model: Model, layout: Layout, steps: Table) -> ExactChain | None:
        """The chain on patterns, in rows of the model's layout; None if a pattern is not finite."""
        rows = [numbers_of(layout, row) for row in steps]
        finite = [row for row in rows if row is not None]
        return cls(model, finite) if len(finite) == len(rows) else None

    @cached_property
    def exact(self) -> list[Fraction]:
        """The exact result of each instruction."""
        return self._results(self.model.unit, self.rows)

    @cached_property
    def magnitudes(self) -> list[Fraction]:
        """After each instruction the sum of the magnitudes of all terms: c, every product, and constants."""
        sizes = [{place: (abs(number), fmt) for place, (number, fmt) in row.items()} for row in self.rows]
        return self._results(in_magnitudes(self.model.unit), sizes)

    def _results(self, unit: Unit, rows: Sequence[Numbers]) -> list[Fraction]:
        results = list[Fraction]()
        for row in rows:
            numbers = row | {("c", 0): (results[-1], self.model.c)} if results else row
            results.append(ExactRow(unit, numbers, chained=bool(results)).exact)
        return results

    @cached_property
    def numbers(self) -> Numbers:
        """The operands by their places in the chain; c is the first addend."""
        strides = {name: stride_of(self.model, name) for name in {name for name, _ in self.rows[0]}}
        return {
            (name, place + number * strides[name]): value
            for number, row in reversed([*enumerate(self.rows)]) for (name, place), value in row.items()
        }  # fmt: skip

    @cached_property
    def magnitude(self) -> Callable[[Factor], Fraction]:
        """The magnitude of each factor in which a bound of the error is stated."""
        return ExactRow(self.model.unit, self.numbers).magnitude(self.exact[-1])


def stride_of(model: Model, operand: str) -> int:
    """The number of elements of an operand that each instruction of a chain takes; 0 for c, the result before."""
    return 0 if operand == "c" else model.unit.count(operand)


def in_magnitudes(unit: Unit) -> Unit:
    """The unit with positive constants: its exact result for magnitudes is the sum of all terms' magnitudes."""

    def positive(node: Node) -> Node | None:
        return replace(node, pattern=node.pattern & ~node.format.sign_bit) if isinstance(node, Literal) else None

    return unit.with_result(replaced(unit.result, positive))
