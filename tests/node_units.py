"""Random small units over all kinds of nodes, and inputs for them; all seeded by the generator passed in."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Counting,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
    Segment,
    Signed,
)
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit
from tests.inputs import numbers, raw, specials

Patterns = NDArray[np.uint64]
FACTORS = ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "e4m3fnuz", "f16", "bf16")
ADDENDS = ("e4m3", "e5m2", "e4m3fnuz", "f16", "e2m3", "bf16")
RESULTS = ("e4m3", "e5m2", "f16", "bf16", "f32")
MODES = ("nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd")
LARGEST = 12  # nodes of an expression, the elements apart


def every(node: Node) -> dict[int, Node]:
    """The nodes of an expression, each once."""
    found, waiting = {}, [node]
    while waiting:
        x = waiting.pop()
        if id(x) not in found:
            found[id(x)] = x
            waiting += x.operands
    return found


@dataclass
class Maker:
    """Makes the nodes of one unit."""

    rng: random.Random
    length: int
    formats: dict[str, Format]
    scale: Format | None
    shared: list[Node] = field(default_factory=list)
    levels: int = 0
    gates: float = 0.0  # the share of products that are gated, of factors read in segments or converted, of sums that
    # count as zero where they cancel or keep their signs

    def rounding(self, fmt: Format | None = None) -> Rounding:
        rng = self.rng
        fmt = fmt or FORMATS[rng.choice(RESULTS)]
        choose: Any = rng.choice
        return Rounding(
            fmt,
            choose(MODES),
            choose(("infinity", "saturate", "ieee")),
            choose(("keep", "keep", "flush_after", "flush_before" if fmt.name != "e4m3" else "keep")),
            choose(("ieee", "exact_positive", "positive")),
            fmt.nan if rng.random() < 0.3 and fmt.specials == "ieee" else None,
        )

    def element(self, operand: Any, level: int | None = None) -> Element:
        rng = self.rng
        choose: Any = rng.choice
        index = None
        if operand != "c":
            index = Index(rng.randrange(self.length)) if level is None else Index(0, ((level, 1),))
        return Element(operand, index, choose(("keep", "keep", "zero", "positive_zero")))

    def places(self) -> Any:
        n, rng = self.length, self.rng
        if rng.random() < 0.7:
            return range(rng.randrange(2) if n > 1 else 0, n, rng.choice((1, 1, 2)))
        return tuple(rng.sample(range(n), rng.randint(1, n)))

    def product(self, depth: int, level: int | None = None) -> Node:
        rng = self.rng
        left: Node = self.element("a", level)
        right: Node = self.element("b", level)
        if rng.random() < 0.1:
            right = self.number(depth - 1)
        limit = rng.choice((-1, 2, 4, 8)) if rng.random() < 0.15 else None
        node = self.gated(Product(left, right, rng.random() < 0.25, limit))
        return self.scaled(node) if self.scale and rng.random() < 0.7 else node

    def gated(self, product: Product) -> Node:
        rng = self.rng
        if not self.gates:
            return product
        if isinstance(product.left, Element) and rng.random() < self.gates:
            first, odd = rng.choice((0, 0, 1, 2)), (rng.random() < 0.5, rng.random() < 0.3)
            product = replace(product, left=Segment(product.left, first, first + rng.randint(1, 3), *odd))
        elif rng.random() < self.gates:
            product = replace(product, left=self.converted(product.left), right=self.converted(product.right))
        if rng.random() >= self.gates:
            return product
        plain, kind = all(isinstance(factor, Element) for factor in product.operands), rng.random()
        counts = plain and not product.normalised and kind < 0.15
        return Counting(product) if counts else Gate(product, kind < 0.5)

    def converted(self, factor: Node) -> Node:
        """An input in another format, which mostly holds its numbers."""
        if not isinstance(factor, Element):
            return factor
        fmt = format_named(self.rng.choice(("f16", "e5m2", "e4m3", "bf16")))
        return Round(factor, Rounding(fmt) if self.rng.random() < 0.7 else self.rounding(fmt))

    def scaled(self, node: Node) -> Node:
        return Scale(node, Element("scale_a", Index(0)), Element("scale_b", Index(0)))

    def number(self, depth: int) -> Node:
        """A number of a format."""
        kind = self.rng.random()
        if depth <= 0 or kind < 0.4:
            return self.element(self.rng.choice("abcc"))
        if kind < 0.5:
            return Constant(self.rng.random() < 0.5)
        return self.repeat(depth) if kind < 0.65 else self.round(depth)

    def round(self, depth: int, fmt: Format | None = None) -> Node:
        term = self.product(depth) if self.rng.random() < 0.15 else self.sum(depth)
        return self.kept(Round(term, self.rounding(fmt)))

    def repeat(self, depth: int, fmt: Format | None = None) -> Node:
        rng, level = self.rng, self.levels
        self.levels += 1
        start: Node = rng.choice((Constant(rng.random() < 0.5), self.element("c"), self.element("c")))
        items = [Running(level), self.product(0, level)]
        if rng.random() < 0.3:
            items.append(self.term(depth - 1))
        rng.shuffle(items)
        body = self.sum_of(tuple(items))
        return self.kept(Repeat(level, self.places(), start, Round(body, self.rounding(fmt))))

    def kept(self, node: Node) -> Node:
        self.shared.append(node)
        return node

    def term(self, depth: int) -> Node:
        kind = self.rng.random()
        if self.shared and kind < 0.12:
            return self.rng.choice(self.shared)
        if depth <= 0 or kind < 0.45:
            return self.product(depth)
        if kind < 0.65:
            return self.number(depth)
        node = self.sum(depth - 1)
        return self.scaled(node) if self.scale and self.rng.random() < 0.5 else self.kept(node)

    def item(self, depth: int) -> Node:
        if self.rng.random() < 0.3:
            level = self.levels
            self.levels += 1
            return Each(level, self.places(), self.product(0, level))
        return self.term(depth)

    def sum(self, depth: int) -> Node:
        items = tuple(self.item(depth - 1) for _ in range(self.rng.choice((1, 2, 2, 3, 3))))
        return self.sum_of(items)

    def sum_of(self, items: tuple[Node, ...]) -> Node:
        rng = self.rng
        kind = rng.random()
        node: Node = ExactSum(items) if kind < 0.4 else self.grid(items) if kind < 0.5 else self.fused(items)
        if self.gates and (kind := rng.random()) < self.gates:
            return Signed(node) if not isinstance(node, ExactSum) and kind < 0.3 * self.gates else Cancelling(node)
        if rng.random() < 0.2:
            choose: Any = rng.choice
            node = Cut(node, rng.randint(2, 8), choose(MODES), rng.choice((None, None, -9, -2)))
        return node

    def grid(self, items: tuple[Node, ...]) -> Node:
        rng, count = self.rng, len(items)
        choose: Any = rng.choice
        alone = [place for place, item in enumerate(items) if not isinstance(item, Each)]
        return GridSum(
            items,
            tuple(rng.randint(0, 9) for _ in items),
            choose(MODES) if rng.random() < 0.5 else "toward_zero",
            rng.choice(alone) if alone and rng.random() < 0.7 else None,
            tuple(rng.choice((None, rng.randint(-10, 3))) for _ in range(count)) if rng.random() < 0.3 else (),
            tuple(rng.choice((None, rng.randint(-2, 8))) for _ in range(count)) if rng.random() < 0.3 else (),
        )

    def fused(self, items: tuple[Node, ...]) -> Node:
        rng, count = self.rng, len(items)
        choose: Any = rng.choice

        def some(low: int, high: int, share: float) -> int | None:
            return rng.randint(low, high) if rng.random() < share else None

        each = rng.random() < 0.25
        sticky = rng.random() < 0.2
        return FusedSum(
            items,
            tuple(rng.randint(0, 9) for _ in items) if each else rng.choice((1, 2, 3, 4, 6, 9, 13)),
            "toward_zero" if sticky else choose(MODES),
            sticky,
            None if any(isinstance(x, ExactSum) for x in items) else some(0, 2, 0.2),
            some(-12, 3, 0.25),
            some(-12, 3, 0.15),
            tuple(some(-10, 3, 0.6) for _ in range(count)) if rng.random() < 0.15 else (),
            tuple(some(0, 8, 0.6) for _ in range(count)) if rng.random() < 0.15 else (),
        )


def random_unit(rng: random.Random, factors_of: Sequence[str] = FACTORS, addends: Sequence[str] = ADDENDS,
                lengths: Sequence[int] = (1, 2, 2, 3, 4)) -> Unit:  # fmt: skip
    """A unit of at most LARGEST nodes besides elements."""
    while True:
        factors = rng.choice(factors_of), rng.choice(factors_of)
        formats = {"a": format_named(factors[0]), "b": format_named(factors[rng.randrange(2)])}
        formats["c"] = format_named(rng.choice(addends))
        scale = FORMATS[rng.choice(("ue8m0", "ue4m3"))] if rng.random() < 0.25 else None
        length = rng.choice(lengths)
        maker = Maker(rng, length, formats, scale)
        try:
            top = maker.repeat(2) if rng.random() < 0.2 else maker.round(3)
            if sum(not isinstance(x, Element) for x in every(top).values()) > LARGEST:
                continue
            return Unit(formats["a"], formats["b"], formats["c"], length, top, scale, length if scale else 0)
        except ParameterError:
            continue


def patterns(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> Patterns:
    """Ordinary numbers, any patterns, small ones, zeros and special ones, mixed."""
    rest = np.uint64(fmt.sign_bit | ((1 << (fmt.fraction + fmt.padding + 1)) - 1))
    any_pattern = raw(fmt, shape, rng)
    kinds = [numbers(fmt, shape, rng, 2), any_pattern, any_pattern & rest, rng.choice(specials(fmt), shape)]
    kinds.append(any_pattern & np.uint64(fmt.sign_bit))
    mixtures = np.array([[0.8, 0.1, 0.1, 0, 0], [0.3, 0.2, 0.3, 0.1, 0.1], [0.4, 0, 0.3, 0, 0.3], [0, 1, 0, 0, 0]])
    shares = mixtures[rng.integers(len(mixtures))]
    return np.array(np.choose(rng.choice(5, shape, p=shares), kinds), dtype=np.uint64)


def vectors(unit: Unit, count: int, rng: np.random.Generator) -> tuple[Patterns, ...]:
    """a, b, c and, where the unit has them, scale factors; in several mixtures."""

    def column(fmt: Format, width: int) -> Patterns:
        return np.concatenate([patterns(fmt, (count // 4, width), rng) for _ in range(4)])

    found = [column(unit.a, unit.length), column(unit.b, unit.length), column(unit.c, 1)[:, 0]]
    if unit.scale is not None:
        for _ in range(2):
            bias = 127 if unit.scale.name == "ue8m0" else 0x38
            near = (bias + rng.integers(-4, 5, (count, unit.scales))).astype(np.uint64)
            some = rng.integers(0, 256, near.shape, dtype=np.uint64)
            found.append(np.where(rng.random((count, 1)) < 0.85, near, some))
    return tuple(found)
