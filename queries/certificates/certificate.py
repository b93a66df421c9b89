"""Certificates: files with which a proof can be checked without solvers.

The certificate of an unsatisfiable question has a proof of the whole question; a theorem's certificate has the log, and
proofs of the lemmas. `mmaprobe check` (queries/checking/folder.py) checks log and proofs.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from pysmt.fnode import FNode

from mmaprobe.documents.parts import ABSENT, plain
from mmaprobe.documents.prove import Certificate as Manifest
from mmaprobe.documents.prove import CertificatePiece
from mmaprobe.queries.certificates.bitblast import cnf_of_text
from mmaprobe.queries.certificates.checker import Check, check_files
from mmaprobe.queries.certificates.manifest import MANIFEST, README, Piece
from mmaprobe.queries.certificates.names import NAMES, SUFFIXES
from mmaprobe.queries.certificates.reading import digest, file_text
from mmaprobe.queries.certificates.sat import (
    CertificateError,
    FaultyProofError,
    OutOfTimeError,
    solver_version,
    time_left,
)
from mmaprobe.queries.certificates.statement import guide, plain_line, statement
from mmaprobe.queries.certificates.whole import WholeLemma, WholeProof
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.base.progress import Pieces, Wait

LEAF_SECONDS = 20.0  # the most for the proof of a lemma; a lemma without a proof rests on the answers of engines


Certificate = tuple[Path, Manifest]  # the folder, and the manifest


@dataclass(frozen=True)
class Leaf:
    """An unsatisfiable query. `states`: its lemma; `words`: the engines that answered "unsat"; `whole`: the formula and
    the proof, if composed already."""

    states: str
    query: Query
    words: tuple[str, ...] = ()
    whole: WholeProof | None = None


def whole_of_query(query: Query, timeout: float | None, memory: int = DEFAULT_MEMORY) -> WholeProof:
    """The formula and the proof of one query, whose last assertion is the goal. If the goal is that two terms differ,
    their equality is tried as a lemma. `timeout` is in seconds."""
    *assertions, goal = query.assertions
    return WholeProof(
        assertions, goal, [WholeLemma(*sides) for sides in _sides(goal)], timeout, memory, inputs=query.inputs
    )


def _sides(goal: FNode) -> list[tuple[FNode, FNode]]:
    if goal.is_not() and (goal.arg(0).is_equals() or goal.arg(0).is_iff()):
        return [goal.arg(0).args()]
    return []


def write_certificate(
    directory: Path,
    options: Options,
    texts: Mapping[str, str],
    leaves: Sequence[Leaf] = (),
) -> list[Certificate]:
    """Write the files of a certificate, check each proof, and write the manifest last. Returns the folder's one
    certificate.

    `texts`: by file name, the texts of the files with the statement. If time runs out, lemmas rest on engines' answers.
    After an error there is no certificate. Raises FaultyProofError if a proof is rejected, CertificateError if there is
    no checker or time ran out, and the errors of `write_whole`.
    """
    shown = Pieces(options.progress, "files of the certificate", len(leaves))
    writer = _Writer(directory, replace(options, progress=shown))
    writer.clear()
    try:
        pieces = []
        for number, leaf in enumerate(leaves, 1):
            shown.next()
            pieces.append(writer.leaf(f"lemma-{number:02d}", leaf))
        question, solver = statement(texts), solver_version()
        for name, text in texts.items():
            write_whole(directory / name, text)
        digests = {name: digest(directory / name) for name in texts}
        manifest = Manifest(question=question, solver=solver, pieces=pieces, sha256=digests)
        write_whole(directory / README, readme(texts, pieces))
        write_whole(directory / MANIFEST, json.dumps(manifest, default=plain, indent=1) + "\n")
    except BaseException:
        with suppress(OSError, MmaprobeError):
            writer.clear()
        raise
    return [(directory, manifest)]


class _Writer:
    def __init__(self, directory: Path, options: Options) -> None:
        self.directory, self.memory, self.progress = directory, options.memory, options.progress
        self.deadline = None if options.timeout is None else time.monotonic() + options.timeout

    def clear(self) -> None:
        """Make the folder, and remove files of an earlier attempt."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for pattern in (MANIFEST, *NAMES):
                for path in self.directory.glob(pattern):
                    path.unlink()
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(self.directory)) from None

    def remaining(self) -> float | None:
        return time_left(self.deadline, "the certificate")

    def leaf(self, name: str, leaf: Leaf) -> CertificatePiece:
        """Write a lemma, with a proof if one is found within LEAF_SECONDS. If no engine has answered the lemma, the
        proof has all remaining time, and OutOfTimeError is raised without one."""
        if leaf.whole is not None:
            return self.piece(name, leaf, leaf.whole)
        self.progress(Wait(leaf.states, LEAF_SECONDS))
        if leaf.query.logic == "QF_BV":
            with suppress(OutOfTimeError) if leaf.words else nullcontext():
                limits = [self.remaining(), LEAF_SECONDS if leaf.words else None]
                limit = min((one for one in limits if one is not None), default=None)
                return self.piece(name, leaf, whole_of_query(leaf.query, limit, self.memory))
        return self.piece(name, leaf, None)

    def piece(self, name: str, leaf: Leaf, whole: WholeProof | None) -> CertificatePiece:
        """Write one query, with the formula and the proof if there are any; check the proof, and return the manifest
        entry."""
        texts = {"smt2": leaf.query.text}
        if whole is not None:
            texts |= {"cnf": whole.cnf, "drat": whole.drat}
        for suffix in SUFFIXES:
            path = self.directory / f"{name}.{suffix}"
            if suffix in texts:
                write_whole(path, texts[suffix])
            else:
                path.unlink(missing_ok=True)  # the proof could not be checked in time
        if whole is not None:
            self.progress(Wait(f"checking {name}.drat", self.remaining()))
        return CertificatePiece(
            name=name,
            states=leaf.states,
            words=leaf.words,
            variables=ABSENT if whole is None else whole.formula.variables,
            clauses=ABSENT if whole is None else len(whole.formula.clauses),
            proof_lines=ABSENT if whole is None else len(whole.proof.lines),
            checker=ABSENT if whole is None else self._checked(name),
            sha256={f"{name}.{suffix}": digest(self.directory / f"{name}.{suffix}") for suffix in texts},
        )

    def _checked(self, name: str) -> str:
        """Check a proof. Returns the name of the checker that accepted it; raises FaultyProofError, OutOfTimeError and,
        where no checker could be asked, CertificateError."""
        if fault := formula_fault(self.directory, name):
            raise FaultyProofError(f"{name}.cnf: {fault}")
        check = check_piece(self.directory, name, self.remaining())
        if check.late:
            raise OutOfTimeError(f"{name}.drat could not be checked: {check.fault}")
        if not check.complete:
            raise CertificateError(f"{name}.drat: {check.fault}")
        if not check.valid:
            raise FaultyProofError(f"{name}.drat was rejected by the checker: {check.fault}")
        return check.checker


def check_piece(directory: Path, name: str, timeout: float | None = None) -> Check:
    """The outcome of checking the proof of the query `name` in a folder; `timeout` is in seconds."""
    return check_files(directory / f"{name}.cnf", directory / f"{name}.drat", timeout)


def formula_fault(directory: Path, name: str) -> str:
    """The difference between a written formula and the formula of its SMT-LIB query, in words; empty if there is
    none."""
    query, formula = (directory / f"{name}.{suffix}" for suffix in SUFFIXES[:2])
    same = cnf_of_text(file_text(query, "ascii")).text == file_text(formula, "ascii")
    return "" if same else f"is not the formula of {name}.smt2"


def readme(texts: Mapping[str, str], pieces: Sequence[CertificatePiece | Piece]) -> str:
    """The README of the folder: the statement in words, and how to check it. Raises the errors of reading the texts."""
    rows = [
        f"| {p.name} | {_cell(p.states)} | {p.clauses or '-'} | {p.proof_lines or 'none'} | "
        f"{_cell(', '.join(p.words)) or '-'} |"
        for p in pieces
    ]
    queries = _page("queries.md").strip().replace("ROWS", "\n".join(rows)) if rows else "No rule asks a solver."
    by = {"QUESTION": statement(texts).replace("\n", "\n- "), "QUERIES": queries}
    return re.sub("|".join(by), lambda match: by[match[0]], _page(guide(texts)))


def _page(name: str) -> str:
    return files("mmaprobe.queries.certificates").joinpath(name).read_text(encoding="utf-8")


def _cell(text: str) -> str:
    """A text as one cell of a table."""
    return plain_line(text).replace("|", "\\|")
