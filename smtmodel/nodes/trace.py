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
    """What a signal is in its step; the value is the word for it. STEP: what the step is called."""

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
    """A part of what a stage has; WHOLE: the number itself."""

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
    """The name of a signal. `step`: what the names of its step begin with; `of`: the term, where a stage has several.
    Its text is used in messages and documents."""

    step: str
    stage: Stage
    of: str = ""
    part: Part = Part.WHOLE

    def __str__(self) -> str:
        stage = f"{self.stage.value}[{self.of}]" if self.of else self.stage.value
        return ".".join(word for word in (self.step.rstrip("."), stage, self.part.value) if word)

    @property
    def whole(self) -> Name:
        """The name of what it is a part of."""
        return self._replace(part=Part.WHOLE)

    def its(self, part: Part) -> Name:
        """The name of another part of the same signal."""
        return self._replace(part=part)


@plain_value(frozen=True)
class Signal:
    """A named value of a stage.

    `scale`: the value is the integer times 2^scale (None: a flag, a pattern, or an exponent, which is its own integer
    with a static offset). `format`: of a pattern.
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
    """A step of an expression in an evaluation: its node, what its signals' names begin with, what those of the round
    of a repetition around it begin with, its place among the inputs (where that names it best) and its value."""

    node: object
    prefix: str
    within: str
    place: str
    value: Unpacked


@dataclass
class Trace:
    """The signals of one evaluation by name, in the order of the stages.

    `entered`: for each sum, by its prefix, how many signals came before it and the terms that it adds, by name.
    `visits`: the values of the nodes, operands first. `rounds`: what the signals of each round of a repetition without
    a name begin with.
    """

    signals: dict[Name, Signal] = field(default_factory=dict)
    prefix: str = ""
    entered: dict[str, tuple[int, tuple[tuple[str, Unpacked], ...]]] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    rounds: list[str] = field(default_factory=list)

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
        """A fixed-point number of which the lowest bit is worth 2^unit."""
        self._add(Signal(Name(self.prefix, stage, of, part), value, Kind.NUMBER, unit, is_signed=is_signed))

    def term(self, stage: Stage, value: Term, of: str = "") -> None:
        """A term's sign, significand and exponent."""
        self.flag(stage, value.sign, of, Part.SIGN)
        self.number(stage, value.significand, value.exponent.offset(-value.fraction), of, Part.SIGNIFICAND)
        self.exponent(stage, value.exponent, of, Part.EXPONENT)

    def enter(self, names: Sequence[str], items: Sequence[Unpacked]) -> None:
        """The terms of a sum, as they are before any alignment."""
        self.entered[self.prefix] = (len(self.signals), tuple(zip(names, items, strict=True)))

    def _add(self, signal: Signal) -> None:
        self.signals[signal.name] = signal

    def visit(self, node: object, prefix: str, place: str, value: Unpacked) -> None:
        """The value of a node, whose signals' names begin with `prefix`."""
        self.visits.append(Visit(node, prefix, self.prefix, place, value))

    def __getitem__(self, name: Name) -> Signal:
        return self.signals[name]

    def __iter__(self) -> Iterator[Signal]:
        return iter(self.signals.values())


class Silent(Trace):
    """Keeps nothing: for results alone, of chains whose signals would fill the memory."""

    @property
    def keeps(self) -> bool:
        return False

    def enter(self, names: Sequence[str], items: Sequence[Unpacked]) -> None:
        pass

    def visit(self, node: object, prefix: str, place: str, value: Unpacked) -> None:
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
