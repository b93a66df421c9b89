"""What has been proved of a basis, lemma by lemma: a tactic's notes, from which it shows what a theorem rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pysmt.fnode import FNode

from queries.proof.facts import Basis, Fact, follows, given, question
from queries.proof.kernel import RuleError, Theorem
from queries.proof.records import Chain, Derived, Lemma
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit, Bits

Ask = Callable[[str, Query, int], Answer]  # an engine's answer; how many terms are cut out
ADMITTED = "the admitted inputs"


class UnprovedError(Exception):
    """A lemma that no engine proved: the argument does not apply, or time ran out."""


@dataclass(frozen=True)
class _Note:
    name: str
    query: Query
    answer: Answer
    terms: tuple[tuple[FNode, FNode], ...]


class Ledger:
    """Facts of one basis. Lemmas of one text are asked once."""

    def __init__(self, basis: Basis) -> None:
        self.basis = basis
        self.admitted = given(basis)
        self._answers: dict[str, Answer] = {}
        self._notes: dict[Theorem, _Note] = {}

    def prove(
        self,
        name: str,
        claim: Bit,
        facts: Sequence[Theorem],
        cuts: Iterable[Bits | Bit],
        ask: Ask,
        inputs: Sequence[FNode] = (),
    ) -> Theorem:
        """A claim, from facts, with terms cut out. Raises UnprovedError."""
        nodes = [cut.node for cut in cuts]
        terms = [fact.goal.term for fact in facts]  # type: ignore[attr-defined]
        query, stands = question(self.basis, claim.node, terms, nodes, inputs)
        answer = self._answers.get(query.text)
        if answer is None or answer.status == "unknown":
            count = sum(not term.is_symbol() for term in stands.values())
            answer = self._answers[query.text] = ask(name, query, count)
        try:
            found = follows(self.basis, claim.node, facts, nodes, lambda same: answer, inputs)
        except RuleError:
            raise UnprovedError(name) from None
        self._notes[found] = _Note(name, query, answer, tuple(stands.items()))
        return found

    def lemmas(self, *theorems: Theorem) -> list[Lemma]:
        """Those that theorems rest on, each once."""
        found: dict[str, Lemma] = {}
        for note in self._noted(theorems).values():
            cuts = sum(not term.is_symbol() for _, term in note.terms)
            found.setdefault(note.query.text, Lemma(note.name, cuts, note.query, note.answer))
        return list(found.values())

    def chain(self, *theorems: Theorem) -> Chain:
        """The steps by which they were proved."""
        places = {lemma.query.text: place for place, lemma in enumerate(self.lemmas(*theorems))}
        steps = [
            Derived(note.name, places[note.query.text], tuple(map(_term, theorem.premises)), _term(theorem), note.terms)
            for theorem, note in self._noted(theorems).items()
        ]
        return Chain(((ADMITTED, self.basis.assumed),), tuple(steps))

    def _noted(self, theorems: Sequence[Theorem]) -> dict[Theorem, _Note]:
        every = dict.fromkeys(one for theorem in theorems for one in theorem.walk())
        return {theorem: self._notes[theorem] for theorem in every if theorem in self._notes}


def _term(theorem: Theorem) -> FNode:
    assert isinstance(theorem.goal, Fact)
    return theorem.goal.term
