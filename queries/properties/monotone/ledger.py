"""A ledger of proved facts about two evaluations of a model, from which later facts are proved with cut-points.

Every fact is a claim over the model's own terms. It is proved from facts proved before, with chosen terms replaced by
fresh variables in all of them alike: an over-approximation, so that "unsat" holds whichever terms are replaced and
whichever facts are used. Nothing enters the ledger but definitions (what inputs are admitted, what a maximum is) and
what a solver refuted the negation of.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pysmt.fnode import FNode

from queries.proof.cutting import Cutter
from queries.proof.records import Chain, Derived, Lemma, Proof
from queries.search.distinguish import Options, symbolic_operands
from queries.search.problem import Problem
from queries.solvers.engines import engines_of
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit, Bits, all_of
from smtmodel.carriers.terms import TermCarrier

ADMITTED = "the admitted inputs"
SHARE = 0.4  # of the time that is left, at most, for one lemma


class UnprovedError(Exception):
    """A lemma that no engine proved: the argument does not apply, or time ran out."""


class Ledger:
    """The facts proved so far on one problem. `proof` collects the lemmas and every answer."""

    def __init__(self, problem: Problem, options: Options, proof: Proof, deadline: float | None) -> None:
        self.problem, self.options, self.proof, self.deadline = problem, options, proof, deadline
        self.solver = engines_of(options.solver)[0]  # the others slow it down
        self.carrier = TermCarrier(maximum="relational")
        self.inputs = symbolic_operands(problem, self.carrier)
        self.left, self.right = problem.evaluate(self.inputs)
        self.facts: dict[str, FNode] = {ADMITTED: problem.admits(self.inputs).node}
        self.inner: tuple[Bits, ...] = ()  # terms to cut in every lemma, wherever no other cut contains them
        self._asked: dict[str, int] = {}  # by the text of a lemma: its place among those of the proof
        self._steps: list[Derived] = []
        self._definitions: set[str] = set()

    @property
    def answered(self) -> bool:
        """Whether what was proved last is the question itself: on no admitted input do the two sides differ."""
        goal = ~self.problem.differ(self.left.d, self.right.d)
        return bool(self._steps) and self._steps[-1].claim == goal.node

    @property
    def chain(self) -> Chain:
        """How the facts were proved."""
        axioms = [(name, fact) for name, fact in self.facts.items() if name == ADMITTED or name in self._definitions]
        return Chain(tuple(axioms), tuple(self._steps))

    def maximum(self, symbol: Bits) -> str:
        """The name of the fact that defines a maximum (none for one that folded to a term)."""
        name = f"definition of {symbol.node}"
        self._definitions.add(name)
        terms = self.carrier.maxima.get(symbol.node)
        true = self.carrier.manager.TRUE()
        self.facts[name] = (
            true if terms is None else self.carrier.define_maximum(symbol.node, sorted(terms, key=FNode.node_id))
        )
        return name

    def establish(self, name: str, claim: Bit, cuts: Sequence[Bits | Bit] = (), using: Sequence[str] = ()) -> str:
        """Prove a claim from the facts named, with terms cut out; its name. Raises UnprovedError."""
        if self.facts.get(name) == claim.node:
            return name
        self._prove(name, claim, cuts, using)
        self.facts[name] = claim.node
        return name

    def establish_each(self, name: str, claims: Mapping[str, Bit], using: Sequence[str] = ()) -> list[str]:
        """Prove claims in one lemma, each of which is a fact by its own name afterwards. Raises UnprovedError."""
        self._prove(name, all_of(list(claims.values())), (), using)
        self.facts |= {fact: claim.node for fact, claim in claims.items()}
        return list(claims)

    def _prove(self, name: str, claim: Bit, cuts: Sequence[Bits | Bit], using: Sequence[str]) -> None:
        using = list(dict.fromkeys(using))  # a fact may say something about several cases
        query, terms = self._query(claim, cuts, using)
        if query.text not in self._asked:
            left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic()) * SHARE
            answers = self.options.ask(query, left, f"lemma {name}: {len(terms)} cuts", self.solver)
            self.proof.tried += answers
            if answers[0].status != "unsat":
                raise UnprovedError(name)
            self._asked[query.text] = len(self.proof.lemmas)
            shown = ", ".join(fact for fact in using if fact not in self._definitions)
            self.proof.lemmas.append(Lemma(name, len(terms), query, answers[0], using=shown))
        facts = tuple(self.facts[fact] for fact in using)
        replaced = tuple((symbol, term) for term, symbol in terms.items())
        self._steps.append(Derived(name, self._asked[query.text], facts, claim.node, replaced))

    def _query(self, claim: Bit, cuts: Sequence[Bits | Bit], using: Sequence[str]) -> tuple[Query, dict[FNode, FNode]]:
        """The negated claim beside the facts, and what was cut out. Cut terms are named by their places, so that lemmas
        of one form are one text, which is asked once."""
        manager = self.carrier.manager
        parts = [*(self.facts[name] for name in using), manager.Not(claim.node)]
        chosen: dict[FNode, FNode] = {}
        for place, cut in enumerate([*cuts, *self.inner]):
            node = cut.node.arg(0) if cut.node.is_not() else cut.node  # terms drop a negation where they can
            if not node.is_constant() and node not in chosen:
                width = "" if isinstance(cut, Bit) else cut.width
                chosen[node] = manager.Symbol(f"cut{place}w{width}", node.get_type())
        changed = tuple(map(Cutter(self.carrier.environment, chosen), parts))
        return Query((), changed), chosen
