"""Identification of the model that a device implements: the device is asked the question that splits the candidates
best, until one class of candidates is left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Literal, Protocol

import numpy as np

from mmaprobe.hypotheses.family import parameters_of, steps_of
from mmaprobe.queries.candidates.classes import Equality, partition_sets
from mmaprobe.queries.candidates.kinds import unique_models
from mmaprobe.queries.candidates.outcomes import SEED, Outcomes, pool_rows, results_of
from mmaprobe.queries.candidates.separate import smallest_set
from mmaprobe.queries.compare.asked_rows import row_of
from mmaprobe.queries.compare.steady import AGAIN, AGAIN_IN_DOUBT, Answered, AskDevice, contradictions, spread
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table, sample_rows
from mmaprobe.queries.search.specials import special_rows
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import without_payload
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.vectors import Vector

Verdict = Literal["identified", "no candidate", "open"]

POOL = 4000  # vectors from which questions are chosen
FIRST = 400  # of these, vectors on which every candidate is simulated
POOL_GROWTH = 4  # the remaining candidates are simulated on so many times more vectors, if no known vector splits them
VALIDATION = 2000  # vectors, besides special values, by which a survivor is checked before it is named
SPECIAL = 1  # vectors for each pair of special values in each pair of places
MAX_QUESTIONS = 200
PAIR_TIMEOUT_S = 60.0  # for proving one pair of survivors equal


class Structure(Protocol):
    """The knowledge about the summation order from before the identification."""

    def admits(self, accumulator: Any) -> bool: ...  # whether a unit can have this order


@dataclass
class AskedVector:
    """A question: the vector, the answer, the number of candidates left, and the parameter values ruled out."""

    vector: Vector
    answer: int
    left: int
    ruled_out: dict[str, list[Any]] = field(default_factory=dict)


@dataclass
class Identification:
    """The findings. `classes`: the possible models, in classes of models proved equal, with the reasons; `unknown`:
    pairs of models neither proved equal nor distinguished; `killer`: the vector whose answer left no candidate;
    `nearest`: the candidates that agree with the most answers, each with the number of these answers; `would_decide`:
    vectors without a recorded answer that distinguish classes; `contradictions`: (vector, first answer, second)."""

    verdict: Verdict
    candidates: int
    questions: list[AskedVector] = field(default_factory=list)
    classes: list[list[Equality]] = field(default_factory=list)
    unknown: list[tuple[Model, Model]] = field(default_factory=list)
    validated: int = 0
    killer: AskedVector | None = None
    nearest: list[tuple[Model, int]] = field(default_factory=list)
    would_decide: list[Vector] = field(default_factory=list)
    contradictions: list[tuple[Vector, int, int]] = field(default_factory=list)
    unanswered: int = 0
    seconds: float = 0.0

    @property
    def survivors(self) -> list[Model]:
        return [member.model for members in self.classes for member in members]

    def values(self) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """The parameters with one value among the survivors, and the parameters with several values. `nan` is left out,
        and so are parameters that some survivor lacks."""
        decided: dict[str, Any] = {}
        undecided: dict[str, list[Any]] = {}
        survivors = [parameters_of(model) for model in self.survivors]
        for name in survivors[0] if survivors else ():
            if name == "nan" or not all(name in values for values in survivors):
                continue
            different = list(dict.fromkeys(values[name] for values in survivors))
            if len(different) == 1:
                decided[name] = different[0]
            else:
                undecided[name] = different
        return decided, undecided


def _with_order(candidates: Sequence[Model], structure: Structure, deadline: float | None) -> list[Model]:
    """The candidates whose steps can give the revealed order; candidates with equal steps are checked once. Raises
    IncompleteError after the deadline (of time.monotonic)."""
    known: dict[object, bool] = {}
    for number, model in enumerate(candidates):
        if deadline is not None and time.monotonic() > deadline:
            compared = f"{number} of {counted(len(candidates), 'candidate')}"
            raise IncompleteError(f"time ran out when {compared} were compared with the order revealed")
        steps = steps_of(model)
        if steps not in known:
            known[steps] = structure.admits(model.unit)
    return [model for model in candidates if known[steps_of(model)]]


class Identifier:
    """One identification. `ask`: gives the answers to vectors, in order (None: no answer); `again`: asks earlier
    vectors again; `recorded`: vectors with answers, if a recording is asked; `start`: the time of time.monotonic from
    which `options.timeout` counts."""

    def __init__(
        self,
        candidates: Sequence[Model],
        ask: AskDevice,
        options: Options,
        structure: Structure | None = None,
        recorded: Sequence[Vector] = (),
        again: AskDevice | None = None,
        start: float | None = None,
    ) -> None:
        self.start = time.monotonic() if start is None else start
        self.deadline = None if options.timeout is None else self.start + options.timeout
        admitted = list(candidates) if structure is None else _with_order(candidates, structure, self.deadline)
        self.ask, self.options = ask, options
        self.again = again or (lambda vectors: [ask([vector])[0] for vector in vectors])
        self.kinds = unique_models(admitted, options, self.deadline)
        self.models = list(self.kinds)  # the models that `outcomes` has; `alive`: the indices of the survivors
        self.result = Identification("open", len(candidates))
        self.asked: set[int] = set()
        self.checked: list[Answered] = []  # the vectors of the last validation
        self.recorded = list(recorded)
        self.known: dict[Row, int] = {}  # the recorded results, by input

    def run(self) -> Identification:
        """Identify the device. Raises the errors of `ask`; the findings so far are in `result`."""
        if not self.models:
            self.result.verdict = "no candidate"
            return self.result
        self.layout = layout_of(self.models[0])
        if self.recorded:
            table, self.pool = self._recorded_table(), None
        else:
            pool = np.random.default_rng(SEED).permutation(pool_rows(self.layout, POOL))
            table, self.pool = pool[:FIRST], pool[FIRST:]
        try:
            self.outcomes = Outcomes.of(self.models, table, self.options.progress, self.deadline)
            self.alive = list(range(len(self.models)))
            self._narrow()
        finally:
            self.result.seconds = time.monotonic() - self.start
        return self.result

    def _recorded_table(self) -> Table:
        rows = ((row_of(vector.operands, self.layout), vector.d) for vector in self.recorded)
        self.known = {row: d for row, d in rows if row is not None and d is not None}
        return np.array(list(self.known), dtype=np.uint64)

    def _narrow(self) -> None:
        while True:
            if not self._split():
                return
            if not (self._agree() if self.recorded else self._validate()):
                return
            if self._decide():
                return

    def _split(self) -> bool:
        """Ask vectors of the pool until no vector distinguishes two survivors. Returns False if no candidate survives,
        or if MAX_QUESTIONS are asked. Raises IncompleteError after the deadline."""
        while len(self.result.questions) < MAX_QUESTIONS:
            if self.deadline is not None and time.monotonic() > self.deadline:
                raise IncompleteError(f"the time ran out after {counted(len(self.result.questions), 'question')}")
            representatives = [members[0] for members in self.outcomes.classes(self.alive)]
            allowed = np.ones(len(self.outcomes.table), dtype=bool)
            allowed[list(self.asked)] = False
            column = self.outcomes.best_question(representatives, allowed) if len(representatives) > 1 else None
            if column is None:
                if len(self.alive) > 1 and self._more():
                    continue
                return True
            self.options.progress(f"question {len(self.result.questions) + 1}: {len(representatives)} classes left")
            if not self._take(column):
                return False
        return False

    def _more(self) -> bool:
        """Simulate the remaining candidates on more of the pool; False if there is no more."""
        if self.pool is None or not len(self.pool):
            return False
        self.outcomes = self.outcomes.narrowed(self.alive)
        self.models = self.outcomes.candidates
        self.alive = list(range(len(self.models)))
        count = POOL_GROWTH * len(self.outcomes.table)
        rows, self.pool = self.pool[:count], self.pool[count:]
        self.outcomes.extend(rows, deadline=self.deadline)
        return True

    def _take(self, column: int) -> bool:
        """Ask one vector of the pool, and keep the candidates that give the answer. Returns False if none is left."""
        self.asked.add(column)
        vector = self._vector(self.outcomes.table[column])
        answer = self._answer(vector)
        if answer is None:
            self.result.unanswered += 1
            return True
        fits = self.outcomes.results[self.alive, column] == np.uint64(answer)
        before, self.alive = self.alive, [index for index, fit in zip(self.alive, fits, strict=True) if fit]
        question = AskedVector(vector, answer, len(self.alive), self._ruled_out(before, self.alive))
        self.result.questions.append(question)
        if not self.alive:
            self._no_candidate(question)
            return False
        return True

    def _vector(self, row: Any, name: str = "question") -> Vector:
        number = len(self.result.questions) + 1
        operands = self.layout.split([int(pattern) for pattern in row])
        return Vector(self.models[0], operands, id=f"{name}-{number}")

    def _answer(self, vector: Vector) -> int | None:
        [answer] = self.ask([vector])
        if answer is None:
            answer = self.known.get(vector.operands.every)
        if answer is None:
            return None
        return int(without_payload(np.array([answer], dtype=np.uint64), vector.model.d)[0])

    def _ruled_out(self, before: Sequence[int], after: Sequence[int]) -> dict[str, list[Any]]:
        """The parameter values of candidates before an answer that no candidate left after the answer has."""
        excluded: dict[str, list[Any]] = {}
        had, has = (self._values(group) for group in (before, after))
        for name, values in had.items():
            if has.get(name) and values - has[name]:
                excluded[name] = sorted(values - has[name], key=str)
        return excluded

    def _values(self, candidates: Sequence[int]) -> dict[str, set[Any]]:
        """The values of each parameter among some candidates."""
        by_parameter: dict[str, set[Any]] = {}
        for index in candidates:
            for name, value in parameters_of(self.models[index]).items():
                by_parameter.setdefault(name, set()).add(value)
        return by_parameter

    def _no_candidate(self, killer: AskedVector) -> None:
        """Record an answer that no candidate explains, unless the device does not repeat its answers."""
        self._stand_by(AGAIN_IN_DOUBT)
        if self.result.contradictions:
            return
        self.result.verdict, self.result.killer = "no candidate", killer
        answers = [question.answer for question in self.result.questions]
        rows = np.array([question.vector.operands.every for question in self.result.questions], dtype=np.uint64)
        every = list(self.kinds)
        agree = (results_of(every, rows) == np.array(answers, dtype=np.uint64)).sum(axis=1)
        best = np.argsort(-agree, kind="stable")[:5]
        self.result.nearest = [(every[index], int(agree[index])) for index in best]

    def _validate(self) -> bool:
        """Check a survivor on new vectors and special values. Returns False if no candidate is left, or if the device
        contradicts itself."""
        specials = special_rows(self.layout, SPECIAL)
        rows = np.concatenate([sample_rows(self.layout, VALIDATION, SEED + 1), specials])
        expected = results_of([self.models[self.alive[0]]], rows)[0]
        vectors = [self._vector(row, f"validation-{i}") for i, row in enumerate(rows)]
        self.options.progress(f"validating a survivor on {len(vectors)} vectors")
        answers = self.ask(vectors)
        self.result.validated = sum(answer is not None for answer in answers)
        known = [i for i, answer in enumerate(answers) if answer is not None]
        self.checked = [(vectors[i], answers[i] or 0) for i in known]
        given = without_payload(np.array([answers[i] for i in known], dtype=np.uint64), self.models[0].d)
        wrong = [i for i, answer in zip(known, given, strict=True) if answer != expected[i]]
        if not wrong:
            return True
        doubted = {vectors[i].id: i for i in wrong[:AGAIN]}
        for vector, first, again in contradictions(self.again, [(vectors[i], answers[i] or 0) for i in wrong[:AGAIN]]):
            self.result.contradictions.append((vector, first, again))
            if again == expected[doubted.pop(vector.id)]:
                continue
            return False
        if not doubted:
            return True
        row = rows[next(iter(doubted.values()))]
        self.outcomes.extend(row[None, :], self.alive)
        return self._take(len(self.outcomes.table) - 1)

    def _agree(self) -> bool:
        """Check survivors that agree on all recorded inputs against the recorded results. Returns False if a result
        leaves no candidate."""
        expected = self.outcomes.results[self.alive[0]]
        given = without_payload(np.array(list(self.known.values()), dtype=np.uint64), self.models[0].d)
        self.result.validated = len(given)
        wrong = np.flatnonzero(given != expected)
        return not len(wrong) or self._take(int(wrong[0]))

    def _decide(self) -> bool:
        """Prove the survivors equal. Returns False if a solver found a vector that distinguishes two survivors; that
        vector is then asked."""
        self.options.progress(f"{len(self.alive)} survivors that no answer tells apart: proving them equal")
        groups = self._would_decide() if self.recorded else [[self.models[i] for i in self.alive]]
        options, interrupts = replace(self.options, timeout=PAIR_TIMEOUT_S), Event()
        partitions = partition_sets(groups, options, True, self.deadline, interrupts.set)
        witnesses: list[Row] = [row for one in partitions for row in one.witnesses]
        self.result.unknown = [pair for one in partitions for pair in one.unknown]
        self.result.classes = [members for one in partitions for members in one.classes]
        if witnesses and not (self.recorded or interrupts.is_set()):
            self.result.classes, self.result.unknown = [], []
            self.outcomes.extend(np.array(witnesses, dtype=np.uint64), self.alive)
            return False
        self.result.would_decide += [self._vector(row, "would-decide") for row in witnesses]
        for members in self.result.classes:
            members += [twin for member in list(members) for twin in self.kinds[member.model]]
        if interrupts.is_set():
            raise KeyboardInterrupt  # after every survivor has been put into a class
        self._stand_by(AGAIN)
        one = len(self.result.classes) == 1 and not self.result.unknown
        self.result.verdict = "identified" if one and not self.result.contradictions else "open"
        return True

    def _stand_by(self, most: int) -> None:
        """Ask some questions again, spread over the run, and note contradicting answers."""
        questions = [(question.vector, question.answer) for question in self.result.questions]
        for answered in (questions, self.checked) if not self.recorded else ():
            chosen = [answered[place] for place in spread(len(answered), most)]
            self.result.contradictions += contradictions(self.again, chosen)

    def _would_decide(self) -> list[list[Model]]:
        """The survivors of a recording, grouped by their results on vectors that were not recorded; vectors that
        distinguish the groups are kept for a report."""
        models = [self.models[i] for i in self.alive]
        outcomes = Outcomes.of(models, pool_rows(self.layout, POOL), self.options.progress)
        groups = outcomes.classes(range(len(models)))
        chosen = smallest_set(outcomes, [members[0] for members in groups])
        self.result.would_decide = [self._vector(outcomes.table[i], "would-decide") for i in chosen]
        return [[models[i] for i in members] for members in groups]
