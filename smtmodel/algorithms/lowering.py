"""A part of a claim for a given number of products as a unit: one expression over its factors and c."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from mmaprobe.smtmodel.algorithms.forms import Form
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.steps import Pair
from mmaprobe.smtmodel.algorithms.words import adder
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Index, Literal, Node, Product, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.lowering import Lowering
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Chain
from mmaprobe.smtmodel.units.unit import Unit

Side = Callable[[Element], Node]  # what stands for each element that a unit reads


class _Engine(Lowering):
    """Uses of a unit for words. `sides`: those of a and of b."""

    sides: tuple[Side, Side]

    def _input(self, element: Element) -> Node:
        word = self.sides[element.operand == "b"](replace(element, subnormals="keep", positive_zeros=False))
        return (
            element if isinstance(word, Element) else self._read_as(word, element, self.plan.formats[element.operand])
        )


class LoweringForm(Form[Side, Node]):
    """Makes the expression of an algorithm. Of a side, a factor stands for itself, and each word is an expression."""

    def __init__(self, model: Model, terms: int) -> None:
        self.terms = terms
        self.engine = _Engine(Plan(model.a, model.b, model.c, Products(Chain(model), Element("c"))))

    def length(self, a: Side) -> int:
        return self.terms

    def words(self, side: Side, fmt: Format, split: Callable[..., tuple[Bits, ...]]) -> tuple[Side, ...]:
        how = split.keywords  # type: ignore[attr-defined]
        into, mode, scale = how["fmt"], how["rounding"], how["scale"]

        def word(number: int) -> Side:
            return lambda element: _word(side(element), fmt, into, mode, number, scale)

        return tuple(map(word, range(how["words"])))

    def apply(self, operation: Callable[..., Bits], fmt: Format, *values: Node) -> Node:
        if operation is adder(fmt):
            return Round(ExactSum(values), Rounding(fmt))
        return _scaled(values[0], fmt, operation.keywords["exponent"])  # type: ignore[attr-defined]

    def chain(self, unit: Model, a: Side, b: Side, start: int, stop: int, addend: Node | None,
              words: Pair | None = None) -> Node:  # fmt: skip
        self.engine.sides = a, b
        running = Constant() if addend is None else addend
        count = stop - start
        whole, rest = Span.of(count, Index(start)).cut(count - count % unit.length)
        if whole is not None:
            running = self.engine.tiles(unit, whole, running)
        return running if rest is None else self.engine.tile(unit, rest, running)


def _word(number: Node, fmt: Format, into: Format, mode: Mode, place: int, scale: int) -> Node:
    """A word of a number of the format `fmt`: as `words.split` has it."""
    rest = number
    for _ in range(place):
        word = rest if fmt == into else Round(rest, Rounding(into, mode))
        rest = _scaled(Round(ExactSum((rest, _times(word, fmt, -1, 0))), Rounding(fmt)), fmt, scale)
    return rest if fmt == into else Round(rest, Rounding(into, mode))


def _scaled(value: Node, fmt: Format, exponent: int) -> Node:
    return Round(_times(value, fmt, 1, exponent), Rounding(fmt)) if exponent else value


def _times(value: Node, fmt: Format, sign: int, exponent: int) -> Product:
    """A number times 2^exponent, or minus that. Raises ParameterError where the format has no such power."""
    if not fmt.emin - fmt.fraction <= exponent <= fmt.emax:
        raise ParameterError("scale", f"{fmt.name} has no 2^{exponent}")
    low = exponent < fmt.emin
    field = 1 << (exponent - fmt.emin + fmt.fraction) if low else (exponent + fmt.bias) << fmt.fraction
    return Product(Literal(field << fmt.padding | (fmt.sign_bit if sign < 0 else 0), fmt), value)


@lru_cache(maxsize=64)
def lowered(part: Part, given: Format, terms: int) -> Unit:
    """A part for this many products of factors in the format `given`, as a unit that computes the same on all finite
    inputs on which nothing overflows. Raises ParameterError where the unit reads words in a way of its own."""
    what = part.what
    model = what if isinstance(what, Model) else what.model
    form = LoweringForm(model, terms)

    def number(element: Element) -> Node:
        return element

    if isinstance(what, Model):
        left, right = ((lambda element, fmt=fmt: element if fmt == given else Round(element, Rounding(fmt)))
                       for fmt in (what.a, what.b))  # fmt: skip
        result = form.chain(what, left, right, 0, terms, Element("c"))
    else:
        result = what.evaluate(form, number, number, Element("c"))
    if not isinstance(result, Round):
        result = Round(result, Rounding(part.result))
    return Unit(given, given, part.addend, terms, result, signals=form.engine.signals, reference=part.text)
