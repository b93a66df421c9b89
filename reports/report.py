"""Reads the JSON documents of commands and renders them as one page of HTML."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import jinja2
from markupsafe import Markup

from mmaprobe.reports import measured, solved
from mmaprobe.reports.styles import style_sheet
from mmaprobe.reports.views import Pictures, Section
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.base.files import check_utf8
from mmaprobe.smtmodel.base.jsontext import parse_json, shown
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.vectors import LONGEST, open_text, vector_of

T = TypeVar("T")

#: keys that identify the document of a command, the command, the function that makes its sections
BUILDERS: tuple[tuple[frozenset[str], str, Callable[[dict[str, Any], Pictures], list[Section]]], ...] = (
    (frozenset({"property", "proofs"}), "prove", solved.proved),
    (frozenset({"claims"}), "verify", solved.verified),
    (frozenset({"family", "verdict", "asked"}), "identify", measured.identified),
    (frozenset({"family", "classes", "vectors"}), "separate", solved.separated),
    (frozenset({"device", "answered", "questions"}), "run", measured.ran),
    (frozenset({"rows", "mismatches", "models"}), "evaluate", measured.evaluated),
    (frozenset({"study", "files"}), "study", measured.studied),
    (frozenset({"devices", "differences"}), "compare", measured.compared),
    (frozenset({"evaluations", "difference"}), "explain", measured.explained),
    (frozenset({"questions"}), "distinguish", solved.distinguished),
)
COMMANDS = "run, compare, identify, separate, prove (no bounds), verify, distinguish, evaluate, explain or study"


def documents(path: str) -> list[dict[str, Any]]:
    """The JSON objects in a file, which is one document or has one on each line. Raises InputError."""
    return [document for _, document in _numbered(path)]


def _numbered(path: str) -> list[tuple[int, dict[str, Any]]]:
    """The JSON objects in a file, with the numbers of the lines on which they begin. Raises InputError."""
    with open_text(Path(path)) as stream:
        try:
            text = stream.read(LONGEST + 1).removeprefix("\ufeff")
        except (OSError, EOFError) as error:
            raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path) from None
    check_utf8(text, path)
    if len(text) > LONGEST:
        raise InputError(f"more than {LONGEST:,} characters: a page does not show as much", path)
    try:
        found = [(1, parse_json(text))]
    except ValueError:
        found = []
        for number, line in enumerate(text.split("\n"), 1):
            try:
                found += [(number, parse_json(line))] if line.strip() else []
            except ValueError as error:
                raise InputError(str(error), path, number) from None
    if not found or not all(isinstance(one, dict) for _, one in found):
        raise InputError(f"no results of {COMMANDS} (with --json) and no vectors", path)
    return found


def sections(path: str, pictures: Pictures) -> list[Section]:
    """The sections of one file of results, or of vectors. Raises InputError."""
    found = _numbered(path)
    if all("a" in one and "b" in one for _, one in found):
        vectors = [_read(vector_of, one, path, line) for line, one in found]
        made = measured.vectors_of(vectors, pictures, path)
    else:
        build = functools.partial(_sections, pictures=pictures)
        made = [section for line, one in found for section in _read(build, one, path, line)]
    for section in made:
        section.source = path
    return made


def _read(read: Callable[[dict[str, Any]], T], document: dict[str, Any], path: str, line: int) -> T:
    """What `read` makes of a document. Its errors are raised as InputError with file and line."""
    try:
        return read(document)
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        looked_for = str(error.args[0]) if isinstance(error, KeyError) else None
        raise wrong_document(document, path, line, looked_for) from None
    except (ValueError, MmaprobeError) as error:
        raise InputError(str(error), path, line) from None


#: what is needed, by pydantic's kinds of errors
_WANTED = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "an object"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
}


def wrong_document(document: dict[str, Any], path: str, line: int | None, looked_for: str | None = None) -> InputError:
    """The error for a document that is not as its command wrote it, with the key at fault. `looked_for`: the key that
    was not there, of a document that its schema does not refuse."""
    from pydantic import TypeAdapter, ValidationError

    from mmaprobe.reports.documents import DOCUMENTS

    command = next((command for keys, command, _ in BUILDERS if keys <= document.keys()), None)
    message, key = "not as a command wrote it: values do not fit together", None
    if looked_for is not None:
        message, key = "this key is missing; not as a command wrote it", looked_for
    try:
        TypeAdapter(DOCUMENTS.get(command or "", Any)).validate_python(document)
    except ValidationError as problem:
        errors = problem.errors()
        if get_args(DOCUMENTS[command or ""]):  # one of several documents: the one with the fewest mistakes
            count = Counter(error["loc"][0] for error in errors)
            least = min(count, key=lambda kind: count[kind])
            errors = [error | {"loc": error["loc"][1:]} for error in errors if error["loc"][0] == least]
        at_fault = [error for error in errors if error["type"] not in ("missing", "extra_forbidden")]
        if at_fault:
            kind, said = at_fault[0]["type"], at_fault[0]["msg"]
            key = ".".join(map(str, at_fault[0]["loc"])) or None
            message = (
                f"not as a command wrote it: {_WANTED.get(kind) or said.replace('Input should be ', '')} is needed"
            )
    return InputError(message, path, line, key)


def _sections(document: dict[str, Any], pictures: Pictures) -> list[Section]:
    """The sections for a document. Raises ValueError and other errors if the document does not have the expected
    fields."""
    if document.get("schema", 1) != 1:
        raise ValueError(f"schema: {shown(document['schema'])} is not known; this version reads schema 1")
    build = next((build for keys, _, build in BUILDERS if keys <= document.keys()), None)
    if build is None or "revealed" in document:  # what `order` says has a number of questions
        raise ValueError(f"no results of {COMMANDS} (with --json)")
    made = build(document, pictures)
    produced = document.get("produced") or {}
    for section in made:
        section.facts += [(f"produced {key}", str(value)) for key, value in produced.items() if key != "command"]
        section.repeat = produced.get("command", "")
    return made


def environment(program: str) -> jinja2.Environment:
    """The templates of the package. Everything inserted is escaped, except markup made by this package."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("mmaprobe.reports"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    found.globals.update(
        picture_css=Markup(style_sheet()), program=program, svg=Markup, counted=counted,
        page_css=Markup(_source(found, "page.css")), page_js=Markup(_source(found, "page.js")),
    )  # fmt: skip
    return found


def _source(found: jinja2.Environment, name: str) -> str:
    assert found.loader is not None
    return found.loader.get_source(found, name)[0]


def report(paths: Sequence[str], program: str, title: str = "") -> str:
    """The HTML page for files of results. `program`: name and version of the generating program. Raises InputError."""
    pictures = Pictures()
    found = [section for path in paths for section in sections(path, pictures)]
    for number, section in enumerate(found, 1):
        section.id = f"result-{number}"
    template = environment(program).get_template("report.html")
    try:
        return template.render(title=title or "mmaprobe report", sections=found, pictured=pictures.count)
    except (TypeError, jinja2.UndefinedError):  # a value of another kind where the page wants text
        raise _unprintable(paths) from None


def _unprintable(paths: Sequence[str]) -> InputError:
    """The error for the first document that is not as its command wrote it."""
    for path in paths:
        for line, document in _numbered(path):
            if (error := wrong_document(document, path, line)).key is not None:
                return error
    return InputError("not as a command wrote it: values do not fit together", ", ".join(paths))
