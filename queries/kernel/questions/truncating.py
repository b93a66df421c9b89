"""The units to which an argument about truncating sums applies.

Every node is compared with one that keeps only the parameters on which the argument does not depend, so that a unit
with a parameter that was not considered is refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Each, Element, ExactSum, FusedSum, Node, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.chains import OUTER, ProductChain, chain_of
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding, Tiny
from mmaprobe.smtmodel.units.unit import Unit


def truncating_steps(unit: Unit, about: str) -> ProductChain:
    """The steps of a unit that adds each product once, and c, and only ever truncates: each step is one sum of exact
    products and the previous result, rounded to the format of d.

    Raises ParameterError, which names the parameter that differs; its message ends in `about`.
    """
    chain = chain_of(unit.result)
    if chain is None:
        raise ParameterError("steps", f"they are not one sum of products after another: {about}")
    places = sorted(k for block in chain.blocks for k in block)
    if places != list(range(unit.length)) or not chain.start.is_addend:
        raise ParameterError("steps", f"not every product, and c, is added once: {about}")
    total = chain.step.term if isinstance(chain.step, Round) else None
    terms = Counter(total.items) if isinstance(total, (ExactSum, FusedSum)) else Counter()
    if terms != Counter((chain.terms, Running(OUTER))):
        raise ParameterError("steps", f"each must be a sum of its products and the result before, rounded: {about}")
    for node in walk(unit.result):
        if reason := _otherwise(node, unit):
            raise ParameterError(reason[0], f"{reason[1]}: {about}")
    return chain


def _otherwise(node: Node, unit: Unit) -> tuple[str, str] | None:
    """The parameter by which a node differs from plain truncation, and the node in words; None if it does not
    differ."""
    plain = _plain(node, unit)
    if plain == node:
        return None
    own = [item.name for item in fields(node)]  # type: ignore[arg-type]
    changed = [name for name in own if plain is None or getattr(node, name) != getattr(plain, name)]
    if isinstance(node, Round) and isinstance(plain, Round):
        how = (node.rounding, plain.rounding)
        own = [item.name for item in fields(Rounding)]
        changed = [name for name in own if getattr(how[0], name) != getattr(how[1], name)]
    return changed[0] if plain is not None and changed else node.kind, node.sentence()


def _plain(node: Node, unit: Unit) -> Node | None:
    """The node with only those parameters on which the argument does not depend; None for other kinds of nodes."""
    match node:
        case Element() if not node.is_factor:
            return Element(node.operand, node.index, node.subnormals)
        case Product() if all(isinstance(factor, Element) for factor in node.operands):
            return Product(node.left, node.right)
        case FusedSum():
            return FusedSum(node.items, min(node.bits_of_terms), zeros=node.zeros, least=node.least)
        case Round():
            how, flushed = node.rounding, node.rounding.subnormals == "flush_after"
            small: Tiny = "flush_after" if flushed else "keep"
            return Round(node.term, Rounding(unit.d, "toward_zero", how.overflow, small, how.zero, how.nan))
        case ExactSum() | Repeat() | Each() | Running():
            return node
    return None
