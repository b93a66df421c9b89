"""The facts proved about a basis, and the lemma behind each: a tactic's record, which lists the lemmas of a theorem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pysmt.fnode import FNode

from queries.kernel.facts import Basis, Fact, follows, given, question
from queries.kernel.theorem import RuleError, Theorem, goal_of
from queries.solvers.asking import Engines, Heard
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from queries.tactics.records import Chain, Derived, Lemma

ADMITTED = "the admitted inputs"


class UnprovedError(Exception):
    """A lemma that no engine proved: the argument does not apply, or time ran out."""


@dataclass(frozen=True)
class _Note:
    name: str
    query: Query
    answer: Answer
    cuts: tuple[FNode, ...]
    inputs: tuple[FNode, ...]

    @property
    def lemma(self) -> Lemma:
        return Lemma(self.name, len(self.cuts), self.query, self.answer)


class Ledger:
    """The facts proved about one basis. Lemmas with the same query text are asked once."""

    def __init__(self, basis: Basis) -> None:
        self.basis = basis
        self.admitted = given(basis)
        self.heard = Heard()
        self._notes: dict[Theorem, _Note] = {}

    def prove(
        self,
        name: str,
        claim: FNode,
        facts: Sequence[Theorem],
        cuts: Iterable[FNode],
        engines: Engines,
        inputs: Sequence[FNode] = (),
    ) -> Theorem:
        """Proves a claim from facts, with the terms `cuts` replaced by free symbols. Raises UnprovedError."""
        chosen = tuple(dict.fromkeys(cuts))
        try:
            theorem = follows(self.basis, claim, facts, chosen, replace(engines, heard=self.heard), inputs)
        except RuleError:
            raise UnprovedError(name) from None
        said = engines.said[-1]
        self._notes[theorem] = _Note(name, said.query, said.answer, chosen, tuple(inputs))
        return theorem

    def lemmas(self, *theorems: Theorem) -> list[Lemma]:
        """The lemmas that theorems rest on, each once."""
        found: dict[str, Lemma] = {}
        for theorem, note in self._noted(theorems).items():
            used = dict.fromkeys(self._notes[one].name for one in theorem.premises if one in self._notes)
            found.setdefault(note.query.text, replace(note.lemma, using=", ".join(used)))
        return list(found.values())

    def lemma_of(self, theorem: Theorem) -> Lemma:
        """The lemma that a fact was proved by."""
        return self._notes[theorem].lemma

    def chain(self, *theorems: Theorem) -> Chain:
        """The steps by which theorems were proved."""
        places = {lemma.query.text: place for place, lemma in enumerate(self.lemmas(*theorems))}
        steps = []
        for theorem, note in self._noted(theorems).items():
            uses = tuple(map(term_of, theorem.premises))
            _, stands = question(self.basis, term_of(theorem), uses, note.cuts, note.inputs)
            place = places[note.query.text]
            steps.append(Derived(note.name, place, uses, term_of(theorem), tuple(stands.items())))
        every = dict.fromkeys(one for theorem in theorems for one in theorem.walk())
        maxima = [("definition of a maximum", term_of(one)) for one in every if one.rule == "defined"]
        return Chain(((ADMITTED, self.basis.assumed), *dict.fromkeys(maxima)), tuple(steps))

    def _noted(self, theorems: Sequence[Theorem]) -> dict[Theorem, _Note]:
        every = dict.fromkeys(one for theorem in theorems for one in theorem.walk())
        return {theorem: self._notes[theorem] for theorem in every if theorem in self._notes}


def term_of(fact: Theorem) -> FNode:
    """The term that a fact states to be true. Raises RuleError for another theorem."""
    found: FNode = goal_of(fact, Fact, "ledger").term
    return found
