"""Candidates: units made from drafts, for one of the possible trees of a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaprobe.queries.building.answers import BUILT, NonzeroLeaves
from mmaprobe.queries.building.draft import Draft, Step, round_to
from mmaprobe.queries.building.drafter import Drafter
from mmaprobe.queries.building.roles import RoledTree, kinds_of
from mmaprobe.queries.building.weights import ADDED
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.units.unit import Unit

REMEMBERED = 1 << 15  # units that are cached by draft


@dataclass(frozen=True)
class Candidate:
    """A unit and its draft. `draft`: None for a shipped unit and for a unit made by changes to another (mending.py)."""

    draft: Draft | None
    unit: Unit

    @property
    def model(self) -> Model:
        return Model(BUILT, self.unit)


def drafts_of(candidates: Sequence[Candidate]) -> list[Draft]:
    return [candidate.draft for candidate in candidates if candidate.draft is not None]


class Sketch:
    """The possible trees of a device, with the roles of their steps."""

    def __init__(self, parts: Sequence[RoledTree], asked: Signature) -> None:
        self.parts, self.asked, self.weights = parts, asked, parts[0].weights
        self.count = max(part.count for part in parts)
        self.kinds = [kinds_of(part) for part in parts]
        self._drafters: dict[tuple[int, NonzeroLeaves], Drafter] = {}
        self._units: dict[tuple[Draft, NonzeroLeaves], Unit] = {}

    def start(self) -> list[Draft]:
        """The drafts to begin with, one for each tree: every step rounds an exact sum to the format of d."""
        addend = round_to(self.asked.c) if self.weights.get("c", ADDED)[1] else None
        steps = (Step(round_to(self.asked.d)),) * self.count
        return [Draft(steps, tree, addend=addend) for tree in range(len(self.parts))]

    def unit(self, draft: Draft, kept: NonzeroLeaves) -> Unit:
        """The unit of a draft, restricted to the leaves `kept` (None: all leaves). Raises ParameterError if the draft's
        parts exclude each other."""
        if (draft, kept) not in self._units:
            if len(self._units) >= REMEMBERED:
                self._units.clear()
            self._units[draft, kept] = self._drafted(draft, kept)
        return self._units[draft, kept]

    def possible_unit(self, draft: Draft, kept: NonzeroLeaves) -> Unit | None:
        """As `unit`; None if the draft's parts exclude each other."""
        try:
            return self.unit(draft, kept)
        except ParameterError:
            return None

    def _drafted(self, draft: Draft, kept: NonzeroLeaves) -> Unit:
        turns = self.parts[draft.tree].turns
        if kept is not None and draft.parts.passes == "whole" and "c" in turns:
            kept = frozenset((*kept, "c"))  # c stands for the result of the pass before
        if kept is not None and draft.store is not None:  # after the last leaf kept the sum may be stored once more
            kept = frozenset((*kept, max(turns, key=turns.__getitem__)))
        key = draft.tree, kept
        if key not in self._drafters:
            whole = self.parts[draft.tree]
            part = whole if kept is None else whole.of_few(kept)
            assert part is not None
            self._drafters[key] = Drafter(part, self.asked, kept is not None)
        return self._drafters[key].unit(draft)
