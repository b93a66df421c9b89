"""Two sides are equal by their expressions: a tactic, which calls the rules and is not trusted."""

from __future__ import annotations

import time
from collections.abc import Hashable

from queries.proof.kernel import RuleError
from queries.proof.normalising import Normaliser, rules_of
from queries.proof.records import Proof
from queries.properties.expressions import one_expression, one_form, one_sum, units_of
from queries.properties.statements import Reordered
from queries.search.distinguish import Options
from queries.search.problem import Problem
from queries.search.samples import sample_rows
from queries.search.witness import replay
from smtmodel.nodes import FusedSum, Node, Product, Round
from smtmodel.nodes.node import walk

SAMPLES = 512  # inputs on which both sides must agree before lemmas are asked
SAME = "the expressions are one"
ANY_ORDER = "the expressions are one, in which terms of a sum have no order"


def by_form(problem: Problem, options: Options, confirm: bool = True) -> Proof | None:
    """The proof that both sides are equal by their expressions, if they are. An interrupt is raised."""
    return by_expression(problem) or by_rewriting(problem, options, confirm)


def by_expression(problem: Problem) -> Proof | None:
    """The proof that both sides are one expression over the same operands; None where they are not."""
    try:
        if isinstance(problem, Reordered):
            return Proof(problem, "equal", why=ANY_ORDER, theorem=one_sum(problem))
        return Proof(problem, "equal", why=SAME, theorem=one_expression(problem))
    except RuleError:
        return None


def by_rewriting(problem: Problem, options: Options, confirm: bool = True) -> Proof | None:
    """The proof that both models have one normal form; None if they have not, or a lemma stayed open. An interrupt is
    raised."""
    start = time.monotonic()
    try:
        units = units_of(problem, "by_rewriting")
    except RuleError:
        return None
    if _kept(units[0].result) != _kept(units[1].result):
        return None
    if replay(problem, sample_rows(problem.layout, SAMPLES)).differs.any():  # no lemma needs to be asked
        return None
    normaliser = Normaliser(options, confirm)
    proofs = [normaliser.proof(unit) for unit in units]
    try:
        theorem = one_form(problem, *proofs)
    except RuleError:
        return None
    found = [proof for proof in proofs if proof is not None]
    why = f"one normal form by rewriting: {', '.join(rules_of(found))}"
    return Proof(problem, "equal", normaliser.lemmas(found), seconds=time.monotonic() - start, why=why, theorem=theorem)


def _kept(node: Node) -> frozenset[Hashable]:
    """What no rule of rewriting changes: two expressions that differ in it have no normal form in common."""
    found = set[Hashable]()
    for part in walk(node):
        if isinstance(part, FusedSum):
            found.add((part.fraction_bits, part.rounding, part.sticky))
        elif isinstance(part, Round) and not isinstance(part.term, Product):
            found.add((part.rounding.format, part.rounding.subnormals))
    return frozenset(found)
