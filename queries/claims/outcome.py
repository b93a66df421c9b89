"""The outcome of a claim: the verdict, what it rests on, what was tried, its document and its certificates.

Each kind of claim has a class of outcomes of its own, in its file, which says what decides a claim of this kind, which
evaluation would contradict its verdict, what its document says, and which files its certificate has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Generic, Literal, TypeVar

from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.verify import Claim as Document
from mmaprobe.documents.verify import ClaimLemma
from mmaprobe.documents.verify import Step as Tried
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.hypotheses.unit_claims import CountClaim
from mmaprobe.queries.certificates.asked import lengths_of, of_claim
from mmaprobe.queries.certificates.certificate import Certificate
from mmaprobe.queries.certificates.claim_files import claim_texts
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.claims.vectors import ClaimInput
from mmaprobe.queries.kernel.theorem import Theorem, is_theorem
from mmaprobe.queries.properties.report import pair_proof
from mmaprobe.queries.search.contradiction import raise_contradiction
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Row
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.tactics.records import Lemma, Proof

Verdict = Literal["holds", "refuted", "unknown"]
Stated = TypeVar("Stated", bound=Statement)
Counted = TypeVar("Counted", bound=CountClaim)
Contradiction = tuple[str, str]  # an input, and what its evaluation gives


@dataclass(frozen=True)
class SearchStep:
    """One step of the search, in words, and the answers of the engines (none for a simulation)."""

    what: str
    answers: tuple[Answer, ...] = ()
    seconds: float = 0.0


@dataclass
class Outcome(Generic[Stated]):
    """The outcome of one claim. `lemmas`: the questions on whose "unsat" the verdict rests, each with the answer of
    another engine if it gave one; `theorem`: the theorem proved by rules."""

    claim: Stated
    lemmas: list[Lemma] = field(default_factory=list)
    asked: list[SearchStep] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    theorem: Theorem | None = None
    shares = ABSENT  # the proved and the reached share of the sum of magnitudes, in the document

    @property
    def verdict(self) -> Verdict:
        """The verdict, by the theorem alone."""
        return "holds" if self.proved else "unknown"

    @property
    def proved(self) -> bool:
        """Whether the theorem states what has to be proved for the claim."""
        return (
            self.theorem is not None and is_theorem(self.theorem) and (self.theorem.goal,) == of_claim(self.claim).goals
        )

    @property
    def as_expected(self) -> bool:
        return self.verdict == (self.claim.expect or "holds")

    def check(self, late: bool = False) -> None:
        """Raises FaultError if an evaluation contradicts the verdict. `late`: the time for the claim is over."""
        if self.proved and (found := self.contradiction(late)):
            raise_contradiction(f"{self.claim.id} {self.verdict}", *found)

    def contradiction(self, late: bool) -> Contradiction | None:
        """An evaluation that contradicts the theorem; None where no such evaluation is found."""
        return None

    @property
    def input(self) -> ClaimInput | None:
        """The input that decides, of a claim about algorithms."""
        return None

    def known(self, claim: Statement) -> list[Row]:
        """The inputs found, of any number of products, if another claim has inputs of the same formats."""
        return []

    @property
    def most(self) -> Fraction | None:
        """For a claim about algorithms that asks for a maximum: the value that is proved never to be exceeded."""
        return None

    @property
    def refuting(self) -> Proof | None:
        """The proof that refutes a claim about units, with the input on which they differ."""
        return None

    @property
    def document(self) -> Document:
        """The document about the claim."""
        claim = self.claim
        return Document(
            id=claim.id,
            about=claim.about,
            source=claim.source,
            says=claim.says,
            quantifier=claim.quantifier,
            claim=claim.text,
            parts=claim.part_texts,
            zeros_only=list(claim.zeros),
            expect=claim.expect,
            verdict=self.verdict,
            as_expected=self.as_expected,
            interrupted=self.interrupted,
            seconds=round(self.seconds, 3),
            lemmas=[
                ClaimLemma(name=lemma.name, answer=str(lemma.answer), confirmed_by=lemma.confirmed_by)
                for lemma in self.lemmas
            ],
            asked=[
                Tried(what=step.what, seconds=round(step.seconds, 3), answers=list(map(str, step.answers)))
                for step in self.asked
            ],
            vector=None if self.input is None else self.input.document,
            counterexample=None if self.refuting is None else pair_proof(self.refuting),
            shares=self.shares,
        )

    @property
    def certificates(self) -> int:
        """The most certificates that there are to write; 0 where an evaluation alone decides the claim."""
        return int(bool(self.lemmas) or self.theorem is not None)

    def certify(self, directory: Path, options: Options) -> list[Certificate]:
        """Write the certificate of the verdict; if there are several, each into a folder of its own. Raises
        CertificateError."""
        root = self.certified
        about = of_claim(self.claim, lengths_of(self.claim, root))
        return certify_theorems([root], about, claim_texts(self.claim), directory, options)

    @property
    def certified(self) -> Theorem:
        """The theorem that a certificate is about. Raises CertificateError where there is no theorem."""
        if self.theorem is None:
            raise CertificateError("only what is proved by lemmas has a certificate")
        return self.theorem


@dataclass
class CountOutcome(Outcome[Counted]):
    """The outcome of a claim about sums of a count of terms. `exceeds`: count -> whether an evaluated sum of this count
    of terms overflows, wraps or has an error beyond the bound."""

    exceeds: dict[int, bool] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict by evaluated sums and the theorem, which may be about one term less."""
        beyond = self.exceeds.get(self.claim.count)
        if self.claim.asked == "smallest":
            if beyond is False or self.exceeds.get(self.claim.proved):
                return "refuted"
            return "holds" if beyond and self.proved else "unknown"
        return "holds" if self.proved else "refuted" if beyond else "unknown"
