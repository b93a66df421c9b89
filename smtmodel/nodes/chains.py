"""Chains of steps that add products to a running sum: the products of each step, and the same chain in other steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes.element import Element
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.node import Node, of_kind, walk
from mmaprobe.smtmodel.nodes.product import Product
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running, places_of
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.sums import Sum

OUTER = 1  # the level of the loop over steps
Blocks = Sequence[Sequence[int]]


def shifts_of_blocks(blocks: Blocks) -> tuple[int, ...] | None:
    """The offset of each step's places from the first step's places; None if a step's places are not the first step's
    places shifted."""
    first = blocks[0]
    offsets = tuple(block[0] - first[0] for block in blocks)
    alike = all(tuple(k + offset for k in first) == tuple(block) for offset, block in zip(offsets, blocks, strict=True))
    return offsets if alike else None


def interleaved_pairs(places: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Two blocks, which take pairs of products alternately."""
    return tuple(tuple(k for k in places if (k % 4 < 2) == first) for first in (True, False))


def terms_at(places: Sequence[int], form: Callable[[Index], Node], outer: int = 0) -> Node:
    """A node for the terms at `places`. `outer`: the level of a loop that shifts the places; 0 without a loop."""
    loop, level = ((outer, 1),) if outer else (), outer + 1
    base = places[0]
    if len(places) == 1:
        return form(Index(base, loop))
    numbers = places_of([k - base for k in places])
    step = numbers.step if isinstance(numbers, range) else 1
    every = range(len(places)) if isinstance(numbers, range) else numbers
    return Each(level, every, form(Index(base, (*loop, (level, step)))))


@dataclass(frozen=True)
class ProductChain:
    """Steps that each add products to the result of the step before. `blocks`: the places of each step's products;
    `start`: the addend of the first step; `term`: a product, with its inputs at one place; `step`: a step, in which
    `Running(OUTER)` is the result of the step before and `terms` the node of the step's products."""

    blocks: tuple[tuple[int, ...], ...]
    start: Node
    term: Node
    terms: Node
    step: Node

    def form(self, index: Index) -> Node:
        """The product at a place."""

        def leaf(part: Node) -> Node | None:
            return replace(part, index=index) if isinstance(part, Element) and part.index is not None else None

        return replaced(self.term, leaf)

    def in_blocks(self, blocks: Blocks, start: Node | None = None) -> Node | None:
        """A chain of the same step over other blocks; None if the blocks are not one block shifted."""
        offsets, begin = shifts_of_blocks(blocks), self.start if start is None else start
        if offsets is None:
            return None
        outer = OUTER if len(offsets) > 1 else 0
        terms, running = terms_at(blocks[0], self.form, outer), begin if not outer else Running(OUTER)

        def leaf(part: Node) -> Node | None:
            return terms if part == self.terms else running if part == Running(OUTER) else None

        step = replaced(self.step, leaf)
        return Repeat(OUTER, offsets, begin, step) if outer else step


def _single_place(part: Node) -> Index | None:
    return part.index if isinstance(part, Element) else None


def _step_without(step: Node, terms: Node) -> Node:
    return replaced(step, lambda part: Running(OUTER) if part == terms else None)


def chain_of(result: Node) -> ProductChain | None:
    """An expression as a chain if it is a repetition, or a single step from c, over one range of products; else
    None."""
    start, step = result, result
    places: tuple[int, ...] = (0,)
    if isinstance(result, Repeat):
        start, step, places = result.start, result.body, tuple(result.places)
        if result.level != OUTER or OUTER in start.free:
            return None
    else:
        start = next((node for node in walk(result) if node.is_addend), result)
        if any(isinstance(node, Product) and start in node.operands for node in walk(result)):
            return None  # the running sum is multiplied
        try:
            step = replaced(result, lambda part: Running(OUTER) if part == start else None)
        except ParameterError:  # raised by a node that takes inputs alone
            return None
    ranges = list(of_kind(step, Each))
    indices = {index for node in walk(step) if (index := _single_place(node)) is not None}
    nested = any(of_kind(step, Repeat))
    if nested or len(indices) != 1 or len(ranges) > 1 or Running(OUTER) not in set(walk(step)):
        return None
    [index] = indices
    terms: Node | None = next(iter(ranges), None)
    if terms is None:  # the step adds a single term, which may be rounded
        items = [item for node in of_kind(step, Sum) for item in node.items]
        terms = next((item for item in items if any(part.kind == "product" for part in walk(item))), None)
    if terms is None or any(_single_place(node) is not None for node in walk(_step_without(step, terms))):
        return None  # no products, or other elements besides the products
    term, inner = (terms.body, [{terms.level: k} for k in terms.places]) if isinstance(terms, Each) else (terms, [{}])
    blocks = tuple(tuple(index.at({OUTER: outer, **own}) for own in inner) for outer in places)
    return ProductChain(blocks, start, term, terms, step)
