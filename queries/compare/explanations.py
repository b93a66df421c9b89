"""Explanations of a difference between two devices: a changed parameter of a model, or a question of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mmaprobe.documents.devices import CommonChange, Support
from mmaprobe.hypotheses.library import library
from mmaprobe.hypotheses.schema import Question
from mmaprobe.queries.compare.asked_rows import row_of
from mmaprobe.queries.compare.devices import Answered, Comparison, Difference, Pair, differing
from mmaprobe.queries.compare.neighbours import Neighbour, reproducing_neighbours
from mmaprobe.queries.compare.steady import Answer
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import Shared
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands, layout_of
from mmaprobe.smtmodel.inputs.admitted import Compare, check_comparable


@dataclass(frozen=True)
class Explanation:
    """A question of the library of which some hypotheses agree with the first device and others with the second, on
    some of the differences (given by index)."""

    question: Question
    left: tuple[Support, ...]
    right: tuple[Support, ...]
    differences: tuple[int, ...]

    @property
    def complete(self) -> bool:
        """Whether one hypothesis predicts all answers of the first device, and one hypothesis all answers of the
        second."""
        return len(self.whole) == 2

    @property
    def whole(self) -> list[Support]:
        """For each device the first hypothesis that predicts all its answers."""
        sides = [next((one for one in side if one.agree == one.answers), None) for side in (self.left, self.right)]
        return [one for one in sides if one is not None]

    @property
    def about_one_model(self) -> bool:
        """Whether the hypotheses are one model with changed parameters, so that these parameters are the difference."""
        return len({model.instruction for model in self.question.models.values()}) == 1

    @property
    def rank(self) -> tuple[float, ...]:
        """A sort key: most differences first, then best agreement with all other answers."""
        every = self.left, self.right
        best = [max(one.agree / one.answers if one.answers else 0.0 for one in side) for side in every]
        asked = min(one.answers for one in (*self.left, *self.right))
        return -len(self.differences), -sum(best), -asked, len(self.left) + len(self.right)


def changes(difference: Difference) -> list[list[Neighbour]]:
    """For each device that is a model: its neighbours that give the other device's result."""
    pair, vector = difference.pair, difference.instruction
    results = (difference.left, difference.right)
    near: list[list[Neighbour]] = []
    for index, side in enumerate(pair.sides):
        other = pair.sides[1 - index]
        if not side.software or vector is None:
            near.append([])
            continue
        agrees = partial(_agrees, other.model, results[1 - index], pair.problem.compare)
        near.append(reproducing_neighbours(side.model, vector.operands, agrees))
    return near


def _agrees(other: Model, observed: int, compare: Compare, near: Model, result: int) -> bool:
    """Whether a neighbour's result equals the other device's result, by the comparison's rule."""
    return not differing(Problem(near, other, compare=compare), [result], [observed])[0]


def common_changes(
    comparison: Comparison, pair: Pair, answered: Sequence[list[list[Neighbour]]], side: int
) -> list[CommonChange]:
    """The changes of one device's model that explain all differences, the best first."""
    if not answered:
        return []
    models = [{one.change: one.model for one in near[side]} for near in answered]
    common = [change for change in models[0] if all(change in other for other in models)]
    results = _Results(pair, _asked(comparison))
    ranked = []
    for change in common:
        agreement = results.of(models[0][change])
        if agreement is not None:
            seen = agreement[1 - side]
            ranked.append(CommonChange(change=change, agree=sum(seen.values()), answers=len(seen)))
    return sorted(ranked, key=lambda one: -one.agree)


def _asked(comparison: Comparison) -> list[Answered]:
    """The differences, then the other inputs that both devices answered; each input once."""
    answers: dict[Operands[int], tuple[Answer, Answer]] = {
        one.operands: (one.left, one.right) for one in comparison.differences
    }
    # `differing` may have differences that were not minimised
    for operands, left, right in (*comparison.kept, *comparison.differing):
        answers.setdefault(operands, (left, right))
    return [(operands, left, right) for operands, (left, right) in answers.items()]


def explanations(comparison: Comparison, pair: Pair) -> list[Explanation]:
    """The questions of the library that explain a difference, the best first."""
    count = len(comparison.differences)
    if not count:
        return []
    results = _Results(pair, _asked(comparison))
    chosen = []
    for question in library().values():
        explanation = _explanation(question, results, count)
        if explanation is not None:
            chosen.append(explanation)
    return sorted(chosen, key=lambda one: one.rank)


def explanations_apart(pair: Pair, answered: Sequence[Answered]) -> list[Explanation]:
    """The questions of the library that say why two devices differ, where these were never asked the same input: one
    hypothesis predicts every answer of the first device and not every answer of the second, another hypothesis the
    reverse. The best questions come first. `answered`: inputs with the answer of one device, and None for the other."""
    results = _Results(pair, answered)
    apart = []
    for question in library().values():
        agreeing = {name: agree for name, model in question.models.items() if (agree := results.of(model))}
        whole = [
            tuple(
                _support(name, agree, side)
                for name, agree in agreeing.items()
                if all(agree[side].values()) and not all(agree[1 - side].values())
            )
            for side in (0, 1)
        ]
        if whole[0] and whole[1]:
            apart.append(Explanation(question, whole[0], whole[1], ()))
    return sorted(apart, key=lambda one: (not one.about_one_model, one.rank))


def _explanation(question: Question, results: _Results, count: int) -> Explanation | None:
    agreeing = {name: results.of(model) for name, model in question.models.items()}
    names = [
        [[name for name, agree in agreeing.items() if agree and agree[side].get(i)] for i in range(count)]
        for side in (0, 1)
    ]
    both = [i for i in range(count) if names[0][i] and names[1][i]]
    if not both:
        return None
    # a hypothesis must agree on every difference that the question explains
    kept = [[name for name in agreeing if all(name in names[side][i] for i in both)] for side in (0, 1)]
    if not (kept[0] and kept[1]):
        both = both[:1]
        kept = [names[side][both[0]] for side in (0, 1)]
    sides = [
        tuple(sorted((_support(name, agreeing[name], side) for name in kept[side]), key=lambda one: -one.agree))
        for side in (0, 1)
    ]
    return Explanation(question, sides[0], sides[1], tuple(both))


Agreement = tuple[dict[int, bool], dict[int, bool]]  # index of a vector -> whether the device's answer is predicted


def _support(name: str, agreement: Agreement | None, side: int) -> Support:
    assert agreement is not None
    return Support(hypothesis=name, agree=sum(agreement[side].values()), answers=len(agreement[side]))


class _Results:
    """Hypotheses evaluated on answered vectors, each model once."""

    def __init__(self, pair: Pair, answered: Sequence[Answered]) -> None:
        self.pair = pair
        self.inputs = [one[0] for one in answered]
        self.answers = [one[1] for one in answered], [one[2] for one in answered]
        self._known: dict[Model, Agreement | None] = {}
        self._rows: dict[Layout, tuple[list[int], Shared]] = {}

    def of(self, model: Model) -> Agreement | None:
        if model not in self._known:
            self._known[model] = self._agreement(model)
        return self._known[model]

    def _agreement(self, model: Model) -> Agreement | None:
        """The agreement of a model with both devices; None for a model that takes other inputs."""
        compare = self.pair.problem.compare
        try:
            for side in self.pair.sides:
                check_comparable(model, side.model, compare)
        except ParameterError:
            return None
        layout = layout_of(model)
        if layout not in self._rows:
            kept = {i: row for i, parts in enumerate(self.inputs) if (row := row_of(parts, layout)) is not None}
            table = np.array([*kept.values()], dtype=np.uint64).reshape(len(kept), len(layout.formats))
            self._rows[layout] = [*kept], Shared(table, layout)
        rows, shared = self._rows[layout]
        if not rows:
            return None
        predicted = shared.of(model).tolist()
        agreed: list[dict[int, bool]] = []
        for side, answers in zip(self.pair.sides, self.answers, strict=True):
            wrong = differing(Problem(model, side.model, compare=compare), predicted, [answers[i] for i in rows])
            agreed.append({i: not bad for i, bad in zip(rows, wrong, strict=True) if answers[i] is not None})
        return agreed[0], agreed[1]
