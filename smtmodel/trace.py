"""The record of one evaluation: named signals of every stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from smtmodel.algebra import Bit, Bits
from smtmodel.decode import Exponent, Term, Unpacked


@dataclass(frozen=True)
class Signal:
    """A named value of a stage.

    `scale`: the value is the integer times 2^scale (None: a flag, a shift or a pattern, which has no scale; an
    Exponent signal is its own integer with a static offset).
    """

    name: str
    value: Bits | Bit
    scale: Exponent | None = None
    offset: int = 0
    is_signed: bool = False


@dataclass(frozen=True)
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
    `visits`: the values of the nodes, operands first.
    """

    signals: dict[str, Signal] = field(default_factory=dict)
    prefix: str = ""
    entered: dict[str, tuple[int, tuple[tuple[str, Unpacked], ...]]] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)

    @property
    def keeps(self) -> bool:
        """Whether what it is told is kept."""
        return True

    def flag(self, name: str, value: Bits | Bit) -> None:
        """A flag, a pattern, or a plain count."""
        self._add(Signal(self.prefix + name, value))

    def exponent(self, name: str, value: Exponent) -> None:
        """An exponent: the number is `value.bits` + `value.low`."""
        self._add(Signal(self.prefix + name, value.bits, offset=value.low))

    def number(self, name: str, value: Bits, unit: Exponent, is_signed: bool = False) -> None:
        """A fixed-point number of which the lowest bit is worth 2^unit."""
        self._add(Signal(self.prefix + name, value, scale=unit, is_signed=is_signed))

    def term(self, name: str, value: Term) -> None:
        """A term's sign, significand and exponent."""
        self.flag(f"{name}.sign", value.sign)
        self.number(f"{name}.significand", value.significand, value.exponent.offset(-value.fraction))
        self.exponent(f"{name}.exponent", value.exponent)

    def enter(self, names: Sequence[str], items: Sequence[Unpacked]) -> None:
        """The terms of a sum, as they are before any alignment."""
        self.entered[self.prefix] = (len(self.signals), tuple(zip(names, items, strict=True)))

    def _add(self, signal: Signal) -> None:
        self.signals[signal.name] = signal

    def visit(self, node: object, prefix: str, place: str, value: Unpacked) -> None:
        """The value of a node, whose signals' names begin with `prefix`."""
        self.visits.append(Visit(node, prefix, self.prefix, place, value))

    def __getitem__(self, name: str) -> Signal:
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

    def _add(self, signal: Signal) -> None:
        pass
