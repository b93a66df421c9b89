"""Inputs: an element of a, b, c or of the scale factors, read as a number; and the constants +0 and -0."""

from __future__ import annotations

import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, ClassVar, get_args

from mmaprobe.smtmodel.arithmetic.decode import Term, Unpacked, unpack, unpacked_row
from mmaprobe.smtmodel.arithmetic.display import exact_value, finite_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.values import kept_property
from mmaprobe.smtmodel.carriers.algebra import Bits, constant, stacked, truth
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.known import NOTHING, UNKNOWN, ZERO, Known, hull, power
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Number, Terminal, Value, Variant, of_kind, others
from mmaprobe.smtmodel.nodes.trace import Stage
from mmaprobe.smtmodel.operand import NAMED, READ

Subnormals = typing.Literal["keep", "zero", "positive_zero"]
SUBNORMALS: tuple[Subnormals, ...] = get_args(Subnormals)


@dataclass(frozen=True, eq=False)
class Element(Terminal):
    """One element of an operand. An operand with one element for the whole sum, such as c, has no index.

    `subnormals`: subnormal numbers are kept; read as zero with their sign (x86's DAZ, Arm's FIZ); or read as +0.
    `positive_zeros`: zeros are read as +0 (AMD CDNA2).
    """

    kind: ClassVar[str] = "element"
    source: ClassVar[str] = "IEEE 754-2019, 3.4; flushing: Xie et al. 2026, Algorithm 1, and the manuals of x86 and Arm"
    operand: str
    index: Index | None = None
    subnormals: Subnormals = "keep"
    positive_zeros: bool = False

    def __post_init__(self) -> None:
        if self.operand not in NAMED:
            raise UnknownNameError("operand", self.operand, NAMED)
        if (self.index is None) != (NAMED[self.operand].per == "sum"):
            raise ParameterError(self.operand, "it has an index exactly if a sum reads several elements of it")

    @property
    def is_factor(self) -> bool:
        """Whether the element is a scale factor."""
        return NAMED[self.operand].is_factor

    @property
    def is_addend(self) -> bool:
        return self.operand == "c"

    @kept_property
    def free(self) -> frozenset[int]:
        return frozenset(level for level, _ in self.index.factors) if self.index else frozenset()

    def place(self, context: Context) -> str:
        return self.operand if self.index is None else f"{self.operand}{context.at(self.index)}"

    def evaluate(self, context: Context, keep: int | None) -> Value:
        pattern, fmt = self._pattern(context), context.formats[self.operand]
        whole = self.whole(context)
        item = self.read(pattern, fmt) if whole is None else unpacked_row(whole, self._at(context))
        if self.operand == "c":
            with context.within(""):
                context.trace.term(Stage.ADDEND, item.term)
        unchanged = self.subnormals == "keep" and not self.positive_zeros
        return Number(item, native=(fmt, pattern) if unchanged else None)

    @kept_property
    def way(self) -> Hashable:
        """The operand and the reading of its elements. Elements with equal keys are decoded together."""
        return self.operand, self.subnormals, self.positive_zeros

    def whole(self, context: Context) -> Unpacked | None:
        """All elements of the operand, decoded at once, of which `unpacked_row` takes one; None if the carrier does not
        stack, or this element is missing."""
        patterns = context.patterns[self.operand]
        if self._at(context) >= len(patterns):
            return None
        if self.way not in context.wholes:
            pattern = stacked(patterns) if len(patterns) > 1 else None
            context.wholes[self.way] = None if pattern is None else self.read(pattern, context.formats[self.operand])
        return context.wholes[self.way]

    def _at(self, context: Context) -> int:
        return 0 if self.index is None else context.at(self.index)

    def _pattern(self, context: Context) -> Bits:
        return context.pattern(self.operand, self._at(context))

    def read(self, pattern: Bits, fmt: Format) -> Unpacked:
        """A pattern of `fmt.width` bits, decoded as the element is read."""
        item = unpack(pattern, fmt, self.subnormals != "keep" and fmt.subnormals, self.positive_zeros)
        if self.subnormals == "zero" and fmt.signed and not self.positive_zeros:
            item = replace(item, term=replace(item.term, sign=pattern.bit(fmt.field_width)))
        return item

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        fmt = knowledge.formats.get(self.operand)
        if fmt is None:
            return UNKNOWN
        kept = self.subnormals != "zero" and self.operand in knowledge.unsigned
        finite = knowledge.fits or not (fmt.has_infinity or fmt.has_nan)
        plain = _known(fmt, self.positive_zeros or kept, self.subnormals != "keep", finite,
                       self._turns(knowledge.formats))  # fmt: skip
        given = knowledge.given.get(self.operand)
        if given is None:
            return plain
        return replace(
            given, never_minus=plain.never_minus, never_tiny=plain.never_tiny or given.never_tiny,
            finite=plain.finite or given.finite,
            turns=plain.turns,
        )  # fmt: skip

    def _turns(self, formats: Mapping[str, Format]) -> bool | None:
        """In two's complement the least number is negated to itself."""
        if self.operand not in ("a", "c"):
            return False
        negated = [fmt for name, fmt in formats.items() if name in ("a", "c")]
        return True if all(fmt.signed and not fmt.complement for fmt in negated) else None

    def key(self, context: Context) -> Hashable:
        constant_value = self._pattern(context).value  # a constant has the same key at every place
        at = None if self.index is None or constant_value is not None else context.at(self.index)
        return self.operand, at, constant_value, self.subnormals, self.positive_zeros

    def variants(self) -> Iterator[Variant]:
        if self.operand in READ:
            yield from others("input_subnormals", self.subnormals, SUBNORMALS)
            yield from others("input_zeros", self.positive_zeros, (False, True))

    def varied(self, variant: Variant) -> Node:
        fields = {"input_subnormals": "subnormals", "input_zeros": "positive_zeros"}
        if self.operand not in READ or variant.parameter not in fields:
            return self
        return super().varied(replace(variant, parameter=fields[variant.parameter]))

    def sentence(self) -> str:
        read = {"keep": "", "zero": ", subnormals read as zero", "positive_zero": ", subnormals read as +0"}
        zeros = ", -0 as +0" if self.positive_zeros else ""
        return f"an element of {self.operand}{read[self.subnormals]}{zeros}"


@cache
def flushed_in(*results: Node) -> frozenset[str]:
    """The operands with elements in these expressions whose subnormal numbers are read as zero."""
    elements = (one for result in results for one in of_kind(result, Element))
    return frozenset(one.operand for one in elements if one.subnormals != "keep")


@lru_cache(1 << 12, typed=True)  # a format of another type is another format
def _known(fmt: Format, never_minus: bool, never_tiny: bool, finite: bool, turns: bool | None) -> Known:
    facts = Known.number(frozenset({fmt}))
    return replace(facts, never_minus=never_minus, never_tiny=never_tiny, finite=finite, turns=turns)


@dataclass(frozen=True, eq=False)
class Constant(Terminal):
    """+0 or -0, from which a sum starts."""

    kind: ClassVar[str] = "zero"
    source: ClassVar[str] = "IEEE 754-2019, 6.3"
    negative: bool = False

    @property
    def never_below_zero(self) -> bool:
        return not self.negative

    def evaluate(self, context: Context, keep: int | None) -> Value:
        carrier, fmt = context.patterns["c"][0].carrier, context.formats["c"]
        zero = unpack(constant(carrier, 0, fmt.width), fmt)
        return Number(replace(zero, term=replace(zero.term, sign=truth(carrier, self.negative))))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return replace(ZERO, never_minus=not self.negative)

    def sentence(self) -> str:
        return "-0" if self.negative else "+0"


@dataclass(frozen=True, eq=False)
class Literal(Terminal):
    """A fixed number, given as a pattern of a format."""

    kind: ClassVar[str] = "number"
    source: ClassVar[str] = "IEEE 754-2019, 3.4"
    pattern: int
    format: Format

    def __post_init__(self) -> None:
        if not 0 <= self.pattern < 1 << self.format.width:
            raise ParameterError("number", f"{self.pattern:#x} is not a pattern of {self.format.width} bits")

    @property
    def never_below_zero(self) -> bool:
        return not self.pattern & self.format.sign_bit

    def evaluate(self, context: Context, keep: int | None) -> Value:
        carrier = context.patterns["c"][0].carrier
        item = unpack(constant(carrier, self.pattern, self.format.width), self.format)
        return Number(replace(item, term=replace(item.term, **self._without_zeros(item.term))))

    @kept_property
    def value(self) -> Fraction | None:
        """The number; None for an infinity or a NaN."""
        return finite_value(self.pattern, self.format)

    def _without_zeros(self, term: Term) -> dict[str, Any]:
        """The significand without zeros at its end, with its fraction bits, so that products are as narrow as
        possible."""
        low = (self.pattern >> self.format.padding) & (1 << self.format.fraction) - 1 | 1 << self.format.fraction
        zeros = min((low & -low).bit_length() - 1, term.fraction)
        return {"significand": term.significand.extract(term.significand.width - 1, zeros),
                "fraction": term.fraction - zeros}  # fmt: skip

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        value = exact_value(self.pattern, self.format)
        if value in ("-0", 0):
            return replace(ZERO, never_minus=value == 0)
        facts = replace(Known.number(frozenset({self.format})), never_minus=True, finite=isinstance(value, Fraction),
                        turns=False)  # fmt: skip
        if isinstance(value, str):
            return facts
        size, down = abs(value.numerator), value.denominator.bit_length() - 1
        grid = (size & -size).bit_length() - 1 - down
        top = size.bit_length() - down
        exponent = max(top - 1, self.format.emin)
        return replace(facts, least=exponent, most=exponent, head=abs(value) / power(exponent), digits=exponent - grid,
                       grid=grid, bits=top - grid, interval=hull((value, value), NOTHING))  # fmt: skip

    def sentence(self) -> str:
        return f"the {self.format.name} {self.pattern:#x}"


F32 = FORMATS["f32"]
MINUS = Literal(F32.one | F32.sign_bit, F32)  # -1


def power_of_two(exponent: int) -> Literal:
    """2^exponent as a number of f32. Raises ParameterError for a power that is not a normal number."""
    if not F32.emin <= exponent <= F32.emax:
        raise ParameterError(f"2**{exponent}", "no normal number of f32: number(PATTERN, FORMAT) takes others")
    return Literal(exponent + F32.bias << F32.fraction, F32)
