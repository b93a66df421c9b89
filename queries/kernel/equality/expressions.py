"""Rules that two sides are equal because their expressions are the same, or have the same normal form."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from mmaprobe.queries.kernel.equality.rewriting import SameResults
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Reordered
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.nodes import Element, ExactSum, Index, Node, Sum
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.rewriting import each_of, rebuilt, replaced, written_out
from mmaprobe.smtmodel.operand import NAMED
from mmaprobe.smtmodel.units.unit import Unit


@rule
def one_expression(problem: Problem) -> Made:
    """Two units whose results are the same expression over the same operands compute the same on every input."""
    left, right = units_of(problem, "one_expression")
    if left.result != right.result:
        raise RuleError("one_expression: the expressions differ")
    return Made(SidesAgree(problem))


@rule
def one_sum(problem: Reordered) -> Made:
    """Let E be an expression without loops, and E' the expression with a[order[k]] and b[order[k]] in place of a[k] and
    b[k]: the value of E' is that of E on the moved products. If E and E' have the same normal form, in which the terms
    of a sum have no order, they are equal on every input."""
    if problem.left != problem.right:
        raise RuleError("one_sum: the sides are not one model in two orders")
    if sorted(problem.order) != list(range(problem.left.length)):
        raise RuleError("one_sum: the order is not a permutation of the products")
    result = terms_written_out(problem.left.unit.result)
    if normal(result) != normal(_moved(result, problem.order)):
        raise RuleError("one_sum: the normal forms differ")
    return Made(SidesAgree(problem))


@rule
def one_form(problem: Problem, left: Theorem | None, right: Theorem | None) -> Made:
    """Let two units have the same operands, and let each compute the same as some expression (its own, if no theorem is
    given). If both expressions have the same normal form, as they are or with loops and the terms of sums written out,
    the units compute the same."""
    others = []
    for unit, theorem in zip(units_of(problem, "one_form"), (left, right), strict=True):
        goal = SameResults(unit, unit.result) if theorem is None else goal_of(theorem, SameResults, "one_form")
        if goal.unit != unit:
            raise RuleError("one_form: the premise is about another unit")
        others.append(goal.other)
    forms = _forms(others)
    if forms[0] != forms[1]:
        raise RuleError("one_form: the normal forms differ")
    return Made(SidesAgree(problem), tuple(theorem for theorem in (left, right) if theorem is not None))


def _forms(nodes: Sequence[Node]) -> list[Node]:
    """The normal forms of two expressions; if these differ, their normal forms with loops and the terms of sums written
    out."""
    one, other = map(normal, nodes)
    if one != other:
        with suppress(RecursionError):  # written out, steps may be nested too deep
            return [normal(terms_written_out(node)) for node in nodes]
    return [one, other]


def units_of(problem: Problem, name: str) -> tuple[Unit, Unit]:
    """Both units of a problem. If one of them specifies no NaN pattern, both are taken without one, so that all NaNs
    are equal. Raises RuleError if the operands differ, or if the sides are given different inputs."""
    if type(problem) is not Problem:
        raise RuleError(f"{name}: the sides are given different inputs")
    left, right = problem.left, problem.right
    if left.nan is None or right.nan is None:
        left, right = left.any_nan, right.any_nan
    one, other = left.unit, right.unit
    if one.operands != other.operands:
        raise RuleError(f"{name}: the operands of the sides differ")
    return one, other


def terms_written_out(node: Node) -> Node:
    """The expression with its loops and the terms of its sums written out, and exact sums within exact sums as one
    sum."""

    def change(_: Node, new: Node) -> Node:
        if not isinstance(new, Sum):
            return new
        total = new.flat if isinstance(new, ExactSum) else new
        return total.of_terms([(at, term) for at, item in enumerate(total.items) for term in each_of(item)])

    return rebuilt(written_out(node), change, {})


def _moved(node: Node, order: tuple[int, ...]) -> Node:
    """The expression with product order[k] in place of product k. Raises RuleError if a loop remains."""

    def leaf(part: Node) -> Node | None:
        if not (isinstance(part, Element) and NAMED[part.operand].moves and part.index is not None):
            return None
        if part.index.factors:
            raise RuleError("one_sum: a loop is left")
        return replace(part, index=Index(order[part.index.offset]))

    return replaced(node, leaf)
