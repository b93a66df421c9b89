"""Loops: a body repeated over places with a running result, and one term for each of several places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.values import kept_property
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.nodes.element import Element
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.known import UNKNOWN, Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Value

Places = range | tuple[int, ...]
ROUNDS = 4  # the most rounds after which the facts of a loop's running result are stable; else they are given up


def places_of(numbers: Sequence[int]) -> Places:
    """The numbers as a range if they form one, else as a tuple. Raises ParameterError for no numbers."""
    if isinstance(numbers, range):
        return numbers if len(numbers) > 1 else range(numbers.start, numbers.start + len(numbers))
    if not numbers:
        raise ParameterError("range", "no place is in it")
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if step > 0:
        whole = range(numbers[0], numbers[-1] + 1, step)
        if tuple(whole) == tuple(numbers):
            return whole
    return tuple(numbers)


@dataclass(frozen=True, eq=False)
class Running(Node):
    """The running result of the repetition at a level."""

    kind: ClassVar[str] = "acc"
    source: ClassVar[str] = ""
    level: int

    @kept_property
    def free(self) -> frozenset[int]:
        return frozenset((self.level,))

    @kept_property
    def continued(self) -> frozenset[int]:
        return self.free

    def place(self, context: Context) -> str:
        return "acc"

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return knowledge.running.get(self.level, UNKNOWN)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        return context.running[self.level]

    def sentence(self) -> str:
        return "the result so far"


@dataclass(frozen=True, eq=False)
class Repeat(Node):
    """A body evaluated for each place in turn, beginning with `start`. In the body, `Running` of the level is the
    result so far, and indices of the level have the place."""

    kind: ClassVar[str] = "repeat"
    source: ClassVar[str] = "Xie et al. 2026, Algorithm 3 (chains of instructions' steps)"
    level: int
    places: Places
    start: Node
    body: Node

    def __post_init__(self) -> None:
        if not self.places:
            raise ParameterError("repeat", "no place is in its range")
        object.__setattr__(self, "places", places_of(self.places))

    @property
    def binds(self) -> int | None:
        return self.level

    @property
    def known_from(self) -> tuple[Node, ...]:
        return ()

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return knowledge.within(self.level, self.so_far(knowledge)).of(self.body)

    def so_far(self, knowledge: Knowledge) -> Known:
        """The facts of the start and of every result, by induction: facts that hold for the start, and for a round's
        result if they hold for the result before."""
        start = so_far = knowledge.of(self.start)
        for _ in range(ROUNDS):
            either = so_far.or_else(knowledge.within(self.level, so_far).of(self.body))
            if either == so_far:
                return so_far
            so_far = either if either.interval == so_far.interval else either.unsized
        body = knowledge.within(self.level, replace(UNKNOWN, turns=start.turns)).of(self.body)
        if start.formats is None or body.formats is None:
            return UNKNOWN
        turns = start.turns if start.turns is body.turns else None
        return replace(Known.number(start.formats | body.formats), turns=turns)

    @kept_property
    def free(self) -> frozenset[int]:
        return self.start.free | (self.body.free - {self.level})

    @kept_property
    def continued(self) -> frozenset[int]:
        return self.start.continued | (self.body.continued - {self.level})

    @property
    def is_number(self) -> bool:
        return self.body.is_number

    def evaluate(self, context: Context, keep: int | None) -> Value:
        value = context.value(self.start)
        outer, several = context.trace.prefix, len(self.places) > 1
        name = context.name(self)
        read, last = list[Bits](), None  # the inputs of the last round, and the result with which it began
        for step, place in enumerate(self.places):
            before, read = read, self._read(context, place)
            if step > 1 and not context.trace.keeps and all(map(_alike, before, read)) and _same(last, value.pattern):
                continue  # this round reads the inputs of the last round, which left the result unchanged
            own = f"{name}[{step}]." if name else f"block{step}." if several else ""
            prefix = outer + own
            if context.trace.keeps and several and not name:
                context.trace.rounds.append(prefix)
            with context.iteration(self.level, place), context.within(prefix):
                context.running[self.level] = value
                last, value = value.pattern, context.value(self.body)
        return value

    @kept_property
    def _inputs(self) -> tuple[tuple[str, Index], ...]:
        """The elements that a round reads, with indices in the variables of this loop and of the loops around this
        one."""
        read = ((element.operand, index) for element, ranges in elements_read(self.body)
                for index in indices_read(element, ranges))  # fmt: skip
        return tuple(dict.fromkeys(read))

    def _read(self, context: Context, place: int) -> list[Bits]:
        places = {**context.places, self.level: place}
        return [context.pattern(operand, index.at(places)) for operand, index in self._inputs]

    def sentence(self) -> str:
        return f"{len(self.places)} times, each from the result before"


@dataclass(frozen=True, eq=False)
class Each(Node):
    """Several terms of a sum: the body at each place."""

    kind: ClassVar[str] = "each"
    source: ClassVar[str] = ""
    level: int
    places: Places
    body: Node

    def __post_init__(self) -> None:
        if not self.places:
            raise ParameterError("range", "no place is in it")
        object.__setattr__(self, "places", places_of(self.places))

    @property
    def binds(self) -> int | None:
        return self.level

    @property
    def count(self) -> int:
        return len(self.places) * self.body.count

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of each of the terms."""
        return operands[0]

    def places_of_terms(self, context: Context) -> list[str]:
        places = []
        for place in self.places:
            with context.iteration(self.level, place):
                places += self.body.places_of_terms(context)
        return places

    def terms(self, context: Context) -> Iterator[tuple[str, Value]]:
        for place in self.places:
            with context.iteration(self.level, place):
                context.ranges.append(self.level)
                terms = list(self.body.terms(context))
                context.ranges.pop()
            yield from terms

    def evaluate(self, context: Context, keep: int | None) -> Value:
        raise ParameterError("range", "several terms stand where one is needed: they are added by exact or fused")

    def sentence(self) -> str:
        return f"{len(self.places)} terms"


def elements_read(result: Node) -> Iterator[tuple[Element, Mapping[int, Places]]]:
    """Every element of an expression with the ranges of the loop variables around the element, once for each
    combination of ranges, however often the steps around the element are used."""
    seen: set[int | tuple[int, tuple[tuple[int, Places], ...]]] = set()  # nodes by identity: hashing takes longer
    waiting: list[tuple[Node, dict[int, Places]]] = [(result, {})]
    while waiting:
        node, ranges = waiting.pop()
        if ranges:
            free = node.free
            ranges = {level: places for level, places in sorted(ranges.items()) if level in free} if free else {}
        key = (id(node), tuple(ranges.items())) if ranges else id(node)
        if key in seen:
            continue
        seen.add(key)
        if isinstance(node, Element):
            yield node, ranges
        if isinstance(node, (Repeat, Each)):
            ranges = {**ranges, node.level: node.places}
        waiting += [(operand, ranges) for operand in reversed(node.operands)]


def indices_read(element: Element, ranges: Mapping[int, Places]) -> Iterator[Index]:
    """The places of an element for all values of the loop variables in `ranges`, as indices in the other loop
    variables; place 0 for an operand without index."""
    index = element.index or Index()
    inner = [[factor * value for value in ranges[level]] for level, factor in index.factors if level in ranges]
    outer = tuple(pair for pair in index.factors if pair[0] not in ranges)
    return (Index(index.offset + sum(moves), outer) for moves in product(*inner))


def _alike(one: Bits, other: Bits) -> bool:
    """Whether two inputs are the same object or equal constants."""
    return one is other or (one.value is not None and one.value == other.value)


def _same(one: Bits | None, other: Bits | None) -> bool:
    """True only if two results are known to be equal on every lane."""
    return one is not None and other is not None and (~one.eq(other)).folded().value is False
