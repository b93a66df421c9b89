"""A number that a caller supplies, in the place of an expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Number, Terminal, Value


@dataclass(frozen=True, eq=False)
class Given(Terminal):
    """A number to which an elementwise expression is applied. `slot`: its index among the caller's patterns."""

    kind: ClassVar[str] = "given"
    source: ClassVar[str] = ""
    slot: int
    format: Format

    def evaluate(self, context: Context, keep: int | None) -> Value:
        pattern = context.patterns["given"][self.slot]
        return Number(unpack(pattern, self.format), pattern, (self.format, pattern))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return Known.number(frozenset({self.format}))

    def sentence(self) -> str:
        return f"a number of {self.format.name}"


@dataclass(frozen=True, eq=False)
class Magnitude(Given):
    """A number supplied by a caller that is never below zero."""

    never_below_zero = True
