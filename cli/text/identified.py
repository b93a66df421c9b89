"""What `identify FAMILY` found out, as text and as a document."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mmaprobe.cli.candidates import impossible, members_of
from mmaprobe.cli.options import say
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.families.parameters import format_parameter

if TYPE_CHECKING:
    from mmaprobe.cli.session import Session
    from mmaprobe.documents.identify import Identify
    from mmaprobe.hypotheses.family import Family
    from mmaprobe.queries.candidates.identify import Identification
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.smtmodel.inputs.vectors import Vector

Named = tuple[list[str], str]  # references of equal units, and why they are

CONTRADICTIONS = 3  # contradictions printed as text
NAMING = 20.0  # seconds for proofs that a unit is one of the table


def equal_units(found: Identification, options: Options, deadline: float | None) -> Named:
    """The instructions and shipped units that are equal to the identified candidate, NaN patterns aside, and how that
    is known: by normal form, else by proof within NAMING seconds."""
    from mmaprobe.queries.building.naming import name_of, of_known_form, same_signature
    from mmaprobe.queries.compare.observed import agrees
    from mmaprobe.smtmodel.evaluate.batch import evaluate_row

    if found.verdict != "identified":
        return [], ""
    survivors = found.survivors
    asked = [replace(question.vector, d=question.answer) for question in found.questions]
    known = [
        model
        for model in same_signature(survivors[0])
        if all(agrees(model, evaluate_row(model, vector.operands), vector) for vector in asked)
    ]
    of_form = of_known_form(survivors, known)
    until = min(time.monotonic() + NAMING, math.inf if deadline is None else deadline)
    try:
        equal = name_of(of_form or survivors[0], known, options, until, 0 if of_form else None).equal
    except KeyboardInterrupt:  # the identified candidate is printed all the same
        equal = []
    return [model.reference for model, _ in equal], equal[0][1] if equal else ""


def consistent_units(found: Identification, recorded: Sequence[Vector]) -> list[str]:
    """Where several candidates are left: the instructions and shipped units that give every answer, also those of fewer
    products than the family that take every input."""
    from mmaprobe.queries.building.naming import same_signature
    from mmaprobe.queries.compare.observed import agrees
    from mmaprobe.smtmodel.evaluate.batch import evaluate_rows
    from mmaprobe.smtmodel.evaluate.operands import unpadded

    if found.verdict != "open" or not found.survivors:
        return []
    answered = list(recorded) or [replace(question.vector, d=question.answer) for question in found.questions]
    rows = [unpadded(vector.operands) for vector in answered]
    longest = max((len(row.a) for row in rows), default=0)
    return [
        model.reference
        for model in same_signature(found.survivors[0], max(longest, 1))
        if all(map(partial(agrees, model), evaluate_rows(model, rows), answered))
    ]


def show_identified(
    family: Family, found: Identification, named: Named, consistent: Sequence[str], session: Session,
    failure: MmaprobeError | None,
) -> None:  # fmt: skip
    from mmaprobe.cli.text.vectors import result_text, show_operands

    say(
        f"{counted(found.candidates, 'candidate')}, {counted(len(found.questions), 'question')}, "
        f"{session.structure_questions} more for the "
        f"summation order, {counted(found.validated, 'vector')} of validation, {found.seconds:.1f} s"
    )
    for vector, first, second in found.contradictions[:CONTRADICTIONS]:
        say(f"the device contradicts itself: it gives two answers to question {vector.id}")
        show_operands(vector.model, vector.operands)
        for text, d in (("it gave", first), ("and then", second)):
            say(f"  {text} {result_text(d, vector.model.d)}")
    if found.verdict == "no candidate":
        _show_misfit(family, found)
    elif found.survivors:
        _show_left(family, found, named, consistent)
    elif not found.contradictions and failure is None:  # a failure is printed as an error
        say("cut short")


def _show_misfit(family: Family, found: Identification) -> None:
    from mmaprobe.cli.text.vectors import result_text, show_operands

    say("no candidate fits")
    other = [*_other_formats(family)]
    for line in other:
        say(f"  {line}")
    if found.killer is not None and not other:
        vector = found.killer.vector
        show_operands(vector.model, vector.operands)
        say(f"  the device gives {result_text(found.killer.answer, vector.model.d)}")
    for model, agreed in found.nearest if not other else ():
        say(f"  nearest: {model.reference} explains {agreed} of {len(found.questions)} answers")
    say("  the family `any` has every published arithmetic; without FAMILY, `identify` builds the unit")


def _show_left(family: Family, found: Identification, named: Named, consistent: Sequence[str]) -> None:
    """What the candidates that are left have in common, and in what they differ."""
    from mmaprobe.cli.text.names import sampled, say_gpus, say_names, some_of

    identified = found.verdict == "identified"
    if consistent:
        say(f"consistent with every answer: {some_of(consistent)}")
        say_gpus(consistent)
    elif not identified:
        say("no instruction of the table is consistent with every answer")
    decided, undecided = found.values()
    texts = {name: f"{name} = {format_parameter(value)}" for name, value in decided.items() if name in family.values}
    if varied := [text for name, text in texts.items() if name in family.varied]:
        say("identified:" if identified else "decided:")
        for text in varied:
            say(f"  {text}")
    if given := [text for name, text in texts.items() if name not in family.varied]:
        say(f"the same in all candidates: {', '.join(given)}")
    if undecided:
        say("no input distinguishes these values:" if identified else "not decided:")
    for name, values in undecided.items():
        say(f"  {name}: {' or '.join(map(format_parameter, values))}")
    for why in _why_undecided(found):
        say(f"  {'' if identified else 'some '}candidates with these values are equal: {why}")
    for left, right in found.unknown:
        say(f"  open: {left.reference} | {right.reference}")
    if found.would_decide:
        say(f"  {counted(len(found.would_decide), 'vector')} that the recording does not hold would decide")
    if named[0]:
        say_names(*named)
    elif identified:
        say("no instruction of the table is proved to be this unit")
    if identified:
        say(sampled(found.validated))


def _why_undecided(found: Identification) -> list[str]:
    """How the values between which nothing decides are known to be one unit."""
    return sorted({member.why for members in found.classes for member in members if member.why})


def _other_formats(family: Family) -> Iterator[str]:
    """A hint, if the device's formats are not those of the family: the families that have the device's formats."""
    from mmaprobe.hypotheses.family import families

    asked, own = family.formats, families().get(family.id, family).formats
    if asked != own:
        better = ", ".join(name for name, other in families().items() if other.formats == asked)
        yield f"{family.id} is made for {' '.join(own)}, and the device was asked {' '.join(asked)}" + (
            f": try {better}" if better else ""
        )


def identified_document(
    family: Family, found: Identification, units: list[str], consistent: list[str], session: Session,
    failure: MmaprobeError | None,
) -> Identify:  # fmt: skip
    from mmaprobe.documents.identify import Contradiction, Explains, Identify, Outline, QuestionAsked
    from mmaprobe.documents.parts import Vector as Row
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    decided, undecided = found.values()

    def plain(value: Any) -> Any:
        return format_parameter(value) if isinstance(value, tuple) else value

    return Identify(
        family=family.id,
        device={"name": session.name, **session.device.description},
        verdict=found.verdict,
        error=str(failure) if failure else None,
        candidates=found.candidates,
        impossible=impossible(family),
        units=units,
        consistent=consistent,
        decided={name: plain(value) for name, value in decided.items() if name in family.varied},
        assumed={
            name: plain(value)
            for name, value in decided.items()
            if name not in family.varied and (name != "scale_block" or decided.get("scale_format"))
        },
        undecided={name: [plain(value) for value in values] for name, values in undecided.items()},
        why_undecided=_why_undecided(found),
        classes=[members_of(members) for members in found.classes],
        open=[[left.reference, right.reference] for left, right in found.unknown],
        questions=len(found.questions),
        summation_order=Outline(
            questions=session.structure_questions,
            tree=list(session.structure.draw()) if session.structure is not None else None,
        ),
        validated=found.validated,
        asked=[
            QuestionAsked.of(
                question.vector.to_json(),
                d=to_hex(question.answer, question.vector.model.d),
                left=question.left,
                ruled_out={name: [plain(v) for v in values] for name, values in question.ruled_out.items()},
            )
            for question in found.questions
        ],
        nearest=[Explains(model=model.reference, explains=agreed) for model, agreed in found.nearest],
        contradictions=[
            Contradiction(vector=Row.of(vector.to_json()), answers=[to_hex(d, vector.model.d) for d in (first, second)])
            for vector, first, second in found.contradictions
        ],
        would_decide=[Row.of(vector.to_json()) for vector in found.would_decide],
        seconds=round(found.seconds, 3),
    )
