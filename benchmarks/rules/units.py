"""Random units of formats of at most six bits, and windows of their inputs: all of them, where these are few."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rules.numbers import Evaluation, Patterns, Unchecked
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Each, Element, Index, Node, Relu, Repeat, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit
from tests.node_units import MODES, Maker, every

MOST = 12  # bits of all inputs together up to which all of them are evaluated
SOME = 2048  # rows of a window of more inputs
LARGEST = 9  # nodes of an expression, the elements apart

FACTORS = ("e1m1_none", "e1m1_none", "e2m1", "e2m1", "binary3p2se", "e2m1_ieee", "e1m2_none", "e2m1_all_ones")
ADDENDS = ("e1m1_none", "e2m1", "e3m1_none", "e2m2_none", "e2m1_ieee", "binary4p2se", "e3m2", "e2m3", "e3m2_ieee")
RESULTS = ("e2m1", "e3m2", "e2m3", "e2m2_none", "e1m2_none", "e3m1_none", "e2m2_ieee", "e3m2_ieee", "e2m1_ieee",
           "e2m1_all_ones", "e3m1_all_ones", "binary4p2se", "binary6p3se", "binary5p2sf")  # fmt: skip
WIDE = ("e3m3_ieee", "e4m3_ieee", "e3m2_ieee", "e4m1_ieee", "e2m3")  # what holds products of small numbers
SCALES = ("ue1m1_none", "ue1m1_all_ones", "ue2m1_none")


class Small(Maker):
    """Makes the nodes of a unit of small formats."""

    def rounding(self, fmt: Format | None = None) -> Rounding:
        rng, choose = self.rng, self.rng.choice
        fmt = fmt or format_named(choose(RESULTS))
        nan = fmt.nan if rng.random() < 0.2 and fmt.specials == "ieee" else None
        if rng.random() < 0.05:
            nan = rng.choice((0, 1))
        subnormals: Any = choose(("keep", "keep", "keep", "flush_after", "flush_before"))
        zero: Any = choose(("ieee", "exact_positive", "positive"))
        overflow: Any = choose(("infinity", "saturate", "ieee"))
        mode: Any = choose(MODES)
        return Rounding(fmt, mode, overflow, subnormals, zero, nan)

    def converted(self, factor: Node) -> Node:
        if not isinstance(factor, Element):
            return factor
        fmt = format_named(self.rng.choice(("e3m2", "e2m3", "e3m2_ieee", "e2m1")))
        return Round(factor, Rounding(fmt) if self.rng.random() < 0.7 else self.rounding(fmt))

    def round(self, depth: int, fmt: Format | None = None) -> Node:
        node = super().round(depth, fmt)
        if self.rng.random() < 0.07:
            nan: Any = self.rng.choice(("keep", "zero"))
            zero: Any = self.rng.choice(("positive", "keep", "signed"))
            node = Round(Relu(node, nan, zero), self.rounding())
        return node


def small_unit(rng: random.Random, lengths: tuple[int, ...] = (1, 1, 2, 2, 3), gates: float = 0.15) -> Unit:
    """A unit of at most LARGEST nodes besides elements."""
    while True:
        a, b = (format_named(rng.choice(FACTORS)) for _ in range(2))
        if rng.random() < 0.5:
            b = a
        c = format_named(rng.choice(ADDENDS))
        scale = format_named(rng.choice(SCALES)) if rng.random() < 0.15 else None
        length = rng.choice(lengths)
        maker = Small(rng, length, {"a": a, "b": b, "c": c}, scale, gates=gates if rng.random() < 0.5 else 0.0)
        try:
            top = maker.repeat(2) if rng.random() < 0.3 else maker.round(rng.choice((1, 2, 2, 3)))
            if sum(not isinstance(x, Element) for x in every(top).values()) > LARGEST:
                continue
            return Unit(a, b, c, length, top, scale, length if scale else 0)
        except ParameterError:
            continue


@dataclass
class Window:
    """Inputs of an expression: of those elements that it reads, all values or some; `extra`: further columns."""

    evaluation: Evaluation
    extra: list[Patterns]
    whole: bool

    @property
    def count(self) -> int:
        return self.evaluation.count


def reads(nodes: Iterable[Node], loops: Mapping[int, int]) -> set[tuple[str, int]]:
    """The elements that expressions read, by operand and place, for these values of loop variables."""
    found: set[tuple[str, int]] = set()

    def visit(node: Node, loops: Mapping[int, int]) -> None:
        if isinstance(node, Element):
            index = node.index or Index()
            found.add((node.operand, index.offset + sum(factor * loops[level] for level, factor in index.factors)))
        if isinstance(node, Repeat | Each):
            if isinstance(node, Repeat):
                visit(node.start, loops)
            for place in node.places:
                visit(node.body, {**loops, node.level: place})
            return
        for operand in node.operands:
            visit(operand, loops)

    for node in nodes:
        visit(node, loops)
    return found


def window(
    formats: Mapping[str, Format], elements: Iterable[tuple[str, int]], rng: random.Random, extra: Sequence[int] = ()
) -> Window:
    """A window of the inputs; `extra`: from how many values those of each further column are."""
    every = sorted(elements)
    if any(operand not in formats for operand, _ in every):
        raise Unchecked  # a scale factor of a unit that has none
    sizes = [1 << formats[operand].width for operand, _ in every] + list(extra)
    total = math.prod(sizes)
    if whole := total <= 1 << MOST:
        columns = list(np.unravel_index(np.arange(total), sizes)) if sizes else []
    else:
        drawn = np.random.default_rng(rng.getrandbits(32))
        total, columns = SOME, [drawn.integers(0, size, SOME) for size in sizes]
    patterns = [column.astype(np.uint64) for column in columns]
    inputs = dict(zip(every, patterns, strict=False))
    return Window(Evaluation(formats, inputs, total), patterns[len(every) :], whole)
