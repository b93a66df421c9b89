"""The candidate of a family that a device implements, found by its answers within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mmaprobe.documents.identify import Identify, Outline
from mmaprobe.hypotheses.family import Family
from mmaprobe.queries.building.naming import consistent_units, equal_units
from mmaprobe.queries.candidates.identify import Identification, Identifier
from mmaprobe.queries.candidates.report import identified
from mmaprobe.queries.compare.steady import ContradictionError
from mmaprobe.queries.order.probe import UnrevealedError
from mmaprobe.queries.order.reveal import Tree, reveal
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.runner.answers import AnswersFile
from mmaprobe.runner.protocol import Device
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.base.progress import Count, Throttle
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector

PART = 64  # questions about the summation order between two checks of the deadline


@dataclass
class Session:
    """A search among a family's candidates by questions to one device. `deadline`: the end of the time for the
    summation order, of time.monotonic; `tell` receives findings as texts, `progress` now and then the state of the
    work; `answers`: the file of answers, with those of an earlier run. `found`: the findings so far."""

    device: Device
    name: str
    family: Family
    candidates: Sequence[Model]
    deadline: float | None
    tell: Callable[[str], None]
    progress: Callable[[str], None]
    answers: AnswersFile | None = None
    structure: Tree | None = None
    structure_questions: int = 0
    found: Identification = field(init=False)

    def __post_init__(self) -> None:
        self.found = Identification("open", len(self.candidates))

    def run(self, options: Options, recorded: Sequence[Vector]) -> Identification:
        """Ask until one class of candidates is left. Raises ContradictionError and the device's errors; `found` then
        holds the findings before the error."""
        start = None if self.deadline is None or options.timeout is None else self.deadline - options.timeout
        try:
            if not recorded:
                self._reveal(self.family.base)
            identifier = Identifier(
                self.candidates, self.ask, options, self.structure, recorded, again=self.device.again, start=start
            )
            self.found = identifier.result
            identifier.run()
            for contradiction in self.found.contradictions:
                raise ContradictionError(*contradiction, self.name)
        except ContradictionError as error:
            self.found.contradictions = self.found.contradictions or [(error.vector, error.first, error.again)]
            raise error.named(self.name) from None
        return self.found

    def document(self, options: Options, recorded: Sequence[Vector], error: object = None) -> tuple[Identify, str]:
        """The document that `identify FAMILY` prints, and the reason why its units are equal. `error`: the error that
        ended the run early."""
        units, why = equal_units(self.found, options, self.deadline)
        document = identified(
            self.family,
            self.found,
            {"name": self.name, **self.device.description},
            Outline(
                questions=self.structure_questions,
                tree=None if self.structure is None else self.structure.draw(),
            ),
            units,
            consistent_units(self.found, recorded),
            error,
        )
        return document, why

    def _reveal(self, base: Model) -> None:
        """Reveal the summation order, as a first step."""

        def every(vectors: Sequence[Vector]) -> list[int]:
            self.progress(f"revealing the summation order: {counted(self.structure_questions, 'question')}")
            return [d for d in self.ask(vectors, revealing=True) if d is not None]

        self.progress("revealing the summation order")
        try:
            self.structure = reveal(every, base, again=self.device.again)
        except UnrevealedError as error:
            self.tell(f"summation order: {error}")
            return
        finally:
            self.progress("")
        self.tell("summation order:")
        for line in self.structure.draw():
            self.tell(f"  {line}")

    def ask(self, vectors: Sequence[Vector], revealing: bool = False) -> list[int | None]:
        """Answers in the order of the vectors; answers of an earlier run are reused. Each new answer is written before
        the next vector is asked."""
        known = [None if self.answers is None else self.answers.take(vector) for vector in vectors]
        missing = [vector for vector, d in zip(vectors, known, strict=True) if d is None]
        self.structure_questions += revealing * (len(vectors) - len(missing))
        fresh: list[int | None] = []
        now_and_then = Throttle()
        parts = [missing[start : start + PART] for start in range(0, len(missing), PART)] if revealing else [missing]
        for part in parts:
            for vector, d in self.device.answers(part):
                self.structure_questions += revealing
                if now_and_then():
                    self.progress(Count(len(fresh), len(missing), "answers"))
                if d is not None and self.answers is not None:
                    self.answers.append(vector, d, self.device.description)
                fresh.append(d)
                if revealing and self.deadline is not None and time.monotonic() > self.deadline:
                    raise IncompleteError(
                        f"the time ran out after {counted(self.structure_questions, 'question')} about the summation "
                        f"order of {counted(vector.model.length, 'product')} and the addend"
                    )
        rest = iter(fresh)
        return [next(rest) if d is None else d for d in known]
