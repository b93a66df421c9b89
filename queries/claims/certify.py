"""What was proved of a claim, as certificates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from hypotheses.claim import Claim
from hypotheses.claim_file import Statement
from hypotheses.unit_claims import BoundClaim, OverflowClaim, PropertyClaim
from queries.certificates.certificate import CertificateError, write_certificate
from queries.certificates.names import CLAIM, ROWS, WITNESS
from queries.certificates.statement import is_of_file, with_references
from queries.claims.outcome import Outcome
from queries.equality.certify import chain_texts
from queries.kernel.facts import Fact
from queries.kernel.lemmas import query_of
from queries.kernel.problem import free_values
from queries.kernel.shares import compares, share_claim, units
from queries.kernel.theorem import Theorem
from queries.kernel.undecided import ByFirstWords, ConditionsReadNumbers, NoInputDecides
from queries.properties.asked import SCHEMA
from queries.properties.bound_certificate import certify_theorems
from queries.properties.certify import certify_proofs, certify_refuted
from queries.search.distinguish import Options
from queries.tactics.records import Chain, Lemma
from queries.tactics.written_rows import row_document
from smtmodel.reference import is_plan, parse_reference
from smtmodel.unitfile import unit_text
from smtmodel.yamlfile import read_file


def certify_claim(outcome: Outcome, directory: Path, options: Options) -> list[tuple[Path, dict[str, Any]]]:
    """Write the certificate of what was proved; of several proofs, each in a folder of its own. Raises
    CertificateError."""
    claim = outcome.claim
    if isinstance(claim, Claim) and outcome.row is not None:
        values = free_values(claim.layout, {claim.terms} if claim.zero_addend else (), outcome.row)
        texts = _claim_texts(claim) | {WITNESS: json.dumps({"schema": SCHEMA, "values": values}) + "\n"}
        return [(directory, write_certificate(directory, options, texts))]
    if isinstance(claim, PropertyClaim):
        if outcome.refuting is not None:
            return certify_refuted(claim.wanted, outcome.refuting, directory, options)
        return certify_proofs(claim.wanted, outcome.proofs, directory, options)
    if isinstance(claim, BoundClaim) and outcome.theorem is not None:
        manifest = certify_theorems([outcome.theorem], claim.model.unit, directory, options)
        return [(directory, manifest)]
    if isinstance(claim, Claim) and outcome.theorem is not None and outcome.theorem.rule == compares.__name__:
        used = {one.model.unit for value in share_claim(claim.assertion).values for one in units(value)}
        if len(used) != 1:
            raise CertificateError("a certificate is about one unit, and the claim about several")
        (unit,) = used
        texts = _claim_texts(claim)
        return [(directory, certify_theorems(outcome.theorem.premises, unit, directory, options, texts))]
    if isinstance(claim, OverflowClaim) and outcome.theorem is not None:
        texts = _claim_texts(claim) | {ROWS: json.dumps(row_document(outcome.theorem)) + "\n"}
        manifest = write_certificate(directory, options, texts)
        return [(directory, manifest)]
    if outcome.theorem is None or outcome.chain is None:
        raise CertificateError("only what is proved by lemmas has a certificate")
    leaves = [lemma.leaf for lemma in outcome.lemmas]
    texts = _claim_texts(claim) | _texts(outcome.theorem, outcome.chain, outcome.lemmas)
    manifest = write_certificate(directory, options, texts, leaves)
    return [(directory, manifest)]


def _texts(theorem: Theorem, chain: Chain, lemmas: Sequence[Lemma]) -> dict[str, str]:
    """The facts by which no input decides a claim."""
    assert isinstance(theorem.goal, NoInputDecides)
    facts = [one.goal.term for one in theorem.premises if isinstance(one.goal, Fact)]
    names = {lemma.query.text: f"lemma-{place:02d}" for place, lemma in enumerate(lemmas, 1)}
    whole = {one.goal.part: [names[query_of(lemma.goal).text] for lemma in one.premises]  # type: ignore[arg-type]
             for one in theorem.premises if isinstance(one.goal, ByFirstWords)}  # fmt: skip
    more: dict[str, Any] = {"whole": whole}
    for one in theorem.premises:
        if isinstance(one.goal, ConditionsReadNumbers):
            more["conditions"] = names[query_of(one.goal).text]
    before = len(lemmas) - 1 - max(step.lemma for step in chain.steps)
    return chain_texts(chain, facts, before, more)


def _claim_texts(claim: Statement) -> dict[str, str]:
    """The file of this case alone, and those of the units that it names by their paths, by file name."""
    data = {key: value for key, value in claim.file.data.items() if key != "cases"}
    found: dict[str, str] = {}

    def held(reference: str) -> str:
        """The reference of a unit in the folder of a certificate."""
        if not is_of_file(reference):
            return reference
        text = unit_text(parse_reference(reference).unit) if is_plan(reference) else read_file(Path(reference))
        return f"./{found.setdefault(text, f'unit-{len(found) + 1}.yaml')}"

    data = with_references(data, held)
    return {CLAIM: yaml.safe_dump(data, sort_keys=False)} | {name: text for text, name in found.items()}
