"""Certificates of what no input of a unit reaches, and of the changes of it that no input shows."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from queries.certificates.certificate import Certificate, CertificateError, Leaf, write_certificate
from queries.certificates.names import COVER, UNIT
from queries.covering.cover import Change, Cover
from queries.kernel.lemmas import words_of
from queries.kernel.problem import Problem
from queries.kernel.theorem import Theorem
from queries.kernel.unreachable import Unreachable, datapath
from queries.properties.asked import SCHEMA
from queries.properties.certify import certify_sides
from queries.properties.proving import proofs_of
from queries.search.distinguish import Options
from smtmodel.unitfile import unit_text


def certify_cover(found: Cover, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of what was proved; `options.timeout` holds for each change of which it is proved again
    that no input shows it. Raises CertificateError if nothing was proved."""
    if not found.unreachable and not found.same:
        raise CertificateError("everything is reached: nothing was proved that a certificate could hold")
    refuted = [one for theorem in found.unreachable.values() for one in theorem.walk() if one.rule == "refuted"]
    names = {theorem: f"lemma-{number:02d}" for number, theorem in enumerate(dict.fromkeys(refuted), 1)}
    leaves = [Leaf(one.goal.statement(), datapath(found.model).query(_cases(one)), words_of(one)) for one in names]
    parts, changes, written = list[str](), list[dict[str, str]](), list[Certificate]()
    for change in found.same:
        part = directory / f"proof-{len(parts) + 1}"
        with suppress(CertificateError):
            written.append((part, _same(found, change, part, options)))
            parts.append(part.name)
            changes.append({"change": change.name, "part": part.name})
    document = {
        "schema": SCHEMA,
        "lemmas": {name: [list(map(str, case)) for case in _cases(one)] for one, name in names.items()},
        "cases": [{"conditions": list(map(str, case)), "lemma": names[theorem if theorem in names else
                   theorem.premises[0]]} for case, theorem in found.unreachable.items()],
        "changes": changes,
    }  # fmt: skip
    texts = {COVER: json.dumps(document) + "\n", UNIT: unit_text(found.model.unit)}
    manifest = write_certificate(directory, replace(options, timeout=None), texts, leaves, parts=parts)
    return [*written, (directory, manifest)]


def _same(found: Cover, change: Change, part: Path, options: Options) -> dict[str, Any]:
    (proof,) = proofs_of([Problem(found.model, change.model)], options, confirm=True)
    return certify_sides(proof, part, options)


def _cases(theorem: Theorem) -> tuple[tuple[Any, ...], ...]:
    assert isinstance(theorem.goal, Unreachable)
    return theorem.goal.cases
