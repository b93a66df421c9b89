"""Units of one turn of an unrolled loop, named by the order of additions: `ieee/turn/f32/c+1+0` adds the second product
to c, then the first product.

An order is a sum from left to right, with c first, then numbers of products (from 0) and sums in brackets. Adding a
product is a fused multiply-add. A product that begins a sum in brackets is rounded. Each addition is rounded to nearest
even (IEEE 754-2019, 5.4.1): c+6+(7+5) means d = r(r(c + a6*b6) + r(r(a7*b7) + a5*b5)).
"""

from __future__ import annotations

import re
from functools import lru_cache

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Element, ExactSum, Index, Node, Product, Round
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

TURN = "ieee/turn/"  # the first part of every reference
MOST_PRODUCTS = 64
_TOKENS = re.compile("[0-9]{1,9}|[c()+]")


@lru_cache(maxsize=512)
def unit_of_turn(reference: str) -> Unit:
    """The unit of a reference `ieee/turn/FORMAT/ORDER`. Raises UnknownNameError for an unknown format, and
    ParameterError for an impossible order."""
    name, _, order = reference.removeprefix(TURN).partition("/")
    fmt = format_named(name)
    reader = _Reader(order, Rounding(fmt))
    result = reader.whole()
    length = len(reader.products)
    about = f"One turn of an unrolled loop in {fmt.name}, of {length} products."
    return Unit(
        fmt, fmt, fmt, length, result, reference=reference, about=about, source="IEEE 754-2019, 5.4.1",
        evidence="by definition",
    )  # fmt: skip


@lru_cache(maxsize=512)  # callers ask this of the same unit for every order of a turn
def is_turn_of_one(unit: Unit) -> bool:
    """Whether a unit is the fused multiply-add d = r(c + a[0] * b[0]) in one of the formats `FORMATS`, as in a turn."""
    fmt = unit.d
    if FORMATS.get(fmt.name) != fmt or {unit.a, unit.b, unit.c} != {fmt}:
        return False
    return normal(unit.result) == normal(_Reader("c+0", Rounding(fmt)).whole())


class _Reader:
    def __init__(self, order: str, rounding: Rounding) -> None:
        self.order, self.rounding = order, rounding
        self.left = _TOKENS.findall(order)[::-1]
        self.products: list[int] = []
        self.depth = 0
        if "".join(reversed(self.left)) != order or not order:
            raise self._error("it is made of c, numbers, + and brackets")

    def whole(self) -> Node:
        if self._next() != "c":
            raise self._error("it begins with c")
        result = self._sum(Element("c"), "")
        if sorted(self.products) != list(range(len(self.products))) or not self.products:
            raise self._error("it has each product from 0 on once")
        if len(self.products) > MOST_PRODUCTS:
            raise self._error(f"it has at most {MOST_PRODUCTS} products")
        return result

    def _sum(self, total: Node, end: str) -> Node:
        """`total` plus the terms that follow, up to the bracket `end`, or to the end of the text if `end` is empty."""
        while (token := self._next()) != end:
            if token != "+":
                raise self._error(f"+ is missing before {token!r}" if token else "a bracket is not closed")
            total = Round(ExactSum((total, self._term())), self.rounding)
        return total

    def _term(self) -> Node:
        token = self._next()
        if token != "(":
            return self._product(token)
        self.depth += 1
        if self.depth > MOST_PRODUCTS:
            raise self._error(f"brackets are at most {MOST_PRODUCTS} deep")
        first = self._term()
        self.depth -= 1
        return self._sum(Round(first, self.rounding) if isinstance(first, Product) else first, ")")

    def _product(self, token: str) -> Product:
        if not is_digits(token):
            raise self._error(f"{token!r} stands where a product or a sum in brackets is wanted")
        self.products.append(number := int(token))
        return Product(Element("a", Index(number)), Element("b", Index(number)))

    def _next(self) -> str:
        return self.left.pop() if self.left else ""

    def _error(self, what: str) -> ParameterError:
        return ParameterError(f"order {self.order!r}", f"{what}, as in c+1+0 or c+2+(1+0)")
