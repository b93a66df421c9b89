"""The record of one evaluation: the signals of every step, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.values import plain_value
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits


class Stage(Enum):
    """The role of a signal in its step; the enum's value is the role's word in signal names. STEP: the signal has the
    step's own name."""

    PRODUCT = "product"
    ADDEND = "addend"
    TERM = "term"
    MAXIMUM = "max_exponent"
    ALIGNED = "aligned"
    PLACED = "placed"
    SUM = "sum"
    CUT = "cut"
    SIGN = "sign"
    SPECIAL = "special"
    ROUNDED = "rounded"
    RESULT = "result"
    STEP = ""


class Part(Enum):
    """A part of the number of a stage; WHOLE: the number itself."""

    WHOLE = ""
    SIGN = "sign"
    SIGNIFICAND = "significand"
    EXPONENT = "exponent"
    NEGATIVE = "negative"
    MAGNITUDE = "magnitude"
    NAN = "nan"
    INFINITE = "infinite"
    IS_ZERO = "is_zero"
    IS_NAN = "is_nan"
    IS_INFINITE = "is_infinite"


class Kind(Enum):
    """How the bits of a signal are read."""

    FLAG = "flag"
    EXPONENT = "exponent"
    NUMBER = "number"
    PATTERN = "pattern"


class Name(NamedTuple):
    """The name of a signal. `step`: the prefix of its step; `of`: the term, where a stage has several. Messages and
    documents show its text."""

    step: str
    stage: Stage
    of: str = ""
    part: Part = Part.WHOLE

    def __str__(self) -> str:
        stage = f"{self.stage.value}[{self.of}]" if self.of else self.stage.value
        return ".".join(word for word in (self.step.rstrip("."), stage, self.part.value) if word)

    @property
    def whole(self) -> Name:
        """The name of the whole number, for the name of a part."""
        return self._replace(part=Part.WHOLE)

    def its(self, part: Part) -> Name:
        """The name of another part of the same number."""
        return self._replace(part=part)


@plain_value(frozen=True)
class Signal:
    """A named value of a stage.

    `scale`: the value is the integer times 2^scale; None for flags, patterns, and exponents, whose value is the integer
    plus a static offset. `format`: the format of a pattern.
    """

    name: Name
    value: Bits | Bit
    kind: Kind
    scale: Exponent | None = None
    offset: int = 0
    is_signed: bool = False
    format: Format | None = None

    @property
    def bits(self) -> Bits:
        """The value of a signal that is not a flag."""
        assert isinstance(self.value, Bits)
        return self.value

    @property
    def flag(self) -> Bit:
        """The value of a flag."""
        assert isinstance(self.value, Bit)
        return self.value


@plain_value(frozen=True)
class Visit:
    """A node in an evaluation: its site (the node, and the values of the loop variables on which it depends), the
    prefix of its signals, the prefix of the surrounding repetition's round, its place among the inputs (if the place is
    its best name), its value as a term, and for a sum the terms by name; `whole`: the value itself."""

    site: tuple[object, tuple[int, ...]]
    prefix: str
    within: str
    place: str
    value: Unpacked
    whole: object
    terms: tuple[tuple[str, Unpacked], ...] | None = None

    @property
    def node(self) -> object:
        return self.site[0]


@dataclass
class Trace:
    """The signals of one evaluation by name, in the order of the stages.

    `entered`: by the prefix of each sum, the number of signals before it and its terms by name. `visits`: the values of
    the nodes, operands first. `rounds`: the prefix of each round of an unnamed repetition.
    """

    signals: dict[Name, Signal] = field(default_factory=dict)
    prefix: str = ""
    entered: dict[str, tuple[int, tuple[tuple[str, Unpacked], ...]]] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    rounds: list[str] = field(default_factory=list)
    _terms: tuple[tuple[str, Unpacked], ...] | None = field(default=None, init=False)  # of the sum being formed

    @property
    def keeps(self) -> bool:
        """Whether signals are kept."""
        return True

    def flag(self, stage: Stage, value: Bit, of: str = "", part: Part = Part.WHOLE) -> None:
        """A truth value."""
        self._add(Signal(Name(self.prefix, stage, of, part), value, Kind.FLAG))

    def pattern(self, stage: Stage, value: Bits, fmt: Format) -> None:
        """The pattern of a number of a format."""
        self._add(Signal(Name(self.prefix, stage), value, Kind.PATTERN, format=fmt))

    def exponent(self, stage: Stage, value: Exponent, of: str = "", part: Part = Part.WHOLE) -> None:
        """An exponent: the number is `value.bits` + `value.low`."""
        self._add(Signal(Name(self.prefix, stage, of, part), value.bits, Kind.EXPONENT, offset=value.low))

    def number(
        self, stage: Stage, value: Bits, unit: Exponent, of: str = "", part: Part = Part.WHOLE, is_signed: bool = False
    ) -> None:
        """A fixed-point number; its lowest bit has the weight 2^unit."""
        self._add(Signal(Name(self.prefix, stage, of, part), value, Kind.NUMBER, unit, is_signed=is_signed))

    def term(self, stage: Stage, value: Term, of: str = "") -> None:
        """A term's sign, significand and exponent."""
        self.flag(stage, value.sign, of, Part.SIGN)
        self.number(stage, value.significand, value.exponent.offset(-value.fraction), of, Part.SIGNIFICAND)
        self.exponent(stage, value.exponent, of, Part.EXPONENT)

    def enter(self, names: Sequence[str], items: Sequence[Unpacked]) -> None:
        """Record the terms of a sum, before any alignment."""
        self._terms = tuple(zip(names, items, strict=True))
        self.entered[self.prefix] = (len(self.signals), self._terms)

    def _add(self, signal: Signal) -> None:
        self.signals[signal.name] = signal

    def visit(
        self, site: tuple[object, tuple[int, ...]], prefix: str, place: str, value: Unpacked, whole: object
    ) -> None:
        """Record the value of a node at its site, whose signals have the prefix `prefix`."""
        self.visits.append(Visit(site, prefix, self.prefix, place, value, whole, self._terms))
        self._terms = None

    def __getitem__(self, name: Name) -> Signal:
        return self.signals[name]

    def __iter__(self) -> Iterator[Signal]:
        return iter(self.signals.values())


class Silent(Trace):
    """Keeps no signals: for results alone, as the signals of long chains would fill the memory."""

    keeps = False

    def enter(self, names: Sequence[str], items: Sequence[Unpacked]) -> None:
        pass

    def visit(
        self, site: tuple[object, tuple[int, ...]], prefix: str, place: str, value: Unpacked, whole: object
    ) -> None:
        pass

    def flag(self, stage: Stage, value: Bit, of: str = "", part: Part = Part.WHOLE) -> None:
        pass

    def pattern(self, stage: Stage, value: Bits, fmt: Format) -> None:
        pass

    def exponent(self, stage: Stage, value: Exponent, of: str = "", part: Part = Part.WHOLE) -> None:
        pass

    def number(
        self, stage: Stage, value: Bits, unit: Exponent, of: str = "", part: Part = Part.WHOLE, is_signed: bool = False
    ) -> None:
        pass

    def term(self, stage: Stage, value: Term, of: str = "") -> None:
        pass
