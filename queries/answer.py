"""A question answered: every pair of its hypotheses, with replayed vectors that state what each predicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hypotheses.schema import Compare, Question
from queries.distinguish import Options, Outcome, Verdict, build_query, distinguish
from queries.problem import Problem
from queries.witness import Witness, confirmed
from smtmodel.batch import evaluate_row
from smtmodel.files import write_whole
from smtmodel.progress import Pieces
from smtmodel.vectors import Vector, to_hex


@dataclass
class PairAnswer:
    """The outcome for two hypotheses. `reused`: an earlier pair's vectors tell these two apart as well."""

    left: str
    right: str
    outcome: Outcome
    reused: bool = False


@dataclass
class Answered:
    """A question and what came of it."""

    question: Question
    pairs: list[PairAnswer]
    vectors: list[Vector]

    @property
    def verdict(self) -> Verdict | Literal["divided"]:
        """That of every pair if they agree; else "unknown" if one is unknown, or "divided"."""
        verdicts = {pair.outcome.verdict for pair in self.pairs}
        if len(verdicts) == 1:
            return verdicts.pop()
        return "unknown" if "unknown" in verdicts else "divided"

    @property
    def exit_code(self) -> int:
        """0 as expected (or told apart, where nothing is expected), 1 otherwise, 3 unknown."""
        if self.verdict == "unknown":
            return 3
        return 0 if self.verdict == (self.question.expect or "different") else 1


def answer(question: Question, options: Options, compare: Compare | None = None, smt2: Path | None = None) -> Answered:
    """Ask about every pair; a vector found for one pair is tried on the later ones first.

    `compare` overrules the question. Raises SolverFaultError.
    """
    answered = Answered(question, [], [])
    pieces = Pieces(options.progress, "pairs")
    options = replace(options, progress=pieces)
    for left, right in pieces.of(question.pairs):
        problem = Problem(question.models[left], question.models[right], question.inputs, compare or question.compare)
        if smt2 is not None:
            path = smt2 if len(question.pairs) == 1 else smt2.with_stem(f"{smt2.stem}-{left}-{right}")
            write_whole(path, build_query(problem).text)
        outcome = _reused(problem, answered) if options.count == 1 else None
        pair = PairAnswer(left, right, outcome or distinguish(problem, options), reused=outcome is not None)
        answered.pairs.append(pair)
        if not pair.reused:
            for witness in pair.outcome.witnesses:
                answered.vectors.append(_vector(question, problem, witness, len(answered.vectors)))
    return answered


def _reused(problem: Problem, answered: Answered) -> Outcome | None:
    for vector in answered.vectors:
        if len(vector.operands.a) != problem.length:
            continue
        witness = confirmed(problem, vector.operands.every)
        if witness is not None:
            return Outcome(problem, "different", [witness])
    return None


def _vector(question: Question, problem: Problem, witness: Witness, number: int) -> Vector:
    """The witness as a vector with the prediction of every hypothesis; the results of the pair are replayed ones."""
    predictions = {}
    for name, model in question.models.items():
        if model.length < len(witness.operands.a):
            continue  # it has no place for these products
        result = evaluate_row(model, witness.operands)
        predictions[name] = to_hex(result, model.d)
    kinds = sorted({kind for side in witness.exercises for kind in side})
    extra: dict[str, Any] = {"question": question.id, "predictions": predictions, "exercises": kinds}
    return Vector(problem.left, witness.operands, id=f"{question.id}-{number}", extra=extra)
