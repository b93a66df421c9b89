"""What a check finds at one place of a certificate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, TypeVar

from hypotheses.claim import AnyClaim, build_claims
from queries.certificates.certificate import CLAIM
from queries.certificates.reading import file_text
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


def read_claim(folder: Path, kind: type[Kind]) -> Kind:
    """The claim that a certificate is about, of one kind. Raises what reading it raises, TypeError."""
    (claim,) = build_claims(read_yaml(file_text(folder / CLAIM), CLAIM))
    if not isinstance(claim, kind):
        raise TypeError(f"{CLAIM} is not a {kind.__name__}")
    return claim
