"""What commands say of the certificates that they write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.options import progress, say
from smtmodel.errors import MmaprobeError
from smtmodel.wording import counted

#: what is said of a proof before the error that says why it has no certificate
PROVED_WITHOUT = "the proof above is valid, but its certificate was not written:"


def attach(document: dict[str, Any], write: Callable[[], list[dict[str, Any]]]) -> MmaprobeError | None:
    """Put the certificates that are written into a document. Returns the error if there is none: the proof stays valid,
    and is printed before that is raised."""
    try:
        document["certificates"] = write()
    except MmaprobeError as error:
        document["certificate_error"] = str(error)
        return error
    return None


def show_certificate(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Print what a certificate holds, and give it as a part of a document."""
    progress("")
    pieces = manifest["pieces"]
    proofs = [piece for piece in pieces if "clauses" in piece]
    whole = [piece for piece in proofs if piece["name"] == "whole"]
    parts = manifest["parts"]
    text = counted(len(parts), "part") if parts and not pieces else counted(len(proofs), "proof")
    if proofs:
        text += f" accepted by the checker ({proofs[0]['checker']})"
    text += "".join(
        f"; that of the whole question has {counted(p['clauses'], 'clause')} and {counted(p['proof_lines'], 'line')}"
        for p in whole
    )
    words = counted(len(pieces) - len(proofs), "lemma")
    text += f"; {words} without such a proof: solvers alone answer for them" if len(proofs) < len(pieces) else ""
    say(f"certificate: {folder}: {text}")
    return {"folder": str(folder), **manifest}
