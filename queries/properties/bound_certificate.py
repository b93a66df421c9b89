"""Certificates of theorems about a unit: the tree of the theorems, and every lemma about the datapath as a query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from queries.certificates.certificate import CertificateError, Leaf, write_certificate
from queries.certificates.names import TREE, UNIT, WITNESS
from queries.kernel.lemmas import Lemma, query_of, words_of
from queries.kernel.problem import free_values
from queries.kernel.theorem import Theorem
from queries.properties.asked import SCHEMA, plain
from queries.properties.bound_report import BoundResult
from queries.search.distinguish import Options
from queries.tactics.written import Written
from smtmodel.operands import layout_of
from smtmodel.unit import Unit
from smtmodel.unitfile import parse_unit, unit_text


def certify_bound(result: BoundResult, directory: Path, options: Options) -> dict[str, Any]:
    """Write the certificate of a bound, check its proofs, and return its manifest. Raises CertificateError if nothing
    is proved or a proof fails."""
    if result.shown is None:
        raise CertificateError("only what is proved has a certificate")
    roots = [theorem for theorem in (result.shown, result.any) if theorem is not None]
    return certify_theorems(roots, result.model.unit, directory, options)


def certify_wrap(result: BoundResult, directory: Path, options: Options) -> dict[str, Any]:
    """Write the certificate that no bound holds, as a sum wraps: the input, which the checker evaluates again. Raises
    CertificateError without one, and ParameterError for a unit that no file states."""
    if result.near is None:
        raise CertificateError("no input was found")
    layout = layout_of(result.model)
    width = len(layout.names)
    rows = [free_values(layout, (), result.near.row[at : at + width]) for at in range(0, len(result.near.row), width)]
    document = {"schema": SCHEMA, "property": "error-bound", "length": result.length, "rows": rows}
    texts = {WITNESS: json.dumps(document) + "\n", UNIT: unit_text(result.model.unit)}
    return write_certificate(directory, options, texts)


def certify_theorems(
    roots: Sequence[Theorem],
    unit: Unit,
    directory: Path,
    options: Options,
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write the certificate of theorems about one unit, check its proofs, and return its manifest. `texts`: the texts
    of further files, by file name. Raises CertificateError if a proof fails, or if a unit file would number the loops
    of the unit in another way."""
    text = unit_text(unit)
    if plain(parse_unit(text, UNIT)) != plain(unit):
        raise CertificateError("a file of the unit does not give back the same expression")
    every = dict.fromkeys(theorem for root in roots for theorem in root.walk())
    leaves: list[Leaf] = []
    names: dict[Theorem, str] = {}
    for theorem in every:
        if theorem.rule in ("settled", "exhausted"):
            lemma: Lemma = theorem.goal  # type: ignore[assignment]  # what these rules are about
            leaves.append(Leaf(lemma.statement(), query_of(lemma), words_of(theorem)))
            names[theorem] = f"lemma-{len(leaves):02d}"
    tree = json.dumps(Written(unit).stating(roots, names), separators=(",", ":")) + "\n"
    files = {TREE: tree, UNIT: text} | dict(texts or {})
    return write_certificate(directory, options, files, leaves)
