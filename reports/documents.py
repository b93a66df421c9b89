"""The JSON documents that commands print: the type of each, by command (the types are in reports/fields).

The JSON Schema files in reports/schemas and the page docs/json.md are generated from these types by `python -m
tests.schemas`; the tests check every document that they print against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from mmaprobe.reports.fields.check import CheckFolder
from mmaprobe.reports.fields.cover import Cover
from mmaprobe.reports.fields.devices import Compare, Evaluate, Run
from mmaprobe.reports.fields.distinguish import Distinguish
from mmaprobe.reports.fields.explain import Explain, ExplainElement, Simulate, Study
from mmaprobe.reports.fields.identify import Build, Identify, IdentifyGemm, IdentifyProduct, Order, Separate
from mmaprobe.reports.fields.lists import Listed
from mmaprobe.reports.fields.parts import Vector
from mmaprobe.reports.fields.prove import ErrorBound, PlanErrorBound, Prove, ProvePlans
from mmaprobe.reports.fields.verify import Verify

#: command -> what it prints with --json
DOCUMENTS: Mapping[str, Any] = {
    "distinguish": Distinguish,
    "prove": Prove | ProvePlans | ErrorBound | PlanErrorBound,
    "verify": Verify,
    "check": CheckFolder,
    "separate": Separate,
    "identify": Identify | Build | IdentifyGemm | IdentifyProduct,
    "order": Order,
    "cover": Cover,
    "evaluate": Evaluate,
    "run": Run,
    "compare": Compare,
    "explain": Explain | ExplainElement,
    "simulate": Simulate,
    "study": Study,
    "list": list[Listed],
}
#: the name of the schema for a line of a vector file
VECTOR = "vector"


def check(command: str, text: str) -> None:
    """Raises pydantic.ValidationError for a document that is not what a command should print."""
    TypeAdapter(DOCUMENTS[command]).validate_json(text)


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each document, by command, and that of a vector."""
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema"} | _plain(TypeAdapter(kind).json_schema())
        for name, kind in {**DOCUMENTS, VECTOR: Vector}.items()
    }


def _plain(schema: Any) -> Any:
    """A JSON Schema without what concerns only our own types: additional fields are allowed, and optional fields have
    no default."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    own = schema.get("type") == "object" or "anyOf" in schema or "$ref" in schema or "type" in schema
    return {
        key: {name: _plain(one) for name, one in value.items()} if key in ("properties", "$defs") else _plain(value)
        for key, value in schema.items()
        if not (own and (key == "default" or (key == "additionalProperties" and value is False)
                         or (key == "title" and "properties" not in schema)))
    }  # fmt: skip
