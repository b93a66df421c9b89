"""The command line of `prove`, and what all its kinds of statements have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import click

from mmaprobe.cli.options import refuse
from mmaprobe.smtmodel.inputs.restrictions import parse_inputs

if TYPE_CHECKING:
    from mmaprobe.documents.prove import Measure
    from mmaprobe.queries.conjectures.conjecture import Conjecture
    from mmaprobe.queries.plans.invariant import Fixed
    from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs
    from mmaprobe.smtmodel.tables.reference import Named

ERROR_BOUND = "error-bound"
Found = TypeVar("Found")
AnyDocument = TypeVar("AnyDocument")


@dataclass(frozen=True)
class CommandLine:
    """A command line, without the options that all kinds of statements read alike. `sides`: the models, plans or
    designs; `rules`: the file of a map."""

    sides: tuple[Named, ...]
    wanted: str
    restrictions: str
    compare: Compare | None
    length: int | None
    flags: str | None
    measure: Measure | None
    rules: Path | None
    shapes: str
    fixed: Fixed | None
    explain: bool
    latex: bool
    as_json: bool

    @cached_property
    def inputs(self) -> Inputs:
        """The inputs admitted. Raises ParameterError."""
        return parse_inputs(self.restrictions)

    @property
    def names_plan(self) -> bool:
        """Whether a side is a plan for any K."""
        return any(side.is_plan for side in self.sides)

    @property
    def plan_hint(self) -> str:
        """What to do about plans where models are needed."""
        k, without = ("K", "") if self.length is None else (self.length, ", without --length")
        name = self.sides[0].text if len(self.sides) == 1 else "plan:NAME"
        return f"; a plan is a model at one K{without}: {name}@length={k}" if self.names_plan else ""


class Statement(ABC, Generic[Found, AnyDocument]):
    """One kind of statement, as a command line asks it. Raises UsageError for options that it does not read, and
    MmaprobeError for a statement that cannot be asked."""

    def __init__(self, line: CommandLine) -> None:
        self.line = line
        self.check()
        self.conjecture = self.conjectured()

    @abstractmethod
    def check(self) -> None:
        """Refuse the options that are not read."""

    @abstractmethod
    def conjectured(self) -> Conjecture[Found, AnyDocument]:
        """The conjecture to decide."""

    @abstractmethod
    def show(self, found: Found, document: AnyDocument) -> None:
        """Print the verdict and its details."""


class OfSides(Statement[Found, AnyDocument]):
    """A statement about models, plans or designs that are named."""

    def check(self) -> None:
        refuse("it goes with --invariant", "shapes", "fixed")
        if not self.line.sides:
            raise click.UsageError("Missing argument 'MODEL [MODEL]'.")
        if self.line.wanted != "equal":
            refuse(f"{self.line.wanted} is about results, not about exceptions", "flags")


class OfResults(OfSides[Found, AnyDocument]):
    """A statement about results: two sides give equal results, or the results of one side have a property."""

    def check(self) -> None:
        super().check()
        refuse(f"it is for {ERROR_BOUND}", "latex", "measure")
        if self.line.wanted != "equal" and len(self.line.sides) != 1:
            raise click.UsageError(f"{self.line.wanted} is a property of one model{self.line.plan_hint}")
