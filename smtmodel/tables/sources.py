"""The publications from which the parameters of the instruction table come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class SourcePart:
    """Parameters with a publication of their own; `what` describes the parameters for users."""

    what: str
    parameters: tuple[str, ...]
    publication: str


@dataclass(frozen=True)
class Source:
    """The main publication of an instruction's parameters, and other publications for some parameters (`parts`).
    `note`: a remark on the main publication. `str` of a source names all publications."""

    publication: str
    parts: tuple[SourcePart, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        first = ": ".join(filter(None, [self.publication, self.note]))
        return "; ".join([first, *(f"{part.what} from {part.publication}" for part in self.parts)])

    def of(self, parameters: Collection[str]) -> str:
        """The publications of some parameters: the main publication, except for the parameters in `parts`."""
        others = {name: part.publication for part in self.parts for name in part.parameters}
        return " and ".join(dict.fromkeys(others.get(name, self.publication) for name in parameters or ("",)))


MMA_SIM = "MMA-Sim 2.1.1"
