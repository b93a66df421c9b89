"""Certificates that no input of a unit meets certain cases, and that certain changes of the unit have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mmaprobe.queries.certificates.asked import of_cover
from mmaprobe.queries.certificates.certificate import Certificate
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.names import COVER, UNIT, numbered
from mmaprobe.queries.certificates.questions import document_texts
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.covering.cover import Change, Cover
from mmaprobe.queries.equality.certify import wholes_of
from mmaprobe.queries.kernel.cases.unreachable import Case, Unreachable, implied
from mmaprobe.queries.kernel.terms.same import undiffering
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.properties.proving import proofs_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.units.unitfile import unit_text


def certify_cover(cover: Cover, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of the cases and changes that were proved to be out of reach. `options.timeout`: the most
    seconds for each change that is proved again, and for the whole proofs of all changes together. Raises
    CertificateError if nothing was proved, and OutOfTimeError."""
    if not cover.unreachable and not cover.same:
        why = "conditions that no vector reaches are undecided" if cover.open else "everything is reached"
        raise CertificateError(f"{why}: nothing was proved that a certificate could hold")
    proofs = dict(_proofs(cover, options))
    roots = [_theorem_of_case(cover, case, theorem) for case, theorem in cover.unreachable.items()]
    roots += [proof.theorem for proof in proofs.values() if proof.theorem is not None]
    wholes, _ = wholes_of(roots, list(proofs.values()), options)
    units: dict[str, str] = {}  # file names by the text of the unit
    changes = [{"change": change.name, "unit": numbered(units, unit_text(change.model.unit))} for change in proofs]
    cases = [list(map(str, case)) for case in cover.unreachable]
    texts = {file: text for text, file in units.items()} | {UNIT: unit_text(cover.model.unit)}
    texts |= document_texts(COVER, {"cases": cases, "changes": changes})
    about = of_cover(cover.model, cases, [change.model for change in proofs])
    return certify_theorems(roots, about, texts, directory, replace(options, timeout=None), wholes)


def _proofs(cover: Cover, options: Options) -> Iterator[tuple[Change, Proof]]:
    """The proof of each change that a theorem proves. A change that an engine decided by one query is proved again by
    stages or rules, and left out if that fails."""
    for change, proof in cover.same.items():
        theorem = proof.theorem
        if theorem is not None and theorem.rule == undiffering.__name__:
            (again,) = proofs_of([proof.problem], options, confirm=True)
            theorem, proof = again.theorem, again
        if theorem is not None:
            yield change, proof


def _theorem_of_case(cover: Cover, case: Case, theorem: Theorem) -> Theorem:
    """The theorem about one case, from a theorem about this and other cases."""
    goal = Unreachable(cover.model, (case,))
    return theorem if theorem.goal == goal else implied(goal, theorem)
