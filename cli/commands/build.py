"""`identify` without a family: the unit of a device is built from its answers, saved as a file, and identified with the
instructions to which it is equal."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.cli.options import end_work, print_json, progress, say, say_list
from mmaprobe.cli.text.names import sampled, say_names
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.interrupts import begun
from mmaprobe.smtmodel.base.wording import counted, some_of

if TYPE_CHECKING:
    from mmaprobe.cli.question import Question
    from mmaprobe.documents.identify import Build
    from mmaprobe.queries.building.outcome import Built
    from mmaprobe.runner.device_unit import Orders
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.units.unit import Unit


def build(question: Question) -> int:
    """Build the unit of an unknown device from its answers, print the findings, and return the exit code. Raises
    MmaprobeError."""
    from mmaprobe.queries.building.report import described, document_of
    from mmaprobe.queries.compare.steady import ContradictionError
    from mmaprobe.queries.order.probe import UnrevealedError
    from mmaprobe.runner.device_unit import built

    start, asked = begun(), question.signature()
    built_unit: Built | None = None
    order: Orders | None = None
    failure: MmaprobeError | None = None
    with question.kept(asked) as device:
        try:
            built_unit, order = built(device, asked, question.options, question.until, say, progress)
        except UnrevealedError as error:
            failure = error
        except ContradictionError as error:
            failure = error.named(question.device_name)
        own = device.description.get("name", "no name")
        known = own if own == question.device_name else f"{question.device_name} ({own})"
        description = {**device.description, "name": known}
    end_work()
    seconds = time.monotonic() - start
    unit: Unit | None = None
    if built_unit is not None and order is not None:
        file = None if question.output is None else Path(question.output).name
        unit = described(built_unit, order.questions, known, file)
        if unit is not None and question.save is not None:
            unit = replace(unit, reference=question.save.stem)
    document = document_of(
        built_unit, unit, None if order is None else order.document(), asked, description, seconds, failure
    )
    if built_unit is not None:
        _show(document, built_unit, unit, asked, question.every)
    if unit is not None and question.save is not None:
        from mmaprobe.queries.building.outcome import text_of
        from mmaprobe.smtmodel.base.files import write_whole

        write_whole(question.save, text_of(unit))
        say(f"saved: {question.save}")
    if question.as_json:
        print_json(document)
    if failure is not None:
        raise failure
    assert built_unit is not None
    described_only = built_unit.description is not None
    unsure = built_unit.verdict == "open" or described_only or (unit is not None and built_unit.open)
    return 3 if unsure else 0 if unit is not None else 1


def _show(document: Build, built: Built, unit: Unit | None, asked: Signature, every: bool) -> None:
    from mmaprobe.cli.text.vectors import show_operands
    from mmaprobe.queries.building.outcome import name_in_text, text_of
    from mmaprobe.queries.building.report import first_divergence
    from mmaprobe.smtmodel.arithmetic.display import number_text
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    order, near, first = document.summation_order, document.nearest_instruction, first_divergence(built, unit)
    say(
        f"{counted(order.questions if order else 0, 'question')} about the order, "
        f"{document.questions} about the arithmetic, "
        f"{counted(document.validated, 'vector')} of validation, {document.seconds:.1f} s"
    )
    if document.left_for_time:
        say(f"not searched for lack of time: {some_of(document.left_for_time)}")
    if document.unit is not None:
        if document.verdict == "open":
            say(f"not finished: {document.why}; this unit agrees with every answer so far")
        for line in document.unit.splitlines():
            say(f"  {line}")
        if names := built.names:
            say_names(names, next(one.why for one in document.equal if one.model == names[0]))
        elif near is not None:
            different = counted(near.different_answers, "answer")
            say(f"no instruction of the table; the nearest, {near.model}, differs on {different}")
            if first is not None:
                say(f"  they diverge first in {first.stage}, at {first.signal}")
        if document.verdict != "open":
            say(sampled(document.validated))
        if built.open:
            others = counted(len(built.open), "other unit")
            say(f"not decided: the same answers from {others}, and neither a difference nor a proof was found")
            say_list([name_in_text(model) for model in built.open], every)
        return
    if near is not None:
        different = counted(near.different_answers, "answer")
        say(f"the nearest instruction of the table, {near.model}, differs on {different}")
        if first is not None:
            say(f"  from the nearest candidate it diverges first in {first.stage}, at {first.signal}")
    say(f"no unit found: {document.why or f'no candidate explains the answers ({document.stage})'}")
    if built.nearest is not None:
        say("  the nearest candidate:")
        for line in text_of(built.nearest).splitlines():
            say(f"    {line}")
        say(f"  {_where(built)}")
        for line in () if built.description is None else built.description.sentences():
            say(f"  {line}")
        for vector, d, instead in built.unexplained:
            show_operands(asked, vector.operands)
            say(f"  the device gives {to_hex(d, asked.d)}  {number_text(d, asked.d)}")
            say(f"    the candidate {to_hex(instead, asked.d)}  {number_text(instead, asked.d)}")


def _where(built: Built) -> str:
    """Whether the nearest candidate differs on finite numbers, in words."""
    (wrong, whole), (others, rest) = built.within, built.beyond
    if not wrong:
        special = f"an operand or the answer is infinite, NaN or the largest number: on {others} of {rest} answers"
        return f"it differs only where {special}; it gives all {whole} others"
    return f"it differs on {wrong} of {whole} finite answers to finite operands, and on {others} of {rest} others"
