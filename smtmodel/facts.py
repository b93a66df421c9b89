"""The signals of one evaluation as Python integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smtmodel.algebra import Bit, Bits, constant
from smtmodel.batch import evaluate_lanes
from smtmodel.carriers.arrays import ArrayCarrier
from smtmodel.carriers.limbs import LIMB
from smtmodel.decode import Unpacked, unpack
from smtmodel.dot import Evaluation, Model
from smtmodel.formats import Format
from smtmodel.nodes import Element
from smtmodel.operands import Operands
from smtmodel.trace import Signal

_CARRIER = ArrayCarrier()  # constants fold before it is asked


@dataclass(frozen=True)
class Fact:
    """A signal as numbers. `scale`: of a number, the exponent of its unit; of an exponent, its static offset.
    `is_signed`: the integer is in two's complement."""

    name: str
    kind: Literal["flag", "exponent", "number", "pattern"]
    width: int
    value: int
    scale: int | None = None
    is_signed: bool = False

    @property
    def real(self) -> Fraction | None:
        """The number that it stands for; None for a pattern."""
        if self.scale is None:
            return Fraction(self.value) if self.kind == "flag" else None
        if self.kind == "exponent":
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


def integer(value: Bits | Bit) -> int:
    """The value of a signal that has one lane."""
    if value.value is not None:
        return int(value.value)
    limbs = value.node if isinstance(value.node, tuple) else (value.node,)
    return sum(int(np.asarray(limb).reshape(-1)[0]) << (LIMB * place) for place, limb in enumerate(limbs))


def evaluate_one(model: Model, operands: Operands[int]) -> Evaluation:
    """The evaluation of one input with its signals; missing trailing products, and their scale factors, are zero."""

    def lane(side: Sequence[int], length: int) -> NDArray[np.uint64]:
        return np.array([[*side, *[0] * (length - len(side))]], dtype=np.uint64)

    a, b = (lane(side, model.length) for side in (operands.a, operands.b))
    scales = [lane(side, model.scales) if model.scales else None for side in (operands.scale_a, operands.scale_b)]
    return evaluate_lanes(model, a, b, np.array([operands.c], dtype=np.uint64), *scales)


def facts_of(evaluation: Evaluation) -> dict[str, Fact]:
    """Every signal, with the terms of a sum before its first signal."""
    entered = sorted((count, prefix) for prefix, (count, _) in evaluation.trace.entered.items())
    found: list[Fact] = []
    for position, signal in enumerate(evaluation.trace):
        while entered and entered[0][0] == position:
            found += _term_facts(evaluation, entered.pop(0)[1])
        found.append(_fact(signal))
    return {fact.name: fact for fact in found}


def _fact(signal: Signal) -> Fact:
    name, number, value = signal.name, integer(signal.value), signal.value
    if isinstance(value, Bit):
        return Fact(name, "flag", 1, number)
    if signal.scale is not None:
        scale = integer(signal.scale.bits) + signal.scale.low
        return Fact(name, "number", value.width, number, scale, signal.is_signed)
    if name.endswith("exponent"):
        return Fact(name, "exponent", value.width, number, signal.offset)
    return Fact(name, "pattern", value.width, number)


def _term_facts(evaluation: Evaluation, prefix: str) -> list[Fact]:
    found = []
    for name, value in evaluation.trace.entered[prefix][1]:
        item, base = item_of(name, value), f"{prefix}term[{name}]"
        found += [
            Fact(base, "number", value.term.significand.width, item.significand, item.unit),
            Fact(f"{base}.sign", "flag", 1, item.negative),
            Fact(f"{base}.is_zero", "flag", 1, item.is_zero),
            Fact(f"{base}.is_infinite", "flag", 1, item.is_infinite),
            Fact(f"{base}.is_nan", "flag", 1, item.is_nan),
        ]
    return found


def item_of(name: str, value: Unpacked) -> Item:
    """A term of one lane, or of constants."""
    term = value.term
    exponent = integer(term.exponent.bits) + term.exponent.low
    flags = [bool(integer(flag)) for flag in (value.is_zero, value.is_infinite, value.is_nan)]
    return Item(name, bool(integer(term.sign)), integer(term.significand), exponent, exponent - term.fraction, *flags)


def item_of_pattern(name: str, pattern: int, fmt: Format, reader: Element | None = None) -> Item:
    """A pattern as an input is read, or as it stands."""
    bits = constant(_CARRIER, pattern, fmt.width)
    return item_of(name, unpack(bits, fmt) if reader is None else reader.read(bits, fmt))
