"""JSON Schema files and the page of fields, made of documents/: `python -m tests.schemas` writes both."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from mmaprobe.documents.commands import DOCUMENTS
from mmaprobe.documents.parts import ABSENT, Document, Input, Part, Vector, plain
from mmaprobe.documents.reading import WrongDocumentError, kinds_of, read, required
from tests.places import ROOT

FOLDER = ROOT / "documents" / "schemas"
VECTOR = "vector"  # the name of the schema for a line of a vector file
LIST = "list"
PAGE = ROOT / "docs" / "json.md"

HEAD = """# JSON documents, field by field

With `--json` a command prints one document on standard output; files of vectors have one JSON object a line. The
tables below describe every field. They are made from JSON Schema files, which come with the package:

```sh
python -c "from importlib.resources import files; print(files('mmaprobe.documents') / 'schemas')"
```

- Every document has `schema`, its version, which is 1, and `produced` ([Produced](#produced)), the program and its
  command line. The tables leave these two out. The version is raised when a field is removed or its meaning changes.
  Fields may be added without a new version, so a program should ignore those that it does not know.
- `mmaprobe list models --json`, like every other list, prints an array of objects. Each has `schema`, `id`, the name by
  which commands take it, and `summary`, one line of text, which the tables leave out.
- A number of a format such as f16 is a bit pattern: lower-case hexadecimal digits, as many as the format needs.
- A vector may have keys of your own (`note`, `tags`): they are kept in every vector that a command writes of it.
- A field marked with * is not always there.

The tests read every document that they print as its class in `documents/`, of which `python -m tests.schemas` writes
the schemas and this page.
"""
COMMON = {"schema", "produced"}  # fields of every document, which the head of the page describes
OF_LISTS = {"schema", "id", "summary"}  # those of every object of a list


TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def check(command: str, text: str) -> None:
    """Raises WrongDocumentError for a document that is not what a command should print. What is read is printed as it
    was."""
    value = json.loads(text)
    found = read(DOCUMENTS[command], value, whole=True)
    assert json.loads(json.dumps(found, default=plain)) == value
    if isinstance(found, Document) and found.produced is ABSENT:
        raise WrongDocumentError("produced", "an object")


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each document, by command, and that of a vector."""
    return {name: _schema(kind) for name, kind in {**DOCUMENTS, VECTOR: Vector}.items()}


def _schema(kind: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    whole = _part(kind, parts) if isinstance(kind, type) else _type(kind, parts)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | ({"$defs": dict(sorted(parts.items()))} if parts else {}) | whole


def _part(kind: type[Part], parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object; those of its parts are added to `parts`."""
    descriptions = said(kind)
    properties = {name: dict(sorted({**_type(one, parts), "description": descriptions[name]}.items()))
                  for name, one in kinds_of(kind).items()}  # fmt: skip
    return {
        **({"additionalProperties": True} if issubclass(kind, Input) else {}),
        "description": inspect.getdoc(kind),
        "properties": properties,
        "required": required(kind),
        "title": kind.__name__,
        "type": "object",
    }


@cache
def said(kind: type[Part]) -> dict[str, str]:
    """What is said of each field, also of those that it inherits: behind it, or in a docstring below it."""
    found: dict[str, str] = {}
    for part in (one for one in reversed(kind.__mro__) if issubclass(one, Part)):
        source = textwrap.dedent(inspect.getsource(part))
        (tree,) = ast.parse(source).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, [*tree.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign):
                assert isinstance(field.target, ast.Name)
                lines = source.splitlines()[field.lineno - 1 : field.end_lineno]  # a long field stands on several
                comment = " ".join(line.partition("  #: ")[2] for line in lines if "  #: " in line)
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    comment = inspect.cleandoc(str(text.value.value))
                found[field.target.id] = comment
    assert all(found.values()), kind
    return found


def _type(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_type(one, parts) for one in args]}
    if origin is Sequence:
        return {"items": _type(args[0], parts), "type": "array"}
    if origin is Mapping:
        return {"additionalProperties": _type(args[1], parts) or True, "type": "object"}
    if origin is Annotated:
        return {"pattern": f"^{args[1].pattern}$", "type": "string"}
    if origin is Literal:
        values = {"const": args[0]} if len(args) == 1 else {"enum": list(args)}
        return values | {"type": TYPES[type(args[0])]}
    if isinstance(kind, type) and issubclass(kind, Part):
        if kind.__name__ not in parts:
            parts[kind.__name__] = {}  # while its own parts are looked at
            parts[kind.__name__] = _part(kind, parts)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return {} if kind is Any else {"type": TYPES[kind]}


def files() -> Iterator[tuple[Path, str]]:
    """Every file and its text."""
    found = schemas()
    for name, schema in found.items():
        yield FOLDER / f"{name}.json", json.dumps(schema, indent=1) + "\n"
    yield PAGE, page(found)


def page(found: Mapping[str, dict[str, Any]]) -> str:
    """The page of fields: the documents of each command, then their parts, each once."""
    parts: dict[str, dict[str, Any]] = {}
    tops: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for command, schema in found.items():
        named = schema.get("$defs", {})
        wanted = [one["$ref"].rpartition("/")[2] for one in _choices(schema)] if "title" not in schema else []
        tops[command] = [(name, named[name]) for name in wanted] or [(schema["title"], schema)]
        parts |= {name: one for name, one in named.items() if name not in wanted}
    parts.pop(tops[VECTOR][0][0])
    titles = {command: "Vector" if command == VECTOR else command for command in tops}
    links = [f"[{title}](#{title.lower()})" for title in (*titles.values(), "Parts")]
    lines = [HEAD, f"{textwrap.fill(', '.join(links), 120)}\n"]
    for command, documents in tops.items():
        lines.append(f"## {titles[command]}\n")
        common = OF_LISTS if command == LIST else set() if command == VECTOR else COMMON
        for _, schema in documents:
            lines += _table(schema, common)
    lines.append("## Parts\n\nThe objects that fields of documents hold, by name.\n")
    for name in sorted(parts):
        lines += [f"### {name}\n", *_table(parts[name])]
    return "\n".join(lines).rstrip() + "\n"


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    inner: dict[str, Any] = schema.get("items", schema)
    return list(inner.get("anyOf", [inner]))


def _table(schema: dict[str, Any], common: Set[str] = frozenset()) -> list[str]:
    """The fields of a document or part but for those that the head describes."""
    required = set(schema.get("required", ()))
    assert common <= required, "the head of the page says that it has these"
    assert not common or schema["properties"]["schema"]["const"] == 1, "the head says so"
    rest = {name: kind for name, kind in schema["properties"].items() if name not in common}
    lines = [f"{_joined(schema['description'])}\n"]
    if rest:
        lines += ["| field | type | meaning |", "|---|---|---|"]
    for name, kind in rest.items():
        mark = "" if name in required else "*"
        lines.append(f"| `{name}`{mark} | {_kind(kind)} | {_joined(kind.get('description', ''))} |")
    return [*lines, ""] if rest else lines


def _joined(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PLAIN = {"integer": "whole number", "boolean": "true or false", "object": "object", "null": "null"}


def _kind(schema: dict[str, Any]) -> str:
    """A type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_kind, schema["anyOf"])))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return "bit pattern" if "pattern" in schema else PLAIN.get(kind, kind)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in files():
        path.write_text(text, encoding="utf-8")
