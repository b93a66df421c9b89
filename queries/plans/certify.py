"""Certificates that two plans are equal, or that they differ on an input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from queries.certificates.asked import of_plans
from queries.certificates.certificate import Certificate, CertificateError, write_certificate
from queries.certificates.logged import certify_theorems
from queries.certificates.names import LEFT_PLAN, PLANS, RIGHT_PLAN, WITNESS
from queries.certificates.plan_files import plan_texts
from queries.certificates.questions import SCHEMA
from queries.equality.certify import wholes_of
from queries.kernel.plans import PlansAgree
from queries.kernel.problem import Problem, free_values
from queries.kernel.same import SidesAgree
from queries.kernel.theorem import Theorem
from queries.plans.equal import PlanProof
from queries.search.distinguish import Options
from smtmodel.dot import Model
from smtmodel.unit import Unit
from smtmodel.unitfile import unit_text


def certify_plans(proof: PlanProof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of a proof that two plans are equal. Raises CertificateError (with the reason) if there is
    none, and OutOfTimeError."""
    theorem = proof.theorem
    if proof.verdict != "equal" or theorem is None:
        raise CertificateError("only what is proved has a certificate")
    goal = theorem.goal
    assert isinstance(goal, PlansAgree)
    texts = plan_texts({LEFT_PLAN: goal.left, RIGHT_PLAN: goal.right})
    models = list(_models(theorem))
    names = {text: name for name, text in texts.items()}
    for model in models:
        text = unit_text(model.unit)
        texts[names.setdefault(text, f"unit-{len(names) + 1}.yaml")] = text
    units = [names[unit_text(model.unit)] for model in models]
    document = {"schema": SCHEMA, "length": goal.length, "multiples": goal.multiples, "units": units}
    texts |= {PLANS: json.dumps(document) + "\n"}
    wholes, rest = wholes_of(proof.proofs, options)
    about = of_plans(goal.left, goal.right, goal.multiples, goal.length, models)
    return [(directory, certify_theorems([theorem], about, texts, directory, rest, wholes))]


def _models(theorem: Theorem) -> Iterator[Model]:
    """The units that a theorem about plans speaks of, beside those of the plans: such as a plan is at one K, or its
    step."""
    values = [value for one in theorem.walk() for value in one.arguments.values()]
    values += [one.goal.problem for one in theorem.walk() if isinstance(one.goal, SidesAgree)]
    problems = [side for value in values if isinstance(value, Problem) for side in value.models]
    alone = [Model("unit", value) for value in values if isinstance(value, Unit)]
    yield from dict.fromkeys([*problems, *alone])


def certify_difference(proof: PlanProof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate that two plans differ: an input, which the checker evaluates again. Raises CertificateError
    without one, or if a plan cannot be written as a file."""
    problem, witness = proof.problem, proof.witness
    if problem is None or witness is None:
        raise CertificateError("no input was found")
    values = free_values(problem.layout, (), witness.operands.every)
    length = problem.left.length
    document = {"schema": SCHEMA, "property": "equal", "length": length, "places": problem.places, "values": values}
    texts = {WITNESS: json.dumps(document) + "\n"} | plan_texts({LEFT_PLAN: proof.left, RIGHT_PLAN: proof.right})
    return [(directory, write_certificate(directory, options, texts))]
