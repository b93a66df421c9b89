"""The quantities of a claim on one input, over any carrier: one definition for solvers, search and replay."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any

from mmaprobe.smtmodel.algorithms import fixed
from mmaprobe.smtmodel.algorithms.exact import Fixed, Window, admitted, closer, exact_sum, in_units, magnitude, ulp
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.predicate import decimal_of, power_of, without_decimals
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.ordering import pattern_key
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, constant, max_of, select, truth
from mmaprobe.smtmodel.nodes import Element, Node
from mmaprobe.smtmodel.nodes.fold import Fold
from mmaprobe.smtmodel.nodes.known import ZERO, Known
from mmaprobe.smtmodel.nodes.node import Knowledge
from mmaprobe.smtmodel.plans.dot import RESULT, Step
from mmaprobe.smtmodel.plans.lowering import unit_of_plan


@dataclass(frozen=True)
class Number:
    """A pattern of a format: an input, or the result of a part. `normal`: the number is known to be zero or normal."""

    bits: Bits
    fmt: Format
    normal: bool = True


@dataclass(frozen=True)
class Error:
    """|result - exact|, stored as both numbers, so that two errors are compared without absolute values
    (`exact.closer`)."""

    result: Fixed
    exact: Fixed

    @property
    def fixed(self) -> Fixed:
        return magnitude(fixed.subtract(self.result, self.exact))


@dataclass(frozen=True)
class Truth:
    """The truth of a predicate: `yes` if it holds, `no` if it does not; both are false where the result of a part that
    the predicate reads is no number. `reads`: for each part that the predicate reads, whether the part's result is a
    number; `numbers`: whether all of these are."""

    yes: Bit
    no: Bit
    numbers: Bit
    reads: Mapping[str, Bit]

    @staticmethod
    def of(holds: Bit, reads: Mapping[str, Bit]) -> Truth:
        """The truth of a predicate. `holds` is valid where every value that the predicate reads is a number."""
        numbers = all_of([truth(holds.carrier, True), *reads.values()])
        return Truth(numbers & holds, numbers & ~holds, numbers, reads)


Side = tuple[Number, ...]


@dataclass(frozen=True)
class Shape:
    """The part of a claim that does not depend on the input: the formats of the factors and of c, the window of
    exponents, and the parts. `whole`: the names of the parts in which the first word of every factor is known to be the
    whole factor."""

    factors: Format
    addend: Format
    window: Window
    parts: Mapping[str, Part]
    whole: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Shape, (self.factors, self.addend, self.window, dict(self.parts), self.whole)

    @property
    def names(self) -> set[str]:
        """The names that an expression may use."""
        return {"a", "b", "c", *self.parts, *FORMATS}

    def room(self, terms: int) -> list[tuple[int, Fraction]]:
        """For each part the exponent of a power of two that divides all its results, and the results' largest
        magnitude, as `exact_sum` takes them."""
        if terms not in self._rooms:
            window = self.window
            formats = {"a": self.factors, "b": self.factors, "c": self.addend}
            given = {name: Known.normal(fmt, *getattr(window, name)) for name, fmt in formats.items()}
            reach = _Reach(Knowledge(formats, given=given), terms)
            every = [reach.of(unit_of_plan(part.plan, terms).result) for part in self.parts.values()]
            self._rooms[terms] = [(known.grid, known.largest) for known in every
                                  if known.grid is not None and known.largest is not None]  # fmt: skip
        return self._rooms[terms]

    @cached_property
    def _rooms(self) -> dict[int, list[tuple[int, Fraction]]]:
        return {}

    @property
    def result(self) -> Format:
        """The format of the parts' results. Raises ParameterError if the parts have different ones."""
        formats = {part.result.name: part.result for part in self.parts.values()}
        if len(formats) != 1:
            raise ParameterError("parts", f"results of several formats: {', '.join(formats)}")
        return next(iter(formats.values()))


class _Reach(Fold[Known]):
    """What is known of the nodes of a sum of `terms` products, for each round of a loop. All further elements are 0."""

    def __init__(self, knowledge: Knowledge, terms: int) -> None:
        super().__init__()
        self.knowledge, self.products = knowledge, terms

    def formed(self, node: Node) -> Known:
        if isinstance(node, Element) and node.index is not None and node.index.at(self.places) >= self.products:
            return ZERO
        return node.known(self.knowledge, self.of_terms(node.known_from))


class Scene:
    """The quantities on one input. A part is evaluated when it is first read, and only once.

    `fits`: for every part whose value was read so far, whether the part's result is finite and fits the width and unit
    of the exact sum. Where a part does not fit, quantities computed from its value are meaningless (see `Truth`).
    """

    def __init__(self, shape: Shape, a: Sequence[Bits], b: Sequence[Bits], c: Bits) -> None:
        self.shape, self.carrier = shape, c.carrier
        self.a = tuple(Number(bits, shape.factors) for bits in a)
        self.b = tuple(Number(bits, shape.factors) for bits in b)
        self.c = Number(c, shape.addend)
        self.fits: dict[str, Bit] = {}
        self._steps: dict[str, dict[Step, Bits]] = {}
        self._values: dict[str, Fixed] = {}
        self._exact: dict[bool, Fixed] = {}

    @property
    def terms(self) -> int:
        """The number of products."""
        return len(self.a)

    @property
    def nameable(self) -> int:
        """The number of products, from the first on, whose factors an expression may name."""
        return len(self.a)

    def admits(self) -> Bit:
        """Whether every input is a zero or a normal number in its window."""
        window = self.shape.window
        sides = ((self.a, window.a), (self.b, window.b), ((self.c,), window.c))
        return all_of([admitted(x.bits, x.fmt, bounds) for side, bounds in sides for x in side])

    def steps(self, name: str) -> dict[Step, Bits]:
        """The values of a part's steps."""
        if name not in self._steps:
            a, b = ([x.bits for x in side] for side in (self.a, self.b))
            shape = self.shape
            self._steps[name] = shape.parts[name].steps(a, b, self.c.bits, shape.factors, name in shape.whole)
        return self._steps[name]

    def exact(self, magnitudes: bool = False) -> Fixed:
        """The exact sum, in a width that holds every result; with `magnitudes`, the exact sum of the terms'
        magnitudes."""
        if magnitudes not in self._exact:
            shape = self.shape

            def plain(x: Number) -> Bits:
                mask = x.fmt.sign_bit if magnitudes else 0
                return x.bits & constant(self.carrier, ~mask, x.bits.width)

            a, b = ([plain(x) for x in side] for side in (self.a, self.b))
            room = [] if magnitudes else shape.room(len(a))
            self._exact[magnitudes] = exact_sum(a, b, plain(self.c), shape.factors, shape.addend, shape.window, room)
        return self._exact[magnitudes]

    def tops(self) -> list[Fixed]:
        """The number 2^exponent of each product and of c, 0 for a zero. The exponent of a product is the sum of its
        factors' exponents."""
        window = self.shape.window
        low = min(window.a[0] + window.b[0], window.c[0])
        width = max(window.a[1] + window.b[1], window.c[1]) - low + 1
        one, none = constant(self.carrier, 1, width), constant(self.carrier, 0, width)
        tops = []
        for factors in (*zip(self.a, self.b, strict=True), (self.c,)):
            opened = [unpack(x.bits, x.fmt) for x in factors]
            exponent = opened[0].term.exponent
            for other in opened[1:]:
                exponent = exponent + other.term.exponent
            size = max(exponent.bits.width, abs(low - exponent.low).bit_length()) + 1
            at = exponent.bits.zext(size) - constant(self.carrier, low - exponent.low, size)
            zero = any_of([x.is_zero for x in opened])
            tops.append(Fixed(select(zero, none, one.shl(at)).zext(width + 1), low))
        return tops

    def value(self, name: str) -> Fixed:
        """The result of a part as a number; valid where `fits` of the part is true."""
        if name not in self._values:
            part = self.shape.parts[name]
            self._values[name], self.fits[name] = in_units(self.steps(name)[RESULT], part.result, self.exact())
        return self._values[name]

    def truth(self, tree: ast.expr) -> Truth:
        """Whether a predicate holds. Raises ParameterError for an expression that is not a predicate."""
        evaluation = _Evaluation(self)
        return Truth.of(evaluation.condition(tree), evaluation.reads)

    def quantity(self, tree: ast.expr) -> tuple[Fixed, Mapping[str, Bit]]:
        """The value of a numeric expression, and the parts that the expression reads, as in `Truth`. Raises
        ParameterError for an expression that is not a number."""
        evaluation = _Evaluation(self)
        return evaluation.number(evaluation.of(tree), tree), evaluation.reads


class _Evaluation:
    """The evaluation of one expression. Each method that reads the result of a part as a number notes in `reads`
    whether the result is a number."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.carrier = scene, scene.carrier
        self.reads: dict[str, Bit] = {}

    def of(self, node: ast.expr) -> Any:
        """The value of an expression: a Bit, a Fixed, a Fraction, an Error, a Number, a Side, a tuple of such values
        for the numbers of a side, a Format, or the name of a part."""
        if isinstance(node, ast.BoolOp):
            join = all_of if isinstance(node.op, ast.And) else any_of
            return join([self.condition(part) for part in node.values])
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Not):
                return ~self.condition(node.operand)
            return self.arithmetic(ast.Sub(), Fraction(0), self.of(node.operand), node)
        if isinstance(node, ast.Compare):
            return self.comparisons(node)
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node.op, self.of(node.left), self.of(node.right), node)
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            method: Callable[..., Any] = getattr(self, f"_{node.func.id}")
            return method(*[self.of(part) for part in node.args], node=node)
        if isinstance(node, ast.Subscript):
            return self.element(node)
        if isinstance(node, ast.Constant):
            return decimal_of(node)
        assert isinstance(node, ast.Name)
        return self.named(node.id)

    def named(self, name: str) -> Any:
        if name in self.scene.shape.parts:
            return name
        return getattr(self.scene, name) if name in ("a", "b", "c") else FORMATS[name]

    def element(self, node: ast.Subscript) -> Number:
        side, index = self.of(node.value), self.of(node.slice)
        named = isinstance(side, tuple) and isinstance(index, Fraction) and index.denominator == 1
        if not named or not 0 <= index < self.scene.nameable or not isinstance(side[int(index)], Number):
            raise ParameterError(ast.unparse(node), "no such product")
        factor: Number = side[int(index)]
        return factor

    def condition(self, node: ast.expr) -> Bit:
        bit = self.of(node)
        if not isinstance(bit, Bit):
            raise ParameterError(ast.unparse(node), "a number, where a condition is needed")
        return bit

    def number(self, value: Any, node: ast.expr) -> Fixed:
        if isinstance(value, Number):
            value = self._value(value, node)
        if isinstance(value, Fraction):
            return fixed.number(self.carrier, value)
        if isinstance(value, Error):
            return value.fixed
        if not isinstance(value, Fixed):
            raise ParameterError(ast.unparse(node), "a number is needed here; value(...) makes one of a result")
        return value

    def each(self, function: Callable[..., Any], *values: Any) -> Any:
        """A function applied to values; of sides among the values, to each number in turn."""
        sides = [value for value in values if isinstance(value, tuple)]
        if not sides:
            return function(*values)
        spread = (value if isinstance(value, tuple) else (value,) * len(sides[0]) for value in values)
        return tuple(function(*numbers) for numbers in zip(*spread, strict=True))

    def arithmetic(self, operator: ast.operator, left: Any, right: Any, node: ast.expr) -> Any:
        if isinstance(left, tuple) or isinstance(right, tuple):
            return self.each(lambda x, y: self.arithmetic(operator, x, y, node), left, right)
        if isinstance(operator, ast.Pow):
            if not (isinstance(left, Fraction) and isinstance(right, Fraction)):
                raise ParameterError(ast.unparse(node), "a power of constants is needed")
            return power_of(left, right, node)
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            plain = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}
            return plain[type(operator)]
        one, two = self.number(left, node), self.number(right, node)
        lowered = {ast.Add: fixed.add, ast.Sub: fixed.subtract, ast.Mult: fixed.multiply}
        return lowered[type(operator)](one, two)

    def comparisons(self, node: ast.Compare) -> Bit:
        whole, _ = without_decimals(node)
        assert isinstance(whole, ast.Compare)
        values = [self.of(part) for part in (whole.left, *whole.comparators)]
        return all_of([self.compared(op, values[k], values[k + 1], node) for k, op in enumerate(node.ops)])

    def compared(self, op: ast.cmpop, left: Any, right: Any, node: ast.expr) -> Bit:
        """A comparison with a side holds if the comparison with each number of the side holds."""
        if isinstance(left, tuple) or isinstance(right, tuple):
            return all_of(self.each(lambda x, y: self.compared(op, x, y, node), left, right))
        if isinstance(op, ast.Gt | ast.GtE):
            left, right, op = right, left, ast.Lt() if isinstance(op, ast.Gt) else ast.LtE()
        if isinstance(left, Error) and isinstance(right, Error) and isinstance(op, ast.Lt | ast.LtE):
            if isinstance(op, ast.Lt):
                return closer(left.result, right.result, left.exact)
            return ~closer(right.result, left.result, left.exact)
        x, y = self.number(left, node), self.number(right, node)
        if isinstance(op, ast.Lt):
            return fixed.less(x, y)
        if isinstance(op, ast.LtE):
            return ~fixed.less(y, x)
        same = fixed.equal(x, y)
        return same if isinstance(op, ast.Eq) else ~same

    # --- the functions of predicate.FUNCTIONS --------------------------------------------------------------------

    def _error(self, part: Any, node: ast.expr) -> Error:
        if not isinstance(part, str):
            raise ParameterError(ast.unparse(node), "error(...) takes the name of a part")
        return Error(self._value(part, node), self.scene.exact())

    def _value(self, what: Any, node: ast.expr) -> Any:
        if isinstance(what, tuple):
            return self.each(lambda x: self._value(x, node), what)
        if isinstance(what, str):
            value = self.scene.value(what)
            self.reads[what] = self.scene.fits[what]
            return value
        x, window = self._pattern(what, node), self.scene.shape.window
        low, high = window.c if x is self.scene.c else window.a if any(x is y for y in self.scene.a) else window.b
        like = Fixed(constant(self.carrier, 0, high - low + x.fmt.fraction + 2), low - x.fmt.fraction)
        return in_units(x.bits, x.fmt, like)[0]

    def _exact(self, node: ast.expr) -> Fixed:
        return self.scene.exact()

    def _magnitude_sum(self, node: ast.expr) -> Fixed:
        return self.scene.exact(magnitudes=True)

    def _terms(self, node: ast.expr) -> Fraction:
        return Fraction(self.scene.terms)

    def _top(self, node: ast.expr) -> Fixed:
        """The largest of `Scene.tops`."""
        tops = self.scene.tops()
        return Fixed(max_of([top.bits for top in tops]), tops[0].unit)

    def _ulp(self, what: Any, node: ast.expr) -> Fixed:
        value = self._value(what, node) if isinstance(what, str | Number) else self.number(what, node)
        fmt = self.scene.shape.result
        unit = ulp(Fixed(value.bits.pad(fmt.fraction), value.unit - fmt.fraction), fmt)
        return Fixed(select(value.bits.any(), unit.bits, constant(self.carrier, 0, unit.bits.width)), unit.unit)

    def _distance(self, left: Any, right: Any, node: ast.expr) -> Fixed:
        x, y = (self._number(what, node) for what in (left, right))
        if x.fmt != y.fmt:
            raise ParameterError(ast.unparse(node), f"numbers of two formats: {x.fmt.name} and {y.fmt.name}")
        return magnitude(fixed.subtract(self._ordinal(x), self._ordinal(y)))

    def _ordinal(self, x: Number) -> Fixed:
        """The position of a pattern in the order of the format's numbers; zero's position is 0."""
        kept = x.bits.extract(x.bits.width - 1, x.fmt.padding)
        return Fixed(pattern_key(kept, replace(x.fmt, padding=0)), 0)

    def _bits(self, what: Any, node: ast.expr) -> Fixed:
        return fixed.unsigned(self._pattern(what, node).bits)

    def _finite(self, what: Any, node: ast.expr) -> Bit:
        return self._is_finite(self._pattern(what, node))

    @staticmethod
    def _is_finite(x: Number) -> Bit:
        value = unpack(x.bits, x.fmt)
        return ~(value.is_nan | value.is_infinite)

    def _zero(self, what: Any, node: ast.expr) -> Bit:
        return self._every(what, node, lambda x: unpack(x.bits, x.fmt).is_zero)

    def _nonzero(self, what: Any, node: ast.expr) -> Bit:
        return self._every(what, node, lambda x: ~unpack(x.bits, x.fmt).is_zero)

    def _nonnegative(self, what: Any, node: ast.expr) -> Bit:
        return self._every(what, node, lambda x: ~unpack(x.bits, x.fmt).sign)

    def _fits(self, what: Any, fmt: Any, node: ast.expr) -> Bit:
        return self._every(what, node, lambda x: ~self._beyond(x, fmt, node))

    def _lacks(self, what: Any, fmt: Any, node: ast.expr) -> Bit:
        return self._every(what, node, lambda x: self._beyond(x, fmt, node) | unpack(x.bits, x.fmt).is_zero)

    def _abs(self, what: Any, node: ast.expr) -> Any:
        return self.each(lambda x: magnitude(self.number(x, node)), what)

    def _max(self, left: Any, right: Any, node: ast.expr) -> Any:
        return self.each(lambda x, y: fixed.larger(self.number(x, node), self.number(y, node)), left, right)

    def _beyond(self, x: Number, fmt: Any, node: ast.expr) -> Bit:
        """Whether a number has more fraction bits than a format."""
        if not isinstance(fmt, Format):
            raise ParameterError(ast.unparse(node), "the second argument is a format")
        places = x.fmt.fraction - fmt.fraction
        if places <= 0:
            return truth(self.carrier, False)
        if x.normal:
            return x.bits.extract(x.fmt.padding + places - 1, x.fmt.padding).any()
        return unpack(x.bits, x.fmt).term.normalised().significand.truncate(places).any()

    def _every(self, what: Any, node: ast.expr, test: Callable[[Number], Bit]) -> Bit:
        return all_of([test(self._number(x, node)) for x in (what if isinstance(what, tuple) else (what,))])

    def _number(self, what: Any, node: ast.expr) -> Number:
        """A part's result or an input, read as a number. Whether a part's result is finite is noted in `reads`; an
        input always is."""
        x = self._pattern(what, node)
        if isinstance(what, str):
            self.reads.setdefault(what, self._is_finite(x))
        return x

    def _pattern(self, what: Any, node: ast.expr) -> Number:
        if isinstance(what, str):
            return Number(self.scene.steps(what)[RESULT], self.scene.shape.parts[what].result, False)
        if not isinstance(what, Number):
            raise ParameterError(ast.unparse(node), "a part, c, or a product's factor such as a[0] is needed")
        return what
