"""The outcome of `compare` as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from mmaprobe.cli.options import say
from mmaprobe.cli.text.vectors import result_text, show_operands
from mmaprobe.documents import devices as documents
from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.reports.evaluations import neighbour_of
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.vectors import operands_json, to_hex

if TYPE_CHECKING:
    from mmaprobe.queries.compare.devices import Comparison, Contradiction, Pair
    from mmaprobe.queries.compare.neighbours import Neighbour
    from mmaprobe.queries.compare.why import Explanation
    from mmaprobe.runner.devices import Device
    from mmaprobe.smtmodel.base.errors import MmaprobeError
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.evaluate.operands import Operands
    from mmaprobe.smtmodel.inputs.vectors import Vector

FEW = 16  # answers that several questions explain by chance
SHOWN = 5  # explanations of each sort, and contradictions
LISTED = 100  # contradictions in JSON


@dataclass
class Report:
    """A comparison and its explanations. `differ`: two matrices that differ were compared without asking a device."""

    comparison: Comparison
    devices: Sequence[Device] = ()
    pair: Pair | None = None
    differ: bool = False
    gemm: documents.Gemm | None = None
    changes: list[list[list[Neighbour]]] = field(default_factory=list)  # of each difference, of each side
    #: of each side, for all differences
    common: list[list[documents.CommonChange]] = field(default_factory=lambda: [[], []])
    found: list[Explanation] = field(default_factory=list)

    def explain(self) -> None:
        """Find explanations of the differences, in `changes`, `common` and `found`."""
        from mmaprobe.queries.compare.why import changes, common_changes, explanations, explanations_apart

        assert self.pair is not None
        if self.comparison.apart:
            self.found = explanations_apart(self.pair, self.comparison.apart)
            return
        self.changes = [changes(difference) for difference in self.comparison.differences]
        self.common = [common_changes(self.comparison, self.pair, self.changes, side) for side in (0, 1)]
        self.found = explanations(self.comparison, self.pair)

    def vectors(self) -> list[Vector]:
        """The differences as vectors, with what each device gives, and the keys of one's own of a row recorded."""
        from mmaprobe.runner.recorded import RecordedDevice

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
            for side, device in zip(difference.pair.sides, self.devices, strict=False):  # none of two files of results
                if isinstance(device, RecordedDevice):
                    extra = device.with_own_keys(replace(vector, model=side.model)).own_keys | extra
            written.append(replace(vector, id=f"difference-{index + 1}", extra=extra))
        return written

    def reason(self) -> str | None:
        """Why the devices differ, in one sentence: a change or question that reproduces every answer of both, if there
        is one. None if no difference was found."""
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
                    return f"they differ by {whole[0].change}: with it the {word} model gives {answers}"
                several = " or ".join(change.change for change in whole)
                return f"they differ by {several}: with any of these changes the {word} model gives {answers}"
        every = [one for one in self.found if one.complete and len(one.differences) == count]
        reasons = [one for one in every if one.about_one_model]
        if len(reasons) > 1 and min(one.whole[0].answers for one in reasons) < FEW:
            names = [one.question.id for one in reasons]
            return (
                f"too few answers to say why they differ: each of {len(names)} single causes explains them all "
                f"({', '.join(names)}); ask both more vectors"
            )
        for explained in sorted(every, key=lambda one: not one.about_one_model):
            (left, right), question = explained.whole, explained.question
            about = "" if left.answers >= self.comparison.compared else " that the question is about"
            asked, answers = f"{question.id} ({question.question})", f"{_all(left.answers)}{about}"
            if apart := _parameters_apart(*(question.models[one.hypothesis] for one in explained.whole)):
                return f"{apart}: they agree with {left.hypothesis!r} and {right.hypothesis!r} of {asked} in {answers}"
            return (
                f"they differ in {asked}: the first agrees with {left.hypothesis!r}, the second with "
                f"{right.hypothesis!r}, in {answers}"
            )
        if changes:
            word, change = max(changes, key=lambda pair: pair[1].agree)
            return (
                f"no single change reproduces every answer; the best, {change.change} in the {word} model, reproduces "
                f"the differences below and {change.agree} of {counted(change.answers, 'answer')}"
            )
        return "no single change of a model, and no question of the library, explains the differences below"

    def _reason_apart(self) -> str:
        for explained in self.found:
            (left, right), question = explained.whole, explained.question
            first, second = (question.models[one.hypothesis].reference for one in (left, right))
            return (
                f"they differ in {question.id} ({question.question}): {left.hypothesis!r} ({first}) predicts "
                f"{_all(left.answers)} of the first and not those of the second, {right.hypothesis!r} ({second}) "
                f"{_all(right.answers)} of the second and not those of the first"
            )
        return "no question of the library has hypotheses that predict every answer of one and not of the other"

    def questions(self, index: int) -> list[Explanation]:
        """The questions that explain a difference and contradict no other answer."""
        return [one for one in self.found if one.complete and index in one.differences]

    # -- text

    def show(self) -> None:
        """Print the comparison and its explanations."""
        assert self.pair is not None
        left, right = self.pair.sides
        if reason := self.reason():
            say(reason)
        say(f"  first:  {left.name}")
        say(f"  second: {right.name}")
        for index in range(len(self.comparison.differences)):
            self._show_difference(index)
        self._show_common()
        for one in self.comparison.contradictions[:SHOWN]:
            self._show_contradiction(one)
        if len(self.comparison.contradictions) > SHOWN:
            say(f"  and {len(self.comparison.contradictions) - SHOWN} more contradictions")
        self._show_counts()

    def _show_difference(self, index: int) -> None:
        difference = self.comparison.differences[index]
        pair, parts = difference.pair, difference.operands
        before, after = (_terms(one) for one in (pair.layout.split(difference.first), parts))
        how = (
            f"minimised from {counted(before, 'nonzero term')}"
            if difference.first != difference.row
            else counted(after, "term")
        )
        how = "as recorded (a recording cannot be minimised)" if any(side.closed for side in pair.sides) else how
        say()
        say(f"difference {index + 1}: {how}")
        show_operands(pair.left.model, parts)
        for word, side, d in zip(("first", "second"), pair.sides, (difference.left, difference.right), strict=True):
            say(f"  {word:>6} gives {result_text(d, side.model.d)}")
        if difference.exercises:
            say(f"  exercises: {', '.join(difference.exercises)}")
        if difference.instruction is None:
            lengths = " and ".join(str(side.model.length) for side in pair.sides)
            say(f"  needs a chain of instructions, in tiles of {lengths} products")
        for which in (0, 1):
            self._show_changes(index, which)
        if questions := self.questions(index):
            say(f"  questions that distinguish these results: {', '.join(one.question.id for one in questions)}")

    def _show_changes(self, index: int, side: int) -> None:
        """Print the neighbours of one model that explain a difference: those that explain every other one too, with
        their first divergence, then the rest by name."""
        from mmaprobe.reports.words import change_text

        near = {one.change: one for one in self.changes[index][side]}
        word, other = ("first", "second") if side == 0 else ("second", "first")
        best = [one.change for one in self.common[side]][:SHOWN]
        for change in best:
            where = change_text(near[change].divergence)
            say(f"  {change} in the {word} model gives the {other}'s result; first divergence: {where}")
        rest = [change for change in near if change not in best]
        if rest:
            say(f"  {'also: ' if best else f'in the {word} model, for this difference only: '}{', '.join(rest)}")

    def _show_common(self) -> None:
        count = len(self.comparison.differences)
        if not count:
            return
        say()
        shown = "the difference" if count == 1 else f"all {count} differences"
        for word, side in (("first", 0), ("second", 1)):
            if self.common[side] or any(near[side] for near in self.changes):
                told = ", ".join(f"{one.change} ({one.agree} of {one.answers})" for one in self.common[side])
                start = f"single changes of the {word} model that explain {shown} above (answers reproduced): "
                say(start + (told or "none"))
        complete = [one for one in self.found if one.complete]
        if not complete:
            say("no question of the library has hypotheses that predict every answer of both devices")
        for one in complete[:SHOWN]:
            say(f"{one.question.id} ({len(one.differences)} of {count}): {one.question.question}")
            for word, supports in (("first", one.left), ("second", one.right)):
                told = ", ".join(f"{s.hypothesis!r} ({s.agree} of {s.answers} answers)" for s in supports)
                say(f"  {word:>6} agrees with {told}")
        for word, rest in (
            ("more questions", complete[SHOWN:]),
            ("questions that explain differences, but not every answer", [o for o in self.found if not o.complete]),
        ):
            if rest:
                say(f"{word}: {', '.join(one.question.id for one in rest)}")

    def _show_contradiction(self, one: Contradiction) -> None:
        answers = ", ".join(result_text(d, one.side.model.d) for d in one.answers if d is not None)
        say(f"{one.side.name} contradicts itself: {answers} for one input")
        show_operands(one.side.model, one.operands)

    def _show_counts(self) -> None:
        from mmaprobe.queries.compare.why import software

        comparison = self.comparison
        assert self.pair is not None
        if self.gemm or not comparison.compared:
            return
        what = (
            f"{counted(comparison.compared, 'vector')} answered by both, {comparison.different} with different answers"
        )
        if comparison.differences or comparison.different:
            minimised = sum(one.first != one.row for one in comparison.differences)
            say(what + (f", and {counted(minimised, 'minimised vector')}" if minimised else ""))
            return
        say(f"no difference in {counted(comparison.compared, 'vector')} answered by both; this is not a proof")
        if software(self.pair.sides):
            say(f"to prove it: mmaprobe prove {' '.join(side.model.reference for side in self.pair.sides)}")

    # -- JSON

    def document(self, error: MmaprobeError | None) -> documents.Compare:
        """The comparison as a document. `error`: what ended it early."""
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
            questions=[_explanation(one) for one in self.found],
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
            operands=documents.AnyInput(**operands_json(difference.operands, pair.left.model)),
            results={word: to_hex(d, side.model.d) for word, side, d in sides},
            exercises=difference.exercises,
            terms=_terms(difference.operands),
            terms_found=_terms(pair.layout.split(difference.first)),
            neighbours=documents.NeighboursOfSides(first=first, second=second),
            questions=[one.question.id for one in self.questions(index)],
        )


def _terms(operands: Operands[int]) -> int:
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
