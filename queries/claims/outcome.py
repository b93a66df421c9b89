"""The outcome of a claim: the verdict, the input that decided or the lemmas, and what was tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hypotheses.claim import AnyClaim
from queries.kernel.theorem import Theorem
from queries.search.witness import Row
from queries.solvers.contract import Answer
from queries.tactics.records import Chain, Lemma, Proof

Verdict = Literal["holds", "refuted", "unknown"]
BATCH = 4096  # inputs simulated at a time
SHRINK = 30.0  # seconds, at most, in which an input is made small


@dataclass(frozen=True)
class SearchStep:
    """One step of the search, in words, and what the engines said (nothing for a simulation)."""

    what: str
    answers: tuple[Answer, ...] = ()
    seconds: float = 0.0


@dataclass
class Outcome:
    """The verdict on one claim. `row`: the input that decided, in the order of the claim's layout; `lemmas`: the
    questions whose "unsat" did, each with another engine's answer where there is one; `proofs`: of a property, what
    proved it; `refuting`: what broke it; `theorem`: what was proved by rules, with the lemmas as leaves; `chain`: the
    steps from what is admitted to that no input decides."""

    claim: AnyClaim
    verdict: Verdict = "unknown"
    row: Row | None = None
    lemmas: list[Lemma] = field(default_factory=list)
    asked: list[SearchStep] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    proofs: list[Proof] = field(default_factory=list)
    refuting: Proof | None = None
    theorem: Theorem | None = None
    chain: Chain | None = None

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.claim.expect
