"""JSON Schema files and the page of fields, made of reports/documents.py: `python -m tests.schemas` writes both."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from mmaprobe.reports.documents import VECTOR, schemas
from tests.places import ROOT

FOLDER = ROOT / "reports" / "schemas"
PAGE = ROOT / "docs" / "json.md"

HEAD = """# JSON documents, field by field

With `--json` a command prints one document on standard output; files of vectors have one JSON object a line. The
tables below describe every field. They are made from JSON Schema files, which come with the package:

```sh
python -c "from importlib.resources import files; print(files('mmaprobe.reports') / 'schemas')"
```

- Every document has `schema`, its version, which is 1, and `produced` ([Produced](#produced)), the program and its
  command line. The tables leave these two out. The version is raised when a field is removed or its meaning changes.
  Fields may be added without a new version, so a program should ignore those that it does not know.
- `mmaprobe list models --json`, like every other list, prints an array of objects. Each has `schema`, `id`, the name by
  which commands take it, and `summary`, one line of text, which the tables leave out.
- A number of a format such as f16 is a bit pattern: lower-case hexadecimal digits, as many as the format needs.
- A vector may have keys of your own (`note`, `tags`): they are kept in every vector that a command writes of it.
- A field marked with * is not always there.

The tests validate every document that they print by these schemas. After a change of the types (`reports/documents.py`,
`reports/fields`) `python -m tests.schemas` writes the schemas and this page.
"""
COMMON = {"schema", "produced"}  # fields of every document, which the head of the page describes
OF_LISTS = {"schema", "id", "summary"}  # those of every object of a list
LIST = "list"


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
