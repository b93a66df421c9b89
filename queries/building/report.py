"""The unit built from a device's answers, as a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mmaprobe.documents.identify import (
    Beside,
    Build,
    Differs,
    DiffersWhere,
    EqualModel,
    NearInstruction,
    Outline,
    Unexplained,
)
from mmaprobe.documents.parts import ABSENT
from mmaprobe.queries.building.answers import BUILT
from mmaprobe.queries.building.describing import Description
from mmaprobe.queries.building.outcome import Built, text_of
from mmaprobe.queries.compare.neighbours import Divergence, divergence
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.wording import counted, some_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.units.unit import Unit


def described(found: Built, questions: int, device: str, answers: str | None = None) -> Unit | None:
    """The unit found, with its evidence. `questions`: how many were asked about the order; `answers`: the name of the
    file that the answers are in."""
    if found.unit is None:
        return None
    named = found.names
    today = datetime.now(UTC).date().isoformat()
    return replace(
        found.unit,
        reference="built",
        about=f"This unit equals {named[0]}, by proof; the device that it was built from was sampled." if named else "",
        source=f"built by mmaprobe {VERSION} from the answers of {device}, {today}",
        evidence=f"{counted(questions + found.questions, 'question')}, "
        f"{counted(found.validated, 'vector')} of validation without a difference, "
        + (found.why or f"which tell it from {counted(found.refuted, 'unit')} that differ in one choice")
        + (f"; not looked through for time: {some_of(found.left)}" if found.left else "")
        + (f"; answers in {answers}" if answers is not None else ""),
    )


def first_divergence(found: Built, unit: Unit | None) -> Divergence | None:
    """The first intermediate result in which the unit (or, where none was found, the nearest candidate) and the nearest
    instruction diverge, on the smallest input that distinguishes them."""
    own = unit or found.nearest
    if own is None or found.near is None or found.near_vector is None:
        return None
    return divergence(Model(BUILT, own), found.near[0], found.near_vector.operands)


def document_of(
    found: Built | None, unit: Unit | None, order: Outline | None, asked: Signature, device: Mapping[str, Any],
    seconds: float, error: object = None,
) -> Build:  # fmt: skip
    """The document that `identify` prints without a family. `unit`: the one found, with its evidence; `order`: the
    order of the additions; `device`: its name, and what it says of itself; `error`: what ended it early."""
    document = Build(
        device=device,
        formats={side: getattr(asked, side).name for side in "abcd"},
        length=asked.length,
        verdict="open" if found is None else found.verdict,
        error=str(error) if error else None,
        seconds=round(seconds, 3),
    )
    if found is None:
        return document
    near, first = None, first_divergence(found, unit)
    if found.near is not None:
        near = NearInstruction(
            model=found.near[0].reference,
            different_answers=found.near[1],
            first_divergence=None if first is None else f"{first.stage}: {first.signal}",
        )
    return replace(
        document,
        unit=None if unit is None else text_of(unit),
        equal=[EqualModel(model=one.reference, why=why) for one, why in found.equal if one.reference != BUILT],
        undecided=[model.reference if model.reference != BUILT else text_of(model.unit) for model in found.open],
        nearest_instruction=near,
        summation_order=order,
        questions=found.questions,
        validated=found.validated,
        beside=Beside(refuted=found.refuted, not_told=found.unseen),
        stage=found.stage,
        left_for_time=found.left,
        why=found.why or None,
        nearest=None if found.nearest is None else text_of(found.nearest),
        differs=None if found.description is None else _differs(found.description),
        unexplained=[
            Unexplained.of(vector.to_json(), d=to_hex(d, asked.d), candidate=to_hex(other, asked.d))
            for vector, d, other in found.unexplained
        ],
    )


def _differs(found: Description) -> Differs:
    return Differs(
        ways=[DiffersWhere(how=one.how, where=one.condition) for one in found.differences],
        fresh=found.fresh,
        wrong=found.wrong,
        shares={what: (count, whole) for what, count, whole in found.shares},
        inside=found.inside or ABSENT,
    )
