"""One HTML page for the JSON documents of commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from markupsafe import Markup

from mmaprobe.documents.devices import Compare, Evaluate, Run
from mmaprobe.documents.distinguish import Distinguish
from mmaprobe.documents.explain import Explain, Study
from mmaprobe.documents.identify import Identify, Separate
from mmaprobe.documents.parts import Document, Part, plain
from mmaprobe.documents.prove import Prove, ProvePlans
from mmaprobe.documents.reading import read
from mmaprobe.documents.verify import Verify
from mmaprobe.reports import measured, solved
from mmaprobe.reports.drawings.styles import style_sheet
from mmaprobe.reports.views import Pictures, Section
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.base.files import check_utf8
from mmaprobe.smtmodel.base.jsontext import parse_json, quoted_value
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.vectors import LONGEST, open_text, vector_of

T = TypeVar("T")

#: keys that identify a document, its class, the function that makes its sections
BUILDERS: tuple[tuple[frozenset[str], type[Document], Callable[[Any, Pictures], list[Section]]], ...] = (
    (frozenset({"property", "proofs", "left"}), ProvePlans, solved.plans_sections),
    (frozenset({"property", "proofs"}), Prove, solved.prove_sections),
    (frozenset({"claims"}), Verify, solved.verify_sections),
    (frozenset({"family", "verdict", "asked"}), Identify, measured.identify_sections),
    (frozenset({"family", "classes", "vectors"}), Separate, solved.separate_sections),
    (frozenset({"device", "answered", "questions"}), Run, measured.run_sections),
    (frozenset({"rows", "mismatches", "models"}), Evaluate, measured.evaluate_sections),
    (frozenset({"study", "files"}), Study, measured.study_sections),
    (frozenset({"devices", "differences"}), Compare, measured.compare_sections),
    (frozenset({"evaluations", "difference"}), Explain, measured.explain_sections),
    (frozenset({"questions"}), Distinguish, solved.distinguish_sections),
)
COMMANDS = (
    "run, compare, identify FAMILY, separate, prove (no bounds, no maps), verify, distinguish, evaluate, explain or "
    "study"
)


def documents(path: str) -> list[dict[str, Any]]:
    """The JSON objects in a file of one document, or of a document on each line. Raises InputError."""
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
        values = [(1, parse_json(text))]
    except ValueError:
        values = []
        for number, line in enumerate(text.split("\n"), 1):
            try:
                values += [(number, parse_json(line))] if line.strip() else []
            except ValueError as error:
                raise InputError(str(error), path, number) from None
    if not values or not all(isinstance(one, dict) for _, one in values):
        raise InputError(f"no results of {COMMANDS} (with --json) and no vectors", path)
    return values


def sections(path: str, pictures: Pictures) -> list[Section]:
    """The sections of one file of results, or of vectors. Raises InputError."""
    values = _numbered(path)
    if all("a" in one and "b" in one for _, one in values):
        vectors = [_read(vector_of, one, path, line) for line, one in values]
        made = measured.vectors_sections(vectors, pictures, path)
    else:
        build = functools.partial(_sections, pictures=pictures)
        made = [section for line, one in values for section in _read(build, one, path, line)]
    for section in made:
        section.source = path
    return made


def _read(make: Callable[[dict[str, Any]], T], document: dict[str, Any], path: str, line: int) -> T:
    """The sections that `make` forms of a document. Raises its errors as InputError with file and line."""
    try:
        return make(document)
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError, MmaprobeError) as error:
        raise wrong_document(error, path, line) from None


def wrong_document(error: Exception, path: str, line: int | None = None) -> InputError:
    """The error for a document that is not as its command wrote it, with the key at fault."""
    if isinstance(error, AttributeError) and isinstance(error.obj, Part):
        return InputError("this key is missing; not as a command wrote it", path, line, error.name)
    if isinstance(error, ValueError | MmaprobeError):
        return InputError(str(error), path, line, getattr(error, "key", None))
    return InputError("not as a command wrote it: values do not fit together", path, line)


def _sections(document: dict[str, Any], pictures: Pictures) -> list[Section]:
    """The sections for a document. Raises ValueError and other errors if the document does not have the expected
    fields."""
    if document.get("schema", 1) != 1:
        raise ValueError(f"schema: {quoted_value(document['schema'])} is not known; this version reads schema 1")
    chosen = next(((kind, build) for keys, kind, build in BUILDERS if keys <= document.keys()), None)
    asked = not document.keys().isdisjoint(("device", "revealed"))  # identify and order count their questions
    if chosen is None or (chosen[0] is Distinguish and asked):
        raise ValueError(f"no results of {COMMANDS} (with --json)")
    whole = read(chosen[0], document)
    made = chosen[1](whole, pictures)
    produced = plain(whole.produced) if whole.produced else {}
    for section in made:
        section.facts += [(f"produced {key}", value) for key, value in produced.items() if key != "command"]
        section.repeat = produced.get("command", "")
    return made


def environment() -> jinja2.Environment:
    """The templates of the package. Everything inserted is escaped, except the package's own markup."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("mmaprobe.reports"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    templates.globals.update(
        picture_css=Markup(style_sheet()), program=f"mmaprobe {VERSION}", svg=Markup, counted=counted,
        page_css=Markup(_source(templates, "page.css")), page_js=Markup(_source(templates, "page.js")),
    )  # fmt: skip
    return templates


def _source(templates: jinja2.Environment, name: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def report(paths: Sequence[str], title: str = "") -> str:
    """The HTML page for files of results. Raises InputError."""
    pictures = Pictures()
    every = [section for path in paths for section in sections(path, pictures)]
    for number, section in enumerate(every, 1):
        section.id = f"result-{number}"
    template = environment().get_template("report.html")
    return template.render(title=title or "mmaprobe report", sections=every, pictured=pictures.count)
