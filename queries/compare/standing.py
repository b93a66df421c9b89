"""Which hypotheses are consistent with the answers of a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mmaprobe.documents import devices
from mmaprobe.queries.compare.observed import agrees
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, ParameterError
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_pattern, to_hex
from mmaprobe.smtmodel.tables.reference import parse_reference, with_parameters

if TYPE_CHECKING:  # imported where used: these need packages that an installation for a device's machine lacks
    from mmaprobe.hypotheses.schema import Question
    from mmaprobe.smtmodel.inputs.admitted import Compare

SHOWN = 3  # answers that no hypothesis predicted, printed as text
LISTED = 100  # such answers, and disagreements, listed in JSON


@dataclass(frozen=True)
class Prediction:
    """What one hypothesis predicts as a vector's result."""

    hypothesis: str
    model: Model
    pattern: int
    compare: Compare = "bits"

    @property
    def text(self) -> str:
        return to_hex(self.pattern, self.model.d)

    def confirmed_by(self, vector: Vector, d: int) -> bool:
        """Whether a device's result is the predicted one: by `agrees` of observed.py, or by value."""
        if self.compare == "bits":
            return agrees(self.model, self.pattern, replace(vector, d=d)) is True
        from mmaprobe.queries.kernel.questions.problem import Problem

        carrier, problem = ArrayCarrier(), Problem(self.model, vector.model, compare="value")
        sides = constant(carrier, self.pattern, self.model.d.width), constant(carrier, d, vector.model.d.width)
        return not problem.differ(*sides).value


def _question(name: object) -> Question | None:
    """A question of the library, perhaps for another model (ID@MODEL); None for any other name."""
    from mmaprobe.hypotheses.library import library, question_named

    if str(name).partition("@")[0] not in library():
        return None
    try:
        return question_named(str(name))
    except MmaprobeError:
        return None


def predictions_of(vector: Vector) -> list[Prediction]:
    """The predictions that a vector carries. Raises InputError, naming the field.

    The model of a hypothesis is the model in the library's question, or the model that its name refers to, or else the
    vector's own model with the output format that has as many digits as the prediction.
    """
    if not vector.extra.get("predictions"):
        return []
    try:
        from mmaprobe.smtmodel.inputs.admitted import check_comparable
    except ModuleNotFoundError as error:
        raise InputError(
            f"predictions: judging them needs the Python package {error.name!r} (`pip install .` in a clone); "
            'a machine that has it can ask the device of this one: --device "command:ssh HOST mmaprobe device ..."'
        ) from None
    question = _question(vector.extra.get("question"))
    predictions = []
    for name, text in vector.extra["predictions"].items():
        key = f"predictions: {name}"
        model = _model_of(name, vector, question) or _with_output_width(vector.model, text)
        compare: Compare = "bits" if question is None else question.compare
        if model.d != vector.model.d:
            compare = "value"
        try:
            check_comparable(model, vector.model, compare)
            predictions.append(Prediction(name, model, parse_pattern(text, model.d, key), compare))
        except ParameterError as error:
            raise InputError(f"{key}: {error}") from None
        except ValueError as error:
            raise InputError(str(error)) from None
    return predictions


def _model_of(name: str, vector: Vector, question: Question | None) -> Model | None:
    if question is not None and name in question.models:
        return question.models[name]
    if name in (vector.model.reference, ""):
        return vector.model
    try:
        return parse_reference(name) if "/" in name else None
    except MmaprobeError:
        return None


def _with_output_width(model: Model, text: Any) -> Model:
    """A model like `model` whose results have as many digits as a text."""
    if isinstance(text, str) and len(text) != model.d.digits:
        for name in ("f16", "f32", "f64"):
            if FORMATS[name].digits == len(text):
                try:
                    return with_parameters(model, {"output": name, "nan": "none"})
                except ParameterError:
                    break
    return model


@dataclass(frozen=True)
class Refutation:
    """The first answer that a hypothesis did not predict."""

    vector: Vector
    predicted: str
    observed: str


@dataclass
class Record:
    """The record of a hypothesis: how many predictions it made, and how many of them were right."""

    right: int = 0
    asked: int = 0
    refuted: Refutation | None = None

    def document(self) -> devices.Standing:
        """The record as part of a document."""
        out, seen = None, self.refuted
        if seen is not None:
            out = devices.RuledOut(
                id=seen.vector.id, line=seen.vector.line, predicted=seen.predicted, observed=seen.observed
            )
        return devices.Standing(answers=self.asked, agree=self.right, ruled_out_by=out)


@dataclass
class Standing:
    """The hypotheses of one question, and the answers that none of them predicted."""

    question: str
    answers: int = 0
    records: dict[str, Record] = field(default_factory=dict)
    unpredicted: list[tuple[Vector, str, dict[str, str]]] = field(default_factory=list)

    @property
    def left(self) -> list[str]:
        """The hypotheses that are consistent with every answer so far."""
        return [name for name, record in self.records.items() if record.refuted is None]

    def take(self, vector: Vector, predictions: list[Prediction], d: int) -> None:
        """Count one answer."""
        observed, any_right = to_hex(d, vector.model.d), False
        self.answers += 1
        for prediction in predictions:
            record = self.records.setdefault(prediction.hypothesis, Record())
            record.asked += 1
            if prediction.confirmed_by(vector, d):
                record.right += 1
                any_right = True
            elif record.refuted is None:
                record.refuted = Refutation(vector, prediction.text, observed)
        if not any_right:
            self.unpredicted.append((vector, observed, {one.hypothesis: one.text for one in predictions}))

    def lines(self) -> Iterator[str]:
        """The state in words."""
        parts = []
        for name, record in self.records.items():
            if record.refuted is None:
                parts.append(f"{name!r} is consistent with {record.right} of {record.asked} answers")
        if not parts:
            parts.append("no hypothesis is consistent with the answers")
        for name, record in self.records.items():
            if seen := record.refuted:
                why = f"predicted {seen.predicted}, device gave {seen.observed}"
                parts.append(f"{name!r} ruled out by vector {_name(seen.vector)}: {why}")
        yield f"{self.question}: {'; '.join(parts)}"
        for vector, observed, predicted in self.unpredicted[:SHOWN]:
            these = ", ".join(f"{name} {text}" for name, text in predicted.items())
            yield f"  no hypothesis predicted the answer to vector {_name(vector)}: device gave {observed}, not {these}"
        if len(self.unpredicted) > SHOWN:
            yield f"  {len(self.unpredicted)} of {self.answers} answers were predicted by no hypothesis"

    def document(self) -> devices.QuestionStanding:
        """The state as part of a document."""
        return devices.QuestionStanding(
            id=self.question,
            answers=self.answers,
            standing=self.left,
            hypotheses={name: record.document() for name, record in self.records.items()},
            unpredicted=len(self.unpredicted),
            first_unpredicted=[
                devices.Unpredicted(id=vector.id, line=vector.line, observed=observed, predictions=predicted)
                for vector, observed, predicted in self.unpredicted[:LISTED]
            ],
        )


@dataclass
class Standings:
    """The answers to a file of vectors: hypotheses by question, and agreement with earlier results."""

    questions: dict[str, Standing] = field(default_factory=dict)
    observed: int = 0
    disagreements: list[tuple[Vector, str]] = field(default_factory=list)

    def take(self, vector: Vector, d: int) -> None:
        """Count the answer to a vector. `vector.d`, if there is one, is an earlier observation. Raises InputError."""
        predictions = predictions_of(vector)
        if predictions:
            name = str(vector.extra.get("question") or "predictions")
            self.questions.setdefault(name, Standing(name)).take(vector, predictions, d)
        if vector.d is not None:
            self.observed += 1
            if not agrees(vector.model, d, vector):
                self.disagreements.append((vector, to_hex(d, vector.model.d)))

    def surprises(self) -> Iterator[tuple[Vector, int]]:
        """The first answers that contradict earlier results, those that no hypothesis predicts, and the first one that
        contradicts each hypothesis, with their vectors; a vector may come more than once."""
        seen = [(vector, observed) for vector, observed in self.disagreements[:LISTED]]
        for standing in self.questions.values():
            seen += [(vector, observed) for vector, observed, _ in standing.unpredicted[:LISTED]]
            seen += [(one.refuted.vector, one.refuted.observed) for one in standing.records.values() if one.refuted]
        yield from ((vector, int(observed, 16)) for vector, observed in seen)

    def lines(self) -> Iterator[str]:
        """The state of all questions in words."""
        for standing in self.questions.values():
            yield from standing.lines()
        if self.observed:
            agreeing = self.observed - len(self.disagreements)
            yield f"{agreeing} of {self.observed} answers agree with the result in the file"
        for vector, observed in self.disagreements[:SHOWN]:
            yield f"  vector {_name(vector)}: the file has {_earlier(vector)}, device gave {observed}"

    def observed_before(self) -> devices.ObservedBefore:
        """The agreement with earlier results, as part of a document."""
        return devices.ObservedBefore(
            answers=self.observed,
            agree=self.observed - len(self.disagreements),
            first_differences=[
                devices.EarlierDifference(id=vector.id, line=vector.line, earlier=_earlier(vector), observed=observed)
                for vector, observed in self.disagreements[:LISTED]
            ],
        )


def _name(vector: Vector) -> str:
    return f"at line {vector.line}" if vector.id is None else str(vector.id)


def _earlier(vector: Vector) -> str:
    return to_hex(vector.d or 0, vector.model.d)
