"""Certificates of what is proved of two models, or of a property of one."""

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
    """Write the certificate of what proofs give: of two models in the folder itself; of a property, the folder says
    what it is, and has the proofs as its parts. Raises CertificateError (which says why there is none), OutOfTimeError.
    """
    if wanted == "equal":
        (proof,) = proofs
        return [(directory, certify_sides(proof, directory, options))]
    goal = established(wanted, proofs).goal
    assert isinstance(goal, HasProperty)
    texts = property_texts(wanted, goal.model.unit, goal.inputs, goal.compare)
    return certify_joined(proofs, goal.statement(), texts, "property.md", directory, options)


def certify_joined(
    proofs: Sequence[Proof], statement: str, texts: dict[str, str], guide: str, directory: Path, options: Options
) -> list[Certificate]:
    """Write the certificate of a statement that proofs give together, each in a folder of its own, before it. Raises as
    `certify_proofs`."""
    folders = [directory / f"proof-{number}" for number in range(1, len(proofs) + 1)]
    found = [(folder, certify_sides(proof, folder, options)) for folder, proof in zip(folders, proofs, strict=True)]
    names = [folder.name for folder in folders]
    manifest = write_certificate(directory, statement, options, texts, guide, parts=names)
    return [*found, (directory, manifest)]


def certify_sides(proof: Proof, directory: Path, options: Options) -> dict[str, Any]:
    """Write the certificate that two sides agree, by what they were proved by. Raises as `certify_proofs`."""
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
    with suppress(OutOfTimeError):  # by rules of which no tree is written: the whole question, if a proof is found
        again = prove(problem, options, confirm=True)
        if again.verdict == "equal":
            return certify(again, texts, directory, options)
    raise CertificateError(f"proved by the rule {theorem.rule}, and the whole question stays open")


def _but_for_carry_bits(
    problem: Problem, question: str, texts: dict[str, str], directory: Path, options: Options
) -> dict[str, Any]:
    """Write the certificate that two models are one but for carry bits that no sum needs, which the error bound of each
    shows, as a part. Raises RuleError where that is not so, and as `certify_proofs`."""
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
