"""The signals of the evaluation of one input, as Python integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from mmaprobe.smtmodel.arithmetic.decode import Unpacked, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.limbs import LIMB, limbs_of
from mmaprobe.smtmodel.evaluate.batch import evaluate_lanes, operand_tables
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model
from mmaprobe.smtmodel.evaluate.operands import Operands, padded
from mmaprobe.smtmodel.nodes.trace import Kind, Name, Part, Signal, Stage, Trace

_CARRIER = ArrayCarrier()  # never called, since the algebra folds constants


@dataclass(frozen=True)
class SignalFact:
    """A signal as integers. `width`: its bits; `value`: these as an unsigned integer; `scale`: the exponent of a
    number's unit, or an exponent's static offset; `is_signed`: the value is in two's complement; `format`: the format
    of a pattern."""

    name: Name
    kind: Kind
    width: int
    value: int
    scale: int | None = None
    is_signed: bool = False
    format: Format | None = None

    @property
    def digits(self) -> str:
        """The signal's bits in hexadecimal digits."""
        return f"{self.value:0{(self.width + 3) // 4}x}"

    @property
    def real(self) -> Fraction | None:
        """The signal as a number; None for a pattern."""
        if self.scale is None:
            return Fraction(self.value) if self.kind is Kind.FLAG else None
        if self.kind is Kind.EXPONENT:
            return Fraction(self.value + self.scale)
        wrap = self.is_signed and self.value >> (self.width - 1)
        return (self.value - (1 << self.width if wrap else 0)) * Fraction(2) ** self.scale


@dataclass(frozen=True)
class Item:
    """A term as integers: (-1)^negative * significand * 2^unit."""

    name: str
    negative: bool
    significand: int
    exponent: int
    unit: int
    is_zero: bool = False
    is_infinite: bool = False
    is_nan: bool = False

    @property
    def special(self) -> bool:
        return self.is_nan or self.is_infinite

    @property
    def value(self) -> Fraction:
        """The term as a number; valid only for a finite term."""
        return (-1 if self.negative else 1) * self.significand * Fraction(2) ** self.unit


def integer(value: Bits | Bit) -> int:
    """The value of a constant signal, or of the first lane."""
    if value.value is not None:
        return int(value.value)
    limbs: Sequence[Bits | Bit] = [value] if isinstance(value, Bit) else limbs_of(value)
    return sum(int(np.asarray(limb.node).reshape(-1)[0]) << (LIMB * place) for place, limb in enumerate(limbs))


def evaluate_one(model: Model, operands: Operands[int]) -> Evaluation:
    """The evaluation of one input with its signals. Missing products at the end, and their scale factors, are zero."""
    return evaluate_lanes(model, *operand_tables(model, [padded(operands, model)]))


@dataclass(frozen=True)
class SignalFacts:
    """The signals of one evaluation by name, in the order of the stages, and its trace."""

    by_name: Mapping[Name, SignalFact]
    trace: Trace = field(repr=False)

    def __getitem__(self, name: Name) -> SignalFact:
        return self.by_name[name]

    def get(self, name: Name) -> SignalFact | None:
        return self.by_name.get(name)

    def __iter__(self) -> Iterator[SignalFact]:
        return iter(self.by_name.values())


def facts_of(evaluation: Evaluation) -> SignalFacts:
    """The facts of every signal, with the terms of a sum before the sum's first signal."""
    entered = sorted((count, prefix) for prefix, (count, _) in evaluation.trace.entered.items())
    facts: list[SignalFact] = []
    for position, signal in enumerate(evaluation.trace):
        while entered and entered[0][0] == position:
            facts += _term_facts(evaluation, entered.pop(0)[1])
        facts.append(_fact(signal))
    return SignalFacts({fact.name: fact for fact in facts}, evaluation.trace)


def _fact(signal: Signal) -> SignalFact:
    number = integer(signal.value)
    width = 1 if signal.kind is Kind.FLAG else signal.bits.width
    scale = signal.offset if signal.kind is Kind.EXPONENT else None
    if signal.scale is not None:
        scale = integer(signal.scale.bits) + signal.scale.low
    return SignalFact(signal.name, signal.kind, width, number, scale, signal.is_signed, signal.format)


def _term_facts(evaluation: Evaluation, prefix: str) -> list[SignalFact]:
    facts = []
    for name, value in evaluation.trace.entered[prefix][1]:
        item, whole = item_of(name, value), Name(prefix, Stage.TERM, name)
        facts.append(SignalFact(whole, Kind.NUMBER, value.term.significand.width, item.significand, item.unit))
        flags = ((Part.SIGN, item.negative), (Part.IS_ZERO, item.is_zero), (Part.IS_INFINITE, item.is_infinite),
                 (Part.IS_NAN, item.is_nan))  # fmt: skip
        facts += [SignalFact(whole.its(part), Kind.FLAG, 1, flag) for part, flag in flags]
    return facts


def item_of(name: str, value: Unpacked) -> Item:
    """The term of a value as integers, for a constant value or one lane."""
    term = value.term
    exponent = integer(term.exponent.bits) + term.exponent.low
    flags = [bool(integer(flag)) for flag in (value.is_zero, value.is_infinite, value.is_nan)]
    return Item(name, bool(integer(term.sign)), integer(term.significand), exponent, exponent - term.fraction, *flags)


def item_of_pattern(name: str, pattern: int, fmt: Format) -> Item:
    """The term of a pattern as its format defines it, without flushing."""
    return item_of(name, unpack(constant(_CARRIER, pattern, fmt.width), fmt))
