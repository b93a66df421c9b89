"""What commands say of the certificates that they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.options import progress, say
from smtmodel.errors import MmaprobeError
from smtmodel.wording import counted

if TYPE_CHECKING:
    from queries.certificates.certificate import Certificate


def attach(document: dict[str, Any], write: Callable[[], Iterable[Certificate]]) -> MmaprobeError | None:
    """Print what the certificates hold that are written, and put them into a document. Returns the error if there is
    none: the proof stays valid, and is printed before `check_attached` raises that."""
    try:
        document["certificates"] = [_shown(*certificate) for certificate in write()]
    except MmaprobeError as error:
        document["certificate_error"] = str(error)
        return error
    return None


def check_attached(failure: MmaprobeError | None) -> None:
    """Raises the error for which a proof has no certificate, if there is one."""
    if failure is not None:
        say("the proof above is valid, but its certificate was not written:")
        raise failure


def _shown(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    progress("")
    pieces = manifest["pieces"]
    proofs = [piece for piece in pieces if "clauses" in piece]
    whole = [piece for piece in proofs if piece["name"] == "whole"]
    parts = manifest["parts"]
    text = counted(len(parts), "part") if parts else "what to compare, and no proof"
    text = counted(len(proofs), "proof") if pieces else text
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
