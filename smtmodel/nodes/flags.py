"""The exceptions of IEEE 754 that a rounded result signals, as the bits of RISC-V's fflags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.alignment import is_below
from mmaprobe.smtmodel.arithmetic.decode import Term, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.arithmetic.rounding import MODES, Mode, increments, is_raised, tail_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, constant, truth
from mmaprobe.smtmodel.exceptions import DOCUMENTS, Document
from mmaprobe.smtmodel.nodes.element import Constant, Element, Literal
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.node import Context, Node, Number, Unary, Value, Variant, of_kind, others, walk
from mmaprobe.smtmodel.nodes.product import Product
from mmaprobe.smtmodel.nodes.repeat import Each
from mmaprobe.smtmodel.nodes.round import Round, Rounding
from mmaprobe.smtmodel.nodes.trace import Stage

FLAGS = format_named("int5")
TINY_BEFORE: frozenset[Document] = frozenset(("arm", "power"))  # tininess is detected before rounding
QUIET_ADDEND: frozenset[Document] = frozenset(("x86",))  # infinity times zero, plus a quiet NaN, is not invalid
TAKEN = (Round, ExactSum, Product, Element, Literal, Constant)


@dataclass(frozen=True, eq=False)
class Flags(Unary):
    """The exceptions that all roundings in an expression signal together: 16 invalid, 4 overflow, 2 underflow, 1
    inexact. `document` decides whether tininess is detected before or after rounding, and whether infinity times zero
    plus a quiet NaN is invalid. The formats are IEEE's, subnormal numbers are kept, and sums are exact."""

    kind: ClassVar[str] = "flags"
    source: ClassVar[str] = (
        "IEEE 754-2019, 7; RISC-V unprivileged specification, F and D; Arm Architecture Reference Manual, FPMulAdd and "
        "FPRound; Intel SDM, volume 1, 4.9.1 and table 14-17; Power ISA 3.1, 4.4 and xsmaddadp"
    )
    document: Document

    def __post_init__(self) -> None:
        if self.document not in DOCUMENTS:
            raise ParameterError("flags", f"{self.document} is none of {', '.join(DOCUMENTS)}")
        if not isinstance(self.term, Round):
            raise ParameterError(
                "flags", f"{self.term.kind} has none: only a result that is rounded signals exceptions"
            )

    def check(self) -> None:
        """Raises ParameterError for an expression whose exceptions no document defines."""
        for node in walk(self.term):
            if isinstance(node, Each):
                raise ParameterError("flags", "its sums name their terms one by one: exact(a[0] * b[0], a[1] * b[1])")
            if not isinstance(node, TAKEN):
                raise ParameterError(
                    "flags", f"{node.kind} has none: only exact sums that are rounded signal exceptions"
                )
            if isinstance(node, Product) and node.limit is not None:
                raise ParameterError("flags", "no document defines those of a product with a limit")
            if isinstance(node, Round):
                _check(node.rounding)

    @property
    def rounding(self) -> Rounding:
        """The rounding of the five bits, to an integer, for a result that is flags."""
        return Rounding(FLAGS, "toward_zero")

    @cached_property
    def roundings(self) -> tuple[Round, ...]:
        """The roundings that signal exceptions."""
        return tuple(of_kind(self.term, Round))

    def evaluate(self, context: Context, keep: int | None) -> Value:
        self.check()
        if context.trace.keeps:  # records the signals of the result as well
            context.value(self.term)
        raised = zip(*(self._flags_of(node, context) for node in self.roundings), strict=True)
        result = _word([any_of(flags) for flags in raised])
        with context.within(context.prefix(self)):
            context.trace.pattern(Stage.RESULT, result, FLAGS)
        return Number(unpack(result, FLAGS), result)

    def _flags_of(self, node: Round, context: Context) -> tuple[Bit, ...]:
        """The flags of a rounding: inexact, underflow, overflow, invalid."""
        fmt, mode = node.rounding.format, node.rounding.fixed
        value = context.value(node.term, fmt.precision)
        term = value.term
        finite = ~(value.is_nan | value.is_infinite) & term.significand.any()
        unit = term.exponent.offset(-term.fraction)
        tail = tail_of(term.significand, unit, fmt)
        raised = is_raised(mode, term.sign, tail, None)
        wide = tail.packed.zext(tail.packed.width + 1)
        over = constant(term.sign.carrier, fmt.largest_field, wide.width).ult(wide + raised.bits(wide.width)) & finite
        inexact = ((tail.half | tail.sticky) & finite) | over
        tiny = is_below(term.significand, unit, fmt.emin) & finite
        if self.document not in TINY_BEFORE:
            tiny = tiny & ~_becomes(term, fmt, mode)
        return inexact, tiny & inexact, over, self._invalid(node, value, context)

    def _invalid(self, node: Round, value: Value, context: Context) -> Bit:
        """Whether a rounding's term has infinity times zero, infinities of both signs, or a signalling NaN."""
        carrier = value.is_nan.carrier
        pairs = [part.factors for part in _summands(node.term)]
        numbers = [part for part, pair in zip(_summands(node.term), pairs, strict=True) if pair is None]
        leaves = [*numbers, *(factor for pair in pairs if pair for factor in pair)]
        none, quiet = truth(carrier, False), [context.value(leaf).is_nan for leaf in leaves]
        signalling = any_of(
            [none, *(_signals(leaf, context) for leaf in leaves if isinstance(leaf, (Element, Literal)))]
        )
        products = [none]
        for left, right in filter(None, pairs):
            x, y = context.value(left), context.value(right)
            products += [x.is_infinite & y.is_zero, y.is_infinite & x.is_zero]
        times = any_of(products)
        if self.document in QUIET_ADDEND:
            times = times & ~any_of(quiet)
        opposite = all_of(value.infinities) & ~value.is_nan
        return signalling | times | opposite

    def variants(self) -> Iterator[Variant]:
        yield from others("document", self.document, DOCUMENTS)

    def sentence(self) -> str:
        return f"the exceptions that {self.document} has for it"


def _check(how: Rounding) -> None:
    fmt = how.format
    if fmt.specials != "ieee" or how.mode not in MODES:
        raise ParameterError("flags", f"{fmt.name}, {how.mode}: only results of an IEEE format and mode signal them")
    if how.subnormals != "keep":
        raise ParameterError("flags", "where subnormal results become zero, each document says something else")
    if how.overflow == "saturate" or how.bounds_infinity:
        raise ParameterError("flags", "IEEE 754 does not describe a result that saturates")


def _summands(term: Node) -> Sequence[Node]:
    """The numbers and products whose exact sum a term is."""
    flat = term.flat if isinstance(term, ExactSum) else term
    return flat.summands


def _signals(leaf: Element | Literal, context: Context) -> Bit:
    """Whether an input is a signalling NaN, which has a clear first fraction bit (IEEE 754-2019, 6.2.1)."""
    if isinstance(leaf, Literal):
        fmt, pattern = leaf.format, constant(context.patterns["c"][0].carrier, leaf.pattern, leaf.format.width)
    else:
        fmt = context.formats[leaf.operand]
        pattern = context.pattern(leaf.operand, 0 if leaf.index is None else context.at(leaf.index))
    if fmt.specials != "ieee":
        return truth(pattern.carrier, False)
    return unpack(pattern, fmt).is_nan & ~pattern.bit(fmt.padding + fmt.fraction - 1)


def _becomes(term: Term, fmt: Format, mode: Mode) -> Bit:
    """Whether rounding to the format's precision with unbounded exponent takes a number below the smallest normal
    number up to this number."""
    whole = term.normalised()
    bits, short = whole.significand, fmt.precision + 2 - whole.significand.width
    bits = bits.pad(short) if short > 0 else bits
    kept, rest = bits.top(fmt.precision), bits.truncate(bits.width - fmt.precision)
    raised = increments(mode, term.sign, kept.bit(0), rest.msb(), rest.truncate(rest.width - 1).any())
    below = fmt.emin - 1 - whole.exponent.low
    at = (
        whole.exponent.bits.equals(below)
        if 0 <= below < 1 << whole.exponent.bits.width
        else truth(raised.carrier, False)
    )
    return at & (~kept).equals(0) & raised


def _word(flags: Sequence[Bit]) -> Bits:
    """The five bits of the flags inexact, underflow, overflow and invalid."""
    inexact, underflow, overflow, invalid = (flag.bits(1) for flag in flags)
    none = constant(inexact.carrier, 0, 1)
    return invalid.concat(none).concat(overflow).concat(underflow).concat(inexact)
