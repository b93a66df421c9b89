"""The outcome of a claim: the verdict, the input that decided or the lemmas, and what was tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from mmaprobe.hypotheses.claim import AnyClaim, Claim
from mmaprobe.hypotheses.unit_claims import BoundClaim, ClassicalClaim, OverflowClaim, PropertyClaim, WrapClaim
from mmaprobe.queries.certificates.asked import claimed
from mmaprobe.queries.kernel.bounds.shares import Apart
from mmaprobe.queries.kernel.bounds.unit_shares import compared_parts
from mmaprobe.queries.kernel.theorem import Theorem, is_theorem
from mmaprobe.queries.properties.proving import verdict_on
from mmaprobe.queries.search.witness import Row
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.tactics.records import Lemma, Proof
from mmaprobe.smtmodel.algorithms.assertion import Quantifier

Verdict = Literal["holds", "refuted", "unknown"]
BATCH = 4096  # inputs simulated at a time
#: quantifier -> the verdict if an input decides, and the verdict if no input does
DECIDED: dict[Quantifier, tuple[Verdict, Verdict]] = {"all": ("refuted", "holds"), "exists": ("holds", "refuted")}
SHRINK = 30.0  # seconds, at most, in which an input is made small


@dataclass(frozen=True)
class SearchStep:
    """One step of the search, in words, and the answers of the engines (none for a simulation)."""

    what: str
    answers: tuple[Answer, ...] = ()
    seconds: float = 0.0


@dataclass
class Outcome:
    """The outcome of one claim. `row`: the input that decides, replayed, in the order of the claim's layout; `theorem`:
    the theorem proved by rules; `within`: theorems about the least proved share, of the sum of magnitudes, of an error
    or a difference that the claim compares with this sum; `reached`: the largest share that was found; `lemmas`: the
    questions whose "unsat" the verdict rests on, each with another engine's answer where there is one; `proofs`: for a
    property, the proofs of all its problems; `refuting`: the proof that refutes it; `overflows`: for a claim about
    overflow or sums that wrap, count -> whether the evaluated sum of so many copies of one number overflows or
    wraps."""

    claim: AnyClaim
    row: Row | None = None
    lemmas: list[Lemma] = field(default_factory=list)
    asked: list[SearchStep] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    proofs: list[Proof] = field(default_factory=list)
    refuting: Proof | None = None
    theorem: Theorem | None = None
    within: list[Theorem] = field(default_factory=list)
    reached: Fraction | None = None
    overflows: dict[int, bool] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict by the theorem, or by the input."""
        match self.claim:
            case Claim():
                by_input, otherwise = DECIDED[self.claim.quantifier]
                return by_input if self.row is not None else otherwise if self._proved else "unknown"
            case BoundClaim():
                return "holds" if self._proved else "unknown"
            case PropertyClaim() if self.refuting is not None:
                return "refuted" if self.refuting.verdict == "different" else "unknown"
            case PropertyClaim():
                return "holds" if verdict_on(self.claim.wanted, self.proofs) == "equal" else "unknown"
            case WrapClaim():
                return self._overflow(self.claim.products, self.claim.wraps)
            case ClassicalClaim():
                return self._overflow(self.claim.products, "never")
            case OverflowClaim():
                return self._overflow(self.claim.numbers, self.claim.overflow)

    @property
    def decided(self) -> Claim:
        """The claim for the input that decides; of a claim about several numbers of products, that for the input's
        number."""
        assert isinstance(self.claim, Claim)
        if self.row is None or self.claim.assertion.most is None:
            return self.claim
        return self.claim.at(len(self.row) // 2)

    @property
    def _proved(self) -> bool:
        """Whether the theorem states what has to be proved for the claim."""
        return self.theorem is not None and is_theorem(self.theorem) and self.theorem.goal == claimed(self.claim)

    def _overflow(self, numbers: int, asked: Literal["smallest", "never"]) -> Verdict:
        """The verdict on sums of `numbers` terms; for `asked` "smallest", the theorem is about one term less."""
        infinite, bounded = self.overflows.get(numbers), self._proved
        if asked == "smallest":
            if infinite is False or self.overflows.get(numbers - 1):
                return "refuted"
            return "holds" if infinite and bounded else "unknown"
        return "holds" if bounded else "refuted" if infinite else "unknown"

    @property
    def share(self) -> Fraction | None:
        """The least proved share of the sum of magnitudes."""
        if not isinstance(self.claim, Claim) or not self.within or not all(map(is_theorem, self.within)):
            return None
        goals: list[Any] = [one.goal for one in self.within]
        compared = 1 if isinstance(goals[0], Apart) else len(compared_parts(self.claim.assertion))
        return sum((goal.share for goal in goals[:compared]), Fraction(0))

    @property
    def as_expected(self) -> bool:
        return self.verdict == (self.claim.expect or "holds")
