"""Two models are equal by their expressions: they are one, or have one normal form."""

from __future__ import annotations

import time

from queries.equality.lemmas import Proof
from queries.proof.normalising import Normaliser, normal_form, rules_of
from queries.search.distinguish import Options
from queries.search.problem import Problem
from smtmodel.unit import Unit

SAME = "the expressions are one"


def is_one_expression(problem: Problem) -> bool:
    """Whether both models are one expression over the same operands, and are given the same input."""
    units = _units(problem)
    return units is not None and units[0].result == units[1].result


def by_rewriting(problem: Problem, options: Options) -> Proof | None:
    """The proof that both models have one normal form; None if they have not, or a lemma stayed open. An interrupt is
    raised."""
    units, start = _units(problem), time.monotonic()
    if units is None:
        return None
    normaliser = Normaliser(options)
    proofs = [normaliser.proof(unit) for unit in units]
    if normal_form(units[0], proofs[0]) != normal_form(units[1], proofs[1]):
        return None
    found = [proof for proof in proofs if proof is not None]
    engines = normaliser.engines(found)
    by = f", with lemmas by {', '.join(engines)}" if engines else ""
    why = f"one normal form by rewriting: {', '.join(rules_of(found))}{by}"
    return Proof(problem, "equal", seconds=time.monotonic() - start, why=why)


def _units(problem: Problem) -> tuple[Unit, Unit] | None:
    """Both units, NaNs of every pattern as one where one of them names none; None where operands differ, or the sides
    are given other inputs."""
    if type(problem) is not Problem:
        return None
    left, right = problem.left, problem.right
    if left.nan is None or right.nan is None:
        left, right = left.any_nan, right.any_nan
    one, other = left.unit, right.unit
    return (one, other) if one.operands == other.operands else None
