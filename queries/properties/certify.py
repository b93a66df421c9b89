"""Certificates that two models agree, or that one model has a property."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from queries.certificates.certificate import Certificate, CertificateError, OutOfTimeError, write_certificate
from queries.certificates.names import FORMS
from queries.certificates.together import one_unit, rewritten_unit
from queries.equality.certify import certify
from queries.equality.staged import prove
from queries.kernel.expressions import units_of
from queries.kernel.problem import Problem
from queries.kernel.rewriting import SameResults
from queries.kernel.theorem import RuleError, Theorem
from queries.kernel.together import HasProperty
from queries.properties.asked import plain, property_texts, question_texts, witness_texts
from queries.properties.bound_certificate import certify_theorems
from queries.properties.proving import established
from queries.search.distinguish import Options
from queries.tactics.records import Proof
from queries.tactics.written import Written
from smtmodel.unit import Unit


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
    lengths = [proof.problem.left.length for proof in proofs]
    texts = property_texts(wanted, goal.model, goal.inputs, goal.compare, lengths)
    return certify_joined(proofs, texts, directory, options)


def certify_refuted(wanted: str, proof: Proof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate that two models differ, or that a model does not have a property: an input, which the
    checker evaluates again. Raises CertificateError without one, and ParameterError for a unit that no file states."""
    if proof.witness is None:
        raise CertificateError("no input was found")
    texts = witness_texts(proof.problem, proof.witness.operands, wanted)
    return [(directory, write_certificate(directory, options, texts))]


def certify_joined(
    proofs: Sequence[Proof], texts: dict[str, str], directory: Path, options: Options
) -> list[Certificate]:
    """Write the certificate of a statement that follows from several proofs; the certificate of each proof is written
    first, in a folder of its own. Raises as `certify_proofs`."""
    folders = [directory / f"proof-{number}" for number in range(1, len(proofs) + 1)]
    found = [(folder, certify_sides(proof, folder, options)) for folder, proof in zip(folders, proofs, strict=True)]
    names = [folder.name for folder in folders]
    manifest = write_certificate(directory, options, texts, parts=names)
    return [*found, (directory, manifest)]


def certify_sides(proof: Proof, directory: Path, options: Options) -> dict[str, Any]:
    """Write the certificate that two sides agree, in the form for the rule that proved it. Raises as
    `certify_proofs`."""
    theorem, problem = proof.theorem, proof.problem
    if proof.verdict != "equal" or theorem is None:
        raise CertificateError("only what is proved has a certificate")
    texts = question_texts(problem)
    if theorem.rule == "agreed":
        return certify(proof, texts, directory, options)
    if theorem.rule in ("negates", "does_not_fall"):
        return certify_theorems(theorem.premises, problem.left.unit, directory, options, texts)
    if theorem.rule in ("one_expression", "one_sum"):
        return write_certificate(directory, options, texts)
    if theorem.rule == "one_form":
        with suppress(RuleError):
            return _one_form(problem, theorem.premises, texts, directory, options)
    with suppress(OutOfTimeError):  # no certificate is written for the other rules: the whole question is proved again
        again = prove(problem, options, confirm=True)
        if again.verdict == "equal":
            return certify(again, texts, directory, options)
    raise CertificateError(f"proved by the rule {theorem.rule}, and the whole question stays open")


def _one_form(
    problem: Problem, forms: Sequence[Theorem], texts: dict[str, str], directory: Path, options: Options
) -> dict[str, Any]:
    """Write the certificate that two models are one expression once they are rewritten; the theorems of what each is
    rewritten to are parts of it. Raises RuleError if the checker cannot compare them, and as `certify_proofs`."""
    units = units_of(problem, "one_form")
    found = list(map(plain, units))
    parts: dict[str, tuple[Theorem, Unit]] = {}
    for k, (name, unit) in enumerate(zip(FORMS, units, strict=True)):
        for theorem in forms:
            if isinstance(theorem.goal, SameResults) and theorem.goal.unit == unit:
                parts[name] = theorem, unit
                found[k] = rewritten_unit(Written(unit).stating([theorem], {}))
    if not one_unit(found[0], found[1]):
        raise RuleError("the checker does not see that they are one")
    for name, (theorem, unit) in parts.items():
        certify_theorems([theorem], unit, directory / name, options)
    return write_certificate(directory, options, texts, parts=list(parts))
