"""Lemmas settled by engines: a second one is asked as well, and what is proved is kept."""

from __future__ import annotations

from contextlib import suppress

from queries.proof.confirm import confirm
from queries.proof.kernel import RuleError, Theorem
from queries.proof.lemmas import Lemma, exhausted, settled
from queries.proof.records import Lemma as ProofLemma
from queries.search.distinguish import Options
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from smtmodel.errors import FaultError

CONFIRM_SECONDS = 20.0  # taken as the time of a lemma's proof when another engine is asked


class Settled:
    """Settles lemmas: by evaluating all inputs where they are few, or by an engine, and another one if `confirmed`.

    `seconds`: for one lemma, within the time of the options. `needed`: a lemma that does not hold contradicts a rule,
    and raises FaultError; else the rule that needs the lemma does not apply. `asked`: the lemmas that engines proved.
    """

    def __init__(self, options: Options, confirmed: bool = True, seconds: float = 30.0, needed: bool = True) -> None:
        self.options, self.confirmed, self.seconds, self.needed = options, confirmed, seconds, needed
        self.deadline = None if options.timeout is None else options.clock() + options.timeout
        self.known: dict[Lemma, Theorem | None] = {}
        self.asked: list[ProofLemma] = []

    def late(self) -> bool:
        """Whether the time of the options is over."""
        return self.deadline is not None and self.options.clock() > self.deadline

    def __call__(self, goal: Lemma) -> Theorem | None:
        if goal not in self.known:
            self.known[goal] = self._settled(goal)
        return self.known[goal]

    def _settled(self, goal: Lemma) -> Theorem | None:
        with suppress(RuleError):
            return exhausted(goal)
        with suppress(RuleError):
            return settled(goal, self._ask)
        return None

    def _ask(self, query: Query, name: str) -> tuple[Answer, Answer | None]:
        left = self.seconds if self.deadline is None else self.deadline - self.options.clock()
        answer = self.options.ask(query, max(0.0, min(self.seconds, left)), name)[0]
        if answer.status == "sat" and self.needed:
            raise FaultError(f"{answer} contradicts a rule of error bounds: {name}")
        if answer.status != "unsat":
            return answer, None
        found = ProofLemma(name, 0, query, answer)
        if self.confirmed:
            (found,) = confirm([found], self.options, CONFIRM_SECONDS)
        self.asked.append(found)
        return answer, found.confirmed
