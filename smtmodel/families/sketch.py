"""An expression under construction: the products of its steps, their order, and the names of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.families.parts import Blocks, Inputs, Products, Scales, Steps
from mmaprobe.smtmodel.nodes import Element, ExactSum, Index, Node, Repeat, Round, Running, Scale
from mmaprobe.smtmodel.nodes.chains import OUTER, terms_at
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.operand import DRAWS, RANDOM
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class Expression:
    """The result of a family's function: a `Unit` without the formats of a, b and c."""

    length: int
    result: Node
    scale: Format | None
    scale_block: int
    more: tuple[tuple[str, Format], ...]
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
        """The unit for operands of these formats, without conversions that keep every number."""
        formats, arguments = {"a": a, "b": b}, dict(vars(self))
        idle: dict[Node, Node] = {
            node: element
            for node, element in _conversions(self.result)
            if formats[element.operand].is_within(node.rounding.format)
        }
        if idle:
            nodes: dict[Node, Node] = {}
            arguments["result"] = rebuilt(self.result, lambda old, new: idle.get(old, new), nodes)
            for name in ("signals", "titles"):
                arguments[name] = {nodes.get(node, node): text for node, text in arguments[name].items()}
        return Unit(a, b, c, reference=reference, **arguments)


@lru_cache(maxsize=4096)
def _conversions(result: Node) -> tuple[tuple[Round, Element], ...]:
    """The roundings in an expression that convert a factor, each with the factor's element."""
    rounds = list(of_kind(result, Round))
    read = [(node, node.converts) for node in rounds]
    return tuple((node, item) for node, item in read if item is not None and item.operand in ("a", "b"))


@dataclass(frozen=True)
class StepProducts:
    """The products of a step, at `places`; if `looped`, a loop over steps shifts these. `name`: the prefix of the
    step's signals if it is not in a loop."""

    places: tuple[int, ...]
    looped: bool = False
    name: str = ""

    @property
    def prefix(self) -> str:
        return f"{self.name}." if self.name else ""


class Sketch:
    """An expression under construction. `group`: how many products are summed exactly before they are scaled;
    `random`: the format of the random bits of the result's rounding, if any; `signals`: the prefixes of nodes' signals;
    `titles`: the names of nodes as terms of sums."""

    def __init__(
        self,
        steps: Steps,
        inputs: Inputs,
        products: Products,
        scales: Scales,
        group: int = 1,
        random: Format | None = None,
    ) -> None:
        self.steps, self.inputs, self.products, self.scales, self.group = steps, inputs, products, scales, group
        self.random = random
        self.c = inputs.element("c")
        self.signals: dict[Node, str] = {}
        self.titles: dict[Node, str] = {self.c: "addend", Running(OUTER): "addend"}

    def named(self, node: Node, signal: str, title: str = "") -> Node:
        """Returns the node. `signal` becomes the prefix of its signals, `title` its name as a term of a sum."""
        self.signals.setdefault(node, signal)
        if title:
            self.titles[node] = title
        return node

    def each(self, step: StepProducts) -> tuple[Node, ...]:
        """The products of a step as separate nodes; with scale factors, its scaled groups of products."""
        if self.scales.format is None:
            loop = ((OUTER, 1),) if step.looped else ()
            return tuple(_product(self.inputs, self.products, Index(k, loop)) for k in step.places)
        return tuple(
            self._scaled(step.places[k : k + self.group], step) for k in range(0, len(step.places), self.group)
        )

    def terms(self, step: StepProducts) -> tuple[Node, ...]:
        """The terms of a step in one sum: a range of products; with scale factors, the scaled groups."""
        if self.scales.format is not None:
            return self.each(step)
        return (_spread(self.inputs, self.products, step.places, OUTER if step.looped else 0),)

    def _scaled(self, places: tuple[int, ...], step: StepProducts) -> Node:
        term = _scaled(self.inputs, self.products, self.scales, places)
        if self.group > 1:
            self.named(term.term, f"{step.prefix}group[{places[0]}-{places[-1]}]")
        return term

    def chained(self, start: Node, form: Callable[[StepProducts, Node], Node]) -> Node:
        """The steps in order, each from the result of the step before, formed by `form`; a loop if each step is the
        first one shifted."""
        blocks, offsets = self.steps.blocks, self.steps.offsets
        if len(blocks) == 1:
            return form(StepProducts(blocks[0]), start)
        if not self._unrolled and offsets is not None:
            return Repeat(OUTER, offsets, start, form(StepProducts(blocks[0], looped=True), Running(OUTER)))
        result = start
        for number, places in enumerate(blocks):
            name = f"block{number}"
            result = self.named(form(StepProducts(places, name=name), result), name, "addend")
        return result

    @property
    def _unrolled(self) -> bool:
        """Whether steps are written out rather than looped: their places are not shifts, or they have scale factors,
        whose places shift by other offsets."""
        return len(self.steps.blocks) > 1 and (self.steps.offsets is None or self.scales.format is not None)

    def expression(self, result: Node) -> Expression:
        more: tuple[tuple[str, Format], ...] = ()
        if self.random is not None:
            name = RANDOM.name
            if isinstance(result, Repeat) and _rounds_once(result.body):  # each step has its own random bits
                name, bits = DRAWS.name, Element(DRAWS.name, Index(0, ((result.level, 1),)))
                assert isinstance(result.body, Round)
                result = replace(result, body=replace(result.body, random=bits))
            elif not _rounds_once(result):
                raise ParameterError("random_bits", "several results are rounded in a step, and random bits are of one")
            more = ((name, self.random),)
        scale, unrolled = self.scales.format, self.steps.blocks if self._unrolled else None
        size = 0 if scale is None else self.scales.scale_block
        return Expression(self.steps.length, result, scale, size, more, unrolled, self.signals, self.titles)


def _rounds_once(result: Node) -> bool:
    """Whether the last node is a rounding with random bits, and no other rounding has random bits."""
    drawn = [node for node in of_kind(result, Round) if node.random is not None]
    return drawn == [result]


@lru_cache(maxsize=4096)  # candidates of one family share their products
def _product(inputs: Inputs, products: Products, index: Index) -> Node:
    return products.multiplied(inputs.factor("a", index), inputs.factor("b", index))


@lru_cache(maxsize=4096)
def _spread(inputs: Inputs, products: Products, places: tuple[int, ...], outer: int) -> Node:
    return terms_at(places, partial(_product, inputs, products), outer)


@lru_cache(maxsize=4096)
def _scaled(inputs: Inputs, products: Products, scales: Scales, places: tuple[int, ...]) -> Scale:
    """A scaled product, or a scaled exact sum of several products."""
    form = partial(_product, inputs, products)
    if len(places) == 1:
        return scales.scaled(form(Index(places[0])), places[0])
    return scales.scaled(ExactSum((terms_at(places, form),)), places[0])
