"""Certificates that two plans are equal, or that they differ on an input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from queries.certificates.certificate import Certificate, CertificateError, write_certificate
from queries.certificates.names import LEFT_PLAN, PLANS, RIGHT_PLAN, WITNESS
from queries.certificates.reading import file_text
from queries.kernel.problem import free_values
from queries.plans.equal import PlanProof
from queries.properties.asked import SCHEMA, read_unit
from queries.properties.certify import certify_joined
from queries.search.distinguish import Options
from smtmodel.dot import Model
from smtmodel.errors import ParameterError
from smtmodel.plans import Plan
from smtmodel.plans.planfile import parse_plan
from smtmodel.plans.plantext import plan_text
from smtmodel.unitfile import unit_text


def certify_plans(proof: PlanProof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of a proof that two plans are equal, and of the proofs by solvers that it rests on, into
    `directory`. Raises CertificateError (with the reason) if there is none, and OutOfTimeError."""
    ground = proof.ground
    if proof.verdict != "equal" or ground is None:
        raise CertificateError("only what is proved has a certificate")
    document = {"schema": SCHEMA, "length": proof.length, "multiples": ground.multiples}
    plans = {LEFT_PLAN: proof.left, RIGHT_PLAN: proof.right}
    texts = {PLANS: json.dumps(document) + "\n"} | plan_texts(plans)
    return certify_joined(proof.proofs, texts, directory, options)


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


def plan_texts(plans: Mapping[str, Plan]) -> dict[str, str]:
    """The texts of the plan files and their unit files, by file name, of plans by file name. Raises CertificateError if
    a plan cannot be written as a file."""
    units: dict[str, str] = {}  # file names by text
    found: dict[str, str] = {}
    for name, plan in plans.items():
        files = {model.reference: units.setdefault(unit_text(model.unit), f"unit-{len(units) + 1}.yaml")
                 for model in plan.models}  # fmt: skip
        if len(files) < len(plan.models):
            raise CertificateError(f"two units of {plan.reference} have one name")
        try:
            data = yaml.safe_load(plan_text(plan))
        except ParameterError as error:
            raise CertificateError(f"{plan.reference} cannot be written as a file: {error}") from None
        data["units"] = {unit: files[reference] for unit, reference in data["units"].items()}
        found[name] = yaml.safe_dump(data, sort_keys=False)
    return found | {file: text for text, file in units.items()}


def read_plan(folder: Path, name: str) -> Plan:
    """Read a plan from the folder of a certificate, with its units from the same folder. Raises MmaprobeError if a file
    is malformed, and OSError if one cannot be read."""

    def model_of(file: str) -> Model:
        if file != Path(file).name:
            raise ParameterError("units", f"{file!r} is not in the folder")
        return Model(file, read_unit(folder / file))

    return parse_plan(file_text(folder / name), name, model_of)
