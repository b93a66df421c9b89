"""Certificates: files by which anyone can check again, without our solvers, that a question has no answer.

`python -P -m queries.certificates.certificate DIRECTORY` checks every file of a certificate again.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from pysmt.fnode import FNode

from queries.certificates.bitblast import Cnf, cnf_of_text
from queries.certificates.checker import Check, check, check_files
from queries.certificates.sat import (
    SOLVER,
    CertificateError,
    FaultyProofError,
    OutOfTimeError,
    SatSolver,
    proof_text,
    solver_version,
)
from queries.certificates.whole import Whole, WholeLemma
from queries.solvers.contract import DEFAULT_MEMORY
from queries.solvers.smtlib import Query
from smtmodel.errors import InputError, MmaprobeError
from smtmodel.files import write_whole
from smtmodel.progress import Pieces, Wait

__all__ = [
    "CertificateError",
    "OutOfTimeError",
    "Whole",
    "WholeLemma",
    "check",
    "recheck",
    "refute",
    "whole_of_query",
    "write_certificate",
]

SCHEMA = 1
MANIFEST = "manifest.json"
SUFFIXES = ("smt2", "cnf", "drat")


class ProvedLemma(Protocol):
    """A lemma of a staged proof."""

    @property
    def name(self) -> str: ...
    @property
    def query(self) -> Query: ...


def refute(cnf: Cnf, timeout: float | None = None, memory: int = DEFAULT_MEMORY, solver: str = SOLVER) -> str:
    """A DRAT proof that a formula cannot be met. Raises FaultyProofError if it can, OutOfTimeError."""
    with SatSolver(solver, memory) as process:
        steps = process.refute(cnf.clauses, timeout)
    if steps is None:
        raise FaultyProofError("the formula can be met")
    return proof_text(steps)


def whole_of_query(query: Query, timeout: float | None = None, memory: int = DEFAULT_MEMORY) -> Whole:
    """The formula and proof of one query, of which the last assertion is the goal; if that says that two terms differ,
    their equality is tried as a lemma."""
    *assertions, goal = query.assertions
    return Whole(assertions, goal, [(*sides, ()) for sides in _sides(goal)], timeout, memory, inputs=query.inputs)


def _sides(goal: FNode) -> list[tuple[FNode, FNode]]:
    if goal.is_not() and (goal.arg(0).is_equals() or goal.arg(0).is_iff()):
        return [goal.arg(0).args()]
    return []


def write_certificate(
    directory: Path,
    lemmas: Sequence[ProvedLemma],
    whole: Whole,
    question: str = "",
    timeout: float | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Write the files of a certificate, check each proof, and give the manifest, which is written last.

    Whatever goes wrong leaves no certificate there. Raises FaultyProofError if a proof does not stand, OutOfTimeError,
    and what `write_whole` does.
    """
    shown = Pieces(progress, "files of the certificate", len(lemmas) + 1)
    writer = _Writer(directory, timeout, memory, shown)
    writer.clear()
    try:
        return _written(writer, lemmas, whole, question, shown)
    except BaseException:
        with suppress(OSError, MmaprobeError):
            writer.clear()
        raise


def _written(
    writer: _Writer, lemmas: Sequence[ProvedLemma], whole: Whole, question: str, shown: Pieces
) -> dict[str, Any]:
    pieces = [writer.piece("whole", whole, "the whole question")]
    for number, lemma in enumerate(lemmas, 1):
        name = f"lemma-{number:02d}"
        shown.next()
        shown(Wait(lemma.name, writer.remaining()))
        piece = whole_of_query(lemma.query, writer.remaining(), writer.memory)
        pieces.append(writer.piece(name, piece, lemma.name))
    manifest = {
        "schema": SCHEMA,
        "question": question,
        "solver": solver_version(whole.solver.solver),
        "skipped_lemmas": [position + 1 for position in whole.skipped],
        "pieces": pieces,
    }
    write_whole(writer.directory / "README.md", _readme(question, pieces))
    write_whole(writer.directory / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return manifest


class _Writer:
    def __init__(self, directory: Path, timeout: float | None, memory: int, progress: Callable[[str], None]) -> None:
        self.directory, self.memory, self.progress = directory, memory, progress
        self.deadline = None if timeout is None else time.monotonic() + timeout

    def clear(self) -> None:
        """Make the folder, and remove the files of an earlier certificate."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for pattern in (MANIFEST, *(f"{stem}.{end}" for stem in ("whole", "lemma-*") for end in SUFFIXES)):
                for path in self.directory.glob(pattern):
                    path.unlink()
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(self.directory)) from None

    def remaining(self) -> float | None:
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTimeError("time ran out for the certificate")
        return left

    def piece(self, name: str, whole: Whole, states: str) -> dict[str, Any]:
        """Write one query with its formula and proof, check the proof, and describe all three."""
        texts = {"smt2": whole.query.text, "cnf": whole.cnf, "drat": whole.drat}
        for suffix, text in texts.items():
            write_whole(self.directory / f"{name}.{suffix}", text)
        self.progress(Wait(f"checking {name}.drat", self.remaining()))
        if fault := _formula_fault(self.directory, name):
            raise FaultyProofError(f"{name}.cnf: {fault}")
        found = _check_piece(self.directory, name, self.remaining())
        if not found.complete:
            raise OutOfTimeError(f"{name}.drat could not be checked: {found.fault}")
        if not found.valid:
            raise FaultyProofError(f"{name}.drat does not stand: {found.fault}")
        return {
            "name": name,
            "states": states,
            "variables": whole.formula.variables,
            "clauses": len(whole.formula.clauses),
            "proof_lines": len(whole.proof.lines),
            "checker": found.engine,
            "sha256": {f"{name}.{suffix}": _digest(self.directory / f"{name}.{suffix}") for suffix in SUFFIXES},
        }


def _check_piece(directory: Path, name: str, timeout: float | None = None) -> Check:
    return check_files(directory / f"{name}.cnf", directory / f"{name}.drat", timeout)


def _formula_fault(directory: Path, name: str) -> str:
    """Whether the formula is the one that the query in SMT-LIB gives."""
    query, formula = (directory / f"{name}.{suffix}" for suffix in SUFFIXES[:2])
    same = cnf_of_text(query.read_text(encoding="ascii")).text == formula.read_text(encoding="ascii")
    return "" if same else f"is not the formula of {name}.smt2"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _readme(question: str, pieces: Sequence[dict[str, Any]]) -> str:
    rows = [f"| {p['name']} | {p['states']} | {p['variables']} | {p['clauses']} | {p['proof_lines']} |" for p in pieces]
    text = files("queries.certificates").joinpath("certificate.md").read_text(encoding="utf-8")
    return text.replace("QUESTION", question or "see whole.smt2").replace("ROWS", "\n".join(rows))


def recheck(directory: Path, timeout: float | None = None, report: Callable[[str], None] = lambda text: None) -> bool:
    """Whether every file of a certificate is as it was written and every proof stands; reports one line a file."""
    try:
        pieces = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["pieces"]
        named = [(piece["name"], dict(piece["sha256"])) for piece in pieces]
    except (OSError, ValueError, KeyError, TypeError) as error:
        report(f"manifest.json: cannot be read: {error}")
        return False
    fine = any(name == "whole" for name, _ in named)
    if not fine:
        report("manifest.json: no proof of the whole question")
    for name, digests in named:
        for suffix in SUFFIXES:
            fault = _file_fault(directory, f"{name}.{suffix}", digests, timeout)
            report(f"{name}.{suffix}: {fault or _MEANING[suffix]}")
            fine = fine and not fault
    return fine


_MEANING = {"smt2": "as written", "cnf": "the formula of the query", "drat": "verified"}


def _file_fault(directory: Path, name: str, digests: dict[str, str], timeout: float | None) -> str:
    path = directory / name
    try:
        if _digest(path) != digests.get(name):
            return "changed since it was written"
    except OSError as error:
        return str(error.strerror)
    if path.suffix == ".cnf":
        return _formula_fault(directory, path.stem)
    return _check_piece(directory, path.stem, timeout).fault if path.suffix == ".drat" else ""


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -P -m queries.certificates.certificate DIRECTORY", file=sys.stderr)
        return 2
    return 0 if recheck(Path(arguments[0]), report=print) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
