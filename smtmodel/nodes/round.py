"""Rounding to a number of a format, with the rules for overflow, subnormals, zeros and NaNs."""

from __future__ import annotations

import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, get_args

from mmaprobe.smtmodel.arithmetic.alignment import is_below
from mmaprobe.smtmodel.arithmetic.decode import Term, Unpacked, unpack
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.ieee import with_specials
from mmaprobe.smtmodel.arithmetic.rounding import (
    NEAREST,
    OVERFLOWS,
    RESULT_OVERFLOWS,
    ROUNDINGS,
    SIGNLESS,
    STOCHASTIC,
    Mode,
    Overflow,
    ResultMode,
    ResultOverflow,
    Target,
    is_stochastic,
    round_and_pack,
    signed,
)
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose, constant, select, truth
from mmaprobe.smtmodel.nodes.cut import Cut
from mmaprobe.smtmodel.nodes.element import Element, Literal
from mmaprobe.smtmodel.nodes.known import ANY, Known, all_known, lies_in, power, rounded, turned
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Number, Unary, Value, Variant, others
from mmaprobe.smtmodel.nodes.repeat import Running
from mmaprobe.smtmodel.nodes.trace import Part, Stage, Trace
from mmaprobe.smtmodel.operand import DRAWN

Zero = typing.Literal["ieee", "exact_positive", "positive"]
Tiny = typing.Literal["keep", "flush_after", "flush_before"]
ZEROS: tuple[Zero, ...] = get_args(Zero)
TINY: tuple[Tiny, ...] = get_args(Tiny)


def is_random(fmt: Format) -> bool:
    """Whether random bits can have a format: it must be an unsigned integer format."""
    return fmt.is_integer and not fmt.signed


@dataclass(frozen=True)
class Rounding:
    """The rules of a rounding to a format: a plain value, not a node.

    `overflow`: the result beyond the largest finite number: infinity in every mode, the largest number, or the result
    that IEEE 754-2019, 7.4 prescribes; or IEEE P3109's SatFinite (the largest number, for infinities too), or
    SatPropagate (the same, for infinities only if the format has none). `subnormals`: kept, or zero of the same sign if
    the rounded result is subnormal (`flush_after`), or if the exact result is below the smallest normal number
    (`flush_before`). `zero`: the sign of a zero result: IEEE's; +0 for an exact zero sum; +0 for every zero. `nan`: the
    pattern of a NaN result; None: any quiet NaN.
    """

    format: Format
    mode: ResultMode = "nearest_even"
    overflow: ResultOverflow = "ieee"
    subnormals: Tiny = "keep"
    zero: Zero = "ieee"
    nan: int | None = None

    def __post_init__(self) -> None:
        name = self.format.name
        if self.format.is_integer and self.subnormals != "keep":
            raise ParameterError("subnormals", f"{name} has no subnormal numbers that could be flushed")
        if self.nan is not None and self.nan >> self.format.width:
            raise ParameterError("nan", f"{self.nan:x} is wider than the {self.format.width} bits of {name}")

    @property
    def stochastic(self) -> bool:
        """Whether the rounding depends on random bits."""
        return is_stochastic(self.mode)

    @property
    def beyond(self) -> Overflow:
        """The rule for finite numbers beyond the largest one."""
        if self.overflow == "sat_finite" or self.overflow == "sat_propagate":
            return "saturate"
        return self.overflow

    @property
    def bounds_infinity(self) -> bool:
        """Whether an infinity becomes the largest number."""
        return self.overflow == "sat_finite" or (self.overflow == "sat_propagate" and not self.format.has_infinity)

    @property
    def fixed(self) -> Mode:
        """The mode of a rounding without random bits. Raises ParameterError for a stochastic mode."""
        if is_stochastic(self.mode):
            raise ParameterError("round", f"{self.mode} depends on random bits")
        return self.mode

    @property
    def is_signless(self) -> bool:
        """Whether a negated number becomes the negated result, with the same random bits if there are any. A number
        written for NaN would not be negated."""
        return (self.stochastic or self.mode in SIGNLESS) and self.format.signed and self.nan_or_zero

    @property
    def nan_pattern(self) -> int:
        return self.format.nan if self.nan is None else self.nan

    @cached_property
    def _nan_value(self) -> Fraction | str:
        return exact_value(self.nan_pattern, self.format)

    @property
    def keeps_nan(self) -> bool:
        """Whether a NaN stays a NaN, rather than becoming a number."""
        return self._nan_value == "nan"

    @property
    def loses_nan(self) -> bool:
        """Whether a NaN becomes a number, in a format that has NaNs."""
        return self.format.has_nan and not self.keeps_nan

    @property
    def nan_or_zero(self) -> bool:
        """Whether a NaN stays a NaN, or becomes +0."""
        return self._nan_value in ("nan", 0)

    def known(self, y: Known, fits: bool) -> Known:
        """The facts of the result of rounding y. `fits`: y is finite and does not overflow.

        A multiple of 2^g stays a multiple of 2^g, unless the result is the largest number or the pattern for NaNs
        (which may be a number). A number below 2^emax with at most the format's bits gets no further bits. Unless
        rounding is down, an exact zero sum is -0 only if all its terms are negative or -0, hence never if one term is
        never -0. A nonzero y is rounded to -0, or to a subnormal number, only near zero (`_is_far`)."""
        fmt, plain = self.format, self.nan_or_zero or fits
        if not fmt.subnormals:  # zero and numbers near zero become the smallest number
            return Known.number(frozenset({fmt}))
        turns = turned(y.turns, self.is_signless)
        grid = None if y.grid is None or not plain else min(y.grid, fmt.largest_number[0] - fmt.fraction)
        same = fits or y.finite or (fmt.has_infinity and not self.bounds_infinity)  # no infinity is written as a number
        below = fits or (same and y.top is not None and y.top <= fmt.emax)
        interval = rounded(y.interval if plain and same else None, fmt.precision, fmt.emin, self.mode)
        facts = Known.number(frozenset({fmt}), grid, y.bits if plain and below else None, interval)
        ends = self.beyond == "saturate" or (interval is not None and lies_in(interval, fmt.interval))
        finite = fits or not (fmt.has_infinity or fmt.has_nan) or (plain and y.finite and ends)
        if not plain:
            return replace(facts, finite=finite, turns=turns)
        plus = self.zero == "exact_positive" and y.adds
        own = self.mode != "down" and (y.never_minus or y.positive)
        return replace(
            facts, finite=finite, grid=ANY if y.zero else facts.grid, zero=y.zero,
            never_tiny=self.subnormals != "keep" or self._is_far(y, True),
            never_minus=self.zero == "positive" or ((plus or own) and self.keeps_nonzero(y)), turns=turns,
        )  # fmt: skip

    def keeps_nonzero(self, y: Known) -> bool:
        """Whether every nonzero y is rounded to a nonzero number."""
        return self._is_far(y, self.subnormals != "keep")

    def keeps(self, y: Known) -> bool:
        """Whether rounding keeps every value y, infinities and NaNs included, except for the sign of a zero.

        A number of the format is kept, unless it is subnormal and subnormal numbers are flushed. A number with at most
        the format's bits is kept too if its magnitude is below 2^emax and it is a multiple of the smallest positive
        result."""
        fmt = self.format
        if not fmt.subnormals or y.grid is None:  # the format has no zero, or y's grid is not known
            return False
        fine = y.grid >= (fmt.unit if self.subnormals == "keep" else fmt.emin)
        if self.bounds_infinity and not y.finite:
            return False
        if _is_number(y, fmt):
            return not self.loses_nan and (fine or y.never_tiny)
        if y.bits is None or y.top is None or not fmt.has_negative_zero:
            return False
        return fine and y.bits <= fmt.precision and y.top <= fmt.emax and (
            y.finite or (fmt.has_infinity and self.keeps_nan))  # fmt: skip

    def holds_beside(self, terms: Sequence[Known], counts: Sequence[int]) -> bool:
        """True only if no sum of `terms` is rounded beyond the largest number. The reason: one term is a number of the
        format, added once, and all other terms together are less than half a unit in the largest number's last place.
        `counts`: how often each term is added."""
        fmt, sizes = self.format, all_known(known.largest for known in terms)
        if fmt.complement or self.mode not in (*NEAREST, "toward_zero") or sizes is None:
            return False
        numbers = [size for size, known, count in zip(sizes, terms, counts, strict=True)
                   if count == 1 and known.formats == frozenset((fmt,))]  # fmt: skip
        every = sum(size * count for size, count in zip(sizes, counts, strict=True))
        return any(every - size < power(fmt.emax - fmt.precision) for size in numbers)

    def _is_far(self, y: Known, normal: bool) -> bool:
        """Whether y is zero or of magnitude at least 2^e, the smallest positive number of the format, or its smallest
        normal number if `normal`.

        This holds if y is a multiple of 2^e; or if y is an exact sum whose terms, except for one term x, are multiples
        of 2^(e + p), and x is a number of the format, of p bits of precision, and zero or at least 2^e. Proof: let s be
        the sum of the other terms. If s is zero, y is x. Else s is a multiple of 2^g with g >= e + p. If x is below
        2^(g - 1), y is at least 2^(g - 1); if not, x is a multiple of 2^(g - p), and so is y."""
        fmt, terms = self.format, y.terms or (y,)
        least = fmt.emin if normal else fmt.unit
        if y.grid is not None and y.grid >= least:
            return True
        near = [known for known in terms if known.grid is None or known.grid - fmt.precision < least]
        return len(near) == 1 and _is_number(near[0], fmt) and (not normal or near[0].never_tiny)


def _is_number(known: Known, fmt: Format) -> bool:
    """Whether a value is known to be zero or a number of a format."""
    return known.formats is not None and known.formats <= {fmt}


@dataclass(frozen=True, eq=False)
class Round(Unary):
    """A term rounded to a number of a format. `random`: the random bits of stochastic rounding, an operand's element or
    an unsigned integer."""

    kind: ClassVar[str] = "round"
    source: ClassVar[str] = "IEEE 754-2019, 4.3 and 7.4; Xie et al. 2026, section 4.2"
    later: ClassVar[frozenset[str]] = frozenset({"random"})
    rounding: Rounding
    random: Element | Literal | None = None
    is_number = True
    without_loss = "operand"

    def __post_init__(self) -> None:
        if self.rounding.stochastic != (self.random is not None):
            mode, needs = self.rounding.mode, "needs" if self.rounding.stochastic else "takes no"
            raise ParameterError("round", f"{mode} {needs} random bits: r(x, random)")
        if not self.rounding.format.signed and not self.term.never_below_zero:
            name = self.rounding.format.name
            raise ParameterError("round", f"{name} has no sign: no number below zero can be rounded to it")
        if isinstance(self.random, Element) and self.random.operand not in DRAWN:
            raise ParameterError("round", f"random bits are {' or '.join(DRAWN)}, not {self.random.operand}")
        if isinstance(self.random, Literal) and not is_random(self.random.format):
            raise ParameterError("round", f"{self.random.format.name} is no format of random bits: uint2 to uint64 are")

    def count_of_bits(self, formats: Mapping[str, Format]) -> int:
        """The number of random bits of the rounding, for operands of these formats; 0 without random bits."""
        if isinstance(self.random, Literal):
            return self.random.format.width
        return 0 if self.random is None else formats[self.random.operand].width

    def bits(self, random: Term) -> Bits:
        """The random bits of the integer `random`."""
        if isinstance(self.random, Literal):
            return constant(random.sign.carrier, self.random.pattern, self.random.format.width)
        return random.significand

    @property
    def never_below_zero(self) -> bool:
        return self.term.never_below_zero

    @property
    def converts(self) -> Element | None:
        """The input that the node converts to another format; None if the node does anything else."""
        return self.term if isinstance(self.term, Element) and self.random is None else None

    @property
    def bits_of_terms(self) -> tuple[int, ...]:
        return (self.rounding.format.fraction,)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return self.rounding.known(operands[0], knowledge.fits)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        how = self.rounding
        fmt = how.format
        if not context.trace.keeps and (native := self._by_processor(context)) is not None:
            return native
        random = None if self.random is None else self.bits(context.value(self.random).term)
        more = int(how.subnormals == "flush_before") if random is None else random.width + 1
        value = context.value(self.term, fmt.precision + more)
        flags = value.is_nan, *value.infinities, self._of_zero(value), random
        if not context.trace.keeps:
            result, item = context.formed(self.own, self._result, value.term, *flags)
            return Number(item.folded(), result)
        sign, finite, result, item = self._rounded(value.term, *flags)
        with context.within(context.prefix(self)):
            self._record(context.trace, fmt, sign, value, finite, result)
        return Number(item, result)

    def _result(
        self, term: Term, is_nan: Bit, positive: Bit, negative: Bit, of_zero: Bit | None, random: Bits | None
    ) -> tuple[Bits, Unpacked]:
        return self._rounded(term, is_nan, positive, negative, of_zero, random)[2:]

    def _rounded(
        self, term: Term, is_nan: Bit, positive: Bit, negative: Bit, of_zero: Bit | None, random: Bits | None
    ) -> tuple[Bit, Bits, Bits, Unpacked]:
        """The sign, the pattern of the result without special values, the pattern of the result, and the result
        unpacked. `of_zero`: the sign of an exact zero; None for the term's sign."""
        how = self.rounding
        fmt = how.format
        sign = term.sign if of_zero is None else choose(term.significand.any(), term.sign, of_zero)
        finite = self.pattern_of(term, sign, random)
        result = with_specials(finite, is_nan, positive, negative, fmt, how.nan_pattern, how.bounds_infinity)
        # without infinity, an infinite result is a NaN, and has the pattern of NaN results
        if fmt.has_nan and not fmt.has_infinity and how.nan is not None:
            result = select(unpack(result, fmt).is_nan, constant(result.carrier, how.nan, fmt.width), result)
        return sign, finite, result, unpack(result, fmt)

    def pattern_of(self, term: Term, sign: Bit, random: Bits | None = None) -> Bits:
        """The pattern of the result of a finite term. `sign`: the result's sign."""
        how = self.rounding
        fmt = how.format
        unit = term.exponent.offset(-term.fraction)
        target = Target(fmt, how.mode, how.beyond, how.subnormals == "flush_after", how.zero == "positive")
        finite = round_and_pack(sign, term.significand, unit, target, random)
        if how.subnormals == "flush_before":
            plus = how.zero == "positive" or not fmt.has_negative_zero
            zero = signed(0, sign & truth(sign.carrier, not plus), fmt)
            finite = select(is_below(term.significand, unit, fmt.emin), zero, finite)
        return finite

    def _by_processor(self, context: Context) -> Number | None:
        """The result of the carrier's own fused multiply-add, for one addition, one product, or both, of numbers of the
        format, in binary32 or binary64, rounded to nearest; None for any other rounding."""
        how, fmt = self.rounding, self.rounding.format
        plain = how.mode == "nearest_even" and how.beyond != "saturate" and how.zero == "ieee"
        if not plain or fmt not in (FORMATS["f32"], FORMATS["f64"]):
            return None
        flush, term = how.subnormals == "flush_before", self.term
        if flush:  # to flush after rounding, a number is first rounded to as many bits as a normal number has
            if not isinstance(term, Cut) or (term.bits, term.mode, term.least) != (fmt.precision, how.mode, None):
                return None
            term = term.term
        carrier = context.patterns["c"][0].carrier
        if not carrier.fuses(flush) or (nodes := _one_step(term)) is None:
            return None
        given = {1.0: fmt.bias << fmt.fraction, -0.0: 1 << (fmt.width - 1)}
        packed = []
        for node in nodes:
            if isinstance(node, float):
                pattern: Bits | None = constant(carrier, given[node], fmt.width)
            else:
                pattern = _packed(context.value(node), fmt)
            if pattern is None:
                return None
            packed.append(pattern.node)
        left, right, addend = packed
        raw = Bits(carrier, fmt.width, carrier.multiply_and_add(left, right, addend, fmt.width, flush))
        if how.subnormals == "flush_after":
            normal = raw.extract(fmt.field_width - 1, fmt.fraction).any()
            zero = raw.bit(fmt.width - 1).bits(1).concat(constant(carrier, 0, fmt.width - 1))
            raw = select(normal, raw, zero)
        result = select(unpack(raw, fmt).is_nan, constant(carrier, how.nan_pattern, fmt.width), raw)
        return Number(unpack(result, fmt), result, (fmt, raw))

    @staticmethod
    def _record(trace: Trace, fmt: Format, sign: Bit, value: Value, finite: Bits, result: Bits) -> None:
        trace.flag(Stage.SIGN, sign)
        trace.flag(Stage.SPECIAL, value.is_nan | (value.infinities[0] & value.infinities[1]), part=Part.NAN)
        trace.flag(Stage.SPECIAL, value.is_infinite, part=Part.INFINITE)
        trace.pattern(Stage.ROUNDED, finite, fmt)
        trace.pattern(Stage.RESULT, result, fmt)

    def key(self, context: Context) -> Hashable:
        key = self.term.key(context)
        random = None if self.random is None else self.random.key(context)
        return None if key is None else (self.kind, key, self.rounding, random)

    def _of_zero(self, value: Value) -> Bit | None:
        """The sign of an exact zero sum; None if a zero has the sign of the term."""
        if self.rounding.zero != "ieee" or not value.is_sum:
            return None
        return value.negatives[1] if self.rounding.mode == "down" else value.negatives[0]

    def variants(self) -> Iterator[Variant]:
        how = self.rounding
        yield from others("mode", how.mode, STOCHASTIC if how.stochastic else ROUNDINGS)
        yield from others("overflow", how.overflow, OVERFLOWS if how.beyond == how.overflow else RESULT_OVERFLOWS)
        yield from others("subnormals", how.subnormals, TINY)
        yield from others("zero", how.zero, ZEROS)

    def varied(self, variant: Variant) -> Node:
        if variant.parameter not in ("mode", "overflow", "subnormals", "zero"):
            return self
        if getattr(self.rounding, variant.parameter) != variant.old:
            return self
        return replace(self, rounding=replace(self.rounding, **{variant.parameter: variant.new}))  # type: ignore[arg-type]

    def sentence(self) -> str:
        how = self.rounding
        tiny = {"keep": "", "flush_after": ", subnormal results are zero", "flush_before": ", tiny results are zero"}
        return f"rounded to {how.format.name}, {how.mode.replace('_', ' ')}{tiny[how.subnormals]}"


def _one_step(term: Node) -> tuple[Node | float, Node | float, Node | float] | None:
    """The two factors and the addend of a term that is one operation; None for other terms."""
    products = [part for part in term.summands if part.factors is not None]
    rest = [part for part in term.summands if part.factors is None]
    if not all(map(_is_one, rest)):
        return None
    if len(products) == 1 and len(rest) <= 1:
        factors = products[0].factors
        assert factors is not None
        return (*factors, rest[0] if rest else -0.0)
    return (rest[0], 1.0, rest[1]) if len(rest) == 2 and not products else None


def _is_one(node: Node) -> bool:
    """Whether a node is a single number or running result, rather than a sum of several terms."""
    return node.is_number or isinstance(node, Running)


def _packed(value: Value, fmt: Format) -> Bits | None:
    return value.packed(fmt) if isinstance(value, Number) else None
