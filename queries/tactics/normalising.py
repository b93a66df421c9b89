"""Normal forms of units' expressions: every rewriting rule with proved lemmas is applied, operands first, until no rule
applies.

This is a tactic: it calls the rules of the kernel, and is not trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.rewriting import (
    REWRITES,
    Alike,
    Replacement,
    SameResults,
    congruent,
    followed,
    is_blind,
    kind_of,
    looped,
    plus_for_zeros,
    results_alike,
    rewritten,
)
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Lemma
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.nodes import Each, FusedSum, Node, Product, Repeat, Scale
from mmaprobe.smtmodel.nodes.normal import Forms
from mmaprobe.smtmodel.units.unit import Unit

LEMMA_SECONDS = 10.0  # for one lemma; a rule whose lemma takes longer is not applied


@dataclass(frozen=True)
class Wanted:
    """The demands on a replacement of a node. `counting`: it counts in the same way in an alignment; `signs`: it keeps
    the signs of zeros."""

    counting: bool
    signs: bool

    def allows(self, theorem: Alike | Replacement) -> bool:
        return (theorem.counting or not self.counting) and (theorem.signs or not self.signs)


class Normaliser:
    """Finds normal forms, and keeps the theorems about nodes, and the lemmas; if `confirmed`, a second engine proves
    each lemma too. `forms` is for `mmaprobe.smtmodel.nodes.normal.normal`, which needs no lemma."""

    def __init__(self, options: Options, confirmed: bool = False) -> None:
        self.settle = Settled(options, confirmed, LEMMA_SECONDS, needed=False)
        self.known: dict[Scope, dict[tuple[Node, Wanted], Theorem | None]] = {}
        self.scopes: dict[Scope, Scope] = {}  # a scope derives the facts of a node once, also for several units
        self.forms = Forms()

    def proof(self, unit: Unit) -> Theorem | None:
        """The theorem that a unit computes the same with its normal form; None if its expression is the normal form, or
        if the rules do not apply: the form has another pattern for NaN, or the unit takes random bits."""
        with suppress(RuleError):
            alike = self._alike(self._kept(Scope.of(unit)), unit.result, Wanted(True, True))
            return None if alike is None else results_alike(unit, alike)
        return None

    def lemmas(self, proofs: Sequence[Theorem]) -> list[Lemma]:
        """The lemmas in proofs that engines proved."""
        names = {one.goal.statement() for proof in proofs for one in proof.walk() if one.rule == "settled"}
        return [lemma for lemma in self.settle.asked if lemma.name in names]

    def engines(self, proofs: Sequence[Theorem]) -> list[str]:
        """The engines that proved lemmas of proofs."""
        return sorted({lemma.answer.engine for lemma in self.lemmas(proofs)})

    def _kept(self, scope: Scope) -> Scope:
        return self.scopes.setdefault(scope, scope)

    def _alike(self, scope: Scope, node: Node, wanted: Wanted) -> Theorem | None:
        """The theorem that a node computes alike with its normal form; None if the node is its own normal form."""
        known = self.known.setdefault(scope, {})
        key = node, wanted
        if key not in known:
            known[key] = self._rewritten(scope, node, wanted)
        return known[key]

    def _inside(self, scope: Scope, node: Node, wanted: Wanted) -> Theorem | None:
        if isinstance(node, Repeat):
            return self._loop(scope, node, wanted.signs)
        fused = isinstance(node, FusedSum)
        counting = wanted.counting if isinstance(node, (Product, Scale, Each)) else fused
        below = Wanted(counting, wanted.signs and not plus_for_zeros(node))
        rewritten = [self._alike(scope, operand, below) for operand in node.operands]
        if all(one is None for one in rewritten):
            return None
        with suppress(RuleError):
            return _allowed(congruent(scope, node, rewritten), wanted)
        return None

    def _loop(self, scope: Scope, node: Repeat, signs: bool) -> Theorem | None:
        if not signs and not is_blind(node.body):
            signs = True
        ends = is_blind(node.body) and plus_for_zeros(node.body)
        start, theorem = self._alike(scope, node.start, Wanted(True, signs and not ends)), None
        if start is not None:
            with suppress(RuleError):
                theorem = congruent(scope, node, (start, None))
        current = node if theorem is None else _other(theorem)
        assert isinstance(current, Repeat)
        held = kind_of(scope, current)
        inner = None if held is None else self._kept(scope.within(node.level, held))
        body = None if inner is None else self._alike(inner, current.body, Wanted(True, signs))
        if body is not None:
            with suppress(RuleError):
                theorem = _joined(theorem, looped(scope, current, body))
        return theorem

    def _rewritten(self, scope: Scope, node: Node, wanted: Wanted) -> Theorem | None:
        """Rewrites the operands, then the node by one rule, then the operands again, and so on until no rule
        applies."""
        theorem: Theorem | None = None
        while True:
            inside = self._inside(scope, node if theorem is None else _other(theorem), wanted)
            if inside is not None:
                theorem = _joined(theorem, inside)
            step = self._step(scope, node if theorem is None else _other(theorem), wanted)
            if step is None:
                return theorem
            theorem = _joined(theorem, step)

    def _step(self, scope: Scope, node: Node, wanted: Wanted) -> Theorem | None:
        for name, rewrite in REWRITES.items():
            proposed = rewrite(scope, node)
            if proposed is None or not wanted.allows(proposed):
                continue
            if (lemmas := self.settle.all_of(proposed.lemmas)) is not None:
                return rewritten(scope, node, name, lemmas)
        return None


def normal_form(unit: Unit, proof: Theorem | None) -> Node:
    """The normal form at the end of a proof."""
    if proof is None:
        return unit.result
    assert isinstance(proof.goal, SameResults)
    return proof.goal.other


def rules_of(proofs: Sequence[Theorem]) -> list[str]:
    """The rules of rewriting that proofs use, in the order of the rules."""
    used = {one.word for proof in proofs for one in proof.walk() if one.rule == "rewritten"}
    return [name for name in REWRITES if name in used]


def _other(theorem: Theorem) -> Node:
    assert isinstance(theorem.goal, Alike)
    return theorem.goal.other


def _joined(first: Theorem | None, second: Theorem) -> Theorem:
    return second if first is None else followed(first, second)


def _allowed(theorem: Theorem, wanted: Wanted) -> Theorem | None:
    assert isinstance(theorem.goal, Alike)
    return theorem if wanted.allows(theorem.goal) else None
