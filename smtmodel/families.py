"""Families as functions: from their own parameters to an expression over nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smtmodel.accumulator import Accumulator
from smtmodel.dot import Model, UnitModel
from smtmodel.nodes import (
    Constant,
    Cut,
    Each,
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
from smtmodel.nodes.element import Operand, Subnormals
from smtmodel.nodes.repeat import places_of
from smtmodel.nodes.round import Rounding, Zero
from smtmodel.unit import Unit

OUTER = 1  # the level of the loop over steps
ZEROS: dict[str, Zero] = {"ieee": "ieee", "positive": "exact_positive", "always_positive": "positive"}


def expression(accumulator: Accumulator) -> Node:
    """The expression of an accumulator's parameters."""
    return _Family(accumulator).result()


def unit_of(model: Model) -> Unit:
    """The unit of a model: a unit file's own, or the expression of its parameters."""
    if isinstance(model, UnitModel):
        return model.unit
    scale_block = model.scale_block if model.scale else 0
    result = expression(model.accumulator)
    return Unit(model.a, model.b, model.c, model.length, result, model.scale, scale_block, reference=model.reference)


class _Family:
    def __init__(self, accumulator: Accumulator) -> None:
        self.acc = accumulator
        self.subnormals: Subnormals = "positive_zero" if accumulator.flush_inputs else "keep"
        self.c = self._element("c", None)
        self.rounding = Rounding(
            accumulator.output_format,
            accumulator.output_rounding,
            "ieee" if accumulator.operation == "add_mul" else accumulator.overflow,
            "flush_after" if accumulator.flush_outputs else "keep",
            ZEROS[accumulator.zero_sign],
            accumulator.nan,
        )

    def result(self) -> Node:
        acc = self.acc
        after = acc.addend == "after"
        start: Node = Constant() if after else self.c
        steps, offsets = self._steps()
        if steps is None or acc.scale_format is not None:  # a scale factor's place is no multiple of a product's
            found = start
            for places in acc.blocks:
                found = self._step(found, places, 0)
        elif len(offsets) == 1:
            found = self._step(start, steps, 0)
        else:
            found = Repeat(OUTER, offsets, start, self._step(Running(OUTER), steps, OUTER))
        if after:
            last = Rounding(acc.output_format, acc.addition_rounding, "ieee", self.rounding.subnormals, "ieee", acc.nan)
            found = Round(ExactSum((found, self.c)), last)
        return found

    def _steps(self) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
        """The places of the first step and how far each step's lie from them; None where they are no shifts."""
        first, *_ = blocks = self.acc.blocks
        offsets = tuple(block[0] - first[0] for block in blocks)
        alike = all(tuple(k + offset for k in first) == block for offset, block in zip(offsets, blocks, strict=True))
        return (first if alike else None), offsets

    def _element(self, operand: Operand, index: Index | None) -> Element:
        if operand.startswith("scale"):
            return Element(operand, index)
        return Element(operand, index, self.subnormals, self.acc.input_zeros == "positive")

    def _product(self, index: Index) -> Node:
        acc = self.acc
        found: Node = Product(
            self._element("a", index), self._element("b", index), acc.product == "normalised", acc.product_overflow
        )
        if acc.product_format is not None:
            found = Round(found, Rounding(acc.product_format, acc.product_rounding))
        return found

    def _products(self, places: Sequence[int], outer: int) -> tuple[Node, ...]:
        """The terms of a step; `outer` is the level of the loop over steps, 0 without one."""
        acc = self.acc
        loop = ((outer, 1),) if outer else ()
        if acc.scale_format is None:
            return (self._range(places, self._product, loop, outer + 1),)
        if acc.grouping != "scale_blocks" or acc.group == 1:
            return tuple(self._scaled(self._product(Index(k)), k) for k in places)
        groups = [places[start : start + acc.group] for start in range(0, len(places), acc.group)]
        return tuple(
            self._scaled(ExactSum((self._range(group, self._product, loop, outer + 1),)), group[0]) for group in groups
        )

    def _range(
        self, places: Sequence[int], form: Callable[[Index], Node], loop: tuple[tuple[int, int], ...], level: int
    ) -> Node:
        """The terms at these places, shifted by the loop over steps."""
        if len(places) == 1:
            return form(Index(places[0], loop))
        base = places[0]
        found = places_of([k - base for k in places])
        step = found.step if isinstance(found, range) else 1
        every = range(len(places)) if isinstance(found, range) else found
        return Each(level, every, form(Index(base, (*loop, (level, step)))))

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

    def _step(self, start: Node, places: Sequence[int], outer: int) -> Node:
        acc = self.acc
        loop = ((outer, 1),) if outer else ()
        if acc.operation == "add_mul":
            layer: list[Node] = [Round(self._product(Index(k, loop)), self.rounding) for k in places]
            while len(layer) > 1:
                layer = [Round(ExactSum(pair), self.rounding) for pair in zip(layer[::2], layer[1::2], strict=True)]
            return Round(ExactSum((start, layer[0])), self.rounding)
        if acc.partials == "normalised":
            terms = [*(self._product(Index(k, loop)) for k in places), start]
            running = terms[0]
            for term in terms[1:]:
                running = Round(self._fused((running, term)), self.rounding)
            return running
        terms = list(self._products(places, outer))
        if acc.addend != "late":
            return Round(self._fused((*terms, start)), self.rounding)
        return Round(self._late(terms, places, start, outer), self.rounding)

    def _late(self, terms: Sequence[Node], places: Sequence[int], start: Node, outer: int) -> Node:
        acc = self.acc
        bits, loop = acc.fraction_bits, ((outer, 1),) if outer else ()
        assert bits != "exact"
        floor = acc.exponent_floor
        zeros, least = (floor, None) if acc.floor_applies_to == "zero_terms" else (None, floor)
        if acc.grouping == "even_odd":
            halves = [self._fused((self._range(places[side::2], self._product, loop, outer + 1),)) for side in (0, 1)]
            total: Node = FusedSum(tuple(halves), bits, acc.late_rounding, zeros=zeros, least=least)
        else:
            total = self._fused(terms)
        reach = (None, bits + 1) if acc.late_small_addend == "cut" else ()
        keeps = (acc.late_fraction_bits, bits)
        late = FusedSum((total, start), keeps, acc.late_rounding, zeros=zeros, least=least, reach=reach)
        if acc.late_sum_bits is None:
            return late
        return Cut(late, acc.late_sum_bits + 1, acc.late_rounding, acc.output_format.emin)
