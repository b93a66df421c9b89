"""A certificate checked again, as a document."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.documents.check import CheckFinding, CheckFolder
from mmaprobe.queries.certificates.checker import checker_named
from mmaprobe.queries.checking.finding import Finding


def document_of(folder: object, findings: Sequence[Finding]) -> CheckFolder:
    """The document that `check` prints."""
    kinds = {finding.kind for finding in findings}
    return CheckFolder(
        folder=str(folder),
        verdict="fault" if "fault" in kinds else "incomplete" if "open" in kinds else "checked",
        checker=checker_named() if any(finding.place.endswith(".drat") for finding in findings) else None,
        findings=[CheckFinding(place=finding.place, says=finding.says, kind=finding.kind) for finding in findings],
    )
