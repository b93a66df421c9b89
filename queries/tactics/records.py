"""The parts of a staged proof: lemmas, and the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pysmt.fnode import FNode

from mmaprobe.documents.parts import Verdict
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.terms.same import Compared, agrees
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.search.witness import Witness
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.smtlib import Query


@dataclass(frozen=True)
class Lemma:
    """A fact proved, mostly that two signals are equal. `cuts`: the number of earlier terms that were replaced by fresh
    variables (cut-points), about which the lemma may use the facts `using`. `pair`: the two terms that the lemma proves
    equal; `points`: its cut-points, if these are not signals of the left side; `facts`: terms that the lemma knows to
    be true; `cases`: for each of some words, terms that state a value of the word, of which one is true. `confirmed` is
    another engine's answer."""

    name: str
    cuts: int
    query: Query
    answer: Answer
    pair: tuple[FNode, FNode] | None = None
    points: tuple[FNode, ...] | None = None
    facts: tuple[FNode, ...] = ()
    cases: tuple[tuple[FNode, ...], ...] = ()
    using: str = ""
    confirmed: Answer | None = None

    @property
    def confirmed_by(self) -> str | None:
        return None if self.confirmed is None else str(self.confirmed)


@dataclass
class Proof:
    """The outcome: the lemmas in order, the theorem, or a replayed witness if the two sides differ. `why`: the ground
    of a proof without lemmas. `compared`: the problem as terms before cuts and merging. `left_open`: where a proof
    about a design is unfinished, the word of the design at which it stopped."""

    problem: Problem
    lemmas: list[Lemma] = field(default_factory=list)
    witness: Witness | None = None
    tried: list[Answer] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    compared: Compared | None = None
    why: str = ""
    left_open: str = ""
    theorem: Theorem | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict that the witness shows, or that the theorem states."""
        if self.witness is not None:
            return "different"
        return "equal" if agrees(self.theorem, self.problem) else "unknown"

    @property
    def engines(self) -> list[str]:
        """The engines on whose answers the verdict rests."""
        return engines_of([self])

    @property
    def ground(self) -> str:
        """The ground of the verdict: `why`, or the engines that answered, and the engines that confirmed."""
        confirmed = f", confirmed by {', '.join(self.confirmations)}" if self.confirmations else ""
        return self.why or f"{', '.join(self.engines) or 'construction'}{confirmed}"

    @property
    def confirmations(self) -> list[str]:
        """The engines that confirmed every lemma; empty if one lemma was not confirmed."""
        return confirmations_of([self])


def engines_of(proofs: Sequence[Proof]) -> list[str]:
    """The engines on whose answers the verdicts of some proofs rest."""
    return sorted({f"{lemma.answer.engine} {lemma.answer.version}" for proof in proofs for lemma in proof.lemmas})


def confirmations_of(proofs: Sequence[Proof]) -> list[str]:
    """The engines that confirmed every lemma of some proofs; empty if one lemma was not confirmed."""
    votes = [lemma.confirmed for proof in proofs for lemma in proof.lemmas]
    return sorted({f"{one.engine} {one.version}" for one in votes if one is not None}) if None not in votes else []
