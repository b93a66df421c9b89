"""An expression under construction: the products of its steps, their order, and the names of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.families.parts import Blocks, Inputs, Products, Scales, Steps
from mmaprobe.smtmodel.nodes import Element, ExactSum, Index, Node, Repeat, Round, Running, Scale
from mmaprobe.smtmodel.nodes.chains import OUTER, spread
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class Expression:
    """The result of a family's function: a `Unit` without formats of its operands."""

    length: int
    result: Node
    scale: Format | None
    scale_block: int
    unrolled: Blocks | None
    signals: Mapping[Node, str] = field(compare=False)
    titles: Mapping[Node, str] = field(compare=False)

    @property
    def rounding(self) -> Rounding:
        """The rounding of the result."""
        last = self.result.body if isinstance(self.result, Repeat) else self.result
        assert isinstance(last, Round)
        return last.rounding

    def unit(self, a: Format, b: Format, c: Format, reference: str = "") -> Unit:
        """The unit for factors of these formats, without conversions that change nothing."""
        formats, given = {"a": a, "b": b}, dict(vars(self))
        idle: dict[Node, Node] = {
            node: element
            for node, element in _conversions(self.result)
            if formats[element.operand].is_within(node.rounding.format)
        }
        if idle:
            found: dict[Node, Node] = {}
            given["result"] = rebuilt(self.result, lambda old, new: idle.get(old, new), found)
            for name in ("signals", "titles"):
                given[name] = {found.get(node, node): text for node, text in given[name].items()}
        return Unit(a, b, c, reference=reference, **given)


@lru_cache(maxsize=4096)
def _conversions(result: Node) -> tuple[tuple[Round, Element], ...]:
    """The roundings in an expression that only convert a factor, each with the factor's element."""
    rounds = [node for node in walk(result) if isinstance(node, Round)]
    read = [(node, node.converts) for node in rounds]
    return tuple((node, item) for node, item in read if item is not None and item.operand in ("a", "b"))


@dataclass(frozen=True)
class Step:
    """The products of a step: those at `places`, which a loop over steps moves if `looped`. `name`: the prefix of the
    step's signals, where no loop gives it."""

    places: tuple[int, ...]
    looped: bool = False
    name: str = ""

    @property
    def prefix(self) -> str:
        return f"{self.name}." if self.name else ""


class Sketch:
    """An expression under construction. `group`: the number of products summed exactly before they are scaled."""

    def __init__(self, steps: Steps, inputs: Inputs, products: Products, scales: Scales, group: int = 1) -> None:
        self.steps, self.inputs, self.products, self.scales, self.group = steps, inputs, products, scales, group
        self.c = inputs.element("c")
        self.signals: dict[Node, str] = {}
        self.titles: dict[Node, str] = {self.c: "addend", Running(OUTER): "addend"}

    def named(self, node: Node, signal: str, title: str = "") -> Node:
        """The node, with a prefix for its signals, and its name as a term of a sum."""
        self.signals.setdefault(node, signal)
        if title:
            self.titles[node] = title
        return node

    def product(self, index: Index) -> Node:
        return _product(self.inputs, self.products, index)

    def each(self, step: Step) -> tuple[Node, ...]:
        """The products of a step one by one, or its groups of products, with their scale factors if there are any."""
        if self.scales.format is None:
            return tuple(self.product(Index(k, ((OUTER, 1),) if step.looped else ())) for k in step.places)
        return tuple(
            self._scaled(step.places[k : k + self.group], step) for k in range(0, len(step.places), self.group)
        )

    def terms(self, step: Step) -> tuple[Node, ...]:
        """The terms of a step in one sum: without scale factors, one range of products."""
        if self.scales.format is not None:
            return self.each(step)
        return (_spread(self.inputs, self.products, step.places, OUTER if step.looped else 0),)

    def _scaled(self, places: tuple[int, ...], step: Step) -> Node:
        found = _scaled(self.inputs, self.products, self.scales, places)
        if self.group > 1:
            self.named(found.term, f"{step.prefix}group[{places[0]}-{places[-1]}]")
        return found

    def chained(self, start: Node, form: Callable[[Step, Node], Node]) -> Node:
        """The steps one after another, each starting from the result before; a loop where every step is a shift of the
        first."""
        blocks, offsets = self.steps.blocks, self.steps.offsets
        if len(blocks) == 1:
            return form(Step(blocks[0]), start)
        if not self._unrolled and offsets is not None:
            return Repeat(OUTER, offsets, start, form(Step(blocks[0], looped=True), Running(OUTER)))
        found = start
        for number, places in enumerate(blocks):
            name = f"block{number}"
            found = self.named(form(Step(places, name=name), found), name, "addend")
        return found

    @property
    def _unrolled(self) -> bool:
        """Whether the steps are written out instead of looped: the place of a scale factor is not a multiple of a
        product's place."""
        return len(self.steps.blocks) > 1 and (self.steps.offsets is None or self.scales.format is not None)

    def expression(self, result: Node) -> Expression:
        scale, unrolled = self.scales.format, self.steps.blocks if self._unrolled else None
        size = 0 if scale is None else self.scales.scale_block
        return Expression(self.steps.length, result, scale, size, unrolled, self.signals, self.titles)


@lru_cache(maxsize=4096)  # candidates of one family share their products
def _product(inputs: Inputs, products: Products, index: Index) -> Node:
    return products.of(inputs.factor("a", index), inputs.factor("b", index))


@lru_cache(maxsize=4096)
def _spread(inputs: Inputs, products: Products, places: tuple[int, ...], outer: int) -> Node:
    return spread(places, partial(_product, inputs, products), outer)


@lru_cache(maxsize=4096)
def _scaled(inputs: Inputs, products: Products, scales: Scales, places: tuple[int, ...]) -> Scale:
    """A product, or the exact sum of several, scaled."""
    form = partial(_product, inputs, products)
    if len(places) == 1:
        return scales.scaled(form(Index(places[0])), places[0])
    return scales.scaled(ExactSum((spread(places, form),)), places[0])
