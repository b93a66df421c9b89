"""Candidates that no vector of a pool tells apart: proved equal, or told apart after all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypotheses.schema import Inputs
from queries.canonical import WHY
from queries.distinguish import Options, symbolic_operands
from queries.problem import Problem, evaluate_on
from queries.prove import prove
from queries.witness import Row, replay
from smtmodel.carriers.terms import TermCarrier
from smtmodel.dot import Model


@dataclass
class Equality:
    """Why a model is equal to the first of its class. `confirmed` by another engine."""

    model: Model
    why: str
    confirmed: list[str] = field(default_factory=list)


@dataclass
class Settled:
    """What became of some models: classes of equals (each with reasons), vectors found, pairs left open."""

    classes: list[list[Equality]] = field(default_factory=list)
    witnesses: list[Row] = field(default_factory=list)
    unknown: list[tuple[Model, Model]] = field(default_factory=list)


def settle(models: Sequence[Model], options: Options, confirm: bool = False, deadline: float | None = None) -> Settled:
    """Prove models equal or find vectors that tell them apart: each is compared with the first of every class.

    NaNs count as one. Models built into the same term need no solver. `options.timeout` is for one pair; after the
    `deadline` (of time.monotonic) nothing more is asked, and what is not settled is open.
    """
    settled = Settled()
    inputs = Inputs()
    for group in _alike(models):
        first, *others = group
        for members in settled.classes:
            problem = Problem(any_nan(members[0].model), any_nan(first), inputs)
            if any(problem_differs(problem, row) for row in settled.witnesses):
                continue
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                settled.unknown.append((members[0].model, first))
                continue
            limit = options.timeout if left is None else min(left, options.timeout or left)
            proof = prove(problem, replace(options, timeout=limit), confirm)
            if proof.verdict == "equal":
                why = f"proved by {', '.join(proof.engines) or 'construction'}"
                members += [Equality(model, why, proof.confirmations) for model in group]
                break
            if proof.witness is not None:
                settled.witnesses.append(proof.witness.operands.every)
            else:
                settled.unknown.append((members[0].model, first))
        else:
            settled.classes.append([Equality(first, ""), *(Equality(model, WHY) for model in others)])
    return settled


def problem_differs(problem: Problem, row: Row) -> bool:
    return bool(replay(problem, [row]).differs[0])


def any_nan(model: Model) -> Model:
    """The model with NaNs of every pattern as one."""
    return model if model.accumulator.nan is None else replace(model, accumulator=replace(model.accumulator, nan=None))


def _alike(models: Sequence[Model]) -> list[list[Model]]:
    """Models by the term that they build on the same inputs."""
    carrier = TermCarrier(maximum="relational")
    operands = symbolic_operands(Problem(models[0], models[0]), carrier)
    groups: dict[object, list[Model]] = {}
    for model in models:
        groups.setdefault(evaluate_on(model, operands).d.node, []).append(model)
    return list(groups.values())
