"""Sixty units that nobody has built: expressions of three to eight nodes that a reader would call plausible.

Half of them (`outside`) lie outside every family: rounded to odd or in any direction within the sum, other roundings at
other nodes, results in bf16, products rounded first, fused sums in fused sums. From a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.nodes import (
    Constant,
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
)
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

COUNT = 60
FACTORS = ("f16", "bf16", "f16", "bf16", "f32", "tf32", "e5m2", "e4m3")
MODES = ("nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd")
C = Element("c")


@dataclass(frozen=True)
class Invented:
    """A unit, and whether it is of no family."""

    name: str
    unit: Unit
    outside: bool


class _Inventor:
    def __init__(self, chance: random.Random, outside: bool) -> None:
        self.chance, self.outside = chance, outside
        choose: Any = chance.choice
        self.factor = choose(FACTORS)
        self.d = (
            choose(("f32", "f32", "f32", "bf16", "f16", "f64")) if outside else choose(("f32", "f32", "f32", "f16"))
        )
        self.c = self.d if chance.random() < 0.7 else "f32"
        self.mode = choose(MODES) if outside else choose(("nearest_even", "nearest_even", "toward_zero"))
        self.tiny = choose(("keep", "keep", "keep", "flush_after", "flush_before"))
        self.read = choose(("keep", "zero")) if self.tiny != "keep" else "keep"
        self.zero = choose(("ieee", "ieee", "positive", "exact_positive"))
        self.inner = self.d
        if outside and chance.random() < 0.4:
            self.inner = choose([name for name in ("f32", "f64", "bf16", "f16") if name != self.d])
        self.mixed = outside and chance.random() < 0.5
        self.rounds_products = outside and chance.random() < 0.3
        self.addend = Element("c", None, self.read)

    def how(self, last: bool = False) -> Rounding:
        choose: Any = self.chance.choice
        mode = choose(MODES) if self.mixed else self.mode
        return Rounding(FORMATS[self.d if last else self.inner], mode, "ieee", self.tiny, self.zero)

    def product(self, offset: int, *factors: tuple[int, int]) -> Node:
        index = Index(offset, factors)
        found: Node = Product(Element("a", index, self.read), Element("b", index, self.read))
        return Round(found, self.product_how) if self.rounds_products else found

    def fused(self, *items: Node) -> FusedSum:
        choose: Any = self.chance.choice
        align = choose(MODES) if self.outside and self.chance.random() < 0.5 else "toward_zero"
        return FusedSum(items, self.bits, align)

    def sum(self, *items: Node) -> Node:
        return self.fused(*items) if self.fuses else ExactSum(items)

    def unit(self) -> Unit:
        chance = self.chance
        self.product_how = Rounding(FORMATS[self.inner], self.mode, "ieee", self.tiny, self.zero)
        self.bits = FORMATS[self.inner].precision + chance.choice((-2, -1, 0, 1, 2, 3))
        self.fuses = chance.random() < 0.35
        kind = chance.choice(("flat", "chain", "blocks", "lanes", "tree", "late"))
        length, found = getattr(self, kind)()
        if self.inner != self.d or not isinstance(found, Round | Repeat):
            found = Round(found, self.how(last=True))
        factor = FORMATS[self.factor]
        return Unit(factor, factor, FORMATS[self.c], length, found)

    # -- shapes

    def flat(self) -> tuple[int, Node]:
        """All in one step."""
        length = self.chance.choice((2, 3, 4, 8))
        return length, Round(self.fused(Each(1, range(length), self.product(0, (1, 1))), self.addend), self.how())

    def chain(self) -> tuple[int, Node]:
        """One product after another, from c or with c at the end."""
        length = self.chance.choice((2, 3, 4, 8, 16))
        late = self.chance.random() < 0.4
        start: Node = Constant() if late else self.addend
        found: Node = Repeat(1, range(length), start, Round(self.sum(Running(1), self.product(0, (1, 1))), self.how()))
        return length, Round(ExactSum((found, self.addend)), self.how()) if late else found

    def blocks(self) -> tuple[int, Node]:
        """Blocks of products one after another."""
        size, count = self.chance.choice((2, 4)), self.chance.choice((2, 3, 4))
        terms = Each(2, range(size), self.product(0, (1, 1), (2, 1)))
        body: Node
        if self.chance.random() < 0.5:
            body = Round(self.sum(Running(1), Round(self.sum(terms), self.how())), self.how())
        else:
            body = Round(self.sum(terms, Running(1)), self.how())
        return size * count, Repeat(1, range(0, size * count, size), self.addend, body)

    def lanes(self) -> tuple[int, Node]:
        """Two lanes, then their sum, then c."""
        length = self.chance.choice((4, 8, 16))
        how = self.how()
        lanes = []
        for lane in (0, 1):
            body = Round(self.sum(Running(1), self.product(0, (1, 1))), how)
            lanes.append(Repeat(1, range(lane, length, 2), Constant(), body))
        return length, Round(ExactSum((Round(ExactSum(tuple(lanes)), self.how()), self.addend)), self.how())

    def tree(self) -> tuple[int, Node]:
        """Any two at a time."""
        length = self.chance.choice((2, 3, 4))
        waiting: list[Node] = [self.addend, *(self.product(k) for k in range(length))]
        while len(waiting) > 1:
            self.chance.shuffle(waiting)
            waiting.append(Round(self.sum(waiting.pop(), waiting.pop()), self.how()))
        return length, waiting[0]

    def late(self) -> tuple[int, Node]:
        """A sum of all products, rounded, then c."""
        length = self.chance.choice((2, 4, 8))
        total = Round(self.sum(Each(1, range(length), self.product(0, (1, 1)))), self.how())
        return length, Round(ExactSum((total, self.addend)), self.how())


def invented() -> Iterator[Invented]:
    """The sixty units."""
    for number in range(COUNT):
        outside = number % 2 == 1
        unit = _Inventor(random.Random(2100 + number), outside).unit()
        yield Invented(f"invented-{number:02}", unit, outside)
