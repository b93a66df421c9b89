"""A unit on some of its inputs alone: those whose numbers have exponents in windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from mmaprobe.queries.kernel.forms import power
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import Node
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class Windowed:
    """A unit on those inputs alone of which each number is zero, or a normal one with its exponent in the window of its
    operand. Raises RuleError for a window beyond the exponents of a format, or of an operand that has none."""

    unit: Unit
    windows: tuple[tuple[str, tuple[int, int]], ...]

    def __post_init__(self) -> None:
        for name, (low, high) in self.windows:
            fmt = self.formats.get(name)
            if fmt is None or not fmt.emin <= low <= high <= fmt.emax:
                raise RuleError(f"windows: exponents that {name} has not")

    @property
    def formats(self) -> Mapping[str, Format]:
        """The formats of its operands by name."""
        return self.unit.formats

    @property
    def result(self) -> Node:
        return self.unit.result

    @cached_property
    def given(self) -> Mapping[str, Known]:
        """What is known of the elements of each operand that has a window."""
        found = {}
        for name, (low, high) in self.windows:
            fmt = self.formats[name]
            if fmt.is_integer:
                raise RuleError(f"a window of exponents for {name}: the numbers of {fmt.name} have one")
            found[name] = replace(
                Known.number(frozenset({fmt}), low - fmt.fraction), least=low, most=high, digits=fmt.fraction,
                head=2 - power(-fmt.fraction), top=high + 1, never_tiny=True,
            )  # fmt: skip
        return found
