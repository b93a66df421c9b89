"""Certificates of theorems: the log of the rules that made the theorems, and every query that a rule asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmaprobe.queries.certificates.asked import RequiredGoals, bound_words, required_goals
from mmaprobe.queries.certificates.certificate import Certificate, Leaf, write_certificate
from mmaprobe.queries.certificates.names import LOG, TERMS
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.certificates.whole import WholeProof
from mmaprobe.queries.kernel.log import Replay, Writer
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.asking import AnsweredQuery, Engines, Heard


def certify_theorems(
    roots: Sequence[Theorem],
    about: RequiredGoals,
    texts: Mapping[str, str],
    directory: Path,
    options: Options,
    wholes: Mapping[Theorem, WholeProof] | None = None,
) -> list[Certificate]:
    """Write the certificate of theorems, and check its proofs. `texts`: the texts of the files with the statement, by
    name; `wholes`: for some theorems that two sides agree, the formula and proof of the whole question, on which the
    certificate then rests instead of on the theorem's lemmas. Raises CertificateError if a proof fails, or if the
    theorems cannot be made again from the files."""
    wholes = wholes or {}
    try:
        writer = Writer(about.subject, {theorem: whole.maximum for theorem, whole in wholes.items()})
        document = writer.stating(roots)
    except RuleError as error:
        raise CertificateError(f"what was proved cannot be written: {error}") from None
    answered = {one.query.text: (theorem.goal.statement(), one) for theorem in writer.places
                if theorem not in wholes and (one := theorem.answered_query) is not None}  # fmt: skip
    leaves = [Leaf(states, one.query, tuple(map(str, one.answers))) for states, one in answered.values()]
    leaves += [Leaf(theorem.goal.statement(), whole.query, whole=whole) for theorem, whole in wholes.items()]
    if not about.goals:
        document["says"] = _statements(document, texts, [one for _, one in answered.values()])
    files = dict(texts) | {LOG: json.dumps(document, separators=(",", ":")) + "\n"}
    if writer.terms:
        files[TERMS] = writer.terms_text
    return write_certificate(directory, options, files, leaves)


def _statements(document: dict[str, Any], texts: Mapping[str, str], answered: Sequence[AnsweredQuery]) -> list[str]:
    """The statements, in words, of the theorems of a log, which are made again from the files. Raises
    CertificateError."""
    try:
        again = required_goals(dict(texts) | {LOG: json.dumps(document)})
        theorems = Replay(document, again.subject, Engines(heard=Heard.of(answered), asks=False)).run()
    except RuleError as error:
        raise CertificateError(f"a file does not give back what was proved: {error}") from None
    return [bound_words(theorem.goal) for theorem in theorems]
