"""Instances of the rules about terms: over symbols of few bits, whose values are all evaluated.

Engines of the name `EVERY` are this module: a question is evaluated on all values of its symbols
(tests/oracles/termeval.py, written from the semantics of SMT-LIB), so that what they say is true.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pysmt.fnode import FNode

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import TRUTHS, Truths, some_lemma
from mmaprobe.queries.kernel.terms.facts import Alike, Basis, Fact, equal
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.solvers import asking
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.solvers.contract import Answer, _tell
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, select
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from tests.oracles.termeval import evaluate_terms

EVERY = "every value of every symbol"
MOST = 14  # bits of the symbols of a question
_solve = asking.solve


def _evaluated(query: Any, solver: str, *rest: Any) -> list[Answer]:
    *_, name, _pool = rest
    if name != EVERY:
        return _solve(query, solver, *rest)
    terms: list[FNode] = list(query.assertions)
    symbols = sorted(set().union(*(term.get_free_variables() for term in terms)), key=str)
    if sum(map(width_of, symbols)) > MOST:
        return [Answer("unknown", "nobody", "0", 0.0)]
    found = np.logical_and.reduce([np.asarray(side, dtype=bool) for side in _evaluate(terms, assignments(symbols))])
    return [_tell(query.text, Answer("sat" if found.any() else "unsat", "nobody", "0", 0.0))]


asking.solve = _evaluated  # type: ignore[assignment]
ENGINE = Engines(name=EVERY)


def width_of(symbol: FNode) -> int:
    return 1 if symbol.get_type().is_bool_type() else symbol.bv_width()


def assignments(symbols: Sequence[FNode]) -> dict[str, NDArray[Any]]:
    """All values of symbols, by name."""
    sizes = [1 << width_of(symbol) for symbol in symbols]
    every = np.unravel_index(np.arange(int(np.prod(sizes))), sizes) if sizes else ()
    return {symbol.symbol_name(): side.astype(object) for symbol, side in zip(symbols, every, strict=True)}


def _evaluate(terms: Sequence[FNode], given: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Terms for these values of symbols; without symbols on one lane."""
    return evaluate_terms(terms, given or {"none": np.zeros(1, dtype=object)})


# -- meanings


def with_maxima(basis: Basis, terms: Sequence[FNode]) -> list[NDArray[Any]]:
    """The terms, after the assumption, for all values of the symbols, those of maxima excepted: these have the value of
    their maximum."""
    maxima = basis.carrier.maxima
    waiting, symbols, order = [basis.assumed, *terms], set[FNode](), list[FNode]()
    while waiting:
        for symbol in waiting.pop().get_free_variables():
            if symbol in maxima and symbol not in order:
                order.append(symbol)
                waiting += maxima[symbol]
            elif symbol not in maxima:
                symbols.add(symbol)
    given = assignments(sorted(symbols, key=str))
    left = list(order)
    while left:
        for symbol in list(left):
            if all(not one.get_free_variables() & set(left) for one in maxima[symbol]):
                given[symbol.symbol_name()] = np.maximum.reduce(_evaluate(sorted(maxima[symbol], key=str), given))
                left.remove(symbol)
    return _evaluate([basis.assumed, *terms], given)


def fact(goal: Fact, rng: random.Random) -> Iterator[str]:
    assumed, term = (np.asarray(side, dtype=bool) for side in with_maxima(goal.basis, [goal.term]))
    if (assumed & ~term).any():
        yield f"the term is false, assignment {int(np.argmax(assumed & ~term))}"


def alike(goal: Alike, rng: random.Random) -> Iterator[str]:
    if len(goal.terms) != len(goal.others):
        yield "other numbers of terms"
    assumed, *sides = with_maxima(goal.basis, [*goal.terms, *goal.others])
    half = len(goal.terms)
    for one, two in zip(sides[:half], sides[half:], strict=True):
        if (np.asarray(assumed, dtype=bool) & (one != two)).any():
            yield "a term has another value"


MEANINGS = {Fact: fact, Alike: alike}


# -- terms at random


class Terms:
    """Terms of one basis: numbers of two bits, and truth values."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.carrier = rng, TermCarrier(maximum="relational")
        self.numbers = [self.carrier.symbol(name, 2) for name in "xyz"]
        self.truths: list[Bit] = [self.numbers[0].any()]
        for _ in range(rng.randint(4, 9)):
            self.grow()
        for _ in range(rng.choice((0, 1, 1, 2))):
            some = [number.node for number in rng.sample(self.numbers, min(2, len(self.numbers)))]
            self.numbers.append(Bits(self.carrier, 2, self.carrier.max_of(some, 2)))
        for _ in range(3):
            self.grow()
        strange = rng.random() < 0.3
        assumed = rng.choice(self.truths) | (rng.choice(self.truths) if not strange else ~rng.choice(self.truths))
        node = assumed.node
        self.basis = Basis(self.carrier, node)

    def grow(self) -> None:
        rng = self.rng
        x, y = (rng.choice(self.numbers) for _ in range(2))
        t, u = (rng.choice(self.truths) for _ in range(2))
        kind = rng.randrange(12)
        if kind < 6:
            made = (x + y, x - y, x & y, x | y, select(t, x, y), x + constant(self.carrier, rng.randrange(4), 2))[kind]
            if made.value is None:
                self.numbers.append(made)
        else:
            bit = (x.ult(y), x.eq(y), t & u, t | ~u, ~t, x.ule(y))[kind - 6]
            if not bit.node.is_constant():
                self.truths.append(bit)

    @property
    def nodes(self) -> list[FNode]:
        return [one.node for one in (*self.numbers, *self.truths)]


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The rules about terms, on terms of one basis, and on those of others."""
    own, other = Terms(rng), Terms(rng)
    basis, call = own.basis, campaign.call
    strange = Basis(own.carrier, rng.choice(own.truths).node)
    admitted = call("given", basis)
    facts = [] if admitted is None else [admitted]
    for symbol, terms in own.carrier.maxima.items():
        wrong = rng.sample(sorted(own.nodes, key=str), 2)
        for given in (sorted(terms, key=str), [*terms, *wrong][1:], wrong):
            found = call("defined", basis, symbol, given)
            facts += [] if found is None else [found]
    foreign = call("given", rng.choice((other.basis, strange)))
    for _ in range(6):
        claim = rng.choice(own.truths) | ~rng.choice(own.truths) if rng.random() < 0.8 else rng.choice(other.truths)
        some = rng.sample(facts, rng.randint(0, len(facts)))
        if rng.random() < 0.1 and foreign is not None:
            some.append(foreign)
        cuts = rng.sample(own.nodes, rng.choice((0, 0, 1, 2)))
        found = call("follows", basis, claim.node, some, cuts, ENGINE)
        facts += [] if found is None else [found]
    taken = own.carrier.symbol("cut0w2", 2)
    deep = [node for node in own.nodes if not node.is_symbol() and node.get_type().is_bv_type()]
    if deep and rng.random() < 0.3:
        call("follows", basis, taken.any().node, [], [rng.choice(deep)], ENGINE)
    _replaced(campaign, own, other, strange, facts, rng)


def _replaced(
    campaign: Campaign, own: Terms, other: Terms, strange: Basis, facts: Sequence[Theorem], rng: random.Random
) -> None:
    """Terms in the place of equal ones."""
    basis, call = own.basis, campaign.call
    maxima = sorted(own.carrier.maxima, key=str)
    equalities: list[tuple[Theorem, FNode, FNode]] = []
    every = own.nodes
    assumed, *values = with_maxima(basis, every)
    for _ in range(25):
        i, j = rng.randrange(len(every)), rng.randrange(len(every))
        same = every[i].get_type() == every[j].get_type() and i != j
        if same and (rng.random() < 0.05 or not (assumed & (values[i] != values[j])).any()):
            found = call("follows", basis, equal(basis, every[i], every[j]), facts, [], ENGINE)
            if found is not None:
                equalities.append((found, every[i], every[j]))
    terms = rng.sample(every, min(4, len(every)))
    start = call("themselves", rng.choice((basis, basis, basis, strange)), terms)
    call("themselves", basis, [*terms, rng.choice(other.nodes)])
    if start is None:
        return
    alikes = [start]
    for _ in range(4):
        changes = rng.sample(equalities, min(len(equalities), rng.choice((1, 1, 2))))
        if rng.random() < 0.2 and facts:
            changes = [(rng.choice(facts), rng.choice(every), rng.choice(every))]
        changes = [(one, *((right, left) if rng.random() < 0.5 else (left, right))) for one, left, right in changes]
        found = call("replaced", rng.choice(alikes), changes)
        alikes += [] if found is None else [found]
    for _ in range(3):
        if maxima:
            of_maxima = [node for symbol in maxima for node in own.carrier.maxima[symbol]]
            both = call("themselves", basis, of_maxima)
            if both is not None and equalities:
                both = call("replaced", both, rng.sample(equalities, 1)) or both
            first, second = rng.choice([*maxima, every[0]]), rng.choice(maxima)
            call("one_maximum", basis, first, second, both or start)
            call("one_maximum", basis, first, second, rng.choice(alikes))
            known: Any = (both or start).goal
            others = dict(zip(known.terms, known.others, strict=True))
            mapped = [others.get(node, node) for node in own.carrier.maxima[second]]
            call("defined", basis, second, mapped, rng.choice((both or start, rng.choice(alikes))))
        term = rng.choice(terms)
        call("never", basis, term, rng.choice(alikes))
        if term.get_type().is_bool_type():
            alike_ = rng.choice(alikes)
            known = alike_.goal
            now = dict(zip(known.terms, known.others, strict=True))[term]
            nothing = call("follows", basis, own.carrier.manager.Not(now), facts, [], ENGINE)
            call("never", basis, term, alike_, nothing or (rng.choice(facts) if facts else alike_))
            call("never", basis, term, alike_)
    false = own.carrier.manager.FALSE()
    none = call("themselves", basis, [false])
    if none is not None:
        call("never", basis, false, none)


def lemmas(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Lemmas settled by an engine that evaluates the question itself: what is settled is true."""
    for kind in TRUTHS:
        lemma = some_lemma(kind, rng)
        found = campaign.call("settled", lemma, ENGINE, check=False)
        if found is not None and not TRUTHS[kind](lemma):
            campaign.tally("settled").false.append(f"{campaign.seed}: {lemma.statement()}")
