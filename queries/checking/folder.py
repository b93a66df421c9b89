"""Checks a certificate again, from its folder alone: files, proofs, a tree of theorems, and what lemmas are about.

A tree is checked by queries/certificates/tree.py and a proof by queries/certificates/checker.py, which share no code
with what found them. That the unit of a tree is the one of `unit.yaml`, and a lemma about the datapath is what that
datapath gives, is checked by making both again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from queries.certificates.certificate import (
    MANIFEST,
    SCHEMA,
    SUFFIXES,
    check_piece,
    digest,
    formula_fault,
)
from queries.checking.answers import ANSWERS
from queries.checking.finding import Contents, Finding
from queries.solvers.contract import ENGINE_NAMES, Answer
from smtmodel.errors import InputError

MEANING = {"smt2": "as written", "cnf": "the formula of the query", "drat": "verified"}
AskSolver = Callable[[str, str], Answer]  # what an engine says of a text in SMT-LIB


def check_all(folder: Path, ask: AskSolver | None = None, timeout: float | None = None) -> Iterator[Finding]:
    """As `check_folder`; of a folder that holds folders alone, as the cases of a claim are written, the findings of all
    certificates in it."""
    below = sorted(folder.iterdir()) if folder.is_dir() else []
    if not below or not all(one.is_dir() for one in below):
        yield from check_folder(folder, ask, timeout)
        return
    for one in below:
        yield from _placed(one.name, check_all(one, ask, timeout))


def check_folder(folder: Path, ask: AskSolver | None = None, timeout: float | None = None) -> Iterator[Finding]:
    """All findings of a certificate. `ask`: for lemmas without a proof. Raises InputError if there is none."""
    manifest = _manifest(folder)
    yield from _digests(folder, manifest["sha256"])
    names = [piece["name"] for piece in manifest["pieces"]]
    for part in manifest["parts"]:
        yield from _part(folder, str(part), ask, timeout)
    for piece in manifest["pieces"]:
        yield from _piece(folder, piece, ask, timeout)
    contents = Contents(manifest["sha256"], names, manifest["parts"])
    for name, answer in ANSWERS.items():
        if name in contents.files:
            yield from answer(folder, contents)
        elif (folder / name).exists():
            yield Finding(name, "is not in the manifest", "fault")
    if contents.files.keys().isdisjoint(ANSWERS):
        yield Finding(MANIFEST, "nothing in the folder says what was proved", "fault")


def _part(folder: Path, name: str, ask: AskSolver | None, timeout: float | None) -> Iterator[Finding]:
    """A certificate that is part of another."""
    if name != Path(name).name or name == "..":
        yield Finding(MANIFEST, f"{name!r} is not a folder in it", "fault")
        return
    yield from _placed(name, check_folder(folder / name, ask, timeout))


def _placed(name: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """What is found of a certificate, at its place in the folder; that there is none is found as well."""
    try:
        for found in findings:
            yield replace(found, place=f"{name}/{found.place}")
    except InputError as error:
        yield Finding(name, str(error), "fault")


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest, as far as it is used. Raises InputError."""
    if not folder.exists():
        raise InputError("no such folder", str(folder))
    try:
        found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if found["schema"] != SCHEMA:
            raise InputError(f"of schema {found['schema']}; this version reads {SCHEMA}", str(folder / MANIFEST))
        for piece in found["pieces"]:
            _ = str(piece["name"]), list(piece["words"]), dict(piece["sha256"])
        _ = dict(found["sha256"]), list(found["parts"])
    except OSError as error:
        raise InputError(f"not a folder that --certificate wrote: {MANIFEST}: {error.strerror}", str(folder)) from None
    except KeyError as error:
        raise InputError(f"not the manifest of a certificate: it has no {error}", str(folder / MANIFEST)) from None
    except (ValueError, TypeError) as error:
        raise InputError(f"not the manifest of a certificate: {error}", str(folder / MANIFEST)) from None
    return found


def _digests(folder: Path, digests: Mapping[str, str]) -> Iterator[Finding]:
    for name, expected in digests.items():
        try:
            same = digest(folder / name) == expected
        except OSError as error:
            yield Finding(name, str(error.strerror), "fault")
            continue
        yield Finding(name, "as written") if same else Finding(name, "changed since it was written", "fault")


def _piece(folder: Path, piece: Mapping[str, Any], ask: AskSolver | None, timeout: float | None) -> Iterator[Finding]:
    """A query, and its proof; or what engines say of it now."""
    name, digests = piece["name"], piece["sha256"]
    written = {found.place: found for found in _digests(folder, digests)}
    suffixes = SUFFIXES if len(digests) > 1 or name == "whole" else SUFFIXES[:1]
    for suffix in suffixes:
        file = f"{name}.{suffix}"
        found = written.get(file, Finding(file, "is not in the manifest", "fault"))
        if found.kind == "fine" and suffix != "smt2":
            fault, complete = _fault(folder, name, suffix, timeout)
            found = Finding(file, fault or MEANING[suffix], "fine" if not fault else "fault" if complete else "open")
        yield found
    if len(suffixes) == 1:
        yield _words(folder / f"{name}.smt2", piece["words"], ask)


def _fault(folder: Path, name: str, suffix: str, timeout: float | None) -> tuple[str, bool]:
    """What is wrong with a formula or a proof, and whether all of it was checked."""
    if suffix == "cnf":
        try:
            return formula_fault(folder, name), True
        except Exception as error:  # the parser of another library says in many ways that it cannot read a file
            return f"cannot be read beside {name}.smt2: {type(error).__name__}", True
    found = check_piece(folder, name, timeout)
    return found.fault, found.complete


def _words(query: Path, words: list[str], ask: AskSolver | None) -> Finding:
    """What the engines that are named say of a query now."""
    named = [engine for engine in ENGINE_NAMES if any(word.split()[:1] == [engine] for word in words)]
    if ask is None or not named or not query.exists():
        return Finding(query.name, f"no proof; said by {', '.join(words) or 'nobody'}; not asked again", "open")
    answers = [ask(engine, query.read_text(encoding="utf-8")) for engine in named]
    said = "; ".join(map(str, answers))
    if any(answer.status == "sat" for answer in answers):
        return Finding(query.name, f"has a model: {said}", "fault")
    if all(answer.status != "unsat" for answer in answers):
        return Finding(query.name, f"no proof, and no answer: {said}", "open")
    return Finding(query.name, f"no proof; by the word of the engines alone: {said}", "word")
