"""Covering vectors as a document."""

from __future__ import annotations

from mmaprobe.documents.cover import Conditions, OutOfReach
from mmaprobe.documents.cover import Cover as Document
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.queries.covering.cover import Cover, Wanted, words
from mmaprobe.smtmodel.inputs.vectors import Vector


def vectors_of(found: Cover) -> list[Vector]:
    """The covering vectors: each with the conditions that it was chosen for, and the unit's result."""
    return [
        Vector(found.model, found.layout.split(row), d, f"cover-{number}", extra={"reaches": [words(x) for x in why]})
        for number, (row, why, d) in enumerate(zip(found.rows, found.reasons, found.results, strict=True))
    ]


def document_of(found: Cover, seconds: float) -> Document:
    """The document that `cover` prints."""
    return Document(
        model=found.model.reference,
        complete=not found.open and not found.interrupted,
        conditions=_conditions(found, "conditions"),
        pairs=_conditions(found, "pairs"),
        changes=_conditions(found, "changes"),
        vectors=[Row.of(vector.to_json()) for vector in vectors_of(found)],
        seconds=round(seconds, 3),
    )


def _kind(wanted: Wanted) -> str:
    return "changes" if not isinstance(wanted, tuple) else "conditions" if len(wanted) == 1 else "pairs"


def _conditions(found: Cover, kind: str) -> Conditions:
    """The conditions of one kind, by whether each is met, out of reach or open."""
    every = [wanted for wanted in found.counts if _kind(wanted) == kind]
    still = set(found.open)
    return Conditions(
        reached=[words(wanted) for wanted in every if found.counts[wanted]],
        out_of_reach=[
            _out_of_reach(found, wanted) for wanted in every if not (found.counts[wanted] or wanted in still)
        ],
        open=[words(wanted) for wanted in every if wanted in still],
    )


def _out_of_reach(found: Cover, wanted: Wanted) -> OutOfReach:
    if isinstance(wanted, tuple):
        theorem = found.unreachable[wanted]
        why = "; ".join(one.word for one in theorem.walk() if one.word)
        return OutOfReach(condition=words(wanted), rule=theorem.rule, why=why)
    return OutOfReach(condition=words(wanted), rule="equal", why=found.same[wanted].ground)
