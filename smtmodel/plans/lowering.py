"""A plan at a given K as a unit: one expression, to which all functions for units apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import chain, count

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError, check_number
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Each,
    Element,
    ExactSum,
    Index,
    Node,
    Product,
    Repeat,
    Round,
    Running,
)
from mmaprobe.smtmodel.nodes.element import MINUS
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.rewriting import at_place, numbered, replaced, shifted, written_out
from mmaprobe.smtmodel.nodes.round import Rounding, Tiny
from mmaprobe.smtmodel.nodes.sums import Sum
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.span import Span, added, moved
from mmaprobe.smtmodel.plans.words import Gathered, Scaled, Words, word_at
from mmaprobe.smtmodel.units.unit import LONGEST, Unit

DEEPEST = 200  # nodes within one another: readers of an expression recurse from node to node


@lru_cache(maxsize=256)
def unit_of_plan(plan: Plan, length: int, most: int = LONGEST) -> Unit:
    """The plan at one K, as a unit. Raises ParameterError for a length that no tile fits, and for a length at which too
    many steps follow one another without a loop."""
    check_number("length", length, (1, most))
    engine = Lowering(plan, length)

    def leaf(node: Node) -> Node | None:
        if isinstance(node, Products):
            return node.stage.run(engine, Span.of(length), replaced(node.start, leaf))
        return engine.gathered(node, Index()) if isinstance(node, Gathered) else None

    became: dict[Node, Node] = {}
    with plan.named():
        try:
            result: Node | None = replaced(plan.result, leaf, became)
        except RecursionError:
            result = None
        if result is None or _depth(result) > DEEPEST:
            what = f"{length} products are added in too many steps, one after another and no loop, for one expression"
            raise ParameterError("length", f"{what}: `simulate` and error bounds take them")
    names = {name: became[node] for name, node in plan.names.items() if node in became}
    return Unit(
        plan.a, plan.b, plan.c, length, result, plan.scale, plan.scale_block if plan.scale else 0,
        names=names, roundings=plan.roundings, signals=engine.signals, reference=plan.reference, about=plan.about,
        source=plan.source, evidence=plan.evidence,
    )  # fmt: skip


def _depth(node: Node) -> int:
    """How many nodes are within one another."""
    depths: dict[int, int] = {}
    waiting = [node]
    while waiting:
        last = waiting[-1]
        if missing := [x for x in last.operands if id(x) not in depths]:
            waiting += missing
        else:
            depths[id(last)] = 1 + max((depths[id(x)] for x in last.operands), default=0)
            waiting.pop()
    return depths[id(node)]


@lru_cache(maxsize=256)
def partly_filled(model: Model, count: int) -> Model:
    """The unit that takes the first `count` of a unit's products, and zeros for the others: the unit itself, if it has
    no other products."""
    if count >= model.length:
        return model
    unit, block = model.unit, model.scale_block
    result = numbered(_padded(written_out(unit.result), count, block))
    length = -(-count // block) * block if block else count
    return Model(model.reference, unit.with_result(result, length=length, unrolled=None))


class Lowering(Engine[Node]):
    """Makes expressions. `signals`: the prefixes of the signals of loops."""

    def __init__(self, plan: Plan, length: int) -> None:
        self.plan, self.length = plan, length
        self.signals: dict[Node, str] = {}
        self.level = 0
        self.path = ""
        self._taken = set[str]()  # the names so far, in the loop that is made
        self._gathered: dict[tuple[Gathered, int, tuple[tuple[int, int], ...]], Node] = {}
        self._words: dict[Element, dict[Node, Node]] = {}  # element -> part of its words -> the node of this part
        self._blocks = any(part.block for part in plan.gathered)
        #: for loops whose results the unit reads unchanged: how it reads the start, and the start's format
        self.reads: dict[int, tuple[Element, Format]] = {}

    def zero(self, fmt: Format) -> Node:
        return Constant()

    def gathered(self, node: Gathered, index: Index) -> Node:
        """The number found from all elements of a side, or from the elements of the block in which an element lies.
        Raises ParameterError where a tile of a loop does not begin with a block."""
        block, first = node.block or self.length, index if node.block else Index()
        if any(factor % block for _, factor in first.factors):
            raise ParameterError("block", f"tiles do not begin where {block} elements begin that are read together")
        start = first.offset - first.offset % block
        stop = start + block if first.factors else min(start + block, self.length)
        key = node, start, first.factors
        if key not in self._gathered:
            items = (Element(node.operand, Index(place, first.factors)) for place in range(start, stop))
            self._gathered[key] = node.node_over(tuple(items))
        return self._gathered[key]

    def rounded(self, values: Sequence[Node], rounding: Rounding) -> Node:
        return Round(values[0] if len(values) == 1 else ExactSum(tuple(values)), rounding)

    def lost(self, values: Sequence[Node], total: Node, rounding: Rounding) -> Node:
        return Round(ExactSum((*values, Product(MINUS, total))), rounding)

    def repeat(self, count: int, name: str, start: Node, body: Callable[[Index, Node], Node]) -> Node:
        if count == 1:
            return body(Index(), start)
        self.level += 1
        level, path, self.path = self.level, self.path, ""  # a loop's signals begin with its own name
        taken, self._taken = self._taken, set()
        step = body(Index(0, ((level, 1),)), Running(level))
        if level in self.reads:
            start = self._read_as(start, *self.reads.pop(level))
        loop = Repeat(level, range(count), start, step)
        self.level, self.path, self._taken = level - 1, path, taken
        return self._named(loop, name)

    def _named(self, node: Node, name: str) -> Node:
        """Give a node the name of its part, with a number where another node has this name: each signal has its own
        name."""
        if node not in self.signals:
            plain = f"{self.path}{name}".removesuffix(".")
            names = chain([plain], (f"{plain}{number}" for number in count(2)))
            self.signals[node] = next(one for one in names if not one or one not in self._taken)
            self._taken.add(self.signals[node])
        return node

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        before = self.path
        self.path += f"{name}." if name else ""
        yield
        self.path = before

    def tile(self, model: Model, words: Words, span: Span, start: Node) -> Node:
        read = self.plan.read(words)
        result = partly_filled(model, span.count).unit.result
        if span.groups > 1 or self._blocks:  # each element is written with its own place, which tells its block, too
            result = _spelt(written_out(result))

        def element(given: Element) -> Node:
            if given.index is None and isinstance(start, Running) and _reads_as_it_gives(given, model):
                self.reads[start.level] = given, model.c
                return start
            if given.index is None:
                return self._read_as(start, given, model.c)
            if given.is_factor:
                return self._factor(replace(given, index=added(span.scales(model.scale_block), given.index)))
            if span.groups > 1:
                return self._input(replace(given, index=moved(span.start, span.distance(given.index.offset))), read)
            return self._input(replace(given, index=added(span.start, given.index, span.step)), read)

        expression = shifted(result, self.level, element)
        return self._named(expression, "") if self.path else expression

    def _factor(self, element: Element) -> Node:
        """A scale factor: the factor of a word, where the plan's words have factors."""
        if self.plan.factors is None:
            return element
        factor, block = self.plan.factors[element.operand == "scale_b"], self.plan.models[0].scale_block
        assert element.index is not None
        index = added(Index(), element.index, block)
        return replaced(factor, lambda part: self.gathered(part, index) if isinstance(part, Gathered) else None)

    def _input(self, element: Element, words: Words) -> Node:
        word = words[0] if element.operand == "a" else words[1]
        if word is None:
            return element
        index = element.index
        assert index is not None
        read = Element(element.operand, index)
        word = word.element if isinstance(word, Scaled) else word
        if read not in self._words:
            self._words[read] = {}
            for name, part in self.plan.words.get(element.operand, {}).items():
                part = part.element if isinstance(part, Scaled) else part
                self.signals.setdefault(self._word_at(part, read, index), name)
        return self._read_as(self._word_at(word, read, index), element, word.rounding.format)

    def _word_at(self, word: Round, read: Element, index: Index) -> Node:
        return word_at(word, read, lambda part: self.gathered(part, index), self._words[read])

    def _read_as(self, node: Node, element: Element, fmt: Format) -> Node:
        """A number as a unit reads it in the place of one of its inputs; the input's format holds all values of the
        number. Raises ParameterError where no rounding node describes this reading."""
        flushes, plus = element.subnormals != "keep", element.positive_zeros
        if isinstance(node, Constant):
            return Constant(node.negative and not plus)
        if isinstance(node, Element):
            if flushes and self.plan.c.unit >= fmt.emin:  # no c is subnormal in this format
                return replace(node, positive_zeros=plus)
            if not flushes or self.plan.c.emin == fmt.emin:
                return replace(node, subnormals=element.subnormals, positive_zeros=plus)
        if not flushes and not plus:
            return node
        if element.subnormals == "positive_zero" and not plus:
            if _flushes(node):
                return node
            raise ParameterError("start", "a unit that reads subnormals as +0 and keeps -0 takes no subnormal results")
        tiny: Tiny = "flush_after" if flushes else "keep"
        return Round(node, Rounding(fmt, subnormals=tiny, zero="positive" if plus else "ieee"))


def _reads_as_it_gives(addend: Element, model: Model) -> bool:
    """Whether a unit reads subnormal addends as zero, gives no subnormal results, and reads every zero as it is."""
    return addend.subnormals == "zero" and not addend.positive_zeros and _no_subnormals(model.unit.rounding)


def _flushes(node: Node) -> bool:
    return isinstance(node, Round) and _no_subnormals(node.rounding)


def _no_subnormals(how: Rounding) -> bool:
    """Whether no result of a rounding is subnormal, nor the number that it writes for a NaN."""
    return how.subnormals != "keep" and how.nan_or_zero


def _spelt(node: Node) -> Node:
    """An expression without repetitions, with every range of terms of its sums written out."""

    def leaf(part: Node) -> Node | None:
        if not isinstance(part, Sum):
            return None
        terms: list[tuple[int, Node]] = []
        for place, item in enumerate(part.items):
            each = [at_place(item.body, item.level, k) for k in item.places] if isinstance(item, Each) else [item]
            terms += [(place, replaced(term, leaf)) for term in each]
        return part.of_terms(terms)

    return replaced(node, leaf)


def _padded(node: Node, count: int, block: int) -> Node:
    """An expression without repetitions in which the products from `count` on are products of zeros. Scale factors (one
    pair for `block` products) that belong to such products alone are zeros too."""

    def is_beyond(part: Element, places: Mapping[int, int]) -> bool:
        assert part.index is not None
        return part.index.at(places) * (block if part.is_factor else 1) >= count

    def inputs(part: Node) -> list[Element]:
        return [inner for inner in of_kind(part, Element) if inner.index is not None]

    def zeroed(part: Node) -> Node:
        return replaced(part, lambda x: Constant() if isinstance(x, Element) and x.index is not None else None)

    def terms(item: Node) -> list[Node]:
        if not isinstance(item, Each):
            return [replaced(item, leaf)]
        if any(of_kind(item.body, Each)):  # an inner range belongs to one place of this range
            return [replaced(at_place(item.body, item.level, place), leaf) for place in item.places]
        sides: dict[int, list[int]] = {0: [], 1: [], 2: []}  # the places where no, some, all elements are beyond
        for place in item.places:
            missing = [is_beyond(part, {item.level: place}) for part in inputs(item.body)]
            sides[any(missing) + all(missing)].append(place)
        every: list[Node] = [Each(item.level, tuple(sides[0]), item.body)] if sides[0] else []
        every += [replaced(at_place(item.body, item.level, place), leaf) for place in sides[1]]
        return every + ([Each(item.level, tuple(sides[2]), zeroed(item.body))] if sides[2] else [])

    def leaf(part: Node) -> Node | None:
        if isinstance(part, Sum):
            return part.of_terms([(place, term) for place, item in enumerate(part.items) for term in terms(item)])
        if isinstance(part, Element) and part.index is not None and is_beyond(part, {}):
            return Constant()
        return None

    return replaced(node, leaf)
