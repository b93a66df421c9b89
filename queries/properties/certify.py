"""Certificates that two models agree, or that one model has a property; and of inputs that refute it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mmaprobe.queries.certificates.asked import of_problem, of_property
from mmaprobe.queries.certificates.certificate import Certificate, write_certificate
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.questions import property_texts, question_texts, witness_texts
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.equality.certify import wholes_of
from mmaprobe.queries.kernel.properties.together import HasProperty
from mmaprobe.queries.properties.proving import established_theorem, verdict_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof


def certify_proofs(wanted: str, proofs: Sequence[Proof], directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of what proofs establish: that two models agree, that one has a property, or that an input
    refutes it. Raises CertificateError (with the reason) if there is none, and OutOfTimeError."""
    if verdict_of(proofs) == "different":
        return certify_refuted(wanted, proofs[-1], directory, options)
    if wanted == "equal":
        (proof,) = proofs
        return certify_sides(proof, directory, options)
    theorem = established_theorem(wanted, proofs)
    goal = theorem.goal
    assert isinstance(goal, HasProperty)
    lengths = [proof.problem.left.length for proof in proofs]
    texts = property_texts(wanted, goal.model, goal.inputs, goal.compare, lengths)
    about = of_property(wanted, goal.model, goal.inputs, goal.compare)
    wholes, rest = wholes_of([theorem], proofs, options)
    return certify_theorems([theorem], about, texts, directory, rest, wholes)


def certify_refuted(wanted: str, proof: Proof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate that two models differ, or that a model does not have a property: an input, which the
    checker evaluates again. Raises CertificateError without an input, and ParameterError for a unit that no file
    states."""
    if proof.witness is None:
        raise CertificateError("no input was found")
    texts = witness_texts(proof.problem, proof.witness.operands, wanted)
    return write_certificate(directory, options, texts)


def certify_sides(proof: Proof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate that two sides agree. Raises the errors of `certify_proofs`."""
    if proof.verdict != "equal" or proof.theorem is None:
        raise CertificateError()
    wholes, rest = wholes_of([proof.theorem], [proof], options)
    texts = question_texts(proof.problem)
    return certify_theorems([proof.theorem], of_problem(proof.problem), texts, directory, rest, wholes)
