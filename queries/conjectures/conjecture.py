"""A statement that is to be proved or refuted, and the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mmaprobe.queries.search.distinguish import Options

if TYPE_CHECKING:
    from mmaprobe.queries.certificates.certificate import Certificate

Found = TypeVar("Found", covariant=True)
AnyDocument = TypeVar("AnyDocument", covariant=True)


@dataclass(frozen=True)
class Decided(Generic[Found, AnyDocument]):
    """The outcome of a conjecture. `found`: what proves or refutes it; `document`: what `prove --json` prints;
    `certify`: writes the certificate into a folder, and raises CertificateError (with the reason) where there is none,
    and OutOfTimeError; `parts`: how many timeouts the certificate may take."""

    found: Found
    document: AnyDocument
    certify: Callable[[Path], Sequence[Certificate]]
    parts: int = 1


class Conjecture(Protocol[Found, AnyDocument]):
    """A statement that is to be decided."""

    def decide(self, options: Options, confirm: bool = True) -> Decided[Found, AnyDocument]:
        """Prove or refute the statement, or find that it stays open. `confirm`: another engine is asked about every
        lemma. Raises MmaprobeError for a statement that cannot be asked, and FaultError if an evaluation contradicts
        what was proved."""
