"""The facts proved of two evaluations of a model, by name: each from facts named, with chosen terms cut out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pysmt.fnode import FNode

from queries.proof.facts import defined
from queries.proof.kernel import Theorem
from queries.proof.ledger import ADMITTED, Ledger, UnprovedError, term_of
from queries.proof.records import Proof
from queries.proof.same import Compared, agreed
from queries.search.distinguish import Options
from queries.search.problem import Problem
from queries.solvers.contract import Answer
from queries.solvers.engines import engines_of
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit, Bits, all_of

__all__ = ["ADMITTED", "NamedFacts", "UnprovedError"]

SHARE = 0.4  # of the time that is left, at most, for one lemma


class NamedFacts:
    """The facts proved so far on one problem. `proof` collects the lemmas and every answer."""

    def __init__(self, problem: Problem, options: Options, proof: Proof, deadline: float | None) -> None:
        self.problem, self.options, self.proof, self.deadline = problem, options, proof, deadline
        self.solver = engines_of(options.solver)[0]  # the others slow it down
        self.compared = Compared(problem)
        self.carrier, self.inputs = self.compared.carrier, self.compared.inputs
        self.left, self.right = self.compared.left, self.compared.right
        self.ledger = Ledger(self.compared)
        self.texts = set[str]()
        self.facts: dict[str, Theorem | None] = {ADMITTED: self.ledger.admitted}
        self.inner: tuple[Bits, ...] = ()  # terms to cut in every lemma, wherever no other cut contains them

    def answer(self, name: str) -> None:
        """The question is answered by a fact. Raises RuleError where it says something else."""
        fact = self.facts[name]
        assert fact is not None
        self.proof.theorem, self.proof.chain = agreed(self.compared, fact), self.ledger.chain(fact)
        self.proof.verdict, self.proof.lemmas = "equal", self.ledger.lemmas(fact)

    def maximum(self, symbol: Bits) -> str:
        """The name of the fact that defines a maximum (nothing is said of one that folded to a term)."""
        name, node = f"definition of {symbol.node}", symbol.node
        terms = self.carrier.maxima.get(node)
        self.facts[name] = None if terms is None else defined(self.compared, node, sorted(terms, key=FNode.node_id))
        return name

    def establish(self, name: str, claim: Bit, cuts: Sequence[Bits | Bit] = (), using: Sequence[str] = ()) -> str:
        """Prove a claim from the facts named, with terms cut out; its name. Raises UnprovedError."""
        known = self.facts.get(name)
        if known is None or term_of(known) != claim.node:
            self.facts[name] = self._proved(name, claim, cuts, using)
        return name

    def establish_each(self, name: str, claims: Mapping[str, Bit], using: Sequence[str] = ()) -> list[str]:
        """Prove claims in one lemma, which is a fact by the name of each afterwards. Raises UnprovedError."""
        proved = self._proved(name, all_of(list(claims.values())), (), using)
        self.facts |= dict.fromkeys(claims, proved)
        return list(claims)

    def _proved(self, name: str, claim: Bit, cuts: Sequence[Bits | Bit], using: Sequence[str]) -> Theorem:
        def ask(what: str, query: Query, count: int) -> Answer:
            left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic()) * SHARE
            answers = self.options.ask(query, left, f"lemma {what}: {count} cuts", self.solver)
            self.proof.tried += answers
            return answers[0]

        facts = dict.fromkeys(fact for use in using if (fact := self.facts[use]) is not None)
        found = self.ledger.prove(name, claim.node, list(facts), [cut.node for cut in (*cuts, *self.inner)], ask)
        lemma = self.ledger.lemma_of(found)
        if lemma.query.text not in self.texts:
            self.texts.add(lemma.query.text)
            self.proof.lemmas.append(lemma)  # should this be all: an answer names those that it rests on
        return found
