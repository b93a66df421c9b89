"""Products, and c, that a device subtracts: the device is asked with these signs inverted, and the unit found is given
the inversions.

A unit adds products. To subtract a[k] * b[k] it adds the product of -1 * a[k], which is exact, and b[k]; to subtract c
it adds -1 * c.
"""

from __future__ import annotations

from dataclasses import replace

from queries.compare.steady import AskDevice
from queries.order.probe import power_pattern
from queries.properties.expressions import terms_written_out
from smtmodel.formats import Format
from smtmodel.nodes import Element, Literal, Node, Product, Round
from smtmodel.nodes.rewriting import replaced
from smtmodel.nodes.round import Rounding
from smtmodel.operands import Operands
from smtmodel.signature import Signature
from smtmodel.unit import Unit
from smtmodel.vectors import Vector

Place = int | str  # a product, or "c"


def subtracted(ask: AskDevice, asked: Signature) -> frozenset[Place]:
    """The products, and c, that give a negative result when their value is 1 and every other term is zero: one question
    for each. Empty for a device with scale factors."""
    if asked.scale is not None:
        return frozenset()
    places: list[Place] = [*range(asked.length), *(["c"] if asked.addend else [])]
    found = ask([Vector(asked, _alone(place, asked), id=f"1 at {place}") for place in places])
    sign, magnitude = asked.d.sign_bit, asked.d.sign_bit - 1
    return frozenset(
        place for place, d in zip(places, found, strict=True) if d is not None and d & sign and d & magnitude
    )


def _alone(place: Place, asked: Signature) -> Operands[int]:
    one = [power_pattern(fmt, 1, 0) for fmt in (asked.a, asked.b, asked.c)]
    a, b = (tuple(x if k == place else 0 for k in range(asked.length)) for x in one[:2])
    return Operands(a, b, one[2] if place == "c" else 0)


def turned(operands: Operands[int], places: frozenset[Place], asked: Signature) -> Operands[int]:
    """The input with the sign bits of a[k], and of c, inverted at these places; products that are missing are +0."""
    missing = (0,) * (asked.length - len(operands.a))
    a = tuple(x ^ asked.a.sign_bit if k in places else x for k, x in enumerate((*operands.a, *missing)))
    c = operands.c ^ asked.c.sign_bit if "c" in places else operands.c
    return replace(operands, a=a, b=(*operands.b, *missing), c=c)


def _opposite_of(term: Node) -> Element | None:
    """The element that a term multiplies by -1; None if the term is anything else."""
    if not isinstance(term, Product) or not isinstance(term.left, Literal) or not isinstance(term.right, Element):
        return None
    return term.right if term == minus(term.right, term.left.format) else None


def minus(number: Node, fmt: Format) -> Product:
    """The product of -1, in format `fmt`, and a number."""
    return Product(Literal(power_pattern(fmt, -1, 0), fmt), number)


def turned_back(unit: Unit, places: frozenset[Place]) -> Unit:
    """The unit that subtracts the terms at these places, which the given unit adds."""

    every = places.issuperset(range(unit.length))
    in_place = every or places <= {"c"}  # no loop has both added and subtracted products

    def turns(part: Element) -> bool:
        if part.operand == "a" and part.index is not None:
            return every or part.index.offset in places
        return part.operand in places

    def leaf(part: Node) -> Node | None:
        twice = _opposite_of(part.term if isinstance(part, Round) else part)
        if twice is not None and turns(twice):
            return twice
        if not isinstance(part, Element):
            return None
        if not turns(part):
            return part
        fmt = unit.a if part.operand == "a" else unit.c
        return Round(minus(part, fmt), Rounding(fmt))

    result = unit.result if in_place else terms_written_out(unit.result)
    return replace(unit, result=replaced(result, leaf), names={}, signals={}, titles={})
