"""Observed results of a file of vectors compared with the results of each vector's model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from mmaprobe.documents.devices import Evaluate, Mismatch, ModelCount
from mmaprobe.queries.compare.neighbours import Neighbour, reproducing_neighbours
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.display import value_text
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_rows
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import check_addend
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_pattern, to_hex
from mmaprobe.smtmodel.operand import FACTORS
from mmaprobe.smtmodel.tables.reference import FLAGS, with_flags

BATCH = 20_000  # vectors read before they are evaluated together
NOTHING = "nothing was compared: no row has an observed result `d`"


@dataclass(frozen=True)
class ObservedVector:
    """A vector and the model's result. `agrees`: whether that result is the observed one; None without an observed
    result."""

    vector: Vector
    model: Model
    predicted: int
    agrees: bool | None

    @property
    def result(self) -> int:
        """The observed result, or the model's if none was observed."""
        return self.predicted if self.vector.d is None else self.vector.d

    @property
    def mismatch_text(self) -> str:
        """Both results, where they differ."""
        observed, predicted = (f"{to_hex(d, self.model.d)} ({value_text(d, self.model.d)})"
                               for d in (self.result, self.predicted))  # fmt: skip
        return f"observed {observed}, the model gives {predicted}"


def evaluate_vectors(
    vectors: Iterable[Vector], model: Model | None = None, file: str | None = None
) -> Iterator[ObservedVector]:
    """Every vector with the result of its own model, or of `model`, in order. An error of `vectors` is raised after the
    rows before it. Raises InputError, which names the `file`, for vectors that `model` does not take."""
    batch: list[Vector] = []
    try:
        for vector in vectors:
            batch.append(vector)
            if len(batch) == BATCH:
                yield from _evaluate(batch, model, file)
                batch = []
    except Exception:
        yield from _evaluate(batch, model, file)
        raise
    yield from _evaluate(batch, model, file)


def with_exceptions(
    vectors: Iterable[Vector], model: Model | None, document: str, file: str | None = None
) -> Iterator[Vector]:
    """Every vector, with its own model or `model`. After each vector comes the same input with the model of its
    exception flags and the row's `flags` as the observed result. Raises InputError, which names the `file`."""
    for vector in vectors:
        own = model or vector.model
        if model is not None:
            _check_fit(model, [vector], file)
        exceptions = with_flags(own, document)
        try:
            given = vector.extra.get(FLAGS)
            flags = None if given is None else parse_pattern(given, exceptions.d, FLAGS)
        except ValueError as error:
            raise InputError(str(error), file, vector.line) from None
        rest = {key: value for key, value in vector.extra.items() if key not in (FLAGS, "model")}
        yield replace(vector, model=own, extra=rest)
        yield replace(vector, model=exceptions, d=flags, extra=rest)


def _evaluate(batch: list[Vector], model: Model | None, file: str | None) -> Iterator[ObservedVector]:
    groups: dict[Model, list[int]] = {}
    for index, vector in enumerate(batch):
        groups.setdefault(model or vector.model, []).append(index)
    rows: list[ObservedVector | None] = [None] * len(batch)
    for candidate, indices in groups.items():
        _check_fit(candidate, [batch[index] for index in indices], file)
        chosen = [batch[index] for index in indices]
        results = evaluate_rows(candidate, [vector.operands for vector in chosen])
        for index, vector, result in zip(indices, chosen, results, strict=True):
            rows[index] = ObservedVector(vector, candidate, result, agrees(candidate, result, vector))
    yield from (row for row in rows if row is not None)


def _check_fit(model: Model, vectors: list[Vector], file: str | None) -> None:
    """Raises InputError for vectors that a model cannot take."""
    for vector in vectors:
        own = vector.model
        if own.formats != model.formats:
            raise InputError(f"{model.reference} takes other formats than {own.reference}", file, vector.line)
        factors = {len(vector.operands.sides[row.name]) for row in FACTORS}
        if (given := len(vector.operands.a)) > model.length:
            wanted = f"takes at most {counted(model.length, 'product')}, not {given}"
            raise InputError(f"{model.reference} {wanted}", file, vector.line)
        if factors != {model.scales}:
            wanted = f"takes {counted(model.scales, 'scale factor')} of each side, not {max(factors)}"
            raise InputError(f"{model.reference} {wanted}", file, vector.line)
        try:
            check_addend(model, vector.operands.c != 0)
        except ParameterError as error:
            raise InputError(str(error), file, vector.line) from None
        if vector.d is not None and vector.d >> model.d.width:
            raise InputError(f"d: wider than the results of {model.reference}", file, vector.line)


def agrees(model: Model, predicted: int, vector: Vector) -> bool | None:
    """Whether the observed result is the predicted one; None without an observed result. Any NaN agrees with a
    predicted NaN, unless the model's unit fixes the pattern."""
    if vector.d is None:
        return None
    if predicted == vector.d:
        return True
    return model.nan is None and is_nan(predicted, model.d) and is_nan(vector.d, model.d)


def explained_by(row: ObservedVector) -> list[Neighbour]:
    """The neighbours of a row's model that give the observed result."""
    return reproducing_neighbours(
        row.model, row.vector.operands, lambda near, result: bool(agrees(near, result, row.vector))
    )


def is_nan(pattern: int, fmt: Format) -> bool:
    """Whether a pattern of a format is a NaN."""
    return bool(unpack(constant(ArrayCarrier(), pattern, fmt.width), fmt).is_nan.value)


@dataclass
class Report:
    """The counts of a file's rows by model. `keep`: whether every row is kept in `rows`."""

    keep: bool = False
    counts: dict[str, list[int]] = field(default_factory=dict)  # by model: rows, mismatches, rows without d
    mismatches: list[ObservedVector] = field(default_factory=list)
    rows: list[ObservedVector] = field(default_factory=list)

    def take(self, rows: Iterable[ObservedVector]) -> None:
        """Add rows one by one, so that no earlier row is lost when the source fails."""
        for row in rows:
            counts = self.counts.setdefault(row.model.reference, [0, 0, 0])
            counts[0] += 1
            counts[2] += row.agrees is None
            if row.agrees is False:
                counts[1] += 1
                self.mismatches.append(row)
            if self.keep:
                self.rows.append(row)

    @property
    def predicted(self) -> list[Vector]:
        """The vectors of the rows kept, each with its prediction beside earlier predictions."""
        vectors = []
        for row in self.rows:
            prediction = {row.model.reference: to_hex(row.predicted, row.model.d)}
            extra = {**row.vector.extra, "predictions": {**row.vector.predictions, **prediction}}
            vectors.append(replace(row.vector, extra=extra))
        return vectors

    def document(self) -> Evaluate:
        """The report as a document."""
        return Evaluate(
            rows=sum(rows for rows, _, _ in self.counts.values()),
            compared=sum(rows - without for rows, _, without in self.counts.values()),
            mismatches=len(self.mismatches),
            models=[
                ModelCount(model=name, rows=rows, mismatches=bad, unobserved=without)
                for name, (rows, bad, without) in self.counts.items()
            ],
            first_mismatches=[
                Mismatch(
                    line=row.vector.line,
                    id=row.vector.id,
                    model=row.model.reference,
                    observed=to_hex(row.vector.d or 0, row.model.d),
                    predicted=to_hex(row.predicted, row.model.d),
                )
                for row in self.mismatches[:100]
            ],
            error=None,
        )
