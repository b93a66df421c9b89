"""Proofs that two sides are equal by their expressions: a tactic that calls the rules and is not trusted."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import replace

from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.expressions import one_expression, one_form, one_sum, units_of
from mmaprobe.queries.kernel.equality.rewriting import lossless_sum, rounded_in_vain, rounded_twice
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Reordered
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.witness import replay
from mmaprobe.queries.tactics.normalising import Normaliser, rules_of
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.queries.tactics.settling import result_or_none
from mmaprobe.smtmodel.nodes import Constant, ExactSum, FusedSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.units.unit import Unit

SAMPLES = 512  # inputs on which both sides must agree before lemmas are asked
SAME = "the expressions are the same"
ANY_ORDER = "the expressions are the same, with terms of a sum in any order"
ANY_GROUPS = "the expressions are the same, with terms of a sum in any order, and of an exact sum in any groups"


def by_form(problem: Problem, options: Options, confirm: bool = True) -> Proof | None:
    """The proof that both sides are equal by their expressions; None if there is no proof. Raises KeyboardInterrupt."""
    return by_expression(problem) or by_rewriting(problem, options, confirm)


def by_expression(problem: Problem) -> Proof | None:
    """The proof that both sides are the same expression over the same operands; None if they are not."""
    if isinstance(problem, Reordered):
        theorem, why = result_or_none(one_sum, problem), ANY_ORDER
    else:
        theorem, why = result_or_none(one_expression, problem), SAME
    return None if theorem is None else Proof(problem, why=why, theorem=theorem)


def by_rewriting(problem: Problem, options: Options, confirm: bool = True) -> Proof | None:
    """The proof that both models have the same normal form, as they are or by rules of rewriting; None if the forms
    differ, or if a lemma is not proved. Raises KeyboardInterrupt."""
    start = time.monotonic()
    try:
        units = units_of(problem, "by_rewriting")
        if _kept(units[0]) != _kept(units[1]):
            return None
    except RuleError:
        return None
    if _differ_on_samples(problem):  # no lemma needs to be asked
        return None
    if (theorem := result_or_none(one_form, problem, None, None)) is not None:
        return Proof(problem, seconds=time.monotonic() - start, why=ANY_GROUPS, theorem=theorem)
    normaliser = Normaliser(options, confirm)
    proofs = [normaliser.proof(unit) for unit in units]
    if (theorem := result_or_none(one_form, problem, *proofs)) is None:
        return None
    complete = [proof for proof in proofs if proof is not None]
    why = f"one normal form by rewriting: {', '.join(rules_of(complete))}"
    return Proof(problem, normaliser.lemmas(complete), seconds=time.monotonic() - start, why=why, theorem=theorem)


def _differ_on_samples(problem: Problem) -> bool:
    return bool(replay(problem, sample_rows(problem.layout, SAMPLES)).differs.any())


def _kept(unit: Unit) -> frozenset[Hashable]:
    """The parameters of an expression that no rewriting rule changes. Expressions that differ in these have different
    normal forms."""
    parameters, scope, nodes = set[Hashable](), Scope.of(unit), list(walk(unit.result))
    removed = {part.term for part in nodes if isinstance(part, Round)
            and (rounded_twice(scope, part) or rounded_in_vain(scope, part))}  # fmt: skip
    for part in nodes:
        if isinstance(part, FusedSum) and lossless_sum(scope, replace(part, carry_bits=None)) is None:
            parameters.add((part.fraction_bits, part.rounding, part.sticky))
        elif isinstance(part, Round) and not _is_product(part.term) and part not in removed:
            parameters.add((part.rounding.format, part.rounding.subnormals))
    return frozenset(parameters)


def _is_product(node: Node) -> bool:
    """Whether a node is a product, or an exact sum of one product and zeros, which rewriting rules remove."""
    items = [item for item in node.items if not isinstance(item, Constant)] if isinstance(node, ExactSum) else [node]
    return len(items) == 1 and isinstance(items[0], Product)
