"""The common part of all sums of terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Self

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked
from mmaprobe.smtmodel.base.errors import EXPONENTS, ParameterError, check_number
from mmaprobe.smtmodel.carriers.algebra import Bits, constant, max_of, select, truth
from mmaprobe.smtmodel.nodes.node import Context, Node, Total, Value
from mmaprobe.smtmodel.nodes.trace import Part, Stage, Trace

BITS = (0, 256)  # the limits of the number of bits kept of a term


class Sum(Node):
    """A sum of its operands; an operand that stands for several terms adds all of them."""

    items: tuple[Node, ...]
    without_loss = "sum"
    reach: tuple[int | None, ...] = ()
    sticky: bool = False
    carry_bits: int | None = None

    def check_items(self) -> None:
        """Raises ParameterError for a sum without operands."""
        if not self.items:
            raise ParameterError(self.kind, "a sum needs a term")

    def check_alignment(
        self, fraction_bits: int | tuple[int, ...], floors: tuple[int | None, ...], reach: tuple[int | None, ...]
    ) -> None:
        """Raises ParameterError for an impossible number of bits, and for a parameter with another number of values
        than there are operands; `floors` and `reach` may be empty."""
        self.check_items()
        every = fraction_bits if isinstance(fraction_bits, tuple) else (fraction_bits,) * len(self.items)
        for name, given in (("F", every), ("floors", floors), ("reach", reach)):
            if (given or name == "F") and len(given) != len(self.items):
                raise ParameterError(name, f"{len(given)} values for {len(self.items)} operands")
        for bits in every:
            check_number("F", bits, BITS)
        for name, numbers in (("floors", floors), ("reach", reach)):
            for number in numbers:
                check_number(name, number, EXPONENTS)

    @property
    def raises_of_terms(self) -> tuple[int, ...]:
        """For each term, by how much its exponent in the alignment exceeds the term's own exponent."""
        return (0,) * len(self.bits_of_terms)

    @property
    def kept_of_terms(self) -> tuple[int, ...]:
        """For each term, the number of bits kept below the largest exponent of the alignment."""
        return tuple(bits + more for bits, more in zip(self.bits_of_terms, self.raises_of_terms, strict=True))

    @property
    def reach_of_terms(self) -> list[int | None]:
        """For each term, the distance below the largest exponent of the alignment beyond which it vanishes."""
        return self.each_term(self.reach)

    def vanishing(self, below: str) -> str:
        """How far below what its terms vanish, in words; empty if none does."""
        if set(self.reach) <= {None}:
            return ""
        if len(set(self.reach)) == 1:
            return f"; a term more than {self.reach[0]} places below {below} vanishes"
        return f"; {in_order(self.reach)}: the places below {below} beyond which its terms in order vanish"

    @property
    def bounds(self) -> tuple[int, ...]:
        """The lower bounds of the largest exponent."""
        return ()

    @property
    def frame_term(self) -> int | None:
        """The index of the term whose sign is the frame (see `GridSum`); None without a frame."""
        return None

    def of_terms(self, terms: Sequence[tuple[int, Node]]) -> Self:
        """The same sum of other terms, each given with the position of the operand whose parameters the term gets."""
        names = [name for name in self.field_names() if isinstance(getattr(self, name), tuple)]
        changed = {name: tuple(given[at] for at, _ in terms) for name in names if (given := getattr(self, name))}
        return replace(self, **{**changed, "items": tuple(term for _, term in terms)})  # type: ignore[type-var]

    def key_of(self, position: int) -> tuple[str, ...]:
        """The texts of the parameters of the operand at a position."""
        values = (getattr(self, name) for name in self.field_names() if name != "items")
        return tuple(str(given[position]) for given in values if isinstance(given, tuple) and given)

    def value_at(self, given: int | tuple[int | None, ...] | None, position: int) -> int | None:
        """The value of a parameter for the operand at a position: the value for all operands, or the operand's own."""
        return given if not isinstance(given, tuple) else given[position] if given else None

    def each_term(self, given: int | tuple[int | None, ...] | None) -> list[int | None]:
        """The value of a parameter for each term."""
        each = [self.value_at(given, position) for position in range(len(self.items))]
        return [value for item, value in zip(self.items, each, strict=True) for _ in range(item.count)]

    def by_term(self, given: int | tuple[int, ...]) -> tuple[int, ...]:
        """The value of a parameter for each term, for a parameter that every operand has."""
        return tuple(value or 0 for value in self.each_term(given))


def in_order(values: Sequence[int | None]) -> str:
    """The values of a parameter of operands in words."""
    return ", ".join("none" if value is None else str(value) for value in values)


def named_terms(items: Sequence[Node], context: Context) -> tuple[list[str], list[Value]]:
    """The names and the values of the terms of some operands. Where signals are kept, no two terms have one name."""
    named, alike = [pair for item in items for pair in item.terms(context)], Counter[str]()
    names = [name for name, _ in named]
    for place, name in enumerate(names if context.trace.keeps else ()):
        alike[name] += 1
        names[place] = name if alike[name] == 1 else f"{name}({alike[name]})"
    return names, [value for _, value in named]


def summed(
    node: Node, context: Context, key: Hashable, sum_of: Callable[..., Term], names: Sequence[str],
    values: Sequence[Value], *given: object,
) -> Total:  # fmt: skip
    """The value of an aligned sum. `sum_of` is called with a trace, the names, the further arguments `given`, and the
    terms; if no signals are kept, the terms are without flags of special values."""
    with context.within(context.prefix(node)):
        form = partial(sum_of, context.trace, names)
        if context.trace.keeps:
            return Total(form(*given, *values), values)
        return Total(context.formed(key, form, *given, *map(bare, values)), values)


def counted_exponents(
    items: Sequence[Value | Unpacked],
    exponents: Sequence[Exponent],
    floors: Sequence[int | None],
    zeros: int | None = None,
    least: int | None = None,
) -> list[Exponent]:
    """The exponents with which terms count in an alignment, each at least its floor, with one static offset that
    also fits `least`. A zero counts with the exponent `zeros`; if `zeros` is None, with the smallest exponent of all,
    which changes no sum, since a sum of zeros is zero in any unit."""
    bounds = [bound for bound in (zeros, least, *floors) if bound is not None]
    floats = any(exponent.floats for exponent in exponents)
    low = min([item.term.exponent.low for item in items] + bounds) - floats
    high = max([exponent.high for exponent in exponents] + bounds)
    width, carrier = max(1, (high - low).bit_length()), items[0].sign.carrier
    absent, counted = constant(carrier, 0 if zeros is None else zeros - low, width), []
    for item, exponent, floor in zip(items, exponents, floors, strict=True):
        own = select(item.is_zero, absent, exponent.rebased(low, width))
        if floor is not None:
            own = max_of([own, constant(carrier, floor - low, width)])
        counted.append(Exponent(own, low, high, floats=floats))
    return counted


def bare(value: Value) -> Unpacked:
    """A value without flags of special values: its term, and whether it counts as zero, as alignments read it."""
    no = truth(value.sign.carrier, False)
    return Unpacked(value.term, value.is_zero, no, no)


def enter_terms(
    trace: Trace, names: Sequence[str], items: Sequence[Value | Unpacked], exponents: Sequence[Exponent]
) -> None:
    """Record the terms to be aligned, with their exponents in the alignment."""
    if trace.keeps:
        trace.enter(names, [item.item if isinstance(item, Value) else item for item in items])
        for name, exponent in zip(names, exponents, strict=True):
            trace.exponent(Stage.TERM, exponent, name, Part.EXPONENT)


def record_terms(
    trace: Trace, names: Sequence[str], items: Sequence[Value | Unpacked], aligned: Sequence[Bits], unit: Exponent
) -> None:
    """Record each term, and its magnitude in units of the alignment."""
    if trace.keeps:
        for name, item, magnitude in zip(names, items, aligned, strict=True):
            trace.flag(Stage.TERM, item.sign, name, Part.SIGN)
            own = item.term.exponent.offset(-item.term.fraction)
            trace.number(Stage.TERM, item.term.significand, own, name)
            trace.number(Stage.ALIGNED, magnitude, unit, name)
