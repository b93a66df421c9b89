"""Certificates that two plans are equal, or that they differ on an input."""

from __future__ import annotations

import json
from pathlib import Path

from queries.certificates.certificate import Certificate, CertificateError, write_certificate
from queries.certificates.names import LEFT_PLAN, PLANS, RIGHT_PLAN, WITNESS
from queries.certificates.plan_files import plan_texts
from queries.certificates.questions import SCHEMA
from queries.kernel.problem import free_values
from queries.plans.equal import PlanProof
from queries.properties.certify import certify_joined
from queries.search.distinguish import Options


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
