"""The document of `check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mmaprobe.documents.parts import Document, Part

Checked = Literal["checked", "fault", "incomplete"]


class CheckFinding(Part):
    """What was found at one place of a certificate."""

    place: str  #: the file, and the place in the file; for the statement in words, `stated`
    says: str  #: what was found
    kind: Literal["fine", "word", "open", "fault"]
    """fine: checked; word: accepted on the answers of the engines named; open: not checked; fault: rejected"""


class CheckFolder(Document):
    """A certificate, checked again."""

    folder: str  #: the path of the folder
    verdict: Checked
    """fault: a part was rejected; incomplete: a part could not be checked"""
    checker: str | None  #: the program that checked the proofs; null where there is no proof, or no such program
    findings: Sequence[CheckFinding]  #: one for each file, proof and theorem, in order
