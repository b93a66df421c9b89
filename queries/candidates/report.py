"""The documents of `identify FAMILY` and `separate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mmaprobe.documents import identify as documents
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.hypotheses.family import Family
from mmaprobe.queries.candidates.classes import Equality
from mmaprobe.queries.candidates.identify import Identification
from mmaprobe.queries.candidates.separate import Separation
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.families.parameters import format_parameter
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex


def identified(
    family: Family, result: Identification, device: Mapping[str, Any], order: documents.Outline, units: Sequence[str],
    consistent: Sequence[str], error: object = None,
) -> documents.Identify:  # fmt: skip
    """The document that `identify FAMILY` prints. `device`: the name of the device and its own description; `units`,
    `consistent`: as the document's keys; `error`: the error that ended the run early."""
    decided, undecided = result.values()
    return documents.Identify(
        family=family.id,
        device=device,
        verdict=result.verdict,
        error=str(error) if error else None,
        candidates=result.candidates,
        impossible=_impossible(family),
        units=units,
        consistent=consistent,
        decided={name: _plain(value) for name, value in decided.items() if name in family.varied},
        assumed={
            name: _plain(value)
            for name, value in decided.items()
            if name not in family.varied and (name != "scale_block" or decided.get("scale_format"))
        },
        undecided={name: list(map(_plain, values)) for name, values in undecided.items()},
        why_undecided=sorted({member.why for members in result.classes for member in members if member.why}),
        classes=list(map(_members, result.classes)),
        open=[[left.reference, right.reference] for left, right in result.unknown],
        questions=len(result.questions),
        summation_order=order,
        validated=result.validated,
        asked=[
            documents.QuestionAsked.of(
                question.vector.to_json(),
                d=to_hex(question.answer, question.vector.model.d),
                left=question.left,
                ruled_out={name: list(map(_plain, values)) for name, values in question.ruled_out.items()},
            )
            for question in result.questions
        ],
        nearest=[documents.Explains(model=model.reference, explains=agreed) for model, agreed in result.nearest],
        contradictions=[
            documents.Contradiction(
                vector=Row.of(vector.to_json()), answers=[to_hex(d, vector.model.d) for d in (first, second)]
            )
            for vector, first, second in result.contradictions
        ],
        would_decide=[Row.of(vector.to_json()) for vector in result.would_decide],
        seconds=round(result.seconds, 3),
    )


def separating(family: Family, separation: Separation, candidate: Model, name: str) -> list[Vector]:
    """The vectors that distinguish the candidates of a family, each with the number of classes that give each result.
    `candidate`: any candidate of the family; `name`: the family as the user named it."""
    layout, rows = layout_of(candidate), []
    for number, row in enumerate(separation.rows):
        outcomes: dict[str, int] = {}
        for results in separation.predictions:
            text = to_hex(results[number], family.base.d)
            outcomes[text] = outcomes.get(text, 0) + 1
        extra = {"family": name, "outcomes": outcomes}
        rows.append(Vector(family.base, layout.split(row), id=f"{family.id}-{number}", extra=extra))
    return rows


def separated(family: Family, separation: Separation, vectors: Sequence[Vector]) -> documents.Separate:
    """The document that `separate` prints."""
    return documents.Separate(
        family=family.id,
        candidates=separation.candidates,
        impossible=_impossible(family),
        classes=[
            documents.Class(members=_members(members), results=[to_hex(d, family.base.d) for d in results])
            for members, results in zip(separation.classes, separation.predictions, strict=True)
        ],
        vectors=[Row.of(vector.to_json()) for vector in vectors],
        unknown=[[left.reference, right.reference] for left, right in separation.unknown],
        seconds=round(separation.seconds, 3),
    )


def _impossible(family: Family) -> documents.Impossible:
    out = family.impossible
    return documents.Impossible(combinations=out.combinations, left_out=out.count, reasons=dict(out.reasons))


def _members(members: Sequence[Equality]) -> list[documents.Member]:
    return [documents.Member(model=m.model.reference, why=m.why or None, confirmed_by=m.confirmed) for m in members]


def _plain(value: object) -> object:
    return format_parameter(value) if isinstance(value, tuple) else value
