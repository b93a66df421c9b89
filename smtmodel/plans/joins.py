"""Joins: how a stage adds the sums of its parts. A join is a frozen value with a name in plan files. It determines the
start of each part's sum, adds the sums, and describes this in words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar, get_args

from mmaprobe.smtmodel.base.wording import as_words
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.engine import Engine, Way, in_turn
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Begin, Join, Part, Parted

V = TypeVar("V")
Order = Literal["sequential", "pairwise", "backwards"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class InTurn(Join):
    """A join that adds one part after another to the sum so far."""

    loop: ClassVar[str]
    """the name of a part of a loop"""

    @abstractmethod
    def step(self, engine: Engine[V], stage: Parted, span: Span, running: V) -> V:
        """The sum so far after one more part."""

    def joined(self, engine: Engine[V], stage: Parted, parts: Sequence[Part], start: V) -> V:
        value = start
        for part in parts:
            if part.each:
                value, _ = in_turn(engine, part.span, part.each, self.loop, value,
                                   lambda own, x: self.step(engine, stage, own, x))  # fmt: skip
                continue
            with engine.part(part.name):
                value = self.step(engine, stage, part.span, value)
        return value


@dataclass(frozen=True)
class Through(InTurn):
    """Each part begins with the sum so far."""

    word: ClassVar[str] = "through"
    begin: ClassVar[Begin] = "so far"
    loop: ClassVar[str] = "turn"

    def step(self, engine: Engine[V], stage: Parted, span: Span, running: V) -> V:
        return stage.body.run(engine, span, running)

    def words(self) -> str:
        return ", each from the sum so far"


@dataclass(frozen=True)
class Promote(InTurn):
    """Each part begins with +0; its sum is added to the accumulator and rounded."""

    word: ClassVar[str] = "promote"
    begin: ClassVar[Begin] = "zero"
    loop: ClassVar[str] = "chunk"
    rounding: Rounding

    def step(self, engine: Engine[V], stage: Parted, span: Span, running: V) -> V:
        return engine.rounded([running, stage.body.from_zero(engine, span)], self.rounding)

    def words(self) -> str:
        return f" from +0, added as {rounding_words(self.rounding)}"


@dataclass(frozen=True)
class Compensate(Join):
    """Each part begins with +0; its sum is added to the accumulator. The rounding errors of the additions form a second
    sum, added to the result at the end (Neumaier 1974; 2Sum or fast 2Sum computes each error), or each error is added
    to the next part (Kahan 1965)."""

    word: ClassVar[str] = "compensate"
    begin: ClassVar[Begin] = "zero"
    carries: ClassVar[bool] = True
    rounding: Rounding
    by: Way = "neumaier"

    def joined(self, engine: Engine[V], stage: Parted, parts: Sequence[Part], start: V) -> V:
        return engine.compensated(
            start, list(_single(parts)), lambda span: stage.body.from_zero(engine, span), self.rounding, self.by
        )

    def words(self) -> str:
        return f" from +0, added with {self.by.capitalize()}'s compensation as {rounding_words(self.rounding)}"


@dataclass(frozen=True)
class Add(Join):
    """The first part begins with the start, the others with +0. Their sums are added in order, in pairs until one sum
    is left, or in order from the last sum, each addition rounded."""

    word: ClassVar[str] = "add"
    begin: ClassVar[Begin] = "start"
    rounding: Rounding
    order: Order = "sequential"

    @property
    def in_order(self) -> bool:
        return self.order == "sequential"

    def joined(self, engine: Engine[V], stage: Parted, parts: Sequence[Part], start: V) -> V:
        layer = list[V]()
        for span, name in _single(parts):
            with engine.part(name):
                layer.append(stage.body.run(engine, span, engine.zero(stage.body.accumulator) if layer else start))
        if len(layer) == 1:
            return stage.alone(engine, layer[0])
        if self.order == "backwards":
            layer.reverse()
        while self.order == "pairwise" and len(layer) > 1:
            pairs = [engine.rounded(layer[k : k + 2], self.rounding) for k in range(0, len(layer) - 1, 2)]
            layer = pairs + (layer[-1:] if len(layer) % 2 else [])
        return engine.in_order(layer, self.rounding)

    def words(self) -> str:
        return f", added as {rounding_words(self.rounding)}, {self.order}"


def _single(parts: Sequence[Part]) -> Iterator[tuple[Span, str]]:
    """The parts one by one with their names; a loop is divided into its parts."""
    for part in parts:
        rest, number = part.span, 0
        while part.each and rest.count > part.each:
            first, left = rest.cut(part.each)
            assert first is not None
            assert left is not None
            yield first, f"part{number}"
            rest, number = left, number + 1
        yield rest, f"part{number}" if part.each else part.name


@dataclass(frozen=True)
class Tree(Join):
    """The sums of the parts are added as by `Add`, in the order of the partition's own tree. Sums that are added have
    the stage's format."""

    word: ClassVar[str] = "tree"
    begin: ClassVar[Begin] = "start"
    rounding: Rounding

    def joined(self, engine: Engine[V], stage: Parted, parts: Sequence[Part], start: V) -> V:
        raise AssertionError("a tree is that of the partition")

    def run(self, engine: Engine[V], stage: Parted, span: Span, start: V) -> V:
        return stage.partition.in_tree(engine, stage, span, start)

    def words(self) -> str:
        return f", added as {rounding_words(self.rounding)}"


@dataclass(frozen=True)
class Only(Join):
    """The sum of the only part, rounded, for example to the format of a workspace."""

    word: ClassVar[str] = ""
    begin: ClassVar[Begin] = "start"
    rounding: Rounding

    def joined(self, engine: Engine[V], stage: Parted, parts: Sequence[Part], start: V) -> V:
        (part,) = parts
        return engine.rounded([stage.body.run(engine, part.span, start)], self.rounding)

    def words(self) -> str:
        return f", rounded to {rounding_words(self.rounding)}"


#: the joins of plan files
JOINS: tuple[type[Join], ...] = (Through, Promote, Add, Tree, Compensate)


def rounding_words(how: Rounding) -> str:
    """A rounding in words."""
    return f"{how.format.name}, {as_words(how.mode)}"
