"""A run that asks a device the vectors of a file, and continues where an earlier run ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mmaprobe.documents.devices import Place, Run, RunDevice
from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.queries.compare.observed import ObservedVector, evaluate_vectors
from mmaprobe.queries.compare.standing import Standings, predictions_of
from mmaprobe.queries.compare.steady import AGAIN, ContradictionError, Sample, contradictions, spread
from mmaprobe.runner.answers import AnswersFile, answered_row, provenance
from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.devices import DeviceError, open_device
from mmaprobe.runner.protocol import Device
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, read_vectors


@dataclass
class VectorRun:
    """One run. `name`: the device; `timeout`: seconds for one answer. Answers are written to the file of answers if
    there is one; otherwise `write` gets each as a row, or `rows` keeps them if `write` is None. `tell` gets messages;
    `answered`: the number of answers, among them `earlier` of an earlier run."""

    name: str
    timeout: float
    tell: Callable[[str], None]
    write: Callable[[dict[str, Any]], None] | None = None
    check: bool = False  # whether answers are compared with those of the vectors' models
    standings: Standings = field(default_factory=Standings)
    answered: int = 0
    earlier: int = 0
    unanswered: list[Vector] = field(default_factory=list)
    description: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    sample: Sample = field(default_factory=Sample)
    source: dict[str, Any] = field(default_factory=dict)  # provenance of answers that are not written to a file
    device: Device | None = None  # while it is in use
    shape: tuple[int, int] | None = None  # rows and columns of the products that a function of matrices was asked
    model: Model | None = None
    checked: list[Vector] = field(default_factory=list)  # with `check`: the vectors with their answers
    families: set[str] = field(default_factory=set)  # the families whose candidates the answered vectors distinguish

    def run(self, lines: Iterable[str], name: str, output: Path | None) -> None:
        """Ask the device every vector in the `lines` of the file `name`. `output`: the file of answers. Raises
        MmaprobeError; answers received before the error are written and counted."""
        vectors: Iterable[Vector] = read_vectors(lines, name, self._model)
        if output is None:
            self.source = provenance(self.name)
            self._ask(vectors, name, None)
        else:
            with AnswersFile(output, self.name, self.model) as target:
                if target.earlier and self.check:
                    vectors = self._anew(vectors, target)
                elif target.earlier:
                    vectors = self._remaining(vectors, target)
                    with open_device(self.name, self.timeout) as device:
                        target.recheck(device, lambda vector: bool(vector.predictions))
                self._ask(vectors, name, target)
        if self.unanswered:
            count, first = len(self.unanswered), self.unanswered[0]
            total = self.answered + count
            raise IncompleteError(f"{self.name}: no answer to {count} of {total} vectors, first {name}:{first.line}")

    def _anew(self, vectors: Iterable[Vector], target: AnswersFile) -> list[Vector]:
        """All vectors, whether or not the file has answers. With `check` no earlier answer is used, since the device's
        answers may have changed."""
        everything, count = list(vectors), target.earlier
        _taken(everything, target)
        target.begin_anew()
        self.tell(f"{counted(count, 'answer')} of an earlier run replaced: every vector is asked")
        return everything

    def _remaining(self, vectors: Iterable[Vector], target: AnswersFile) -> list[Vector]:
        """The vectors that an earlier run did not answer; the answers of that run are counted."""
        everything = list(vectors)
        answers = list(zip(everything, _taken(everything, target), strict=True))
        remaining = [vector for vector, d in answers if d is None]
        known = [(vector, d) for vector, d in answers if d is not None]
        for vector, d in known:
            self._count(vector, d)
        self.earlier = self.answered = len(known)
        self.description = target.description or {}
        self.tell(f"{self.earlier} of {len(everything)} vectors were answered by an earlier run")
        return remaining

    def _ask(self, vectors: Iterable[Vector], name: str, target: AnswersFile | None) -> None:
        if vectors == []:
            return
        with self._device() as device:
            self.description = device.description
            self.shape = device.shape
            try:
                for vector, d in device.answers(_checked(vectors, name)):
                    self.description = device.description
                    if d is None:
                        self.unanswered.append(vector)
                    else:
                        self._take(vector, d, target)
                self._stand_by(device)
            except DeviceError as error:
                raise IncompleteError(f"{name}:{error.vector.line}: {error}") from None
            except InputError as error:
                if error.file is None and error.line is not None:  # a vector that does not fit the device
                    raise InputError(str(error).removeprefix(f"{error.line}: "), name, error.line) from None
                raise

    def _stand_by(self, device: Device) -> None:
        """Ask some vectors again, first vectors whose answers contradict a hypothesis or an earlier result. Raises
        ContradictionError."""
        odd = list(self.standings.surprises())
        chosen = [odd[place] for place in spread(len(odd), AGAIN)]
        chosen += [self.sample.answered[place] for place in spread(len(self.sample.answered), AGAIN)]
        try:
            for one in [] if device.steady else chosen:
                for contradiction in contradictions(device.every, [one]):
                    raise ContradictionError(*contradiction, device.name)
        except DeviceError as error:  # every vector has been answered
            self.tell(f"asked again: {error}")

    @contextmanager
    def _device(self) -> Iterator[Device]:
        """A block with the device, which is opened unless it is in use already."""
        if self.device is not None:
            yield self.device
            return
        with open_device(self.name, self.timeout) as self.device:
            try:
                yield self.device
            finally:
                self.device = None

    def _model(self) -> Model:
        """The model for vectors that name no model: the device's instruction. Raises InputError if the device has
        none."""
        if self.model is None:
            with self._device() as device:
                if not isinstance(device, BatchDevice):
                    raise InputError(
                        f"model: this field is missing, and {self.name} does not say what it computes: name in the row "
                        "the instruction that it is for, or give --formats and --length"
                    )
                self.model = device.model
        return self.model

    def _take(self, vector: Vector, d: int, target: AnswersFile | None) -> None:
        if target is not None:
            target.append(vector, d, self.description)
        else:
            row = answered_row(vector, d, self.source, self.description)
            (self.write or self.rows.append)(row)
        self.answered += 1
        self._count(vector, d)
        self.sample.take(vector, d)

    def _count(self, vector: Vector, d: int) -> None:
        self.standings.take(vector, d)
        if self.check:
            self.checked.append(replace(vector, d=d))
        if isinstance(family := vector.extra.get("family"), str):
            self.families.add(family)

    @cached_property
    def wrong(self) -> list[ObservedVector]:
        """After a run with `check`: the answers that differ from the results of the vectors' models."""
        return [row for row in evaluate_vectors(self.checked) if row.agrees is False]

    def document(self, file: str, output: str | None, error: object = None) -> Run:
        """The document that `run` prints. `output`: the file of answers; `error`: the error that ended the run
        early."""
        return Run(
            device=RunDevice(name=self.name, description=self.description),
            answered=self.answered,
            earlier=self.earlier,
            unanswered=[Place(id=vector.id, line=vector.line) for vector in self.unanswered],
            questions=[standing.document() for standing in self.standings.questions.values()],
            observed_before=self.standings.observed_before(),
            wrong=len(self.wrong) if self.check else ABSENT,
            vectors=list(map(Row.of, self.rows)) if self.source and self.write is None else ABSENT,
            file=file,
            output=output,
            error=str(error) if error else None,
        )


def _taken(vectors: Iterable[Vector], target: AnswersFile) -> list[int | None]:
    """The answer of the file to each vector, None where the file has none. Raises InputError for a file with answers to
    other vectors."""
    answers = [target.take(vector) for vector in vectors]
    if target.earlier:
        raise InputError(
            f"{target.earlier} of its answers are to vectors that are not asked: remove the file, or name another",
            str(target.path),
        )
    return answers


def _checked(vectors: Iterable[Vector], name: str) -> Iterator[Vector]:
    """The vectors, each after a check of its predictions. Raises InputError."""
    for vector in vectors:
        try:
            predictions_of(vector)
        except InputError as error:
            raise InputError(str(error), name, vector.line) from None
        yield vector
