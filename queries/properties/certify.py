"""Certificates that two models agree, or that one model has a property."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from queries.certificates.certificate import Certificate, CertificateError, OutOfTimeError, write_certificate
from queries.certificates.magnitudes import FaultError
from queries.certificates.together import one_unit, without_carry_bits
from queries.equality.certify import certify
from queries.equality.staged import prove
from queries.proof.kernel import RuleError
from queries.proof.records import Proof
from queries.proof.settling import Settled
from queries.proof.written import Written
from queries.properties.asked import plain, property_texts, question_texts
from queries.properties.bound import bound_of
from queries.properties.bound_certificate import certify_theorems
from queries.properties.proving import established
from queries.properties.together import HasProperty
from queries.search.distinguish import Options
from queries.search.problem import Problem


def certify_proofs(wanted: str, proofs: Sequence[Proof], directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of what proofs establish. That two models agree: in the folder itself. A property: the
    folder states the property, and its parts are the certificates of the proofs. Raises CertificateError (with the
    reason) if there is none, and OutOfTimeError."""
    if wanted == "equal":
        (proof,) = proofs
        return [(directory, certify_sides(proof, directory, options))]
    if not proofs:
        raise CertificateError("no step of the unit adds two products: there is nothing to compare")
    goal = established(wanted, proofs).goal
    assert isinstance(goal, HasProperty)
    texts = property_texts(wanted, goal.model.unit, goal.inputs, goal.compare)
    return certify_joined(proofs, goal.statement(), texts, "property.md", directory, options)


def certify_joined(
    proofs: Sequence[Proof], statement: str, texts: dict[str, str], guide: str, directory: Path, options: Options
) -> list[Certificate]:
    """Write the certificate of a statement that follows from several proofs; the certificate of each proof is written
    first, in a folder of its own. Raises as `certify_proofs`."""
    folders = [directory / f"proof-{number}" for number in range(1, len(proofs) + 1)]
    found = [(folder, certify_sides(proof, folder, options)) for folder, proof in zip(folders, proofs, strict=True)]
    names = [folder.name for folder in folders]
    manifest = write_certificate(directory, statement, options, texts, guide, parts=names)
    return [*found, (directory, manifest)]


def certify_sides(proof: Proof, directory: Path, options: Options) -> dict[str, Any]:
    """Write the certificate that two sides agree, in the form for the rule that proved it. Raises as
    `certify_proofs`."""
    theorem, problem = proof.theorem, proof.problem
    if proof.verdict != "equal" or theorem is None:
        raise CertificateError("only what is proved has a certificate")
    question, texts = theorem.goal.statement(), question_texts(problem)
    if theorem.rule == "agreed":
        return certify(proof, texts, directory, options)
    if theorem.rule in ("negates", "does_not_fall"):
        return certify_theorems(theorem.premises, problem.left.unit, question, directory, options, texts)
    if theorem.rule in ("one_expression", "one_sum"):
        return write_certificate(directory, question, options, texts, "one.md")
    if theorem.rule == "one_form":
        with suppress(RuleError):
            return _but_for_carry_bits(problem, question, texts, directory, options)
    with suppress(OutOfTimeError):  # no certificate is written for the other rules: the whole question is proved again
        again = prove(problem, options, confirm=True)
        if again.verdict == "equal":
            return certify(again, texts, directory, options)
    raise CertificateError(f"proved by the rule {theorem.rule}, and the whole question stays open")


def _but_for_carry_bits(
    problem: Problem, question: str, texts: dict[str, str], directory: Path, options: Options
) -> dict[str, Any]:
    """Write the certificate that two models are the same except for carry bits that no sum needs; the error bound of
    each shows this, as a part of the certificate. Raises RuleError if the models differ otherwise, and as
    `certify_proofs`."""
    settle, models = Settled(options, needed=False), (problem.left, problem.right)
    bounds = [bound_of(model.unit, settle) for model in models]
    trees = [Written(model.unit).stating([bound], {}) for model, bound in zip(models, bounds, strict=True)]
    try:
        one, other = (without_carry_bits(plain(model.unit), tree) for model, tree in zip(models, trees, strict=True))
    except FaultError as fault:
        raise RuleError(str(fault)) from None
    if not one_unit(one, other):
        raise RuleError("they differ in more than carry bits")
    parts = ["bound-1", "bound-2"]
    for part, model, bound in zip(parts, models, bounds, strict=True):
        certify_theorems([bound], model.unit, f"No sum of {model.reference} wraps", directory / part, options)
    return write_certificate(directory, question, options, texts, "carry.md", parts=parts)
