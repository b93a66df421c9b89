"""The writing of certificates by commands, and the text about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mmaprobe.cli.choice import FileName
from mmaprobe.cli.options import print_json, progress, say
from mmaprobe.documents.parts import ABSENT, Document, Part
from mmaprobe.smtmodel.base.errors import MmaprobeError, OutOfTimeError
from mmaprobe.smtmodel.base.interrupts import TimeUp, allow
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.prove import Certificate as Manifest
    from mmaprobe.queries.certificates.certificate import Certificate

CERTIFICATE = click.option(
    "--certificate", type=FileName(file_okay=False), metavar="DIR",
    help="Write a certificate (the proof, with checked proofs of its queries, or the input that refutes the statement) "
    "into this folder: a new one, an empty one, or one with a certificate. `mmaprobe check` checks it again.",
)  # fmt: skip

Attached = TypeVar("Attached", bound=Part)  # a document with certificates

#: for claims that nothing decides, or that are only evaluated
NO_CERTIFICATE = "no certificate is written for such a verdict"


def attach(
    document: Attached, folder: Path, write: Callable[[Path], Iterable[Certificate]], seconds: float | None
) -> tuple[Attached, MmaprobeError | None]:
    """Write certificates into a folder by `write` within `seconds` (None: each part has a limit of its own), print what
    they contain, and return the document with them. An error is returned, not raised, as the proof is valid without a
    certificate: the document is printed first, then `check_attached` raises the error."""
    from mmaprobe.queries.certificates.place import written_apart

    allow(seconds)
    try:
        with written_apart(folder) as new:
            written = [(folder / path.relative_to(new), manifest) for path, manifest in write(new)]
        shown: Any = {"certificates": [_shown(*certificate) for certificate in written]}
        return replace(document, **shown), None
    except MmaprobeError as error:
        failure = error
    except TimeUp:
        failure = OutOfTimeError("time ran out for the certificate")
    failed: Any = {"certificate_error": str(failure)}
    return replace(document, **failed), failure


def finish(
    document: Document, folder: Path | None, write: Callable[[Path], Iterable[Certificate]], seconds: float | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Write certificates as `attach` does, if there is a folder for them, and then print the document, if JSON is asked
    for. Raises the error for which the certificates were not written."""
    failure: MmaprobeError | None = None
    if folder is not None:
        document, failure = attach(document, folder, write, seconds)
    if as_json:
        print_json(document)
    check_attached(failure)


def check_attached(failure: MmaprobeError | None) -> None:
    """Raises the error for which a certificate was not written, if there was one."""
    if failure is not None:
        from mmaprobe.queries.certificates.sat import CertificateError

        # a CertificateError may say that nothing was proved, or that a proof was rejected
        valid = not isinstance(failure, CertificateError)
        say(f"{'the proof above is valid, but its' if valid else 'the'} certificate was not written:")
        if isinstance(failure, OutOfTimeError):
            say("the proofs in a certificate take several times as long as those above; give a longer --timeout")
        raise failure


def _shown(folder: Path, manifest: Manifest) -> Manifest:
    progress("")
    pieces = manifest.pieces
    proofs = [piece for piece in pieces if piece.clauses is not ABSENT]
    text = "a log of rules, which `mmaprobe check` calls again"
    if "witness.json" in manifest.sha256:
        text = "an input, which `mmaprobe check` evaluates again"
    if pieces:
        text += f", with {counted(len(proofs), 'proof')}"
    if proofs:
        lines = sum(piece.proof_lines for piece in proofs)
        text += f" of {counted(lines, 'line')}, accepted by the checker ({proofs[0].checker})"
    words = counted(len(pieces) - len(proofs), "lemma")
    text += f"; {words} without such a proof: solvers alone answer for them" if len(proofs) < len(pieces) else ""
    say(f"certificate: {folder}: {text}")
    return replace(manifest, folder=str(folder))
