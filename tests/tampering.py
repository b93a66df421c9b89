"""One thing at a time changed in a certificate, whatever it is made of; and digests that fit what was changed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mmaprobe.queries.certificates.certificate import readme
from mmaprobe.queries.certificates.manifest import Piece
from mmaprobe.queries.certificates.reading import FolderTexts, digest
from mmaprobe.queries.certificates.statement import statement
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.smtmodel.base.errors import InputError

#: what manifests say for people, and what programs do not rely on
TOLD = {"solver", "variables", "checker"}
#: what unit and plan files say for people
PROSE = ("unit:", "plan:", "about:", "source:", "evidence:", "says:", "expect:")


def changed(value: Any) -> Iterator[Any]:
    """Values like one, and not it."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, str):
        yield value + "x"
    elif value is None:
        yield 0
    elif isinstance(value, list) and value:
        yield value[1:]


def documents(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place of a document with every other value that it is given."""
    for other in changed(value):
        yield path, other
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from documents(inner, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value in one place."""
    if not path:
        return value
    found = inner = copy.deepcopy(document)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return found


def lines(text: str) -> Iterator[tuple[str, str]]:
    """A YAML file with each line of it left out, and with each number in it one larger; with what was changed."""
    rows, is_prose = text.splitlines(), False
    for at, row in enumerate(rows):
        is_prose = row.startswith(PROSE) or (is_prose and row.startswith(" "))  # a long text goes on in further lines
        if is_prose or not row.strip():
            continue
        yield f"line {at + 1} left out", "\n".join([*rows[:at], *rows[at + 1 :], ""])
        for number in re.finditer(r"(?<![\w.])\d+\b", row):
            other = row[: number.start()] + str(int(number[0]) + 1) + row[number.end() :]
            yield f"line {at + 1}: {other.strip()}", "\n".join([*rows[:at], other, *rows[at + 1 :], ""])


def fitted(folder: Path) -> None:
    """Make the manifest and the README fit the files, as somebody would who wants them to pass."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for digests in [manifest["sha256"], *(piece["sha256"] for piece in manifest["pieces"])]:
        digests.update({name: digest(folder / name) for name in digests if (folder / name).exists()})
    texts = FolderTexts(folder, manifest["sha256"].keys())
    with suppress(Exception):  # files that cannot be read state nothing
        manifest["question"] = statement(texts)
        pieces = [Piece.model_validate_json(json.dumps(piece)) for piece in manifest["pieces"]]
        (folder / "README.md").write_text(readme(texts, pieces))
    path.write_text(json.dumps(manifest))


def accepted(folder: Path) -> bool:
    """Whether a certificate passes."""
    try:
        return all(found.kind == "fine" for found in check_folder(folder))
    except InputError:
        return False


def tampered(folder: Path, names: str = "*.json", step: int = 1) -> Iterator[str]:
    """The changes after which a certificate still passes, of every `step`-th place of the files of these names."""
    for path in sorted(folder.rglob(names)):
        text, whole = path.read_text(), path.name == "manifest.json"
        if path.suffix == ".json":
            document = json.loads(text)
            every = [(f"{where} is {value}", json.dumps(put(document, where, value)))
                     for where, value in documents(document) if not (whole and TOLD & set(where))]  # fmt: skip
        else:
            every = list(lines(text))
        kept = {one: one.read_text() for name in ("manifest.json", "README.md") for one in folder.rglob(name)}
        for what, other in every[::step]:
            path.write_text(other)
            if not whole:
                fitted(folder)
            if accepted(folder):
                yield f"{path.relative_to(folder)}: {what}"
            path.write_text(text)
            for one, before in kept.items():
                one.write_text(before)
