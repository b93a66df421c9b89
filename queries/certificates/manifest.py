"""The manifest of a certificate: a list of what its folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, StrictInt

from mmaprobe.documents.prove import Certificate
from mmaprobe.queries.certificates.reading import json_of
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile, validate

MANIFEST, README = "manifest.json", "README.md"

#: a plain name of a file or folder
Name = Annotated[str, Field(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\z")]
Digests = dict[Name, Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]]


Kind = TypeVar("Kind", bound="Manifest")


class Piece(Strict):
    """A query: the lemma that it states, the engines that answered it, and the sizes of its formula and proof."""

    name: Name
    states: str
    words: tuple[str, ...]
    variables: StrictInt | None = None
    clauses: StrictInt | None = None
    proof_lines: StrictInt | None = None
    checker: str = ""
    sha256: Digests


class Manifest(Strict):
    """The statement (`question`), the files, and the queries."""

    schema_: StrictInt = Field(alias="schema")
    question: str
    solver: str
    pieces: tuple[Piece, ...]
    sha256: Digests

    @property
    def files(self) -> set[str]:
        """The names of all files that the folder holds."""
        named = {name for piece in self.pieces for name in piece.sha256}
        return named | self.sha256.keys() | {MANIFEST, README}


class AnyManifest(Manifest):
    """A manifest of this schema or an earlier schema; the folder of an earlier manifest may hold certificates as
    `parts`."""

    parts: tuple[Name, ...] = ()
    skipped_lemmas: tuple[StrictInt, ...] = ()


def read_manifest(folder: Path) -> Manifest:
    """The manifest in a folder. Raises InputError for a folder without a manifest, a malformed manifest, or a manifest
    of another schema."""
    return _read(folder, Manifest)


def read_any_manifest(folder: Path) -> AnyManifest:
    """The manifest in a folder, of this schema or of an earlier schema. Raises InputError for a folder without a
    manifest, or a malformed manifest."""
    return _read(folder, AnyManifest)


def _read(folder: Path, kind: type[Kind]) -> Kind:
    path = folder / MANIFEST
    try:
        data = json_of(path)
    except OSError as error:
        if not folder.is_dir():
            raise InputError("no such folder", str(folder)) from None
        raise InputError(f"not a folder that --certificate wrote: {MANIFEST}: {error.strerror}", str(folder)) from None
    except ValueError as error:
        raise InputError(f"not the manifest of a certificate: {error}", str(path)) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, int) and schema != Certificate.schema and kind is Manifest:
        raise InputError(f"of schema {schema}; this version reads {Certificate.schema}", str(path))
    return validate(YamlFile(str(path), data), kind)
