"""The rectifier: a number, or zero in place of a number below zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, get_args

from mmaprobe.smtmodel.arithmetic.decode import Term, Unpacked
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, truth
from mmaprobe.smtmodel.nodes.known import Known, turned
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Number, Unary, Value, Variant, others

Nan = Literal["keep", "zero"]
ReluZero = Literal["positive", "keep", "signed"]
NANS: tuple[Nan, ...] = get_args(Nan)
RELU_ZEROS: tuple[ReluZero, ...] = get_args(ReluZero)


@dataclass(frozen=True, eq=False)
class Relu(Unary):
    """max(x, 0), as the activation of a layer. The defaults are IEEE 754-2019's maximum(x, +0); libraries differ in two
    ways. `nan`: a NaN is kept, or becomes +0 (maximumNumber). `zero`: every zero result is +0; or -0 is kept and
    numbers below zero become +0 (x < 0 ? 0 : x); or every zero has the sign of x. If x is a sum before its rounding,
    `zero` and `nan` have their defaults, since such a sum may have infinities of both signs, and its zeros have no
    sign."""

    kind: ClassVar[str] = "relu"
    source: ClassVar[str] = "IEEE 754-2019, 9.6, maximum and maximumNumber; CUTLASS, activation.h at 0dc3ba60"
    passes_specials = True
    nan: Nan = "keep"
    zero: ReluZero = "positive"

    def __post_init__(self) -> None:
        if (self.nan, self.zero) != ("keep", "positive") and not self.term.is_number:
            raise ParameterError("relu", f"nan and zero apply to a number: round this {self.term.kind} first")

    @property
    def is_number(self) -> bool:
        return self.term.is_number

    def evaluate(self, context: Context, keep: int | None) -> Value:
        value = context.value(self.term, keep)
        return Number(context.formed(self.own, self._of, value.term, value.is_zero, value.is_nan, *value.infinities))

    def _of(self, term: Term, is_zero: Bit, is_nan: Bit, positive: Bit, negative: Bit) -> Unpacked:
        no = truth(is_nan.carrier, False)
        is_nan = is_nan | (positive & negative)
        dropped = is_nan if self.nan == "zero" else no
        lost = (
            dropped | negative | (term.sign & term.significand.any() & ~positive)
        )  # a dropped NaN, or a number below 0
        kept = term.significand & (~lost).bits(1).sext(term.significand.width)
        sign = {"positive": no, "keep": term.sign & ~lost, "signed": term.sign & ~dropped}[self.zero]
        rectified = replace(term, sign=sign, significand=kept)
        return Unpacked(rectified, is_zero | lost, positive, is_nan & ~dropped)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of x, for a result that is x above zero, and else zero or a NaN."""
        (x,) = operands
        return replace(x, interval=x.interval and (Fraction(0), x.interval[1]), never_minus=False, terms=(), adds=False,
                       agrees=False, positive=False, turns=turned(x.turns, False))  # fmt: skip

    def variants(self) -> Iterator[Variant]:
        yield from others("relu_nan", self.nan, NANS)
        yield from others("relu_zero", self.zero, RELU_ZEROS)
        yield Variant("relu", True, False)

    def varied(self, variant: Variant) -> Node:
        if variant.parameter == "relu":
            return self.term
        own = {"relu_nan": "nan", "relu_zero": "zero"}.get(variant.parameter)  # roundings have parameters nan and zero
        return self if own is None else super().varied(replace(variant, parameter=own))

    def sentence(self) -> str:
        nan = "a NaN is kept" if self.nan == "keep" else "a NaN becomes +0"
        zeros = {"positive": "every zero is +0", "keep": "-0 is kept", "signed": "every zero has the sign of x"}
        return f"max(x, 0); {nan}, {zeros[self.zero]}"
