"""The tails of two plans: what both do with the products that fill no tile, from a sum so far that tiles have made."""

from __future__ import annotations

from dataclasses import replace

from queries.plans.addends import reading_that_changes_nothing
from smtmodel.nodes import Constant, Each, Element, FusedSum, Node, Product, Round
from smtmodel.nodes.rewriting import replaced
from smtmodel.plans import Chain, Plan, Products
from smtmodel.plans.lowering import unit_of_plan
from smtmodel.unit import Unit

PER_TERM = ("fraction_bits", "floors", "reach")  # what a fused sum may say of each of its terms


def tails(left: Plan, right: Plan, length: int) -> tuple[int, Unit, Unit] | None:
    """How many products two plans leave for their tails at K = `length`, and the units of these, whose c is any number
    that a sum of tiles may be; None if there are no two tails after the same tiles. The plans begin alike, read inputs
    alike, and do the same with their one sum."""
    stages = [product.stage for plan in (left, right) for product in plan.sums]
    if len(stages) != 2 or not all(isinstance(stage, Chain) for stage in stages):
        return None
    one, other = stages
    assert isinstance(one, Chain)
    assert isinstance(other, Chain)
    whole, rest = divmod(length, one.model.length)
    if one.model != other.model or (one.d, one.accumulator) != (other.d, other.accumulator) or not whole or not rest:
        return None
    sums, how = one.model.d, reading_that_changes_nothing(one.model.unit)
    start = Element("c") if how is None else Round(Element("c"), how)
    units = (
        unit_of_plan(replace(plan, c=sums, result=Products(stage.tail or Chain(stage.model), start), names={}), rest)
        for plan, stage in ((left, one), (right, other))
    )
    first, second = (replace(unit, result=replaced(unit.result, _with_one_zero), names={}, signals={})
                     for unit in units)  # fmt: skip
    return rest, first, second


def _with_one_zero(node: Node) -> Node | None:
    """A fused sum with one of its products of zeros, with which a tile is filled up: the others have the same exponent
    and add nothing. None for every other node."""
    if not isinstance(node, FusedSum) or any(
        isinstance(getattr(node, name), tuple) for name in PER_TERM if getattr(node, name)
    ):
        return None
    found: list[tuple[int, Node]] = []
    zeros = 0
    for at, item in enumerate(node.items):
        term = item.body if isinstance(item, Each) else item
        if isinstance(term, Product) and term.left == term.right == Constant():
            zeros += 1
            if zeros == 1:
                found.append((at, term))
        else:
            found.append((at, replaced(item, _with_one_zero)))
    return node.of_terms(found) if zeros else None
