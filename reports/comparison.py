"""The comparison of two devices, with the reasons why they differ, as a document and as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mmaprobe.documents import devices as documents
from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.queries.compare.devices import Comparison, Contradiction, Pair
from mmaprobe.queries.compare.explanations import Explanation, changes, common_changes, explanations, explanations_apart
from mmaprobe.queries.compare.neighbours import Neighbour, is_spelled
from mmaprobe.queries.covering.cover import Change
from mmaprobe.reports.evaluations import neighbour_of
from mmaprobe.runner.devices import Device
from mmaprobe.runner.recorded import RecordedDevice
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector, operands_json, to_hex

BY_CHANCE = 16  # fewer answers than these may be explained by several questions by chance
LISTED = 100  # the most contradictions in the document


@dataclass
class Report:
    """A comparison and its explanations. `differ`: two recorded matrices were compared, without a device, and
    differ; `untold`: changes of the models that no vector shows, as far as was found out; `repeated`: inputs that were
    chosen again after they were asked."""

    comparison: Comparison
    devices: Sequence[Device] = ()
    pair: Pair | None = None
    differ: bool = False
    untold: Sequence[Change] = ()
    repeated: list[tuple[int, ...]] = field(default_factory=list)
    gemm: documents.Gemm | None = None
    changes: list[list[list[Neighbour]]] = field(default_factory=list)  # by difference and side
    #: by side, the changes that explain all differences
    common: list[list[documents.CommonChange]] = field(default_factory=lambda: [[], []])
    explanations: list[Explanation] = field(default_factory=list)

    def explain(self) -> None:
        """Find explanations of the differences, in `changes`, `common` and `explanations`."""
        assert self.pair is not None
        if self.comparison.apart:
            self.explanations = explanations_apart(self.pair, self.comparison.apart)
            return
        self.changes = [changes(difference) for difference in self.comparison.differences]
        self.common = [common_changes(self.comparison, self.pair, self.changes, side) for side in (0, 1)]
        self.explanations = explanations(self.comparison, self.pair)

    def unspelled(self, side: int) -> list[str]:
        """The changes of one model that explain all differences, and that no reference expresses."""
        near = {one.change: one.model for one in self.changes[0][side]} if self.changes else {}
        return [one.change for one in self.common[side] if one.change in near and not is_spelled(near[one.change])]

    def vectors(self) -> list[Vector]:
        """The differences as vectors, with each device's result, and the user's own keys of a recorded row."""
        written = []
        for index, difference in enumerate(self.comparison.differences):
            vector = difference.instruction
            if vector is None:
                continue
            results = zip(difference.pair.sides, (difference.left, difference.right), strict=True)
            extra: dict[str, Any] = {"predictions": {side.name: to_hex(d, side.model.d) for side, d in results}}
            extra["exercises"] = difference.exercises
            if questions := self.questions(index):
                extra["question"] = questions[0].question.id
            for side, device in zip(
                difference.pair.sides, self.devices, strict=False
            ):  # no devices for two files of results
                if isinstance(device, RecordedDevice):
                    extra = device.with_own_keys(replace(vector, model=side.model)).own_keys | extra
            written.append(replace(vector, id=f"difference-{index + 1}", extra=extra))
        return written

    def reason(self) -> str | None:
        """Why the devices differ, in one sentence; None without a difference. If a change or a question reproduces
        every answer of both devices, the sentence names this change or question."""
        count = len(self.comparison.differences)
        if self.comparison.apart:
            return self._reason_apart()
        if not count:
            return None
        changes = [(word, one) for word, side in zip(("first", "second"), self.common, strict=True) for one in side]
        for word, side in zip(("first", "second"), self.common, strict=True):
            if whole := [change for change in side if change.agree == change.answers]:
                other = "second" if word == "first" else "first"
                number = whole[0].answers
                answers = f"{f'all {number} answers' if number > 1 else 'the one answer'} of the {other}"
                if len(whole) == 1:
                    return f"the devices differ by {whole[0].change}: with this change the {word} model gives {answers}"
                several = " or ".join(change.change for change in whole)
                return f"the devices differ by {several}: with any of these changes the {word} model gives {answers}"
        every = [one for one in self.explanations if one.complete and len(one.differences) == count]
        reasons = [one for one in every if one.about_one_model]
        if len(reasons) > 1 and min(one.whole[0].answers for one in reasons) < BY_CHANCE:
            names = [one.question.id for one in reasons]
            return (
                f"too few answers to say why the devices differ: each of {len(names)} single causes explains all "
                f"({', '.join(names)}); ask both devices more vectors"
            )
        for explained in sorted(every, key=lambda one: not one.about_one_model):
            (left, right), question = explained.whole, explained.question
            about = "" if left.answers >= self.comparison.compared else " that the question is about"
            asked, answers = f"{question.id} ({question.question})", f"{_all(left.answers)}{about}"
            if apart := _parameters_apart(*(question.models[one.hypothesis] for one in explained.whole)):
                both = f"{left.hypothesis!r} and {right.hypothesis!r} of {asked}"
                return f"{apart}: the devices agree with {both} in {answers}"
            return (
                f"the devices differ in {asked}: the first agrees with {left.hypothesis!r}, the second with "
                f"{right.hypothesis!r}, in {answers}"
            )
        if changes:
            word, change = max(changes, key=lambda pair: pair[1].agree)
            return (
                f"no single change that was tried reproduces every answer; the best, {change.change} in the {word} "
                f"model, reproduces the differences below and {change.agree} of {counted(change.answers, 'answer')}"
            )
        return "no single change that was tried, and no question of the library, explains the differences below"

    def _reason_apart(self) -> str:
        for explained in self.explanations:
            (left, right), question = explained.whole, explained.question
            first, second = (question.models[one.hypothesis].reference for one in (left, right))
            return (
                f"the devices differ in {question.id} ({question.question}): {left.hypothesis!r} ({first}) predicts "
                f"{_all(left.answers)} of the first and not those of the second, {right.hypothesis!r} ({second}) "
                f"{_all(right.answers)} of the second and not those of the first"
            )
        return "no question of the library has hypotheses that predict every answer of one device and not of the other"

    def questions(self, index: int) -> list[Explanation]:
        """The questions that explain a difference and contradict no other answer."""
        return [one for one in self.explanations if one.complete and index in one.differences]

    def document(self, error: MmaprobeError | None) -> documents.Compare:
        """The comparison as a document. `error`: the error that ended the comparison early."""
        comparison, sides = self.comparison, self.pair.sides if self.pair else ()
        descriptions = {device.name: device.description for device in self.devices}
        first, second = self.common
        return documents.Compare(
            verdict=self._verdict(),
            reason=self.reason(),
            compare=self.pair.problem.compare if self.pair else None,
            devices=[
                documents.ComparedDevice(
                    name=side.name,
                    model=side.model.reference,
                    description=descriptions.get(side.name.removesuffix(" (first)").removesuffix(" (second)"), {}),
                    asked=side.asked,
                )
                for side in sides
            ],
            compared=comparison.compared,
            different=comparison.different,
            differences=[self._difference(index) for index in range(len(comparison.differences))],
            common_changes=documents.CommonChanges(first=first, second=second),
            questions=[_explanation(one) for one in self.explanations],
            contradictions=[_contradiction(one) for one in comparison.contradictions[:LISTED]],
            gemm=ABSENT if self.gemm is None else self.gemm,
            error=str(error) if error else None,
        )

    def _verdict(self) -> Literal["different", "unstable", "no difference", "not compared"]:
        if self.comparison.differences or self.differ:
            return "different"
        if self.comparison.contradictions:
            return "unstable"
        return "no difference" if self.comparison.compared or self.gemm else "not compared"

    def _difference(self, index: int) -> documents.Difference:
        difference = self.comparison.differences[index]
        pair, vector = difference.pair, difference.instruction
        sides = zip(("first", "second"), pair.sides, (difference.left, difference.right), strict=True)
        first, second = (list(map(neighbour_of, near)) for near in self.changes[index])
        return documents.Difference(
            vector=None if vector is None else Row.of(vector.to_json()),
            operands=documents.AnyInput.of(operands_json(difference.operands, pair.left.model)),
            results={word: to_hex(d, side.model.d) for word, side, d in sides},
            exercises=difference.exercises,
            terms=terms(difference.operands),
            terms_found=terms(pair.layout.split(difference.first)),
            neighbours=documents.NeighboursOfSides(first=first, second=second),
            questions=[one.question.id for one in self.questions(index)],
        )


def terms(operands: Operands[int]) -> int:
    """The number of terms that an input uses: products with a nonzero factor, and a nonzero addend."""
    return sum(1 for x, y in zip(operands.a, operands.b, strict=True) if x or y) + (operands.c != 0)


def _parameters_apart(left: Model, right: Model) -> str:
    """The parameters in which two models of one family differ, in words; empty for other models."""
    if not (apart := left.apart(right)):
        return ""
    first = ", ".join(f"{name}={value}" for name, value, _ in apart)
    second = ", ".join(f"{name}={value}" for name, _, value in apart)
    return f"the first has {first}, the second {second}"


def _all(count: int) -> str:
    return "the one answer" if count == 1 else f"all {counted(count, 'answer')}"


def _explanation(one: Explanation) -> documents.QuestionOfLibrary:
    return documents.QuestionOfLibrary(
        id=one.question.id,
        question=one.question.question,
        differences=one.differences,
        complete=one.complete,
        first=one.left,
        second=one.right,
    )


def _contradiction(one: Contradiction) -> documents.DeviceContradiction:
    vector = one.side.vector(one.operands)
    answers = [None if d is None else to_hex(d, one.side.model.d) for d in one.answers]
    return documents.DeviceContradiction(device=one.side.name, vector=Row.of(vector.to_json()), answers=answers)
