"""Facts about terms: what holds of all values of some symbols, proved one from another.

A lemma is a question with terms cut out: a free symbol stands for each, in what is known and in the claim alike. That
over-approximates, so that an engine's "unsat" holds whichever terms are cut and whichever facts are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pysmt.fnode import FNode

from queries.proof.cutting import Cutter, conjuncts, linked, renamed
from queries.proof.kernel import Made, RuleError, Theorem, goal_of, rule
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from smtmodel.carriers.terms import TermCarrier


class Basis:
    """What facts are about: terms of a carrier, of all values of their symbols that meet what is `assumed`."""

    def __init__(self, carrier: TermCarrier, assumed: FNode) -> None:
        self.carrier, self.assumed = carrier, assumed

    def holds(self, *terms: FNode) -> bool:
        """Whether terms are of this carrier."""
        return all(term in self.carrier.manager for term in terms)


@dataclass(frozen=True)
class Fact:
    """A term is true wherever what the basis assumes is, and every symbol of a maximum is that maximum."""

    basis: Basis
    term: FNode

    def statement(self) -> str:
        return f"a term of {len(self.term.get_free_variables())} symbols is true"


@rule
def given(basis: Basis) -> Made:
    """What is assumed holds."""
    return Made(Fact(basis, basis.assumed))


@rule
def defined(basis: Basis, symbol: FNode, terms: Sequence[FNode]) -> Made:
    """The symbol of a maximum is at least each of its terms, and one of them: for any values of these there is such a
    number, and nothing else is said of it."""
    if basis.carrier.maxima.get(symbol) != frozenset(terms):
        raise RuleError("defined: the terms are not those of the maximum")
    return Made(Fact(basis, basis.carrier.define_maximum(symbol, terms)))


@rule
def follows(
    basis: Basis,
    claim: FNode,
    facts: Sequence[Theorem],
    cuts: Iterable[FNode],
    answer: Callable[[Query], Answer],
    inputs: Sequence[FNode] = (),
) -> Made:
    """F1, ..., Fn are facts. If no values of the symbols of F'i and C' make all F'i true and C' false, where a fresh
    symbol stands for each term that is cut out of Fi and C, then C holds wherever the Fi do: a counterexample gives one
    of the question, each fresh symbol with the value of its term. Leaving out conjuncts of the Fi makes that stronger,
    and names of symbols are of no account."""
    goals = [goal_of(fact, Fact, "follows") for fact in facts]
    if any(goal.basis is not basis for goal in goals):
        raise RuleError("follows: a fact is about something else")
    if not basis.holds(claim):
        raise RuleError("follows: the claim is a term of another carrier")
    query, _ = question(basis, claim, [goal.term for goal in goals], cuts, inputs)
    found = answer(query)
    if found.status != "unsat":
        raise RuleError(f"follows: {found.status}")
    return Made(Fact(basis, claim), tuple(facts), str(found))


def question(
    basis: Basis, claim: FNode, facts: Sequence[FNode], cuts: Iterable[FNode], inputs: Sequence[FNode] = ()
) -> tuple[Query, dict[FNode, FNode]]:
    """Is there a counterexample? What says nothing of the claim's symbols, or of theirs, is left out. Symbols are named
    by the order in which they occur, so that lemmas of one form are one text; `inputs`: they keep their names, and
    their values are asked for. With what each symbol of the question stands for. Raises RuleError."""
    carrier = basis.carrier
    fresh: dict[FNode, FNode] = {}
    for cut_out in cuts:
        term = cut_out.arg(0) if cut_out.is_not() else cut_out  # terms drop a negation where they can
        if not (term.is_constant() or term.is_symbol()) and term not in fresh:
            kind = term.get_type()
            width = "b" if kind.is_bool_type() else kind.width
            fresh[term] = carrier.manager.Symbol(f"cut{len(fresh)}w{width}", kind)
    free = {symbol for term in (claim, *facts) for symbol in term.get_free_variables()}
    if not free.isdisjoint(fresh.values()):
        raise RuleError("follows: a symbol that stands for a term is in use")
    cut = Cutter(carrier.environment, fresh)
    goal = conjuncts(cut(carrier.manager.Not(claim)))
    parts = [part for fact in facts for part in conjuncts(cut(fact))]
    asserted = [*goal, *linked(parts, goal)]
    stands = {symbol: term for term, symbol in fresh.items()}
    if inputs:
        return Query(tuple(inputs), tuple(asserted)), stands
    terms, names = renamed(carrier.environment, asserted)
    return Query((), terms), {new: stands.get(old, old) for old, new in names.items()}
