"""Two sides are equal by their expressions: they are one, or have one normal form."""

from __future__ import annotations

import time
from dataclasses import replace

from queries.proof.normalising import Normaliser, normal_form, rules_of
from queries.proof.records import Proof
from queries.properties.statements import Reordered
from queries.search.distinguish import Options
from queries.search.problem import Problem
from queries.search.samples import sample_rows
from queries.search.witness import replay
from smtmodel.nodes import Each, Element, FusedSum, Index, Node, Product, Round, Sum
from smtmodel.nodes.normal import normal
from smtmodel.nodes.rewriting import at_place, rebuilt, replaced, with_operands, written_out
from smtmodel.unit import Unit

SAMPLES = 512  # inputs on which both sides must agree before lemmas are asked
SAME = "the expressions are one"
ANY_ORDER = "the expressions are one, in which terms of a sum have no order"


def by_form(problem: Problem, options: Options, confirm: bool = True) -> Proof | None:
    """The proof that both sides are equal by their expressions, if they are. An interrupt is raised."""
    why = by_expression(problem)
    return Proof(problem, "equal", why=why) if why else by_rewriting(problem, options, confirm)


def by_expression(problem: Problem) -> str:
    """Why both sides are one expression over the same operands; empty where they are not."""
    if isinstance(problem, Reordered):
        result = _terms_written_out(problem.left.unit.result)
        return ANY_ORDER if normal(result) == normal(_moved(result, problem.order)) else ""
    units = _units(problem)
    return SAME if units is not None and units[0].result == units[1].result else ""


def _terms_written_out(node: Node) -> Node:
    """Without loops."""

    def terms(item: Node) -> list[Node]:
        return [at_place(item.body, item.level, k) for k in item.places] if isinstance(item, Each) else [item]

    def change(_: Node, new: Node) -> Node:
        if not isinstance(new, Sum):
            return new
        return new.of_terms([(at, term) for at, item in enumerate(new.items) for term in terms(item)])

    return rebuilt(written_out(node), change, {})


def _moved(node: Node, order: tuple[int, ...]) -> Node:
    """The expression where the product in place k is that in place order[k]: itself where a loop is left."""

    def leaf(part: Node) -> Node | None:
        if not (isinstance(part, Element) and part.operand in ("a", "b") and part.index is not None):
            return None
        return part if part.index.factors else replace(part, index=Index(order[part.index.offset]))

    return replaced(node, leaf)


def by_rewriting(problem: Problem, options: Options, confirm: bool = True) -> Proof | None:
    """The proof that both models have one normal form; None if they have not, or a lemma stayed open. An interrupt is
    raised."""
    units, start = _units(problem), time.monotonic()
    if units is None or _outline(units[0].result) != _outline(units[1].result):
        return None
    if replay(problem, sample_rows(problem.layout, SAMPLES)).differs.any():  # no lemma needs to be asked
        return None
    normaliser = Normaliser(options, confirm)
    proofs = [normaliser.proof(unit) for unit in units]
    if normal_form(units[0], proofs[0]) != normal_form(units[1], proofs[1]):
        return None
    found = [proof for proof in proofs if proof is not None]
    why = f"one normal form by rewriting: {', '.join(rules_of(found))}"
    return Proof(problem, "equal", normaliser.lemmas(found), seconds=time.monotonic() - start, why=why)


def _outline(node: Node) -> Node:
    """The expression without what rules of rewriting change: where two have different ones, no rule makes them one."""

    def change(_: Node, new: Node) -> Node:
        if isinstance(new, Product):
            return replace(new, normalised=False, limit=None)
        if isinstance(new, FusedSum):
            new = replace(new, zeros=None, least=None, carry_bits=None)
        if isinstance(new, Sum):
            return with_operands(new, map(_held, new.items))
        if isinstance(new, Round):
            how = replace(new.rounding, overflow="ieee", zero="ieee", mode="toward_zero")
            return replace(new, rounding=how)
        return new

    return normal(rebuilt(node, change, {}))


def _held(item: Node) -> Node:
    """A term without a rounding of a product."""
    term = item.body if isinstance(item, Each) else item
    if not (isinstance(term, Round) and isinstance(term.term, Product)):
        return item
    return replace(item, body=term.term) if isinstance(item, Each) else term.term


def _units(problem: Problem) -> tuple[Unit, Unit] | None:
    """Both units, NaNs of every pattern as one where one of them names none; None where operands differ, or the sides
    are given other inputs."""
    if type(problem) is not Problem:
        return None
    left, right = problem.left, problem.right
    if left.nan is None or right.nan is None:
        left, right = left.any_nan, right.any_nan
    one, other = left.unit, right.unit
    return (one, other) if one.operands == other.operands else None
