"""A unit, or a plan, on some of its inputs: the inputs whose numbers have exponents in windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mmaprobe.queries.kernel.questions.steps import PlanAt
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import Node
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class Windowed:
    """A unit or a plan on the inputs in which every number of an operand with a window is zero, or normal with its
    exponent in this window. Raises RuleError for a window beyond the exponents of the operand's format, and for an
    operand that the unit does not have."""

    unit: Unit | PlanAt
    windows: tuple[tuple[str, tuple[int, int]], ...]

    def __post_init__(self) -> None:
        for name, (low, high) in self.windows:
            fmt = self.formats.get(name)
            if fmt is None or not fmt.emin <= low <= high <= fmt.emax:
                raise RuleError(f"windows: {name} has no exponents from {low} to {high}")

    @property
    def formats(self) -> Mapping[str, Format]:
        """The formats of the operands, by name."""
        return self.unit.formats

    @property
    def result(self) -> Node:
        return self.unit.result

    @cached_property
    def given(self) -> Mapping[str, Known]:
        """The facts about the elements of each operand that has a window."""
        facts = {}
        for name, (low, high) in self.windows:
            fmt = self.formats[name]
            if fmt.is_integer:
                raise RuleError(f"a window of exponents for {name}: all numbers of {fmt.name} have the same exponent")
            facts[name] = Known.normal(fmt, low, high)
        return facts


def plan_at(unit: Unit | Windowed | PlanAt) -> PlanAt:
    """The plan that a theorem is about, on all inputs or on some. Raises RuleError for a theorem about a unit."""
    subject = unit.unit if isinstance(unit, Windowed) else unit
    if not isinstance(subject, PlanAt):
        raise RuleError("the theorem is about a unit, where a plan is needed")
    return subject


def unit_in(unit: Unit | Windowed) -> Unit:
    """The unit that a theorem is about, on all inputs or on some. Raises RuleError for a theorem about a plan."""
    subject = unit.unit if isinstance(unit, Windowed) else unit
    if not isinstance(subject, Unit):
        raise RuleError("the theorem is about a plan, where a unit is needed")
    return subject


def is_of_plan(unit: Unit | Windowed | PlanAt) -> bool:
    """Whether a theorem is about a plan, on all inputs or on some."""
    return isinstance(unit.unit if isinstance(unit, Windowed) else unit, PlanAt)
