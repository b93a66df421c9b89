"""The findings of `identify FAMILY` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mmaprobe.cli.options import say
from mmaprobe.cli.text.names import sampled, say_gpus, say_names
from mmaprobe.cli.text.vectors import result_text, show_operands
from mmaprobe.smtmodel.base.wording import counted, some_of
from mmaprobe.smtmodel.families.parameters import format_parameter

if TYPE_CHECKING:
    from mmaprobe.documents.identify import Identify
    from mmaprobe.hypotheses.family import Family
    from mmaprobe.queries.candidates.identify import Identification

CONTRADICTIONS = 3  # contradictions printed as text


def show_identified(document: Identify, family: Family, identification: Identification, why: str) -> None:
    """Print the document, with the operands of `identification`. `why`: the reason why the units of the document are
    equal to the one identified."""
    say(
        f"{counted(document.candidates, 'candidate')}, {counted(document.questions, 'question')}, "
        f"{document.summation_order.questions} more for the "
        f"summation order, {counted(document.validated, 'vector')} of validation, {document.seconds:.1f} s"
    )
    for vector, first, second in identification.contradictions[:CONTRADICTIONS]:
        say(f"the device contradicts itself: it gives two answers to question {vector.id}")
        show_operands(vector.model, vector.operands)
        for text, d in (("it gave", first), ("and then", second)):
            say(f"  {text} {result_text(d, vector.model.d)}")
    if document.verdict == "no candidate":
        _show_misfit(document, family, identification)
    elif document.classes:
        _show_left(document, family, why)
    elif not document.contradictions and document.error is None:  # an error is printed elsewhere
        say("cut short")


def _show_misfit(document: Identify, family: Family, identification: Identification) -> None:
    say("no candidate fits")
    other = [*_other_formats(family)]
    for line in other:
        say(f"  {line}")
    if identification.killer is not None and not other:
        vector = identification.killer.vector
        show_operands(vector.model, vector.operands)
        say(f"  the device gives {result_text(identification.killer.answer, vector.model.d)}")
    for near in document.nearest if not other else ():
        say(f"  nearest: {near.model} explains {near.explains} of {document.questions} answers")
    say("  the family `any` has every published arithmetic; without FAMILY, `identify` builds the unit")


def _show_left(document: Identify, family: Family, why: str) -> None:
    """Print what the remaining candidates have in common, and where they differ."""
    identified = document.verdict == "identified"
    if document.consistent:
        say(f"consistent with every answer: {some_of(document.consistent)}")
        say_gpus(document.consistent)
    elif not identified:
        say("no instruction of the table is consistent with every answer")
    varied, given = (
        [f"{name} = {format_parameter(value)}" for name, value in values.items() if name in family.values]
        for values in (document.decided, document.assumed)
    )
    if varied:
        say("identified:" if identified else "decided:")
        for text in varied:
            say(f"  {text}")
    if given:
        say(f"the same in all candidates: {', '.join(given)}")
    if document.undecided:
        say("no input distinguishes these values:" if identified else "not decided:")
    for name, values in document.undecided.items():
        say(f"  {name}: {' or '.join(map(format_parameter, values))}")
    for reason in document.why_undecided:
        say(f"  {'' if identified else 'some '}candidates with these values are equal: {reason}")
    for left, right in document.open:
        say(f"  open: {left} | {right}")
    if document.would_decide:
        say(f"  {counted(len(document.would_decide), 'vector')} that the recording does not hold would decide")
    if document.units:
        say_names(document.units, why)
    elif identified:
        say("no instruction of the table is proved to be this unit")
    if identified:
        say(sampled(document.validated))


def _other_formats(family: Family) -> Iterator[str]:
    """A hint, if the device's formats are not those of the family: the families that have the device's formats."""
    from mmaprobe.hypotheses.family import families

    asked, own = family.formats, families().get(family.id, family).formats
    if asked != own:
        better = ", ".join(name for name, other in families().items() if other.formats == asked)
        yield f"{family.id} is made for {' '.join(own)}, and the device was asked {' '.join(asked)}" + (
            f": try {better}" if better else ""
        )
