"""Covering vectors as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmaprobe.documents.cover import Conditions, OutOfReach
from mmaprobe.documents.cover import Cover as Document
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.queries.covering.cover import Cover, Wanted, words
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex
from mmaprobe.smtmodel.tables.reference import FLAGS


def vectors_of(cover: Cover, signalling: Model | None = None) -> list[Vector]:
    """The covering vectors, each with the conditions that it was chosen for and the unit's result. `signalling`: if the
    covered unit gives the exception flags of another unit, that unit; the vectors then name it and have both its result
    and the flags."""
    model, results = cover.model, cover.results
    extras: list[dict[str, Any]] = [{"reaches": [words(x) for x in why]} for why in cover.reasons]
    if signalling is not None:
        extras = [{FLAGS: to_hex(word, cover.model.d), **extra}
                  for extra, word in zip(extras, results, strict=True)]  # fmt: skip
        model, results = signalling, cover.results_of(signalling)
    return [
        Vector(model, cover.layout.split(row), d, f"cover-{number}", extra=extra)
        for number, (row, extra, d) in enumerate(zip(cover.rows, extras, results, strict=True))
    ]


def document_of(cover: Cover, seconds: float, vectors: Sequence[Vector]) -> Document:
    """The document that `cover` prints, with the covering vectors."""
    return Document(
        model=cover.model.reference,
        complete=not cover.open and not cover.interrupted,
        conditions=_conditions(cover, "conditions"),
        pairs=_conditions(cover, "pairs"),
        changes=_conditions(cover, "changes"),
        vectors=[Row.of(vector.to_json()) for vector in vectors],
        seconds=round(seconds, 3),
    )


def _kind(wanted: Wanted) -> str:
    return "changes" if not isinstance(wanted, tuple) else "conditions" if len(wanted) == 1 else "pairs"


def _conditions(cover: Cover, kind: str) -> Conditions:
    """The conditions of one kind: those reached, those out of reach, and the open ones."""
    every = [wanted for wanted in cover.counts if _kind(wanted) == kind]
    still = set(cover.open)
    return Conditions(
        reached=[words(wanted) for wanted in every if cover.counts[wanted]],
        out_of_reach=[
            _out_of_reach(cover, wanted) for wanted in every if not (cover.counts[wanted] or wanted in still)
        ],
        open=[words(wanted) for wanted in every if wanted in still],
    )


def _out_of_reach(cover: Cover, wanted: Wanted) -> OutOfReach:
    if isinstance(wanted, tuple):
        theorem = cover.unreachable[wanted]
        why = "; ".join(one.word for one in theorem.walk() if one.word)
        return OutOfReach(condition=words(wanted), rule=theorem.rule, why=why)
    return OutOfReach(condition=words(wanted), rule="equal", why=cover.same[wanted].ground)
