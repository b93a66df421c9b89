"""Engines that say what a test wants to hear: rules take no function in the place of an engine, so that the module that
asks solvers is changed itself, for questions of a certain name."""

from __future__ import annotations

from typing import Any

from queries.kernel import theorem as kernel
from queries.kernel.lemmas import Lemma, settled
from queries.kernel.theorem import Goal, Theorem
from queries.solvers import asking
from queries.solvers.asking import Engines
from queries.solvers.contract import Answer, Status

PREFIX = "what a test says: "
_solve = asking.solve


def _said(query: Any, solver: str, *rest: Any) -> list[Answer]:
    *_, name, _pool = rest
    if name.startswith(PREFIX):
        return [Answer(name.removeprefix(PREFIX), "nobody", "0", 0.0)]  # type: ignore[arg-type]
    return _solve(query, solver, *rest)


asking.solve = _said  # type: ignore[assignment]


def says(status: Status) -> Engines:
    """Engines of which one gives this answer to any question."""
    return Engines(name=PREFIX + status)


def believed(goal: Lemma) -> Theorem:
    """The theorem of a lemma that nobody proved."""
    return settled(goal, says("unsat"))


def assumed(goal: Goal) -> Theorem:
    """Any theorem at all, made by no rule: what the rules make of it is what a test asks."""
    return Theorem(goal, "assumed for a test", (), "", kernel._SEAL)
