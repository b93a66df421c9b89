"""Checks that two plans are equal: a second statement of the rules by which queries/plans/equal.py proves it.

For a K, both are written out over their products; they may differ in roundings that lose nothing. For every multiple of
a number of products, their stages are compared from outside; where they are two, each must repeat a step that makes the
same of any sum so far and of its products, written out, or by a part of the certificate.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from functools import cache

from queries.certificates.document import nan_as
from queries.certificates.lossless import Lossless
from queries.certificates.magnitudes import FaultError, need
from queries.certificates.read_addends import ReadAddends
from queries.certificates.writing_out import Made, Numbers, Plain, Rules
from queries.kernel.problem import Problem
from queries.properties.asked import plain
from smtmodel.dot import Model
from smtmodel.errors import ParameterError
from smtmodel.formats import Format
from smtmodel.inputs import Inputs
from smtmodel.nodes import Constant, Element, ExactSum, Index, Node, Round
from smtmodel.nodes.round import Rounding
from smtmodel.plans import (
    Chain,
    Halves,
    Interleaved,
    Lanes,
    Plan,
    Products,
    Promoted,
    Rounded,
    Span,
    Split,
    Stage,
    Swizzled,
    Turns,
    Uneven,
    Whole,
)
from smtmodel.plans.stages import Engine

unit_data = cache(plain)
FLATTENED = 2000  # numbers written out, up to which sums of sums are made one
IN_ORDER = {"pairwise": 3, "backwards": 2}  # sums that are added so as in order
#: what makes no difference to products that are multiples of the grains, or fill whole turns
UNUSED = {Split: {"grain"}, Interleaved: {"tail"}, Lanes: {"head", "tail"}}


def plans_text(stated: Plain) -> str:
    """For which K, in words."""
    multiples, length = stated["multiples"], stated["length"]
    return f"for every K that is a multiple of {multiples}" if multiples else f"for K = {length}"


def plans_fault(stated: Plain, left: Plan, right: Plan, parts: Sequence[Problem]) -> str:
    """Why it is not shown that two plans are equal for the K stated; empty if it is."""
    length, multiples = stated["length"], stated["multiples"]
    try:
        need(all(type(value) is int for value in (length, multiples) if value is not None), "no number of products")
        need((length or 1) > 0 and multiples >= 0 and bool(length or multiples), "it is not said for which K")
        need(left.scale is None and right.scale is None, "plans with scale factors are not compared")
        need((left.a, left.b, left.c, left.d) == (right.a, right.b, right.c, right.d), "their formats are others")
        compared = _Compared(left, right, parts)
        if multiples:
            found = compared.multiples()
            need(multiples % found == 0, f"they are equal for multiples of {found}, which is not said")
            need(not length or length % multiples == 0, "K is not a multiple")
        else:
            need(compared.at(length), f"nothing shows that they are equal for {length} products")
        need(len(compared.used) == len(parts), "a part is about something else")
    except (FaultError, ParameterError) as fault:
        return str(fault)
    return ""


class _Compared:
    def __init__(self, left: Plan, right: Plan, parts: Sequence[Problem]) -> None:
        self.plans, self.parts = (left, right), parts
        self.converts = [(plan.convert_a, plan.convert_b) for plan in self.plans]
        self.used: set[int] = set()

    def at(self, length: int) -> bool:
        """Whether the two are equal for a number of products."""
        if self._alike(length, [plan.result for plan in self.plans], self.plans[0].c):
            return True
        with suppress(FaultError):
            return self._tails(length)
        return False

    def multiples(self) -> int:
        """The number of products for every multiple of which they are equal. Raises FaultError."""
        return math.lcm(*(self._from(one, other, zero) for one, other, zero in self._sums()))

    def _sums(self) -> list[tuple[Stage, Stage, bool]]:
        """The sums of products with which both do the same, from the same start; and whether that is +0. Raises
        FaultError."""
        sums = [plan.sums for plan in self.plans]
        need(len(sums[0]) == len(sums[1]), "they have different sums of products")
        numbers = Numbers()
        engines = [_Written(numbers, plan, 0, plan.c, dict(zip(own, range(len(own)), strict=True)))
                   for plan, own in zip(self.plans, sums, strict=True)]  # fmt: skip
        around = [engine.of(plan.result) for engine, plan in zip(engines, self.plans, strict=True)]
        need(around[0] == around[1], "they make different things of their sums")
        found = []
        for one, other in zip(*sums, strict=True):
            starts = [engine.of(sums.start) for engine, sums in zip(engines, (one, other), strict=True)]
            need(starts[0] == starts[1], "their sums start otherwise")
            found.append((one.stage, other.stage, starts[0] == numbers.zero()))
        return found

    def _tails(self, length: int) -> bool:
        """Whether they use one unit for the same products, and make the same of those left over, from any sum that a
        use of this unit makes. Raises FaultError."""
        (one, other, _), *more = self._sums()
        if more or not isinstance(one, Chain) or not isinstance(other, Chain):
            return False
        whole, rest = divmod(length, one.model.length)
        need(unit_data(one.model.unit) == unit_data(other.model.unit), "their units are others")
        need(self.converts[0] == self.converts[1], "their units take products otherwise")
        need(whole > 0, "no products come before those left over")
        how = self._reading(one)
        start = Element("c") if how is None else Round(Element("c"), how)
        return self._alike(rest, [Products(stage.tail or stage, start) for stage in (one, other)], one.d)

    def _reading(self, stage: Chain) -> Rounding | None:
        """How all results of a unit may be read without a change: a rounding that makes zeros +0, and subnormal numbers
        zero; None if some result may be -0."""
        numbers, results = self._written(stage.model.length, [Products(stage, Element("c"))] * 2, stage.accumulator)
        reads = ReadAddends(self._lossless(numbers, stage.accumulator))
        text = json.dumps(format_data(stage.d), sort_keys=True)
        for tiny in ("flush_after", "keep"):
            how = Rounding(stage.d, subnormals=tiny, zero="positive")
            if reads.keeps(reads.form(results[0]), [(text, None, tiny, "positive"), how.mode, how.overflow]):
                return how
        return None

    def _from(self, one: Stage, other: Stage, zero: bool) -> int:
        """As `multiples`, of two stages. `zero`: from +0, so that it is enough if later sums are never -0."""
        try:
            return self._stages(one, other)
        except FaultError:
            if not zero:
                raise
        return self._step(one, other, zero)

    def _stages(self, one: Stage, other: Stage) -> int:
        """As `multiples`, of two stages."""
        converted = self.converts[0] == self.converts[1]
        if one == other and converted:
            return 1
        around = _around(one, other)
        if isinstance(one, Whole) and one.head is not None and not converted:
            around = None  # the head takes products of any K
        if around is not None:
            with suppress(FaultError):
                return around(self._stages(one.parts[0], other.parts[0]))
        return self._step(one, other)

    def _step(self, one: Stage, other: Stage, zero: bool = False) -> int:
        """Both stages repeat a step, from any sum so far, and round the last sum alike: by induction on the number of
        steps, they are equal if the steps are. `zero`: from any sum but -0, which no step makes."""
        (first, lasts), (second, others) = _repeated(one), _repeated(other)
        need(lasts == others, "their last sums are rounded otherwise")
        count = math.lcm(*(stage.period if isinstance(stage, Chain) else stage.every for stage in (first, second)))
        steps = [Products(stage, Element("c")) for stage in (first, second)]
        addend = first.accumulator
        alike = (
            self._flat(*self._written(count, steps, addend), addend, True)
            if zero
            else self._alike(count, steps, addend)
        )
        need(alike, f"nothing shows that steps of {count} products are equal")
        return count

    def _written(self, count: int, sides: Sequence[Node], addend: Format) -> tuple[Numbers, list[int]]:
        """The results of both sides for `count` products and an addend, written out."""
        numbers = Numbers()
        engines = [_Written(numbers, plan, count, addend) for plan in self.plans]
        return numbers, [engine.of(side) for side, engine in zip(sides, engines, strict=True)]

    def _flat(self, numbers: Numbers, results: Sequence[int], addend: Format, zero: bool = False) -> bool:
        """Whether two results are the same without roundings that lose nothing. `zero`: of an addend that is not -0,
        and they are never -0 then."""
        if len(numbers.made_of) > FLATTENED:
            return False
        lossless = self._lossless(numbers, addend, zero)
        one, other = map(lossless.form, results)
        return one == other and (not zero or lossless.never_minus(one))

    def _lossless(self, numbers: Numbers, addend: Format, zero: bool = False) -> Lossless:
        given = {"a": self.plans[0].a, "b": self.plans[0].b, "c": addend}
        return Lossless(numbers, {name: format_data(fmt) for name, fmt in given.items()}, zero)

    def _alike(self, count: int, sides: Sequence[Node], addend: Format) -> bool:
        """Whether both sides give the same for `count` products and an addend: written out, also without roundings that
        lose nothing, or by a part."""
        numbers, results = self._written(count, sides, addend)
        if results[0] == results[1]:
            return True
        if len({*map(ReadAddends(self._lossless(numbers, addend)).form, results)}) == 1:
            return True
        if self._flat(numbers, results, addend):
            return True
        for place, part in enumerate(self.parts):
            models = (part.left, part.right)
            plainly = type(part) is Problem and part.inputs == Inputs() and part.compare == "bits"
            given = all((model.length, model.scale) == (count, None) and (model.a, model.b, model.c)
                        == (self.plans[0].a, self.plans[0].b, addend) for model in models)  # fmt: skip
            if not plainly or not given:
                continue
            stated = [numbers.of_unit(unit_data(model.unit), numbers.element) for model in models]
            filled = OneZero(numbers)
            if list(map(filled.form, results)) == list(map(filled.form, stated)):
                self.used.add(place)
                return True
        return False


def _around(one: Stage, other: Stage) -> Callable[[int], int] | None:
    """If two stages do the same around their bodies: the products of which any multiple is cut into multiples of n for
    the bodies, from n; raises FaultError where there are none. None if they do not, or are none."""
    if type(one) is not type(other) or not hasattr(one, "body"):
        return None
    apart = {"body"} | UNUSED.get(type(one), set()) | ({"order"} if _in_order(one) and _in_order(other) else set())
    names = [field.name for field in fields(one) if field.name not in apart]  # type: ignore[arg-type]
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return None
    match one:
        case Rounded():
            return lambda n: n
        case Split():  # equal runs, if they are multiples of both grains
            grains = [stage.grain or stage.body.period for stage in (one, other)]  # type: ignore[attr-defined]
            return lambda n: one.ways * math.lcm(n, *grains)
        case Uneven():
            return lambda n: n if all(place % n == 0 for place in one.at) else _none("a run is not a multiple")
        case Lanes(order="backwards"):  # the bodies take one product at a time
            return lambda n: one.unroll if n == 1 else _none("a body takes single products")
        case Lanes():
            return lambda n: one.unroll * n if one.unroll else one.lanes * math.lcm(n, one.grain)
        case Interleaved() | Swizzled():
            return lambda n: one.ways * math.lcm(n, one.grain)
        case Promoted() | Turns():
            return lambda n: one.every if one.every % n == 0 else _none("a turn is not a multiple")
        case Whole():
            return lambda n: one.number if one.number % n == 0 else _none("what comes first is not a multiple")
        case Halves():
            return lambda n: one.grain if one.grain % n == 0 else _none("what is halved is not a multiple")
    return None


def _in_order(stage: Stage) -> bool:
    """Whether a stage adds its sums in order, or has so few that it makes no difference."""
    sums = len(stage.at) + 1 if isinstance(stage, Uneven) else getattr(stage, "ways", 0)
    return isinstance(stage, Split | Uneven | Interleaved) and sums <= IN_ORDER.get(stage.order, sums)


class OneZero(Rules):
    """Fused sums with one of the products of zeros that are aligned alike, with which a tile is filled up: the others
    have its exponent, and add nothing."""

    def added(self, kind: str, rest: str, terms: Sequence[Made]) -> int:
        zeros = {term for term in terms if kind == "fused" and self._is_zero(term[0])}
        return super().added(kind, rest, [*(term for term in terms if term not in zeros), *zeros])

    def _is_zero(self, number: int) -> bool:
        kind, *parts = self.numbers.made_of[number]
        return bool(kind == "product" and {self.numbers.made_of[part] for part in parts[:2]} == {("zero", False)})


def _none(text: str) -> int:
    raise FaultError(text)


def _repeated(stage: Stage) -> tuple[Chain | Promoted | Turns, tuple[Rounding, ...]]:
    """The stage that repeats one step from its start, and the roundings of its last sum."""
    if isinstance(stage, Rounded):
        inner, lasts = _repeated(stage.body)
        return inner, (*lasts, stage.rounding)
    if not isinstance(stage, (Chain, Promoted, Turns)):
        raise FaultError(f"the stages differ, and {type(stage).__name__} is not one step repeated")
    return stage, ()


class _Written(Engine[int]):
    """What a plan makes of `count` products and an addend, written out. `given`: sums of products that stand for
    themselves."""

    def __init__(
        self, numbers: Numbers, plan: Plan, count: int, addend: Format, given: dict[Products, int] | None = None
    ) -> None:
        self.numbers, self.plan, self.count, self.addend, self.given = numbers, plan, count, addend, given

    def of(self, node: Node) -> int:
        """A node of the plan's result."""
        match node:
            case Products():
                if self.given is not None:
                    return self.numbers.made("sum", self.given[node], repr(node.stage.d))
                return node.stage.run(self, Span.of(self.count), self.of(node.start))
            case Round():
                terms = node.term.items if isinstance(node.term, ExactSum) else (node.term,)
                return self.rounded(list(map(self.of, terms)), node.rounding)
            case Element():
                return self.numbers.element(node.operand, None, asdict(node))
            case Constant():
                return self.numbers.made("zero", node.negative)
            case ExactSum():
                return self.numbers.exact(list(map(self.of, node.items)))
        given = {field.name: getattr(node, field.name) for field in fields(node)}  # type: ignore[arg-type]
        rest = {name: format_data(value) if isinstance(value, Format) else value for name, value in given.items()
                if not isinstance(value, Node)}  # fmt: skip
        return self.numbers.applied(node.kind, list(map(self.of, node.operands)), rest)

    def zero(self, fmt: Format) -> int:
        return self.numbers.zero()

    def rounded(self, values: Sequence[int], rounding: Rounding) -> int:
        term = values[0] if len(values) == 1 else self.numbers.exact(values)
        return self.numbers.rounded(term, _plain(rounding), format_data(rounding.format))

    def repeat(self, count: int, name: str, start: int, body: Callable[[Index, int], int]) -> int:
        for place in range(count):
            start = body(Index(place), start)
        return start

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        yield

    def tile(self, model: Model, span: Span, start: int) -> int:
        if span.start.factors:
            raise span.unfit(model.length)

        def read(operand: str, place: int | None, how: Plain) -> int:
            if place is None:
                return self._read(start, how, model.c)
            if place >= span.count:
                return self.numbers.zero()
            convert = self.plan.convert_a if operand == "a" else self.plan.convert_b
            group, within = divmod(place, span.size)
            at = span.start.offset + group * span.pitch + within * span.step
            if convert is None:
                return self.numbers.element(operand, at, how)
            kept = self.numbers.element(operand, at, {"subnormals": "keep", "positive_zeros": False})
            return self._read(self.rounded([kept], convert), how, getattr(model, operand))

        return self.numbers.of_unit(unit_data(model.unit), read)

    def _read(self, number: int, how: Plain, fmt: Format) -> int:
        """What a unit reads where a number stands for one of its inputs, of a format that holds it."""
        kind, *parts = self.numbers.made_of[number]
        tiny, positive = how["subnormals"], how["positive_zeros"]
        if kind == "zero":
            return self.numbers.made("zero", parts[0] and not positive)
        if kind == "element" and (tiny == "keep" or self.addend.emin == fmt.emin):
            return self.numbers.element(parts[0], parts[1], how)
        if kind == "element" and self.addend.emin - self.addend.fraction >= fmt.emin:  # all of its numbers are normal
            return self.numbers.element(parts[0], parts[1], {"subnormals": "keep", "positive_zeros": positive})
        flushed = kind == "round" and parts[1][2] != "keep" and _no_number_for_nan(parts[1])
        if not (positive or (tiny != "keep" and not flushed)):
            return number
        need(positive or tiny == "zero", "it is not known what a unit reads")
        rounding = Rounding(fmt, subnormals="keep" if tiny == "keep" else "flush_after",
                            zero="positive" if positive else "ieee")  # fmt: skip
        return self.rounded([number], rounding)


def _no_number_for_nan(rounding: Made) -> bool:
    """Whether what a rounding, as a number has it, writes for a NaN is none but +0."""
    fmt, nan, *_ = rounding
    return nan_as({"nan": nan}, json.loads(fmt)) != "number"


@cache
def format_data(fmt: Format) -> Plain:
    """A format as plain data, as units have it."""
    return asdict(fmt)


def _plain(rounding: Rounding) -> Plain:
    return {field.name: getattr(rounding, field.name) for field in fields(rounding)}
