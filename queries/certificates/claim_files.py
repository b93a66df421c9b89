"""Claims as files of a certificate, with the files of their units."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import yaml

from mmaprobe.hypotheses.claim import build_claims
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.queries.certificates.names import CLAIM
from mmaprobe.queries.certificates.plan_files import plan_texts
from mmaprobe.queries.certificates.statement import HELD, REFERENCES, is_of_file, with_references
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.libraries import own_folder
from mmaprobe.smtmodel.base.yamlfile import read_file, read_yaml
from mmaprobe.smtmodel.plans.plan_files import beside
from mmaprobe.smtmodel.tables.reference import CORE, is_plan, names_plan, parse_plan_path, parse_reference
from mmaprobe.smtmodel.units.unitfile import unit_text


def claim_texts(claim: Statement) -> dict[str, str]:
    """The texts, by file name, of a claim file with this case only, and of the unit and plan files that it names."""
    data = {key: value for key, value in claim.file.data.items() if key != "cases"}
    units: dict[str, str] = {}  # file names by the text of the unit
    plans: dict[str, str] = {}  # texts by file name

    def held(reference: str) -> str:
        """The reference that stands for `reference` in a certificate: a file of the folder, or `reference` itself."""
        if not is_of_file(reference):
            return reference
        reference = beside(Path(claim.file.name).parent, reference)
        if names_plan(reference):
            name = f"part-{len(plans) + 1}.plan.yaml"
            plans[name] = plan_texts({name: parse_plan_path(reference)}, units)[name]
            return f"./{name}"
        made = is_plan(reference) or CORE in reference
        text = unit_text(parse_reference(reference).unit) if made else read_file(Path(reference))
        return f"./{units.setdefault(text, f'unit-{len(units) + 1}.yaml')}"

    data = with_references(data, held)
    return {CLAIM: yaml.safe_dump(data, sort_keys=False)} | plans | {name: text for text, name in units.items()}


def read_claim(texts: Mapping[str, str]) -> Statement:
    """The claim of a certificate; units named by a path are files of the certificate. Raises the errors of reading
    files."""
    file = read_yaml(texts[CLAIM], CLAIM)
    data = with_references(file.data, partial(_copied, texts))
    named = json.dumps([data.get(key) for key in (*REFERENCES, "parts")])
    if (
        "cases" in data
        or CORE in named
        or ".yaml" in re.sub(re.escape(str(own_folder())) + "/[0-9a-f]{64}.yaml", "", named)
    ):
        raise ParameterError(CLAIM, "it has cases, or names a file in another way than a certificate does")
    (claim,) = build_claims(replace(file, data=data))
    return claim


def _copied(texts: Mapping[str, str], reference: str) -> str:
    """The path of a copy of a certificate's unit or plan file, for a reference to such a file; other references stay.
    The copy is named by its content, and only this process can change it. Raises ParameterError for a file that is not
    in the certificate."""
    if HELD.fullmatch(reference) and reference.removeprefix("./") in texts:
        text = texts[reference.removeprefix("./")]
        if reference.endswith(".plan.yaml"):
            data = read_yaml(text, reference).data
            units = data["units"].items() if isinstance(data, dict) and isinstance(data.get("units"), dict) else ()
            text = yaml.safe_dump({**data, "units": {unit: _copied(texts, f"./{file}") for unit, file in units}})
        own = own_folder() / f"{sha256(text.encode()).hexdigest()}.yaml"
        own.write_text(text, encoding="utf-8")
        return str(own)
    if ".yaml" in reference or CORE in reference:
        raise ParameterError(reference, f"{CLAIM} names a file that is not in the folder")
    return reference
