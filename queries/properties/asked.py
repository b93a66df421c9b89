"""The files that state what a certificate proves: that two sides agree, or that one unit has a property.

Two sides: `question.json`, with the units in `left.yaml` and `right.yaml`. A property: `property.json`, with the unit
in `unit.yaml`; its parts are certificates of sides. The checker makes the terms of a question anew from these files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from queries.certificates.names import LEFT, PROPERTY, QUESTION, RIGHT, UNIT, WITNESS
from queries.certificates.reading import file_text, json_of
from queries.kernel.problem import Problem, free_values
from queries.kernel.statements import Exact, Monotonic, Negated, Reordered
from queries.tactics.written import Written
from smtmodel.dot import Model
from smtmodel.inputs import Compare, Inputs
from smtmodel.operands import Operands
from smtmodel.unit import Unit
from smtmodel.unitfile import parse_unit, unit_text

SCHEMA = 1
PADDING = "zero-padding"


def question_texts(problem: Problem) -> dict[str, str]:
    """The texts of the files that ask whether two sides agree, by file name."""
    document = _document(problem.inputs, problem.compare) | {"asks": "agree"}
    match problem:
        case Reordered():
            document |= {"asks": "reordered", "order": list(problem.order)}
        case Negated():
            document |= {"asks": "negated"}
        case Monotonic():
            document |= {"asks": "raised", "raised": problem.raised}
    units = {LEFT: problem.left, RIGHT: problem.right}
    return {QUESTION: json.dumps(document) + "\n"} | {name: unit_text(model.unit) for name, model in units.items()}


def witness_texts(problem: Problem, operands: Operands[int], wanted: str) -> dict[str, str]:
    """The texts of the files that state an input on which the two sides of a problem differ, by file name; `wanted`:
    what this refutes, "equal" or a property."""
    texts = question_texts(problem)
    values = free_values(problem.layout, problem.inputs.zero_terms, operands.every)
    document = json.loads(texts.pop(QUESTION)) | {"property": wanted, "values": values}
    if wanted == PADDING:
        document |= _shorter(problem.right.reference, problem.left.length)
    return {WITNESS: json.dumps(document) + "\n"} | texts


def property_texts(
    wanted: str, model: Model, inputs: Inputs, compare: Compare, lengths: Sequence[int] = ()
) -> dict[str, str]:
    """The texts of the files that state a property, by file name; `lengths`: those of the shorter units that it is
    about, if it is about any."""
    document = _document(inputs, compare) | {"property": wanted}
    if wanted == PADDING:
        document |= _shorter(model.reference, *lengths)
    return {PROPERTY: json.dumps(document) + "\n", UNIT: unit_text(model.unit)}


def _shorter(reference: str, *lengths: int) -> dict[str, Any]:
    """How many products the shorter units have, and which instruction of the table they are, with that length: a unit
    file says nothing of others."""
    return {"model": reference, "lengths": list(lengths)}


def _document(inputs: Inputs, compare: Compare) -> dict[str, Any]:
    return {"schema": SCHEMA, "inputs": inputs.model_dump(mode="json"), "compare": compare}


def read_question(folder: Path, name: str = QUESTION) -> Problem:
    """Read the question in the folder of a certificate, from the file of that name. Raises what reading its files
    raises: MmaprobeError, ValueError, KeyError, OSError."""
    document = read_document(folder / name)
    left, right = (Model(name, read_unit(folder / name)) for name in (LEFT, RIGHT))
    inputs, compare = Inputs.model_validate(document["inputs"]), document["compare"]
    if compare not in get_args(Compare):
        raise ValueError(f"compare: {compare!r} is no way to compare results")
    match document["asks"]:
        case "agree":
            kind = Exact if document.get("property") == "exact" else Problem  # which differ in what sides are called
            return kind(left, right, inputs, compare)
        case "reordered":
            return Reordered(left, right, inputs, compare, order=tuple(document["order"]))
        case "negated":
            return Negated(left, right, inputs, compare)
        case "raised":
            return Monotonic(left, right, inputs, compare, raised=document["raised"])
    raise ValueError(f"{document['asks']!r} is not a question")


def read_document(path: Path) -> dict[str, Any]:
    """Read a JSON file of a certificate. Raises ValueError if it is not JSON or has another schema, KeyError if it
    names none, and OSError."""
    found: dict[str, Any] = json_of(path)
    if not isinstance(found, dict):
        raise ValueError("not the keys and values of a document")
    if found["schema"] != SCHEMA:
        raise ValueError(f"of schema {found['schema']}; this version reads {SCHEMA}")
    return found


def read_unit(path: Path) -> Unit:
    """Read a unit file of a certificate. Raises MmaprobeError if it is malformed, and OSError."""
    return parse_unit(file_text(path), path.name)


def plain(unit: Unit) -> dict[str, Any]:
    """A unit as plain data: formats, nodes, and what it is given; without names."""
    document = Written(unit).stating((), {})
    found: dict[str, Any] = json.loads(json.dumps({name: document[name] for name in ("unit", "nodes", "formats")}))
    return found
