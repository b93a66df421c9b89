"""The possible values of the terms of a sum: ranges of significands and exponents, as the datapath itself bounds
them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

from mmaprobe.queries.kernel.arguments import remembered
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.smtmodel.arithmetic.alignment import magnitude_of, place_all, total_of
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, multiply, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select, truth
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.nodes import Each, Element, ExactSum, Gate, Node, Product, Round, Scale
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Knowledge, of_kind
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.units.unit import Unit

Symbol = Callable[[str, int], Bits]


@dataclass(frozen=True)
class Range:
    """The finite numbers that a term can be. Their significand has `width` bits, `fraction` of them below the exponent;
    the exponent is from `low` to `high`; every number is a multiple of 2^unit. `leading`: the first bit of the
    significand is set unless the exponent is `low`, as in the numbers of a format."""

    def __str__(self) -> str:
        leading = ", normal or with the least exponent" if self.leading else ""
        return f"{self.width} bits from 2^{self.low} to 2^{self.high}{leading}, multiples of 2^{self.unit}"

    width: int
    fraction: int
    low: int
    high: int
    unit: int
    leading: bool = False

    def __post_init__(self) -> None:
        """Raises RuleError for a range without numbers: without bits, or without exponents."""
        if self.width < 1 or self.low > self.high:
            raise RuleError(f"a range without numbers: {self}")

    @staticmethod
    def of(term: Term, unit: int | None = None, leading: bool = False) -> Range:
        """The range of a term as the datapath bounds it."""
        exponent, width = term.exponent, term.significand.width
        own = exponent.least - term.fraction
        return Range(width, term.fraction, exponent.least, exponent.high, own if unit is None else unit, leading)

    @property
    def integer(self) -> int:
        """The number of significand bits that are not below the exponent."""
        return self.width - self.fraction

    @property
    def places(self) -> int:
        """The number of bits of the exponent, counted from `low`."""
        return max(1, (self.high - self.low).bit_length())

    def inputs(self, symbol: Symbol) -> tuple[Bits, Bits, Bits]:
        """A sign (1 bit), a significand (`width` bits) and an exponent counted from `low` (`places` bits), without
        constraints."""
        return symbol("sign", 1), symbol("significand", self.width), symbol("exponent", self.places)

    def term(self, given: tuple[Bits, ...]) -> Term:
        """The term with this sign, significand and exponent."""
        sign, significand, exponent, *_ = given
        return Term(sign.bit(0), significand, Exponent(exponent, self.low, self.high), self.fraction)

    def admits(self, given: tuple[Bits, ...]) -> Bit:
        """Whether a sign, significand and exponent are a nonzero number of the range."""
        _, significand, exponent, *_ = given
        carrier = significand.carrier
        within = significand.any() & exponent.ule(constant(carrier, self.high - self.low, exponent.width))
        if self.leading:
            within = within & (significand.msb() | exponent.equals(0))
        spare = self.unit + self.fraction - self.low  # places below the unit where the exponent is the least
        if spare > 0:
            width = max(exponent.width, spare.bit_length())
            own, most = exponent.zext(width), constant(carrier, spare, width)
            amount = select(own.ult(most), most - own, constant(carrier, 0, width))
            within = within & is_multiple(significand, amount)
        return within


def is_multiple(value: Bits, places: Bits) -> Bit:
    """Whether a number is a multiple of 2^places."""
    return value.lshr(places).shl(places).eq(value)


@dataclass(frozen=True)
class Held:
    """The facts about the result so far of a loop. It is zero, or a number, infinity or NaN of one of these formats; if
    it is finite, it is a multiple of 2^unit (None: of the last place of the format's smallest numbers). `never_minus`:
    it is never -0; `never_tiny`: it is never subnormal."""

    formats: frozenset[Format]
    unit: int | None = None
    never_minus: bool = False
    never_tiny: bool = False

    @property
    def known(self) -> Known:
        plain = Known.number(self.formats, self.unit)
        return replace(plain, never_minus=plain.never_minus or self.never_minus,
                       never_tiny=plain.never_tiny or self.never_tiny)  # fmt: skip


@dataclass(frozen=True)
class Scope:
    """The context of an expression: the formats of the operands, the facts about the results so far of the enclosing
    loops, by level, and operands of which no element is -0."""

    formats: tuple[tuple[str, Format], ...]
    held: tuple[tuple[int, Held], ...] = ()
    unsigned: frozenset[str] = frozenset()

    @staticmethod
    def of(unit: Unit | Plan) -> Scope:
        """The scope of the result of a unit, or of a plan over its sums. Raises RuleError for a unit that takes random
        bits, or whose roundings make numbers of infinities: the rules of rewriting do not hold for these."""
        rounded = [node.rounding for node in of_kind(unit.result, Round)]
        if any(how.stochastic or how.bounds_infinity for how in rounded):
            raise RuleError("units that take random bits, or make numbers of infinities, are not rewritten")
        return Scope(tuple(unit.formats.items()))

    @cached_property
    def _hash(self) -> int:
        return hash((self.formats, self.held, self.unsigned))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def knowledge(self) -> Knowledge:
        return Knowledge(dict(self.formats), self.unsigned, {level: one.known for level, one in self.held})

    def known(self, node: Node) -> Known:
        """The facts about a node's value."""
        return self.knowledge.of(node)

    def within(self, level: int, held: Held) -> Scope:
        """The scope of a loop's body."""
        inner = replace(self, held=(*self.held, (level, held)))
        # facts about nodes without a result so far are shared
        inner.__dict__["knowledge"] = self.knowledge.within(level, held.known)
        return inner


@remembered(1 << 12)
def ranges_of(scope: Scope, node: Node) -> frozenset[Range] | None:
    """The ranges of the nonzero terms that a node contributes to a sum; None if not known."""
    match node:
        case Element():
            fmt = dict(scope.formats).get(node.operand)
            return None if fmt is None else frozenset((_element_range(node, fmt),))
        case Each():
            return ranges_of(scope, node.body)
        case Gate():  # a nonzero gate is its product
            return ranges_of(scope, node.term)
        case Product() | Scale():
            parts = [ranges_of(scope, operand) for operand in node.operands]
            if any(part is None for part in parts):
                return None
            first, *rest = [part for part in parts if part is not None]
            for part in rest:
                first = frozenset(_product_range(x, y) for x in first for y in part)
            normalised = isinstance(node, Product) and node.normalised
            return frozenset(map(_normalised_range, first)) if normalised else first
        case ExactSum():  # a sum is a term with the exponent 0
            own = [ranges_of(scope, item) for item in node.items]
            single = [one for ranges in own if ranges is not None and len(ranges) == 1 for one in ranges]
            counts = [item.count for item in node.items]
            return frozenset((_sum_range(tuple(single), tuple(counts)),)) if len(single) == len(own) else None
    known = scope.known(node)
    if known.zero:
        return frozenset()
    return None if known.formats is None else frozenset(_number_range(fmt, known.grid) for fmt in known.formats)


def _nought(width: int) -> Bits:
    return constant(ArrayCarrier(), 0, width)


@cache
def _element_range(element: Element, fmt: Format) -> Range:
    return Range.of(element.read(_nought(fmt.width), fmt).term, leading=True)


@cache
def _number_range(fmt: Format, unit: int | None) -> Range:
    """The range of the numbers of a format that are multiples of 2^unit; a nonzero one has no exponent below `unit`."""
    plain = Range.of(unpack(_nought(fmt.width), fmt).term, leading=True)
    if unit is None or unit <= plain.unit:
        return plain
    return replace(plain, unit=unit, low=min(max(unit, plain.low), plain.high))


def _any_term(one: Range) -> Term:
    exponent = Exponent(_nought(one.places), one.low, one.high)
    return Term(truth(exponent.bits.carrier, False), _nought(one.width), exponent, one.fraction)


@cache
def _product_range(left: Range, right: Range) -> Range:
    return Range.of(multiply(_any_term(left), _any_term(right)), left.unit + right.unit)


@cache
def _sum_range(items: tuple[Range, ...], counts: tuple[int, ...]) -> Range:
    terms = [_any_term(one) for one, count in zip(items, counts, strict=True) for _ in range(count)]
    placed, low = place_all(terms)
    _, magnitude = magnitude_of(total_of([term.sign for term in terms], placed, None))
    return Range(magnitude.width, -low, 0, 0, min(one.unit for one in items))


@cache
def _normalised_range(one: Range) -> Range:
    return Range.of(_any_term(one).normalised(), one.unit)
