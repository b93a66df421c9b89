"""One evaluation as a picture: numbers as rows of bits under one ruler of exponents, as data without text.

A *place* is an exponent of two: the bit at place p is worth 2^p. explaining.py makes the picture from the trace of an
evaluation; a renderer decides which rows are folded and how they are written.
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
    """A signed number as bits. `bits` are at the places `first`, `first` - 1, ...; `cut` are the bits that the
    alignment truncated, from the place `cut_first` down.

    `exponent`: the exponent of the number in the alignment. `signals`: the names of the trace's signals that the row
    shows. `marks`: "maximum", "raised" (rounding added a unit), "flipped" (inverting the bits added a unit), "dropped"
    (a term out of reach, which vanishes), "sticky" (the lowest bit stands for all bits below it), "nan", "infinite".
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
        """The number of `bits`, without the truncated bits."""
        return self._signed(self.bits, self.first)

    @property
    def lost(self) -> Fraction:
        return self._signed(self.cut, self.cut_first)

    def _signed(self, bits: str, first: int) -> Fraction:
        magnitude = int(bits or "0", 2) * Fraction(2) ** (first - len(bits) + 1)
        return -magnitude if self.negative else magnitude


@dataclass(frozen=True)
class Rounded:
    """The rounding of a sum to a format. `kept`: the sum's bits from the place `lowest` up; `half`, `sticky`: the bit
    below this place, and whether any lower bit is set; `pattern`: the result."""

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
        return not self.format.complement and 0 < fields < 1 << self.format.fraction


@dataclass(frozen=True)
class Cause:
    """The reason why a term is not finite. `inputs`: the names of the inputs at fault; empty if an earlier result is
    not finite, or the product of finite factors is too large."""

    term: str
    kind: CauseKind
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Special:
    """The rule for special values that decides the result in place of the sum, and the rule's causes."""

    rule: Rule
    causes: tuple[Cause, ...]
    pattern: int
    signals: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Picture:
    """One sum, or a single number that is rounded (`single`).

    `name`: the sum's name in signals if the step has several sums. `unit`: the lowest place that the alignment keeps
    (None: an exact sum). `fewest`: the smallest number of bits that the alignment keeps of a term. `largest`: where
    terms have different F, and are aligned by their exponent less F, the terms for which this is the largest, each with
    its exponent and F; `maximum` is then `unit` plus the largest F. `floor`: the exponent floor if it is the maximum.
    `zeros`: the names of zero terms, which have no rows. `unwrapped`: the exact sum if it wrapped. `complement`: the
    two's complement of a negative or wrapped sum. `cut`: the total after a cut that changes it, before rounding.
    `rounds`: whether the alignment rounds the terms instead of truncating them.
    """

    prefix: str
    rows: tuple[BitLine, ...]
    zeros: tuple[str, ...]
    total: BitLine
    maximum: int | None = None
    floor: int | None = None
    unit: int | None = None
    fewest: int | None = None
    largest: tuple[tuple[str, int, int], ...] | None = None
    unwrapped: BitLine | None = None
    complement: BitLine | None = None
    cut: BitLine | None = None
    rounded: Rounded | None = None
    special: Special | None = None
    name: str = ""
    single: bool = False
    rounds: bool = False

    @property
    def plain(self) -> bool:
        """Whether the result is the exact sum of the terms."""
        lossless = not any(row.cut or row.marks & {"raised", "flipped", "sticky"} for row in (*self.rows, self.total))
        lossless = lossless and self.unwrapped is None and self.cut is None
        return lossless and (self.rounded is None or self.rounded.outcome == "exact")


@dataclass(frozen=True)
class Group:
    """A product, or an exact sum of products (`members`), with their two scale factors, an input by name and
    another one by its value, if any."""

    name: str
    members: tuple[int, ...]
    total: Fraction
    scales: tuple[str, str] | None


@dataclass(frozen=True)
class StepView:
    """One round of a repetition, or all nodes outside of repetitions.

    `name`: the step's name in signals; empty outside of repetitions. `indices`: the step's products. `incoming`: the
    names of the addend and of earlier steps' results in the pictures. `result`: the pattern of the last result, in
    `format`; None without a rounding. `passes`: all products are zero, and the result is the incoming one.
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
    """One evaluation as pictures. `facts`: the signals; `factors`: for each product whose factors are not just the
    inputs at one place, the factors in words."""

    model: Model
    operands: Operands[int]
    inputs: dict[str, Input]
    products: tuple[BitLine, ...]
    steps: tuple[StepView, ...]
    result: int
    facts: SignalFacts
    factors: dict[str, tuple[str, str]]
