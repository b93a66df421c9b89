"""The quotient of two numbers, which only a rounding reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked, fit
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select
from mmaprobe.smtmodel.nodes.node import Context, Node, Number, Value
from mmaprobe.smtmodel.nodes.trace import Stage


@dataclass(frozen=True, eq=False)
class Quotient(Node):
    """One number divided by another, as by IEEE 754's division: a nonzero number divided by zero is infinite. Since a
    quotient may have infinitely many bits, only a rounding reads it."""

    kind: ClassVar[str] = "quotient"
    source: ClassVar[str] = "IEEE 754-2019, 5.4.1, 6.1, 7.2 and 7.3"
    left: Node
    right: Node

    def __post_init__(self) -> None:
        if not (self.left.is_number and self.right.is_number):
            raise ParameterError("quotient", "a number is divided by a number: round a sum first")

    @property
    def never_below_zero(self) -> bool:
        return self.left.never_below_zero and self.right.never_below_zero

    def evaluate(self, context: Context, keep: int | None) -> Value:
        if keep is None:
            raise ParameterError("quotient", "the bits of a quotient do not end: round it, r(quotient(x, y))")
        left, right = context.value(self.left).item, context.value(self.right).item
        term = context.formed((self.own, keep), partial(_divided, bits=keep + 2), left.term, right.term)
        nan = left.is_nan | right.is_nan | (left.is_zero & right.is_zero) | (left.is_infinite & right.is_infinite)
        zero = left.is_zero | right.is_infinite
        with context.within(context.prefix(self)):
            context.trace.term(Stage.STEP, term)
        significand = select(zero, constant(term.sign.carrier, 0, term.significand.width), term.significand)
        term = Term(term.sign, significand, term.exponent, term.fraction)
        return Number(Unpacked(term, zero, (left.is_infinite | right.is_zero) & ~nan, nan))

    def sentence(self) -> str:
        return "one number divided by another one"


def _divided(left: Term, right: Term, bits: int) -> Term:
    """A quotient to at least `bits` bits, with a sticky last bit."""
    left, right = left.normalised(), right.normalised()
    width = max(left.significand.width, right.significand.width)
    rest = left.significand.pad(width - left.significand.width).zext(width + 1)
    divisor = right.significand.pad(width - right.significand.width).zext(width + 1)
    digits: list[Bit] = []
    for _ in range(bits + 1):  # the rest is below twice the divisor
        digits.append(divisor.ule(rest))
        rest = select(digits[-1], rest - divisor, rest).shl(1)
    significand = _joined([*digits, rest.any()])
    return Term(left.sign ^ right.sign, significand, _difference(left.exponent, right.exponent), bits + 1)


def _joined(digits: list[Bit]) -> Bits:
    first, *others = digits
    bits = first.bits(1)
    for digit in others:
        bits = bits.concat(digit.bits(1))
    return bits


def _difference(one: Exponent, other: Exponent) -> Exponent:
    assert True not in (one.floats, other.floats), "exponents of numbers"
    low, high = one.low - other.high, one.high - other.low
    width = max(1, (high - low).bit_length())
    span = constant(one.bits.carrier, other.high - other.low, width)
    return Exponent(fit(one.bits, width) + (span - fit(other.bits, width)), low, high)
