"""Families as functions: from their own parameters to an expression over nodes."""

from __future__ import annotations

from collections.abc import Sequence

from smtmodel.accumulator import Accumulator
from smtmodel.formats import Format
from smtmodel.nodes import (
    Constant,
    Cut,
    Element,
    ExactSum,
    FusedSum,
    Index,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
)
from smtmodel.nodes.chains import OUTER, shifts, spread
from smtmodel.nodes.element import FACTORS, Operand, Subnormals
from smtmodel.nodes.round import Rounding, Zero
from smtmodel.unit import Unit

ZEROS: dict[str, Zero] = {"ieee": "ieee", "positive": "exact_positive", "always_positive": "positive"}


def expression(accumulator: Accumulator) -> Node:
    """The expression of an accumulator's parameters."""
    return _Family(accumulator).result()


def unit_of(accumulator: Accumulator, a: Format, b: Format, c: Format, reference: str = "") -> Unit:
    """The unit with an accumulator's parameters and these formats of its operands."""
    family = _Family(accumulator)
    result, scale = family.result(), accumulator.scale
    return Unit(
        a, b, c, accumulator.length, result, scale, 0 if scale is None else accumulator.scale_block,
        reference=reference, signals=family.signals, titles=family.titles,
    )  # fmt: skip


def addend_of(accumulator: Accumulator) -> Element:
    """The addend as the unit reads it."""
    return _Family(accumulator).c


def result_of(accumulator: Accumulator) -> Round:
    """The last node: the result as it is rounded."""
    found = _Family(accumulator).result()
    while isinstance(found, Repeat):
        found = found.body
    assert isinstance(found, Round)
    return found


def product_of(accumulator: Accumulator) -> Node:
    """The first product as the unit forms it."""
    return _Family(accumulator).product(Index(0))


class _Family:
    """The expression under way. `signals` and `titles` as in Unit."""

    def __init__(self, accumulator: Accumulator) -> None:
        self.acc = accumulator
        self.subnormals: Subnormals = "positive_zero" if accumulator.flush_inputs else "keep"
        self.c = self._element("c", None)
        self.signals: dict[Node, str] = {}
        self.titles: dict[Node, str] = {self.c: "addend", Running(OUTER): "addend"}
        self.rounding = Rounding(
            accumulator.output_format,
            accumulator.output_rounding,
            "ieee" if accumulator.operation == "add_mul" else accumulator.overflow,
            "flush_after" if accumulator.flush_outputs else "keep",
            ZEROS[accumulator.zero_sign],
            accumulator.nan,
        )

    def _named(self, node: Node, signal: str) -> Node:
        """A node whose signals' names begin with this."""
        self.signals.setdefault(node, signal)
        return node

    def result(self) -> Node:
        acc = self.acc
        after = acc.addend == "after"
        start: Node = Constant() if after else self.c
        first, offsets = acc.blocks[0], shifts(acc.blocks)
        if offsets is None or (acc.scale_format is not None and len(offsets) > 1):
            found = start  # a scale factor's place is no multiple of a product's
            for step, places in enumerate(acc.blocks):
                found = self._step(found, places, 0, f"block{step}")
                self.titles[found] = "addend"
        elif len(offsets) == 1:
            found = self._step(start, first, 0)
        else:
            found = Repeat(OUTER, offsets, start, self._step(Running(OUTER), first, OUTER))
        if after:
            self._named(found, "")
            self.titles |= {found: "products", self.c: "c"}
            last = Rounding(acc.output_format, acc.addition_rounding, "ieee", self.rounding.subnormals, "ieee", acc.nan)
            found = self._named(Round(ExactSum((found, self.c)), last), "after")
        return found

    def _element(self, operand: Operand, index: Index | None) -> Element:
        if operand in FACTORS:
            return Element(operand, index)
        return Element(operand, index, self.subnormals, self.acc.input_zeros == "positive")

    def product(self, index: Index) -> Node:
        acc = self.acc
        found: Node = Product(
            self._element("a", index), self._element("b", index), acc.product == "normalised", acc.product_overflow
        )
        if acc.product_format is not None:
            found = Round(found, Rounding(acc.product_format, acc.product_rounding))
        return found

    def _products(self, places: Sequence[int], outer: int, prefix: str) -> tuple[Node, ...]:
        """The terms of a step; `outer` is the level of the loop over steps, 0 without one."""
        acc = self.acc
        if acc.scale_format is None:
            return (spread(places, self.product, outer),)
        if acc.grouping != "scale_blocks" or acc.group == 1:
            return tuple(self._scaled(self.product(Index(k)), k) for k in places)
        terms = []
        for start in range(0, len(places), acc.group):
            group = places[start : start + acc.group]
            total = ExactSum((spread(group, self.product, outer),))
            self._named(total, f"{prefix}group[{group[0]}-{group[-1]}]")
            terms.append(self._scaled(total, group[0]))
        return tuple(terms)

    def _scaled(self, term: Node, place: int) -> Node:
        index = Index(place // self.acc.scale_block)
        return Scale(term, self._element("scale_a", index), self._element("scale_b", index))

    def _fused(self, terms: Sequence[Node]) -> Node:
        acc = self.acc
        if acc.exact_sum:
            return ExactSum(tuple(terms))
        assert acc.fraction_bits != "exact"
        assert acc.align_rounding != "sticky"
        zeros = acc.exponent_floor if acc.floor_applies_to == "zero_terms" else None
        least = acc.exponent_floor if acc.floor_applies_to == "maximum" else None
        carry = None if acc.carry_bits == "exact" else acc.carry_bits
        return FusedSum(tuple(terms), acc.fraction_bits, acc.align_rounding, False, carry, zeros, least)

    def _step(self, start: Node, places: Sequence[int], outer: int, block: str = "") -> Node:
        """One step from `start`; `block` is what its signals begin with where no loop says so."""
        acc, prefix = self.acc, f"{block}." if block else ""
        loop = ((outer, 1),) if outer else ()
        if acc.operation == "add_mul":
            found: Node = Round(ExactSum((start, self._pairs(places, loop, prefix))), self.rounding)
        elif acc.partials == "normalised":
            found = self._running([*(self.product(Index(k, loop)) for k in places), start], prefix)
        else:
            terms = self._products(places, outer, prefix)
            total = self._late(terms, places, start, outer, prefix) if acc.addend == "late" else None
            found = Round(total or self._fused((*terms, start)), self.rounding)
        return self._named(found, block) if block else found

    def _pairs(self, places: Sequence[int], loop: tuple[tuple[int, int], ...], prefix: str) -> Node:
        """Products rounded one by one and added in pairs."""
        layer: list[Node] = [Round(self.product(Index(k, loop)), self.rounding) for k in places]
        name = "multiplied"
        for level in range(len(layer).bit_length()):
            for position, node in enumerate(layer):
                self._named(node, f"{prefix}{name}[{position}]")
            if len(layer) == 1:
                break
            layer = [Round(ExactSum(pair), self.rounding) for pair in zip(layer[::2], layer[1::2], strict=True)]
            name = f"pair{level}"
        return layer[0]

    def _running(self, terms: Sequence[Node], prefix: str) -> Node:
        """Sums of two terms, each rounded, one after another."""
        running = terms[0]
        for number, term in enumerate(terms[1:], start=1):
            if number > 1:
                self.titles[running] = "running"
            running = self._named(Round(self._fused((running, term)), self.rounding), f"{prefix}partial{number}")
        return running

    def _late(self, terms: Sequence[Node], places: Sequence[int], start: Node, outer: int, prefix: str) -> Node:
        """The products' sum (of even and odd products apart, if grouped so), then the addend."""
        acc = self.acc
        bits = acc.fraction_bits
        assert bits != "exact"
        floor = acc.exponent_floor
        zeros, least = (floor, None) if acc.floor_applies_to == "zero_terms" else (None, floor)
        if acc.grouping == "even_odd":
            halves = [self._fused((spread(places[side::2], self.product, outer),)) for side in (0, 1)]
            for half, name in zip(halves, ("even", "odd"), strict=True):
                self._named(half, f"{prefix}{name}")
                self.titles[half] = name
            total: Node = FusedSum(tuple(halves), bits, acc.late_rounding, zeros=zeros, least=least)
            self._named(total, f"{prefix}join")
        else:
            total = self._named(self._fused(terms), f"{prefix}products")
        self.titles[total] = "products"
        reach = (None, bits + 1) if acc.late_small_addend == "cut" else ()
        keeps = (acc.late_fraction_bits, bits)
        late = FusedSum((total, start), keeps, acc.late_rounding, zeros=zeros, least=least, reach=reach)
        self._named(late, f"{prefix}late")
        if acc.late_sum_bits is None:
            return late
        return Cut(late, acc.late_sum_bits + 1, acc.late_rounding, acc.output_format.emin)
