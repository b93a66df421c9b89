"""The files that state what a certificate proves: that two sides agree, or that one unit has a property.

Two sides: `question.json`, with the units in `left.yaml` and `right.yaml`. A property: `property.json`, with the unit
in `unit.yaml`. The checker makes the terms of a question anew from these files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from mmaprobe.queries.certificates.names import DESIGN, LEFT, PROPERTY, QUESTION, RIGHT, UNIT, WITNESS
from mmaprobe.queries.kernel.log import SCHEMA
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.kernel.questions.problem import Problem, free_values
from mmaprobe.queries.kernel.questions.statements import (
    PROPERTIES,
    Exact,
    Mean,
    Monotonic,
    Negated,
    Reordered,
    paddings,
)
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.base.jsontext import parse_json
from mmaprobe.smtmodel.designs.design import Design
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs
from mmaprobe.smtmodel.tables.reference import CORE, is_plan, parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text

PADDING = "zero-padding"


def question_texts(problem: Problem) -> dict[str, str]:
    """The texts of the files that ask whether two sides agree, by file name."""
    return document_texts(QUESTION, _question(problem)) | _sides(problem)


def document_texts(name: str, data: Mapping[str, object]) -> dict[str, str]:
    """A JSON file of a certificate, for `read_document`: its text by its name."""
    return {name: json.dumps({"schema": SCHEMA, **data}) + "\n"}


def _question(problem: Problem) -> dict[str, Any]:
    document = _asked_of(problem.inputs, problem.compare)
    match problem:
        case Reordered():
            return document | {"asks": "reordered", "order": list(problem.order)}
        case Negated():
            return document | {"asks": "negated"}
        case Monotonic():
            return document | {"asks": "raised", "raised": problem.raised}
        case Designed(design=design):
            return document | {"asks": "designed", "module": design.module, "ports": dict(design.ports)}
    return document | {"asks": "agree"}


def _sides(problem: Problem) -> dict[str, str]:
    left, right = unit_text(problem.left.unit), unit_text(problem.right.unit)
    return {LEFT: left} | ({DESIGN: problem.design.netlist} if isinstance(problem, Designed) else {RIGHT: right})


def witness_texts(problem: Problem, operands: Operands[int], wanted: str) -> dict[str, str]:
    """The texts of the files, by file name, that state an input on which the two sides of a problem differ; `wanted`:
    "equal", or the property that the input refutes."""
    values = free_values(problem.layout, problem.inputs.zero_terms, operands.every)
    document = _question(problem) | {"property": wanted, "values": values}
    if wanted == PADDING:
        document |= _shorter(problem.right.reference, problem.left.length)
    return document_texts(WITNESS, document) | _sides(problem)


def property_texts(
    wanted: str, model: Model, inputs: Inputs, compare: Compare, lengths: Sequence[int] = ()
) -> dict[str, str]:
    """The texts of the files that state a property, by file name; `lengths`: the lengths of the shorter units in the
    property, if there are any."""
    document = _asked_of(inputs, compare) | {"property": wanted}
    if wanted == PADDING:
        document |= _shorter(model.reference, *lengths)
    return document_texts(PROPERTY, document) | {UNIT: unit_text(model.unit)}


def _shorter(reference: str, *lengths: int) -> dict[str, Any]:
    """The lengths of the shorter units of zero-padding, and the instruction of the table that these units shorten, as
    unit files do not name it."""
    return {"model": reference, "lengths": list(lengths)}


def _asked_of(inputs: Inputs, compare: Compare) -> dict[str, Any]:
    return {"inputs": inputs.model_dump(mode="json"), "compare": compare}


def read_question(texts: Mapping[str, str], name: str = QUESTION) -> Problem:
    """The question of a certificate, from the file `name` and the files of the sides. Raises the errors of reading the
    files: MmaprobeError, ValueError, KeyError, OSError."""
    document = read_document(texts, name)
    inputs, compare = read_inputs(document)
    left = read_model(texts, LEFT)
    if document["asks"] == "designed":
        problem: Problem = Designed(left, left, inputs, compare, _read_design(texts, document))
    else:
        problem = _asked(document, left, read_model(texts, RIGHT), inputs, compare)
    right = problem.right
    if type(problem) not in (Problem, Exact, Mean) and not same_unit(left.unit, right.unit):
        raise ParameterError(RIGHT, f"a unit is compared with itself, and this is another than {LEFT}")
    if problem.inputs != inputs:
        raise ParameterError(name, "c is +0 where one of the units does not read it, and the file does not say so")
    return problem


def _read_design(texts: Mapping[str, str], document: Mapping[str, Any]) -> Design:
    """The design of a question. Raises ValueError if a text does not name the module, or a port."""
    module, ports = document["module"], document["ports"]
    if not isinstance(ports, dict) or not all(isinstance(text, str) for text in (module, *ports.values())):
        raise ValueError("ports and a module have names")
    return Design(module, texts[DESIGN], tuple(ports.items()))


def _asked(document: Mapping[str, Any], left: Model, right: Model, inputs: Inputs, compare: Compare) -> Problem:
    match document["asks"]:
        case "agree":
            kind = {"exact": Exact, "unbiased": Mean}.get(document.get("property", ""), Problem)
            return kind(left, right, inputs, compare)
        case "reordered":
            if sorted(order := document["order"]) != list(range(left.length)):
                raise ParameterError("order", f"{order} does not name each of {left.length} products once")
            return Reordered(left, right, inputs, compare, order=tuple(order))
        case "negated":
            return Negated(left, right, inputs, compare)
        case "raised":
            return Monotonic(left, right, inputs, compare, raised=document["raised"])
    raise ValueError(f"{document['asks']!r} is not a question")


def read_property(texts: Mapping[str, str]) -> tuple[str, Model, Inputs, Compare]:
    """The property that a certificate states: its name, model, inputs and comparison. Raises the errors of reading its
    files, and ParameterError for a model that is not the table's."""
    document = read_document(texts, PROPERTY)
    wanted, (inputs, compare) = document["property"], read_inputs(document)
    if wanted not in PROPERTIES:
        raise ValueError(f"{wanted!r} is not a property")
    model = read_model(texts, UNIT)
    if wanted == PADDING:
        model = model_of_table(document["model"], model.unit)
        possible = [problem.left.length for problem in paddings(model)]
        if list(map(str, sorted(document["lengths"]))) != list(map(str, possible)):  # as text, since 1 == True == 1.0
            raise ParameterError("lengths", "nothing is said of some lengths, or something of others")
    return wanted, model, inputs, compare


def model_of_table(reference: str, unit: Unit) -> Model:
    """The table's instruction named `reference`. Raises ParameterError if there is none, or if its unit is not `unit`,
    which comes from a file."""
    if not isinstance(reference, str) or ".yaml" in reference or is_plan(reference):
        raise ParameterError("model", f"{reference} is no instruction of the table")
    model = parse_reference(reference)
    if not same_unit(parse_unit(unit_text(model.unit), reference), unit):
        raise ParameterError("model", f"the unit is not {reference} of the table")
    return model


def named_unit(unit: Unit) -> Unit | None:
    """The table's unit of a unit's name; None where the name is of no unit of the table."""
    if ".yaml" in unit.reference or CORE in unit.reference or is_plan(unit.reference):
        return None
    with suppress(MmaprobeError):
        return parse_reference(unit.reference).unit
    return None


def same_unit(one: Unit, other: Unit) -> bool:
    """Whether two units differ only in their names."""
    return (one.operands, one.result) == (other.operands, other.result)


def read_inputs(document: Mapping[str, Any]) -> tuple[Inputs, Compare]:
    """The inputs that a document is about, and its comparison of results. Raises ValueError, KeyError."""
    if document["compare"] not in get_args(Compare):
        raise ValueError(f"compare: {document['compare']!r} is no way to compare results")
    return Inputs.model_validate(document["inputs"]), document["compare"]


def read_document(texts: Mapping[str, str], name: str) -> dict[str, Any]:
    """A JSON file of a certificate. Raises ValueError if the file is not JSON or has another schema, KeyError if there
    is no such file, or the file names no schema, and OSError."""
    document: dict[str, Any] = parse_json(texts[name])
    if not isinstance(document, dict):
        raise ValueError("not the keys and values of a document")
    if document["schema"] != SCHEMA:
        raise ValueError(f"of schema {document['schema']}; this version reads {SCHEMA}")
    return document


def read_model(texts: Mapping[str, str], name: str) -> Model:
    """The unit in a file of a certificate, as a model with the file's name. Raises MmaprobeError if the file is
    malformed, and OSError."""
    return Model(name, parse_unit(texts[name], name))
