"""What a check finds at one place of a certificate."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, TypeVar

from hypotheses.claim import AnyClaim, build_claims
from queries.certificates.names import CLAIM
from queries.certificates.reading import file_text
from queries.certificates.statement import HELD, REFERENCES, with_references
from smtmodel.errors import ParameterError
from smtmodel.libraries import own_folder
from smtmodel.yamlfile import read_yaml

Params = ParamSpec("Params")
Kind = TypeVar("Kind", bound=AnyClaim)


@dataclass(frozen=True)
class Finding:
    """What was found at one place of a certificate. `word`: it holds if the engine named does not err; `open`: it could
    not be checked; `fault`: it was rejected."""

    place: str
    says: str
    kind: Literal["fine", "word", "open", "fault"] = "fine"


@dataclass(frozen=True)
class Contents:
    """What a manifest says is in a folder: files by name, queries, and folders with certificates."""

    files: Mapping[str, str]
    pieces: list[str]
    parts: list[str]


def of_file(
    name: str,
) -> Callable[
    [Callable[Concatenate[Path, Params], Iterator[Finding]]], Callable[Concatenate[Path, Params], Iterator[Finding]]
]:
    """What is found in a folder, most of it in the file of that name: whatever error reading its files raises, as of
    one that is no such document, is a fault there."""

    def read(
        function: Callable[Concatenate[Path, Params], Iterator[Finding]],
    ) -> Callable[Concatenate[Path, Params], Iterator[Finding]]:
        @functools.wraps(function)
        def found(folder: Path, /, *args: Params.args, **named: Params.kwargs) -> Iterator[Finding]:
            try:
                every = list(function(folder, *args, **named))
            except Exception as error:
                every = [Finding(name, f"cannot be read: {type(error).__name__}: {error}", "fault")]
            yield from every

        return found

    return read


def _copied(folder: Path, reference: str) -> str:
    """The reference of a unit of the folder as a file of this process's own, which nobody changes meanwhile, and which
    is named by its content. Raises ParameterError for a file that is not in the folder."""
    if HELD.fullmatch(reference):
        text = file_text(folder / reference)
        own = own_folder() / f"{sha256(text.encode()).hexdigest()}.yaml"
        own.write_text(text, encoding="utf-8")
        return str(own)
    if ".yaml" in reference:
        raise ParameterError(reference, f"{CLAIM} names a file that is not in the folder")
    return reference


def read_claim(folder: Path, kind: type[Kind]) -> Kind:
    """The claim that a certificate is about, of one kind; the units that it names by a path are files of the folder.
    Raises what reading it raises, TypeError."""
    file = read_yaml(file_text(folder / CLAIM), CLAIM)
    data = with_references(file.data, partial(_copied, folder))
    named = json.dumps([data.get(key) for key in (*REFERENCES, "parts")])
    if "cases" in data or ".yaml" in re.sub(re.escape(str(own_folder())) + "/[0-9a-f]{64}.yaml", "", named):
        raise ParameterError(CLAIM, "it has cases, or names a file in another way than a certificate does")
    (claim,) = build_claims(replace(file, data=data))
    if not isinstance(claim, kind):
        raise TypeError(f"{CLAIM} is not a {kind.__name__}")
    return claim
