"""What building ends with, and the text of a unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mmaprobe.queries.building.answers import BUILT
from mmaprobe.queries.building.candidates import Candidate
from mmaprobe.queries.building.draft import Draft
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text

Verdict = Literal["built", "unexplained", "open"]


@dataclass
class Built:
    """The outcome: the unit, or the vectors that no candidate explains and the nearest candidate. A unit whose verdict
    is open agrees with all that was asked; `why` says what was not asked when the time ended."""

    verdict: Verdict = "open"
    unit: Unit | None = None
    draft: Draft | None = None
    equal: list[tuple[Model, str]] = field(default_factory=list)  # proved equal to the unit, and how
    open: list[Model] = field(default_factory=list)  # that answer alike as far as was asked, and nothing is proved
    standing: list[Candidate] = field(default_factory=list)  # that agreed with the vectors over the whole range, last
    untried: str = ""  # what of validation and of the proofs is still to be asked about these
    near: tuple[Model, int] | None = None  # the instruction of the table with the fewest different answers
    near_vector: Vector | None = None  # the smallest input on which that one differs
    questions: int = 0
    validated: int = 0
    refuted: int = 0  # units that differ from it in one choice, told from it by vectors that the device was asked
    unseen: int = 0  # and those for which none was found
    left: list[str] = field(default_factory=list)  # groups of candidates for which a share of the time was too short
    why: str = ""
    stage: str = ""
    nearest: Unit | None = None
    unexplained: list[tuple[Vector, int, int]] = field(default_factory=list)  # vector, answer, the nearest one's

    @property
    def names(self) -> list[str]:
        """The instructions and shipped units that are proved equal to the unit."""
        names = [model.reference for model, _ in self.equal if model.reference != BUILT]
        return sorted(names, key=lambda name: not name.startswith("ieee/"))  # no vendor's, first


def text_of(unit: Unit) -> str:
    """The unit file of a unit; what it says is read again and compared. Raises AssertionError where it is another."""
    text = unit_text(unit)
    assert parse_unit(text, "built.yaml") == unit
    return text
