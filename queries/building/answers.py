"""Questions to a device, the answers of the device, and the time left for further questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.clock import Clock
from mmaprobe.queries.building.number_kinds import finite
from mmaprobe.queries.order.probe import AskAll
from mmaprobe.queries.order.tree import Leaf
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans, without_payload
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.units.unit import Unit

NonzeroLeaves = frozenset[Leaf] | None  # the leaves that may be nonzero; None: all leaves
BUILT = "built"  # the reference of units made of drafts
BATCH = 512  # vectors of validation put to the device at once
TOGETHER = 64  # units evaluated between two looks at the clock
SHARED = 1 << 15  # the most units times answers evaluated together, which bounds the memory of shared values


@dataclass(frozen=True)
class Answered:
    """Questions and their answers. `rows`: a question in each row; `answers`: the pattern of d for each; `rank`: the
    first stage about which the answers give information; `kept`: the terms that may be nonzero; `number`: an identifier
    of the questions, which `replace` keeps."""

    rows: Table
    answers: Patterns
    rank: int
    kept: NonzeroLeaves = None
    number: int = field(default_factory=count().__next__)


def joined_rows(asked: Sequence[Answered]) -> tuple[Table, Patterns]:
    """The rows of several sets of questions, and their answers."""
    return np.concatenate([part.rows for part in asked]), np.concatenate([part.answers for part in asked])


class DeviceAnswers:
    """The answers so far of the device that `ask` asks. `bank`: answers to questions; `validated`: answers to vectors
    of validation; `at`: the present stage of the work, in words."""

    def __init__(self, asked: Signature, ask: AskAll, clock: Clock, progress: Callable[[str], None]) -> None:
        self.asked, self.ask, self.clock, self.progress = asked, ask, clock, progress
        self.layout = layout_of(asked)
        self.bank: list[Answered] = []
        self.validated: list[Answered] = []
        self.at = ""

    @property
    def every(self) -> list[Answered]:
        """All answers, to questions and to vectors of validation."""
        return [*self.bank, *self.validated]

    @property
    def questions(self) -> int:
        return sum(len(asked.rows) for asked in self.bank)

    @property
    def checks(self) -> int:
        """The number of vectors of validation that were asked."""
        return sum(len(asked.rows) for asked in self.validated)

    def bits(self, alone: bool = False) -> int:
        """The largest number of significant bits of an answer so far; 0 without answers. `alone`: whether only the
        answers to questions with c = 0 count."""
        if not self.bank:
            return 0
        rows, results = joined_rows(self.bank)
        if alone and self.asked.addend:
            zero = np.uint64((1 << self.asked.c.width) - 1 & ~self.asked.c.sign_bit)
            results = results[rows[:, 2 * self.asked.length] & zero == 0]
        d = self.asked.d
        fields = (results[finite(results, d)] & np.uint64((1 << d.field_width) - 1)) >> np.uint64(d.padding)
        exponents, parts = fields >> np.uint64(d.fraction), fields & np.uint64((1 << d.fraction) - 1)
        whole = parts[exponents > 0] | np.uint64(1 << d.fraction)
        return max((int(x).bit_length() - (int(x) & -int(x)).bit_length() + 1 for x in whole), default=0)

    def check_time(self) -> None:
        """Raises OutOfTimeError when the time for the present work is over."""
        limit = self.clock.limit
        if limit is not None and time.monotonic() > limit:
            raise OutOfTimeError(
                f"the time ran out after {counted(self.questions, 'question')} about the arithmetic, at {self.at}"
            )

    def put(self, rows: Table, rank: int, kept: NonzeroLeaves) -> Answered:
        """Put questions to the device. Raises the errors of `ask`."""
        answers = np.array(self.ask(self.vectors(rows)), dtype=np.uint64)
        asked = Answered(rows, answers, rank, kept)
        self.bank.append(asked)
        return asked

    def checked(self, rows: Table, rank: int) -> Answered:
        """Put vectors of validation to the device. Raises the errors of `ask`."""
        answers = np.zeros(len(rows), dtype=np.uint64)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            self.progress(f"validation: {self.checks + start} vectors")
            answers[start : start + BATCH] = self.ask(self.vectors(part))
        asked = Answered(rows, answers, rank)
        self.validated.append(asked)
        return asked

    def vectors(self, rows: Table) -> list[Vector]:
        name = f"build-{self.questions}"
        return [Vector(self.asked, self.layout.split(row), id=name) for row in rows.tolist()]

    def vector(self, row: Table) -> Vector:
        return self.vectors(row[None])[0]

    def same(self, patterns: Patterns) -> Patterns:
        """The results with one pattern for all NaNs."""
        return without_payload(patterns, self.asked.d)

    def evaluated(self, units: Sequence[Unit], table: Table) -> Patterns:
        """The results of some units, with one pattern for all NaNs, shape (units, rows)."""
        results: list[Patterns] = []
        for start in range(0, len(units), TOGETHER):
            self.check_time()
            models = [Model(BUILT, unit) for unit in units[start : start + TOGETHER]]
            results.append(self.same(evaluate_models(models, table)))
        return np.concatenate(results) if results else np.zeros((0, len(table)), dtype=np.uint64)

    def differences(self, units: Sequence[Unit], asked: Sequence[Answered]) -> NDArray[np.bool_]:
        """Where units give other answers than the device, shape (units, answers)."""
        if not asked:
            return np.zeros((len(units), 0), dtype=np.bool_)
        rows, answers = joined_rows(asked)
        size = max(1, SHARED // len(rows))
        models = [Model(BUILT, unit) for unit in units]
        parts = [evaluate_models(models[start : start + size], rows) for start in range(0, len(models), size)]
        results = np.concatenate(parts) if parts else np.zeros((0, len(rows)), dtype=np.uint64)
        return np.asarray(self.same(results) != self.same(answers), dtype=np.bool_)

    def nan(self) -> int | None:
        """The pattern of all NaN answers, if they have exactly one; else None."""
        answers = joined_rows(self.every)[1]
        seen = {int(d) for d in answers[nans(answers, self.asked.d)]}
        return seen.pop() if len(seen) == 1 else None

    def wrong(self, units: Sequence[Unit]) -> list[int]:
        """For each unit, the number of the device's answers that the unit does not give."""
        counts: list[int] = self.differences(units, self.every).sum(axis=1).tolist()
        return counts
