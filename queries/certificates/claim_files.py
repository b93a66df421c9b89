"""Claims as files of a certificate, with the files of their units."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from mmaprobe.hypotheses.claim import build_claims
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.queries.certificates.names import CLAIM, HELD, PLAN_END, numbered
from mmaprobe.queries.certificates.plan_files import plan_texts, read_plan
from mmaprobe.queries.certificates.questions import named_unit
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.libraries import own_folder
from mmaprobe.smtmodel.base.yamlfile import read_file, read_yaml
from mmaprobe.smtmodel.plans.plan_files import beside
from mmaprobe.smtmodel.tables.reference import CORE, LENGTH, is_plan, names_plan, parse_plan_path, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text

#: the pattern of references in a claim to an algorithm's unit
_OF_ALGORITHM = re.compile(r"(\bunit=(?=\()\(|\bunit=)((?<=\()[^()]*|[^,()]*)")
REFERENCES = ("model", "other", "reduction", "plan")  # keys of claims


def claim_texts(claim: Statement) -> dict[str, str]:
    """The texts, by file name, of a claim file with this case only, and of the plans (shipped ones as well) and of the
    unit files that it names."""
    data = {key: value for key, value in claim.file.data.items() if key != "cases"}
    units: dict[str, str] = {}  # file names by the text of the unit
    plans: dict[str, str] = {}  # texts by file name

    def held(reference: str) -> str:
        """The reference that stands for `reference` in a certificate: a file of the folder, or `reference` itself."""
        if not (is_of_file(reference) or is_plan(reference)):
            return reference
        reference = beside(Path(claim.file.name).parent, reference)
        if names_plan(reference):
            name = f"part-{len(plans) + 1}{PLAN_END}"
            plans[name] = plan_texts({name: parse_plan_path(reference)}, units)[name]
            return f"./{name}"
        made = is_plan(reference) or CORE in reference
        text = unit_text(parse_reference(reference).unit) if made else read_file(Path(reference))
        return f"./{numbered(units, text)}"

    data = with_references(data, held)
    return {CLAIM: yaml.safe_dump(data, sort_keys=False)} | plans | {name: text for text, name in units.items()}


def read_claim(texts: Mapping[str, str]) -> Statement:
    """The claim of a certificate; units named by a path are files of the certificate. Raises the errors of reading
    files."""
    file = read_yaml(texts[CLAIM], CLAIM)
    data = with_references(file.data, partial(_copied, texts))
    named = json.dumps([data.get(key) for key in (*REFERENCES, "parts")])
    if "cases" in data or CORE in named or ".yaml" in re.sub(rf"{_copies()}[a-z0-9.-]+\.yaml", "", named):
        raise ParameterError(CLAIM, "it has cases, or names a file in another way than a certificate does")
    (claim,) = build_claims(replace(file, data=data))
    return claim


def named_as_held(text: str) -> str:
    """A text in which copies of a certificate's files have the names of these files."""
    return re.sub(_copies(), "", text)


def _copies() -> str:
    """The pattern of the folders of copies."""
    return f"{re.escape(str(own_folder()))}/[0-9a-f]{{64}}/"


def _copied(texts: Mapping[str, str], reference: str) -> str:
    """The reference of a copy of a certificate's unit or plan file: the copy, in a folder named by its content, can be
    changed by this process alone. Raises the errors of reading the file, and ParameterError for a file or a plan that
    the certificate does not hold."""
    name = reference.removeprefix("./")
    if HELD.fullmatch(reference) and name in texts:
        text = texts[name]
        if name.endswith(PLAN_END):
            read_plan(texts, name)  # its errors name this file
            data = read_yaml(text, name).data
            own = {unit: _unit_of_plan(texts, f"./{file}") for unit, file in data["units"].items()}
            text = yaml.safe_dump({**data, "units": own}, sort_keys=False)  # a word reads those before it
        path = own_folder() / sha256(text.encode()).hexdigest() / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)
    if is_plan(reference) or ".yaml" in reference or CORE in reference:
        kind = "plan" if is_plan(reference) else "file"
        raise ParameterError(reference, f"{CLAIM} names a {kind} that is not in the folder")
    return reference


def _unit_of_plan(texts: Mapping[str, str], reference: str) -> str:
    """The reference of a unit file of a plan: the name of the table's unit that this file spells out, under which other
    parts of the claim may have it, or that of a copy."""
    text = texts[reference.removeprefix("./")]
    named = named_unit(parse_unit(text, reference))
    return _copied(texts, reference) if named is None or unit_text(named) != text else named.reference


def with_references(data: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """A claim with `change` applied to the references of its units and plans, also of algorithms' units."""

    def changed(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        head, at, tail = text.partition("@")
        if "/" in head or is_of_file(text.strip()) or is_plan(text.strip()):
            return change(text.strip())
        return head + at + _OF_ALGORITHM.sub(lambda match: match[1] + change(match[2].strip()), tail)

    replaced = dict(data) | {key: changed(data[key]) for key in REFERENCES if key in data}
    if isinstance(parts := data.get("parts"), dict):
        replaced["parts"] = {name: changed(text) for name, text in parts.items()}
    return replaced


def is_of_file(reference: str) -> bool:
    """Whether a reference of a claim is the path of a unit file, an FPCore expression or a plan file; a K may follow
    the path of an expression or a plan."""
    return reference.partition(LENGTH)[0].endswith((".yaml", CORE))


def references(data: Mapping[str, Any]) -> list[str]:
    """The units and plans that a claim names, by their references."""
    found: list[str] = []

    def note(reference: str) -> str:
        found.append(reference)
        return reference

    with_references(data, note)
    return list(dict.fromkeys(found))
