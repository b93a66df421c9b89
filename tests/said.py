"""Engines that say what a test wants to hear: rules take no function in the place of an engine, so that the module that
asks solvers is changed itself, for questions of a certain name."""

from __future__ import annotations

from functools import cache
from typing import Any

from mmaprobe.queries.kernel import theorem as kernel
from mmaprobe.queries.kernel.lemmas import Lemma, settled
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import Goal, Made, Theorem
from mmaprobe.queries.solvers import asking
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.solvers.contract import Answer, Status, _tell
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.tactics.records import Proof

PREFIX = "what a test says: "
_solve = asking.solve


def planted(query: Query, answer: Answer) -> list[Answer]:
    """The answer, as if an engine had given it: what the product has no name for."""
    return [_tell(query.text, answer)]


def _said(query: Any, solver: str, *rest: Any) -> list[Answer]:
    *_, name, _pool, _processor = rest
    if name.startswith(PREFIX):
        return planted(query, Answer(name.removeprefix(PREFIX), "nobody", "0", 0.0))  # type: ignore[arg-type]
    return _solve(query, solver, *rest)


asking.solve = _said  # type: ignore[assignment]


def says(status: Status) -> Engines:
    """Engines of which one gives this answer to any question."""
    return Engines(name=PREFIX + status)


def believed(goal: Lemma) -> Theorem:
    """The theorem of a lemma that nobody proved; of one about formats and modes the same for all tests, which ask for
    few of these many times."""
    try:
        hash(goal)
    except TypeError:  # it is about a claim
        return settled(goal, says("unsat"))
    return _believed(goal)


@cache
def _believed(goal: Lemma) -> Theorem:
    return settled(goal, says("unsat"))


def assumed(goal: Goal) -> Theorem:
    """Any theorem at all, made by no rule: what the rules make of it is what a test asks."""
    return Theorem(Made(goal), "assumed for a test", kernel._SEAL, {})


def proved(problem: Problem) -> Proof:
    """The proof that the sides of a problem agree, which nobody gave."""
    return Proof(problem, theorem=assumed(SidesAgree(problem)))
