"""Facts about terms: statements about all values of some symbols, each proved from other facts.

A lemma is a query in which a free symbol replaces each of some terms (cut-points), in the facts and in the claim alike.
This over-approximates: if an engine answers "unsat", the claim holds, whichever terms are cut out and whichever facts
are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pysmt.fnode import FNode

from mmaprobe.queries.kernel.terms.cutting import Abstraction, Replacement, conjuncts, linked, renamed, symbols_of
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.queries.solvers.asking import AnsweredQuery, Engines
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.carriers.terms import TermCarrier


class Basis:
    """The basis of facts: terms of one carrier, for all values of their symbols that satisfy `assumed`. An attribute of
    a finished basis cannot be set (RuleError), so that a fact about it stays true."""

    _made = False

    def __init__(self, carrier: TermCarrier, assumed: FNode) -> None:
        self.carrier, self.assumed = carrier, assumed
        self._made = True

    def __setattr__(self, name: str, value: object) -> None:
        if self._made:
            raise RuleError(f"{name} of a basis is set once")
        super().__setattr__(name, value)

    def holds(self, *terms: FNode) -> bool:
        """Whether terms are of this carrier."""
        return all(term in self.carrier.manager for term in terms)


@dataclass(frozen=True)
class Fact:
    """A term is true for all values of the symbols that satisfy the assumption of the basis and give every symbol of a
    maximum the value of that maximum."""

    basis: Basis
    term: FNode

    def statement(self) -> str:
        return f"a term of {len(self.term.get_free_variables())} symbols is true"


@rule
def given(basis: Basis) -> Made:
    """The assumption of a basis is a fact."""
    return Made(Fact(basis, basis.assumed))


@rule
def defined(basis: Basis, symbol: FNode, terms: Sequence[FNode], alike: Theorem | None = None) -> Made:
    """The symbol of a maximum is at least each of its terms, and equals one of them: for any values of the terms there
    is such a number, and nothing else constrains the symbol. By the theorem `alike`, terms that equal these may take
    their place."""
    known, premises = _terms_of(basis, symbol, "defined"), [] if alike is None else [alike]
    if alike is not None:
        known = frozenset(map(_others(basis, alike, "defined"), known))
    if known != frozenset(terms):
        raise RuleError("defined: the terms are not those of the maximum")
    return Made(Fact(basis, basis.carrier.define_maximum(symbol, terms)), tuple(premises))


def _terms_of(basis: Basis, symbol: FNode, name: str) -> frozenset[FNode]:
    """The terms of which a symbol is the maximum. They must be older than the symbol, so that no term contains the
    symbol, nor a maximum defined by it. Raises RuleError."""
    known = basis.carrier.maxima.get(symbol)
    if known is None:
        raise RuleError(f"{name}: a term is not a maximum")
    if not basis.holds(symbol, *known) or any(term.node_id() >= symbol.node_id() for term in known):
        raise RuleError(f"{name}: a maximum is defined by itself, or by what it defines")
    return known


@rule
def follows(
    basis: Basis,
    claim: FNode,
    facts: Sequence[Theorem],
    cuts: Iterable[FNode],
    engines: Engines,
    inputs: Sequence[FNode] = (),
) -> Made:
    """F1, ..., Fn are facts and C is the claim; in F'i and C' a fresh symbol replaces each term that is cut out. If no
    values of the symbols make all F'i true and C' false, C holds wherever all Fi do: values that make all Fi true and C
    false, with the value of its term for each fresh symbol, make all F'i true and C' false. To prove C from fewer
    conjuncts of the Fi is to prove more, and names of symbols do not matter."""
    goals = [goal_of(fact, Fact, "follows") for fact in facts]
    if any(goal.basis is not basis for goal in goals):
        raise RuleError("follows: a fact is about something else")
    if not basis.holds(claim):
        raise RuleError("follows: the claim is a term of another carrier")
    query, _ = question(basis, claim, [goal.term for goal in goals], cuts, inputs)
    answer = engines.answers(query)[0]
    if answer.status != "unsat":
        raise RuleError(f"follows: {answer.status}")
    return Made(Fact(basis, claim), tuple(facts), str(answer), AnsweredQuery(query, (answer,)))


def question(
    basis: Basis, claim: FNode, facts: Sequence[FNode], cuts: Iterable[FNode], inputs: Sequence[FNode] = ()
) -> tuple[Query, dict[FNode, FNode]]:
    """The query for a counterexample, and the term or symbol that each symbol of the query replaces. Conjuncts that
    share no symbol with the claim, directly or through others, are left out, and symbols are named in order of
    occurrence, so that lemmas of one form have one text. With `inputs`, nothing is left out, symbols keep their names,
    and the query asks for the values of `inputs`. Raises RuleError if a fresh symbol is in use beside cut-points."""
    carrier = basis.carrier
    fresh: dict[FNode, FNode] = {}
    for cut_out in cuts:
        term = cut_out.arg(0) if cut_out.is_not() else cut_out  # terms drop a negation where they can
        if not (term.is_constant() or term.is_symbol()) and term not in fresh:
            kind = term.get_type()
            width = "b" if kind.is_bool_type() else kind.width
            fresh[term] = carrier.manager.Symbol(f"cut{len(fresh)}w{width}", kind)
    if not set(fresh.values()).isdisjoint(symbols_of((claim, *facts), fresh)):
        raise RuleError("follows: a symbol that stands for a term is in use")
    cut = Abstraction(carrier.environment, fresh)
    goal = conjuncts(cut(carrier.manager.Not(claim)))
    parts = [part for fact in facts for part in conjuncts(cut(fact))]
    stands = {symbol: term for term, symbol in fresh.items()}
    if inputs:  # a counterexample has a value for every input
        return Query(tuple(inputs), (*goal, *parts)), stands
    asserted = [*goal, *linked(parts, goal)]
    terms, names = renamed(carrier.environment, asserted)
    return Query((), terms), {new: stands.get(old, old) for old, new in names.items()}


# -- terms that equal others


@dataclass(frozen=True)
class Alike:
    """Terms, and for each of them, in the same order, a term that has the same value wherever the assumption is
    true."""

    basis: Basis
    terms: tuple[FNode, ...]
    others: tuple[FNode, ...]

    def statement(self) -> str:
        return f"each of {len(self.terms)} terms has the value of another one"


def _others(basis: Basis, alike: Theorem, name: str) -> Callable[[FNode], FNode]:
    """A function from a term to the term that equals it by a theorem, or to the term itself if the theorem does not
    have it. Raises RuleError."""
    goal: Alike = goal_of(alike, Alike, name)
    if goal.basis is not basis:
        raise RuleError(f"{name}: what is alike is about something else")
    known = dict(zip(goal.terms, goal.others, strict=True))
    return lambda term: known.get(term, term)


@rule
def themselves(basis: Basis, terms: Sequence[FNode]) -> Made:
    """Reflexivity: a term equals itself."""
    if not basis.holds(*terms):
        raise RuleError("themselves: a term of another carrier")
    return Made(Alike(basis, tuple(terms), tuple(terms)))


@rule
def replaced(alike: Theorem, changes: Sequence[tuple[Theorem, FNode, FNode]]) -> Made:
    """Congruence: if x = y is a fact, y may replace x anywhere in a term, and again in the term that results."""
    goal: Alike = goal_of(alike, Alike, "replaced")
    for theorem, old, new in changes:
        fact: Fact = goal_of(theorem, Fact, "replaced")
        if fact.basis is not goal.basis or not _says(goal.basis, fact.term, old, new):
            raise RuleError("replaced: it is not a fact that a term is what stands for it")
    replace = Replacement(goal.basis.carrier.environment, {old: new for _, old, new in changes})
    others = tuple(map(replace, goal.others))
    return Made(Alike(goal.basis, goal.terms, others), (alike, *(theorem for theorem, _, _ in changes)))


def _says(basis: Basis, term: FNode, left: FNode, right: FNode) -> bool:
    return any(term == equal(basis, *sides) for sides in ((left, right), (right, left)))


def equal(basis: Basis, left: FNode, right: FNode) -> FNode:
    """The term that states that two terms of one type are equal."""
    manager = basis.carrier.manager
    equation: FNode = manager.Iff(left, right) if left.get_type().is_bool_type() else manager.Equals(left, right)
    return equation


@rule
def one_maximum(basis: Basis, first: FNode, second: FNode, alike: Theorem) -> Made:
    """Two maxima are equal if their terms, each replaced by the one that equals it (`alike`), form the same set."""
    other = _others(basis, alike, "one_maximum")
    one, two = (frozenset(map(other, _terms_of(basis, symbol, "one_maximum"))) for symbol in (first, second))
    if one != two:
        raise RuleError("one_maximum: the maxima are of other terms")
    return Made(Fact(basis, equal(basis, first, second)), (alike,))


@rule
def never(basis: Basis, term: FNode, alike: Theorem, fact: Theorem | None = None) -> Made:
    """A term is false if an equal term is the constant false, or if the negation of an equal term is a fact."""
    other = _others(basis, alike, "never")(term)
    premises = (alike,) if fact is None else (alike, fact)
    if fact is None and not other.is_false():
        raise RuleError("never: the term is not known to be false")
    if fact is not None and goal_of(fact, Fact, "never") != Fact(basis, basis.carrier.manager.Not(other)):
        raise RuleError("never: the fact says something else")
    return Made(Fact(basis, basis.carrier.manager.Not(term)), premises)
