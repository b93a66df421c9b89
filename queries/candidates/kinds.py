"""Candidates grouped by normal form: those with one normal form are equal, by the rules that lead to the form."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from mmaprobe.queries.candidates.classes import WHY, Equality
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser, normal_form, rules_of
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.normal import normal


@dataclass(frozen=True)
class Candidate:
    """A model with the proof of its normal form (None: the model is in normal form already). `form`: the formats and
    the normal form; models with equal forms compute the same results."""

    model: Model
    proof: Theorem | None
    form: object


def candidate_of(model: Model, normaliser: Normaliser) -> Candidate:
    """A model with its normal form. Raises OutOfTimeError."""
    unit = model.unit
    proof = normaliser.proof(unit)
    return Candidate(model, proof, (unit.operands, normal(normal_form(unit, proof), normaliser.forms)))


def unique_models(
    models: Sequence[Model], options: Options, deadline: float | None = None
) -> dict[Model, list[Equality]]:
    """The first model of each normal form, with the other models of this form and the reasons why they are equal. After
    the `deadline` (of time.monotonic) only models with the same expression count as equal."""
    normaliser = Normaliser(replace(options, deadline=deadline))
    kinds: dict[object, list[Candidate]] = {}
    for model in models:
        candidate = Candidate(model, None, (model.unit.operands, model.unit.result))
        if deadline is None or time.monotonic() < deadline:
            with suppress(OutOfTimeError):
                candidate = candidate_of(model, normaliser)
        kinds.setdefault(candidate.form, []).append(candidate)
    return {
        first.model: [Equality(twin.model, why_alike(first, twin, normaliser)) for twin in twins]
        for first, *twins in kinds.values()
    }


def why_alike(one: Candidate, other: Candidate, normaliser: Normaliser) -> str:
    """The reason why two models of one normal form are equal: the rules that lead to this form, and the engines that
    proved the rules' lemmas. Equal expressions need no rules."""
    if one.model.unit.result == other.model.unit.result:
        return WHY
    proofs = [candidate.proof for candidate in (one, other) if candidate.proof is not None]
    engines = normaliser.engines(proofs)
    by = f" ({', '.join(engines)})" if engines else ""
    return f"by rewriting: {', '.join(rules_of(proofs))}{by}"
