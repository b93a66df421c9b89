"""One evaluation as a picture: numbers as rows of bits under one ruler of exponents, without any text.

A *place* is an exponent of two: the bit at place p is worth 2^p. explaining.py takes the picture from the trace of an
evaluation; a renderer decides what to fold and how to write it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.facts import SignalFacts
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.nodes.trace import Name

CauseKind = Literal["nan", "inf*0", "infinite", "too_large"]
Rule = Literal["nan", "inf*0", "opposite", "infinity"]
Outcome = Literal["exact", "cut", "raised", "overflow", "flushed"]


@dataclass(frozen=True)
class Input:
    """One input pattern. `flushed`: a subnormal that the unit reads as zero."""

    name: str
    pattern: int
    format: Format
    flushed: bool


@dataclass(frozen=True)
class BitLine:
    """A signed number as bits. `bits` are at the places `first`, `first` - 1, ...; `cut` are the bits that an
    alignment took away, from the place `cut_first` down.

    `exponent`: the one that takes part in the maximum. `signals`: the names of the trace's signals that the row shows.
    `marks`: "maximum", "raised" (rounding added a unit), "flipped" (inverting its bits added a unit), "dropped" (a term
    out of reach, which vanishes), "sticky" (the lowest bit stands for all bits below it), "nan", "infinite".
    """

    name: str
    negative: bool
    bits: str
    first: int
    cut: str = ""
    cut_first: int = 0
    exponent: int | None = None
    signals: tuple[Name, ...] = ()
    marks: frozenset[str] = frozenset()

    @property
    def last(self) -> int:
        """The place of the lowest bit."""
        return self.first - len(self.bits) + 1

    @property
    def value(self) -> Fraction:
        """The number that `bits` show, without the bits cut."""
        return self._signed(self.bits, self.first)

    @property
    def lost(self) -> Fraction:
        return self._signed(self.cut, self.cut_first)

    def _signed(self, bits: str, first: int) -> Fraction:
        magnitude = int(bits or "0", 2) * Fraction(2) ** (first - len(bits) + 1)
        return -magnitude if self.negative else magnitude


@dataclass(frozen=True)
class Rounded:
    """A sum in a format: its bits at or above the place `lowest`, and its bits below that place."""

    format: Format
    mode: str
    kept: BitLine
    lowest: int
    half: bool
    sticky: bool
    pattern: int
    outcome: Outcome
    signals: tuple[Name, ...] = ()

    @property
    def subnormal(self) -> bool:
        fields = (self.pattern & ~self.format.sign_bit) >> self.format.padding
        return 0 < fields < 1 << self.format.fraction


@dataclass(frozen=True)
class Cause:
    """Why a term is not finite, and the inputs at fault: no inputs where an earlier result is not finite, or where the
    product of finite factors is too large."""

    term: str
    kind: CauseKind
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Special:
    """The rule that decides the result in place of the sum, and its causes."""

    rule: Rule
    causes: tuple[Cause, ...]
    pattern: int
    signals: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Picture:
    """One sum, or a number that is rounded by itself (`single`).

    `name`: the sum's name in its signals, where its step has several. `unit`: the lowest place that the alignment keeps
    (None: an exact sum). `floor`: the exponent floor, where it decides the maximum. `zeros`: the zero terms, which have
    no rows. `unwrapped`: the exact sum, where it wrapped. `complement`: the two's complement of a sum that is negative
    or wrapped. `cut`: the total after a cut that changes it, before it is rounded.
    """

    prefix: str
    rows: tuple[BitLine, ...]
    zeros: tuple[str, ...]
    total: BitLine
    maximum: int | None = None
    floor: int | None = None
    unit: int | None = None
    unwrapped: BitLine | None = None
    complement: BitLine | None = None
    cut: BitLine | None = None
    rounded: Rounded | None = None
    special: Special | None = None
    name: str = ""
    single: bool = False

    @property
    def plain(self) -> bool:
        """Whether nothing is lost: the result is the exact sum of the terms."""
        lossless = not any(row.cut or row.marks & {"raised", "flipped", "sticky"} for row in (*self.rows, self.total))
        lossless = lossless and self.unwrapped is None and self.cut is None
        return lossless and (self.rounded is None or self.rounded.outcome == "exact")


@dataclass(frozen=True)
class Group:
    """A product, or products that are summed exactly, with the names of their scale factors, if there are any."""

    name: str
    members: tuple[int, ...]
    total: Fraction
    scales: tuple[str, str] | None


@dataclass(frozen=True)
class StepView:
    """One round of a repetition, or all nodes outside of repetitions: its products, and the results that enter it.

    `name`: its name in signals; empty outside of repetitions. `incoming`: the names of the addend and of results of
    earlier steps in the pictures. `result`: the pattern of the last result, in `format`; None where it is not rounded.
    `passes`: all products are zero, and the incoming result leaves unchanged.
    """

    name: str
    prefix: str
    indices: tuple[int, ...]
    incoming: tuple[str, ...]
    pictures: tuple[Picture, ...]
    result: int | None
    format: Format
    groups: tuple[Group, ...] = ()
    passes: bool = False


@dataclass(frozen=True)
class Explanation:
    """One evaluation as pictures. `facts`: its signals; `factors`: by the name of each product whose factors are not
    just the inputs of one place, these factors in words."""

    model: Model
    operands: Operands[int]
    inputs: dict[str, Input]
    products: tuple[BitLine, ...]
    steps: tuple[StepView, ...]
    result: int
    facts: SignalFacts
    factors: dict[str, tuple[str, str]]
