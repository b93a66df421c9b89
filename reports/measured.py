"""Sections of a report about results of devices and models: of run, compare, identify, evaluate, explain and study, and
of files of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, takewhile
from typing import Any

from mmaprobe.documents.devices import Compare, ComparedDevice, Difference, Evaluate, Run
from mmaprobe.documents.explain import Explain, Study
from mmaprobe.documents.identify import Identify
from mmaprobe.documents.parts import input_of
from mmaprobe.reports.views import (
    MOST_VECTORS,
    DeviceQuestion,
    OutcomeView,
    Pictures,
    Section,
    Tone,
    VectorView,
    more_vectors,
    operands_of,
    title_of,
    vector_view,
)
from mmaprobe.smtmodel.arithmetic.display import value_text
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.families.parameters import format_parameter
from mmaprobe.smtmodel.inputs.vectors import Vector, vector_of
from mmaprobe.smtmodel.operand import OPERANDS
from mmaprobe.smtmodel.tables.reference import parse_reference

MOST_QUESTIONS = 4  # the most questions that are drawn, and the most classes that each is drawn for


def run_sections(document: Run, pictures: Pictures) -> list[Section]:
    """The section of `run`: answers of a device, and the hypotheses that are consistent with these."""
    device = document.device
    unanswered = document.unanswered
    tone: Tone = "open" if unanswered or document.error else "yes"
    verdict = counted(document.answered, "vector") + " answered" + (f", {len(unanswered)} not" if unanswered else "")
    section = Section("run", f"What does {device.name} answer?", verdict, tone)
    section.facts = [("device", device.name), *_described(device.description)]
    if document.error:
        section.facts.append(("error", document.error))
    for question in document.questions:
        stands = ", ".join(question.standing) or "no hypothesis"
        section.facts.append((question.id, f"consistent: {stands} ({counted(question.answers, 'answer')})"))
        for name, one in question.hypotheses.items():
            if out := one.ruled_out_by:
                why = f"ruled out by vector {out.id if out.id is not None else out.line}"
                text = f"{why}: predicted {out.predicted}, observed {out.observed}"
                section.facts.append((f"{question.id}: {name}", text))
    before = document.observed_before
    if before.answers:
        section.facts.append(("observed before", f"{before.agree} of {before.answers} answers agree"))
    rows = document.vectors or []
    for row in rows[:MOST_VECTORS]:
        vector = input_of(row)
        section.vectors.append(vector_view(title_of(vector), vector, _hypotheses(vector), pictures))
    section.more = more_vectors(len(rows))
    if not rows and document.output:
        section.more = f"The answers are in {document.output}: give that file to the report too."
    return [section]


def _described(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(f"device: {key}", str(value)) for key, value in description.items()]


def _hypotheses(vector: Vector) -> list[tuple[str, Model, str | None]]:
    """The predictions of a vector whose question is in the library, each as its name, model and predicted bits; for
    other vectors the vector's own model, without a prediction."""
    from mmaprobe.hypotheses.library import library

    question = library().get(vector.question)
    asked = [(name, question.models[name], bits) for name, bits in vector.predictions.items()
             if question and name in question.models]  # fmt: skip
    return [*asked] or [(vector.model.reference, vector.model, None)]


def vectors_sections(vectors: Sequence[Vector], pictures: Pictures, name: str) -> list[Section]:
    """The section of a file of vectors: the results of the vectors' models beside `d`."""
    known = [vector for vector in vectors if vector.d is not None]
    section = Section(
        "vectors", f"The vectors of {name}", f"{counted(len(vectors), 'vector')}, {len(known)} with a result", "open"
    )
    for vector in vectors[:MOST_VECTORS]:
        section.vectors.append(vector_view(title_of(vector), vector, _hypotheses(vector), pictures))
    section.more = more_vectors(len(vectors), "file")
    section.repeat = f"mmaprobe evaluate {name}"
    return [section]


def evaluate_sections(document: Evaluate, pictures: Pictures) -> list[Section]:
    """The section of `evaluate`: how many rows of each model differ, and the first of these."""
    compared, bad = document.compared, document.mismatches
    verdict = f"{bad} of {compared} rows differ" if compared else "nothing was compared"
    tone: Tone = "open" if not compared else "no" if bad else "yes"
    section = Section("evaluate", "Do the models give the results observed?", verdict, tone)
    section.header = ("model", "rows", "differ", "without a result")
    section.rows = [(m.model, str(m.rows), str(m.mismatches), str(m.unobserved)) for m in document.models]
    for one in document.first_mismatches[:MOST_VECTORS]:
        where = f"line {one.line}"
        section.facts.append((where, f"{one.model}: observed {one.observed}, the model gives {one.predicted}"))
    return [section]


def compare_sections(document: Compare, pictures: Pictures) -> list[Section]:
    """The section of `compare`: where two devices differ, with each vector evaluated by the devices' models."""
    devices, verdict = document.devices, document.verdict
    names = [device.name for device in devices] or ["D1", "D2"]
    tones: dict[str, Tone] = {"different": "yes", "no difference": "no"}
    section = Section("compare", f"Where do {' and '.join(names)} differ?", verdict, tones.get(verdict, "open"))
    if document.reason:
        section.facts.append(("reason", document.reason))
    section.facts += [(which, name) for which, name in zip(("first", "second"), names, strict=True)]
    if devices:
        both = f"{counted(document.compared, 'vector')}, {document.different} with different answers"
        section.facts.append(("answered by both", both))
    for question in (one for one in document.questions if one.complete):
        held = (f"the {side} with {one.hypothesis!r} in {one.agree} of {counted(one.answers, 'answer')}"
                for side in ("first", "second") for one in getattr(question, side))  # fmt: skip
        section.facts.append((question.id, f"{question.question} Agrees: {', '.join(held)}"))
    if partial := [one.id for one in document.questions if not one.complete]:
        section.facts.append(("questions that explain differences, but not every answer", ", ".join(partial)))
    common = document.common_changes
    for side, changes in (("first", common.first), ("second", common.second)):
        agree = (f"{one.change} ({one.agree} of {counted(one.answers, 'answer')})" for one in changes)
        if changes:
            section.facts.append((f"changes of the {side} that explain every difference shown", ", ".join(agree)))
    if gemm := document.gemm:
        section.facts.append(("elements", f"{gemm.differing} of {gemm.elements} differ"))
        section.facts += [("why", sentence) for sentence in (gemm.plans and gemm.plans.why) or ()]
    if document.error:
        section.facts.append(("error", document.error))
    shown = [one for one in document.differences if one.vector is not None]
    for number, one in enumerate(shown[:MOST_VECTORS], 1):
        section.vectors.append(_difference(f"difference {number}", one, devices, pictures))
    if rest := len(document.differences) - len(section.vectors):
        section.more = f"{counted(rest, 'more difference')} in the results."
    return [section]


def _difference(title: str, one: Difference, devices: Sequence[ComparedDevice], pictures: Pictures) -> VectorView:
    assert one.vector is not None
    vector = input_of(one.vector)
    sides = [(which, one.results[which], device) for which, device in zip(one.results, devices, strict=True)]
    models = [(which, parse_reference(device.description["model"]), bits) for which, bits, device in sides
              if "model" in device.description]  # fmt: skip
    view = vector_view(title, vector, models or [("model of the inputs", vector.model, None)], pictures)
    for which, bits, device in sides:
        if "model" not in device.description:
            outcome = OutcomeView(
                which, device.name, bits, value_text(int(bits, 16), vector.model.d), "the device's answer"
            )
            view.outcomes.append(outcome)
    return view


def explain_sections(document: Explain, pictures: Pictures) -> list[Section]:
    """The section of `explain`: one input under one or two models, with the first signal in which two models differ."""
    evaluations = document.evaluations
    models = [(one.model, parse_reference(one.model), one.d) for one in evaluations]
    values = {given.name: given.value for given in evaluations[0].inputs}
    row: dict[str, Any] = {"model": evaluations[0].model}
    for operand in OPERANDS:
        if operand.per == "sum":
            row |= {operand.name: values[operand.name]} if operand.name in values else {}
        elif given := list(takewhile(bool, (values.get(operand.at(k)) for k in count()))):
            row[operand.name] = given
    if evaluations[0].observed is not None:
        row["d"] = evaluations[0].observed
    alike = len({one.d for one in evaluations}) == 1
    verdict = evaluations[0].real if alike else " and ".join(one.real for one in evaluations)
    section = Section("explain", f"What does {' or '.join(name for name, _, _ in models)} give?", verdict, "open")
    if (difference := document.difference) is not None:
        section.facts.append(("first divergence", f"{difference.stage}: {difference.signal}"))
    section.vectors.append(vector_view("the input", vector_of(row), models, pictures))
    return [section]


def identify_sections(document: Identify, pictures: Pictures) -> list[Section]:
    """The section of `identify`: which unit a device is, and the questions whose answers decided this."""
    device, verdict = document.device, document.verdict
    tones: dict[str, Tone] = {"identified": "yes", "no candidate": "no"}
    tone = tones.get(verdict, "open")
    section = Section("identify", f"Which unit is {device['name']}?", verdict, tone)
    order = document.summation_order
    section.facts = [
        *([("unit", ", ".join(document.units) or "not in the table")] if document.classes else []),
        ("family", f"{document.family}, {counted(document.candidates, 'candidate')}"),
        ("questions", f"{document.questions}, and {order.questions} for the summation order"),
        ("validated", f"{document.validated} further vectors {'agree' if verdict == 'identified' else 'asked'}"),
        *_parameters(document),
        *(("what is not decided", f"candidates with these values are equal: {why}") for why in document.why_undecided),
        *(("open", " | ".join(pair)) for pair in document.open),
        *((f"near: {one.model}", f"explains {counted(one.explains, 'answer')}") for one in document.nearest),
        *_described({key: value for key, value in device.items() if key != "name"}),
        ("time", f"{document.seconds} s"),
    ]
    if document.error:
        section.facts.append(("error", document.error))
    section.drawing = list(order.tree or ())
    section.asked = list(_asked(document))
    survivors = [parse_reference(members[0].model) for members in document.classes]
    for number, row in enumerate(document.asked[:MOST_QUESTIONS], 1):
        vector = input_of(row)
        candidates = [(f"class {which}", model, None) for which, model in enumerate(survivors[:MOST_QUESTIONS])]
        own = [("family", vector.model, None)]
        section.vectors.append(vector_view(f"question {number}", vector, candidates or own, pictures))
    if len(document.asked) > MOST_QUESTIONS:
        section.more = f"{len(document.asked) - MOST_QUESTIONS} more questions are in the results."
    return [section]


def _parameters(document: Identify) -> list[tuple[str, str]]:
    """The decided parameters, the undecided parameters with their values, and the parameters that all candidates of the
    family share."""
    facts = [(name, format_parameter(value)) for name, value in document.decided.items()]
    for name, values in document.undecided.items():
        facts.append((name, "not decided: " + " or ".join(map(format_parameter, values))))
    assumed = [f"{name} {format_parameter(value)}" for name, value in document.assumed.items()]
    return [*facts, ("assumed", ", ".join(assumed))] if assumed else facts


def _asked(document: Identify) -> Iterable[DeviceQuestion]:
    for number, row in enumerate(document.asked, 1):
        vector = input_of(row)
        assert vector.d is not None
        ruled = [f"{name} {', '.join(map(format_parameter, values))}" for name, values in row.ruled_out.items()]
        operands = "; ".join(f"{one.name} = {one.value}" for one in operands_of(vector)[:24])
        share = 100 * row.left / max(1, document.candidates)
        yield DeviceQuestion(number, operands, row.d, value_text(vector.d, vector.model.d), row.left, share, ruled)


def study_sections(document: Study, pictures: Pictures) -> list[Section]:
    """The section of `study`, with the curves as images if their files can be read."""
    import base64
    from pathlib import Path

    section = Section("study", f"Study {document.study}", counted(len(document.sizes), "size"), "yes")
    section.facts = [("sizes", ", ".join(map(str, document.sizes))), ("seed", str(document.seed))]
    section.facts += [("file", name) for name in document.files]
    for name in document.files:
        path = Path(name)
        if path.suffix == ".png" and path.is_file():
            data = base64.b64encode(path.read_bytes()).decode()
            section.images.append((f"curves of {document.study}", f"data:image/png;base64,{data}"))
    return [section]
