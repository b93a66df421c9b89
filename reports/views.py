"""The contents of a report as data for its templates: sections, vectors, and the questions asked of a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from mmaprobe.reports.drawings.evaluation_drawing import evaluation_drawings
from mmaprobe.reports.drawings.svg import svg_of
from mmaprobe.reports.exports.snippets import Snippet, decimal_text, sides, snippets
from mmaprobe.smtmodel.arithmetic.display import number_text, value_text
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.explain.explaining import explain
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex
from mmaprobe.smtmodel.operand import NAMED

Tone = Literal["yes", "no", "open"]
MOST_PICTURES = 24  # of a report
MOST_VECTORS = 12  # of a section, with snippets


@dataclass(frozen=True)
class OperandView:
    """One element of an operand. `row`: elements of one product, or of one block, stand in one row of a table."""

    name: str
    bits: str
    value: str
    decimal: str
    row: tuple[str, int]


@dataclass(frozen=True)
class OutcomeView:
    """The result of a model, or of a device, for a vector."""

    name: str
    model: str
    bits: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class VectorView:
    """A vector in a report. `operands`: rows of nonzero operands; a and b of one product share a row."""

    title: str
    operands: list[tuple[OperandView, ...]]
    zeros: int
    outcomes: list[OutcomeView]
    snippets: list[Snippet]
    pictures: list[str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class DeviceQuestion:
    """A question asked of a device, its answer, and the candidates that remain."""

    number: int
    operands: str
    answer: str
    value: str
    left: int
    share: float
    ruled_out: list[str]


@dataclass
class Section:
    """One result. `repeat`: the command that reproduces it."""

    kind: str
    title: str
    verdict: str
    tone: Tone
    facts: list[tuple[str, str]] = field(default_factory=list)
    vectors: list[VectorView] = field(default_factory=list)
    asked: list[DeviceQuestion] = field(default_factory=list)
    header: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    drawing: list[str] = field(default_factory=list)
    more: str = ""
    repeat: str = ""
    source: str = ""
    id: str = ""
    images: list[tuple[str, str]] = field(default_factory=list)  # name, data: URI


class Pictures:
    """Makes the drawings of a report, each with its own prefix of ids, up to the number that a page can hold."""

    def __init__(self, most: int = MOST_PICTURES) -> None:
        self.left, self.count = most, 0

    def draw(self, models: Sequence[Model], vector: Vector) -> list[str]:
        """SVG drawings of a vector's evaluation under the first two models, with their first difference marked; empty
        once the limit is reached."""
        from mmaprobe.queries.compare.neighbours import parted

        if not models or self.left <= 0:
            return []
        self.left -= 1
        self.count += 1
        explained = [explain(model, vector.operands) for model in models[:2]]
        drawings = evaluation_drawings(explained, parted(explained), prefix=f"picture-{self.count}")
        return [svg_of(drawing, styled=False) for drawing in drawings]


def vector_view(
    title: str, vector: Vector, candidates: Sequence[tuple[str, Model, str | None]], pictures: Pictures
) -> VectorView:
    """A vector and the results of its candidates. `candidates`: (name, model, predicted bits or None)."""
    predicted = [(name, model, evaluate_row(model, vector.operands)) for name, model, _ in candidates]
    outcomes = [
        OutcomeView(
            name, model.reference, to_hex(d, model.d), value_text(d, model.d), _surprise(recorded, to_hex(d, model.d))
        )
        for (name, model, d), (_, _, recorded) in zip(predicted, candidates, strict=True)
    ]
    if vector.d is not None:
        agreeing = [one.name for one in outcomes if one.bits == to_hex(vector.d, vector.model.d)]
        note = f"as {', '.join(agreeing)}" if agreeing else "as no model above"
        bits, value = to_hex(vector.d, vector.model.d), value_text(vector.d, vector.model.d)
        outcomes.append(OutcomeView("observed", "", bits, value, note))
    operands = operands_of(vector)
    total = sum(len(patterns) for _, _, patterns in sides(vector))
    drawn = {d: model for _, model, d in reversed(predicted)}  # one model for each result
    firsts = [model for _, model, d in predicted if drawn[d] is model]
    notes = [f"exercises: {vector.exercises_in_words}"] if vector.exercises else []
    return VectorView(
        title,
        _paired(operands),
        total - len(operands),
        outcomes,
        snippets(vector, predicted),
        pictures.draw(firsts, vector),
        notes,
    )


def _surprise(recorded: str | None, now: str) -> str:
    return "" if recorded in (None, now) else f"the results say {recorded}: another version of the model"


def operands_of(vector: Vector) -> list[OperandView]:
    """The operands that are not zero, and those of the whole sum."""
    views = []
    for name, fmt, patterns in sides(vector):
        row = NAMED[name]
        for k, pattern in enumerate(patterns):
            if pattern or row.per == "sum":
                texts = to_hex(pattern, fmt), number_text(pattern, fmt), decimal_text(pattern, fmt)
                views.append(OperandView(row.at(k), *texts, (name if row.per == "sum" else row.per, k)))
    return views


def _paired(operands: Sequence[OperandView]) -> list[tuple[OperandView, ...]]:
    """Rows of a vector's table."""
    rows: dict[tuple[str, int], list[OperandView]] = {}
    for one in operands:
        rows.setdefault(one.row, []).append(one)
    return [tuple(row) for row in rows.values()]


def title_of(vector: Vector) -> str:
    """The name of a vector in a section."""
    return "vector" if vector.id is None else str(vector.id)


def more_vectors(count: int, where: str = "results") -> str:
    """The text about vectors beyond those that a section shows."""
    return f"{count - MOST_VECTORS} more vectors are in the {where}." if count > MOST_VECTORS else ""
