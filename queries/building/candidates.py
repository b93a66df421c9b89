"""Units that are tried: drafted from choices for one of the trees that a device may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaprobe.queries.building.answers import BUILT, Kept
from mmaprobe.queries.building.draft import Choices, Drafter, How, Step
from mmaprobe.queries.building.roles import Part, kinds_of
from mmaprobe.queries.building.weights import ADDED
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.units.unit import Unit

REMEMBERED = 1 << 15  # units of choices


@dataclass(frozen=True)
class Candidate:
    """A unit, and the choices from which it was drafted: None for a unit that ships, or one found by single changes."""

    choices: Choices | None
    unit: Unit

    @property
    def model(self) -> Model:
        return Model(BUILT, self.unit)


def choices_of(candidates: Sequence[Candidate]) -> list[Choices]:
    return [candidate.choices for candidate in candidates if candidate.choices is not None]


class Sketch:
    """Trees that a device may have, and the roles of their steps."""

    def __init__(self, parts: Sequence[Part], asked: Signature) -> None:
        self.parts, self.asked, self.weights = parts, asked, parts[0].weights
        self.count = max(part.count for part in parts)
        self.kinds = [kinds_of(part) for part in parts]
        self._drafters: dict[tuple[int, Kept], Drafter] = {}
        self._units: dict[tuple[Choices, Kept], Unit] = {}

    def start(self) -> list[Choices]:
        addend = How(format=self.asked.c.name) if self.weights.get("c", ADDED)[1] else None
        return [Choices(tree=tree, steps=(Step(),) * self.count, addend=addend) for tree in range(len(self.parts))]

    def unit(self, choices: Choices, kept: Kept) -> Unit:
        """The unit of some choices; `kept`: as far as its other leaves are zero. Raises ParameterError."""
        if (choices, kept) not in self._units:
            if len(self._units) >= REMEMBERED:
                self._units.clear()
            self._units[choices, kept] = self._drafted(choices, kept)
        return self._units[choices, kept]

    def _drafted(self, choices: Choices, kept: Kept) -> Unit:
        turns = self.parts[choices.tree].turns
        if kept is not None and choices.parts.passes == "whole" and "c" in turns:
            kept = frozenset((*kept, "c"))  # in its place stands the result before
        if kept is not None and choices.store is not None:  # before the last leaf the sum may be stored once more
            kept = frozenset((*kept, max(turns, key=turns.__getitem__)))
        key = choices.tree, kept
        if key not in self._drafters:
            whole = self.parts[choices.tree]
            part = whole if kept is None else whole.of_few(kept)
            assert part is not None
            self._drafters[key] = Drafter(part, self.asked, kept is not None)
        return self._drafters[key].unit(choices)
