"""The outcome of building a unit, and the unit's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mmaprobe.queries.building.answers import BUILT
from mmaprobe.queries.building.candidates import Candidate
from mmaprobe.queries.building.describing import Description
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, step_texts, unit_text

Verdict = Literal["built", "unexplained", "open"]


@dataclass
class Built:
    """The outcome: a unit; or the nearest candidate, with the vectors that no candidate explains. A unit with an open
    verdict agrees with all answers. `why`: why there is no unit, or which questions were left when the time ended;
    `stage`: the stage in which the search ended, in words."""

    verdict: Verdict = "open"
    unit: Unit | None = None
    equal: list[tuple[Model, str]] = field(default_factory=list)  # models proved equal to the unit, and why
    open: list[Model] = field(default_factory=list)  # models with the same answers so far, not proved equal
    standing: list[Candidate] = field(default_factory=list)  # the last candidates that agreed on the whole range
    untried: str = ""  # the parts of validation and the proofs that are left for `standing`
    near: tuple[Model, int] | None = None  # the instruction of the table with the fewest different answers
    near_vector: Vector | None = None  # the smallest input on which `near` differs
    questions: int = 0
    validated: int = 0
    refuted: int = 0  # units that differ from `unit` in one choice, distinguished by vectors put to the device
    unseen: int = 0  # units that differ from `unit` in one choice, for which no vector was found
    left: list[str] = field(default_factory=list)  # searches for which a share of the time was too short
    why: str = ""
    stage: str = ""
    nearest: Unit | None = None
    within: tuple[int, int] = 0, 0  # finite answers to finite operands that `nearest` does not give, and all of them
    beyond: tuple[int, int] = 0, 0  # the same of all other answers
    unexplained: list[tuple[Vector, int, int]] = field(default_factory=list)  # vector, answer, result of `nearest`
    description: Description | None = None  # where the device differs from `nearest`

    @property
    def names(self) -> list[str]:
        """The instructions and shipped units that are proved equal to the unit."""
        names = [model.reference for model, _ in self.equal if model.reference != BUILT]
        return sorted(names, key=lambda name: not name.startswith("ieee/"))  # vendor-neutral names first


def text_of(unit: Unit) -> str:
    """The unit file of a unit. Raises AssertionError if it is not read back as the same unit."""
    text = unit_text(unit)
    assert parse_unit(text, "built.yaml") == unit
    return text


def name_in_text(model: Model) -> str:
    """The name of a unit that gives the same answers as another one; of a draft, its roundings and steps."""
    if model.reference != BUILT:
        return model.reference
    return f"a draft ({'; '.join(f'{name}: {text}' for name, text in step_texts(model.unit).items())})"
