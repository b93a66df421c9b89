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
    Missed,
    NearInstruction,
    Outline,
    Unexplained,
)
from mmaprobe.documents.parts import ABSENT
from mmaprobe.queries.building.answers import BUILT
from mmaprobe.queries.building.describing import Description
from mmaprobe.queries.building.outcome import Built, name_in_text, text_of
from mmaprobe.queries.compare.neighbours import Divergence, divergence
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.wording import counted, some_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.units.unit import Unit


def described(built: Built, questions: int, device: str, answers: str | None = None) -> Unit | None:
    """The built unit with its source and evidence; None if there is no unit. `questions`: the number of questions about
    the order; `answers`: the name of the file with the answers."""
    if built.unit is None:
        return None
    named = built.names
    today = datetime.now(UTC).date().isoformat()
    return replace(
        built.unit,
        reference="built",
        about=f"This unit equals {named[0]}, by proof; the device that it was built from was sampled." if named else "",
        source=f"built by mmaprobe {VERSION} from the answers of {device}, {today}",
        evidence=f"{counted(questions + built.questions, 'question')}, "
        f"{counted(built.validated, 'vector')} of validation without a difference, "
        + (built.why or f"which tell it from {counted(built.refuted, 'unit')} that differ in one choice")
        + (f"; not searched for lack of time: {some_of(built.left)}" if built.left else "")
        + (f"; not told from {some_of([*map(name_in_text, built.open)])}" if built.open else "")
        + (f"; answers in {answers}" if answers is not None else ""),
    )


def first_divergence(built: Built, unit: Unit | None) -> Divergence | None:
    """The first intermediate result in which the unit (or, where none was found, the nearest candidate) and the nearest
    instruction diverge, on the smallest input that distinguishes them."""
    own = unit or built.nearest
    if own is None or built.near is None or built.near_vector is None:
        return None
    return divergence(Model(BUILT, own), built.near[0], built.near_vector.operands)


def document_of(
    built: Built | None, unit: Unit | None, order: Outline | None, asked: Signature, device: Mapping[str, Any],
    seconds: float, error: object = None,
) -> Build:  # fmt: skip
    """The document that `identify` prints without a family. `unit`: the unit found, with its evidence; `order`:
    the order of the additions; `device`: its name and its own description; `error`: the error that ended the run."""
    document = Build(
        device=device,
        formats={side: getattr(asked, side).name for side in "abcd"},
        length=asked.length,
        verdict="open" if built is None else built.verdict,
        error=str(error) if error else None,
        seconds=round(seconds, 3),
    )
    if built is None:
        return document
    near, first = None, first_divergence(built, unit)
    if built.near is not None:
        near = NearInstruction(
            model=built.near[0].reference,
            different_answers=built.near[1],
            first_divergence=None if first is None else f"{first.stage}: {first.signal}",
        )
    return replace(
        document,
        unit=None if unit is None else text_of(unit),
        equal=[EqualModel(model=one.reference, why=why) for one, why in built.equal if one.reference != BUILT],
        undecided=[model.reference if model.reference != BUILT else text_of(model.unit) for model in built.open],
        nearest_instruction=near,
        summation_order=order,
        questions=built.questions,
        validated=built.validated,
        beside=Beside(refuted=built.refuted, not_told=built.unseen),
        stage=built.stage,
        left_for_time=built.left,
        why=built.why or None,
        nearest=None if built.nearest is None else text_of(built.nearest),
        missed=None if built.nearest is None else Missed(finite=built.within, others=built.beyond),
        differs=None if built.description is None else _differs(built.description),
        unexplained=[
            Unexplained.of(vector.to_json(), d=to_hex(d, asked.d), candidate=to_hex(other, asked.d))
            for vector, d, other in built.unexplained
        ],
    )


def _differs(description: Description) -> Differs:
    return Differs(
        ways=[DiffersWhere(how=one.how, where=one.condition) for one in description.differences],
        fresh=description.fresh,
        wrong=description.wrong,
        shares={what: (count, whole) for what, count, whole in description.shares},
        inside=description.inside or ABSENT,
    )
