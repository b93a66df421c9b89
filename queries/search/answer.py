"""The answer to a question: for each pair of hypotheses, replayed vectors with the results that each predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mmaprobe.documents.distinguish import PairOfHypotheses, QueryAsked, QuestionAnswered, SolverAnswer
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.documents.parts import Verdict
from mmaprobe.hypotheses.schema import Question
from mmaprobe.queries.kernel.questions.problem import AgainstAll, Problem
from mmaprobe.queries.search.distinguish import Options, PairOutcome, WitnessSearch, build_query, first_free
from mmaprobe.queries.search.witness import Witness, confirmed_witness
from mmaprobe.smtmodel.base.escapes import file_part
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.inputs.admitted import Compare
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex

#: "divided": not all pairs of hypotheses have the same verdict
AnswerVerdict = Verdict | Literal["divided"]


@dataclass
class PairAnswer:
    """The outcome for two hypotheses, or for one hypothesis against all others at once (then `right` names the others).
    `reused`: the witness is a vector that was found for an earlier pair."""

    left: str
    right: str
    outcome: PairOutcome
    reused: bool = False

    @property
    def verdict(self) -> AnswerVerdict:
        """The outcome's verdict. "divided" where no single input distinguishes a hypothesis from all others."""
        nowhere = self.outcome.verdict == "equal" and isinstance(self.outcome.problem, AgainstAll)
        return "divided" if nowhere else self.outcome.verdict

    def document(self) -> PairOfHypotheses:
        outcome = self.outcome
        steps = [
            QueryAsked(
                free_products=step.free,
                nonnegative_only=step.one_sign,
                answers=[
                    SolverAnswer(
                        solver=a.engine, version=a.version, status=a.status, seconds=a.seconds, reason=a.reason
                    )
                    for a in step.answers
                ],
            )
            for step in outcome.steps
        ]
        return PairOfHypotheses(
            left=self.left,
            right=self.right,
            verdict=self.verdict,
            reused_vector=self.reused,
            complete=outcome.complete,
            found_by_simulation=outcome.simulated,
            seconds=round(outcome.seconds, 3),
            asked=steps,
        )


@dataclass
class Answered:
    """A question and its outcome. `interrupted`: the search was interrupted; the pairs after it were not asked about,
    and are unknown."""

    question: Question
    pairs: list[PairAnswer]
    vectors: list[Vector]
    interrupted: bool = False

    @property
    def verdict(self) -> AnswerVerdict:
        """The verdict of every pair if they agree; else "unknown" if one verdict is unknown, else "divided"."""
        verdicts = {pair.verdict for pair in self.pairs}
        if len(verdicts) == 1:
            return verdicts.pop()
        return "unknown" if "unknown" in verdicts else "divided"

    @property
    def exit_code(self) -> int:
        """0 if as expected (or, without an expectation, if distinguished), 1 otherwise, 3 if unknown or interrupted."""
        if self.verdict == "unknown" or self.interrupted:
            return 3
        return 0 if self.verdict == (self.question.expect or "different") else 1

    def document(self) -> QuestionAnswered:
        question = self.question
        return QuestionAnswered(
            id=question.id,
            question=question.question,
            verdict=self.verdict,
            expect=question.expect,
            hypotheses={name: model.reference for name, model in question.models.items()},
            dropped=question.dropped,
            one_vector=question.one_vector,
            observed=question.observed,
            zeros_only=list(question.zeros),
            interrupted=self.interrupted,
            pairs=[pair.document() for pair in self.pairs],
            vectors=[Row.of(vector.to_json()) for vector in self.vectors],
        )


def problems(question: Question, compare: Compare | None = None) -> list[tuple[str, str, Problem]]:
    """The problems of a question, each with names for both sides: every pair, or one hypothesis against all others at
    once. `compare` replaces the question's own kind of comparison."""
    models, inputs, compare = question.models, question.inputs, compare or question.compare
    if question.one_vector is None:
        return [(left, right, Problem(models[left], models[right], inputs, compare)) for left, right in question.pairs]
    first, *rest = (right for _, right in question.pairs)
    others = tuple(models[name] for name in rest)
    problem = AgainstAll(models[question.one_vector], models[first], inputs, compare, others)
    return [(question.one_vector, ", ".join((first, *rest)), problem)]


def answer(
    question: Question, options: Options, compare: Compare | None = None, smt2: Path | None = None,
    free: int | None = None,
) -> Answered:  # fmt: skip
    """Answer for every pair; a vector found for one pair is tried first on the later pairs.

    `compare` replaces the question's own kind of comparison. `smt2`: the file to which the query of each pair is
    written; `free`: how many products of this query are variables, the others being zero (None: all). An interrupt ends
    the search, and what was found stays. Raises SolverFaultError.
    """
    answered = Answered(question, [], [])
    pieces = Pieces(options.progress, "pairs")
    options = replace(options, progress=pieces)
    asked = problems(question, compare)
    for left, right, problem in pieces.of(asked):
        if answered.interrupted:
            answered.pairs.append(PairAnswer(left, right, PairOutcome(problem)))
            continue
        if smt2 is not None:
            path = smt2 if len(asked) == 1 else smt2.with_stem(f"{smt2.stem}-{file_part(left)}-{file_part(right)}")
            write_whole(path, build_query(problem, None if free is None else first_free(problem, free)).text)
        outcome = _reused(problem, answered) if options.count == 1 else None
        search = WitnessSearch(problem, options)
        try:
            pair = PairAnswer(left, right, outcome or search.run(), reused=outcome is not None)
        except KeyboardInterrupt:
            pair = PairAnswer(left, right, search.interrupted())
            answered.interrupted = True
        answered.pairs.append(pair)
        if not pair.reused:
            sides = left, question.pairs[0][1] if isinstance(problem, AgainstAll) else right
            for witness in pair.outcome.witnesses:
                answered.vectors.append(_vector(question, problem, sides, witness, len(answered.vectors)))
    return answered


def _reused(problem: Problem, answered: Answered) -> PairOutcome | None:
    for vector in answered.vectors:
        if len(vector.operands.a) != problem.length:
            continue
        witness = confirmed_witness(problem, vector.operands.every)
        if witness is not None:
            return PairOutcome(problem, [witness])
    return None


def _vector(question: Question, problem: Problem, sides: Sequence[str], witness: Witness, number: int) -> Vector:
    """The witness as a vector with the prediction of every hypothesis; the results of the pair are replayed. `sides`:
    the hypotheses of the pair."""
    predictions = {}
    for name, model in question.models.items():
        if model.length < len(witness.operands.a):
            continue  # the hypothesis has fewer products than the witness
        result = evaluate_row(model, witness.operands)
        predictions[name] = to_hex(result, model.d)
    kinds = sorted({kind for side in witness.exercises for kind in side})
    extra: dict[str, Any] = {"question": question.id, "predictions": predictions, "exercises": kinds}
    alone = {
        name: sorted(set(own).difference(other))
        for name, own, other in zip(sides, witness.exercises, reversed(witness.exercises), strict=True)
    }
    if any(alone.values()):
        extra["exercises_alone"] = {name: kinds for name, kinds in alone.items() if kinds}
    return Vector(problem.left, witness.operands, id=f"{question.id}-{number}", extra=extra)
