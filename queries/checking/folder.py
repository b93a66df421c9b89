"""Checks a certificate again, from its folder alone: files, proofs of queries, and the log, whose rules are called
again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mmaprobe.queries.certificates.certificate import check_piece, formula_fault, readme
from mmaprobe.queries.certificates.claim_files import named_as_held
from mmaprobe.queries.certificates.manifest import MANIFEST, README, Manifest, Piece, read_manifest
from mmaprobe.queries.certificates.names import CLAIM, LOG, STATING, SUFFIXES, WITNESS
from mmaprobe.queries.certificates.place import is_ours
from mmaprobe.queries.certificates.reading import FolderTexts, digest, file_text, is_folder
from mmaprobe.queries.certificates.statement import statement, table_names
from mmaprobe.queries.checking.answers import ANSWERS
from mmaprobe.queries.checking.finding import Finding, reason
from mmaprobe.queries.solvers.contract import ENGINE_NAMES, Answer
from mmaprobe.smtmodel.base.errors import InputError

STATED = "stated"  # the place of a finding that is the statement in words
STRAY = "is no part of the certificate, and was not read"
DEEPEST = 5  # the most folders within one another
MEANING = {"smt2": "as written", "cnf": "the formula of the query", "drat": "verified"}
AskSolver = Callable[[str, str], Answer]  # (engine, SMT-LIB text) -> the engine's answer


def check_all(
    folder: Path, ask: AskSolver | None = None, timeout: float | None = None, depth: int = 0
) -> Iterator[Finding]:
    """The findings of `check_folder`; for a folder that holds folders, as for the cases of a claim, but no files of a
    certificate, the findings about all certificates in these folders. Anything else in the top folder is noted; in the
    folders inside it, a fault."""
    try:
        entries = sorted(folder.iterdir()) if os.path.isdir(folder) else []
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(folder)) from None
    below = [path for path in entries if is_folder(path) and not path.name.startswith(".")]
    ours = any(path.name == MANIFEST or is_ours(path.name) for path in entries)
    if not below or ours or depth == DEEPEST or (depth and len(below) < len(entries)):
        yield from check_folder(folder, ask, timeout)
        return
    for path in entries:
        if path in below:
            yield from _at_place(path.name, check_all(path, ask, timeout, depth + 1))
        else:
            yield Finding(path.name, STRAY)


def check_folder(folder: Path, ask: AskSolver | None = None, timeout: float | None = None) -> Iterator[Finding]:
    """All findings about a certificate; files that are not in its manifest, or have no plain name, are not read. `ask`:
    asks an engine, for lemmas without a proof. Raises InputError if there is no certificate."""
    for one in _findings(folder, ask, timeout):
        yield replace(one, says=named_as_held(one.says))


def _findings(folder: Path, ask: AskSolver | None, timeout: float | None) -> Iterator[Finding]:
    manifest = read_manifest(folder)
    yield from statement_findings(folder, manifest)
    yield from _strays(folder, manifest)
    yield from _digests(folder, manifest.sha256)
    names = [piece.name for piece in manifest.pieces]
    for piece in manifest.pieces:
        yield from _piece(folder, piece, ask, timeout)
    texts = FolderTexts(folder, {*manifest.sha256, *(f"{name}.smt2" for name in names)})
    findings = [one for name, answer in ANSWERS.items() if name in manifest.sha256 for one in answer(texts, names)]
    yield from findings
    if all(one.kind == "fine" for one in findings):
        unread = sorted(manifest.sha256.keys() - texts.read)
        yield from (Finding(name, "says nothing of what is stated: nothing reads it", "fault") for name in unread)
    if manifest.sha256.keys().isdisjoint(ANSWERS):
        yield Finding(MANIFEST, "nothing in the folder says what was proved", "fault")
    yield from _contradicting_files(manifest.sha256)


def _contradicting_files(files: Mapping[str, str]) -> Iterator[Finding]:
    """Faults where several files say what was proved: a reader might read one file, and the check prove another."""
    stating = [name for name in STATING if name in files]
    if len(stating) > 1 and stating != [WITNESS, CLAIM]:
        yield Finding(MANIFEST, f"{' and '.join(stating)} say what was proved: one thing is needed", "fault")
    if WITNESS in files and LOG in files:
        yield Finding(MANIFEST, f"{WITNESS} and {LOG}: an input refutes, and a log proves", "fault")


def statement_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """The statement of the files in words, with the names of its units, and whether manifest and README agree."""
    texts = FolderTexts(folder, manifest.sha256.keys())
    if not any(name in texts for name in ANSWERS):
        return
    try:
        question = statement(texts)
        page = readme(texts, manifest.pieces)
        names = list(table_names(texts))
    except Exception as error:  # a file of another kind raises any error
        yield Finding(MANIFEST, f"what is stated cannot be read: {reason(error)}", "fault")
        return
    yield from (Finding(STATED, line) for line in question.splitlines())
    yield from (Finding(name, says) for name, says in names)
    if manifest.question != question:
        yield Finding(MANIFEST, "its question is not what the files state", "fault")
    try:
        if file_text(folder / README) != page:
            yield Finding(README, "does not say what the files state", "fault")
    except (OSError, UnicodeDecodeError) as error:
        yield Finding(README, f"cannot be read: {reason(error)}", "fault")


def _strays(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """The files and folders that are not in the manifest: nothing in them is read, and a name that a certificate's file
    could have is a fault, so that nobody takes the file for part of this certificate."""
    for path in sorted(folder.iterdir()):
        if path.name in manifest.files:
            continue
        if is_ours(path.name):
            yield Finding(path.name, "is not in the manifest", "fault")
        else:
            yield Finding(path.name, STRAY)


def _at_place(name: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings about a certificate, at its place in the folder; a missing certificate is a finding, too."""
    try:
        for finding in findings:
            yield replace(finding, place=f"{name}/{finding.place}")
    except InputError as error:
        yield Finding(name, str(error), "fault")


def _digests(folder: Path, digests: Mapping[str, str]) -> Iterator[Finding]:
    for name, expected in digests.items():
        try:
            same = digest(folder / name) == expected
        except OSError as error:
            yield Finding(name, str(error.strerror), "fault")
            continue
        yield Finding(name, "as written") if same else Finding(name, "changed since it was written", "fault")


def _piece(folder: Path, piece: Piece, ask: AskSolver | None, timeout: float | None) -> Iterator[Finding]:
    """The findings about a query: its proof, or the present answers of engines."""
    name, digests = piece.name, piece.sha256
    written = {finding.place: finding for finding in _digests(folder, digests)}
    suffixes = SUFFIXES if len(digests) > 1 else SUFFIXES[:1]
    for suffix in suffixes:
        file = f"{name}.{suffix}"
        finding = written.get(file, Finding(file, "is not in the manifest", "fault"))
        if finding.kind == "fine" and suffix != "smt2":
            fault, complete = _fault(folder, name, suffix, timeout)
            finding = Finding(file, fault or MEANING[suffix], "fine" if not fault else "fault" if complete else "open")
        yield finding
    yield from (Finding(file, "is no file of its query", "fault") for file in
                sorted(digests.keys() - {f"{name}.{suffix}" for suffix in suffixes}))  # fmt: skip
    if len(suffixes) == 1:
        yield _words(folder, f"{name}.smt2", piece.words, ask)


def _fault(folder: Path, name: str, suffix: str, timeout: float | None) -> tuple[str, bool]:
    """The fault of a formula or a proof, empty if there is none; and whether all of it was checked."""
    if suffix == "cnf":
        try:
            return formula_fault(folder, name), True
        except Exception as error:  # pysmt's parser raises many kinds of errors
            return f"cannot be read beside {name}.smt2: {reason(error)}", True
    outcome = check_piece(folder, name, timeout)
    return outcome.fault, outcome.complete


def _words(folder: Path, query: str, words: Sequence[str], ask: AskSolver | None) -> Finding:
    """The present answers of the named engines to a query."""
    named = [engine for engine in ENGINE_NAMES if any(word.split()[:1] == [engine] for word in words)]
    if ask is None or not named:
        return Finding(query, f"no proof; said by {', '.join(words) or 'nobody'}; not asked again", "open")
    try:
        text = file_text(folder / query)
    except (OSError, UnicodeDecodeError) as error:
        return Finding(query, f"cannot be read: {reason(error)}", "fault")
    answers = [ask(engine, text) for engine in named]
    answers_text = "; ".join(map(str, answers))
    if any(answer.status == "sat" for answer in answers):
        return Finding(query, f"has a model: {answers_text}", "fault")
    if all(answer.status != "unsat" for answer in answers):
        return Finding(query, f"no proof, and no answer: {answers_text}", "open")
    return Finding(query, f"no proof; by the word of the engines alone: {answers_text}", "word")
