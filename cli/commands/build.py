"""`identify` without a family: the unit of a device is built from its answers, saved as a file, and identified with the
instructions to which it is equal."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmaprobe.cli.commands.order import kept_device
from mmaprobe.cli.options import print_json, progress, say
from mmaprobe.cli.text.names import sampled, say_names, some_of
from mmaprobe.queries.order.probe import UnrevealedError
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.interrupts import begun
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.identify import Build
    from mmaprobe.queries.building.outcome import Built
    from mmaprobe.queries.compare.neighbours import Divergence
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.runner.device_unit import Orders
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.units.unit import Unit


def build(
    device_name: str, asked: Signature, output: Path | None, save: Path | None, device_timeout: float, options: Options,
    as_json: bool,
) -> None:  # fmt: skip
    """Ask an unknown device, say what it computes, and end with the exit code. `output`: where answers are kept."""
    from mmaprobe.queries.compare.steady import ContradictionError
    from mmaprobe.runner.device_unit import built

    start = begun()
    deadline = None if options.timeout is None else start + options.timeout
    found: Built | None = None
    order: Orders | None = None
    failure: MmaprobeError | None = None
    with kept_device(device_name, device_timeout, asked, output, deadline) as device:
        try:
            found, order = built(device, asked, options, deadline, say, progress)
        except UnrevealedError as error:
            failure = error
        except ContradictionError as error:
            failure = ContradictionError(error.vector, error.first, error.again, device_name)
        own = device.description.get("name", "no name")
        description = {**device.description, "name": own if own == device_name else f"{device_name} ({own})"}
    progress("")
    seconds = time.monotonic() - start
    unit: Unit | None = None
    if found is not None and found.unit is not None:
        unit = _described(found, found.unit, order, description, save, output)
    if found is not None:
        _show(found, unit, order, asked, seconds)
    if unit is not None and save is not None:
        from mmaprobe.queries.building.outcome import text_of
        from mmaprobe.smtmodel.base.files import write_whole

        write_whole(save, text_of(unit))
        say(f"saved: {save}")
    if as_json:
        print_json(_document(found, unit, order, failure, asked, description, seconds))
    if failure is not None:
        raise failure
    assert found is not None
    sys.exit(3 if found.verdict == "open" or (unit is not None and found.open) else 0 if unit is not None else 1)


def _described(
    found: Built, unit: Unit, order: Orders | None, device: dict[str, Any], save: Path | None, output: Path | None
) -> Unit:
    """The unit with its evidence. `output`: where the answers are."""
    named = found.names
    questions = counted((order.questions if order else 0) + found.questions, "question")
    today = datetime.now(UTC).date().isoformat()
    return replace(
        unit,
        reference="built" if save is None else save.stem,
        about=f"This unit equals {named[0]}, by proof; the device that it was built from was sampled." if named else "",
        source=f"built by mmaprobe {VERSION} from the answers of {device['name']}, {today}",
        evidence=f"{questions}, {counted(found.validated, 'vector')} of validation without a difference, "
        + (found.why or f"which tell it from {counted(found.refuted, 'unit')} that differ in one choice")
        + (f"; not looked through for time: {some_of(found.left)}" if found.left else "")
        + (f"; answers in {output.name}" if output is not None else ""),
    )


def first_divergence(found: Built, unit: Unit | None) -> Divergence | None:
    """The first intermediate result in which the unit (or, where none was found, the nearest candidate) and the nearest
    instruction diverge, on the smallest input that distinguishes them."""
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.compare.neighbours import divergence
    from mmaprobe.smtmodel.evaluate.model import Model

    own = unit or found.nearest
    if own is None or found.near is None or found.near_vector is None:
        return None
    return divergence(Model(BUILT, own), found.near[0], found.near_vector.operands)


def _show(found: Built, unit: Unit | None, order: Orders | None, asked: Signature, seconds: float) -> None:
    from mmaprobe.cli.text.vectors import show_operands
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.building.outcome import text_of
    from mmaprobe.smtmodel.arithmetic.display import number_text
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    say(
        f"{counted(order.questions if order else 0, 'question')} about the order, "
        f"{found.questions} about the arithmetic, "
        f"{counted(found.validated, 'vector')} of validation, {seconds:.1f} s"
    )
    if found.left:
        say(f"not looked through for time: {some_of(found.left)}")
    if unit is not None:
        if found.verdict == "open":
            say(f"not finished: {found.why}; this unit agrees with every answer so far")
        for line in text_of(unit).splitlines():
            say(f"  {line}")
        names = found.names
        if names:
            say_names(names, next(why for model, why in found.equal if model.reference == names[0]))
        elif found.near is not None:
            model, count = found.near
            say(f"no instruction of the table; the nearest, {model.reference}, differs on {counted(count, 'answer')}")
            if (first := first_divergence(found, unit)) is not None:
                say(f"  they diverge first in {first.stage}, at {first.signal}")
        if found.verdict != "open":
            say(sampled(found.validated))
        names = [model.reference for model in found.open if model.reference != BUILT]
        if drafts := len(found.open) - len(names):
            names.append(counted(drafts, "other draft"))
        for name in names:
            say(f"not decided: the same answers from {name}, and neither a difference nor a proof was found")
        return
    if found.near is not None:
        model, count = found.near
        say(f"the nearest instruction of the table, {model.reference}, differs on {counted(count, 'answer')}")
        if (first := first_divergence(found, None)) is not None:
            say(f"  from the nearest candidate it diverges first in {first.stage}, at {first.signal}")
    say(f"no unit found: {found.why or f'no candidate explains the answers ({found.stage})'}")
    if found.nearest is not None:
        say("  the nearest candidate:")
        for line in text_of(found.nearest).splitlines():
            say(f"    {line}")
        for vector, d, instead in found.unexplained:
            show_operands(asked, vector.operands)
            say(f"  the device gives {to_hex(d, asked.d)}  {number_text(d, asked.d)}")
            say(f"    the candidate {to_hex(instead, asked.d)}  {number_text(instead, asked.d)}")


def _document(
    found: Built | None, unit: Unit | None, order: Orders | None, failure: MmaprobeError | None, asked: Signature,
    device: dict[str, Any], seconds: float,
) -> Build:  # fmt: skip
    from mmaprobe.documents.identify import Beside, Build, EqualModel, NearInstruction, Outline, Unexplained
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.building.outcome import text_of
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    document = Build(
        device=device,
        formats={side: getattr(asked, side).name for side in "abcd"},
        length=asked.length,
        verdict="open" if found is None else found.verdict,
        error=str(failure) if failure else None,
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
        summation_order=None if order is None else Outline(questions=order.questions, outline=order.lines()),
        questions=found.questions,
        validated=found.validated,
        beside=Beside(refuted=found.refuted, not_told=found.unseen),
        stage=found.stage,
        left_for_time=found.left,
        why=found.why or None,
        nearest=None if found.nearest is None else text_of(found.nearest),
        unexplained=[
            Unexplained.of(vector.to_json(), d=to_hex(d, asked.d), candidate=to_hex(other, asked.d))
            for vector, d, other in found.unexplained
        ],
    )
